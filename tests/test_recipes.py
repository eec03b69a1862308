"""Days that were made otherwise: told by name in report and alert, and never compared as if the answers had changed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import jobs_fixture
import pytest
import stub_models
from click.testing import CliRunner

from claimscore.jobs import operate, plan
from claimscore.jobs.cli import main
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.recipes import Recipes, differing
from claimscore.jobs.settings import THRESHOLDS, keep
from claimscore.jobs.store import Store

TODAY = "2026-11-28"
DAYS = [f"2026-11-{day}" for day in range(18, 29)]
CHANGED = "[verdicts] conflict_overlap 0.9 -> 0.65"


def run(folder: Path, *days: str, settings: tuple[str, ...] = (), rows: list[dict] | None = None) -> str:
    """Run the fixture's log, or these rows, as each of these days, and name the series."""
    config = jobs_fixture.make_config(folder, *settings)
    store, judge = Store(config.store.out, config.store), stub_models.StubJudge()
    models = Models(stub_models.StubLlm(), judge, judge)
    keep(store, config)
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
    return Recipes(Store(out, StoreConfig(out=out)), series).otherwise(DAYS, TODAY)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ((), None),
        (("verdicts.conflict_overlap=0.9",), ["[verdicts] conflict_overlap 0.9 -> 0.65"]),
        (("verdicts.entailment=0.8",), None),  # the card's own
        (("verdicts.entailment=0.85",), ["entailment threshold 0.85 -> 0.8"]),
        (
            ("decompose.checker_entails=0.9", "evidence.max_windows=5"),
            ["[decompose] checker_entails 0.9 -> 0.5", "[evidence] max_windows 5 -> 6"],
        ),
        (
            ('read.columns={ topic = "prompt_version" }',),
            ['[read] columns {"topic": ["prompt_version"]} -> {}'],
        ),
        (
            ("store.max_unscored_fraction=0.9", "policy.refuse_below=0.1", "metrics.seed=7"),
            None,
        ),  # decide nothing of a rate
    ],
)
def test_what_differs_is_named(tmp_path: Path, settings: tuple[str, ...], names: list[str] | None):
    """By key and both values; days made alike, of another log, are not told."""
    run(tmp_path, *DAYS[:2], settings=settings)
    series = run(tmp_path, *DAYS[2:3], TODAY)

    assert otherwise(tmp_path, series) == (dict.fromkeys(DAYS[:2], names) if names else {})


def test_without_kept_settings_the_section_is_named(tmp_path: Path):
    """As of days that an earlier version made: the file gives words alone, and one of anybody else's gives none."""
    run(tmp_path, *DAYS[:2], settings=("verdicts.conflict_overlap=0.9", "verdicts.entailment=0.85"))
    series = run(tmp_path, TODAY)
    kept = tmp_path / "out" / "state" / "settings.json"

    for text in ("[1]", '{"a": 1}', "{", "[" * 100_000, None):
        kept.unlink() if text is None else kept.write_text(text)
        found = otherwise(tmp_path, series)
        assert found == {day: ["[verdicts]", "thresholds (judge card or [verdicts])"] for day in DAYS[:2]}


def test_no_threshold_is_told_of_a_day_whose_section_held_it_too():
    """Before thresholds were taken as they are in force, `[verdicts]` could hold another than the card's, which the part named."""
    known = {"a": dict.fromkeys(("entailment", "contradiction", "combiner"), 0.5), "v": {"number_veto": True}}
    known["b"] = known["a"] | {"entailment": 0.6}
    old, now = {"[verdicts]": "as written", THRESHOLDS: "a"}, {"[verdicts]": "v", THRESHOLDS: "b"}

    assert differing(old, now, known) == ["[verdicts]", "thresholds (judge card or [verdicts])"]
    assert differing(old | {"[verdicts]": "v"}, now, known) == ["entailment threshold 0.5 -> 0.6"]


