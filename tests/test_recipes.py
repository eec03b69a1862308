"""Days that were made otherwise: told by name in report and alert, and never compared as if the answers had changed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import jobs_fixture
import pytest
import stub_models
from click.testing import CliRunner

from claimscore.jobs import plan
from claimscore.jobs.cli import main
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.recipes import made_otherwise
from claimscore.jobs.store import Store

TODAY = "2026-11-28"
DAYS = [f"2026-11-{day}" for day in range(18, 29)]


def run(folder: Path, *days: str, settings: tuple[str, ...] = (), rows: list[dict] | None = None) -> str:
    """Run the fixture's log, or these rows, as each of these days, and name the series."""
    config = jobs_fixture.make_config(folder, *settings)
    store, judge = Store(config.store.out, config.store), stub_models.StubJudge()
    models = Models(stub_models.StubLlm(), judge, judge)
    for day in days:
        path = folder / "logs" / day
        if not path.exists():
            jobs_fixture.write_log(folder, rows, group=240).parent.rename(path)
        done = run_day(
            config,
            store,
            plan_day(config, store, Weights.of(config), day),
            execute_here(config, store, models),
        )
        store.set_current(done.series)
    return done.series


def otherwise(folder: Path, series: str) -> dict[str, list[str]]:
    """What the store tells of all days, beside the last one."""
    out = str(folder / "out")
    return made_otherwise(Store(out, StoreConfig(out=out)), series, DAYS, TODAY)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ((), None),
        (("verdicts.conflict_overlap=0.9",), ["[verdicts]"]),
        (("verdicts.entailment=0.8",), None),  # the card's own
        (("verdicts.entailment=0.85",), ["thresholds (judge card or [verdicts])"]),
        (("decompose.checker_entails=0.9", "evidence.max_windows=5"), ["[decompose]", "[evidence]"]),
        (("store.max_unscored_fraction=0.9", "policy.refuse_below=0.1"), None),  # decide nothing of a rate
    ],
)
def test_what_differs_is_named(tmp_path: Path, settings: tuple[str, ...], names: list[str] | None):
    """By the section of the config; days made alike, of another log, are not told."""
    run(tmp_path, *DAYS[:2], settings=settings)
    series = run(tmp_path, *DAYS[2:3], TODAY)

    assert otherwise(tmp_path, series) == (dict.fromkeys(DAYS[:2], names) if names else {})


def test_another_version_of_a_stage_is_named(tmp_path: Path, monkeypatch):
    """As after an upgrade of this program."""
    with monkeypatch.context() as before:
        before.setitem(plan.STAGE_VERSIONS, "scores", "0")
        run(tmp_path, DAYS[0])
    series = run(tmp_path, TODAY)

    assert otherwise(tmp_path, series) == {DAYS[0]: ["version of the scores"]}


def test_days_without_answers_cannot_be_told(tmp_path: Path):
    """Neither a day whose tables were deleted nor all days beside such a one."""
    run(tmp_path, DAYS[0], settings=("verdicts.conflict_overlap=0.9",))
    series = run(tmp_path, DAYS[1], TODAY)
    manifests = tmp_path / "out" / "state" / "manifests" / "answers" / f"judge={series}"

    for path in (manifests / f"date={DAYS[0]}").iterdir():
        path.unlink()
    assert otherwise(tmp_path, series) == {}


def test_the_report_compares_days_that_were_made_alike(tmp_path: Path, monkeypatch):
    """The days before a change of the rules stand in the charts, behind a mark, and in no change of a rate; run again, they do."""
    monkeypatch.chdir(tmp_path)
    run(tmp_path, *DAYS[:3], settings=("verdicts.conflict_overlap=0.9",))
    run(tmp_path, DAYS[3], TODAY)

    document, page = (
        CliRunner().invoke(main, ["report", "--out", "out", "--format", form, "--to", "-"]).stdout
        for form in ("json", "html")
    )
    found = json.loads(document)
    run(tmp_path, *DAYS[:3])
    again = json.loads(CliRunner().invoke(main, ["report", "--out", "out", "--format", "json"]).stdout)

    told = f"No change is told against 3 days, {DAYS[0]} to {DAYS[2]}, made otherwise ([verdicts]); to compare: claimscore run CONFIG --since {DAYS[0]} --until {DAYS[2]}"
    assert told in [notice["text"] for notice in found["notices"]]
    assert [change["against"] for change in found["rates"][0]["changes"]] == [DAYS[3]]
    assert found["deploys"] == [{"date": DAYS[3], "kind": "judging", "name": "judging otherwise: [verdicts]"}]
    assert "first day of <bdi>judging otherwise: [verdicts]</bdi>" in page
    assert [change["n_days"] for change in again["rates"][0]["changes"]] == [1, 4]
    assert (again["deploys"], [n for n in again["notices"] if "made otherwise" in n["text"]]) == ([], [])


def test_an_alert_is_of_days_that_were_made_alike(tmp_path: Path, monkeypatch):
    """Without days to compare with nothing is quiet: what differs is told, and somebody has to come."""
    monkeypatch.setattr("claimscore.jobs.alerts.MIN_COUNT", 1)
    run(tmp_path, *DAYS[:-1], settings=("verdicts.conflict_overlap=0.9",))
    run(tmp_path, TODAY)
    watch = ["alert", str(tmp_path / "out"), "--date", TODAY, "--metric", "hallucination_rate"]

    told = CliRunner().invoke(main, watch)
    run(tmp_path, *DAYS[:-1])
    alike = CliRunner().invoke(main, watch)

    assert told.exit_code == 3
    assert (
        f"not judged: against 10 days, {DAYS[0]} to {DAYS[-2]}, made otherwise ([verdicts]): claimscore run CONFIG --since {DAYS[0]} "
        f"--until {DAYS[-2]}\n" in told.stderr
    )
    assert (alike.exit_code, alike.stderr) == (0, "")


def test_a_gate_stops_where_the_measure_changed(tmp_path: Path):
    """Two days of one series, the baseline made by other rules: no pass and no drop that could be told."""
    rows = jobs_fixture.log_rows(240)
    run(tmp_path, DAYS[0], settings=("verdicts.conflict_overlap=0.9",), rows=rows)
    series = run(tmp_path, TODAY, rows=rows)
    compare = [
        "gate",
        "--out",
        str(tmp_path / "out"),
        "--baseline-date",
        DAYS[0],
        "--junit",
        str(tmp_path / "gate.xml"),
    ]

    stopped = CliRunner().invoke(main, compare)
    failed = [case.get("name") for case in ET.parse(tmp_path / "gate.xml").getroot() if len(case)]
    run(tmp_path, DAYS[0])
    passed = CliRunner().invoke(main, compare)

    assert (stopped.exit_code, failed) == (3, ["made alike"])
    assert "not comparable, whatever the table says" in stopped.stdout
    assert (
        f"failed: {DAYS[0]} ({series}) was made otherwise than {TODAY} ({series}) ([verdicts]), what moved may be the measure: "
        f"claimscore run CONFIG --date {DAYS[0]}\n"
    ) in stopped.stdout
    assert (passed.exit_code, passed.stdout.splitlines()[-1]) == (0, "passed")
