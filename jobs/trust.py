"""How far a judge can be trusted: figures of its flags and scores against people, each with an interval.

Flags are what is positive. Intervals are 95% of a Poisson bootstrap of whole groups (Chamandy et al. 2012), with the weights
of a sample that was drawn unevenly. Knows no threshold, judge or file: arrays in, numbers out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from claimscore.jobs.metrics import POISSON

Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

N_RESAMPLES = 1_000
SEED = 20_240_601
N_BINS = 10
RATES = ("balanced_accuracy", "f1", "kappa", "precision", "recall")
"""Of flags against people: in `rates`, each with an interval."""
TAIL = 0.025
"""On either side of a 95% interval."""
_BLOCK = 2_000_000  # weights of resamples held at once: 16 MB
_NEAREST = 1e-4
"""A score of 0 or 1 counts as this near: its log-odds must be finite."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """N labelled claims with their scores, as columns."""

    supported: Bools
    """What people say."""
    scores: Floats
    """0 to 1."""
    weights: Floats
    """How many claims of the log each stands for; 1 where nobody sampled."""
    groups: Ints
    """Claims of one number are resampled together."""

    def take(self, rows: Bools | Ints) -> Labelled:
        """The claims of `rows`, places or a mask."""
        return Labelled(self.supported[rows], self.scores[rows], self.weights[rows], self.groups[rows])

    def __len__(self) -> int:
        return len(self.supported)

    @property
    def n_effective(self) -> float:
        """As many claims of equal weight would tell as much (Kish 1965)."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum()) if len(self) else 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A value between its bounds; None where it has no meaning."""

    value: float | None
    low: float | None
    high: float | None


def log_odds(scores: Floats, nearest: float = _NEAREST) -> Floats:
    """Log-odds of scores, those of 0 and 1 cut to what is finite."""
    p = np.clip(scores, nearest, 1 - nearest)
    odds: Floats = np.log(p / (1 - p))
    return odds


def tempered(scores: Floats, temperature: float) -> Floats:
    """The scores as chances: log-odds divided by the temperature."""
    chances: Floats = 1 / (1 + np.exp(-log_odds(scores) / temperature))
    return chances


def rates(labelled: Labelled, flagged: Bools, *, factor: int = 1) -> dict[str, Figure]:
    """RATES of flags against people, and `n`.

    Args:
        labelled: the reporting half.
        flagged: (N,) what the job does not call supported.
        factor: intervals as of so many times the groups.
    """
    found = _rates_of(labelled, flagged, labelled.weights[None])
    drawn = [_rates_of(labelled, flagged, weights) for weights in resampled(labelled, factor=factor)]
    n_groups = len(np.unique(labelled.groups)) * factor
    return {
        name: _figure(float(found[name][0]), np.concatenate([part[name] for part in drawn]), n_groups)
        for name in RATES
    }


def share(labelled: Labelled, mask: Bools) -> Figure:
    """The weighted share of the claims of a mask."""
    drawn = [ratio(weights @ mask, weights.sum(axis=1)) for weights in resampled(labelled)]
    value = float(np.average(mask, weights=labelled.weights)) if len(labelled) else float("nan")
    return _figure(value, np.concatenate(drawn), len(np.unique(labelled.groups)))


def _rates_of(labelled: Labelled, flagged: Bools, weights: Floats) -> dict[str, Floats]:
    bad = ~labelled.supported
    tp, fp, fn, tn = (
        weights @ cell.astype(np.float64)
        for cell in (flagged & bad, flagged & ~bad, ~flagged & bad, ~flagged & ~bad)
    )
    n = tp + fp + fn + tn
    by_chance = ratio((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn), n * n)
    return {
        "balanced_accuracy": (ratio(tp, tp + fn) + ratio(tn, tn + fp)) / 2,
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "kappa": ratio(ratio(tp + tn, n) - by_chance, 1 - by_chance),
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
    }


def auroc(labelled: Labelled) -> Figure:
    """The chance that a supported claim scores above another; ties count half."""
    _, bins = np.unique(labelled.scores, return_inverse=True)
    found = _auroc_of(labelled, bins, labelled.weights[None])
    drawn = [_auroc_of(labelled, bins, w) for w in resampled(labelled, factor=1)]
    return _figure(float(found[0]), np.concatenate(drawn), len(np.unique(labelled.groups)))


