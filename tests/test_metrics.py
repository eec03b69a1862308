"""The rates of a day: by hand, under any order of rows, with intervals that hold what they say."""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.metrics import HUMAN_LABELS, METRIC_NAMES, NEEDED_COLUMNS, measure
from claimscore.jobs.records import ANSWERS, METRICS

CONFIG = MetricsConfig(n_resamples=200)
PLAIN = {
    "prompt_version": "v1",
    "model": "m",
    "topic": "cards",
    "state": "scored",
    "groundedness": None,
    "hallucinated": None,
    "action": "deliver",
    "injection_suspected": False,
    "answerable": None,
    "recall_at_k": None,
    "reference_overlap": None,
    "human_label": None,
}


def answers_table(rows):
    """An ANSWERS table, needed columns only, of dicts of what is not plain; counts are 0 unless given."""
    full = [
        {name: 0 for name in NEEDED_COLUMNS if name.startswith("n_")}
        | PLAIN
        | {"request_id": f"r{i:05}"}
        | row
        for i, row in enumerate(rows)
    ]
    schema = pa.schema([ANSWERS.field(name) for name in NEEDED_COLUMNS])
    return pa.Table.from_pylist(full, schema=schema)


def scored(n_scored, n_supported, **more):
    """An answer of n_scored claims of which n_supported are supported."""
    return {
        "n_claims": n_scored,
        "n_scored": n_scored,
        "n_supported": n_supported,
        "n_unsupported": n_scored - n_supported,
        "groundedness": n_supported / n_scored,
        "hallucinated": n_supported < n_scored,
    } | more


def metric(table, name, grouping="all", **key):
    """The one row of a metric."""
    rows = [
        row
        for row in table.to_pylist()
        if row["metric"] == name and row["grouping"] == grouping and all(row[k] == v for k, v in key.items())
    ]
    assert len(rows) == 1
    return rows[0]


def fraction(table, name, **key):
    """(numerator, denominator, per) of a metric."""
    row = metric(table, name, **key)
    return row["numerator"], row["denominator"], row["per"]


DAY = [
    scored(4, 3, n_contradicted=1, n_cited_claims=3, n_citation_ok=2, recall_at_k=1.0, answerable=True),
    scored(1, 1, n_cited_claims=1, n_citation_ok=1, n_fabricated_citations=2, action="refuse", topic="fees"),
    scored(
        2, 0, n_claims=3, n_unscored=1, n_conflicts=1, action="revise", answerable=False, prompt_version="v2"
    ),
    {"state": "refusal", "answerable": False, "action": "refuse", "reference_overlap": 0.25},
    {"state": "refusal", "answerable": True, "recall_at_k": 0.5, "topic": None},
    {"state": "no_context", "injection_suspected": True, "answerable": False},
    scored(2, 1, n_samples=3, n_low_consistency=1, action="revise"),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("groundedness", (5, 9, "scored claims")),
        ("mean_groundedness", (0.75 + 1 + 0 + 0.5, 4, "answers with a scored claim")),
        ("hallucination_rate", (3, 4, "answers judged hallucinated or not")),
        ("contradiction_rate", (1, 9, "scored claims")),
        ("unscored_rate", (1, 10, "claims")),
        ("conflict_rate", (1, 10, "claims")),
        ("low_consistency_rate", (1, 2, "claims of answers with samples")),
        ("citation_precision", (3, 4, "claims with a citation")),
        ("fabricated_citation_rate", (1, 4, "answers in state scored")),
        ("refusal_rate", (2, 7, "answers")),
        ("deliver_rate", (3, 7, "answers")),
        ("revise_rate", (2, 7, "answers")),
        ("refuse_rate", (2, 7, "answers")),
        ("injection_suspected_rate", (1, 7, "answers")),
        ("refusal_correctness", (1, 3, "unanswerable questions")),
        ("unanswerable_answered_rate", (2, 3, "unanswerable questions")),
        ("over_refusal_rate", (1, 2, "answerable questions")),
        ("recall_at_k", (1.5, 2, "answers with gold chunks")),
        ("reference_overlap", (0.25, 1, "answers with a reference")),
    ],
)
def test_a_rate_is_what_counting_by_hand_gives(name, expected):
    """Each rate of a day of seven answers has the numerator, denominator and words counted by hand."""
    assert expected == fraction(measure(answers_table(DAY), CONFIG), name)


def test_every_group_counts_its_own_answers_only():
    """Prompt version, model, topic and their combination each split the answers, null being a group."""
    table = measure(answers_table(DAY), CONFIG)

    found = [
        (row["grouping"], row["prompt_version"], row["model"], row["topic"], row["denominator"])
        for row in table.to_pylist()
        if row["metric"] == "refusal_rate"
    ]
    assert found == [
        ("all", None, None, None, 7),
        ("prompt_version", "v1", None, None, 6),
        ("prompt_version", "v2", None, None, 1),
        ("model", None, "m", None, 7),
        ("topic", None, None, "cards", 5),
        ("topic", None, None, "fees", 1),
        ("topic", None, None, None, 1),
        ("prompt_version+model+topic", "v1", "m", "cards", 4),
        ("prompt_version+model+topic", "v2", "m", "cards", 1),
        ("prompt_version+model+topic", "v1", "m", "fees", 1),
        ("prompt_version+model+topic", "v1", "m", None, 1),
    ]


