"""One amount in two ways of saying it, half in words: the same for the number veto; another amount stays another."""

import time

import pyarrow as pa
import pytest

from claimscore.jobs import rules
from claimscore.jobs.idioms import half_said, in_figures, sign_of

SAME = """
90 minutes | an hour and a half
30 minutes | half an hour
15 minutes | a quarter of an hour
45 minutes | three quarters of an hour
30 months | two and a half years
2.5 years | two and a half years
18 months | a year and a half
6 months | half a year
7 days | within a week
14 days | within a fortnight
10 years | over a decade
12:00 | noon
00:00 | midnight
20% | one in five
20% | a fifth of it
33.3% | a third of them
3-fold | threefold
1.5 cups | 1½ cups
$0.50 | 50 cents
€0.99 | 99 cents
£5 | 5 pounds
£0.20 | 20p
2.5 million | 2.5M
15 µm | 15 micrometers
15 kWh | 15 kilowatt-hours
15 MWh | 15 megawatt hours
200 kcal | 200 kilocalories
3000 mAh | 3000 milliamp hours
15 kPa | 15 kilopascals
15 cubic centimeters | 15 cc
3 dl | 3 decilitres
6 months | 6 mos
""".strip().splitlines()

OTHER = """
100 minutes | an hour and a half
40 minutes | half an hour
10 days | within a week
7 days | 5 euros a week
7 days | twice a week
3 years | two and a half years
25% | one in five
20% | a third of them
1.4 cups | 1½ cups
$0.60 | 50 cents
£6 | 5 pounds
13:00 | noon
4-fold | threefold
2.6 million | 2.5M
15 mm | 15 micrometers
15 MWh | 15 kilowatt-hours
15 nm | 15 µm
""".strip().splitlines()


def missing(claim: str, premise: str) -> list[str]:
    """The missing values of one claim."""
    columns = (pa.array([f"It is {text} in total."], pa.string()) for text in (claim, premise))
    return rules.missing_values(*columns, pa.nulls(1, pa.string())).to_pylist()[0]


@pytest.mark.parametrize("pair", SAME)
def test_one_amount_in_two_ways_is_held_either_way(pair):
    """Claim and premise may each be the one in words."""
    one, other = pair.split(" | ")

    assert (missing(one, other), missing(other, one)) == ([], [])


@pytest.mark.parametrize("pair", OTHER)
def test_another_amount_is_missing(pair):
    """Writing words out proves nothing that they do not say, nor makes a rate a span."""
    assert missing(*pair.split(" | "))


def test_all_values_of_the_claim_have_to_be_there():
    """One that is written out holds up no other."""
    premise = "It takes half an hour and costs 5 euros."

    assert missing("It takes 30 minutes and costs 5 euros.", premise) == []
    assert missing("It takes 30 minutes and costs 6 euros.", premise) == ["30 minutes", "6 euros"]


def test_a_text_without_such_words_is_itself():
    """Most are, and no sign of money makes cents of what has none."""
    text = "The fee of £5 is half of it, in a weekly plan for two and twenty."

    assert (in_figures(text), in_figures(text, sign_of(text))) == (text, text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2 and a half",
            "2 miles and a half",
            "a mile and a half",
            "half a mile",
            "half-mile",
            "quarter of a mile",
        ),
        *("three quarters of a mile", "in a week", "fortnight", "one in five", "3 out of every 4", "٣ in 4"),
        *(
            "a third of it",
            "twofold",
            "noon",
            "Midday",
            "midnight",
            "1½",
            "5 cents",
            "20p",
            "20 pence",
            "1 penny",
            "5 pounds",
        ),
    ],
)
def test_every_form_is_seen_at_the_first_look(text):
    """By another engine for patterns, from what no other form holds."""
    assert [sign for sign in ("", "$", "£") if in_figures(text, sign) != text]
    assert half_said([text, "nothing"]) == {text}


def test_the_first_look_passes_by_most_texts():
    """What it is for."""
    texts = ["It is a half of all in the week of May.", "One of them is out in 2020, a third in 2021.", ""]

    assert half_said(texts) == set()


@pytest.mark.parametrize(
    "part", ["one ", "a ", "1 ", "half a ", "one in ", "1 and a ", "in a week ", "½", "5 pounds "]
)
def test_time_is_linear(part):
    """In a megabyte of what the forms begin with."""
    began = time.process_time()
    in_figures(part * (1_000_000 // len(part)), "£")

    assert time.process_time() - began < 10
