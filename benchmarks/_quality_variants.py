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
from _quality_judge import CachedJudge
from _quality_path import judge_cases
from _quality_pool import Pool, Widths, claim_sentences, pool, share, whole_claims
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


def ablation(
    cases: Sequence[Case], labelled: Labelled, judge: CachedJudge, config: Config, resamples: int
) -> dict[str, Any]:
    """Figures of every variant, by name."""
    out: dict[str, Any] = {}
    for variant in variants(cases, labelled, judge, config):
        figures = summary(labelled, variant.scores, n_resamples=resamples)
        figures |= {"pairs": variant.n_pairs / len(cases), "tokens": variant.n_tokens / len(cases)}
        out[variant.name] = {k: v for k, v in figures.items() if not k.startswith("ba_card")}
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
    yield from _mixed(pools)
    for name, found in pools.items():
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
    )


def _scored(name: str, found: Pool) -> Iterator[Variant]:
    """Entailment, the margin, the margin under the veto; parts by the weakest, and by the mean."""
    price = (len(found.part), int(found.n_tokens.sum()))
    yield Variant(f"{name}: e", found.of_cases(found.best(found.probs[:, 0])), *price)
    yield Variant(f"{name}: e-c", found.of_cases(found.best(found.margin)), *price)
    yield _vetoed(name, found)
    if len(found.case_of_part) > found.n_cases:
        vetoed = found.margin - VETO * (found.lacks > 0)
        yield Variant(f"{name}: e-c, veto, mean", found.of_cases(found.best(vetoed), "mean"), *price)


def _vetoed(name: str, found: Pool) -> Variant:
    best = found.best(found.margin - VETO * (found.lacks > 0))
    return Variant(f"{name}: e-c, veto", found.of_cases(best), len(found.part), int(found.n_tokens.sum()))


def _mixed(pools: dict[str, Pool]) -> Iterator[Variant]:
    """Two pools at once: the better of both, and their mean."""
    for first, second in (
        ("300 picked", "2 of 160"),
        ("300 picked", "3 of 90"),
        ("300 picked", "sentences, 160 picked"),
        ("160 picked", "300 picked"),
    ):
        both = [pools[name] for name in (first, second)]
        scores = [p.of_cases(p.best(p.margin - VETO * (p.lacks > 0))) for p in both]
        price = (sum(len(p.part) for p in both), sum(int(p.n_tokens.sum()) for p in both))
        yield Variant(f"{first} | {second}: better", np.maximum(*scores), *price)
        yield Variant(f"{first} | {second}: mean", np.mean(scores, axis=0), *price)


def _combined(name: str, found: Pool, labelled: Labelled) -> Iterator[Variant]:
    """A small logistic combiner over judge, coverage and rules, fitted on the fitting half."""
    price = (len(found.part), int(found.n_tokens.sum()))
    for what, columns in (("e, c, coverage", 3), ("and values, names", 5)):
        features = case_features(found)[:, :columns]
        scores = logistic(features[labelled.is_fit], labelled, labelled.is_fit)(features)
        yield Variant(f"combiner {name}: {what}", scores, *price)


def case_features(found: Pool) -> np.ndarray:
    """(N, 5) of the best pair of the weakest part: logits of e and c, coverage, missing values, missing names."""
    vetoed = found.margin - VETO * (found.lacks > 0)
    order = np.lexsort((vetoed, found.part))
    last = np.searchsorted(found.part[order], np.arange(len(found.case_of_part)), side="right") - 1
    best = order[last]
    weakest = np.lexsort((vetoed[best], found.case_of_part))
    first = np.searchsorted(found.case_of_part[weakest], np.arange(found.n_cases))
    rows = best[weakest[first]]
    probs = np.clip(found.probs[rows], 1e-4, 1 - 1e-4)
    logits = np.log(probs / (1 - probs))
    return np.stack(
        [logits[:, 0], logits[:, 2], found.overlap[rows]]
        + [np.minimum(values[rows], 2.0) for values in (found.lacks, found.lacks_names)],
        axis=1,
    )


class Logistic:
    """Weights over standardised features."""

    def __init__(
        self, features: np.ndarray, labels: np.ndarray, weights: np.ndarray, ridge: float = 1.0
    ) -> None:
        """Newton's method on the weighted, ridge-penalised likelihood; 25 steps are plenty for five features."""
        self.mean, self.scale = features.mean(axis=0), features.std(axis=0) + 1e-9
        x = self._design(features)
        self.weights = np.zeros(x.shape[1])
        penalty = ridge * np.eye(x.shape[1])
        penalty[0, 0] = 0.0
        for _ in range(25):
            p = 1 / (1 + np.exp(-np.clip(x @ self.weights, -30, 30)))
            gradient = x.T @ (weights * (labels - p)) - penalty @ self.weights
            hessian = (x * (weights * p * (1 - p))[:, None]).T @ x + penalty
            self.weights += np.linalg.solve(hessian, gradient)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Log odds, (N,)."""
        found: np.ndarray = self._design(features) @ self.weights
        return found

    def _design(self, features: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(features)), (features - self.mean) / self.scale])


def logistic(features: np.ndarray, labelled: Labelled, rows: np.ndarray) -> Logistic:
    """Fit on some rows; every source and both labels within it weigh the same, as in a macro average."""
    some = labelled.take(rows)
    weights = np.ones(len(some.labels))
    for source in np.unique(some.sources):
        for label in (True, False):
            cell = (some.sources == source) & (some.labels == label)
            if cell.any():
                weights[cell] = len(some.labels) / (2 * len(np.unique(some.sources)) * cell.sum())
    weights = np.minimum(weights, 4 * np.median(weights))  # a cell of one claim must not decide
    return Logistic(features, some.labels.astype(float), weights)
