"""The rates of any day: the same in any order of rows, and with intervals that hold what they say."""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics_fixture import CONFIG, PLAIN, answers_table, metric, scored

from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.metrics import METRIC_NAMES, NEEDED_COLUMNS, _interval, measure
from claimscore.jobs.records import ANSWERS

counts = st.integers(0, 4)
words = st.sampled_from(["v1", "v2", None])


@st.composite
def answer_rows(draw):
    """Rows of any mix of states, counts, groups, gold values and labels that add up."""
    n_supported, n_contradicted, n_unsupported, n_unscored = (draw(counts) for _ in range(4))
    n_scored = n_supported + n_contradicted + n_unsupported
    n_cited = draw(st.integers(0, n_scored))
    return {
        "prompt_version": draw(words),
        "topic": draw(words),
        "state": draw(st.sampled_from(["scored", "refusal", "empty_answer", "no_context", "no_claims"])),
        "groundedness": n_supported / n_scored if n_scored else None,
        "hallucinated": n_supported < n_scored if n_scored else None,
        "action": draw(st.sampled_from(["deliver", "revise", "refuse"])),
        "n_claims": n_scored + n_unscored,
        "n_scored": n_scored,
        "n_supported": n_supported,
        "n_contradicted": n_contradicted,
        "n_unscored": n_unscored,
        "n_cited_claims": n_cited,
        "n_citation_ok": draw(st.integers(0, n_cited)),
        "n_fabricated_citations": draw(counts),
        "n_conflicts": draw(st.integers(0, n_scored)),
        "n_low_consistency": draw(st.integers(0, n_scored)),
        "n_samples": draw(st.sampled_from([0, 3])),
        "answerable": draw(st.sampled_from([True, False, None])),
        "recall_at_k": draw(st.sampled_from([0.0, 0.5, 1.0, None])),
        "reference_overlap": draw(st.sampled_from([0.0, 0.3, 1.0, None])),
        "human_label": draw(st.sampled_from(["ok", "hallucinated", "?", None])),
    }


@settings(max_examples=30, deadline=None)
@given(st.lists(answer_rows(), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows, random):
    """The same answers in another order give the same table, intervals and all."""
    table = answers_table(rows)
    order = list(range(len(rows)))
    random.shuffle(order)

    assert measure(table, CONFIG).equals(measure(table.take(pa.array(order, pa.int64())), CONFIG))


@settings(max_examples=30, deadline=None)
@given(st.lists(answer_rows(), max_size=12))
def test_a_value_is_its_fraction_and_lies_in_its_interval(rows):
    """Numerator / denominator = value, lowest <= low <= value <= high <= 1; all three null together."""
    for row in measure(answers_table(rows), CONFIG).to_pylist():
        if row["denominator"] == 0:
            assert (row["value"], row["low"], row["high"]) == (None, None, None)
        else:
            lowest = -1 if row["metric"] == "human_kappa" else 0
            assert row["value"] == row["numerator"] / row["denominator"]
            assert lowest - 1e-9 <= row["low"] <= row["value"] <= row["high"] <= 1 + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.lists(answer_rows(), max_size=12))
def test_groups_add_up_to_all(rows):
    """Summed over the groups of any grouping, a rate's numerators and denominators are those of `all`."""
    table = measure(answers_table(rows), CONFIG).to_pylist()
    names = [
        name for name in METRIC_NAMES if name not in ("human_balanced_accuracy", "human_f1", "human_kappa")
    ]

    for grouping in {row["grouping"] for row in table}:
        for side in ("numerator", "denominator"):
            sums = [
                sum(row[side] for row in table if row["grouping"] == grouping and row["metric"] == name)
                for name in names
            ]
            whole = [row[side] for row in table if row["grouping"] == "all" and row["metric"] in names]
            assert sums == pytest.approx(whole)


def test_another_group_does_not_move_an_interval():
    """The interval of a topic stays when answers of another topic join the day."""
    rows = [scored(3, i % 4 or 1, topic="cards") for i in range(20)]
    alone = metric(measure(answers_table(rows), CONFIG), "groundedness", "topic", topic="cards")

    joined = measure(answers_table([*rows, scored(2, 1, topic="fees")]), CONFIG)

    assert alone == metric(joined, "groundedness", "topic", topic="cards")


def test_the_seed_decides_the_interval():
    """The same seed gives the same bounds, another seed others."""
    table = answers_table([scored(3, i % 4 or 1) for i in range(40)])

    first, again, other = (
        metric(measure(table, MetricsConfig(n_resamples=200, seed=seed)), "groundedness")
        for seed in (1, 1, 2)
    )
    assert first == again
    assert (first["low"], first["high"]) != (other["low"], other["high"])


def test_claims_of_one_answer_are_resampled_together():
    """Ten answers of 50 equal claims each have the wide interval of ten, not the narrow one of 500."""
    rows = [scored(50, 50 if i % 2 else 0) for i in range(10)]

    row = metric(measure(answers_table(rows), CONFIG), "groundedness")

    # Half of ten: binomial sd 0.158, so about +-0.31; 500 independent claims would give +-0.044.
    assert row["high"] - row["low"] > 0.4


