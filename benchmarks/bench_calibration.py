"""What `claimscore calibrate` says of a judge on labelled claims of public sources: thresholds by goal, figures by source.

    python benchmarks/bench_calibration.py ../shared/data --rows-a-source 12 --dtype bfloat16 --record

Rows are chosen by the hash of their ids, of each source as many, in turn one of each label, so the share of supported
claims is nobody's traffic: precision and cost are of this mix. Every pair that was judged is remembered under build/. Prints
the calibration, a table by goal, and one line of JSON last.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _harness
import numpy as np
import pyarrow as pa
from _quality_cases import Case, dev_cases
from _quality_judge import CachedJudge
from _quality_path import read_config

from claimscore.jobs import calibration, calibration_scores, calibration_text
from claimscore.jobs.calibrate import Goal
from claimscore.jobs.calibration_files import LABELLED
from claimscore.jobs.config import Config

GOALS = (
    Goal("balanced"),
    Goal("recall", 0.8),
    Goal("recall", 0.9),
    Goal("precision", 0.7),
    Goal("precision", 0.8),
    Goal("cost", 3.0),
)


def labelled_rows(cases: Sequence[Case]) -> pa.Table:
    """Cases as calibration_files.LABELLED."""
    rows = [
        {
            "question": case.question,
            "chunks": [{"id": str(k + 1), "text": text, "score": None} for k, text in enumerate(case.chunks)],
            "claim": case.claim,
            "cited_ids": [],
            "supported": case.supported,
            "source": case.source,
            "group": case.article,
            "weight": 1.0,
        }
        for case in cases
    ]
    return pa.Table.from_pylist(rows, schema=LABELLED)


def measure(rows: pa.Table, judge: CachedJudge, config: Config) -> dict[str, Any]:
    """The whole calibration for balanced accuracy, and for each other goal its threshold and rates."""
    began = time.perf_counter()

    def tick(n: int) -> None:
        done[0] += n
        if sys.stderr.isatty():
            print(f"\r{done[0]} of {rows.num_rows} claims", end="", file=sys.stderr)

    done = [0]
    scored = calibration_scores.score(rows, judge, config, tick)
    seconds = time.perf_counter() - began
    documents = [calibration.calibrate_claims(scored, config, goal) for goal in GOALS]
    by_goal = [
        {"goal": d["goal"], "entailment": d["entailment"], "figures": d["figures"]["fitted"]}
        for d in documents
    ]
    whole = documents[0]
    of_sources = [part["balanced_accuracy"]["value"] for part in whole["by_source"].values()]
    known = [value for value in of_sources if value is not None]
    return whole | {
        "by_goal": by_goal,
        "macro_balanced_accuracy": float(np.mean(known)) if known else None,
        "n_sources": len(of_sources),
        "seconds": round(seconds, 1),
        "n_new_pairs": judge.n_new,
    }


def show(document: dict[str, Any]) -> None:
    """The calibration as the command prints it, and the goals beside each other."""
    calibration_text.print_calibration(document)
    rows: list[Sequence[object]] = [("goal", "entailment", "precision", "recall", "balanced acc.")]
    for found in document["by_goal"]:
        goal, figures = found["goal"], found["figures"]
        name = goal["kind"] + (f" {goal['value']:g}" if goal["value"] else "")
        reached = "" if found["entailment"]["reached"] else " (not reached)"
        values = [figures[k]["value"] for k in ("precision", "recall", "balanced_accuracy")]
        rows.append(
            (name + reached, found["entailment"]["threshold"], *(v if v is not None else "-" for v in values))
        )
    print(_harness.table(rows))


def main(arguments: Sequence[str]) -> int:
    """Run once and print."""
    parser = argparse.ArgumentParser(description="Calibrate a judge on labelled claims, by source.")
    parser.add_argument("data", type=Path, help="folder with grounding_dev.parquet")
    parser.add_argument("--rows-a-source", type=int, default=12, help="0: all")
    parser.add_argument("--judge", type=Path, help="a judge card; default: the demo's")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="as `claimscore`"
    )
    parser.add_argument(
        "--dtype", default="float32", help="of the judge; bfloat16 halves the time on new CPUs"
    )
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    args = parser.parse_args(arguments)
    config = read_config(args.judge, args.set)
    judge = CachedJudge(config.card, dtype=args.dtype)
    rows = labelled_rows(dev_cases(args.data, args.rows_a_source or None))
    document = measure(rows, judge, config)
    show(document)
    card = _harness.card("calibration")
    named = {"fingerprint": judge.fingerprint, "dtype": args.dtype, "rows_a_source": args.rows_a_source}
    _harness.finish(card | {"judged": named} | document, record=args.record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
