"""The installed command on Ray: whole runs, a kill and the run after it, bad files, another judge, a held lock."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray_fixture

from claimscore.jobs.store import Store

jobs_fixture, claimscore, DATE = ray_fixture.jobs_fixture, ray_fixture.claimscore, ray_fixture.DATE
N_SHARDS = 6
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A deployment of six shards with a real, tiny judge, and an empty folder to run from."""
    base = tmp_path_factory.mktemp("deployment")
    ray_fixture.write_deployment(base, n_shards=N_SHARDS, extra="[cluster]\nretries = 0\n")
    ray_fixture.write_judge(base / "model")
    ray_fixture.write_judge(base / "other", seed=1)
    (base / "other.toml").write_text('name = "other"\nmodel = "./other"\nentailment = 0.8\n')
    (base / "elsewhere").mkdir()
    return base


@pytest.fixture(scope="module")
def ray_folder():
    """Where every Ray of these runs keeps its session; of a short name, for sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def n_started(ray_folder):
    """How often Ray was started so far."""
    return len([path for path in (ray_folder / "ray").glob("session_*") if not path.is_symlink()])


@pytest.fixture(scope="module")
def first(base, ray_folder):
    """The first run of the day, in a home folder that cannot be written."""
    settings = {"HOME": "/proc/nowhere", "RAY_TMPDIR": str(ray_folder)}
    return claimscore("run", base / "claimscore.toml", "--date", DATE, cwd=base / "elsewhere", **settings)


@pytest.fixture
def run(base, first, ray_folder):
    """A function that runs a command on the deployment once the first run is done."""
    return lambda command, *arguments: claimscore(
        command, base / "claimscore.toml", *arguments, cwd=base / "elsewhere", RAY_TMPDIR=str(ray_folder)
    )


def tables(out):
    """Every table under an output root by its key, as values."""
    root = out / "tables"
    return {str(path.relative_to(root)): pq.read_table(path) for path in sorted(root.rglob("*.parquet"))}


def ids(out, table):
    found = [t.column("request_id") for key, t in tables(out).items() if key.startswith(f"{table}/")]
    return sorted(pa.concat_tables([pa.table({"id": column}) for column in found]).column("id").to_pylist())


def test_a_run_on_ray_accounts_for_every_row(base, first):
    """Every row of the log is one answer, and the exit code, 0, stands in run.json too."""
    assert first.returncode == 0, first.stderr
    assert ids(base / "out", "answers") == sorted(f"r{k}" for k in range(3 * N_SHARDS))
    assert json.loads((base / "out" / "state" / "run.json").read_text())["exit_code"] == 0


def test_nothing_but_our_progress_goes_to_stderr(first):
    """Ray's banner, its advice on tokens and its log lines stay out of a nightly log."""
    lines = [line for line in first.stderr.splitlines() if not re.match(rf"{DATE}: \d+/\d+ shards, ", line)]
    assert lines == [f"{DATE}: starting Ray and loading models"]


def test_a_second_run_makes_nothing_and_starts_no_ray(run, ray_folder):
    """Nothing is stale, so the run ends in the time that looking takes: no session of Ray is added to the first run's."""
    before = n_started(ray_folder)
    again = run("run", "--date", DATE, "--json")

    assert [(day["made"], day["exit_code"]) for day in json.loads(again.stdout)["days"]] == [({}, 0)]
    assert (before, n_started(ray_folder)) == (1, 1)


def test_a_second_run_beside_the_first_names_it(base, run):
    """While a run holds the output, another ends with code 1 and says which process to wait for."""
    store = Store(str(base / "out"), jobs_fixture.make_config(base).store)
    with store.lock("the-first"):
        other = run("run", "--date", DATE)

    assert other.returncode == 1
    assert f"held by run 'the-first' (pid {os.getpid()}" in other.stderr


def test_a_failed_run_leaves_its_exit_code(base, run):
    """A day without a log is code 1 in run.json too, not the code of the run before."""
    lost = run("run", "--date", "2026-11-29")

    record = json.loads((base / "out" / "state" / "run.json").read_text())
    assert (lost.returncode, record["exit_code"]) == (1, 1)
    assert record["error"] in lost.stderr


