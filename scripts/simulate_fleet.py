"""How long a nightly run takes on a fleet, what it costs, where its bottleneck is, and what a lost node costs.

    python scripts/simulate_fleet.py --answers 1e8 --gpus 64
    python scripts/simulate_fleet.py --table --record

A simulation of queues: a shard goes through its steps (cores, then a GPU for the LLM, cores, a GPU for the judge, cores,
write), each at a station with as many servers as the fleet has, first come first served; its times are drawn. What an
answer costs is read from benchmarks/results (CPU by stage, prompts, pairs, tokens, bytes); what was not measured, all of
the GPU's rates above all, stands as an assumption in benchmarks/fleet.toml. `benchmarks/bench_fleet.py` checks the queues
against real runs on one and two Ray nodes. Of a very large run a slice is simulated, nodes and shards alike. Knows no
network, and no limit of the driver's memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
import os
import random
import tomllib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from readme_figures import newest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MAX_SHARDS = 2_000
TABLE = ((1e6, 1), (1e6, 8), (1e8, 128), (1e8, 256), (1e9, 1024), (1e9, 4096))

Step = tuple[str, float]
"""A station, and the mean seconds that a shard needs of one of its servers."""


@dataclass(frozen=True)
class Run:
    """What is simulated: servers by station, the steps of a shard, and what goes wrong."""

    servers: Mapping[str, int]
    steps: Sequence[Step]
    n_shards: int
    in_flight: int
    start_s: float = 0.0
    end_s: float = 0.0  # after the last shard: accounts and metrics
    spread: float = 0.0
    slow_share: float = 0.0
    slow_factor: float = 1.0
    n_nodes: int = 1
    lost_at_s: float | None = None  # one node, with its servers and the shards on it
    restart_s: float = 0.0


@dataclass
class Outcome:
    """What came of it."""

    wall_s: float = 0.0
    busy_s: dict[str, float] = field(default_factory=dict)
    n_redone: int = 0


def simulate(run: Run, seed: int = 0) -> Outcome:
    """Let all shards through; the same seed gives the same times.

    A lost node takes its share of every station's servers away for `restart_s`, and the shards on it begin anew: what
    they had written is in truth kept, so the cost is an upper bound.
    """
    fleet = _Fleet(run, seed)
    while fleet.events:
        fleet.step()
    fleet.out.wall_s = run.start_s + fleet.last_s + run.end_s
    return fleet.out


class _Fleet:
    """The state of a simulation: who waits where, who is served, and what happens next."""

    def __init__(self, run: Run, seed: int) -> None:
        self.run, self.seed, self.out, self.now, self.last_s = run, seed, Outcome(), 0.0, 0.0
        self.free = dict(run.servers)
        self.queues: dict[str, deque[tuple[int, int, int]]] = {name: deque() for name in run.servers}
        self.out.busy_s = dict.fromkeys(run.servers, 0.0)
        self.tries: dict[
            int, int
        ] = {}  # shard under way -> its try: what a lost try had begun no longer counts
        self.waiting = deque(range(run.n_shards))
        self.events: list[tuple[float, int, str, tuple[int, int, int]]] = []
        self.n_events = 0
        if run.lost_at_s is not None:
            self._at(run.lost_at_s, "lost", (0, 0, 0))
        self._fill()

    def step(self) -> None:
        """The next event."""
        self.now, _, kind, job = heapq.heappop(self.events)
        if kind == "lost":
            self._lose()
        elif kind == "back":
            for name, n in self.run.servers.items():
                self.free[name] += n // self.run.n_nodes
        else:
            self._served(job)
        self._serve()

    def _served(self, job: tuple[int, int, int]) -> None:
        shard, attempt, place = job
        self.last_s = self.now
        self.free[self.run.steps[place][0]] += 1
        if self.tries.get(shard) != attempt:
            return
        if place + 1 < len(self.run.steps):
            self._join(shard, attempt, place + 1)
        else:
            del self.tries[shard]
            self._fill()

    def _lose(self) -> None:
        # The servers that go are taken from the free ones first, and from the busy ones as they end.
        for name, n in self.run.servers.items():
            self.free[name] -= n // self.run.n_nodes
        for shard in list(self.tries):
            if shard % self.run.n_nodes == 0:
                self.tries[shard] += 1
                self.out.n_redone += 1
                self._join(shard, self.tries[shard], 0)
        self._at(self.now + self.run.restart_s, "back", (0, 0, 0))

    def _fill(self) -> None:
        while self.waiting and len(self.tries) < self.run.in_flight:
            shard = self.waiting.popleft()
            self.tries[shard] = 0
            self._join(shard, 0, 0)
        self._serve()

    def _join(self, shard: int, attempt: int, place: int) -> None:
        self.queues[self.run.steps[place][0]].append((shard, attempt, place))

    def _serve(self) -> None:
        for name, queue in self.queues.items():
            while queue and self.free[name] > 0:
                shard, attempt, place = queue.popleft()
                if self.tries.get(shard) != attempt:
                    continue
                self.free[name] -= 1
                seconds = self._drawn(self.run.steps[place][1], shard * len(self.run.steps) + place)
                self.out.busy_s[name] += seconds
                self._at(self.now + seconds, "served", (shard, attempt, place))

    def _drawn(self, mean: float, number: int) -> float:
        """The time of one step; the same whatever happens before it, so that two runs differ by what is done to them."""
        run = self.run
        if not run.spread and not run.slow_share:
            return mean
        draw = random.Random(self.seed * 1_000_003 + number)
        seconds = mean * draw.lognormvariate(-(run.spread**2) / 2, run.spread)
        return seconds * (run.slow_factor if draw.random() < run.slow_share else 1.0)

    def _at(self, when: float, kind: str, job: tuple[int, int, int]) -> None:
        self.n_events += 1
        heapq.heappush(self.events, (when, self.n_events, kind, job))


# ---- from rates to a run ----


def measured() -> dict[str, Any]:
    """What an answer costs, from the results of the job's own benchmarks."""
    job, real, large = newest("job-drawn"), newest("rag-logs-200"), newest("million")
    (day,) = real["days"]
    rows = day["n_rows"]
    disk = sum(kept["mib"] for kept in large["disk"].values())
    return {
        "cpu_ms": {name: ms for name, ms in job["cpu_ms_an_answer"]["stages"].items() if name[:4] != "rest"},
        "prompts": day["counts"]["claims"]["n_unique_asked"] / rows,
        "judge_tokens": day["n_made_of"]["n_tokens"] / rows,
        "pairs": day["n_made_of"]["n_pairs"] / rows,
        "log_mib": large["log_mib"] / large["n_answers"],
        "out_mib": disk / large["n_answers"],
        "driver_s": _driver_s(large),
        "driver_s_a_shard": newest("fleet-check")["driver_s_a_shard"],
    }


