"""The origin and coverage checks: what a claim may say of its sentence, and what may not be lost."""

from __future__ import annotations

import decompose_stub as _stub
import pytest

from claimscore.jobs.decompose import user_prompt

FEE = _stub.FEE
FEE_CLAIMS = _stub.FEE_CLAIMS
TOUR = _stub.TOUR
Stub = _stub.Stub
outcome_of = _stub.outcome_of
reply = _stub.reply
run = _stub.run
sentence = _stub.sentence


@pytest.mark.parametrize(
    "claims, expected",
    [
        (["The annual fee is Rs 4,999.", *FEE_CLAIMS], "new_number"),
        (["The annual fee is Rs 2,999.", "It is waived at a spend of Rs 3 crore."], "new_number"),
        ([*FEE_CLAIMS, "Zenith Bank waives the annual fee."], "new_name"),
        ([*FEE_CLAIMS, "The annual fee is not refunded."], "new_negation"),
        ([*FEE_CLAIMS, "Lounge access comes with unlimited visits."], "drift"),
        ([*FEE_CLAIMS, "The fee is waived by the fee."], "repeated_word"),
        (FEE_CLAIMS[:1], "lost_number"),
        (["x" * 240], "too_long"),
        (["The annual fee waived at a spend of Rs 3 lakh.", "The fee is Rs 2,999."], "lost_verb"),
    ],
)
def test_a_bad_claim_sends_the_whole_sentence_back(claims, expected):
    """One claim that is made up, or one fact that is lost, and the sentence stands for itself."""
    assert expected == outcome_of(FEE, reply(*claims))


@pytest.mark.parametrize(
    "text, claims, expected",
    [
        (TOUR, ["The tour visits Porto in May.", "The tour visits Lisbon in May."], "lost_name"),
        (
            "The filter is not dishwasher-safe, but the jug is.",
            ["The filter is dishwasher-safe.", "The jug is dishwasher-safe."],
            "lost_negation",
        ),
        (
            "Refunds are given within a month, if the seal is unbroken.",
            ["Refunds are given within a month.", "The seal is unbroken."],
            "lost_condition",
        ),
        (
            "Entry is free for all, except on public holidays.",
            ["Entry is free for all.", "Entry is on public holidays."],
            "lost_condition",
        ),
        (
            "Orders are not taken, unless a manager signs the form.",
            ["Orders are not taken.", "A manager signs the form."],
            "lost_condition",
        ),
        (
            "The offer holds for members only, and it runs until midnight.",
            ["The offer holds for members only.", "The offer runs at midnight."],
            "lost_condition",
        ),
        (
            "The drug may cause nausea, and it lowers the pulse.",
            ["The drug causes nausea.", "The drug lowers the pulse."],
            "lost_hedge",
        ),
        (
            "Up to 10 guests can stay, and dogs are welcome.",
            ["10 guests can stay.", "Dogs are welcome."],
            "lost_hedge",
        ),
        (
            "The lamp is waterproof, robust, cheap and pretty.",
            ["The lamp is waterproof.", "The lamp is cheap."],
            "lost_content",
        ),
        (
            "Refunds are given within a month, if the seal is unbroken.",
            [
                "Refunds are given within a month.",
                "Refunds are given within a month if the seal is unbroken.",
            ],
            "lost_condition",
        ),
    ],
)
def test_what_is_lost_is_named(text, claims, expected):
    """Names, negation, conditions, hedges and whole facts of a sentence must be in its claims."""
    assert expected == outcome_of(text, reply(*claims))


@pytest.mark.parametrize(
    "text, claims",
    [
        ("The race covers between 3 and 5 million steps, says Ada.", ["The race covers 3 million steps, says Ada.",
         "The race covers 5 million steps, says Ada."]),
        ("He played there (1954-57) and sang.", ["He played there from 1954 to 1957.", "He sang."]),
        ("Two films came out, one in 2004.", ["2 films came out.", "One film came out in 2004."]),
        ("The rate is 5 percent, paid yearly.", ["The rate is 5%.", "The rate is paid yearly."]),
        ("She chairs the World Health Council (WHC), in Bern.", ["She chairs the World Health Council.",
         "The World Health Council is in Bern."]),
        ("The German state bought it in May, for good.", ["Germany's state bought it in May.", "It was bought for good."]),
        ("It is not only cheap, but also light.", ["It is cheap.", "It is light."]),
    ],
)  # fmt: skip
def test_fair_rewordings_pass(text, claims):
    """Ranges, number words, percent signs, abbreviations and name forms are folded before they are compared."""
    assert outcome_of(text, reply(*claims)) == "ok"


