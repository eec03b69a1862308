"""One Parquet log: which of its columns is which of ours, and its row groups as batches of those alone.

Columns are resolved per file, so files of one day may differ. Only leaves that are mapped are read: an
embedding inside a chunk struct costs nothing. Whether a type can hold a column is asked before any row is
read. The module knows nothing of rows that are wrong, nor of shards.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from claimscore.jobs.columns import WrongKindError, dig, find, fit, is_listlike, is_text, leaves
from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import ConfigError, InputError
from claimscore.jobs.literals import PLAIN, Shape
from claimscore.jobs.lookalikes import advice
from claimscore.jobs.records import LOG

PARALLEL = {"chunk_ids": pa.list_(pa.string()), "chunk_scores": pa.list_(pa.float64())}
"""Lists beside `chunks`, item for item, for logs whose chunks are plain texts."""

# What chunk fields are called where `chunk.id`, `chunk.text`, `chunk.score` are not mapped; key and value are
# what a MAP of id to text is read as. A distance is not here: it is no score until somebody says so.
CHUNK_NAMES = {
    "chunk.id": ("id", "chunk_id", "doc_id", "document_id", "_id", "key"),
    "chunk.text": ("text", "content", "page_content", "chunk_text", "value"),
    "chunk.score": ("score", "relevance_score", "similarity"),
}
IMPORTED = b"claimscore.import"
"""Schema metadata of a log that `claimscore import` wrote: its `flags` are ours, and are kept."""
_TEXTS = ("question", "answer", "reference_answer")
_COLUMNS = (*(name for name in LOG.names if name != "flags"), *PARALLEL)
_MAPPABLE = (*_COLUMNS, *CHUNK_NAMES)
_SHAPES = {
    "token_logprobs": Shape(needs=("token", "logprob")),
    "citations": Shape(needs=("chunk_ids",), bare="chunk_ids"),
}
_EXPECTED = {
    "string": "a string",
    "list<item: string>": "list<string> or a JSON string",
    "request_id": "a string or an integer",
    "chunks": "list<struct>, list<string> or a JSON string",
    "token_logprobs": "list<struct<token, logprob>> or a JSON string",
    "citations": "list<struct<start, end, text, chunk_ids>>, list<string> or a JSON string",
    "origin": "a struct, a MAP or a JSON string",
    "ts": "a timestamp, a date or an ISO 8601 string",
    "answerable": "a boolean",
    "reference_answer": "a string or list<string>",
    "chunk_scores": "list<double> or a JSON string",
}
_BATCH_BYTES = 128 << 20
_BATCH_ROWS = 4_096


class UnreadableError(Exception):
    """A row group whose bytes are there and cannot be decoded."""


class StorageError(InputError):
    """Bytes that could not be fetched: nothing is known of what is in them."""


@dataclass(frozen=True, slots=True)
class Column:
    """Where one of our columns is in the file, and what it has to become."""

    name: str
    steps: tuple[str, ...]
    target: pa.DataType
    shape: Shape


class LogFile:
    """An open Parquet file with its columns resolved.

    Attributes:
        columns: our name -> Column, for those that the file has; `request_id` is absent where ids are made
            from content.
        absent: our names that `[read] columns` of the deployment maps and the file lacks: they are read as null. Fields of
            chunks too, where the type of the chunks says so: what a JSON string holds is not known before it is read.

    Raises:
        InputError: no Parquet, needed columns are missing (all are named), or a column is of a type that cannot hold it.
        ConfigError: `[read] columns` names a column that does not exist.
    """

    def __init__(self, fs: pyarrow.fs.FileSystem, file: str, config: ReadConfig) -> None:
        self.file = file
        try:
            self._source = fs.open_input_file(file)
            self._parquet = pq.ParquetFile(
                self._source, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            schema = self._parquet.schema_arrow
        except (OSError, pa.ArrowException) as err:
            raise InputError(
                f"{file}: cannot be read: {err}; expected a Parquet file; write it again or take it out of the log"
            ) from err
        self.columns = find_columns(file, schema, config)
        asked = [name for name in config.mapped if config.columns.get(name)]
        self.absent = tuple(name for name in asked if name in _COLUMNS and name not in self.columns)
        # Lists that stand in for the fields.
        beside = {"chunk.id": "chunk_ids", "chunk.score": "chunk_scores"}
        fields = [name for name in asked if name in CHUNK_NAMES and beside.get(name) not in self.columns]
        self.absent += _absent_of_chunks(schema, self.columns["chunks"], fields, config)
        self._leaves = list(leaves(schema))  # in the order of the Parquet columns

    def n_rows(self, group: int) -> int:
        """Rows of a row group by the footer.

        Raises:
            InputError: there is no such row group: the file is not the one that was planned.
        """
        if group >= self._parquet.num_row_groups:
            raise InputError(
                f"{self.file}: has {self._parquet.num_row_groups} row groups, expected number {group}; "
                "the file changed during the run: run again"
            )
        return int(self._parquet.metadata.row_group(group).num_rows)

    def batches(self, group: int, columns: Mapping[str, Column]) -> Iterator[dict[str, pa.Array]]:
        """The named columns of a row group, a batch at a time: our name -> array as it was logged.

        Batches are sized by bytes: Arrow cannot build a nested column whose text passes 2 GiB (apache/arrow
        issue 32723), so a batch that does is tried again row by row. What fails otherwise is tried once more.

        Raises:
            UnreadableError: the row group cannot be decoded; batches given before are void.
            StorageError: its bytes cannot be fetched.
        """
        meta = self._parquet.metadata.row_group(group)
        size = min(_BATCH_ROWS, max(1, _BATCH_BYTES * meta.num_rows // max(1, meta.total_byte_size)))
        n_given, is_retry = 0, False
        while n_given < meta.num_rows:
            try:
                for batch in self._decode(group, columns, size, skip=n_given):
                    n_given += batch.num_rows
                    yield {name: dig(batch.column(c.steps[0]), c.steps[1:]) for name, c in columns.items()}
                break
            except pa.ArrowMemoryError:
                raise  # the machine's fault, not the file's
            except (OSError, pa.ArrowException) as err:
                self._fetch(group)
                if is_retry:
                    raise UnreadableError(str(err)) from err
                is_retry = True
                size = 1 if isinstance(err, pa.ArrowNotImplementedError) else size
        if n_given != meta.num_rows:
            raise UnreadableError(f"{n_given} rows, expected {meta.num_rows} by the footer")

    def _decode(
        self, group: int, columns: Mapping[str, Column], size: int, skip: int
    ) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted(columns.values())
        for batch in self._parquet.iter_batches(size, row_groups=[group], columns=wanted):
            if batch.num_rows > skip:
                yield batch.slice(skip)
            skip = max(0, skip - batch.num_rows)

    def _wanted(self, columns: Iterable[Column]) -> list[str]:
        """The Parquet columns to read: of a struct, only the fields that are wanted of it."""
        schema = self._parquet.schema_arrow
        prefixes: set[tuple[str, ...]] = set()
        for column in columns:
            steps, kind = _readable(schema, column.steps)
            kind = _item_type(kind)
            inner = [
                _readable(kind, found)[0]
                for item in (_item_type(column.target) if pa.types.is_struct(kind) else ())
                for name in column.shape.names.get(item.name, (item.name,))
                if (found := find(kind, name))
            ]
            prefixes |= {(*steps, *more) for more in inner or [()]}
        if len(self._leaves) != len(self._parquet.schema):  # a type that hides its leaves: whole columns then
            return sorted({prefix[0] for prefix in prefixes})
        return [
            self._parquet.schema.column(index).path
            for index, leaf in enumerate(self._leaves)
            if any(leaf[: len(prefix)] == prefix for prefix in prefixes)
        ]

    def _fetch(self, group: int) -> None:
        """Fetch the row group's bytes plainly, so that a storage fault never passes for a corrupt file."""
        meta = self._parquet.metadata.row_group(group)
        for index in range(meta.num_columns):
            chunk = meta.column(index)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            try:
                self._source.read_at(min(chunk.total_compressed_size, self._source.size()), start)
            except (ValueError, OverflowError):
                return  # offsets that make no sense: the footer is at fault
            except OSError as err:
                raise StorageError(
                    f"{self.file}: row group {group} cannot be fetched: {err}; run again"
                ) from err


