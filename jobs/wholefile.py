"""A file that is absent, old or whole, and never half: for what other programs read while we write."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.errors import OutputError, reason_of


def write_whole(path: Path, data: bytes, *, option: str = "name") -> None:
    """Make `path` hold exactly `data`, by a rename within its folder; a device or pipe is written to as it is.

    The file of the meantime has another ending, so that no pattern for the final one finds it, and the usual
    permissions, so that whoever reads the folder can read it. A link stays one: the file that it names is written.

    Args:
        path: the file.
        data: all of it.
        option: what a user gave it with, for the message.

    Raises:
        OutputError: no such folder, no permission, no space.
    """
    try:
        if path.exists() and not path.is_file():  # renamed over, /dev/null would be a file from then on
            path.write_bytes(data)
        else:
            final = path.resolve()
            put_whole(final, data, meantime=final.with_name(f".{final.name}.{uuid.uuid4().hex}.partial"))
    except OSError as err:
        raise OutputError(
            f"{path}: {reason_of(err)}, expected a file to write; give another {option}"
        ) from err


def put_whole(path: Path, data: bytes, *, meantime: Path) -> None:
    """Make `path` hold exactly `data`, which lie in the new file `meantime` until they are on disk; of one file system both.

    Until then it is locked (flock): who clears away what killed writers left can tell a live one.

    Raises:
        OSError: as the operating system says.
    """
    try:
        with meantime.open("xb") as stream:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            meantime.replace(path)
    finally:
        meantime.unlink(missing_ok=True)


def parquet_bytes(table: pa.Table) -> bytes:
    """A table as the bytes of a Parquet file, one row group."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
