"""MLflow: the frame of `search_traces()` (3.x and 2.x), traces as JSON, and Databricks' table of spans.

One row is a whole trace with its spans in it; each attribute of a span is JSON text of its own. The previews of request and
response are cut by the tracking server and are never read. The caller's `client_request_id` is the answer's id where
there is one. An expectation (`expected_response`, `expected_facts`) is the reference answer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from claimscore.jobs.import_content import fill_content
from claimscore.jobs.import_spans import Kind, Options, Row, Span, Tool, trace_span_id
from claimscore.jobs.import_texts import answer_of, question_of
from claimscore.jobs.import_values import (
    dig,
    hex_id_of,
    id_of,
    mapping_of,
    moment_of,
    rows_under,
    text_of,
    unpack,
    unpack_literal,
)
from claimscore.jobs.literals import BadValueError

_WANTED = {
    *(
        "trace_id",
        "request_id",
        "trace",
        "client_request_id",
        "state",
        "status",
        "request_time",
        "timestamp_ms",
    ),
    *(
        "request",
        "response",
        "trace_metadata",
        "request_metadata",
        "tags",
        "spans",
        "assessments",
        "info",
        "data",
    ),
    *("experiment_id", "request_preview", "response_preview"),
    *("span_id", "parent_span_id", "name", "attributes", "start_time_unix_nano", "end_time_unix_nano"),
}
_KINDS = {
    "LLM": Kind.LLM,
    "CHAT_MODEL": Kind.LLM,
    "RETRIEVER": Kind.RETRIEVER,
    "RERANKER": Kind.RERANKER,
    "TOOL": Kind.TOOL,
    "EMBEDDING": Kind.TOOL,
    "PARSER": Kind.TOOL,
    "MEMORY": Kind.TOOL,
    "EVALUATOR": Kind.JUDGE,
    "GUARDRAIL": Kind.JUDGE,
}


def spans(row: Row, options: Options) -> Iterator[Span]:
    """The spans of one trace, and the trace itself; or the one span of a row of a table of spans."""
    if row.get("span_id") is not None and row.get("spans") is None:
        trace_id = hex_id_of(row.get("trace_id"))
        if trace_id is None:
            raise BadValueError("no_trace_id", "a span without a trace id belongs to no answer")
        yield _span(row, trace_id, trace_id, options)
        return
    whole = mapping_of(row.get("trace"))
    info = {**mapping_of(row.get("info")), **mapping_of(whole.get("info"))}
    info |= {key: value for key, value in row.items() if value is not None}
    inner = unpack_literal(row.get("spans"))
    if inner is None:
        inner = dig(mapping_of(row.get("data")) or mapping_of(whole.get("data")), "spans")
    inner = [span for span in inner if isinstance(span, dict)] if isinstance(inner, list) else []
    trace_id = id_of(info.get("trace_id")) or id_of(info.get("request_id"))
    group = trace_id or hex_id_of(next((span.get("trace_id") for span in inner), None)) or ""
    trace = _trace(info, group, trace_id, bool(inner), options)
    yield trace
    for item in inner:
        span = _span(item, group, trace_id, options)
        span.request_id = trace.request_id
        yield span


def _trace(
    info: Mapping[str, Any], group: str, trace_id: str | None, has_spans: bool, options: Options
) -> Span:
    start, is_naive = moment_of(info.get("request_time") or info.get("timestamp_ms"))
    metadata = mapping_of(info.get("trace_metadata") or info.get("request_metadata"))
    tags = mapping_of(info.get("tags"))
    asked = question_of(unpack_literal(info.get("request")), options.question_keys)
    output = unpack_literal(info.get("response"))
    answered = answer_of(output, options.answer_keys)
    experiment = info.get("experiment_id") or dig(info, "trace_location.mlflow_experiment.experiment_id")
    span = Span(
        group=group,
        trace_id=trace_id,
        span_id=trace_span_id(group),
        request_id=id_of(info.get("client_request_id")),
        kind=Kind.TRACE,
        start=start,
        has_naive_time=is_naive,
        failed=str(info.get("state") or info.get("status")).endswith("ERROR"),
        question=asked.text,
        answer=answered.text,
        n_dropped=answered.n_dropped,
        prompt_version=_prompt_version(options, (metadata, tags), tags.get("mlflow.linkedPrompts")),
        session_id=id_of(metadata.get("mlflow.trace.session")),
        project=options.project or id_of(experiment),
        reference_answer=_reference(info.get("assessments")),
    )
    if answered.text is None and output is not None:
        span.answer_problem = "no_known_key", f"response has {', '.join(answered.keys) or 'no text'}"
    elif answered.text is None and not has_spans and info.get("response_preview") is not None:
        span.answer_problem = (
            "only_previews",
            "response_preview is cut by the server; export traces with their spans",
        )
    return span


def _span(item: Mapping[str, Any], group: str, trace_id: str | None, options: Options) -> Span:
    attributes = {key: unpack(value) for key, value in mapping_of(item.get("attributes")).items()}
    context = item["context"] if isinstance(item.get("context"), dict) else {}
    kind = attributes.get("mlflow.spanType") or item.get("span_type")
    start, is_naive = moment_of(item.get("start_time_unix_nano") or item.get("start_time"))
    status = item.get("status_code") or dig(item, "status.code") or dig(item, "status")
    span = Span(
        group=group,
        trace_id=trace_id,
        span_id=hex_id_of(item.get("span_id") or context.get("span_id")),
        parent_id=hex_id_of(item.get("parent_span_id") or item.get("parent_id")) or trace_span_id(group),
        kind=_KINDS.get(kind.upper() if isinstance(kind, str) else "", Kind.CHAIN),
        name=text_of(item.get("name")),
        start=start,
        end=moment_of(item.get("end_time_unix_nano") or item.get("end_time"))[0],
        has_naive_time=is_naive,
        failed="ERROR" in str(status).upper(),
        model=text_of(attributes.get("mlflow.llm.model")) or text_of(attributes.get("mlflow.chat.model")),
        prompt_version=_prompt_version(options, (attributes,), attributes.get("mlflow.linkedPrompts")),
    )
    given = _either(attributes.get("mlflow.spanInputs"), item.get("inputs"))
    output = _either(attributes.get("mlflow.spanOutputs"), item.get("outputs"))
    # An empty mapping is what MLflow writes where nothing came out.
    fill_content(span, given, None if output == {} else output, options, called="spanOutputs")
    return span


def _prompt_version(options: Options, places: tuple[Mapping[str, Any], ...], linked: Any) -> str | None:
    if options.prompt_version_key:
        found = (id_of(unpack(place.get(options.prompt_version_key))) for place in places)
        return next((version for version in found if version), None)
    linked = unpack_literal(linked)
    first = linked[0] if isinstance(linked, list) and linked else None
    name, version = (id_of(dig(first, key)) for key in ("name", "version"))
    return f"{name}@{version}" if name and version else None


def _reference(assessments: Any) -> str | None:
    """The expected response, else the expected facts as one text."""
    found: dict[str, Any] = {}
    assessments = unpack_literal(assessments)
    for item in assessments if isinstance(assessments, list) else ():
        told = mapping_of(item)
        value = unpack_literal(dig(mapping_of(told.get("expectation")), "value"))
        name = told.get("name") or told.get("assessment_name")
        if value is not None and isinstance(name, str):
            found[name] = value
    if isinstance(found.get("expected_response"), str):
        return str(found["expected_response"])
    facts = found.get("expected_facts")
    return (
        " ".join(fact for fact in facts if isinstance(fact, str)) or None if isinstance(facts, list) else None
    )


def _either(first: Any, second: Any) -> Any:
    return unpack_literal(second) if first is None else first


TOOL = Tool(
    system="mlflow",
    needs=(("spans", "trace", "data", "span_id"),),
    wants=lambda name: name in _WANTED,
    unwrap=functools.partial(rows_under, "traces"),
    spans=spans,
)
