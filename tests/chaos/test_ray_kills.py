"""Two Ray nodes, and processes of a run on them that are killed: the output is that of a run that nothing interrupted."""

from __future__ import annotations

import random
from pathlib import Path

import chaos_job
import pytest
from ray_fleet import ROLES, Fleet

SEED = 20261130


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two nodes, and a deployment."""
    with Fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def check(out: Path, fleet: Fleet) -> None:
    """The output is whole, and every value is as it would be without a kill."""
    assert chaos_job.problems(out, finished=True) == []
    assert chaos_job.differences(out, fleet.expected) == []


def test_a_run_outlives_its_second_node(fleet: Fleet):
    """A node killed in mid-run takes its shard and its models with it: the run ends whole, or a rerun makes it so."""
    out = fleet.folder / "node"

    killed, code = fleet.run_and_kill(out, ["raylet"], after=4)

    assert killed == ["raylet"]
    assert code == 0 or (code == 3 and fleet.finish(fleet.start(out)) == 0)
    check(out, fleet)
    fleet.add_node()


@pytest.mark.slow
def test_a_killed_driver_on_a_cluster_costs_no_row(fleet: Fleet):
    """The cluster outlives the driver of a run; the run after it goes on at once, and its workers write beside nobody."""
    out = fleet.folder / "driver"

    killed, code = fleet.run_and_kill(out, ["shard", "driver"], after=4)

    assert (killed, code) == (["shard", "driver"], -9)
    assert fleet.finish(fleet.start(out)) == 0
    check(out, fleet)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_a_run_outlives_its_processes(fleet: Fleet, role: str):
    """Each process of a run killed twice at random: the run ends whole, or the one after it does."""
    rng = random.Random(f"{SEED} {role}")
    for number in range(3):
        out = fleet.folder / f"{role}-{number}"
        assert fleet.survive(out, [role, role], rng)
        check(out, fleet)
