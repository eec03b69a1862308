"""Log files to shards: what there is to do, known by content, from Parquet footers alone.

A file's identity is its footer (schema, statistics, offsets and sizes of every column chunk) and its
length. Path, time of change and position in the list are not in it, so a renamed, touched or copied log makes
nothing stale. The price: a log rewritten in place with values of equal compressed length between the
same minima and maxima has the same footer and passes for the old one; give a corrected log other bytes (any
metadata will do) or remove its manifests. The module reads no row and knows no column.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from claimscore.jobs.errors import InputError, one_line
from claimscore.jobs.records import Shard

_TAIL_BYTES = 64 * 1024  # one request on an object store holds the footers of most logs whole
_READERS = 16  # a footer is latency, not bandwidth
_END_BYTES = 8  # footer length as uint32, then the magic


@dataclass(frozen=True, slots=True)
class _Footer:
    """What the end of one log file says."""

    digest: bytes
    group_rows: tuple[int, ...]
    stamp: str = ""


def plan_shards(
    fs: pyarrow.fs.FileSystem, files: Sequence[str], shard_rows: int
) -> tuple[list[Shard], list[tuple[str, str]]]:
    """Cut log files into shards: consecutive row groups until there are `shard_rows` rows or more.

    Row groups are never cut; a file's last shard may be smaller. A file without rows, and row groups
    without rows at a file's end, give no shard. Files with equal content get distinct ids: the first in
    the list has ordinal 0, its first copy 1, and so on. Reads the last bytes of each file, several at once.

    Args:
        fs: the file system of the log.
        files: paths within it; the shards come in this order.
        shard_rows: rows of one shard, at least 1.

    Returns:
        The shards, and (file, one-line error) for each file that is no readable Parquet. No files give
        two empty lists. Nothing is raised for a bad file: the others are still good.
    """
    assert shard_rows >= 1, shard_rows
    with ThreadPoolExecutor(_READERS) as pool:
        footers = list(pool.map(lambda file: _try_footer(fs, file), files))
    shards: list[Shard] = []
    errors: list[tuple[str, str]] = []
    copies: Counter[bytes] = Counter()
    for file, footer in zip(files, footers, strict=True):
        if isinstance(footer, str):
            errors.append((file, footer))
            continue
        shards.extend(_cut(file, footer, copies[footer.digest], shard_rows))
        copies[footer.digest] += 1
    return shards, errors


def stamp_of(fs: pyarrow.fs.FileSystem, file: str) -> str:
    """`Shard.stamp` of a file as it is now; "" where it is no readable Parquet (any more).

    The one use of a time of change: two stamps that differ say that a file was written while it was read, even
    where it has the same bytes again. It is in no shard id.
    """
    footer = _try_footer(fs, file)
    return "" if isinstance(footer, str) else footer.stamp


def _cut(file: str, footer: _Footer, ordinal: int, shard_rows: int) -> Iterator[Shard]:
    first_row, n_rows, groups = 0, 0, list[int]()
    for index, rows in enumerate(footer.group_rows):
        groups.append(index)
        n_rows += rows
        is_last = index == len(footer.group_rows) - 1
        if n_rows >= shard_rows or (is_last and n_rows):
            shard_id = hashlib.sha256(footer.digest + f"{ordinal}:{groups}".encode()).hexdigest()[:16]
            yield Shard(shard_id, file, tuple(groups), first_row, n_rows, footer.stamp)
            first_row, n_rows, groups = first_row + n_rows, 0, []


def _try_footer(fs: pyarrow.fs.FileSystem, file: str) -> _Footer | str:
    """The footer, or one line that says why there is none."""
    try:
        return _read_footer(fs, file)
    except (OSError, ValueError, NotImplementedError, pa.ArrowException, InputError) as err:
        return one_line(
            f"{file}: not a readable Parquet file: {err}, expected a whole one; "
            "write it again or take it out of the logs"
        )


def _read_footer(fs: pyarrow.fs.FileSystem, file: str) -> _Footer:
    changed = fs.get_file_info(file).mtime_ns
    with fs.open_input_file(file) as source:
        size = source.size()
        tail = source.read_at(min(size, _TAIL_BYTES), max(0, size - _TAIL_BYTES))
        if tail[-4:] != b"PAR1":
            lines = source.read_at(1, 0) == b"{"
            how = " (JSON lines? polars.read_ndjson(FILE).write_parquet(FILE) makes one)" if lines else ""
            raise InputError(f"its {size} bytes end in {tail[-4:]!r}, not in b'PAR1'{how}")
        n_bytes = int.from_bytes(tail[-_END_BYTES:-4], "little") + _END_BYTES
        if n_bytes > size:
            raise InputError(f"its footer claims {n_bytes} bytes of {size}")
        if n_bytes > len(tail):
            tail = source.read_at(n_bytes, size - n_bytes)
    tail = tail[-n_bytes:]
    metadata = pq.read_metadata(pa.BufferReader(tail))
    group_rows = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    if min(group_rows, default=0) < 0 or sum(group_rows) != metadata.num_rows:
        raise InputError(f"its row groups hold {group_rows!r} rows, the file {metadata.num_rows}")
    digest = hashlib.sha256(f"{size}:".encode() + tail).digest()
    return _Footer(digest, group_rows, f"{changed}:{digest.hex()}")
