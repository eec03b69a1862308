"""Which windows together cover a claim: the sets that are worth joining into one premise (multi-hop).

The best set of windows, and the best ones without the chunk of each of its members, so that no single chunk can take
a good set's place. Works on token sets and what the judge said of each window; knows no text, table or threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from claimscore.jobs.windows import Bools, Ints

Floats = np.ndarray[Any, np.dtype[np.float32]]

MAX_CANDIDATES = 128
"""Windows of one claim that are tried, the best first: all pairs of them are compared."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one claim: which of its tokens each holds, (windows, tokens), and what else counts in a join."""

    held: Bools
    entailment: Floats
    sizes: Ints
    chunk: Ints


def covers(windows: Windows, n: int, room: int) -> list[list[int]]:
    """The best cover, and the best ones without the chunk of each of its windows; each once, ascending."""
    everything = np.arange(len(windows.sizes))
    best = _cover(windows, everything, n)
    others = [_cover(windows, everything[windows.chunk != windows.chunk[k]], n) for k in best]
    distinct = dict.fromkeys(tuple(sorted(rows)) for rows in (best, *others) if len(rows) > 1)
    return [list(rows) for rows in distinct if windows.sizes[list(rows)].sum() <= room]


def _cover(windows: Windows, among: Ints, n: int) -> list[int]:
    """The two windows with the greatest share of the claim plus better entailment, then those that add most.

    Each window adds tokens that the others lack; none fits: []. What a pair of windows is worth does not depend on
    the other windows: a window that is not in the result can be left away or added without changing it.
    """
    if len(among) > MAX_CANDIDATES:
        value = windows.held[among].mean(axis=1) + windows.entailment[among]
        among = np.sort(among[np.argsort(-value, kind="stable")[:MAX_CANDIDATES]])
    holds = windows.held[among].astype(np.float32)
    sizes, entailment = holds.sum(axis=1), windows.entailment[among]
    union = sizes[:, None] + sizes - holds @ holds.T
    worth = union / max(1, holds.shape[1]) + np.maximum(entailment[:, None], entailment)
    worth[union <= np.maximum(sizes[:, None], sizes)] = -1.0
    if not worth.size or worth.max() < 0:
        return []
    picked = [int(k) for k in np.unravel_index(worth.argmax(), worth.shape)]
    while len(picked) < n:
        gains = holds[:, ~windows.held[among[picked]].any(axis=0)].sum(axis=1)
        if not gains.any():
            break
        picked.append(int(np.lexsort((-entailment, -gains))[0]))
    return [int(among[k]) for k in picked]
