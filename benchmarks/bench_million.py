"""A whole large day through the job with stub models: wall time by phase, memory, what lies on disk, time to resume.

One process, shards one after the other, over a drawn log of short answers (two chunks of forty words, two sentences) in
files of 20,000. After it the day is run again: how long `run` takes to find that nothing is to be done. The stubs' own
time is part of `claims` and `scores` and is given beside them. Shards know nothing of one another, so their cost is
linear; what may not be is the driver's part (plan, repeated ids, accounts, metrics, resume). `--made N` makes the first N
answers and gives the shards after them copies of those tables: the driver's part in full in a fraction of the time. The
result says so. Prints aligned tables, and one JSON document as the last line.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow.fs as pafs

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _harness as harness
import bench_job
import synthetic_log

from claimscore.jobs.config_file import load_config
from claimscore.jobs.layout import TableFile
from claimscore.jobs.nightly import Outcome, execute_here, plan_day, run_day
from claimscore.jobs.plan import TABLES, ShardTask, Weights
from claimscore.jobs.shard_run import ShardReport
from claimscore.jobs.store import Store, fingerprint_of

T = TypeVar("T")
DATE = "2026-01-01"
ROWS_A_FILE = 20_000


class Phases:
    """Wall and CPU seconds of each phase, and this process's memory after it."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float]] = {}

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        """What `work` gives; its cost is kept under `name`."""
        harness.reset_peak()
        began, cpu = time.perf_counter(), time.process_time()
        made = work()
        self.rows[name] = {
            "wall_s": round(time.perf_counter() - began, 3),
            "cpu_s": round(time.process_time() - cpu, 3),
            "peak_mib": round(harness.memory_mib(), 1),
            "rss_mib": round(harness.memory_mib("VmRSS"), 1),
        }
        print(f"{name}: {self.rows[name]}", file=sys.stderr, flush=True)
        return made


class Seconds(float):
    """Seconds on the clock that carry those of the CPU: on a machine that others use too, these are what the day needs."""

    def __new__(cls, wall: float = 0.0, cpu: float = 0.0) -> Self:
        """Both; a plain number has no CPU seconds."""
        made = super().__new__(cls, wall)
        made.cpu = cpu
        return made

    def __add__(self, other: float) -> Seconds:
        return Seconds(float(self) + float(other), self.cpu + cpu_of(other))

    __radd__ = __add__

    def __sub__(self, other: float) -> Seconds:
        return Seconds(float(self) - float(other), self.cpu - cpu_of(other))


def cpu_of(seconds: float) -> float:
    """What of the CPU they carry."""
    return getattr(seconds, "cpu", 0.0)


def wall_and_cpu() -> Seconds:
    """Both clocks."""
    return Seconds(time.perf_counter(), time.process_time())


def draw(folder: Path, n_answers: int) -> None:
    """Write the log, a seed a file."""
    folder.mkdir()
    for number, first in enumerate(range(0, n_answers, ROWS_A_FILE)):
        n = min(ROWS_A_FILE, n_answers - first)
        synthetic_log.write(folder / f"part-{number:04d}.parquet", n, seed=number, shape=synthetic_log.SHORT)


def on_disk(root: Path) -> dict[str, dict[str, float]]:
    """Files and MiB of each table, of the manifests and of the other state."""
    out: dict[str, dict[str, float]] = {}
    for path in root.rglob("*"):
        if path.is_file():
            first, second, *_ = (*path.relative_to(root).parts, "", "")
            name = second if first == "tables" else f"{first}/{second}" if second == "manifests" else first
            kept = out.setdefault(name, {"files": 0, "mib": 0.0})
            kept["files"] += 1
            kept["mib"] += path.stat().st_size / 2**20
    return {
        name: {"files": kept["files"], "mib": round(kept["mib"], 2)} for name, kept in sorted(out.items())
    }


