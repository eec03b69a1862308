"""Publications as MLflow assessments (feedback) of a trace.

MLflow makes the ids, and logging again appends: ours are found among the trace's by the key in their metadata, and
updated. Not scored is a feedback with an error in place of a value. Metadata values are strings. The shapes are the JSON
forms of its protobuf messages, REST API 3.0.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from claimscore.jobs.exports import METRICS
from claimscore.jobs.published import Item, Outcome
from claimscore.jobs.sending import Sender, error_of, token_of

NAME = "mlflow"
SYSTEMS = frozenset({"mlflow"})
TRACE_IDS = r".+"
ENDING = "jsonl"
KEY = "claimscore_key"
_CHANGEABLE = ("feedback", "rationale", "metadata")


def shape(row: dict[str, Any], *, kept_series: str = "") -> dict[str, Any]:
    """The assessment of one publication.

    Args:
        row: of exports.PUBLICATIONS.
        kept_series: the series, where it is part of the identity; else "".
    """
    value: Any = row["label"]
    if row["value"] is not None:
        value = bool(row["value"]) if row["metric"] == "claimscore.hallucinated" else row["value"]
    feedback = {"value": value}
    if row["unscored"]:
        feedback = {"error": {"error_code": "UNSCORED", "error_message": row["unscored"]}}
    metadata = {
        name: item if isinstance(item, str) else json.dumps(item)
        for name, item in json.loads(row["metadata"]).items()
        if item is not None
        and name != "claims"  # the rationale has them; long values are cut by some servers
    }
    when = row["ts"].isoformat().replace("+00:00", "Z")
    return {
        "trace_id": row["trace_id"],
        "assessment_name": row["metric"],
        "source": {
            "source_type": "LLM_JUDGE" if row["by_llm"] else "CODE",
            "source_id": f"claimscore/{kept_series}" if kept_series else "claimscore",
        },
        "create_time": when,
        "last_update_time": when,
        "feedback": feedback,
        "rationale": row["explanation"],
        "metadata": metadata | {KEY: row["key"]},
    }


def headers() -> dict[str, str]:
    """The token or the name and password of the environment, where there are such."""
    token, user, password = (
        token_of(f"MLFLOW_TRACKING_{name}") for name in ("TOKEN", "USERNAME", "PASSWORD")
    )
    if user and password:
        return {"authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}
    return {"authorization": f"Bearer {token}"} if token else {}


class MlFlow:
    """Sends assessments. The tool's id of one is `<trace id> <assessment id>`."""

    name = NAME
    asks_for = "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    batch_size = len(METRICS)  # those of one trace, which is then asked for once
    can_remove = True

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Create or update each."""
        held: dict[str, dict[str, str] | str] = {}
        return [self._push(sender, item, held) for item in batch]

    def _push(self, sender: Sender, item: Item, held: dict[str, dict[str, str] | str]) -> Outcome:
        trace_id = item.body["trace_id"]
        known = (item.known_as or "").rpartition(" ")[2]
        if known:
            answer = self._update(sender, item, known)
            if answer.status_code != 404:
                return _outcome(answer, trace_id, known)
        if trace_id not in held:
            held[trace_id] = _ours(sender, trace_id)
        ours = held[trace_id]
        if isinstance(ours, str):
            return Outcome(error=ours)
        if item.key in ours:
            return _outcome(self._update(sender, item, ours[item.key]), trace_id, ours[item.key])
        answer = sender.request("POST", f"{_trace(trace_id)}/assessments", {"assessment": item.body})
        return _outcome(answer, trace_id, _dig(answer, "assessment", "assessment_id") or "")

    def _update(self, sender: Sender, item: Item, assessment_id: str) -> Any:
        trace_id = item.body["trace_id"]
        changes = {name: item.body[name] for name in _CHANGEABLE}
        body = {
            "assessment": {"assessment_id": assessment_id, "trace_id": trace_id, **changes},
            "update_mask": ",".join(_CHANGEABLE),
        }
        return sender.request(
            "PATCH", f"{_trace(trace_id)}/assessments/{quote(assessment_id, safe='')}", body
        )

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """Delete one assessment; one that is not there is fine."""
        trace_id, _, assessment_id = (item.known_as or "").rpartition(" ")
        answer = sender.request("DELETE", f"{_trace(trace_id)}/assessments/{quote(assessment_id, safe='')}")
        return (
            Outcome() if answer.is_success or answer.status_code == 404 else Outcome(error=error_of(answer))
        )


def _trace(trace_id: str) -> str:
    return f"/api/3.0/mlflow/traces/{quote(trace_id, safe='')}"


def _ours(sender: Sender, trace_id: str) -> dict[str, str] | str:
    """Our assessments of a trace, key -> id; or why the trace cannot be had."""
    answer = sender.request("GET", _trace(trace_id))
    if answer.status_code == 404:
        return "MLflow has no such trace (late, deleted, or another server's)"
    if not answer.is_success:
        return error_of(answer)
    found = _dig(answer, "trace", "trace_info", "assessments") or []
    return {
        entry["metadata"][KEY]: entry["assessment_id"]
        for entry in found
        if isinstance(entry, dict) and entry.get("metadata", {}).get(KEY) and entry.get("assessment_id")
    }


def _outcome(answer: Any, trace_id: str, assessment_id: str) -> Outcome:
    return (
        Outcome(tool_id=f"{trace_id} {assessment_id}")
        if answer.is_success
        else Outcome(error=error_of(answer))
    )


def _dig(answer: Any, *path: str) -> Any:
    try:
        value = answer.json()
        for name in path:
            value = value[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return value
