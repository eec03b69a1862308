"""Terminal views: one answer, a plan, two series; hostile text stays text."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import jobs_fixture
import pytest
import stub_models
from click.testing import CliRunner
from rich.console import Console

from claimscore.jobs import operate, reports, show, uri
from claimscore.jobs.cli import main
from claimscore.jobs.config import Config, StoreConfig
from claimscore.jobs.nightly import DayReport, execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.progress import printable, shown
from claimscore.jobs.store import Store

ESCAPE = "\x1b[31mred\x1b[0m\x07 [bold]loud[/bold]"


def run(config: Config) -> str:
    """Run the fixture's day on stubs, make its series the current one, and name it."""
    store = Store(config.store.out, config.store)
    judge = stub_models.StubJudge()
    plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    report = run_day(
        config, store, plan, execute_here(config, store, Models(stub_models.StubLlm(), judge, judge))
    )
    store.set_current(report.series)
    return report.series


@pytest.fixture
def out(tmp_path: Path) -> str:
    """An output root with one day, whose first answer carries terminal escapes and markup."""
    rows = jobs_fixture.log_rows()
    rows[1]["request_id"] = "a[/]b"
    rows[0]["answer"] = f"The refund window is 60 days [1]. {ESCAPE} is a claim of its own."
    jobs_fixture.write_log(tmp_path, rows)
    run(jobs_fixture.make_config(tmp_path))
    return str(tmp_path / "out")


def test_show_explains_every_claim(out: str):
    """Verdict, rule, citation state and evidence of each claim stand in the output."""
    text = " ".join(CliRunner().invoke(main, ["show", "r2", "--out", out]).output.split())

    assert "scored, hallucinated, groundedness" in text
    assert "supported Guests pay 20 euro" in text
    assert "nli_cited; citation ok" in text
    assert "unsupported The hotel has a pool" in text
    assert "citation fabricated" in text
    assert "refuse (fabricated_citation)" in text


def test_the_beginning_of_a_series_name_will_do(out: str):
    """A judge's name, or a beginning that only one series has, is completed; a beginning of none is a named failure."""
    series = Store(out, StoreConfig(out=out)).current()
    assert series is not None

    copy = Path(out) / "tables" / "verdicts" / f"judge={series.rpartition('-')[0]}-copy-00000000"
    (copy / "date=2026-11-28").mkdir(parents=True)
    (copy / "date=2026-11-28" / "x.parquet").touch()
    shown = CliRunner().invoke(main, ["show", "r2", "--out", out, "--series", series.rpartition("-")[0]])
    compared = CliRunner().invoke(main, ["compare", series[:-1], series, "--out", out])
    unknown = CliRunner().invoke(main, ["show", "r2", "--out", out, "--series", "zz"])

    assert shown.output.split("\n", 1)[0].endswith(series)
    assert "no claim flipped" in compared.output
    assert (unknown.exit_code, f"no series 'zz', expected one of {series}" in unknown.stderr) == (1, True)


def test_hostile_text_reaches_no_terminal(out: str):
    """Escapes are stripped and markup is shown as it is written."""
    result = CliRunner().invoke(main, ["show", "r0", "--out", out])

    assert "\x1b[31m" not in result.output
    assert "\x07" not in result.output
    assert "[bold]loud[/bold]" in " ".join(result.output.split())


def test_an_id_is_no_markup(out: str):
    """A request id that looks like markup is shown as it is."""
    assert CliRunner().invoke(main, ["show", "a[/]b", "--out", out]).output.startswith("a[/]b  ")


