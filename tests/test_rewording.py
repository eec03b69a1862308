"""The claim in the premise's writing: what is one value is reworded, what only may be is left alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from claimscore.jobs.records import SCORES
from claimscore.jobs.rewording import reworded_claims, with_reworded


def reworded(claim: str, premise: str | None) -> str | None:
    """The claim in the premise's writing; None: it does not change."""
    table = reworded_claims(pa.array(["", claim]), pa.array(["", premise], pa.string()))
    assert table.column("row").to_pylist() in ([], [1])
    return table.column("text").to_pylist()[0] if table.num_rows else None


@pytest.mark.parametrize(
    ("claim", "premise", "expected"),
    [
        ("The pole is 3 metres long.", "Pole length: 300 cm.", "The pole is 300 cm long."),
        ("It met on 4 March 2021.", "Meeting: 2021-03-04.", "It met on 2021-03-04."),
        (
            "It has 12 rooms and 3 halls.",
            "Twelve rooms, three halls.",
            "It has Twelve rooms and three halls.",
        ),
        ("It drew 2 million visitors.", "Visitors: 2,000,000.", "It drew 2,000,000 visitors."),
    ],
)
def test_a_value_takes_the_premises_writing(claim, premise, expected):
    """Digits and words, units, magnitudes and dates: one value, another writing."""
    assert reworded(claim, premise) == expected


@pytest.mark.parametrize(
    ("claim", "premise"),
    [
        ("It has 12 rooms.", "It has 12 rooms."),
        ("It has 12 rooms.", "It has 21 rooms."),
        ("Around 69% came.", "75% came."),
        ("It cost 5 euros.", "The score was 5."),
        ("The fee is 100 yuan.", "The fee is RMB 100."),
        ("The fee is 100 dollars.", "The fee is S$100."),
        ("It was twelve degrees.", "It was -12 degrees."),
        ("The cable is 5m.", "The cable is 5,000,000."),
        ("The package weighs 1.250 kg.", "The package weighs 1250 kg."),
        ("It leaves at 9 pm EST.", "It leaves at 21:00 UTC."),
        ("It opened on 4 March 2021.", "Opening: 04/03/2021."),
        ("It was founded in the 19th century.", "Founded in 1899."),
        ("Nothing is said.", "It has 12 rooms."),
        ("It has 12 rooms.", None),
    ],
)
def test_what_is_not_surely_the_same_stays(claim, premise):
    """Other values, rounded ones, bare ones, and what can be read in two ways are the judge's business."""
    assert reworded(claim, premise) is None


def test_no_claims_give_no_rows():
    """An empty column is an empty table of the same columns."""
    table = reworded_claims(pa.array([], pa.string()), pa.array([], pa.string()))

    assert (table.num_rows, table.column_names) == (0, ["row", "text"])


def test_the_surer_of_two_writings_counts():
    """A reworded claim replaces all three probabilities where it is entailed more surely, and only there; NaN nowhere."""
    rows = [
        {"request_id": "r", "claim_index": k, "premise": [], "is_cited": False}
        | {"p_entailment": e, "p_neutral": n, "p_contradiction": c}
        for k, (e, n, c) in enumerate([(0.2, 0.5, 0.3), (0.6, 0.3, 0.1), (0.4, 0.4, 0.2), (None, None, None)])
    ]
    scores = pa.Table.from_pylist(rows, schema=SCORES)
    probs_P3 = np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [np.nan] * 3], np.float32)

    table = with_reworded(scores, pa.array([0, 1, 2]), probs_P3)

    got = [[row[n] for n in ("p_entailment", "p_neutral", "p_contradiction")] for row in table.to_pylist()]
    assert got[3] == [None] * 3
    assert np.array(got[:3]) == pytest.approx(np.array([[0.9, 0.1, 0.0], [0.6, 0.3, 0.1], [0.4, 0.4, 0.2]]))
