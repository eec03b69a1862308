"""Logged and replayed answers beside each other: rates of both, the gate over both, and what weakens the comparison.

Only questions that have both answers are compared. It knows no file and no model.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import gate, metrics
from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.errors import InputError

MAX_FAILED = 0.1
"""Of the questions asked, the share without an answer above which the rest says too little."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sides:
    """ANSWERS of the questions that have both."""

    logged: pa.Table
    replayed: pa.Table
    n_read: int
    """Answers of both sides before questions with one only were left out."""

    @classmethod
    def of(cls, answers: pa.Table, ids: list[str], prompt_version: str) -> Self:
        """Told apart by the request ids that were asked; those of new answers are as `replay.new_answers` makes them."""
        is_logged = pc.is_in(answers.column("request_id"), value_set=pa.array(ids, pa.string()))
        logged, replayed = answers.filter(is_logged), answers.filter(pc.invert(is_logged))
        mark = "~" + prompt_version.rpartition("-")[2]
        answered = [i.removesuffix(mark) for i in replayed.column("request_id").to_pylist()]
        has_both = pc.is_in(logged.column("request_id"), value_set=pa.array(answered, pa.string()))
        return cls(logged.filter(has_both), replayed, answers.num_rows)


def compare(
    sides: Sides,
    *,
    n_asked: int,
    n_answered: int,
    failures: list[str],
    names: tuple[str, ...],
    max_drop: float,
    config: MetricsConfig,
) -> dict[str, Any]:
    """Judge the sides.

    Args:
        sides: both.
        n_asked: questions asked.
        n_answered: those with a new answer.
        failures: of the run that scored both.
        names: metrics of the gate.
        max_drop: the allowed drop, as a share.
        config: resamples and seed of the rates.

    Returns:
        logged, replayed (metric -> value, low, high, n, per), gate (as `gate.judge`, with max_drop; None: it could not
        judge), warnings, failures.
    """
    out = list(failures)
    share = 1 - n_answered / n_asked
    if share > MAX_FAILED:
        out.append(
            f"{share:.1%} of the questions got no answer, expected at most {MAX_FAILED:.0%}: the rest says too little"
        )
    judged = None
    try:
        judged = gate.judge(sides.logged, sides.replayed, names, max_drop)
        judged |= {"outcomes": [dataclasses.asdict(o) for o in judged["outcomes"]], "max_drop": max_drop}
        out += judged["failures"]
    except InputError as err:
        out.append(f"not judged: {err}")
    logged, replayed = (_rates(side, config) for side in (sides.logged, sides.replayed))
    warnings = _warnings(sides.n_read, n_asked + n_answered)
    if "refusal_rate" not in names:
        warnings += _refusals(logged, replayed, max_drop)
    return {"logged": logged, "replayed": replayed, "gate": judged, "warnings": warnings, "failures": out}


def _warnings(n_read: int, n_expected: int) -> list[str]:
    lost = n_expected - n_read
    return [f"{lost} answers are not in the rates: quarantined, or their shard failed"] if lost else []


def _refusals(logged: dict[str, Any], replayed: dict[str, Any], max_drop: float) -> list[str]:
    """That the new side refuses more, where the gate does not look at it."""
    if not (logged and replayed):
        return []
    before, now = logged["refusal_rate"]["value"], replayed["refusal_rate"]["value"]
    told = f"{now:.1%} are refusals, {before:.1%} of the logged answers: who says nothing is well grounded"
    return [f"{told}; gate on --metric refusal_rate too"] if now - before > max_drop else []


def _rates(answers: pa.Table, config: MetricsConfig) -> dict[str, dict[str, Any]]:
    rows = metrics.measure(answers, config).filter(pc.field("grouping") == "all").to_pylist()
    return {
        row["metric"]: {name: row[name] for name in ("value", "low", "high", "per")}
        | {"n": row["denominator"]}
        for row in rows
        if row["denominator"]
    }
