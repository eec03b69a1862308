"""Claims of an answer that say the same: which are found, and what is never taken for the same."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pyarrow as pa
import pytest

from claimscore.jobs import duplicates
from claimscore.jobs.duplicates import with_duplicates
from claimscore.jobs.errors import ModelError
from claimscore.jobs.records import CLAIMS


class Checker:
    """Says yes to every pair but those with a refuted text on either side, and remembers what it was asked."""

    def __init__(self, refuted: tuple[str, ...] = (), p: float = 0.95) -> None:
        self.refuted, self.p = refuted, p
        self.pairs: list[tuple[str, str]] = []
        self.n_calls = 0

    def __call__(self, premises: pa.Array, hypotheses: pa.Array) -> np.ndarray:
        self.n_calls += 1
        self.pairs += zip(premises.to_pylist(), hypotheses.to_pylist(), strict=True)
        return np.array([0.1 if h in self.refuted else self.p for h in hypotheses.to_pylist()])


def claims_of(*answers: list[str], unjudgeable: tuple[str, ...] = ()) -> pa.Table:
    """CLAIMS of some answers, each claim a sentence of its own."""
    rows = [
        {
            "request_id": f"r{answer}",
            "claim_index": k,
            "sentence_index": k,
            "start": 0,
            "end": len(text),
            "text": text,
            "source": "llm",
            "decompose_outcome": "ok",
            "unjudgeable": "code" if text in unjudgeable else None,
            "cited_ids": [],
            "fabricated_marks": [],
            "quotes": [],
        }
        for answer, texts in enumerate(answers)
        for k, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=CLAIMS)


def found(*texts: str, checker: Checker | None = None, how: str = "entailed") -> list[int | None]:
    """`duplicate_of` of the claims of one answer."""
    table, _ = with_duplicates(claims_of(list(texts)), entails=checker or Checker(), how=how, above=0.9)
    assert table.schema == CLAIMS
    return table.column("duplicate_of").to_pylist()


FEE = "The annual fee is 40 euros for students."


@pytest.mark.parametrize(
    "again",
    [
        FEE,
        "the annual fee is 40 euros for students",
        "In summary, the annual fee is 40 euros for students.",
        "Overall, the annual fee is 40 euros for students!",
    ],
)
def test_the_same_words_are_one_claim_without_a_model(again: str):
    """Case, end mark and an opening that sums up are not a second fact, and nothing need be asked."""
    checker = Checker()

    assert found(FEE, "Guests pay more than students do.", again, checker=checker) == [None, None, 0]
    assert checker.n_calls == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FEE, "The annual charge is 40 euros for students."),
        ("The museum was opened to visitors in 1984.", "The museum was opened to guests in 1984."),
        ("The plan covers three users a year.", "The plan also covers 3 users a year."),
        ("Anna Berg wrote the novel in Porto.", "Anna Berg wrote that famous novel in Porto."),
    ],
)
def test_claims_that_entail_each_other_are_one(one: str, other: str):
    """Other words for the same, as long as nothing that turns a meaning round differs; asked both ways."""
    checker = Checker()

    assert found(one, other, checker=checker) == [None, 0]
    assert [(one, other), (other, one)] == checker.pairs


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The plant draws 5 mW of power.", "The plant draws 5 MW of power."),
        ("The tariffs of the year hit US steel.", "The tariffs of the year hit us steel."),
        ("Man soll Bier nur in Maßen trinken.", "Man soll Bier nur in Massen trinken."),
        ("The sample holds 10⁶ cells per ml.", "The sample holds 106 cells per ml."),
        ("The number of ways is 5!", "The number of ways is 5"),
        ("Overall survival was 40 months.", "Survival was 40 months."),
        ("✅ Free shipping of all orders.", "❌ Free shipping of all orders."),
        ("The bank is owed 40 million euros.", "The bank owed 40 million euros."),
        ("The drug poses a little risk.", "The drug poses little risk."),
        ("Only the members pay the fee.", "The only members pay the fee."),
        ("The states pay for the bridge.", "The state pays for the bridge."),
        ("The museum is open on Sunday?", "The museum is open on Sunday."),
        ('The board is 6" long and flat.', "The board is 6' long and flat."),
        ("On that day the fee is 40 euros.", "On that day the fee is 40 euros."),
    ],
)
@pytest.mark.parametrize("how", ["verbatim", "entailed"])
def test_what_a_sign_or_a_letter_tells_apart_is_two_claims(one: str, other: str, how: str):
    """Whatever the model says: case, raised figures, ticks, voice, articles that count, and what points elsewhere."""
    assert found(one, other, how=how) == [None, None]


@pytest.mark.parametrize("refuted", [FEE, "The annual charge is 40 euros for students."])
def test_one_way_is_not_enough(refuted: str):
    """A claim that says more entails the one that says less, and is another claim."""
    said = found(FEE, "The annual charge is 40 euros for students.", checker=Checker(refuted=(refuted,)))

    assert said == [None, None]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The fee is 40 euros for students.", "The fee is 45 euros for students."),
        ("The fee is 40 euros for students.", "The fee is 40 dollars for students."),
        ("The fee is $40 for all students.", "The fee is €40 for all students."),
        ("The tank takes 60 litres of oil.", "The tank takes 60 gallons of oil."),
        ("Dissolve 5 g of salt in water.", "Dissolve 5 mg of salt in water."),
        ("The loan costs 4% a year in interest.", "The loan costs 4% a month in interest."),
        ("The hall has two exits for visitors.", "The hall has three exits for visitors."),
        ("The offset of the clock is -5 seconds.", "The offset of the clock is 5 seconds."),
        ("Release 1.10 fixed the parser crash.", "Release 1.1 fixed the parser crash."),
        ("Anna scored 5 and Bob scored 7.", "Anna scored 7 and Bob scored 5."),
        ("The contract runs until 12/04/2024 at most.", "The contract runs until 04/12/2024 at most."),
        ("The first bridge is closed to lorries.", "The second bridge is closed to lorries."),
    ],
)
def test_other_values_are_never_one_claim(one: str, other: str):
    """Whatever the checker says: it would say yes to all of these, and is not asked."""
    checker = Checker()

    assert found(one, other, checker=checker) == [None, None]
    assert checker.n_calls == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The filter is dishwasher safe after use.", "The filter is not dishwasher safe after use."),
        ("The filter is safe for children to use.", "The filter isn't safe for children to use."),
        ("Members pay a fee for each transfer.", "Members pay no fee for each transfer."),
        ("Refunds are given to all members.", "Refunds are given to some members."),
        ("Refunds are given to members on request.", "Refunds are given to members unless on request."),
        ("The update deletes the saved files.", "The update may delete the saved files."),
        ("The gate opens before the concert.", "The gate opens after the concert."),
        ("The prices rise at the end of May.", "The prices fall at the end of May."),
        ("A move to the annex is possible there.", "A move to the annex is impossible there."),
        ("The treatment is harmless to most bees.", "The treatment is harmful to most bees."),
        ("The employer pays the monthly premium.", "The employee pays the monthly premium."),
        ("Oak is the harder wood of the two.", "Oak is the hardest wood of the two."),
        ("Lea Moss is the chair of the board.", "Lea Moss was the chair of the board."),
        ("The ferry sails from Dover to Calais.", "The ferry sails to Dover from Calais."),
        ("The trains stop at the border station.", "The trains usually stop at the border station."),
        ("The report says the bank owes the city a sum.", "The report says the city owes the bank a sum."),
        ("Der Eintritt ist frei im Museum.", "Der Eintritt ist nicht frei im Museum."),
        ("Το εισιτήριο κοστίζει δέκα ευρώ.", "Το εισιτήριο κοστίζει πέντε ευρώ."),
        ("Der Eintritt kostet die Gruppe zehn Euro.", "Der Eintritt kostet die Gruppe zwölf Euro."),
    ],
)
def test_a_turned_meaning_is_never_one_claim(one: str, other: str):
    """Negation, condition, hedge, quantifier, opposite, comparison, tense and direction veto before a model is asked."""
    checker = Checker()

    assert found(one, other, checker=checker) == [None, None]
    assert checker.n_calls == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The novel was written by Anna Berg.", "The novel was written by Anna Holt."),
        ("Paris hosts the games this summer.", "Rome hosts the games this summer."),
        ("Piet Maas founded the choir with Ruth Adler.", "Ruth Adler founded the choir with Piet Maas."),
        ("The bank lent the city a large sum.", "The city lent the bank a large sum."),
        ("The shop closes early on Monday.", "The shop closes early on Tuesday."),
        ("The Basic plan includes email support.", "The Team plan includes email support."),
        ("Gill Peak is covered in snow by Henry V.", "Gill Peak is covered in snow by Henry VI."),
    ],
)
def test_other_names_are_never_one_claim(one: str, other: str):
    """Another name, or the same names in another place."""
    checker = Checker()

    assert found(one, other, checker=checker) == [None, None]
    assert checker.n_calls == 0


@pytest.mark.parametrize(
    "text",
    [
        "It costs 40 euros a year for students.",
        "Under this plan students pay 40 euros.",
        "Its price is 40 euros for students.",
        "Email support included.",
        "Plan Basic; Users 3; Support email and phone",
    ],
)
def test_what_points_elsewhere_repeats_nothing(text: str):
    """A pronoun, a fragment or a row of a table says another thing under another heading."""
    assert found(text, "The Team plan is for companies.", text) == [None, None, None]


def test_code_repeats_nothing():
    """No judge may see it, so that nothing is known of it."""
    code = "return the first of all the rows"
    claims = claims_of([code, code], unjudgeable=(code,))

    table, counts = with_duplicates(claims, entails=Checker(), how="entailed", above=0.9)

    assert table.column("duplicate_of").to_pylist() == [None, None]
    assert counts == {"n_duplicates": 0, "n_duplicate_pairs": 0}


def test_a_class_names_its_first_claim():
    """Three ways to say it and one of them twice: all name the first, by its index in the answer."""
    charge, cost = "The annual charge is 40 euros for students.", "The annual cost is 40 euros for students."

    assert found(
        "Guests pay more than that.", FEE, charge, cost, charge, FEE, how="entailed"
    ) == [None, None, 1, 1, 1, 1]  # fmt: skip


def test_a_class_does_not_drift():
    """A claim that entails a repeat, and is no repeat of the class's first, stays a claim of its own."""
    charge, cost = "The annual charge is 40 euros for students.", "The annual cost is 40 euros for students."

    class Drifting(Checker):
        def __call__(self, premises: pa.Array, hypotheses: pa.Array) -> np.ndarray:
            pairs = zip(premises.to_pylist(), hypotheses.to_pylist(), strict=True)
            return np.array([0.1 if {FEE, cost} == set(pair) else 0.95 for pair in pairs])

    assert found(FEE, charge, cost, checker=Drifting()) == [None, 0, None]


