"""What else runs a DeBERTa cross-encoder: each as a call that gives the logits of all pairs in their order.

transformers eager, sorted by length, at the best of several batch sizes (found on a quarter of the pairs);
sentence-transformers' CrossEncoder at its defaults, as far as ids allow (fp32, 32 pairs a batch, in input order, padded
to the longest); ONNX Runtime on a CPU; flashdeberta and disentangled-flash on a GPU: each where it is installed.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

BATCH_SIZES = {"cpu": (2, 4, 8), "cuda": (32, 64, 128, 256)}
Run = Callable[[], np.ndarray]


def candidates(work: Any, *, with_cross_encoder: bool) -> tuple[dict[str, Run], dict[str, float]]:
    """Calls by name, and the share of padding of each."""
    out: dict[str, Run] = {}
    padding: dict[str, float] = {}
    order = sorted(range(len(work.ids)), key=lambda k: -len(work.ids[k]))
    model = _eager(work.folder, work.dtype, work.device)
    size = best_batch_size(model, work, order)
    name = f"eager sorted, {size} a batch"
    out[name] = lambda: run_padded(model, work, order, size)
    padding[name] = padding_share(work, order, size)
    if with_cross_encoder:
        theirs, name = cross_encoder(work)
        out[name] = theirs
        padding[name] = padding_share(work, list(range(len(work.ids))), 32)
    if work.device.type == "cpu" and importlib.util.find_spec("onnxruntime"):
        out["ONNX Runtime fp32, sorted, 8 a batch"] = onnx_runtime(work, order)
    if work.device.type == "cuda":
        out |= public_kernels(work, order)
    return out, padding


def best_batch_size(model: Any, work: Any, order: Sequence[int]) -> int:
    """The fastest of BATCH_SIZES on every fourth pair."""
    seconds = {}
    for size in BATCH_SIZES[work.device.type]:
        if work.device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        run_padded(model, work, order[::4], size)  # to numpy at its end, so the device is done
        seconds[size] = time.perf_counter() - began
    return min(seconds, key=seconds.__getitem__)


def run_padded(model: Any, work: Any, order: Sequence[int], size: int) -> np.ndarray:
    """Logits of the pairs in `order`, `size` at a time, padded to the longest; other rows are 0."""
    out = np.zeros((len(work.ids), model.config.num_labels), np.float32)
    with torch.inference_mode():
        for first in range(0, len(order), size):
            batch = list(order[first : first + size])
            ids, mask = (torch.from_numpy(a).to(work.device) for a in padded([work.ids[k] for k in batch]))
            out[batch] = model(input_ids=ids, attention_mask=mask).logits.float().cpu().numpy()
    return out


def padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(B, L) ids with 0 beyond each end, and the mask of what is real."""
    longest = max(map(len, rows))
    ids, mask = np.zeros((2, len(rows), longest), np.int64)
    for k, row in enumerate(rows):
        ids[k, : len(row)], mask[k, : len(row)] = row, 1
    return ids, mask


def padding_share(work: Any, order: Sequence[int], size: int) -> float:
    """Share of the computed tokens that are padding."""
    batches = [
        [len(work.ids[k]) for k in order[first : first + size]] for first in range(0, len(order), size)
    ]
    computed = sum(len(batch) * max(batch) for batch in batches)
    return round(1 - work.n_tokens / computed, 4)


def cross_encoder(work: Any) -> tuple[Run, str]:
    """CrossEncoder.predict's default: in input order, batches of 32, fp32; the package itself where it is installed.

    It takes texts; given ids, its model and batches are what is timed, without its tokenising.
    """
    model, name = _eager(work.folder, torch.float32, work.device), "as CrossEncoder.predict"
    if importlib.util.find_spec("sentence_transformers"):
        from sentence_transformers import CrossEncoder

        model, name = (
            CrossEncoder(str(work.folder), device=work.device.type).model,
            "CrossEncoder's model, its batches",
        )
    order = list(range(len(work.ids)))
    return (lambda: run_padded(model, work, order, 32)), f"{name} (fp32, 32, unsorted)"


def onnx_runtime(work: Any, order: Sequence[int], size: int = 8) -> Run:
    """The same model exported by torch, run by ONNX Runtime in fp32."""
    import onnxruntime

    model = _eager(work.folder, torch.float32, work.device)
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    ids, mask = (torch.from_numpy(a) for a in padded([np.arange(9), np.arange(7)]))
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "pairs", 1: "tokens"} for name in names}
    torch.onnx.export(
        model, (ids, mask), path, input_names=names, output_names=["logits"], dynamic_axes=axes, dynamo=False
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run() -> np.ndarray:
        out = np.zeros((len(work.ids), model.config.num_labels), np.float32)
        for first in range(0, len(order), size):
            batch = list(order[first : first + size])
            inputs = dict(zip(names, padded([work.ids[k] for k in batch]), strict=True))
            out[batch] = session.run(["logits"], inputs)[0]
        return out

    return run


def public_kernels(work: Any, order: Sequence[int]) -> dict[str, Run]:
    """flashdeberta, padded and sorted, where it is installed; not tried here for want of a GPU."""
    out: dict[str, Run] = {}
    if importlib.util.find_spec("flashdeberta"):
        from flashdeberta import FlashDebertaV2ForSequenceClassification

        model = FlashDebertaV2ForSequenceClassification.from_pretrained(work.folder, dtype=work.dtype)
        model = model.to(work.device).eval()
        size = best_batch_size(model, work, order)
        out[f"flashdeberta sorted, {size} a batch"] = lambda: run_padded(model, work, order, size)
    return out


def _eager(folder: Path, dtype: torch.dtype, device: torch.device) -> Any:
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype).to(device).eval()
