"""`claimscore gate`: sides, exit codes, JUnit XML, and its failures in one line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import report_fixture as fixture
from click.testing import CliRunner, Result

from claimscore.jobs import golden
from claimscore.jobs.cli import main
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.gate import NEEDED_COLUMNS
from claimscore.jobs.gate_files import parse_drop
from claimscore.jobs.layout import TableFile
from claimscore.jobs.records import ANSWERS, REFEREE, VERDICTS
from claimscore.jobs.store import Store

SERIES = "stub-12345678"


def group(version: str | None, n: int, n_bad: int) -> list[dict]:
    """`n` answers of a prompt version to questions of its own, `n_bad` of them hallucinated."""
    fields = [{"prompt_version": version, "question": f"{version} {k}?"} for k in range(n)]
    return [fixture.answer(f"{version}{k}", bad=k < n_bad, **fields[k]) for k in range(n)]


@pytest.fixture
def out(tmp_path: Path) -> str:
    """Two days: on the first p1 alone; on the second p1 as good as before, and p2 much worse."""
    store = Store(str(tmp_path / "out"), StoreConfig(out=str(tmp_path / "out")))
    days = {"2026-11-27": group("p1", 100, 10), "2026-11-28": group("p1", 100, 11) + group("p2", 100, 50)}
    for day, rows in days.items():
        for name, table, schema in (
            ("answers", fixture.answers(rows), ANSWERS),
            ("verdicts", fixture.verdicts([]), VERDICTS),
        ):
            store.write(TableFile(name, day, "a", SERIES), table, schema, parts={}, counts={})
    store.set_current(SERIES)
    return str(tmp_path / "out")


def gate(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, ["gate", *arguments])


def test_a_worse_prompt_is_stopped_with_code_3(out: str):
    """Named with its figures, before it ships."""
    result = gate("--out", out, "--prompt-version", "p2", "--baseline-prompt-version", "p1")

    assert result.exit_code == 3
    assert "failed: groundedness is 39.0 points worse (89.0% to 50.0%), 2 are allowed\n" in result.output


def without_versions(tmp_path: Path) -> str:
    """An output root whose log names no prompt version."""
    store = Store(str(tmp_path / "bare"), StoreConfig(out=str(tmp_path / "bare")))
    file = TableFile("answers", "2026-11-28", "a", SERIES)
    store.write(file, fixture.answers(group(None, 100, 10)), ANSWERS, parts={}, counts={})
    store.set_current(SERIES)
    return str(tmp_path / "bare")


def test_a_log_without_prompt_versions_is_told_what_to_compare_instead(tmp_path: Path):
    """It is no side that is too small: there is nothing to tell sides by."""
    bare = without_versions(tmp_path)

    named = gate("--out", bare, "--prompt-version", "p2", "--baseline-prompt-version", "p1")
    unnamed = gate("--out", bare)

    why = "no answer names a prompt version; [read.columns] prompt_version maps the log's column of it"
    assert named.stderr == (
        f"Error: gate: prompt version 'p2': {why}; or compare days (--baseline-date), judge series (--baseline-series) or "
        "evaluations (--candidate FILE, --baseline FILE)\n"
    )
    assert unnamed.stderr == (
        "Error: gate: candidate and baseline are the same answers; give --baseline-date, --baseline-series or --baseline FILE "
        f"({why})\n"
    )


def test_an_unknown_prompt_version_is_told_with_those_that_are_there(out: str):
    """A slip of the pen is no side of 0 answers."""
    result = gate("--out", out, "--prompt-version", "p3", "--baseline-prompt-version", "p1")

    assert result.stderr == (
        "Error: gate: no answer of 2026-11-28 is of prompt version 'p3', expected one of 'p1', 'p2'\n"
    )


def test_a_day_of_the_same_quality_passes(out: str):
    """One prompt on two days: exit code 0 and a word."""
    result = gate("--out", out, "--prompt-version", "p1", "--baseline-date", "2026-11-27")

    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "passed")


def test_the_rest_of_the_day_stands_against_a_version(out: str):
    """With only the baseline's version named, the candidate is every other answer of the day."""
    document = json.loads(gate("--out", out, "--baseline-prompt-version", "p1", "--json").stdout)

    assert (document["n_candidate"], document["n_baseline"]) == (100, 100)
    assert document["outcomes"][0]["candidate"] == 0.5


def test_a_ci_system_reads_the_outcome(out: str, tmp_path: Path):
    """One case a metric and one for the unscored; a failure with its line."""
    path = tmp_path / "gate.xml"
    arguments = (
        "--prompt-version",
        "p2",
        "--baseline-prompt-version",
        "p1",
        "--metric",
        "refusal_rate",
        "--metric",
        "groundedness",
    )
    gate("--out", out, *arguments, "--junit", str(path))

    suite = ET.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert {case.get("name"): [f.get("message") for f in case] for case in suite} == {
        "refusal_rate": [],
        "groundedness": ["groundedness is 39.0 points worse (89.0% to 50.0%), 2 are allowed"],
        "unscored": [],
    }


