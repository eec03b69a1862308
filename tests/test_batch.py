"""Micro-batches: a partition of the pairs, within a budget, longest first."""

from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs.batch import micro_batches

LENGTHS = st.lists(st.integers(1, 512), max_size=200)


@given(LENGTHS, st.integers(1, 4096))
def test_every_pair_lands_in_one_batch(lengths, budget):
    """The batches are a partition of the indices."""
    batches = list(micro_batches(lengths, budget))

    assert list(range(len(lengths))) == sorted(index for batch in batches for index in batch)


@given(LENGTHS, st.integers(512, 4096))
def test_no_batch_is_over_budget(lengths, budget):
    """Real tokens of a batch stay within the budget."""
    assert all(sum(lengths[i] for i in batch) <= budget for batch in micro_batches(lengths, budget))


@given(LENGTHS, st.integers(1, 4096))
def test_a_pair_over_budget_is_alone(lengths, budget):
    """A pair longer than the budget is still scored, by itself."""
    for batch in micro_batches(lengths, budget):
        assert len(batch) == 1 or max(lengths[i] for i in batch) <= budget


@given(LENGTHS, st.integers(1, 4096))
def test_longest_pairs_come_first(lengths, budget):
    """Lengths never rise from one pair to the next."""
    order = [lengths[i] for batch in micro_batches(lengths, budget) for i in batch]

    assert sorted(lengths, reverse=True) == order


def test_batches_are_filled_before_the_next_begins():
    """A batch is closed only by a pair that does not fit."""
    assert list(micro_batches([5, 5, 4, 9, 1], 10)) == [[3], [0, 1], [2, 4]]
