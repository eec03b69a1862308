"""What a list item says only behind its lead-in; steps and whole sentences stand for themselves."""

import pyarrow as pa
import pytest

from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.leads import MAX_LEAD_CHARS, with_lead
from claimscore.jobs.segment import sentence_spans, split_sentences

BEHIND = """
The following damage is covered by the warranty: | Damage caused by liquids.
The warranty does not cover: | damage caused by liquids
After a reset the following settings are kept: | guest network
You must not do the following during an update: | Disconnect the router from power.
Don’t: | open the case
Visitors may not: | smoke
The Nimbus 4 has: | four LAN ports
The Brewline Mini: | has a 19 bar pump
The Nimbus 4: | can be mounted on a wall
The following statements are false: | The router has 4 ports.
""".strip().splitlines()

ALONE = """
To restart the router, follow these steps: | Open the app.
To restart the router, follow these steps: | **Tap** Settings.
The main points are: | The router has 4 ports.
The main points are: | It can't be opened.
Features | four LAN ports
 | four LAN ports
""".strip("\n").splitlines()


def judged(answer: str) -> list[tuple[str, str]]:
    """(text, what was written) of each sentence."""
    rows = split_sentences(pa.array([answer]), SegmentConfig()).to_pylist()
    return [(row["text"], answer[row["start"] : row["end"]]) for row in rows]


@pytest.mark.parametrize("case", BEHIND)
def test_an_item_that_says_too_little_alone_stands_behind_its_lead_in(case):
    """A part of a sentence, and anything that the lead-in denies."""
    lead, item = case.split(" | ")

    assert with_lead(lead, item) == f"{lead} {item}"


@pytest.mark.parametrize("case", ALONE)
def test_what_says_enough_stays_as_it_is(case):
    """A step, a sentence with a verb of its own, and an item without a lead-in."""
    lead, item = case.split(" | ")

    assert with_lead(lead, item) == item


def test_a_long_lead_in_is_not_repeated():
    """It is judged by itself."""
    assert with_lead("x" * MAX_LEAD_CHARS + ":", "four ports") == "four ports"


def test_the_span_stays_the_items_own():
    """What is judged has the lead-in, what is shown and kept of the answer has not; its marks stay where they are."""
    answer = "The warranty does not cover [1]:\n\n- liquid damage [2]\n- lightning. It is rare.\n\nIt lasts 2 years."

    assert judged(answer)[1:] == [
        ("The warranty does not cover: liquid damage [2]", "liquid damage [2]"),
        ("The warranty does not cover: lightning.", "lightning."),
        ("It is rare.", "It is rare."),
        ("It lasts 2 years.", "It lasts 2 years."),
    ]


def test_a_nested_list_has_the_lead_in_of_its_own():
    """The nearest line that leads in, not the one above it."""
    answer = "The plan covers:\n\n- travel\n- not in the plan:\n  - dental care\n"

    assert judged(answer)[-1] == ("not in the plan: dental care", "dental care")


def test_chunks_are_cut_as_they_are_written():
    """Premises are slices of them."""
    chunk = "The warranty does not cover:\n\n- liquid damage\n"

    (spans,) = sentence_spans(pa.array([chunk]), SegmentConfig()).to_pylist()

    assert chunk[spans[-1]["start"] : spans[-1]["end"]].endswith("liquid damage")
