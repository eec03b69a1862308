"""Measures of scores against labels: balanced accuracy, AUROC, catch rate, and their averages and intervals.

A macro figure is the mean over families (sources that share data) of the mean over the sources of each. A threshold is
fitted once for all sources, on the halves of articles meant for it, by macro balanced accuracy. Intervals bound
95% of resamples of whole articles. Knows no judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Measure = Callable[[np.ndarray, np.ndarray], float]
"""(labels, scores or predictions) -> a figure; NaN where it has no meaning."""
FALSE_ALARMS = 0.05


@dataclass(frozen=True)
class Labelled:
    """N cases' labels and where they come from."""

    labels: np.ndarray
    """bool (N,): supported."""
    sources: np.ndarray
    families: np.ndarray
    articles: np.ndarray
    is_fit: np.ndarray

    def take(self, rows: np.ndarray) -> Labelled:
        """The cases of `rows`, places or a mask."""
        parts = (self.labels, self.sources, self.families, self.articles, self.is_fit)
        return Labelled(*(part[rows] for part in parts))


def balanced_accuracy(labels: np.ndarray, predicted: np.ndarray) -> float:
    """The mean of the share of supported claims called so and of the others not; NaN without both."""
    if labels.all() or not labels.any():
        return float("nan")
    return float((predicted[labels].mean() + (~predicted[~labels]).mean()) / 2)


def auroc(labels: np.ndarray, scores: np.ndarray) -> float:
    """The chance that a supported claim scores above another; ties count half; NaN without both."""
    n_true = int(labels.sum())
    n_false = len(labels) - n_true
    if not n_true or not n_false:
        return float("nan")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[labels].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


def catch_rate(labels: np.ndarray, scores: np.ndarray, false_alarms: float = FALSE_ALARMS) -> float:
    """The share of unsupported claims below the highest threshold that flags at most so many supported ones."""
    if labels.all() or not labels.any():
        return float("nan")
    supported = np.sort(scores[labels])
    threshold = supported[int(np.floor(false_alarms * len(supported)))]
    return float((scores[~labels] < threshold).mean())


def macro(cases: Labelled, values: np.ndarray, measure: Measure) -> float:
    """The macro average of a measure; sources where it has no meaning are left out; NaN where none is left."""
    of_family: dict[str, list[float]] = {}
    for source in np.unique(cases.sources):
        rows = np.flatnonzero(cases.sources == source)
        value = measure(cases.labels[rows], values[rows])
        if np.isfinite(value):
            of_family.setdefault(str(cases.families[rows[0]]), []).append(value)
    means = [float(np.mean(found)) for found in of_family.values()]
    return float(np.mean(means)) if means else float("nan")


def fit_threshold(cases: Labelled, scores: np.ndarray, n_steps: int = 100) -> float:
    """The threshold (score >= it is supported) with the best macro balanced accuracy on `cases`.

    Of a run of equally good ones the middle, so that it does not hang on one claim.
    """
    candidates = np.unique(np.quantile(scores, np.linspace(0, 1, n_steps)))
    found = np.array([macro(cases, scores >= t, balanced_accuracy) for t in candidates])
    best = np.flatnonzero(found >= np.nanmax(found) - 1e-9)
    return float(candidates[best[len(best) // 2]])


def interval(
    cases: Labelled, values: np.ndarray, measure: Measure, *, n_resamples: int = 300, seed: int = 0
) -> tuple[float, float]:
    """2.5% and 97.5% of the macro measure over resamples of whole articles; NaN without cases."""
    if not len(cases.labels):
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    _, of_article = np.unique(cases.articles, return_inverse=True)
    order = np.argsort(of_article, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(of_article))[:-1])
    found = []
    for _ in range(n_resamples):
        rows = np.concatenate([groups[k] for k in rng.integers(0, len(groups), len(groups))])
        found.append(macro(cases.take(rows), values[rows], measure))
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)


def summary(
    cases: Labelled, scores: np.ndarray, *, predicted: np.ndarray | None = None, n_resamples: int = 300
) -> dict[str, float | list[float] | None]:
    """The figures of one method: threshold fitted on the one half, reported on the other.

    Choices between methods belong to the figures of the fitting half, which stand beside.

    Args:
        cases: labels.
        scores: (N,), higher for better supported.
        predicted: bool (N,), what the method itself says at its card's threshold; None: it has none.
        n_resamples: for the intervals; 0: none.
    """
    unseen = np.flatnonzero(~cases.is_fit)
    threshold = fit_threshold(cases.take(cases.is_fit), scores[cases.is_fit])
    reported, of_unseen = cases.take(unseen), scores[unseen]
    fitted = of_unseen >= threshold
    own = None if predicted is None else predicted[unseen]
    return {
        "threshold": threshold,
        "ba_card": None if own is None else macro(reported, own, balanced_accuracy),
        "ba_card_95": None if own is None else _pair(reported, own, balanced_accuracy, n_resamples),
        "ba_fitted": macro(reported, fitted, balanced_accuracy),
        "ba_fitted_95": _pair(reported, fitted, balanced_accuracy, n_resamples),
        "auroc": macro(reported, of_unseen, auroc),
        "auroc_95": _pair(reported, of_unseen, auroc, n_resamples),
        "catch_at_5": macro(reported, of_unseen, catch_rate),
        "ba_fit_half": macro(cases.take(cases.is_fit), scores[cases.is_fit] >= threshold, balanced_accuracy),
        "auroc_fit_half": macro(cases.take(cases.is_fit), scores[cases.is_fit], auroc),
        "auroc_all_rows": macro(cases, scores, auroc),
        "catch_at_5_pooled": catch_rate(reported.labels, of_unseen),
    }


def _pair(cases: Labelled, values: np.ndarray, measure: Measure, n_resamples: int) -> list[float] | None:
    if not n_resamples:
        return None
    return list(interval(cases, values, measure, n_resamples=n_resamples))


def parts(
    cases: Labelled, names: Sequence[str], scores: np.ndarray, predicted: np.ndarray | None, threshold: float
) -> dict[str, dict[str, float]]:
    """Figures of the unseen half by a name a case has (its source, its level), each a macro over its sources."""
    out: dict[str, dict[str, float]] = {}
    column = np.asarray(names)
    for name in sorted(set(names)):
        rows = np.flatnonzero((column == name) & ~cases.is_fit)
        some = cases.take(rows)
        if not some.labels.any() or some.labels.all():
            continue
        figures = {"n": len(rows), "n_supported": int(some.labels.sum())}
        if predicted is not None:
            figures["ba_card"] = macro(some, predicted[rows], balanced_accuracy)
        figures["ba_fitted"] = macro(some, scores[rows] >= threshold, balanced_accuracy)
        figures["auroc"] = macro(some, scores[rows], auroc)
        figures["catch_at_5"] = macro(some, scores[rows], catch_rate)
        out[name] = figures
    return out
