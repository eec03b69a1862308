"""The ablation table: other premises, scores, thresholds and combinations, each on the same claims with its own price.

Every line is measured as the job's own path is: what is fitted (a threshold, a combiner) is fitted on the one half of
the articles and reported on the other. Nothing here changes the job: it shows what a change would bring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from _quality_baselines import chunks, whole
from _quality_cases import Case
from _quality_combiner import features, fit_weights
from _quality_judge import CachedJudge
from _quality_path import judge_cases
from _quality_pool import Pool, Widths, claim_sentences, folded, pool, share, whole_claims
from _quality_stats import Labelled, summary

from claimscore.jobs import rules
from claimscore.jobs.config import Config

VETO = 2.0


@dataclass(frozen=True, slots=True)
class Variant:
    """One line: its name, a score a case, its price in pairs and tokens."""

    name: str
    scores: np.ndarray
    n_pairs: int
    n_tokens: int


def ablation(cases: Sequence[Case], labelled: Labelled, judge: CachedJudge, config: Config) -> dict[str, Any]:
    """Figures of every variant, by name; without intervals, which are those of the methods beside."""
    out: dict[str, Any] = {}
    for variant in variants(cases, labelled, judge, config):
        figures = summary(labelled, variant.scores, n_resamples=0)
        figures |= {"pairs": variant.n_pairs / len(cases), "tokens": variant.n_tokens / len(cases)}
        out[variant.name] = {k: v for k, v in figures.items() if v is not None}
    return out


def variants(
    cases: Sequence[Case], labelled: Labelled, judge: CachedJudge, config: Config
) -> Iterator[Variant]:
    """Every line in turn: plain ones, the job's own pairs scored otherwise, then other premises."""
    for name, method in (("whole context", whole), ("400-token chunks", chunks)):
        scored = method(cases, judge)
        yield Variant(f"{name}: e", scored.scores, scored.n_pairs, scored.n_tokens)
    job = job_pool(cases, judge, config)
    singles = job.take(np.flatnonzero(~job.is_joined))
    yield from _scored("job's windows and joins", job)
    yield from _scored("job's windows, no joins", singles)
    for k in (1, 2, 3, 4, 6):
        yield _vetoed(f"job's best {k} windows by words", singles.take(singles.first_of(singles.overlap, k)))
    pools = {"job": job, "job's best 3 windows": singles.take(singles.first_of(singles.overlap, 3))}
    widths = Widths(cases, judge)
    whole_claim, split = whole_claims(cases), claim_sentences(cases)
    for tokens in (160, 300):
        pools[f"{tokens} picked"] = pool(cases, whole_claim, widths.picked(tokens), judge)
        yield from _scored(f"{tokens} tokens picked", pools[f"{tokens} picked"])
    pools["sentences, 160 picked"] = pool(cases, split, widths.picked(160), judge)
    yield from _scored("claim sentences, 160 tokens picked", pools["sentences, 160 picked"])
    for tokens, keep in ((60, 4), (90, 3), (160, 2)):
        pools[f"{keep} of {tokens}"] = pool(cases, whole_claim, widths.windows(tokens, keep), judge)
        yield from _scored(f"best {keep} windows of {tokens} tokens", pools[f"{keep} of {tokens}"])
    for k in (1, 2, 3):
        some = singles.take(singles.first_of(singles.overlap, k))
        for tokens in (160, 300):
            name = f"best {k} windows and {tokens} picked"
            pools[name] = some.and_(pools[f"{tokens} picked"])
            yield from _scored(name, pools[name])
    for name, found in pools.items():
        if len(found.case_of_part) == found.n_cases:
            yield from _combined(name, found, labelled)


def job_pool(cases: Sequence[Case], judge: CachedJudge, config: Config) -> Pool:
    """The pairs of the job's own path, claims whole."""
    judged = judge_cases(cases, judge, config)
    rows = np.flatnonzero(judged.scores.column("p_entailment").is_valid())
    scores = judged.scores.take(pa.array(rows))
    place = {case.id: k for k, case in enumerate(cases)}
    part = np.array([place[name] for name in scores.column("request_id").to_pylist()])
    order = np.argsort(part, kind="stable")
    rows, part, scores = rows[order], part[order], scores.take(pa.array(order))
    texts = judged.premises.take(pa.array(rows))
    claims = pa.array([cases[k].claim for k in part.tolist()], pa.string())
    return Pool(
        part=part,
        case_of_part=np.arange(len(cases)),
        probs=np.stack(
            [scores.column(f"p_{x}").to_numpy() for x in ("entailment", "neutral", "contradiction")], 1
        ),
        n_tokens=scores.column("n_tokens").to_numpy(),
        overlap=np.array([share(c, p) for c, p in zip(claims.to_pylist(), texts.to_pylist(), strict=True)]),
        lacks=np.array([len(judged.missing[row] or ()) for row in rows.tolist()]),
        lacks_names=np.array([len(found) for found in rules.missing_names(claims, texts).to_pylist()]),
        n_cases=len(cases),
        is_joined=np.array([len(spans) > 1 for spans in scores.column("premise").to_pylist()]),
        premise=folded(texts.to_pylist()),
    )


def _scored(name: str, found: Pool) -> Iterator[Variant]:
    """Entailment, the margin, the margin under the veto; parts by the weakest, and by the mean."""
    price = (len(found.part), int(found.n_tokens.sum()))
    yield Variant(f"{name}: e", found.of_cases(found.best(found.probs[:, 0])), *price)
    yield Variant(f"{name}: e-c", found.of_cases(found.best(found.margin)), *price)
    vetoed = found.probs[:, 0] - VETO * (found.lacks > 0)
    yield Variant(f"{name}: e, veto", found.of_cases(found.best(vetoed)), *price)
    yield _vetoed(name, found)
    if len(found.case_of_part) > found.n_cases:
        vetoed = found.margin - VETO * (found.lacks > 0)
        yield Variant(f"{name}: e-c, veto, mean", found.of_cases(found.best(vetoed), "mean"), *price)


def _vetoed(name: str, found: Pool) -> Variant:
    best = found.best(found.margin - VETO * (found.lacks > 0))
    return Variant(f"{name}: e-c, veto", found.of_cases(best), len(found.part), int(found.n_tokens.sum()))


def _combined(name: str, found: Pool, labelled: Labelled) -> Iterator[Variant]:
    """The fitted combiner over judge, coverage and rules, from the fitting half."""
    price = (len(found.part), int(found.n_tokens.sum()))
    for what, use in (("e, c", (0, 1)), ("e, c, coverage", (0, 1, 2)), ("all five", (0, 1, 2, 3, 4))):
        weights = fit_weights(found, labelled, use, labelled.is_fit)
        scores = found.of_cases(found.best(features(found) @ weights, lowest=-30.0))
        yield Variant(f"combiner, {name}: {what}", scores, *price)
