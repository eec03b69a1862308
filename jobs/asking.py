"""Prompts to a local LLM whose replies are kept: what is known is not asked again, and what comes back has a key.

Knows no prompt's form and no reply's.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

Shape = TypeVar("Shape", bound=Hashable)

Complete = Callable[..., pa.Table]
"""(system turn, user turns, options of a generator) -> records.REPLIES."""
Reply = tuple[str | None, str]
"""Text, or None where there is none, and finish reason."""
FINISHED = frozenset({"stop", "length"})
"""Of replies that would come back the same; the others are worth asking for again."""


class Replies(NamedTuple):
    """What is known of each prompt, and what it took."""

    of: dict[str, Reply]
    """Prompt key -> reply; a prompt that nothing came back for has the finish reason `error`."""
    n_prompts: int
    n_reused: int
    tokens: dict[str, int]
    """`n_prompt_tokens` and `n_output_tokens` of what was asked now."""


def key_of(made_from: Sequence[object]) -> str:
    """The key of a prompt: a hash of all that its reply hangs on."""
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:32]


def replies_to(
    prompts: Mapping[str, tuple[Shape, str]],
    stored: pa.Table,
    ask: Callable[[Shape, pa.Array], pa.Table],
) -> Replies:
    """The reply to each prompt, from `stored` where it is there and finished.

    Args:
        prompts: key -> what the schema of its reply depends on, and the user turn.
        stored: prompt_key, reply and finish_reason of records.REFEREE.
        ask: (shape, user turns) -> records.REPLIES; called once a shape, in their order, and only for what is lacking.
    """
    columns = (stored.column(name).to_pylist() for name in ("prompt_key", "reply", "finish_reason"))
    known = {key: (text, reason) for key, text, reason in zip(*columns, strict=True) if reason in FINISHED}
    replies = {key: known[key] for key in prompts if key in known}
    n_reused = len(replies)
    lacking: dict[Any, list[str]] = {}
    for key, (shape, _) in prompts.items():
        if key not in replies:
            lacking.setdefault(shape, []).append(key)
    tokens: Counter[str] = Counter(n_prompt_tokens=0, n_output_tokens=0)
    for shape in sorted(lacking):
        keys = lacking[shape]
        for row in ask(shape, pa.array([prompts[key][1] for key in keys], pa.string())).to_pylist():
            replies[keys[row["prompt_index"]]] = (row["text"], row["finish_reason"])
            tokens.update({name: row[name] for name in ("n_prompt_tokens", "n_output_tokens")})
        for key in keys:
            replies.setdefault(key, (None, "error"))
    return Replies(replies, len(prompts), n_reused, dict(tokens))
