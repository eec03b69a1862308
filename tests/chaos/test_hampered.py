"""Runs without room, without the right to write, with a wrong clock, or beside another: named, and mended by the next."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import chaos_job
import pytest
from kill_server import KillServer

from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import OutputError
from claimscore.jobs.layout import TableFile
from claimscore.jobs.output import LOCK
from claimscore.jobs.records import QUARANTINE
from claimscore.jobs.store import Store


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A small deployment, a server for its runs, and the tables of a whole run."""
    folder = tmp_path_factory.mktemp("hampered")
    chaos_job.write_deployment(folder, small=True)
    with KillServer(folder) as server:
        assert server.run(folder / "whole")["code"] == 0
        yield folder, server, chaos_job.tables(folder / "whole")


@pytest.fixture
def out(base, request):
    """An output for one test."""
    return base[0] / request.node.name


def check_next_run(base, out: Path) -> None:
    """With the hindrance gone, the next run makes what is left, and every table equals a whole run's."""
    _, server, expected = base
    assert server.run(out)["code"] == 0
    assert chaos_job.problems(out, finished=True) == []
    assert chaos_job.differences(out, expected) == []


@pytest.mark.parametrize("largest_file", [100, 3_000, 6_000, 12_000])
def test_a_file_that_finds_no_room_is_named(base, out, largest_file):
    """The kernel refuses the rest of a file (RLIMIT_FSIZE): code 1 or 3, the reason, no half table, and a rerun mends it."""
    reply = base[1].run(out, largest_file=largest_file)

    assert reply.get("exit_code", 1) in (1, 3)
    assert "File too large, expected room for it; free some space and run again" in json.dumps(reply)
    assert chaos_job.problems(out, finished=False) == []
    check_next_run(base, out)


@pytest.fixture
def small_disk(out):
    """A file system of its own at `out`, and a function that remounts it with other options."""
    out.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", out], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", out], check=True)
    subprocess.run(["umount", out], check=True)


def test_a_full_disk_is_named(base, out, small_disk):
    """A disk of 64 KiB fills in mid-run; with more room the next run makes what is left."""
    reply = base[1].run(out)

    assert "No space left on device, expected room for it; free some space and run again" in json.dumps(reply)
    assert chaos_job.problems(out, finished=False) == []
    small_disk("size=8m")
    check_next_run(base, out)


def test_a_disk_that_turns_read_only_is_named(base, out, small_disk):
    """An output on a file system that became read-only: code 1 and what to do, nothing lost."""
    small_disk("size=8m")
    assert base[1].run(out)["code"] == 0
    small_disk("ro")

    reply = base[1].run(out, ["verdicts.entailment=0.85"])

    assert (reply["code"], "Read-only file system, expected an output root" in reply["error"]) == (1, True)
    small_disk("rw")
    check_next_run(base, out)


@pytest.mark.parametrize("folder", ["", "tables/claims", "state/manifests", "state/locks", "tmp"])
def test_a_folder_without_permission_is_named(base, out, folder):
    """A folder that this user may not write into (root without its privilege): a named failure, and a rerun mends it."""
    (out / folder).mkdir(parents=True)
    (out / folder).chmod(0o555)
    try:
        reply = base[1].run(out, humble=True)
    finally:
        (out / folder).chmod(0o755)

    assert "Permission denied, expected an output root that this user may read and write" in json.dumps(reply)
    assert chaos_job.problems(out, finished=False) == []
    check_next_run(base, out)


@pytest.mark.parametrize("offset", [-30 * 86_400, 30 * 86_400])
def test_a_clock_that_jumps_decides_nothing(base, out, offset):
    """A run killed before the clock jumps a month is gone on with after it; what was made before it stays fresh."""
    killed = base[1].run(out, at=60, clock=0)
    reply = base[1].run(out, clock=offset)

    assert (killed["code"], reply["code"]) == (-9, 0)
    assert reply["made"]["quarantine"] < 2
    assert base[1].run(out)["made"] == {}
    assert chaos_job.differences(out, base[2]) == []


@pytest.mark.parametrize("at", [9, 60, 150])
def test_a_run_beside_another_names_it_and_touches_nothing(base, out, at):
    """A run stopped in the middle holds the output: the other ends with code 1 and its pid, host and run id."""
    folder, server, expected = base
    order = {"folder": str(folder), "out": str(out), "settings": []}

    reply = server.run(out, at=at, beside=order)

    run_id = next((out / "state" / "runs").iterdir()).name
    error = reply["beside"]["error"]
    assert error.startswith(f"{out}/{LOCK}: held by run '{run_id}' (pid {reply['pid']} on host '{socket.gethostname()}', ")  # fmt: skip
    assert (reply["beside"]["code"], reply["code"]) == (1, 0)
    assert chaos_job.problems(out, finished=True) == []
    assert chaos_job.differences(out, expected) == []


def test_a_worker_that_outlives_its_run_writes_nothing_beside_the_next(tmp_path):
    """Its driver is dead and another run holds the output: what it would write now is refused, by the name of that run."""
    file, table = TableFile("quarantine", chaos_job.DATE, "aa"), QUARANTINE.empty_table()
    orphan = Store(str(tmp_path), StoreConfig(out=str(tmp_path)), run_id="the-dead")

    with orphan.root.lock("the-next"), pytest.raises(OutputError, match="held by run 'the-next'"):
        orphan.write(file, table, QUARANTINE, parts={}, counts={})

    assert orphan.root.keys("tables") == []


def test_one_cannot_be_killed_into_a_lock_that_nobody_holds(base, out):
    """A lock that names this host and a living pid that is not its process any more is taken over, and said so."""
    (out / "state" / "locks").mkdir(parents=True)
    holder = {"run_id": "old", "pid": os.getpid(), "host": socket.gethostname()}
    (out / LOCK).write_text(json.dumps(holder))

    reply = base[1].run(out)

    who = f"run 'old' (pid {os.getpid()} on host '{socket.gethostname()}', started None)"
    assert reply["warnings"] == [f"{out}/{LOCK}: {who} ended without finishing; its lock is taken over"]
