"""The judge's throughput: our packed encoder against what else runs the same checkpoint, interleaved in one process.

Answers are checked first (decisions and logits against fp32). The floor is the time of the bare products of all tokens,
T x 2 (4 E^2 + 2 E I) a layer, all layers, in the same dtype and run, by the fastest of torch's product and oneDNN's
blocked one on all threads or a pass a thread; ours does less of the last layer (keys and values of all tokens, the rest of first tokens only). Useful
FLOP: T x (8 E^2 + 4 E I + 4 L E + 4 (2 L - 1) E) a layer, real tokens only. Prints a table, and one JSON line last.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _harness as harness
import length_mixes
import nli_baselines as baselines

from claimscore.jobs.batch import micro_batches
from claimscore.jobs.encoder import Encoder, load_encoder
from claimscore.jobs.judge import CPU_TOKENS
from claimscore.jobs.lanes import in_lanes
from claimscore.kernels import cpu_linear, dispatch

ROOT = harness.ROOT
SHAPES = {
    "tiny": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
    "xsmall": {
        "hidden_size": 384,
        "num_hidden_layers": 12,
        "num_attention_heads": 6,
        "intermediate_size": 1536,
    },
    "base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "large": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
}
GPU_TOKENS = 32_768
CLS, SEP = 1, 2


@dataclass(frozen=True, slots=True)
class Work:
    """What is measured: a checkpoint, pairs as joined ids, where and in what."""

    folder: Path
    ids: list[np.ndarray]
    device: torch.device
    dtype: torch.dtype
    budget_tokens: int

    @property
    def n_tokens(self) -> int:
        """Real tokens of all pairs."""
        return sum(map(len, self.ids))


def checkpoint(model: str, scratch: Path) -> Path:
    """The demo judge's folder, or a checkpoint of random weights of a known shape."""
    if model == "demo-judge":
        return ROOT / "demo-models" / "demo-judge"
    tiny = _load(ROOT / "tests" / "tiny_deberta.py")
    vocabulary = {"vocab_size": 200 if model == "tiny" else 128_100}
    folder: Path = tiny.write_tiny(scratch / model, **SHAPES[model], **vocabulary)
    return folder


def ours(work: Work, encoder: Encoder) -> np.ndarray:
    """Logits of all pairs, in their order: sorted, packed, `budget_tokens` a forward pass; on a CPU a pass a core."""
    lengths = [len(ids) for ids in work.ids]
    out = np.empty((len(work.ids), encoder.n_classes), np.float32)

    def logits(batch: list[int]) -> np.ndarray:
        ids_T = torch.from_numpy(np.concatenate([work.ids[k] for k in batch])).to(work.device)
        cu_seqlens = torch.tensor([0, *(lengths[k] for k in batch)], device=work.device).cumsum(0)
        return encoder.logits(ids_T, cu_seqlens, max_len=lengths[batch[0]]).cpu().numpy()

    n_lanes = 1 if work.device.type == "cuda" else torch.get_num_threads()
    for batch, found in in_lanes(logits, list(micro_batches(lengths, work.budget_tokens)), n_lanes):
        out[batch] = found
    return out


def floors(work: Work, encoder: Encoder) -> dict[str, Callable[[], object]]:
    """The bare products of one layer for all tokens, by torch's product, by oneDNN's blocked one, and by that in lanes."""
    width, inner = encoder.config.hidden_size, encoder.config.intermediate_size
    shapes = ((3 * width, width), (width, width), (inner, width), (width, inner))
    step = min(work.budget_tokens, work.n_tokens)
    make = {"device": work.device, "dtype": work.dtype}
    parts = [
        (torch.randn(step, i, **make), torch.randn(o, i, **make), torch.randn(o, **make)) for o, i in shapes
    ]
    n_steps, rest = divmod(work.n_tokens, step)
    steps = [step] * n_steps + [rest] * bool(rest)

    def run(product: Callable[..., object], operands: list[tuple[torch.Tensor, ...]], n_lanes: int) -> None:
        @torch.inference_mode()
        def products(n_tokens: int) -> None:
            for x, weight, bias in operands:
                product(x[:n_tokens], weight, bias)

        for _ in in_lanes(products, steps, n_lanes):
            pass

    out: dict[str, Callable[[], object]] = {"floor: linear": lambda: run(F.linear, parts, 1)}
    if cpu_linear.packs(work.device, work.dtype):
        blocked = [(x, cpu_linear.packed(w), b) for x, w, b in parts]
        out["floor: blocked"] = lambda: run(cpu_linear.linear, blocked, 1)
        n_lanes = torch.get_num_threads()
        out["floor: blocked, in lanes"] = lambda: run(cpu_linear.linear, blocked, n_lanes)
    return out


