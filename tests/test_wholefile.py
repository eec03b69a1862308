"""Files written whole: the old or the new one for whoever reads, links and devices as they were."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from claimscore.jobs.errors import OutputError
from claimscore.jobs.wholefile import write_whole


def test_the_new_file_takes_the_old_ones_place(tmp_path: Path):
    """Nothing else is left in the folder."""
    path = tmp_path / "report.html"
    path.write_text("old")

    write_whole(path, b"new")

    assert (path.read_bytes(), [p.name for p in tmp_path.iterdir()]) == (b"new", ["report.html"])


def test_a_link_stays_one(tmp_path: Path):
    """The file that it names is written."""
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "latest.html").symlink_to("real.html")

    write_whole(tmp_path / "latest.html", b"new")

    assert (tmp_path / "latest.html").is_symlink()
    assert (tmp_path / "real.html").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path):
    """A rename over /dev/null or a pipe would make a file of it."""
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()

    write_whole(tmp_path / "pipe", b"new")
    reader.join()

    assert (found, (tmp_path / "pipe").is_fifo()) == ([b"new"], True)


def test_what_cannot_be_written_is_told_with_its_option(tmp_path: Path):
    """One line: the place, why, and what to give instead; nothing is left behind."""
    with pytest.raises(OutputError) as caught:
        write_whole(tmp_path / "no" / "such.html", b"x", option="--to")

    assert str(caught.value).endswith(
        "such.html: No such file or directory, expected a file to write; give another --to"
    )
    assert list(tmp_path.iterdir()) == []
