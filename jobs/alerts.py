"""Whether a rate has got worse and stays so: the last days against those before them, of all answers and of each version.

For every day on which a change could have begun, the pooled rate since then is set against the pooled rate before, as a
log likelihood ratio of "worse by `change`" to "the same"; the largest is the day's score. That is Page's CUSUM (1954) with
what went before unknown, and so estimated. Each day counts with its own bootstrap error, so that volume is in it; where
the days before have scattered more than their errors explain, all errors are widened by that (Birge 1932). With no change
a score passes h within n days with a chance of about OVERSHOOT * n * exp(-h) (Lorden 1971; Siegmund 1985, "Sequential
Analysis", ch. 8); h is set from that, and tests/test_alerts.py measures it. The module knows no answer and no file.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from claimscore.jobs import trend

WORSE = {
    "hallucination_rate": 1,
    "groundedness": -1,
    "citation_precision": -1,
    "unscored_rate": 1,
    "refusal_rate": 1,
    "over_refusal_rate": 1,
    "contradiction_rate": 1,
    "fabricated_citation_rate": 1,
    "refusal_correctness": -1,
    "recall_at_k": -1,
}
"""Metric -> which way is worse: 1 up, -1 down."""
OPTIONAL = frozenset({"citation_precision", "over_refusal_rate", "refusal_correctness", "recall_at_k"})
"""Metrics of what some deployments never have: citations, gold columns."""
DEFAULT_METRICS = ("hallucination_rate", "groundedness", "citation_precision", "unscored_rate")

WINDOW_DAYS = 56
MAX_CLIMB_DAYS = 28
"""How long ago a change may have begun; an older one is how things are."""
MIN_DAYS = 7
"""Days before a change that it is judged against at least: a whole week."""
STILL_DAYS = 3
"""An alarm is over where the last days lie nearer to those before the change than to the change."""
MIN_COUNT = 30
"""Least denominator of a day that says anything."""
MAX_FALSE = 0.05
QUIET_DAYS = 28
"""At most MAX_FALSE is the chance of a false alarm of any chart within QUIET_DAYS days."""
OVERSHOOT = 0.2
"""The largest value of x**2 / 2 * exp(-1.166 * x), x being the change in errors of a day."""
_NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Days:
    """The rates of consecutive judged days, as arrays (days,)."""

    numerator: np.ndarray
    denominator: np.ndarray
    below: np.ndarray
    """From the rate down to its 95% bound."""
    above: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> Days:
        """METRICS rows of one metric, a day each, in order, none with a denominator of 0."""
        names = ("numerator", "denominator", "value", "low", "high")
        n, d, value, low, high = (np.array([row[name] for row in rows], dtype=np.float64) for name in names)
        return cls(n, d, value - low, high - value)


def threshold(n_charts: int) -> float:
    """The sum that is an alarm, where so many charts are kept."""
    return math.log(max(1, n_charts) * QUIET_DAYS * OVERSHOOT / MAX_FALSE)


def score(days: Days, worse: int, change: float) -> tuple[float, int]:
    """How much speaks for a change that lasts until the last day, and the day on which it began.

    Args:
        days: at most WINDOW_DAYS of them.
        worse: 1 where a higher rate is worse, -1 where a lower one is.
        change: the worsening to be found soonest, a share (0.04 for four points).

    Returns:
        The largest log likelihood ratio, and the index of the day that most likely is the first of a change, of whatever
        size. 0.0 and the number of days where nothing speaks for one, or fewer than MIN_DAYS days lie before the last one.
    """
    n_days = len(days.numerator)
    first = np.arange(max(MIN_DAYS, n_days - MAX_CLIMB_DAYS), n_days)  # candidates: the change begins there
    if not first.size:
        return 0.0, n_days
    before, since = _pooled(days, first)
    difference = since[0] - before[0]
    # The sides of both intervals that lie between the two rates, as in trend.change.
    up = np.hypot(since[1], before[2])
    down = np.hypot(since[2], before[1])
    error = np.where(difference > 0, up, down) / _NORMAL_95 * _scatter(days, first, before[0])
    error = np.maximum(error, 1e-9)
    worsening = worse * difference
    ratios = change / error**2 * (worsening - change / 2)
    last = slice(max(0, n_days - STILL_DAYS), n_days)
    recent = days.numerator[last].sum() / days.denominator[last].sum()
    largest = float(np.max(np.where(worse * (recent - before[0]) > change / 2, ratios, 0.0)))
    return (largest, int(first[np.argmax(worsening / error)])) if largest > 0 else (0.0, n_days)


def _pooled(days: Days, first: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rate, and half-widths below and above it, of the days before each of `first` and of those from it on."""
    weighed = (days.denominator * days.below) ** 2, (days.denominator * days.above) ** 2
    sums = [np.cumsum(column) for column in (days.numerator, days.denominator, *weighed)]
    until = [column[first - 1] for column in sums]
    after = [column[-1] - part for column, part in zip(sums, until, strict=True)]
    return tuple(  # type: ignore[return-value]
        [
            part[0] / part[1],
            np.sqrt(np.maximum(part[2], 0)) / part[1],
            np.sqrt(np.maximum(part[3], 0)) / part[1],
        ]
        for part in (until, after)
    )


