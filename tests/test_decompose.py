"""Sentences to claims on stub models: who is asked what, whose claims are whose, and exact accounting."""

from __future__ import annotations

import math
from pathlib import Path

import decompose_stub as _stub
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import records
from claimscore.jobs.decompose import claims_schema, make_claims
from claimscore.jobs.errors import ModelError
from claimscore.jobs.facts import fold

DEMO_MODEL = Path(__file__).parents[1] / "demo-models" / "demo-decomposer"


CONFIG = _stub.CONFIG
FEE = _stub.FEE
FEE_CLAIMS = _stub.FEE_CLAIMS
TOUR = _stub.TOUR
Stub = _stub.Stub
outcome_of = _stub.outcome_of
reply = _stub.reply
run = _stub.run
sentence = _stub.sentence


def test_good_claims_replace_their_sentence():
    """Claims that pass every check are taken over in order, with the sentence's span and citations."""
    claims, counts = run(
        Stub({FEE: reply(*FEE_CLAIMS)}),
        sentence(
            FEE, start=5, end=75, cited_ids=["c1"], fabricated_marks=["[9]"], quotes=["q"], sentence_index=3
        ),
    )
    assert [claim["text"] for claim in claims] == FEE_CLAIMS
    shared = {"request_id": "r0", "sentence_index": 3, "start": 5, "end": 75, "source": "llm"}
    shared |= {"cited_ids": ["c1"], "fabricated_marks": ["[9]"], "quotes": ["q"], "unjudgeable": None}
    assert all(shared.items() <= claim.items() for claim in claims)
    assert (counts["ok"], counts["n_fallback"], counts["n_claims"]) == (1, 0, 2)


def test_a_claim_that_its_sentence_does_not_entail_is_refused():
    """The checker sees sentence with context, and its no sends the sentence back."""
    stub = Stub({FEE: reply(*FEE_CLAIMS)}, refuted=(FEE_CLAIMS[1],))
    claims, counts = run(stub, sentence(FEE, context="About the card."))
    assert [(c["decompose_outcome"], c["text"]) for c in claims] == [("not_entailed", FEE)]
    assert {f"About the card. {FEE}"} == {premise for premise, _ in stub.pairs}
    assert counts["not_entailed"] == 1


def test_a_checker_that_gives_nan_lets_nothing_through():
    """A probability that is no number is below every threshold."""
    stub = Stub({FEE: reply(*FEE_CLAIMS)})
    stub.entails = lambda _, claims: np.full(len(claims), math.nan)  # type: ignore[method-assign]
    claims, _ = run(stub, sentence(FEE))
    assert [claim["decompose_outcome"] for claim in claims] == ["not_entailed"]


def test_a_checker_that_answers_another_number_is_an_error():
    """Probabilities that cannot be matched with their claims are never guessed at."""
    stub = Stub({FEE: reply(*FEE_CLAIMS)})
    stub.entails = lambda *_: np.ones(1)  # type: ignore[method-assign]
    with pytest.raises(ModelError, match=r"^claims: the checker returned shape \(1,\), expected \(2,\); "):
        run(stub, sentence(FEE))


def test_the_checker_is_asked_only_about_claims_that_passed_the_rules():
    """The dear check comes last: nothing is sent for a claim whose number is made up."""
    stub = Stub({FEE: reply("The annual fee is Rs 1.")})
    run(stub, sentence(FEE))
    assert stub.pairs == []


def test_claims_that_differ_in_case_are_two():
    """A milliwatt is no megawatt: a claim that is lost would be a row that nobody judges."""
    given = reply("The plant draws 5 mW.", "The plant draws 5 MW.", "the plant draws 5 MW")
    claims, _ = run(
        Stub({"The plant draws 5 mW and 5 MW.": given}), sentence("The plant draws 5 mW and 5 MW.")
    )

    assert [claim["text"] for claim in claims] == ["The plant draws 5 mW.", "The plant draws 5 MW."]


def test_figures_stay_as_they_are_written():
    """A claim in the words of its chunk must not read 106 where both say 10⁶, nor 11/2 for 1½."""
    texts = [
        "The sample holds 10⁶ cells.",
        "Add 1½ cups of flour.",
        "It is 2³² bytes.",
        "The fee is 40² euros.",
    ]

    assert [fold(text) for text in texts] == texts
    assert fold("The ﬁne is ５ euros…") == "The fine is 5 euros..."


def test_repeated_claims_of_a_sentence_count_once():
    """The case of the first letter, blanks and the end mark make no new claim; the first wording and the order stay."""
    given = reply(FEE_CLAIMS[0], FEE_CLAIMS[1], "the  annual fee is Rs 2,999", FEE_CLAIMS[1])
    claims, _ = run(Stub({FEE: given}), sentence(FEE))
    assert [claim["text"] for claim in claims] == FEE_CLAIMS


