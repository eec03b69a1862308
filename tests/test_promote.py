"""`claimscore promote`: which answers become candidates, what is taken once, and what a golden file keeps."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import golden_fixture as fixture
import jobs_fixture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import report_fixture
from click.testing import CliRunner, Result

from claimscore.jobs import promote
from claimscore.jobs.cli import main
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import CHUNK

DATE = jobs_fixture.DATE
FEES = [{"id": "f", "text": "The fee is 5 euro.", "score": 0.5}]
ROWS = [
    fixture.row("good", "true", question="Is it fine?"),
    fixture.row("bad", "false", question="How long is the refund window?"),
    # the same item again: question and chunks differ in case, marks, blanks and order only
    fixture.row(
        "again",
        "false",
        question="how long is  the refund window",
        chunks=[{**c, "text": c["text"].upper() + " "} for c in reversed(jobs_fixture.CHUNKS)],
    ),
    # the same question on other evidence is another item
    fixture.row("other", "false", question="How long is the refund window?", chunks=FEES),
    fixture.row("refused", "refused", question="Who is the king?"),
    fixture.row("blank", "", question="What is the fee?"),
]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A night that was run on stubs, and a golden file that is not there yet."""
    fixture.without_ray(monkeypatch)
    jobs_fixture.write_log(tmp_path, ROWS)
    config = jobs_fixture.write_config(tmp_path, extra=fixture.QUICK)
    invoke("run", config, "--date", DATE, "--quiet")
    return {"config": config, "to": tmp_path / "golden.parquet", "folder": tmp_path}


def invoke(*arguments: Any) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def promoted(job: dict[str, Any], *more: Any) -> dict[str, Any]:
    """What the command says it did."""
    result = invoke("promote", job["config"], "--to", job["to"], "--json", *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def items(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the golden file."""
    return pq.read_table(job["to"]).to_pylist()


def test_flagged_and_escalated_answers_are_promoted_once(job):
    """Worst first, then by id; the repetition is left out and counted; what is fine or well refused stays."""
    document = promoted(job)

    assert [row["request_id"] for row in items(job)] == [
        f"{DATE}/{name}" for name in ("again", "other", "blank")
    ]
    assert document["left_out"] == {"same as another of the night": 1}
    assert (document["n_candidates"], document["n_added"]) == (4, 3)


def test_an_item_carries_its_evidence_and_the_verdicts_as_suggestions(job):
    """Chunks as the log had them, gold columns empty, what the judge said beside them."""
    promoted(job)

    row = items(job)[1]
    assert row["chunks"] == FEES
    gold = ("answerable", "gold_chunk_ids", "reference_answer", "human_label", "conflicting")
    assert [row[name] for name in gold] == [None] * 5
    assert (row["suggested_label"], row["promoted_for"]) == ("hallucinated", "1 of 1 claims flagged")
    assert [v["verdict"] for v in row["suggested_verdicts"]] == ["unsupported"]


def test_gold_that_the_log_has_is_kept(job):
    """A log with gold columns keeps its labels."""
    gold = {"answerable": True, "human_label": "hallucinated", "conflicting": True}
    jobs_fixture.write_log(job["folder"], [fixture.row("bad", "false", **gold)])
    invoke("run", job["config"], "--date", DATE, "--quiet")

    promoted(job)

    assert [{name: row[name] for name in gold} for row in items(job)] == [gold]


def test_appending_the_same_night_adds_nothing(job):
    """The file's bytes stay as they are."""
    promoted(job)
    before = job["to"].read_bytes()

    document = promoted(job, "--append")

    assert (document["n_added"], document["n_items"]) == (0, 3)
    assert document["left_out"]["same as an item of the file"] == 3
    assert job["to"].read_bytes() == before


def test_a_limit_holds_however_often_it_is_asked(job):
    """The first of the night, and not the next one at the second call."""
    promoted(job, "--limit", "1")
    document = promoted(job, "--limit", "1", "--append")

    assert [row["request_id"] for row in items(job)] == [f"{DATE}/again"]
    assert document["left_out"]["beyond the limit"] == 2


def test_appending_keeps_labels_and_columns_of_others(job):
    """What a person wrote stays, in its row and its own column; the new items follow."""
    promoted(job, "--limit", "1")
    labelled = pq.read_table(job["to"])
    place = labelled.column_names.index("answerable")
    labelled = labelled.set_column(place, "answerable", pa.array([True]))
    pq.write_table(labelled.append_column("labelled_by", pa.array(["me"])), job["to"])

    promoted(job, "--append")

    assert [(row["answerable"], row["labelled_by"]) for row in items(job)] == [
        (True, "me"),
        (None, None),
        (None, None),
    ]


def test_a_file_that_may_hold_labels_is_not_overwritten(job):
    """Without --append it is refused, and stays."""
    job["to"].write_bytes(b"labels")

    result = invoke("promote", job["config"], "--to", job["to"])

    line = f"Error: {job['to']}: exists, expected a new file: it may hold labels; give --append, or another --to\n"
    assert (result.exit_code, result.stderr) == (1, line)
    assert job["to"].read_bytes() == b"labels"


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (None, "cannot be read: "),
        (pa.table({"question": ["q"]}), "its questions and chunks cannot be read: "),
        (
            pa.table({"request_id": ["r"], "question": ["q"], "chunks": [[{"text": "c"}]]}),
            "new items do not fit its columns: ",
        ),
        (
            pa.table(
                {
                    "request_id": ["r"],
                    "question": ["q"],
                    "chunks": pa.array([[]], pa.list_(CHUNK)),
                    "answer": [7],
                }
            ),
            "new items do not fit its columns: ",
        ),
    ],
)
def test_a_file_that_is_no_golden_set_is_named(job, table: pa.Table | None, line: str):
    """Something else under that name gets no items; exit code 1."""
    if table is None:
        job["to"].write_bytes(b"not parquet")
    else:
        pq.write_table(table, job["to"])
    before = job["to"].read_bytes()

    result = invoke("promote", job["config"], "--to", job["to"], "--append")

    assert result.exit_code == 1
    assert f"{job['to']}: {line}" in result.stderr
    assert job["to"].read_bytes() == before


