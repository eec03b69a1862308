"""The fleet model against real runs: stub models on one and on two Ray nodes of this machine, predicted and measured.

The models sleep as long as a set speed says, one call after the other, so the GPU's part of a shard is known; the rest of
a shard (tasks, tables, tokens) is timed in a first run of a few shards on one node. From these the model of
scripts/simulate_fleet.py predicts the time of a run of more shards on one node, and on two with twice the models.
Nothing is fitted to what is predicted. Prints a table, and one JSON document as the last line.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

# Before ray is imported, which reads them.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine takes its time
os.environ.setdefault("RAY_agent_register_timeout_ms", "300000")
import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _harness as harness
import bench_job
import synthetic_log

from claimscore.jobs import cluster
from claimscore.jobs.config_file import load_config
from claimscore.jobs.nightly import plan_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.shard_run import run_shard
from claimscore.jobs.store import Store

DATE, IN_FLIGHT_A_NODE = "2026-01-01", 4
NODE = {"num_cpus": IN_FLIGHT_A_NODE, "object_store_memory": 100 * 1024**2, "include_dashboard": False}
stub_models = bench_job.load(harness.ROOT / "tests" / "stub_models.py")
model = bench_job.load(harness.ROOT / "scripts" / "simulate_fleet.py")


class Sleeper:
    """A GPU with both models: one call after the other, each for so many seconds."""

    def sleep(self, seconds: float) -> None:
        """Be busy."""
        time.sleep(seconds)


class SlowJudge(stub_models.StubJudge):  # type: ignore[misc, name-defined]
    """Says neutral of every pair, after the time that a judge of a set speed would take."""

    def __init__(self, busy: Callable[[float], None], pairs_per_s: float) -> None:
        super().__init__()
        self._busy, self._pairs_per_s = busy, pairs_per_s

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> np.ndarray:
        """(P, 3)."""
        assert len(premise_ids) == len(claim_ids)
        self._busy(len(premise_ids) / self._pairs_per_s)
        return np.tile(np.array([0.05, 0.9, 0.05], dtype=np.float32), (len(premise_ids), 1))


class SlowLlm(stub_models.StubLlm):  # type: ignore[misc, name-defined]
    """Gives each sentence back, after the time that an LLM of a set speed would take."""

    def __init__(self, busy: Callable[[float], None], prompts_per_s: float) -> None:
        super().__init__()
        self._busy, self._prompts_per_s = busy, prompts_per_s

    def complete(self, system: str, users: pa.Array, *, n: int = 1, **options: Any) -> pa.Table:
        """records.REPLIES."""
        self._busy(len(users) / self._prompts_per_s)
        return super().complete(system, users, n=n, **options)


class Gpus:
    """Takes the place of the executor's actors: one sleeper a GPU, given to shards in turn."""

    given_up = ""

    def __init__(self, n: int) -> None:
        self._actors = [ray.remote(num_cpus=0)(Sleeper).remote() for _ in range(n)]
        ray.get([actor.sleep.remote(0) for actor in self._actors])

    def of(self, _: Any, turn: int) -> dict[str, Any]:
        """A handle."""
        return {"gpu": self._actors[turn % len(self._actors)]}

    def heed(self, *_: Any) -> None:
        """Nothing fails here."""

    def close(self) -> None:
        """They end with the cluster."""


def shard_on_a_gpu(rates: Mapping[str, float]) -> Callable[..., Any]:
    """In place of cluster._run_shard: the same page, with models that sleep; `seconds` say where its time went."""

    def run(task: Any, config: Any, handles: dict[str, Any], fs: pafs.FileSystem, _: Any) -> Any:
        seconds = {"waited": 0.0, "llm": 0.0, "judge": 0.0}

        def busy(role: str, wanted_s: float) -> None:
            began = time.perf_counter()
            ray.get(handles["gpu"].sleep.remote(wanted_s))
            seconds["waited"] += time.perf_counter() - began
            seconds[role] += wanted_s

        judge = SlowJudge(lambda n: busy("judge", n), rates["pairs_per_s"])
        llm = SlowLlm(lambda n: busy("llm", n), rates["prompts_per_s"])
        models = Models(decomposer=llm, checker=judge, judge=judge)
        began = time.perf_counter()
        report = run_shard(task, config, Store(config.store.out, config.store), models, fs)
        report.seconds = seconds | {"whole": time.perf_counter() - began}
        return report

    return run


