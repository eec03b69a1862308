"""OTLP JSON in the three dialects of the GenAI conventions, and what they leave out."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from imports_fixture import FEE, POOL, run_import

from claimscore.jobs.errors import InputError
from claimscore.jobs.import_documents import chunk_texts

TRACE = "5b8efff798038103d269b633813fc60c"
USER = {"role": "user", "parts": [{"type": "text", "content": "Fee?"}]}
SAID = {
    "role": "assistant",
    "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "5 EUR."}],
}


def tag(value: Any) -> dict[str, Any]:
    """A value as OTLP tags it; 64-bit integers are strings."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [tag(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": tags(value)}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def tags(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them."""
    return [{"key": key, "value": tag(value)} for key, value in attributes.items()]


def span(
    span_id: int, at: int, attributes: dict[str, Any], parent: int | None = None, **more: Any
) -> dict[str, Any]:
    """A span that begins at second `at` and takes one."""
    start = 1795827600 + at
    return {
        "traceId": TRACE,
        "spanId": f"{span_id:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": f"span {span_id}",
        "startTimeUnixNano": f"{start}000000000",
        "endTimeUnixNano": f"{start + 1}000000000",
        "attributes": tags(attributes),
        **more,
    }


def envelope(*spans: dict[str, Any], **resource: Any) -> dict[str, Any]:
    """One document of an OTLP file."""
    return {
        "resourceSpans": [
            {"resource": {"attributes": tags(resource)}, "scopeSpans": [{"spans": list(spans)}]}
        ]
    }


def retrieval(documents: Any, *, as_text: bool = False, at: int = 1) -> dict[str, Any]:
    """A retrieval span, its documents structured or as JSON text."""
    value = json.dumps(documents) if as_text else documents
    return span(2, at, {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": value}, 1)


WEB = span(1, 0, {"http.request.method": "POST"})
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.response.model": "m-2026",
    "gen_ai.conversation.id": "s1",
    "app.prompt": "p14",
    "gen_ai.input.messages": json.dumps([USER]),
    "gen_ai.output.messages": json.dumps([SAID]),
}
DOCUMENTS = [{"id": "d7", "score": 0.8, "content": FEE}, {"id": "d8", "content": POOL}]


@pytest.mark.parametrize("as_text", [True, False])
def test_messages_in_attributes(tmp_path: Path, as_text: bool):
    """The newest dialect, structured or as JSON text: a web span on top, retrieval and chat under it."""
    chat = CHAT if as_text else {**CHAT, "gen_ai.input.messages": [USER], "gen_ai.output.messages": [SAID]}
    spans = (WEB, retrieval(DOCUMENTS, as_text=as_text), span(3, 2, chat, 1))

    found = run_import(
        tmp_path,
        "otlp",
        {"t.jsonl": [envelope(*spans, **{"service.name": "faq"})]},
        prompt_version_key="app.prompt",
    ).row

    assert (found["request_id"], found["question"], found["answer"]) == (TRACE, "Fee?", "5 EUR.")
    assert [(c["id"], c["text"], c["score"]) for c in found["chunks"]] == [
        ("d7", FEE, 0.8),
        ("d8", POOL, None),
    ]
    assert (found["model"], found["prompt_version"], found["flags"]) == ("m-2026", "p14", ["parts_dropped"])
    assert found["origin"] == {
        "system": "otlp", "project": "faq", "trace_id": TRACE, "span_id": f"{3:016x}",
        "retriever_span_id": f"{2:016x}", "session_id": "s1", "evidence_rule": "last_retriever",
    }  # fmt: skip


@pytest.mark.parametrize(
    "events",
    [
        [
            {"name": "gen_ai.user.message", "attributes": tags({"content": "Fee?"})},
            {"name": "gen_ai.choice", "attributes": tags({"message": json.dumps({"content": "5 EUR."})})},
        ],
        [
            {
                "name": "gen_ai.user.message",
                "attributes": tags({"gen_ai.event.content": json.dumps({"content": "Fee?"})}),
            },
            {
                "name": "gen_ai.choice",
                "attributes": tags(
                    {"gen_ai.event.content": json.dumps({"index": 0, "message": {"content": "5 EUR."}})}
                ),
            },
        ],
        [
            {
                "name": "gen_ai.client.inference.operation.details",
                "attributes": tags({"gen_ai.input.messages": [USER], "gen_ai.output.messages": [SAID]}),
            }
        ],
    ],
)
def test_messages_in_events(tmp_path: Path, events: list[dict[str, Any]]):
    """The older conventions, and the event that carries what the attributes would."""
    chat = span(1, 0, {"gen_ai.operation.name": "chat"}, events=events)

    found = run_import(tmp_path, "otlp", {"t.json": envelope(chat)}).row

    assert (found["question"], found["answer"]) == ("Fee?", "5 EUR.")


def test_numbered_prompts_and_completions(tmp_path: Path):
    """OpenLLMetry's attributes; ten messages and more stay in order."""
    numbered = {
        f"gen_ai.prompt.{k}.{name}": value
        for k in range(12)
        for name, value in (("role", "user"), ("content", f"Q{k}"))
    }
    chat = span(3, 2, {"llm.request.type": "chat", **numbered, "gen_ai.completion.0.role": "assistant",
                       "gen_ai.completion.0.content": "5 EUR."}, 1)  # fmt: skip
    workflow = span(
        1, 0, {"traceloop.span.kind": "workflow", "traceloop.entity.output": json.dumps({"answer": "5 EUR."})}
    )

    found = run_import(tmp_path, "otlp", {"t.json": envelope(workflow, chat)}).row

    assert (found["question"], found["answer"]) == ("Q11", "5 EUR.")


def test_chunks_of_ids_alone_are_no_evidence(tmp_path: Path):
    """The convention has no field for the text: such a trace is put aside, and a chunk table mends it."""
    spans = envelope(WEB, retrieval([{"id": "d7", "score": 0.5}]), span(3, 2, CHAT, 1))
    other = {**span(9, 0, CHAT), "traceId": "0" * 31 + "1"}
    pq.write_table(pa.table({"chunk_id": ["d7"], "content": [FEE]}), tmp_path / "chunks.parquet")

    bare = run_import(tmp_path, "otlp", {"t.jsonl": [spans, envelope(other)]})
    joined = run_import(
        tmp_path, "otlp", {"t.jsonl": [spans]}, chunk_texts=chunk_texts(str(tmp_path / "chunks.parquet"))
    )

    assert (bare.reasons, "--chunk-table" in bare.quarantine[0]["detail"]) == (["chunks_without_text"], True)
    assert joined.row["chunks"] == [{"id": "d7", "text": FEE, "score": 0.5}]


def test_a_chunk_table_of_other_columns_is_named(tmp_path: Path):
    """It needs an id and a text."""
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "chunks.parquet")

    with pytest.raises(InputError, match="has columns a, expected id and text"):
        chunk_texts(str(tmp_path / "chunks.parquet"))


