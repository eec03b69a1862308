"""Publications: their values, keys, words and reasons; what cannot be written back; and the command over a finished day."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import jobs_fixture
import loopback_fixture as loop
import polars as pl
import pytest
import report_fixture as fixture
import stub_models
from click.testing import CliRunner, Result

from claimscore.jobs import exports
from claimscore.jobs.cli import main
from claimscore.jobs.cli_export import _TOOLS
from claimscore.jobs.config import Config, StoreConfig
from claimscore.jobs.export_files import TOOLS
from claimscore.jobs.exports import METRICS, PUBLICATIONS, Target, addressable, key_of, publish
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

TARGET = Target(
    "phoenix", fixture.DAY, "stub-12345678", frozenset({"phoenix", "otlp"}), trace_ids=r"[0-9a-f]{32}"
)


def table(
    rows: list[dict[str, Any]], claims: list[dict[str, Any]] | None = None, **options: Any
) -> pl.DataFrame:
    """Publications of answers."""
    target = Target(
        **({"tool": "phoenix", "date": fixture.DAY, "series": "s-1", "systems": frozenset()} | options)
    )
    return publish(fixture.answers(rows), fixture.verdicts(claims or []), target)


def test_an_answer_has_one_row_a_metric_in_order():
    """Answers keep their order, and metrics theirs within."""
    found = table([fixture.answer("b"), fixture.answer("a")])

    assert found.schema == PUBLICATIONS
    assert found.select("request_id", "metric").rows() == [(r, m) for r in ("b", "a") for m in METRICS]


def test_values_are_those_of_the_answers_table():
    """Numbers, words and the boolean as they stand."""
    found = loop.rows("phoenix")

    assert {name: (row["value"], row["label"]) for name, row in found.items()} == {
        "groundedness": (0.5, None),
        "citation_precision": (0.5, None),
        "hallucinated": (1.0, None),
        "action": (None, "refuse"),
        "state": (None, "scored"),
    }
    assert {row["unscored"] for row in found.values()} == {None}


@pytest.mark.parametrize(
    ("fields", "claims", "groundedness", "precision", "state"),
    [
        (
            {"n_cited_claims": 1},
            [{"reason": "claim_too_long"}],
            "claim_too_long",
            "claim_too_long",
            "unscored",
        ),
        ({}, [{"reason": "nan"}, {"reason": "code"}, {"reason": "code"}], "code", "no_citations", "unscored"),
        ({"state": "refusal", "n_claims": 0}, [], "refusal", "refusal", "refusal"),
        ({"state": "no_context"}, [], "no_context", "no_context", "no_context"),
    ],
)
def test_what_was_not_scored_says_why_and_has_no_value(fields, claims, groundedness, precision, state):
    """A reason for each metric without a value; the state tells an answer of which nothing could be judged."""
    rows = [fixture.claim("r", k, "unscored", **claim) for k, claim in enumerate(claims)]
    found = table([fixture.answer("r", bad=None, **fields)], rows)
    by_metric = {row["metric"][11:]: row for row in found.iter_rows(named=True)}

    assert by_metric["groundedness"]["unscored"] == by_metric["hallucinated"]["unscored"] == groundedness
    assert by_metric["citation_precision"]["unscored"] == precision
    assert [by_metric[name]["value"] for name in ("groundedness", "citation_precision", "hallucinated")] == [
        None
    ] * 3
    assert by_metric["state"]["label"] == state


def test_failed_claims_come_first_and_at_most_ten():
    """Contradicted before unsupported before badly cited before unscored; what is left out is the supported rest."""
    kinds = ["supported"] * 9 + ["unscored", "unsupported", "contradicted"]
    claims = [
        fixture.claim("r", k, kind, reason="nan" if kind == "unscored" else None)
        for k, kind in enumerate(kinds)
    ]
    claims.append(fixture.claim("r", 12, hallucination_type="miscitation", citation_state="miscited"))
    first = table([fixture.answer("r", bad=True)], claims).row(0, named=True)

    verdicts = [claim["verdict"] for claim in json.loads(first["metadata"])["claims"]]
    assert verdicts == ["contradicted", "unsupported", "supported", "unscored", *["supported"] * 6]
    assert [line.partition(":")[0] for line in first["explanation"].splitlines()[1:]] == verdicts[:4]
    assert first["explanation"].splitlines()[3].endswith("(nli, miscitation, citation miscited)")


def test_a_long_claim_is_cut_and_says_so():
    """A tool's interface is not the place for a page of text."""
    claims = [fixture.claim("r", 0, "unsupported", claim="x" * 5_000)]

    text = table([fixture.answer("r", bad=True)], claims)["explanation"][0]
    assert "x" * 300 + "… [cut: 5,000 characters]" in text
    assert len(text) < 500


