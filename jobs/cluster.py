"""The only file that imports ray: shard tasks, model actors, retries and progress.

A shard is a task that runs `shard_run.run_shard` with actor handles for models. Actors load their model at the first
call, so a run that finds a table fresh never loads what made it. The vLLM actor is async: requests of several shards
meet in one continuous batch. At most `shards_in_flight` shards are under way; one that fails `retries` times more is
reported, the others finish. Nothing here changes a result. Longer than other files: no other may import ray.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pyarrow.fs as pafs

# Both are read when ray is imported: no usage reports, and no copy of the working folder where `uv run` started us.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
import ray

from claimscore.jobs.actors import (
    JudgeActor,
    JudgeProxy,
    LlmActor,
    LlmProxy,
    Progress,
    Told,
    collect_rarely,
    die_with_parent,
)
from claimscore.jobs.config import Config, JudgeCard
from claimscore.jobs.errors import ClaimscoreError, ConfigError, ModelError, in_short
from claimscore.jobs.nightly import Outcome, placed
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import ShardTask
from claimscore.jobs.shard_run import ShardReport, run_shard
from claimscore.jobs.store import Store

Show = Callable[[dict[str, int]], None]
"""Called about twice a second with the counts so far: shards, claims, pairs, answers, and those of actors.Progress by role."""

POLL_S = 0.5
CLOSE_S = 20.0
KNOCK_S = 10.0
_LLM_CALLS = 1_000  # shards whose requests one engine holds at once; the engine queues them itself
_OBJECT_STORE_BYTES = 512 * 1024**2
"""Ray would take 30% of the memory. A shard's token ids are tens of MB; what does not fit goes to disk."""
_LLM_ROLES = frozenset({"decomposer", "generator", "referee"})


class _Try(NamedTuple):
    """One try of one shard, and the actors it was given."""

    task: ShardTask
    n_before: int
    handles: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a shard was not done: its line, and whether another try may go better."""

    line: str
    retried: bool = False
    role: str = ""
    """The model that failed, where one did."""


class _ActorError(ModelError):
    """A model's actor died, or its model raised: not an error of the data, as far as one can tell."""

    def __init__(self, role: str, found: str) -> None:
        super().__init__(found)
        self.role = role


