"""Cases through the job's own evidence, judge and rules, and one number a claim that orders them.

The pipeline's functions are called as the pipeline calls them: nothing is decided here. A probe's claim goes through
the sentence and citation stages first, as an answer of its own; decomposition and its LLM do not take part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from _quality_cases import Case

from claimscore.jobs import citations, evidence, pair_rules, pipeline, segment, signals
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_config
from claimscore.jobs.records import CLAIMS, LOG, SAMPLES, SCORES
from claimscore.jobs.thresholds import Thresholds

ROOT = Path(__file__).resolve().parent.parent
VETOED = -2.0
"""Added to the margin of a premise that a rule bars: below every premise that none does."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the job said of N cases."""

    margins: np.ndarray
    """float (N,): the best over premises of what the job compares with its threshold (P(entailment), or what the card's
    combiner makes of it); a premise that lacks a value, or whose own value the judge believes more, counts below all
    others, and below it a claim that could not be judged."""
    verdicts: list[dict[str, Any]]
    n_pairs: int
    n_tokens: int
    scores: pa.Table
    """records.SCORES of every pair."""
    missing: list[list[str] | None]
    """Beside `scores`: values of the claim that the premise lacks."""
    premises: pa.Array
    """Beside `scores`: the premise's text."""


def read_config(card: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """The demo's deployment with one judge card, and the card's own thresholds."""
    path = ROOT / "configs" / "demo.toml"
    config = load_config(path, overrides, judge=str(card) if card else None)
    return dataclasses.replace(
        config, verdicts=dataclasses.replace(config.verdicts, entailment=None, contradiction=None)
    )


def judge_cases(cases: Sequence[Case], judge: pipeline.Judge, config: Config) -> Judged:
    """The verdict on every case. No cases: no rows."""
    log = log_of(cases)
    claims = claims_of(cases, log, config)
    scores, _ = pipeline.make_scores(
        log, claims, pipeline.Models(judge=judge), config, tick=lambda _what, _n: None
    )
    verdicts = pipeline.make_verdicts(
        log, claims, scores, SCORES.empty_table(), SAMPLES.empty_table(), config
    )
    judged = scores.column("p_entailment").is_valid()
    lacking = signals.lacking(log, claims, scores, values_of=judged, names_of=judged)
    return Judged(
        margins=margins(cases, scores, lacking, config),
        verdicts=verdicts.to_pylist(),
        n_pairs=int(np.count_nonzero(judged)),
        n_tokens=int(np.nansum(scores.column("n_tokens").to_numpy())),
        scores=scores,
        missing=lacking.column("missing_values").to_pylist(),
        premises=evidence.premise_texts(scores, log),
    )


def supported(judged: Judged) -> np.ndarray:
    """Whether the job's verdict is `supported`, bool (N,)."""
    return np.array([row["verdict"] == "supported" for row in judged.verdicts], bool)


def log_of(cases: Sequence[Case]) -> pa.Table:
    """records.LOG, one answer a case; chunks are named by their places, from 1, as citations count."""
    rows = [
        {
            "request_id": case.id,
            "question": case.question,
            "answer": case.claim,
            "chunks": [{"id": str(k + 1), "text": t, "score": None} for k, t in enumerate(case.chunks)],
            "flags": [],
        }
        for case in cases
    ]
    return pa.Table.from_pylist(rows, schema=LOG)


def claims_of(cases: Sequence[Case], log: pa.Table, config: Config) -> pa.Table:
    """records.CLAIMS, one a case: a dev row's claim as it is, a probe's as the sentence stage reads it."""
    sentences = segment.split_sentences(log.column("answer").combine_chunks(), config.segment)
    sentences = citations.parse_citations(sentences, log, config.citations)
    of_case: dict[int, list[dict[str, Any]]] = {}
    for row in sentences.to_pylist():
        of_case.setdefault(row["answer_index"], []).append(row)
    rows = []
    for k, case in enumerate(cases):
        parts = of_case.get(k, []) if case.right else []
        text = " ".join(part["text"] for part in parts) if parts else case.claim
        lists = {
            name: list(dict.fromkeys(value for part in parts for value in part[name]))
            for name in ("cited_ids", "fabricated_marks", "quotes")
        }
        rows.append(
            {"request_id": case.id, "claim_index": 0, "sentence_index": 0, "start": 0, "end": len(case.claim)}
            | {"text": text, "source": "atomic", "decompose_outcome": "atomic", "unjudgeable": None}
            | lists
        )
    return pa.Table.from_pylist(rows, schema=CLAIMS)


def margins(cases: Sequence[Case], scores: pa.Table, lacking: pa.Table, config: Config) -> np.ndarray:
    """One number a case, higher for better supported: `Judged.margins`, shape (N,)."""
    place = {case.id: k for k, case in enumerate(cases)}
    pairs = pair_rules.outcomes(scores, lacking, thresholds=Thresholds.of(config), config=config.verdicts)
    is_lacking = (pl.col("missing").list.len() > 0).fill_null(value=False)
    is_of_another = pl.col("of_another").fill_null(value=False)
    barred = (is_lacking | is_of_another | pl.col("rivalled")).cast(pl.Float64)
    best = (
        pairs.select("request_id", order=pl.col("support") + VETOED * barred)
        .drop_nulls()
        .group_by("request_id")
        .agg(pl.col("order").max())
    )
    out = np.full(len(cases), 2 * VETOED)
    for request_id, order in best.iter_rows():
        out[place[request_id]] = order
    return out