def test_hostile_claims_stay_one_printable_line_each():
    """Line breaks, escapes and marks of direction cannot make a claim look like another."""
    claims = [fixture.claim("r", 0, "unsupported", claim="a\nsupported: b\x1b[31m\u202e")]

    lines = table([fixture.answer("r", bad=True)], claims)["explanation"][0].splitlines()
    assert lines[1] == "unsupported: a supported: b [31m (nli, extrinsic)"


def test_keys_are_stable_and_of_what_they_name():
    """The series is no part of the key unless it is to be kept; tool, project, request and metric are."""
    rows = [fixture.answer("r", origin=loop.origin())]
    one = table(rows)["key"]

    assert one.to_list() == table(rows, series="other-2")["key"].to_list()
    assert set(one) & set(table(rows, series="other-2", keep_series=True)["key"]) == set()
    assert set(one) & set(table(rows, tool="langfuse")["key"]) == set()
    assert set(one) & set(table([fixture.answer("r", origin=loop.origin(project="p2"))])["key"]) == set()
    assert one[0] == key_of("phoenix", "faq", "r", "claimscore.groundedness") == str(uuid.UUID(one[0]))


def test_keys_are_the_same_in_another_process():
    """No hash seed, clock or machine is in them."""
    code = (
        "from claimscore.jobs.exports import key_of; print(key_of('phoenix', 'faq', 'r', 'claimscore.state'))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()

    assert (
        other == key_of("phoenix", "faq", "r", "claimscore.state") == "b24d3f65-0122-5b24-8ca5-6726ca2d330a"
    )


def test_parts_of_a_key_do_not_run_together():
    """A bar in an id is not the border between two."""
    assert key_of("a|b", "c") != key_of("a", "b|c")


def test_an_answer_without_a_time_has_that_of_its_day():
    """Never now: some tools tell repeats by the calendar day."""
    assert str(table([fixture.answer("r")])["ts"][0]) == "2026-11-28 00:00:00+00:00"


def test_an_llm_that_decided_a_claim_is_told():
    """One claim by the referee is enough."""
    rows = [fixture.answer("a"), fixture.answer("b")]
    claims = [fixture.claim("a", 0), fixture.claim("a", 1, decided_by="referee"), fixture.claim("b", 0)]

    assert table(rows, claims).group_by("request_id").agg(pl.col("by_llm").all()).sort(
        "request_id"
    ).rows() == [
        ("a", True),
        ("b", False),
    ]


def test_what_cannot_be_written_back_is_counted_by_why():
    """No trace id, another tool's, one of another form, and a trace and span that an earlier answer has."""
    origins = {
        "fine": loop.origin(system="phoenix"),
        "not said": loop.origin(span_id="0" * 16),
        "none": None,
        "blank": loop.origin(trace_id=" "),
        "other": loop.origin(system="langsmith"),
        "form": loop.origin(trace_id="tr-1"),
        "again": loop.origin(system="phoenix"),
        "other span": loop.origin(span_id="1" * 16),
    }
    answers = fixture.answers([fixture.answer(name, origin=origin) for name, origin in origins.items()])

    kept, left = addressable(answers, TARGET)

    assert kept["request_id"].to_pylist() == ["fine", "not said", "other span"]
    assert left == {"no_trace_id": 2, "other_system": 1, "foreign_id": 1, "same_target": 1}


def test_no_answers_give_no_rows():
    """An empty night has the columns and nothing else."""
    assert (table([]).height, table([]).schema) == (0, PUBLICATIONS)
    assert addressable(fixture.answers([]), TARGET)[1] == dict.fromkeys(exports.LEFT_OUT, 0)


def test_the_command_offers_every_tool():
    """The list stands in the command too, so that help needs no import."""
    assert _TOOLS == TOOLS


def run(config: Config, models: Models | None = None) -> str:
    """Run the fixture's day on stubs, and name its series."""
    store = Store(config.store.out, config.store)
    judge = stub_models.StubJudge()
    plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    done = run_day(
        config,
        store,
        plan,
        execute_here(config, store, models or Models(stub_models.StubLlm(), judge, judge)),
    )
    store.set_current(done.series)
    return done.series


def log_rows(system: str = "phoenix") -> list[dict[str, Any]]:
    """The fixture's log, each row of a trace of its own, the fifth of none."""
    rows = jobs_fixture.log_rows()
    for k, row in enumerate(rows):
        row["origin"] = (
            None if k == 4 else loop.origin(system=system, trace_id=f"{k + 1:032x}", span_id=f"{k + 1:016x}")
        )
    return rows


@pytest.fixture
def out(tmp_path: Path, monkeypatch) -> str:
    """An output root with one finished day whose log came from Phoenix, and a folder of its own to write in."""
    jobs_fixture.write_log(tmp_path, log_rows())
    run(jobs_fixture.make_config(tmp_path))
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "out")


