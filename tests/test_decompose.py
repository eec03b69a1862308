"""Sentences to claims: the parser on every shape a model gives, the checks, and exact accounting."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs import records
from claimscore.jobs.config import DecomposeConfig
from claimscore.jobs.decompose import claims_schema, is_atomic, make_claims, parse_reply, user_prompt
from claimscore.jobs.errors import ModelError

CONFIG = DecomposeConfig(model="stub", checker="stub")
DEMO_MODEL = Path(__file__).parents[1] / "demo-models" / "demo-decomposer"

FEE = "The annual fee is Rs 2,999, and it is waived at a spend of Rs 3 lakh."
FEE_CLAIMS = ["The annual fee is Rs 2,999.", "The annual fee is waived at a spend of Rs 3 lakh."]
TOUR = "The tour visits Porto, Braga and Lisbon in May."


def sentence(text: str, *, answer: int = 0, **fields: object) -> dict[str, object]:
    """One row of SENTENCES."""
    row: dict[str, object] = {
        "answer_index": answer,
        "sentence_index": 0,
        "start": 0,
        "end": len(text),
        "text": text,
        "context": "",
        "block": "paragraph",
        "is_refusal": False,
        "cited_ids": [],
        "fabricated_marks": [],
        "quotes": [],
    }
    return row | fields


def reply(*claims: str) -> str:
    return json.dumps({"claims": list(claims)})


class Stub:
    """A decomposer that answers by sentence, and a checker that lets all but the named claims through."""

    def __init__(
        self,
        replies: dict[str, str | tuple[str | None, str]] | None = None,
        refuted: tuple[str, ...] = (),
        arrival: Callable[[list[dict[str, object]]], list[dict[str, object]]] = list,
    ) -> None:
        self.replies, self.refuted, self.arrival = replies or {}, refuted, arrival
        self.users: list[list[str]] = []
        self.pairs: list[tuple[str, str]] = []

    def complete(self, system: str, users: pa.Array) -> pa.Table:
        self.users.append(users.to_pylist())
        rows: list[dict[str, object]] = []
        for index, user in enumerate(users.to_pylist()):
            said = user.rpartition("Sentence: ")[2]
            given = self.replies.get(said, reply(said))
            text, reason = given if isinstance(given, tuple) else (given, "stop")
            row = dict.fromkeys(records.REPLIES.names, 0) | {"prompt_index": index}
            rows.append(row | {"text": text, "finish_reason": reason})
        return pa.Table.from_pylist(self.arrival(rows), schema=records.REPLIES)

    def entails(self, premises: pa.Array, claims: pa.Array) -> np.ndarray:
        self.pairs += zip(premises.to_pylist(), claims.to_pylist(), strict=True)
        return np.array([0.0 if claim in self.refuted else 1.0 for claim in claims.to_pylist()])


def run(stub: Stub, *rows: dict[str, object]) -> tuple[list[dict[str, object]], dict[str, int]]:
    table = pa.Table.from_pylist(list(rows), schema=records.SENTENCES)
    n_answers = 1 + max((int(str(row["answer_index"])) for row in rows), default=0)
    ids = pa.array([f"r{i}" for i in range(n_answers)], pa.string())
    claims, counts = make_claims(table, ids, complete=stub.complete, entails=stub.entails, config=CONFIG)
    assert claims.schema == records.CLAIMS
    return claims.to_pylist(), counts


def outcome_of(text: str, given: str | tuple[str | None, str], *, context: str = "") -> str:
    """The outcome of one sentence; where it is a fallback, its only claim must be the sentence."""
    claims, counts = run(Stub({text: given}), sentence(text, context=context))
    if claims[0]["source"] == "sentence":
        assert [text] == [claim["text"] for claim in claims]
        assert counts["n_fallback"] == 1
    return str(claims[0]["decompose_outcome"])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{}", "wrong_shape"),
        ('{"statements": []}', "wrong_shape"),
        ("[]", "wrong_shape"),
        ("null", "wrong_shape"),
        ("7", "wrong_shape"),
        ('{"claims": null}', "wrong_shape"),
        ('{"claims": "one string"}', "wrong_shape"),
        ('{"claims": [1, {"text": "x"}]}', "wrong_shape"),
        ('{"claims": ["x"], "note": "y"}', "wrong_shape"),
        ('{"claims": ["x"], "claims": []}', "wrong_shape"),
        ('{"claims": ["half \\ud800"]}', "wrong_shape"),
        ('{"claims": []}', "empty_list"),
        ('{"claims": ["", " ", "..."]}', "empty_list"),
        ("I'm sorry, I can't help with that.", "refusal"),
        ('{"claims": ["I\'m sorry, I can\'t help with that."]}', "refusal"),
        ('{"claims": ["He is known as the ", "Duke."]}', "fragment"),
        ("Here are the claims: A.", "not_json"),
        ('{"claims": ["x"]', "not_json"),
        ("", "whitespace"),
        (" \n\t ", "whitespace"),
    ],
)
def test_every_shape_of_reply_has_a_named_outcome(text, expected):
    """What is not a list of strings under the one key gives no claims and says why."""
    assert (None, expected) == parse_reply(text, "stop")


@pytest.mark.parametrize("reason", ["deadline", "prompt_too_long", "error"])
def test_a_reply_without_a_text_keeps_the_engines_reason(reason):
    """The engine's own failures are named as they came."""
    assert (None, reason) == parse_reply(None, reason)


def test_an_unknown_finish_reason_is_an_error():
    """A reason of a later engine is not taken for an answer, even with a text."""
    assert parse_reply(reply("x"), "abort") == (None, "error")


