"""Phoenix: the annotation's shape, what an unknown span does, and its own client's types."""

from __future__ import annotations

import loopback_fixture as loop
import pytest

from claimscore.jobs.export_phoenix import Phoenix, headers, shape
from claimscore.jobs.published import Item, Outcome


def test_a_score_is_an_annotation_of_the_span():
    """Name, identifier and span are what Phoenix overwrites by."""
    body = shape(loop.rows("phoenix")["groundedness"])

    assert {name: body[name] for name in ("span_id", "name", "identifier", "annotator_kind")} == {
        "span_id": loop.SPAN,
        "name": "claimscore.groundedness",
        "identifier": "claimscore",
        "annotator_kind": "CODE",
    }
    assert (body["result"]["score"], "label" in body["result"]) == (0.5, False)
    assert "unsupported: It is free for students." in body["result"]["explanation"]
    assert body["metadata"]["series"] == "stub-12345678"


def test_words_are_labels():
    """An action has no number."""
    assert shape(loop.rows("phoenix")["action"])["result"]["label"] == "refuse"
    assert "score" not in shape(loop.rows("phoenix")["action"])["result"]


def test_unscored_is_a_label_without_a_score():
    """Never a 0, and the reason stands in the explanation."""
    for name in ("groundedness", "hallucinated", "citation_precision"):
        result = shape(loop.blind("phoenix")[name])["result"]

        assert (result["label"], "score" in result) == ("unscored", False)
    assert result["explanation"].startswith("unscored: no_citations\n")


def test_without_a_span_it_is_the_trace():
    """So it is with a span id of another form."""
    for span in (None, "not hex"):
        body = shape(loop.rows("phoenix", origin=loop.origin(span_id=span))["state"])

        assert (body["trace_id"], "span_id" in body) == (loop.TRACE, False)


def test_a_kept_series_is_in_the_identifier():
    """Two judges then stand side by side."""
    assert shape(loop.rows("phoenix")["state"], kept_series="big-1")["identifier"] == "claimscore/big-1"


def test_the_llm_is_named_as_annotator():
    """Where it decided a claim."""
    assert shape(loop.rows("phoenix")["state"] | {"by_llm": True})["annotator_kind"] == "LLM"


def test_spans_and_traces_go_to_their_own_endpoints_in_sync():
    """Without `sync=true` unknown spans vanish without a word."""
    batch = [Item("a", {"span_id": "1"}), Item("b", {"trace_id": "2"}), Item("c", {"span_id": "3"})]
    with loop.loopback() as server:
        outcomes = Phoenix().push(server.sender(), batch)

    assert outcomes == [Outcome()] * 3
    assert server.seen == [
        ("POST", "/v1/span_annotations?sync=true", {"data": [{"span_id": "1"}, {"span_id": "3"}]}),
        ("POST", "/v1/trace_annotations?sync=true", {"data": [{"trace_id": "2"}]}),
    ]


def test_an_unknown_span_fails_alone():
    """The 404 names it; the others are sent without it."""
    batch = [Item(key, {"span_id": key * 16}) for key in "abc"]

    def answer(_method, _path, body):
        known = all(entry["span_id"] != "b" * 16 for entry in body["data"])
        return (200, {}) if known else (404, {"detail": f"Spans with IDs {'b' * 16} do not exist."})

    with loop.loopback() as server:
        server.answer = answer
        outcomes = Phoenix().push(server.sender(), batch)

    assert [bool(outcome.error) for outcome in outcomes] == [False, True, False]
    assert outcomes[1].error.startswith("Phoenix has no such span")
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [404, 422])
def test_a_refusal_that_names_no_span_fails_the_batch(status):
    """What it says is told, and nothing is asked for ever."""
    with loop.loopback() as server:
        server.answer = lambda *_: (status, {"detail": "no"})
        outcomes = Phoenix().push(
            server.sender(), [Item("a", {"span_id": "1" * 16}), Item("b", {"span_id": "2" * 16})]
        )

    assert {outcome.error for outcome in outcomes} == {f'HTTP {status}: {{"detail": "no"}}'}
    assert len(server.seen) == 1


def test_the_token_is_the_environments(monkeypatch):
    """A server without authorisation needs none."""
    monkeypatch.delenv("PHOENIX_API_KEY", raising=False)
    assert headers() == {}
    monkeypatch.setenv("PHOENIX_API_KEY", "k")
    assert headers() == {"authorization": "Bearer k"}


def test_its_own_client_takes_and_sends_our_annotations():
    """Every key is one of its types', and its client posts the bodies to the same endpoint unchanged."""
    client = pytest.importorskip("phoenix.client", reason="arize-phoenix-client is not installed")
    v1 = pytest.importorskip("phoenix.client.__generated__.v1")
    bodies = [shape(row) for rows in (loop.rows("phoenix"), loop.blind("phoenix")) for row in rows.values()]

    with loop.loopback() as server:
        server.answer = lambda _method, path, body: (
            200,
            {"data": [{"id": str(k)} for k in range(len(body["data"]))]} if "annotations" in path else {},
        )
        client.Client(base_url=server.url).spans.log_span_annotations(span_annotations=bodies, sync=True)

    (sent,) = [(path.lower(), body) for _, path, body in server.seen if "annotations" in path]
    assert sent == ("/v1/span_annotations?sync=true", {"data": bodies})
    assert all(set(body) <= set(v1.SpanAnnotationData.__annotations__) for body in bodies)
    assert all(set(body["result"]) <= set(v1.AnnotationResult.__annotations__) for body in bodies)
