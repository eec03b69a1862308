"""The alert on a sustained change: how rarely it is false, how soon it is right, and what it never takes for fine."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from pathlib import Path
from typing import Any

import loopback_fixture as loop
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import report_fixture as fixture
import store_fixture
from click.testing import CliRunner

from claimscore.jobs import alert_files, alerts, trend
from claimscore.jobs.alerts import Days, examine, score, threshold
from claimscore.jobs.cli import main
from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.errors import InputError, OutputError
from claimscore.jobs.layout import TableFile
from claimscore.jobs.metrics import measure
from claimscore.jobs.records import METRICS
from claimscore.jobs.sending import Sender

FIRST = dt.date(2026, 10, 1)


def date(k: int) -> str:
    """The k-th day."""
    return str(FIRST + dt.timedelta(days=k))


def simulated(random: np.random.Generator, rates: list[float], n: int, *, weekly: float = 0.0) -> Days:
    """Days of `n` answers whose rates are those, and with `weekly` go up and down by so much within each week."""
    p = np.clip(np.array(rates) + weekly * np.sin(2 * np.pi * np.arange(len(rates)) / 7), 0, 1)
    hits = random.binomial(n, p).astype(float)
    value = hits / n
    half = 1.96 * np.sqrt(np.maximum(value * (1 - value), 1 / n) / n)
    return Days(hits, np.full(len(p), float(n)), half, half)


def first_alarm(days: Days, n_before: int, h: float) -> float:
    """Nights from the first one after `n_before` until the alarm, that one included; inf: never."""
    for k in range(n_before + 1, len(days.numerator) + 1):
        until = Days(days.numerator[:k], days.denominator[:k], days.below[:k], days.above[:k])
        if score(until, 1, 0.04)[0] > h:
            return k - n_before
    return math.inf


@pytest.mark.parametrize(
    ("rate", "n", "weekly"), [(0.25, 500, 0.0), (0.05, 200, 0.0), (0.25, 5_000, 0.03), (0.1, 1_500, 0.03)]
)
def test_a_chart_is_silent_where_nothing_changed(rate, n, weekly, record_property):
    """28 nights of one chart without a change, also with weekdays that differ: an alarm in at most 5 of 100."""
    random = np.random.default_rng(7)
    runs = [
        first_alarm(simulated(random, [rate] * 35, n, weekly=weekly), 7, threshold(1)) for _ in range(200)
    ]

    n_false = sum(run < math.inf for run in runs)
    record_property("nights to a false alarm, about", 28 * len(runs) / max(1, n_false))
    assert n_false <= 10


@pytest.mark.parametrize(
    ("rate", "n", "at_most", "within_a_week"),
    [(0.25, 500, 6, 0.65), (0.1, 500, 4, 0.9), (0.25, 5_000, 2, 1.0)],
)
def test_four_points_are_found_within_days(rate, n, at_most, within_a_week, record_property):
    """Four points worse, after three weeks, where twelve charts are kept: the median delay, and the share in a week."""
    random = np.random.default_rng(8)
    rates = [rate] * 21 + [rate + 0.04] * 14
    delays = [first_alarm(simulated(random, rates, n), 21, threshold(12)) for _ in range(200)]

    record_property("median nights to the alarm", float(np.median(delays)))
    record_property("share caught in a week", float(np.mean([delay <= 7 for delay in delays])))
    assert np.median(delays) <= at_most
    assert np.mean([delay <= 7 for delay in delays]) >= within_a_week


def test_an_alarm_ends_when_things_are_mended():
    """A fortnight of eight points more, then as before: within four nights nothing is said any more."""
    random = np.random.default_rng(6)
    days = simulated(random, [0.2] * 21 + [0.28] * 14 + [0.2] * 4, 2_000)

    until = [
        Days(*(column[:k] for column in (days.numerator, days.denominator, days.below, days.above)))
        for k in (35, 39)
    ]
    assert [score(part, 1, 0.04)[0] > threshold(12) for part in until] == [True, False]


def test_better_is_no_alarm():
    """A rate that falls by ten points, where higher is worse."""
    random = np.random.default_rng(6)

    assert score(simulated(random, [0.3] * 21 + [0.2] * 7, 2_000), 1, 0.04)[0] == 0
    assert score(simulated(random, [0.3] * 21 + [0.2] * 7, 2_000), -1, 0.04)[0] > threshold(12)


def night(random: np.random.Generator, share: float, n: int = 500) -> pa.Table:
    """METRICS of a night of `n` answers with three claims each, which hold with that share; two prompt versions."""
    hard = np.where(random.random(n) < 0.1, -0.45, 0.05)
    rows = []
    for k, held in enumerate(random.binomial(3, np.clip(share + hard, 0, 1))):
        counts = {"n_claims": 3, "n_scored": 3, "n_supported": int(held), "n_unsupported": 3 - int(held)}
        cited = {"n_cited_claims": 3, "n_citation_ok": int(held)}
        rows.append(fixture.answer(str(k), bad=bool(held < 3), prompt_version=f"p{k % 2}", **counts, **cited))
    return measure(fixture.answers(rows), MetricsConfig(n_resamples=100))


def history(nights: list[pa.Table], first: int = 0) -> pl.DataFrame:
    """Those nights, one a day."""
    dated = [
        table.add_column(0, "date", pa.repeat(date(first + k), table.num_rows)).cast(trend.HISTORY)
        for k, table in enumerate(nights)
    ]
    return pl.DataFrame(pl.from_arrow(pa.concat_tables([trend.HISTORY.empty_table(), *dated])))


def alarmed(nights: list[pa.Table]) -> bool:
    """Whether any chart of the last night has an alarm."""
    charts = examine(history(nights), date(len(nights) - 1))["charts"]
    return any(chart["status"] == "alarm" for chart in charts)


@pytest.fixture(scope="module")
def pools() -> dict[str, list[pa.Table]]:
    """Nights as they were, and with four points fewer claims that hold."""
    random = np.random.default_rng(11)
    return {"good": [night(random, 0.9) for _ in range(24)], "bad": [night(random, 0.86) for _ in range(10)]}


def test_resampled_nights_without_a_regression_are_silent(pools, record_property):
    """Of 100 resamplings of three weeks, every chart of all answers and both versions together: silent in 95."""
    random = np.random.default_rng(12)
    drawn = [[pools["good"][k] for k in random.integers(0, 24, 21)] for _ in range(100)]

    n_false = sum(alarmed(nights) for nights in drawn)
    record_property("false alarms of 100", n_false)
    assert n_false <= 5


def test_a_drop_of_four_points_is_caught_in_days(pools, record_property):
    """500 answers a night, four points fewer claims hold: caught by the fourth night in 90 of 100 resamplings."""
    random = np.random.default_rng(13)
    caught = 0
    for _ in range(100):
        before = [pools["good"][k] for k in random.integers(0, 24, 18)]
        caught += alarmed(before + [pools["bad"][k] for k in random.integers(0, 10, 4)])

    record_property("caught of 100 by the fourth night", caught)
    assert caught >= 90


def row(
    metric: str, k: int, numerator: float, denominator: float, version: str | None = None
) -> dict[str, Any]:
    """One METRICS row of the k-th day, with a binomial error."""
    value = numerator / denominator if denominator else None
    half = 1.96 * math.sqrt(max(value * (1 - value), 1 / denominator) / denominator) if denominator else 0
    return {
        "date": date(k),
        "grouping": "prompt_version" if version else "all",
        "prompt_version": version,
        "model": None,
        "topic": None,
        "metric": metric,
        "value": value,
        "low": None if value is None else value - half,
        "high": None if value is None else value + half,
        "numerator": numerator,
        "denominator": denominator,
        "per": "answers",
    }


@pytest.mark.parametrize("day", ["0001-01-01", "0001-02-20", "9999-12-31"])
def test_a_day_at_an_end_of_the_calendar_is_one_like_others(day: str):
    """A clock that was never set: what is before it is nothing, and no error of the arithmetic."""
    document = examine(history([]), day, ["groundedness"])

    assert [chart["status"] for chart in document["charts"]] == ["unknown"]
    assert document["missing_days"] == [day]


def held(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a history."""
    return pl.DataFrame(pl.from_arrow(pa.Table.from_pylist(rows, schema=trend.HISTORY)))


