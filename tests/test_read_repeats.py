"""Repeated request ids over the files of a day, and which files are a day's."""

from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.read import find_repeats, list_files, read_shard
from claimscore.jobs.records import Shard

LOCAL = pyarrow.fs.LocalFileSystem()
CONFIG = ReadConfig(logs="")
SCHEMA = pa.schema(
    [
        ("request_id", pa.string()),
        ("answer", pa.string()),
        ("chunks", pa.list_(pa.struct([("id", pa.string()), ("text", pa.string())]))),
        ("topic", pa.string()),
    ]
)


def row(request_id, answer="5 EUR.", **changes):
    chunks = [{"id": "a", "text": "The fee is 5 EUR."}]
    return {"request_id": request_id, "answer": answer, "chunks": chunks, "topic": None, **changes}


@pytest.fixture
def day(tmp_path):
    """A function that writes lists of rows as files a, b, .. and gives their shards."""

    def write(*files, schema=SCHEMA, group=2):
        shards = []
        for name, rows in zip("abc", files, strict=False):
            path = tmp_path / f"{name}.parquet"
            table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema)
            options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
            pq.write_table(table, path, row_group_size=group, **options)
            n_groups = pq.read_metadata(path).num_row_groups
            shards.append(Shard(f"shard-{name}", str(path), tuple(range(n_groups)), 0, table.num_rows))
        return shards

    return write


def reasons(repeats):
    return {shard: {row: reason for row, (reason, _) in found.items()} for shard, found in repeats.items()}


def test_no_repeats(day):
    """Every shard has its entry, and it is empty."""
    shards = day([row("1"), row("2")], [row("3")])

    assert find_repeats(LOCAL, shards, CONFIG) == {"shard-a": {}, "shard-b": {}}
    assert find_repeats(LOCAL, [], CONFIG) == {}


def test_without_repeats_only_ids_are_read(day):
    """A spoiled answer column does not disturb the search: nobody looked at it."""
    (shard,) = day([row("1", "x" * 500), row("2", "y" * 500)])
    column = pq.read_metadata(shard.file).row_group(0).column(1)
    with Path(shard.file).open("r+b") as file:
        file.seek(column.data_page_offset + column.total_compressed_size - 9)  # values, not the header
        file.write(b"\xff\xff\xff")

    assert find_repeats(LOCAL, [shard], CONFIG) == {"shard-a": {}}
    _, quarantine = read_shard(LOCAL, shard, CONFIG, {})
    assert quarantine.num_rows == 2


def test_identical_rows_stay_once(day):
    """The first by file and row stays, whatever the order of the shards."""
    shards = day([row("0"), row("1"), row("1")], [row("1"), row("2")])
    repeats = find_repeats(LOCAL, shards[::-1], CONFIG)

    once = "repeat_of_identical_row"
    assert reasons(repeats) == {"shard-a": {2: once}, "shard-b": {0: once}}
    assert repeats["shard-b"][0][1] == f"first at row 1 of {shards[0].file}"


@pytest.mark.parametrize("change", [{"answer": "6 EUR."}, {"topic": "fees"}, {"chunks": []}])
def test_differing_rows_all_go(day, change):
    """Which of them is the answer cannot be known; an identical pair among them is no excuse."""
    shards = day([row("0"), row("1"), row("1")], [row("1", **change), row("2")])

    every = "repeated_request_id"
    assert reasons(find_repeats(LOCAL, shards, CONFIG)) == {
        "shard-a": {1: every, 2: every},
        "shard-b": {0: every},
    }


def test_rows_and_verdict_of_the_search_add_up(day):
    """What the search condemned is what reading quarantines."""
    shards = day([row("0"), row("1"), row("1")], [row("2", "a"), row("2", "b")])
    repeats = find_repeats(LOCAL, shards, CONFIG)
    read = [read_shard(LOCAL, shard, CONFIG, repeats[shard.shard_id]) for shard in shards]

    assert [log["request_id"].to_pylist() for log, _ in read] == [["0", "1"], []]
    assert [q["row"].to_pylist() for _, q in read] == [[2], [0, 1]]


def test_ids_are_compared_as_text_across_files(day):
    """An integer id in one file is the same id as its digits in another."""
    numbers = pa.Table.from_pylist([row("1")], SCHEMA).set_column(0, "request_id", pa.array([1]))
    shards = day([row("1")], numbers)

    assert reasons(find_repeats(LOCAL, shards, CONFIG)) == {
        "shard-a": {},
        "shard-b": {0: "repeat_of_identical_row"},
    }


def test_a_row_that_is_wrong_in_itself_claims_nothing(day):
    """Null ids are no repeats of one another, and a broken row does not condemn the good one with its id."""
    shards = day([row(None), row(None), row("1")], [row("1", chunks=None)])

    assert reasons(find_repeats(LOCAL, shards, CONFIG)) == {"shard-a": {}, "shard-b": {}}


