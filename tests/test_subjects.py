"""Whether a premise is of a passage about another thing than the claim."""

from __future__ import annotations

import time

import pytest

from claimscore.jobs.subjects import Passages

AURUM = "The Aurum card costs 95 euros a year. It comes with lounge access."
SILVA = "The Silva card is for students. The fee is waived in the first year."


def speaks(claim: str, chunks: list[str], pieces: list[int]) -> bool:
    """Of a premise of these whole chunks."""
    return Passages(chunks).speak_of_another(claim, [(k, 0, len(chunks[k])) for k in pieces])


@pytest.mark.parametrize("pieces", [[1], [0, 1], [1, 0]])
def test_a_passage_of_another_card_is_about_another(pieces: list[int]):
    """Alone, and joined with the claim's own passage."""
    assert speaks("The Aurum card has its fee waived in the first year.", [AURUM, SILVA], pieces)


@pytest.mark.parametrize(
    "claim",
    [
        "The Silva card has its fee waived.",  # its own passage
        "The Silva card is cheaper than the Aurum card.",  # of both
        "The fee is waived in the first year.",  # names nothing
        "The Bronze card has its fee waived.",  # a name that no passage has: for the judge
    ],
)
def test_other_claims_are_for_the_judge(claim: str):
    """Nothing says that the passage is not about them."""
    assert not speaks(claim, [AURUM, SILVA], [1])


def test_a_name_that_may_be_the_same_in_another_form_passes():
    """A surname with other words before it, and a name within a longer one."""
    bio = "Narendra Modi was born in Vadnagar. He studied there."
    other = "Prime Minister Modi visited Bern. He spoke there."

    assert not speaks("Prime Minister Modi was born in Vadnagar.", [other, bio], [1])
    assert not speaks(
        "Zylom Studios was founded in Bern.",
        ["Zylom Studios makes games. It pays.", "For years Zylom was small. It was founded in Bern."],
        [1],
    )


def test_two_things_of_one_kind_are_two():
    """`Hut` is no surname."""
    chunks = ["Rotwand Hut lies at 1,870 m. It is old.", "Gamsjoch Hut has 60 bunks. It opens in June."]

    assert speaks("Rotwand Hut opens in June.", chunks, [1])
    assert speaks("Rotwand Hut's season opens in June.", chunks, [1])


def test_a_step_from_one_thing_to_another_is_no_mix_up():
    """The first passage names what the second is about."""
    chunks = [
        "Acme was founded by Maria Lopez. Acme sells tents.",
        "Maria Lopez was born in Lima. She studied law.",
    ]
    apart = ["Acme was founded in 1950. Acme sells tents.", chunks[1]]

    assert not speaks("The founder of Acme was born in Lima.", chunks, [0, 1])
    assert speaks("The founder of Acme was born in Lima.", apart, [0, 1])


def test_a_list_of_like_things_leads_from_none_to_another():
    """A passage about neither names both."""
    nimbus, cirrus = (
        "Nimbus router: it has two ports. It is quiet.",
        "Cirrus router: it has Wi-Fi 7. It is loud.",
    )
    colours = "Both are new. The Nimbus is sold in black, the Cirrus in white."

    assert speaks("The Nimbus has Wi-Fi 7.", [nimbus, cirrus, colours], [1, 2])


def test_a_single_sentence_says_itself_what_it_is_about():
    """Passages cut into sentences have no topic but their own words, which the judge reads."""
    chunks = ["Todd Watson coaches a team.", "The Jackalopes play in the NAHL since 2019."]
    longer = [chunks[0], chunks[1] + " They won twice."]

    assert not speaks("Todd Watson coaches in the NAHL.", chunks, [0, 1])
    assert speaks("Todd Watson coaches in the NAHL.", longer, [0, 1])


def test_a_common_word_that_begins_a_sentence_is_no_name():
    """`Water` and `Crossing` are written with a capital where they begin a sentence, and so prove nothing."""
    chunks = [
        "Sulmona Bay is a beach. It has showers.",
        "Water quality was good. The beach was closed in 2022.",
    ]

    assert not speaks("Sulmona Bay was closed in 2022.", chunks, [1])


def test_a_passage_that_opens_without_a_name_has_no_topic():
    """The middle of a document may be about anything."""
    chunks = [AURUM, "The fee is waived in the first year. The Silva card is for students."]

    assert not speaks("The Aurum card has its fee waived.", chunks, [1])


