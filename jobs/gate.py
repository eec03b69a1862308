"""Whether answers are really worse than a baseline's: a test that takes a drop for one and noise for noise.

A metric fails where its drop is larger than allowed and its lower bound is above 0: a one-sided 95% bound, shared
out among the metrics, by a Poisson bootstrap of whole questions (Chamandy et al. 2012). Where both sides answer the same
questions they are compared question by question, for what makes a question hard then cancels out; else as two samples.
The module knows no day and no file, and not why the two sides differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs.errors import InputError
from claimscore.jobs.frames import as_frame
from claimscore.jobs.metrics import POISSON
from claimscore.jobs.records import AnswerState

NEEDED_COLUMNS = (
    *("question", "state", "prompt_version", "model", "hallucinated", "n_claims", "n_scored", "n_supported"),
    *("n_unscored", "n_cited_claims", "n_citation_ok", "answerable"),
)
"""The columns of ANSWERS that `judge` reads, and those that a caller picks a side by."""

LEVEL = 0.05
POWER = 0.8
MIN_ANSWERS = 30
"""A bootstrap of fewer says too much."""
MIN_PAIRED_SHARE = 0.8
"""Of both sides' answers, the share whose question the other side has too, for a comparison question by question."""
MAX_UNSCORED_RISE = 0.1

SEED = 20_240_601
_N_RESAMPLES = 2_000
_BLOCK = 1_024
_refused = pl.col("state") == AnswerState.REFUSAL

METRICS: dict[str, tuple[pl.Expr, pl.Expr, bool]] = {
    "groundedness": (pl.col("n_supported"), pl.col("n_scored"), True),
    "hallucination_rate": (pl.col("hallucinated"), pl.col("hallucinated").is_not_null(), False),
    "citation_precision": (pl.col("n_citation_ok"), pl.col("n_cited_claims"), True),
    "refusal_rate": (_refused, pl.lit(1), False),
    "over_refusal_rate": (pl.col("answerable") & _refused, pl.col("answerable"), False),
    "refusal_correctness": (~pl.col("answerable") & _refused, ~pl.col("answerable"), True),
}
"""Metric -> what is counted in an answer, over what, and whether more is better; as `metrics` defines them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One metric of candidate and baseline."""

    metric: str
    baseline: float
    candidate: float
    drop: float
    """How much worse the candidate is, in shares; below 0: better."""
    bound: float
    """The drop is at least this, at the level shared out among the metrics."""
    visible: float
    """The smallest drop that so many answers show four times in five."""
    failed: bool


def judge(
    baseline: pa.Table, candidate: pa.Table, metrics: tuple[str, ...], max_drop: float, seed: int = SEED
) -> dict[str, Any]:
    """Compare the two sides' answers.

    Args:
        baseline: ANSWERS, or at least their NEEDED_COLUMNS.
        candidate: the same of the side that may be worse.
        metrics: names of METRICS.
        max_drop: the allowed drop, as a share: 0.02 for two points.
        seed: of the resampling.

    Returns:
        outcomes (a list of `Outcome`), n_paired (questions compared one by one; 0: two samples), n_baseline,
        n_candidate (answers), unscored (their shares of unscored claims), failures (a line each; none: passed).

    Raises:
        InputError: a side has fewer than MIN_ANSWERS answers, or a metric has nothing to count on one: a gate that cannot
            see must not open.
    """
    sides = _sides(baseline, candidate)
    counts = [_per_question(side, metrics) for side in sides]
    paired = _paired(counts, [len(side) for side in sides])
    random = np.random.default_rng(seed)
    resampled = _resample_pairs(paired, random) if paired else [_resample(_values(c), random) for c in counts]
    outcomes = [
        _outcome(name, k, resampled, max_drop, LEVEL / len(metrics)) for k, name in enumerate(metrics)
    ]
    unscored = [_unscored(side) for side in sides]
    return {
        "outcomes": outcomes,
        "n_paired": len(paired[0]) if paired else 0,
        "n_baseline": len(sides[0]),
        "n_candidate": len(sides[1]),
        "unscored": unscored,
        "failures": _failures(outcomes, unscored, max_drop),
    }


def _sides(baseline: pa.Table, candidate: pa.Table) -> list[pl.DataFrame]:
    """Both as frames, each large enough."""
    sides = [as_frame(table) for table in (baseline, candidate)]
    for name, side in zip(("baseline", "candidate"), sides, strict=True):
        if len(side) < MIN_ANSWERS:
            raise InputError(
                f"gate: the {name} has {len(side)} answers, expected at least {MIN_ANSWERS}; take more days or a larger group"
            )
    return sides