def export(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, ["export", *arguments])


def test_a_file_is_written_where_nothing_is_said(out: str, tmp_path: Path):
    """Named by tool and day; what cannot be written back is told on stderr."""
    result = export(out, "--to", "phoenix")

    assert result.exit_code == 0
    assert result.stderr == "1 answer without origin.trace_id: not written back\n"
    assert result.stdout.splitlines()[1] == "wrote claimscore-phoenix-2026-11-28.jsonl"
    lines = (tmp_path / "claimscore-phoenix-2026-11-28.jsonl").read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 5 * len(METRICS)


def test_two_exports_are_equal_byte_by_byte(out: str):
    """Nothing of the clock or the process is in a file."""
    for tool in TOOLS[:1] + TOOLS[-3:]:
        assert (
            export(out, "--to", tool, "--dest", "-").stdout
            == export(out, "--to", tool, "--dest", "-").stdout
            != ""
        )


def test_a_log_of_no_tool_is_a_named_failure(tmp_path: Path):
    """Nothing to attach a score to: that is said, and no empty file written."""
    jobs_fixture.write_log(tmp_path)
    run(jobs_fixture.make_config(tmp_path))

    result = export(str(tmp_path / "out"), "--to", "langfuse", "--dest", str(tmp_path / "x.jsonl"))

    assert result.exit_code == 1
    assert "can be written back to langfuse (6 without origin.trace_id)" in result.stderr
    assert not (tmp_path / "x.jsonl").exists()


def test_another_day_is_a_named_failure(out: str):
    """The days that are there are told."""
    result = export(out, "--to", "csv", "--date", "2026-01-01")

    assert result.exit_code == 1
    assert "no answers of 2026-01-01 in series stub" in result.stderr
    assert "expected 2026-11-28;" in result.stderr


def test_files_cannot_be_sent(out: str):
    """A CSV has no server."""
    result = export(out, "--to", "csv", "--send", "http://127.0.0.1:1")

    assert result.exit_code == 1
    assert "--send: csv is a file" in result.stderr


def test_no_text_of_the_log_comes_back_where_none_is_stored(tmp_path: Path):
    """With `store_text = false` every export holds hashes, and no question, answer, claim, quote or chunk."""
    jobs_fixture.write_log(tmp_path, log_rows())
    jobs_fixture.write_config(tmp_path, extra="[privacy]\nstore_text = false\n")
    run(jobs_fixture.make_config(tmp_path))

    texts = [
        export(str(tmp_path / "out"), "--to", tool, "--dest", "-").stdout
        for tool in ("phoenix", "events", "csv", "otlp")
    ]

    assert all(text and "sha256:" in text for text in texts)
    for words in ("refund", "Guests", "pool", "What applies", "Premium"):
        assert [words in text for text in texts] == [False] * 4


