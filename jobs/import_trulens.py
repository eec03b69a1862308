"""TruLens: its table of events (2.x), each a span with `ai.observability.*` attributes.

The spans of an answer share a record id. Contexts are plain texts without ids or scores; what a reranker left goes before
them. The database of 1.x holds contexts only inside the values of calls, and the frame of records and feedback holds
none: both are refused, with what to export instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from claimscore.jobs.import_documents import fill_documents
from claimscore.jobs.import_spans import Kind, Options, Row, Span, Tool
from claimscore.jobs.import_texts import Found, answer_of, question_of
from claimscore.jobs.import_values import (
    hex_id_of,
    id_of,
    mapping_of,
    moment_of,
    number_of,
    text_of,
    unpack_literal,
)
from claimscore.jobs.literals import BadValueError

_PREFIX = "ai.observability."
_WANTED = {
    *("event_id", "record", "record_attributes", "record_type", "resource_attributes", "events"),
    *("start_timestamp", "timestamp", "trace", "record_json", "calls_json", "record_id", "input", "output"),
}
_KINDS = {
    "record_root": Kind.TRACE,
    "retrieval": Kind.RETRIEVER,
    "reranking": Kind.RERANKER,
    "generation": Kind.LLM,
    "guardrail": Kind.JUDGE,
    "tool": Kind.TOOL,
    "mcp": Kind.TOOL,
}


def spans(row: Row, options: Options) -> Iterator[Span]:
    """The span of one event; none of an evaluation's own record."""
    told = {**mapping_of(row.get("resource_attributes")), **mapping_of(row.get("record_attributes"))}
    about = {key.removeprefix(_PREFIX): value for key, value in told.items()}
    span_type = str(about.get("span_type") or "").rsplit(".", 1)[-1].lower()
    record_id = id_of(about.get("record_id"))
    if span_type.startswith("eval"):
        return
    trace, record = mapping_of(row.get("trace")), mapping_of(row.get("record"))
    if record_id is None:
        raise BadValueError("no_record_id", "a span without ai.observability.record_id belongs to no answer")
    start, is_naive = moment_of(row.get("start_timestamp"))
    kind = _KINDS.get(span_type, Kind.CHAIN)
    parent = trace.get("parent_id") or record.get("parent_span_id")
    span = Span(
        group=record_id,
        request_id=record_id,
        trace_id=hex_id_of(trace.get("trace_id")),
        span_id=hex_id_of(trace.get("span_id")),
        parent_id=None if kind == Kind.TRACE else hex_id_of(parent),
        kind=kind,
        name=text_of(record.get("name")) or text_of(about.get("name")),
        start=start,
        end=moment_of(row.get("timestamp"))[0],
        has_naive_time=is_naive,
        failed="ERROR" in str(record.get("status")).upper(),
        model=text_of(about.get("cost.model")),
        prompt_version=id_of(about.get(options.prompt_version_key or "app_version")),
        session_id=id_of(about.get("conversation_id")),
        project=options.project or text_of(about.get("app_name")),
        reference_answer=text_of(about.get("record_root.ground_truth_output")),
    )
    _take_texts(span, about, options)
    _take_documents(span, about, options)
    yield span


def _take_texts(span: Span, about: Mapping[str, Any], options: Options) -> None:
    """A text stands as it was said: that it looks like JSON does not make it a dict of the application's."""
    asked, answered = Found(None), Found(None)
    if span.kind == Kind.TRACE:
        asked = question_of(about.get("record_root.input"), options.question_keys)
        answered = answer_of(about.get("record_root.output"), options.answer_keys)
    elif span.kind == Kind.LLM:
        answered = answer_of(unpack_literal(about.get("call.return")), options.answer_keys)
    span.question, span.answer, span.n_dropped = asked.text, answered.text, answered.n_dropped


def _take_documents(span: Span, about: Mapping[str, Any], options: Options) -> None:
    names = {Kind.RETRIEVER: "retrieval.retrieved_contexts", Kind.RERANKER: "reranking.output_context_texts"}
    value = unpack_literal(about.get(names[Kind(span.kind)])) if span.kind in names else None
    fill_documents(span, value, options)
    if span.documents is None:
        return
    scores = unpack_literal(about.get("reranking.output_context_scores"))
    if span.kind == Kind.RERANKER and isinstance(scores, list):
        if len(scores) != len(span.documents):
            found = f"{len(span.documents)} texts and {len(scores)} scores of the reranker, expected as many"
            span.documents_problem = "parallel_lists_differ", found
            return
        for document, score in zip(span.documents, scores, strict=True):
            document["score"] = number_of(score)


def _unwrap(document: Any) -> Iterator[Any]:
    events = unpack_literal(document.get("events")) if isinstance(document, dict) else document
    if isinstance(events, list):
        for event in events:
            yield from _unwrap(event) if isinstance(event, dict) else [event]
    else:
        yield document


def _refuse(columns: set[str]) -> str | None:
    if columns & {"record_json", "calls_json"}:
        return (
            "is the database of TruLens 1.x, whose contexts stand only inside the values of calls; "
            "upgrade to TruLens 2, record again and export its table of events"
        )
    if {"record_id", "input", "output"} <= columns and "record_attributes" not in columns:
        return (
            "is the frame of get_records_and_feedback(), which has no contexts; export the table of events "
            "(record_attributes, trace, start_timestamp)"
        )
    return None


TOOL = Tool(
    system="trulens",
    needs=(("record_attributes",), ("trace", "record")),
    wants=lambda name: name in _WANTED,
    unwrap=_unwrap,
    spans=spans,
    refuse=_refuse,
)
