"""The encoders that gpu_suite measures ours against: transformers' own, and two public packages with fused kernels.

The packages come from wheels in a folder, without the network; one that cannot be set up is reported, not fatal.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

BUDGETS = (8192, 16384, 32768, 65536)
BATCHES = (32, 128)


@torch.inference_mode()
def score_padded(hf: Any, padded: list[Any], device: torch.device) -> torch.Tensor:
    """Logits of padded batches, in the order of the pairs."""
    out = torch.empty(sum(len(batch[2]) for batch in padded), hf.config.num_labels, device=device)
    for ids, mask, rows in padded:
        logits = hf(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        out[torch.from_numpy(rows).to(device)] = logits.float()
    return out


def load_transformers(suite: Any, folder: Path) -> Any:
    """The classifier of a folder as transformers runs it."""
    from transformers import DebertaV2ForSequenceClassification

    return (
        DebertaV2ForSequenceClassification.from_pretrained(folder, dtype=suite.dtype).to(suite.device).eval()
    )


def add_others(suite: Any, folder: Path, pairs: Any, runs: dict[str, Any]) -> dict[str, str]:
    """Add the public fused encoders whose wheels were given; what cannot be set up comes back with its reason."""
    failed = {}
    for package, add in {
        "flashdeberta": _add_flashdeberta,
        "disentangled_flash": _add_disentangled_flash,
    }.items():
        try:
            _install(suite.wheels, package)
            add(suite, folder, pairs, runs)
        except Exception as error:  # noqa: BLE001 - a baseline that does not load is a result
            failed[package] = f"{type(error).__name__}: {error}"[:300]
    return failed


def _install(wheels: Path, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        return
    wheel = next(iter(sorted(wheels.glob(f"{package}-*.whl"))), None)
    if wheel is None:
        raise FileNotFoundError(f"{wheels}: no wheel of {package}")
    target = tempfile.mkdtemp(prefix=package)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        target,
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    sys.path.append(target)
    importlib.invalidate_caches()


def _add_flashdeberta(suite: Any, folder: Path, pairs: Any, runs: dict[str, Any]) -> None:
    from flashdeberta import FlashDebertaV2ForSequenceClassification

    flash = (
        FlashDebertaV2ForSequenceClassification.from_pretrained(folder).to(suite.device, suite.dtype).eval()
    )
    for size in BATCHES:
        padded = pairs.padded(size)
        runs[f"flashdeberta {size}"] = lambda padded=padded: score_padded(flash, padded, suite.device)


def _add_disentangled_flash(suite: Any, folder: Path, pairs: Any, runs: dict[str, Any]) -> None:
    from disentangled_flash import optimize_deberta

    other = load_transformers(suite, folder)
    optimize_deberta(other.deberta, sequence_lengths=[64, 128, 256, 384, 512])

    @torch.inference_mode()
    def score(batches: list[Any]) -> torch.Tensor:
        out = torch.empty(len(pairs.lengths), other.config.num_labels, device=suite.device)
        for *tensors, max_len in batches:
            ids, bounds, rows = (x.to(suite.device, non_blocking=True) for x in tensors)
            hidden = other.deberta.embeddings(input_ids=ids[None], mask=torch.ones_like(ids)[None])[0]
            hidden = other.deberta.encoder.forward_packed(hidden, bounds.int(), max_len).last_hidden_state
            logits = other.classifier(other.pooler(hidden[bounds[:-1], None]))
            out[rows] = logits.float()
        return out

    for budget in BUDGETS[1:3]:
        batches = pairs.batches(budget, suite.device)
        runs[f"disentangled_flash {budget}"] = lambda batches=batches: score(batches)
