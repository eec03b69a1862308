"""A place that is no output root: what was found there, and where tables are, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from claimscore.jobs import outputs
from claimscore.jobs.cli import main


def an_output(folder: Path) -> Path:
    """A folder that looks like an output."""
    (folder / "tables" / "answers").mkdir(parents=True)
    return folder


def said(*arguments: str) -> str:
    """What a command says of a failure, in one line."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    return result.stderr.removeprefix("Error: ").removesuffix("\n")


@pytest.mark.parametrize(
    "command",
    [
        ("report", "--out", "OUT"),
        ("report", "--out", "OUT", "--series", "x"),
        ("show", "r1", "--out", "OUT"),
        ("gate", "--out", "OUT"),
        ("alert", "OUT", "--date", "2026-11-28"),
        ("export", "OUT", "--to", "csv"),
        ("compare", "a", "b", "--out", "OUT"),
    ],
)
def test_a_folder_above_outputs_names_them(tmp_path: Path, command: tuple[str, ...]):
    """Every command that takes an output, and what it found instead of one."""
    for name in ("a.toml", "b.toml", "c.toml"):
        (tmp_path / name).touch()
    one = an_output(tmp_path / "demo-run" / "out")

    line = said(*(str(tmp_path) if word == "OUT" else word for word in command))

    assert line == (
        f"{tmp_path}: no finished run (holds a.toml, b.toml, c.toml and 1 more), expected an output root; "
        f"tables are in {one}: give that"
    )


def test_several_are_listed_and_hidden_ones_and_links_are_not(tmp_path: Path):
    """Five of them; what lies inside an output is a part of it, as its evaluations are."""
    made = [an_output(tmp_path / f"o{k}") for k in range(6)]
    an_output(made[0] / "evaluate" / "x")
    an_output(tmp_path / ".trash")
    an_output(tmp_path / "1" / "2" / "3" / "too-deep")
    (tmp_path / "link").symlink_to(made[0])

    assert outputs.near(tmp_path) == made
    assert str(outputs.no_run(str(tmp_path))).endswith(
        f"tables are in {', '.join(map(str, made[:5]))} and 1 more: give one of them"
    )


def test_a_folder_inside_an_output_names_it(tmp_path: Path):
    """As its tables, which a shell completes to."""
    out = an_output(tmp_path / "out")

    assert outputs.near(out / "tables" / "answers") == [out]


def test_a_place_without_any_says_what_it_is(tmp_path: Path):
    """A file, an empty folder, one of other things; nothing at all; a bucket is not searched."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    rest = "expected one; no folder near it holds tables: run a day first"
    for place, found in ((tmp_path / "empty", "an empty folder"), (tmp_path, "holds empty, file")):
        assert str(outputs.no_run(str(place))) == f"{place}: no finished run ({found}), {rest}"
    assert str(outputs.no_run(str(tmp_path / "file"))).startswith(
        f"{tmp_path}/file: no finished run (a file), "
    )
    for place in ("s3://bucket/x", f"{tmp_path}/none"):
        assert str(outputs.no_run(place)) == f"{place}: no finished run, expected one; run a day first"


def test_a_large_disk_is_not_searched_whole(tmp_path: Path, monkeypatch):
    """It ends after so many folders."""
    monkeypatch.setattr(outputs, "MAX_FOLDERS", 3)
    for name in ("a", "b", "c"):
        an_output(tmp_path / name / "out")

    assert outputs.near(tmp_path) == []


def test_one_day_is_named_once():
    """What an error expected of the days that there are."""
    assert outputs.held_words(["2026-11-28"]) == "2026-11-28"
    assert outputs.held_words({"2026-11-28", "2026-11-26"}) == "one of 2026-11-26 to 2026-11-28"
