"""The job without models: what the pipeline itself costs an answer, stage by stage.

Runs a whole day in one process on stub models (a judge that counts shared words, an LLM that gives the sentence back)
over a log of your own. The floor is zero: every millisecond here is overhead that no faster model takes away.
Prints an aligned table, and one JSON document as the last line.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def load(path: Path) -> Any:
    """A module by its file: tests and benchmarks are never installed."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def write_config(folder: Path, log: Path, shard_rows: int) -> Path:
    """A deployment over `log` whose models are folders of nothing: stubs take their place."""
    for name in ("judge", "llm"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text("{}")
        (folder / name / "model.safetensors").write_bytes(b"")
    (folder / "card.toml").write_text('name = "stub"\nmodel = "./judge"\nentailment = 0.8\n')
    path = folder / "bench.toml"
    path.write_text(
        f'[read]\nlogs = "{log.resolve()}"\nshard_rows = {shard_rows}\n[decompose]\nmodel = "./llm"\nchecker = "card.toml"\n'
        '[judge]\ncard = "card.toml"\n[store]\nout = "out"\n'
    )
    return path


def run(log: Path, shard_rows: int) -> dict[str, Any]:
    """One day over `log`; seconds by table, counts, and the time of a second run that finds all fresh."""
    from claimscore.jobs.config import load_config
    from claimscore.jobs.nightly import execute_here, plan_day, run_day
    from claimscore.jobs.pipeline import Models
    from claimscore.jobs.plan import Weights
    from claimscore.jobs.store import Store

    stubs = load(ROOT / "tests" / "stub_models.py")
    judge = stubs.StubJudge()
    models = Models(decomposer=stubs.StubLlm(), checker=judge, judge=judge)
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(write_config(Path(folder), log, shard_rows))
        store = Store(config.store.out, config.store)
        walls, reports = [], []
        for _ in range(2):
            began = time.perf_counter()
            plan = plan_day(config, store, Weights.of(config), "2026-01-01")
            report = run_day(config, store, plan, execute_here(config, store, models))
            walls.append(time.perf_counter() - began)
            reports.append(report)
    first = reports[0]
    return {
        "wall_s": walls[0],
        "fresh_s": walls[1],
        "n_rows": first.n_rows,
        "n_claims": first.n_claims,
        "n_pairs": judge.n_pairs,
        "counts": first.counts,
        "seconds": first.seconds,
        "failures": first.failures,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Run once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="a Parquet log in our own column names")
    parser.add_argument("--shard-rows", type=int, default=500)
    arguments = parser.parse_args()
    result = run(arguments.log, arguments.shard_rows)
    n_rows = max(1, result["n_rows"])
    print(f"{'stage':<16}{'s':>10}{'ms/answer':>12}")
    for table, seconds in result["seconds"].items():
        print(f"{table:<16}{seconds:>10.2f}{1000 * seconds / n_rows:>12.2f}")
    print(f"{'whole day':<16}{result['wall_s']:>10.2f}{1000 * result['wall_s'] / n_rows:>12.2f}")
    print(f"{'all fresh':<16}{result['fresh_s']:>10.2f}")
    print(
        f"answers {result['n_rows']:,}  claims {result['n_claims']:,}  pairs {result['n_pairs']:,}  peak {result['peak_mib']:.0f} MiB"
    )
    print(
        json.dumps(
            result
            | {"log": arguments.log.name, "machine": platform.machine(), "python": platform.python_version()}
        )
    )


if __name__ == "__main__":
    main()
