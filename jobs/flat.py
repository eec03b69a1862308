"""Lists that lie one after the other in one array: the places of some of them. Knows no column and no text."""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]


def runs(firsts: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> Ints:
    """`sizes[k]` numbers in a row from `firsts[k]` on, for each k, flat; of no lists none."""
    ends = np.cumsum(sizes)
    out: Ints = np.arange(int(sizes.sum())) + np.repeat(firsts - (ends - sizes), sizes)
    return out
