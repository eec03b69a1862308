"""Headings, lead-ins, questions and small talk: what asserts nothing, what asserts, and time on hostile input."""

import time

import pytest

from claimscore.jobs.phrases import (
    find_refusals,
    fold_markers,
    holds_value,
    is_small_talk,
    only_announces,
    only_asks,
)


@pytest.mark.parametrize(
    "text",
    [
        "FAQ",
        "Step 2: Configure",
        "Step 2 of 5: Pay",
        "Step 2 Configure",
        "2. Fees",
        "(2) Fees",
        "2.1 Fees",
        "Q1: Who pays",
        "#3 Fees",
        "Day 1: Arrival",
        "2024",
        "March 2024",
        "COVID-19 rules",
        "Form W-2",
        "Here are 3 options:",
        "There are 3 ways to cancel:",
        "Top 5 tips",
        "Limits [1]",
        "Fees [Source 2]",
        "Fees 【4:0†source】",
    ],
)
def test_numbering_counts_names_and_marks_are_no_values(text):
    """A figure that only numbers or counts parts of the answer asserts nothing."""
    assert not holds_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "The annual fee is 900 euro",
        "Fee: 900",
        "2. The fee is 900 euro",
        "EUR900",
        "The fee is ½ off",
        "2.5 EUR fee",
        "9.99 Euro fee",
        "5 EUR fee",
        "Option 1 costs 5",
        "Step 3 EUR",
        "May-5",
        "nine hundred euro fee",
        "٩٠٠ euro",
        "Here are 30% discounts",
        "Here are 3 euro notes",
        "Here are 3,000 options",
        "50.",
        "Fee 【the fee is 900 euro】",
    ],
)
def test_values_are_seen_in_any_writing(text):
    """Sums, dates, shares and spans of time are values, behind numbering and in any digits too."""
    assert holds_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "The card costs:",
        "The card’s perks are [1]:",
        "To cancel your plan, follow these steps:",
        "If you are eligible, you get:",
        "Here are the fees and limits:",
        "The following is included:",
        "You also get:",
    ],
)
def test_short_lead_ins_only_announce(text):
    """An ordinary lead-in makes no claim, conditions at its front included."""
    assert only_announces(text)


@pytest.mark.parametrize(
    "text",
    [
        "The hotel has a casino, and you also get:",
        "If you are a member, the hotel has a casino, and you get:",
        "Here are the facts, the hotel has a casino, and also:",
        "The fee is waived and these apply:",
        "Our hotel in the old town near the river with its casino and pool offers:",
        "酒店有赌场而且年费已经免除并且所有的客人都可以免费使用游泳池以及：",
        "Costs 5 EUR:",
    ],
)
def test_lead_ins_that_say_more_do_not(text):
    """A clause before the announcement, 15 words, or a value make a lead-in a statement."""
    assert not only_announces(text)


@pytest.mark.parametrize("text", ["Is it free?", "Do you know what the fee is?", "Would you like help?"])
def test_genuine_questions_only_ask(text):
    """A question that tells nothing is one."""
    assert only_asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "The fee is 900 euro, right?",
        "The hotel has a casino, right? [1]",
        "The hotel has a casino, doesn’t it?",
        "Did you know the hotel has a casino?",
    ],
)
def test_questions_that_tell_do_not(text):
    """A tag or `Did you know` makes no question of a statement."""
    assert not only_asks(text)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("[accessed 3 May 2024]", True),
        ("[accessed the fee is 900 euro]", False),
        ("Sure! [1]", True),
        ("Sure! 【The annual fee is 900 euro】", False),
        ("Source: https://a.org/x", True),
    ],
)
def test_small_talk_hides_no_passage_in_brackets(text, expected):
    """What stands in brackets and is no mark or date is no small talk."""
    assert is_small_talk(text) is expected


def test_a_refusal_hides_no_passage_in_brackets():
    """A passage in such brackets as marks have is not looked past."""
    markers = fold_markers(["I cannot say."])

    assert find_refusals(["I cannot say. [2]"], markers) == {0}
    assert find_refusals(["I cannot say. 【The fee is 900 euro】"], markers) == set()


@pytest.mark.parametrize(
    "text", ["1", "a", " ", ",", "A1", "is ", "one ", "1 ", "#", "【", "1.", "W-", "[accessed 1 "]
)
def test_hostile_sentences_are_linear(text):
    """100,000 characters of one kind take a second or two at most."""
    long = text * (100_000 // len(text))
    started = time.process_time()

    for check in (holds_value, only_announces, only_asks, is_small_talk):
        check(long)

    assert time.process_time() - started < 3
