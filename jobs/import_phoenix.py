"""Phoenix: spans of the OpenInference convention, from its data frame, its files, its REST API or OTLP.

Documents sit on the RETRIEVER or RERANKER span, the answer on the root; ids and scores are there where the
instrumentor set them. The variables of a prompt template say best what the model was handed. Attribute names after
openinference's semantic_conventions.md (Arize-ai/openinference).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from claimscore.jobs.import_citations import citations_of
from claimscore.jobs.import_documents import fill_documents, handed_of
from claimscore.jobs.import_envelope import envelope_spans, is_envelope
from claimscore.jobs.import_spans import Kind, Options, Row, Span, Tool
from claimscore.jobs.import_texts import Found, answer_of, question_of
from claimscore.jobs.import_values import (
    dig,
    hex_id_of,
    id_of,
    mapping_of,
    moment_of,
    nest,
    rows_under,
    text_of,
    unpack_literal,
)
from claimscore.jobs.literals import BadValueError

_DEFAULT_LIMIT = 1_000
_CORE = {
    *("name", "span_kind", "parent_id", "start_time", "end_time", "status_code", "attributes", "events"),
    *("context.span_id", "context.trace_id", "context", "trace_id", "span_id"),
}
_KINDS = {
    "LLM": Kind.LLM,
    "RETRIEVER": Kind.RETRIEVER,
    "RERANKER": Kind.RERANKER,
    "PROMPT": Kind.PROMPT,
    "TOOL": Kind.TOOL,
    "EMBEDDING": Kind.TOOL,
    "DECISION": Kind.TOOL,
    "GUARDRAIL": Kind.JUDGE,
    "EVALUATOR": Kind.JUDGE,
}


def spans(row: Row, options: Options) -> Iterator[Span]:
    """The span of one row of any of Phoenix' forms."""
    context = row["context"] if isinstance(row.get("context"), dict) else {}
    attributes = row["attributes"] if isinstance(row.get("attributes"), dict) else {}
    flat = {key[len("attributes.") :]: row[key] for key in row if key.startswith("attributes.")}
    plain = {
        "trace_id": row.get("context.trace_id") or context.get("trace_id") or row.get("trace_id"),
        "span_id": row.get("context.span_id") or context.get("span_id") or row.get("span_id"),
        "parent_id": row.get("parent_id"),
        "name": row.get("name"),
        "start": row.get("start") or row.get("start_time"),
        "end": row.get("end") or row.get("end_time"),
        "failed": row.get("failed") or row.get("status_code") == "ERROR",
        "kind": row.get("span_kind"),
    }
    yield openinference_span(plain, nest({**attributes, **flat}), mapping_of(row.get("resource")), options)


def openinference_span(
    plain: Mapping[str, Any], tree: Mapping[str, Any], resource: Mapping[str, Any], options: Options
) -> Span:
    """One span from its times and ids (`plain`) and its attributes as a tree.

    Raises:
        BadValueError: `no_trace_id`.
    """
    trace_id = hex_id_of(plain.get("trace_id"))
    if trace_id is None:
        raise BadValueError("no_trace_id", "a span without a trace id belongs to no answer")
    named = plain.get("kind") or dig(tree, "openinference.span.kind")
    kind = _KINDS.get(named.upper() if isinstance(named, str) else "", Kind.CHAIN)
    (start, naive), (end, _) = moment_of(plain.get("start")), moment_of(plain.get("end"))
    span = Span(
        group=trace_id,
        trace_id=trace_id,
        span_id=hex_id_of(plain.get("span_id")),
        parent_id=hex_id_of(plain.get("parent_id")),
        kind=kind,
        name=text_of(plain.get("name")),
        start=start,
        end=end,
        has_naive_time=naive,
        failed=bool(plain.get("failed")),
        model=text_of(dig(tree, "llm.model_name")),
        prompt_version=_prompt_version(tree, resource, options),
        session_id=id_of(dig(tree, "session.id")),
        project=options.project or text_of(resource.get("openinference.project.name")),
    )
    _take_texts(span, tree, options)
    _take_documents(span, tree, options)
    return span


def _take_texts(span: Span, tree: Mapping[str, Any], options: Options) -> None:
    is_llm, output = span.kind == Kind.LLM, _value(tree, "output")
    asked = question_of(_unpacked(tree, "llm.input_messages")) if is_llm else Found(None)
    if asked.text is None:
        asked = question_of(_value(tree, "input"), options.question_keys)
    answer = answer_of(_unpacked(tree, "llm.output_messages")) if is_llm else Found(None)
    if answer.text is None:
        answer = answer_of(output, options.answer_keys)
    span.question, span.answer, span.n_dropped = asked.text, answer.text, answer.n_dropped
    if answer.text is None and output is not None:
        span.answer_problem = "no_known_key", f"output.value has {', '.join(answer.keys) or 'no text'}"
    span.citations = citations_of(output, answer.text)


def _take_documents(span: Span, tree: Mapping[str, Any], options: Options) -> None:
    span.handed, span.joined = handed_of(dig(tree, "llm.prompt_template.variables"), options)
    where = {Kind.RETRIEVER: "retrieval.documents", Kind.RERANKER: "reranker.output_documents"}
    if span.kind in where:
        fill_documents(span, _unpacked(tree, where[Kind(span.kind)]), options)


def _unpacked(tree: Mapping[str, Any], name: str) -> Any:
    """A list of the tree; where a data frame cast it to text, as nested as the others."""
    value = dig(tree, name)
    return nest({"": unpack_literal(value)}).get("") if isinstance(value, str) else value


def _value(tree: Mapping[str, Any], name: str) -> Any:
    """`input.value` or `output.value`: parsed where its type says JSON, else the text that it is."""
    value = dig(tree, f"{name}.value")
    is_json = dig(tree, f"{name}.mime_type") in ("application/json", "json", "JSON")
    return unpack_literal(value) if is_json else value


def _prompt_version(tree: Mapping[str, Any], resource: Mapping[str, Any], options: Options) -> str | None:
    key = options.prompt_version_key
    if key:
        metadata = mapping_of(tree.get("metadata"))
        found = (dig(tree, key), resource.get(key), metadata.get(key), dig(metadata, key))
        return next((str(value) for value in found if isinstance(value, str | int)), None)
    return id_of(dig(tree, "llm.prompt_template.version"))


def _unwrap(document: Any) -> Iterator[Any]:
    if is_envelope(document):
        yield from envelope_spans(document)
    else:
        yield from rows_under("data", document)


def _refuse(columns: set[str]) -> str | None:
    if {"input", "context"} <= columns and not any("span_id" in name for name in columns):
        return (
            "looks like get_input_output_context(): its chunks are joined to one text and their borders are lost; "
            "export get_spans_dataframe() instead"
        )
    return None


def _warn(n_rows: int) -> str | None:
    if n_rows == _DEFAULT_LIMIT:
        return f"has exactly {n_rows:,} spans, as get_spans_dataframe() cuts them silently, newest first; give it a limit"
    return None


TOOL = Tool(
    system="phoenix",
    needs=(("context.trace_id", "context", "trace_id"), ("context.span_id", "context", "span_id")),
    wants=lambda name: name in _CORE or name.startswith("attributes."),
    unwrap=_unwrap,
    spans=spans,
    refuse=_refuse,
    warn=_warn,
)