def real_run(
    nodes: Cluster, folder: Path, n_shards: int, rows: int, n_nodes: int, rates: Mapping[str, float]
) -> Any:
    """Seconds of `n_shards` shards on so many nodes with a GPU each; workers are started by as many shards before them.

    Gives the wall time, and of each shard where its seconds went.
    """
    synthetic_log.ROWS_A_GROUP = rows  # a row group is never cut
    warm = in_flight = IN_FLIGHT_A_NODE * n_nodes
    synthetic_log.write(folder / "log.parquet", (n_shards + warm) * rows, shape=synthetic_log.SHORT)
    path = bench_job.write_config(folder, folder / "log.parquet", rows)
    config = load_config(path, [f"cluster.address={nodes.address}", f"cluster.shards_in_flight={in_flight}"])
    plan = plan_day(config, Store(config.store.out, config.store), Weights.of(config), DATE)
    cluster._run_shard = shard_on_a_gpu(rates)  # noqa: SLF001 - the models are what is not real here
    with cluster.RayExecutor(config) as execute:
        execute._actors = Gpus(n_nodes)  # type: ignore[assignment]  # noqa: SLF001
        list(execute(plan.tasks[:warm], plan.fs))
        began = time.perf_counter()
        reports = [report for _, report in execute(plan.tasks[warm:], plan.fs)]
        wall_s = time.perf_counter() - began
    assert all(not isinstance(report, str) for report in reports), reports
    return wall_s, [report.seconds for report in reports]


def predicted(shards: list[dict[str, float]], n_shards: int, n_nodes: int) -> float:
    """What the model says of a run, from what the shards of the first run took beside their models."""
    own_s, llm_s, judge_s = (
        float(np.mean([shard[name] for shard in shards])) for name in ("own", "llm", "judge")
    )
    in_flight = IN_FLIGHT_A_NODE * n_nodes
    steps = [
        ("cores", own_s / 3),
        ("gpu", llm_s),
        ("cores", own_s / 3),
        ("gpu", judge_s),
        ("cores", own_s / 3),
    ]
    run = model.Run({"cores": in_flight, "gpu": n_nodes}, steps, n_shards, in_flight, n_nodes=n_nodes)
    wall_s: float = model.simulate(run).wall_s
    return wall_s


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=int, default=12)
    parser.add_argument("--rows", type=int, default=60, help="answers a shard")
    parser.add_argument("--prompts-per-s", type=float, default=40)
    parser.add_argument("--pairs-per-s", type=float, default=120)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--note", default="", help="kept in the result: what else ran on the machine")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rates = {"prompts_per_s": options.prompts_per_s, "pairs_per_s": options.pairs_per_s}
    ray.cloudpickle.register_pickle_by_value(stub_models)
    shards: list[dict[str, float]] = []
    rows = []
    nodes, n_started = Cluster(initialize_head=True, head_node_args=NODE), 1
    for n_nodes, n_shards in [(1, IN_FLIGHT_A_NODE), *((n, options.shards) for n in sorted(options.nodes))]:
        while n_started < n_nodes:
            nodes.add_node(**NODE)
            n_started += 1
        with tempfile.TemporaryDirectory() as folder:
            wall_s, seconds = real_run(nodes, Path(folder), n_shards, options.rows, n_nodes, rates)
        if not shards:
            shards = [one | {"own": one["whole"] - one["waited"]} for one in seconds]
            continue
        says = predicted(shards, n_shards, n_nodes)
        rows.append({"nodes": n_nodes, "shards": n_shards, "predicted_s": says, "measured_s": wall_s,
                     "off": says / wall_s - 1})  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    nodes.shutdown()
    print(harness.table([list(rows[0]), *(list(row.values()) for row in rows)]))
    note = {"note": options.note} if options.note else {}
    result = {"rates": rates, "rows_a_shard": options.rows, "first_run": shards, "runs": rows}
    harness.finish(harness.card("fleet-check") | note | result, record=options.record)


if __name__ == "__main__":
    main()
