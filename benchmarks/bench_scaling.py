"""How many judges the job can feed: stub judges of a set speed behind the job's own proxies on a local Ray cluster.

A stub waits as long as its pairs would take a judge of `--pairs-per-s` and gives equal probabilities: it needs no CPU.
Measured is what Ray takes to carry token ids there and scores back, two calls under way a judge; the pairs are made
beforehand. What the job itself needs to make them comes from the newest result of bench_job, as cores a judge: with
fewer cores than that the job, not Ray, is what stops scaling. Utilisation: the share of the time that the judges were
busy. Efficiency: pairs a second against that many times the set speed. Prints a table, where it stops scaling, and one JSON line last.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _harness as harness
import length_mixes

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray

PAIRS_A_CALL = 8_000
"""About what a shard of 200 answers sends: 200 x 5 claims x 8 windows."""
EFFICIENT = 0.95


class PacedJudge:
    """A judge that takes the time of a real one and no CPU."""

    def __init__(self, pairs_per_s: float) -> None:
        self._pairs_per_s, self._busy, self._free_at = pairs_per_s, 0.0, 0.0

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> np.ndarray:
        """(P, 3), after as long as P pairs take."""
        assert len(premise_ids) == len(claim_ids)
        began = time.monotonic()
        time.sleep(len(premise_ids) / self._pairs_per_s)
        self._busy += time.monotonic() - began
        return np.full((len(premise_ids), 3), 1 / 3, np.float32)

    def busy_s(self) -> float:
        """Seconds that it worked so far."""
        return self._busy


def cores_a_judge(pairs_per_s: float) -> float | None:
    """Cores on which the job makes as many pairs as one judge takes, by the newest bench_job; None without one."""
    found = sorted(harness.RESULTS.glob("*_job-drawn.json"))
    if not found:
        return None
    job = json.loads(found[-1].read_text())
    cpu_s_a_pair = job["cpu_ms_an_answer"]["total"] / 1000 * job["n_rows"] / job["n_pairs"]
    return float(pairs_per_s * cpu_s_a_pair)


def ragged(rows: list[np.ndarray]) -> pa.ListArray:
    """Arrow lists of token ids."""
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(rows)))


def one(n_judges: int, pairs_per_s: float, seconds: float, pairs_a_call: int) -> dict[str, Any]:
    """Feed `n_judges` for about `seconds` each."""
    remote = ray.remote(num_cpus=0)(PacedJudge)
    judges = [remote.remote(pairs_per_s) for _ in range(n_judges)]
    drawn = length_mixes.pairs("rag", pairs_a_call, 128_000)
    premises, claims = (ragged([pair[k] for pair in drawn]) for k in (0, 1))
    ray.get([judge.probabilities.remote(premises.slice(0, 1), claims.slice(0, 1)) for judge in judges])
    before = sum(ray.get([judge.busy_s.remote() for judge in judges]))
    began, cpu = time.monotonic(), time.process_time()
    under_way = {judge.probabilities.remote(premises, claims): judge for judge in judges * 2}
    n_pairs = 0
    while under_way:
        (ended,), _ = ray.wait(list(under_way), num_returns=1)
        judge = under_way.pop(ended)
        n_pairs += len(ray.get(ended))
        if time.monotonic() - began < seconds:
            under_way[judge.probabilities.remote(premises, claims)] = judge
    wall_s = time.monotonic() - began
    busy_s = sum(ray.get([judge.busy_s.remote() for judge in judges])) - before
    for judge in judges:
        ray.kill(judge)
    return {
        "judges": n_judges,
        "pairs_per_s": n_pairs / wall_s,
        "efficiency": n_pairs / wall_s / (n_judges * pairs_per_s),
        "utilisation": min(1.0, busy_s / (wall_s * n_judges)),
        "driver_cores": (time.process_time() - cpu) / wall_s,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judges", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument(
        "--pairs-per-s", type=float, default=8_000, help="of one judge; goal of base on one H200"
    )
    parser.add_argument("--seconds", type=float, default=8, help="that each number of judges is fed")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="warning")
    rows = [one(n, options.pairs_per_s, options.seconds, PAIRS_A_CALL) for n in options.judges]
    heads = ["judges", "pairs_per_s", "efficiency", "utilisation", "driver_cores"]
    print(harness.table([heads, *([row[head] for head in heads] for row in rows)]))
    scales = [row["judges"] for row in rows if row["efficiency"] >= EFFICIENT]
    last = max(scales, default=0)
    print(f"efficiency is at least {EFFICIENT} up to {last} judges on {os.cpu_count()} cores")
    cores = cores_a_judge(options.pairs_per_s)
    if cores is not None:
        fed = (os.cpu_count() or 1) / cores
        print(f"the job itself takes {cores:.2f} cores a judge: the cores here feed {fed:.1f} judges")
    result = {
        "cores_a_judge_for_the_job": cores,
        "rows": rows,
        "set_pairs_per_s": options.pairs_per_s,
        "pairs_a_call": PAIRS_A_CALL,
        "scales_to": last,
    }
    harness.finish(harness.card("scaling") | result, record=options.record)


if __name__ == "__main__":
    main()