def told(server: loop.Loopback, first: int = 0) -> set[tuple[str, str, str]]:
    """What Phoenix tells annotations by: span, name and identifier, of each one sent from a request on."""
    return {
        (entry["span_id"], entry["name"], entry["identifier"])
        for _, _, body in server.seen[first:]
        for entry in body["data"]
    }


def test_sending_twice_sends_once_and_a_backfill_overwrites(out: str, tmp_path: Path):
    """The second export sends nothing; another judge's sends its scores under the same identities, and is no second."""
    (tmp_path / "other.toml").write_text('name = "other"\nmodel = "./model"\nentailment = 0.3\n')

    def sent(*more: str) -> list[int]:
        document = json.loads(export(out, "--to", "phoenix", "--send", server.url, "--json", *more).stdout)
        return [document["sent"][name] for name in ("created", "updated", "unchanged", "failed")]

    with loop.loopback() as server:
        assert [sent(), sent()] == [[25, 0, 0, 0], [0, 0, 25, 0]]
        n_requests, before = len(server.seen), told(server)
        run(jobs_fixture.make_config(tmp_path, judge=str(tmp_path / "other.toml")))
        assert sent() == [0, 25, 0, 0]
        assert told(server, n_requests) == before
        n_requests = len(server.seen)
        assert sent("--keep-series") == [25, 0, 0, 0]
        assert told(server, n_requests) & before == set()


def test_a_failure_to_send_is_exit_code_3_and_no_token_is_told(out: str, monkeypatch):
    """Refused: the variable is named, its value is nowhere, and what failed is counted."""
    monkeypatch.setenv("PHOENIX_API_KEY", "s3cr3t-token")
    with loop.loopback() as server:
        server.answer = lambda *_: (401, {"detail": "bad s3cr3t-token"})
        result = export(out, "--to", "phoenix", "--send", server.url)

    assert result.exit_code == 3
    assert "answered 401, expected to be let in; set PHOENIX_API_KEY" in result.stderr
    assert "25 failed" in result.stdout
    assert "s3cr3t" not in result.output
    assert server.headers[0]["authorization"] == "Bearer s3cr3t-token"
    assert [b"s3cr3t" in file.read_bytes() for file in Path(out).rglob("*.json")].count(True) == 0


def test_the_newest_series_is_that_of_the_dashboards(out: str):
    """Without --series the current one is exported, with it the one named."""
    name = Store(out, StoreConfig(out=out)).current()

    assert json.loads(export(out, "--to", "csv", "--json").stdout)["series"] == name
    assert export(out, "--to", "csv", "--series", "nobody").exit_code == 1


def test_a_claim_that_is_said_again_is_listed_once():
    """Of ten places in the explanation a repeat would take one; its worst verdict stands for all."""
    claims = [
        fixture.claim("a", 0, claim="The fee is 5 euro."),
        fixture.claim("a", 1, "unsupported", claim="The fee is five euro.", duplicate_of=0),
    ]

    found = table([fixture.answer("a", bad=True)], claims)

    grounds = found.filter(pl.col("metric") == "claimscore.groundedness")
    assert "unsupported: The fee is five euro." in grounds["explanation"].item()
    listed = json.loads(grounds["metadata"].item())["claims"]
    assert [claim["claim"] for claim in listed] == ["The fee is five euro."]


def test_a_bad_citation_is_told_where_its_repeat_could_not_be_scored():
    """The claim counts as unscored and says why, and what is wrong with it is still listed."""
    claims = [
        fixture.claim("a", 0, "unscored", claim="The fee is 5 euro.", reason="conflict"),
        fixture.claim("a", 1, claim="The fee is 5 euro.", hallucination_type="miscitation", duplicate_of=0),
    ]

    found = table([fixture.answer("a", bad=None)], claims)

    grounds = found.filter(pl.col("metric") == "claimscore.groundedness")
    assert "miscitation" in grounds["explanation"].item()
    assert grounds["unscored"].item() == "conflict"


def test_an_llm_that_decided_a_repeat_alone_decided():
    """Who reads a metric of that answer must know that a model had a hand in it."""
    claims = [
        fixture.claim("a", 0, decided_by="nli"),
        fixture.claim("a", 1, decided_by="referee", duplicate_of=0),
    ]

    assert table([fixture.answer("a")], claims)["by_llm"].unique().to_list() == [True]
