"""The store: equal bytes for equal tables, freshness by content, and a kill at every step."""

import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import OutputError
from claimscore.jobs.layout import TableFile, series_name
from claimscore.jobs.records import CLAIMS, SAMPLES, conform
from claimscore.jobs.store import FINGERPRINT_KEY, Store, fingerprint_of

DATE = "2026-11-28"
SERIES = "demo-0123abcd"
CLAIMS_FILE = TableFile("claims", DATE, "00000000000000aa")
VERDICTS_FILE = TableFile("verdicts", DATE, "00000000000000aa", SERIES)
SCHEMA = pa.schema([pa.field("request_id", pa.string(), nullable=False), ("p", pa.float32())])
PARTS = {"claims": "aaaa", "judge weights": "bbbb"}


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "out")


def open_store(path, **config):
    return Store(str(path), StoreConfig(out=str(path), **config), run_id="run-1")


def rows(n=3, prefix="r"):
    return pa.table({"request_id": [f"{prefix}{i}" for i in range(n)], "p": [i / 7 for i in range(n)]})


def write(store, file=VERDICTS_FILE, table=None, parts=PARTS):
    store.write(file, rows() if table is None else table, SCHEMA, parts=parts, counts={"answers": 2})


def samples(*indices, key="k1", text="a sample"):
    return pa.table(
        {
            "request_id": ["r1"] * len(indices),
            "content_key": [key] * len(indices),
            "sample_index": list(indices),
            "text": [f"{text} {i}" for i in indices],
            "source": ["generated"] * len(indices),
            "outcome": ["ok"] * len(indices),
        }
    )


# What a table looks like on disk.


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


@given(st.lists(st.integers(0, 20), max_size=4))
def test_bytes_do_not_depend_on_how_rows_came_together(cuts):
    """The same rows in any chunks and slices give the same file."""
    table = rows(20)
    chunked = pa.concat_tables([table.slice(a, b - a) for a, b in itertools.pairwise([0, *sorted(cuts), 20])])
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


@pytest.mark.parametrize("date", ["2026-13-01", "20261128", "2026-11-28T00:00", "../../etc", ""])
def test_a_date_that_is_none_is_refused(date):
    """Only a real day in the one spelling becomes a folder."""
    with pytest.raises(OutputError, match=re.escape(f"date {date!r}: not a day, expected YYYY-MM-DD")):
        TableFile("claims", date, "aa")


@pytest.mark.parametrize("name", ["..", "a/b", "a=b", "Upper", "", ".hidden", "a\n"])
def test_names_that_break_partitions_are_refused(name):
    """A series from the command line cannot leave its folder or confuse a reader."""
    with pytest.raises(OutputError, match="not a partition value"):
        TableFile("verdicts", DATE, "aa", name)


@given(st.text(max_size=30))
def test_any_judge_name_makes_a_series(name):
    """Whatever a judge card calls its judge, the series is a valid partition value."""
    assert TableFile("verdicts", DATE, "aa", series_name(name, "0123456789abcdef")).series.endswith(
        "-01234567"
    )


# What makes a file fresh.


@given(
    st.dictionaries(st.text(), st.text()).flatmap(lambda d: st.tuples(st.just(d), st.permutations(list(d))))
)
def test_a_fingerprint_does_not_know_the_order_of_its_parts(parts_and_order):
    """The same parts in any order are the same fingerprint."""
    parts, order = parts_and_order
    assert fingerprint_of(parts) == fingerprint_of({name: parts[name] for name in order})


def test_a_fingerprint_is_the_same_in_every_process():
    """The value is fixed for good: a change of it would make every store stale."""
    assert fingerprint_of({"claims": "aaaa", "judge weights": "bbbb"}) == "e2d91c46d85ceed3"


def test_parts_cannot_run_into_each_other():
    """Two different sets of parts never look alike when strung together."""
    assert fingerprint_of({"a": "b", "c": "d"}) != fingerprint_of({"a": 'b", "c": "d'})


