"""Publications as Langfuse scores.

Langfuse replaces a score of equal id, name and calendar day, so the timestamp is the answer's and never now. A number
that was not scored is left out, and `claimscore.state` says why; one that was sent earlier is deleted. Lists go to the
scores endpoint, as its own client sends them since version 5; a server that takes none gets the same scores as events
of the older ingestion endpoint. Both tell of single refusals inside a success, which is read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from claimscore.jobs.errors import one_line
from claimscore.jobs.exports import key_of
from claimscore.jobs.published import Item, Outcome
from claimscore.jobs.sending import Sender, error_of, token_of

NAME = "langfuse"
SYSTEMS = frozenset({"langfuse", "otlp"})
TRACE_IDS = r".+"
ENDING = "jsonl"
_NO_LISTS = frozenset({400, 404, 405, 422})
_TYPES = {
    "claimscore.hallucinated": "BOOLEAN",
    "claimscore.action": "CATEGORICAL",
    "claimscore.state": "CATEGORICAL",
}


def shape(row: dict[str, Any], *, kept_series: str = "") -> dict[str, Any] | None:  # noqa: ARG001 - in the id
    """The score of one publication, or None: not scored, which Langfuse has no number for."""
    if row["unscored"]:
        return None
    kind = _TYPES.get(row["metric"], "NUMERIC")
    span = {"observationId": row["span_id"]} if row["span_id"] else {}
    return {
        "id": row["key"],
        "traceId": row["trace_id"],
        **span,
        "name": row["metric"],
        "value": row["label"] if kind == "CATEGORICAL" else row["value"],
        "dataType": kind,
        "comment": row["explanation"],
        "metadata": json.loads(row["metadata"]),
        "timestamp": row["ts"].isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def headers() -> dict[str, str]:
    """Basic authorisation by the project's keys, where the environment has both."""
    public, secret = (token_of(f"LANGFUSE_{kind}_KEY") for kind in ("PUBLIC", "SECRET"))
    if not (public and secret):
        return {}
    return {"authorization": f"Basic {base64.b64encode(f'{public}:{secret}'.encode()).decode()}"}


class Langfuse:
    """Sends scores."""

    name = NAME
    asks_for = "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    batch_size = 50  # the body limit is 1 MB, and a score with ten claims has 10 kB
    can_remove = True

    def __init__(self) -> None:
        self._takes_lists = True

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Send a batch as a list, or as ingestion events."""
        if self._takes_lists:
            answer = sender.request("POST", "/api/public/scores", [item.body for item in batch])
            if answer.status_code not in _NO_LISTS:
                return _of_list(answer, batch)
        outcomes = self._ingest(sender, batch)
        self._takes_lists = self._takes_lists and any(outcome.error for outcome in outcomes)
        return outcomes

    def _ingest(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        events = [
            {
                "id": key_of(item.key, item.content),  # of the event: a changed score is another event
                "type": "score-create",
                "timestamp": item.body["timestamp"],
                "body": {name: value for name, value in item.body.items() if name != "timestamp"},
            }
            for item in batch
        ]
        answer = sender.request("POST", "/api/public/ingestion", {"batch": events})
        if not answer.is_success:
            return [Outcome(error=error_of(answer))] * len(batch)
        told = _json(answer)
        taken = {entry.get("id") for entry in told.get("successes", [])}
        errors = {entry.get("id"): entry.get("message") for entry in told.get("errors", [])}
        return [
            Outcome(tool_id=item.key)
            if event["id"] in taken
            else Outcome(error=f"Langfuse: {one_line(str(errors.get(event['id']) or 'no word of it'))[:200]}")
            for item, event in zip(batch, events, strict=True)
        ]

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """Delete a score; one that is not there is fine."""
        answer = sender.request("DELETE", f"/api/public/scores/{quote(item.key, safe='')}")
        return (
            Outcome() if answer.is_success or answer.status_code == 404 else Outcome(error=error_of(answer))
        )


def _of_list(answer: Any, batch: Sequence[Item]) -> list[Outcome]:
    """Outcomes of a list. Refused ones are counted and not named, so that all of the batch stay to be sent."""
    if not answer.is_success:
        return [Outcome(error=error_of(answer))] * len(batch)
    told = _json(answer)
    if told.get("rejected"):
        words = "; ".join(str(error.get("message")) for error in told.get("errors", [])[:3])
        error = f"Langfuse: {told['rejected']} of {len(batch)} refused: {one_line(words)[:200]}"
        return [Outcome(error=error)] * len(batch)
    return [Outcome(tool_id=item.key) for item in batch]


def _json(answer: Any) -> dict[str, Any]:
    try:
        told = answer.json()
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