def show_at(out: str, request_id: str, monkeypatch: pytest.MonkeyPatch, width: int | None) -> list[str]:
    """Lines of `show` on a terminal of that width; None: into a pipe."""
    with monkeypatch.context() as patch:
        if width:
            patch.setattr(show, "Console", lambda: Console(force_terminal=True, no_color=True, width=width))
        text = CliRunner().invoke(main, ["show", request_id, "--out", out]).output
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def test_long_text_hangs_under_its_name_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Later lines stand further in, so that the next claim is found; nothing is lost, and a pipe gets whole lines."""
    answer = "The refund window is 60 days for all of the members who have paid their fee in full [1]."
    jobs_fixture.write_log(tmp_path, [jobs_fixture.log_rows(1)[0] | {"answer": answer}])
    run(jobs_fixture.make_config(tmp_path))
    out = str(tmp_path / "out")

    narrow, piped = (show_at(out, "r0", monkeypatch, width) for width in (50, None))

    assert max(map(len, narrow)) <= 50
    assert [
        line for line in narrow if line != line.rstrip()
    ] == []  # blanks that nobody wrote would be copied
    assert " ".join(" ".join(narrow).split()) == " ".join(" ".join(piped).split())
    claim = next(k for k, line in enumerate(narrow) if line.startswith(("  supported", "  unsupported")))
    assert narrow[claim + 1].startswith(" " * 15)
    assert narrow[claim + 1][15] != " "
    assert f"answer: {answer}" in piped


def finished_in(out: str) -> dict[str, Any]:
    """The document of a finished day under that output root."""
    report = dataclasses.asdict(DayReport(jobs_fixture.DATE, series="stub-12345678"))
    return report | {"n_claims": 0, "wall_s": 1.0, "metrics": [], "out": uri.shown(out)}


@pytest.mark.parametrize("out", ["/data/[/a]/out", "/data/[a]/out", "/data/[2026]/[bold]out"])
def test_a_place_is_no_markup(out: str, capsys: pytest.CaptureFixture[str]):
    """A folder may be called anything; where the verdicts lie is said as it is."""
    reports.print_run(finished_in(out))

    assert f"verdicts: {out}/tables/verdicts/judge=stub-12345678/" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "is_told"),
    [
        ("/data/my out", True),
        ("s3://bucket/p", True),
        ("s3://bucket/p?region=eu-west-1", False),
        ("s3://key:secret@bucket/p?endpoint_override=host:9000", False),
    ],
)
def test_no_command_leads_elsewhere(out: str, is_told: bool, capsys: pytest.CaptureFixture[str]):
    """What may not be shown of a place may be what it takes to find it: then no command is given."""
    reports.print_next(finished_in(out), out=out, is_current=True)

    line = f"next: claimscore report --out {shlex.quote(out)} --date {jobs_fixture.DATE}\n"
    assert capsys.readouterr().out == (line if is_told else "")


def rate(metric: str, value: float, version: str | None = None) -> dict[str, Any]:
    """A METRICS row of all answers, or of those of a prompt version."""
    of = {"grouping": "prompt_version" if version else "all", "prompt_version": version, "per": "answers"}
    return {"metric": metric, "value": value, "low": 0.0, "high": 1.0, "denominator": 9, **of}


def test_a_run_with_many_prompt_versions_tells_the_worst(capsys: pytest.CaptureFixture[str]):
    """A line a rate and a line a version, the most hallucinated first and ten at most; one without judged answers is last."""
    told = [rate("hallucination_rate", 0.5), rate("groundedness", 0.8), rate("deliver_rate", 0.3)]
    told += [rate("hallucination_rate", k / 20, f"p{k:02}") for k in range(12)]
    told += [rate("groundedness", 1 - k / 20, f"p{k:02}") for k in range(1, 12)] + [
        rate("groundedness", 0, "q")
    ]
    told += [
        row | {"grouping": "prompt_version+model+topic", "value": 0.99}
        for row in told
        if row["prompt_version"]
    ]

    reports.print_run(finished_in("out") | {"metrics": told})
    printed = capsys.readouterr().out
    reports.print_run(finished_in("out") | {"metrics": told[-1:] + told[:1]})

    lines = [line.split() for line in printed.splitlines()]
    assert [
        line[:2] for line in lines if line[:1] in (["hallucination_rate"], ["groundedness"], ["deliver_rate"])
    ] == [
        ["hallucination_rate", "50.0%"],
        ["groundedness", "80.0%"],
    ]
    versions = [line for line in lines if line[:1] and line[0][1:].isdigit()]
    assert [line[0] for line in versions] == [f"p{k:02}" for k in range(11, 1, -1)]
    assert (versions[0][1], versions[0][5]) == ("55.0%", "45.0%")
    assert "and 3 versions more" in printed
    assert "By prompt version" not in capsys.readouterr().out


def test_a_prompt_version_of_any_text_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Some logs hold the prompt itself there: markup and controls are text, an empty one is seen, a long one is cut."""
    monkeypatch.setenv("COLUMNS", "160")
    versions = ["", "[bold]b[/nope]\x1b[31m", "l" * 9_000]
    told = [rate("hallucination_rate", 0.5, version) for version in versions]
    reports.print_run(
        finished_in("out")
        | {
            "metrics": [
                row | {"grouping": "prompt_version", "prompt_version": v}
                for row, v in zip(told, versions, strict=True)
            ]
        }
    )
    printed = capsys.readouterr().out

    lines = printed[printed.index("By prompt version") :].splitlines()
    assert [line.split()[0] for line in lines if "50.0%" in line] == ['""', "[bold]b[/nope]", "l" * 40 + "…"]


