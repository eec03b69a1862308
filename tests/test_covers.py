"""Covers: sentences that together hold a claim, whatever else is there, within their room."""

from __future__ import annotations

import evidence_fixture as fixture
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import evidence
from claimscore.jobs.covers import MAX_SENTENCES, covers, with_antecedents

WORDS, _chunks, pair_up = fixture.WORDS, fixture.windows, fixture.pair_up
a_log, some_claims = fixture.a_log, fixture.some_claims


def bits_of(holds: list[list[int]], n_words: int = 1) -> np.ndarray:
    """Sentences that hold these tokens of a claim."""
    bits = np.zeros((len(holds), n_words), np.uint64)
    for k, tokens in enumerate(holds):
        for token in tokens:
            bits[k, token // 64] |= np.uint64(1) << np.uint64(token % 64)
    return bits


def cover(holds: list[list[int]], sizes: list[int] | None = None, room: int = 100) -> list[int]:
    """The cover of a claim by sentences that hold these of its tokens."""
    offered = np.array(sizes or [10] * len(holds), np.int64)
    taken = covers(bits_of(holds), np.zeros(len(holds), np.int64), offered, np.array([room]))
    return np.flatnonzero(taken).tolist()


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        ([], []),
        ([[]], []),
        ([[0, 1], [2, 3]], [0, 1]),
        ([[0, 1], [0, 1], [2]], [0, 2]),  # of equal ones the earlier
        ([[0], [1], [0, 1, 2], [3]], [2, 3]),  # what adds most comes first, what adds nothing never
    ],
)
def test_a_sentence_is_taken_for_what_it_adds(holds: list[list[int]], expected: list[int]):
    """Greedy by new tokens of the claim; none without any."""
    assert cover(holds) == expected


def test_a_cover_keeps_to_its_room():
    """A sentence that does not fit beside the others is passed over for one that does; the first is always taken."""
    assert cover([[0, 1], [2, 3], [2]], [60, 60, 40]) == [0, 2]
    assert cover([[0, 1], [2]], [500, 1]) == [0]


@pytest.mark.parametrize(
    ("taken", "leaning", "room", "expected"),
    [
        ([1, 3], [1], 100, [0, 1, 3]),
        ([1, 3], [1], 29, [3]),  # without the one before it, not at all
        ([2], [1, 2], 100, [0, 1, 2]),  # back to one that stands alone
        ([2], [1, 2], 29, []),
        ([1, 2], [1, 2], 30, [0, 1, 2]),  # what is there already is not counted twice
        ([0, 2], [2], 30, [0, 1, 2]),
        ([1, 2], [1, 2], 29, []),  # nor on one that went
        ([0, 3], [1, 2], 20, [0, 3]),  # what was not taken brings nothing
    ],
)
def test_a_sentence_that_leans_comes_with_the_one_before_it(
    taken: list[int], leaning: list[int], room: int, expected: list[int]
):
    """Four sentences of ten tokens."""
    places = np.arange(4)
    out = with_antecedents(
        np.isin(places, taken),
        np.isin(places, leaning),
        np.zeros(4, np.int64),
        np.full(4, 10),
        np.array([room]),
    )
    assert np.flatnonzero(out).tolist() == expected


def test_a_cover_has_so_many_sentences_and_no_more():
    """A claim of a hundred words, each in a sentence of its own."""
    n = 100
    bits = bits_of([[k] for k in range(n)], n_words=2)

    taken = covers(bits, np.zeros(n, np.int64), np.ones(n, np.int64), np.array([1_000]))

    assert np.flatnonzero(taken).tolist() == list(range(MAX_SENTENCES))


@pytest.mark.parametrize("n", [1, 100])
def test_sentences_that_do_not_fit_change_nothing(n: int):
    """However many long ones hold more than what is taken beside the first."""
    long = [[2, 3]] * n
    assert cover([[0, 1], *long, [2]], [60, *[90] * n, 40]) == [0, n + 1]


def test_claims_have_covers_of_their_own_sentences():
    """Three at once, one with nothing to take; each has its own room."""
    bits, owner = bits_of([[0], [0], [0, 1], [1], [0], [1]]), np.array([0, 0, 2, 2, 3, 3])

    taken = covers(bits, owner, np.ones(6, np.int64), np.array([9, 9, 9, 1]))

    assert taken.tolist() == [True, False, True, False, True, False]


