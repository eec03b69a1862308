"""The rates of a day, counted by hand."""

import pytest
from metrics_fixture import CONFIG, answers_table, metric, scored

from claimscore.jobs.metrics import HUMAN_LABELS, METRIC_NAMES, measure
from claimscore.jobs.records import ANSWERS, METRICS


def fraction(table, name, **key):
    """(numerator, denominator, per) of a metric."""
    row = metric(table, name, **key)
    return row["numerator"], row["denominator"], row["per"]


DAY = [
    scored(4, 3, n_contradicted=1, n_cited_claims=3, n_citation_ok=2, recall_at_k=1.0, answerable=True),
    scored(1, 1, n_cited_claims=1, n_citation_ok=1, n_fabricated_citations=1, action="refuse", topic="fees"),
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
