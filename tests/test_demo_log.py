"""The demo log: its shape, the special cases it must hold, and how it is spread over days and prompts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import make_demo_log
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from claimscore.jobs import records

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@pytest.fixture(scope="module")
def cases(demo_rows, demo_states) -> dict[str, list[dict]]:
    """Special case -> its rows of the log."""
    out: dict[str, list[dict]] = {}
    for state in demo_states:
        for case in state["cases"]:
            out.setdefault(case, []).append(demo_rows[state["request_id"]] | {"state": state["state"]})
    return out


def test_two_runs_write_the_same_bytes(demo, tmp_path):
    """Nothing in the log depends on the run that made it."""
    make_demo_log.write_demo(tmp_path / "log")

    files = sorted(path.relative_to(demo) for path in demo.rglob("*.parquet"))
    assert len(files) == 6
    assert [(demo / f).read_bytes() for f in files] == [(tmp_path / f).read_bytes() for f in files]


def test_each_day_has_120_rows_in_four_row_groups(demo):
    """A day is cut into files and row groups, so that it makes several shards."""
    for day in ("2026-11-27", "2026-11-28"):
        files = [pq.ParquetFile(f) for f in sorted((demo / "log" / f"date={day}").glob("*.parquet"))]
        assert sum(f.metadata.num_rows for f in files) == 120
        assert [f.num_row_groups for f in files] == [2, 2]


def test_the_log_has_our_own_columns(demo_log):
    """With its odd row left out and `flags` added, the log is a table of records.LOG."""
    kept = demo_log.filter(demo_log["request_id"].is_valid())
    flags = pa.array([[]] * kept.num_rows, pa.list_(pa.string()))

    assert (
        records.LOG.names
        == records.conform(kept.append_column("flags", flags), records.LOG, where="demo").column_names
    )


def test_times_lie_in_the_day_of_the_folder(demo):
    """Every ts is of the date that its folder names."""
    for file in (demo / "log").glob("date=*/*.parquet"):
        stamps = pq.read_table(file, partitioning=None)["ts"].to_pylist()
        assert {f"date={ts:%Y-%m-%d}" for ts in stamps} == {file.parent.name}


def test_every_situation_is_used_whole():
    """No statement of the material is left out of every answer, and there are at least 90 situations."""
    situations = make_demo_log.load_material()
    assert len(situations) >= 90
    for s in situations:
        used = set("".join(s["p13"] + s["p14"]))
        wanted = set("abcdef"[: len(s["true"])]) | set("ABCDEF"[: len(s["false"])])
        assert wanted <= used, s["question"]


def test_the_log_stays_small_enough_for_two_cores(demo_gold):
    """At most 330 different sentences of more than eight words: each may cost a call of the LLM."""
    sentences = {re.sub(r" ?\[[^]]*\]", "", row["sentence"]) for row in demo_gold}
    assert len([s for s in sentences if len(s.split()) > 8]) <= 330


def test_one_row_repeats_another_word_for_word(demo_log):
    """The repeated request_id is on two identical rows."""
    repeated = [id_ for id_, n in Counter(demo_log["request_id"].to_pylist()).items() if n > 1]
    assert len(repeated) == 1
    twin, other = (row for row in demo_log.to_pylist() if row["request_id"] == repeated[0])
    assert twin == other


def test_one_row_has_no_id_and_no_gold(demo_log, demo_gold, demo_states):
    """The row to be quarantined is in the log alone."""
    assert demo_log["request_id"].null_count == 1
    ids = set(demo_log["request_id"].to_pylist())
    assert (
        {row["request_id"] for row in demo_gold} <= {row["request_id"] for row in demo_states} == ids - {None}
    )


def test_the_second_prompt_version_is_visibly_worse(demo_states):
    """p14 hallucinates at least twice as often as p13, in both days' answers together."""
    share = {
        version: [
            s["hallucinated"]
            for s in demo_states
            if s["prompt_version"] == version and s["state"] == "scored"
        ]
        for version in ("p13", "p14")
    }
    p13, p14 = (sum(flags) / len(flags) for flags in share.values())
    assert 0.1 < p13 < 0.3 < 2 * p13 < p14 < 0.75


@pytest.mark.parametrize("column", ["prompt_version", "model", "topic"])
def test_every_group_is_in_both_days(demo, column):
    """Metrics of two days can be put side by side."""
    days = [
        {
            v
            for file in folder.glob("*.parquet")
            for v in pq.read_table(file, columns=[column], partitioning=None)[column].to_pylist()
        }
        for folder in sorted((demo / "log").glob("date=*"))
    ]
    assert days[0] == days[1]
    assert len(days[0]) == (6 if column == "topic" else 2)


