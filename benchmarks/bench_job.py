"""The job without models: what the pipeline itself costs an answer, stage by stage.

Runs a whole day in one process on stub models (a judge that counts shared words, an LLM that gives the sentence back)
over a log of your own, or over one that is drawn (`--answers`: 5 chunks of 100 words, 5 claims). The stubs' own CPU time
is measured and left out. The floor is zero: every millisecond is overhead that no faster model takes away. `--growth`
runs day after day and says how the memory grew. Prints an aligned table, and one JSON document as the last line.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# As `cluster.start_ray` does for its workers; read when polars is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))
import _harness as harness
import synthetic_log

from claimscore.jobs import shard_run
from claimscore.jobs.actors import collect_rarely
from claimscore.jobs.config_file import load_config
from claimscore.jobs.nightly import DayReport, execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

ROOT = harness.ROOT


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


class Timed:
    """A stub whose calls are added up: CPU seconds that are not the job's."""

    def __init__(self, stub: Any) -> None:
        self._stub, self.cpu_s = stub, 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stub, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return found(*arguments, **options)
            finally:
                self.cpu_s += time.process_time() - began

        return call


class Stubs:
    """The three models of a run, each timed by itself."""

    def __init__(self) -> None:
        made = load(ROOT / "tests" / "stub_models.py")
        self.judge, self.checker, self.llm = (
            Timed(made.StubJudge()),
            Timed(made.StubJudge()),
            Timed(made.StubLlm()),
        )

    def models(self) -> Models:
        """As the job takes them."""
        return Models(decomposer=self.llm, checker=self.checker, judge=self.judge)

    def by_stage(self) -> dict[str, float]:
        """CPU seconds of the stubs by the stage that calls them."""
        return {"claims": self.llm.cpu_s + self.checker.cpu_s, "scores": self.judge.cpu_s}


@contextmanager
def stages_timed_by(clock: Callable[[], Any]) -> Iterator[None]:
    """Have the shards' stages timed by `clock`: CPU seconds of this process leave out what else runs here."""
    before = shard_run.time
    shard_run.time = types.SimpleNamespace(perf_counter=clock)  # type: ignore[assignment]
    try:
        yield
    finally:
        shard_run.time = before


def day(config: Any, store: Store, stubs: Stubs, date: str) -> DayReport:
    """One day, planned and run here."""
    plan = plan_day(config, store, Weights.of(config), date)
    return run_day(config, store, plan, execute_here(config, store, stubs.models()))


def run(log: Path, shard_rows: int) -> dict[str, Any]:
    """One day over `log`: CPU by stage, counts, and the time of a second run that finds all fresh."""
    stubs = Stubs()
    with tempfile.TemporaryDirectory() as folder, stages_timed_by(time.process_time):
        config = load_config(write_config(Path(folder), log, shard_rows))
        store = Store(config.store.out, config.store)
        began, cpu = time.perf_counter(), time.process_time()
        report = day(config, store, stubs, "2026-01-01")
        wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
        began = time.perf_counter()
        day(config, store, stubs, "2026-01-01")
        fresh_s = time.perf_counter() - began
    n = max(1, report.n_rows)
    of_stubs = stubs.by_stage()
    own = {table: seconds - of_stubs.get(table, 0.0) for table, seconds in report.seconds.items()}
    own["rest: plan, read, metrics"] = cpu_s - sum(report.seconds.values())
    per_answer = {stage: 1000 * seconds / n for stage, seconds in own.items()}
    return {
        "wall_s": wall_s,
        "fresh_s": fresh_s,
        "n_rows": report.n_rows,
        "n_claims": report.n_claims,
        "n_pairs": stubs.judge.n_pairs,
        "answers_per_s": report.n_rows / wall_s,
        "cpu_ms_an_answer": {
            "stages": per_answer,
            "total": sum(per_answer.values()),
            "stubs": 1000 * sum(of_stubs.values()) / n,
        },
        "counts": report.counts,
        "failures": report.failures,
        "peak_mib": harness.memory_mib(),
    }


def growth(n_answers: int, days: int, limit_s: float) -> dict[str, Any]:
    """Memory after each of `days` different days of `n_answers`; ends early at `limit_s` and says so."""
    stubs, sizes = Stubs(), []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        path = write_config(Path(folder), log, 500)
        for number in range(days):
            synthetic_log.write(log, n_answers, seed=number)
            config = load_config(path)
            day(
                config,
                Store(config.store.out, config.store),
                stubs,
                f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}",
            )
            gc.collect()
            sizes.append(round(harness.memory_mib("VmRSS"), 1))
            if time.perf_counter() - began > limit_s:
                break
    # The first day loads libraries and fills caches of fixed size: growth is what comes after it.
    return {
        "n_answers": n_answers * len(sizes),
        "rss_mib_after_each_day": sizes,
        "growth_mib": round(sizes[-1] - sizes[0], 1),
        "over_answers": n_answers * (len(sizes) - 1),
    }


def main() -> None:
    """Run once and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, nargs="?", help="a Parquet log in our own column names")
    parser.add_argument("--answers", type=int, default=1_000, help="without a log: answers to draw")
    parser.add_argument("--shard-rows", type=int, default=500)
    parser.add_argument(
        "--growth", type=int, default=0, metavar="DAYS", help="days of --answers each; then no stages"
    )
    parser.add_argument("--limit-s", type=float, default=300, help="of --growth")
    parser.add_argument("--record", metavar="NAME", help="write the result under benchmarks/results/")
    options = parser.parse_args()
    card = harness.card(options.record or "job")
    collect_rarely()  # as a worker of the job does
    if options.growth:
        result = growth(options.answers, options.growth, options.limit_s)
        print(harness.table([["day", "RSS MiB"], *enumerate(result["rss_mib_after_each_day"], 1)]))
        print(f"{result['growth_mib']} MiB over {result['over_answers']:,} answers after the first day")
        harness.finish(card | {"growth": result}, record=bool(options.record))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = options.log or Path(folder) / "drawn.parquet"
        if not options.log:
            synthetic_log.write(log, options.answers)
        result = run(log, options.shard_rows)
    cost = result["cpu_ms_an_answer"]
    rows = [*cost["stages"].items(), ("all", cost["total"]), ("stubs, left out", cost["stubs"])]
    print(harness.table([["stage", "CPU ms/answer"], *rows]))
    print(f"{result['n_rows']:,} answers, {result['n_claims']:,} claims, {result['n_pairs']:,} pairs; "
          f"{result['answers_per_s']:.0f} answers/s; all fresh {result['fresh_s']:.2f} s; peak {result['peak_mib']:.0f} MiB")  # fmt: skip
    harness.finish(card | {"log": log.name} | result, record=bool(options.record))


if __name__ == "__main__":
    main()