def test_no_heading_of_the_versions_breaks_within_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Nor an interval: a cell that goes on in the next line is taken for another version."""
    monkeypatch.setenv("COLUMNS", "80")
    told = [
        rate(name, 0.999, version) | {"low": 0.123, "high": 0.999}
        for name in ("hallucination_rate", "groundedness")
        for version in ("p13", "answer-v14")
    ]

    reports.print_run(finished_in("out") | {"metrics": told})

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    head = next(k for k, line in enumerate(lines) if line[:1] == ["prompt"])
    assert lines[head] == ["prompt", "hallucinated", "95%", "interval", "grounded", "95%", "interval"]
    cells = ["99.9%", "12.3%", "to", "99.9%"] * 2
    assert lines[head + 2 : head + 4] == [["answer-v14", *cells], ["p13", *cells]]


def test_a_chunk_id_of_blanks_hides_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An id may begin with more blanks than a terminal has columns: what hangs under it still has room."""
    chunk = {
        "id": " " * 120 + "c1",
        "text": "The refund window is 60 days, and fees are paid back in full.",
        "score": 1.0,
    }
    answer = "The refund window is 60 days [1]."
    jobs_fixture.write_log(tmp_path, [jobs_fixture.log_rows(1)[0] | {"answer": answer, "chunks": [chunk]}])
    run(jobs_fixture.make_config(tmp_path))

    lines = show_at(str(tmp_path / "out"), "r0", monkeypatch, 80)

    assert max(map(len, lines)) <= 80
    assert chunk["text"] in " ".join(" ".join(lines).split())


