"""Hostile files: the forms of other writers, nulls at every depth, and files that are no log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import case
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

Case, GOOD = case.Case, case.GOOD
S, U = "scored: supported", "scored: unsupported"
STRING = pa.string()
TWO = (GOOD, GOOD)


def _rows(name: str, n: int = 2, **changes: Any) -> list[dict[str, Any]]:
    return [case.row(**{"request_id": f"{name}-{k}"} | changes) for k in range(n)]


def _table(name: str, n: int = 2, **changes: Any) -> pa.Table:
    return pa.Table.from_pylist(_rows(name, n, **changes), case.SCHEMA)


def _retyped(name: str, text: pa.DataType, lists: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    """Two plain rows with every string and list of another Arrow type."""
    item = pa.struct([("id", text), ("text", text), ("score", pa.float32())])
    columns = {
        field.name: pa.array(
            [row[field.name] for row in _rows(name)], lists(item) if field.name == "chunks" else text
        )
        for field in case.SCHEMA
    }
    return pa.table(columns)


def writers() -> list[Any]:
    """The same two plain rows by other writers: nothing changes."""
    forms = {
        "large types": _retyped("large types", pa.large_string(), pa.large_list),
        "list views": _retyped("list views", STRING, pa.list_view),
        "fixed lists": _retyped("fixed lists", STRING, lambda item: pa.list_(item, 2)),
        "binary texts": _retyped("binary texts", pa.binary(), pa.list_),
        "dictionaries": _retyped("dictionaries", STRING, pa.list_),
    }
    texts = forms["dictionaries"]
    views = _table("views")  # Arrow cannot write nested ones of two rows
    for name in ("request_id", "question", "answer"):
        at = texts.column_names.index(name)
        texts = texts.set_column(at, name, texts.column(name).dictionary_encode())
        views = views.set_column(at, name, views.column(name).cast(pa.string_view()))
    forms |= {"dictionaries": texts, "views": views}
    out = [Case(name, case.writer(table), TWO) for name, table in forms.items()]
    options: dict[str, dict[str, Any]] = {
        "spark-like": {"flavor": "spark", "store_schema": False, "use_compliant_nested_type": False},
        "no arrow schema": {"store_schema": False},
        "version 1": {"version": "1.0", "use_dictionary": False},
        "pages of version 2": {"data_page_version": "2.0", "data_page_size": 16},
        "gzip": {"compression": "gzip"},
        "brotli": {"compression": "brotli"},
        "lz4": {"compression": "lz4"},
        "zstd": {"compression": "zstd"},
        "uncompressed": {"compression": "none"},
        "no statistics": {"write_statistics": False},
        "a group a row": {"row_group_size": 1},
        "checksums": {"write_page_checksum": True},
        "delta byte arrays": {"use_dictionary": False, "column_encoding": {"answer": "DELTA_BYTE_ARRAY", "request_id": "DELTA_LENGTH_BYTE_ARRAY"}},
        "byte streams": {"use_dictionary": False, "column_encoding": {"chunks.list.element.score": "BYTE_STREAM_SPLIT"}},
    }  # fmt: skip
    out += [Case(name, case.writer(_table(name), **given), TWO) for name, given in options.items()]
    frame = pl.DataFrame(_rows("polars"))
    category = pl.DataFrame(_rows("polars categories")).with_columns(
        pl.col("answer", "question").cast(pl.Categorical)
    )
    out += [
        Case("polars", frame.write_parquet, TWO),
        Case("polars by pyarrow", pl.DataFrame(_rows("polars by pyarrow")).write_parquet, TWO),
        Case("polars categories", category.write_parquet, TWO),
    ]
    index = _table("pandas-like").append_column("__index_level_0__", pa.array([5, 9]))
    index = index.replace_schema_metadata({b"pandas": b'{"index_columns": ["__index_level_0__"]}'})
    stamp = pa.array([1_795_824_000_000_000_000] * 2, pa.timestamp("ns"))
    int96 = _table("int96").append_column("ts", stamp)
    out += [
        Case("pandas-like", case.writer(index), TWO),
        Case("int96", case.writer(int96, use_deprecated_int96_timestamps=True, store_schema=False), TWO),
        case.with_column("json chunks", "chunks", [json.dumps(case.CHUNKS)] * 2, TWO),
        case.with_column("python chunks", "chunks", [repr(case.CHUNKS)] * 2, TWO),
        case.with_column(
            "map chunks",
            "chunks",
            pa.array([[(c["id"], c["text"]) for c in case.CHUNKS]] * 2, pa.map_(STRING, STRING)),
            TWO,
        ),
        case.with_column("texts alone", "chunks", [[c["text"] for c in case.CHUNKS]] * 2, TWO),
        case.with_column("ids as numbers", "request_id", pa.array([8_000_000_001, 8_000_000_002]), TWO),
        case.with_column(
            "an embedding", "vector", pa.array([[0.5] * 64] * 2, pa.list_(pa.float32(), 64)), TWO
        ),
        case.with_column("a column with an odd name", "a.b`c\x00\u202e", ["x"] * 2, TWO),
        case.with_column("no question", "question", None, TWO),
        case.with_column("all questions null", "question", pa.nulls(2), TWO),
        case.with_column("all answers null", "answer", pa.nulls(2), ("empty_answer",) * 2),
        case.with_column("all answers null strings", "answer", pa.nulls(2, STRING), ("empty_answer",) * 2),
        case.with_column("all chunks null", "chunks", pa.nulls(2), ("!chunks_null",) * 2),
        case.with_column("all ids null", "request_id", pa.nulls(2), ("!request_id_null",) * 2),
    ]
    return out


def optional_columns() -> list[Any]:
    """Nulls and nonsense in the columns that a log may have."""
    far = [
        -62_135_596_800_000_000,
        253_402_300_799_999_999,
    ]  # the first and the last microsecond of the calendar
    logprob = pa.list_(pa.struct([("token", STRING), ("logprob", pa.float32())]))
    cited = pa.list_(
        pa.struct(
            [("start", pa.int64()), ("end", pa.int64()), ("text", STRING), ("chunk_ids", pa.list_(STRING))]
        )
    )
    nothing = {"start": None, "end": None, "text": None, "chunk_ids": None}
    odd = {"start": -5, "end": 2**31 - 1, "text": "\x00", "chunk_ids": [None, "c1", "", "zz"]}
    huge = {"start": 2**40, "end": 2**41, "text": "x", "chunk_ids": ["c1"]}
    values: dict[str, tuple[str, Any, Any]] = {
        "samples null within": ("samples", [[None, "", " ", "x" * 100_000], None], TWO),
        "samples of refusals": ("samples", [["I don't have enough information to answer that."] * 3, []], TWO),
        "10,000 samples": ("samples", [["The refund window is 60 days."] * 10_000, None], TWO),
        "tokens null within": (
            "token_logprobs",
            pa.array([[None, {"token": None, "logprob": None}, {"token": "6", "logprob": float("nan")}], None], logprob),
            TWO,
        ),
        "tokens not finite": (
            "token_logprobs",
            pa.array([[{"token": "60", "logprob": float("-inf")}, {"token": "\ud800".encode("utf-8", "replace"), "logprob": float("inf")}], []], logprob),
            TWO,
        ),
        "no citations": ("citations", pa.array([[], None], cited), TWO),
        "citations null within": ("citations", pa.array([[None, nothing], []], cited), ("scored: supported, unsupported", GOOD)),
        "citations out of range": ("citations", pa.array([[odd], None], cited), ("scored: supported, unsupported, 2 fabricated", GOOD)),
        "citations past int32": ("citations", pa.array([[huge], None], cited), ("!bad_value", GOOD)),
        "times at the ends": ("ts", pa.array(far, pa.timestamp("us")), TWO),
        "times past microseconds": ("ts", pa.array([2**62, 0], pa.timestamp("ms")), ("!bad_value", GOOD)),
        "times as text": ("ts", ["2026-11-28T01:02:03+05:30", "2026-02-30"], (GOOD, "!bad_value")),
        "blank times": ("ts", ["", "  "], TWO),
        "answerable as text": ("answerable", ["true", "maybe"], (GOOD, "!bad_value")),
        "labels of nonsense": ("human_label", ["\x00", "SUPPORTED?"], TWO),
        "labels not a number": ("prompt_version", pa.array([float("nan"), 3.0]), TWO),
        "topics of 1 MB": ("topic", ["t" * 1_000_000, "\u202e"], TWO),
        "references empty": ("reference_answer", [[], [None, "x"]], TWO),
        "gold ids null within": ("gold_chunk_ids", [[None, "c1", "c1"], []], TWO),
        "origin of json": ("origin", ['{"system": "x", "trace_id": 7}', "{}"], TWO),
        "origin of a list": ("origin", ["[]", "null"], ("!bad_value", GOOD)),
        "scores beside too few": ("chunk_scores", [[0.5], [0.5, None]], ("!parallel_lists_differ", GOOD)),
        "flags of the log": ("flags", [["x"], None], TWO),
    }  # fmt: skip
    return [case.with_column(name, column, data, rows) for name, (column, data, rows) in values.items()]


def _bytes(data: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(data) and None


def _spoiled(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        pq.write_table(_table(name), path, compression="none")
        path.write_bytes(change(path.read_bytes()))

    return write


def _groups(*tables: pa.Table) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with pq.ParquetWriter(path, case.SCHEMA) as out:
            for table in tables:
                out.write_table(table)

    return write


def _flipped(path: Path) -> None:
    """A checksummed file of two groups whose first has one byte of an answer changed."""
    pq.write_table(_table("flipped", 2), path, row_group_size=1, write_page_checksum=True, compression="none", use_dictionary=False)  # fmt: skip
    meta = pq.read_metadata(path).row_group(0)
    chunk = next(meta.column(i) for i in range(meta.num_columns) if meta.column(i).path_in_schema == "answer")
    raw = bytearray(path.read_bytes())
    raw[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 0xFF
    path.write_bytes(bytes(raw))


def files() -> list[Any]:
    """Files that are no log, and logs of odd shape. A file that is refused costs nobody else anything."""
    empty = case.SCHEMA.empty_table()
    renamed = _table("renamed").rename_columns(["request_id", "question", "Answer", "chunks", "status"])
    twice = pa.Table.from_arrays(
        [*_table("twice").columns, _table("twice").column("answer")], [*case.SCHEMA.names, "answer"]
    )
    nulls = _table("huge", 5_000, request_id=None)
    same, other = case.row("repeated"), case.row("differing")
    repeats = pa.Table.from_pylist([same, same, other, {**other, "question": "?"}], case.SCHEMA)
    return [
        Case("zero bytes", _bytes(b""), error="not a readable Parquet file"),
        Case("four bytes", _bytes(b"PAR1"), error="not a readable Parquet file"),
        Case("magic alone", _bytes(b"PAR1\x00\x00\x00\x00PAR1"), error="not a readable Parquet file"),
        Case("footer too long", _bytes(b"PAR1" + b"\xff\xff\xff\x7fPAR1"), error="footer claims"),
        Case("encrypted footer", _bytes(b"PARE" + b"x" * 40 + b"PARE"), error="not in b'PAR1'"),
        Case("a text", _bytes(b"request_id,answer\n1,x\n"), error="not a readable Parquet file"),
        Case("cut", _spoiled("cut", lambda raw: raw[:-20]), error="not a readable Parquet file"),
        Case("garbled footer", _spoiled("garbled", lambda raw: raw[:-60] + b"\xff" * 52 + raw[-8:]), error="not a readable"),
        Case("rows without columns", case.writer(pa.table({"request_id": ["no-answer"]})), error="no column 'answer'"),
        Case("no chunks column", case.writer(_table("x").drop_columns(["chunks"])), error="no column 'chunks'"),
        Case("no ids column", case.writer(_table("x").drop_columns(["request_id"])), error="no column 'request_id'"),
        Case("a name in another case", case.writer(renamed), error="no column 'answer'"),
        Case("a column twice", case.writer(twice), error="occurs twice"),
        Case("answers are numbers", case.writer(_table("x").set_column(2, "answer", pa.array([1, 2]))), error="'answer' is int64"),
        Case("chunks without text", case.writer(_table("x").set_column(3, "chunks", pa.array([[{"id": "a"}]] * 2))), error="without a field 'text'"),
        Case("no rows", case.writer(empty)),
        Case("no row groups", _groups()),
        Case("empty groups between", _groups(empty, _table("between"), empty), TWO),
        Case("one huge group", case.writer(pa.concat_tables([nulls, _table("huge")]), row_group_size=1 << 20), ("!request_id_null",) * 5_000 + TWO),
        Case("a changed byte", _flipped, ("!unreadable_row_group", GOOD)),
        Case("repeats", case.writer(repeats), (GOOD, "!repeat_of_identical_row", "!repeated_request_id", "!repeated_request_id")),
        Case("repeat in another file", case.writer(pa.Table.from_pylist([same], case.SCHEMA)), ("!repeat_of_identical_row",)),
    ]  # fmt: skip


def cases() -> list[Any]:
    """Every case of this file."""
    return [*writers(), *optional_columns(), *files()]
