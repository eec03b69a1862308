"""Labelled claims with their evidence as training pairs: the windows that carry them, or come nearest to it.

A label is the claim's, a pair is one window, so which window teaches is chosen by the judge that is to be improved:
of a supported claim the premise it finds best, of another the two that mislead it most (multiple-instance learning:
Dietterich et al. 1997). Windows, joins and marks of missing values are the job's own, so premises look as they will.
Only rows whose licence allows it, of the half of the articles on which no figure is reported, and of that half
three quarters: thresholds are fitted on the rest. Shares its cases with benchmarks/bench_quality.py.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
from _quality_cases import Case, dev_cases
from _quality_judge import CachedJudge
from _quality_path import Judged, judge_cases, read_config
from _train_rows import ENTAILMENT, NOT_ENTAILED, Example, is_allowed

MOST_CLAIM_CHARS = 360
"""Longer claims are answers of many facts, which the job splits before it judges."""
MISLEADING = 2
"""Pairs of a claim that is not supported."""


def grounded_rows(folder: Path, dtype: str = "bfloat16") -> list[Example]:
    """Examples of kind `grounded` from grounding_dev.parquet, judged by the demo judge as it is built now.

    Raises:
        OSError: no such file in `folder`.
    """
    cases = [case for case in dev_cases(folder, None) if is_taught(case)]
    config = read_config()
    judged = judge_cases(cases, CachedJudge(config.card, dtype=dtype), config)
    return list(chosen(cases, judged))


def is_taught(case: Case) -> bool:
    """Whether a judge may learn from this case; `Case.is_taught` and a licence and a length that allow it."""
    return (
        case.is_taught
        and is_allowed(case.family, case.licence)
        and is_allowed(case.source, case.licence)
        and len(case.claim) <= MOST_CLAIM_CHARS
    )


def chosen(cases: Sequence[Case], judged: Judged) -> Iterator[Example]:
    """The pairs of each case that teach its label; a supported case whose every premise lacks a value gives none."""
    of_case: dict[str, list[int]] = {}
    entailment = judged.scores.column("p_entailment").to_numpy(zero_copy_only=False)
    for row, name in enumerate(judged.scores.column("request_id").to_pylist()):
        if not np.isnan(entailment[row]):
            of_case.setdefault(name, []).append(row)
    premises = judged.premises.to_pylist()
    for case in cases:
        rows = sorted(of_case.get(case.id, []), key=lambda row: -entailment[row])
        if case.supported:
            rows = [row for row in rows if not judged.missing[row]][:1]
        label = ENTAILMENT if case.supported else NOT_ENTAILED
        for premise in list(dict.fromkeys(premises[row] for row in rows))[:MISLEADING]:
            yield Example(premise, case.claim, label, "grounded", case.source)


def balanced(rows: Sequence[Example], rng: random.Random) -> list[Example]:
    """All rows, those of the rarer label of each source as often as those of the other: no source teaches a prior."""
    of: dict[str, dict[bool, list[Example]]] = {}
    for row in rows:
        of.setdefault(row.source, {}).setdefault(row.label == ENTAILMENT, []).append(row)
    out: list[Example] = []
    for labels in of.values():
        n = max(map(len, labels.values()))
        for found in labels.values():
            out += found * (n // len(found)) + rng.sample(found, n % len(found))
    rng.shuffle(out)
    return out