def test_rates_are_told_in_percent_as_the_report_tells_them(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Of the run, of one answer and of two series: a rate looks the same everywhere; a probability stays a decimal."""
    operated = next(
        iter(operate.run_days(jobs_fixture.make_config(tmp_path), [jobs_fixture.DATE], quiet=True))
    )
    reports.print_run(operated)
    printed = capsys.readouterr().out
    of_all = next(
        row for row in operated["metrics"] if (row["grouping"], row["metric"]) == ("all", "groundedness")
    )
    shown_answer = CliRunner().invoke(main, ["show", "r2", "--out", out]).output
    shifts = [
        {"metric": name, "prompt_version": None, "value_a": 0.5, "value_b": 0.75, "shift": 0.25}
        for name in ("groundedness", "human_kappa")
    ]
    compared = {"series_a": "a", "series_b": "b", "days": [], "n_common": 1, "n_only_a": 0, "n_only_b": 0}
    compared["messages"] = []
    reports.print_comparison(compared | {"agreement": 1.0, "kappa": 0.5, "shifts": shifts, "flips": []})
    table = capsys.readouterr().out

    assert f"{100 * of_all['value']:.1f}%" in printed
    assert not re.search(r"\d\.\d{3}", printed)
    assert "groundedness 50.0% (1 of 2 scored claims)" in shown_answer
    assert re.search(r"entailment \d\.\d\d", shown_answer)
    assert re.search(r"groundedness +all +50\.0% +75\.0% +\+25\.0", table)
    assert re.search(r"human_kappa +all +0\.500 +0\.750 +0\.250", table)


def test_an_answer_without_citations_says_so_once(tmp_path: Path):
    """Not under every claim; where another claim cites, a missing citation is told."""
    rows = jobs_fixture.log_rows(3)
    rows[0]["answer"] = "The refund window is 60 days. Guests pay 20 euro."
    rows[1]["answer"] = "The refund window is 60 days [1]. Guests pay 20 euro."
    jobs_fixture.write_log(tmp_path, rows)
    run(jobs_fixture.make_config(tmp_path))

    without, partly = (
        CliRunner().invoke(main, ["show", name, "--out", str(tmp_path / "out")]).output
        for name in ("r0", "r1")
    )

    assert (without.count("no claim carries a citation"), without.count("citation missing")) == (1, 0)
    assert (partly.count("no claim carries a citation"), partly.count("citation missing")) == (0, 1)


def test_show_as_json_is_one_document(out: str):
    """--json prints the answer and its verdicts and nothing else."""
    document = json.loads(CliRunner().invoke(main, ["show", "a[/]b", "--out", out, "--json"]).stdout)

    assert [verdict["verdict"] for verdict in document["verdicts"]] == ["unsupported"]


def test_an_unknown_answer_is_named(out: str):
    """The id, the series, and where it may be."""
    result = CliRunner().invoke(main, ["show", "nobody", "--out", out])

    assert result.exit_code == 1
    assert "no answer 'nobody' in series stub-" in result.stderr
    assert "none in quarantine" in result.stderr


def test_show_tells_of_a_row_of_the_same_id_in_quarantine(tmp_path: Path):
    """An identical row twice: one is the answer, and nobody would look for the other."""
    jobs_fixture.write_log(tmp_path, [*jobs_fixture.log_rows(2), jobs_fixture.log_rows(1)[0]])
    run(jobs_fixture.make_config(tmp_path))

    text = CliRunner().invoke(main, ["show", "r0", "--out", str(tmp_path / "out")]).output
    other = CliRunner().invoke(main, ["show", "r1", "--out", str(tmp_path / "out")]).output

    line = f"another row of {jobs_fixture.DATE} is in quarantine (repeat_of_identical_row: first at row 0 of "
    assert line in " ".join(text.split())
    assert "quarantine" not in other


def test_show_says_what_the_ids_of_chunks_without_any_mean(tmp_path: Path):
    """`c0` beside the mark [1] reads like another chunk."""
    rows = [row | {"chunks": [c["text"] for c in row["chunks"]]} for row in jobs_fixture.log_rows(1)]
    jobs_fixture.write_log(tmp_path, rows)
    run(jobs_fixture.make_config(tmp_path))

    text = CliRunner().invoke(main, ["show", "r0", "--out", str(tmp_path / "out")]).output

    assert "    c0: The refund window is 60 days." in text
    assert (
        "chunks without an id are called by their place: c0 is the first, as a rule the one that [1] marks"
        in " ".join(text.split())
    )


def test_show_finds_an_answer_in_quarantine(tmp_path: Path):
    """Why, which row of which file, and what to do; rather than that there is no such answer."""
    rows = jobs_fixture.log_rows()
    rows[1] |= {"request_id": "r0", "answer": "Another answer."}
    jobs_fixture.write_log(tmp_path, rows)
    run(jobs_fixture.make_config(tmp_path))

    result = CliRunner().invoke(main, ["show", "r0", "--out", str(tmp_path / "out")])

    assert result.exit_code == 1
    assert f"'r0' of {jobs_fixture.DATE} is in quarantine (" in result.stderr
    assert "row 0 of " in result.stderr
    assert "correct the log and run the day again" in result.stderr


def test_compare_counts_flips(tmp_path: Path, out: str):
    """Two series of one day: the claims whose verdict differs are counted and listed."""
    first = run(jobs_fixture.make_config(tmp_path))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    (tmp_path / "other" / "model.safetensors").write_bytes(b"other")
    card = tmp_path / "other.toml"
    card.write_text('name = "strict"\nmodel = "./other"\nentailment = 0.99\n')
    second = run(jobs_fixture.make_config(tmp_path, "evidence.carried_at=1", judge=str(card)))

    result = CliRunner().invoke(main, ["compare", first, second, "--out", out, "--json"])

    document = json.loads(result.stdout)
    assert document["n_common"] == 6
    assert document["flips"]
    assert document["agreement"] == pytest.approx(1 - len(document["flips"]) / 6)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.5, "0.500"), (12345, "12,345"), ("[b]x", "\\[b]x")]
)
def test_cells(value: object, text: str):
    """None, numbers and text each have one form in a table."""
    assert text == shown(value)


def test_printable_keeps_words_and_drops_controls():
    """Line breaks become blanks, controls vanish, letters of any script stay."""
    assert printable("a\nb\x00c\x1b[0mñ漢\u202e") == "a bc[0mñ漢"
