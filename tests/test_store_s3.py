"""The store on an object store: moto's S3 server on loopback, reached through pyarrow.fs as a user would."""

import json
import os
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from claimscore.jobs import output
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import OutputError
from claimscore.jobs.layout import TableFile
from claimscore.jobs.output import LOCK
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.store import Store

DATE = "2026-11-28"
SERIES = "demo-0123abcd"
FILE = TableFile("verdicts", DATE, "aa", SERIES)
SCHEMA = pa.schema([pa.field("request_id", pa.string(), nullable=False)])
PARTS = {"claims": "aaaa", "judge weights": "bbbb"}
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(scope="module")
def bucket():
    """`host:port` of a server with one empty bucket, `logs`."""
    with pytest.MonkeyPatch.context() as env:
        for name, value in KEYS.items():
            env.setenv(name, value)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        fs = pyarrow.fs.S3FileSystem(
            endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        fs.create_dir("logs")
        yield f"{host}:{port}"
        server.stop()


@pytest.fixture
def store(bucket, request):
    """A store under a prefix of its own for each test."""
    name = re.sub(r"\W", "_", request.node.name)
    root = f"s3://logs/{name}?endpoint_override={bucket}&scheme=http&region=us-east-1"
    return Store(root, StoreConfig(out=root), run_id="run-1")


def write(store, file=FILE, parts=PARTS, n=3):
    table = pa.table({"request_id": [f"r{i}" for i in range(n)]})
    store.write(file, table, SCHEMA, parts=parts, counts={"answers": n})


def test_write_and_read(store):
    """A table goes to its final key and comes back; its manifest makes it fresh."""
    assert store.why_stale(FILE, PARTS) == "never made"
    write(store)
    assert store.read(FILE)["request_id"].to_pylist() == ["r0", "r1", "r2"]
    assert store.is_fresh(FILE, PARTS)
    assert store.why_stale(FILE, {**PARTS, "claims": "new"}) == "claims changed"


def test_bytes_are_those_of_a_local_store(store, tmp_path):
    """The same table is the same file, wherever it lies."""
    local = Store(str(tmp_path), StoreConfig(out="x"))
    write(local)
    write(store)
    assert store.root.get(FILE.key) == local.root.get(FILE.key)


def test_a_large_object_is_whole(store):
    """More than one part of a multipart upload (5 MiB) still arrives as one object."""
    data = os.urandom(1 << 20) * 6
    store.root.put("tables/large", data)
    assert store.root.get("tables/large") == data


def test_a_small_object_is_one_put(store, caplog):
    """A manifest costs one request to write, not the three of a multipart upload."""
    with caplog.at_level("INFO", logger="werkzeug"):
        store.root.put("state/small.json", b"{}")
    assert [r.getMessage().split('"')[1].split()[0] for r in caplog.records] == ["PUT"]


def test_nothing_but_final_keys(store):
    """There is no rename on an object store, so nothing is written anywhere else first."""
    write(store)
    assert store.root.keys("") == [FILE.manifest_key, FILE.key]


def test_a_kill_between_table_and_manifest(store, monkeypatch):
    """The new table is up and the run dies: neither the old nor the new parts are fresh, and a rerun mends it."""
    write(store, parts={"v": "1"})
    put = output.OutputRoot.put

    def dying(self, key, data):
        if key.endswith(".json"):
            raise KeyboardInterrupt
        put(self, key, data)

    with monkeypatch.context() as patch:
        patch.setattr(output.OutputRoot, "put", dying)
        with pytest.raises(KeyboardInterrupt):
            write(store, parts={"v": "2"})
    assert [store.is_fresh(FILE, {"v": v}) for v in "12"] == [False, False]
    assert store.why_stale(FILE, {"v": "2"}) == "made without a whole manifest (a run was interrupted)"
    write(store, parts={"v": "2"})
    assert store.is_fresh(FILE, {"v": "2"})


def test_a_table_folder_is_read_as_it_is(store):
    """A scan of the folder gives the rows, also after shards came and went."""
    write(store)
    write(store, TableFile("verdicts", "2026-11-27", "bb", SERIES))
    write(store, TableFile("verdicts", "2026-11-27", "cc", SERIES))
    store.remove_orphans("verdicts", "2026-11-27", SERIES, set())
    scan = ds.dataset(store.root.path("tables/verdicts"), filesystem=store.root.fs, partitioning="hive")
    assert scan.to_table().to_pydict() == {
        "request_id": ["r0", "r1", "r2"],
        "judge": [SERIES] * 3,
        "date": [DATE] * 3,
    }


def test_orphans_series_pointer_and_runs(store):
    """The rest of the bookkeeping works through the same few calls."""
    write(store)
    write(store, TableFile("verdicts", DATE, "bb", SERIES))
    assert store.remove_orphans("verdicts", DATE, SERIES, {"aa"}) == ["bb"]
    assert store.files("verdicts", series=SERIES) == [FILE]
    assert store.list_series() == [SERIES]
    assert store.current() is None
    store.set_current(SERIES)
    assert store.current() == SERIES
    store.write_run("r1", {"rows": 3})
    assert json.loads(store.root.get("state/run.json")) == {"rows": 3}


def test_paths_are_shown_as_urls_without_options(store):
    """What people are told is the URL that other tools take."""
    assert store.path(FILE) == f"s3://{store.root.base}/{FILE.key}"
    assert "endpoint_override" not in store.path(FILE)


def test_a_missing_bucket_is_a_plain_error(bucket):
    """Writing where there is no bucket is one line in the form of all others."""
    root = f"s3://no-such-bucket/x?endpoint_override={bucket}&scheme=http&region=us-east-1"
    with pytest.raises(OutputError) as caught:
        write(Store(root, StoreConfig(out=root)))
    text = str(caught.value)
    assert text.startswith("s3://no-such-bucket/x/")
    assert "\n" not in text


def test_shards_of_a_log_on_s3(store, tmp_path):
    """A log is planned to the same shard ids on S3 as on disk."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"id": range(100)}), path, row_group_size=10)
    store.root.put("in/log.parquet", path.read_bytes())
    local, _ = plan_shards(pyarrow.fs.LocalFileSystem(), [str(path)], 25)
    remote, errors = plan_shards(store.root.fs, [store.root.path("in/log.parquet")], 25)
    assert ([s.shard_id for s in remote], errors) == ([s.shard_id for s in local], [])


def lock_text(**changes):
    holder = {"run_id": "other", "pid": os.getpid(), "host": socket.gethostname(), "started_at": "then"}
    return json.dumps(holder | changes).encode()


def test_the_lock_is_held_and_given_back(store):
    """While one run holds the root another is refused with its name; afterwards there is no lock object."""
    with store.lock("one") as warning:
        assert warning == ""
        with pytest.raises(OutputError) as caught, store.lock("two"):
            pass
    assert str(caught.value).startswith(
        f"s3://{store.root.base}/{LOCK}: held by run 'one' (pid {os.getpid()} "
    )
    assert str(caught.value).endswith("if its machine is gone, delete that object")
    assert store.root.get(LOCK) is None


@pytest.mark.parametrize(
    "holder",
    [lock_text(), lock_text(host="elsewhere"), lock_text(pid="x"), lock_text(pid=0), b"garbled"],
    ids=["this process", "other host", "no pid", "pid 0", "garbled"],
)
def test_a_lock_that_may_be_alive_is_respected(store, holder):
    """A young lock of another host, or one that says nothing, is never taken over."""
    store.root.put(LOCK, holder)
    with pytest.raises(OutputError, match="expected no other run"), store.lock("mine"):
        pass
    assert store.root.get(LOCK) == holder


def test_a_dead_process_of_this_host_is_taken_over(store):
    """A lock of this host whose process is gone gives way, with a warning."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    store.root.put(LOCK, lock_text(pid=child.pid))
    with store.lock("mine") as warning:
        assert "run 'other'" in warning


def test_an_old_lock_is_taken_over(store, monkeypatch):
    """After 20 hours a lock gives way, so that one dead machine does not stop every night to come."""
    store.root.put(LOCK, lock_text(host="elsewhere"))
    later = datetime.now(UTC).timestamp() + 21 * 3600
    monkeypatch.setattr(output.time, "time", lambda: later)
    with store.lock("mine") as warning:
        assert "its lock is taken over" in warning


def test_the_loser_of_a_race_for_the_lock_stops(store, monkeypatch):
    """Two runs that both saw no lock: the one whose lock was overwritten finds out before it starts."""
    put = output.OutputRoot.put

    def overtaken(self, key, data):
        put(self, key, data)
        put(self, key, lock_text(run_id="faster"))

    monkeypatch.setattr(output.OutputRoot, "put", overtaken)
    with pytest.raises(OutputError, match="held by run 'faster'"), store.lock("mine"):
        pass
