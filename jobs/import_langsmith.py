"""LangSmith: runs of its bulk export (Parquet) or of the API as JSON.

Inputs and outputs are the application's own dicts as JSON text, so that question and answer stand under keys that
only its people know: the usual ones are tried, and where none fits the trace is put aside with the keys that
were there. Retriever runs hold documents under `documents` (LangChain) or `output` (`@traceable`). `session_id` is the
project. Rows of two exports of a day, and of a trace that crosses midnight, meet by their ids.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from claimscore.jobs.import_citations import citations_of
from claimscore.jobs.import_documents import fill_documents, handed_of
from claimscore.jobs.import_spans import Kind, Options, Row, Span, Tool
from claimscore.jobs.import_texts import answer_of, question_of
from claimscore.jobs.import_values import (
    dig,
    id_of,
    mapping_of,
    moment_of,
    rows_under,
    text_of,
    unpack_literal,
)
from claimscore.jobs.literals import BadValueError

_WANTED = {
    *("id", "trace_id", "parent_run_id", "parent_run_ids", "is_root", "run_type", "name", "status", "error"),
    *("start_time", "end_time", "session_id", "inputs", "outputs", "extra"),
    *("inputs_s3_urls", "outputs_s3_urls", "dataset_id", "reference_example_id"),
}
_KINDS = {
    "llm": Kind.LLM,
    "chat_model": Kind.LLM,
    "retriever": Kind.RETRIEVER,
    "prompt": Kind.PROMPT,
    "tool": Kind.TOOL,
    "embedding": Kind.TOOL,
    "parser": Kind.TOOL,
}
_SESSION_KEYS = ("session_id", "thread_id", "conversation_id")


def spans(row: Row, options: Options) -> Iterator[Span]:
    """The span of a run; none of an example of a data set."""
    if row.get("run_type") is None and row.get("dataset_id") is not None:
        return
    run_id, trace_id = id_of(row.get("id")), id_of(row.get("trace_id"))
    if trace_id is None:
        raise BadValueError("no_trace_id", "a run without a trace id belongs to no answer")
    start, is_naive = moment_of(row.get("start_time"))
    metadata = mapping_of(mapping_of(row.get("extra")).get("metadata"))
    span = Span(
        group=trace_id,
        trace_id=trace_id,
        span_id=run_id,
        parent_id=_parent(row, run_id, trace_id),
        kind=_KINDS.get(str(row.get("run_type")), Kind.CHAIN),
        name=text_of(row.get("name")),
        start=start,
        end=moment_of(row.get("end_time"))[0],
        has_naive_time=is_naive,
        failed=row.get("status") == "error" or row.get("error") is not None,
        model=text_of(metadata.get("ls_model_name")),
        prompt_version=id_of(metadata.get(options.prompt_version_key or "revision_id")),
        session_id=next((found for key in _SESSION_KEYS if (found := id_of(metadata.get(key)))), None),
        project=options.project or id_of(row.get("session_id")),
    )
    _take_texts(span, row, options)
    yield span


def _take_texts(span: Span, row: Row, options: Options) -> None:
    given, output = unpack_literal(row.get("inputs")), unpack_literal(row.get("outputs"))
    asked, answered = question_of(given, options.question_keys), answer_of(output, options.answer_keys)
    span.question, span.answer, span.n_dropped = asked.text, answered.text, answered.n_dropped
    is_elsewhere = _is_elsewhere(row, "outputs", output)
    if answered.text is None and is_elsewhere:
        span.answer_problem = (
            "stored_elsewhere",
            "outputs lie in object storage (outputs_s3_urls); use the bulk export",
        )
    elif answered.text is None and output not in (None, {}):
        span.answer_problem = (
            "no_known_key",
            f"outputs has {', '.join(answered.keys) or 'no text'}; name its key with --answer-key",
        )
    if span.kind == Kind.LLM:
        span.citations = citations_of(output, answered.text)
    if span.kind in (Kind.LLM, Kind.PROMPT):
        span.handed, span.joined = handed_of(given, options)
    if span.kind == Kind.RETRIEVER and is_elsewhere:
        span.documents_problem = "stored_elsewhere", "outputs lie in object storage (outputs_s3_urls)"
    fill_documents(span, output or None, options)


def _is_elsewhere(row: Row, name: str, value: Any) -> bool:
    return value in (None, {}) and bool(unpack_literal(row.get(f"{name}_s3_urls")))


def _parent(row: Row, run_id: str | None, trace_id: str) -> str | None:
    if row.get("is_root") is True:
        return None
    above = unpack_literal(row.get("parent_run_ids"))
    last = dig(above, str(len(above) - 1)) if isinstance(above, list) and above else None
    parent = id_of(row.get("parent_run_id")) or id_of(last)
    if parent is None and row.get("is_root") is False and run_id != trace_id:
        return trace_id  # its export left the parent out; it is somewhere below the root
    return parent


def _refuse(columns: set[str]) -> str | None:
    if "dataset_id" in columns and "run_type" not in columns:
        return (
            "holds examples of a data set, whose outputs are references and no answers; "
            "export the runs of the experiment"
        )
    return None


TOOL = Tool(
    system="langsmith",
    needs=(
        *(("id",), ("trace_id",), ("run_type",), ("inputs",), ("outputs",)),
        ("parent_run_id", "parent_run_ids", "is_root"),
    ),
    wants=lambda name: name in _WANTED,
    unwrap=functools.partial(rows_under, "runs"),
    spans=spans,
    refuse=_refuse,
)
