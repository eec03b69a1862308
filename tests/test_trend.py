"""Rates beside the days before: pooled rates, changes with intervals, lines, first days."""

from __future__ import annotations

import polars as pl
import pytest
import report_fixture as fixture

from claimscore.jobs import trend


def some(n: int, n_bad: int, **fields) -> list[dict]:
    """`n` answers, the first `n_bad` of them hallucinated."""
    name = fields.get("prompt_version", "")
    return [fixture.answer(f"{name}{k}", bad=k < n_bad, **fields) for k in range(n)]


def frame(days: dict[str, list[dict]]) -> pl.DataFrame:
    """The history of those days."""
    return pl.from_arrow(fixture.history(days))


def row(numerator: float, denominator: float, low: float, high: float) -> dict[str, float]:
    """The part of a METRICS row that is pooled."""
    value = numerator / denominator if denominator else None
    return {"numerator": numerator, "denominator": denominator, "value": value, "low": low, "high": high}


def test_days_are_pooled_by_what_they_counted():
    """30 of 100 and 10 of 300: 40 of 400; half-widths weighted with 1/4 and 3/4, added as squares."""
    rate = trend.pooled(
        [row(30, 100, 0.22, 0.42), row(10, 300, 1 / 30 - 0.04, 1 / 30 + 0.04), row(0, 0, 0, 0)]
    )

    assert rate.value == pytest.approx(0.1)
    assert rate.low == pytest.approx(0.1 - (0.02**2 + 0.03**2) ** 0.5)
    assert rate.high == pytest.approx(0.1 + (0.03**2 + 0.03**2) ** 0.5)
    assert rate.denominator == 400


def test_nothing_counted_is_no_rate():
    """Days whose denominators are 0 have no rate, not a rate of 0."""
    assert trend.pooled([row(0, 0, 0, 0)]) is None


def test_a_change_has_the_interval_of_mover():
    """The lower end comes of the lower half of now and the upper half of before, the upper end the other way round."""
    now, before = trend.Rate(0.5, 0.46, 0.58, 100), trend.Rate(0.4, 0.34, 0.43, 100)

    found = trend.change(now, before)

    assert found["change"] == pytest.approx(0.1)
    assert (found["low"], found["high"]) == pytest.approx((0.1 - 0.05, 0.1 + 0.1))
    assert found["is_clear"]


def test_a_change_that_holds_0_is_not_clear():
    """An interval from below 0 to above it tells of no change."""
    assert not trend.change(trend.Rate(0.5, 0.4, 0.6, 100), trend.Rate(0.45, 0.4, 0.5, 100))["is_clear"]


def test_a_rate_is_set_beside_the_last_day_and_the_weeks():
    """The last day held, then 7 and 28 days; a span that adds no day is left out, a day older than it too."""
    days = {day: some(50, 5) for day in ("2026-11-01", "2026-11-23", "2026-11-25", fixture.DAY)}

    rates = trend.headlines(frame(days), fixture.DAY)

    changes = rates[0]["changes"]
    assert [(c["against"], c["n_days"]) for c in changes] == [
        ("2026-11-25", 1),
        ("the 7 days before (2 held)", 2),
        ("the 28 days before (3 held)", 3),
    ]


def test_a_jump_is_clear_and_its_size_is_told():
    """10 of 100 the day before, 40 of 100 now: 30 points more, clearly."""
    rates = trend.headlines(frame({"2026-11-27": some(100, 10), fixture.DAY: some(100, 40)}), fixture.DAY)

    (change,) = rates[0]["changes"]
    assert (rates[0]["metric"], rates[0]["value"], change["is_clear"]) == ("hallucination_rate", 0.4, True)
    assert change["change"] == pytest.approx(0.3)


def test_chance_alone_is_seldom_a_clear_change():
    """Two days of one rate: at most 6 of 50 pairs are called clear, where 2.5 are due."""
    import numpy as np

    random = np.random.default_rng(5)
    n_clear = 0
    for _ in range(50):
        bad = random.binomial(200, 0.2, size=2)
        days = {"2026-11-27": some(200, int(bad[0])), fixture.DAY: some(200, int(bad[1]))}
        (change,) = trend.headlines(frame(days), fixture.DAY)[0]["changes"]
        n_clear += change["is_clear"]

    assert n_clear <= 6


def test_a_day_without_rows_has_no_rate():
    """Every rate is there and null, so that a reader sees what is missing."""
    rates = trend.headlines(frame({}), fixture.DAY)

    assert [(rate["value"], rate["changes"]) for rate in rates] == [(None, [])] * len(trend.HEADLINES)


def test_first_days_are_those_after_the_first_held():
    """A version that the first day has is not new; one that comes later is, on its first day."""
    old, new = some(9, 1, prompt_version="p1", model="m"), some(9, 1, prompt_version="p2", model="m")
    days = {"2026-11-25": old, "2026-11-26": old + new, fixture.DAY: new}

    assert trend.deploys(frame(days)) == [{"date": "2026-11-26", "kind": "prompt_version", "name": "p2"}]


def test_lines_are_the_newest_and_largest_groups():
    """No more than MAX_LINES lines; the largest of the last day first, with every day's rate and interval."""
    today = [row for k in range(8) for row in some(5 + k, 1, prompt_version=f"p{k}")]
    days = {"2026-11-27": some(4, 1, prompt_version="p7"), fixture.DAY: today}

    lines = trend.lines(frame(days), "prompt_version")

    assert [line["name"] for line in lines] == ["p7", "p6", "p5", "p4", "p3", "p2"]
    assert lines[0]["n"] == 4 + 12
    assert [point["n_answers"] for point in lines[0]["points"]] == [4, 12]
    assert lines[0]["points"][0]["hallucination_rate"][0] == 0.25


def test_answers_without_a_version_are_a_line_of_their_own():
    """Null is a group; its name stays null."""
    days = {fixture.DAY: some(5, 1) + some(9, 1, prompt_version="p1")}

    assert [line["name"] for line in trend.lines(frame(days), "prompt_version")] == ["p1", None]


def test_volumes_tell_answers_and_unscored_claims():
    """A day's answers, claims and unscored claims, in the order of days."""
    unscored = [fixture.answer("x", bad=None)]

    assert trend.volumes(frame({fixture.DAY: some(5, 1) + unscored, "2026-11-27": some(3, 0)})) == [
        {"date": "2026-11-27", "n_answers": 3, "n_claims": 3, "n_unscored": 0},
        {"date": fixture.DAY, "n_answers": 6, "n_claims": 6, "n_unscored": 1},
    ]


def test_the_first_days_of_the_calendar_have_what_lies_before_them():
    """Nothing, or less than a span: no error of the arithmetic."""
    history = frame({"0001-01-01": some(40, 4), "0001-01-03": some(40, 8)})

    assert trend.headlines(history, "0001-01-03")[0]["changes"][0]["change"] == pytest.approx(0.1)
    assert trend.headlines(frame({"0001-01-01": some(40, 4)}), "0001-01-01")[0]["changes"] == []
