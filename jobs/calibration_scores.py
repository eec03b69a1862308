"""Labelled claims after the judge: every pair scored and looked at as in a run, and what each verdict hangs on.

One claim is one answer, so that a labelled file goes through the pipeline's own functions. Knows no threshold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs import pair_rules, pipeline, signals
from claimscore.jobs.config import Config
from claimscore.jobs.records import CLAIMS, LOG, SCORES
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.trust import Floats

AT_ONCE = 64
"""Claims judged between two reports of progress."""
Tick = Callable[[int], None]
"""Told how many claims more were judged."""


@dataclass(frozen=True, slots=True)
class Scored:
    """N labelled claims after the judge, as columns beside the labelled rows."""

    rows: pa.Table
    """calibration_files.LABELLED."""
    log: pa.Table
    claims: pa.Table
    pairs: pa.Table
    """records.SCORES of all claims."""
    lacking: pa.Table
    """Beside `pairs`: signals.lacking."""
    scores: Floats
    """What the verdict hangs on (verdicts.support), NaN where none could be had."""
    reasons: list[str | None]
    """Why a claim is left out: `unlabelled`, or the reason why it could not be judged."""


def score(rows: pa.Table, judge: pipeline.Judge, config: Config, tick: Tick = lambda _: None) -> Scored:
    """Judge labelled claims as a run would; one claim is one answer. No rows, no pairs."""
    log, claims = _log_of(rows), _claims_of(rows)
    parts = [SCORES.empty_table()]
    models = pipeline.Models(judge=judge)
    for first in range(0, rows.num_rows, AT_ONCE):
        some = log.slice(first, AT_ONCE), claims.slice(first, AT_ONCE)
        scores, _ = pipeline.make_scores(*some, models, config, tick=lambda *_: None)
        parts.append(scores)
        tick(some[0].num_rows)
    pairs = pa.concat_tables(parts)
    judged = pairs.column("p_entailment").is_valid()
    lacking = signals.lacking(log, claims, pairs, values_of=judged, names_of=judged)
    of_pair = outcomes(pairs, lacking, config)
    of_claim = of_pair.group_by("request_id").agg(
        score=pl.col("support").filter(pl.col("supports")).max(),
        judged=pl.col("p_entailment").is_not_null().any(),
        error=pl.col("error").drop_nulls().first(),
    )
    order = pl.DataFrame(
        {"request_id": log.column("request_id").to_pylist()}, schema={"request_id": pl.String}
    )
    frame = order.join(of_claim, on="request_id", how="left", maintain_order="left")
    reasons = [
        "unlabelled" if label is None else error or (None if judged else "not_judged")
        for label, error, judged in zip(
            rows.column("supported").to_pylist(),
            frame["error"].to_list(),
            frame["judged"].to_list(),
            strict=True,
        )
    ]
    # Every premise vetoed: no threshold supports the claim.
    scores = frame["score"].cast(pl.Float64).fill_null(0.0).to_numpy()
    scores = np.where([r is None for r in reasons], scores, np.nan)
    return Scored(rows, log, claims, pairs, lacking, scores, reasons)


def outcomes(pairs: pa.Table, lacking: pa.Table, config: Config, entailment: float = 0.0) -> pl.DataFrame:
    """pair_rules.outcomes with every pair entailed that a threshold of `entailment` lets be, and no bar for contradiction."""
    thresholds = dataclasses.replace(Thresholds.of(config), entailment=entailment, contradiction=0.0)
    return pair_rules.outcomes(pairs, lacking, thresholds=thresholds, config=config.verdicts)


def _log_of(rows: pa.Table) -> pa.Table:
    """records.LOG, one answer a claim, named by its place: ids of a labelled file need not be unique."""
    records = [
        {
            "request_id": str(k),
            "question": row["question"],
            "answer": row["claim"],
            "chunks": row["chunks"],
            "flags": [],
        }
        for k, row in enumerate(rows.to_pylist())
    ]
    return pa.Table.from_pylist(records, schema=LOG)


def _claims_of(rows: pa.Table) -> pa.Table:
    """records.CLAIMS: each labelled claim as it stands."""
    records = [
        {"request_id": str(k), "claim_index": 0, "sentence_index": 0, "start": 0, "end": len(row["claim"])}
        | {"text": row["claim"], "source": "atomic", "decompose_outcome": "atomic", "unjudgeable": None}
        | {"cited_ids": row["cited_ids"], "fabricated_marks": [], "quotes": []}
        for k, row in enumerate(rows.to_pylist())
    ]
    return pa.Table.from_pylist(records, schema=CLAIMS)
