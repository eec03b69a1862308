"""How a run over the demo log is scored against the gold file: matching, rates, intervals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import check_demo
import make_demo_log
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """The folder that holds the log and the gold files."""
    root = tmp_path_factory.mktemp("demo")
    make_demo_log.write_demo(root / "log")
    return root


@pytest.fixture(scope="module")
def gold(demo) -> list[dict]:
    return pq.read_table(demo / "gold.parquet").to_pylist()


@pytest.fixture(scope="module")
def states(demo) -> list[dict]:
    return pq.read_table(demo / "gold_answers.parquet").to_pylist()


def predicted(gold: list[dict], **changed: object) -> list[dict]:
    """Verdict rows that agree with the gold in everything but what is `changed`."""
    return [{k: row[k] for k in row if k != "sentence"} | changed for row in gold]


def score(claims: list[dict], gold: list[dict]) -> dict:
    names = ("request_id", "start", "end", "claim", "verdict", "hallucination_type", "citation_state")
    claims_table = pa.table({name: [c[name] for c in claims] for name in names})
    return check_demo.score_against_gold(claims_table, pa.Table.from_pylist(gold, schema=make_demo_log.GOLD))


def test_a_perfect_run_has_recall_and_precision_one(gold):
    """Verdicts equal to the gold score 1 everywhere."""
    scores = score(predicted(gold), gold)
    rates = [scores[name]["value"] for name in ("recall", "precision", "verdict_agreement")]
    assert rates == [1.0, 1.0, 1.0]
    assert {r["named"]["value"] for r in scores["by_type"].values()} == {1.0}
    assert scores["n_unmatched"] == scores["n_gold_unmatched"] == 0


def test_a_run_that_flags_nothing_finds_nothing(gold):
    """Recall is 0 and precision has no denominator."""
    scores = score(predicted(gold, verdict="supported", citation_state="ok"), gold)
    assert (scores["recall"]["hits"], scores["precision"]["value"]) == (0, None)
    assert (
        scores["recall"]["n"] == len(scores["missed"]) == sum(bool(row["hallucination_type"]) for row in gold)
    )


def test_a_run_that_flags_everything_is_as_precise_as_the_share_planted(gold):
    """Flagging every claim gives recall 1 and the base rate as precision."""
    scores = score(predicted(gold, verdict="unsupported"), gold)
    assert scores["recall"]["value"] == 1.0
    assert scores["precision"] == scores["precision"] | {"hits": scores["recall"]["n"], "n": len(gold)}


def test_unscored_claims_find_nothing_and_are_counted(gold):
    """A claim that was not judged is neither a find nor a false alarm."""
    scores = score(predicted(gold, verdict="unscored", citation_state="missing"), gold)
    assert (0, 0, len(gold)) == (scores["recall"]["hits"], scores["precision"]["n"], scores["n_unscored"])


SENTENCE = {
    "request_id": "r",
    "start": 0,
    "end": 40,
    "sentence": "It costs 5 euros and lasts 9 hours [1].",
    "citation_state": "ok",
}
TWO_FACTS = [
    SENTENCE | {"claim": "It costs 5 euros.", "verdict": "supported", "hallucination_type": None},
    SENTENCE | {"claim": "It lasts 9 hours.", "verdict": "contradicted", "hallucination_type": "intrinsic"},
]


def test_a_claim_is_matched_to_the_fact_it_shares_most_words_with():
    """Flagging the true half of a sentence is a false alarm and finds nothing."""
    scores = score(
        [TWO_FACTS[0] | {"verdict": "unsupported"}, TWO_FACTS[1] | {"verdict": "supported"}], TWO_FACTS
    )
    assert (scores["recall"]["hits"], scores["precision"]["n"] - scores["precision"]["hits"]) == (0, 1)


def test_a_whole_sentence_stands_for_each_of_its_facts():
    """A sentence kept whole and flagged finds the false half of it."""
    whole = TWO_FACTS[0] | {"claim": "It costs 5 euros and lasts 9 hours.", "verdict": "unsupported"}
    scores = score([whole], TWO_FACTS)
    assert (scores["recall"]["hits"], scores["precision"]["hits"]) == (1, 1)


def test_a_flag_where_the_gold_has_nothing_is_a_false_alarm():
    """A claim outside every gold span counts against precision."""
    scores = score([TWO_FACTS[1] | {"start": 50, "end": 60}], TWO_FACTS)
    assert (scores["n_unmatched"], scores["precision"]["hits"], scores["precision"]["n"]) == (1, 0, 1)


def test_a_bad_citation_alone_does_not_find_a_false_statement():
    """`miscited` on a supported verdict misses a contradicted claim."""
    scores = score([TWO_FACTS[1] | {"verdict": "supported", "citation_state": "miscited"}], TWO_FACTS)
    assert scores["recall"]["hits"] == 0


def test_states_are_scored_by_answer(states):
    """Answers in the state of the gold give 1; a missing answer counts as not found."""
    gold = pa.Table.from_pylist(states, schema=make_demo_log.GOLD_ANSWERS)
    right = check_demo.score_states(gold, gold)
    assert (right["refusals_found"]["value"], right["answers_taken_for_refusals"]["hits"]) == (1.0, 0)
    assert check_demo.score_states(gold.slice(0, 0), gold)["refusals_found"]["hits"] == 0


@given(n=st.integers(1, 500), share=st.floats(0, 1))
def test_a_wilson_interval_holds_its_share(n, share):
    """Low <= share <= high within 0 to 1, and the interval is never a point."""
    r = check_demo.rate(round(share * n), n)
    assert 0 <= r["low"] <= r["value"] <= r["high"] <= 1
    assert r["low"] < r["high"]


@pytest.fixture(scope="module")
def out(demo, gold, states) -> Path:
    """A run of two days that found all of the gold."""
    names = ("request_id", "start", "end", "claim", "verdict", "hallucination_type", "citation_state")
    for day in ("1127", "1128"):
        for table, made in (("verdicts", predicted(gold)), ("answers", states)):
            folder = demo / "out" / "tables" / table / "judge=j" / f"date={day}"
            folder.mkdir(parents=True)
            mine = [row for row in made if row["request_id"].startswith(day)]
            kept = [{k: row[k] for k in (names if table == "verdicts" else row)} for row in mine]
            pq.write_table(pa.Table.from_pylist(kept), folder / "s.parquet")
    return demo / "out"


def test_the_command_reads_a_run_and_ends_with_json(demo, out, gold, monkeypatch, capsys):
    """Verdicts and answers of every date are read; the last line is the same figures as JSON."""
    monkeypatch.setattr(
        sys, "argv", ["check", "--json", "--run", str(out), "--gold", str(demo / "gold.parquet")]
    )

    assert check_demo.main() == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [k for k, line in enumerate(lines) if line.endswith("95% interval")]
    assert len(heads) == 5
    assert all(
        lines[k - 2] == "" and lines[k - 1].endswith(":") for k in heads
    )  # a sentence above each table
    summary = json.loads(lines[-1])
    assert (summary["all"]["recall"]["value"], summary["all"]["n_claims"]) == (1.0, len(gold))


def test_a_reader_that_has_seen_enough_ends_it_quietly(demo, out):
    """As `| head`: neither a traceback nor a word."""
    command = [sys.executable, str(SCRIPTS / "check_demo.py"), "--run", str(out)]
    with subprocess.Popen(
        [*command, "--gold", str(demo / "gold.parquet")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as check:
        check.stdout.close()
        assert (check.stderr.read(), check.wait()) == (b"", 1)


def test_of_several_series_the_one_that_dashboards_read_is_scored(tmp_path):
    """A backfill beside the demo's own series does not stop the demo."""
    for series, text in (("demo-1", "own"), ("other-2", "backfilled")):
        folder = tmp_path / "tables" / "verdicts" / f"judge={series}" / "date=1128"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"claim": [text]}), folder / "s.parquet")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "current.json").write_text('{"series": "demo-1"}')

    read = [
        check_demo.read_table(tmp_path, "verdicts", name)["claim"].to_pylist() for name in (None, "other-2")
    ]
    assert read == [["own"], ["backfilled"]]


def test_a_run_without_tables_is_one_line_and_exit_code_1(demo, tmp_path, monkeypatch, capsys):
    """An empty folder is named in the design's form."""
    monkeypatch.setattr(sys, "argv", ["check", "--run", str(tmp_path), "--gold", str(demo / "gold.parquet")])

    assert check_demo.main() == 1
    expected = f"Error: {tmp_path}/tables/verdicts: series [], expected one; name one with --series\n"
    assert capsys.readouterr().err == expected
