"""A day's finished tables -> one plain document that every form of the report is made from.

What a team asks in the morning, in its order: may the night be trusted, how good was it and is that a change, where
does what is wrong concentrate, which answers to read first. The document holds only dicts, lists, text and numbers;
text of logs is in it as it was written, only cut. The module knows no file, no format and no threshold of a run.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs import concentration, flagged, report_words, trend
from claimscore.jobs.counting import once
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import AnswerState, Verdict

FORMAT = 1
"""Raised when a program that reads the JSON form would have to change."""

FEW_ANSWERS = 30
UNSCORED_ALARM = 0.1
QUARANTINE_ALARM = 0.01
MAX_FLIPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What the output holds of a day of one series, and of the days before."""

    date: str
    series: str
    is_current: bool
    """Whether dashboards read this series."""
    answers: pa.Table
    """ANSWERS of the day."""
    verdicts: pa.Table
    """VERDICTS of the day; a claim that its answer repeats is counted once."""
    history: pa.Table
    """trend.HISTORY of the day and of days before it."""
    otherwise: Mapping[str, list[str]]
    """Days of the history that were made otherwise than the day -> what differs (recipes.py)."""
    borders: Mapping[str, list[str]]
    """Days of the history that were made otherwise than the one before them -> what differs."""
    quarantined: dict[str, int]
    """Reason -> rows of the day that could not be used."""
    n_shards: int
    """Shards of the day that have claims."""
    n_unfinished: int
    """Those of them without answers in this series."""
    out: str
    """The output root, as a command takes it in any folder."""


def collect(night: Night, comparison: dict[str, Any] | None = None) -> dict[str, Any]:
    """The whole report as one document; JSON can hold it.

    Empty tables give a document that says that nothing is known.

    Args:
        night: the day's tables.
        comparison: a document of `reports.compare_series` over that day, the reported series being its first.
    """
    answers, history = (_with_short_names(as_frame(table)) for table in (night.answers, night.history))
    verdicts = as_frame(night.verdicts)
    counted = once(verdicts)
    ranked = flagged.rank(answers, verdicts)
    volume = _volume(night, answers, counted, history) | {"n_repeats": len(verdicts) - len(counted)}
    deploys = [*trend.deploys(history), *_borders(night.borders)]
    alike = history.filter(~pl.col("date").is_in(list(night.otherwise)))
    n_flagged = len(flagged.once_flagged(verdicts))
    listed = flagged.rows(ranked, verdicts)
    return {
        "format": FORMAT,
        "date": night.date,
        "series": night.series,
        "is_current": night.is_current,
        "out": night.out,
        "notices": _notices(night, volume, deploys),
        "volume": volume,
        "rates": trend.headlines(alike, night.date),
        "lines": {name: trend.lines(history, name) for name in ("all", "prompt_version", "model")},
        "deploys": sorted(deploys, key=lambda deploy: deploy["date"]),
        "concentration": concentration.concentrate(answers, counted),
        "worst": flagged.worst(ranked, verdicts),
        "n_flagged_answers": len(ranked),
        "flagged": listed,
        "n_flagged": n_flagged,
        "comparison": _comparison(comparison),
    }


def _borders(borders: Mapping[str, list[str]]) -> list[dict[str, str]]:
    """The days from which on rates are made otherwise than on the day held before them, as deploys."""
    return [
        {
            "date": day,
            "kind": trend.JUDGING,
            "name": f"judging otherwise: {report_words.names_in_words(names)}",
        }
        for day, names in borders.items()
    ]