def test_an_answer_never_changes_another_one():
    """The same claims in two answers are two classes, and what one answer holds decides nothing in the other."""
    charge = "The annual charge is 40 euros for students."
    alone, _ = with_duplicates(claims_of([FEE, charge]), entails=Checker(), how="entailed", above=0.9)

    table, _ = with_duplicates(
        claims_of([charge], [FEE, charge], [charge, FEE]), entails=Checker(), how="entailed", above=0.9
    )

    assert table.column("duplicate_of").to_pylist() == [None, None, 0, None, 0]
    assert table.column("duplicate_of").to_pylist()[1:3] == alone.column("duplicate_of").to_pylist()


def test_what_the_checker_cannot_judge_is_no_repeat():
    """NaN is below every threshold."""
    said = found(FEE, "The annual charge is 40 euros for students.", checker=Checker(p=float("nan")))

    assert said == [None, None]


@pytest.mark.parametrize(
    ("how", "expected"), [("entailed", [None, 0, 0]), ("verbatim", [None, None, 0]), ("none", [None] * 3)]
)
def test_how_much_is_looked_for_is_a_setting(how: str, expected: list[int | None]):
    """`verbatim` asks no model, `none` looks at nothing."""
    checker = Checker()

    said = found(FEE, "The annual charge is 40 euros for students.", FEE, checker=checker, how=how)

    assert said == expected
    assert checker.n_calls == (how == "entailed")


