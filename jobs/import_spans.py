"""One span of a trace, whatever tool recorded it, and what an importer of a tool is.

An importer turns the rows of its tool's export into spans of this one shape; everything after that is the same for
all of them. A text is the last word of a message list, documents are in the order they were recorded, and what
could not be taken stands as a problem beside what it was wanted for: whether it matters is for the trace to say.
This module knows no tool and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

import polars as pl

Row = Mapping[str, Any]
"""One row of an export: a span, or a whole trace."""
Documents = list[dict[str, Any]]
"""`records.CHUNK` dicts; `id` and `score` may be null, and `text` where a chunk table is to give it."""


class Kind(StrEnum):
    """What a span does, as far as an answer and its evidence depend on it."""

    LLM = "llm"
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    PROMPT = "prompt"
    """A template being filled; its variables are what the LLM after it was handed."""
    CHAIN = "chain"
    """A chain, an agent, or a span of no stated kind."""
    TRACE = "trace"
    """The trace itself, where a tool keeps its input and output apart from the spans."""
    TOOL = "tool"
    """A tool call, an embedding, an event: neither answer nor evidence."""
    JUDGE = "judge"
    """An evaluator or a guardrail: what it calls is about the answer and is not the answer."""


Problem = tuple[str, str]
"""A reason, and what exactly was found."""


@dataclass(slots=True, kw_only=True)
class Span:
    """One span; every text is null where it was not recorded."""

    group: str
    """What the spans of one trace have in common; empty: the row of the export that they are in."""
    span_id: str | None = None
    parent_id: str | None = None
    trace_id: str | None = None
    """As the tool must be given it; null: nothing can be written back."""
    request_id: str | None = None
    """The caller's own id; null: the trace id stands for it."""
    kind: str = Kind.CHAIN
    name: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    updated: datetime | None = None
    has_naive_time: bool = False
    """A time stood without a zone and was taken for UTC."""
    failed: bool = False
    question: str | None = None
    answer: str | None = None
    answer_problem: Problem | None = None
    n_dropped: int = 0
    """Parts of its messages that are no text: thinking, tool calls, pictures."""
    documents: Documents | None = None
    documents_problem: Problem | None = None
    handed: Documents | None = None
    """Documents in the variables of its prompt."""
    joined: str | None = None
    """A variable of its prompt that holds the documents as one text."""
    citations: list[dict[str, Any]] | None = None
    """`import_citations.Citation` dicts as the provider gave them, into `answer`."""
    model: str | None = None
    prompt_version: str | None = None
    session_id: str | None = None
    project: str | None = None
    reference_answer: str | None = None
    flags: list[str] = field(default_factory=list)
    file: str = ""
    row: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """What a person says of an export that it does not say itself."""

    project: str | None = None
    """The project of every trace, where the export does not name it."""
    prompt_version_key: str | None = None
    """An attribute or metadata key that holds the prompt version."""
    question_keys: tuple[str, ...] = ()
    """Keys of the application's own input that hold the question, tried before the usual ones."""
    answer_keys: tuple[str, ...] = ()
    """The same of its output."""
    answer_span: str | None = None
    """The name of the span whose output is the answer, where a trace leaves it open."""
    chunk_texts: Mapping[str, str] | None = None
    """Text of a chunk by its id, for exports that hold ids alone."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How the export of one tool becomes spans."""

    system: str
    """As `origin.system` says it."""
    needs: tuple[tuple[str, ...], ...]
    """Columns without which a file is of no use; of each group one is enough."""
    wants: Callable[[str], bool]
    """Whether a column is looked at; no other is read from a Parquet file."""
    unwrap: Callable[[Any], Iterator[Any]]
    """The rows of one JSON document."""
    spans: Callable[[Row, Options], Iterator[Span]]
    """The spans of one row; none where it is of another table. Raises literals.BadValueError."""
    refuse: Callable[[set[str]], str | None] = lambda _columns: None
    """Why a file with these columns cannot be imported, and the way out; None: it can."""
    warn: Callable[[int], str | None] = lambda _n_rows: None
    """What a file of so many rows makes one suspect."""
    answer_is_llm_span: bool = False
    """Scores go to the LLM span of the answer, not to the root."""


def trace_span_id(group: str) -> str:
    """The id of a trace among its own spans, where it stands for a root; no tool knows it."""
    return f"trace:{group}"


def is_trace_span_id(span_id: str | None) -> bool:
    """Whether it is one that `trace_span_id` made."""
    return span_id is not None and span_id.startswith("trace:")


_TEXTS = pl.List(pl.String)
_DOCUMENTS = pl.List(pl.Struct({"id": pl.String, "text": pl.String, "score": pl.Float64}))
_CITATIONS = pl.List(
    pl.Struct(
        {
            "start": pl.Int64,
            "end": pl.Int64,
            "text": pl.String,
            "chunk_ids": _TEXTS,
            "index": pl.Int64,
            "quote": pl.String,
        }
    )
)
_TYPES = {
    **dict.fromkeys(("start", "end", "updated"), pl.Datetime("us", "UTC")),
    **dict.fromkeys(("has_naive_time", "failed"), pl.Boolean),
    **dict.fromkeys(("n_dropped", "row"), pl.Int64),
    **dict.fromkeys(("documents", "handed"), _DOCUMENTS),
    **dict.fromkeys(("answer_problem", "documents_problem", "flags"), _TEXTS),
    "citations": _CITATIONS,
}
SCHEMA = pl.Schema({f.name: _TYPES.get(f.name, pl.String) for f in fields(Span)})
"""Spans as a frame: a row each, columns as the fields of `Span`."""


def as_frame(spans: list[Span]) -> pl.DataFrame:
    """The spans as a frame of SCHEMA; none give an empty one.

    Raises:
        UnicodeEncodeError: a text that no UTF-8 can hold.
    """
    columns = {name: [getattr(span, name) for span in spans] for name in SCHEMA}
    return pl.DataFrame(columns, schema=SCHEMA)