def _with_short_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Names of groups cut to what a page can hold; a log may have anything in them."""
    limit = flagged.MAX_CHARS["id"]
    names = [pl.col(name) for name in concentration.DIMENSIONS]
    cut = [pl.format("{}…", name.str.slice(0, limit)) for name in names]
    is_long = [name.str.len_chars() > limit for name in names]
    return frame.with_columns(
        pl.when(when).then(then).otherwise(name).name.keep()
        for when, then, name in zip(is_long, cut, names, strict=True)
    )


def _volume(
    night: Night, answers: pl.DataFrame, verdicts: pl.DataFrame, history: pl.DataFrame
) -> dict[str, Any]:
    """How much there was, and how much of it could be judged."""
    days = trend.volumes(history)
    earlier = [day["n_answers"] for day in days if day["date"] < night.date]
    unscored = verdicts.filter(pl.col("verdict") == Verdict.UNSCORED)
    return {
        "n_answers": len(answers),
        "n_judged": int(answers["hallucinated"].is_not_null().sum()),
        "n_claims": len(verdicts),
        "n_unscored": len(unscored),
        "n_quarantined": sum(night.quarantined.values()),
        "states": _count(answers, "state", [state.value for state in AnswerState]),
        "verdicts": _count(verdicts, "verdict", [verdict.value for verdict in Verdict]),
        "actions": _count(answers, "action", []),
        "unscored_reasons": _count(unscored, "reason", []),
        "quarantine_reasons": dict(sorted(night.quarantined.items())),
        "days": days,
        "usual_answers": statistics.median(earlier) if earlier else None,
        "n_earlier_days": len(earlier),
    }


def _count(frame: pl.DataFrame, column: str, order: list[str]) -> dict[str, int]:
    """Values with their rows: those of `order` first, even at 0, then the rest by name."""
    counted = dict(frame.group_by(column).len().sort(column, nulls_last=True).iter_rows())
    counts = {name: counted.pop(name, 0) for name in order}
    return counts | {str(name): n for name, n in counted.items()}


def _notices(night: Night, volume: dict[str, Any], deploys: list[dict[str, str]]) -> list[dict[str, str]]:
    """What a reader must know before any figure: (level, text); `stop` first, then `warn`, then `note`."""
    found = [*_trust(night, volume), *_unusual(night, volume)]
    for deploy in deploys:
        if deploy["date"] == night.date and deploy["kind"] != trend.JUDGING:
            kind = deploy["kind"].replace("_", " ")
            found.append(("note", f"First day of {kind} {deploy['name']}"))
    if not volume["n_earlier_days"]:
        found.append(("note", "The output holds no earlier day of this series: no change can be told"))
    if not night.is_current:
        found.append(("note", f"{night.series} is not the series that dashboards read"))
    order = ("stop", "warn", "note")
    return [{"level": level, "text": text} for level, text in sorted(found, key=lambda x: order.index(x[0]))]


def _trust(night: Night, volume: dict[str, Any]) -> list[tuple[str, str]]:
    """Why the rates say little or nothing."""
    n_answers, n_claims, n_unscored = volume["n_answers"], volume["n_claims"], volume["n_unscored"]
    if n_answers == 0:
        return [
            ("stop", f"No answer of {night.date} was checked: this is not a good night, it is an unknown one")
        ]
    states = volume["states"]
    n_without = sum(
        states[state] for state in (AnswerState.REFUSAL, AnswerState.EMPTY_ANSWER, AnswerState.NO_CLAIMS)
    )
    if volume["n_judged"] == 0 and n_without == n_answers:
        return [
            (
                "stop",
                f"None of {n_answers:,} answers claims anything ({_listed(states)}): the rates say nothing",
            )
        ]
    if volume["n_judged"] == 0:
        reasons = _listed(volume["unscored_reasons"] or states)
        return [("stop", f"None of {n_answers:,} answers could be judged ({reasons}): the rates say nothing")]
    found = []
    if n_unscored > UNSCORED_ALARM * n_claims:
        reasons = _listed(volume["unscored_reasons"])
        found.append(("warn", f"{n_unscored / n_claims:.0%} of the claims could not be judged ({reasons})"))
    if volume["n_judged"] < FEW_ANSWERS:
        # A refusal asserts nothing: it is no answer that could not be judged.
        n_claiming = max(n_answers - n_without, volume["n_judged"])
        all_of_them = report_words.counted(n_claiming, "answer")
        few = f"Only {all_of_them} with claims to judge"
        if volume["n_judged"] < n_claiming:
            few = f"Only {volume['n_judged']:,} of {all_of_them} with claims could be judged"
        found.append(("warn", f"{few}: look at the intervals first"))
    return found


def _unusual(night: Night, volume: dict[str, Any]) -> list[tuple[str, str]]:
    """What is missing of the day."""
    found = []
    n_answers, usual = volume["n_answers"], volume["usual_answers"]
    if night.n_unfinished:
        found.append(
            (
                "warn",
                f"{night.n_unfinished} of {night.n_shards} shards have no answers yet: run the day again",
            )
        )
    if usual and n_answers < usual / 2:
        found.append(
            (
                "warn",
                f"{n_answers:,} answers; {usual:,.0f} are usual ({volume['n_earlier_days']} days before)",
            )
        )
    if night.otherwise:
        spanned, names, again = report_words.otherwise_words(night.otherwise, is_current=night.is_current)
        found.append(
            (
                "warn",
                f"No change is told against {spanned}, made otherwise ({names}); to compare: {again}",
            )
        )
    if volume["n_quarantined"] > QUARANTINE_ALARM * (n_answers + volume["n_quarantined"]):
        reasons = _listed(volume["quarantine_reasons"])
        found.append(("warn", f"Of the log {volume['n_quarantined']:,} rows were quarantined ({reasons})"))
    return found


def _listed(counts: dict[str, int]) -> str:
    """Counts in words, the largest first."""
    largest = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {n:,}" for name, n in largest if n) or "no reason given"


def _comparison(compared: dict[str, Any] | None) -> dict[str, Any] | None:
    """The other series: agreement, the shifts of the first screen's rates, and the first flips."""
    if compared is None:
        return None
    shown = [metric for metric, _, _ in trend.HEADLINES]
    shifts = [s for s in compared["shifts"] if s["grouping"] == "all" and s["metric"] in shown]
    flips = [flip | {"claim": flagged.cut(flip["claim"], "claim")} for flip in compared["flips"][:MAX_FLIPS]]
    return {
        "series": compared["series_b"],
        "n_common": compared["n_common"],
        "n_only_here": compared["n_only_a"],
        "n_only_there": compared["n_only_b"],
        "agreement": compared["agreement"],
        "kappa": compared["kappa"],
        "shifts": sorted(shifts, key=lambda shift: shown.index(shift["metric"])),
        "n_flips": len(compared["flips"]),
        "flips": flips,
    }