def _driver_s(large: Mapping[str, Any]) -> float:
    """CPU seconds an answer of what only the driver does: plan, accounts, metrics (and copies of shards, where made)."""
    shards_s = large["cpu_ms_an_answer_made"] / 1000 * large["n_answers_made"] + sum(
        large["stubs_cpu_s"].values()
    )
    driver_s: float = large["phases"]["plan"]["cpu_s"] + large["phases"]["run"]["cpu_s"] - shards_s
    return driver_s / large["n_answers"]


def fleet_run(costs: Mapping[str, Any], assumed: Mapping[str, Any], n_answers: float, n_gpus: int) -> Run:
    """The run of so many answers on so many GPUs, or the slice of it that is simulated: its nodes, its share of shards."""
    gpu, node, shards = assumed["gpu"], assumed["node"], assumed["shards"]
    n_nodes, per_node = max(1, n_gpus // node["gpus"]), min(n_gpus, node["gpus"])
    n_slice = min(n_nodes, max(2, round(n_nodes * MAX_SHARDS * shards["rows"] / n_answers)))
    n_own = n_answers * n_slice / n_nodes
    rows = max(shards["rows"], n_own / MAX_SHARDS)
    requests_s = node["request_s"] * 40 * rows / shards["rows"]
    cpu = {name: ms / 1000 * rows for name, ms in costs["cpu_ms"].items()}
    # One driver for all nodes: a slice of them has its share of it.
    driver_s = costs["driver_s_a_shard"] * rows / shards["rows"] * n_nodes / n_slice
    steps = [
        ("driver", driver_s),
        ("disk", rows * costs["log_mib"] / node["read_mib_per_s"] + requests_s / 4),
        ("cores", cpu["quarantine"] + cpu["claims"]),
        ("gpu", rows * costs["prompts"] / gpu["llm_prompts_per_s"]),
        ("cores", cpu["scores"]),
        ("gpu", rows * costs["judge_tokens"] / gpu["judge_tokens_per_s"]),
        ("cores", cpu["verdicts"] + cpu["answers"]),
        ("disk", rows * costs["out_mib"] / node["write_mib_per_s"] + requests_s),
    ]
    return Run(
        # One GPU holds both models and gives each what it asks for: one station.
        servers={
            "cores": n_slice * node["cores"],
            "gpu": n_slice * per_node,
            "disk": n_slice * node["streams"],
            "driver": 1,
        },
        steps=steps,
        n_shards=max(1, round(n_own / rows)),
        in_flight=max(1, round(n_slice * per_node * shards["in_flight_a_gpu"])),
        start_s=gpu["models_start_s"],
        end_s=costs["driver_s"] * n_answers,
        spread=shards["spread"],
        slow_share=shards["slow_share"],
        slow_factor=shards["slow_factor"],
        n_nodes=n_slice,
        restart_s=assumed["losses"]["restart_s"],
    )


def row(
    costs: Mapping[str, Any], assumed: Mapping[str, Any], n_answers: float, n_gpus: int
) -> dict[str, Any]:
    """One line of the table: the run, and the same with a node lost in its middle."""
    run = fleet_run(costs, assumed, n_answers, n_gpus)
    whole = simulate(run)
    lost = simulate(dataclasses.replace(run, lost_at_s=(whole.wall_s - run.start_s - run.end_s) / 2))
    busy = {name: whole.busy_s[name] / (n * whole.wall_s) for name, n in run.servers.items()}
    gpu = assumed["gpu"]
    llm_s = costs["prompts"] / gpu["llm_prompts_per_s"]
    judge_s = costs["judge_tokens"] / gpu["judge_tokens_per_s"]
    n_nodes = max(run.n_nodes, n_gpus // assumed["node"]["gpus"])
    # What is lost on a slice is as much work, made up for by fewer nodes.
    lost_s = (lost.wall_s - whole.wall_s) * run.n_nodes / n_nodes
    at_end = {"driver": busy["driver"] + run.end_s / whole.wall_s, "start-up": run.start_s / whole.wall_s}
    parts = busy | at_end
    return {
        "answers": n_answers,
        "gpus": n_gpus,
        "nodes": n_nodes,
        "nodes_simulated": run.n_nodes,
        "hours": whole.wall_s / 3600,
        "gpu_hours": whole.wall_s / 3600 * n_gpus,
        "busy": {name: round(share, 3) for name, share in parts.items()},
        "bottleneck": max(parts, key=lambda name: parts[name]),
        "llm_share_of_gpu": llm_s / (llm_s + judge_s),
        "lost_node_minutes": lost_s / 60,
        "n_redone_shards": lost.n_redone,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=float, default=1e6)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--rates", type=Path, default=ROOT / "benchmarks" / "fleet.toml")
    parser.add_argument("--table", action="store_true", help="1 million, 100 million and 1 billion answers")
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    options = parser.parse_args()
    costs, assumed = measured(), tomllib.loads(options.rates.read_text(encoding="utf-8"))
    wanted = TABLE if options.table else ((options.answers, options.gpus),)
    rows = [row(costs, assumed, n, gpus) for n, gpus in wanted]
    for one in rows:
        print(
            f"{one['answers']:,.0f} answers, {one['gpus']} GPUs: {one['hours']:.2f} h, {one['gpu_hours']:,.0f} GPU hours; "
            f"bottleneck {one['bottleneck']}; a lost node costs {one['lost_node_minutes']:.1f} minutes"
        )
    result = {"name": "fleet", "recorded_at": datetime.now(UTC).isoformat(timespec="seconds")}
    result |= {"measured": costs, "assumed": assumed, "rows": rows}
    if options.record:
        path = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}_cpu{os.cpu_count()}_fleet.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
