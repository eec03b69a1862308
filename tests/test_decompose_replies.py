"""The prompt, the schema, the atomic rule, and the parser on every shape that a model gives."""

from __future__ import annotations

import decompose_stub as _stub
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs.decompose import claims_schema, is_atomic, parse_reply, user_prompt

CONFIG = _stub.CONFIG
reply = _stub.reply
sentence = _stub.sentence


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


@settings(deadline=None)
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
