"""A small fitted score of one pair: what the judge says, what the words share, what values and names are missing.

Weights are fitted on pairs of a supported and an unsupported claim of one source (a logistic model of which is which), so
that they order claims as AUROC within a source asks and learn nothing of how often a source is right. A claim's
score is the highest of its premises', so one more premise never lowers it; fitting and choosing that premise alternate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _quality_pool import Pool
from _quality_stats import Labelled

FEATURES = ("entailment", "contradiction", "coverage", "missing values", "missing names")
RIDGE = 0.02
ROUNDS = 5
_MOST_MISSING = 3.0


def features(found: Pool) -> np.ndarray:
    """(P, 5) in the order of FEATURES: log odds of the two probabilities, a share, two counts."""
    probs = np.clip(found.probs[:, [0, 2]], 1e-4, 1 - 1e-4)
    counts = (np.minimum(values, _MOST_MISSING) for values in (found.lacks, found.lacks_names))
    return np.column_stack([np.log(probs / (1 - probs)), found.overlap, *counts])


def fit_weights(found: Pool, labelled: Labelled, use: Sequence[int], rows: np.ndarray) -> np.ndarray:
    """Weights of the features `use` (the others 0), from the cases of the mask `rows`."""
    every = features(found)
    columns = list(use)
    scale = every[:, columns].std(axis=0) + 1e-9
    x = every[:, columns] / scale
    scores, weights = found.margin, np.zeros(len(columns))
    for _ in range(ROUNDS):
        best = found.first_of(scores)
        of_case = np.zeros((found.n_cases, len(columns)))
        of_case[found.case[best]] = x[best]
        weights = _ordering(of_case, labelled, rows)
        scores = x @ weights
    out = np.zeros(len(FEATURES))
    out[columns] = weights / scale
    return out


def _ordering(x: np.ndarray, labelled: Labelled, rows: np.ndarray) -> np.ndarray:
    """Newton's method on the ridge-penalised likelihood of every pair's order; each source weighs the same."""
    differences, weights = [], []
    for source in np.unique(labelled.sources):
        true, false = (
            np.flatnonzero((labelled.sources == source) & (labelled.labels == label) & rows)
            for label in (True, False)
        )
        if len(true) and len(false):
            pairs = (x[true][:, None] - x[false][None]).reshape(-1, x.shape[1])
            differences.append(pairs)
            weights.append(np.full(len(pairs), 1 / len(pairs)))
    d, w = np.concatenate(differences), np.concatenate(weights)
    w /= w.sum()
    found = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(d @ found, -30, 30)))
        gradient = d.T @ (w * (1 - p)) - RIDGE * found
        hessian = (d * (w * p * (1 - p))[:, None]).T @ d + RIDGE * np.eye(len(found))
        found += np.linalg.solve(hessian, gradient)
    return found
