"""Whose columns a file has: the preset or importer that a stuck command names."""

import tomllib
from pathlib import Path

import pytest

from claimscore.jobs import lookalikes
from claimscore.jobs.imports import TOOLS

PRESETS = Path(__file__).parents[1] / "configs" / "presets"


def test_the_names_are_those_of_the_presets():
    """What is said of a preset holds of its file, and no preset is left out."""
    shipped = {file.stem: tomllib.loads(file.read_text())["columns"] for file in PRESETS.glob("*.toml")}

    assert lookalikes.PRESETS.keys() == shipped.keys()
    for preset, ours in lookalikes.PRESETS.items():
        for name in ("question", "answer", "chunks", "reference_answer"):
            told, held = ours.get(name, ()), tuple(shipped[preset].get(name, ()))
            assert told in (held, ()), (preset, name)


@pytest.mark.parametrize(
    ("preset", "columns"),
    [
        ("claimscore", "question answer chunks topic"),
        ("ragas", "user_input retrieved_contexts response reference faithfulness"),
        ("ragas", "question answer contexts ground_truth"),
        ("deepeval", "input actual_output retrieval_context expected_output"),
        ("databricks-agent-eval", "request response retrieved_context"),
        ("langchain", "input context answer"),
        ("langchain", "query result source_documents"),
        ("llamaindex", "response source_nodes metadata"),
        ("chat", "prompt completion documents"),
        (None, "user_input response"),
        (None, ""),
    ],
)
def test_the_preset_that_finds_most_is_named(preset, columns):
    """An answer without its chunks is nothing that can be judged."""
    assert lookalikes.preset_for(columns.split()) == preset


@pytest.mark.parametrize(
    ("tool", "columns"),
    [
        ("phoenix", "name span_kind context.trace_id context.span_id attributes.input.value"),
        ("phoenix", "name span_kind context attributes"),
        ("langsmith", "id trace_id run_type inputs outputs parent_run_id"),
        ("langfuse", "id trace_id parent_observation_id type input output"),
        ("langfuse", "id timestamp name input output observations"),
        ("trulens", "event_id record record_attributes trace start_timestamp"),
        ("mlflow", "trace_id trace request response spans tags"),
        ("mlflow", "info data"),
        ("otlp", "resourceSpans"),
        (None, "question answer contexts"),
        (None, "id input output"),
    ],
)
def test_an_export_is_known_by_its_columns(tool, columns):
    """And by nothing that a plain table of answers has."""
    assert lookalikes.tool_for(columns.split()) == tool
    assert tool is None or tool in TOOLS


def test_what_was_tried_is_not_advised_again():
    """Neither the preset nor the importer that has just failed."""
    ragas = {"user_input", "response", "retrieved_contexts"}

    def advised(columns, beside):
        return lookalikes.advice(columns, beside=beside, is_export=True)

    assert 'preset = "presets/ragas.toml"' in advised(ragas, "langfuse")
    assert advised(ragas, "presets/ragas.toml") == ""
    assert "import --from langsmith" in advised({"run_type", "inputs"}, "langfuse")
    assert advised({"run_type", "inputs"}, "langsmith") == ""


def test_our_own_names_without_ids_have_a_preset_too():
    """The one that makes them: nothing else is missing."""
    assert lookalikes.advice({"question", "answer", "chunks"}, beside="", is_export=False) == (
        'its columns have our own names: set [read] preset = "presets/claimscore.toml" (of configs/presets/), which makes ids '
        "from the rows' contents"
    )
