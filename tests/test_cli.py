"""The command line: whole error lines, exit codes, help everywhere, and no heavy import for help."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jobs_fixture
import pytest
from click.testing import CliRunner, Result

from claimscore.jobs import nightly, operate
from claimscore.jobs.cli import main

ROOT = Path(__file__).parent.parent


def invoke(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, list(arguments))


def test_help_needs_no_heavy_import():
    """`claimscore --help` imports none of torch, ray, vllm, polars or pyarrow."""
    code = (
        "import sys\nfrom claimscore.jobs.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'ray', 'vllm', 'polars', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_installed_command_runs_from_another_folder(tmp_path: Path):
    """The console script answers from anywhere."""
    script = Path(sys.executable).with_name("claimscore")
    done = subprocess.run([script, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("claimscore, version ")


def test_help_tells_every_command_whole(monkeypatch):
    """No sentence is cut at the end of a line."""
    monkeypatch.setenv("COLUMNS", "80")
    text = " ".join(invoke("--help").output.split())

    assert "..." not in text.partition("Commands:")[2]
    for command in main.commands.values():
        assert " ".join(command.help.split(".")[0].split()) in text


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_has_help_with_an_example_and_stands_in_the_readme(name: str):
    """A command that is not explained does not exist."""
    shown = invoke(name, "--help").output

    assert f"Example: claimscore {name}" in " ".join(shown.split())
    assert f"claimscore {name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_name_what_is_there(demo_rows: dict[str, dict]):
    """Who tries an example on the demo finds the answer, the prompt versions and the configs that it names."""
    examples = {
        name: shlex.split(" ".join((command.help or "").partition("Example:")[2].split()))
        for name, command in main.commands.items()
    }
    versions = {row["prompt_version"] for row in demo_rows.values()}

    configs = [word for words in examples.values() for word in words if word.startswith("configs/")]
    assert [path for path in configs if not (ROOT / path).exists() and not path.endswith("/mine.toml")] == []
    assert len(configs) > 5
    assert examples["show"][2] in demo_rows
    assert {word for word in examples["gate"] if word in ("p13", "p14")} <= versions


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["run", "no.toml", "--date", "2026-11-28"],
            "no.toml: no such file; give the path of a deployment's TOML",
        ),
        (
            ["show", "x", "--out", "{tmp}/none"],
            "{tmp}/none: no finished run, expected one; give --out, or run a day first",
        ),
        (
            ["compare", "a", "b", "--out", "{tmp}/none"],
            "{tmp}/none: no series 'a', expected one of none: run a day first",
        ),
    ],
)
def test_named_failures_are_one_line_and_code_1(arguments: list[str], line: str, tmp_path: Path):
    """The whole line on stderr, and exit code 1."""
    result = invoke(*(a.replace("{tmp}", str(tmp_path)) for a in arguments))

    assert (1, f"Error: {line.replace('{tmp}', str(tmp_path))}\n") == (result.exit_code, result.stderr)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "x.toml"], "Error: give --date, or --since and --until"),
        (
            ["run", "x.toml", "--date", "28.11.2026"],
            "'28.11.2026' is not a day; give YYYY-MM-DD, yesterday or today",
        ),
        (
            ["run", "x.toml", "--date", "2026-11-28", "--since", "2026-11-01"],
            "Error: --date excludes --since and --until",
        ),
        (
            ["run", "x.toml", "--since", "2026-11-02", "--until", "2026-11-01"],
            "lies before --since 2026-11-02",
        ),
    ],
)
def test_usage_errors_are_code_2(arguments: list[str], line: str, tmp_path: Path, monkeypatch):
    """Wrong options end with click's usage text and exit code 2."""
    monkeypatch.chdir(tmp_path)
    jobs_fixture.write_config(tmp_path).rename(tmp_path / "x.toml")

    result = invoke(*arguments)

    assert result.exit_code == 2
    assert line in result.stderr


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["calibrate", "x.toml", ""], "an argument"),
        (["show", "r1", "--out", ""], "--out"),
        (["show", "r1", "--out="], "--out"),
        (["gate", "--baseline", " "], "--baseline"),
        (["export", "", "--to", "csv"], "an argument"),
        (["alert", ""], "an argument"),
        (["import", "--from", "phoenix", "", "log"], "an argument"),
    ],
)
def test_an_empty_place_is_no_place(arguments: list[str], where: str):
    """An unset variable of a script would be the folder at hand otherwise: usage, code 2, for every command."""
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert f"Error: {where} is empty, expected a value" in result.stderr


