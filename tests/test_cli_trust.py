"""Shells complete our commands, colours go where nobody wants them, and the commands of trust start light."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from claimscore.jobs import doctor
from claimscore.jobs.cli import main
from claimscore.jobs.doctor_checks import FAIL, Finding

SCRIPT = Path(sys.executable).with_name("claimscore")
COMMANDS = ("calibrate", "canary", "doctor", "label")


def complete(**variables: str) -> str:
    """What the installed command prints to a shell that asks."""
    done = subprocess.run(
        [SCRIPT], env=os.environ | variables, capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "word"),
    [("bash", "complete -o nosort -F"), ("zsh", "compdef"), ("fish", "complete --no-files")],
)
def test_each_shell_gets_its_script(shell: str, word: str):
    """The line of the README prints a script that the shell can evaluate."""
    assert word in complete(_CLAIMSCORE_COMPLETE=f"{shell}_source")


def test_a_shell_is_told_the_commands():
    """What begins with `ca` is completed."""
    told = complete(_CLAIMSCORE_COMPLETE="bash_complete", COMP_WORDS="claimscore ca", COMP_CWORD="1").split()

    assert told == ["plain,calibrate", "plain,canary"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_an_example_and_json(name: str):
    """Its help shows a line that runs, and figures come as JSON too."""
    shown = " ".join(CliRunner().invoke(main, [name, "--help"]).output.split())

    assert f"Example: claimscore {name}" in shown
    assert "--json" in shown


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_is_heeded(
    no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    """A word says what the colour says, and NO_COLOR leaves the word alone."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", no_color)

    doctor.print_finding(Finding("log", FAIL, "none", "look"))

    told = capsys.readouterr().out
    assert ("\x1b[31m" in told, "fail" in told) == (coloured, True)


def test_help_needs_no_numbers():
    """`claimscore calibrate --help` imports neither numpy nor polars nor torch."""
    code = (
        "import sys\nfrom claimscore.jobs.cli import main\n"
        "try:\n    main(['calibrate', '--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'ray', 'numpy', 'polars', 'pyarrow', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
