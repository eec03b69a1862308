"""Imported rows as our log: one file, or one a day in folders that `claimscore run` reads as they are.

Names follow from the tool and the source, so that an import made again takes the place of the one before, and two
sources of a day lie side by side. What the last import of a source wrote and this one does not is removed. Equal
rows give equal bytes: rows are in order of time and id, and no clock is in a file. The manifest and the rows that could
not be imported lie under `_import`, where no reader of logs looks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from claimscore.jobs.errors import InputError
from claimscore.jobs.logfile import IMPORTED
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.records import LOG, conform
from claimscore.jobs.uri import shown

_SHARD_ROWS = 2_000
_DAY = "{date}"


class Target:
    """Where an import goes: a file `x.parquet`, a folder pattern with `{date}`, or a folder (then `date={date}/` in it).

    Args:
        out: as the person wrote it, local or a URI.
        system: the tool.
        src: what is imported; its place is in the names, so that sources do not overwrite one another.

    Raises:
        InputError: `{date}` stands where no folder of days can be.
    """

    def __init__(self, out: str, system: str, src: str) -> None:
        place = src if "://" in src else str(Path(src).expanduser().absolute())
        name = f"{system}-{hashlib.sha256(shown(place).encode()).hexdigest()[:8]}"
        bare, _, query = out.partition("?")
        self.is_daily = _DAY in bare or not bare.endswith(".parquet")
        if not self.is_daily:
            folder, _, file = bare.rpartition("/")
            root, self._pattern, name = folder or ".", file, file.removesuffix(".parquet")
        else:
            inner = bare.rstrip("/") if _DAY in bare else f"{bare.rstrip('/')}/date={_DAY}"
            inner = inner if inner.endswith(".parquet") else f"{inner}/{name}.parquet"
            parts = inner.split("/")
            first = next(k for k, part in enumerate(parts) if _DAY in part)
            if first == 0:
                parts, first = [".", *parts], 1
            root, self._pattern = "/".join(parts[:first]) or "/", "/".join(parts[first:])
        self._root = OutputRoot(f"{root}?{query}" if query else root)
        self._manifest, self._bad = f"_import/{name}.json", f"_import/{name}.quarantine.jsonl"
        folder, _, _ = self._pattern.rpartition("/")
        key = f"{folder}/*.parquet" if self.is_daily and folder else self._pattern
        # Absolute: a path in a config is relative to the config, not to where this command was given.
        self.logs = self._root.path(key) if self._root.is_local else f"{root}/{key}"

    def write(
        self, log: pa.Table, quarantined: Sequence[Mapping[str, Any]], manifest: dict[str, Any]
    ) -> None:
        """Write the log by day, the quarantined rows and the manifest; the manifest, last, gets `written` and `days`.

        Args:
            log: of the LOG schema; in a log by day every `ts` is there.
            quarantined: dicts of plain values.
            manifest: what is to be told of the import.
        """
        written, days = [], {}
        for day, part in self._by_day(log):
            key = self._pattern.replace(_DAY, day)
            self._root.put(key, parquet_bytes(part))
            written.append(key)
            if self.is_daily:
                days[day] = part.num_rows
        for key in self._written_before():
            if key not in written:
                self._root.remove(key)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in quarantined)
        self._root.put(self._bad, lines.encode("utf-8", "backslashreplace"))
        manifest |= {"written": written, "days": days, "logs": self.logs}
        self._root.put(self._manifest, json.dumps(manifest, indent=2).encode())
        if self._root.is_local:
            with contextlib.suppress(OSError):  # not empty: another run is writing
                Path(self._root.path("tmp")).rmdir()

    def shown(self, what: str = "") -> str:
        """A place of this import for people: the manifest, or `quarantine`."""
        return self._root.shown(self._bad if what == "quarantine" else self._manifest)

    def _by_day(self, log: pa.Table) -> list[tuple[str, pa.Table]]:
        order = pc.sort_indices(log, sort_keys=[("ts", "ascending"), ("request_id", "ascending")])
        if not self.is_daily:
            return [("", log.take(order))]
        days = pc.strftime(log["ts"].take(order), "%Y-%m-%d").combine_chunks().to_pylist()
        starts = [k for k, day in enumerate(days) if k == 0 or day != days[k - 1]]
        ends = [*starts[1:], len(days)]
        return [(days[a], log.take(order[a:b])) for a, b in zip(starts, ends[: len(starts)], strict=True)]

    def _written_before(self) -> list[str]:
        """Keys that the last import of this source says it wrote, as far as they are of this import's form."""
        before = self._root.get(self._manifest)
        try:
            found = json.loads(before or b"{}").get("written", [])
        except (ValueError, AttributeError):
            raise InputError(
                f"{self.shown()}: is no manifest of an import, expected JSON; remove it and import again"
            ) from None
        at = self._pattern.find(_DAY)
        days = ((key, key[at : at + len("2026-11-28")]) for key in found if isinstance(key, str) and at >= 0)
        return [key for key, day in days if _is_day(day) and key == self._pattern.replace(_DAY, day)]


def parquet_bytes(log: pa.Table) -> bytes:
    """A log as the bytes of a Parquet file that says that we wrote it, so that its flags are believed."""
    schema = LOG.with_metadata({IMPORTED: b"1"})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        writer.write_table(conform(log, LOG, where="import").cast(schema), row_group_size=_SHARD_ROWS)
    return bytes(sink.getvalue())


def _is_day(text: str) -> bool:
    return len(text) == 10 and text.replace("-", "").isdigit()
