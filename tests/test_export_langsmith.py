"""LangSmith: the feedback's shape, create and update in place, retention, and its SDK's schema."""

from __future__ import annotations

import loopback_fixture as loop
import pytest

from claimscore.jobs.export_langsmith import LangSmith, headers, shape
from claimscore.jobs.exports import Target, addressable
from claimscore.jobs.published import Item

ORIGIN = loop.origin(trace_id=loop.UUID, span_id=None, project="11111111-2222-3333-4444-555555555555")
ROWS = loop.rows("langsmith", origin=ORIGIN)
(ITEM,) = loop.items(shape, {"groundedness": ROWS["groundedness"]})


def test_a_feedback_is_of_the_root_run_and_its_project():
    """Run, trace, session and start time, which newer servers ask for."""
    assert {
        name: ITEM.body[name] for name in ("id", "run_id", "trace_id", "session_id", "start_time", "key")
    } == {
        "id": ITEM.key,
        "run_id": loop.UUID,
        "trace_id": loop.UUID,
        "session_id": ORIGIN["project"],
        "start_time": "2026-11-28T00:00:00+00:00",
        "key": "claimscore.groundedness",
    }


def test_a_run_of_its_own_is_addressed():
    """Where the span is a run."""
    run = "99999999-2222-3333-4444-555555555555"

    assert shape(ROWS["state"] | {"span_id": run})["run_id"] == run


def test_retention_is_never_extended():
    """The API's default upgrades each scored trace to a longer and billed one."""
    assert {shape(row)["extend_trace_retention"] for row in ROWS.values()} == {False}


def test_scores_have_four_decimals():
    """More is refused."""
    assert shape(ROWS["groundedness"] | {"value": 2 / 3})["score"] == 0.6667


def test_unscored_is_a_null_score_with_a_value():
    """The reason begins the comment; the series ends it, for an update cannot change `extra`."""
    body = shape(loop.blind("langsmith", origin=ORIGIN)["groundedness"])

    assert (body["score"], body["value"]) == (None, "unscored")
    assert body["comment"].startswith("unscored: claim_too_long\n")
    assert body["comment"].endswith("\n[claimscore stub-12345678]")


@pytest.mark.parametrize(
    ("known_as", "codes", "methods", "fails"),
    [
        (None, [200], ["POST"], False),
        (None, [409, 200], ["POST", "PATCH"], False),
        ("id", [200], ["PATCH"], False),
        ("id", [404, 200], ["PATCH", "POST"], False),
        (None, [422], ["POST"], True),
        ("id", [404, 404], ["PATCH", "POST"], True),
    ],
)
def test_what_is_there_is_updated_in_place(known_as, codes, methods, fails):
    """By what the record says; where the server knows better, the other call follows."""
    with loop.loopback() as server:
        left = list(codes)
        server.answer = lambda *_: (left.pop(0), {})
        (outcome,) = LangSmith().push(server.sender(), [Item(ITEM.key, ITEM.body, known_as)])

    assert [method for method, _, _ in server.seen] == methods
    assert {path for method, path, _ in server.seen if method == "PATCH"} <= {f"/feedback/{ITEM.key}"}
    assert bool(outcome.error) == fails


def test_an_update_clears_what_is_no_more():
    """A score that became unscored is sent as null; left out, the old one would stay."""
    body = shape(loop.blind("langsmith", origin=ORIGIN)["groundedness"])
    with loop.loopback() as server:
        LangSmith().push(server.sender(), [Item("k", body, "k")])

    assert server.seen[0][2] == {"score": None, "value": "unscored", "comment": body["comment"]}


def test_ids_of_another_form_are_not_sent():
    """A trace id that is no UUID is some other tool's."""
    import report_fixture as fixture

    from claimscore.jobs import export_langsmith

    target = Target("langsmith", fixture.DAY, "s", export_langsmith.SYSTEMS, export_langsmith.TRACE_IDS)
    rows = [fixture.answer("a", origin=ORIGIN), fixture.answer("b", origin=loop.origin())]

    assert addressable(fixture.answers(rows), target)[1]["foreign_id"] == 1


def test_the_key_is_the_environments(monkeypatch):
    """With a workspace where one is named."""
    monkeypatch.setenv("LANGSMITH_API_KEY", "k")
    monkeypatch.setenv("LANGSMITH_WORKSPACE_ID", "w")

    assert headers() == {"x-api-key": "k", "x-tenant-id": "w"}


def test_its_schema_takes_our_feedback():
    """FeedbackCreate reads every key, and says the same again."""
    schemas = pytest.importorskip("langsmith.schemas", reason="langsmith is not installed")
    for row in (*ROWS.values(), *loop.blind("langsmith", origin=ORIGIN).values()):
        body = shape(row)
        read = schemas.FeedbackCreate(**body)

        assert set(body) <= set(schemas.FeedbackCreate.model_fields)
        assert (str(read.id), str(read.run_id), str(read.session_id)) == (
            body["id"],
            loop.UUID,
            ORIGIN["project"],
        )
        assert (read.score, read.value, read.extend_trace_retention) == (body["score"], body["value"], False)
