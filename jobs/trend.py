"""Rates of a day beside those of the days before: changes with intervals, lines over days, first days of a version.

A rate of several days is its summed numerators over its summed denominators. The interval of a change is made of
the intervals of both rates by MOVER (Zou and Donner 2008, "Construction of confidence limits about effect
measures"), which keeps their skew near 0 and 1. It takes days for alike but for chance, so weekdays that differ are
told as changes. The module knows no answer, no claim and no file.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs.records import METRICS

HISTORY = METRICS.insert(0, pa.field("date", pa.string(), nullable=False))
"""METRICS rows of several days, each with its day, YYYY-MM-DD."""

HEADLINES: tuple[tuple[str, str, str], ...] = (
    ("hallucination_rate", "Hallucination rate", "lower"),
    ("groundedness", "Groundedness", "higher"),
    ("citation_precision", "Citation precision", "higher"),
    ("refusal_rate", "Refusal rate", "either"),
    ("over_refusal_rate", "Over-refusal rate", "lower"),
    ("unscored_rate", "Unscored claims", "lower"),
)
"""(metric, its name for people, which way is better) of the first screen, in its order."""

TRAILING_DAYS = (7, 28)
MAX_LINES = 6
_LINE_METRICS = ("hallucination_rate", "groundedness")


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its 95% interval and what it was counted over."""

    value: float
    low: float
    high: float
    denominator: float


JUDGING = "judging"
"""The kind of a deploy that is not the log's: from that day on the rates themselves are made otherwise."""


def days_before(day: str, n: int) -> str:
    """The day `n` days before `day`, both YYYY-MM-DD; the calendar's first where it begins later."""
    return str(dt.date.fromordinal(max(1, dt.date.fromisoformat(day).toordinal() - n)))


def pooled(rows: Sequence[dict[str, Any]]) -> Rate | None:
    """The rate of several METRICS rows of one metric; None where nothing was counted.

    The half-widths of the days add up as independent ones do, each weighted with its share of the denominator.
    """
    counted = [row for row in rows if row["denominator"] > 0]
    total = sum(row["denominator"] for row in counted)
    if not total:
        return None
    value = sum(row["numerator"] for row in counted) / total
    below, above = (
        math.sqrt(sum((row["denominator"] / total * (row[end] - row["value"])) ** 2 for row in counted))
        for end in ("low", "high")
    )
    return Rate(value, value - below, value + above, total)


def change(now: Rate, before: Rate) -> dict[str, Any]:
    """`now` less `before` with its 95% interval; `is_clear` where that leaves out 0."""
    difference = now.value - before.value
    low = difference - math.hypot(now.value - now.low, before.high - before.value)
    high = difference + math.hypot(now.high - now.value, before.value - before.low)
    return {
        "before": before.value,
        "change": difference,
        "low": low,
        "high": high,
        "is_clear": low > 0 or high < 0,
    }


def headlines(history: pl.DataFrame, day: str) -> list[dict[str, Any]]:
    """The rates of the first screen, each with its changes against the days before that the output holds.

    Args:
        history: HISTORY of the day and of days before it; other groupings than `all` are left aside.
        day: YYYY-MM-DD. Without rows of that day every rate is null.
    """
    of_all = history.filter(pl.col("grouping") == "all")
    spans = _spans(sorted(set(of_all["date"]) - {day}), day)
    out = []
    for metric, label, better in HEADLINES:
        rows = of_all.filter(pl.col("metric") == metric).to_dicts()
        today = next((row for row in rows if row["date"] == day), None)
        now = pooled([today] if today else [])
        changes = []
        for name, days in spans:
            before = pooled([row for row in rows if row["date"] in days])
            if now and before:
                changes.append({"against": name, "n_days": len(days)} | change(now, before))
        out.append(
            {"metric": metric, "label": label, "better": better}
            | {name: getattr(now, name, None) for name in ("value", "low", "high")}
            | {
                "denominator": now.denominator if now else 0.0,
                "per": today["per"] if today else "",
                "changes": changes,
            }
        )
    return out


def _spans(earlier: list[str], day: str) -> list[tuple[str, set[str]]]:
    """What to compare with: the last day held, then weeks; a span that adds no day to the one before is left out."""
    if not earlier:
        return []
    spans = [(earlier[-1], {earlier[-1]})]
    for n_days in TRAILING_DAYS:
        first = days_before(day, n_days)
        held = {date for date in earlier if date >= first}
        if len(held) > len(spans[-1][1]):
            few = f" ({len(held)} held)" if len(held) < n_days else ""
            spans.append((f"the {n_days} days before{few}", held))
    return spans


def lines(history: pl.DataFrame, grouping: str) -> list[dict[str, Any]]:
    """The rates over the days of each group of one grouping, the largest MAX_LINES groups by their last days.

    Returns:
        One dict a line: name (None: the answers name none), n (answers), points: a dict a day. Empty for no rows.
    """
    rows = history.filter(pl.col("grouping") == grouping)
    names = pl.lit(None, pl.String) if grouping == "all" else pl.col(grouping)
    rows = rows.with_columns(name=names)
    volume = rows.filter(pl.col("metric") == "refusal_rate")  # its denominator is every answer
    sizes = volume.group_by("name").agg(
        pl.col("date").max(),
        pl.col("denominator").sort_by("date").last().alias("last"),
        n=pl.col("denominator").sum(),
    )
    sizes = sizes.sort(["date", "last", "name"], descending=[True, True, False], nulls_last=True)
    out = []
    for name, n in sizes.head(MAX_LINES).select("name", "n").iter_rows():
        mine = rows.filter(
            pl.col("name").eq_missing(name), pl.col("metric").is_in([*_LINE_METRICS, "refusal_rate"])
        )
        points: dict[str, dict[str, Any]] = {}
        for row in mine.sort("date").to_dicts():
            point = points.setdefault(row["date"], {"date": row["date"], "n_answers": 0})
            if row["metric"] == "refusal_rate":
                point["n_answers"] = int(row["denominator"])
            else:
                point[row["metric"]] = [row["value"], row["low"], row["high"]]
        out.append({"name": name, "n": int(n), "points": list(points.values())})
    return out


def deploys(history: pl.DataFrame) -> list[dict[str, str]]:
    """The first day of each prompt version and model that the first day held does not have yet, by day."""
    if history.is_empty():
        return []
    first_held = history["date"].min()
    out = []
    for grouping in ("prompt_version", "model"):
        rows = history.filter(pl.col("grouping") == grouping, pl.col(grouping).is_not_null())
        firsts = rows.group_by(grouping).agg(pl.col("date").min()).filter(pl.col("date") > first_held)
        out += [{"date": date, "kind": grouping, "name": name} for name, date in firsts.iter_rows()]
    return sorted(out, key=lambda deploy: (deploy["date"], deploy["kind"], deploy["name"]))


def volumes(history: pl.DataFrame) -> list[dict[str, Any]]:
    """Answers, claims and unscored claims of every day held, by day."""
    rows = history.filter(
        pl.col("grouping") == "all", pl.col("metric").is_in(["refusal_rate", "unscored_rate"])
    )
    out: dict[str, dict[str, Any]] = {}
    for row in rows.sort("date").to_dicts():
        day = out.setdefault(
            row["date"], {"date": row["date"], "n_answers": 0, "n_claims": 0, "n_unscored": 0}
        )
        if row["metric"] == "refusal_rate":
            day["n_answers"] = int(row["denominator"])
        else:
            day |= {"n_claims": int(row["denominator"]), "n_unscored": int(row["numerator"])}
    return list(out.values())