def test_equal_sentences_in_equal_context_are_asked_once():
    """Each copy gets the claims; another context is another question."""
    stub = Stub({FEE: reply(*FEE_CLAIMS)})
    claims, counts = run(
        stub, sentence(FEE), sentence(FEE, answer=1), sentence(FEE, answer=2, context="Fees first.")
    )
    assert (counts["n_asked"], counts["n_unique_asked"], len(stub.users[0])) == (3, 2, 2)
    assert [claim["request_id"] for claim in claims] == ["r0", "r0", "r1", "r1", "r2", "r2"]


def test_prompts_of_equal_context_are_neighbours():
    """The engine computes a shared prefix once if its users follow each other."""
    texts = [f"Point {i}, which is long enough, holds." for i in range(6)]
    stub = Stub()
    run(stub, *(sentence(text, context="AB"[i % 2]) for i, text in enumerate(texts)))
    assert [user[len("Context: ")] for user in stub.users[0]] == ["A"] * 3 + ["B"] * 3


def test_replies_are_matched_by_index_whatever_the_order():
    """Replies that arrive backwards still belong to their prompts."""
    stub = Stub({FEE: reply(*FEE_CLAIMS)}, arrival=lambda rows: rows[::-1])
    claims, _ = run(stub, sentence(TOUR), sentence(FEE, answer=1))
    assert [("r0", TOUR), ("r1", FEE_CLAIMS[0]), ("r1", FEE_CLAIMS[1])] == [
        (claim["request_id"], claim["text"]) for claim in claims
    ]


def test_a_prompt_without_a_reply_falls_back():
    """A list of replies that is too short shifts nothing: the missing one is an error of its own."""
    stub = Stub({FEE: reply(*FEE_CLAIMS)}, arrival=lambda rows: [r for r in rows if r["prompt_index"] != 1])
    claims, counts = run(stub, sentence(FEE), sentence(TOUR, answer=1))
    assert [*FEE_CLAIMS, TOUR] == [claim["text"] for claim in claims]
    assert (counts["ok"], counts["error"]) == (1, 1)


@pytest.mark.parametrize("reason", ["deadline", "prompt_too_long", "error"])
def test_a_failed_row_changes_no_other_row(reason):
    """The neighbours of a failed prompt keep their claims."""
    stub = Stub({FEE: reply(*FEE_CLAIMS), TOUR: (None, reason)})
    claims, counts = run(stub, sentence(TOUR), sentence(FEE, answer=1))
    assert [TOUR, *FEE_CLAIMS] == [claim["text"] for claim in claims]
    assert (counts[reason], counts["ok"]) == (1, 1)


@pytest.mark.parametrize("block", ["heading", "lead_in", "question", "meta"])
def test_what_asserts_nothing_gives_no_claim(block):
    """Headings, lead-ins, questions and talk about the answer are counted and leave no claim."""
    claims, counts = run(Stub(), sentence("Here is what we found, in short:", block=block))
    assert (claims, counts["n_no_claim"], counts[f"no_claim_{block}"]) == ([], 1, 1)


def test_a_refusal_gives_no_claim_but_its_neighbour_does():
    """A mixed answer keeps its factual sentence."""
    claims, counts = run(
        Stub(), sentence("I don't have enough information.", is_refusal=True), sentence("Tea is free.")
    )
    assert [claim["text"] for claim in claims] == ["Tea is free."]
    assert counts["no_claim_refusal"] == 1


def test_a_sentence_of_marks_alone_is_counted_with_its_fabricated_marks():
    """No letter or digit, no claim; the marks that hang on it are not forgotten."""
    claims, counts = run(Stub(), sentence("…", fabricated_marks=["[7]", "[8]"]))
    assert (claims, counts["no_claim_no_words"], counts["n_marks_without_claim"]) == ([], 1, 2)


def test_code_is_one_claim_that_no_judge_sees():
    """A code block is neither dropped nor sent to a model; its blanks stay."""
    stub = Stub()
    claims, _ = run(stub, sentence("x = 1\ny = 2", block="code"))
    assert [(c["text"], c["unjudgeable"], c["decompose_outcome"], c["source"]) for c in claims] == [
        ("x = 1\ny = 2", "code", "code", "sentence")
    ]
    assert stub.users == []


@pytest.mark.parametrize(
    "text",
    [
        "退款须在六十天内提出，并附收据。",
        "返金は六十日以内に、領収書を添えて申請してください。",
        "धनवापसी साठ दिनों के भीतर, रसीद के साथ दी जाती है।",
        "คืนเงินภายในหกสิบวัน พร้อมใบเสร็จ",
        "Die Karte ist nicht gültig, und der Betrag wird nicht erstattet.",
        "La carte n'est pas valable, et le montant est perdu.",
    ],
)
def test_another_language_stands_for_itself(text):
    """The checks read English: elsewhere the sentence is its own claim and no model is asked."""
    stub = Stub()
    claims, _ = run(stub, sentence(text))
    assert [claim["decompose_outcome"] for claim in claims] == ["language"]
    assert stub.users == []


