"""How good the verdicts are, and what each claim costs: on labelled claims, on one-fact flips of them, on our probes.

    python benchmarks/bench_quality.py ../shared/data --rows-a-source 44

Plain baselines run on the same judge and the same claims as the job's own path. Thresholds are fitted on one half of the
articles and every figure is of the other half. Without a data folder only the probes of tests/probes/ are measured.
Prints aligned tables, and one line of JSON last; writes the same under benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from _quality_baselines import BASELINES
from _quality_cases import Case, dev_cases, mixup_cases, probe_cases
from _quality_flips import RULES, flips
from _quality_judge import CachedJudge
from _quality_path import judge_cases, read_config, supported
from _quality_probes import measure_mixups, measure_probes
from _quality_stats import Labelled, auroc, catch_rate, parts, summary
from _quality_variants import ablation

from claimscore.jobs.config import Config

ROOT = Path(__file__).resolve().parent.parent
OURS = "ours: windows, covers, rules"
FLIPS_A_KIND = 20
PACKAGES = ("torch", "tokenizers", "numpy", "pyarrow", "polars")


def measure_dev(cases: list[Case], judge: CachedJudge, config: Config, resamples: int) -> dict[str, Any]:
    """Every method on labelled claims: figures, cost, and ours by source, level and kind of edit."""
    labelled = labels_of(cases)
    lengths = max(1, len(cases))
    methods: dict[str, Any] = {}
    for name, method in BASELINES.items():
        scored = method(cases, judge)
        predicted = None if not scored.n_pairs else scored.scores >= config.card.entailment
        methods[name] = summary(labelled, scored.scores, predicted=predicted, n_resamples=resamples)
        methods[name] |= {"pairs": scored.n_pairs / lengths, "tokens": scored.n_tokens / lengths}
    ours = judge_cases(cases, judge, config)
    predicted = supported(ours)
    methods[OURS] = summary(labelled, ours.margins, predicted=predicted, n_resamples=resamples)
    methods[OURS] |= {"pairs": ours.n_pairs / lengths, "tokens": ours.n_tokens / lengths}
    threshold = methods[OURS]["threshold"]
    by = {
        name: parts(labelled, [getattr(case, name) for case in cases], ours.margins, predicted, threshold)
        for name in ("source", "level")
    }
    return {
        "n_cases": len(cases),
        "n_reported": int((~labelled.is_fit).sum()),
        "n_articles": len(set(labelled.articles.tolist())),
        "methods": methods,
        "by_source": by["source"],
        "by_level": by["level"],
        "by_edit": by_edit(cases, ours.margins, predicted),
        "unscored": sum(row["verdict"] == "unscored" for row in ours.verdicts),
    }


def by_edit(cases: list[Case], margins: np.ndarray, predicted: np.ndarray) -> dict[str, dict[str, float]]:
    """For each edit that the data names: what is caught of it, all halves, against its sources' supported claims."""
    out = {}
    sources = {case.source for case in cases if case.kinds}
    true = np.array([case.source in sources and case.supported for case in cases], bool)
    for kind in sorted({kind for case in cases for kind in case.kinds}):
        false = np.array([kind in case.kinds and not case.supported for case in cases], bool)
        rows = true | false
        if true.any() and false.any():
            out[kind] = {
                "n": int(false.sum()),
                "caught_card": float((~predicted[false]).mean()),
                "auroc": auroc(true[rows], margins[rows]),
            }
    return out


def measure_flips(base: list[Case], judge: CachedJudge, config: Config, limit: int | None) -> dict[str, Any]:
    """Flips caught at the card's threshold, false alarms on the same claims unflipped, and caught at 4% of those."""
    twins = list(flips(base, limit))
    names = {twin.id.rsplit("~", 1)[0] for twin in twins}
    originals = [case for case in base if case.id in names]
    if not twins:
        return {}
    flipped, unflipped = judge_cases(twins, judge, config), judge_cases(originals, judge, config)
    is_fine = dict(zip((case.id for case in originals), supported(unflipped).tolist(), strict=True))
    margins = np.concatenate([unflipped.margins, flipped.margins])
    kinds = np.array(["", *[""] * (len(originals) - 1), *(twin.kinds[0] for twin in twins)])
    caught = ~supported(flipped)
    fine = np.array([is_fine[twin.id.rsplit("~", 1)[0]] for twin in twins], bool)
    out: dict[str, Any] = {
        "n_unflipped": len(originals),
        "false_alarms": 1 - float(np.mean(list(is_fine.values()))),
    }
    for kind in ("all", *RULES):
        rows = np.array([kind in {"all", twin.kinds[0]} for twin in twins], bool)
        if rows.any():
            some = (kinds == "") | (kinds == kind) | (kind == "all")
            out[kind] = {
                "n": int(rows.sum()),
                "caught": float(caught[rows].mean()),
                "caught_of_supported": float(caught[rows & fine].mean()) if (rows & fine).any() else None,
                "caught_at_4": catch_rate((kinds == "")[some], margins[some], 0.04),
            }
    return out


