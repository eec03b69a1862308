"""Sentences that say whom they speak of only with the one before them."""

from __future__ import annotations

import pytest

from claimscore.jobs.leaning import leans


@pytest.mark.parametrize(
    "sentence",
    [
        "It has four ports.",
        "Its depth is 260 metres.",
        "However, they close at noon.",
        "In addition, this plan is free.",
        "**These** are sold out.",
        "She joined in 2011.",
        "The latter costs more.",
        "It's waterproof.",
    ],
)
def test_a_sentence_that_points_back_leans(sentence: str):
    assert leans(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Italy has four ports.",
        "The card is free.",
        "Theirs Ltd pays.",
        "However, prices rose.",
        "",
        "Thistle grows.",
        "IT staff help you.",
        "HE 0107 is late.",
    ],
)
def test_a_sentence_with_a_subject_of_its_own_does_not(sentence: str):
    assert not leans(sentence)
