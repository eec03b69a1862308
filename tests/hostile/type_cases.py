"""Every type in every column of the log, and what becomes of the rows, as a table written by hand."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import case
import pyarrow as pa

STRING = pa.string()


def _two(value: Any, kind: pa.DataType) -> pa.Array:
    return pa.array([value, value], kind)


TYPES = {
    "null": pa.nulls(2),
    "bool": _two(True, pa.bool_()),
    "int8": _two(7, pa.int8()),
    "uint64": _two(2**64 - 1, pa.uint64()),
    "float": _two(1.5, pa.float32()),
    "nan": _two(float("nan"), pa.float64()),
    "decimal": _two(decimal.Decimal("1.50"), pa.decimal128(9, 2)),
    "date": _two(dt.date(2026, 11, 28), pa.date32()),
    "time": _two(dt.time(1, 2), pa.time64("us")),
    "timestamp": _two(1_795_824_000_000_000_000, pa.timestamp("ns")),
    "duration": _two(dt.timedelta(1), pa.duration("s")),
    "binary": _two(b"\xff\xfe", pa.binary()),
    "fixed": _two(b"abcd", pa.binary(4)),
    "text": _two("some words", STRING),
    "large": _two("some words", pa.large_string()),
    "view": _two("some words", pa.string_view()),
    "category": _two("some words", STRING).dictionary_encode(),
    "words": _two(["a", None], pa.list_(STRING)),
    "ints": _two([1, 2], pa.list_(pa.int64())),
    "nothings": _two([None], pa.list_(pa.null())),
    "struct": _two({"text": "a pool"}, pa.struct([("text", STRING)])),
    "structs": _two([{"text": "a pool", "id": "a"}], pa.list_(pa.struct([("text", STRING), ("id", STRING)]))),
    "map": _two([("k", "v")], pa.map_(STRING, STRING)),
    "lists": _two([["a"]], pa.list_(pa.list_(STRING))),
}
"""Type -> two values of it."""

# Column -> a letter a type, in the order of TYPES: `.` the rows are read; the file cannot be used: `F`; or every row is
# quarantined: `u` invalid_utf8, `j` unparsable_json, `b` bad_value, `n` null where none may be, `t` chunk_text_null,
# `p` parallel_lists_differ. A label may be any scalar but a time; a text may not be a number: a number is no answer.
REASONS = {
    "u": {"invalid_utf8"},
    "j": {"unparsable_json"},
    "b": {"bad_value"},
    "n": {"request_id_null", "chunks_null"},
    "t": {"chunk_text_null"},
    "p": {"parallel_lists_differ"},
}
_LABEL = ". . . . . . . F F F F u . . . . . F F F F F F F"
_TEXT = ". F F F F F F F F F F u . . . . . F F F F F F F"
FITS = {
    #                  null bool int8 uint64 float nan decimal date time timestamp duration binary fixed text large view
    #                  category words ints nothings struct structs map lists
    "request_id":       "n F . . F F F F F F F u . . . . . F F F F F F F",
    "question":         _TEXT,
    "answer":           _TEXT,
    "chunks":           "n F F F F F F F F F F u j j j j j t F t F . . F",
    "samples":          ". F F F F F F F F F F u j j j j j . . . F F F F",
    "token_logprobs":   ". F F F F F F F F F F u j j j j j j F . F F F F",
    "prompt_version":   _LABEL,
    "model":            _LABEL,
    "topic":            _LABEL,
    "status":           _LABEL,
    "ts":               ". F F F F F F . F . F u b b b b b F F F F F F F",
    "answerable":       ". . F F F F F F F F F u b b b b b F F F F F F F",
    "gold_chunk_ids":   ". F F F F F F F F F F u j j j j j . . . F F F F",
    "reference_answer": ". F F F F F F F F F F u . . . . . . . . F F F F",
    "human_label":      _LABEL,
    "citations":        ". F F F F F F F F F F u j j j j j . F . F F F F",
    "origin":           ". F F F F F F F F F F u j j j j j F F F F F . F",
    "chunk_ids":        ". F F F F F F F F F F u j j j j j . . p F F F F",
    "chunk_scores":     ". F F F F F F F F F F u j j j j j b . p F F F F",
}  # fmt: skip


def grid() -> list[tuple[Any, str]]:
    """A case for every type in every column, and its letter."""
    return [
        (case.with_column(f"{column} {kind}", column, TYPES[kind], ["", ""]), letter)
        for column, letters in FITS.items()
        for kind, letter in zip(TYPES, letters.split(), strict=True)
    ]