def test_a_referee_that_invents_its_evidence_stops_the_gate(out: str, tmp_path: Path):
    """A day whose verdicts it had a part in fails by name, whatever the rates; its own test case in the XML."""
    store = Store(out, StoreConfig(out=out))
    verdicts = TableFile("verdicts", "2026-11-28", "a", SERIES)
    counts = {"n_asked": 40, "said_supported": 20, "n_spans_found": 17, "outcome_ok": 30}
    replies = TableFile("referee", "2026-11-28", "a", SERIES)
    read = {"referee": store.write(replies, REFEREE.empty_table(), REFEREE, parts={}, counts=counts)}
    store.write(verdicts, fixture.verdicts([]), VERDICTS, parts={}, counts={}, read=read)
    arguments = (
        "--prompt-version",
        "p1",
        "--baseline-date",
        "2026-11-27",
        "--junit",
        str(tmp_path / "gate.xml"),
    )

    result = gate("--out", out, *arguments)

    line = (
        "candidate: the referee's found-span rate is 85.0% of 20 supported replies, at least 90% is expected: "
        "it quotes what is not there, and its verdicts cannot be gated on"
    )
    cases = {
        case.get("name"): [f.get("message") for f in case]
        for case in ET.parse(tmp_path / "gate.xml").getroot()
    }
    assert (result.exit_code, f"failed: {line}\n" in result.output) == (3, True)
    assert (cases["referee"], cases["unscored"]) == ([line], [])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--date", "2026-11-28"),
            "gate: candidate and baseline are the same answers; give --baseline-date or --baseline-prompt-version",
        ),
        (
            ("--baseline-date", "2026-11-20"),
            "{out}: no answers of the baseline's 2026-11-20 in series stub-12345678, expected some; run that day first",
        ),
        (
            ("--baseline-prompt-version", "p9"),
            "gate: no answer of 2026-11-28 is of prompt version 'p9', expected one of 'p1', 'p2'",
        ),
        (
            ("--baseline-date", "2026-11-27", "--max-drop", "0.02"),
            "--max-drop '0.02': expected points between 0pt and 100pt; give 2pt for two points",
        ),
    ],
)
def test_failures_are_one_line_and_code_1(out: str, arguments, line):
    """A gate that cannot judge ends with a named failure and never with a pass."""
    result = gate("--out", out, *arguments)

    assert (1, f"Error: {line.format(out=out)}\n") == (result.exit_code, result.stderr)


def evaluation(path: Path, n: int = 40, **changes: object) -> Path:
    """A file of `claimscore evaluate` of `n` answers to questions of their own; `changes` to the third."""
    columns = list(NEEDED_COLUMNS)
    answers = fixture.answers([fixture.answer(f"r{k}", question=f"{k}?") for k in range(n)]).select(columns)
    items = answers.to_pylist()
    items[2] |= changes
    path.write_text(json.dumps({"kind": golden.EVALUATION, "items": items}))
    return path


def test_one_file_under_two_names_is_one_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`base.json` against `./base.json` compares nothing."""
    monkeypatch.chdir(tmp_path)
    evaluation(tmp_path / "base.json")

    result = gate("--candidate", "base.json", "--baseline", "./base.json")

    assert (result.exit_code, "candidate and baseline are the same answers" in result.stderr) == (1, True)


def test_a_file_that_is_not_there_is_told_once(tmp_path: Path):
    """Its path stands in the line once, and no number of the operating system."""
    base, gone = evaluation(tmp_path / "base.json"), tmp_path / "gone.json"

    result = gate("--candidate", str(base), "--baseline", str(gone))

    line = f"{gone}: cannot be read: No such file or directory; expected the JSON file that `claimscore evaluate --to FILE.json` writes"
    assert (1, f"Error: {line}\n") == (result.exit_code, result.stderr)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (
            {"n_supported": 4, "n_scored": 3, "n_claims": 3},
            "n_supported is 4 of n_scored = 3, expected 0 to 3",
        ),
        ({"n_supported": -1}, "n_supported is -1 of n_scored = 1, expected 0 to 1"),
        (
            {"n_citation_ok": 2, "n_cited_claims": 1},
            "n_citation_ok is 2 of n_cited_claims = 1, expected 0 to 1",
        ),
        ({"n_scored": 9, "n_claims": 8}, "n_scored is 9 of n_claims = 8, expected 0 to 8"),
    ],
)
def test_a_part_larger_than_its_whole_opens_no_gate(changes: dict, found: str, tmp_path: Path):
    """A file that somebody wrote in is named with the item."""
    path = evaluation(tmp_path / "base.json", **changes)

    result = gate("--candidate", str(evaluation(tmp_path / "new.json")), "--baseline", str(path))

    assert (1, f"Error: {path}: item 3: {found}; evaluate again\n") == (result.exit_code, result.stderr)


def test_an_unknown_metric_is_a_usage_error(out: str):
    """The metrics there are, and exit code 2."""
    result = gate("--out", out, "--baseline-date", "2026-11-27", "--metric", "accuracy")

    assert result.exit_code == 2
    assert "--metric 'accuracy' is none of groundedness, hallucination_rate" in " ".join(
        result.stderr.split()
    )


@pytest.mark.parametrize(("text", "share"), [("2pt", 0.02), ("0.5 pt", 0.005), ("0pt", 0.0)])
def test_points_are_shares(text, share):
    """Two points are 0.02."""
    assert parse_drop(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["2", "2%", "-1pt", "101pt", "nanpt", ""])
def test_other_forms_of_a_drop_are_refused(text):
    """A bare number may be meant as a share: it is asked for again."""
    with pytest.raises(InputError):
        parse_drop(text)
