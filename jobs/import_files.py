"""The rows of an export: a file or a folder of Parquet, JSON lines, JSON or CSV, on a disk or an object store.

A row that cannot be read is a problem with its number, and the next one is read; a file that cannot be read at all is an
InputError, since answers without the spans in it would look ungrounded. Only columns that the tool's importer
looks at are read from Parquet. The module knows no tool and takes nothing in a row for granted.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from claimscore.jobs.errors import InputError
from claimscore.jobs.import_spans import Problem
from claimscore.jobs.logfile import IMPORTED

_FORMS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv")
_PACKED = (".gz", ".zst", ".bz2")
_BATCH_ROWS = 512
_BLOCK_BYTES = 1 << 20
_MAX_CELL_CHARS = 1 << 30


@dataclass(slots=True)
class Export:
    """One file of an export, and what was seen of it while its rows were given."""

    fs: pyarrow.fs.FileSystem
    path: str
    label: str
    """Its place within what was asked for."""
    columns: set[str] = field(default_factory=set)
    n_rows: int = 0


def list_exports(src: str) -> tuple[list[Export], list[str]]:
    """The files to import, sorted, and the labels of those of another kind that lie among them.

    Names that begin with `_` or `.` are not looked at, as in a folder of logs.

    Raises:
        InputError: nothing is there, nothing of a known kind is, or the storage does not answer.
    """
    try:
        if "://" in src:
            fs, base = pyarrow.fs.FileSystem.from_uri(src)
        else:
            fs, base = pyarrow.fs.LocalFileSystem(), str(Path(src).expanduser().absolute())
        info = fs.get_file_info(base)
        if info.type == pyarrow.fs.FileType.File:
            paths = [base]
        else:
            selector = pyarrow.fs.FileSelector(base, recursive=True)
            paths = sorted(i.path for i in fs.get_file_info(selector) if i.type == pyarrow.fs.FileType.File)
    except (OSError, ValueError, pa.ArrowException) as err:
        raise InputError(f"{src}: cannot be listed: {err}; give a file or folder of an export") from err
    exports, others = [], []
    for path in paths:
        label = path.rsplit("/", 1)[-1] if path == base else path[len(base) :].strip("/")
        if any(part.startswith(("_", ".")) for part in label.split("/")) and path != base:
            continue
        if _form(path) is None:
            others.append(label)
        else:
            exports.append(Export(fs, path, label))
    if not exports:
        raise InputError(
            f"{src}: no file of a known kind among {len(others)}, expected {', '.join(_FORMS)}, "
            "as they are or packed (.gz, .zst); give the folder of the export"
        )
    return exports, others


def read_rows(
    export: Export, wants: Callable[[str], bool], unwrap: Callable[[Any], Iterator[Any]]
) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """Every row of a file with its number from 0; several rows may come from one line or document.

    Raises:
        InputError: the file cannot be read.
    """
    readers = {".parquet": _parquet, ".csv": _csv, ".json": _json}
    read = readers.get(_form(export.path) or "", _lines)
    n_bad, problem = 0, None
    try:
        for number, value in read(export, wants):
            rows = [value] if isinstance(value, tuple) else unwrap(value)
            for found in rows:
                export.n_rows += 1
                if isinstance(found, dict):
                    export.columns.update(found)
                    yield number, found
                    continue
                what = f"found {type(found).__name__}, expected an object"
                problem = found if isinstance(found, tuple) else ("not_a_row", what)
                n_bad += 1
                yield number, problem
    except (OSError, pa.ArrowException, csv.Error, EOFError) as err:
        raise InputError(
            f"{export.label}: cannot be read: {err}; export it again or take it out of the folder"
        ) from err
    if problem is not None and n_bad == export.n_rows:
        raise InputError(
            f"{export.label}: none of its {n_bad} rows can be read: {problem[0]}: {problem[1]}; export it again"
        )


def _form(path: str) -> str | None:
    name = path.lower()
    for suffix in _PACKED:
        name = name.removesuffix(suffix)
    return next((form for form in _FORMS if name.endswith(form)), None)


def _parquet(export: Export, wants: Callable[[str], bool]) -> Iterator[tuple[int, Any]]:
    with export.fs.open_input_file(export.path) as source:
        parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        if IMPORTED in (parquet.schema_arrow.metadata or {}):
            raise InputError(
                f"{export.label}: is a log that an import wrote, expected an export; keep OUT outside of SRC"
            )
        export.columns.update(parquet.schema_arrow.names)
        wanted = [name for name in parquet.schema_arrow.names if wants(name)]
        number = 0
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=_leaves(parquet, wanted)):
            for row in _plain_rows(batch.select([n for n in batch.schema.names if n in wanted])):
                yield number, row
                number += 1


def _leaves(parquet: pq.ParquetFile, wanted: list[str]) -> list[str]:
    """The Parquet paths of the wanted columns: a name with dots in it is else taken for a path."""
    paths = [parquet.schema.column(k).path for k in range(len(parquet.schema))]
    return [path for path in paths if any(path == name or path.startswith(f"{name}.") for name in wanted)]


def _plain_rows(batch: pa.RecordBatch) -> Iterator[Any]:
    fields = [pa.field(f.name, _in_micros(f.type)) for f in batch.schema]
    batch = batch.cast(pa.schema(fields), safe=False)
    has_bytes = "binary" in str(batch.schema)
    try:
        rows = batch.to_pylist(maps_as_pydicts="lossy")
        yield from map(_decoded, rows) if has_bytes else rows
    except (UnicodeDecodeError, ValueError) as err:
        if batch.num_rows > 1:
            for k in range(batch.num_rows):
                yield from _plain_rows(batch.slice(k, 1))
        else:
            yield ("invalid_utf8" if isinstance(err, UnicodeDecodeError) else "bad_value"), str(err)[:200]


def _in_micros(kind: pa.DataType) -> pa.DataType:
    """The type with microseconds for nanoseconds, which Python's times do not hold."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_list(kind):
        return pa.list_(_in_micros(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _in_micros(f.type)) for f in kind])
    return kind