def test_a_file_that_cannot_be_used_is_passed_over(day, tmp_path):
    """It is reading that reports it."""
    shards = day([row("1"), row("1")], pa.table({"x": [1]}))
    shards.append(Shard("gone", str(tmp_path / "gone.parquet"), (0,), 0, 1))

    found = reasons(find_repeats(LOCAL, shards, CONFIG))
    assert found == {"shard-a": {1: "repeat_of_identical_row"}, "shard-b": {}, "gone": {}}


def test_ids_made_from_content(day):
    """Equal rows have equal ids wherever they stand and stay once; a row at another time is another answer."""
    config = ReadConfig(logs="", columns={"request_id": ()})
    schema = pa.schema([*list(SCHEMA)[1:], ("ts", pa.string())])
    twice, later, other = (
        row("", ts="2026-11-28"),
        row("", ts="2026-11-29"),
        row("", "6 EUR.", ts="2026-11-28"),
    )
    shards = day([twice, later], [other, twice], schema=schema)
    repeats = find_repeats(LOCAL, shards, config)
    logs = [read_shard(LOCAL, shard, config, repeats[shard.shard_id])[0] for shard in shards]

    assert reasons(repeats) == {"shard-a": {}, "shard-b": {1: "repeat_of_identical_row"}}
    ids = [i for log in logs for i in log["request_id"].to_pylist()]
    assert len(set(ids)) == 3
    assert all(len(i) == 32 for i in ids)
    assert logs[0]["flags"].to_pylist() == [["request_id_synthetic"]] * 2


@pytest.fixture
def tree(tmp_path):
    for name in (
        "2026-11-28/b.parquet",
        "2026-11-28/a.parquet",
        "2026-11-28/deep/c.parquet",
        "2026-11-28/_meta/x.parquet",
        "2026-11-28/.a.parquet",
        "2026-11-28/_SUCCESS",
        "2026-11-29/a.parquet",
        "odd [1]/a.log",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.parametrize(
    "logs, expected",
    [
        ("{date}", ["2026-11-28/a.parquet", "2026-11-28/b.parquet", "2026-11-28/deep/c.parquet"]),
        ("{date}/a.parquet", ["2026-11-28/a.parquet"]),
        ("{date}/*.parquet", ["2026-11-28/.a.parquet", "2026-11-28/a.parquet", "2026-11-28/b.parquet"]),
        ("*/a.parquet", ["2026-11-28/a.parquet", "2026-11-29/a.parquet"]),
        ("**/c.parquet", ["2026-11-28/deep/c.parquet"]),
        ("2026-11-2[89]/a.parquet", ["2026-11-28/a.parquet", "2026-11-29/a.parquet"]),
        ("odd [1]/a.log", ["odd [1]/a.log"]),
    ],
)
def test_list_files(tree, logs, expected):
    """A folder is its Parquet files at any depth, a glob what it matches, an existing path itself."""
    _, files = list_files(str(tree / logs), "2026-11-28")

    assert files == [str(tree / name) for name in expected]


@pytest.mark.parametrize("logs", ["{date}", "{date}/*.parquet", "a.parquet"])
def test_no_files_is_an_input_error(tree, logs):
    """The path with its date filled in is in the message."""
    with pytest.raises(InputError) as caught:
        list_files(str(tree / logs), "2026-12-24")
    where = tree / logs.replace("{date}", "2026-12-24")
    assert str(caught.value) == (
        f"{where}: no log file, expected a Parquet file, a folder of *.parquet or a glob; "
        f"check {'[read] logs and the date' if '{date}' in logs else 'the path'}"
    )


def test_a_log_on_an_object_store(monkeypatch):
    """Folder, glob and file of a bucket are listed, and read as local ones are."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.setenv(name, "true")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    query = f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    fs, bucket = pyarrow.fs.FileSystem.from_uri(f"s3://traffic{query}")
    fs.create_dir(bucket)
    for name in ("a", "b"):
        pq.write_table(
            pa.Table.from_pylist([row(name)], SCHEMA), f"traffic/2026-11-28/{name}.parquet", filesystem=fs
        )
    uris = [f"s3://traffic/{{date}}{tail}{query}" for tail in ("", "/*.parquet", "/b.parquet", "/c.parquet")]
    listed = [list_files(uri, "2026-11-28")[1] for uri in uris[:3]]
    log, _ = read_shard(fs, Shard("ab", listed[0][1], (0,), 0, 1), CONFIG, {})
    with pytest.raises(InputError, match="no log file"):
        list_files(uris[3], "2026-11-28")
    server.stop()

    both = ["traffic/2026-11-28/a.parquet", "traffic/2026-11-28/b.parquet"]
    assert listed == [both, both, both[1:]]
    assert log["request_id"].to_pylist() == ["b"]