def test_content_that_was_not_recorded_is_said(tmp_path: Path):
    """Messages are opt-in: a chat span without them has no answer."""
    silent = {**span(1, 0, {"gen_ai.operation.name": "chat"}), "traceId": "1" * 32}

    found = run_import(tmp_path, "otlp", {"t.json": envelope(silent, span(9, 0, CHAT))})

    assert (found.reasons, found.quarantine[0]["detail"]) == (
        ["no_answer"], "no span with an output; were inputs and outputs recorded?",
    )  # fmt: skip


def test_ids_in_base64_and_an_empty_parent(tmp_path: Path):
    """Protobuf's own JSON writes bytes in base64, and zeros for no parent."""
    chat = {
        **span(1, 0, CHAT),
        "traceId": b64encode(bytes.fromhex(TRACE)).decode(),
        "spanId": b64encode(bytes.fromhex("eee19b7ec3c1b174")).decode(),
        "parentSpanId": "AAAAAAAAAAA=",
    }

    found = run_import(tmp_path, "otlp", {"t.json": envelope(chat)}).row

    assert (found["origin"]["trace_id"], found["origin"]["span_id"]) == (TRACE, "eee19b7ec3c1b174")


def test_openinference_attributes_are_read_too(tmp_path: Path):
    """A collector holds spans of both conventions in one trace."""
    documents = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": FEE}

    found = run_import(tmp_path, "otlp", {"t.json": envelope(span(1, 3, CHAT), span(2, 1, documents, 1))}).row

    assert [c["text"] for c in found["chunks"]] == [FEE]


def test_log_records_are_refused(tmp_path: Path):
    """They do not say who called whom."""
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": TRACE}]}]}]}

    with pytest.raises(InputError, match="export the spans"):
        run_import(tmp_path, "otlp", [logs])


def test_packed_files_of_lines_under_any_name_are_read(tmp_path: Path):
    """Collectors write lines into .json, and pack them."""
    lines = "".join(json.dumps(envelope(item)) + "\n" for item in (span(3, 2, CHAT, 1), WEB)).encode()

    found = run_import(tmp_path, "otlp", {"a.json": lines, "b.json.gz": gzip.compress(lines)})

    assert (found.row["answer"], found.manifest["spans_repeated"]) == ("5 EUR.", 2)


def test_the_reference_implementation_s_json_is_read(tmp_path: Path):
    """What opentelemetry-proto itself writes as JSON, spans and messages and all."""
    trace_pb2 = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    data = trace_pb2.TracesData()
    made = data.resource_spans.add().scope_spans.add().spans.add()
    made.trace_id, made.span_id = bytes.fromhex(TRACE), bytes.fromhex("eee19b7ec3c1b174")
    made.start_time_unix_nano = 1795827600000000000
    for key, value in CHAT.items():
        attribute = made.attributes.add()
        attribute.key, attribute.value.string_value = key, value

    found = run_import(tmp_path, "otlp", {"t.json": json.loads(json_format.MessageToJson(data))}).row

    assert (found["origin"]["trace_id"], found["answer"], str(found["ts"])) == (
        TRACE,
        "5 EUR.",
        "2026-11-28 01:00:00+00:00",
    )
