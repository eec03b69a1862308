"""Reading a shard: which rows come through, and which are quarantined and why."""

import io

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claimscore.jobs import logfile
from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.read import find_repeats, read_shard
from claimscore.jobs.records import LOG, QUARANTINE, Shard

LOCAL = pyarrow.fs.LocalFileSystem()
CHUNKS = pa.list_(pa.struct([("id", pa.string()), ("text", pa.string()), ("score", pa.float32())]))
SCHEMA = pa.schema(
    [("request_id", pa.string()), ("question", pa.string()), ("answer", pa.string()), ("chunks", CHUNKS)]
)


def row(n, **changes):
    chunks = [{"id": f"d{n}", "text": f"The fee is {n} EUR.", "score": 0.5}]
    return {"request_id": f"r{n}", "question": "Fee?", "answer": f"{n} EUR. [1]", "chunks": chunks, **changes}


def read(table, path, columns=None, repeats=None, **config):
    """Write `table` to `path` and read it back as one shard."""
    pq.write_table(table, path, write_page_checksum=True, **config.pop("write", {}))
    return read_back(path, columns, repeats, **config)


def read_back(path, columns=None, repeats=None, fs=LOCAL, **config):
    meta = pq.read_metadata(path)
    shard = Shard("ab", str(path), tuple(range(meta.num_row_groups)), 0, meta.num_rows)
    mapping = {key: tuple(names) for key, names in (columns or {}).items()}
    return read_shard(fs, shard, ReadConfig(logs="", columns=mapping, **config), repeats or {})


