"""The fleet model against real runs: stub models on one and on two Ray nodes of this machine, predicted and measured.

The models sleep as long as a set speed says, one call after the other, so the GPU's part of a shard is known. The rest is
measured in a first run of a few shards, one at a time: between its calls a shard computes (CPU seconds of its worker)
and waits (disk, Ray); and what the driver computes for each is taken from a run of many shards of one row. From these the model of scripts/simulate_fleet.py predicts a run
of more shards, several at a time, on one node and on two with twice the models. All nodes share the cores of this
machine; what others leave of those is measured before each run, by processes that do nothing but count. Nothing is fitted
to what is predicted. Prints a table, and one JSON document as the last line.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
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

DATE, IN_FLIGHT_A_NODE, N_FIRST, N_MANY = "2026-01-01", 4, 4, 40
N_CORES = len(os.sched_getaffinity(0))
COUNT = """
import time
began, cpu = time.perf_counter(), time.process_time()
while time.perf_counter() < began + 1:
    pass
print((time.process_time() - cpu) / (time.perf_counter() - began))
"""
"""The share of a core that a process gets which wants all of one."""
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


class Steps:
    """What a shard did, in order: (`own`, CPU seconds, other seconds) and (`gpu`, seconds asked for, seconds waited)."""

    def __init__(self) -> None:
        self.done: list[tuple[str, float, float]] = []
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    def end_own(self) -> None:
        """Its own work ends here, for now."""
        wall_s, cpu_s = time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s
        self.done.append(("own", cpu_s, wall_s - cpu_s))

    def use(self, gpu: Any, wanted_s: float) -> None:
        """Have the GPU be busy, and wait for it."""
        self.end_own()
        began = time.perf_counter()
        ray.get(gpu.sleep.remote(wanted_s))
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()
        self.done.append(("gpu", wanted_s, self._wall_s - began))


def shard_on_a_gpu(rates: Mapping[str, float]) -> Callable[..., Any]:
    """In place of cluster._run_shard: the same page, with models that sleep; `seconds` are its steps."""

    def run(task: Any, config: Any, run_id: str, handles: dict[str, Any], fs: pafs.FileSystem, _: Any) -> Any:
        steps, gpu = Steps(), handles["gpu"]
        judge = SlowJudge(lambda s: steps.use(gpu, s), rates["pairs_per_s"])
        llm = SlowLlm(lambda s: steps.use(gpu, s), rates["prompts_per_s"])
        models = Models(decomposer=llm, checker=judge, judge=judge)
        report = run_shard(task, config, Store(config.store.out, config.store, run_id=run_id), models, fs)
        steps.end_own()
        report.seconds = steps.done  # type: ignore[assignment]
        return report

    return run


def slowdown() -> float:
    """Wall seconds that a CPU second takes on this machine now, with every core asked for; 1 where nothing else runs."""
    probes = [subprocess.Popen([sys.executable, "-c", COUNT], stdout=subprocess.PIPE) for _ in range(N_CORES)]
    shares = [float(probe.communicate()[0]) for probe in probes]
    return N_CORES / sum(shares)


@dataclass(frozen=True)
class Measured:
    """A real run: its wall and driver seconds, and the steps of each shard."""

    wall_s: float
    driver_cpu_s: float
    shards: list[list[tuple[str, float, float]]]
    slowdown: float


def real_run(
    nodes: Cluster, n_shards: int, rows: int, in_flight: int, rates: Mapping[str, float]
) -> Measured:
    """`n_shards` shards, so many at a time, with a GPU a node; workers are started by shards before them."""
    with tempfile.TemporaryDirectory() as folder:
        return _real_run(nodes, Path(folder), n_shards, rows, in_flight, rates)


def _real_run(
    nodes: Cluster, folder: Path, n_shards: int, rows: int, in_flight: int, rates: Mapping[str, float]
) -> Measured:
    synthetic_log.ROWS_A_GROUP = rows  # a row group is never cut
    n_nodes = len(nodes.list_all_nodes())
    warm = IN_FLIGHT_A_NODE * n_nodes
    synthetic_log.write(folder / "log.parquet", (n_shards + warm) * rows, shape=synthetic_log.SHORT)
    path = bench_job.write_config(folder, folder / "log.parquet", rows)
    config = load_config(path, [f"cluster.address={nodes.address}", f"cluster.shards_in_flight={warm}"])
    plan = plan_day(config, Store(config.store.out, config.store), Weights.of(config), DATE)
    cluster._run_shard = shard_on_a_gpu(rates)  # noqa: SLF001 - the models are what is not real here
    with cluster.RayExecutor(config) as execute:
        execute._actors = Gpus(n_nodes)  # type: ignore[assignment]  # noqa: SLF001
        list(execute(plan.tasks[:warm], plan.fs))
        execute._config = load_config(path, [f"cluster.shards_in_flight={in_flight}"])  # noqa: SLF001
        slow = slowdown()
        began, cpu = time.perf_counter(), time.process_time()
        reports = [report for _, report in execute(plan.tasks[warm:], plan.fs)]
        wall_s, driver_cpu_s = time.perf_counter() - began, time.process_time() - cpu
    assert all(not isinstance(report, str) for report in reports), reports
    return Measured(wall_s, driver_cpu_s, [report.seconds for report in reports], slow)  # type: ignore[union-attr,misc]


def predicted(first: Measured, driver_s: float, n_shards: int, n_nodes: int, slow: float) -> float:
    """What the model says of a run, from the shards of the first one and what a CPU second takes now."""
    n_calls = {len(shard) for shard in first.shards}
    assert len(n_calls) == 1, (
        f"shards of the first run called the models {n_calls} times, expected as often each"
    )
    steps = [("driver", slow * driver_s)]
    for same in zip(*first.shards, strict=True):
        kind, one, other = same[0][0], *(float(np.mean([step[k] for step in same])) for k in (1, 2))
        if kind == "gpu":
            steps.append(("gpu", one))
        else:  # what others took of the cores in the first run is no wait of its own
            steps += [("cores", slow * one), ("waits", max(0.0, other - (first.slowdown - 1) * one))]
    in_flight = IN_FLIGHT_A_NODE * n_nodes
    servers = {"driver": 1, "cores": N_CORES, "waits": in_flight, "gpu": n_nodes}
    wall_s: float = model.simulate(model.Run(servers, steps, n_shards, in_flight, n_nodes=n_nodes)).wall_s
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
    nodes = Cluster(initialize_head=True, head_node_args=NODE)
    first = real_run(nodes, N_FIRST, options.rows, 1, rates)
    many = real_run(nodes, N_MANY, 1, IN_FLIGHT_A_NODE, dict.fromkeys(rates, float("inf")))
    driver_s = many.driver_cpu_s / N_MANY
    rows = []
    for n_nodes in sorted(options.nodes):
        while len(nodes.list_all_nodes()) < n_nodes:
            nodes.add_node(**NODE)
        run = real_run(nodes, options.shards, options.rows, n_nodes * IN_FLIGHT_A_NODE, rates)
        says = predicted(first, driver_s, options.shards, n_nodes, run.slowdown)
        rows.append({"nodes": n_nodes, "shards": options.shards, "slowdown": run.slowdown, "predicted_s": says,
                     "measured_s": run.wall_s, "off": says / run.wall_s - 1})  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    nodes.shutdown()
    print(harness.table([list(rows[0]), *(list(row.values()) for row in rows)]))
    note = {"note": options.note} if options.note else {}
    result = {"rates": rates, "rows_a_shard": options.rows, "first_run": asdict(first), "runs": rows}
    result |= {"driver_s_a_shard": driver_s}
    harness.finish(harness.card("fleet-check") | note | result, record=options.record)


if __name__ == "__main__":
    main()
