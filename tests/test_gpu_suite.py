"""gpu_suite runs to its end without a GPU, so that a mistake in it does not cost time on one."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[1] / "benchmarks" / "gpu_suite.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed; gpu_suite runs its kernels"
)


def run(*arguments):
    """The suite as a user calls it, in an interpreter of its own."""
    return subprocess.run([sys.executable, SUITE, *arguments], capture_output=True, text=True, check=False)


def test_a_smoke_run_fails_in_no_part(tmp_path):
    """Every part has rows of finite times, and both reports and the tuning file are there."""
    out = run(str(tmp_path), "--smoke")

    assert out.returncode == 0, out.stdout[-3000:] + out.stderr[-2000:]
    report = json.loads((tmp_path / "gpu_suite.json").read_text())
    assert list(report["parts"]) == [
        *("kernel_tests", "flips", "model_base", "attention", "ops", "model_large", "model_xsmall")
    ]
    assert [name for name, part in report["parts"].items() if part.get("failed")] == []
    assert "SMOKE RUN" in (tmp_path / "gpu_suite.txt").read_text()
    assert json.loads((tmp_path / "cpu.json").read_text())["measured"] is False


def test_a_part_that_fails_is_recorded_and_the_next_one_runs(tmp_path):
    """A model folder without a model ends the flips, not the run."""
    out = run(str(tmp_path), "--smoke", "--parts", "flips,ops", "--model", str(tmp_path))

    parts = json.loads((tmp_path / "gpu_suite.json").read_text())["parts"]
    assert out.returncode == 1
    assert "config.json" in parts["flips"]["failed"]
    assert parts["ops"]["rows"]


def test_an_unknown_part_is_refused(tmp_path):
    """The message names the parts that there are."""
    out = run(str(tmp_path), "--smoke", "--parts", "flip")

    assert out.returncode == 2
    assert "no part flip; expected some of kernel_tests, flips" in out.stderr