def test_a_truncated_reply_gives_the_claims_that_are_whole():
    """The half claim at the end is dropped, the ones before it stay, and the outcome tells."""
    assert parse_reply('{"claims": ["A.", "B \\"b\\".", "C i', "length") == (
        ["A.", 'B "b".'],
        "truncated_json",
    )


def test_a_truncated_reply_without_a_whole_claim_gives_none():
    """Cut in its first claim, a reply holds nothing."""
    assert parse_reply('{"claims": ["A', "length") == (None, "truncated_json")


@pytest.mark.parametrize("text", ['{"claims": [' + " \n" * 200, " " * 400])
def test_a_loop_of_blanks_is_named(text):
    """A reply that ended in blanks at the token limit is `whitespace`, not a lost list."""
    assert parse_reply(text, "length") == (None, "whitespace")


def test_a_whole_reply_at_the_token_limit_is_ok():
    """Hitting the limit with the closing brace is no truncation."""
    assert parse_reply(reply("A."), "length") == (["A."], "ok")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"claims": [' + '"a",' * 250_000, "9" * 10_000])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_hostile_reply_is_parsed_in_linear_time(text, reason):
    """Depth, a megabyte of claims, or a number of ten thousand digits neither raises nor hangs."""
    assert parse_reply(text, reason)[1] != "ok"


@given(st.text(), st.sampled_from(["stop", "length", "error", "abort"]))
def test_the_parser_never_raises(text, reason):
    """Whatever the text, the answer is a list of strings or a name."""
    claims, outcome = parse_reply('{"claims": [' + text, reason)
    assert outcome == "ok" or claims is None or outcome == "truncated_json"


def test_the_prompt_is_the_one_the_demo_model_was_trained_on():
    """Context and sentence on a line each; without a context, one line."""
    assert user_prompt("S.", "C.") == "Context: C.\nSentence: S."
    assert user_prompt("S.", "") == "Sentence: S."


def test_the_schema_is_one_list_of_bounded_strings():
    """No other field is allowed, and the bounds are the config's."""
    schema = claims_schema(CONFIG)
    assert ["claims"] == schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    assert (
        schema["properties"]["claims"]["maxItems"],
        schema["properties"]["claims"]["items"]["maxLength"],
    ) == (12, 240)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Breakfast is served from 7.", True),
        ("Refunds are given if the seal is unbroken.", True),
        ("Breakfast is served from 7 to 9.", False),
        ("Breakfast, which is free, starts early.", False),
        ("Tea and coffee are free.", False),
        ("The museum (east wing) is closed.", False),
        ("Note: it is closed.", False),
        ("The man who founded it died.", False),
        ("The quick brown fox jumps over the lazy dog.", False),
    ],
)
def test_an_atomic_sentence_is_short_and_joins_nothing(text, expected):
    """One fact by its form: few words, one number, no sign of a second fact; a condition is part of its fact."""
    assert expected == is_atomic(text, CONFIG)


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


@pytest.mark.parametrize(
    "claims, expected",
    [
        (["The annual fee is Rs 4,999.", *FEE_CLAIMS], "new_number"),
        (["The annual fee is Rs 2,999.", "It is waived at a spend of Rs 3 crore."], "new_number"),
        ([*FEE_CLAIMS, "Zenith Bank waives the annual fee."], "new_name"),
        ([*FEE_CLAIMS, "The annual fee is not refunded."], "new_negation"),
        ([*FEE_CLAIMS, "Lounge access comes with unlimited visits."], "drift"),
        (FEE_CLAIMS[:1], "lost_number"),
        (["x" * 240], "too_long"),
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
    with pytest.raises(ModelError, match=r"^decompose: the checker returned shape \(1,\), expected \(2,\); "):
        run(stub, sentence(FEE))


def test_the_checker_is_asked_only_about_claims_that_passed_the_rules():
    """The dear check comes last: nothing is sent for a claim whose number is made up."""
    stub = Stub({FEE: reply("The annual fee is Rs 1.")})
    run(stub, sentence(FEE))
    assert stub.pairs == []


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


def test_repeated_claims_of_a_sentence_count_once():
    """Case, blanks and the end mark make no new claim; the first wording and the order stay."""
    given = reply(FEE_CLAIMS[0], FEE_CLAIMS[1], "the  annual fee is rs 2,999", FEE_CLAIMS[1])
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


def test_an_invented_claim_never_becomes_the_answers():
    """A claim about an entity of neither sentence nor context is refused, whatever the checker says."""
    assert outcome_of(TOUR, reply(TOUR, "Napoleon visits Braga.")) == "new_name"


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


@given(st.lists(st.tuples(st.text(max_size=60), st.sampled_from(_BLOCKS), st.text(max_size=40)), max_size=6))
def test_every_sentence_has_one_outcome(rows):
    """Outcomes add up to the sentences, and a sentence with words that asserts something has a claim."""
    stub = Stub({text: given for text, _, given in rows})
    claims, counts = run(stub, *(sentence(t, answer=i, block=b) for i, (t, b, _) in enumerate(rows)))
    outcomes = {name: n for name, n in counts.items() if not name.startswith("n_")}
    assert len(rows) == counts["n_sentences"] == sum(outcomes.values())
    assert counts["n_no_claim"] == len(rows) - len({claim["request_id"] for claim in claims})


@pytest.mark.parametrize("filler", ["a", "1", "'", "A-", "no ", "1,", "if ", ")", "not 1 "])
def test_a_megabyte_of_one_character_is_judged_in_linear_time(filler):
    """Text is hostile: no rule may take longer than in proportion."""
    text = filler * (200_000 // len(filler)) + ", b."
    claims, _ = run(Stub(), sentence(text))
    assert len(claims) == 1


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
