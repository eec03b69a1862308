"""Two Ray nodes on this machine, and the processes of a run on them that may be killed.

Only processes whose parent is a raylet of these nodes, or that were started here, are ever killed: others may run Ray on
the same machine.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import chaos_job
import stub_models
import tiny_deberta
from ray.cluster_utils import Cluster

from claimscore.jobs.actors import JudgeProxy
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

ROLES = ("shard", "judge", "llm", "driver", "raylet")
DEADLINE_S = 180.0
HEALTH = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}
"""A dead node is noticed in seconds; Ray's own values take half a minute."""


class Fleet:
    """A cluster of two nodes of one CPU each, and a deployment in `folder`; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        chaos_job.write_deployment(folder)
        tiny_deberta.write_tokenizer(folder / "model")
        self.expected = self._run_here(folder / "whole")

    def __enter__(self) -> Self:
        node = {"num_cpus": 1, "object_store_memory": 100 * 1024**2}
        self._cluster = Cluster(
            initialize_head=True, head_node_args=node | {"include_dashboard": False, "_system_config": HEALTH}
        )
        self._node, self._second = node, None
        self.add_node()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.shutdown()

    def add_node(self) -> None:
        """A second node, where there is none (any more)."""
        if self._second is None:
            self._second = self._cluster.add_node(**self._node)

    def start(self, out: Path) -> subprocess.Popen[str]:
        """A run into `out`, on both nodes."""
        driver = Path(__file__).with_name("ray_driver.py")
        paths = os.pathsep.join(path for path in sys.path if path)
        return subprocess.Popen(
            [sys.executable, driver, self._cluster.address, self.folder, out],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": paths},
        )

    def finish(self, run: subprocess.Popen[str]) -> int:
        """Exit code of a run, once it has ended."""
        run.communicate(timeout=DEADLINE_S)
        return int(run.returncode)

    def run_and_kill(self, out: Path, roles: Sequence[str], *, after: int) -> tuple[list[str], int]:
        """A run whose processes of these roles are killed in turn, `after` tables after its start and after each other.

        Returns:
            The roles that there was a process of before the run ended, and its exit code.
        """
        killed = []
        run = self.start(out)
        for k, role in enumerate(roles, 1):
            self.add_node()  # in the place of one that was killed before
            wait_until(lambda n=k * after: n_tables(out) >= n or run.poll() is not None, "no table")  # type: ignore[misc]
            wait_until(lambda role=role: self._kill(role, run) or run.poll() is not None, role)  # type: ignore[misc]
            if run.poll() in (None, -signal.SIGKILL):
                killed.append(role)
        return killed, self.finish(run)

    def survive(self, out: Path, roles: Sequence[str], rng: random.Random) -> int:
        """Kills at random moments in a run into `out`, and the runs after it until one ends well; how many were killed."""
        killed, code = self.run_and_kill(out, roles, after=rng.randrange(1, 16))
        self.add_node()
        if code != 0:
            assert code in (3, -signal.SIGKILL), code
            assert self.finish(self.start(out)) == 0
        return len(killed)

    def _run_here(self, out: Path) -> dict[str, Any]:
        """The tables of a run in this process, without Ray."""
        config = chaos_job.load(self.folder, (), out)
        store = Store(config.store.out, config.store)
        judge = JudgeProxy(stub_models.StubJudge().probabilities, config.card.model)
        models = Models(stub_models.StubLlm(), judge, judge, stub_models.StubLlm())
        plan = plan_day(config, store, Weights.of(config), chaos_job.DATE)
        run_day(config, store, plan, execute_here(config, store, models))
        return chaos_job.tables(out)

    def _kill(self, role: str, run: subprocess.Popen[str]) -> bool:
        """Kill -9 one process of that role, of raylets the second node's; False where there is none now."""
        pids = {"driver": [run.pid], "raylet": self._raylets()[1:]}.get(role)
        for pid in (self._workers(role) if pids is None else pids)[-1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                if role == "raylet":
                    self._cluster.remove_node(self._second, allow_graceful=False)
                    self._second = None
                return True
        return False

    def _raylets(self) -> list[int]:
        nodes: list[Any] = self._cluster.list_all_nodes()
        return [node.all_processes["raylet"][0].process.pid for node in nodes]

    def _workers(self, role: str) -> list[int]:
        """Workers of our raylets: of a shard by their name, of a model by the pid that it left."""
        left = {int(path.name.rpartition("-")[2]) for path in (self.folder / "pids").glob(f"{role}-*")}
        raylets, found = set(self._raylets()), []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                pid, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
                words = stat.with_name("cmdline").read_bytes()
                if parent in raylets and (pid in left or (role == "shard" and b"_run_shard" in words)):
                    found.append(pid)
        return found


def n_tables(out: Path) -> int:
    """Tables of an output that count."""
    return len(list(out.glob("state/manifests/**/*.json")))


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Look again and again, for a bounded time."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