def rates(days: range, share: float, n: int = 400, version: str | None = None) -> list[dict[str, Any]]:
    """The hallucination rate and the volume of some days."""
    return [
        item
        for k in days
        for item in (
            row("hallucination_rate", k, share * n, n, version),
            row("refusal_rate", k, 0, n, version),
        )
    ]


def only(document: dict[str, Any], version: str | None = None) -> dict[str, Any]:
    """The chart of the hallucination rate."""
    (chart,) = (chart for chart in document["charts"] if chart["prompt_version"] == version)
    return chart


def judged(rows: list[dict[str, Any]], k: int) -> dict[str, Any]:
    """The hallucination rate on the k-th day."""
    return examine(held(rows), date(k), ["hallucination_rate"])


def test_a_new_version_is_judged_against_what_was_before_it():
    """A version that is worse from its first day on has no days of its own to be compared with."""
    rows = rates(range(20), 0.1) + rates(range(17), 0.1, 400, "old") + rates(range(17, 20), 0.25, 100, "new")

    document = judged(rows, 19)

    assert (only(document, "new")["status"], only(document, "new")["since"]) == ("alarm", date(17))
    assert only(document)["status"] == "quiet"


def test_the_shift_is_that_of_the_days_since():
    """The alarm tells the pooled rates before and since, and the day on which it began."""
    chart = only(judged(rates(range(14), 0.1) + rates(range(14, 17), 0.2), 16))

    assert (chart["status"], chart["since"], chart["n_days"]) == ("alarm", date(14), 3)
    assert chart["shift"]["before"] == pytest.approx(0.1)
    assert chart["shift"]["now"] == pytest.approx(0.2)


