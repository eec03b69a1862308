"""Langfuse: its blob-storage or UI export of traces and observations, Parquet, JSON, JSON lines or CSV.

A trace's own input and output stand in the table of traces; in the newer observations table they do not, and a trace
is what its observations say. Input and output are JSON in a string, and now and then plain text. Scores are not read.
The answer is scored at its GENERATION. Windows overlap at both ends, so a row may come twice: the newest counts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from claimscore.jobs.import_content import fill_content
from claimscore.jobs.import_spans import Kind, Options, Row, Span, Tool, trace_span_id
from claimscore.jobs.import_values import (
    id_of,
    mapping_of,
    moment_of,
    rows_under,
    text_of,
    unpack,
    unpack_literal,
)
from claimscore.jobs.literals import BadValueError

# The export's snake case, and the camel case of the UI's files and the API.
_NAMES = {
    "trace_id": ("trace_id", "traceId"),
    "parent_id": ("parent_observation_id", "parentObservationId"),
    "start": ("start_time", "startTime", "timestamp"),
    "end": ("end_time", "endTime"),
    "updated": ("updated_at", "updatedAt"),
    "project": ("project_id", "projectId"),
    "session": ("session_id", "sessionId"),
    "model": ("provided_model_name", "providedModelName", "model"),
    "prompt_name": ("prompt_name", "promptName"),
    "prompt_version": ("prompt_version", "promptVersion"),
    "value_type": ("data_type", "dataType"),
}
_PLAIN = ("id", "type", "name", "input", "output", "level", "metadata", "version", "release", "observations")
_KINDS = {
    "GENERATION": Kind.LLM,
    "RETRIEVER": Kind.RETRIEVER,
    "TOOL": Kind.TOOL,
    "EVENT": Kind.TOOL,
    "EMBEDDING": Kind.TOOL,
    "GUARDRAIL": Kind.JUDGE,
    "EVALUATOR": Kind.JUDGE,
}


def spans(row: Row, options: Options) -> Iterator[Span]:
    """The span of an observation or of a trace, with the observations inside it; none of a score."""
    if _get(row, "value_type") is not None:
        return
    own_id, trace_id = id_of(row.get("id")), id_of(_get(row, "trace_id"))
    is_trace = trace_id is None and row.get("type") is None
    trace_id = own_id if is_trace else trace_id
    if trace_id is None:
        raise BadValueError("no_trace_id", "an observation without a trace id belongs to no answer")
    yield _span(row, trace_id, own_id, options, is_trace=is_trace)
    inner = unpack(row.get("observations"))
    for observation in inner if isinstance(inner, list) else ():
        if isinstance(observation, dict):
            yield from spans({"traceId": trace_id, **observation, "observations": None}, options)


def _span(row: Row, trace_id: str, own_id: str | None, options: Options, *, is_trace: bool) -> Span:
    start, is_naive = moment_of(_get(row, "start"))
    span = Span(
        group=trace_id,
        trace_id=trace_id,
        span_id=trace_span_id(trace_id) if is_trace else own_id,
        parent_id=None if is_trace else id_of(_get(row, "parent_id")) or trace_span_id(trace_id),
        kind=Kind.TRACE if is_trace else _KINDS.get(str(row.get("type")).upper(), Kind.CHAIN),
        name=text_of(row.get("name")),
        start=start,
        end=moment_of(_get(row, "end"))[0],
        updated=moment_of(_get(row, "updated"))[0],
        has_naive_time=is_naive,
        failed=row.get("level") == "ERROR",
        model=text_of(_get(row, "model")),
        prompt_version=_prompt_version(row, options),
        session_id=id_of(_get(row, "session")),
        project=options.project or id_of(_get(row, "project")),
    )
    given, output = unpack_literal(row.get("input")), unpack_literal(row.get("output"))
    fill_content(span, given, output, options, called="output")
    return span


def _prompt_version(row: Row, options: Options) -> str | None:
    key = options.prompt_version_key
    if key:
        found = row.get(key) if key in ("version", "release") else mapping_of(row.get("metadata")).get(key)
        return text_of(unpack(found)) or id_of(found)
    name, version = text_of(_get(row, "prompt_name")), id_of(_get(row, "prompt_version"))
    return f"{name}@{version}" if name and version else None


def _get(row: Row, name: str) -> Any:
    return next((row[key] for key in _NAMES[name] if row.get(key) is not None), None)


TOOL = Tool(
    system="langfuse",
    needs=(("id",), ("trace_id", "traceId", "timestamp", "createdAt", "created_at")),
    wants=lambda name: name in _PLAIN or any(name in names for names in _NAMES.values()),
    unwrap=functools.partial(rows_under, "data"),
    spans=spans,
    answer_is_llm_span=True,
)