def test_a_cluster_that_is_not_there_is_named_at_once(base, run):
    """A wrong address is one line and code 1, not minutes of Ray's tries."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    lost = run("run", "--date", DATE, "--set", f'store.out="{base}/lost"', "--address", address, "--quiet")

    assert lost.returncode == 1
    assert lost.stderr.startswith(f"Error: [cluster] address = '{address}': Ray cannot be joined: ")
    assert len(lost.stderr.splitlines()) == 1


def test_another_judge_is_compared_with_the_first(base, run):
    """A backfill scores the same claims with another judge, and the two series are put side by side."""
    claims = {key: table for key, table in tables(base / "out").items() if key.startswith("claims/")}
    done = run("backfill", "--since", DATE, "--until", DATE, "--judge", base / "other.toml", "--json")
    assert done.returncode == 0, done.stderr

    (day,) = json.loads(done.stdout)["days"]
    current = json.loads((base / "out" / "state" / "current.json").read_text())["series"]
    compared = claimscore("compare", current, day["series"], "--out", base / "out", "--json", cwd=base)
    assert compared.returncode == 0, compared.stderr
    assert 0 <= json.loads(compared.stdout)["agreement"] <= 1
    assert day["made"].keys() == {"scores", "sample_scores", "verdicts", "answers", "metrics"}
    assert claims.keys() <= tables(base / "out").keys()


def test_a_backfill_without_claims_says_what_to_do(base, run):
    """Claims that are not fresh would need the LLM: code 1, and the day to run first."""
    done = run(
        *("backfill", "--since", DATE, "--until", DATE, "--judge", base / "other.toml"),
        *("--set", f'store.out="{base}/empty"'),
    )

    assert done.returncode == 1
    assert "a backfill loads no LLM; run that day first" in done.stderr


def test_a_bad_file_costs_no_good_one(base, run):
    """Code 3 and a line for the file that is no Parquet; the new good file beside it is scored."""
    other = base / "bad"
    shutil.copytree(base / "logs", other / "logs")
    (other / "logs" / DATE / "junk.parquet").write_bytes(b"not parquet at all")
    new = [{**row, "request_id": f"new-{row['request_id']}"} for row in jobs_fixture.log_rows(3)]
    jobs_fixture.write_log(other, new, name="part-1.parquet")
    shutil.copytree(base / "out", other / "out")

    done = run(
        *("run", "--date", DATE, "--set", f'read.logs="{other}/logs/{{date}}/*.parquet"'),
        *("--set", f'store.out="{other}/out"'),
    )

    assert done.returncode == 3
    assert f"{other}/logs/{DATE}/junk.parquet" in done.stderr
    assert set(ids(other / "out", "answers")) >= {"new-r0", "new-r1", "new-r2"}


def session(leader):
    """Pids of the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
            if int(sid) == leader and state != "Z":
                found.append(int(stat.parent.name))
    return found


def wait_until(is_so, what):
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture(scope="module")
def killed(base, first):
    """An output whose run was killed with -9 once a shard was done, and what it left."""
    out = base / "killed"
    command = [
        *(ray_fixture.SCRIPT, "run", base / "claimscore.toml", "--date", DATE),
        *("--set", f'store.out="{out}"', "--set", "cluster.shards_in_flight=1"),
    ]
    with subprocess.Popen(
        command, cwd=base, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as driver:
        try:
            wait_until(
                # The manifest, which comes last and makes the table count.
                lambda: list(out.glob("state/manifests/answers/**/*.json")) or driver.poll() is not None,
                "no table",
            )
            assert driver.poll() is None, driver.stdout.read().decode(errors="replace")[-2_000:]
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            writers = [pid for pid in session(driver.pid) if _is_worker(pid)]
            wait_until(lambda: not any(map(_is_alive, writers)), "a worker outlives its run")
            left = tables(out)
        finally:  # Ray's agents, which write nothing of ours, notice within a minute
            for pid in session(driver.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    return out, left


def _is_worker(pid):
    with contextlib.suppress(OSError):
        return b"_run_shard" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _is_alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_the_run_after_a_kill_makes_what_is_left(base, run, killed):
    """After kill -9 in mid-run, the next run makes the other shards, and every table equals an unbroken run's."""
    out, left = killed
    before = json.loads((out / "state" / "run.json").read_text())["exit_code"]
    done = run("run", "--date", DATE, "--set", f'store.out="{out}"', "--json")

    (day,) = json.loads(done.stdout)["days"]
    expected = {
        key: table
        for key, table in tables(base / "out").items()
        if f"judge={day['series']}" in key or "judge=" not in key
    }
    assert (before, done.returncode) == (None, 0)
    assert 0 < day["made"]["answers"] < N_SHARDS
    assert left.keys() < tables(out).keys()
    assert {key for key, table in tables(out).items() if not table.equals(expected[key])} == set()
    assert tables(out).keys() == expected.keys()
