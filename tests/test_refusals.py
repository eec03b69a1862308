"""Refusals in free words: what abstains is no claim, and what asserts anything stays one."""

import pyarrow as pa
import pytest
from config_fixture import write

from claimscore.jobs import citations, pipeline, refusals, segment
from claimscore.jobs.config import CitationsConfig, SegmentConfig
from claimscore.jobs.config_file import load_config
from claimscore.jobs.phrases import is_small_talk
from claimscore.jobs.records import LOG


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