def _decoded(value: Any) -> Any:
    """ClickHouse writes strings as bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_decoded(key): _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value


def _json(export: Export, _wants: Callable[[str], bool]) -> Iterator[tuple[int, Any]]:
    """A document; where the file is none, its lines: collectors call those .json too."""
    with export.fs.open_input_stream(export.path) as stream:
        value = _loads(stream.read())
    if isinstance(value, tuple):
        yield from _lines(export, _wants)
    elif isinstance(value, list):
        yield from enumerate(value)
    else:
        yield 0, value


def _lines(export: Export, _wants: Callable[[str], bool]) -> Iterator[tuple[int, Any]]:
    with export.fs.open_input_stream(export.path) as stream:
        number, rest = 0, b""
        while block := stream.read(_BLOCK_BYTES):
            *whole, rest_of_block = block.split(b"\n")
            for line in whole:
                if (rest + line).strip():
                    yield number, _loads(rest + line)
                number, rest = number + 1, b""
            rest += rest_of_block
        if rest.strip():
            yield number, _loads(rest)


def _loads(text: bytes) -> Any:
    try:
        return json.loads(text)
    except UnicodeDecodeError as err:
        return "invalid_utf8", str(err)[:200]
    except (ValueError, RecursionError) as err:
        return "unparsable_json", str(err)[:200]


def _csv(export: Export, _wants: Callable[[str], bool]) -> Iterator[tuple[int, Any]]:
    """Cells that are empty are null: CSV knows no other way to say it."""
    csv.field_size_limit(
        _MAX_CELL_CHARS
    )  # its default is 131,072 characters, and an answer's chunks are longer
    with export.fs.open_input_stream(export.path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        for number, cells in enumerate(csv.DictReader(text)):
            row = {name: cell or None for name, cell in cells.items() if isinstance(name, str)}
            if None in cells or len(row) != len(cells):
                yield number, ("ragged_row", "a row has more cells than the header")
            elif any(cell and not _is_utf8(cell) for cell in row.values()):
                yield number, ("invalid_utf8", "a cell is no UTF-8")
            else:
                yield number, row


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\udc80" <= c <= "\udcff" for c in text)
