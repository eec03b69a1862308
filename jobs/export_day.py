"""The finished tables of one day as exports read them, and the day's log where events need it.

It reads through the store and decides nothing. The day's answers and verdicts are held in memory.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs import export_events, outputs, reports, settings
from claimscore.jobs.config import Config
from claimscore.jobs.errors import InputError
from claimscore.jobs.frames import as_frame, joined
from claimscore.jobs.layout import TableFile
from claimscore.jobs.read import find_repeats, list_files, read_shard
from claimscore.jobs.records import ANSWERS, VERDICTS
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.store import Store


def day_of(store: Store, out: str, date: str | None, series: str | None) -> tuple[str, str]:
    """The day and series asked for, or the newest of the one that dashboards read.

    Raises:
        InputError: there is no such series, or nothing of that day in it.
    """
    found = reports.find_series(store, out, series) if series else store.current()
    if found is None:
        raise outputs.no_run(out)
    days = {file.date for file in store.files("answers", series=found)}
    date = date or max(days, default=None)
    if date is None or date not in days:
        held = outputs.held_words(days) if days else "one that was run"
        raise InputError(
            f"{out}: no answers of {date} in series {found}, expected {held}; run that day first"
        )
    return date, found


class Day:
    """The finished tables of a day in a series."""

    def __init__(self, store: Store, date: str, series: str) -> None:
        self.date, self.series, self.store = date, series, store
        self._kept = settings.known(store)
        self._files = store.files("answers", date=date, series=series)
        shards = {file.shard_id for file in self._files}
        self.n_unfinished = len({file.shard_id for file in store.files("claims", date=date)} - shards)
        self._answers = [joined(ANSWERS, [store.read(file)]) for file in self._files]
        self._verdicts = [joined(VERDICTS, [store.read(self._of(file, "verdicts"))]) for file in self._files]
        self.n_answers = sum(table.num_rows for table in self._answers)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """ANSWERS and VERDICTS of the day."""
        return (
            joined(ANSWERS, self._answers),
            joined(VERDICTS, self._verdicts),
        )

    def events(self, config: Config | None) -> list[bytes]:
        """Every request as its line."""
        log = Log(config, self.date) if config else None
        out: list[bytes] = []
        for file, answers, verdicts in zip(self._files, self._answers, self._verdicts, strict=True):
            said = log.of_shard(file.shard_id) if log else None
            grounds = export_events.Grounds(
                self.date, self.series, self._versions(file), self._tokens(file), said
            )
            out += export_events.lines(answers, verdicts, grounds)
        return out

    def _versions(self, file: TableFile) -> dict[str, Any]:
        kept = ("fingerprint", "content", "parts", "made_at", "run_id")
        found = {
            name: self.store.manifest(self._of(file, name))
            for name in ("claims", "scores", "verdicts", "answers")
        }
        versions: dict[str, Any] = {"shard": file.shard_id} | {
            name: {key: manifest[key] for key in kept if key in manifest} if manifest else None
            for name, manifest in found.items()
        }
        if (verdicts := versions["verdicts"]) and (
            decided := settings.thresholds(verdicts["parts"], self._kept)
        ):
            verdicts["thresholds"] = decided
        return versions

    def _tokens(self, file: TableFile) -> dict[str, int]:
        """Tokens that the judge read of each request, samples' pairs too; none where the scores are gone."""
        known = {held.shard_id for held in self.store.files("scores", date=self.date, series=self.series)}
        shards = [name for name in (file.shard_id, f"{file.shard_id}-samples") if name in known]
        tables = [
            self.store.read(TableFile("scores", self.date, name, self.series), ["request_id", "n_tokens"])
            for name in shards
        ]
        if not tables:
            return {}
        sums = as_frame(pa.concat_tables(tables)).group_by("request_id").agg(pl.col("n_tokens").sum())
        return dict(sums.iter_rows())

    def _of(self, file: TableFile, table: str) -> TableFile:
        return TableFile(table, self.date, file.shard_id, None if table == "claims" else self.series)


class Log:
    """The log of a day, by shard.

    Raises:
        InputError: there is none of that day, or a file of it cannot be read.
    """

    def __init__(self, config: Config, date: str) -> None:
        self._read = config.read
        self._fs, files = list_files(config.read.logs, date)
        shards, unreadable = plan_shards(self._fs, files, config.read.shard_rows)
        if unreadable:
            raise InputError(unreadable[0][1])
        self._repeats = find_repeats(self._fs, shards, config.read)
        self._shards = {shard.shard_id: shard for shard in shards}
        self._where = config.read.logs

    def of_shard(self, shard_id: str) -> dict[str, dict[str, Any]]:
        """What the log says of each request of a shard.

        Raises:
            InputError: the log does not hold that shard: it is not what was judged.
        """
        if shard_id not in self._shards:
            raise InputError(
                f"{self._where}: does not hold shard {shard_id}, expected the log that was judged; "
                "run the day again, or leave out --config"
            )
        log, _ = read_shard(self._fs, self._shards[shard_id], self._read, self._repeats.get(shard_id, {}))
        return export_events.of_log(log)