def test_a_name_may_come_from_the_context_but_a_fact_may_not():
    """A pronoun may be resolved; what the neighbours say is theirs."""
    context = "Ada Adler founded the choir in 1911."
    text = "She led it for ten years, and then left."
    good = reply("Ada Adler led the choir for ten years.", "Ada Adler then left.")
    leak = reply("Ada Adler led it for ten years.", "She then left.", "Ada Adler founded the choir in 1911.")

    assert outcome_of(text, good, context=context) == "ok"
    assert outcome_of(text, leak, context=context) == "drift"


@pytest.mark.parametrize(
    ("text", "claim", "expected"),
    [
        (
            "A parcel waits in the locker for 7 days and is then sent back.",
            "The locker is in the locker for 7 days.",
            "repeated_word",
        ),
        (
            "A parcel waits in the locker for 7 days and is then sent back.",
            "The locker is in the lockers for 7 days.",
            "repeated_word",
        ),
        (
            "Does this fee, which the bank does charge, end this year or does it stay?",
            "This fee of this year, which the bank does charge, does stay or does end.",
            "ok",
        ),
        (
            "The bank pays 5 euros a day or 50 euros a month.",
            "The bank pays 5 euros a day or 50 euros a month.",
            "ok",
        ),
        (
            "She left Richmond Hill High School, in Richmond.",
            "Richmond Hill High School is in Richmond.",
            "ok",
        ),
        (
            "We generate a histogram with NumPy and then we show it in Streamlit.",
            "We generate a histogram with NumPy and show Streamlit's Streamlit's Streamlit's Streamlit.",
            "repeated_word",
        ),
    ],
)
def test_a_word_said_again_is_another_thing_in_its_place(text, claim, expected):
    """But what the sentence says twice, or names once more, is no fault."""
    assert outcome_of(text, reply(claim)) == expected


def test_a_truncated_reply_is_kept_where_nothing_was_lost():
    """Eighty facts cut at the limit fall back; claims that hold the whole sentence stay, and say so."""
    whole = reply(*FEE_CLAIMS)[:-2] + ', "The an'
    part = reply(*FEE_CLAIMS[:1])[:-2] + ', "The an'
    assert outcome_of(FEE, (whole, "length")) == "truncated_kept"
    assert outcome_of(FEE, (part, "length")) == "truncated_json"


def test_a_truncated_list_of_plain_words_is_not_taken_for_all():
    """Where no number or name is at stake, words that are missing still tell."""
    text = "The card gives lounge access, fuel cashback, travel cover and free movie tickets."
    cut = '{"claims": ["The card gives lounge access.", "The card gives fuel cashback.", "The card gives tra'
    assert outcome_of(text, (cut, "length")) == "truncated_json"


def test_an_invented_claim_never_becomes_the_answers():
    """A claim about an entity of neither sentence nor context is refused, whatever the checker says."""
    assert outcome_of(TOUR, reply(TOUR, "Napoleon visits Braga.")) == "new_name"


@pytest.mark.parametrize("filler", ["a", "1", "'", "A-", "no ", "1,", "if ", ")", "not 1 "])
def test_a_megabyte_of_one_character_is_judged_in_linear_time(filler):
    """Text is hostile: no rule may take longer than in proportion."""
    text = filler * (200_000 // len(filler)) + ", b."
    claims, _ = run(Stub(), sentence(text))
    assert len(claims) == 1


def test_a_span_of_years_may_end_in_until():
    """A cue that the sentence has not is none that its claims can lose."""
    text = "Ada played for the Rovers, from 2002 to 2016."
    claims = ["Ada played for the Rovers.", "Ada played for the Rovers from 2002.", "Ada played until 2016."]
    assert outcome_of(text, reply(*claims)) == "ok"
    assert outcome_of(text, reply(*claims, "Ada played for the Rovers until 2016.")) == "ok"


def test_double_quotes_become_single_in_the_prompt():
    """A small model breaks its claim off at a quote that it should have escaped."""
    assert (
        user_prompt('Known as "Duke".', "“So” he said.")
        == "Context: 'So' he said.\nSentence: Known as 'Duke'."
    )
