"""The log of a day: its files, the rows of a shard that can be used, and those that cannot, with the reason.

A row is an answer or it is quarantined; nothing is dropped. A file that cannot be used at all is an InputError,
a row group that cannot be decoded is quarantined row by row, and a storage fault is neither: it raises, and the
shard is tried again. How columns are found is `logfile.py`, what a row has to meet is `rows.py`. Rules for
ids, scores, lists in strings and cut texts follow what tracing and evaluation tools write.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs

from claimscore.jobs.columns import fit_rows
from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import InputError, reason_of
from claimscore.jobs.logfile import LogFile, StorageError, UnreadableError
from claimscore.jobs.records import LOG, QUARANTINE, Shard, conform
from claimscore.jobs.rows import Problem, fit_batch
from claimscore.jobs.shards import stamp_of

_WILD = "*?["
_READERS = 8  # ids of several shards at once: on an object store the wait is latency


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group after the rules: good rows with their row of the file, and quarantined ones."""

    log: pa.Table
    rows: np.ndarray
    quarantined: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Survey:
    """What the columns of a day's files say before any row is judged."""

    repeats: dict[str, dict[int, Problem]]
    """shard id -> row of the file -> (reason, detail): rows that repeat a request_id."""
    faults: dict[str, str]
    """File -> one line: it lacks a needed column, or has one of a type that cannot hold it. Its shards will fail."""
    absent: dict[str, int]
    """Column, or field of chunks, that the deployment maps -> rows of the files that lack it."""


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of a shard, and what its file lacks."""

    table: pa.Table
    fault: str = ""
    absent: tuple[str, ...] = ()


def list_files(logs: str, date: str) -> tuple[pyarrow.fs.FileSystem, list[str]]:
    """The log files of a day, sorted, and the file system they are in.

    A folder stands for every *.parquet under it, at any depth, but those whose name or folder begins with `_` or
    `.`; a glob for the files that it matches, `**` for any folders. A path that exists is never taken for a glob.

    Args:
        logs: a file, folder or glob, local or a URI such as s3://bucket/prefix; `{date}` becomes `date`.
        date: the day, YYYY-MM-DD.

    Raises:
        InputError: there are none, or the storage does not answer.
    """
    where = logs.replace("{date}", date)
    try:
        fs, base, pattern = _open_root(where)
        info = fs.get_file_info(base)
        if info.type == pyarrow.fs.FileType.File and not pattern:
            return fs, [base]
        selector = pyarrow.fs.FileSelector(base, recursive=True, allow_not_found=True)
        found = [i.path for i in fs.get_file_info(selector) if i.type == pyarrow.fs.FileType.File]
    except (OSError, pa.ArrowException) as err:
        raise InputError(f"{where}: cannot be listed: {reason_of(err)}; check the path") from err
    inside = {path: path[len(base) :].strip("/").split("/") for path in found}
    files = sorted(path for path, parts in inside.items() if _is_log(parts, pattern))
    if not files:
        raise InputError(
            f"{where}: no log file, expected a Parquet file, a folder of *.parquet or a glob; "
            f"check {'[read] logs and the date' if '{date}' in logs else 'the path'}"
        )
    return fs, files


def read_shard(
    fs: pyarrow.fs.FileSystem, shard: Shard, config: ReadConfig, repeats: Mapping[int, Problem]
) -> tuple[pa.Table, pa.Table]:
    """The rows of a shard as the LOG table, and the QUARANTINE table of the others, both in order of row.

    Args:
        fs: the file system of the log.
        shard: from `plan_shards`. A shard without rows gives two empty tables.
        config: the mapping of columns and the limits.
        repeats: row of the file -> (reason, detail), from `find_repeats`. A row that is wrong in itself
            keeps its own reason.

    Raises:
        InputError: the file is no Parquet, lacks a needed column, has one of an impossible type, changed
            since it was planned, or its storage fails.
        ConfigError: `[read] columns` maps a column that we do not have.
    """
    log = LogFile(fs, shard.file, config)
    tables, quarantined = [LOG.empty_table()], []
    for group, first in _groups(log, shard):
        part = _read_group(log, group, first, config)
        quarantined += part.quarantined
        condemned = np.isin(part.rows, np.fromiter(repeats, dtype=np.int64, count=len(repeats)))
        tables.append(part.log.filter(pa.array(~condemned)))
        for index in np.flatnonzero(condemned).tolist():
            row = int(part.rows[index])
            request_id = part.log["request_id"][index].as_py()
            quarantined.append(_record(log, group, row, request_id, repeats[row]))
    if shard.stamp and stamp_of(fs, shard.file) != shard.stamp:
        # Also where the bytes are the same again: rows that could not be read meanwhile are no bad rows.
        raise InputError(
            f"{shard.file}: was written while it was read, expected the file that was planned; run again"
        )
    table = conform(pa.concat_tables(tables), LOG, where=shard.file)
    quarantine = pa.Table.from_pylist(sorted(quarantined, key=lambda r: r["row"]), schema=QUARANTINE)
    if table.num_rows + quarantine.num_rows != shard.n_rows:
        raise InputError(
            f"{shard.file}: has {table.num_rows + quarantine.num_rows} rows in the row groups of shard "
            f"{shard.shard_id}, expected {shard.n_rows}; the file changed during the run: run again"
        )
    return table, quarantine


def find_repeats(
    fs: pyarrow.fs.FileSystem, shards: Sequence[Shard], config: ReadConfig
) -> dict[str, dict[int, Problem]]:
    """`survey(...).repeats`."""
    return survey(fs, shards, config).repeats


def survey(fs: pyarrow.fs.FileSystem, shards: Sequence[Shard], config: ReadConfig) -> Survey:
    """The columns that a day's files lack, and its rows that repeat a request_id.

    Of identical rows all but the first are repeats, of differing rows all.

    Reads the id column, and whole rows only where an id occurs more than once; a log without ids is read once
    more, because its ids are made from content. First is by file, then row. Rows and files that cannot be read
    are no repeats of anything: `read_shard` reports them.

    Raises:
        InputError: the storage fails in mid-file; a repeat might be missed.
        ConfigError: as `read_shard`.

    Returns:
        For every shard its repeats; their reasons are `repeat_of_identical_row` and `repeated_request_id`.
    """
    repeats: dict[str, dict[int, Problem]] = {shard.shard_id: {} for shard in shards}
    with ThreadPoolExecutor(_READERS) as pool:
        found = list(pool.map(lambda i: _ids(fs, shards[i], i, config), range(len(shards))))
    ids = pa.concat_tables([_no_ids(), *(part.table for part in found)])
    counts = pc.value_counts(ids["id"])
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    suspects = ids.filter(pc.is_in(ids["id"], value_set=repeated))
    claims: dict[str, list[tuple[str, int, int, bytes]]] = defaultdict(list)
    for index in pc.unique(suspects["shard"]).to_pylist():
        wanted = suspects.filter(pc.equal(suspects["shard"], index))
        for request_id, row, digest in _digests(fs, shards[index], wanted, config):
            claims[request_id].append((shards[index].file, row, index, digest))
    for rows in claims.values():
        first, *later = sorted(rows)
        is_same = len({digest for *_, digest in rows}) == 1
        where = f"first at row {first[1]} of {first[0]}"
        differ = f"{len(rows)} rows that differ, {where}"
        for _, row, index, _ in later if is_same else rows:
            problem = ("repeat_of_identical_row", where) if is_same else ("repeated_request_id", differ)
            repeats[shards[index].shard_id][row] = problem
    absent: Counter[str] = Counter()
    for shard, part in zip(shards, found, strict=True):
        absent.update(dict.fromkeys(part.absent, shard.n_rows))
    faults = {shard.file: part.fault for shard, part in zip(shards, found, strict=True) if part.fault}
    return Survey(repeats, faults, dict(sorted(absent.items())))


def _open_root(where: str) -> tuple[pyarrow.fs.FileSystem, str, list[str]]:
    """The file system, the path without wildcards, and the wildcard parts after it."""
    if "://" not in where:
        fs: pyarrow.fs.FileSystem = pyarrow.fs.LocalFileSystem()
        parts = Path(where).expanduser().absolute().parts
        n = next((i for i, part in enumerate(parts) if any(c in part for c in _WILD)), len(parts))
        if Path(*parts).exists():
            n = len(parts)
        return fs, str(Path(*parts[:n])), list(parts[n:])
    uri, _, query = where.partition("?")  # s3://bucket/logs/*.parquet?endpoint_override=...
    parts = tuple(uri.split("/"))
    n = next((i for i, part in enumerate(parts) if any(c in part for c in _WILD)), len(parts))
    fs, base = pyarrow.fs.FileSystem.from_uri("/".join(parts[:n]) + (f"?{query}" if query else ""))
    return fs, base, list(parts[n:])


def _is_log(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if pattern:
        return _matches(parts, pattern)
    return parts[-1].endswith(".parquet") and not any(part.startswith(("_", ".")) for part in parts)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern or not parts:
        return not parts and all(step == "**" for step in pattern)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _groups(log: LogFile, shard: Shard) -> Iterator[tuple[int, int]]:
    """Each row group with the row of the file that it begins with."""
    first = shard.first_row
    for group in shard.row_groups:
        n_rows = log.n_rows(group)
        yield group, first
        first += n_rows


def _read_group(log: LogFile, group: int, first: int, config: ReadConfig) -> _Group:
    tables, rows, quarantined, at = [LOG.empty_table()], [np.empty(0, dtype=np.int64)], [], first
    try:
        for arrays in log.batches(group, log.columns):
            batch = fit_batch(arrays, log.columns, config.max_row_bytes, config.max_answer_bytes)
            tables.append(pa.Table.from_batches([batch.good]))
            rows.append(batch.rows + at)
            quarantined += [
                _record(log, group, at + row, batch.request_ids[row], problem)
                for row, problem in batch.bad.items()
            ]
            at += len(batch.request_ids)
    except UnreadableError as err:
        lost = range(first, first + log.n_rows(group))
        problem = "unreadable_row_group", str(err)
        return _Group(tables[0], rows[0], [_record(log, group, row, None, problem) for row in lost])
    return _Group(pa.concat_tables(tables), np.concatenate(rows), quarantined)


def _record(log: LogFile, group: int, row: int, request_id: str | None, problem: Problem) -> dict[str, Any]:
    reason, detail = problem
    where = {"file": log.file, "row_group": group, "row": row, "request_id": request_id}
    return {**where, "reason": reason, "detail": detail[:500]}


def _no_ids() -> pa.Table:
    return pa.schema([("id", pa.string()), ("row", pa.int64()), ("shard", pa.int32())]).empty_table()


def _ids(fs: pyarrow.fs.FileSystem, shard: Shard, index: int, config: ReadConfig) -> _Ids:
    """The ids of a shard that are there, each with its row of the file."""
    tables = [_no_ids()]
    try:
        log = LogFile(fs, shard.file, config)
    except InputError as err:
        return _Ids(_no_ids(), fault=str(err))
    try:
        for group, first in _groups(log, shard):
            ids, rows = _group_ids(log, group, first, config)
            part = pa.table({"id": ids, "row": rows, "shard": np.full(len(rows), index, dtype=np.int32)})
            tables.append(part.filter(pc.is_valid(part["id"])))
    except StorageError:
        raise
    except InputError:
        return _Ids(_no_ids(), absent=log.absent)
    return _Ids(pa.concat_tables(tables), absent=log.absent)


def _group_ids(
    log: LogFile, group: int, first: int, config: ReadConfig
) -> tuple[pa.ChunkedArray, np.ndarray]:
    if "request_id" not in log.columns:
        part = _read_group(log, group, first, config)
        return part.log["request_id"], part.rows
    column = log.columns["request_id"]
    try:
        batches = [
            fit_rows(b["request_id"], column.target)[0] for b in log.batches(group, {"request_id": column})
        ]
    except UnreadableError:
        batches = []
    ids = pa.chunked_array(batches, pa.string())
    return ids, np.arange(first, first + len(ids))


def _digests(
    fs: pyarrow.fs.FileSystem, shard: Shard, wanted: pa.Table, config: ReadConfig
) -> Iterator[tuple[str, int, bytes]]:
    """(request_id, row, digest of the whole row) of the wanted rows that are good in themselves."""
    log = LogFile(fs, shard.file, config)
    rows = wanted["row"].to_numpy()
    for group, first in _groups(log, shard):
        if not ((rows >= first) & (rows < first + log.n_rows(group))).any():
            continue
        part = _read_group(log, group, first, config)
        chosen = np.flatnonzero(np.isin(part.rows, rows))
        for index, values in zip(chosen.tolist(), part.log.take(chosen).to_pylist(), strict=True):
            yield values["request_id"], int(part.rows[index]), hashlib.sha256(repr(values).encode()).digest()
