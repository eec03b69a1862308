"""Which claims of a night people should label, and how many claims each of them stands for.

Claims near the threshold and those that the job itself is in doubt about are drawn more often, and flagged and supported
ones about equally; topics and prompt versions come in their proportions, because the draw is systematic along claims
sorted by them (Madow 1949, probability proportional to size). Every claim can be drawn, with a known probability, so weights
make rates over the labels rates over the night. Deterministic for a seed. Knows no file and no text.
"""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from claimscore.jobs.records import Rule, Verdict
from claimscore.jobs.trust import Floats, log_odds

NEEDED_COLUMNS = (
    *("request_id", "claim_index", "verdict", "support", "decided_by", "conflict", "low_consistency"),
    *("topic", "prompt_version"),
)
REASONS = ("near_threshold", "conflict", "low_consistency", "rule", "spread")
"""Why a claim is in the sheet; the first that holds. `rule`: the judge said yes and a rule said no."""
DOUBTFUL = 3.0
"""How much likelier a claim in doubt is drawn than another of its verdict."""


def choose(claims: pl.DataFrame, n: int, *, threshold: float, temperature: float, seed: int) -> pl.DataFrame:
    """Draw `n` claims, or all where there are no more.

    Args:
        claims: NEEDED_COLUMNS and any others; scored claims alone, keys unique.
        n: how many.
        threshold: P(entailment) in force.
        temperature: of the judge card: near is within one unit of tempered log-odds.
        seed: another seed, another draw.

    Returns:
        The rows drawn with `reason` and `weight`, in an order that tells nothing of topic or verdict.
    """
    keys = [
        _digest(seed, f"{request_id}\0{index}")
        for request_id, index in zip(
            claims["request_id"].to_list(), claims["claim_index"].to_list(), strict=True
        )
    ]
    frame = claims.with_columns(
        pl.Series("draw_key", keys, dtype=pl.String),
        reason=_reason(claims, threshold, temperature),
        flagged=pl.col("verdict") != Verdict.SUPPORTED.value,
    ).sort("flagged", "topic", "prompt_version", "draw_key", nulls_last=False)
    size = np.where(frame["reason"].to_numpy() == "spread", 1.0, DOUBTFUL)
    flagged = frame["flagged"].to_numpy()
    for side in (flagged, ~flagged):  # half of the draw each, as far as there are so many
        if side.any():
            size[side] /= size[side].sum()
    chances = inclusion_chances(size, n)
    start = int(_digest(seed, "start"), 16) / 16**16
    steps = np.floor(np.cumsum(chances) + start + 1e-9)
    drawn = np.diff(steps, prepend=np.floor(start + 1e-9)) >= 1
    weights = np.divide(1.0, chances, out=np.ones_like(chances), where=chances > 0)
    chosen = frame.with_columns(pl.Series("weight", weights)).filter(pl.Series(drawn, dtype=pl.Boolean))
    return chosen.sort("draw_key").drop("draw_key", "flagged")


def inclusion_chances(size: Floats, n: int) -> Floats:
    """The chance of each claim to be among `n`, in proportion to its size but at most 1; they sum to min(n, N)."""
    chances: Floats = np.zeros(len(size))
    certain = np.zeros(len(size), bool)
    if n >= len(size):
        return np.ones(len(size))
    while True:
        left = n - int(certain.sum())
        rest = size[~certain].sum()
        chances[~certain] = left * size[~certain] / rest if rest > 0 else 0.0
        chances[certain] = 1.0
        over = (chances > 1) & ~certain
        if not over.any():
            return chances
        certain |= over


def _reason(claims: pl.DataFrame, threshold: float, temperature: float) -> pl.Series:
    p = claims["support"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    away = np.abs(log_odds(p) - log_odds(np.array([threshold]))) / temperature
    rules = [Rule.NUMBER_VETO.value, Rule.SUBJECT_VETO.value, Rule.RIVAL_VALUE.value]
    return claims.select(
        pl.when(pl.Series(np.nan_to_num(away, nan=np.inf) < 1))
        .then(pl.lit(REASONS[0]))
        .when(pl.col("conflict"))
        .then(pl.lit(REASONS[1]))
        .when(pl.col("low_consistency"))
        .then(pl.lit(REASONS[2]))
        .when(pl.col("decided_by").is_in(rules))
        .then(pl.lit(REASONS[3]))
        .otherwise(pl.lit(REASONS[4]))
        .alias("reason")
    ).to_series()


def _digest(seed: int, text: str) -> str:
    """16 hex digits that depend on seed and text alone."""
    return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
