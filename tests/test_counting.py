"""Which rows of the verdicts count: one a class, its worst."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import report_fixture as fixture

from claimscore.jobs.counting import once
from claimscore.jobs.frames import as_frame, joined
from claimscore.jobs.records import VERDICTS


def kept(*rows: dict) -> list[tuple[str, int]]:
    """(request_id, claim_index) of the rows that count."""
    return once(as_frame(fixture.verdicts(list(rows)))).select("request_id", "claim_index").rows()


def test_the_worst_of_a_class_counts():
    """Whichever of them it is, in the order of the rows."""
    assert kept(
        fixture.claim("a", 0),
        fixture.claim("a", 1, "unscored"),
        fixture.claim("a", 2, "unsupported", duplicate_of=0),
        fixture.claim("a", 3, "supported", duplicate_of=1),
        fixture.claim("a", 4, "contradicted", duplicate_of=0),
    ) == [("a", 1), ("a", 4)]


def test_of_equal_verdicts_the_one_with_a_type_counts():
    """A supported claim that is badly cited once is flagged once."""
    miscited = fixture.claim("a", 1, hallucination_type="miscitation", duplicate_of=0)

    assert kept(fixture.claim("a", 0), miscited) == [("a", 1)]


def test_of_equal_rows_the_first_counts():
    """So that what is listed is what a reader meets first."""
    assert kept(fixture.claim("a", 0), fixture.claim("a", 1, duplicate_of=0)) == [("a", 0)]


def test_answers_are_apart():
    """The same index in another answer is another claim."""
    rows = [fixture.claim(name, k, duplicate_of=0 if k else None) for name in ("a", "b") for k in range(2)]

    assert kept(*rows) == [("a", 0), ("b", 0)]


def test_without_repeats_it_is_the_table_itself():
    """The usual day costs nothing."""
    frame = as_frame(fixture.verdicts([fixture.claim("a", 0), fixture.claim("a", 1)]))

    assert once(frame) is frame


def test_no_rows_give_no_rows():
    """Empty in, empty out."""
    assert len(once(as_frame(VERDICTS.empty_table()))) == 0


def test_a_table_of_an_older_version_has_no_repeats():
    """It lacks the column, and is read beside newer ones."""
    older = fixture.verdicts([fixture.claim("a", 0)]).drop_columns(["duplicate_of"])
    newer = fixture.verdicts([fixture.claim("b", 0), fixture.claim("b", 1, duplicate_of=0)])

    frame = as_frame(joined(VERDICTS, [older, newer]))

    assert once(frame)["request_id"].to_list() == ["a", "b"]
    assert frame["duplicate_of"].to_list() == [None, None, 0]
    assert isinstance(frame, pl.DataFrame)
    assert joined(VERDICTS, []).num_rows == 0
    assert joined(VERDICTS, []).schema.names == VERDICTS.names
    assert isinstance(joined(VERDICTS, [newer]), pa.Table)
