"""Rival values: which other value of a premise may stand in a claim, and how the judge's word on it is kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs.pairs import PAIRS
from claimscore.jobs.records import SCORES
from claimscore.jobs.rivals import MAX_RIVALS, rival_claims, variant_pairs, with_rivals

CASES = [
    ("Films go out for four weeks.", "Books go out for four weeks, films for one week.", ["one week"]),
    ("The browser takes 50 GB.", "The client takes 50 GB and the browser 5 GB.", ["5 GB"]),
    ("The hall opened in 1974.", "Built in 1960, burnt in 1974, it opened again in 1981.", ["1960", "1981"]),
    ("The fee is 2%.", "It is 2% on Gold and 3.5% on Blue.", ["3.5%"]),
    ("A visit costs 4 euros.", "It costs 4 euros, for members 3 euros.", ["3 euros"]),
    ("The tower has 38 steps.", "The tower has 38 steps and the wall 211 steps.", ["211"]),
    # What has none: the claim says both; another kind; another sentence; a value that the premise lacks; no value.
    ("From 2% to 3%.", "The rate rose from 2% to 3%.", []),
    ("The walk is 4 km long.", "The walk is 4 km long and takes 2 hours.", []),
    ("Visits last two hours.", "Visits last two hours. Permits take ten days.", []),
    ("The fee is 7%.", "It is 2% on Gold and 3.5% on Blue.", []),
    ("The hall is open.", "It opened in 1974 and burnt in 1981.", []),
    ("The tower has 38 steps.", "The tower has 38 steps and 12 doors.", []),
    ("The ferry takes 1 hour.", "The ferry takes 60 minutes, 1 hour.", []),
]


def rivals_of(claim: str, premise: str | None) -> list[str]:
    """The rival values of one claim."""
    return rival_claims(pa.array([claim]), pa.array([premise], pa.string())).column("rival").to_pylist()


@pytest.mark.parametrize(("claim", "premise", "expected"), CASES)
def test_a_rival_is_another_value_of_the_same_kind_beside_the_claims_own(claim, premise, expected):
    """Same unit dimension, date precision or counted noun, in the sentence that states the claim's value."""
    assert rivals_of(claim, premise) == expected


def test_only_the_value_is_replaced():
    """The rest of the claim stays, mark for mark."""
    made = rival_claims(
        pa.array(["The fee is Rs 2,999, waived at Rs 3 lakh."]),
        pa.array(["The fee is Rs 2,999, and waived from Rs 3 lakh, or Rs 60,000 on Blue."]),
    )

    assert made.column("text").to_pylist() == [
        "The fee is Rs 60,000, waived at Rs 3 lakh.",
        "The fee is Rs 2,999, waived at Rs 60,000.",
    ]


def test_of_a_table_of_values_the_nearest_are_rivals():
    """Hundreds of values of one kind cost no more than MAX_RIVALS pairs: those beside the claim's own value."""
    premise = "Tariffs: " + ", ".join(f"{k}0 euros for {k}" for k in range(10, 300))

    assert rivals_of("It costs 2000 euros.", premise) == [
        f"{k}0 euros" for k in (199, 201, 198, 202, 197, 203)
    ]
    assert len(rivals_of("It costs 2000 euros.", premise)) == MAX_RIVALS


def test_every_value_of_a_claim_has_its_turn():
    """The rivals of the first value do not use up those of the second."""
    premise = "A costs 5 euros, B 6 euros, C 7 euros, D 8 euros, E 9 euros, F 10 euros, G 11 euros and weighs 3 kg, H 4 kg."

    assert "4 kg" in rivals_of("A costs 5 euros and weighs 3 kg.", premise)


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=80)), max_size=4))
def test_any_text_gives_rows_that_point_at_their_claims(texts):
    """Whatever the texts, rows are ascending and in range, and no rival claim equals its claim."""
    claims = pa.array([claim for claim, _ in texts], pa.string())
    made = rival_claims(claims, pa.array([premise for _, premise in texts], pa.string()))

    rows = made.column("row").to_pylist()
    assert rows == sorted(rows)
    assert all(claims[row].as_py() != text for row, text in zip(rows, made["text"].to_pylist(), strict=True))


def a_pair(premise_ids: list[int]) -> dict:
    """One row of PAIRS."""
    row = {"request_id": "r", "claim_index": 0, "premise": [], "sample_index": None, "is_cited": False}
    return row | {"overlap": 1.0, "n_tokens": 9, "premise_ids": premise_ids, "claim_ids": [5]}


def encode(texts: pa.Array) -> pa.Table:
    """One id a letter."""
    return pa.table({"ids": pa.array([[ord(c) for c in t] for t in texts.to_pylist()], pa.list_(pa.int32()))})


def test_a_rival_pair_has_the_premise_of_its_row_and_the_new_claim():
    """Rows lead from the rivals through the entailing rows to the pairs; what does not fit is left out."""
    pairs = pa.Table.from_pylist([a_pair([1]), a_pair([2, 2]), a_pair([3] * 9)], PAIRS)
    rivals = pa.table({"row": pa.array([0, 1], pa.int32()), "text": ["ab", "c"], "rival": ["a", "c"]})

    tested, kept = variant_pairs(pairs, pa.array([1, 2]), rivals, encode=encode, max_pair_tokens=8)

    assert tested.column("premise_ids").to_pylist() == [[2, 2]]
    assert tested.column("claim_ids").to_pylist() == [[97, 98]]
    assert tested.column("n_tokens").to_pylist() == [7]
    assert kept.column("row").to_pylist() == [1]


def test_the_surest_rival_of_a_row_is_kept():
    """Of several the highest probability; a rival that could not be scored makes the pair one that was not judged."""
    row = {"request_id": "r", "premise": [], "is_cited": False, "p_entailment": 0.5}
    scores = pa.Table.from_pylist([row | {"claim_index": k} for k in range(3)], SCORES)
    rivals = pa.table({"row": pa.array([0, 0, 2], pa.int64()), "rival": ["a", "b", "c"]})

    out = with_rivals(scores, rivals, np.array([0.5, 0.75, np.nan], dtype=np.float32))

    assert out.column("rival").to_pylist() == ["b", None, None]
    assert out.column("p_rival").to_pylist() == [0.75, None, None]
    assert out.column("p_entailment").to_pylist() == [0.5, 0.5, None]
    assert out.column("error").to_pylist() == [None, None, "nan"]
    assert out.schema == SCORES
