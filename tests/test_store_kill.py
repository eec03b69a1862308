"""A write that is killed before and after each of its system calls, and the run after it."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from claimscore.jobs.config import StoreConfig
from claimscore.jobs.layout import TableFile
from claimscore.jobs.store import Store

FILE = TableFile("claims", "2026-11-28", "aa")


def open_store(path):
    return Store(str(path), StoreConfig(out=str(path)))


KILL = """
import os, sys
from pathlib import Path
import pyarrow as pa
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.layout import TableFile
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.store import Store

os.fsync = lambda fd: None  # the kernel outlives the kill; only power loss would need the real one
base = sys.argv[1]
CALLS = ((os, "fsync"), (os, "open"), (Path, "open"), (Path, "replace"), (Path, "unlink"), (OutputRoot, "remove"))
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
    code, step = 9, 0
    while code == 9:
        step += 1
        store = Store(f"{base}/{before}-{step}", StoreConfig(out="x"))
        if before == "old":
            make(store, "a")
        child = os.fork()
        if child == 0:
            for module, name in CALLS:
                dying_at(step, module, name)
            make(store, "b")
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(before, step, code, flush=True)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Stores whose write was killed before and after each system call: (what was there before, folder)."""
    base = tmp_path_factory.mktemp("killed")
    done = subprocess.run([sys.executable, "-c", KILL, str(base)], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    stores = [(before, base / f"{before}-{step}") for before, step, code in lines if code == "9"]
    assert [code for *_, code in lines if code != "9"] == ["0", "0"], (
        "each case ends with a write that nothing killed"
    )
    assert len(stores) > 40
    return stores


def version_of(store):
    return store.read(FILE)["request_id"][0].as_py()[0]


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
        sizes.add(store.root.size(FILE.key))
        for version in "ab":
            if store.is_fresh(FILE, {"log content": version}):
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
    whole.write(FILE, table, schema, parts=parts, counts={})
    for _, folder in killed:
        store = open_store(folder)
        with store.lock("rerun"):
            if not store.is_fresh(FILE, parts):
                store.write(FILE, table, schema, parts=parts, counts={})
        assert store.is_fresh(FILE, parts)
        assert store.root.get(FILE.key) == whole.root.get(FILE.key)
        assert store.root.keys("tmp") == []