@pytest.mark.parametrize("key", ["read.logs", "decompose.model", "decompose.checker", "judge.card"])
def test_an_empty_place_of_the_config_is_none_either(key: str, tmp_path: Path):
    """Named with its section."""
    path = jobs_fixture.write_config(tmp_path)

    result = invoke("plan", str(path), "--date", "2026-11-28", "--set", f"{key}=")

    section, _, name = key.partition(".")
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: {path}: [{section}] {name} is empty, expected a place; fill it in\n",
    )


def test_a_day_without_a_log_is_named(tmp_path: Path):
    """No file for the day: the pattern that was looked for, and exit code 1."""
    path = jobs_fixture.write_config(tmp_path)

    result = invoke("run", str(path), "--date", "2026-11-28")

    assert result.exit_code == 1
    assert f"{tmp_path}/logs/2026-11-28/*.parquet" in result.stderr


def day_of(folder: Path, **fields: Any) -> dict[str, Any]:
    """The document of a day that was run, as `operate.run_days` gives it."""
    report = dataclasses.asdict(nightly.DayReport("2026-11-28", series="stub-12345678")) | fields
    return report | {
        "n_claims": 0,
        "wall_s": 1.0,
        "exit_code": 3 if report["failures"] else 0,
        "out": f"{folder}/my out",
        "metrics": [],
    }


@pytest.mark.parametrize(
    ("command", "more"), [("run", ""), ("backfill", " --series stub-12345678")], ids=["run", "backfill"]
)
def test_a_run_ends_with_the_command_that_shows_it(command: str, more: str, tmp_path: Path, monkeypatch):
    """Of the last day that has results, to be pasted anywhere; a backfill's series is not the one that is shown by itself."""
    path = jobs_fixture.write_config(tmp_path)
    days = [day_of(tmp_path), day_of(tmp_path, date="2026-11-29", series="", failures=["no log"])]
    monkeypatch.setattr(operate, "run_days", lambda *_, **__: iter(days))
    judge = ["--judge", str(tmp_path / "judge.toml")] if command == "backfill" else []
    path.write_text(path.read_text().replace('out = "out"', 'out = "my out"'))

    result = invoke(command, str(path), "--since", "2026-11-28", "--until", "2026-11-29", *judge)
    silent = invoke(command, str(path), "--since", "2026-11-28", "--until", "2026-11-29", *judge, "--quiet")

    line = f"next: claimscore report --out '{tmp_path}/my out' --date 2026-11-28{more}"
    assert result.stdout.splitlines()[-1] == line
    assert (result.exit_code, silent.stdout) == (3, "")


def test_a_missing_model_is_named(tmp_path: Path):
    """A model folder that is not there: one line that names it, before any work is done."""
    jobs_fixture.write_log(tmp_path)
    path = jobs_fixture.write_config(tmp_path)
    (tmp_path / "judge.toml").write_text('name = "stub"\nmodel = "./gone"\nentailment = 0.8\n')

    result = invoke("run", str(path), "--date", "2026-11-28")

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {tmp_path}/gone: no such folder")


def test_a_range_of_which_no_day_can_be_planned_is_code_3(tmp_path: Path):
    """As a run over it would be; and every day is one whole line."""
    path = jobs_fixture.write_config(tmp_path)

    result = invoke("plan", str(path), "--since", "2026-11-28", "--until", "2026-11-29")

    assert result.exit_code == 3
    assert [line.count("no log file") for line in result.stdout.splitlines()[:2]] == [1, 1]


def test_plan_says_what_and_why_and_runs_nothing(tmp_path: Path):
    """A plan of a new day names every table as never made, with costs, and writes no table."""
    jobs_fixture.write_log(tmp_path)
    path = jobs_fixture.write_config(tmp_path)

    result = invoke("plan", str(path), "--date", "2026-11-28", "--json")

    assert result.exit_code == 0
    (day,) = __import__("json").loads(result.stdout)["days"]
    assert day["stale"]["claims"] == {"never made": 2}
    assert day["stale"]["metrics"] == {"answers made again": 1}
    assert day["estimate"]["n_pairs"] > 0
    assert not (tmp_path / "out" / "tables").exists()