class RayExecutor:
    """Runs shard tasks on Ray; a context manager that starts Ray here or joins the cluster of the config.

    Args:
        config: the deployment; `[cluster]` says where and how much.
        run_id: whose lock the workers write under; "" where no run holds one.
        show: told the progress.
    """

    def __init__(self, config: Config, *, run_id: str = "", show: Show = lambda _: None) -> None:
        self._config, self._run_id = config, run_id
        self._show = show
        self._actors = _Actors(config)

    def __enter__(self) -> Self:
        start_ray(self._config.cluster.address)
        return self

    def __exit__(self, *_: object) -> None:
        self._actors.close()
        ray.shutdown()

    def actor(self, role: str) -> Any:
        """One actor of a role, for who has calls of its own."""
        return self._actors.one(role, 0)

    def __call__(self, tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        """Execute the tasks; yields each with its report or its error as they end, in no order.

        A shard's last try is made with no other shard under way, so that one whose data kill a model takes no
        innocent shard with it. When the models fail again and again and nothing is done in between, the shards
        left are not tried: each try would load them once more.
        """
        retries, in_flight = self._config.cluster.retries, self._config.cluster.shards_in_flight
        progress = _remote(Progress, num_cpus=0).remote()
        run = _remote(_run_shard, max_retries=0, num_cpus=_cpus_of_a_shard(in_flight))
        waiting = deque((task, 0) for task in tasks)
        running: dict[Any, _Try] = {}
        counts: dict[str, int] = {}
        n_done = 0
        while waiting or running:
            while waiting and _may_start(waiting[0][1], running, retries, in_flight):
                task, n_before = waiting.popleft()
                handles: Mapping[str, Any] = self._actors.of(task, n_done + len(running))
                ref = run.remote(task, self._config, self._run_id, handles, fs, progress)
                running[ref] = _Try(task, n_before, handles)
            ended, _ = ray.wait(list(running), num_returns=1, timeout=POLL_S)
            for ref in ended:
                task, n_before, handles = running.pop(ref)
                outcome = _outcome(ref)
                self._actors.heed(outcome, handles)
                if isinstance(outcome, _Failure):
                    progress.leave.remote(ref.task_id().hex())
                if isinstance(outcome, _Failure) and outcome.retried and n_before < retries:
                    waiting.append((task, n_before + 1))
                    continue
                n_done += 1
                yield task, _told(task, outcome)
            if self._actors.given_up:
                for task, _ in waiting:
                    yield task, _told(task, _Failure(f"not done: {self._actors.given_up}"))
                n_done += len(waiting)
                waiting.clear()
            counts = _counts(progress) or counts
            self._show(counts | {"shards": n_done})


@contextlib.contextmanager
def generator(config: Config) -> Iterator[LlmProxy]:
    """The LLM of `[samples]` alone, on Ray; its engine and Ray end with the context.

    Raises:
        ConfigError: Ray cannot be started. Calls raise ModelError.
    """
    with RayExecutor(config) as executor:
        yield LlmProxy(_asking("generator", executor.actor("generator").complete))


def start_ray(address: str) -> None:
    """Start Ray on this machine, or join the cluster at `address`; in silence, but for Ray's warnings.

    A Ray that is started here is closed to others by a token of its own, is ended by the kernel with this process,
    takes as many CPUs as the container or machine has, and is as nice as this process.

    Raises:
        ConfigError: Ray cannot be started, or the cluster cannot be joined.
    """
    logging.getLogger("ray._private.authentication").setLevel(logging.ERROR)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    if not address:
        # "local", or a RAY_ADDRESS or a cluster found on this machine would be joined instead.
        options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        # Ray's is 15, which leaves the models what anything else on the machine leaves them.
        os.environ.setdefault("RAY_worker_niceness", "0")
        # A shard's tables are small: 110 calls of polars each would wake a pool of threads in every worker.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        if not any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # or Ray writes one to the home folder
    try:
        # Ray puts the working folder first on the path of its workers: a kernels/ or torch.py there would
        # shadow packages. The config holds no relative path.
        with contextlib.chdir("/"):
            _knock(address)
            ray.init(address=address or "local", **options)
    except Exception as err:  # Ray raises no kind of its own where its node starts too late on a busy machine
        done = f"joined: {in_short(err)}, expected a running cluster of this Ray and Python version"
        if not address:
            done = f"started here: {in_short(err)}, expected room in memory and in /tmp; on a busy machine run it again"
        raise ConfigError(f"[cluster] address = {address!r}: Ray cannot be {done}") from err


def _knock(address: str) -> None:
    """Raise OSError where nothing listens at `host:port`: Ray itself tries for minutes and logs every try."""
    host, _, port = address.rpartition(":")
    if "/" not in address and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


class _Actors:
    """The model actors of a run; made when a shard needs them, replaced when they failed."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._actors: dict[str, list[Any]] = {}
        self._gpus: dict[str, float] = {}
        """GPUs that each actor of a key reserves."""
        self._n_failed = 0
        self.given_up = ""
        """Why no more shard should be tried; empty as long as there is hope."""

    def of(self, task: ShardTask, turn: int) -> dict[str, Any]:
        """Actor handles of the models that the task's stale tables may call."""
        stale = task.stale(Store(self._config.store.out, self._config.store))
        roles = []
        if "claims" in stale:
            roles += ["decomposer", "checker"]
        if {"scores", "sample_scores"} & set(stale):
            roles.append("judge")
        if "sample_scores" in stale and self._config.samples.model and self._config.samples.enabled:
            roles.append("generator")
        if "referee" in stale:
            roles.append("referee")
        return {role: self.one(role, turn) for role in roles}

    def heed(self, outcome: ShardReport | _Failure, handles: Mapping[str, Any]) -> None:
        """Let go of an actor that failed; calls of other shards that it still answers are not cut off."""
        for role in [outcome.role] if isinstance(outcome, _Failure) else outcome.failed_roles:
            self._let_go(handles.get(role))
        if not isinstance(outcome, _Failure):
            self._n_failed = 0
        elif self._n_failed > 3 * (1 + self._config.cluster.retries):
            self.given_up = f"models failed {self._n_failed} times in a row, the last: {outcome.line}"

    def _let_go(self, failed: Any) -> None:
        for actors in self._actors.values():
            for k, actor in enumerate(actors):
                if failed is not None and actor is failed:
                    actors[k] = None
                    self._n_failed += 1

    def close(self) -> None:
        """Stop the engines, which have processes of their own, and let go of all actors."""
        actors = [actor for actors in self._actors.values() for actor in actors if actor is not None]
        closing = [actor.close.remote() for actor in actors if hasattr(actor, "close")]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=CLOSE_S)
        self._actors.clear()

    def one(self, role: str, turn: int) -> Any:
        """One of the actors of a role, in turn; roles with the same model and settings share them."""
        config, cluster = self._config, self._config.cluster
        if role in _LLM_ROLES:
            arguments: tuple[Any, ...] = _llm_arguments(config, role)
            kind: Any = LlmActor
            n, gpus = cluster.n_llms, cluster.llm_gpus
        else:
            budget, dtype = config.judge.budget_tokens, config.judge.dtype
            if role == "checker":
                budget, dtype = config.decompose.checker_budget_tokens, "auto"
            arguments = (_card(config, role), budget, dtype, config.judge.device)
            kind = JudgeActor
            n, gpus = cluster.n_judges, cluster.judge_gpus
        key = repr((kind, arguments))
        actors = self._actors.setdefault(key, [None] * n)
        self._gpus[key] = gpus
        if actors[turn % n] is None:
            self._check_room(role, gpus)
            calls = {"max_concurrency": _LLM_CALLS} if kind is LlmActor else {}
            actor = _remote(kind, num_cpus=0, num_gpus=gpus, **calls)
            actors[turn % n] = actor.remote(_threads(n), *arguments)
        return actors[turn % n]

    def _check_room(self, role: str, gpus: float) -> None:
        """Refuse an actor that no GPU is left for: Ray would let its shard wait for ever, without a word.

        Raises:
            ModelError: the cluster has fewer GPUs than this run's models reserve together.
        """
        if not gpus:
            return
        there = float(ray.cluster_resources().get("GPU", 0))
        n_alive = {key: sum(actor is not None for actor in actors) for key, actors in self._actors.items()}
        taken = sum(self._gpus[key] * n for key, n in n_alive.items())
        if taken + gpus > there + 1e-6:
            raise ModelError(
                f"{role}: needs {gpus:g} of a GPU, but the models before it took {taken:g} of the cluster's {there:g}; "
                "lower [cluster] llm_gpus and judge_gpus until decomposer, checker, judge, generator and referee fit together "
                "(roles with the same model and settings share one), or add GPUs"
            )


