"""OTLP in JSON: resources, scopes and spans unfolded, tagged attribute values made plain.

Both spellings of the keys (protobuf's JSON and its field names), the scope's old name, ids in hex or in base64, 64-bit
integers as strings. Spans come out flat, with their resource's attributes beside their own. Log records are not
spans and are left to the caller to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from claimscore.jobs.import_values import MAX_DEPTH, hex_id_of

_RESOURCES = ("resourceSpans", "resource_spans")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_LOGS = ("resourceLogs", "resource_logs")


def is_envelope(document: Any) -> bool:
    """Whether a JSON document is OTLP's, of spans or of logs."""
    return isinstance(document, dict) and any(key in document for key in (*_RESOURCES, *_LOGS))


def envelope_spans(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each span of an OTLP document: trace_id, span_id, parent_id, name, start, end, failed, attributes, resource, events.

    A document of logs gives one row `{"log_records": n}`, so that its reader can say so.
    """
    n_logs = sum(len(_items(document, key)) for key in _LOGS)
    if n_logs:
        yield {"log_records": n_logs}
    for resource_spans in (item for key in _RESOURCES for item in _items(document, key)):
        resource = resource_spans.get("resource")
        about = _attributes(resource.get("attributes")) if isinstance(resource, dict) else {}
        for scope in (item for key in _SCOPES for item in _items(resource_spans, key)):
            for span in _items(scope, "spans"):
                yield _span(span, about)


def _span(span: Mapping[str, Any], resource: dict[str, Any]) -> dict[str, Any]:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return {
        "trace_id": hex_id_of(_either(span, "traceId", "trace_id")),
        "span_id": hex_id_of(_either(span, "spanId", "span_id")),
        "parent_id": hex_id_of(_either(span, "parentSpanId", "parent_span_id")),
        "name": span.get("name"),
        "start": _either(span, "startTimeUnixNano", "start_time_unix_nano"),
        "end": _either(span, "endTimeUnixNano", "end_time_unix_nano"),
        "failed": code in (2, "STATUS_CODE_ERROR", "ERROR"),
        "attributes": _attributes(span.get("attributes")),
        "resource": resource,
        "events": [
            {"name": event.get("name"), "attributes": _attributes(event.get("attributes"))}
            for event in _items(span, "events")
        ],
    }


def _attributes(pairs: Any) -> dict[str, Any]:
    if isinstance(pairs, dict):  # some exporters write a plain dict
        return {str(key): value for key, value in pairs.items()}
    if not isinstance(pairs, list):
        return {}
    items = (pair for pair in pairs if isinstance(pair, dict) and isinstance(pair.get("key"), str))
    return {pair["key"]: _plain(pair.get("value"), 0) for pair in items}


def _plain(value: Any, depth: int) -> Any:
    """A tagged value as the value itself; bytes stay the base64 that they are."""
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return value if not isinstance(value, dict | list) else None
    for tag, inner in value.items():
        plain_tag = tag.replace("_", "").lower()
        if plain_tag == "arrayvalue":
            return [_plain(item, depth + 1) for item in _items(inner, "values", of=object)]
        if plain_tag == "kvlistvalue":
            pairs = _items(inner, "values")
            return {str(pair.get("key")): _plain(pair.get("value"), depth + 1) for pair in pairs}
        if plain_tag == "intvalue":
            try:
                return int(inner)
            except (TypeError, ValueError):
                return None
        if plain_tag in ("stringvalue", "boolvalue", "doublevalue", "bytesvalue"):
            return inner
    return None


def _items(value: Any, key: str, of: type = dict) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, of)] if isinstance(found, list) else []


def _either(value: Mapping[str, Any], first: str, second: str) -> Any:
    found = value.get(first)
    return value.get(second) if found is None else found