@pytest.mark.parametrize(("n", "high"), [(1, 0.975), (20, 0.168), (300, 0.0122)])
def test_a_rate_of_zero_is_not_certain(n, high):
    """No hallucination among n answers still allows 1 - 0.025 ** (1 / n) (Clopper and Pearson 1934)."""
    row = metric(measure(answers_table([scored(2, 2)] * n), CONFIG), "hallucination_rate")

    assert (0.0, 0.0, pytest.approx(high, rel=0.01)) == (row["value"], row["low"], row["high"])


def test_a_rate_of_one_is_not_certain():
    """All of twenty answers grounded leaves 2.5% of the chance to a share down to 0.832."""
    row = metric(measure(answers_table([scored(2, 2)] * 20), CONFIG), "groundedness")

    assert (1.0, pytest.approx(0.832, abs=1e-3), 1.0) == (row["value"], row["low"], row["high"])


def test_a_single_answer_has_a_wide_interval():
    """One answer, half grounded, says next to nothing of the others."""
    row = metric(measure(answers_table([scored(2, 1)]), CONFIG), "groundedness")

    assert (0.5, pytest.approx(0.0125), pytest.approx(0.9875)) == (row["value"], row["low"], row["high"])


def test_intervals_cover_the_true_rate_as_often_as_they_say():
    """Of 300 simulated days of 60 answers with claims that go together, 95% of the intervals hold the truth."""
    random = np.random.default_rng(7)
    rows = []
    for day in range(300):
        for _ in range(60):
            n = int(random.integers(1, 7))
            # True rate 0.8 whatever n: half of the answers are wholly grounded, half at 0.6.
            n_supported = int(random.binomial(n, 1.0 if random.random() < 0.5 else 0.6))
            rows.append(scored(n, n_supported, prompt_version=f"day {day:03}"))

    table = measure(answers_table(rows), CONFIG).to_pylist()

    days = [r for r in table if r["grouping"] == "prompt_version" and r["metric"] == "groundedness"]
    covered = np.mean([row["low"] <= 0.8 <= row["high"] for row in days])
    assert 0.91 <= covered <= 0.98  # 300 days: standard error 0.013


def test_a_hundred_thousand_answers_take_seconds():
    """The bootstrap is a matrix product, not a loop: 1,000 resamples of 100,000 answers in well under a minute."""
    n = 100_000
    zeros = pa.array(np.zeros(n, np.int32))
    columns = {name: zeros for name in NEEDED_COLUMNS if name.startswith("n_")}
    columns |= {name: pa.array([PLAIN[name]] * n, ANSWERS.field(name).type) for name in PLAIN}
    columns["request_id"] = pa.array([f"{i:06}" for i in range(n)])
    table = pa.table({name: columns[name] for name in NEEDED_COLUMNS})

    began = time.process_time()
    measure(table, MetricsConfig())

    assert time.process_time() - began < 60  # 1 s on two idle cores; an answer-by-resample loop takes minutes


def test_groups_are_resampled_apart():
    """Forty topics of five answers give `all` the interval of 200 answers, though each topic's first two fail."""
    rows = [scored(1, int(i % 5 >= 2), topic=f"topic {i // 5}") for i in range(200)]

    row = metric(measure(answers_table(rows), CONFIG), "groundedness")

    # sd of 200 answers at 0.6: 0.035, so about +-0.07; with the same weights in every topic it would be +-0.43.
    assert row["high"] - row["low"] < 0.2


def test_a_group_of_many_blocks_is_counted_whole():
    """Of 5,000 answers each is counted, in the value and in what a rate of zero leaves open."""
    row = metric(measure(answers_table([scored(2, 2)] * 5_000), CONFIG), "hallucination_rate")

    assert (row["denominator"], row["high"]) == (5_000, pytest.approx(1 - 0.025 ** (1 / 5_000)))


def test_perfect_agreement_with_two_people_is_not_certain():
    """Kappa of one answer of each class reaches down towards -1, where it is bounded."""
    rows = [
        {"hallucinated": True, "human_label": "hallucinated"},
        {"hallucinated": False, "human_label": "ok"},
    ]

    row = metric(measure(answers_table(rows), CONFIG), "human_kappa")

    assert (row["value"], row["low"], row["high"]) == (1.0, pytest.approx(0.025 - 0.975), 1.0)


def test_bounds_are_quantiles_of_the_resamples_that_have_a_value():
    """Bounds are the 2.5% and 97.5% quantiles that numpy gives, resamples without a value left out."""
    random = np.random.default_rng(3)
    ratios = random.random((301, len(METRIC_NAMES)))
    ratios[1:][random.random((300, len(METRIC_NAMES))) < 0.3] = np.nan
    ratios[0] = 0.5

    bounds = _interval(ratios, np.full(len(METRIC_NAMES), 9))

    assert np.allclose(bounds, np.nanquantile(ratios[1:], [0.025, 0.975], axis=0))


def test_an_interval_is_widened_to_hold_its_value():
    """Where nearly all resamples lie on one side of the value, the bound on the other is the value itself."""
    ratios = np.linspace(0.2, 0.4, 101)[:, None] * np.ones(len(METRIC_NAMES))
    ratios[0] = 0.6

    _, high = _interval(ratios, np.full(len(METRIC_NAMES), 9))

    assert (high == 0.6).all()
