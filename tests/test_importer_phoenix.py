"""Phoenix: its data frame as Parquet, CSV and JSON, its REST form and OTLP, and what an instrumentor leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from imports_fixture import FEE, POOL, llm, retriever, root, run_import, span

from claimscore.jobs.errors import InputError

FLAT = {
    "openinference.span.kind": "RETRIEVER",
    **{
        f"retrieval.documents.{k}.document.{name}": value
        for k in range(12)
        for name, value in (("content", f"text {k}"), ("id", f"d{k}"), ("score", 1 - k / 100))
    },
}


def rest(span_id: str, attributes: dict, parent: str | None = "b1", kind: str = "CHAIN") -> dict:
    """A span as the REST interface gives it."""
    return {
        "id": f"U3Bhbjo{span_id}",
        "name": span_id,
        "context": {"trace_id": "a1", "span_id": span_id},
        "span_kind": kind,
        "parent_id": parent,
        "start_time": "2026-11-28T01:00:00Z",
        "end_time": "2026-11-28T01:00:01Z",
        "status_code": "OK",
        "attributes": attributes,
        "events": [],
    }


def tagged(attributes: dict) -> list:
    """Attributes as OTLP tags them."""
    tags = {str: "stringValue", float: "doubleValue", bool: "boolValue"}
    return [{"key": key, "value": {tags[type(value)]: value}} for key, value in attributes.items()]


def test_every_form_gives_the_same_row(tmp_path: Path):
    """A data frame with lists, the REST form flat, and OTLP with indices: the three are one log."""
    documents = [
        {"document.id": f"d{k}", "document.content": f"text {k}", "document.score": 1 - k / 100}
        for k in range(12)
    ]
    about = {"input.value": "Fee?", "output.value": "5 EUR.", "session.id": "s1"}
    frame = [
        {**root(session__id="s1"), "context.span_id": "b1"},
        {**span("b2", "RETRIEVER", "b1", at=0, retrieval__documents=documents), "name": "b2"},
    ]
    page = {"data": [rest("b1", about, None), rest("b2", FLAT, kind="RETRIEVER")], "next_cursor": None}
    spans = [
        {"traceId": "a1", "spanId": "b1", "name": "b1", "attributes": tagged(about)},
        {"traceId": "a1", "spanId": "b2", "parentSpanId": "b1", "name": "b2", "attributes": tagged(FLAT)},
    ]
    for item in spans:
        item |= {"startTimeUnixNano": "1795827600000000000", "endTimeUnixNano": "1795827601000000000"}
    envelope = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}

    found = [
        run_import(tmp_path / str(k), "phoenix", files).row
        for k, files in enumerate(
            ({"f.parquet": frame}, {"f.jsonl": frame}, {"page.json": page}, {"otlp.json": envelope})
        )
    ]

    assert [c["id"] for c in found[0]["chunks"]] == [f"d{k}" for k in range(12)]
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0]["origin"] == {
        "system": "phoenix", "project": None, "trace_id": "a1", "span_id": "b1", "retriever_span_id": "b2",
        "session_id": "s1", "evidence_rule": "last_retriever",
    }  # fmt: skip


def test_a_data_frame_in_csv_is_read(tmp_path: Path):
    """Lists and dicts are the `repr` of Python there, empty cells null."""
    rows = [
        {name: str(value) if isinstance(value, list | dict) else value for name, value in row.items()}
        for row in (root(), retriever(FEE, POOL), llm(llm__prompt_template__variables={"question": "Fee?"}))
    ]

    found = run_import(tmp_path, "phoenix", {"spans.csv": rows}).row

    assert [(c["id"], c["text"], c["score"]) for c in found["chunks"]] == [
        ("find-0", FEE, 0.8),
        ("find-1", POOL, 0.7),
    ]


def test_structs_padded_with_the_keys_of_others_are_read(tmp_path: Path):
    """A data frame gives every document every key that any has: nulls are not there."""
    first = retriever(FEE)
    second = {
        **span(
            "two",
            "RETRIEVER",
            at=2,
            retrieval__documents=[{"document.content": POOL, "document.extra": {"x": 1}}],
        )
    }

    found = run_import(tmp_path, "phoenix", {"f.parquet": [root(), first, second, llm()]}).row

    assert [(c["id"], c["text"]) for c in found["chunks"]] == [("find-0", FEE), ("c1", POOL)]


def test_json_is_parsed_only_where_its_type_says_so(tmp_path: Path):
    """An answer that looks like JSON is an answer; an input that is JSON is looked into."""
    typed = {
        "input__value": json.dumps({"question": "Fee?", "k": 3}),
        "input__mime_type": "application/json",
        "output__value": '{"fee": "5 EUR."}',
        "output__mime_type": "text/plain",
    }

    found = run_import(tmp_path, "phoenix", [span("root", **typed)]).row

    assert (found["question"], found["answer"]) == ("Fee?", '{"fee": "5 EUR."}')


def test_an_output_under_no_known_key_is_put_aside_with_its_keys(tmp_path: Path):
    """And is found where its key is named."""
    odd = root(json.dumps({"reply_text": "5 EUR.", "took": 3}), output__mime_type="application/json")

    found = run_import(tmp_path, "phoenix", [odd, root(trace="a2")])
    named = run_import(tmp_path, "phoenix", [odd], answer_keys=("reply_text",))

    assert (found.reasons, found.quarantine[0]["detail"]) == (
        ["no_known_key"],
        "output.value has reply_text, took",
    )
    assert named.row["answer"] == "5 EUR."


def test_model_prompt_version_and_messages_come_from_the_llm_span(tmp_path: Path):
    """Where the root has no question, the last words of the user in the messages are it."""
    messages = [
        {"message.role": "system", "message.content": "Be brief."},
        {"message.role": "user", "message.content": "Fee?"},
    ]
    asked = llm(llm__input_messages=messages, llm__prompt_template__version="p14")

    found = run_import(tmp_path, "phoenix", [root(question=None), retriever(FEE), asked]).row

    assert (found["question"], found["prompt_version"], found["model"]) == ("Fee?", "p14", "m")


def test_the_prompt_version_of_a_custom_attribute(tmp_path: Path):
    """Dotted, or in the metadata as JSON text."""
    for more in ({"app__prompt": "p3"}, {"metadata": json.dumps({"app.prompt": "p3"})}):
        found = run_import(tmp_path, "phoenix", [root(**more)], prompt_version_key="app.prompt")

        assert found.row["prompt_version"] == "p3"


def test_chunks_joined_to_one_text_are_refused(tmp_path: Path):
    """What `get_input_output_context` makes has lost the borders of its chunks."""
    joined = [{"input": "Fee?", "output": "5 EUR.", "context": f"{FEE}\n\n{POOL}"}]

    with pytest.raises(InputError, match=r"export get_spans_dataframe\(\) instead"):
        run_import(tmp_path, "phoenix", joined)


def test_a_silent_cut_at_the_default_limit_is_suspected(tmp_path: Path):
    """Exactly 1,000 spans are what the client gives when nobody asked for more."""
    spans = [root(trace=f"t{k}") for k in range(1_000)]

    found = run_import(tmp_path, "phoenix", spans)

    assert "has exactly 1,000 spans" in found.manifest["warnings"][0]
