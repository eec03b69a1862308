"""OpenTelemetry: the event's shape, partial successes, and the protocol's own messages."""

from __future__ import annotations

import datetime as dt
from typing import Any

import loopback_fixture as loop
import pytest

from claimscore.jobs.export_otlp import Otlp, headers, request_of, shape
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.published import Record, send_changed

WHEN = dt.datetime(2026, 11, 28, 1, 2, 3, 456_789, tzinfo=dt.UTC)
ROWS = loop.rows("otlp", ts=WHEN)
BATCH = loop.items(shape, ROWS)


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    """Attributes as a dict."""
    return {entry["key"]: next(iter(entry["value"].values())) for entry in record["attributes"]}


def test_an_event_hangs_on_the_span_at_its_time():
    """64-bit numbers are strings, ids hex, and microseconds are exact."""
    record = shape(ROWS["groundedness"])

    assert {name: record[name] for name in ("traceId", "spanId", "eventName", "timeUnixNano")} == {
        "traceId": loop.TRACE,
        "spanId": loop.SPAN,
        "eventName": "gen_ai.evaluation.result",
        "timeUnixNano": "1795827723456789000",
    }
    found = attributes(record)
    assert (found["gen_ai.evaluation.name"], found["gen_ai.evaluation.score.value"]) == (
        "claimscore.groundedness",
        0.5,
    )
    assert found["claimscore.key"] == ROWS["groundedness"]["key"]


def test_words_are_labels():
    """The boolean has a number and a word."""
    found = attributes(shape(ROWS["hallucinated"]))

    assert (found["gen_ai.evaluation.score.value"], found["gen_ai.evaluation.score.label"]) == (
        1.0,
        "hallucinated",
    )
    assert "gen_ai.evaluation.score.value" not in attributes(shape(ROWS["action"]))


def test_unscored_is_an_error_type_without_a_score():
    """Neither value nor label."""
    found = attributes(shape(loop.blind("otlp")["groundedness"]))

    assert found["error.type"] == "claim_too_long"
    assert [name for name in found if "score" in name and name.startswith("gen_ai")] == []


def test_a_trace_of_mlflow_is_one_of_opentelemetry():
    """`tr-` before the hex digits is MLflow's; a span id of another form is left out."""
    record = shape(ROWS["state"] | {"trace_id": f"tr-{loop.TRACE.upper()}", "span_id": "7rmaU="})

    assert (record["traceId"], "spanId" in record) == (loop.TRACE, False)


def test_a_request_holds_all_records():
    """One resource, one scope."""
    with loop.loopback() as server:
        outcomes = Otlp().push(server.sender(), BATCH)

    assert server.seen == [("POST", "/v1/logs", request_of([item.body for item in BATCH]))]
    assert not any(outcome.error for outcome in outcomes)


def test_what_a_collector_refuses_is_told_and_not_repeated(tmp_path):
    """The protocol forbids to send a partly taken request again: what was taken would be there twice."""
    partial = {"partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "too old"}}
    with loop.loopback() as server:
        server.answer = lambda *_: (200, partial)
        runs = []
        for _ in "ab":
            record = Record(OutputRoot(str(tmp_path)), "otlp", server.url, "2026-11-28")
            runs.append(send_changed(Otlp(), BATCH, record, server.sender()))

    assert [(run.created, run.failed, run.unchanged) for run in runs] == [(3, 2, 0), (0, 0, 5)]
    assert runs[0].errors == ["the collector refused some: too old"]


@pytest.mark.parametrize(
    "told", [None, {}, {"partialSuccess": None}, {"partialSuccess": {"rejectedLogRecords": 0}}]
)
def test_a_success_has_many_spellings(told):
    """An empty body, an empty object, a zero."""
    with loop.loopback() as server:
        server.answer = lambda *_: (200, told)

        assert not any(outcome.error for outcome in Otlp().push(server.sender(), BATCH))


def test_headers_are_the_environments(monkeypatch):
    """As the OpenTelemetry SDKs read them."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%3Db, x-team = t ,")

    assert headers() == {"api-key": "a=b", "x-team": "t"}


def test_the_protocols_own_messages_take_our_requests():
    """OTLP/JSON is protobuf's JSON but for hex ids: read strictly, every name and number is known."""
    json_format = pytest.importorskip("google.protobuf.json_format", reason="protobuf is not installed")
    pb2 = pytest.importorskip(
        "opentelemetry.proto.collector.logs.v1.logs_service_pb2",
        reason="opentelemetry-proto is not installed",
    )
    records = [shape(row) for rows in (ROWS, loop.blind("otlp", ts=WHEN)) for row in rows.values()]
    plain = [
        {name: value for name, value in record.items() if name not in ("traceId", "spanId")}
        for record in records
    ]

    read = json_format.ParseDict(request_of(plain), pb2.ExportLogsServiceRequest())

    found = read.resource_logs[0].scope_logs[0].log_records
    assert len(found) == len(records) == 10
    assert found[0].time_unix_nano == 1795827723456789000
    assert found[0].event_name == "gen_ai.evaluation.result"
    assert {a.key: a.value.double_value for a in found[0].attributes}["gen_ai.evaluation.score.value"] == 0.5
    assert all(len(bytes.fromhex(record["traceId"])) == 16 for record in records)
