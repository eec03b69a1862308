"""Which rows of the verdicts count: a claim that an answer repeats counts once, with the worst of its verdicts.

Every claim keeps its own verdict and its own row; what is counted, listed or turned into a rate is the class of the claims
that say the same (`duplicate_of`). The worst counts, so that to say a thing twice never hides that it was wrong once: two
citations may be told apart, and a claim near the threshold may be judged otherwise in other words. Knows no rate.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from claimscore.jobs.records import Verdict

WORST_FIRST: Final = (
    Verdict.CONTRADICTED.value,
    Verdict.UNSUPPORTED.value,
    Verdict.UNSCORED.value,
    Verdict.SUPPORTED.value,
)
"""What was not judged is worse than what is supported: unknown is never fine."""

CLASS: Final = ("request_id", "first_claim")

first_claim = pl.coalesce("duplicate_of", "claim_index").alias("first_claim")
"""Of VERDICTS rows: the index of the first claim of the class; with `request_id` its name."""

severity = pl.col("verdict").replace_strict(
    {word: k for k, word in enumerate(WORST_FIRST)}, return_dtype=pl.Int8
)
"""Of VERDICTS rows: their place in WORST_FIRST."""


def once(verdicts: pl.DataFrame, by: pl.Expr = severity) -> pl.DataFrame:
    """One row a class, in the order of the rows: its worst member, of equal ones first what has a hallucination type.

    Where nothing repeats anything, the table itself. Of rows that were filtered before, the worst of those that are left.

    Args:
        verdicts: VERDICTS.
        by: how bad a row is, the worst the least; by default what decides the verdict of a class.
    """
    if verdicts["duplicate_of"].null_count() == len(verdicts):
        return verdicts
    ranked = verdicts.with_row_index("place").with_columns(first_claim)
    worst = (
        ranked.sort(by, pl.col("hallucination_type").is_null(), "place")
        .group_by(CLASS, maintain_order=True)
        .first()
    )
    return worst.sort("place").select(verdicts.columns)
