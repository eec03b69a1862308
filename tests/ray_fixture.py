"""A deployment with a tiny judge that passes its self-test, and the installed command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jobs_fixture
import pyarrow as pa
import tiny_deberta as tiny

from claimscore.jobs.judge import SELF_TEST
from claimscore.jobs.tokenizer import load_tokenizer

DATE = jobs_fixture.DATE
SCRIPT = Path(sys.executable).with_name("claimscore")


def write_judge(folder: Path, *, seed: int = 0) -> Path:
    """A checkpoint that gives the pairs of the self-test their labels, and other pairs what it happens to give."""
    tiny.write_tiny(folder, seed=seed)
    tokenizer = load_tokenizer(str(folder))
    texts = pa.array([text for premise, claim, _ in SELF_TEST for text in (premise, claim)])
    rows = tokenizer.encode(texts)["ids"].to_pylist()
    packed = [[1, *rows[2 * k], 2, *rows[2 * k + 1], 2] for k in range(len(SELF_TEST))]
    return tiny.pass_self_test(folder, list(zip(packed, (1, 2, 0), strict=True)))


def write_deployment(folder: Path, *, n_shards: int, extra: str = "") -> Path:
    """A log of shards of three rows, whose sentences need no LLM, and its config; the decomposer cannot be loaded."""
    rows = [
        row | {"question": f"What applies in case {k}?"}  # or equal rows would share their samples
        for k, row in enumerate(jobs_fixture.log_rows(3 * n_shards))
    ]
    jobs_fixture.write_log(folder, rows)
    return jobs_fixture.write_config(folder, extra=extra)


def claimscore(*arguments: Any, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command from another folder."""
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
