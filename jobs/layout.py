"""The places of the output root: which folder and name each file of each table and its manifest has.

    OUT/tables/<table>/[judge=<series>/ | generator=<fingerprint>/]date=YYYY-MM-DD/<shard>.parquet
    OUT/state/manifests/<the same>.json

Hive partitions, read by pyarrow, polars, DuckDB and Spark as they are; hence lower case values without `=`
and `/`, one order of keys, and no partition key inside a file. Pure: nothing here touches a store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from claimscore.jobs.errors import OutputError

TABLES = "tables"
MANIFESTS = "state/manifests"
_PARTITION = {
    "claims": "",
    "quarantine": "",
    "samples": "generator",
    "scores": "judge",
    "referee": "judge",
    "verdicts": "judge",
    "answers": "judge",
    "metrics": "judge",
}
"""Table -> the partition above the date, "" for none."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")  # partition values: lower case, without `=` and `/`


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file of one table: `<shard>.parquet` of a date, in a series where the table has them."""

    table: str
    date: str
    """YYYY-MM-DD."""
    shard_id: str
    """`metrics` for the one file that the metrics of a date are."""
    series: str | None = None
    """A judge's series (`series_name`), the generator of samples, None for claims and quarantine."""

    def __post_init__(self) -> None:
        partition = _PARTITION.get(self.table)
        assert partition is not None, f"no table {self.table!r}"
        assert (self.series is not None) == bool(partition), f"{self.table!r} with series {self.series!r}"
        if not is_day(self.date):
            raise OutputError(f"date {self.date!r}: not a day, expected YYYY-MM-DD; give the day of the log")
        check_name(self.shard_id)
        if self.series is not None:
            check_name(self.series)

    @property
    def key(self) -> str:
        """The key of the Parquet file under the output root."""
        return f"{TABLES}/{self._stem}.parquet"

    @property
    def manifest_key(self) -> str:
        """The key of its manifest."""
        return f"{MANIFESTS}/{self._stem}.json"

    @property
    def _stem(self) -> str:
        return f"{table_folder(self.table, self.series)}date={self.date}/{self.shard_id}"


def series_name(judge: str, judge_fingerprint: str) -> str:
    """`<name>-<fp8>`, safe as a partition value: lower case, other characters as hyphens."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", judge.lower()).strip("-._") or "judge"
    return f"{slug}-{judge_fingerprint[:8]}"


def table_folder(table: str, series: str | None) -> str:
    """The folder above the dates of a table, with its closing slash, under TABLES or MANIFESTS."""
    return f"{table}/{_PARTITION[table]}={series}/" if series is not None else f"{table}/"


def is_day(value: str) -> bool:
    """Whether a date is a real day, written YYYY-MM-DD and in no other way."""
    try:
        return datetime.fromisoformat(value).date().isoformat() == value
    except ValueError:
        return False


def is_name(value: str) -> bool:
    """Whether `check_name` would take it."""
    return _NAME.fullmatch(value) is not None


def check_name(value: str) -> str:
    """The value itself, fit to be a partition value or the name of a file.

    Raises:
        OutputError: another character than lower case letters, digits and `. _ -`, or none at all.
    """
    if not is_name(value):
        raise OutputError(
            f"name {value!r}: not a partition value, expected lower case letters, digits and . _ - only; "
            "take one that `claimscore compare` lists"
        )
    return value
