"""What each judged pair means for its claim, and the best pair of each meaning.

A pair supports its claim where the premise entails it, holds its values (number veto) and has no value of its own that the
judge believes more in the claim (rivals.py). Each pair is looked at alone: one irrelevant chunk more never changes what
another pair means. The module knows no verdict.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from claimscore.jobs.config import VerdictsConfig
from claimscore.jobs.frames import as_frame
from claimscore.jobs.thresholds import Thresholds, log_odds

KEY = ["request_id", "claim_index"]


def entailing(scores: pa.Table, entails: pl.Expr) -> pa.Array:
    """Boolean beside `scores`: the pair is entailed (false for a pair without probabilities)."""
    return as_frame(scores).select(entails.fill_null(value=False)).to_series().to_arrow()


def surely(least: float) -> pl.Expr:
    """P(entailment) is at least this."""
    return pl.col("p_entailment") >= least


def outcomes(
    scores: pa.Table,
    pair_missing: pa.Array,
    *,
    thresholds: Thresholds,
    config: VerdictsConfig,
) -> pl.DataFrame:
    """`scores` with what each pair means for its claim.

    Args:
        scores: records.SCORES.
        pair_missing: list<string> beside `scores`: values of the claim that the premise of an entailing pair lacks.
        thresholds: from which numbers on a pair entails, or contradicts, if the premise speaks of the same things.
        config: the vetoes.

    Returns:
        Beside the columns of `scores`: pair (row number), support (what the threshold is for), supports, vetoed (entails, but lacks a value), outbid (entails,
        but a rival value more surely), contradicts, opposes (contradicts in nearly the claim's words), n_spans, chunk (of the first span) and missing. No scores, no rows.
    """
    missing = pl.Series("missing", pair_missing.to_pylist(), dtype=pl.List(pl.String))
    entails = thresholds.entails()
    lacks = (pl.col("missing").list.len() > 0).fill_null(value=False) & pl.lit(config.number_veto)
    outbid = (
        (log_odds(pl.col("p_rival")) - log_odds(pl.col("p_entailment"))) > config.rival_margin
    ).fill_null(value=False)
    contradicts = (
        (pl.col("p_contradiction") >= thresholds.contradiction)
        & (pl.col("overlap") >= config.contradiction_overlap)
    ).fill_null(value=False)
    return (
        as_frame(scores)
        .with_columns(missing, support=thresholds.support())
        .with_row_index("pair")
        .with_columns(
            supports=entails & ~lacks & ~outbid,
            vetoed=entails & lacks,
            outbid=entails & outbid & ~lacks,
            contradicts=contradicts & ~entails,
            opposes=contradicts & ~entails & (pl.col("overlap") >= config.conflict_overlap),
            n_spans=pl.col("premise").list.len(),
            chunk=pl.col("premise").list.first().struct.field("chunk_index"),
        )
    )


def best_of_claims(pairs: pl.DataFrame) -> pl.DataFrame:
    """Of each claim the pair that supports, was vetoed, contradicts and comes nearest, each best first; and counts."""
    # One window before several joined (a window that carries the claim alone says whose citation it is), cited
    # before uncited, then the judge's own order; `pair` makes it total.
    order = [
        ("supports", ["n_spans", "is_cited", "support"], [False, True, True]),
        ("vetoed", ["is_cited", "support"], [True, True]),
        ("outbid", ["is_cited", "support"], [True, True]),
        ("contradicts", ["p_contradiction", "is_cited"], [True, True]),
        ("judged", ["support"], [True]),
    ]
    pairs = pairs.with_columns(judged=pl.col("p_entailment").is_not_null())
    out = pairs.group_by(KEY, maintain_order=True).agg(
        n_pairs=pl.col("judged").sum().cast(pl.Int32),
        error=pl.col("error").drop_nulls().first(),
    )
    for flag, by, descending in order:
        best = _best(pairs.filter(pl.col(flag)), flag, by, descending)
        out = out.join(best, on=KEY, how="left", maintain_order="left")
    # A chunk is in no conflict with itself.
    elsewhere = pairs.join(out.select(*KEY, "supports_chunk"), on=KEY, how="left", maintain_order="left")
    opposing = elsewhere.filter(pl.col("opposes") & (pl.col("chunk") != pl.col("supports_chunk")))
    best = _best(opposing, "opposes", ["p_contradiction", "is_cited"], [True, True])
    return out.join(best, on=KEY, how="left", maintain_order="left")


def _best(pairs: pl.DataFrame, flag: str, by: list[str], descending: list[bool]) -> pl.DataFrame:
    """The first pair of each claim in the order of `by`, in columns that begin with `flag`."""
    return (
        pairs.sort([*by, "chunk", "pair"], descending=[*descending, False, False])
        .group_by(KEY, maintain_order=True)
        .agg(
            pl.col("pair").first().alias(f"{flag}_pair"),
            pl.col("chunk").first().alias(f"{flag}_chunk"),
            pl.col("is_cited").first().alias(f"{flag}_is_cited"),
            pl.col("n_spans").first().alias(f"{flag}_n_spans"),
        )
    )
