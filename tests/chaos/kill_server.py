"""A process that has imported the job once, and forks a run of it for every kill that is asked for.

The runs are whole ones (`operate.run_days`: lock, plan, shards, metrics, run.json, pointer) with stub models and
without Ray. A run dies by SIGKILL, either at a numbered boundary of its own code or at a moment from outside.
fsync does nothing here: the kernel outlives the kill, and only power loss would need the real one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import chaos_job

# Imported once, here, for all runs; not used before the fork, which would leave their threads behind.
import numpy.random  # noqa: F401
import pyarrow.dataset  # noqa: F401
import stub_models

from claimscore.jobs import metrics, operate  # noqa: F401
from claimscore.jobs import output as output_module
from claimscore.jobs import store as store_module
from claimscore.jobs.config import Config
from claimscore.jobs.errors import ClaimscoreError
from claimscore.jobs.nightly import execute_here
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.pipeline import Models
from claimscore.jobs.store import Store

KILLED = -signal.SIGKILL
RAISED = 70


class DriftingLlm(stub_models.StubLlm):
    """An LLM that says something else in every process, as batches and samplers do."""

    def complete(self, system: str, users: Any, **options: Any) -> Any:
        """Now the sentence, now an equal claim in other words."""
        for user in users.to_pylist():
            sentence = user.rpartition("Sentence: ")[2]
            halves = sentence.replace(", and ", " and ").split(" and ")
            self.replies[sentence] = json.dumps({"claims": halves if os.getpid() % 2 else [sentence]})
        return super().complete(system, users, **options)


class HereExecutor:
    """Shards one after another in this process, where `run_days` would start Ray."""

    llm: type[stub_models.StubLlm] = stub_models.StubLlm

    def __init__(self, config: Config, _: object, run_id: str, **__: object) -> None:
        judge = stub_models.StubJudge()
        models = Models(self.llm(), judge, judge, stub_models.StubLlm())
        self._execute = execute_here(config, Store(config.store.out, config.store, run_id=run_id), models)

    def watching(self, _: object) -> contextlib.AbstractContextManager[None]:
        """No progress."""
        return contextlib.nullcontext()

    def __call__(self, *arguments: Any) -> Iterator[Any]:
        """The shards and what became of them."""
        return self._execute(*arguments)


class Boundaries:
    """Counts the moments at which a kill could tell; the run ends itself at one of them."""

    def __init__(self, deadly: int | None, signal_number: int = signal.SIGKILL) -> None:
        self.names: list[str] = []
        self._deadly, self._signal, self._key = deadly, signal_number, ""

    def reach(self, name: str) -> None:
        """One more moment; the last one where it is the deadly one."""
        self.names.append(f"{name}: {_kind(self._key)}")
        if len(self.names) - 1 == self._deadly:
            os.kill(os.getpid(), self._signal)

    def install(self) -> None:
        """Wrap what touches the disk."""
        for owner, name in ((OutputRoot, "put"), (OutputRoot, "remove"), (OutputRoot, "_held_local")):
            self._wrap(owner, name, name, key=1)
        self._wrap(Path, "replace", "rename")
        for owner, name in ((fcntl, "flock"), (os, "ftruncate"), (os, "pwrite")):
            self._wrap(owner, name, f"lock {name}")
        opened = Path.open

        def opening(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            stream = opened(path, mode, *arguments, **options)
            return _Halves(stream, self) if mode == "xb" else stream

        Path.open = opening  # type: ignore[method-assign,assignment]

    def _wrap(self, owner: Any, name: str, told: str, *, key: int | None = None) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if key is not None:
                self._key = "lock" if name == "_held_local" else arguments[key]
            self.reach(f"before {told}")
            result = real(*arguments, **options)
            if told != "put":  # nothing but a sync comes after its rename
                self.reach(f"after {told}")
            return result

        setattr(owner, name, call)


class _Halves:
    """A file that is written in two halves, with a moment in between."""

    def __init__(self, stream: Any, boundaries: Boundaries) -> None:
        self._stream, self._boundaries = stream, boundaries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, data: bytes) -> None:
        """Half of it reaches the disk, then the rest."""
        self._stream.write(data[: len(data) // 2])
        self._stream.flush()
        self._boundaries.reach("half written")
        self._stream.write(data[len(data) // 2 :])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _kind(key: str) -> str:
    """What a key is, whatever its shard: `manifest of claims`, `run.json`."""
    parts = key.split("/")
    if key.startswith("state/manifests/"):
        return f"manifest of {parts[2]}"
    return parts[1] if key.startswith("tables/") else parts[-1]


def hamper(order: dict[str, Any]) -> None:
    """Take from this process what the order says: room for files above a size, root's right to write anywhere, time.

    `cpu_s` ends it by SIGXCPU after so many seconds of CPU, `more_mib` refuses it more memory than that.
    """
    if "largest_file" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"], resource.RLIM_INFINITY))
    if "cpu_s" in order:
        resource.setrlimit(resource.RLIMIT_CPU, (order["cpu_s"], resource.RLIM_INFINITY))
    if "more_mib" in order:
        data_kib = int(Path("/proc/self/status").read_text().partition("VmData:")[2].split()[0])
        limit = data_kib * 1024 + order["more_mib"] * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    if order.get("humble"):
        libc, header, rights = (
            ctypes.CDLL(None),
            (ctypes.c_uint32 * 2)(0x20080522, 0),
            (ctypes.c_uint32 * 6)(),
        )
        assert libc.capget(header, rights) == 0
        rights[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        assert libc.capset(header, rights) == 0
    if "clock" in order:
        real, offset = time.time, order["clock"]
        time.time = lambda: real() + offset

        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Clock:
                return cls.fromtimestamp(time.time(), tz)

        for module in (operate, store_module, output_module):
            module.datetime = Clock  # type: ignore[attr-defined]


def run(order: dict[str, Any], boundaries: Boundaries) -> dict[str, Any]:
    """One whole run in this process."""
    hamper(order)
    HereExecutor.llm = DriftingLlm if order.get("drifting") else stub_models.StubLlm
    operate._LazyExecutor = HereExecutor  # type: ignore[misc,assignment]
    os.fsync = lambda _: None  # type: ignore[assignment]
    if order.get("counted") or order.get("at") is not None:
        boundaries.install()
    config = chaos_job.load(Path(order["folder"]), order["settings"], Path(order["out"]))
    (report,) = operate.run_days(config, [chaos_job.DATE], quiet=True)
    kept = {name: report[name] for name in ("made", "exit_code", "failures", "warnings")}
    used = resource.getrusage(resource.RUSAGE_SELF)
    cost = {"cpu_s": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss / 1024}
    return kept | cost | {"boundaries": boundaries.names}


def answer(order: dict[str, Any]) -> int:
    """Run, and leave a report or the error; the exit code."""
    reply, code = {}, 0
    try:
        reply = run(
            order, Boundaries(order.get("at"), signal.SIGSTOP if "beside" in order else signal.SIGKILL)
        )
    except ClaimscoreError as err:
        reply, code = {"error": str(err)}, 1
    except BaseException:  # noqa: BLE001 - a mistake of the test, or of the job
        reply, code = {"error": traceback.format_exc()}, RAISED
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    Path(order["reply"]).write_text(json.dumps(reply))
    return code


def fork(order: dict[str, Any]) -> dict[str, Any]:
    """Fork a run, kill it where the order says so, and tell how it ended."""
    began = time.monotonic()
    Path(order["reply"]).unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = RAISED  # a fork must never go on as the server
        try:
            code = answer(order)
        finally:
            os._exit(code)
    if order.get("after_s") is not None:
        ended = select.select([os.pidfd_open(child)], [], [], order["after_s"])[0]
        if not ended:
            os.kill(child, signal.SIGKILL)
    beside = {}
    if "beside" in order:
        assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
        beside = {"pid": child, "beside": fork({**order["beside"], "reply": order["reply"] + ".beside"})}
        os.kill(child, signal.SIGCONT)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    reply = {} if code < 0 else json.loads(Path(order["reply"]).read_text())
    return reply | beside | {"code": code, "seconds": time.monotonic() - began}


class KillServer:
    """The server in a process of its own; a context manager.

    Args:
        folder: the deployment.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": paths, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()

    def run(self, out: Path, settings: Any = (), **how: Any) -> dict[str, Any]:
        """A run into `out`: `after_s` kills it from outside, `at` at that boundary, `counted` tells the boundaries.

        With `beside` (an order) the run is only stopped at that boundary, and goes on once the other one has ended.
        """
        order = {"folder": str(self._folder), "out": str(out), "settings": [*settings], **how}
        order["reply"] = str(self._folder / "reply.json")
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        return reply


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(fork(json.loads(line))) + "\n")
        sys.stdout.flush()