def useful_flop(work: Work, encoder: Encoder) -> float:
    """FLOP of all layers for the real tokens; the formula stands at the top."""
    config, lengths = encoder.config, np.array([len(ids) for ids in work.ids], np.float64)
    width, inner = config.hidden_size, config.intermediate_size
    linear = 8 * width**2 + 4 * width * inner
    attention = 4 * lengths * width + 4 * (2 * lengths - 1) * width
    return float(config.num_hidden_layers * (lengths * (linear + attention)).sum())


def measure(work: Work, rounds: int, with_cross_encoder: bool) -> dict[str, Any]:
    """Check the answers, then time ours, the baselines and the floors; one row a candidate."""
    encoder = load_encoder(work.folder, dtype=work.dtype, device=work.device)
    exact = load_encoder(work.folder, dtype=torch.float32, device=work.device)
    reference = ours(work, exact)
    answers = {"ours": harness.compare(ours(work, encoder), reference)}
    candidates: dict[str, Callable[[], object]] = {"ours": lambda: ours(work, encoder)}
    found, notes = baselines.candidates(work, with_cross_encoder=with_cross_encoder)
    for name, run in found.items():
        candidates[name] = run
        answers[name] = harness.compare(run(), reference)
    bare = floors(work, encoder)
    sync = torch.cuda.synchronize if work.device.type == "cuda" else lambda: None
    seconds = harness.interleave(candidates | bare, rounds, sync)
    n_layers = encoder.config.num_hidden_layers
    floor_s = min(float(np.median(seconds[name])) for name in bare) * n_layers
    harness.reset_peak()
    before = harness.memory_mib("VmRSS")
    candidates["ours"]()
    rows = {}
    for name in candidates:
        s = harness.spread(seconds[name])
        rows[name] = s | {
            "pairs_per_s": len(work.ids) / s["median_s"],
            "tokens_per_s": work.n_tokens / s["median_s"],
            "gflop_per_s": useful_flop(work, encoder) / s["median_s"] / 1e9,
            "share_of_floor": floor_s / s["median_s"],
            "ours_is_faster_by": s["median_s"] / float(np.median(seconds["ours"])),
            "answers": answers[name],
        }
    return {
        "rows": rows,
        "floor": {name: harness.spread([n_layers * t for t in seconds[name]]) for name in bare},
        "floor_pairs_per_s": len(work.ids) / floor_s,
        "padding_share": {"ours": 0.0} | notes,
        "peak_mib_of_ours": {"before": before, "peak": harness.memory_mib()},
        "backend": dispatch.last_backend(),
    }


def tokenising(folder: Path, work: Work) -> dict[str, float]:
    """Seconds to tokenise premises and claims of about as many tokens as the pairs have, each text once."""
    from claimscore.jobs.judge import load_tokenizer

    synthetic = _load(ROOT / "benchmarks" / "synthetic_log.py")
    writer, texts = synthetic.Writer(), []
    while sum(len(text) for text in texts) < 4.4 * work.n_tokens:
        texts += [chunk["text"] for chunk in writer.answer()["chunks"]]
    import pyarrow as pa

    tokenizer = load_tokenizer(str(folder))
    seconds = harness.interleave({"tokenise": lambda: tokenizer.encode(pa.array(texts))}, 3)["tokenise"]
    n_tokens = len(tokenizer.encode(pa.array(texts)).column("ids").combine_chunks().flatten())
    return {
        "median_s": float(np.median(seconds)),
        "n_tokens": n_tokens,
        "tokens_per_s": n_tokens / float(np.median(seconds)),
    }


