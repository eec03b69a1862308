"""The benchmarks run to their end on a small input, and their last line is the result as JSON."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*command):
    """The JSON of a benchmark's last line."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nli_checks_answers_before_it_times_them():
    """Without weights or GPU: ours and transformers agree in fp32, and both have a throughput."""
    result = run("benchmarks/bench_nli.py", "--smoke", "--dtype", "float32")

    rows = result["rows"]
    assert len(rows) == 2
    assert all(row["answers"]["n_flips"] == 0 for row in rows.values())
    assert all(row["answers"]["max_logit_difference"] < 1e-3 for row in rows.values())
    assert all(row["pairs_per_s"] > 0 for row in rows.values())


def test_job_without_models_accounts_for_its_cpu():
    """On a drawn log every answer is judged, and the stages' times are those of the job alone."""
    result = run("benchmarks/bench_job.py", "--answers", "40")

    assert result["n_rows"] == 40
    assert result["cpu_ms_an_answer"]["total"] == pytest.approx(
        sum(result["cpu_ms_an_answer"]["stages"].values())
    )


def test_a_large_day_is_made_resumed_and_accounted_for():
    """Of 1,000 answers half are made and half are copies; each stage has seconds of both clocks."""
    result = run("benchmarks/bench_million.py", "--answers", "1000", "--shard-rows", "200", "--made", "400")

    assert result["n_answers_made"] + result["n_answers_copied"] == 1000
    assert 0 < result["of_run_cpu_s"]["scores"] < 60
    assert 0 < result["of_run_wall_s"]["scores"] <= result["of_run_wall_s"]["shards made"]


def test_scaling_reports_how_busy_the_judges_are():
    """One stub judge on a local Ray: its utilisation is a share."""
    result = run("benchmarks/bench_scaling.py", "--judges", "1", "--seconds", "2")

    (row,) = result["rows"]
    assert 0 < row["utilisation"] <= 1
