"""OpenTelemetry: OTLP JSON of any of the GenAI conventions, and of OpenInference's.

Three dialects are about: messages as attributes (1.37 and later), messages as span events (before), and OpenLLMetry's
numbered prompts and completions with its `traceloop.entity` texts. Content is opt-in in all of them, and the retrieval
convention has no field for a chunk's text: ids alone are no evidence, so such a trace is put aside unless a
chunk table gives the texts. No attribute holds a prompt version: it is the one that a person names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from claimscore.jobs.import_citations import citations_of
from claimscore.jobs.import_documents import fill_documents, handed_of
from claimscore.jobs.import_envelope import envelope_spans, is_envelope
from claimscore.jobs.import_phoenix import openinference_span
from claimscore.jobs.import_spans import Kind, Options, Row, Span, Tool
from claimscore.jobs.import_texts import Found, answer_of, question_of
from claimscore.jobs.import_values import (
    dig,
    hex_id_of,
    id_of,
    mapping_of,
    moment_of,
    nest,
    text_of,
    unpack_literal,
)
from claimscore.jobs.literals import BadValueError

_OPERATIONS = {
    "chat": Kind.LLM,
    "text_completion": Kind.LLM,
    "generate_content": Kind.LLM,
    "completion": Kind.LLM,
    "retrieval": Kind.RETRIEVER,
    "rerank": Kind.RERANKER,
    "embeddings": Kind.TOOL,
    "execute_tool": Kind.TOOL,
    "tool": Kind.TOOL,
}
_CHOICE_EVENTS = ("gen_ai.choice", "gen_ai.assistant.message")
_DETAILS_EVENT = "gen_ai.client.inference.operation.details"


def spans(row: Row, options: Options) -> Iterator[Span]:
    """The span of one unfolded row."""
    if "log_records" in row:
        return
    flat = row["attributes"] if isinstance(row.get("attributes"), dict) else {}
    tree, resource = nest(flat), mapping_of(row.get("resource"))
    if dig(tree, "openinference.span.kind"):
        yield openinference_span(row, tree, resource, options)
        return
    trace_id = hex_id_of(row.get("trace_id"))
    if trace_id is None:
        raise BadValueError("no_trace_id", "a span without a trace id belongs to no answer")
    (start, naive), (end, _) = moment_of(row.get("start")), moment_of(row.get("end"))
    span = Span(
        group=trace_id,
        trace_id=trace_id,
        span_id=hex_id_of(row.get("span_id")),
        parent_id=hex_id_of(row.get("parent_id")),
        kind=_kind(tree),
        name=text_of(row.get("name")),
        start=start,
        end=end,
        has_naive_time=naive,
        failed=bool(row.get("failed")),
        model=text_of(dig(tree, "gen_ai.response.model")) or text_of(dig(tree, "gen_ai.request.model")),
        prompt_version=_prompt_version(flat, resource, options.prompt_version_key),
        session_id=id_of(dig(tree, "gen_ai.conversation.id")) or id_of(dig(tree, "session.id")),
        project=options.project or text_of(resource.get("service.name")),
    )
    _take_texts(span, tree, row.get("events"), options)
    _take_documents(span, tree, options)
    yield span


def _kind(tree: Mapping[str, Any]) -> Kind:
    named = (
        dig(tree, "gen_ai.operation.name")
        or dig(tree, "traceloop.span.kind")
        or dig(tree, "llm.request.type")
    )
    return _OPERATIONS.get(named if isinstance(named, str) else "", Kind.CHAIN)


def _take_texts(span: Span, tree: Mapping[str, Any], events: Any, options: Options) -> None:
    asked, answered = _of_attributes(tree), _of_completions(tree)
    for event in events if isinstance(events, list) else ():
        attributes = nest(mapping_of(dig(event, "attributes")))
        if dig(event, "name") == _DETAILS_EVENT:
            asked = _first(asked, _of_attributes(attributes))
            answered = _first(answered, _of_completions(attributes))
        elif dig(event, "name") == "gen_ai.user.message":
            asked = _event_text(attributes, question_of, "user") or asked
        elif dig(event, "name") in _CHOICE_EVENTS[:1]:
            answered = _event_text(attributes, answer_of, "assistant") or answered
    entity_in, entity_out = (
        unpack_literal(dig(tree, f"traceloop.entity.{way}")) for way in ("input", "output")
    )
    asked = _first(asked, question_of(entity_in, options.question_keys))
    output = unpack_literal(dig(tree, "gen_ai.output.messages")) or entity_out
    answered = _first(answered, answer_of(entity_out, options.answer_keys))
    span.question, span.answer, span.n_dropped = asked.text, answered.text, answered.n_dropped
    if answered.text is None and entity_out is not None:
        span.answer_problem = (
            "no_known_key",
            f"traceloop.entity.output has {', '.join(answered.keys) or 'no text'}",
        )
    span.citations = citations_of(output, answered.text)


def _of_attributes(tree: Mapping[str, Any]) -> Found:
    found = question_of(unpack_literal(dig(tree, "gen_ai.input.messages")))
    return _first(found, question_of(dig(tree, "gen_ai.prompt")))


def _of_completions(tree: Mapping[str, Any]) -> Found:
    found = answer_of(unpack_literal(dig(tree, "gen_ai.output.messages")))
    return _first(found, answer_of(dig(tree, "gen_ai.completion")))


def _event_text(attributes: Mapping[str, Any], find: Any, role: str) -> Found | None:
    """The text of an event of the older convention: its attributes, or a message in one of them."""
    body = unpack_literal(attributes.get("gen_ai.event.content") or dig(attributes, "gen_ai.event.content"))
    message = unpack_literal(attributes.get("message"))
    for value in (body, message, attributes):
        if isinstance(value, dict):
            inner = value.get("message") if isinstance(value.get("message"), dict) else value
            found: Found = find({"role": role, **inner})
            if found.text is not None:
                return found
    return None


def _take_documents(span: Span, tree: Mapping[str, Any], options: Options) -> None:
    value = unpack_literal(dig(tree, "gen_ai.retrieval.documents"))
    if value is None:
        value = unpack_literal(dig(tree, "traceloop.entity.output"))
    fill_documents(span, value, options)
    if span.kind == Kind.LLM:
        span.handed, span.joined = handed_of(dig(tree, "gen_ai.prompt.variables"), options)


def _prompt_version(flat: Mapping[str, Any], resource: Mapping[str, Any], key: str | None) -> str | None:
    found = (flat.get(key), resource.get(key)) if key else ()
    return next((str(value) for value in found if isinstance(value, str | int)), None)


def _first(found: Found, other: Found) -> Found:
    return found if found.text is not None else other


def _unwrap(document: Any) -> Iterator[Any]:
    if is_envelope(document):
        yield from envelope_spans(document)
    elif isinstance(document, list):
        for item in document:
            yield from _unwrap(item)
    else:
        yield "no_envelope", "expected OTLP JSON with resourceSpans"


def _refuse(columns: set[str]) -> str | None:
    if columns == {"log_records"}:
        return "holds log records (resourceLogs), which say nothing of who called whom; export the spans (resourceSpans)"
    return None


TOOL = Tool(
    system="otlp",
    needs=(("trace_id",), ("span_id",)),
    wants=lambda _name: False,
    unwrap=_unwrap,
    spans=spans,
    refuse=_refuse,
)