def find_columns(file: str, schema: pa.Schema, config: ReadConfig) -> dict[str, Column]:
    """Our name -> Column for every column of ours that `schema` has; the first candidate that exists.

    Raises:
        InputError, ConfigError: as `LogFile`.
    """
    unknown = [name for name in config.columns if name not in _MAPPABLE]
    if unknown:
        close = difflib.get_close_matches(unknown[0], _MAPPABLE, n=1) or _MAPPABLE
        raise ConfigError(f"[read.columns] has no column {unknown[0]!r}; known: {', '.join(close)}")
    columns, missing = {}, []
    for name in _COLUMNS:
        candidates = config.columns.get(name, (name,))
        found = [(c, steps) for c in candidates if (steps := find(schema, c))]
        if found:
            columns[name] = _column(file, name, *found[0], schema, config)
        elif name in ("answer", "chunks") or (name == "request_id" and candidates and not config.preset):
            missing.append(f"{' or '.join(map(repr, candidates))} for {name!r}")
    if missing:
        fits = advice(schema.names, beside=config.preset, is_export=False)
        mapped = f"map the column{'s' * (len(missing) > 1)} under [read.columns]"
        raise InputError(
            f"{file}: no column {', none '.join(missing)}, found {', '.join(map(repr, schema.names))}; "
            f"{f'{fits}, or {mapped}' if fits else mapped}"
        )
    if IMPORTED in (schema.metadata or {}) and "flags" in schema.names:
        columns["flags"] = Column("flags", ("flags",), LOG.field("flags").type, PLAIN)
    return columns