def _auroc_of(labelled: Labelled, bins: Ints, weights: Floats) -> Floats:
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    good = np.add.reduceat((weights * labelled.supported)[:, order], starts, axis=1)
    bad = np.add.reduceat((weights * ~labelled.supported)[:, order], starts, axis=1)
    below = np.cumsum(bad, axis=1) - bad / 2
    return ratio((good * below).sum(axis=1), good.sum(axis=1) * bad.sum(axis=1))


def reliability(labelled: Labelled, chances: Floats) -> dict[str, Any]:
    """How often claims of a chance are supported, in N_BINS bins of equal width, and the expected calibration error.

    Returns:
        `bins` (low, high, n, mean_chance, share_supported and its Wilson bounds; None in an empty bin), `ece` with its
        interval and `ece_by_chance`: what so few claims would show on average though every chance were right.
    """
    bins = np.minimum((chances * N_BINS).astype(np.int64), N_BINS - 1)
    rows = []
    for b in range(N_BINS):
        some = labelled.take(bins == b)
        row: dict[str, Any] = {"low": b / N_BINS, "high": (b + 1) / N_BINS, "n": len(some)}
        share = float(np.average(some.supported, weights=some.weights)) if len(some) else None
        mean = float(np.average(chances[bins == b], weights=some.weights)) if len(some) else None
        low, high = (None, None) if share is None else _wilson(share, some.n_effective)
        rows.append(
            row | {"mean_chance": mean, "share_supported": share, "share_low": low, "share_high": high}
        )
    gap = labelled.supported - chances
    found = _ece(gap[None], bins, labelled.weights[None])
    drawn = [_ece(gap[None], bins, weights) for weights in resampled(labelled, factor=1)]
    right = np.random.default_rng(SEED).random((200, len(labelled))) < chances
    by_chance = _ece(right - chances, bins, labelled.weights[None]) if len(labelled) else np.array([np.nan])
    figure = _figure(float(found[0]), np.concatenate(drawn), len(labelled))
    return {"bins": rows, "ece": figure, "ece_by_chance": _finite(float(by_chance.mean()))}


def _ece(gap: Floats, bins: Ints, weights: Floats) -> Floats:
    """Sum over bins of |weighted gap|, over all weight; gap (1 or B, N), weights (1 or B, N)."""
    of_bin = (bins[:, None] == np.arange(N_BINS)).astype(np.float64)
    return ratio(np.abs((gap * weights) @ of_bin).sum(axis=1), weights.sum(axis=1))


def _wilson(share: float, n: float) -> tuple[float, float]:
    z = 1.96
    middle, spread = share + z * z / (2 * n), z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = (middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n)
    return max(0.0, float(low)), min(1.0, float(high))


def resampled(labelled: Labelled, *, factor: int = 1) -> list[Floats]:
    """Weights (B, N) of resamples, in blocks: every group counts Poisson(factor) times."""
    rng = np.random.default_rng(SEED)
    _, groups = np.unique(labelled.groups, return_inverse=True)
    n_groups = int(groups.max(initial=-1)) + 1
    step = max(1, _BLOCK // max(1, len(labelled) + n_groups * factor))
    blocks = []
    for first in range(0, N_RESAMPLES, step):
        shape = (min(step, N_RESAMPLES - first), n_groups, factor)
        counts = POISSON[rng.integers(0, 65_536, size=shape, dtype=np.uint16)].sum(axis=2)
        blocks.append(counts[:, groups] * labelled.weights)
    return blocks


def ratio(above: Floats, below: Floats) -> Floats:
    """Quotients; NaN over 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient: Floats = np.where(below != 0, above / below, np.nan)
    return quotient


def _figure(value: float, drawn: Floats, n_groups: int) -> Figure:
    """95% bounds; where all resamples agree they say nothing, and the bounds allow for one unlike group unseen (as metrics)."""
    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or not len(drawn):
        return Figure(None, None, None)
    low, high = (float(x) for x in np.quantile(drawn, [TAIL, 1 - TAIL]))
    if high - low < 1e-12:
        seen = TAIL ** (1 / max(1, n_groups))
        low, high = seen * value, seen * value + 1 - seen
    return Figure(value, min(low, value), max(high, value))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