def watched(execute: Any, every: int, sizes: list[dict[str, float]]) -> Any:
    """`execute`, which notes the time and the memory after every so many shards."""
    began = time.perf_counter()

    def run(tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        n_rows = 0
        for k, (task, outcome) in enumerate(execute(tasks, fs), 1):
            n_rows += task.shard.n_rows
            if k % every == 0 or k == len(tasks):
                at = {"answers": n_rows, "s": round(time.perf_counter() - began, 1)}
                sizes.append(at | {"rss_mib": round(harness.memory_mib("VmRSS"), 1)})
                print(sizes[-1], file=sys.stderr, flush=True)
            yield task, outcome

    return run


class Made:
    """`execute` for the first shards, `n_made` answers or more; each after them gets the tables of one of those.

    The manifests are those that the shard's own tables would have, but for counts and contents, which are the copy's.
    """

    def __init__(self, execute: Any, store: Store, n_made: int) -> None:
        self._execute, self._store, self._n_made = execute, store, n_made
        self.wall_s = self.cpu_s = 0.0

    def __call__(self, tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        """As `nightly.Execute`; the times are those of the shards that were made."""
        began, cpu = time.perf_counter(), time.process_time()
        sums = itertools.accumulate(task.shard.n_rows for task in tasks)
        n_first = next((k for k, n in enumerate(sums, 1) if n >= self._n_made), len(tasks))
        made = list(tasks[:n_first])
        yield from self._execute(made, fs)
        if made:
            self.wall_s, self.cpu_s = time.perf_counter() - began, time.process_time() - cpu
        for k, task in enumerate(tasks[n_first:]):
            source = made[k % n_first]
            assert source.shard.n_rows == task.shard.n_rows, "--answers and --made: multiples of --shard-rows"
            for table in TABLES:
                _copy(self._store, source.file(table), task.file(table), task.parts[table])
            yield task, ShardReport(task.shard.shard_id)


def _copy(store: Store, source: TableFile, target: TableFile, parts: Mapping[str, str]) -> None:
    manifest = store.manifest(source)
    data = store.root.get(source.key)
    assert manifest is not None
    assert data is not None
    store.root.put(target.key, data)
    manifest |= {"parts": dict(parts), "fingerprint": fingerprint_of(parts)}
    store.root.put(target.manifest_key, json.dumps(manifest, indent=2).encode())


def measure(folder: Path, n_answers: int, shard_rows: int, n_made: int) -> dict[str, Any]:
    """The whole of it, in `folder`."""
    phase, stubs = Phases(), bench_job.Stubs()
    phase("draw the log", lambda: draw(folder / "log", n_answers))
    config = load_config(bench_job.write_config(folder, folder / "log", shard_rows))
    store, weights = Store(config.store.out, config.store), Weights.of(config)
    plan = phase("plan", lambda: plan_day(config, store, weights, DATE))
    sizes: list[dict[str, float]] = []
    made_here = Made(execute_here(config, store, stubs.models()), store, n_made)
    execute = watched(made_here, max(1, len(plan.tasks) // 20), sizes)
    with bench_job.stages_timed_by(wall_and_cpu):
        report = phase("run", lambda: run_day(config, store, plan, execute))
    again = phase("plan again", lambda: plan_day(config, store, weights, DATE))
    rerun = phase("run again", lambda: run_day(config, store, again, execute))
    n_out = sum(n for name, n in report.counts["answers"].items() if name.startswith("state_"))
    assert not report.failures, report.failures
    assert report.n_rows == n_out == n_answers, (report.n_rows, n_out)
    assert (again.stale, rerun.n_made, rerun.made) == ({}, 0, {}), "nothing was to be done"
    seconds = report.seconds  # as `wall_and_cpu` gives them
    n_here, stubs_s = report.n_made_of["answers"], stubs.by_stage()
    return {
        "n_answers": n_answers,
        "n_answers_made": n_here,
        "n_answers_copied": n_answers - n_here,
        "n_claims": report.n_claims,
        "n_pairs": report.counts["scores"]["n_pairs"],
        "shard_rows": shard_rows,
        "n_shards": len(plan.tasks),
        "phases": phase.rows,
        "of_run_cpu_s": {name: round(cpu_of(s), 2) for name, s in seconds.items()},
        "of_run_wall_s": {name: round(float(s), 2) for name, s in seconds.items()}
        | {
            "shards made": round(made_here.wall_s, 2),
            "shards copied": round(
                max(0.0, sizes[-1]["s"] - made_here.wall_s), 2
            ),  # none: two clocks read in turn
            "accounts, metrics": round(phase.rows["run"]["wall_s"] - sizes[-1]["s"], 2),
        },
        "stubs_cpu_s": {name: round(s, 2) for name, s in stubs_s.items()},
        "cpu_ms_an_answer_made": round(1000 * (made_here.cpu_s - sum(stubs_s.values())) / n_here, 3),
        "resume_s": round(phase.rows["plan again"]["wall_s"] + phase.rows["run again"]["wall_s"], 3),
        "memory": sizes,
        "disk": on_disk(Path(config.store.out)),
        "log_mib": round(sum(path.stat().st_size for path in (folder / "log").iterdir()) / 2**20, 1),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--made", type=int, help="answers that are made; the other shards get copies (all)")
    parser.add_argument("--shard-rows", type=int, default=2_000, help="the default of [read]")
    parser.add_argument("--note", default="", help="kept in the result: what else ran on the machine")
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="claimscore-million-"))
    try:
        result = measure(folder, options.answers, options.shard_rows, options.made or options.answers)
    finally:
        shutil.rmtree(folder)
    heads = ["phase", "wall_s", "cpu_s", "peak_mib", "rss_mib"]
    print(harness.table([heads, *([name, *row.values()] for name, row in result["phases"].items())]))
    of_cpu = result["of_run_cpu_s"]
    stages = [[name, wall_s, of_cpu.get(name, "")] for name, wall_s in result["of_run_wall_s"].items()]
    print(harness.table([["of the run", "wall s", "cpu s"], *stages]))
    print(
        harness.table(
            [["on disk", "files", "MiB"], *([n, *row.values()] for n, row in result["disk"].items())]
        )
    )
    note = {"note": options.note} if options.note else {}
    harness.finish(harness.card("million") | note | result, record=options.record)


if __name__ == "__main__":
    main()
