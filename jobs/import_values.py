"""Single values of an export: ids that are numbers, times in four units, JSON in a string, dotted attributes.

Exports disagree on all of them, and none of them raises here: what cannot be taken is null, and the caller says what
that means. Attributes come flat with indices (OTLP), flat with lists (REST) or nested (data frames): `nest` gives
one tree for the three. Lists are rebuilt by number, since as strings 10 comes before 2.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from claimscore.jobs.literals import BadValueError, parse

MAX_DEPTH = 16
"""Levels of nesting that are looked into; no tool writes more, and a hostile row may."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0))
"""A number of at least the first counts 1/second of the second: nano-, micro-, milliseconds, seconds since 1970."""
_HEX_BYTES = {12: 8, 24: 16}
_BASE64_ID = re.compile(r"[A-Za-z0-9+/]+={1,2}")


def id_of(value: Any) -> str | None:
    """An id as text: a number too, also one that a data frame made a float; blank, null and NaN are none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value.is_integer() else None
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 128 else None
    text = str(value).strip() if isinstance(value, str) or hasattr(value, "hex") else ""
    return text or None


def hex_id_of(value: Any) -> str | None:
    """An OpenTelemetry id in lower-case hex: as it is, with 0x, or from the base64 of protobuf's JSON.

    All zeros is how protobuf says that there is none.
    """
    text = id_of(value)
    if text is None:
        return None
    n_bytes = _HEX_BYTES.get(len(text))
    if n_bytes and _BASE64_ID.fullmatch(text):
        try:
            raw = base64.b64decode(text, validate=True)
        except binascii.Error:
            raw = b""
        text = raw.hex() if len(raw) == n_bytes else text
    text = text.removeprefix("0x")
    return None if len(text) >= 16 and not text.strip("0") else text


def text_of(value: Any) -> str | None:
    """A short text such as a model's name; blank is null, and so is what is no text."""
    return value.strip() or None if isinstance(value, str) else None


def number_of(value: Any) -> float | None:
    """A finite number, also one written as text; else null, never 0.0."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def rows_under(key: str, document: Any) -> Iterator[Any]:
    """The rows of a JSON document: the list under `key`, the list that it is itself, or else the document alone."""
    held = document.get(key) if isinstance(document, dict) else document
    yield from held if isinstance(held, list) else [document]


_ONLY_DIGITS = re.compile(r"\d{9,}")
"""Longer than any date without separators: a number since 1970, which fromisoformat would take for year, month and day."""


def moment_of(value: Any) -> tuple[datetime | None, bool]:
    """A time in UTC, and whether it stood without a zone; ISO 8601, a datetime, or a number since 1970."""
    if isinstance(value, str) and value.strip() and not _ONLY_DIGITS.fullmatch(value.strip()):
        try:
            value = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
        except ValueError:
            value = number_of(value)
    if isinstance(value, datetime):
        is_naive = value.tzinfo is None
        try:
            return (value.replace(tzinfo=UTC) if is_naive else value.astimezone(UTC)), is_naive
        except OverflowError:
            return None, False
    number = number_of(value)
    if not number or number < 0:
        return None, False
    per_second = next(unit for least, unit in _UNITS if number >= least)
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    try:  # integers keep their microseconds: 1795827600000000000 has more digits than a float
        micros = value * 1_000_000 // int(per_second) if isinstance(value, int) else number / per_second * 1e6
        return _EPOCH + timedelta(microseconds=micros), False
    except OverflowError:
        return None, False


def unpack(value: Any) -> Any:
    """What a JSON text holds; any other value, and a text that is no JSON, as it is.

    A text that is a bare number or word in JSON (`5`, `true`) stays the text it is.
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ('"', "{", "["):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found


def unpack_literal(value: Any) -> Any:
    """`unpack`, and for what looks like a list or dict also the `repr` of Python values."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ('"', "{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return parse(value) if value.lstrip()[:1] != '"' else value
    except BadValueError:
        return value


def mapping_of(value: Any) -> dict[str, Any]:
    """A dict, or what a JSON text or a list of key and value holds; else an empty one. Null values are left out."""
    value = unpack_literal(value)
    if isinstance(value, list) and all(isinstance(item, dict) and "key" in item for item in value):
        value = {str(item["key"]): item.get("value") for item in value}
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in value.items() if item is not None}


def dig(value: Any, dotted: str) -> Any:
    """The value at a path of keys and list indices; null where there is no such path."""
    for step in dotted.split("."):
        if isinstance(value, list) and step.isdecimal() and len(step) < 7 and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def nest(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as a tree, however much of it was nested already; dicts of numbers become lists in their order.

    Null leaves are left out: data frames pad every struct with the keys of the others. Where a key is a leaf and a
    branch, the branch counts. What lies deeper than MAX_DEPTH levels is null.
    """
    tree = _with_lists(_branch(attributes, 0))
    return tree if isinstance(tree, dict) else {}


def _branch(attributes: Mapping[str, Any], depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if value is None:
            continue
        *path, last = str(key).split(".", 8)
        at = tree
        for step in path:
            below = at.get(step)
            if not isinstance(below, dict):
                below = at[step] = {}
            at = below
        inner, before = _nested(value, depth + 1), at.get(last)
        if isinstance(before, dict) and isinstance(inner, dict):
            before.update(inner)
        elif not isinstance(before, dict):
            at[last] = inner
    return tree


def _nested(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH and isinstance(value, dict | list | tuple):
        return None
    if isinstance(value, dict):
        return _branch(value, depth)
    if isinstance(value, list | tuple):
        return [_nested(item, depth + 1) for item in value]
    return value


def _with_lists(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_lists(item) for item in value]
    if not isinstance(value, dict):
        return value
    children = {key: _with_lists(child) for key, child in value.items()}
    if children and all(key.isdecimal() and len(key) < 10 for key in children):
        return [children[key] for key in sorted(children, key=int)]
    return children