def premises(log: pa.Table, claim: str, cited: list[str] | None = None) -> tuple[list[str], list[str]]:
    """What `claim` is judged against first, and what if none of it carries the claim."""
    found = pair_up(log, some_claims(("r0", claim, cited or [])))
    first, retries = (evidence.premise_texts(pairs, log).to_pylist() for pairs in found[:2])
    return first, retries


def test_halves_in_two_chunks_are_one_premise():
    """Sentences of several chunks, in document order; those between them are left out."""
    log = a_log(["The lab is on floor four.", "Nothing of interest.", "Floor four is closed. Doors open."])

    first, retries = premises(log, "The lab is on floor four and closed.")

    assert first[-1] == "The lab is on floor four.\n\nFloor four is closed."
    assert retries == ["Floor four is closed."]  # without the first; without the third it is a window again


@settings(max_examples=150, deadline=None)
@given(st.lists(_chunks, min_size=1, max_size=5), _chunks, st.integers(0, 5))
def test_no_single_chunk_takes_away_the_best_cover(chunks: list[str], another: str, at: int):
    """Whatever one more chunk says and wherever it stands, what was the cover is among the premises still."""
    claim = " ".join(WORDS)
    before, _ = premises(a_log(chunks), claim)
    first, retries = premises(a_log([*chunks[:at], another, *chunks[at:]]), claim)

    assert before[-1] in {*first, *retries}


def test_a_cover_of_cited_chunks_alone():
    """What only the cited chunks say is a premise of its own: it tells a miscited claim from a supported one."""
    log = a_log(
        ["Floor four is closed.", "The lab is on floor four and closed.", "The lab is on floor four."]
    )

    first, _ = premises(log, "The lab is on floor four and closed.", ["c0", "c2"])
    found = pair_up(log, some_claims(("r0", "The lab is on floor four and closed.", ["c0", "c2"]))).pairs

    assert "Floor four is closed.\n\nThe lab is on floor four." in first
    cited = dict(zip(first, found["is_cited"].to_pylist(), strict=True))
    assert cited == {
        "The lab is on floor four.": True,
        "Floor four is closed.": True,
        "The lab is on floor four and closed.": False,
        "Floor four is closed.\n\nThe lab is on floor four.": True,
    }


@pytest.mark.parametrize(
    ("cited", "is_cited"), [(["c0"], False), (["c1"], False), (["c2"], True), (["c1", "c2"], True)]
)
def test_a_cover_is_cited_where_that_carries_its_part(cited: list[str], is_cited: bool):
    """Half of what the cover holds of the claim: one word of a chunk that says nothing else makes no good citation."""
    log = a_log(
        ["It has rained.", "Tariff Blue is sold in Oslo.", "Whoever is in Oslo pays a fee of 40 euro."]
    )

    found = pair_up(log, some_claims(("r0", "Tariff Blue has a fee of 40 euro.", cited))).pairs
    flags = dict(
        zip(evidence.premise_texts(found, log).to_pylist(), found["is_cited"].to_pylist(), strict=True)
    )

    assert (
        flags["It has rained.\n\nTariff Blue is sold in Oslo.\n\nWhoever is in Oslo pays a fee of 40 euro."]
        == is_cited
    )


def test_sentences_in_a_row_are_one_span():
    """A cover in one piece is quoted as one passage."""
    log = a_log(["The lab is on floor four. It is closed. " + "Other things stand here. " * 3])

    found = pair_up(log, some_claims(("r0", "On floor four it is closed.", []))).pairs

    assert found["premise"].to_pylist()[-1] == [{"chunk_index": 0, "start": 0, "end": 39}]
    assert evidence.premise_texts(found, log).to_pylist()[-1] == "The lab is on floor four. It is closed."


def test_a_cover_that_is_a_window_is_judged_once():
    """A chunk of one sentence is no second premise."""
    first, retries = premises(a_log(["The gate opens at noon."]), "The gate opens at noon.")

    assert (first, retries) == (["The gate opens at noon."], [])
