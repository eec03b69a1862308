"""Hostile bytes: string columns that hold no text, and lists of chunks that were logged as JSON or as something like it."""

from __future__ import annotations

import json
from typing import Any

import case
import pyarrow as pa

Case, GOOD, U = case.Case, case.GOOD, "scored: unsupported"


def _invalid(name: str, column: str, raw: bytes, *, nested: str = "", encoded: bool = False) -> Any:
    """A good row, and one whose string column holds bytes that are no UTF-8, as only a careless writer can."""
    table = pa.Table.from_pylist([case.row(f"{name}-{k}") for k in range(2)], case.SCHEMA)
    if nested:
        fields = [pa.array([c[f] for c in case.CHUNKS] * 2) for f in ("id", "text", "score")]
        at = ("id", "text").index(nested)
        values = [str(v).encode() for v in fields[at].to_pylist()[:3]] + [raw]
        fields[at] = _as_string(values)
        items = pa.StructArray.from_arrays(fields, names=["id", "text", "score"])
        values_of = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), items)
    else:
        good = str(table.column(column)[0].as_py() or "x").encode()
        values_of = _as_string([good, raw])
    if encoded:
        values_of = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), values_of)
    at = table.column_names.index(column)
    return Case(name, case.writer(table.set_column(at, column, values_of)), (GOOD, "!invalid_utf8"))


def _as_string(values: list[bytes]) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def bytes_that_are_no_text() -> list[Any]:
    """Bytes in string columns that no decoder takes: quarantined, never replaced by a question mark."""
    return [
        _invalid("bad byte in an answer", "answer", b"caf\xe9"),
        _invalid("bad byte in a question", "question", b"\xff"),
        _invalid("bad byte in a status", "status", b"\x80"),
        _invalid("cut character", "answer", b"5 \xe2\x82"),
        _invalid("overlong", "answer", b"\xc0\xaf"),
        _invalid("surrogate in bytes", "answer", b"\xed\xa0\x80"),
        _invalid("past the last code point", "answer", b"\xf4\x90\x80\x80"),
        _invalid("bad byte in a dictionary", "answer", b"caf\xe9", encoded=True),
        _invalid("bad byte in a chunk", "chunks", b"caf\xe9", nested="text"),
        _invalid("bad byte in a chunk id", "chunks", b"\xfe", nested="id"),
    ]


def json_texts() -> list[Any]:
    """Chunks as JSON text: what does not parse is quarantined with its reason, and what does is taken whole."""
    one = GOOD + ", 1 fabricated"  # there is one chunk, and the plain answer cites two
    true = "The refund window is 60 days. Guests pay 20 euro."
    texts = {
        "lone surrogate": (r'["half \ud800"]', "!invalid_utf8"),
        "lone surrogate in an id": (r'[{"id": "\udc00", "text": "x"}]', "!invalid_utf8"),
        "pair of surrogates": (r'["\ud83d\ude00 ' + true + '"]', one),
        "escaped nul": (r'["' + true + r' \u0000"]', one),
        "deep": ("[" * 100_000 + "]" * 100_000, "!unparsable_json"),
        "deep objects": ('[{"text":' * 5_000 + '"x"' + "}]" * 5_000, "!unparsable_json"),
        "deep literal": ("[" * 40 + "'a'" + "]" * 40, "!unparsable_json"),
        "cut": ('[{"text": "A po', "!unparsable_json"),
        "two documents": ('["a"]["b"]', "!unparsable_json"),
        "byte order mark": ('\ufeff["x"]', "!unparsable_json"),
        "trailing comma": (json.dumps([true])[:-1] + ",]", one),
        "json5": ("[{text: 'x'}]", "!unparsable_json"),
        "a number": ("7", "!bad_value"),
        "a text": ('"x"', "!bad_value"),
        "an object": ('{"text": "x"}', "!bad_value"),
        "numbers": ("[1, 2]", "!bad_value"),
        "text a list": ('[{"text": ["x"]}]', "!bad_value"),
        "text a number": ('[{"text": 7}]', U + ", unsupported, 1 fabricated"),
        "score not a number": ('[{"text": "x", "score": "high"}]', "!bad_value"),
        "score NaN": ('[{"text": "' + true + '", "score": NaN}]', one),
        "score of 400 digits": ('[{"text": "' + true + '", "score": 1' + "0" * 400 + "}]", "!bad_value"),
        "number of 5,000 digits": ('[{"text": "x", "rank": ' + "9" * 5_000 + "}]", "!unparsable_json"),
        "score 1e999": ('[{"text": "' + true + '", "score": 1e999}]', one),
        "key twice": ('[{"text": "x", "text": "' + true + '"}]', one),
        "empty list": ("[]", "no_context, unscored no_context, unscored no_context, 2 fabricated"),
        "null": ("null", "!chunks_null"),
        "blank": (" ", "!unparsable_json"),
        "numpy": ("['a' 'b']", "!unrecoverable_list"),
        "elided": ("['a', ..., 'b']", "!unrecoverable_list"),
        "code": ("__import__('os').system('true')", "!unparsable_json"),
    }  # fmt: skip
    good = json.dumps(case.CHUNKS)
    return [
        case.with_column(f"json {name}", "chunks", [good, text, good], (GOOD, expected, GOOD))
        for name, (text, expected) in texts.items()
    ]


def cases() -> list[Any]:
    """Every case of this file."""
    return [*bytes_that_are_no_text(), *json_texts()]
