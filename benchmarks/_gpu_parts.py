"""What the parts of gpu_suite share: where claimscore is, what the device is, times, useful FLOPs, length mixes.

Times are of the device (CUDA events), or of the clock on a CPU. Peak is 790 TFLOP/s, a dense bf16 product measured on
one H200: every share of it says so.
"""

from __future__ import annotations

import importlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
PEAK_TFLOPS = 790.0
HEAD_SIZE = 64
MIXES = {"rag": (48, 190, 512), "short": (16, 48, 128)}
"""Lengths of pairs: least, mean, most. rag resembles chunk windows with claims; made here, not measured."""


def find_claimscore() -> str:
    """Make `claimscore` importable from this checkout, also where it is not installed; the path for child processes."""
    folder = Path(tempfile.mkdtemp(prefix="claimscore-"))
    (folder / "claimscore").mkdir()
    for name in ("jobs", "kernels"):
        (folder / "claimscore" / name).symlink_to(ROOT / name)
    sys.path.insert(0, str(folder))
    return str(folder)


def facts(device: torch.device) -> dict[str, Any]:
    """Device, versions and commit."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    found = {"device": device.type, "python": platform.python_version(), "commit": commit or "unknown"}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {"device": properties.name, "memory_gib": round(properties.total_memory / 2**30, 1)}
        found |= {"cuda": torch.version.cuda, "capability": f"{properties.major}.{properties.minor}"}
    for package in ("torch", "triton", "transformers", "numpy"):
        try:
            found[package] = importlib.import_module(package).__version__
        except ImportError:
            found[package] = "missing"
    return found


def times_ms(run: Callable[[], Any], device: torch.device, repeats: int, warm: int = 2) -> list[float]:
    """Milliseconds of each of `repeats` calls, after `warm` that are not counted."""
    for _ in range(warm):
        run()
    times = []
    for _ in range(repeats):
        if device.type == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            started = time.perf_counter()
            run()
            times.append((time.perf_counter() - started) * 1e3)
    return times


def interleaved(
    runs: dict[str, Callable[[], Any]], device: torch.device, rounds: int, repeats: int = 3, warm: int = 2
) -> dict[str, dict[str, float]]:
    """Median, p20 and p80 of each, measured in turns: a clock that falls hits all of them."""
    collected: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            collected[name] += times_ms(run, device, repeats, warm)
    return {name: spread(times) for name, times in collected.items()}


def spread(times: Sequence[float]) -> dict[str, float]:
    """Median, p20 and p80."""
    ordered = sorted(times)
    low, high = ordered[int(0.2 * (len(ordered) - 1))], ordered[round(0.8 * (len(ordered) - 1))]
    return {"ms": statistics.median(ordered), "p20_ms": low, "p80_ms": high}


def active_rows(length: int) -> int:
    """Position rows that a DeBERTa-v3 pair of this length uses (256 buckets, 512 positions)."""
    from claimscore.jobs.encoder import position_slots

    return len(position_slots(bucket_config(), length).unique())


def bucket_config() -> Any:
    """The position buckets of every v3 checkpoint."""
    from claimscore.jobs.checkpoint import EncoderConfig

    return EncoderConfig(relative_attention=True, position_buckets=256)


def attention_flops(lengths: np.ndarray, width: int) -> float:
    """Useful FLOPs of one layer's attention: 4 L d for QK and PV, 4 R d for the two position terms, a token."""
    rows = {int(n): active_rows(int(n)) for n in np.unique(lengths)}
    return float(sum(4 * n * (n + rows[int(n)]) * width for n in lengths))


def model_flops(lengths: np.ndarray, width: int, n_layers: int) -> float:
    """Useful FLOPs of a model: 24 d^2 a token and layer, and its attention.

    Of the last layer only K and V (4 d^2) of every token count: the rest is needed of first tokens alone.
    """
    whole = 24 * width**2 * lengths.sum() + attention_flops(lengths, width)
    return float((n_layers - 1) * whole + 4 * width**2 * lengths.sum())


def draw_lengths(mix: str, n_pairs: int, seed: int = 0) -> np.ndarray:
    """Lengths of a mix: a gamma distribution cut at both ends."""
    least, mean, most = MIXES[mix]
    drawn = np.random.default_rng(seed).gamma(4.0, mean / 4.0, n_pairs)
    return np.clip(np.rint(drawn), least, most).astype(np.int64)


def micro_batches(lengths: np.ndarray, budget_tokens: int) -> list[np.ndarray]:
    """Rows of each micro-batch, longest pairs first."""
    from claimscore.jobs.batch import micro_batches as batches

    return [np.asarray(rows) for rows in batches(lengths.tolist(), budget_tokens)]
