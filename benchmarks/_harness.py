"""What the benchmarks share: interleaved timing, medians with their spread, the card of the machine, one JSON line last.

Rounds run every candidate once, each round in another order, so that whatever the machine does meanwhile meets all of
them. A result is written with its device, versions, commit and command. Knows no model and no job.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = (
    "claimscore",
    "torch",
    "triton",
    "transformers",
    "sentence-transformers",
    "onnxruntime",
    "ray",
    "pyarrow",
    "polars",
)


def interleave(
    runs: Mapping[str, Callable[[], object]], rounds: int, sync: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Wall seconds of each run, `rounds` times, after one round that is not counted.

    Args:
        runs: what is compared, by name.
        rounds: how often.
        sync: waits for the device; called before the clock is read.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for round_ in range(rounds + 1):
        turn = round_ % len(names)
        for name in names[turn:] + names[:turn]:
            sync()
            began = time.perf_counter()
            runs[name]()
            sync()
            if round_:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 20th and 80th percentile."""
    low, middle, high = np.percentile(seconds, [20, 50, 80])
    return {"median_s": float(middle), "p20_s": float(low), "p80_s": float(high)}


def compare(logits: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Decisions (largest class) that differ, and the largest difference of a logit; NaN counts as a flip."""
    flips = (logits.argmax(1) != reference.argmax(1)) | ~np.isfinite(logits).all(1)
    return {
        "n_flips": int(flips.sum()),
        "of": len(logits),
        "max_logit_difference": float(np.abs(logits - reference).max(initial=0.0)),
    }


def reset_peak() -> None:
    """Begin to measure this process's peak memory anew; Linux, elsewhere the peak is that of its whole life."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


def memory_mib(field: str = "VmHWM") -> float:
    """Peak (VmHWM, since `reset_peak`) or present (VmRSS) memory of this process in MiB; 0 where unknown."""
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:")]
    return found[0] if found else 0.0


def card(name: str) -> dict[str, Any]:
    """Where and with what a result was measured."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    git = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    arguments = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return {
        "name": name,
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        # A path by its name alone: where a log lay is nobody's business.
        "command": f"python benchmarks/{' '.join(Path(part).name if '/' in part else part for part in arguments)}",
        "commit": git.stdout.strip(),
        "machine": {"cpus": os.cpu_count(), "processor": processor(), "system": platform.system()},
        "versions": versions,
    }


def processor() -> str:
    """The CPU's model name and the instructions that decide a dtype."""
    path = Path("/proc/cpuinfo")
    fields = dict(line.partition(":")[::2] for line in path.read_text().splitlines()) if path.exists() else {}
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = [
        flag for flag in ("avx512f", "avx512_bf16", "amx_bf16") if flag in fields.get("flags", "").split()
    ]
    return " ".join([fields.get("model name", platform.processor()), *flags])


def table(rows: Sequence[Sequence[object]]) -> str:
    """`rows`, the first of them the heads, in aligned columns: text to the left, numbers to the right."""
    cells = [[f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )


def finish(result: dict[str, Any], *, record: bool) -> None:
    """Print the result as the last line; `record` also writes it under benchmarks/results/."""
    if record:
        device = result.get("device", f"cpu{os.cpu_count()}")
        path = RESULTS / f"{datetime.now(UTC):%Y-%m-%d}_{device}_{result['name']}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))
