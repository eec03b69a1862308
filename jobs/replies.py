"""Prompts in, one row a prompt and sample out, whatever an engine does with them.

Rows are known by index and never by arrival; a request has a deadline; where there is no text the row names
the reason in `finish_reason`. A dead engine is the caller's to mend and raises. This module knows no vLLM: an
engine is handed in (`llm` has the real one), and all calls of one object run on one event loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from claimscore.jobs import records
from claimscore.jobs.errors import ModelError

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

    async def close(self) -> None:
        """Stop the engine and free its memory."""
        ...


class Replies:
    """The promises above, over one engine."""

    def __init__(self, model: str, engine: Engine, *, max_model_tokens: int) -> None:
        """Take `engine` over; call on its event loop.

        Raises:
            ModelError: the engine's tokenizer has no chat template that takes a system and a user turn.
        """
        self._model, self._engine, self._max_model_tokens = model, engine, max_model_tokens
        self._gate, self._slots = asyncio.Lock(), asyncio.Semaphore(engine.concurrency)
        self._frames: dict[str, tuple[list[int], list[int]]] = {}
        self._keys = itertools.count()
        self._given_up: set[asyncio.Future[Any]] = set()
        self._frame("")

    async def complete(
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
        needed: bool = True,
        tick: Callable[[int], None] = lambda _: None,
    ) -> pa.Table:
        """As `llm.Llm.acomplete`, which says what each argument is."""
        seeds = [seed] * len(users) if isinstance(seed, int) else list(seed)
        rows: list[list[dict[str, Any]]] = [[]] * len(users)

        async def one(i: int) -> None:
            sampling = Sampling(
                schema=schema, max_tokens=max_tokens, temperature=temperature, n=n, seed=seeds[i]
            )
            rows[i] = await self._rows_of(i, system, users[i], sampling, deadline_s)
            tick(1)

        try:
            async with asyncio.TaskGroup() as group:
                for i in sorted(range(len(users)), key=users.__getitem__):
                    group.create_task(one(i))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        reasons = [row["finish_reason"] for prompt in rows for row in prompt]
        sent = [reason for reason in reasons if reason != "prompt_too_long"]
        if needed and len(sent) >= SILENT_ENGINE_ROWS and not {"stop", "length"} & set(sent):
            raise ModelError(
                f"{self._model}: the engine answered none of {len(sent)} requests ({sent[0]}), expected replies; "
                "try again, and raise deadline_s if the machine is only slow"
            )
        return pa.Table.from_pylist([row for prompt in rows for row in prompt], schema=records.REPLIES)

    async def close(self) -> None:
        """Stop the engine, after a last word to requests that would not end."""
        for leftover in self._given_up:
            leftover.cancel()
        if self._given_up:
            await asyncio.wait(set(self._given_up), timeout=1.0)
        await self._engine.close()

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
            raise ModelError(dead(self._model))
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
                    f"{self._model}: chat template failed: {first_line(err)}, expected one that takes a system and a "
                    "user turn; use an instruction-tuned checkpoint"
                ) from err
            head, _, tail = text.partition(_USER_TURN)
            encode = self._engine.tokenizer.encode
            self._frames[system] = (
                encode(head, add_special_tokens=False),
                encode(tail, add_special_tokens=False),
            )
        return self._frames[system]


def dead(model: str) -> str:
    """What is said of an engine that died."""
    return f"{model}: the vLLM engine died, expected it to answer; start it again and repeat the shard"


def first_line(err: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(err).__name__