def spoil(path, column, group):
    """Flip the last byte of a column chunk, one of its values; the page checksum no longer holds."""
    chunk = pq.read_metadata(path).row_group(group).column(column)
    raw = bytearray(path.read_bytes())
    raw[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(bytes(raw))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "part-0007.parquet"


def test_a_plain_log_comes_through(path):
    """Our own names need no mapping; what was not logged is null, and an empty list is no missing one."""
    log, quarantine = read(pa.Table.from_pylist([row(1), row(2, chunks=[], answer=None)], SCHEMA), path)

    assert (log.schema, quarantine.schema) == (LOG, QUARANTINE)
    first, second = log.to_pylist()
    assert row(1) == {name: first[name] for name in SCHEMA.names}
    assert (second["chunks"], second["answer"], second["samples"]) == ([], None, None)
    assert log["flags"].to_pylist() == [[], []]
    assert quarantine.num_rows == 0


BAD = {
    "request_id_null": [row(1, request_id=None), row(1, request_id=" ")],
    "chunks_null": [row(1, chunks=None)],
    "chunk_text_null": [
        row(1, chunks=[{"id": "a", "text": None, "score": 1.0}]),
        row(1, chunks=[{"id": "a", "text": "x"}, None]),
    ],
    "chunk_ids_collide": [row(1, chunks=[{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])],
    "row_too_large": [row(1, answer="x" * 2_000), row(1, chunks=[{"id": "a", "text": "é" * 600}])],
}


@pytest.mark.parametrize("reason, bad", [(reason, bad) for reason, rows in BAD.items() for bad in rows])
def test_a_bad_row_is_quarantined_alone(path, reason, bad):
    """A row that breaks a rule is named with its place; its neighbours come through."""
    table = pa.Table.from_pylist([row(7), row(8), bad, row(9)], SCHEMA)
    log, quarantine = read(table, path, max_row_bytes=1_000, write={"row_group_size": 2})

    assert log["request_id"].to_pylist() == ["r7", "r8", "r9"]
    (found,) = quarantine.to_pylist()
    assert found.pop("detail")
    expected = {
        "file": str(path),
        "row_group": 1,
        "row": 2,
        "request_id": bad["request_id"],
        "reason": reason,
    }
    assert expected == found


@pytest.mark.parametrize("column", ["request_id", "answer"])
def test_invalid_utf8_is_quarantined(path, column):
    """Bytes that are no UTF-8 are no text; the row says in which column, and good bytes are read as text."""
    table = pa.Table.from_pylist([row(1), row(2)], SCHEMA)
    values = pa.array([b"caf\xc3\xa9", b"caf\xe9"])
    log, quarantine = read(table.set_column(table.column_names.index(column), column, values), path)

    assert log[column].to_pylist() == ["café"]
    assert [(q["row"], q["reason"]) for q in quarantine.to_pylist()] == [(1, "invalid_utf8")]
    assert f"column {column!r}" in quarantine["detail"][0].as_py()


def test_invalid_utf8_in_a_string_column_is_quarantined(path):
    """Parquet writers may call anything a string; the bytes are looked at."""
    values = pa.array([b"fine", b"\xff\xfe"])
    strings = pa.Array.from_buffers(pa.string(), 2, values.buffers())
    table = pa.Table.from_pylist([row(1), row(2)], SCHEMA).set_column(2, "answer", strings)
    _, quarantine = read(table, path)

    assert quarantine["reason"].to_pylist() == ["invalid_utf8"]


def test_an_unreadable_row_group_is_quarantined_whole(path):
    """Every row of it, even those before the fault, and no row of the others."""
    table = pa.Table.from_pylist([row(n) for n in range(30)], SCHEMA)
    pq.write_table(table, path, row_group_size=10, write_page_checksum=True)
    spoil(path, 2, group=1)
    log, quarantine = read_back(path)

    assert [f"r{n}" for n in (*range(10), *range(20, 30))] == log["request_id"].to_pylist()
    assert {("unreadable_row_group", 1)} == {(q["reason"], q["row_group"]) for q in quarantine.to_pylist()}
    assert list(range(10, 20)) == quarantine["row"].to_pylist()


def test_only_mapped_leaves_are_read(path):
    """Bytes of columns nobody mapped are never looked at, inside a chunk neither: spoiled ones do no harm."""
    kind = pa.list_(pa.struct([("id", pa.string()), ("vector", pa.string()), ("text", pa.string())]))
    chunks = pa.array([[{"id": "a", "vector": "v" * 500, "text": "t"}]], kind)
    table = pa.table({"request_id": ["r"], "answer": ["a"], "chunks": chunks, "secret": ["s" * 500]})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    for column in (3, 5):  # chunks' vector, secret
        spoil(path, column, group=0)
    log, _ = read_back(path)

    assert log["chunks"].to_pylist() == [[{"id": "a", "text": "t", "score": None}]]


@pytest.mark.parametrize("rows", [1, 7, 1_000])
def test_batches_do_not_show(path, monkeypatch, rows):
    """A row group of many small pages gives the same tables whatever the batch."""
    rng = range(100)
    rows_in = [
        row(
            n,
            answer=None if n % 9 == 0 else "a" * n,
            chunks=None if n % 11 == 5 else row(n)["chunks"] * (n % 4),
        )
        for n in rng
    ]
    monkeypatch.setattr(logfile, "_BATCH_ROWS", rows)
    log, quarantine = read(
        pa.Table.from_pylist(rows_in, SCHEMA), path, write={"data_page_size": 64, "use_dictionary": False}
    )

    assert [r["request_id"] for r in rows_in if r["chunks"] is not None] == log["request_id"].to_pylist()
    assert [r["answer"] for r in rows_in if r["chunks"] is not None] == log["answer"].to_pylist()
    assert [5 + 11 * n for n in range(9)] == quarantine["row"].to_pylist()


def test_nested_text_that_arrow_cannot_chunk_is_read_row_by_row(path, monkeypatch):
    """Past 2 GiB of text in a batch Arrow gives up on nested columns; the rows are read singly from there."""
    iter_batches = pq.ParquetFile.iter_batches

    def refusing(self, size, **kwargs):
        for n, batch in enumerate(iter_batches(self, size, **kwargs)):
            if size > 1 and n == 1:
                raise pa.ArrowNotImplementedError(
                    "Nested data conversions not implemented for chunked arrays"
                )
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", refusing)
    monkeypatch.setattr(logfile, "_BATCH_ROWS", 4)
    log, _ = read(pa.Table.from_pylist([row(n) for n in range(10)], SCHEMA), path)

    assert [f"r{n}" for n in range(10)] == log["request_id"].to_pylist()


class Flaky:
    """A file system whose reads fail between the footer and read number `heals_at`."""

    def __init__(self, heals_at):
        self.n_reads, self.heals_at = 0, heals_at

    def open_input_file(self, path):
        outer = self

        class File(io.FileIO):
            def read(self, size=-1):
                outer.n_reads += 1
                if 1 < outer.n_reads < outer.heals_at:
                    raise OSError("connection reset")
                return super().read(size)

        return pa.PythonFile(File(path), mode="r")


def test_a_storage_fault_is_not_a_corrupt_row_group(path):
    """Bytes that cannot be fetched stop the shard, to be tried again; no row is quarantined for it."""
    pq.write_table(pa.Table.from_pylist([row(1)], SCHEMA), path)

    with pytest.raises(InputError, match="row group 0 cannot be fetched: connection reset; run again"):
        read_back(path, fs=Flaky(heals_at=1_000))


def test_a_storage_fault_stops_the_search_for_repeats(path):
    """Passed over, the file's repeats would be read as answers a moment later."""
    pq.write_table(pa.Table.from_pylist([row(1)], SCHEMA), path)

    with pytest.raises(InputError, match="row group 0 cannot be fetched"):
        find_repeats(Flaky(heals_at=1_000), [Shard("ab", str(path), (0,), 0, 1)], ReadConfig(logs=""))


def test_a_passing_storage_fault_is_outlived(path):
    """One failed read costs a second attempt and nothing else."""
    pq.write_table(pa.Table.from_pylist([row(1)], SCHEMA), path)
    fs = Flaky(heals_at=3)
    log, quarantine = read_back(path, fs=fs)

    assert (log.num_rows, quarantine.num_rows) == (1, 0)
    assert fs.n_reads > fs.heals_at


def test_condemned_rows_are_quarantined(path):
    """What find_repeats condemned goes by row of the file; a row that is wrong in itself keeps its own reason."""
    repeats = {1: ("repeated_request_id", "why"), 2: ("repeated_request_id", "why")}
    table = pa.Table.from_pylist([row(1), row(2), row(3, chunks=None), row(4)], SCHEMA)
    log, quarantine = read(table, path, repeats=repeats)

    assert log["request_id"].to_pylist() == ["r1", "r4"]
    assert quarantine["reason"].to_pylist() == ["repeated_request_id", "chunks_null"]


TEXT = st.one_of(st.none(), st.text(max_size=5))
CHUNK = st.one_of(st.none(), st.fixed_dictionaries({"id": TEXT, "text": TEXT, "score": st.just(1.0)}))
ROW = st.fixed_dictionaries(
    {"request_id": TEXT, "answer": TEXT, "chunks": st.one_of(st.none(), st.lists(CHUNK, max_size=3))}
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW, max_size=12))
def test_every_row_is_an_answer_or_quarantined(path, rows):
    """Nothing is lost or counted twice, order is kept, and what came through is as it was logged."""
    log, quarantine = read(pa.Table.from_pylist(rows, SCHEMA), path, write={"row_group_size": 5})

    bad = set(quarantine["row"].to_pylist())
    good = [r for n, r in enumerate(rows) if n not in bad]
    assert len(rows) == log.num_rows + len(bad) == log.num_rows + quarantine.num_rows
    assert [(r["request_id"], r["answer"]) for r in good] == [
        (r["request_id"], r["answer"]) for r in log.to_pylist()
    ]
    assert [[c["text"] for c in r["chunks"]] for r in good] == [
        [c["text"] for c in chunks] for chunks in log["chunks"].to_pylist()
    ]