def test_fresh_is_what_was_made_from_the_same_parts(store):
    """Only equal parts make a file fresh."""
    assert not store.is_fresh(VERDICTS_FILE, PARTS)
    write(store)
    assert store.is_fresh(VERDICTS_FILE, PARTS)
    assert not store.is_fresh(VERDICTS_FILE, {**PARTS, "stage": "2"})


@pytest.mark.parametrize(
    "parts, why",
    [
        (PARTS, ""),
        ({**PARTS, "judge weights": "cccc"}, "judge weights changed"),
        ({"claims": "x", "judge weights": "y"}, "claims and judge weights changed"),
        ({"claims": "aaaa"}, "judge weights changed"),
        ({**PARTS, "verdicts config": "1"}, "verdicts config changed"),
    ],
)
def test_why_names_the_part_that_changed(store, parts, why):
    """The reason is in the caller's own words for its parts."""
    write(store)
    assert store.why_stale(VERDICTS_FILE, parts) == why


def test_why_never_made(store):
    """A file that nobody made says so."""
    assert store.why_stale(VERDICTS_FILE, PARTS) == "never made"


def test_why_file_missing(store):
    """A manifest without its file does not count."""
    write(store)
    Path(store.path(VERDICTS_FILE)).unlink()
    assert store.why_stale(VERDICTS_FILE, PARTS) == "file missing"


def test_why_cut_short(store):
    """A file that lost its end is made again."""
    write(store)
    path = Path(store.path(VERDICTS_FILE))
    size = path.stat().st_size
    os.truncate(path, size - 1)
    assert store.why_stale(VERDICTS_FILE, PARTS) == f"file has {size - 1} bytes, its manifest {size}"


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"fingerprint": 1}',
        b'{"fingerprint":"x","bytes":1}',
        b"[" * 9_999,
    ],
)
def test_a_garbled_manifest_is_not_fresh(store, garbage):
    """No bytes in the place of a manifest end the run or pass for fresh."""
    write(store)
    store.root.put(VERDICTS_FILE.manifest_key, garbage)
    assert store.manifest(VERDICTS_FILE) is None
    assert store.why_stale(VERDICTS_FILE, PARTS) == "made without a whole manifest (a run was interrupted)"


def test_a_folder_in_the_place_of_a_manifest_is_not_fresh(store):
    """Even that is only a reason."""
    (Path(store.root.base) / VERDICTS_FILE.manifest_key).mkdir(parents=True)
    assert store.why_stale(VERDICTS_FILE, PARTS) == "never made"


def test_what_a_manifest_holds(store):
    """Fingerprint, its parts, rows, bytes and the caller's row accounting; time and run id are its own."""
    write(store)
    manifest = store.manifest(VERDICTS_FILE)
    made_at = manifest.pop("made_at")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", made_at)
    assert manifest == {
        "fingerprint": fingerprint_of(PARTS),
        "parts": PARTS,
        "rows": 3,
        "bytes": Path(store.path(VERDICTS_FILE)).stat().st_size,
        "counts": {"answers": 2},
        "run_id": "run-1",
    }


# A kill at every step.

KILL = """
import os, sys
from pathlib import Path
import pyarrow as pa
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.layout import TableFile
from claimscore.jobs.store import Store

base, last = sys.argv[1], int(sys.argv[2])
schema = pa.schema([("request_id", pa.string())])
file = TableFile("claims", "2026-11-28", "aa")

def make(store, version):
    table = pa.table({"request_id": [version * 8]})
    store.write(file, table, schema, parts={"log content": version}, counts={})

def dying_at(step, module, name, calls=[0]):
    real = getattr(module, name)
    def call(*args, **kwargs):
        calls[0] += 1
        if calls[0] == step: os._exit(9)
        result = real(*args, **kwargs)
        calls[0] += 1
        if calls[0] == step: os._exit(9)
        return result
    setattr(module, name, call)

for before in ("none", "old"):
    for step in range(1, last + 1):
        store = Store(f"{base}/{before}-{step}", StoreConfig(out="x"))
        if before == "old":
            make(store, "a")
        child = os.fork()
        if child == 0:
            for module, name in ((os, "fsync"), (os, "open"), (Path, "open"), (Path, "replace"), (Path, "unlink")):
                dying_at(step, module, name)
            make(store, "b")
            os._exit(0)
        print(before, step, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Stores whose write was killed before and after each system call: (what was there before, folder)."""
    base = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(base), "48"], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    stores = [(before, base / f"{before}-{step}") for before, step, code in lines if code == "9"]
    assert any(code == "0" for _, _, code in lines), (
        "the last steps must outlive the write, or some were not tried"
    )
    assert len(stores) > 40
    return stores


