"""The gate: its rates, what it lets through and what it stops, by resampling; and what it refuses to judge."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import report_fixture as fixture

from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.gate import METRICS, judge
from claimscore.jobs.metrics import measure


def drawn(random: np.random.Generator, hardness: np.ndarray, share: float, *, prefix: str = "q") -> pa.Table:
    """An answer of 3 claims to each question; a claim holds with the share, less on hard questions, more on easy ones."""
    supported = random.binomial(3, np.clip(share + hardness, 0, 1))
    rows = [
        fixture.answer(
            str(k),
            bad=bool(n < 3),
            question=f"{prefix}{k}",
            n_claims=3,
            n_scored=3,
            n_supported=int(n),
            n_unsupported=3 - int(n),
        )
        for k, n in enumerate(supported)
    ]
    return fixture.answers(rows)


def hardness(random: np.random.Generator, n: int) -> np.ndarray:
    """What makes some questions hard: most are a little easier than the mean, one in ten is much harder."""
    return np.where(random.random(n) < 0.1, -0.45, 0.05)


def alarms(drop: float, *, paired: bool, n: int = 500, n_times: int = 100) -> int:
    """How often the gate stops a candidate whose claims hold less often by `drop`, from 90%."""
    random = np.random.default_rng(17)
    n_failed = 0
    for _ in range(n_times):
        one = hardness(random, n)
        two = one if paired else hardness(random, n)
        sides = drawn(random, one, 0.9), drawn(random, two, 0.9 - drop, prefix="q" if paired else "other ")
        judged = judge(*sides, ("groundedness",), 0.02)
        assert judged["n_paired"] == (n if paired else 0)
        n_failed += bool(judged["failures"])
    return n_failed


@pytest.mark.parametrize("paired", [True, False])
def test_noise_is_not_a_drop(paired):
    """Two days of one quality: silent in at least 95 of 100."""
    assert alarms(0.0, paired=paired) <= 5


@pytest.mark.parametrize(("paired", "at_least"), [(True, 90), (False, 75)])
def test_a_drop_of_four_points_is_caught(paired, at_least):
    """500 answers, 4 points fewer claims hold: caught 90 times in 100 on the same questions, less often on others."""
    assert alarms(0.04, paired=paired) >= at_least


def test_rates_are_those_of_the_metrics():
    """Every metric of the gate has the value that the metrics table has."""
    random = np.random.default_rng(3)
    rows = [
        fixture.answer(
            str(k),
            bad=[True, False, None][int(random.integers(3))],
            state=["scored", "refusal"][int(random.integers(2))],
            answerable=[True, False, None][int(random.integers(3))],
            n_cited_claims=int(random.integers(3, 5)),
            n_citation_ok=int(random.integers(0, 3)),
        )
        for k in range(60)
    ]
    table = fixture.answers(rows)
    known = {
        row["metric"]: row["value"]
        for row in measure(table, MetricsConfig(n_resamples=100)).to_pylist()
        if row["grouping"] == "all"
    }

    outcomes = judge(table, table, tuple(METRICS), 0.02)["outcomes"]

    assert {o.metric: o.candidate for o in outcomes} == pytest.approx({name: known[name] for name in METRICS})


def test_worse_is_up_for_some_metrics():
    """More hallucinated answers is a drop as fewer supported claims is one; better is below 0."""
    random = np.random.default_rng(5)
    good, bad = (drawn(random, np.zeros(200), share) for share in (0.95, 0.6))

    worse = judge(good, bad, ("groundedness", "hallucination_rate"), 0.02)["outcomes"]
    better = judge(bad, good, ("groundedness", "hallucination_rate"), 0.02)["outcomes"]

    assert all(o.failed and o.drop > 0 for o in worse)
    assert not any(o.failed or o.drop > 0 for o in better)


def test_an_allowed_drop_passes_however_sure():
    """3 points of 20,000 answers are sure, and within the 5 that are allowed."""
    random = np.random.default_rng(9)
    sides = [drawn(random, np.zeros(20_000), share) for share in (0.9, 0.87)]

    (outcome,) = judge(*sides, ("groundedness",), 0.05)["outcomes"]

    assert (outcome.bound > 0, outcome.failed) == (True, False)


def test_pairing_needs_most_questions_on_both_sides():
    """With half of the questions in common the sides are two samples; case and outer blanks of a question do not count."""
    random = np.random.default_rng(1)
    table = drawn(random, np.zeros(100), 0.9)
    half = [
        {**row, "question": f"{row['question']} anew" if k % 2 else row["question"]}
        for k, row in enumerate(table.to_pylist())
    ]
    loud = [{**row, "question": f" {row['question'].upper()} "} for row in table.to_pylist()]

    assert judge(table, fixture.answers(half), ("groundedness",), 0.02)["n_paired"] == 0
    assert judge(table, fixture.answers(loud), ("groundedness",), 0.02)["n_paired"] == 100


def test_what_cannot_be_scored_does_not_pass():
    """A candidate most of whose claims are unscored fails, though the few scored ones hold."""
    good = [fixture.answer(str(k)) for k in range(40)]
    blind = [fixture.answer(f"u{k}", bad=None) for k in range(60)]

    judged = judge(fixture.answers(good), fixture.answers(good + blind), ("groundedness",), 0.02)

    assert judged["failures"] == [
        "60.0% of the claims are unscored, 0.0% in the baseline: the rates cannot be compared"
    ]


def test_few_answers_are_refused():
    """A gate that cannot see does not open."""
    sides = [fixture.answers([fixture.answer(str(k)) for k in range(n)]) for n in (40, 29)]

    with pytest.raises(InputError, match="the candidate has 29 answers, expected at least 30"):
        judge(*sides, ("groundedness",), 0.02)


def test_nothing_to_count_is_refused():
    """No claim with a citation: citation precision is no 0 and no pass."""
    table = fixture.answers([fixture.answer(str(k)) for k in range(40)])

    with pytest.raises(InputError, match="citation_precision has nothing to count in the baseline"):
        judge(table, table, ("citation_precision",), 0.02)


def test_the_same_sides_give_the_same_bounds():
    """The outcome depends on the answers alone."""
    random = np.random.default_rng(2)
    sides = [drawn(random, np.zeros(100), share) for share in (0.9, 0.85)]

    assert judge(*sides, ("groundedness",), 0.02) == judge(*sides, ("groundedness",), 0.02)
