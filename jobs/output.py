"""The output root: whole objects in and out, on a local folder or an object store, and the lock of a run.

`put` is all or nothing: locally the bytes go to OUT/tmp, are synced and renamed; an object store has no
rename, and there a PUT is whole at its final key or absent. Nothing here knows what a table is.
Local locks are flock(2): the kernel drops them with the process, so a killed run never needs a person.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.fs

from claimscore.jobs.errors import OutputError, reason_of
from claimscore.jobs.uri import straight
from claimscore.jobs.wholefile import put_whole

LOCK = "state/locks/run.lock"
_TMP = "tmp"
_OURS = re.compile(r"tmp/[0-9a-f]{32}")
# Object stores only, where a run killed on another machine leaves its lock: old by the next nightly run.
_LOCK_AGE_S = 20 * 3600


class OutputRoot:
    """A folder or a bucket prefix. Keys are relative to it, with `/` between their parts.

    Args:
        uri: a local path, or `s3://bucket/prefix` with pyarrow's options in the query.

    Raises:
        OutputError: a URI that pyarrow does not know. Nothing is written or created yet.
    """

    def __init__(self, uri: str) -> None:
        try:
            self.fs, base = _file_system(uri)
        except (ValueError, OSError, pa.ArrowException) as err:
            raise OutputError(
                f"[store] out = {uri!r}: {_one_line(err)}, expected a local folder or s3://bucket/prefix"
            ) from None
        self.base = base.rstrip("/")
        if not self.base:
            raise OutputError(
                f"[store] out = {uri!r}: that is a root, expected a folder or s3://bucket/prefix of its own"
            )
        self.is_local = isinstance(self.fs, pyarrow.fs.LocalFileSystem)

    def path(self, key: str) -> str:
        """The key within `fs`: an absolute local path, or bucket/prefix/key."""
        return f"{self.base}/{key}"

    def shown(self, key: str) -> str:
        """The key as a person may use it; never with credentials."""
        return self.path(key) if self.is_local else f"{self.fs.type_name}://{self.path(key)}"

    def put(self, key: str, data: bytes) -> None:
        """Make `key` hold exactly `data`; a kill at any moment leaves the old object or the new one.

        Raises:
            OutputError: no permission, no space, a read-only or unreachable store.
        """
        with self._failures(key, "written"):
            if self.is_local:
                self._put_local(Path(self.path(key)), data)
            else:
                with self.fs.open_output_stream(self.path(key), compression=None) as stream:
                    stream.write(data)

    def _put_local(self, final: Path, data: bytes) -> None:
        tmp = Path(self.path(_TMP), uuid.uuid4().hex)
        for folder in (tmp.parent, final.parent):
            folder.mkdir(parents=True, exist_ok=True)
        put_whole(final, data, meantime=tmp)
        _sync_folder(final.parent)

    def get(self, key: str) -> bytes | None:
        """The whole object, or None where there is no such file.

        Raises:
            OutputError: it is there and cannot be read, or the store cannot be reached.
        """
        if self.size(key) is None:
            return None
        with self._failures(key, "read"):
            try:
                with self.fs.open_input_stream(self.path(key), compression=None) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:  # removed since
                return None

    def size(self, key: str) -> int | None:
        """Bytes of the object, or None where there is no such file."""
        with self._failures(key, "read"):
            info = self.fs.get_file_info(self.path(key))
        return int(info.size) if info.type == pyarrow.fs.FileType.File else None

    def keys(self, folder: str, suffix: str = "") -> list[str]:
        """Keys of all files anywhere under `folder` that end so, sorted; no folder, no keys."""
        selector = pyarrow.fs.FileSelector(self.path(folder), allow_not_found=True, recursive=True)
        with self._failures(folder, "listed"):
            infos = self.fs.get_file_info(selector)
        files = (info.path for info in infos if info.type == pyarrow.fs.FileType.File)
        return sorted(path[len(self.base) + 1 :] for path in files if path.endswith(suffix))

    def remove(self, key: str) -> None:
        """Remove one file; one that is not there is fine."""
        with self._failures(key, "removed"), contextlib.suppress(FileNotFoundError):
            self.fs.delete_file(self.path(key))
            if self.is_local:
                _sync_folder(Path(self.path(key)).parent)

    @contextmanager
    def lock(self, run_id: str) -> Iterator[str]:
        """Hold the root for one run; before and after it, clear what killed processes left in OUT/tmp.

        Local: flock, exact among all processes that see the folder. Object store: pyarrow has no conditional
        PUT, so this is look, write, look again: it stops a second run, not two that start within the same
        instant; give one root one scheduler. There a lock counts until its run ends, its process is gone
        from this host, or it is 20 hours old.

        Yields:
            A warning for people where a dead run's lock was taken over, else "".

        Raises:
            OutputError: a live run holds the root; its pid, host and run id are named.
        """
        mine = {
            "run_id": run_id,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "process": _process(os.getpid()),
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with self._held(json.dumps(mine).encode()) as left:
            self._clear_tmp()
            yield (
                f"{self.shown(LOCK)}: {_holder(left)} ended without finishing; its lock is taken over"
                if left
                else ""
            )
            self._clear_tmp()

    def _clear_tmp(self) -> None:
        """Remove the half-written files of runs, and of workers, that were killed; those of a live writer are locked."""
        for key in self.keys(_TMP) if self.is_local else ():
            is_ours = _OURS.fullmatch(key)  # the folder may be somebody's, in an output root chosen badly
            if is_ours and not _is_locked(self.path(key)):
                self.remove(key)

    def check_lock(self, run_id: str) -> None:
        """Raise OutputError where another run than `run_id` has taken the lock since; fine where none holds it."""
        left = self.get(LOCK) or b""
        if left and _parse(left).get("run_id") != run_id:
            raise self._busy(left)

    def _held(self, mine: bytes) -> AbstractContextManager[bytes]:
        return self._held_local(mine) if self.is_local else self._held_remote(mine)

    @contextmanager
    def _held_local(self, mine: bytes) -> Iterator[bytes]:
        path = Path(self.path(LOCK))
        with self._failures(LOCK, "locked"):
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with self._failures(LOCK, "locked"):
                left = os.pread(fd, 4096, 0)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise self._busy(left) from None
                # The file stays: removing it would let two runs hold locks on two files of one name.
                left = os.pread(fd, 4096, 0)
                os.ftruncate(fd, 0)
                os.pwrite(fd, mine, 0)
            try:
                yield left
            finally:
                os.ftruncate(fd, 0)
        finally:
            os.close(fd)

    @contextmanager
    def _held_remote(self, mine: bytes) -> Iterator[bytes]:
        left = self.get(LOCK) or b""
        if left and self._is_alive(left):
            raise self._busy(left)
        self.put(LOCK, mine)
        now = self.get(LOCK) or b""
        if now != mine:
            raise self._busy(now)
        try:
            yield left
        finally:
            if self.get(LOCK) == mine:
                self.remove(LOCK)

    def _is_alive(self, left: bytes) -> bool:
        with self._failures(LOCK, "read"):
            written_ns = self.fs.get_file_info(self.path(LOCK)).mtime_ns
        if written_ns is not None and time.time() - written_ns / 1e9 > _LOCK_AGE_S:
            return False
        holder = _parse(left)
        pid = holder.get("pid")
        if holder.get("host") != socket.gethostname() or type(pid) is not int or pid < 1:
            return True
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:  # it lives, as another user
            pass
        # A pid that lives again is another process; a container that was started anew reuses the first few.
        return holder.get("process", now := _process(pid)) == now

    def _busy(self, left: bytes) -> OutputError:
        remedy = "wait for it or stop it"
        if not self.is_local:
            remedy += "; if its machine is gone, delete that object"
        return OutputError(f"{self.shown(LOCK)}: held by {_holder(left)}, expected no other run; {remedy}")

    @contextmanager
    def _failures(self, key: str, done: str) -> Iterator[None]:
        """Turn what the operating system or the store says into our one line."""
        try:
            yield
        except OSError as err:
            where = self.shown(key)
            if err.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise OutputError(
                    f"{where}: cannot be {done}: {_one_line(err)}, expected room for it; "
                    "free some space and run again: what is finished is kept"
                ) from err
            raise OutputError(
                f"{where}: cannot be {done}: {_one_line(err)}, expected an output root that this user may "
                "read and write; mend it or set [store] out to another"
            ) from err


def _file_system(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    if "://" not in uri:
        return pyarrow.fs.LocalFileSystem(), str(straight(Path(uri).expanduser().absolute()))
    if uri.startswith("s3://") and "allow_delayed_open" not in uri:
        # An object under 5 MiB is then one PUT; without it even a manifest is a multipart upload of 3 requests.
        uri += ("&" if "?" in uri else "?") + "allow_delayed_open=true"
    fs, base = pyarrow.fs.FileSystem.from_uri(uri)
    return fs, base


def _sync_folder(folder: Path) -> None:
    """Put renames and removals on disk, so that power loss never shows them in another order than ours."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _process(pid: int) -> str:
    """What tells a process from another one with its pid: the boot and the tick that it was started at (Linux)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
    return f"{boot}:{started}"


def _parse(lock: bytes) -> dict[str, object]:
    try:
        holder = json.loads(lock)
    except (ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _holder(lock: bytes) -> str:
    holder = _parse(lock)
    if not holder:
        return "a run that left no name"
    return (
        f"run {holder.get('run_id')!r} (pid {holder.get('pid')!r} on host {holder.get('host')!r}, "
        f"started {holder.get('started_at')!r})"
    )


def _one_line(err: Exception) -> str:
    return " ".join(reason_of(err).split())


def _is_locked(path: str) -> bool:
    """Whether a live process is writing the file (wholefile.put_whole): an export, say, which holds no lock of the root."""
    try:
        with Path(path).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # gone since, or not to be read: `remove` says what there is to say
        return False
    return False
