"""Everything that needs a GPU, in one command of under eight minutes: tests, decisions, kernels, models.

    python benchmarks/gpu_suite.py OUT_DIR [--wheels DIR] [--model DIR --pairs FILE] [--smoke]

It needs torch, triton, transformers, pyarrow and pytest, no network and no installed claimscore. A part that fails is
recorded and the next one runs; a part that would start after the time limit is skipped and says so. OUT_DIR gets
gpu_suite.json, gpu_suite.txt, and the tuning file that belongs into kernels/tuned/. `--smoke` runs every part on
the CPU at a size that means nothing, so that a mistake here does not cost time on a GPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
SMOKE = "--smoke" in sys.argv
if SMOKE:  # before anything imports triton, which asks once
    os.environ["TRITON_INTERPRET"] = "1"

import _gpu_kernels  # noqa: E402
import _gpu_models  # noqa: E402
import torch  # noqa: E402
from _gpu_parts import MIXES, facts, find_claimscore  # noqa: E402


@dataclasses.dataclass
class Suite:
    """What every part is handed."""

    folder: Path
    device: torch.device
    smoke: bool
    claimscore: str
    """A folder that makes claimscore importable in a child process."""
    wheels: Path | None
    model: Path | None
    pairs: Path | None

    @property
    def dtype(self) -> torch.dtype:
        """fp16 as the judge has it on a GPU; fp32 in a smoke run."""
        return torch.float32 if self.device.type == "cpu" else torch.float16


PARTS: dict[str, Callable[[Suite], dict[str, Any]]] = {
    "kernel_tests": _gpu_kernels.kernel_tests,
    "flips": _gpu_models.flips,
    "model_base": functools.partial(_gpu_models.model, name="base"),
    "attention": _gpu_kernels.attention,
    "ops": _gpu_kernels.ops,
    "model_large": functools.partial(_gpu_models.model, name="large"),
    "model_xsmall": functools.partial(_gpu_models.model, name="xsmall"),
}


def run_parts(suite: Suite, names: list[str], limit_s: float) -> dict[str, Any]:
    """Each part's result, or what it failed of, written after every part: a lost machine loses one part."""
    started = time.perf_counter()
    report: dict[str, Any] = {
        "command": " ".join(sys.argv),
        "smoke": suite.smoke,
        "mixes": MIXES,
        "parts": {},
    }
    report["facts"] = facts(suite.device)
    for name in names:
        begun = time.perf_counter()
        if begun - started > limit_s:
            result: dict[str, Any] = {"skipped": f"{limit_s:.0f} s had passed"}
        else:
            try:
                result = PARTS[name](suite)
            except Exception as error:  # noqa: BLE001 - the next part may still run
                result = {
                    "failed": f"{type(error).__name__}: {error}",
                    "traceback": traceback.format_exc()[-3000:],
                }
        result["seconds"] = round(time.perf_counter() - begun, 1)
        report["parts"][name] = result
        (suite.folder / "gpu_suite.json").write_text(json.dumps(report, indent=1, default=str))
        (suite.folder / "gpu_suite.txt").write_text("\n".join(lines(report)) + "\n")
        print("\n".join(part_lines(name, result)), flush=True)
    return report


def lines(report: dict[str, Any]) -> list[str]:
    """The whole report to read."""
    head = [f"{key}: {value}" for key, value in report["facts"].items()]
    if report["smoke"]:
        head.append("SMOKE RUN: every figure below is meaningless")
    return [*head, *(line for name, result in report["parts"].items() for line in part_lines(name, result))]


def part_lines(name: str, result: dict[str, Any]) -> list[str]:
    """One part as a heading, its facts, and a table of its rows."""
    out = ["", f"== {name} ({result['seconds']} s)"]
    out += [f"{key}: {value}" for key, value in result.items() if key not in {"rows", "seconds", "traceback"}]
    rows = result.get("rows", [])
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_cell(row.get(key, "")) for key in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells if rows else []:
        out.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return out


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> int:
    """Exit code 1 where a part failed; what it failed of stands in the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder for the results")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes on the CPU")
    parser.add_argument(
        "--wheels", type=Path, help="folder with wheels of flashdeberta and disentangled-flash"
    )
    parser.add_argument("--model", type=Path, help="checkpoint folder for the flips, with its tokenizer")
    parser.add_argument("--pairs", type=Path, help="Parquet file with `premise` and `claim` for the flips")
    parser.add_argument("--parts", default=",".join(PARTS), help="which parts, in this order")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds after which no part starts")
    args = parser.parse_args()
    if args.pairs and not args.model:
        parser.error("--pairs needs --model: text without its tokenizer is no pair")
    if not args.smoke and not torch.cuda.is_available():
        parser.error("no CUDA device; use --smoke for a run on the CPU")
    if unknown := set(args.parts.split(",")) - PARTS.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; expected some of {', '.join(PARTS)}")
    args.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cpu" if args.smoke else "cuda")
    suite = Suite(args.out, device, args.smoke, find_claimscore(), args.wheels, args.model, args.pairs)
    report = run_parts(suite, args.parts.split(","), args.limit)
    failed = [name for name, result in report["parts"].items() if "failed" in result and "rows" not in result]
    print(json.dumps({"failed": failed, "out": str(args.out)}))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
