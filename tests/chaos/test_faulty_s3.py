"""A day on an object store that throttles, fails, answers late and resets connections: equal, or failed by name."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import chaos_job
import jobs_fixture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models
from faulty_s3 import serving
from resetting_proxy import RESETS

from claimscore.jobs.config import Config
from claimscore.jobs.errors import ClaimscoreError
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.output import LOCK
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

SEED = 20261130


@pytest.fixture(scope="module")
def server():
    """An object store with faults to be asked for."""
    with serving() as server:
        yield server


@pytest.fixture
def job(server, request, tmp_path):
    """A small day whose log and output are on the store, and the tables that it must come to."""
    server.meet(0)
    name = request.node.name.replace("[", "-").strip("]")
    rows = chaos_job.log_rows(0, 6)
    with server.fs.open_output_stream(f"data/{name}/logs/{chaos_job.DATE}/a.parquet") as sink:
        pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=3)
    jobs_fixture.write_config(tmp_path, extra=chaos_job.EXTRA)
    jobs_fixture.write_log(tmp_path, rows)
    run(chaos_job.load(tmp_path, (), tmp_path / "whole"))
    logs = f'read.logs="s3://data/{name}/logs/{{date}}/a.parquet{server.query}"'
    config = jobs_fixture.make_config(tmp_path, logs, f'store.out="s3://data/{name}/out{server.query}"')
    return config, chaos_job.tables(tmp_path / "whole")


def run(config: Config) -> list[str]:
    """Run the day under its lock in this process; one line a failure."""
    try:
        store = Store(config.store.out, config.store, run_id="run")
        with store.lock("run"):
            plan = plan_day(config, store, Weights.of(config), chaos_job.DATE)
            judge = stub_models.StubJudge()
            models = Models(stub_models.StubLlm(), judge, judge, stub_models.StubLlm())
            return run_day(config, store, plan, execute_here(config, store, models)).failures
    except ClaimscoreError as err:
        return [str(err)]


def differences(config: Config, expected) -> list[str]:
    """Tables on the store that are not as expected."""
    store = Store(config.store.out, config.store)
    keys = {key.removeprefix("tables/"): key for key in store.root.keys("tables")}
    odd = sorted(keys.keys() ^ expected.keys())
    return odd + [name for name in keys.keys() & expected.keys() if not store._read_key(keys[name], None).equals(expected[name])]  # fmt: skip


@pytest.mark.parametrize(("fault", "seen"), [("reset", b""), ("torn", b""), ("cut", b"HTTP/1.1 200")])
def test_a_reset_reaches_the_client(server, fault, seen):
    """The kernel of the client says so: a closed or cut connection alone would be another fault."""
    server.meet(SEED, **{fault: 1.0})
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"GET /data?list-type=2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        got: list[bytes] = []
        with pytest.raises(ConnectionResetError):
            got.extend(iter(lambda: client.recv(65_536), b""))

    assert b"".join(got).startswith(seen)
    assert server.counts[fault] == 1


@pytest.mark.parametrize("fault", ["SlowDown", "InternalError", "late", *RESETS])
def test_a_store_with_faults_gives_equal_tables_or_a_name(server, job, fault):
    """Every eighth request meets the fault: the run ends equal, or says where; the next one makes what is left."""
    config, expected = job
    server.meet(SEED, **{fault: 0.12})

    failures = run(config)
    n_met = server.counts[fault]
    server.meet(0)

    assert n_met >= 5
    assert all("s3://" in line or "data/" in line for line in failures), failures
    if failures:
        assert run(config) == []
    assert differences(config, expected) == []


@pytest.mark.parametrize("fault", ["SlowDown", "reset"])
def test_a_store_that_is_gone_is_named(server, job, fault):
    """Every request fails: one line with the place and no traceback; once it is back, the day is made."""
    config, expected = job
    server.meet(SEED, **{fault: 1.0})

    (line,) = run(config)
    server.meet(0)

    assert line.startswith("s3://data/")
    assert "\n" not in line
    assert run(config) == []
    assert differences(config, expected) == []


def test_a_dead_holder_whose_pid_lives_again_is_taken_over(job):
    """A container that was started anew reuses its pids: the lock of the run that died in it does not hold the store."""
    config, _ = job
    store = Store(config.store.out, config.store)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        holder = {"run_id": "old", "pid": living.pid, "host": socket.gethostname(), "process": "boot:1"}
        store.root.put(LOCK, json.dumps(holder).encode())
        with store.lock("mine") as warning:
            assert "run 'old'" in warning
        living.communicate(b"\n")
