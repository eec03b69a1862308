"""A night's questions for another prompt or model: which are asked, how the prompt is filled, what came back.

Every question keeps the chunks that it was answered from, so that only the prompt or the model differs. What is no
finished answer (cut, late, empty) is counted by its reason and never taken for one. The module knows no model, no judge
and no file; prompts are filled by one pass over the template, so that nothing in a log is read as a placeholder.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import consistency, prompt_texts
from claimscore.jobs.errors import InputError
from claimscore.jobs.records import LOG

STRATA = ("prompt_version", "topic")
CARRIED = (
    *("question", "chunks", "topic", "ts", "answerable", "gold_chunk_ids", "reference_answer", "conflicting"),
)
"""Columns of a logged answer that hold for another answer to the same question; labels, citations and origin do not."""
WRITTEN = pa.schema(
    [field for field in LOG if field.name not in ("samples", "token_logprobs", "flags")]
    + [pa.field("conflicting", pa.bool_())]
)
"""A log of replayed answers, and of the logged ones beside them."""

_PLACEHOLDER = re.compile(r"\{(question|chunks)\}")
_LIKE_ONE = re.compile(r"\{[A-Za-z_]{2,30}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """How a question is put to the model."""

    version: str
    """Name and fingerprint: the `prompt_version` of the new answers."""
    system: str
    template: str | None
    """The user turn with {question} and {chunks}; None: chunks and question as samples are drawn with them."""


def prompt_of(name: str, text: str, system: str) -> Prompt:
    """A prompt from its text.

    With {question} and {chunks} in it, it is the whole user turn; without either, it is the system turn.

    Args:
        name: what it is called.
        text: of the prompt file; empty: `system` alone.
        system: the system turn of the config, for an empty text.

    Raises:
        InputError: one placeholder without the other, or another in their place.
    """
    found = set(_PLACEHOLDER.findall(text))
    if not found and (like := _LIKE_ONE.search(text)):
        raise InputError(
            f"prompt {name}: found {like[0]}, expected {{question}} and {{chunks}}, or neither; rename it"
        )
    if len(found) == 1:
        raise InputError(
            f"prompt {name}: has {{{found.pop()}}} alone, expected {{question}} and {{chunks}}; add the other"
        )
    turns = ("", text) if found else (text.strip() or system, None)
    digest = hashlib.sha256(repr(turns).encode("utf-8", "surrogatepass")).hexdigest()
    return Prompt(f"{name}-{digest[:8]}", *turns)


def user_turns(log: pa.Table, prompt: Prompt, first_number: int = 1) -> pa.Array:
    """The user turn of each question, string (rows,).

    Args:
        log: records.LOG, or its question and chunks.
        prompt: how to ask.
        first_number: the number of the first chunk, where marks are positions.
    """
    if prompt.template is None:
        return consistency.sample_prompts(log, first_number)
    columns = (log.column("question"), log.column("chunks"), consistency.content_keys(log))
    turns = []
    for question, chunks, key in zip(*(column.to_pylist() for column in columns), strict=True):
        texts = [chunk["text"] or "" for chunk in chunks]
        shown = consistency.numbered_chunks(texts, key, first_number)
        turns.append(
            _filled(prompt.template, {"question": prompt_texts.defused(question or ""), "chunks": shown})
        )
    return pa.array(turns, pa.string())


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders replaced in one pass: what a value holds is never looked at."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def askable(log: pa.Table) -> pl.DataFrame:
    """request_id, STRATA and `why_not` of each row: null, or `without a question`, `without chunks`."""
    frame = pl.DataFrame(log.select(["request_id", *STRATA]))
    question = pc.utf8_trim_whitespace(log.column("question").fill_null(""))
    no_question = pl.Series(pc.equal(question, "").to_pylist(), dtype=pl.Boolean)
    texts = [
        any((chunk["text"] or "").strip() for chunk in chunks) for chunks in log.column("chunks").to_pylist()
    ]
    no_chunks = ~pl.Series(texts, dtype=pl.Boolean)
    why_not = (
        pl.when(no_question)
        .then(pl.lit("without a question"))
        .when(no_chunks)
        .then(pl.lit("without chunks"))
        .otherwise(None)
    )
    return frame.with_columns(why_not=why_not)


def counted(why_not: pl.Series) -> dict[str, int]:
    """Reason -> rows that cannot be asked for it, sorted."""
    return dict(sorted(Counter(why_not.drop_nulls().to_list()).items()))


def choose(rows: pl.DataFrame, n: int, seed: int) -> list[str]:
    """The request ids of `n` rows, or all, each stratum in proportion; the same for any order of the rows.

    Within a stratum (prompt version and topic) rows are ordered by a hash of seed and id, and stand at
    (place - 1/2) / rows of the stratum; the n first of all strata are taken.

    Args:
        rows: request_id and STRATA of what may be asked.
        n: how many, at least 1.
        seed: another seed, another choice.
    """
    hashes = [_hash(seed, request_id) for request_id in rows["request_id"]]
    ordered = rows.with_columns(hash=pl.Series(hashes, dtype=pl.UInt64))
    place = (pl.col("hash").rank("ordinal").over(STRATA) - 0.5) / pl.len().over(STRATA)
    return (
        ordered.with_columns(place=place).sort("place", "hash", "request_id").head(n)["request_id"].to_list()
    )


def _hash(seed: int, request_id: str) -> int:
    digest = hashlib.sha256(f"replay:{seed}:".encode() + request_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def new_answers(
    log: pa.Table, replies: pa.Table, *, prompt_version: str, model: str
) -> tuple[pa.Table, dict[str, int]]:
    """The finished replies as a log, and how many of the others there are by reason.

    Args:
        log: logrows.ROWS of the questions.
        replies: records.REPLIES, one a question; `prompt_index` counts the rows of `log`.
        prompt_version: of the new answers.
        model: of the new answers.

    Returns:
        WRITTEN, and reason -> count: `empty`, `length` (cut), `deadline`, `prompt_too_long`, `error`. The request id of
        an answer is that of its question, `~` and the prompt version's fingerprint.
    """
    text = replies.column("text")
    is_blank = pc.equal(pc.utf8_trim_whitespace(text.fill_null("")), "")
    stopped = pc.equal(replies.column("finish_reason"), "stop")
    finished = pc.and_(stopped, pc.invert(is_blank))
    others = replies.filter(pc.invert(finished)).column("finish_reason").to_pylist()
    failed = Counter("empty" if reason == "stop" else reason for reason in others)
    kept = replies.filter(finished)
    asked = log.take(kept.column("prompt_index"))
    mark = prompt_version.rpartition("-")[2]
    columns: dict[str, Any] = {field.name: pa.nulls(asked.num_rows, field.type) for field in WRITTEN}
    columns |= {name: asked.column(name) for name in CARRIED}
    columns["request_id"] = pc.binary_join_element_wise(asked.column("request_id"), mark, "~")
    columns["answer"] = kept.column("text")
    columns["prompt_version"] = pa.repeat(prompt_version, asked.num_rows)
    columns["model"] = pa.repeat(model, asked.num_rows)
    return pa.table(columns, schema=WRITTEN), dict(sorted(failed.items()))


def logged_answers(log: pa.Table) -> pa.Table:
    """The logged answers as they were, WRITTEN; samples and log-probabilities are left out of both sides."""
    return log.select(WRITTEN.names)
