"""What may be worked out of two numbers of a premise, and what a stray number near by must not prove."""

import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs import arithmetic, rules
from claimscore.jobs.multiples import ties


def missing(claim, premise):
    """The missing values of one claim, without a question."""
    columns = (pa.array([text], pa.string()) for text in (claim, premise, ""))
    return rules.missing_values(*columns).to_pylist()[0]


DERIVED = {
    "instalments of": ("The sofa costs 135 euros.", "The sofa is paid in 3 instalments of 45 euros."),
    "adjective between": ("It comes to $360.", "Pay 4 quarterly instalments of $90."),
    "count before a dose": ("Swallow 80 mg.", "Swallow two 40 mg capsules."),
    "times sign": ("The pack holds 900 ml.", "Pack: 6 x 150 ml."),
    "times a day": ("That is 75 mg a day.", "Take 25 mg 3 times a day."),
    "trailing each": ("The hall seats 72.", "The hall has 8 rows with 9 seats each."),
    "each that stands alone": ("They sleep 15 guests.", "There are 5 huts, each with 3 beds."),
    "each of": ("They weigh 42 kg.", "Each of the 6 crates weighs 7 kg."),
    "per, counted elsewhere": ("They paid 48 euros.", "The fare is 16 euros per rider and there were 3 riders."),
    "a month, in months": ("The plan comes to 84 euros.", "The plan is 7 euros a month for 12 months."),
    "a month, in years": ("The plan comes to 168 euros.", "The plan is 7 euros per month over 2 years."),
    "split among, in the premise": ("A guest owes 35 euros.", "The bill of 140 euros is split among 4 guests."),
    "each, in the claim": ("They owe 35 euros each.", "The bill is 140 euros. Four guests came."),
    "ratio of two measures": ("The new pool is 3 times as long.", "The old pool measures 20 m. The new one: 60 m."),
    "sum of one unit": ("The tour lasts 9 days.", "The tour takes 4 days by bus. It goes on for 5 days by boat."),
    "difference of one unit": ("They saved 15 euros.", "The old price was 50 euros. It is now 35 euros."),
    "price and discount": ("Members pay 60 euros.", "The course costs 80 euros. Members get 25% off."),
    "decimal that begins with its dot": ("The dose is .5 mg.", "The dose is 0.5 mg."),
    "the same in the premise": ("It costs $0.75.", "Price: $.75"),
}  # fmt: skip
STRAY = {
    "tenfold dose and a count": ("Swallow 400 mg.", "Swallow 40 mg. The pack has 10 capsules.", ["400 mg"]),
    "half and a count": ("Returns close after 45 days.", "Returns close after 90 days. Members get 2 vouchers.", ["45 days"]),
    "in one sentence": ("Returns close after 45 days.", "Returns close after 90 days and members get 2 vouchers.", ["45 days"]),
    "each of other things": ("Swallow 400 mg.", "Swallow 40 mg at each meal; the pack has 10 capsules.", ["400 mg"]),
    "interval is no count": ("Take 160 mg.", "Take 40 mg every 4 hours.", ["160 mg"]),
    "sum with a count": ("The fee is 52 euros.", "The fee is 50 euros. There are 2 branches.", ["52 euros"]),
    "money and a count": ("The fee is 150 euros.", "The fee is 50 euros. There are 3 branches.", ["150 euros"]),
    "percentage of unlike things": ("Cashback is 20%.", "Claim within 50 days. Members get 10 vouchers.", ["20%"]),
    "percentage of a stray count": ("They get 6 vouchers.", "Cashback is 5%. The club has 120 members.", ["6"]),
    "fivefold for the dot": ("The dose is .5 mg.", "The dose is 5 mg.", [".5 mg"]),
    "the dot dropped": ("The dose is 5 mg.", "The dose is .5 mg.", ["5 mg"]),
    "cue in another sentence": ("The fee is 25 euros.", "The fee is 50 euros. Two teams share a hall.", ["25 euros"]),
}  # fmt: skip


@pytest.mark.parametrize("case", DERIVED)
def test_a_value_that_the_text_lets_one_work_out_is_not_missing(case):
    """Words that multiply, divide or share tie a count to its measure; one unit adds and subtracts."""
    assert missing(*DERIVED[case]) == []


@pytest.mark.parametrize("case", STRAY)
def test_a_small_number_near_by_proves_no_measure(case):
    """A product, quotient or sum with a count of other things is no derivation."""
    claim, premise, expected = STRAY[case]

    assert expected == missing(claim, premise)


@pytest.mark.parametrize("at_once", [(50_000, 200_000), (20, 3), (0, 1)])
def test_what_is_asked_at_once_changes_no_value(monkeypatch, at_once):
    """Claims of many texts are worked out together; no number of one text is combined with those of another."""
    monkeypatch.setattr(rules, "NUMBERS_AT_ONCE", at_once[0])
    monkeypatch.setattr(arithmetic, "_MAX_CELLS", at_once[1])
    cases = [(*case, []) for case in DERIVED.values()] + list(STRAY.values())
    cases += [
        (claim, premise, missing(claim, premise)) for claim, *_ in cases[::3] for _, premise, _ in cases[::4]
    ]
    claims, premises, expected = zip(*cases, strict=True)
    columns = (pa.array(claims), pa.array(premises).dictionary_encode(), pa.array([""] * len(claims)))

    assert rules.missing_values(*columns).to_pylist() == list(expected)


def test_premises_of_many_numbers_are_not_held_together(monkeypatch):
    """A shard may hold a hundred thousand of them: as many as have NUMBERS_AT_ONCE numbers wait for one another."""
    held = []
    monkeypatch.setattr(rules, "derived", lambda asked: held.append(len(asked)) or [False] * len(asked))
    monkeypatch.setattr(rules, "NUMBERS_AT_ONCE", 100)
    premise = " ".join(f"{n} kg of coal." for n in range(10, 40))
    columns = [pa.array([text] * 20, pa.string()) for text in ("It was 3000 kg.", premise, "")]

    assert rules.missing_values(*columns).to_pylist() == [["3000 kg"]] * 20
    assert held == [4] * 5 + [0]


@given(
    st.lists(st.sampled_from(["6 of 4", " each", " a box", " boxes", ". ", " x ", "\n", "two "]), max_size=12)
)
def test_ties_join_two_numbers_of_one_sentence(pieces):
    """No tie crosses a full stop, ties a number to itself or is given twice."""
    text = "".join(pieces)
    spans = [(at, at + 1) for at, char in enumerate(text) if char.isdigit()]

    found = ties(text, spans)

    assert len(set(found)) == len(found)
    for tie in found:
        left, right = sorted((spans[tie.measure], spans[tie.number]))
        assert left < right
        assert ". " not in text[left[1] : right[0]]


def test_many_cues_cost_no_more_than_linear_time():
    """A page of nothing but cues and numbers in one sentence is read within seconds."""
    start = time.process_time()

    missing("Take 7,777,777 mg each.", "3 boxes of 5 mg each per box x " * 10_000)

    assert time.process_time() - start < 15