def test_an_answer_of_several_sentences_is_not_looked_at():
    """It may speak of several things."""
    claim = "The Aurum card has its fee waived in the first year. " + "It is good. " * 12

    assert not speaks(claim, [AURUM, SILVA], [1])


def test_what_a_passage_is_about_is_its_first_name():
    """`V` is written in `VH-18` too, and stands behind it."""
    drills = [
        "Drill VH-18: Battery 18 V, 4.0 Ah. Two speeds.",
        "Drill VD-12: Battery 12 V. It has one speed.",
    ]

    assert speaks("The VH-18 has one speed.", drills, [1])
    assert not speaks("The VD-12 has one speed.", drills, [1])


@pytest.mark.parametrize(
    ("claim", "chunks"),
    [
        (  # speakers
            "Tarn Energy opened two plants in Spain.",
            [
                "Moderator: Welcome to the call of Tarn Energy. With me is our CEO.",
                "Lena Brandt: We opened two plants in Spain. More will follow.",
            ],
        ),
        (  # every chunk begins with the same line
            "Dogs are welcome at the Grand.",
            [
                "© Delphi Hotels. All rights reserved.\nThe Grand has 210 rooms.",
                "© Delphi Hotels. All rights reserved.\nDogs are welcome.",
            ],
        ),
    ],
)
def test_a_name_that_no_passage_opens_with_is_not_one_of_like_things(claim: str, chunks: list[str]):
    """What one passage mentions may be what all of them are about."""
    assert not speaks(claim, chunks, [1])


@pytest.mark.parametrize("title", ["Getting Started", "## System Requirements", "Where to Buy."])
def test_a_title_of_ordinary_words_is_no_name(title: str):
    """All words of a title have a capital: it is a name where one of them is written so again, or has a digit."""
    manual = "Nimbus Lite runs on a laptop. It is free."
    chapter = f"{title}\nDocker is needed. The interface listens on port 8500."

    assert not speaks("Nimbus Lite listens on port 8500.", [manual, chapter], [1])
    assert not speaks("Nimbus Lite listens on port 8500.", [manual, chapter, chapter], [1])
    chapter = "Cirrus Max\nDocker is needed. The interface of Cirrus Max listens on port 8500."
    assert speaks("Nimbus Lite listens on port 8500.", [manual, chapter], [1])


def test_many_claims_beside_much_text_take_seconds():
    """250 claims that begin with other words each, beside a MiB of 1,000 chunks: 0.2 s; 5 s when each word was looked for by a pattern."""
    chunks = [
        f"Zor{k:04}a is a card. It costs {k} euros. " + "Terms apply to it as usual. " * 36
        for k in range(1000)
    ]
    passages = Passages(chunks)
    began = time.process_time()
    for k in range(250):
        passages.speak_of_another(
            f"Zor{k:04}a costs {k} euros.", [((k + j + 1) % 1000, 0, 40) for j in range(5)]
        )

    assert time.process_time() - began < 2


def test_what_all_passages_open_with_is_no_topic():
    """The name of the publisher stands above each."""
    chunks = [f"Acme Bank handbook. {text}" for text in (AURUM, "The fee is waived for students. It is low.")]

    assert not speaks("The Aurum card has its fee waived.", chunks, [1])


def test_a_piece_that_shares_no_word_with_the_claim_bars_nothing():
    """It was joined for its `of`: one irrelevant passage more un-supports no claim."""
    penguins = "Penguins of Signy Island breed in spring. They eat krill."
    claim = "The Aurum card comes with lounge access."

    assert not speaks(claim, [AURUM, penguins], [0, 1])
    assert speaks(claim, [AURUM, penguins + " They have a lounge."], [0, 1])
    assert speaks(claim, [AURUM, penguins], [1])


@pytest.mark.parametrize(
    "chapter",
    [
        "[2] Guided tours last an hour. They start at noon.",
        "<h2>Energy Rating</h2><p>It is rated A. They last an hour.</p>",
    ],
)
def test_numbers_and_tags_before_the_first_line_are_none_of_it(chapter: str):
    """`Guided` begins the passage and so is no name, and `h2` is no word of a title."""
    museum = "Ostrava Tram Museum is open in May. Tickets cost 80 crowns."

    assert not speaks("Tours of the Ostrava Tram Museum last an hour.", [museum, chapter], [1])