def test_what_moves_no_rate_is_no_difference_in_an_old_evaluation():
    """Whose recipe names it still."""
    now = {"[verdicts]": "v"}

    assert differing(now | {"[metrics]": "m"}, now, {}) == []


def test_an_old_evaluation_that_kept_no_columns_is_compared():
    """Its recipe has neither `[read]` nor the version of the quarantine; two that have them differ where they do."""
    old, now = {"[verdicts]": "v"}, {"[verdicts]": "v", "[read]": "r", "version of the quarantine": "1"}

    assert differing(old, now, {}) == []
    assert differing(now | {"[read]": "other"}, now, {}) == ["[read]"]


def test_another_version_of_a_stage_is_named(tmp_path: Path, monkeypatch):
    """As after an upgrade of this program."""
    with monkeypatch.context() as before:
        before.setitem(plan.STAGE_VERSIONS, "scores", "0")
        run(tmp_path, DAYS[0])
    series = run(tmp_path, TODAY)

    assert otherwise(tmp_path, series) == {
        DAYS[0]: [f"version of the scores 0 -> {plan.STAGE_VERSIONS['scores']}"]
    }


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

    told = f"No change is told against 3 days, {DAYS[0]} to {DAYS[2]}, made otherwise ({CHANGED}); to compare: claimscore run CONFIG --since {DAYS[0]} --until {DAYS[2]}"
    assert told in [notice["text"] for notice in found["notices"]]
    assert [change["against"] for change in found["rates"][0]["changes"]] == [DAYS[3]]
    assert found["deploys"] == [{"date": DAYS[3], "kind": "judging", "name": f"judging otherwise: {CHANGED}"}]
    assert f"first day of <bdi>judging otherwise: {CHANGED.replace('>', '&gt;')}</bdi>" in page
    assert [change["n_days"] for change in again["rates"][0]["changes"]] == [1, 4]
    assert (again["deploys"], [n for n in again["notices"] if "made otherwise" in n["text"]]) == ([], [])


def test_the_report_marks_each_border_by_what_changed_there(tmp_path: Path, monkeypatch):
    """Two changes of one key are two borders, each with its own values, though both differ from the day's."""
    monkeypatch.chdir(tmp_path)
    for day, overlap in zip(DAYS[:3], (0.9, 0.8, 0.7), strict=True):
        run(tmp_path, day, settings=(f"verdicts.conflict_overlap={overlap}",))
    run(tmp_path, TODAY, settings=("verdicts.conflict_overlap=0.7",))

    found = json.loads(CliRunner().invoke(main, ["report", "--out", "out", "--format", "json"]).stdout)

    assert [(deploy["date"], deploy["name"]) for deploy in found["deploys"]] == [
        (DAYS[1], "judging otherwise: [verdicts] conflict_overlap 0.9 -> 0.8"),
        (DAYS[2], "judging otherwise: [verdicts] conflict_overlap 0.8 -> 0.7"),
    ]


def test_plan_and_run_say_what_a_day_will_not_be_comparable_with(tmp_path: Path):
    """Once, of the stored days of the week before, and not of those that the same command makes."""
    run(tmp_path, *DAYS[:1], *DAYS[5:7], settings=("verdicts.conflict_overlap=0.9",))
    jobs_fixture.write_log(tmp_path).parent.rename(tmp_path / "logs" / DAYS[8])
    config = str(tmp_path / "claimscore.toml")
    line = (
        f"{DAYS[8]}: not comparable with 2 days, {DAYS[5]} to {DAYS[6]}, made otherwise ({CHANGED}); "
        f"to compare: claimscore run CONFIG --since {DAYS[5]} --until {DAYS[6]}"
    )

    def warnings(*days: str) -> list[str]:
        asked = ["--since", days[0], "--until", days[-1]]
        found = CliRunner().invoke(main, ["plan", config, *asked, "--json"])
        return [line for day in json.loads(found.stdout)["days"] for line in day.get("warnings", ())]

    told = warnings(DAYS[8])
    run(tmp_path, DAYS[6])
    rest = warnings(DAYS[6], DAYS[8])
    run(tmp_path, DAYS[8])

    assert told == [line]
    assert [text.partition(" made")[0] for text in rest] == [f"{DAYS[8]}: not comparable with {DAYS[5]},"]
    assert warnings(DAYS[8]) == []  # nothing is made