def time_methods(cases: list[Case], judge: CachedJudge, config: Config, rounds: int = 3) -> dict[str, float]:
    """Milliseconds a claim of each method on the same few claims, the cache off: medians of interleaved rounds."""
    methods = dict(BASELINES) | {OURS: lambda some, of: judge_cases(some, of, config)}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    judge.reads_cache = False
    for k in range(rounds + 1):  # the first warms up
        for name, method in methods.items():
            began = time.perf_counter()
            method(cases, judge)
            if k:
                seconds[name].append(time.perf_counter() - began)
    judge.reads_cache = True
    return {name: 1000 * float(np.median(found)) / max(1, len(cases)) for name, found in seconds.items()}


def labels_of(cases: Sequence[Case]) -> Labelled:
    """The cases as columns; sources and families by number, which group faster than words."""
    return Labelled(
        labels=np.array([case.supported for case in cases], bool),
        sources=np.unique([case.source for case in cases], return_inverse=True)[1],
        families=np.unique([case.family for case in cases], return_inverse=True)[1],
        articles=np.array([case.article for case in cases]),
        is_fit=np.array([case.is_fit for case in cases], bool),
    )


def show(title: str, rows: dict[str, dict[str, Any]]) -> None:
    """One aligned line a row; the columns are those of the first row that are numbers."""
    if not rows:
        return
    columns = [k for row in rows.values() for k, v in row.items() if isinstance(v, int | float)]
    columns = list(dict.fromkeys(columns))
    print(f"\n{title:<34}" + "".join(f"{name[:12]:>13}" for name in columns))
    for name, row in rows.items():
        cells = (row.get(column) for column in columns)
        print(f"  {name[:31]:<32}" + "".join(f"{_cell(value):>13}" for value in cells))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    return str(value) if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3f}"


def record(result: dict[str, Any], out: Path | None) -> Path:
    """Write the result file and give its path."""
    today = datetime.now(UTC).date()
    path = out or ROOT / "benchmarks" / "results" / f"{today}_cpu{os.cpu_count()}_{result['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, sort_keys=False) + "\n", encoding="utf-8")
    return path


def surroundings(
    command: Sequence[str], *, script: str = "benchmarks/bench_quality.py", name: str = "quality"
) -> dict[str, Any]:
    """What made a result: command (absolute paths by their last name), commit, versions, machine."""
    told = [Path(word).name if Path(word).is_absolute() else word for word in command]
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    return {
        "name": name,
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", script, *told]),
        "commit": done.stdout.strip() or "unknown",
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "processor": platform.machine()},
        "versions": versions,
    }


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the quality of verdicts and their price.")
    parser.add_argument(
        "data", type=Path, nargs="?", help="folder with grounding_dev.parquet; none: probes only"
    )
    parser.add_argument("--rows-a-source", type=int, default=44, help="0: all")
    parser.add_argument("--judge", type=Path, help="a judge card; default: the demo's")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="as `claimscore`"
    )
    parser.add_argument(
        "--dtype", default="float32", help="of the judge; bfloat16 halves the time on new CPUs"
    )
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--timed", type=int, default=20, help="claims to time, cache off; 0: none")
    parser.add_argument(
        "--ablation", action="store_true", help="the table of variants of evidence and score too"
    )
    parser.add_argument("--out", type=Path, help="result file; default: benchmarks/results/")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run everything once and print."""
    args = parse(arguments)
    config = read_config(args.judge, args.set)
    judge = CachedJudge(config.card, dtype=args.dtype)
    probes = probe_cases()
    result = surroundings(arguments) | {
        "judge": {"name": config.card.name, "fingerprint": judge.fingerprint, "dtype": args.dtype},
        "thresholds": {"entailment": config.card.entailment, "contradiction": config.card.contradiction},
        "probes": measure_probes(probes, judge, config),
        "mixups": measure_mixups(mixup_cases(), judge, config),
        "flips_of_probes": measure_flips(probes, judge, config, None),
    }
    cases = dev_cases(args.data, args.rows_a_source or None) if args.data else []
    if cases:
        result["dev"] = measure_dev(cases, judge, config, args.resamples)
        result["flips_of_dev"] = measure_flips(cases, judge, config, FLIPS_A_KIND)
        if args.ablation:
            result["ablation"] = ablation(cases, labels_of(cases), judge, config)
    if args.timed:
        some = (cases or probes)[:: max(1, len(cases or probes) // args.timed)]
        result["ms_a_claim"] = time_methods(some, judge, config)
        result["timed_claims"] = len(some)
    show_all(result)
    path = record(result, args.out)
    print(f"\n{judge.n_new:,} new pairs, {judge.seconds:.0f} s of the judge; written to {path}")
    print(json.dumps(result))
    return 0


def show_all(result: dict[str, Any]) -> None:
    """Every table that the result holds."""
    dev = result.get("dev")
    if dev:
        methods = {name: dict(row) for name, row in dev["methods"].items()}
        for name, ms in result.get("ms_a_claim", {}).items():
            methods[name]["ms"] = ms
        show(f"unseen half: {dev['n_reported']} of {dev['n_cases']}", methods)
        for name in ("by_source", "by_level", "by_edit"):
            show(f"ours {name.replace('_', ' ')}", dev[name])
    show("ablation", result.get("ablation", {}))
    show("probes", result["probes"])
    show("claims about one of two like things", result["mixups"])
    for name in ("flips_of_probes", "flips_of_dev"):
        found = result.get(name)
        if found:
            rows = {k: v for k, v in found.items() if isinstance(v, dict)}
            show(f"{name.replace('_', ' ')} (false alarms {found['false_alarms']:.3f})", rows)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
