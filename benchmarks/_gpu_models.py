"""Parts of gpu_suite about whole models: decisions in half precision, and pairs a second beside other encoders.

Weights are random in the exact shapes unless a folder is given: speed does not depend on them, decisions do. Packing
on the host is left out of all times alike; copies to the device are in. Others get the same pairs, sorted by length.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _gpu_others import BATCHES, BUDGETS, add_others, load_transformers, score_padded
from _gpu_parts import PEAK_TFLOPS, draw_lengths, interleaved, micro_batches, model_flops

SHAPES = {"xsmall": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
"""Width, layers, heads; the inner width is four times the width."""


def flips(suite: Any) -> dict[str, Any]:
    """Decisions that change, and how far logits move, from fp32 to each dtype and from PyTorch to the kernels."""
    from claimscore.jobs.encoder import load_encoder
    from claimscore.kernels import dispatch

    with _folder(suite, "xsmall") as (folder, weights):
        pairs = _text_pairs(suite, folder) if suite.pairs else _random_pairs(suite, 2000)
        logits, ran = {}, {}
        for name, dtype in {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}.items():
            encoder = load_encoder(folder, dtype=dtype, device=suite.device)
            logits[name] = _score(encoder, pairs.batches(16384, suite.device)).cpu()
            ran[name] = dispatch.last_backend()
        if suite.device.type == "cuda":
            encoder = load_encoder(folder, dtype=torch.float32, device=suite.device)
            with _backend("torch"):
                logits["fp32 pytorch"] = _score(encoder, pairs.batches(16384, suite.device)).cpu()
    base = logits["fp32"]
    rows = [
        {"dtype": name, "flips": int((other.argmax(1) != base.argmax(1)).sum())}
        | {"max_logit_shift": float((other - base).abs().max()), "finite": bool(other.isfinite().all())}
        for name, other in logits.items()
    ]
    return {
        "rows": rows,
        "pairs": len(base),
        "weights": weights,
        "backend": ran,
        "logit_std": float(base.std()),
    }


def model(suite: Any, name: str) -> dict[str, Any]:
    """Pairs a second, tokens a second and MFU of one size, interleaved with transformers and what wheels were given."""
    from claimscore.jobs.encoder import load_encoder

    width, n_layers, _ = _shape(suite, name)
    with _folder(suite, name) as (folder, weights):
        pairs = _random_pairs(suite, {"xsmall": 2000, "base": 1000, "large": 500}[name])
        encoder = load_encoder(folder, dtype=suite.dtype, device=suite.device)
        hf = load_transformers(suite, folder)
        runs: dict[str, Callable[[], torch.Tensor]] = {}
        for budget in BUDGETS[:1] if suite.smoke else BUDGETS:
            batches = pairs.batches(budget, suite.device)
            runs[f"claimscore {budget}"] = lambda batches=batches: _score(encoder, batches)
        for size in BATCHES[:1] if suite.smoke else BATCHES:
            padded = pairs.padded(size)
            runs[f"transformers {size}"] = lambda padded=padded: score_padded(hf, padded, suite.device)
        failed = add_others(suite, folder, pairs, runs) if suite.wheels else {}
        checks, expected = {}, runs[f"transformers {BATCHES[0]}"]().float().cpu()
        allowed = 0.05 * max(1.0, float(expected.std()))  # a wrong encoder is off by the spread of the logits
        for label, run in list(runs.items()):
            try:
                checks[label] = float((run().float().cpu() - expected).abs().max())
            except Exception as error:  # noqa: BLE001 - one that fails is reported, the others are measured
                failed[label] = f"{type(error).__name__}: {error}"[:300]
                del runs[label]
        for label in [label for label, shift in checks.items() if not shift < allowed]:
            failed[label] = f"logits differ by {checks[label]:.3f}: not timed"
            del runs[label]
        peak = _peak_gib(runs.get(f"claimscore {BUDGETS[0]}"), suite.device)
        synced = _syncs(encoder, pairs.batches(BUDGETS[0], suite.device), suite.device)
        times = interleaved(runs, suite.device, rounds=1 if suite.smoke else 3, repeats=1, warm=0)
    tokens, flops = int(pairs.lengths.sum()), model_flops(pairs.lengths, width, n_layers)
    rows = [
        {"model": name, "run": label, **time, "pairs_s": len(pairs.lengths) / time["ms"] * 1e3}
        | {"tokens_s": tokens / time["ms"] * 1e3, "mfu": flops / time["ms"] / 1e9 / PEAK_TFLOPS}
        for label, time in times.items()
    ]
    return {
        "rows": rows,
        "formula": "MFU against 790 TFLOP/s: (layers - 1) x (24 d^2 + 4 L d + 4 R d) + 4 d^2 for each real token",
        "weights": weights,
        "mean_tokens": tokens / len(pairs.lengths),
        "dtype": str(suite.dtype)[6:],
        "max_logit_shift": checks,
        "failed": failed,
        "host_syncs": synced,
        "peak_gib_with_all_models_loaded": peak,
    }


class _Pairs:
    """Token ids of pairs, and their micro-batches as pinned tensors."""

    def __init__(self, ids: list[np.ndarray]) -> None:
        self.ids, self.lengths = ids, np.array([len(one) for one in ids])

    def batches(self, budget: int, device: torch.device) -> list[tuple[Any, ...]]:
        made = []
        for rows in micro_batches(self.lengths, max(budget, int(self.lengths.max()))):
            bounds = np.concatenate([[0], np.cumsum(self.lengths[rows])])
            arrays = (np.concatenate([self.ids[row] for row in rows]), bounds, rows)
            tensors = [torch.from_numpy(array) for array in arrays]
            if device.type == "cuda":
                tensors = [tensor.pin_memory() for tensor in tensors]
            made.append((*tensors, int(self.lengths[rows].max())))
        return made

    def padded(self, size: int) -> list[tuple[torch.Tensor, torch.Tensor, np.ndarray]]:
        order = np.argsort(-self.lengths, kind="stable")
        made = []
        for rows in np.split(order, range(size, len(order), size)):
            longest = int(self.lengths[rows].max())
            ids = torch.zeros(len(rows), longest, dtype=torch.int64)
            mask = torch.zeros_like(ids)
            for line, row in enumerate(rows):
                ids[line, : self.lengths[row]] = torch.from_numpy(self.ids[row])
                mask[line, : self.lengths[row]] = 1
            made.append((ids, mask, rows))
        return made


def _random_pairs(suite: Any, n_pairs: int) -> _Pairs:
    lengths = draw_lengths("short" if suite.smoke else "rag", 6 if suite.smoke else n_pairs)
    random = np.random.default_rng(1)
    return _Pairs([random.integers(4, 1000, n) for n in lengths])


def _text_pairs(suite: Any, folder: Path) -> _Pairs:
    """Pairs of a Parquet file with columns `premise` and `claim`, at most 512 tokens each, joined as the judge does."""
    import pyarrow.parquet as pq

    from claimscore.jobs.tokenizer import load_tokenizer

    table, tokenizer = pq.read_table(suite.pairs, columns=["premise", "claim"]), load_tokenizer(str(folder))
    ids = [tokenizer.encode(table[name].combine_chunks())["ids"].to_pylist() for name in ("premise", "claim")]
    ends = [tokenizer.cls_id], [tokenizer.sep_id]
    joined = [[*ends[0], *premise, *ends[1], *claim, *ends[1]] for premise, claim in zip(*ids, strict=True)]
    return _Pairs(
        [np.array(one, np.int64) for one in joined if len(one) <= 512][: 32 if suite.smoke else None]
    )


def _score(encoder: Any, batches: list[Any]) -> torch.Tensor:
    out = torch.empty(sum(len(batch[2]) for batch in batches), encoder.n_classes, device=encoder.device)
    for *tensors, max_len in batches:
        ids, bounds, rows = (x.to(encoder.device, non_blocking=True) for x in tensors)
        out[rows] = encoder.logits(ids, bounds, max_len=max_len)
    return out


def _peak_gib(run: Callable[[], Any] | None, device: torch.device) -> float | None:
    """Most memory that was allocated during a run."""
    if run is None or device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated() / 2**30)


def _syncs(encoder: Any, batches: list[Any], device: torch.device) -> str:
    """Whether a forward pass waits for the device: PyTorch raises where it would."""
    if device.type != "cuda":
        return "not a GPU"
    ids, bounds, _, max_len = batches[0]
    given = ids.to(device), bounds.to(device)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        encoder.logits(*given, max_len=max_len)
    except RuntimeError as error:
        return f"yes: {error}"
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "none"


def _shape(suite: Any, name: str) -> tuple[int, int, int]:
    return (128, 2, 2) if suite.smoke else SHAPES[name]


@contextlib.contextmanager
def _folder(suite: Any, name: str) -> Iterator[tuple[Path, str]]:
    """A checkpoint folder: the one given for flips, else random weights of the exact shape."""
    if suite.model and name == "xsmall":
        yield suite.model, str(suite.model)
        return
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    width, n_layers, n_heads = _shape(suite, name)
    config = DebertaV2Config(
        vocab_size=1000 if suite.smoke else 128_100,
        hidden_size=width,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        intermediate_size=4 * width,
        type_vocab_size=0,
        relative_attention=True,
        max_relative_positions=-1,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        initializer_range=0.05,
        pooler_hidden_size=width,
        num_labels=3,
    )
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        with suite.device:
            DebertaV2ForSequenceClassification(config).save_pretrained(folder)
        yield Path(folder), "random, in the exact shape: decisions mean little"


@contextlib.contextmanager
def _backend(name: str) -> Iterator[None]:
    from claimscore.kernels import dispatch

    chosen, dispatch.backend_for = dispatch.backend_for, lambda _: name
    try:
        yield
    finally:
        dispatch.backend_for = chosen
