"""The queues of scripts/simulate_fleet.py: known answers, and laws that any fleet obeys."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PATH = Path(__file__).resolve().parent.parent / "scripts" / "simulate_fleet.py"
spec = importlib.util.spec_from_file_location("simulate_fleet", PATH)
model = importlib.util.module_from_spec(spec)
sys.modules["simulate_fleet"] = model
spec.loader.exec_module(model)

STEPS = (("cores", 1.0), ("gpu", 2.0), ("cores", 1.0))


def run(**changes):
    """Ten shards of four seconds on two cores and a GPU."""
    return model.Run(
        **{"servers": {"cores": 2, "gpu": 1}, "steps": STEPS, "n_shards": 10, "in_flight": 4} | changes
    )


def test_the_slowest_station_sets_the_time():
    """Ten shards need twenty seconds of one GPU; a second before and one after are not hidden."""
    assert model.simulate(run()).wall_s == pytest.approx(22.0)


def test_one_shard_at_a_time_adds_up():
    """With one in flight nothing overlaps."""
    assert model.simulate(run(in_flight=1)).wall_s == pytest.approx(40.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 3), st.floats(0, 0.5), st.integers(0, 5))
def test_no_fleet_is_faster_than_its_work(n_shards, in_flight, n_gpus, spread, seed):
    """No station serves more seconds than it has, and every shard is served every step."""
    fleet = run(n_shards=n_shards, in_flight=in_flight, servers={"cores": 2, "gpu": n_gpus}, spread=spread)
    out = model.simulate(fleet, seed)
    for name, n in fleet.servers.items():
        assert out.busy_s[name] <= n * out.wall_s + 1e-9
    if not spread:
        assert out.busy_s == pytest.approx({"cores": 2.0 * n_shards, "gpu": 2.0 * n_shards})


def test_a_lost_node_costs_time_and_nothing_else():
    """Its shards begin anew, and all of them end."""
    fleet = {"servers": {"cores": 4, "gpu": 2}, "n_nodes": 2, "n_shards": 40}
    whole = model.simulate(run(**fleet))
    lost = model.simulate(run(**fleet, lost_at_s=10.0, restart_s=20.0))
    assert lost.n_redone > 0
    assert whole.wall_s + 5 < lost.wall_s < whole.wall_s + 30
    assert lost.busy_s["gpu"] >= whole.busy_s["gpu"]


def test_the_only_node_comes_back():
    """A fleet of one node waits for it."""
    lost = model.simulate(run(lost_at_s=10.0, restart_s=100.0))
    assert lost.wall_s > 110


def test_the_same_seed_gives_the_same_night():
    """Times are drawn, and drawn again the same."""
    slow = {"spread": 0.3, "slow_share": 0.1, "slow_factor": 5.0}
    first, again, other = (model.simulate(run(**slow), seed).wall_s for seed in (1, 1, 2))
    assert first == again != other
