"""A small log, its config and stub models: one whole job in a temporary folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_config

DATE = "2026-11-28"
CHUNKS = [
    {"id": "c1", "text": "The refund window is 60 days. Premium members pay no fee.", "score": 0.9},
    {"id": "c2", "text": "The lounge allows 8 visits a year. Guests pay 20 euro.", "score": 0.8},
]
ANSWERS = [
    "The refund window is 60 days [1].",
    "The refund window is 30 days [1].",
    "Guests pay 20 euro [2]. The hotel has a pool [5].",
    "I don't have enough information to answer that.",
    "",
    "Premium members pay no fee [2].",
]


def log_rows(n: int = 6) -> list[dict[str, Any]]:
    """`n` rows, the answers above in turn."""
    return [
        {
            "request_id": f"r{k}",
            "question": "What applies?",
            "answer": ANSWERS[k % len(ANSWERS)],
            "chunks": CHUNKS,
            "samples": ["The refund window is 60 days.", "It is 60 days."] if k % 3 == 1 else None,
            "prompt_version": "p1" if k % 2 else "p2",
        }
        for k in range(n)
    ]


def write_log(
    folder: Path,
    rows: Sequence[dict[str, Any]] | None = None,
    *,
    name: str = "part-0.parquet",
    group: int = 3,
) -> Path:
    """Write rows as the day's log file; row groups of `group` rows."""
    path = folder / "logs" / DATE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(list(log_rows() if rows is None else rows)), path, row_group_size=group
    )
    return path


def write_config(folder: Path, *, extra: str = "", model: str = "model") -> Path:
    """A deployment over `folder`, with model folders that hold bytes but no model."""
    for name in (model, "llm"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text("{}")
        (folder / name / "model.safetensors").write_bytes(name.encode())
    (folder / "judge.toml").write_text(f'name = "stub"\nmodel = "./{model}"\nentailment = 0.8\n')
    path = folder / "claimscore.toml"
    path.write_text(
        '[read]\nlogs = "logs/{date}/*.parquet"\nshard_rows = 3\n'
        '[decompose]\nmodel = "./llm"\nchecker = "judge.toml"\n'
        '[judge]\ncard = "judge.toml"\n[store]\nout = "out"\n[triage]\nmax_share = 1.0\n' + extra
    )
    return path


def make_config(folder: Path, *overrides: str, judge: str | None = None) -> Config:
    """The loaded deployment of `write_config`."""
    path = folder / "claimscore.toml"
    return load_config(path if path.exists() else write_config(folder), overrides, judge=judge)
