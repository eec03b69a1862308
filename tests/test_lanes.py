"""Work side by side: every work once and in order, one thread of torch a lane, and errors that do not hang."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from claimscore.jobs.lanes import budget_of, in_lanes


@pytest.mark.parametrize("n_lanes", [1, 2, 5])
@pytest.mark.parametrize("n_works", [0, 1, 7])
def test_every_work_is_done_once_and_told_in_order(n_lanes, n_works):
    """As many results as works, in their order, whatever lane was first."""
    found = list(in_lanes(lambda k: k * k, list(range(n_works)), n_lanes))

    assert found == [(k, k * k) for k in range(n_works)]


def test_lanes_work_at_once_with_one_thread_of_torch_each():
    """Two lanes meet at a barrier, which one alone would never pass; this thread's setting is left alone."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    barrier = threading.Barrier(2, timeout=120)

    def meet(_):
        barrier.wait()
        return torch.get_num_threads(), threading.current_thread() is threading.main_thread()

    try:
        assert [found for _, found in in_lanes(meet, [0, 1], 2)] == [(1, False)] * 2
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_later_thread_begins_with_the_setting_from_before():
    """A second judge of the process, loaded in a thread of its own, gets all cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        list(in_lanes(lambda _: torch.get_num_threads(), [0, 1], 2))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_lanes_begun_beside_others_leave_the_setting_from_before():
    """Two judges of one process, each in a thread: the second's lanes begin while the first's have set theirs, and end later."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with ThreadPoolExecutor(1) as beside:
            first = in_lanes(lambda k: k, [0, 1], 2)
            next(first)
            second = in_lanes(lambda k: k, [0, 1], 2)
            beside.submit(next, second).result()
            first.close()
            beside.submit(second.close).result()
        with ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_one_work_stays_in_this_thread_with_all_its_threads():
    """There is nothing beside which it could run."""
    (found,) = in_lanes(lambda _: threading.current_thread(), [0], 4)

    assert found[1] is threading.current_thread()


def test_an_error_is_raised_and_what_has_not_begun_is_left():
    """The first error ends it: of a thousand works only those under way are still done."""
    begun = []

    def fail(k):
        begun.append(k)
        raise ValueError(f"work {k}")

    with pytest.raises(ValueError, match="work 0"):
        list(in_lanes(fail, list(range(1000)), 2))

    assert len(begun) < 1000


@pytest.mark.parametrize(
    ("n_tokens", "n_lanes", "budget"),
    [(0, 2, 128), (100, 2, 128), (600, 2, 300), (601, 2, 301), (10_000, 2, 1024)],
)
def test_few_tokens_are_shared_out(n_tokens, n_lanes, budget):
    """Every lane gets a part, no part is too small to be worth it, and none too large for a core's cache."""
    assert budget_of(n_tokens, n_lanes, most=1024) == budget
