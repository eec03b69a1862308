"""Refusals in free words: what abstains is no claim, and what asserts anything stays one."""

import pyarrow as pa
import pytest
from config_fixture import write

from claimscore.jobs import citations, pipeline, refusals, segment
from claimscore.jobs.abstentions import abstains
from claimscore.jobs.config import CitationsConfig, SegmentConfig
from claimscore.jobs.config_file import load_config
from claimscore.jobs.phrases import is_small_talk
from claimscore.jobs.records import LOG

ABSTAIN = [
    "I do not have specific information about the price of the annual plan.",
    "Sorry, but I don't have that information.",
    "I’m sorry, but I do not have enough information to answer the question.",
    "Unfortunately, we do not have details about the opening hours.",
    "I couldn't find any information on parental leave in the handbook.",
    "I do not know.",
    "I apologize, but I cannot confirm that.",
    "I am unable to provide information about the merger.",
    "The provided documents do not mention a cancellation fee.",
    "The context does not contain information on whether pets are allowed [2].",
    "Based on the given context, there is no information about when the bridge was built.",
    "However, there is no mention of a second driver in the passages.",
    "It is not specified how many rooms the house has.",
    "The founder's birthplace is not mentioned in the given context.",
]
ASSERT = [
    "There is no evidence that the drug helps children.",
    "There is no fee for transfers.",
    "We do not provide information to third parties.",
    "We cannot provide information about your account over the phone.",
    "We do not know of a single case in which it failed.",
    "The material does not contain lead.",
    "The policy does not cover flood damage.",
    "It is not included in the price.",
    "It is not clear whether coffee causes headaches.",
    "Breakfast is not included in the room rate.",
    "The ring was not mentioned in the will.",
    "I do not have information on the fee, but the deposit is refundable.",
    "The document does not state a fee; the deposit is refundable.",
    "The text does not address obesity, it does stress exercise.",
    "I do not have the name of the author because the book is anonymous.",
    "The documents do not mention a fee, so the transfer is free.",
    "The document explains how fees are charged.",
    "I have information about the fee.",
    "",
]


@pytest.mark.parametrize("text", ABSTAIN)
def test_what_only_says_that_it_does_not_know_abstains(text):
    """Of the answer or of its documents, with an apology, a source or a mark beside it."""
    assert abstains(text)


@pytest.mark.parametrize("text", ASSERT)
def test_what_asserts_anything_stays_a_claim(text):
    """Of the world, of a firm's rules, or a statement after the abstention."""
    assert not abstains(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I apologize for the confusion.", True),
        ("I'm sorry for any inconvenience caused.", True),
        ("I apologize if my previous response caused any confusion.", True),
        ("I apologize for the confusion in the fee table, which is 5%.", False),
    ],
)
def test_an_apology_is_small_talk(text, expected):
    """As long as it is nothing but one."""
    assert is_small_talk(text) is expected


def sentences(answer, question, **config):
    """is_refusal of each sentence of an answer beside one chunk."""
    row = {
        "request_id": "a",
        "question": question,
        "answer": answer,
        "chunks": [{"id": "1", "text": "Tea is free.", "score": None}],
        "flags": [],
    }
    log = pa.Table.from_pylist([row], schema=LOG)
    found = segment.split_sentences(log.column("answer").combine_chunks(), SegmentConfig(**config))
    found = citations.parse_citations(found, log, CitationsConfig())
    found = refusals.with_abstentions(found, log.column("question").combine_chunks())
    return found.column("is_refusal").to_pylist()


def test_an_abstention_beside_a_claim_refuses_alone():
    """The claim is judged as ever."""
    assert sentences("Tea is free. I do not have information about coffee.", "What is free?") == [False, True]


@pytest.mark.parametrize(
    ("answer", "question", "refuses"),
    [
        ("I do not have information about version 6.2.", "What is new in version 6.2?", True),
        ("I do not have information about the 30% fee.", "Is there a fee?", False),
        ("I do not have information about the 30% fee.", None, False),
        ("The documents do not mention a fee of five hundred euro.", "Is there a fee?", False),
        ("The documents do not mention a fee of five hundred euro.", "Is it Five hundred euro?", True),
        ("I do not have information about the Friday deadline.", "What is the deadline?", False),
        ("The documents do not mention a fee [1].", "Is there a fee?", True),
        ("The documents do not mention a fee [7].", "Is there a fee?", False),
    ],
)
def test_a_figure_of_its_own_or_a_made_up_mark_is_a_claim(answer, question, refuses):
    """What the question asked for may be named again; what the answer brings in may not hide in an abstention."""
    assert sentences(answer, question) == [refuses]


def test_no_sentences_stay_none():
    """An empty table in, an empty table out."""
    assert sentences("", "Is there a fee?") == []


@pytest.mark.parametrize("is_on", [True, False])
def test_the_config_says_whether_abstentions_refuse(tmp_path, is_on):
    """`[segment] abstentions`, on by default; off, each is a claim like any other."""
    config = load_config(write(tmp_path, segment="" if is_on else "abstentions = false"))
    row = {"request_id": "a", "answer": "I do not have that information.", "chunks": [], "flags": []}

    found = pipeline.make_sentences(pa.Table.from_pylist([row], schema=LOG), config)

    assert found.column("is_refusal").to_pylist() == [is_on]