def test_one_bad_night_is_not_yet_a_change():
    """Four points of 5,000 answers are sure, and in a single night not sustained; in a second one they are."""
    before, after = rates(range(14), 0.25, 5_000), rates(range(14, 16), 0.29, 5_000)

    assert [only(judged(before + after, k))["status"] for k in (14, 15)] == ["quiet", "alarm"]


@pytest.mark.parametrize(
    ("rows", "status", "why"),
    [
        (rates(range(10), 0.1), "unknown", "nothing of that day"),
        (rates(range(10), 0.1) + rates(range(10, 11), 0.1, 20), "unknown", "only 20 answers"),
        (rates(range(5, 11), 0.1), "learning", "5 of 7 days before it"),
        (rates(range(11), 0.1), "quiet", ""),
        ([], "unknown", "nothing of that day"),
    ],
)
def test_what_cannot_be_judged_is_not_quiet(rows, status, why):
    """A day that is missing, too small or too early has a status of its own."""
    chart = only(judged(rows, 10))

    assert (chart["status"], chart["why"]) == (status, why)


def test_an_output_of_a_few_days_says_so_once():
    """Not once a rate and a version; what is learnt beside rates that are judged is named."""
    young = rates(range(5, 11), 0.1) + rates(range(8, 11), 0.1, version="p14")
    old = rates(range(11), 0.1)

    def lines(rows: list[dict], *metrics: str) -> list[str]:
        document = examine(held(rows), date(10), metrics) | {"made_otherwise": {}}
        return [line for line in alert_files.messages(document) if line.startswith("not judged yet")]

    assert lines(young, "hallucination_rate") == ["not judged yet: 2 rates: 5 of 7 days before it"]
    assert lines(rates(range(5, 11), 0.1), "hallucination_rate") == [
        "not judged yet: hallucination_rate of all answers: 5 of 7 days before it"
    ]
    mixed = [*old, *(item | {"metric": "unscored_rate"} for item in rates(range(5, 11), 0.1)[::2])]
    assert lines(mixed, "hallucination_rate", "unscored_rate") == [
        "not judged yet: unscored_rate of all answers: 5 of 7 days before it"
    ]


def test_days_that_are_left_out_are_named():
    """Old gaps between days, days with too little, and versions with too little stand in the messages."""
    rows = (
        rates(range(3), 0.1)
        + rates(range(4, 12), 0.1)
        + rates(range(12, 13), 0.1, 12)
        + rates(range(13, 14), 0.1)
    )
    rows += rates(range(13, 14), 0.1, 10, "canary\x1b[31m")

    document = judged(rows, 13) | {"made_otherwise": {}}
    lines = alert_files.messages(document)

    assert (document["missing_days"], document["gaps"]) == ([date(3)], [])
    assert lines == [
        f"days without any rate: {date(3)}",
        "under 30 answers on the day, not judged: prompt version 'canary\\x1b[31m'",
        f"days with too little to count: {date(12)} (12 answers)",
    ]


def test_a_metric_that_a_deployment_never_has_wakes_nobody():
    """No claim with a citation on any day is no unknown day; no scored claim on any day is one."""
    nothing = [row(metric, k, 0, 0) for k in range(9) for metric in ("citation_precision", "groundedness")]

    document = examine(held(nothing), date(8), ["citation_precision", "groundedness"])

    assert [chart["status"] for chart in document["charts"]] == ["empty", "unknown"]


def test_more_charts_ask_for_more():
    """The threshold grows with the number of charts, so that many versions do not make many false alarms."""
    assert threshold(12) == pytest.approx(threshold(1) + math.log(12))


OUT_ROWS = rates(range(14), 0.1) + rates(range(14, 17), 0.25)


