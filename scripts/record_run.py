"""Record what a finished run measured, as one JSON under benchmarks/results/.

    python scripts/record_run.py demo --config configs/demo.toml --gold demo-run/gold.parquet
    python scripts/record_run.py rag-logs-200 --config my.toml

Times, rates and shares come from the run's own record and tables; with a gold file also recall and precision, at the
threshold in force and at others (verdicts are made anew from the stored scores: no model is loaded). README figures are
generated from these files (scripts/readme_figures.py) and from nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs import pipeline
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_config
from claimscore.jobs.nightly import plan_day
from claimscore.jobs.plan import Weights
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import SAMPLES, SCORES
from claimscore.jobs.store import Store

ROOT = Path(__file__).resolve().parent.parent
THRESHOLDS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def check_demo() -> Any:
    """The scorer beside this script."""
    spec = importlib.util.spec_from_file_location("check_demo", Path(__file__).with_name("check_demo.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_demo"] = module
    spec.loader.exec_module(module)
    return module


def record(name: str, config: Config, gold: Path | None) -> dict[str, Any]:
    """Everything that the last run of `config` measured."""
    store = Store(config.store.out, config.store)
    run = json.loads(store.root.get("state/run.json") or b"{}")
    days = [
        {
            key: day[key]
            for key in ("date", "wall_s", "n_rows", "n_claims", "counts", "seconds", "made", "n_made_of")
        }
        for day in run["days"]
    ]
    out = {
        "name": name,
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"claimscore run {Path(config.path).name}",
        "commit": _git("rev-parse", "--short", "HEAD"),
        "machine": {"cpus": os.cpu_count(), "processor": _processor(), "system": platform.system()},
        "versions": run["versions"],
        "thresholds": dataclasses.asdict(pipeline.Thresholds.of(config)),
        "wall_s": run["wall_s"],
        "days": days,
    }
    if gold is not None:
        out["gold"] = against_gold(config, store, [day["date"] for day in days], gold)
    return out


def against_gold(config: Config, store: Store, dates: list[str], gold: Path) -> dict[str, Any]:
    """Recall and precision of the run's verdicts, and what other thresholds would have given."""
    scorer = check_demo()
    facts, gold_answers = pq.read_table(gold), pq.read_table(gold.with_name("gold_answers.parquet"))
    weights = Weights.of(config)
    tables: dict[str, list[pa.Table]] = {
        name: [] for name in ("log", "claims", "scores", "verdicts", "answers")
    }
    for date in dates:
        plan = plan_day(config, store, weights, date)
        for task in plan.tasks:
            tables["log"].append(read_shard(plan.fs, task.shard, config.read, task.repeats)[0])
            for name in ("claims", "scores", "verdicts", "answers"):
                tables[name].append(store.read(task.file(name)))
    whole = {name: pa.concat_tables(parts) for name, parts in tables.items()}
    parts = scorer.score_parts(whole["verdicts"], facts, gold_answers)
    lists = {"missed", "false_alarms"}
    return {
        "parts": {name: {k: v for k, v in part.items() if k not in lists} for name, part in parts.items()},
        "answers": scorer.score_states(whole["answers"], gold_answers),
        "sweep": [_at(config, whole, facts, scorer, threshold) for threshold in THRESHOLDS],
    }


def _at(
    config: Config, whole: dict[str, pa.Table], facts: pa.Table, scorer: Any, threshold: float
) -> dict[str, Any]:
    changed = dataclasses.replace(config, verdicts=dataclasses.replace(config.verdicts, entailment=threshold))
    verdicts = pipeline.make_verdicts(
        whole["log"],
        claims=whole["claims"],
        scores=whole["scores"],
        sample_scores=SCORES.empty_table(),
        samples=SAMPLES.empty_table(),
        config=changed,
    )
    scores = scorer.score_against_gold(verdicts, facts)
    return {"threshold": threshold, "recall": scores["recall"], "precision": scores["precision"]}


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Record what the last run of a config measured.")
    parser.add_argument("name", help="what was run: demo, rag-logs-200")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--gold", type=Path, help="the demo's gold file")
    arguments = parser.parse_args()
    result = record(arguments.name, load_config(arguments.config), arguments.gold)
    path = (
        ROOT
        / "benchmarks"
        / "results"
        / f"{datetime.now(UTC):%Y-%m-%d}_cpu{os.cpu_count()}_{arguments.name}.json"
    )
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
