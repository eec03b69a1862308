"""What a function gave for a text, remembered as long as it fits in a fixed number of bytes.

`lru_cache` counts entries, and the texts of a shard differ a thousandfold: as many entries as one shard of usual texts
needs would hold gigabytes of hostile ones. Two halves take turns: what was not asked for while one half filled is
forgotten. Knows nothing of what is remembered but how large it is said to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

ENTRY_BYTES = 300
"""Of a dictionary entry, the string's head and a small tuple."""


class Remembered(Generic[T]):
    """`make`, with its results for the texts asked for last.

    Args:
        make: a pure function of a text.
        size: about how many bytes a result takes beside its text; never more than a small factor off.
        max_bytes: of all results and texts together.
    """

    def __init__(self, make: Callable[[str], T], size: Callable[[T], int], max_bytes: int) -> None:
        self._make, self._size, self._half = make, size, max_bytes // 2
        self._recent: dict[str, T] = {}
        self._older: dict[str, T] = {}
        self._n_bytes = 0

    def __call__(self, text: str) -> T:
        """`make(text)`."""
        if text in self._recent:
            return self._recent[text]
        found = self._older[text] if text in self._older else self._make(text)
        n_bytes = ENTRY_BYTES + len(text) + self._size(found)
        if self._n_bytes + n_bytes > self._half:
            self._older, self._recent, self._n_bytes = self._recent, {}, 0
        if n_bytes <= self._half:
            self._recent[text] = found
            self._n_bytes += n_bytes
        return found
