"""Invented cases through the job's own path: probes by phenomenon, and claims about one of two like things.

What is right of each stands in tests/probes/. Knows no labelled row and no method beside the job's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _quality_cases import Case
from _quality_judge import CachedJudge
from _quality_path import judge_cases, supported

from claimscore.jobs.config import Config


def measure_probes(cases: list[Case], judge: CachedJudge, config: Config) -> dict[str, Any]:
    """By phenomenon: probes with the right verdict, and those on the right side of `supported`."""
    judged = judge_cases(cases, judge, config)
    out: dict[str, Any] = {}
    for phenomenon in ("all", *dict.fromkeys(case.kinds[0] for case in cases)):
        rows = [
            (case, row)
            for case, row in zip(cases, judged.verdicts, strict=True)
            if phenomenon in {"all", case.kinds[0]}
        ]
        out[phenomenon] = {
            "n": len(rows),
            "right": float(np.mean([row["verdict"] in case.right for case, row in rows])),
            "right_side": float(
                np.mean([(row["verdict"] == "supported") == case.supported for case, row in rows])
            ),
        }
    return out


def measure_mixups(cases: list[Case], judge: CachedJudge, config: Config) -> dict[str, Any]:
    """By kind: claims of mixups.jsonl that are supported, of the true ones and of the others."""
    found = supported(judge_cases(cases, judge, config))
    out: dict[str, Any] = {}
    for kind in dict.fromkeys(case.kinds[0] for case in cases):
        for is_true, name in ((True, "true"), (False, "false")):
            rows = np.array([case.kinds[0] == kind and case.supported == is_true for case in cases], bool)
            out.setdefault(kind, {}).update(
                {f"n_{name}": int(rows.sum()), f"{name}_supported": int(found[rows].sum())}
            )
    return out
