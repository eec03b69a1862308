"""Labelled claims whose right answer the stub judge's word counting gives, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.trust import Labelled

WORDS = ["river", "bridge", "garden", "market", "museum", "harbour", "station", "library", "tower", "square"]


def labelled(scores: list[float], supported: list[bool], **columns: Any) -> Labelled:
    """Claims as columns; of weight 1, each a group of its own, unless told otherwise."""
    n = len(scores)
    return Labelled(
        supported=np.array(supported, bool),
        scores=np.array(scores, np.float64),
        weights=np.array(columns.get("weights", [1.0] * n), np.float64),
        groups=np.array(columns.get("groups", range(n)), np.int64),
    )


def drawn(n: int, *, seed: int = 0, sharpness: float = 1.0) -> Labelled:
    """`n` claims of a judge whose log-odds are `sharpness` times the true ones."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 2, n)
    supported = rng.random(n) < 1 / (1 + np.exp(-odds))
    return labelled(list(1 / (1 + np.exp(-sharpness * odds))), list(supported))


def rows(n: int = 64) -> list[dict[str, Any]]:
    """Claims of five words; of each other one the evidence has all words, of the rest two."""
    out = []
    for k in range(n):
        words = [WORDS[(k + j * (1, 3, 7, 9)[k // 10 % 4]) % len(WORDS)] for j in range(5)]
        known = words if k % 2 == 0 else words[:2]
        out.append(
            {
                "question": "What is there?",
                "evidence": [f"Number {k} speaks of {word}." for word in ("nothing", "little")]
                + [f"Here {' '.join(known)} stand."],
                "claim": f"Here {' '.join(words)} stand.",
                "supported": 1 - k % 2,
                "source": "left" if k % 4 < 2 else "right",
            }
        )
    return out


def write(path: Path, records: list[dict[str, Any]] | None = None) -> str:
    """The rows as a labelled Parquet file."""
    pq.write_table(pa.Table.from_pylist(rows() if records is None else records), path)
    return str(path)
