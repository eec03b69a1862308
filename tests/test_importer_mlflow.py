"""MLflow: frames of `search_traces()` in 3.x and 2.x, traces as JSON, tables of spans."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from imports_fixture import FEE, POOL, run_import

from claimscore.jobs.errors import InputError

TRACE_HEX, ROOT_HEX, FOUND_HEX, ASKED_HEX = (
    "5b8e" + "0" * 27 + "1",
    "0" * 15 + "1",
    "0" * 15 + "2",
    "0" * 15 + "3",
)


def b64(text: str) -> str:
    """An id as the third version writes it."""
    return b64encode(bytes.fromhex(text)).decode()


def span(span_id: str, kind: str, at: int, parent: str | None = ROOT_HEX, **attributes) -> dict:
    """A span in a trace: each attribute is JSON text of its own."""
    start = 1795827600000000000 + at * 1_000_000_000
    return {
        "trace_id": b64(TRACE_HEX), "span_id": b64(span_id), "parent_span_id": b64(parent) if parent else None,
        "name": kind.lower(), "start_time_unix_nano": start, "end_time_unix_nano": start + 1_000_000_000,
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": {"mlflow.spanType": json.dumps(kind), **{f"mlflow.{k}": json.dumps(v) for k, v in attributes.items()}},
    }  # fmt: skip


SPANS = [
    span(ROOT_HEX, "CHAIN", 0, None, spanInputs={"question": "Fee?"}, spanOutputs="5 EUR."),
    span(FOUND_HEX, "RETRIEVER", 1,
         spanOutputs=[{"page_content": FEE, "metadata": {"doc_uri": "fees.md", "score": 0.8}, "id": "d7"}]),
    span(ASKED_HEX, "CHAT_MODEL", 2, spanOutputs={"choices": [{"message": {"role": "assistant", "content": "5 EUR."}}]}),
]  # fmt: skip
SPANS[2]["attributes"] |= {
    "mlflow.llm.model": '"m"',
    "mlflow.linkedPrompts": json.dumps([{"name": "faq", "version": "14"}]),
}
EXPECTED = {
    "assessment_name": "expected_response",
    "expectation": {"value": "5 EUR"},
    "source": {"source_type": "HUMAN"},
}
THREE = {
    "trace_id": f"tr-{TRACE_HEX}", "client_request_id": "r1", "state": "OK", "request_time": 1795827600000,
    "request": {"messages": [{"role": "user", "content": "Fee?"}]}, "response": "5 EUR.", "request_preview": "Fe",
    "response_preview": "5 ...", "trace_metadata": {"mlflow.trace.session": "s1"}, "tags": {"a": "b"}, "spans": SPANS,
    "assessments": [EXPECTED], "experiment_id": "7",
}  # fmt: skip


def in_two(item: dict) -> dict:
    """A span as the second version writes it."""
    ids = {
        "trace_id": f"0x{TRACE_HEX}",
        "span_id": f"0x{b64decode(item['span_id']).hex()}",
    }
    parent = item["parent_span_id"] and "0x" + ROOT_HEX
    return {
        "name": item["name"], "context": ids, "parent_id": parent, "start_time": item["start_time_unix_nano"],
        "end_time": item["end_time_unix_nano"], "status_code": "OK", "attributes": item["attributes"],
    }  # fmt: skip


TWO = {
    "request_id": f"tr-{TRACE_HEX}", "client_request_id": "r1", "timestamp_ms": 1795827600000, "status": "OK",
    "request": json.dumps({"question": "Fee?"}), "response": json.dumps({"answer": "5 EUR."}),
    "request_metadata": json.dumps({"mlflow.trace.session": "s1"}), "tags": "{}",
    "spans": json.dumps([in_two(item) for item in SPANS]), "experiment_id": 7,
    "assessments": json.dumps([{"name": "expected_response", "expectation": {"value": "5 EUR"}}]),
}  # fmt: skip
WHOLE = {
    "info": {
        "trace_id": f"tr-{TRACE_HEX}", "client_request_id": "r1", "request_time": "2026-11-28T01:00:00Z", "state": "OK",
        "trace_metadata": {"mlflow.trace.session": "s1"}, "request_preview": "Fe", "response_preview": "5 ...",
        "trace_location": {"mlflow_experiment": {"experiment_id": "7"}}, "assessments": [EXPECTED],
    },
    "data": {"spans": SPANS},
}  # fmt: skip


@pytest.mark.parametrize(
    "files",
    [
        {"a.parquet": [THREE]},
        {"a.jsonl": [THREE]},
        {"a.jsonl": [TWO]},
        {"a.json": [WHOLE]},
        {"a.jsonl": [{"trace_id": "x", "trace": json.dumps(WHOLE), "client_request_id": "r1"}]},
    ],
    ids=["3.x parquet", "3.x lines", "2.x", "trace json", "trace column"],
)
def test_every_form_gives_the_same_row(tmp_path: Path, files: dict):
    """Ids in base64 or hex, attributes as JSON text each, info apart or beside."""
    found = run_import(tmp_path, "mlflow", files).row

    assert (found["request_id"], found["question"], found["answer"]) == ("r1", "Fee?", "5 EUR.")
    assert found["chunks"] == [{"id": "d7", "text": FEE, "score": 0.8}]
    assert (found["model"], found["prompt_version"], found["reference_answer"]) == ("m", "faq@14", "5 EUR")
    assert found["ts"].isoformat() in ("2026-11-28T01:00:00+00:00", "2026-11-28T01:00:01+00:00")
    origin = found["origin"]
    assert (origin["project"], origin["session_id"], origin["retriever_span_id"]) == ("7", "s1", FOUND_HEX)
    assert origin["trace_id"] in (f"tr-{TRACE_HEX}", "x")


def test_previews_are_never_read(tmp_path: Path):
    """They are cut by the server: without spans and texts there is no answer, and the reason says so."""
    bare = {k: v for k, v in THREE.items() if k not in ("request", "response")} | {
        "spans": [],
        "trace_id": "tr-2",
        "client_request_id": "r2",
    }

    found = run_import(tmp_path, "mlflow", [THREE, bare])

    assert (found.reasons, found.row["request_id"]) == (["only_previews"], "r1")


def test_an_empty_response_with_previews_leaves_it_to_the_spans(tmp_path: Path):
    """The root span has the whole text that the preview cuts."""
    row = {k: v for k, v in THREE.items() if k not in ("request", "response")}

    found = run_import(tmp_path, "mlflow", [row]).row

    assert (found["question"], found["answer"], found["origin"]["span_id"]) == ("Fee?", "5 EUR.", ROOT_HEX)


def test_a_trace_without_the_caller_s_id_has_its_own(tmp_path: Path):
    """Also one of Unity Catalog, with slashes in it."""
    row = {**THREE, "client_request_id": None, "trace_id": "trace:/main.logs/5b8e"}

    found = run_import(tmp_path, "mlflow", [row]).row

    assert (found["request_id"], found["origin"]["trace_id"]) == ("trace:/main.logs/5b8e",) * 2


def test_expected_facts_are_a_reference(tmp_path: Path):
    """Where no whole response was expected."""
    facts = {"name": "expected_facts", "expectation": {"value": ["5 EUR.", "a month"]}}

    found = run_import(
        tmp_path, "mlflow", [{**THREE, "assessments": [facts, {"name": "x", "feedback": {"value": 1}}]}]
    ).row

    assert found["reference_answer"] == "5 EUR. a month"


def test_a_table_of_spans_is_read(tmp_path: Path):
    """A row a span, attributes cast to text; the root span is the answer."""
    rows = [{**item, "attributes": json.dumps(item["attributes"])} for item in SPANS]

    found = run_import(tmp_path, "mlflow", {"t.parquet": rows}).row

    assert (found["request_id"], found["answer"], found["origin"]["span_id"]) == (
        TRACE_HEX,
        "5 EUR.",
        ROOT_HEX,
    )


def test_a_reranker_wins(tmp_path: Path):
    """Its span type is known here."""
    cut = span("0" * 15 + "4", "RERANKER", 1, spanOutputs=[{"page_content": POOL}])

    found = run_import(tmp_path, "mlflow", [{**THREE, "spans": [*SPANS, cut]}]).row

    assert [c["text"] for c in found["chunks"]] == [POOL]


def test_a_frame_without_spans_is_named(tmp_path: Path):
    """Evidence is in the spans and nowhere else."""
    with pytest.raises(InputError, match="no column 'spans' or 'trace' or 'data' or 'span_id'"):
        run_import(tmp_path, "mlflow", [{"trace_id": "t", "request": "Fee?", "response": "5"}])
