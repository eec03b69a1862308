"""Finished tables: what each file was made from, and whether it must be made again.

OUT/tables holds nothing but finished Parquet. OUT/state holds one manifest a file (written last, removed
first), `current.json`, `settings.json`, `run.json` of the latest run and `runs/<run id>/run.json` of each. A file counts once
its manifest is there, and is fresh when the manifest's fingerprint equals the one it would get now and the files
it was made from still have the content it names; nothing else (time, host, worker) decides. The store knows no
stage, and not what the columns mean. A little over 300 lines: one class, read from top to bottom.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.config import StoreConfig, fingerprint
from claimscore.jobs.errors import OutputError
from claimscore.jobs.layout import MANIFESTS, TABLES, TableFile, check_name, is_day, is_name, table_folder
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.records import SAMPLES, conform

FINGERPRINT_KEY = b"claimscore.fingerprint"


def fingerprint_of(parts: Mapping[str, str]) -> str:
    """16 hex digits over what a file is made from; equal for equal parts, in any order and any process.

    Args:
        parts: words for people (`judge weights`, `verdicts config`, `claims`) -> a fingerprint or version.
    """
    return fingerprint(dict(parts))


class Store:
    """The tables, manifests and run records under one output root, local or s3://.

    Holds no lock by itself and caches nothing: workers make their own from the same arguments.

    Args:
        root: `[store] out`.
        config: the size of row groups.
        run_id: who makes what is written; stands in manifests, never in a table. A lock of another run forbids it.
    """

    def __init__(self, root: str, config: StoreConfig, *, run_id: str = "") -> None:
        self.root = OutputRoot(root)
        self._row_group_bytes = config.row_group_mib * 1024 * 1024
        self._run_id = run_id

    def path(self, file: TableFile) -> str:
        """Where the file lies, as a person or another tool may open it."""
        return self.root.shown(file.key)

    def lock(self, run_id: str) -> AbstractContextManager[str]:
        """One run at a time: see `OutputRoot.lock`."""
        return self.root.lock(run_id)

    def write(
        self,
        file: TableFile,
        table: pa.Table,
        schema: pa.Schema,
        *,
        parts: Mapping[str, str],
        counts: Mapping[str, int],
        read: Mapping[str, str] | None = None,
        source: str = "",
    ) -> str:
        """Put one table and then its manifest; a kill in between leaves a file that does not count.

        Equal tables and parts give equal bytes. An empty table gives a file with the schema.

        Args:
            file: where to.
            table: brought to `schema` first.
            schema: one of `records`.
            parts: see `fingerprint_of`.
            counts: the row accounting, kept in the manifest.
            read: the tables it was made from -> what `write` gave for them: their content, where `parts` is a recipe.
            source: the log file that it comes from; kept in the manifest, and nothing is stale by it.

        Returns:
            16 hex digits over the bytes written.

        Raises:
            OutputError: the table does not fit the schema, the store cannot be written, or another run holds it.
        """
        made_from = fingerprint_of(parts)
        data = self._encode(table, schema, made_from, where=self.path(file))
        self._check_lock()
        # Removed first: an old manifest must never vouch for a new file that happens to have its size.
        self.root.remove(file.manifest_key)
        self.root.put(file.key, data)
        content = hashlib.sha256(data).hexdigest()[:16]
        manifest = {
            "fingerprint": made_from,
            "parts": dict(parts),
            "content": content,
            "read": dict(read or {}),
            "source": source,
            "rows": table.num_rows,
            "bytes": len(data),
            "counts": dict(counts),
            "made_at": _now(),
            "run_id": self._run_id,
        }
        self.root.put(file.manifest_key, _to_json(manifest))
        return content

    def read(self, file: TableFile, columns: list[str] | None = None) -> pa.Table:
        """The file's table, or those columns in that order; without partition keys and metadata.

        Raises:
            OutputError: the file is missing or damaged.
        """
        return self._read_key(file.key, columns)

    def manifest(self, file: TableFile) -> dict[str, Any] | None:
        """What vouches for the file; None where there is none, or none that can be trusted."""
        data = self.root.get(file.manifest_key)
        try:
            manifest = json.loads(data or b"")
        except (ValueError, RecursionError):
            return None
        return manifest if _is_manifest(manifest) else None

    def content(self, file: TableFile) -> str:
        """What `write` gave for the file that counts; "" where none does."""
        manifest = self.manifest(file)
        return str(manifest["content"]) if manifest else ""

    def is_fresh(self, file: TableFile, parts: Mapping[str, str]) -> bool:
        """Whether the file is there, whole, and made from just these parts."""
        return not self.why_stale(file, parts)

    def why_stale(
        self, file: TableFile, parts: Mapping[str, str], read: Mapping[str, str] | None = None
    ) -> str:
        """Why the file must be made, in words (`judge weights changed`); "" where it is fresh.

        A missing or garbled manifest is a reason, not an error. With `read`, so is another content of the tables it
        was made from: an LLM asked again may answer otherwise, though no fingerprint changed.

        Raises:
            OutputError: the store cannot be read at all.
        """
        manifest = self.manifest(file)
        size = self.root.size(file.key)
        if manifest is None:
            return "never made" if size is None else "made without a whole manifest (a run was interrupted)"
        if manifest["fingerprint"] != fingerprint_of(parts):
            old = manifest["parts"]
            changed = [name for name in sorted({*old, *parts}) if old.get(name) != parts.get(name)]
            return f"{' and '.join(changed) or 'fingerprint'} changed"
        if size is None:
            return "file missing"
        if read is not None and manifest["read"] != dict(read):
            again = [name for name, content in read.items() if manifest["read"].get(name) != content]
            return f"{' and '.join(again) or 'what it was made from'} made again"
        return "" if size == manifest["bytes"] else f"file has {size} bytes, its manifest {manifest['bytes']}"

    def files(self, table: str, *, date: str | None = None, series: str | None = None) -> list[TableFile]:
        """The files of a table (of one date, or of all) that count: both file and manifest are there."""
        made = self._stems(TABLES, ".parquet", table, date, series)
        vouched = set(self._stems(MANIFESTS, ".json", table, date, series))
        return [TableFile(table, day, shard, series) for day, shard in made if (day, shard) in vouched]

    def remove_orphans(
        self,
        table: str,
        date: str,
        series: str | None,
        keep: Collection[str],
        *,
        of: Collection[str] | None = None,
    ) -> list[str]:
        """Remove the date's files whose shard is not in `keep` (its log was replaced); other series stay.

        An empty `keep` removes them all: call it without `of` only after a plan in which every log file was readable.

        Args:
            table: not the samples.
            date: the day.
            series: None: of a table without series.
            keep: shard ids.
            of: only files of these shards; None: all.

        Returns:
            The shard ids removed, sorted.
        """
        assert table != "samples", "samples cannot be drawn again; they are kept"
        stems = {
            *self._stems(TABLES, ".parquet", table, date, series),
            *self._stems(MANIFESTS, ".json", table, date, series),
        }
        gone = [
            TableFile(table, day, shard, series)
            for day, shard in sorted(stems)
            if shard not in keep and (of is None or shard in of)
        ]
        for file in gone:
            self.root.remove(file.manifest_key)
            self.root.remove(file.key)
        return [file.shard_id for file in gone]

    def add_samples(self, samples: pa.Table, *, date: str, shard_id: str, generator: str) -> str:
        """Put one more file of samples, named by shard and content; the same samples again change nothing.

        Samples need no manifest: they never go stale, and a file is whole or absent.

        Returns:
            The file's name without `.parquet`.
        """
        data = self._encode(samples, SAMPLES, generator, where=f"samples of shard {shard_id}")
        file = TableFile("samples", date, f"{shard_id}-{hashlib.sha256(data).hexdigest()[:8]}", generator)
        self._check_lock()
        self.root.put(file.key, data)
        return file.shard_id

    def list_samples(self, date: str, generator: str, shard_id: str | None = None) -> list[str]:
        """Names of the sample files of one shard, or of the whole date; a name stands for the content."""
        stems = self._stems(TABLES, ".parquet", "samples", date, generator)
        return [stem for _, stem in stems if shard_id is None or stem.rpartition("-")[0] == shard_id]

    def read_samples(self, date: str, generator: str, shard_id: str | None = None) -> pa.Table:
        """All samples of one shard, or of the whole date (a log cut anew keeps its samples), as SAMPLES.

        A sample drawn twice (same request, content and index) is given once, from the first file by name.
        """
        tables = [
            self._read_key(TableFile("samples", date, name, generator).key, None)
            for name in self.list_samples(date, generator, shard_id)
        ]
        table = pa.concat_tables([SAMPLES.empty_table(), *tables])
        if not table.num_rows:
            return table
        keys = ["request_id", "content_key", "sample_index"]
        numbered = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
        firsts = numbered.group_by(keys).aggregate([("row", "min")]).column("row_min")
        return table.take(firsts.sort())

    def set_current(self, series: str) -> None:
        """Point dashboards at a series, atomically."""
        check_name(series)
        self.root.put("state/current.json", _to_json({"series": series, "set_at": _now()}))

    def current(self) -> str | None:
        """The series that dashboards read; None before the first run.

        Raises:
            OutputError: the pointer is not one of ours.
        """
        data = self.root.get("state/current.json")
        if data is None:
            return None
        try:
            return check_name(json.loads(data)["series"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise OutputError(
                f"{self.root.shown('state/current.json')}: found {data[:40]!r}, expected "
                '{"series": "<name>-<fp8>"}; remove it and run again'
            ) from None

    def list_series(self) -> list[str]:
        """Judge series that have verdicts, sorted."""
        keys = self.root.keys(f"{TABLES}/verdicts", ".parquet")
        return sorted({part[6:] for key in keys if (part := key.split("/")[2]).startswith("judge=")})

    def write_run(self, run_id: str, report: Mapping[str, Any]) -> None:
        """Keep the report of one run, and as the latest; strict JSON, so NaN is refused (ValueError)."""
        data = _to_json(report)
        self.root.put(f"state/runs/{run_id}/run.json", data)
        self.root.put("state/run.json", data)

    def _check_lock(self) -> None:
        # A worker whose driver died on a cluster writes on for up to a second or so (measured), by then beside the next run.
        if self._run_id:
            self.root.check_lock(self._run_id)

    def _encode(self, table: pa.Table, schema: pa.Schema, made_from: str, *, where: str) -> bytes:
        # One chunk a column: page borders, and so bytes, must not depend on how the rows came together.
        table = conform(table, schema, where=where).combine_chunks()
        table = table.replace_schema_metadata({FINGERPRINT_KEY: made_from.encode()})
        n_groups = max(1, -(-table.nbytes // self._row_group_bytes))
        buffer = io.BytesIO()
        pq.write_table(
            table, buffer, compression="zstd", row_group_size=max(1, -(-table.num_rows // n_groups))
        )
        return buffer.getvalue()

    def _read_key(self, key: str, columns: list[str] | None) -> pa.Table:
        where = self.root.shown(key)
        try:
            with self.root.fs.open_input_file(self.root.path(key)) as source:
                table = pq.ParquetFile(source).read(columns=columns)
        except FileNotFoundError:
            raise OutputError(f"{where}: no such file, expected a finished table; run its date") from None
        except (OSError, ValueError, pa.ArrowException) as err:
            found = " ".join(str(err).split())
            raise OutputError(
                f"{where}: cannot be read: {found}, expected whole Parquet; remove it and run its date again"
            ) from err
        table = table.replace_schema_metadata(None)
        return table if columns is None else table.select(columns)

    def _stems(
        self, root: str, suffix: str, table: str, date: str | None, series: str | None
    ) -> list[tuple[str, str]]:
        """(date, shard id) of a table's files under `root`, sorted; names that are not ours are left out."""
        folder = f"{root}/{table_folder(table, series)}" + (f"date={date}" if date else "")
        found = []
        for key in self.root.keys(folder.rstrip("/"), suffix):
            day, _, stem = (
                key[: -len(suffix)].removeprefix(f"{root}/{table_folder(table, series)}").partition("/")
            )
            if day.startswith("date=") and is_day(day[5:]) and is_name(stem):
                found.append((day[5:], stem))
        return found


def _is_manifest(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("fingerprint"), str)
        and isinstance(value.get("bytes"), int)
        and isinstance(value.get("rows"), int)
        and isinstance(value.get("parts"), dict)
        and isinstance(value.get("counts"), dict)
        and isinstance(value.get("content"), str)
        and isinstance(value.get("read"), dict)
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _to_json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