def test_a_run_says_it_too_and_names_another_judge(tmp_path: Path, monkeypatch):
    """Days that only the series of another judge holds cannot be compared either; a backfill asks for that."""
    series = run(tmp_path, DAYS[0], settings=("verdicts.conflict_overlap=0.9",))
    jobs_fixture.write_log(tmp_path).parent.rename(tmp_path / "logs" / DAYS[1])
    (tmp_path / "judge.toml").write_text('name = "other"\nmodel = "./model"\nentailment = 0.8\n')
    config, judge = jobs_fixture.make_config(tmp_path), stub_models.StubJudge()
    models = Models(stub_models.StubLlm(), judge, judge)
    here = execute_here(config, Store(config.store.out, config.store), models)
    monkeypatch.setattr(operate._LazyExecutor, "__call__", lambda _, *tasks: here(*tasks))

    (report,) = operate.run_days(config, [DAYS[1]], quiet=True)

    line = (
        f"{DAYS[1]}: not comparable with {DAYS[0]}, made otherwise (judge series {series} -> {report['series']}); "
        f"to compare: claimscore run CONFIG --date {DAYS[0]}"
    )
    assert report["warnings"] == [line]


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
        f"not judged: against 10 days, {DAYS[0]} to {DAYS[-2]}, made otherwise ({CHANGED}): claimscore run CONFIG --since {DAYS[0]} "
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
        f"failed: {DAYS[0]} ({series}) was made otherwise than {TODAY} ({series}) ({CHANGED}), what moved may be the measure: "
        f"claimscore run CONFIG --date {DAYS[0]}\n"
    ) in stopped.stdout
    assert (passed.exit_code, passed.stdout.splitlines()[-1]) == (0, "passed")


def backfill(folder: Path, *days: str, settings: tuple[str, ...] = ()) -> str:
    """Judge days of `run` anew as a series beside the current one, and name it."""
    return str(backfill_reports(folder, *days, settings=settings)[-1]["series"])


def backfill_reports(folder: Path, *days: str, settings: tuple[str, ...] = ()) -> list[dict]:
    """What a backfill says of each of these days."""
    (folder / "other.toml").write_text('name = "other"\nmodel = "./model"\nentailment = 0.65\n')
    config = jobs_fixture.make_config(folder, *settings, judge=str(folder / "other.toml"))
    store, judge = Store(config.store.out, config.store), stub_models.StubJudge()
    here = execute_here(config, store, Models(stub_models.StubLlm(), judge, judge))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operate._LazyExecutor, "__call__", lambda _, *tasks: here(*tasks))
        return list(operate.run_days(config, days, quiet=True, backfill=True))


def test_two_series_of_days_made_otherwise_are_told(tmp_path: Path):
    """A rate over days of two thresholds is neither's; a day alone, or days made again alike, need no word."""
    mine = run(tmp_path, *DAYS[:2])
    other = backfill(tmp_path, *DAYS[:2])
    backfill(tmp_path, DAYS[1], settings=("verdicts.entailment=0.9",))
    asked = ["compare", mine, other, "--out", str(tmp_path / "out")]

    said = CliRunner().invoke(main, asked).stdout
    document = json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)
    one_day = CliRunner().invoke(main, [*asked, "--since", DAYS[1]]).stdout
    backfill(tmp_path, DAYS[1])
    alike = json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)

    line = (
        f"{other}: counted together are 2 days, {DAYS[0]} to {DAYS[1]}, made otherwise than one another: from {DAYS[1]} on "
        f"(entailment threshold 0.65 -> 0.9); to compare: claimscore backfill CONFIG --since {DAYS[0]} --until {DAYS[1]} "
        "--judge CARD"
    )
    assert said.splitlines()[1] == line
    assert document["messages"] == [line]
    assert document["made_otherwise"] == {other: {DAYS[1]: ["entailment threshold 0.65 -> 0.9"]}}
    assert "made otherwise" not in one_day
    assert (alike["messages"], alike["made_otherwise"]) == ([], {})


