"""A file that is absent, old or whole, and never half: for what other programs read while we write."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from claimscore.jobs.errors import OutputError


def write_whole(path: Path, data: bytes) -> None:
    """Make `path` hold exactly `data`, by a rename within its folder.

    The file of the meantime has another ending, so that no pattern for the final one finds it, and the usual
    permissions, so that whoever reads the folder can read it.

    Raises:
        OutputError: no such folder, no permission, no space.
    """
    meantime = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        try:
            with meantime.open("xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            meantime.replace(path)
        finally:
            meantime.unlink(missing_ok=True)
    except OSError as err:
        raise OutputError(
            f"{path}: {err.strerror or err}, expected a file to write; give another name"
        ) from err
