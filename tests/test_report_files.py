"""`claimscore report` over a finished run: days, series, files, and its failures in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jobs_fixture
import pytest
import stub_models
from click.testing import CliRunner, Result

from claimscore.jobs.cli import main
from claimscore.jobs.config import Config, StoreConfig
from claimscore.jobs.errors import OutputError
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.report_files import form_of
from claimscore.jobs.store import Store


def run(config: Config) -> str:
    """Run the fixture's day on stubs, make its series the current one, and name it."""
    store = Store(config.store.out, config.store)
    judge = stub_models.StubJudge()
    plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    models = Models(stub_models.StubLlm(), judge, judge)
    done = run_day(config, store, plan, execute_here(config, store, models))
    store.set_current(done.series)
    return done.series


@pytest.fixture
def out(tmp_path: Path, monkeypatch) -> str:
    """An output root with one finished day, made from a folder of its own."""
    jobs_fixture.write_log(tmp_path)
    run(jobs_fixture.make_config(tmp_path))
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "out")


def report(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, ["report", *arguments])


def test_a_page_is_written_where_nothing_is_said(out: str, tmp_path: Path):
    """The newest day of the current series, into a file named by its day, and the file is told."""
    result = report("--out", out)

    assert (result.exit_code, result.output) == (0, "wrote claimscore-2026-11-28.html\n")
    ignored = (Path(__file__).parents[1] / ".gitignore").read_text().splitlines()
    assert any(Path("/claimscore-2026-11-28.html").match(line) for line in ignored)
    assert "<title>claimscore 2026-11-28</title>" in (tmp_path / "claimscore-2026-11-28.html").read_text()


def test_the_figures_are_those_of_the_tables(out: str):
    """Answers, claims and rates of the JSON form equal what the tables hold."""
    document = json.loads(report("--out", out, "--format", "json").stdout)

    store = Store(out, StoreConfig(out=out))
    (name,) = store.list_series()
    answers = [row for file in store.files("answers", series=name) for row in store.read(file).to_pylist()]
    judged = [row["hallucinated"] for row in answers if row["hallucinated"] is not None]
    assert document["volume"]["n_answers"] == len(answers) == 6
    assert document["rates"][0]["value"] == pytest.approx(sum(judged) / len(judged))
    assert document["volume"]["n_claims"] == sum(row["n_claims"] for row in answers)


def test_commands_in_a_report_name_the_straight_way(out: str, tmp_path: Path):
    """An output root that was given by a way up and down again is told as the folder that it is."""
    (tmp_path / "x").mkdir()

    around = report("--out", str(tmp_path / "x" / ".." / Path(out).name), "--format", "json").output

    assert json.loads(around)["out"] == out


def test_markdown_goes_to_stdout(out: str):
    """Nothing else is printed, so that it can be piped."""
    assert report("--out", out, "--format", "md").output.startswith("## claimscore 2026-11-28, stub")


def test_the_ending_names_the_form(out: str, tmp_path: Path):
    """A file that ends in .md is Markdown."""
    assert report("--out", out, "--to", "morning.md").output == "wrote morning.md\n"
    assert (tmp_path / "morning.md").read_text().startswith("## claimscore 2026-11-28")


@pytest.mark.parametrize(
    ("form", "to", "found"),
    [
        (None, None, "html"),
        ("md", "a.html", "md"),
        (None, "a.json", "json"),
        (None, "a.htm", "html"),
        (None, "-", "html"),
    ],
)
def test_forms(form, to, found):
    """What is named wins over the ending; HTML where neither says anything."""
    assert form_of(form, to) == found


def test_an_ending_of_another_form_is_refused():
    """A .pdf would hold HTML."""
    with pytest.raises(OutputError, match=r"a\.pdf: \.pdf is no form of the report, expected html, md, json"):
        form_of(None, "a.pdf")


def other_series(out: str) -> str:
    """The series that dashboards do not read."""
    store = Store(out, StoreConfig(out=out))
    (name,) = set(store.list_series()) - {store.current()}
    return name


def test_a_second_series_stands_beside(out: str, tmp_path: Path):
    """Agreement and flips against the series that --compare begins to name."""
    (tmp_path / "strict").mkdir()
    (tmp_path / "strict" / "config.json").write_text("{}")
    (tmp_path / "strict" / "model.safetensors").write_bytes(b"other")
    card = tmp_path / "strict.toml"
    card.write_text('name = "strict"\nmodel = "./strict"\nentailment = 0.99\n')
    strict = run(jobs_fixture.make_config(tmp_path, "evidence.carried_at=1", judge=str(card)))

    arguments = ("--out", out, "--series", "stub", "--compare", "strict")
    other = json.loads(report(*arguments, "--format", "json").stdout)["comparison"]

    assert (other["series"], other["n_flips"]) == (strict, len(other["flips"]))
    assert other["n_flips"] > 0
    assert f"Against judge series <bdi>{strict}</bdi>" in report(*arguments, "--to", "-").output
    assert report(*arguments).output == f"wrote claimscore-2026-11-28-{other_series(out)}.html\n"


def test_a_run_that_was_stopped_has_a_report(out: str, tmp_path: Path):
    """Without the day's metrics they are measured from its answers; a shard without answers is told."""
    for path in (tmp_path / "out" / "state" / "manifests" / "metrics").rglob("*.json"):
        path.unlink()
    next((tmp_path / "out" / "state" / "manifests" / "answers").rglob("*.json")).unlink()

    document = json.loads(report("--out", out, "--format", "json").stdout)

    assert document["volume"]["n_answers"] == 3
    assert document["rates"][0]["value"] is not None
    assert "1 of 2 shards have no answers yet: run the day again" in [n["text"] for n in document["notices"]]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--date", "2026-11-27"),
            "{out}: nothing of 2026-11-27 in series {series}, expected 2026-11-28; run that day first",
        ),
        (("--series", "zz"), "{out}: no series 'zz', expected one of {series}"),
        (
            ("--to", "no/such.html"),
            "no/such.html: No such file or directory, expected a file to write; give another --to",
        ),
    ],
)
def test_failures_are_one_line(out: str, arguments, line):
    """What was found, what was expected, what to do; exit code 1."""
    (series,) = Store(out, StoreConfig(out=out)).list_series()

    result = report("--out", out, *arguments)

    assert (1, f"Error: {line.format(out=out, series=series)}\n") == (result.exit_code, result.stderr)


def test_an_output_without_a_day_is_named(out: str):
    """A series whose tables were taken away is no day called None."""
    shutil.rmtree(Path(out) / "tables")
    (series,) = [Store(out, StoreConfig(out=out)).current()]

    result = report("--out", out)

    assert (1, f"Error: {out}: no day in series {series}, expected one; run a day first\n") == (
        result.exit_code,
        result.stderr,
    )


def test_an_output_without_a_run_is_named(tmp_path: Path):
    """Nothing was run: one line that says so."""
    result = report("--out", str(tmp_path / "none"))

    assert (
        1,
        f"Error: {tmp_path}/none: no finished run, expected one; give --out, or run a day first\n",
    ) == (
        result.exit_code,
        result.stderr,
    )