def _column(
    file: str, name: str, found: str, steps: tuple[str, ...], schema: pa.Schema, config: ReadConfig
) -> Column:
    if schema.names.count(steps[0]) > 1:
        raise InputError(f"{file}: column {steps[0]!r} occurs twice, expected once; write the log again")
    outer = schema.field(steps[0]).type
    empty = dig(pa.schema([("", outer)]).empty_table().column(0).combine_chunks(), steps[1:])
    target = PARALLEL[name] if name in PARALLEL else LOG.field(name).type
    if name == "reference_answer" and is_listlike(empty.type):
        target = pa.list_(target)
    chunk = {key[6:]: config.columns.get(key, default) for key, default in CHUNK_NAMES.items()}
    shape = Shape(chunk, needs=("text",), bare="text") if name == "chunks" else _SHAPES.get(name, PLAIN)
    try:
        _check_scalar(name, empty.type)
        fit(empty, target, shape)
    except (WrongKindError, pa.ArrowNotImplementedError, pa.ArrowTypeError) as err:
        lacks = f" {err}" if isinstance(err, WrongKindError) and str(err) else ""
        remedy = "map the column under [read.columns]"
        if lacks and name == "chunks":
            remedy = 'name the field under [read.columns], e.g. "chunk.text" = "body"'
        raise InputError(
            f"{file}: column {found!r} is {str(empty.type)[:200]}{lacks}, expected "
            f"{_EXPECTED.get(name) or _EXPECTED[str(target)]}; {remedy}"
        ) from err
    return Column(name, steps, target, shape)


def _absent_of_chunks(
    schema: pa.Schema, chunks: Column, fields: Iterable[str], config: ReadConfig
) -> tuple[str, ...]:
    """Those of `fields` (names of CHUNK_NAMES) that no chunk of a file of this schema can have."""
    steps, kind = _readable(schema, chunks.steps)
    if steps != chunks.steps or not (is_listlike(kind) or pa.types.is_map(kind)):
        return ()  # inside a MAP, or JSON: the type does not tell
    if pa.types.is_map(kind):
        kind = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
    item = _item_type(kind)
    inner = item if pa.types.is_struct(item) else ()
    return tuple(name for name in fields if not any(find(inner, c) for c in config.columns[name]))


def _check_scalar(name: str, kind: pa.DataType) -> None:
    """Texts are texts and ids are ids; only the labels may be any number."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_fine = is_text(kind) or pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType)
    if name == "request_id" and not (is_fine or pa.types.is_integer(kind)):
        raise WrongKindError
    if name in _TEXTS and not (is_fine or (name == "reference_answer" and is_listlike(kind))):
        raise WrongKindError


def _item_type(kind: pa.DataType) -> pa.DataType:
    while is_listlike(kind):
        kind = kind.value_type
    return kind


def _readable(fields: pa.Schema | pa.DataType, steps: tuple[str, ...]) -> tuple[tuple[str, ...], pa.DataType]:
    """`steps` up to the first MAP, which is read whole, and the type there."""
    for n, step in enumerate(steps, 1):
        fields = fields.field(step).type
        if pa.types.is_map(fields):
            return steps[:n], fields
    return steps, fields
