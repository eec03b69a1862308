"""The weights of a judge card's combiner from labelled claims: arrays in, numbers out.

A claim is as good as its best premise, so which premise speaks for it depends on the weights and the weights on which
premise speaks: both are found in turn, a logistic regression (ridge-penalised, Newton's method) over the best pair of each
claim, until the choice stands still. Both classes weigh the same, for a threshold is fitted afterwards. Knows no judge,
no text and no file.
"""

from __future__ import annotations

import numpy as np

from claimscore.jobs.config import Combiner
from claimscore.jobs.thresholds import MOST_NAMES, NEAREST
from claimscore.jobs.trust import Bools, Floats, Ints, log_odds

FEATURES = ("entailment", "contradiction", "overlap", "names")
ROUNDS = 8
RIDGE = 0.002
"""Of the mean loss of standardised features; 0.0005 to 0.02 give the same order within 0.002 of AUROC on 911 claims."""


def features(p_entailment: Floats, p_contradiction: Floats, overlap: Floats, n_missing_names: Ints) -> Floats:
    """(P, 4) in the order of FEATURES, as thresholds.Thresholds.support weighs them."""
    names = np.clip(n_missing_names, 0, MOST_NAMES)
    odds = (log_odds(p, NEAREST) for p in (p_entailment, p_contradiction))  # as it will be weighed
    return np.column_stack([*odds, overlap, names])


def fit_combiner(pairs: Floats, claim_of_pair: Ints, supported: Bools, weights: Floats) -> Combiner:
    """Fit the weights to labelled claims.

    Args:
        pairs: (P, 4) from `features`.
        claim_of_pair: (P,) the claim of each pair, 0 to N - 1; each claim has one at least.
        supported: (N,) what people say; both classes must occur.
        weights: (N,) how many claims of the log each stands for.

    Returns:
        The combiner; a feature that never varies has weight 0.
    """
    spread = pairs.std(axis=0)
    scale = np.where(spread > 1e-9, spread, np.inf)
    balanced = (
        np.where(supported, weights / weights[supported].sum(), weights / weights[~supported].sum()) / 2
    )
    scores, found = pairs[:, 0] - pairs[:, 1], np.zeros(1 + pairs.shape[1])
    chosen = np.full(len(supported), -1)
    for _ in range(ROUNDS):
        best = _best_pairs(scores, claim_of_pair, len(supported))
        if (best == chosen).all():
            break
        chosen = best
        found = _logistic(pairs[chosen] / scale, supported, balanced)
        scores = pairs @ (found[1:] / scale)
    return Combiner(
        intercept=_short(found[0]), **dict(zip(FEATURES, map(_short, found[1:] / scale), strict=True))
    )


def _best_pairs(scores: Floats, claim_of_pair: Ints, n_claims: int) -> Ints:
    """The place of each claim's highest score, the first of equals."""
    order = np.lexsort((np.arange(len(scores)), -scores, claim_of_pair))
    places: Ints = order[np.searchsorted(claim_of_pair[order], np.arange(n_claims))]
    return places


def _logistic(x: Floats, y: Bools, weights: Floats) -> Floats:
    """Intercept and weights of least penalised log-loss; `weights` add up to 1."""
    x = np.column_stack([np.ones(len(x)), x])
    ridge = RIDGE * np.eye(x.shape[1])
    ridge[0, 0] = 0
    found = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        gradient = x.T @ (weights * (y - p)) - ridge @ found
        hessian = (x * (weights * p * (1 - p))[:, None]).T @ x + ridge
        found = found + np.linalg.solve(hessian, gradient)
    return found


def _short(value: float) -> float:
    return round(float(value), 3)