@pytest.fixture
def out(tmp_path: Path) -> str:
    """An output root with the metrics of 17 nights, the last three bad."""
    store = store_fixture.open_store(tmp_path / "out")
    for k in range(17):
        rows = [
            {n: v for n, v in item.items() if n != "date"} for item in OUT_ROWS if item["date"] == date(k)
        ]
        rows += [{n: v for n, v in row("unscored_rate", k, 3, 900).items() if n != "date"}]
        table = pa.Table.from_pylist(rows, schema=METRICS)
        file = TableFile("metrics", date(k), "metrics", store_fixture.SERIES)
        store.write(file, table, METRICS, parts={"answers": "a"}, counts={})
    store.set_current(store_fixture.SERIES)
    return str(tmp_path / "out")


def alert(*arguments: str) -> Any:
    """The command in this process, watching the hallucination rate."""
    return CliRunner().invoke(main, ["alert", "--metric", "hallucination_rate", *arguments])


def test_an_alarm_is_exit_code_3_and_a_line(out: str):
    """The line names metric, group, both rates and since when."""
    result = alert(out, "--date", date(16))

    assert result.exit_code == 3
    assert result.stderr.startswith(
        f"ALERT: hallucination_rate of all answers: 10.0% -> 25.0%, +15.0 points (+12.4 to +17.6) since {date(14)}, 3 days\n"
    )


def test_a_quiet_day_is_exit_code_0(out: str):
    """Nothing is said but the table."""
    result = alert(out, "--date", date(13))

    assert (result.exit_code, result.stderr) == (0, "")
    assert "quiet" in result.stdout


def test_a_night_that_did_not_run_is_exit_code_3(out: str):
    """The day after the last one is missing, and that is no good news."""
    result = alert(out, "--date", date(40))

    assert result.exit_code == 3
    line = f"not judged: hallucination_rate of all answers: nothing of that day; an alarm before it, since {date(14)}\n"
    assert line in result.stderr


def test_a_gap_in_the_week_before_is_exit_code_3(out: str):
    """A night that did not run a few days ago may hide the beginning of a change; it is named."""
    gone = (
        Path(out) / "state" / "manifests" / "metrics" / f"judge={store_fixture.SERIES}" / f"date={date(10)}"
    )
    (gone / "metrics.json").unlink()

    result = alert(out, "--date", date(13))

    assert result.exit_code == 3
    assert result.stderr.startswith(f"not judged: {date(10)}: no rate of so recent a day")


def test_the_document_goes_to_a_file_and_to_stdout(out: str, tmp_path: Path):
    """Both are the same strict JSON."""
    result = alert(out, "--date", date(16), "--json", "--dest", str(tmp_path / "alert.json"))

    assert json.loads(result.stdout) == json.loads((tmp_path / "alert.json").read_text())
    assert only(json.loads(result.stdout))["status"] == "alarm"


SAMPLE = re.compile(
    r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})? [0-9.e+-]+'
)


def test_the_textfile_is_the_format_of_prometheus(out: str, tmp_path: Path):
    """Each line is a comment or a sample without a timestamp; unscored claims have a gauge of their own."""
    alert(out, "--date", date(16), "--textfile", str(tmp_path / "claimscore.prom"))
    lines = (tmp_path / "claimscore.prom").read_text().splitlines()

    assert [line for line in lines if not line.startswith("# ") and not SAMPLE.fullmatch(line)] == []
    assert 'claimscore_unscored_claims{prompt_version=""} 3.0' in lines
    assert 'claimscore_rate_ratio{metric="hallucination_rate",prompt_version=""} 0.25' in lines
    assert 'claimscore_alert_active{metric="hallucination_rate",prompt_version=""} 1.0' in lines
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["claimscore.prom"]


def test_the_textfile_is_read_by_its_own_parser(out: str, tmp_path: Path):
    """prometheus_client finds every family, and a hostile version is a label's value and no more."""
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    hostile = 'p"} 1\nevil_metric 1\\'
    rows = OUT_ROWS + rates(range(16, 17), 0.1, 100, hostile)
    document = judged(rows, 16) | {"made_at": "2026-10-18T01:02:03+00:00"}

    text = alert_files.textfile(document, held(rows).filter(pl.col("date") == date(16)))

    families = {family.name: family.samples for family in parser.text_string_to_metric_families(text)}
    assert "evil_metric" not in families
    assert {sample.labels["prompt_version"] for sample in families["claimscore_answers"]} == {"", hostile}
    assert families["claimscore_last_success_timestamp_seconds"][0].value == 1792285323.0