def _scatter(days: Days, first: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """How many times their errors the days before each of `first` scatter about their pooled rate; at least 1."""
    weight = (2 * _NORMAL_95 / np.maximum(days.below + days.above, 1e-9)) ** 2
    value = days.numerator / days.denominator
    w, wv, wvv = (np.cumsum(weight * value**power)[first - 1] for power in (0, 1, 2))
    chi2 = np.maximum(wvv - 2 * rate * wv + rate**2 * w, 0)
    return np.asarray(np.maximum(1.0, np.sqrt(chi2 / (first - 3))))


def examine(
    history: pl.DataFrame, day: str, metrics: Sequence[str] = DEFAULT_METRICS, change: float = 0.04
) -> dict[str, Any]:
    """What is to be said of a day: every chart with its status.

    The chart of a prompt version begins with the days of all answers before its first one: a new version is judged
    against what was there before it.

    Args:
        history: trend.HISTORY; days after `day`, and those before the window, are left aside.
        day: YYYY-MM-DD.
        metrics: names of WORSE.
        change: see `draw`.

    Returns:
        date, change, threshold, missing_days, gaps (those of the MIN_DAYS days before `day`: a change that began there does
        not show yet), small_versions, and charts: one a metric of all answers and of each prompt
        version that has MIN_COUNT answers on the day. Status is `alarm`, `quiet`, `learning` (under MIN_DAYS days before
        it), `unknown` (the day is missing or has too little: never quiet) or `empty` (an OPTIONAL metric that had nothing to
        count on any day held).
    """
    first = trend.days_before(day, WINDOW_DAYS)
    window = history.filter(pl.col("date").is_between(pl.lit(first), pl.lit(day))).sort("date")
    versions, small = _versions(window, day)
    h = threshold(len(metrics) * (1 + len(versions)))
    charts = []
    for version in (None, *versions):
        for metric in metrics:
            rows = _rows(window, metric, version)
            charts.append(
                {"metric": metric, "prompt_version": version} | _chart(rows, metric, day, change, h)
            )
    missing = _missing(window, day)
    week = trend.days_before(day, MIN_DAYS)
    return {
        "date": day,
        "change": change,
        "threshold": h,
        "missing_days": missing,
        "gaps": [date for date in missing if week <= date < day],
        "small_versions": small,
        "charts": charts,
    }


def _versions(window: pl.DataFrame, day: str) -> tuple[list[str], list[str]]:
    """The prompt versions of a day: those with enough answers for a chart, and the others."""
    rows = window.filter(
        pl.col("date") == day,
        pl.col("grouping") == "prompt_version",
        pl.col("metric") == "refusal_rate",  # its denominator is every answer
        pl.col("prompt_version").is_not_null(),
    ).sort("prompt_version")
    enough = pl.col("denominator") >= MIN_COUNT
    return rows.filter(enough)["prompt_version"].to_list(), rows.filter(~enough)["prompt_version"].to_list()


def _rows(window: pl.DataFrame, metric: str, version: str | None) -> list[dict[str, Any]]:
    mine = window.filter(pl.col("metric") == metric)
    of_all = mine.filter(pl.col("grouping") == "all")
    if version is None:
        return of_all.to_dicts()
    own = mine.filter(pl.col("grouping") == "prompt_version", pl.col("prompt_version") == version)
    begun = own["date"].min()
    if begun is None:  # nothing of this version ever counted: as with all answers
        return of_all.filter(pl.col("denominator") == 0).to_dicts()
    return [*of_all.filter(pl.col("date") < begun).to_dicts(), *own.to_dicts()]


def _chart(rows: list[dict[str, Any]], metric: str, day: str, change: float, h: float) -> dict[str, Any]:
    """What is said of one rate."""
    counted = [row for row in rows if row["denominator"] >= MIN_COUNT]
    skipped = [row for row in rows if row["denominator"] < MIN_COUNT]
    today = next((row for row in rows if row["date"] == day), None)
    n_before = len(counted) - (today in counted)
    is_empty = today is not None and metric in OPTIONAL and not any(row["denominator"] for row in rows)
    found, begun = score(Days.of(counted), WORSE[metric], change)
    status, why = ("alarm" if found > h else "quiet"), ""
    if is_empty:
        status, why = "empty", "nothing to count on any day"
    elif today not in counted:
        why = f"only {today['denominator']:,.0f} {today['per']}" if today else "nothing of that day"
        why += f"; an alarm before it, since {counted[begun]['date']}" if status == "alarm" else ""
        status = "unknown"
    elif n_before < MIN_DAYS:
        status, why = "learning", f"{n_before} of {MIN_DAYS} days before it"
    now, before = trend.pooled(counted[begun:]), trend.pooled(counted[:begun])
    return {
        "status": status,
        "why": why,
        **{name: today[name] if today else None for name in ("value", "low", "high", "denominator", "per")},
        "score": found,
        "since": counted[begun]["date"] if begun < len(counted) else None,
        "n_days": len(counted) - begun,
        "n_days_before": n_before,
        "shift": {"now": now.value} | trend.change(now, before) if now and before else None,
        "skipped_days": [
            {"date": row["date"], "why": f"{row['denominator']:,.0f} {row['per']}"} for row in skipped
        ],
    }


def _missing(window: pl.DataFrame, day: str) -> list[str]:
    """The days without any rate between the first day held and `day`, that one included."""
    held = set(window.filter(pl.col("grouping") == "all")["date"])
    start = dt.date.fromisoformat(min(held, default=day))
    n_days = (dt.date.fromisoformat(day) - start).days
    days = (str(start + dt.timedelta(days=k)) for k in range(n_days + 1))
    return [date for date in days if date not in held]