KILLED_FILE = TableFile("claims", DATE, "aa")


def version_of(store):
    return store.read(KILLED_FILE)["request_id"][0].as_py()[0]


def test_a_kill_never_leaves_a_partial_file_among_the_tables(killed):
    """Whatever lies under tables/ after a kill is a whole Parquet file."""
    for _, folder in killed:
        for path in (folder / "tables").rglob("*"):
            assert path.is_dir() or (path.suffix == ".parquet" and pq.read_table(path).num_rows == 1)


def test_a_kill_never_makes_a_file_fresh_that_is_another(killed):
    """Old and new files have one size here; a file counts as one version only if it is that version."""
    sizes = set()
    for _, folder in killed:
        store = open_store(folder)
        sizes.add(store.root.size(KILLED_FILE.key))
        for version in "ab":
            if store.is_fresh(KILLED_FILE, {"log content": version}):
                assert version_of(store) == version
    assert len(sizes - {None}) == 1


def test_the_old_file_stays_until_the_new_one_is_whole(killed):
    """A dashboard that reads the folder sees the old rows or the new ones at every moment."""
    assert {version_of(open_store(folder)) for before, folder in killed if before == "old"} == {"a", "b"}


def test_the_rerun_after_a_kill_equals_an_uninterrupted_run(killed, tmp_path):
    """After the next run, every killed store has the bytes of one that was never killed, and an empty tmp."""
    table, schema = pa.table({"request_id": ["b" * 8]}), pa.schema([("request_id", pa.string())])
    parts = {"log content": "b"}
    whole = open_store(tmp_path / "whole")
    whole.write(KILLED_FILE, table, schema, parts=parts, counts={})
    for _, folder in killed:
        store = open_store(folder)
        with store.lock("rerun"):
            if not store.is_fresh(KILLED_FILE, parts):
                store.write(KILLED_FILE, table, schema, parts=parts, counts={})
        assert store.is_fresh(KILLED_FILE, parts)
        assert store.root.get(KILLED_FILE.key) == whole.root.get(KILLED_FILE.key)
        assert store.root.keys("tmp") == []


# Series, orphans, samples, runs.


def test_files_that_count(store):
    """Of a table's files only those with a manifest are given, by date and shard."""
    other_day = dataclasses.replace(VERDICTS_FILE, date="2026-11-27")
    unvouched = dataclasses.replace(VERDICTS_FILE, shard_id="cc")
    for file in (VERDICTS_FILE, other_day, unvouched):
        write(store, file)
    store.root.remove(unvouched.manifest_key)
    (Path(store.path(VERDICTS_FILE)).parent / "Notes by hand.parquet").write_bytes(b"")
    assert store.files("verdicts", series=SERIES) == [other_day, VERDICTS_FILE]
    assert store.files("verdicts", date=DATE, series=SERIES) == [VERDICTS_FILE]
    assert store.files("claims") == []


def test_orphans_go_and_everything_else_stays(store):
    """Only the named date and series lose the shards that are no more planned."""
    keep, gone = (dataclasses.replace(VERDICTS_FILE, shard_id=s) for s in ("aa", "bb"))
    others = [
        dataclasses.replace(gone, series="other-0123abcd"),
        dataclasses.replace(gone, date="2026-11-27"),
        dataclasses.replace(gone, series=f"{SERIES}0"),
        TableFile("claims", DATE, "bb"),
    ]
    for file in (keep, gone, *others):
        write(store, file)
    assert store.remove_orphans("verdicts", DATE, SERIES, {"aa"}) == ["bb"]
    assert all(store.is_fresh(file, PARTS) for file in (keep, *others))
    assert store.why_stale(gone, PARTS) == "never made"