def test_what_was_not_judged_has_no_value_but_a_flag():
    """Not judged is absent from `alert_active`, never 0, and a rate without a denominator is absent too."""
    rows = [*rates(range(10), 0.1), row("hallucination_rate", 10, 0, 0), row("refusal_rate", 10, 3, 3)]
    document = judged(rows, 10) | {"made_at": None}

    text = alert_files.textfile(document, held(rows).filter(pl.col("date") == date(10)))

    assert "claimscore_alert_active" not in text
    assert 'claimscore_rate_ratio{metric="hallucination_rate"' not in text
    assert 'claimscore_alert_not_judged{metric="hallucination_rate",prompt_version=""} 1.0' in text


def test_missing_days_stand_in_the_textfile():
    """Who alerts on the textfile alone sees why the command ended with code 3."""
    rows = [*rates(range(14), 0.1), *rates(range(16, 17), 0.1)]
    document = judged(rows, 16) | {"made_at": None}

    text = alert_files.textfile(document, held(rows).filter(pl.col("date") == date(16)))

    assert document["gaps"] == [date(14), date(15)]
    assert "claimscore_alert_missing_days 2.0" in text


@pytest.fixture
def hook():
    """A webhook on this machine."""
    with loop.loopback() as server:
        yield server


def test_the_webhook_is_tried_until_it_takes_the_alert(hook):
    """503 and 429 are tried again, and `text` says what a chat program should show."""
    url = f"{hook.url}/services/SECRET"
    document = judged(OUT_ROWS, 16) | {"series": "s", "made_otherwise": {}}
    document["messages"] = alert_files.messages(document)
    codes = [503, 429, 200]
    hook.answer = lambda *_: (codes.pop(0), None)

    alert_files.notify(document, url, Sender(url, sleep=lambda _: None))

    assert len(hook.seen) == 3
    assert hook.seen[-1][2]["text"].startswith(
        "claimscore 2026-10-17, s\nALERT: hallucination_rate of all answers"
    )


def test_a_webhook_that_refuses_is_a_failure_without_its_url(hook):
    """Nobody was told: that is an error, and the secret in the path stands in no message."""
    hook.answer = lambda *_: (404, None)
    url = f"{hook.url}/services/SECRET"
    document = judged(OUT_ROWS, 16) | {"series": "s", "messages": []}

    with pytest.raises(OutputError, match="the webhook did not take the alert: HTTP 404") as caught:
        alert_files.notify(document, url, Sender(url, sleep=lambda _: None))
    assert "SECRET" not in str(caught.value)


def test_a_hostile_version_calls_nobody_else(hook):
    """A name out of a log is no mention and no link in a chat program, and no escape on a terminal."""
    name = "<!channel> @here <http://x|y>\x1b[31m"
    document = judged(rates(range(14), 0.1) + rates(range(14, 17), 0.3, 400, name), 16) | {
        "series": "s",
        "made_otherwise": {},
    }
    document["messages"] = alert_files.messages(document)

    alert_files.notify(document, f"{hook.url}/x")

    text = hook.seen[0][2]["text"]
    assert [word for word in ("<!", "@here", "<http", "://", "\x1b") if word in text] == []
    assert "channel" in text


def test_a_quiet_day_calls_nobody(hook):
    """No request where nobody should come."""
    document = judged(OUT_ROWS, 13) | {"series": "s", "messages": []}

    alert_files.notify(document, f"{hook.url}/x")

    assert hook.seen == []


def test_a_wrong_webhook_shows_on_a_quiet_day(out: str):
    """Not in the night that needs it."""
    result = alert(out, "--date", date(13), "--webhook", "hooks.example.com/x")

    assert result.exit_code == 1
    assert "--webhook: not a place to send to" in result.stderr


def test_an_unknown_metric_is_a_usage_error(out: str):
    """The known ones are listed."""
    result = CliRunner().invoke(main, ["alert", out, "--metric", "vibes"])

    assert result.exit_code == 2
    assert "--metric 'vibes' is none of hallucination_rate, groundedness" in result.stderr


def test_a_change_of_nothing_is_refused(out: str):
    """Zero points would be an alarm for every breath."""
    with pytest.raises(InputError, match="expected more than 0pt"):
        alert_files.run(out, date(16), None, ["groundedness"], "0pt")


def test_the_largest_overshoot_is_what_the_threshold_takes():
    """The constant is the maximum that its comment names."""
    x = np.linspace(0.01, 10, 10_000)

    assert np.max(x**2 / 2 * np.exp(-1.166 * x)) == pytest.approx(alerts.OVERSHOOT, abs=0.002)