def test_all_has_every_metric_even_without_a_denominator():
    """A rate over nothing stands in `all` as null, with the denominator 0."""
    table = measure(answers_table([{"state": "refusal"}]), CONFIG)

    assert list(METRIC_NAMES) == [r["metric"] for r in table.to_pylist() if r["grouping"] == "all"]
    row = metric(table, "groundedness")
    assert (row["value"], row["low"], row["high"], row["denominator"]) == (None, None, None, 0.0)


def test_a_group_leaves_out_what_it_cannot_measure():
    """Below `all`, a metric with denominator 0 has no row."""
    table = measure(answers_table([{"state": "refusal"}]), CONFIG)

    grouped = {row["metric"] for row in table.to_pylist() if row["grouping"] == "topic"}
    assert grouped == {
        "refusal_rate",
        "deliver_rate",
        "revise_rate",
        "refuse_rate",
        "injection_suspected_rate",
    }


def test_no_answers_give_an_empty_table_with_the_schema():
    """Nothing in, nothing out, but a table of METRICS all the same."""
    table = measure(answers_table([]), CONFIG)

    assert (table.schema, table.num_rows) == (METRICS, 0)


def test_a_whole_answers_table_is_read_too():
    """`measure` takes ANSWERS as stored, with the columns that it does not need."""
    table = measure(ANSWERS.empty_table(), CONFIG)

    assert table.num_rows == 0


# 3 true positives, 1 false positive, 2 false negatives, 4 true negatives, in the words of HUMAN_LABELS.
LABELLED = (
    [
        {"hallucinated": True, "human_label": label}
        for label in ("hallucinated", "not_supported", " Hallucinated ")
    ]
    + [{"hallucinated": True, "human_label": "ok"}]
    + [{"hallucinated": False, "human_label": "not_supported"}] * 2
    + [{"hallucinated": False, "human_label": "supported"}] * 4
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("human_balanced_accuracy", (3 / 5 + 4 / 5) / 2),
        ("human_f1", 6 / 9),
        ("human_kappa", (0.7 - 0.5) / (1 - 0.5)),  # chance: .5 * .4 + .5 * .6
    ],
)
def test_agreement_with_people_is_what_the_two_by_two_table_gives(name, expected):
    """Balanced accuracy, F1 and kappa of ten labelled answers, by hand."""
    assert metric(measure(answers_table(LABELLED), CONFIG), name)["value"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["human_balanced_accuracy", "human_f1", "human_kappa"])
def test_agreement_with_people_needs_both_classes(name):
    """Labels of one class only give no agreement, rather than a perfect one."""
    rows = [{"hallucinated": False, "human_label": "ok"}] * 5

    assert metric(measure(answers_table(rows), CONFIG), name)["value"] is None


def test_labels_that_cannot_be_used_are_counted():
    """An unknown word or an answer that we did not judge lowers `human_label_used_rate`."""
    rows = [
        {"hallucinated": True, "human_label": "hallucinated"},
        {"hallucinated": True, "human_label": "dunno"},
        {"hallucinated": None, "human_label": "ok"},
        {"hallucinated": True, "human_label": None},
    ]

    table = measure(answers_table(rows), CONFIG)

    assert fraction(table, "human_label_used_rate") == (1, 3, "answers with a human label")


def test_the_words_of_people_are_documented():
    """Every word of HUMAN_LABELS is lower case, as the folding expects."""
    assert all(word == word.strip().lower() for word in HUMAN_LABELS)


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
    """Of 400 simulated days of 80 answers with claims that go together, 95% of the intervals hold the truth."""
    random = np.random.default_rng(7)
    rows = []
    for day in range(400):
        for _ in range(80):
            n = int(random.integers(1, 7))
            # True rate 0.8 whatever n: half of the answers are wholly grounded, half at 0.6.
            n_supported = int(random.binomial(n, 1.0 if random.random() < 0.5 else 0.6))
            rows.append(scored(n, n_supported, prompt_version=f"day {day:03}"))

    table = measure(answers_table(rows), MetricsConfig(n_resamples=400)).to_pylist()

    days = [r for r in table if r["grouping"] == "prompt_version" and r["metric"] == "groundedness"]
    covered = np.mean([row["low"] <= 0.8 <= row["high"] for row in days])
    assert 0.92 <= covered <= 0.98  # 400 days: standard error 0.011


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

    assert time.process_time() - began < 30  # 1 s on two cores; an answer-by-resample loop takes minutes
