"""The only file that imports ray: shard tasks, model actors, retries and progress.

A shard is a task that runs `shard_run.run_shard` with actor handles for models. Actors load their model at the first
call, so a run that finds a table fresh never loads what made it. The vLLM actor is async: requests of several shards
meet in one continuous batch. At most `shards_in_flight` shards are under way; one that fails `retries` times more is
reported, the others finish. Nothing here changes a result.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.fs as pafs
import ray

from claimscore.jobs.config import Config, JudgeCard
from claimscore.jobs.errors import ClaimscoreError, ModelError
from claimscore.jobs.nightly import Outcome
from claimscore.jobs.pairs import Floats
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import ShardTask
from claimscore.jobs.shard_run import ShardReport, run_shard
from claimscore.jobs.store import Store

Show = Callable[[dict[str, int]], None]
"""Called about twice a second with the counts so far: shards, claims, pairs, answers."""

POLL_S = 0.5
_LLM_CALLS = 1_000  # shards whose requests one engine holds at once; the engine queues them itself


class RayExecutor:
    """Runs shard tasks on Ray; a context manager that starts Ray here or joins the cluster of the config.

    Args:
        config: the deployment; `[cluster]` says where and how much.
        show: told the progress.
    """

    def __init__(self, config: Config, *, show: Show = lambda _: None) -> None:
        self._config = config
        self._show = show
        self._actors: dict[str, list[Any]] = {}

    def __enter__(self) -> Self:
        address = self._config.cluster.address
        # No working_dir: workers use the installed package, and a folder named kernels must not be on their path.
        if address:
            ray.init(address=address, log_to_driver=False)
        else:
            ray.init(num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
        self._progress = _remote(_Progress, num_cpus=0).remote()
        return self

    def __exit__(self, *_: object) -> None:
        self._actors.clear()
        ray.shutdown()

    def __call__(self, tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        """Execute the tasks; yields each with its report or its error as they end, in no order."""
        waiting = deque((task, 0) for task in tasks)
        running: dict[Any, tuple[ShardTask, int]] = {}
        run = _remote(_run_shard, max_retries=0)
        n_done = 0
        while waiting or running:
            while waiting and len(running) < self._config.cluster.shards_in_flight:
                task, tries = waiting.popleft()
                handles = self._handles(task, n_done + len(running))
                ref = run.remote(task, self._config, handles, fs, self._progress)
                running[ref] = (task, tries)
            ended, _ = ray.wait(list(running), num_returns=1, timeout=POLL_S)
            for ref in ended:
                task, tries = running.pop(ref)
                outcome = _outcome(ref)
                if isinstance(outcome, _Retry) and tries < self._config.cluster.retries:
                    waiting.append((task, tries + 1))
                    continue
                n_done += 1
                yield task, _where(task, outcome) if isinstance(outcome, str) else outcome
            self._show(ray.get(self._progress.read.remote()) | {"shards": n_done})

    def _handles(self, task: ShardTask, turn: int) -> dict[str, Any]:
        """Actor handles of the models that the task's stale tables may call."""
        stale = task.stale(Store(self._config.store.out, self._config.store))
        roles = []
        if "claims" in stale:
            roles += ["decomposer", "checker"]
        if {"scores", "sample_scores"} & set(stale):
            roles.append("judge")
        if "sample_scores" in stale and self._config.samples.model and self._config.samples.enabled:
            roles.append("generator")
        return {role: self._actor(role, turn) for role in roles}

    def _actor(self, role: str, turn: int) -> Any:
        """One of the actors of a role, in turn; roles with the same model and settings share them."""
        config, cluster = self._config, self._config.cluster
        if role in {"decomposer", "generator"}:
            section: Any = config.decompose if role == "decomposer" else config.samples
            arguments = (section.model, section.max_model_tokens, section.dtype, section.gpu_memory_fraction)
            kind, n, gpus = "llm", cluster.n_llms, cluster.llm_gpus
        else:
            card = config.checker_card if role == "checker" else config.card
            budget = (
                config.decompose.checker_budget_tokens if role == "checker" else config.judge.budget_tokens
            )
            dtype = "auto" if role == "checker" else config.judge.dtype
            arguments = (card, budget, dtype, config.judge.device)
            kind, n, gpus = "judge", cluster.n_judges, cluster.judge_gpus
        key = repr((kind, role if gpus else "", arguments))
        if key not in self._actors:
            options = {
                "num_cpus": 0,
                "num_gpus": gpus,
                "max_restarts": cluster.retries,
                "max_task_retries": cluster.retries,
            }
            if kind == "llm":
                actor = _remote(_LlmActor, max_concurrency=_LLM_CALLS, **options)
            else:
                actor = _remote(_JudgeActor, **options)
            self._actors[key] = [actor.remote(*arguments) for _ in range(n)]
        return self._actors[key][turn % n]


