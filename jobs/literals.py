"""Lists and structs that were logged as text: JSON, or the `repr` of Python values.

A list in a string is never split on commas or newlines, and nothing is evaluated: what numpy or pandas
printed without commas, or elided, is refused by name, because Python itself would join `'a' 'b'` into one
string and take `...` for a value. Every step is linear in the text. The module knows no column and no file.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

MAX_LITERAL_CHARS = 1 << 20
"""A Python literal longer than this is not parsed: its syntax tree takes some hundred times its size."""
_MAX_LITERAL_DEPTH = 16
_LITERAL = re.compile(
    r"""\s*+(?:(?P<value>'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|None|True|False|[-+]?\d[\d.eE+-]*+)"""
    r"""|(?P<elided>\.\.\.)|(?P<mark>[\[\]{}(),:]))""",
    re.DOTALL,
)


class BadValueError(Exception):
    """A value that cannot be taken, in a column whose type can."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Shape:
    """How the fields of a wanted struct are found in what was logged."""

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Our field -> candidates, dotted for nested ones; the first that is not null counts. Default: our name."""
    needs: tuple[str, ...] = ()
    """Fields without which the type is wrong."""
    bare: str = ""
    """The field that a plain text in place of the struct is; empty: it is JSON."""


PLAIN = Shape()


def parse(text: str) -> Any:
    """The value of a JSON text, else of a Python literal.

    Raises:
        BadValueError: `unrecoverable_list` for what numpy or pandas printed in part, else `unparsable_json`.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as err:
        problem = f"neither JSON ({err}) nor a Python literal"
    if len(text) > MAX_LITERAL_CHARS:
        raise BadValueError("unparsable_json", f"{problem} of at most {MAX_LITERAL_CHARS} characters")
    # A scan of our own first: Python joins 'a' 'b', takes ... for a value, and nests until it falls over.
    text = text.strip()
    at, depth, after_value = 0, 0, False
    while at < len(text):
        token = _LITERAL.match(text, at)
        if token is None:
            raise BadValueError("unparsable_json", f"{problem}, at character {at}")
        is_value = token.lastgroup == "value"
        if token.lastgroup == "elided" or (is_value and after_value):
            what = "two items without a comma" if is_value else "items elided by '...'"
            raise BadValueError("unrecoverable_list", f"{what} at character {at}: printed, not serialised")
        depth += (token["mark"] or " ") in "[{("
        depth -= (token["mark"] or " ") in ")}]"
        if depth > _MAX_LITERAL_DEPTH:
            raise BadValueError("unparsable_json", f"{problem}: nested deeper than {_MAX_LITERAL_DEPTH}")
        at, after_value = token.end(), is_value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as err:
        raise BadValueError("unparsable_json", problem) from err


def from_python(value: Any, target: pa.DataType, shape: Shape = PLAIN) -> Any:
    """A parsed value in the form of `target`, by the rules of `fit`.

    Raises:
        BadValueError: it is of another kind.
    """
    if value is None:
        return None
    if pa.types.is_list(target) and isinstance(value, list | tuple):
        return [from_python(item, target.value_type, shape) for item in value]
    if pa.types.is_struct(target):
        if isinstance(value, dict):
            return {f.name: _pick(value, f, shape) for f in target}
        if isinstance(value, str) and shape.bare:
            kind = target.field(shape.bare).type
            return {shape.bare: from_python([value] if pa.types.is_list(kind) else value, kind)}
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        if pa.types.is_string(target) and not isinstance(value, float):
            return _encodable(str(value))
        if pa.types.is_floating(target):
            return float(value)
        if pa.types.is_integer(target) and isinstance(value, int):
            return value
    raise BadValueError("bad_value", f"found {type(value).__name__}, expected {target}")


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as err:
        raise BadValueError("invalid_utf8", f"half a surrogate pair at character {err.start}") from err
    return text


def _pick(value: dict[Any, Any], wanted: pa.Field, shape: Shape) -> Any:
    for name in shape.names.get(wanted.name, (wanted.name,)):
        found: Any = value.get(name)
        if found is None and "." in name:
            found = value
            for step in name.split("."):
                found = found.get(step) if isinstance(found, dict) else None
        if found is not None:
            return from_python(found, wanted.type)
    return None