def test_days_of_a_backfilled_series_are_made_alike_by_a_backfill(tmp_path: Path, monkeypatch):
    """A run makes the current series: it would leave the other one as it is. Told so wherever days are not comparable."""
    monkeypatch.setattr("claimscore.jobs.alerts.MIN_COUNT", 1)
    run(tmp_path, *DAYS[8:11], rows=jobs_fixture.log_rows(240))
    other = backfill(tmp_path, *DAYS[8:9], settings=("verdicts.entailment=0.9",))
    folder = str(tmp_path / "out")
    days = ["--since", DAYS[9], "--until", DAYS[9], "--judge", str(tmp_path / "other.toml")]
    planned = CliRunner().invoke(main, ["plan", str(tmp_path / "claimscore.toml"), *days, "--json"]).stdout
    backfill(tmp_path, *DAYS[9:11])

    alert = CliRunner().invoke(main, ["alert", folder, "--date", TODAY, "--series", other]).stderr
    report = ["report", "--out", folder, "--series", other, "--format", "json"]
    notices = json.loads(CliRunner().invoke(main, report).stdout)["notices"]
    gate = ["gate", "--out", folder, "--series", other, "--baseline-date", DAYS[8]]
    said = CliRunner().invoke(main, gate).stdout

    again = f"claimscore backfill CONFIG --since {DAYS[8]} --until {DAYS[8]} --judge CARD"
    changed = "made otherwise (entailment threshold 0.9 -> 0.65)"
    assert json.loads(planned)["days"][0]["warnings"] == [
        f"{DAYS[9]}: not comparable with {DAYS[8]}, {changed}; to compare: {again}"
    ]
    assert f"not judged: against {DAYS[8]}, {changed}: {again}\n" in alert
    assert f"No change is told against {DAYS[8]}, {changed}; to compare: {again}" in [
        notice["text"] for notice in notices
    ]
    assert f"what moved may be the measure: {again}\n" in said


def test_a_backfill_says_what_it_replaces_and_how_that_was_made(tmp_path: Path):
    """Another threshold under the same name makes the series' verdicts anew in their place; `plan` says the same line."""
    run(tmp_path, *DAYS[:2])
    (first,) = backfill_reports(tmp_path, DAYS[0])
    high = ("verdicts.entailment=0.9",)
    config, card = str(tmp_path / "claimscore.toml"), str(tmp_path / "other.toml")
    asked = ["plan", config, "--since", DAYS[0], "--until", DAYS[1], "--json", "--set", high[0]]

    with_card, without = (
        json.loads(CliRunner().invoke(main, [*asked, *judge]).stdout)["days"]
        for judge in (["--judge", card], [])
    )
    again = backfill_reports(tmp_path, *DAYS[:2], settings=high)
    (fresh,) = backfill_reports(tmp_path, DAYS[0], settings=high)

    line = (
        f"{DAYS[0]}: series {first['series']} holds this day, made otherwise (entailment threshold 0.65 -> 0.9): it is "
        "replaced; to keep both, give the judge card another name"
    )
    assert [first["warnings"], fresh["warnings"]] == [[], []]
    assert [day["warnings"] for day in again] == [[line], []]
    assert [day["warnings"] for day in with_card] == [[line], []]
    assert "replaced" not in str(without)
