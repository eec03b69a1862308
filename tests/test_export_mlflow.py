"""MLflow: the assessment's shape, finding our own among a trace's, and its own entities."""

from __future__ import annotations

from typing import Any

import loopback_fixture as loop
import pytest

from claimscore.jobs.export_mlflow import KEY, MlFlow, headers, shape
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.published import Item, Record, send_changed

ORIGIN = loop.origin(system="mlflow", trace_id="tr-5b8e")
ROWS = loop.rows("mlflow", origin=ORIGIN)
BATCH = loop.items(shape, ROWS)
TRACE = "/api/3.0/mlflow/traces/tr-5b8e"


class Server:
    """A trace with its assessments, as the REST API tells it."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {"a-0": {"assessment_id": "a-0", "assessment_name": "human"}}

    def answer(self, method: str, path: str, body: Any) -> loop.Answer:
        """GET the trace, POST, PATCH and DELETE assessments; other traces are not there."""
        if not path.startswith(TRACE):
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        if method == "GET":
            return 200, {"trace": {"trace_info": {"assessments": list(self.held.values())}}}
        name = path.rpartition("/")[2]
        if method == "POST":
            name = f"a-{len(self.held)}"
            self.held[name] = body["assessment"] | {"assessment_id": name}
        elif name not in self.held:
            return 404, {}
        elif method == "DELETE":
            del self.held[name]
            return 200, {}
        else:
            self.held[name] |= {mask: body["assessment"][mask] for mask in body["update_mask"].split(",")}
        return 200, {"assessment": self.held[name]}


def test_a_feedback_names_its_source_and_key():
    """The key in the metadata is what a repeat is found by; metadata values are strings."""
    body = shape(ROWS["groundedness"])

    assert (body["trace_id"], body["assessment_name"]) == ("tr-5b8e", "claimscore.groundedness")
    assert body["source"] == {"source_type": "CODE", "source_id": "claimscore"}
    assert body["feedback"] == {"value": 0.5}
    assert body["metadata"][KEY] == ROWS["groundedness"]["key"]
    assert {type(value) for value in body["metadata"].values()} == {str}


def test_a_boolean_is_one():
    """And words are words."""
    assert shape(ROWS["hallucinated"])["feedback"] == {"value": True}
    assert shape(ROWS["action"])["feedback"] == {"value": "refuse"}


def test_unscored_is_an_error_without_a_value():
    """With the reason as its message."""
    body = shape(loop.blind("mlflow", origin=ORIGIN)["groundedness"])

    assert body["feedback"] == {"error": {"error_code": "UNSCORED", "error_message": "claim_too_long"}}


def test_the_llm_and_a_kept_series_are_in_the_source():
    """Judges side by side are told apart by it."""
    source = shape(ROWS["state"] | {"by_llm": True}, kept_series="big-1")["source"]

    assert source == {"source_type": "LLM_JUDGE", "source_id": "claimscore/big-1"}


def test_logging_again_does_not_append():
    """With the record, and also where it was lost: ours are found by their key, and people's are left alone."""
    server_side = Server()
    with loop.loopback() as server:
        server.answer = server_side.answer
        first = MlFlow().push(server.sender(), BATCH)
        again = MlFlow().push(
            server.sender(), [Item(i.key, i.body, o.tool_id) for i, o in zip(BATCH, first, strict=True)]
        )
        lost = MlFlow().push(server.sender(), BATCH)

    assert first == again == lost
    assert len(server_side.held) == 1 + len(BATCH)
    methods = [method for method, _, _ in server.seen]
    assert methods == ["GET", *["POST"] * 5, *["PATCH"] * 5, "GET", *["PATCH"] * 5]


def test_a_deleted_one_is_made_again():
    """The record's id is gone there."""
    server_side = Server()
    with loop.loopback() as server:
        server.answer = server_side.answer
        (outcome,) = MlFlow().push(server.sender(), [Item(BATCH[0].key, BATCH[0].body, "tr-5b8e a-77")])

    assert (outcome.tool_id, outcome.error) == ("tr-5b8e a-1", "")


def test_an_unknown_trace_is_told_and_fails_alone():
    """Not every trace of a night need be there."""
    elsewhere = loop.items(shape, loop.rows("mlflow", origin=loop.origin(trace_id="tr-0")))
    with loop.loopback() as server:
        server.answer = Server().answer
        outcomes = MlFlow().push(server.sender(), [BATCH[0], elsewhere[0], BATCH[1]])

    assert [outcome.error.partition(" (")[0] for outcome in outcomes] == ["", "MLflow has no such trace", ""]


def test_what_is_no_more_is_deleted(tmp_path):
    """By the server's own id, which the record keeps."""
    server_side = Server()
    with loop.loopback() as server:
        server.answer = server_side.answer
        for items in (BATCH, BATCH[:3]):
            record = Record(OutputRoot(str(tmp_path)), "mlflow", server.url, "2026-11-28")
            sent = send_changed(MlFlow(), items, record, server.sender())

    assert (sent.removed, sorted(server_side.held)) == (2, ["a-0", "a-1", "a-2", "a-3"])


def test_a_trace_id_cannot_leave_its_place_in_the_path():
    """Slashes and dots of a hostile id are escaped."""
    item = loop.items(shape, loop.rows("mlflow", origin=loop.origin(trace_id="../../x?y")))[0]
    with loop.loopback() as server:
        server.answer = lambda *_: (404, {})
        MlFlow().push(server.sender(), [item])

    assert server.seen[0][1] == "/api/3.0/mlflow/traces/..%2F..%2Fx%3Fy"


def test_the_login_is_the_environments(monkeypatch):
    """A name and password before a token."""
    for name in ("TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    assert headers() == {}
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t")
    assert headers() == {"authorization": "Bearer t"}


def test_its_own_entities_take_our_assessments():
    """The JSON form becomes MLflow's protobuf message and its Feedback, with value or error as meant."""
    json_format = pytest.importorskip("google.protobuf.json_format", reason="protobuf is not installed")
    entities = pytest.importorskip("mlflow.entities", reason="mlflow-tracing is not installed")
    pb2 = pytest.importorskip("mlflow.protos.assessments_pb2")
    for row in (*ROWS.values(), *loop.blind("mlflow", origin=ORIGIN).values()):
        body = shape(row)
        read = entities.Assessment.from_proto(json_format.ParseDict(body, pb2.Assessment()))

        assert (read.name, read.trace_id, read.metadata[KEY]) == (row["metric"], "tr-5b8e", row["key"])
        assert read.value == body["feedback"].get("value")
        assert (read.error.error_code if read.error else None) == ("UNSCORED" if row["unscored"] else None)


def test_its_own_update_message_takes_our_changes():
    """PATCH bodies are UpdateAssessment in JSON, the mask with them."""
    json_format = pytest.importorskip("google.protobuf.json_format", reason="protobuf is not installed")
    service = pytest.importorskip("mlflow.protos.service_pb2", reason="mlflow-tracing is not installed")
    with loop.loopback() as server:
        MlFlow().push(server.sender(), [Item(BATCH[0].key, BATCH[0].body, "tr-5b8e a-1")])

    read = json_format.ParseDict(server.seen[0][2], service.UpdateAssessment())
    assert list(read.update_mask.paths) == ["feedback", "rationale", "metadata"]
    assert (read.assessment.assessment_id, read.assessment.feedback.value.number_value) == ("a-1", 0.5)
