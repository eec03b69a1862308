"""Marks on sentences without a claim: handed to a claim where there is one, and named where there is none."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs import records
from claimscore.jobs.citations import parse_citations, uncarried_marks
from claimscore.jobs.config import CitationsConfig, DecomposeConfig, SegmentConfig
from claimscore.jobs.decompose import make_claims
from claimscore.jobs.segment import split_sentences

FACT = "The refund window is 60 days"
REFUSAL = "I don't have enough information to answer that"
PIECES = st.sampled_from(
    [
        *(
            f"{FACT} [1]. ",
            f"{FACT}.\n\n",
            f"{REFUSAL} [9]. ",
            f"{REFUSAL}.\n\n",
            "# Refunds [8]\n\n",
            "[7]\n\n",
        ),
        *("Is it free [6]? ", "You also get [5]:\n- ", "Sure! [4] ", "… [3]\n\n", "Sources: [2]\n\n"),
        *("\n\n```\nx = 1\n```\n", "Tea is free [10] "),
    ]
)


def parsed(*answers):
    empty = dict.fromkeys(records.LOG.names)
    chunks = [{"id": "c1", "text": "text", "score": None}]
    rows = [
        empty | {"request_id": f"r{n}", "answer": answer, "chunks": chunks, "flags": []}
        for n, answer in enumerate(answers)
    ]
    sentences = split_sentences(pa.array(answers, pa.string()), SegmentConfig())
    return parse_citations(sentences, pa.Table.from_pylist(rows, schema=records.LOG), CitationsConfig())


def claims_of(sentences):
    """What decompose makes of them with a model that gives every sentence back."""

    def complete(system, users):
        texts = [json.dumps({"claims": [user.rpartition("Sentence: ")[2]]}) for user in users.to_pylist()]
        rows = [
            dict(zip(records.REPLIES.names, (i, 0, text, "stop", 1, 1), strict=True))
            for i, text in enumerate(texts)
        ]
        return pa.Table.from_pylist(rows, schema=records.REPLIES)

    claims, _ = make_claims(
        sentences,
        pa.array(["r0"]),
        complete=complete,
        entails=lambda premises, _: np.ones(len(premises)),
        config=DecomposeConfig(model="stub", checker="stub"),
    )
    return claims


@pytest.mark.parametrize(
    "answer, heir",
    [
        (f"Tea is free. {FACT} [1]. {REFUSAL} [9].", FACT),
        (f"{REFUSAL} [9]. {FACT} [1]. Tea is free.", FACT),
        (f"Tea is free. {REFUSAL} [9]. {FACT} [1].", "Tea is free"),
        (f"Tea is free.\n\n# Refunds [9]\n\n{FACT} [1].", FACT),
        (f"{FACT} [1].\n\n# Refunds [9]\n\n{REFUSAL}.", FACT),
        (f"# Refunds [9]\n\n{REFUSAL}.\n\n{FACT} [1].", FACT),
        (f"{FACT} [1]. Is that all [9]?", FACT),
        (f"```\nx = 1\n```\n# Refunds [9]\n\n```\nx = 1\n```\n{FACT}.", FACT),
    ],
)
def test_a_made_up_mark_goes_to_the_nearest_claim(answer, heir):
    """A refusal's and a question's mark goes back, a heading's on, and either the other way where there is no claim."""
    claims = claims_of(parsed(answer)).to_pylist()

    assert [c["text"].rstrip(".") for c in claims if c["fabricated_marks"] == ["[9]"]] == [heir]
    assert uncarried_marks(parsed(answer), 1).to_pylist() == [[]]


@pytest.mark.parametrize(
    "answer, marks",
    [
        (f"{REFUSAL} [7].", ["[7]"]),
        (f"# Refunds [9]\n\n{REFUSAL}.", ["[9]"]),
        ("[9]", ["[9]"]),
        ("_ [9]", ["[9]"]),
        ("Sources: [8], [9]", ["[8]", "[9]"]),
        (f"# Refunds [9]\n\n{REFUSAL} [7]. Is that all [9]?", ["[9]", "[7]"]),
        (f"{REFUSAL} [1].", []),
        (f"{FACT} [9].", []),
        ("…", []),
    ],
)
def test_marks_that_no_claim_can_carry_are_named(answer, marks):
    """Where an answer makes no claim its made-up marks are given, each once, in order."""
    assert uncarried_marks(parsed(answer), 1).to_pylist() == [marks]


def test_uncarried_marks_are_those_of_their_own_answer():
    """One list an answer, also for one without a sentence; none in, none out."""
    sentences = parsed("[8]", None, f"{FACT} [9].", "[7]")

    assert uncarried_marks(sentences, 4).to_pylist() == [["[8]"], [], [], ["[7]"]]
    assert uncarried_marks(sentences.slice(0, 0), 2).to_pylist() == [[], []]
    assert uncarried_marks(sentences.slice(0, 0), 0).type == pa.list_(pa.string())


def test_a_mark_that_also_stands_on_a_claim_is_carried():
    """A mark counts as lost only where no claim has it."""
    sentences = parsed(f"{FACT} [9]. [8]").to_pylist()
    lost = {**sentences[0], "is_refusal": True, "fabricated_marks": ["[9]", "[8]", "[7]"]}
    table = pa.Table.from_pylist([*sentences, lost], schema=records.SENTENCES)

    assert uncarried_marks(table, 1).to_pylist() == [["[7]"]]


@given(st.lists(PIECES, max_size=8).map("".join))
def test_every_mark_is_on_a_claim_or_named(answer):
    """Citations and decompose agree on what makes a claim: no made-up mark falls between the two."""
    sentences = parsed(answer)
    on_claims = {mark for marks in claims_of(sentences)["fabricated_marks"].to_pylist() for mark in marks}
    (uncarried,) = uncarried_marks(sentences, 1).to_pylist()

    written = {f"[{n}]" for n in range(2, 11) if f"[{n}]" in answer}
    assert on_claims | set(uncarried) == written
    assert not (on_claims & set(uncarried))


def test_a_statement_before_a_list_lends_its_ids():
    """Items that cite nothing stand under the marks of what introduces them, also where that asserts a value."""
    found = parsed("The 2 fees cost 50 euro [1]:\n- one is monthly\n- one is yearly").to_pylist()

    assert [row["block"] for row in found] == ["paragraph", "list_item", "list_item"]
    assert [row["cited_ids"] for row in found] == [["c1"]] * 3