def _remote(what: Any, **options: Any) -> Any:
    """`what` as a Ray task or actor class; typed as anything, which is what Ray's decorators come to."""
    return ray.remote(**options)(what)


class _Retry(str):
    """An error of the machine, not of the data: worth another try."""

    __slots__ = ()


def _outcome(ref: Any) -> ShardReport | str:
    try:
        report: ShardReport | str = ray.get(ref)
    except ray.exceptions.RayError as err:
        return _Retry(" ".join(str(err).split())[:500])
    return report


def _where(task: ShardTask, error: str) -> str:
    groups = task.shard.row_groups
    return (
        error
        if task.shard.file in error
        else f"{task.shard.file}: row groups {groups[0]}-{groups[-1]}: {error}"
    )


def _run_shard(
    task: ShardTask, config: Config, handles: dict[str, Any], fs: pafs.FileSystem, progress: Any
) -> ShardReport | str:
    """Run one shard in a worker; a named error comes back as its line, so that its class needs no pickling."""
    proxies: dict[str, Any] = {
        role: _LlmProxy(handle)
        if role in {"decomposer", "generator"}
        else _JudgeProxy(handle, _card(config, role))
        for role, handle in handles.items()
    }
    store = Store(config.store.out, config.store)
    try:
        return run_shard(task, config, store, Models(**proxies), fs, progress.add.remote)
    except ModelError as err:
        return _Retry(err)
    except ClaimscoreError as err:
        return str(err)


def _card(config: Config, role: str) -> JudgeCard:
    return config.checker_card if role == "checker" else config.card


class _JudgeProxy:
    """The judge protocol over an actor: texts are tokenised here, on a worker's CPU; only ids travel."""

    def __init__(self, handle: Any, card: JudgeCard) -> None:
        self._handle, self._card = handle, card

    def encode(self, texts: pa.Array) -> pa.Table:
        """See pipeline.Judge."""
        return _tokenizer(self._card.model).encode(texts)

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> Floats:
        """See pipeline.Judge."""
        probs_P3: Floats = _get(self._handle.probabilities.remote(premise_ids, claim_ids))
        return probs_P3


class _LlmProxy:
    """The generator protocol over an actor."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        """See pipeline.Generator."""
        return _get(self._handle.complete.remote(system, users, **options))


def _get(ref: Any) -> Any:
    """The actor's answer; its named errors are raised as themselves."""
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as err:
        cause = err.cause
        raise cause if isinstance(cause, ClaimscoreError) else ModelError(f"model actor: {cause!r}") from err


_tokenizers: dict[str, Any] = {}


def _tokenizer(model: str) -> Any:
    """The tokenizer of a model, once a worker process."""
    if model not in _tokenizers:
        from claimscore.jobs.judge import load_tokenizer  # noqa: PLC0415

        _tokenizers[model] = load_tokenizer(model)
    return _tokenizers[model]


class _Progress:
    """Counts of what was made, added by workers and read by the driver."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, table: str, n: int) -> None:
        self.counts[table] = self.counts.get(table, 0) + n

    def read(self) -> dict[str, int]:
        return self.counts


class _JudgeActor:
    """An NLI cross-encoder that stays on its device from the first call on."""

    def __init__(self, card: JudgeCard, budget_tokens: int, dtype: str, device: str) -> None:
        self._arguments = (card, budget_tokens, dtype, device)
        self._judge: Any = None

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> Floats:
        if self._judge is None:
            _use_all_cores()
            from claimscore.jobs.judge import Judge  # noqa: PLC0415

            card, budget_tokens, dtype, device = self._arguments
            self._judge = Judge(card, budget_tokens=budget_tokens, dtype=dtype, device=device)
        probs_P3: Floats = self._judge.probabilities(premise_ids, claim_ids)
        return probs_P3


class _LlmActor:
    """A vLLM engine; async, so that the requests of several shards share its batches."""

    def __init__(self, model: str, max_model_tokens: int, dtype: str, gpu_memory_fraction: float) -> None:
        self._arguments = (model, max_model_tokens, dtype, gpu_memory_fraction)
        self._llm: Any = None

    async def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        if self._llm is None:
            _use_all_cores()
            from claimscore.jobs.llm import Llm  # noqa: PLC0415

            model, max_model_tokens, dtype, fraction = self._arguments
            self._llm = Llm(
                model, max_model_tokens=max_model_tokens, dtype=dtype, gpu_memory_fraction=fraction
            )
        return await self._llm.acomplete(system, users, **options)


def _use_all_cores() -> None:
    # Ray sets OMP_NUM_THREADS to 1 for actors that reserve no CPU: the models would run on one core.
    os.environ["OMP_NUM_THREADS"] = str(os.cpu_count())
