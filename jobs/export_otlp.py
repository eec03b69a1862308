"""Publications as OpenTelemetry log events `gen_ai.evaluation.result`, in OTLP/JSON for a collector.

An event carries trace and span of the answer, for spans that ended cannot be changed. Not scored is `error.type` and no
score. Backends append: nothing there replaces an event, so that only the record keeps a rerun from doubling, and
`claimscore.key` is there to tell repeats by. Names are those of the GenAI conventions, which are in development.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from claimscore.jobs.errors import one_line
from claimscore.jobs.published import Item, Outcome
from claimscore.jobs.sending import Sender, error_of, token_of

NAME = "otlp"
SYSTEMS = frozenset({"otlp", "phoenix", "langfuse", "mlflow"})
TRACE_IDS = r"(?:tr-)?[0-9a-fA-F]{32}"
ENDING = "jsonl"
_SPAN = re.compile(r"[0-9a-fA-F]{16}")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LABELS = {0.0: "not hallucinated", 1.0: "hallucinated"}


def shape(row: dict[str, Any], *, kept_series: str = "") -> dict[str, Any]:  # noqa: ARG001 - in the key
    """The log record of one publication."""
    nanoseconds = str((row["ts"] - _EPOCH) // dt.timedelta(microseconds=1) * 1_000)
    label = row["label"]
    if row["metric"] == "claimscore.hallucinated" and row["value"] is not None:
        label = _LABELS[row["value"]]
    attributes: dict[str, Any] = {
        "gen_ai.evaluation.name": row["metric"],
        "gen_ai.evaluation.score.value": row["value"],
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": row["explanation"],
        "error.type": row["unscored"],
        "claimscore.key": row["key"],
        "claimscore.request_id": row["request_id"],
        "claimscore.metadata": row["metadata"],
    }
    span = row["span_id"] or ""
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": 9,  # INFO
        "eventName": "gen_ai.evaluation.result",
        "traceId": row["trace_id"].removeprefix("tr-").lower(),
        **({"spanId": span.lower()} if _SPAN.fullmatch(span) else {}),
        "attributes": [
            {"key": name, "value": {"doubleValue" if isinstance(value, float) else "stringValue": value}}
            for name, value in attributes.items()
            if value is not None
        ],
    }


def request_of(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """An ExportLogsServiceRequest of log records, as a collector takes it in a body or as a line of a file."""
    service = {"key": "service.name", "value": {"stringValue": "claimscore"}}
    scope = {"scope": {"name": "claimscore"}, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": {"attributes": [service]}, "scopeLogs": [scope]}]}


def headers() -> dict[str, str]:
    """OTEL_EXPORTER_OTLP_HEADERS: `name=value` pairs, percent-encoded, with commas between."""
    pairs = (pair.partition("=") for pair in token_of("OTEL_EXPORTER_OTLP_HEADERS").split(","))
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs if name.strip()}


class Otlp:
    """Sends log events."""

    name = NAME
    asks_for = "OTEL_EXPORTER_OTLP_HEADERS"
    batch_size = 200
    can_remove = False

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Send a batch. What a partial success refused is told and not sent again, as the protocol asks."""
        answer = sender.request("POST", "/v1/logs", request_of([item.body for item in batch]))
        if not answer.is_success:
            return [Outcome(error=error_of(answer))] * len(batch)
        try:
            partial = (answer.json() if answer.content else {}).get("partialSuccess") or {}
            n_rejected = int(partial.get("rejectedLogRecords") or 0)
            words = one_line(str(partial.get("errorMessage", "")))[:200]
        except (ValueError, AttributeError, TypeError, RecursionError):
            return [Outcome(error="the collector's answer is no OTLP/JSON")] * len(batch)
        if n_rejected:
            error = f"the collector refused some: {words}"
            return [Outcome(error=error if k < n_rejected else "", is_final=True) for k in range(len(batch))]
        return [Outcome()] * len(batch)

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """An event cannot be taken back."""
        raise NotImplementedError
