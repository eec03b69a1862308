"""What a finished table looks like on disk, and to the tools that read its folder."""

import dataclasses
import itertools
import json
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from store_fixture import CLAIMS_FILE, DATE, PARTS, SCHEMA, SERIES, VERDICTS_FILE, open_store, rows, write

from claimscore.jobs.errors import OutputError
from claimscore.jobs.records import CLAIMS, conform
from claimscore.jobs.store import FINGERPRINT_KEY, fingerprint_of


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "out")


def test_layout(store, tmp_path):
    """Each table lies where the design says, its manifest beside the tables and not among them."""
    write(store)
    write(store, CLAIMS_FILE)
    files = sorted(str(p.relative_to(tmp_path / "out")) for p in tmp_path.rglob("*") if p.is_file())
    assert files == [
        "state/manifests/claims/date=2026-11-28/00000000000000aa.json",
        "state/manifests/verdicts/judge=demo-0123abcd/date=2026-11-28/00000000000000aa.json",
        "tables/claims/date=2026-11-28/00000000000000aa.parquet",
        "tables/verdicts/judge=demo-0123abcd/date=2026-11-28/00000000000000aa.parquet",
    ]
    assert store.path(CLAIMS_FILE) == str(tmp_path / "out" / files[2])


def test_read_gives_what_was_written(store):
    """A table comes back with its schema, its rows in order, and no partition keys."""
    write(store)
    assert store.read(VERDICTS_FILE) == conform(rows(), SCHEMA, where="test")


def test_read_some_columns(store):
    """Named columns come in the order asked for."""
    write(store)
    assert store.read(VERDICTS_FILE, ["p", "request_id"]).column_names == ["p", "request_id"]


def test_read_what_is_missing(store):
    """A file that is not there is a named failure with its path."""
    with pytest.raises(OutputError) as caught:
        store.read(CLAIMS_FILE)
    assert str(caught.value) == (
        f"{store.path(CLAIMS_FILE)}: no such file, expected a finished table; run its date"
    )


def test_read_what_is_damaged(store):
    """A file that is no Parquet is a named failure in one line."""
    write(store)
    Path(store.path(VERDICTS_FILE)).write_bytes(b"PAR1 and nothing more")
    with pytest.raises(
        OutputError, match=r"cannot be read: [^\n]+, expected whole Parquet; remove it and run"
    ):
        store.read(VERDICTS_FILE)


def test_an_empty_table_has_the_schema(store):
    """A shard without claims gives a file that concatenates with the others."""
    store.write(CLAIMS_FILE, CLAIMS.empty_table(), CLAIMS, parts=PARTS, counts={})
    assert store.read(CLAIMS_FILE).schema == CLAIMS
    assert store.is_fresh(CLAIMS_FILE, PARTS)


def test_a_table_that_does_not_fit_its_schema_is_refused_and_nothing_is_written(store):
    """A wrong table is a named failure before the old file is touched."""
    write(store)
    with pytest.raises(OutputError, match="columns missing"):
        write(store, table=pa.table({"other": [1]}), parts={"claims": "new"})
    assert store.is_fresh(VERDICTS_FILE, PARTS)


def test_file_properties(store):
    """zstd, statistics for the request id, and the fingerprint in the file itself."""
    write(store)
    footer = pq.read_metadata(store.path(VERDICTS_FILE))
    column = footer.row_group(0).column(0)
    assert (column.compression, column.statistics.max) == ("ZSTD", "r2")
    assert footer.metadata[FINGERPRINT_KEY].decode() == fingerprint_of(PARTS)


def test_timestamps_are_utc_microseconds(store):
    """Times are stored so that Spark and polars read them as the same instant."""
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC"))])
    store.write(CLAIMS_FILE, pa.table({"ts": pa.array([1], schema[0].type)}), schema, parts=PARTS, counts={})
    assert pl.read_parquet(store.path(CLAIMS_FILE)).schema["ts"] == pl.Datetime("us", "UTC")
    logical = json.loads(pq.read_metadata(store.path(CLAIMS_FILE)).schema.column(0).logical_type.to_json())
    assert (logical["isAdjustedToUTC"], logical["timeUnit"]) == (True, "microseconds")


def test_row_groups_are_cut_by_uncompressed_size(tmp_path):
    """5 MB of text under a limit of 1 MiB is row groups of at most 1 MiB, evenly filled."""
    store = open_store(tmp_path, row_group_mib=1)
    table = pa.table({"request_id": [f"{i:05}" * 200 for i in range(5_000)], "p": [0.0] * 5_000})
    write(store, table=table)
    footer = pq.read_metadata(store.path(VERDICTS_FILE))
    sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
    assert (len(sizes), sum(sizes)) == (5, 5_000)
    assert max(sizes) * 1_008 <= 1024 * 1024


# Over 1 MiB of distinct text: several data pages, whose borders chunks would move.
WIDE = pa.table({"request_id": [f"{i:05}" * 150 for i in range(3_000)], "p": [0.0] * 3_000})


@example([7, 1_507])
@settings(max_examples=20)
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=4))
def test_bytes_do_not_depend_on_how_rows_came_together(cuts):
    """The same rows in any chunks and slices give the same file."""
    table = WIDE
    chunked = pa.concat_tables(
        [table.slice(a, b - a) for a, b in itertools.pairwise([0, *sorted(cuts), table.num_rows])]
    )
    store = open_store("/never/written")
    one, other = (store._encode(t, SCHEMA, "x", where="test") for t in (table, chunked))
    assert one == other


def test_a_table_folder_is_read_as_it_is_while_files_are_made(store, monkeypatch):
    """Readers (pyarrow, polars) scan a table folder at the moment when another file is half written."""
    write(store)
    folder = str(Path(store.path(VERDICTS_FILE)).parents[2])
    seen = []
    fsync = os.fsync

    def scan_first(fd):
        seen.append(ds.dataset(folder, partitioning="hive").to_table().num_rows)
        seen.append(pl.scan_parquet(folder).collect().height)
        seen.append(pl.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=True).collect().height)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", scan_first)
    write(store, dataclasses.replace(VERDICTS_FILE, shard_id="00000000000000bb"))
    assert seen[:3] == [3, 3, 3]
    assert seen[-3:] == [6, 6, 6]


def test_partition_keys_reach_the_readers(store):
    """The keys date and judge come from the folders, and so are in no file."""
    write(store)
    frame = pl.scan_parquet(Path(store.path(VERDICTS_FILE)).parents[2], hive_partitioning=True).collect()
    assert frame.select("judge", "date").unique().rows() == [(SERIES, pl.Series([DATE]).str.to_date()[0])]
