"""Langfuse: the score's shape, lists and the older ingestion endpoint, single refusals, and its own client's model."""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

import loopback_fixture as loop
import pytest

from claimscore.jobs.export_langfuse import Langfuse, headers, shape
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.published import Record, send_changed

WHEN = dt.datetime(2026, 11, 28, 1, 2, 3, 456_789, tzinfo=dt.UTC)
BATCH = loop.items(shape, loop.rows("langfuse", ts=WHEN))


def test_a_score_has_our_id_and_the_answers_time():
    """Langfuse replaces by id, name and calendar day: with today's time a backfill would double."""
    row = loop.rows("langfuse", ts=WHEN)["groundedness"]
    body = shape(row)

    assert {
        name: body[name]
        for name in ("id", "timestamp", "name", "value", "dataType", "traceId", "observationId")
    } == {
        "id": row["key"],
        "timestamp": "2026-11-28T01:02:03.456Z",
        "name": "claimscore.groundedness",
        "value": 0.5,
        "dataType": "NUMERIC",
        "traceId": loop.TRACE,
        "observationId": loop.SPAN,
    }


@pytest.mark.parametrize(
    ("metric", "kind", "value"),
    [
        ("hallucinated", "BOOLEAN", 1.0),
        ("action", "CATEGORICAL", "refuse"),
        ("state", "CATEGORICAL", "scored"),
    ],
)
def test_each_metric_has_its_type(metric, kind, value):
    """A boolean is 1 or 0, a category a string."""
    body = shape(loop.rows("langfuse")[metric])

    assert (body["dataType"], body["value"]) == (kind, value)


def test_unscored_is_no_number_but_a_state():
    """The numbers are left out; the state says that nothing was scored and why."""
    found = {name: shape(row) for name, row in loop.blind("langfuse").items()}

    assert [found[name] for name in ("groundedness", "citation_precision", "hallucinated")] == [None] * 3
    assert found["state"]["value"] == "unscored"
    assert "claim_too_long" in found["state"]["comment"]


def test_scores_go_as_one_list():
    """To the endpoint that its client uses; 202 takes them all."""
    with loop.loopback() as server:
        server.answer = lambda *_: (202, {"message": "Accepted"})
        outcomes = Langfuse().push(server.sender(), BATCH)

    assert server.seen == [("POST", "/api/public/scores", [item.body for item in BATCH])]
    assert [outcome.tool_id for outcome in outcomes] == [item.key for item in BATCH]


def test_a_refusal_inside_a_success_is_a_failure():
    """207 tells how many and not which: none of the list counts as sent."""
    with loop.loopback() as server:
        server.answer = lambda *_: (
            207,
            {"accepted": 4, "rejected": 1, "errors": [{"message": "bad\nvalue"}]},
        )
        outcomes = Langfuse().push(server.sender(), BATCH)

    assert {outcome.error for outcome in outcomes} == {"Langfuse: 1 of 5 refused: bad value"}


def older(_method: str, path: str, body: Any) -> loop.Answer:
    """A server that takes no lists, and refuses the hallucinated score."""
    if path == "/api/public/scores":
        return 400, {"message": "Expected object, received array"}
    names = {event["id"]: event["body"]["name"] for event in body["batch"]}
    bad = [key for key, name in names.items() if name == "claimscore.hallucinated"]
    good = [{"id": key, "status": 201} for key in names if key not in bad]
    return 207, {"successes": good, "errors": [{"id": key, "status": 400, "message": "no"} for key in bad]}


def test_an_older_server_gets_events_with_the_answers_time():
    """The same scores through ingestion; each refusal there has a name; the list is not tried again."""
    tool = Langfuse()
    with loop.loopback() as server:
        server.answer = older
        outcomes = tool.push(server.sender(), BATCH)
        tool_again = [path for _, path, _ in server.seen]
        server.answer = lambda _m, _p, body: (
            207,
            {"successes": [{"id": e["id"]} for e in body["batch"]], "errors": []},
        )
        tool._takes_lists = False
        assert not any(outcome.error for outcome in tool.push(server.sender(), BATCH))

    assert tool_again == ["/api/public/scores", "/api/public/ingestion"]
    assert [outcome.error for outcome in outcomes] == ["", "", "Langfuse: no", "", ""]
    event = server.seen[1][2]["batch"][0]
    assert (event["type"], event["timestamp"], event["body"]["id"]) == (
        "score-create",
        "2026-11-28T01:02:03.456Z",
        BATCH[0].key,
    )


def test_the_same_event_has_the_same_id_and_a_changed_one_another():
    """Ingestion tells repeats of an event by its id."""
    changed = loop.items(shape, loop.rows("langfuse", ts=WHEN, groundedness=0.25))

    def ids(batch) -> list[str]:
        with loop.loopback() as server:
            server.answer = older
            Langfuse().push(server.sender(), batch)
            return [event["id"] for event in server.seen[-1][2]["batch"]]

    assert ids(BATCH) == ids(BATCH)
    assert [a == b for a, b in zip(ids(BATCH), ids(changed), strict=True)] == [False, True, True, True, True]


def test_a_number_that_became_unscored_is_deleted(tmp_path):
    """A judge that could not score what the last one did must not leave the old number standing."""
    root = OutputRoot(str(tmp_path))
    before = loop.rows("langfuse")
    after = {
        name: row | {"value": None, "unscored": "nan"} if row["value"] is not None else row
        for name, row in before.items()
    }

    with loop.loopback() as server:
        for rows in (before, after):
            record = Record(root, "langfuse", server.url, "2026-11-28")
            sent = send_changed(Langfuse(), loop.items(shape, rows), record, server.sender())

    assert (sent.removed, sent.unchanged) == (3, 2)
    assert sorted(path for method, path, _ in server.seen if method == "DELETE") == sorted(
        f"/api/public/scores/{before[name]['key']}"
        for name in ("groundedness", "citation_precision", "hallucinated")
    )


def test_the_keys_are_the_environments(monkeypatch):
    """Both, as basic authorisation; one alone is none."""
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk")
    monkeypatch.delenv("LANGFUSE_SECRET_KEY", raising=False)
    assert headers() == {}
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk")
    assert base64.b64decode(headers()["authorization"].removeprefix("Basic ")) == b"pk:sk"


def test_its_own_models_take_our_scores():
    """CreateScoreRequest knows every key, and reads the same instant."""
    scores = pytest.importorskip("langfuse.api.scores", reason="langfuse is not installed")
    core = pytest.importorskip("langfuse.api.core.pydantic_utilities")
    for rows in (loop.rows("langfuse", ts=WHEN), loop.blind("langfuse", ts=WHEN)):
        for body in filter(None, map(shape, rows.values())):
            read = core.parse_obj_as(type_=scores.CreateScoreRequest, object_=body)

            assert (read.id, read.trace_id, read.observation_id) == (body["id"], loop.TRACE, loop.SPAN)
            assert (read.name, read.value, read.data_type.value) == (
                body["name"],
                body["value"],
                body["dataType"],
            )
            assert read.timestamp.replace(microsecond=0) == WHEN.replace(microsecond=0)
            assert not read.model_extra
