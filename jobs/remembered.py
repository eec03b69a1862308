"""What a function gave for a text, remembered as long as it fits in a fixed number of bytes.

`lru_cache` counts entries, and the texts of a shard differ a thousandfold: as many entries as one shard of usual texts
needs would hold gigabytes of hostile ones. Two halves take turns: what was not asked for while one half filled is
forgotten. Knows nothing of what is remembered but how large it is said to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ENTRY_BYTES = 300
"""Of a dictionary entry, the string's head and a small tuple."""


class Remembered(dict[str, T]):
    """`make`, with its results for the texts asked for last: `remembered[text]`.

    A dictionary that makes what it lacks: to find what is there takes 0.04 microseconds, where a method took 0.25.

    Args:
        make: a pure function of a text.
        size: about how many bytes a result takes beside its text; never more than a small factor off.
        max_bytes: of all results and texts together.
    """

    def __init__(self, make: Callable[[str], T], size: Callable[[T], int], max_bytes: int) -> None:
        super().__init__()
        self._make, self._size, self._half = make, size, max_bytes // 2
        self._older: dict[str, T] = {}
        self._n_bytes = 0

    def __missing__(self, text: str) -> T:
        found = self._older[text] if text in self._older else self._make(text)
        n_bytes = ENTRY_BYTES + len(text) + self._size(found)
        if n_bytes > self._half:
            return found
        if self._n_bytes + n_bytes > self._half:
            self._older, self._n_bytes = dict(self), 0
            self.clear()
        self[text] = found
        self._n_bytes += n_bytes
        return found