def _per_question(side: pl.DataFrame, metrics: tuple[str, ...]) -> pl.DataFrame:
    """question, n answers, and each metric's numerator and denominator, added up over the question's answers.

    Answers whose question the log does not tell are questions of their own.
    """
    sums = [
        expression.cast(pl.Float64).fill_null(0.0).alias(f"{part}{k}")
        for k, name in enumerate(metrics)
        for part, expression in zip("nd", METRICS[name][:2], strict=True)
    ]
    alone = pl.format("\0{}", pl.int_range(pl.len()))
    key = pl.col("question").str.strip_chars().str.to_lowercase().fill_null(alone).alias("question")
    return side.select(key, *sums, n=pl.lit(1)).group_by("question").sum().sort("question")


def _values(counts: pl.DataFrame) -> np.ndarray:
    """float64 (questions, 2 * metrics): numerator and denominator of each metric."""
    return counts.drop("question", "n").to_numpy().astype(np.float64)


def _paired(counts: list[pl.DataFrame], sizes: list[int]) -> list[np.ndarray] | None:
    """The values of the questions that both sides have, in one order; None where those are too few."""
    common = counts[0].select("question").join(counts[1].select("question"), on="question").sort("question")
    common = common.filter(~pl.col("question").str.starts_with("\0"))
    both = [common.join(side, on="question", maintain_order="left") for side in counts]
    enough = all(side["n"].sum() >= MIN_PAIRED_SHARE * size for side, size in zip(both, sizes, strict=True))
    return [_values(side) for side in both] if enough and len(common) >= MIN_ANSWERS else None


def _resample(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Sums (1 + resamples, columns) over questions, the plain ones in row 0."""
    sums = np.zeros((1 + _N_RESAMPLES, values.shape[1]))
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        sums[0] += block.sum(axis=0)
        draws = random.integers(0, len(POISSON), size=(_N_RESAMPLES, len(block)), dtype=np.uint16)
        sums[1:] += POISSON[draws] @ block
    return sums


def _resample_pairs(paired: list[np.ndarray], random: np.random.Generator) -> list[np.ndarray]:
    """As `_resample` of both sides, a question counting equally often on both."""
    sums = _resample(np.concatenate(paired, axis=1), random)
    return [sums[:, : paired[0].shape[1]], sums[:, paired[0].shape[1] :]]


def _outcome(metric: str, k: int, sides: list[np.ndarray], max_drop: float, level: float) -> Outcome:
    """The drop of one metric with its bound."""
    for name, side in zip(("baseline", "candidate"), sides, strict=True):
        if side[0, 2 * k + 1] == 0:
            raise InputError(
                f"gate: {metric} has nothing to count in the {name}, expected something; gate on another metric"
            )
    with np.errstate(invalid="ignore", divide="ignore"):
        baseline, candidate = (side[:, 2 * k] / side[:, 2 * k + 1] for side in sides)
    drops = baseline - candidate if METRICS[metric][2] else candidate - baseline
    spread = drops[1:][np.isfinite(drops[1:])]
    bound = float(np.quantile(spread, level))
    sd, more = float(spread.std()), NormalDist().inv_cdf(POWER)
    return Outcome(
        metric=metric,
        baseline=float(baseline[0]),
        candidate=float(candidate[0]),
        drop=float(drops[0]),
        bound=bound,
        visible=max(max_drop, NormalDist().inv_cdf(1 - level) * sd) + more * sd,
        failed=bool(drops[0] > max_drop and bound > 0),
    )


def _unscored(side: pl.DataFrame) -> float:
    n_claims, n_unscored = (int(side[name].sum()) for name in ("n_claims", "n_unscored"))
    return n_unscored / n_claims if n_claims else 0.0


def _failures(outcomes: list[Outcome], unscored: list[float], max_drop: float) -> list[str]:
    lines = [
        f"{o.metric} is {100 * o.drop:.1f} points worse ({o.baseline:.1%} to {o.candidate:.1%}), {100 * max_drop:g} are allowed"
        for o in outcomes
        if o.failed
    ]
    if unscored[1] - unscored[0] > MAX_UNSCORED_RISE:
        lines.append(
            f"{unscored[1]:.1%} of the claims are unscored, {unscored[0]:.1%} in the baseline: the rates cannot be compared"
        )
    return lines
