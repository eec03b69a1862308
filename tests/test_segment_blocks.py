"""Lead-ins, headings, questions and table heads: which of them assert, and what they do for what follows."""

import pyarrow as pa
import pytest

from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.segment import split_sentences


def rows(answer):
    return split_sentences(pa.array([answer]), SegmentConfig()).to_pylist()


@pytest.mark.parametrize(
    "answer",
    [
        "The annual fee is 900 euro and the hotel has a casino, and you also get:\n- tea",
        "The hotel has a casino, and you also get:\n- tea",
        "Costs 5 EUR:\n- tea",
        "### The annual fee is 900 euro\nTea is free.",
        "# 900 euro\n\n- tea",
        "The fee is 900 euro, right?",
        "Did you know the annual fee is 900 euro? Tea is free.",
        "| Annual fee: 900 euro | Tea |\n|---|---|\n| | free |",
        "| Annual fee: 900 euro | Tea |\n|---|---|",
    ],
)
def test_what_asserts_is_a_paragraph_wherever_it_stands(answer):
    """A lead-in, heading, question or table head that holds a value, or a clause of its own, gets claims."""
    assert rows(answer)[0]["block"] == "paragraph"


def test_a_table_head_that_its_row_repeats_is_a_heading():
    """Figures in the head of a column are judged with each row, and not once more."""
    found = rows("| Plan | Up to 30 days |\n|---|---|\n| Basic | 5 euro |")

    assert [row["block"] for row in found] == ["heading", "table_row"]
    assert found[1]["text"] == "Basic: Up to 30 days 5 euro"


def test_a_lead_in_that_asserts_still_leads_its_list():
    """What stands before a list is in the context of its late items, also where it is a statement."""
    contexts = [row["context"] for row in rows("Costs 5 EUR:\n- batteries\n- cable\n- lamp\n- case")]

    assert all(context.startswith("Costs 5 EUR:") for context in contexts[1:])


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("| Price | 199 euros | 79 euros |", "Price: Nimbus 4: 199 euros, Mini 79 euros"),
        ("| Price | | 79 euros |", "Price: Mini 79 euros"),
        ("| | 199 euros | 79 euros |", "Nimbus 4: 199 euros, Mini 79 euros"),
        ("| 12 V | yes | no |", "Feature 12 V, Nimbus 4: yes, Mini no"),
        ("| Price | | |", "Feature Price"),
        ("| Price | 199 | 79 | 5 |", "Price: Nimbus 4: 199, Mini 79"),
    ],
)
def test_a_row_says_what_its_first_cell_is_about(row, text):
    """Heads stand before values, and no figure of a head runs into one of a cell."""
    answer = f"| Feature | Nimbus 4 | Mini |\n|---|---|---|\n{row}\n"

    assert split_sentences(pa.array([answer]), SegmentConfig()).column("text").to_pylist()[-1] == text
