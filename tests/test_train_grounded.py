"""Labelled claims as training pairs: which of them may teach, which of their windows do, and how often."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from pathlib import Path

import _train_mix
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from _quality_cases import Case, dev_cases
from _quality_path import Judged
from _train_grounded import balanced, chosen, is_taught
from _train_mix import GROUNDED_A_ROUND, Mix
from _train_rows import ENTAILMENT, NEUTRAL, NOT_ENTAILED, Example


def _case(name: str, *, supported: bool, article: str = "0001", licence: str | None = "MIT") -> Case:
    return Case(
        id=name,
        source="own",
        family="own",
        level="claim",
        chunks=("The shop is open.",),
        claim=f"Claim {name}.",
        supported=supported,
        article=article,
        licence=licence,
    )


def _judged(rows: list[tuple[str, float | None, str, list[str]]]) -> Judged:
    """What the job said, by (case, entailment, premise, missing values)."""
    names, entailment, premises, missing = (list(column) for column in zip(*rows, strict=True))
    return Judged(
        margins=np.zeros(0),
        verdicts=[],
        n_pairs=len(rows),
        n_tokens=0,
        scores=pa.table({"request_id": names, "p_entailment": pa.array(entailment, pa.float32())}),
        missing=missing,
        premises=pa.array(premises, pa.string()),
    )


def test_no_row_that_is_reported_or_sets_a_threshold_is_taught(tmp_path: Path):
    rows = [
        {"id": str(k), "source": "own", "level": "claim", "question": None, "evidence": [f"Text {k}."],
         "claim": "A claim.", "label": "supported", "supported": k % 2, "licence": "MIT", "meta": None}
        for k in range(400)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "grounding_dev.parquet")

    cases = dev_cases(tmp_path, None)

    taught = [case for case in cases if is_taught(case)]
    assert all(case.is_fit for case in taught)
    assert 120 < len(taught) < 180, "three eighths of the articles"
    assert sum(case.is_fit and not case.is_taught for case in cases) > 30


@pytest.mark.parametrize("change", [
    {"licence": "CC-BY-NC-SA"}, {"licence": None}, {"licence": "unstated"}, {"source": "faithbench"},
    {"article": "01ff"}, {"article": "0000"}, {"claim": "long " * 100},
])  # fmt: skip
def test_what_may_not_teach_does_not(change: dict[str, str | None]):
    case = _case("a", supported=True)
    assert is_taught(case)

    assert not is_taught(dataclasses.replace(case, **change))


def test_a_supported_claim_is_taught_by_its_best_premise_that_has_its_values():
    judged = _judged(
        [("a", 0.2, "far", []), ("a", 0.9, "lacks", ["5"]), ("a", 0.7, "best", []), ("a", None, "-", [])]
    )

    rows = list(chosen([_case("a", supported=True)], judged))

    assert [(r.premise, r.label) for r in rows] == [("best", ENTAILMENT)]


def test_another_claim_is_taught_by_the_two_premises_that_mislead_most():
    judged = _judged(
        [("a", 0.2, "far", []), ("a", 0.9, "first", ["5"]), ("a", 0.7, "second", []), ("a", 0.9, "first", [])]
    )

    rows = list(chosen([_case("a", supported=False), _case("b", supported=False)], judged))

    assert [(r.premise, r.label) for r in rows] == [("first", NOT_ENTAILED), ("second", NOT_ENTAILED)]


def test_no_source_teaches_that_claims_are_mostly_wrong():
    rows = [Example(f"p{k}", "c", NOT_ENTAILED, "grounded", "one") for k in range(7)]
    rows += [
        Example("t", "c", ENTAILMENT, "grounded", "one"),
        Example("u", "c", ENTAILMENT, "grounded", "two"),
    ]

    out = balanced(rows, random.Random(0))

    assert Counter((r.source, r.label) for r in out) == {
        ("one", NOT_ENTAILED): 7, ("one", ENTAILMENT): 7, ("two", ENTAILMENT): 1,
    }  # fmt: skip
    assert balanced([], random.Random(0)) == []


def test_a_round_takes_the_grounded_rows_in_turn(monkeypatch: pytest.MonkeyPatch):
    """Every row as often as any other, give or take one; without grounded rows a round has none."""
    monkeypatch.setattr(_train_mix, "GROUNDED_AMID", 0.0)
    rows = [Example(f"Shop {k} is open.", "It is open.", ENTAILMENT, "plain", "own") for k in range(4)]
    grounded = [Example(f"Text {k} says so.", "It says so.", NEUTRAL, "grounded", "g") for k in range(1000)]
    mix = Mix.of(rows, seed=3, invented=False, grounded=grounded)

    drawn = [row for number in range(2) for row in mix.round(rows, number) if row.source == "g"]

    times = Counter(row.premise for row in drawn)
    assert sum(times.values()) == 2 * GROUNDED_A_ROUND
    assert set(times) == {row.premise for row in grounded}
    assert max(times.values()) - min(times.values()) <= 1
    assert not [row for row in Mix.of(rows, seed=3, invented=False).round(rows, 0) if row.source == "g"]