def test_two_runs_give_the_same_bytes(job):
    """The order of the items is that of the ranking, and nothing of the run is in them."""
    promoted(job)
    first = job["to"].read_bytes()
    job["to"].unlink()
    promoted(job)

    assert job["to"].read_bytes() == first


def test_labelled_candidates_are_a_golden_set(job):
    """Once a person has filled the gold columns, evaluate reads the file, its own columns and all."""
    promoted(job)
    rows = [row | {"answerable": k > 0, "conflicting": k == 2} for k, row in enumerate(items(job))]
    pq.write_table(pa.Table.from_pylist(rows, schema=promote.GOLDEN), job["to"])

    result = invoke("evaluate", job["config"], job["to"], "--json")

    kinds = {item["request_id"]: item["kind"] for item in json.loads(result.stdout)["items"]}
    assert result.exit_code == 0
    assert kinds == {
        f"{DATE}/again": "unanswerable",
        f"{DATE}/other": "answerable",
        f"{DATE}/blank": "conflicting",
    }


def test_a_log_that_lost_a_row_is_told(job):
    """An answer whose evidence is gone cannot be replayed."""
    jobs_fixture.write_log(job["folder"], ROWS[:1])

    assert promoted(job)["left_out"] == {"no longer in the log": 4}


def test_a_column_of_that_name_that_is_no_flag_is_somebodys_own(job):
    """In a nightly log `conflicting` may be anything; only a golden set must have booleans there."""
    jobs_fixture.write_log(job["folder"], [fixture.row("bad", "false", conflicting="see ticket 7")])
    invoke("run", job["config"], "--date", DATE, "--quiet")

    promoted(job)

    assert [row["conflicting"] for row in items(job)] == [None]


def test_a_night_that_was_not_run_is_named(job):
    """Which days there are, and exit code 1."""
    result = invoke("promote", job["config"], "--to", job["to"], "--date", "2026-11-01")

    assert result.exit_code == 1
    assert "no answers of 2026-11-01 in series stub-" in result.stderr


def test_escalated_answers_come_after_the_flagged_ones():
    """By what is to be read first; each says why it is there."""
    rows = [
        report_fixture.answer("e", bad=None, next_step="escalate", action_reason="nothing_scored"),
        report_fixture.answer("f", bad=True, n_fabricated_citations=1),
        report_fixture.answer("ok"),
        report_fixture.answer("marks", n_fabricated_citations=1),
    ]
    claims = [
        report_fixture.claim("e", verdict="unscored"),
        report_fixture.claim("f", verdict="unsupported"),
        report_fixture.claim("ok"),
        report_fixture.claim("marks"),
    ]
    frames = as_frame(report_fixture.answers(rows)), as_frame(report_fixture.verdicts(claims))

    assert promote.candidates(*frames).select("request_id", "why").rows() == [
        ("f", "1 of 1 claims flagged"),
        ("marks", "a fabricated citation on no claim"),
        ("e", "escalated: nothing_scored"),
    ]


def test_the_key_of_an_item_is_the_same_in_every_process():
    """Over the folded question and the folded chunks in order of text: what a file holds is found again next month."""
    text = "what is it\na 1\nb\nc\nd\ne\nf\ng\nh"

    item = promote.Likeness.of("What is it?", ["B!", "c", "h", "g", "d", "f", "e", "a  1."])

    assert item.key == hashlib.sha256(text.encode()).hexdigest()[:32]


Q = "What is the yearly fee of the Aurum card for new members"


@pytest.mark.parametrize(
    ("question", "texts", "found"),
    [
        (Q, ["a", "b"], "same"),
        (Q.upper() + "?", ["B", "a."], "same"),
        (Q + ", please", ["a", "c"], "near"),  # 10 of 11 words, one of two chunks
        (Q, ["a", "b", "c"], "near"),
        (Q, ["c", "d"], ""),
        ("What is the yearly fee of the Argent card for old clients", ["a", "b"], ""),  # 7 of 13 words
        (Q + " 2024", ["a", "b"], ""),  # another number
        (Q, [], ""),
    ],
)
def test_what_says_the_same(question: str, texts: list[str], found: str):
    """By folded question and evidence, or by four fifths of the words, the same numbers and half of the chunks."""
    held = promote.Held()
    held.add(promote.Likeness.of(Q, ["a", "b"]))

    assert held.like(promote.Likeness.of(question, texts)) == found
