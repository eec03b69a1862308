"""The CSV: cells that no spreadsheet runs, empty cells for what was not scored, and the same rows read back."""

from __future__ import annotations

import csv
import io

import loopback_fixture as loop
import polars as pl
import pytest
import report_fixture as fixture

from claimscore.jobs.export_csv import harmless, render
from claimscore.jobs.exports import Target

TARGET = Target("csv", fixture.DAY, "s-1", frozenset())


def rows(answers, claims=()):
    """The file read by Python's own reader."""
    text = render(fixture.answers(answers), fixture.verdicts(list(claims)), TARGET).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1+cmd|' /C calc'!A0",
        "@SUM(A1)",
        "  =1+1",
        "\t=1",
        "\r=1",
        "\n=1",
        "\x00=1",
        "\u00a0=1",
        "\u200b=1",
        "＝1+1",
        "＋1",
        "－1",
        "＠x",
        "\ttabbed",
        '=HYPERLINK("http://x","y")',
    ],
)
def test_a_formula_is_text(text):
    """A cell that a spreadsheet would compute begins with an apostrophe."""
    (row,) = rows([fixture.answer("r", question=text, answer=text, topic=text, model=text)])

    for column in ("question", "answer", "topic", "model"):
        assert row[column].startswith("'")


@pytest.mark.parametrize("text", ["5 - 3 = 2", "a@b.example", "1+1", "(-1)", "", "'=1", "Ünïcode ✓ 日本"])
def test_other_text_stays_as_it_is(text):
    """Signs inside a text are no formula."""
    assert pl.select(harmless(pl.lit(text))).item() == text


def test_ids_and_claims_are_guarded_too():
    """Every column of text is, whoever wrote it."""
    origin = loop.origin(trace_id="=1", project="@x")
    claims = [fixture.claim("=r", 0, "unsupported", claim="\n=HYPERLINK(1)")]
    (row,) = rows([fixture.answer("=r", bad=True, origin=origin)], claims)

    assert (row["request_id"], row["origin_trace_id"], row["origin_project"]) == ("'=r", "'=1", "'@x")
    assert "\n=" not in row["claims"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202efdp.exe", "afdp.exe"),
        ("co\u00adop\u200beration\ufeff", "cooperation"),
        ("\u200b=1+1", "'=1+1"),
        ("a\x85b\u2028c", "a b c"),
        (
            "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
    ],
)
def test_what_cannot_be_seen_is_not_written(text, shown):
    """Direction marks, soft hyphens and zero-width blanks go; a joiner that a script writes with stays."""
    (row,) = rows([fixture.answer("r", question=text)])

    assert row["question"] == shown


def test_numbers_stay_numbers():
    """They are ours, and a minus before one is no formula."""
    (row,) = rows([fixture.answer("r", groundedness=0.5)])

    assert (float(row["groundedness"]), int(row["n_claims"]), row["hallucinated"]) == (0.5, 1, "0")


def test_unscored_is_an_empty_cell_with_a_reason():
    """Never a 0, which every mean would take in."""
    claims = [fixture.claim("r", 0, "unscored", reason="claim_too_long")]
    (row,) = rows([fixture.answer("r", bad=None)], claims)

    assert (row["groundedness"], row["hallucinated"], row["unscored_reason"]) == ("", "", "claim_too_long")


def test_line_breaks_quotes_and_commas_are_read_back():
    """Whatever the text, a row is a row."""
    text = 'a "quoted", text\nof two lines, ünïcode'
    found = rows([fixture.answer("r", answer=text), fixture.answer("s")])

    assert [row["request_id"] for row in found] == ["r", "s"]
    assert found[0]["answer"] == text


def test_an_empty_night_has_a_header():
    """The columns do not depend on the rows."""
    empty = render(fixture.answers([]), fixture.verdicts([]), TARGET).decode()
    one = render(fixture.answers([fixture.answer("r")]), fixture.verdicts([]), TARGET).decode()

    assert empty == one.splitlines()[0] + "\r\n"