def test_optional_columns_are_filled_on_some_rows(demo_rows):
    """Samples, logprobs, labels, statuses, origins and provider citations are there, and not everywhere."""
    filled = {
        name: sum(row[name] is not None for row in demo_rows.values())
        for name in ("samples", "token_logprobs", "human_label", "status", "origin", "citations")
    }
    assert all(3 <= n < len(demo_rows) for n in filled.values()), filled
    assert {len(row["samples"]) for row in demo_rows.values() if row["samples"] is not None} == {3}


def test_tokens_join_to_their_answer(demo_rows):
    """The logged tokens are the answer, so that their offsets can be told."""
    for row in demo_rows.values():
        if row["token_logprobs"] is not None:
            assert "".join(t["token"] for t in row["token_logprobs"]) == row["answer"]


def test_refusals_are_right_and_wrong(demo_states, demo_rows):
    """There are refusals of both kinds by the exact marker, and unanswerable questions that were answered."""
    refusals = [s for s in demo_states if s["state"] == "refusal"]
    assert sum(s["answerable"] for s in refusals) >= 4
    assert sum(not s["answerable"] for s in refusals) >= 5
    assert sum(s["state"] == "scored" and not s["answerable"] for s in demo_states) >= 5
    marker = "I don't have enough information to answer that."
    by_status = [s for s in refusals if demo_rows[s["request_id"]]["answer"] != marker]
    assert [demo_rows[s["request_id"]]["status"] for s in by_status] == ["insufficient_evidence"]


def answers_of(cases: dict[str, list[dict]], case: str) -> str:
    return "\n".join(row["answer"] for row in cases[case])


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("card_lounge_fuel", "unlimited lounge access"),
        ("card_lounge_fuel", "5% fuel cashback"),
        ("card_lounge_fuel", "Rs 3 lakh"),
        ("refund_window", "30 days"),
        ("dose", "500 mg"),
        ("markdown", "**"),
        ("markdown", "## "),
        ("markdown", "\n- "),
        ("table", "|---|"),
        ("code_block", "```"),
        ("mark_forms", "[garden-1]"),
        ("mark_forms", "[1, 3]"),
        ("mark_forms", "[^3]"),
        ("quote", '"was cast in 1703'),
        ("language_de", "Fahrräder"),
        ("language_es", "maleta"),
        ("language_fr", "étudiants"),
        ("language_hi", "शुल्क"),
        ("language_zh", "退货"),
        ("units", " GW"),
    ],
)
def test_special_answers_say_what_they_are_for(cases, case, said):
    """Each named case is in the log with the text that makes it one."""
    assert said in answers_of(cases, case)


@pytest.mark.parametrize("code", ["de", "es", "fr", "hi", "zh"])
def test_every_language_is_right_once_and_wrong_once(cases, demo_states, code):
    """A language has a grounded answer and a hallucinated one."""
    flags = {s["hallucinated"] for s in demo_states if f"language_{code}" in s["cases"]}
    assert flags == {True, False}


def test_special_evidence_is_what_its_case_names(cases):
    """Long chunks, conflicting chunks, no chunks and injection are in the chunks themselves."""
    assert all(max(len(c["text"].split()) for c in row["chunks"]) >= 300 for row in cases["long_chunk"])
    assert all(len(row["gold_chunk_ids"]) == 2 for row in cases["multi_hop"] if "dog" not in row["question"])
    assert all(row["chunks"] == [] for row in cases["no_context"])
    assert all(
        "Ignore all previous" in " ".join(c["text"] for c in row["chunks"]) for row in cases["injection"]
    )
    assert {"3 euros", "4 euros"} <= set(
        re.findall(r"\d euros", str([r["chunks"] for r in cases["conflict"]]))
    )
    assert "" in {row["answer"] for row in cases["empty_answer"]}


def test_the_evidence_of_long_chunks_lies_deep_inside(cases):
    """Reading only the first 150 words of a chunk would not do."""
    for row, name in (
        (r, n) for r in cases["long_chunk"] for n in ("Orbeck", "400 days", "1.5%") if n in r["answer"]
    ):
        long = max((c["text"] for c in row["chunks"]), key=len)
        assert len(long[: long.index(name)].split()) > 150


def test_provider_citations_stand_for_marks(cases):
    """The answer has no marks; the structured citations slice it and name retrieved chunks."""
    for row in cases["provider_citations"]:
        assert "[" not in row["answer"]
        assert row["citations"]
        for citation in row["citations"]:
            assert row["answer"][citation["start"] : citation["end"]] == citation["text"]
            assert set(citation["chunk_ids"]) <= {c["id"] for c in row["chunks"]} != set()
