"""What wrote a file, by the names of its columns: which shipped preset reads it, or which importer takes it.

A guess for people whose command cannot go on, never for a run. The names are those of configs/presets/ and of the
importers; the package does not hold the presets themselves. It knows no file and no value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

PRESETS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "claimscore": {"question": ("question",), "answer": ("answer",), "chunks": ("chunks",)},
    "ragas": {
        "question": ("user_input", "question"),
        "answer": ("response", "answer"),
        "chunks": ("retrieved_contexts", "contexts"),
        "reference_answer": ("reference", "ground_truth", "ground_truths"),
    },
    "deepeval": {
        "question": ("input",),
        "answer": ("actual_output", "actualOutput"),
        "chunks": ("retrieval_context", "retrievalContext"),
        "reference_answer": ("expected_output", "expectedOutput"),
    },
    "databricks-agent-eval": {
        "question": ("request",),
        "answer": ("response",),
        "chunks": ("retrieved_context",),
        "reference_answer": ("expected_response",),
    },
    "langchain": {
        "question": ("input", "query", "question"),
        "answer": ("answer", "result"),
        "chunks": ("context", "source_documents"),
    },
    "llamaindex": {
        "question": ("question", "query", "query_str"),
        "answer": ("response",),
        "chunks": ("source_nodes",),
    },
    "chat": {
        "question": ("question", "query", "user_message", "prompt", "input"),
        "answer": ("answer", "response", "completion", "assistant_message", "output"),
        "chunks": (
            *(
                "chunks",
                "retrieved_chunks",
                "contexts",
                "documents",
                "retrieved_documents",
                "source_documents",
            ),
            "sources",
        ),
        "reference_answer": ("reference_answer", "expected_answer", "ground_truth"),
    },
}
"""Preset -> our column -> its names in the log, as far as they tell a tool; of two that fit alike the first is named."""

_EXPORTS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (tool, frozenset(names))
    for tool, *signs in (
        ("phoenix", ("context.trace_id",), ("context", "span_kind")),
        ("langsmith", ("run_type", "inputs")),
        ("langfuse", ("parent_observation_id",), ("parentObservationId",), ("observations", "timestamp")),
        ("trulens", ("record_attributes",)),
        ("mlflow", ("trace_id", "spans"), ("request_id", "spans"), ("info", "data"), ("trace_metadata",)),
        ("otlp", ("resourceSpans",), ("resource_spans",)),
    )
    for names in signs
)
"""(tool, names that only its exports have together)."""


def preset_for(columns: Collection[str]) -> str | None:
    """The shipped preset that finds an answer and its chunks, and most beside them, in a file with these columns."""
    fits = {
        preset: sum(any(name in columns for name in names) for names in ours.values())
        for preset, ours in PRESETS.items()
        if all(any(name in columns for name in ours[needed]) for needed in ("answer", "chunks"))
    }
    return max(fits, key=fits.__getitem__, default=None)


def tool_for(columns: Collection[str]) -> str | None:
    """The tool whose importer takes a file with these columns."""
    return next((tool for tool, names in _EXPORTS if names.issubset(columns)), None)


def advice(columns: Collection[str], *, beside: str, is_export: bool) -> str:
    """What to do with a file of these columns, as the end of an error's line; empty where they say nothing.

    Args:
        columns: names of the file's columns.
        beside: the preset (a path) or tool that was tried.
        is_export: it was given to an importer; else it is the log of a config.
    """
    tool = tool_for(columns)
    if tool and tool != beside:
        return f"it looks like an export of {tool}: import it with `claimscore import --from {tool} SRC OUT`"
    preset = None if tool else preset_for(columns)
    if preset and not beside.endswith(f"{preset}.toml"):
        line = f'preset = "presets/{preset}.toml" (of configs/presets/)'
        if preset == "claimscore":
            found = "its columns have our own names"
            line += ", which makes ids from the rows' contents"
        else:
            found = f"its columns are those of {preset}"
        if is_export:
            return f"{found}, one row an answer, which needs no import: name it in [read] logs, with {line}"
        return f"{found}: set [read] {line}"
    return ""
