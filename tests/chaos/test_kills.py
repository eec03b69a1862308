"""A whole run killed at its boundaries and at random moments: the run after it loses, doubles and changes no row."""

from __future__ import annotations

import pytest
from campaign import Campaign

SEED = 20261130


def test_a_run_killed_at_any_kind_of_boundary_ends_equal(tmp_path):
    """At six of the kinds (write, rename, manifest, run.json, pointer, lock): the rerun equals an unbroken run."""
    with Campaign(tmp_path, SEED, small=True) as campaign:
        campaign.boundary_kills(at_most=6)

    assert campaign.counts["boundary kills"] == 6


def test_a_run_killed_at_random_ends_equal(tmp_path):
    """Runs killed again and again at any moment, from any start: what is there in the end is as if nothing had been."""
    with Campaign(tmp_path, SEED, small=True) as campaign:
        campaign.random_kills(lambda counts: counts["random kills"] >= 3)


@pytest.mark.slow
def test_two_hundred_random_kills_cost_no_row(tmp_path):
    """The long form: 200 kills, and a run killed at every single one of its boundaries."""
    with Campaign(tmp_path, SEED) as campaign:
        campaign.boundary_kills()
        campaign.random_kills(lambda counts: counts["random kills"] >= 200)

    counts = campaign.counts
    assert counts["boundary kills"] == counts["boundaries"] > counts["kinds of boundary"]
    assert counts["kinds of boundary killed at"] == counts["kinds of boundary"] >= 36
    assert counts["outputs that held"] > counts["boundaries"]
    print(dict(counts))  # noqa: T201 - what it came to, for who runs it with -s
