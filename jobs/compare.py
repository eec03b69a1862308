"""Two judge series of the same claims side by side: agreement, kappa, shift of each metric, claims that flipped.

Claims are the same where request_id, claim_index and text are equal; anything else is counted and left out of
the comparison. Cohen's kappa (Cohen 1960) over the four verdicts says how far the agreement is above chance.
The module knows no judge, no date and no file, and does not say which of the two is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs.errors import InputError
from claimscore.jobs.records import Verdict

NEEDED_COLUMNS = ("request_id", "claim_index", "claim", "verdict", "p_entailment", "decided_by")
"""The columns of VERDICTS that `compare` reads."""

CONFUSION = pa.schema([("verdict_a", pa.string()), ("verdict_b", pa.string()), ("n", pa.int64())])
FLIPS = pa.schema(
    [
        ("request_id", pa.string()),
        ("claim_index", pa.int32()),
        ("claim", pa.string()),
        ("verdict_a", pa.string()),
        ("verdict_b", pa.string()),
        ("p_entailment_a", pa.float32()),
        ("p_entailment_b", pa.float32()),
        ("decided_by_a", pa.string()),
        ("decided_by_b", pa.string()),
    ]
)
SHIFTS = pa.schema(
    [
        ("grouping", pa.string()),
        ("prompt_version", pa.string()),
        ("metric", pa.string()),
        *((f"{name}_{side}", pa.float64()) for side in "ab" for name in ("value", "low", "high")),
        ("shift", pa.float64()),
    ]
)

_CLAIM_KEY = ["request_id", "claim_index"]
_METRIC_KEY = ["grouping", "prompt_version", "metric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Series a beside series b; `n_common + n_only_a` is every claim of a, and so for b."""

    n_common: int
    """Claims of both series: equal request_id, claim_index and text."""
    n_only_a: int
    """Claims of a that b does not have, those with another text in b among them."""
    n_only_b: int
    """Claims of b that a does not have, those with another text in a among them."""
    n_other_text: int
    """Pairs of claims with equal request_id and claim_index but different text: decomposed anew between the two."""
    agreement: float | None
    """Share of the common claims with equal verdicts; null where there are none."""
    kappa: float | None
    """Cohen's kappa of the common claims; null where chance agreement is 1: each series has one and the same verdict."""
    confusion: pa.Table
    """CONFUSION: all 16 pairs of verdicts with their count, in the order of `Verdict`."""
    shifts: pa.Table
    """SHIFTS: b minus a for each metric of `all` and of each prompt version; null where one has no value."""
    flips: pa.Table
    """FLIPS: the common claims whose verdicts differ, by request_id and claim_index."""


def compare(
    verdicts_a: pa.Table, verdicts_b: pa.Table, metrics_a: pa.Table, metrics_b: pa.Table
) -> Comparison:
    """Put series a and b of the same days side by side.

    The intervals are those of each value alone. The two series judged the same answers, so a shift can be
    real even where the intervals overlap.

    Args:
        verdicts_a: VERDICTS, or at least NEEDED_COLUMNS of them. Empty tables have nothing in common.
        verdicts_b: as `verdicts_a`.
        metrics_a: METRICS of one `measure`: of several days, measured over all of them at once.
        metrics_b: as `metrics_a`.

    Raises:
        InputError: a claim or a metric occurs twice in one series.
    """
    a, b = _claims(verdicts_a, "a"), _claims(verdicts_b, "b")
    paired = a.join(b, on=_CLAIM_KEY, how="inner")
    common = paired.filter(pl.col("claim_a") == pl.col("claim_b"))
    table = _confusion(common)
    differing = common.filter(pl.col("verdict_a") != pl.col("verdict_b")).sort(_CLAIM_KEY)
    agreement, kappa = _agreement(table)
    return Comparison(
        n_common=len(common),
        n_only_a=len(a) - len(common),
        n_only_b=len(b) - len(common),
        n_other_text=len(paired) - len(common),
        agreement=agreement,
        kappa=kappa,
        confusion=_confusion_rows(table),
        shifts=_shifts(metrics_a, metrics_b),
        flips=_arrow(differing.rename({"claim_a": "claim"}), FLIPS),
    )


def _claims(verdicts: pa.Table, side: str) -> pl.DataFrame:
    """The needed columns, those that are compared with the suffix of their series."""
    frame = pl.DataFrame(pl.from_arrow(verdicts.select(NEEDED_COLUMNS)))
    _refuse_repeats(frame, _CLAIM_KEY, side, "store each claim's verdict once")
    return frame.rename({name: f"{name}_{side}" for name in NEEDED_COLUMNS if name not in _CLAIM_KEY})


def _refuse_repeats(frame: pl.DataFrame, key: list[str], side: str, remedy: str) -> None:
    repeated = frame.filter(pl.struct(key).is_duplicated())
    if len(repeated):
        first = repeated.sort(key).row(0, named=True)
        named = ", ".join(f"{name} {first[name]!r}" for name in key)
        raise InputError(f"compare: series {side} has {named} more than once, expected once; {remedy}")


def _confusion(common: pl.DataFrame) -> np.ndarray:
    """int64 (4, 4): claims by verdict of a (rows) and b (columns), in the order of `Verdict`."""
    verdicts = pl.Enum([verdict.value for verdict in Verdict])  # an unknown verdict is an error, not a gap
    rows = common["verdict_a"].cast(verdicts).to_physical().to_numpy().astype(np.int64)
    columns = common["verdict_b"].cast(verdicts).to_physical().to_numpy().astype(np.int64)
    n = len(Verdict)
    return np.bincount(rows * n + columns, minlength=n * n).reshape(n, n)


def _agreement(table: np.ndarray) -> tuple[float | None, float | None]:
    """Share of equal verdicts and Cohen's kappa, (observed - chance) / (1 - chance), in whole numbers until the end."""
    n = int(table.sum())
    if n == 0:
        return None, None
    equal = int(np.trace(table))
    by_chance = int(table.sum(axis=1) @ table.sum(axis=0))  # n**2 times the chance agreement
    kappa = None if by_chance == n * n else (equal * n - by_chance) / (n * n - by_chance)
    return equal / n, kappa


def _confusion_rows(table: np.ndarray) -> pa.Table:
    names = [verdict.value for verdict in Verdict]
    return pa.table(
        [
            pa.array([a for a in names for _ in names], pa.string()),
            pa.array(names * len(names), pa.string()),
            pa.array(table.ravel(), pa.int64()),
        ],
        schema=CONFUSION,
    )


def _shifts(metrics_a: pa.Table, metrics_b: pa.Table) -> pa.Table:
    """Metrics of `all` and of each prompt version, in the order of a, then what only b has."""
    sides = []
    for side, metrics in (("a", metrics_a), ("b", metrics_b)):
        frame = pl.DataFrame(pl.from_arrow(metrics.select([*_METRIC_KEY, "value", "low", "high"])))
        frame = frame.filter(pl.col("grouping").is_in(["all", "prompt_version"]))
        _refuse_repeats(frame, _METRIC_KEY, side, "measure all the days compared at once")
        frame = frame.rename({name: f"{name}_{side}" for name in ("value", "low", "high")})
        sides.append(frame.with_row_index(f"place_{side}"))
    both = sides[0].join(sides[1], on=_METRIC_KEY, how="full", coalesce=True, nulls_equal=True)
    both = both.with_columns(shift=pl.col("value_b") - pl.col("value_a"))
    return _arrow(both.sort("place_a", "place_b", nulls_last=True), SHIFTS)


def _arrow(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    return frame.select(schema.names).to_arrow().cast(schema)