def test_half_removed_orphans_are_removed_by_the_next_run(store):
    """A kill between manifest and file, or a lost file, leaves something that the next removal still finds."""
    files = [dataclasses.replace(VERDICTS_FILE, shard_id=s) for s in ("aa", "bb")]
    for file in files:
        write(store, file)
    store.root.remove(files[0].manifest_key)
    store.root.remove(files[1].key)
    assert store.remove_orphans("verdicts", DATE, SERIES, set()) == ["aa", "bb"]
    assert store.root.keys("") == []


def test_the_current_series(store):
    """The pointer says what was set last, and nothing before the first run."""
    assert store.current() is None
    store.set_current(SERIES)
    store.set_current("other-0123abcd")
    assert store.current() == "other-0123abcd"


@pytest.mark.parametrize("garbage", [b"", b"{}", b"[]", b'{"series": 3}', b'{"series": null}'])
def test_a_garbled_pointer_is_named(store, garbage):
    """A pointer that somebody broke is a failure, not the first run."""
    store.root.put("state/current.json", garbage)
    with pytest.raises(OutputError, match=r"current\.json: found .+; remove it and run again"):
        store.current()


def test_series_are_listed(store):
    """Every judge that has verdicts, in order."""
    for series in ("b-0123abcd", "a-0123abcd"):
        write(store, dataclasses.replace(VERDICTS_FILE, series=series))
    write(store, TableFile("scores", DATE, "aa", "scores-only"))
    assert store.list_series() == ["a-0123abcd", "b-0123abcd"]


def test_samples_add_up(store):
    """Each call adds a file; a shard's samples are all of them, and no other shard's or generator's."""
    store.add_samples(samples(0, 1), date=DATE, shard_id="aa", generator="g1")
    store.add_samples(samples(2), date=DATE, shard_id="aa", generator="g1")
    store.add_samples(samples(0, key="k2"), date=DATE, shard_id="aab", generator="g1")
    store.add_samples(samples(0, text="other"), date=DATE, shard_id="aa", generator="g2")
    shard = store.read_samples(DATE, "g1", "aa")
    assert shard.schema == SAMPLES
    assert sorted(shard["text"].to_pylist()) == ["a sample 0", "a sample 1", "a sample 2"]
    assert store.read_samples(DATE, "g1").num_rows == 4


def test_no_samples_yet(store):
    """Before the first draw there is an empty table with the schema."""
    assert store.read_samples(DATE, "g1", "aa") == SAMPLES.empty_table()


def test_the_same_samples_again_are_the_same_file(store):
    """A retried task that adds what is there changes nothing."""
    names = [store.add_samples(samples(0), date=DATE, shard_id="aa", generator="g1") for _ in range(2)]
    assert names == [*store.list_samples(DATE, "g1", "aa")] * 2


def test_a_sample_drawn_twice_counts_once(store):
    """Two draws for one index, of a task that ran twice, never make two votes; all readers see the same one."""
    for text in ("one", "two", "three"):
        store.add_samples(samples(0, 1, text=text), date=DATE, shard_id="aa", generator="g1")
    first = store.list_samples(DATE, "g1", "aa")[0]
    kept = store.read_samples(DATE, "g1", "aa")
    assert kept == store.read(TableFile("samples", DATE, first, "g1"))


def test_runs_are_kept_and_the_latest_is_named(store):
    """Each run's report stays, and state/run.json is the latest."""
    for run_id in ("r1", "r2"):
        store.write_run(run_id, {"run_id": run_id, "note": "na\u00efve \ud800"})
    assert json.loads(store.root.get("state/run.json"))["run_id"] == "r2"
    assert json.loads(store.root.get("state/runs/r1/run.json"))["note"] == "na\u00efve \ud800"


def test_a_report_is_strict_json(store):
    """NaN, which other readers refuse, is refused here first."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_run("r1", {"value": float("nan")})