def test_english_with_foreign_names_is_still_english():
    """Los Angeles and La Paz do not make a sentence Spanish."""
    assert outcome_of("Flights from Los Angeles to La Paz, via Las Vegas, cost 900 dollars.", reply(
        "Flights from Los Angeles to La Paz, via Las Vegas, cost 900 dollars.")) == "ok"  # fmt: skip


def test_short_claims_with_numbers_are_kept():
    """A claim of few letters is as good as a long one."""
    claims, _ = run(Stub(), sentence("It cost $2M."))
    assert [(c["text"], c["source"], c["decompose_outcome"]) for c in claims] == [
        ("It cost $2M.", "atomic", "atomic")
    ]


def test_claim_indices_count_within_each_answer():
    """Rows go by answer, then sentence, whatever else the shard holds."""
    claims, _ = run(
        Stub({FEE: reply(*FEE_CLAIMS)}),
        sentence("Tea is free.", answer=1),
        sentence(FEE, answer=0),
        sentence("Tea is hot.", answer=1, sentence_index=1),
    )
    assert [(c["request_id"], c["claim_index"]) for c in claims] == [
        ("r0", 0),
        ("r0", 1),
        ("r1", 0),
        ("r1", 1),
    ]
    assert [c["text"] for c in claims[2:]] == ["Tea is free.", "Tea is hot."]


def test_no_sentence_in_no_claim_out():
    """An empty shard asks no model and gives an empty table with the schema."""
    stub = Stub()
    claims, counts = run(stub)
    assert (claims, stub.users, counts["n_sentences"], counts["n_claims"]) == ([], [], 0, 0)


_BLOCKS = ["paragraph", "list_item", "table_row", "heading", "code", "quote", "lead_in"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=60), st.sampled_from(_BLOCKS), st.text(max_size=40)), max_size=6))
def test_every_sentence_has_one_outcome(rows):
    """Outcomes add up to the sentences, and a sentence with words that asserts something has a claim."""
    stub = Stub({text: given for text, _, given in rows})
    claims, counts = run(stub, *(sentence(t, answer=i, block=b) for i, (t, b, _) in enumerate(rows)))
    outcomes = {name: n for name, n in counts.items() if not name.startswith("n_")}
    assert len(rows) == counts["n_sentences"] == sum(outcomes.values())
    assert counts["n_no_claim"] == len(rows) - len({claim["request_id"] for claim in claims})


def test_a_claim_that_is_its_sentence_needs_no_checker():
    """A text entails itself: no pair is sent, and no threshold can refuse it."""
    stub = Stub(refuted=(TOUR,))
    claims, _ = run(stub, sentence(TOUR))
    assert [(claim["text"], claim["source"]) for claim in claims] == [(TOUR, "llm")]
    assert stub.pairs == []


def test_a_second_sample_of_a_prompt_is_ignored():
    """One reply a prompt is asked for; more are not taken for the first."""
    stub = Stub(
        {FEE: reply(*FEE_CLAIMS)}, arrival=lambda rows: [*rows, rows[0] | {"sample_index": 1, "text": "{}"}]
    )
    claims, _ = run(stub, sentence(FEE))
    assert [claim["text"] for claim in claims] == FEE_CLAIMS


@pytest.mark.slow  # an engine of its own takes a minute to load; test_demo_run.py runs the same model over two days
@pytest.mark.demo
@pytest.mark.skipif(not DEMO_MODEL.is_dir(), reason="demo-models/ is absent; scripts/demo builds it")
def test_the_demo_decomposer_splits_a_sentence():
    """The real engine and model turn two facts into two claims that pass the rules, and survive a long prompt."""
    from claimscore.jobs.llm import Llm

    llm = Llm(str(DEMO_MODEL), max_model_tokens=512)
    options = {"schema": claims_schema(CONFIG), "max_tokens": 120, "temperature": 0.0, "deadline_s": 60.0}
    try:
        long = sentence("word, " * 600 + "end.", answer=1)
        table = pa.Table.from_pylist(
            [sentence(FEE), long, sentence(TOUR, answer=2)], schema=records.SENTENCES
        )
        claims, counts = make_claims(
            table,
            pa.array(["a", "b", "c"]),
            complete=lambda system, users: llm.complete(system, users, **options),
            entails=Stub().entails,
            config=CONFIG,
        )
    finally:
        llm.close()
    made = [c["text"] for c in claims.to_pylist() if c["request_id"] == "a"]
    assert (len(made), counts["prompt_too_long"]) == (2, 1)
    assert "2,999" in made[0]
    assert "3 lakh" in made[1]