def test_a_checker_that_answers_too_little_is_an_error():
    """Another number of probabilities than pairs is said, not zipped away."""
    claims = claims_of([FEE, "The annual charge is 40 euros for students."])

    with pytest.raises(ModelError, match=r"claims: the checker returned shape \(1,\), expected \(2,\)"):
        with_duplicates(claims, entails=lambda *_: np.array([1.0]), how="entailed", above=0.9)


def test_no_claims_give_no_rows():
    """Empty in, empty out, and no call."""
    checker = Checker()

    table, counts = with_duplicates(CLAIMS.empty_table(), entails=checker, how="entailed", above=0.9)

    assert (table.num_rows, counts["n_duplicates"], checker.n_calls) == (0, 0, 0)


def test_a_claim_is_compared_with_few_others(monkeypatch: pytest.MonkeyPatch):
    """1,700 claims of one frame that share too few words: each is held against the first MAX_LOOKED_AT alone."""
    n_looked_at = 0
    is_close = duplicates._is_close

    def counted(a: duplicates._Said, b: duplicates._Said) -> bool:
        nonlocal n_looked_at
        n_looked_at += 1
        return is_close(a, b)

    monkeypatch.setattr(duplicates, "_is_close", counted)
    words = ["".join(letters) for letters in itertools.product("bdfgklmprtvz", repeat=4)]
    texts = [f"the policy covers {' '.join(words[3 * k : 3 * k + 3])} in the annex" for k in range(1_700)]

    assert set(found(*texts)) == {None}
    assert 0 < n_looked_at <= 1_700 * duplicates.MAX_LOOKED_AT


def test_a_long_answer_costs_linear_time_and_few_pairs():
    """20,000 claims of one frame, each near to the others: pairs stop at MAX_PAIRS, and twice the claims take twice the time."""
    words = [f"{a}{b}{c}q" for a in "bcdfghjklm" for b in "aeiou" for c in "nprstvwxzl"]

    def seconds(n: int) -> tuple[float, int]:
        random.seed(5)
        texts = [f"the policy covers {' '.join(random.sample(words, 2))} in the whole annex building" for _ in range(n)]  # fmt: skip
        checker, claims = Checker(p=0.5), claims_of(texts)
        began = time.process_time()
        with_duplicates(claims, entails=checker, how="entailed", above=0.9)
        return time.process_time() - began, len(checker.pairs)

    half, whole = (min(seconds(n) for _ in range(2)) for n in (10_000, 20_000))

    assert 0 < whole[1] <= 2 * duplicates.MAX_PAIRS + 2 * duplicates.MAX_PAIRED
    assert whole[0] < 3.5 * half[0]
