"""Work side by side on a CPU: a thread a core, each of which lets torch use one thread.

A forward pass on all cores waits, after each of its thousand small operations, for the slowest of them, and operations
too small to be parted leave all cores but one idle. Passes side by side wait for nothing: on two cores at rest 1 to 3 %
faster, on two that others use as well 1.9 times in fp32. Knows no model and no pair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

W = TypeVar("W")
R = TypeVar("R")


def in_lanes(run: Callable[[W], R], works: Sequence[W], n_lanes: int) -> Iterator[tuple[W, R]]:
    """Each of `works` with what `run` makes of it, in order; with one lane, or one work, in this thread.

    No works: nothing. What `run` raises is raised here, and what has not begun by then is left.

    Args:
        run: works on tensors; called in other threads, where torch uses one thread.
        works: the largest first, so that no lane is left alone with a large one.
        n_lanes: works at once, at least 1.
    """
    if min(n_lanes, len(works)) <= 1:
        yield from ((work, run(work)) for work in works)
        return
    import torch  # noqa: PLC0415 - seconds; who makes lanes has it loaded

    n_lanes = min(n_lanes, len(works))
    with (
        _kept.setting(torch.get_num_threads, torch.set_num_threads),
        ThreadPoolExecutor(n_lanes, "lane", initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        try:
            yield from zip(works, pool.map(run, works), strict=True)
        finally:
            pool.shutdown(cancel_futures=True)


class _Kept:
    """The setting of torch's threads from before the first lanes of the process, set again after the last.

    What a lane sets is what later threads of the process begin with; lanes begun beside others would take the 1 of
    those for the setting, and leave it.
    """

    def __init__(self) -> None:
        # Again from within: a collection may close the lanes of another generator here.
        self._lock, self._n_users, self._found = threading.RLock(), 0, 0

    @contextmanager
    def setting(self, get: Callable[[], int], put: Callable[[int], None]) -> Iterator[None]:
        with self._lock:
            self._n_users += 1
            if self._n_users == 1:
                self._found = get()
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if not self._n_users:
                    put(self._found)


_kept = _Kept()


def budget_of(n_tokens: int, n_lanes: int, most: int, least: int = 128) -> int:
    """Tokens of a forward pass, so that few pairs still keep every lane busy: `n_tokens` shared out, within bounds."""
    return min(most, max(least, -(-n_tokens // n_lanes)))
