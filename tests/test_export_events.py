"""Audit events: everything a verdict rests on, by ids and hashes, a line a request."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import jobs_fixture
import loopback_fixture as loop
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import report_fixture as fixture
import test_exports
from click.testing import CliRunner

from claimscore.jobs.cli import main
from claimscore.jobs.export_events import Grounds, lines, of_log
from claimscore.jobs.records import LOG
from claimscore.jobs.settings import keep
from claimscore.jobs.store import Store

GROUNDS = Grounds("2026-11-28", "s-1", {"verdicts": {"fingerprint": "ab"}}, {"r": 40}, None)


def event(grounds: Grounds = GROUNDS, claims=(), **fields):
    """The one event of one answer."""
    answers = fixture.answers([fixture.answer("r", **fields)])
    (line,) = lines(answers, fixture.verdicts(list(claims)), grounds)
    return json.loads(line)


def test_a_claim_has_rule_evidence_and_citations():
    """Spans and ids, probabilities and values; the quote itself is not repeated."""
    claim = fixture.claim(
        "r",
        3,
        "contradicted",
        cited_ids=["c1"],
        citation_state="unsupported",
        evidence_chunk_id="c2",
        evidence_start=4,
        evidence_end=9,
        evidence_quote="QUOTE",
        p_entailment=0.25,
        p_neutral=0.25,
        p_contradiction=0.5,
    )
    (told,) = event(claims=[claim])["claims"]

    assert told["evidence"] == {"chunk_id": "c2", "start": 4, "end": 9}
    assert (told["decided_by"], told["verdict"], told["cited_ids"]) == ("nli", "contradicted", ["c1"])
    assert told["p"] == [0.25, 0.25, 0.5]
    assert "QUOTE" not in json.dumps(told)


def test_texts_are_hashes():
    """Question and answer as the whole SHA-256; a table without texts has its own shorter ones, which begin alike."""
    full = "sha256:" + hashlib.sha256(b"Fee?").hexdigest()
    found = event(question="Fee?", answer=full[:23])

    assert (found["question"], found["answer"]) == (full, full[:23])


def test_tokens_and_chunks_are_null_where_they_are_not_known():
    """The log alone knows them: unknown is no zero."""
    found = event()

    assert (found["chunks"], found["tokens"]) == (None, {"answer": None, "judge": 40})


def test_chunks_have_ids_scores_and_hashes():
    """Of the log, a null score staying null."""
    chunks = [{"id": "c1", "text": "Fee: 5 €.", "score": 0.9}, {"id": "c2", "text": "", "score": None}]
    row = {field.name: None for field in LOG} | {"request_id": "r", "chunks": chunks, "flags": []}
    row["token_logprobs"] = [{"token": "5", "logprob": -0.1}]
    log = of_log(pa.Table.from_pylist([row], schema=LOG))

    found = event(Grounds("2026-11-28", "s-1", {}, {}, log))
    assert found["chunks"] == [
        {"id": "c1", "score": 0.9, "sha256": hashlib.sha256("Fee: 5 €.".encode()).hexdigest(), "n_chars": 9},
        {"id": "c2", "score": None, "sha256": hashlib.sha256(b"").hexdigest(), "n_chars": 0},
    ]
    assert found["tokens"]["answer"] == 1


def test_unscored_is_told():
    """An answer of which nothing was judged, and one without chunks."""
    assert [
        event(**fields)["unscored"] for fields in ({"bad": None}, {"state": "no_context", "bad": None}, {})
    ] == [
        True,
        True,
        False,
    ]


def test_hostile_text_is_one_line_of_ascii():
    """A line break, an escape or a line separator of a log cannot begin a line of its own."""
    text = 'a\nb\u2028{"x":1}\x1b[31m'
    answers = fixture.answers([fixture.answer(text, topic=text, origin=loop.origin(project=text))])
    (line,) = lines(answers, fixture.verdicts([fixture.claim(text, claim=text)]), GROUNDS)

    assert line.count(b"\n") == 1
    assert line.isascii()
    assert json.loads(line)["topic"] == text


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output root with one finished day, and its log."""
    jobs_fixture.write_log(tmp_path)
    test_exports.run(jobs_fixture.make_config(tmp_path))
    return tmp_path


def export(folder: Path, *more: str):
    """The command in this process, to stdout."""
    return CliRunner().invoke(main, ["export", str(folder / "out"), "--to", "events", "--dest", "-", *more])


def test_every_request_of_the_day_has_its_event(out: Path):
    """With versions, judge tokens and, from the log, chunks."""
    result = export(out, "--config", str(out / "claimscore.toml"))

    events = {line["request_id"]: line for line in map(json.loads, result.stdout.splitlines())}
    assert set(events) == {f"r{k}" for k in range(6)}
    first = events["r1"]
    assert [chunk["id"] for chunk in first["chunks"]] == ["c1", "c2"]
    assert first["tokens"]["judge"] > 0
    assert set(first["versions"]) == {"shard", "claims", "scores", "verdicts", "answers"}
    assert first["versions"]["scores"]["parts"]["judge weights"]
    assert first["claims"][0]["verdict"] == "unsupported"


def test_verdicts_have_the_thresholds_that_decided(out: Path):
    """Beside the parts that they are one of, once the settings of the run are kept; of days of before, nothing."""
    config = jobs_fixture.make_config(out)

    def told() -> list:
        lines = export(out).stdout.splitlines()
        return [json.loads(line)["versions"]["verdicts"].get("thresholds") for line in lines]

    before = told()
    keep(Store(config.store.out, config.store), config)
    assert before == [None] * 6
    assert told() == [{"entailment": 0.8, "contradiction": 0.9, "combiner": None}] * 6


def test_without_the_log_that_is_said(out: Path):
    """Chunks are null, and stderr says how to have them."""
    result = export(out)

    assert {line["chunks"] for line in map(json.loads, result.stdout.splitlines())} == {None}
    assert "give --config for their ids, scores and hashes" in result.stderr


def test_another_log_than_the_judged_one_is_refused(out: Path):
    """Its chunks are not what the verdicts rest on."""
    (file,) = (out / "logs").rglob("*.parquet")
    pq.write_table(pa.Table.from_pylist(jobs_fixture.log_rows(5)), file)

    result = export(out, "--config", str(out / "claimscore.toml"))

    assert result.exit_code == 1
    assert "expected the log that was judged" in result.stderr