def _llm_arguments(config: Config, role: str) -> tuple[str, int, str, float]:
    """Model, window, number format and share of the GPU of an LLM."""
    if role == "referee":
        card, section = config.referee_card, config.referee
        assert card is not None, "its table has parts only where there is a card"
        return card.model, card.max_model_tokens, section.dtype, section.gpu_memory_fraction
    other = config.decompose if role == "decomposer" else config.samples
    return other.model, other.max_model_tokens, other.dtype, other.gpu_memory_fraction


def _remote(what: Any, **options: Any) -> Any:
    """`what` as a Ray task or actor class; typed as anything, which is what Ray's decorators come to."""
    return ray.remote(**options)(what)


def _cores() -> int:
    """CPUs of the largest node; Ray minds the limits of a container, and what a cluster's operator set."""
    return int(max([node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"]], default=1))


def _cpus_of_a_shard(in_flight: int) -> float:
    """CPUs that a shard's task reserves: a share, so that as many as should be are under way at once.

    They wait for models most of the time. With a whole CPU each, a task hands it back while it waits and queues for it
    afterwards: four tasks of four 2-second calls took 13.2 s on two CPUs, and 9.3 s with half a CPU each.
    """
    share = float(ray.cluster_resources().get("CPU", 1)) / in_flight
    return max(0.001, int(min(1.0, share) * 1000) / 1000)


def _threads(n_actors: int) -> int:
    """Threads of a model on a CPU; OMP_NUM_THREADS of who starts the run holds."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else max(1, _cores() // n_actors)


def _may_start(n_before: int, running: Mapping[Any, _Try], retries: int, in_flight: int) -> bool:
    """Whether a shard that was tried `n_before` times may start beside those under way; a last try is made alone."""
    if any(0 < retries == other.n_before for other in running.values()):
        return False
    return not running if 0 < retries == n_before else len(running) < in_flight


def _counts(progress: Any) -> dict[str, int]:
    """The counts so far; none where they cannot be had, which is no reason to end a run."""
    try:
        counts: dict[str, int] = ray.get(progress.read.remote(), timeout=POLL_S)
    except ray.exceptions.RayError:
        return {}
    return counts


def _outcome(ref: Any) -> ShardReport | _Failure:
    try:
        outcome: ShardReport | _Failure = ray.get(ref)
    except ray.exceptions.RayTaskError as err:  # a mistake of ours, or the machine's; a try costs little
        return _Failure(f"{_raised(err)}; report this", retried=True)
    except ray.exceptions.RayError as err:
        return _Failure(f"its worker ended: {in_short(err)}", retried=True)
    return outcome


def _told(task: ShardTask, outcome: ShardReport | _Failure) -> ShardReport | str:
    """The report, or the line of what failed with the file and row groups in front."""
    return placed(task, outcome.line) if isinstance(outcome, _Failure) else outcome


def _run_shard(
    task: ShardTask,
    config: Config,
    run_id: str,
    handles: dict[str, Any],
    fs: pafs.FileSystem,
    progress: Any,
) -> ShardReport | _Failure:
    """Run one shard in a worker; a named error comes back as its line, so that its class needs no pickling."""
    die_with_parent()
    collect_rarely()
    calls, proxies = _Calls(progress), dict[str, Any]()
    for role, handle in handles.items():
        if role in _LLM_ROLES:
            proxies[role] = LlmProxy(calls.asking(role, handle, handle.complete))
        else:
            ask = calls.asking(role, handle, handle.probabilities)
            proxies[role] = JudgeProxy(ask, _card(config, role).model)
    store = Store(config.store.out, config.store, run_id=run_id)
    try:
        report = run_shard(
            task, config, store, Models(**proxies), fs, progress.add.remote, loading=lambda: calls.loading_s
        )
    except _ActorError as err:
        return _Failure(str(err), retried=True, role=err.role)
    except ClaimscoreError as err:
        return _Failure(str(err))
    report.failed_roles = sorted(calls.failed_roles)
    return report


class _Calls:
    """The calls of one shard to its models: how far they are, and how long they have waited for a model to load."""

    def __init__(self, progress: Any) -> None:
        self._progress, self._of_try = progress, ray.get_runtime_context().get_task_id()
        self.loading_s = 0.0
        """No work of the shard, and in no rate."""
        self.failed_roles: set[str] = set()

    def asking(self, role: str, handle: Any, method: Any) -> Callable[..., Any]:
        """`_asking`, whose first call asks for the model and counts what of the waiting was its loading."""
        load, ask = _asking(role, handle.load), _asking(role, method)
        is_first = True

        def asked(*arguments: Any, **options: Any) -> Any:
            nonlocal is_first
            if is_first:
                since = time.time()
                with self._under_way(f"loading {role}", 0):
                    began, ended = load()
                self.loading_s += max(0.0, ended - max(began, since))
                is_first = False
            with self._under_way(role, len(arguments[-1])) as told:  # users, or the claims of pairs
                return ask(*arguments, told=told, **options)

        return asked

    @contextlib.contextmanager
    def _under_way(self, what: str, of: int) -> Iterator[Told]:
        call, n_done = uuid.uuid4().hex, 0
        self._progress.begin.remote(call, what, of, self._of_try)
        try:
            yield Told(self._progress, call)
            n_done = of
        except _ActorError as err:
            self.failed_roles.add(err.role)
            raise
        finally:
            self._progress.end.remote(call, n_done)


def _card(config: Config, role: str) -> JudgeCard:
    return config.checker_card if role == "checker" else config.card


def _asking(role: str, method: Any) -> Callable[..., Any]:
    """A plain function that asks an actor; whatever goes wrong there is `_ActorError`, in the words of who raised."""

    def ask(*arguments: Any, **options: Any) -> Any:
        try:
            return ray.get(method.remote(*arguments, **options))
        except ray.exceptions.RayTaskError as err:
            cause = err.cause
            line = str(cause) if isinstance(cause, ClaimscoreError) else f"{role}: {_raised(err)}"
            raise _ActorError(role, line) from err
        except ray.exceptions.RayError as err:
            raise _ActorError(
                role, f"{role}: its process ended: {in_short(err)}, expected an answer; look at memory first"
            ) from err

    return ask


def _raised(err: Any) -> str:
    """What a process raised: the type, the text, and the last line of code."""
    places = [line.strip() for line in str(err).splitlines() if line.lstrip().startswith('File "')]
    cause = err.cause
    return f"{type(cause).__name__}: {in_short(cause)}" + (f" ({places[-1]})" if places else "")
