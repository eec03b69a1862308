"""What each judged pair means for its claim, and the best pair of each meaning.

A pair supports its claim where the premise entails it, holds its values (number veto), is about the same thing (subject veto)
and has no value of its own that the judge believes more in the claim (rivals.py). Each pair is looked at alone, but for what
the passages beside it are about (subjects.py). The module knows no verdict.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from claimscore.jobs.config import VerdictsConfig
from claimscore.jobs.frames import as_frame
from claimscore.jobs.thresholds import Thresholds, log_odds

KEY = ["request_id", "claim_index"]
NEAR = 0.1
"""Below it one P(entailment) is as far from support as another."""


def holds(scores: pa.Table, what: pl.Expr) -> pa.Array:
    """Boolean beside `scores`: whether this holds of the pair; false where it is null, as without probabilities."""
    read = scores.select(list(dict.fromkeys(what.meta.root_names())))
    return as_frame(read).select(what.fill_null(value=False)).to_series().to_arrow()


def surely(least: float) -> pl.Expr:
    """P(entailment) is at least this."""
    return pl.col("p_entailment") >= least


def without_claims(pairs: pa.Table, scores: pa.Table, chosen: pa.Array) -> pa.Table:
    """`pairs` but for those of claims that have a `chosen` row in `scores` (boolean beside them)."""
    done = as_frame(scores.filter(chosen).select(KEY)).unique().with_columns(is_done=pl.lit(value=True))
    keys = as_frame(pairs.select(KEY)).join(done, on=KEY, how="left", maintain_order="left")
    return pairs.filter(keys["is_done"].is_null().to_arrow())


def outcomes(
    scores: pa.Table,
    lacking: pa.Table,
    *,
    thresholds: Thresholds,
    config: VerdictsConfig,
) -> pl.DataFrame:
    """`scores` with what each pair means for its claim.

    Args:
        scores: records.SCORES.
        lacking: beside `scores`, missing_values and missing_names (list<string>): what of the claim the premise lacks; of_another
            (bool): whether it is about another thing; each null where it could decide nothing.
        thresholds: from which numbers on a pair entails, or contradicts, if the premise speaks of the same things.
        config: the vetoes.

    Returns:
        Beside the columns of `scores`: pair (row number), support (what the threshold is for), supports, vetoed (entails, but lacks
        a value), astray (entails, but is about another thing), outbid (entails, but a rival value more surely), rivalled (a rival
        is surer, entailed or not), contradicts, opposes (contradicts in nearly the claim's words, in one piece), n_spans, chunk (of
        the first span) and missing. No scores, no rows.
    """
    beside = as_frame(lacking).select(
        "of_another", missing="missing_values", n_names=pl.col("missing_names").list.len()
    )
    entails = thresholds.entails(pl.col("n_names"))
    lacks = (pl.col("missing").list.len() > 0).fill_null(value=False) & pl.lit(config.number_veto)
    of_another = pl.col("of_another").fill_null(value=False) & pl.lit(config.subject_veto)
    outbid = (
        (log_odds(pl.col("p_rival")) - log_odds(pl.col("p_entailment"))) > config.rival_margin
    ).fill_null(value=False)
    # A passage that lacks a name of the claim speaks of something else: it says nothing against the claim.
    contradicts = (
        thresholds.contradicts()
        & (pl.col("overlap") >= config.contradiction_overlap).fill_null(value=False)
        & (pl.col("n_names").fill_null(0) == 0)
    )
    return (
        as_frame(scores)
        .hstack(beside)
        .with_columns(support=thresholds.support(pl.col("n_names")))
        .with_row_index("pair")
        .with_columns(
            supports=entails & ~lacks & ~of_another & ~outbid,
            vetoed=entails & lacks,
            astray=entails & of_another & ~lacks,
            outbid=entails & outbid & ~lacks & ~of_another,
            rivalled=outbid,
            contradicts=contradicts & ~entails,
            opposes=contradicts
            & ~entails
            & (pl.col("overlap") >= config.conflict_overlap)
            & (pl.col("premise").list.len() == 1),
            n_spans=pl.col("premise").list.len(),
            chunk=pl.col("premise").list.first().struct.field("chunk_index"),
        )
    )


def settled(claims: pa.Table, pairs: pl.DataFrame) -> pa.Array:
    """Boolean beside `claims`: the judge's pairs (`outcomes`) make it supported, and none of them contradicts it."""
    found = pairs.group_by(KEY).agg(is_settled=pl.col("supports").any() & ~pl.col("contradicts").any())
    keys = as_frame(claims.select(KEY))
    beside = keys.join(found, on=KEY, how="left", maintain_order="left")
    return beside["is_settled"].fill_null(value=False).to_arrow()


def best_of_claims(pairs: pl.DataFrame) -> pl.DataFrame:
    """Of each claim the pair that supports, was vetoed, is about another thing, contradicts and comes nearest, each best first; and counts."""
    # One passage before several (one that carries the claim alone says whose citation it is), cited
    # before uncited, then the judge's own order; `pair` makes it total.
    order = [
        ("supports", ["n_spans", "is_cited", "support"], [False, True, True]),
        ("vetoed", ["is_cited", "support"], [True, True]),
        ("astray", ["is_cited", "support"], [True, True]),
        ("outbid", ["is_cited", "support"], [True, True]),
        ("contradicts", ["p_contradiction", "is_cited"], [True, True]),
        # What a reader is shown where nothing supports: the nearest, and where none is near, the one that speaks most of it.
        ("judged", ["nearness", "overlap", "support"], [True, True, True]),
    ]
    pairs = pairs.with_columns(
        judged=pl.col("p_entailment").is_not_null(), nearness=pl.col("support").clip(NEAR)
    )
    out = pairs.group_by(KEY, maintain_order=True).agg(
        n_pairs=pl.col("judged").sum().cast(pl.Int32),
        error=pl.col("error").drop_nulls().first(),
    )
    for flag, by, descending in order:
        best = _best(pairs.filter(pl.col(flag)), flag, by, descending)
        out = out.join(best, on=KEY, how="left", maintain_order="left")
    # A chunk is in no conflict with itself, nor with what it supports beside others.
    chunks = pl.col("premise").list.eval(pl.element().struct.field("chunk_index"))
    supporting = pairs.select(supports_pair="pair", supports_chunks=chunks)
    named = out.select(*KEY, "supports_pair").join(supporting, on="supports_pair", how="left")
    elsewhere = pairs.join(named, on=KEY, how="left", maintain_order="left")
    opposing = elsewhere.filter(pl.col("opposes") & ~pl.col("supports_chunks").list.contains(pl.col("chunk")))
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
