"""Thresholds and temperature from labelled claims: arrays in, numbers out.

A claim is flagged where its score, the P(entailment) that its verdict hangs on, is below the threshold. What counts as
positive is a flag, as for those who read flags in the morning. Fitted on one half of the groups (claims of one article stand
or fall together), to be reported on the other. The temperature is that of Guo et al. 2017 ("On calibration of modern
neural networks"), for one log-odds. Knows no judge, file or rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from claimscore.jobs.trust import TAIL, Bools, Floats, Ints, Labelled, log_odds, ratio, resampled

_LOOSE = 1e-9  # sums of weights in another order


@dataclass(frozen=True, slots=True)
class Goal:
    """What a threshold is chosen for."""

    kind: Literal["balanced", "precision", "recall", "cost"] = "balanced"
    """Best balanced accuracy; or the most flags of at least this precision; or the fewest false alarms at this recall; or
    the lowest cost where an unsupported claim that passes costs `value` false alarms."""
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Fit:
    """A threshold, its bounds over resamples, and whether the goal was reached with it."""

    threshold: float
    low: float
    high: float
    reached: bool


def fitting_half(groups: Ints, strata: Sequence[str], keys: Sequence[str]) -> Bools:
    """Which claims thresholds may be fitted on: whole groups, dealt in turn within each stratum of their first claim.

    In the order of a hash of the groups' keys, so that the order of rows does not matter.

    Args:
        groups: (N,) group numbers.
        strata: (N,) what both halves should have alike, such as label and source; the first part of the name is balanced
            even where every stratum has one group.
        keys: (N,) names of the groups that outlive a shuffle of the rows.
    """
    first: dict[int, tuple[str, str]] = {}
    order = sorted(range(len(groups)), key=lambda k: (keys[k], strata[k]))
    for k in order:
        first.setdefault(int(groups[k]), (strata[k], hashlib.sha256(keys[k].encode()).hexdigest()))
    dealt = sorted(first, key=first.__getitem__)  # by stratum, then by hash: every other one
    chosen = dealt[::2]
    return np.isin(groups, np.fromiter(chosen, np.int64, len(chosen)))


def fit_threshold(labelled: Labelled, goal: Goal, *, lowest: float = 0.0, highest: float = 1.0) -> Fit:
    """The threshold of a goal within bounds, to three decimals, and where resamples of the groups would put it.

    Args:
        labelled: the fitting half; both classes must occur.
        goal: what for.
        lowest: the lowest threshold that the evidence stage allows.
        highest: the highest.
    """
    order = np.argsort(labelled.scores, kind="stable")
    sorted_ = labelled.take(order)
    distinct = np.unique(np.round(sorted_.scores, 6))
    candidates = np.unique(np.concatenate([[lowest, highest], (distinct[1:] + distinct[:-1]) / 2]).round(3))
    candidates = candidates[(candidates >= lowest) & (candidates <= highest)]
    below = np.searchsorted(sorted_.scores, candidates, side="left")
    best, reached = _best(sorted_, sorted_.weights[None], below, goal)
    places = [_best(sorted_, weights, below, goal)[0] for weights in resampled(sorted_, factor=1)]
    low, high = np.quantile(candidates[np.concatenate(places)], [TAIL, 1 - TAIL])
    threshold = float(candidates[best[0]])
    return Fit(threshold, min(float(low), threshold), max(float(high), threshold), bool(reached[0]))


def _best(labelled: Labelled, weights: Floats, below: Ints, goal: Goal) -> tuple[Ints, Bools]:
    """The best candidate of each row of `weights` (B, N sorted by score), and whether it reaches the goal; (B,) each.

    `below`: how many claims each candidate flags.
    """
    bad = weights * ~labelled.supported
    flagged_bad, flagged_good = (_sums_before(part, below) for part in (bad, weights - bad))
    n_bad, n_good = bad.sum(axis=1, keepdims=True), (weights - bad).sum(axis=1, keepdims=True)
    recall = ratio(flagged_bad, n_bad)
    precision = ratio(flagged_bad, flagged_bad + flagged_good)
    if goal.kind == "recall":
        reached = np.nan_to_num(recall) >= goal.value - _LOOSE
        return np.where(reached.any(axis=1), reached.argmax(axis=1), len(below) - 1), reached.any(axis=1)
    if goal.kind == "precision":
        reached = np.nan_to_num(precision) >= goal.value - _LOOSE
        last = len(below) - 1 - reached[:, ::-1].argmax(axis=1)
        fallback = np.nan_to_num(precision).argmax(axis=1)
        return np.where(reached.any(axis=1), last, fallback), reached.any(axis=1)
    if goal.kind == "cost":
        worth = -(goal.value * (n_bad - flagged_bad) + flagged_good)
    else:
        worth = np.nan_to_num((recall + 1 - ratio(flagged_good, n_good)) / 2)
    is_best = worth >= worth.max(axis=1, keepdims=True) - _LOOSE
    # Of a run of equally good ones the middle: it does not hang on one claim.
    rank = np.cumsum(is_best, axis=1)
    middle = (rank == (rank[:, -1:] + 1) // 2) & is_best
    return middle.argmax(axis=1), np.ones(len(weights), bool)


def fit_temperature(labelled: Labelled) -> float:
    """What log-odds of the scores are divided by so that they fit the labels best (least log-loss), 0.05 to 20.

    Golden-section search: the loss is convex in the inverse.
    """
    odds = log_odds(labelled.scores)

    def loss(log_t: float) -> float:
        z = odds / np.exp(log_t)
        return float((labelled.weights * (np.logaddexp(0, z) - labelled.supported * z)).sum())

    low, high = np.log(0.05), np.log(20.0)
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return round(float(np.exp((low + high) / 2)), 3)


def _sums_before(weights: Floats, places: Ints) -> Floats:
    """(B, C): for each place the sum of all before it."""
    sums: Floats = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1)], axis=1)[
        :, places
    ]
    return sums
