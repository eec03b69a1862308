"""Publications as LangSmith feedback.

A feedback id that exists is updated in place: deleting and creating anew is known to bring old values back. Scores have
four decimals, all that the API takes. Not scored is a null score with the value `unscored`. The retention of a scored
trace is never extended, which is billed and is the API's default. The shape is FeedbackCreate of its SDK.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from claimscore.jobs.published import Item, Outcome
from claimscore.jobs.sending import Sender, error_of, token_of

NAME = "langsmith"
SYSTEMS = frozenset({"langsmith"})
TRACE_IDS = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
ENDING = "jsonl"
_CHANGEABLE = ("score", "value", "comment")


def shape(row: dict[str, Any], *, kept_series: str = "") -> dict[str, Any]:  # noqa: ARG001 - in the id
    """The feedback of one publication."""
    metadata = json.loads(row["metadata"])
    value = "unscored" if row["unscored"] else row["label"]
    why = f"unscored: {row['unscored']}\n" if row["unscored"] else ""
    # An update cannot change `extra`, so that the comment names the series too.
    comment = f"{why}{row['explanation']}\n[claimscore {metadata['series']}]"
    session = next((row[name] for name in ("project", "session_id") if _is_uuid(row[name])), None)
    return {
        "id": row["key"],
        "run_id": row["span_id"] if _is_uuid(row["span_id"]) else row["trace_id"],
        "trace_id": row["trace_id"],
        **({"session_id": session} if session else {}),
        "start_time": row["ts"].isoformat(),
        "key": row["metric"],
        "score": None if row["value"] is None else round(row["value"], 4),
        "value": value,
        "comment": comment,
        "feedback_source": {"type": "model", "metadata": {"source": "claimscore"}},
        "extra": metadata,
        "extend_trace_retention": False,
    }


def _is_uuid(text: str | None) -> bool:
    try:
        return text is not None and bool(uuid.UUID(text))
    except ValueError:
        return False


def headers() -> dict[str, str]:
    """The key of the environment, and the workspace that it should speak for."""
    key, workspace = token_of("LANGSMITH_API_KEY"), token_of("LANGSMITH_WORKSPACE_ID")
    return {**({"x-api-key": key} if key else {}), **({"x-tenant-id": workspace} if workspace else {})}


class LangSmith:
    """Sends feedback, one a request."""

    name = NAME
    asks_for = "LANGSMITH_API_KEY"
    batch_size = 1
    can_remove = True

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Create or update one feedback."""
        (item,) = batch
        steps = (self._create, self._update) if item.known_as is None else (self._update, self._create)
        answer = steps[0](sender, item)
        if answer.status_code == (409 if item.known_as is None else 404):  # it was there, or is no more
            answer = steps[1](sender, item)
        return [Outcome(tool_id=item.key) if answer.is_success else Outcome(error=error_of(answer))]

    def _create(self, sender: Sender, item: Item) -> Any:
        body = {name: value for name, value in item.body.items() if value is not None}
        return sender.request("POST", "/feedback", body)

    def _update(self, sender: Sender, item: Item) -> Any:
        changes = {name: item.body[name] for name in _CHANGEABLE}  # nulls too: they clear the old value
        return sender.request("PATCH", f"/feedback/{item.key}", changes)

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """Delete one feedback; one that is not there is fine."""
        answer = sender.request("DELETE", f"/feedback/{item.key}")
        return (
            Outcome() if answer.is_success or answer.status_code == 404 else Outcome(error=error_of(answer))
        )
