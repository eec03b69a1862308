"""Micro-batches: which pairs share a forward pass, by their lengths and a limit in real tokens.

Pure; knows no tensor, no model and no device. Longest first, so that pairs of nearly one length meet (attention
pads within such groups only) and a batch that does not fit the memory fails in the first second, not the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def micro_batches(lengths: Sequence[int], budget_tokens: int) -> Iterator[list[int]]:
    """Yield lists of indices into `lengths`, longest first, equal lengths in input order.

    Every index is yielded exactly once and no list sums past `budget_tokens`, except that a pair which is
    longer than the budget by itself is yielded alone. No lengths, no lists.
    """
    batch: list[int] = []
    used = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and used + lengths[index] > budget_tokens:
            yield batch
            batch, used = [], 0
        batch.append(index)
        used += lengths[index]
    if batch:
        yield batch
