"""The output root: whole objects or none, plain errors, and one run at a time."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claimscore.jobs.errors import OutputError
from claimscore.jobs.output import LOCK, OutputRoot

HOLD = """
import sys
from claimscore.jobs.output import OutputRoot
with OutputRoot(sys.argv[1]).lock("run-of-child"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def root(tmp_path):
    return OutputRoot(str(tmp_path / "out"))


def fail(number):
    """A stand-in for a system call that fails with this errno."""

    def call(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return call


def test_put_and_get(root):
    """What was put is what comes back, and a second put replaces it."""
    root.put("a/b.json", b"one")
    root.put("a/b.json", b"two")
    assert (root.get("a/b.json"), root.size("a/b.json"), root.keys("")) == (b"two", 3, ["a/b.json"])


def test_nothing_there(root):
    """A key, a folder and a removal that have no file are not errors."""
    root.remove("none")
    assert (root.get("none"), root.size("none"), root.keys("none")) == (None, None, [])


def test_a_folder_is_no_object(root):
    """A key that names a folder has no object."""
    root.put("a/b", b"")
    assert (root.get("a"), root.size("a")) == (None, None)


def test_names_that_look_like_uri_escapes_are_taken_as_they_are(tmp_path):
    """A local path with a percent sign, a blank and a question mark is just a path."""
    OutputRoot(str(tmp_path / "50%25 off?x=1#y")).put("k", b"v")
    assert (tmp_path / "50%25 off?x=1#y" / "k").read_bytes() == b"v"


def test_a_relative_root_does_not_follow_the_working_folder(tmp_path, monkeypatch):
    """The root is fixed when it is made; a later chdir moves nothing."""
    monkeypatch.chdir(tmp_path)
    root = OutputRoot("out")
    monkeypatch.chdir("/")
    root.put("k", b"v")
    assert (tmp_path / "out" / "k").read_bytes() == b"v"


@pytest.mark.parametrize(
    "uri, place",
    [
        ("ftp://me:hunter2@host/out?secret_key=hunter2", "ftp://host/out"),
        ("s3://me:hunter2@[out?x=hunter2", "s3://[out"),
    ],
)
def test_a_uri_that_cannot_be_used_is_told_without_its_credentials(uri, place):
    """An unknown scheme or a broken URI is a plain error; user, password and query are not repeated."""
    with pytest.raises(OutputError) as caught:
        OutputRoot(uri)
    text = str(caught.value)
    assert text.startswith(f"[store] out = {place!r}: ")
    assert text.endswith(", expected a local folder or s3://bucket/prefix")
    assert "hunter2" not in text


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_says_so_and_keeps_the_old_object(root, monkeypatch, number):
    """No space: one line that says what to do; the old object stays and nothing is left in tmp."""
    root.put("k", b"old")
    monkeypatch.setattr(os, "fsync", fail(number))
    with pytest.raises(OutputError) as caught:
        root.put("k", b"new")
    assert str(caught.value) == (
        f"{root.path('k')}: cannot be written: {os.strerror(number)}, expected room for it; "
        "free some space and run again: what is finished is kept"
    )
    assert (root.get("k"), root.keys("")) == (b"old", ["k"])


def test_power_loss_finds_whole_objects_in_the_order_of_their_calls(root, monkeypatch):
    """What is written is on disk before it gets its name, and the name, as a removal, before the call comes back."""
    root.put("a/k", b"old")
    done = []

    def synced(fd):
        done.append("folder" if Path(f"/proc/self/fd/{fd}").resolve() == Path(root.path("a")) else "file")

    replace = Path.replace
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", lambda *paths: (done.append("name"), replace(*paths))[1])
    root.put("a/k", b"new")
    root.remove("a/k")

    assert done == ["file", "name", "folder", "folder"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_read_only_root_says_so(root, monkeypatch, number):
    """No right to write: one line with the path, what was found and what to do."""
    monkeypatch.setattr(Path, "mkdir", fail(number))
    with pytest.raises(OutputError) as caught:
        root.put("k", b"new")
    assert str(caught.value) == (
        f"{root.path('k')}: cannot be written: {os.strerror(number)}, expected an output root that this user "
        "may read and write; mend it or set [store] out to another"
    )


def test_a_file_in_the_place_of_the_root(tmp_path):
    """An output root that is a file is a named failure for put and lock."""
    (tmp_path / "out").write_text("a file")
    root = OutputRoot(str(tmp_path / "out"))
    with pytest.raises(OutputError, match="cannot be written: Not a directory"):
        root.put("k", b"")
    with pytest.raises(OutputError, match=r"cannot be locked: (Not a directory|File exists)"), root.lock("r"):
        pass


def test_a_live_run_is_named(tmp_path, root):
    """A second run learns the first one's id, pid and host, and what to do."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(OutputError) as caught, root.lock("mine"):
            pass
        child.stdin.write("\n")
    text = str(caught.value)
    assert text.startswith(f"{root.path(LOCK)}: held by run 'run-of-child' (pid {child.pid} on host ")
    assert text.endswith("), expected no other run; wait for it or stop it")


def test_a_killed_run_is_taken_over_with_a_warning(tmp_path, root):
    """After kill -9 the next run goes on at once, and says whose lock it took."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline() == "held\n"
        child.kill()
    with root.lock("mine") as warning:
        assert json.loads(root.get(LOCK))["run_id"] == "mine"
    assert warning.startswith(f"{root.path(LOCK)}: run 'run-of-child' (pid {child.pid} on host ")
    assert warning.endswith(" ended without finishing; its lock is taken over")


def test_a_lock_clears_our_unfinished_files_and_nobody_elses(root):
    """Only files that are named as ours are, directly in tmp, are removed: the root may be a folder with a tmp of its own."""
    for key in ("tmp/notes.md", f"tmp/sub/{'a' * 32}", f"tmp/{'a' * 32}"):
        root.put(key, b"v")

    with root.lock("mine"):
        assert root.keys("tmp") == ["tmp/notes.md", f"tmp/sub/{'a' * 32}"]
        root.put(f"tmp/{'b' * 32}", b"of a worker that is killed in this run")
    assert root.keys("tmp") == ["tmp/notes.md", f"tmp/sub/{'a' * 32}"]


def test_a_file_that_a_live_process_is_writing_is_left_to_it(root, monkeypatch):
    """An export writes its record without the root's lock; a run that ends meanwhile takes nothing from it."""
    fsync = os.fsync

    def a_run_ends_meanwhile(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        with root.lock("mine"):
            pass
        fsync(fd)

    monkeypatch.setattr(os, "fsync", a_run_ends_meanwhile)
    root.put("state/sent.json", b"whole")

    assert root.get("state/sent.json") == b"whole"
    assert root.keys("tmp") == []


@pytest.mark.parametrize("uri", ["/", "s3://", "s3://bucket-less/../"])
def test_a_root_of_everything_is_refused(uri):
    """A file system's root, or a bucket without a name, is no place for an output."""
    with pytest.raises(OutputError, match=r"^\[store\] out = "):
        OutputRoot(uri)


def test_a_pid_that_lives_again_does_not_keep_a_dead_lock(root):
    """A left lock whose pid is now some other living process is still taken over."""
    root.put(LOCK, json.dumps({"run_id": "old", "pid": os.getppid()}).encode())
    with root.lock("mine") as warning:
        assert "run 'old'" in warning


def test_a_garbled_lock_is_taken_over(root):
    """A lock file cut short by a crash names no run and blocks none."""
    root.put(LOCK, b'{"run_id": "o')
    with root.lock("mine") as warning:
        assert "a run that left no name ended without finishing" in warning


def test_locks_exclude_within_one_process(root):
    """Two runs of one process do not share a root either."""
    with root.lock("one"), pytest.raises(OutputError, match="held by run 'one'"), root.lock("two"):
        pass


@pytest.mark.parametrize("error", [None, RuntimeError("the run failed"), KeyboardInterrupt()])
def test_a_run_that_ends_leaves_no_lock(root, error):
    """However a run ends, short of a kill, the next one starts without a warning."""
    try:
        with root.lock("one"):
            if error:
                raise error
    except (RuntimeError, KeyboardInterrupt):
        pass
    with root.lock("two") as warning:
        assert warning == ""


def test_leftovers_of_dead_runs_are_cleared(root):
    """What a killed run was writing is gone once the next run holds the lock."""
    root.put(f"tmp/{'0123abcd' * 4}", b"half a table")
    with root.lock("mine"):
        assert root.keys("tmp") == []


def test_a_refused_run_clears_nothing(root):
    """A run that does not get the lock leaves the live run's unfinished files alone."""
    with root.lock("one"):
        root.put("tmp/0123abcd", b"half a table")
        with pytest.raises(OutputError), root.lock("two"):
            pass
        assert root.keys("tmp") == ["tmp/0123abcd"]