def report(result: Mapping[str, Any]) -> None:
    """Print the table of one model, mix and dtype."""
    heads = ["", "pairs/s", "p20..p80 s", "real tok/s", "GFLOP/s", "of floor", "ours x", "flips", "max diff"]
    lines: list[list[object]] = [heads]
    for name, row in result["rows"].items():
        lines.append(
            [name, row["pairs_per_s"], f"{row['p20_s']:.2f}..{row['p80_s']:.2f}", round(row["tokens_per_s"]),
             row["gflop_per_s"], row["share_of_floor"], row["ours_is_faster_by"],
             f"{row['answers']['n_flips']}/{row['answers']['of']}", f"{row['answers']['max_logit_difference']:.1e}"]
        )  # fmt: skip
    print(harness.table(lines))
    peak = result["peak_mib_of_ours"]
    print(f"floor {result['floor_pairs_per_s']:.1f} pairs/s; padding {result['padding_share']}; "
          f"ours adds {peak['peak'] - peak['before']:.0f} MiB at its peak; backend {result['backend']}")  # fmt: skip


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _dtype(name: str, device: torch.device) -> torch.dtype:
    fast = "float16" if device.type == "cuda" else "bfloat16" if cpu_linear.has_fast_bf16() else "float32"
    dtype: torch.dtype = getattr(torch, fast if name == "auto" else name)
    return dtype


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Everything of one process and device."""
    device = torch.device(
        options.device if options.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    )
    if options.threads:
        torch.set_num_threads(options.threads)
    folder = checkpoint(options.model, scratch)
    n_ids = 200 if options.model == "tiny" else 128_000
    drawn = length_mixes.pairs(options.mix, options.pairs, n_ids)
    ids = [np.array([CLS, *premise, SEP, *claim, SEP], np.int64) for premise, claim in drawn]
    budget = options.budget_tokens or (GPU_TOKENS if device.type == "cuda" else CPU_TOKENS)
    work = Work(folder, ids, device, _dtype(options.dtype, device), budget)
    result = measure(work, options.rounds, options.cross_encoder)
    result |= {
        "model": options.model if options.model == "demo-judge" else f"{options.model} (random weights of this shape)",
        "mix": options.mix, "n_pairs": len(ids), "mean_tokens": work.n_tokens / len(ids), "budget_tokens": budget,
        "dtype": str(work.dtype).removeprefix("torch."), "threads": torch.get_num_threads(),
    }  # fmt: skip
    if options.model == "demo-judge":
        result["tokenising"] = tokenising(folder, work)
        whole = result["rows"]["ours"]["median_s"] + work.n_tokens / result["tokenising"]["tokens_per_s"]
        result["pairs_per_s_with_tokenising"] = len(ids) / whole
    return result


def on_all_gpus(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The same measurement in one Ray actor a GPU, at once."""
    import ray

    ray.init(include_dashboard=False)
    n_gpus = int(ray.cluster_resources().get("GPU", 0))
    if not n_gpus:
        sys.exit("bench_nli: --all-gpus: Ray sees no GPU, expected one at least; leave it out on a CPU")
    job = ray.remote(num_gpus=1)(lambda: run(options, Path(tempfile.mkdtemp())))
    return list(ray.get([job.remote() for _ in range(n_gpus)]))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=["demo-judge", *SHAPES], default="demo-judge")
    parser.add_argument("--mix", choices=length_mixes.MIXES, default="rag")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16", "float16"], default="auto")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: as it finds")
    parser.add_argument("--budget-tokens", type=int, default=0)
    parser.add_argument(
        "--cross-encoder", action="store_true", help="also CrossEncoder.predict at its defaults: slow"
    )
    parser.add_argument("--all-gpus", action="store_true", help="one Ray actor a GPU; each and the sum")
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    parser.add_argument("--smoke", action="store_true", help="a tiny random model, in seconds, on the CPU")
    options = parser.parse_args()
    if options.smoke:
        options.model, options.pairs, options.rounds, options.device, options.threads = (
            "tiny",
            24,
            1,
            "cpu",
            1,
        )
    kind = "cross-encoder" if options.cross_encoder else options.dtype
    card = harness.card(f"nli-{options.model}-{options.mix}-{kind}")
    with tempfile.TemporaryDirectory() as scratch:
        results = on_all_gpus(options) if options.all_gpus else [run(options, Path(scratch))]
    for result in results:
        report(result)
    total = sum(result["rows"]["ours"]["pairs_per_s"] for result in results)
    harness.finish(
        card | results[0] | {"devices": results[1:], "pairs_per_s_of_all": total}, record=options.record
    )


if __name__ == "__main__":
    main()
