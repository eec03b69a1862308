"""The ablation table: other premises, scores, thresholds and combinations, each on the same claims with its own price.

Every line is measured as the job's own path is: what is fitted (a threshold, a combiner) is fitted on the one half of
the articles and reported on the other. Nothing here changes the job: it shows what a change would bring.
"""

from __future__ import annotations

import dataclasses
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
from _quality_pool import Pool, Widths, pool, share
from _quality_stats import Labelled, summary

from claimscore.jobs import rules
from claimscore.jobs.config import Config

VETO = 2.0
SETTINGS: tuple[dict[str, Any], ...] = (
    {"cover_tokens": 80},
    {"cover_tokens": 300},
    {"window_overlap": 0.3},
    {"window_overlap": 0.7},
    {"max_windows": 1},
)
"""Of `[evidence]`, each in place of its default."""


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
    """Every line in turn: plain ones, the job's own pairs scored otherwise, other settings, then other premises."""
    for name, method in (("whole context", whole), ("400-token chunks", chunks)):
        scored = method(cases, judge)
        yield Variant(f"{name}: e", scored.scores, scored.n_pairs, scored.n_tokens)
    job = job_pool(cases, judge, config)
    pools = {"job": job, "job's passages": job.take(np.flatnonzero(~job.is_joined))}
    yield from _scored("job's windows and covers", job)
    yield from _scored("job's passages in one piece", pools["job's passages"])
    for settings in SETTINGS:
        evidence = dataclasses.replace(config.evidence, **settings)
        name = ", ".join(f"{key} = {value:g}" for key, value in settings.items())
        found = job_pool(cases, judge, dataclasses.replace(config, evidence=evidence))
        yield from _scored(f"job with {name}", found, veto_only=True)
    pools["3 of 90"] = pool(cases, Widths(cases, judge).windows(90, 3), judge)
    yield from _scored("best 3 windows of 90 tokens", pools["3 of 90"])
    for name, found in pools.items():
        yield from _combined(name, found, labelled)


def job_pool(cases: Sequence[Case], judge: CachedJudge, config: Config) -> Pool:
    """The pairs of the job's own path, claims whole."""
    judged = judge_cases(cases, judge, config)
    rows = np.flatnonzero(judged.scores.column("p_entailment").is_valid())
    scores = judged.scores.take(pa.array(rows))
    place = {case.id: k for k, case in enumerate(cases)}
    case = np.array([place[name] for name in scores.column("request_id").to_pylist()])
    order = np.argsort(case, kind="stable")
    rows, case, scores = rows[order], case[order], scores.take(pa.array(order))
    texts = judged.premises.take(pa.array(rows))
    claims = pa.array([cases[k].claim for k in case.tolist()], pa.string())
    return Pool(
        case=case,
        probs=np.stack(
            [scores.column(f"p_{x}").to_numpy() for x in ("entailment", "neutral", "contradiction")], 1
        ),
        n_tokens=scores.column("n_tokens").to_numpy(),
        overlap=np.array([share(c, p) for c, p in zip(claims.to_pylist(), texts.to_pylist(), strict=True)]),
        lacks=np.array([len(judged.missing[row] or ()) for row in rows.tolist()]),
        lacks_names=np.array([len(found) for found in rules.missing_names(claims, texts).to_pylist()]),
        n_cases=len(cases),
        is_joined=np.array([len(spans) > 1 for spans in scores.column("premise").to_pylist()]),
    )


def _scored(name: str, found: Pool, *, veto_only: bool = False) -> Iterator[Variant]:
    """Entailment, the margin, and both under the veto."""
    vetoed = VETO * (found.lacks > 0)
    scores = {
        "e": found.probs[:, 0],
        "e-c": found.margin,
        "e, veto": found.probs[:, 0] - vetoed,
        "e-c, veto": found.margin - vetoed,
    }
    for how, of_pair in scores.items():
        if how == "e, veto" or not veto_only:
            yield Variant(f"{name}: {how}", found.best(of_pair), len(found.case), int(found.n_tokens.sum()))


def _combined(name: str, found: Pool, labelled: Labelled) -> Iterator[Variant]:
    """The fitted combiner over judge, coverage and rules, from the fitting half."""
    price = (len(found.case), int(found.n_tokens.sum()))
    for what, use in (("e, c", (0, 1)), ("e, c, coverage", (0, 1, 2)), ("all five", (0, 1, 2, 3, 4))):
        weights = fit_weights(found, labelled, use, labelled.is_fit)
        scores = found.best(features(found) @ weights, lowest=-30.0)
        yield Variant(f"combiner, {name}: {what}", scores, *price)
