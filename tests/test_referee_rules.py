"""What the referee may change about a verdict, on hand-made rows: both ways, never over a veto, never without its window."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import test_verdicts
from test_verdicts import a_claim, a_pair

from claimscore.jobs.records import REFEREE
from claimscore.jobs.referee_rules import decisions


def a_reply(said: str | None = "supported", chunk: int | None = 0, **more: Any) -> dict:
    """One usable reply about claim 0, which names the window over `chunk`."""
    window = None if chunk is None else {"chunk_index": chunk, "start": 0, "end": 4}
    row = {"request_id": "r", "claim_index": 0, "turn": 0, "reasons": ["near_threshold"], "prompt_key": "k"}
    row |= {"reply": "{}", "finish_reason": "stop", "outcome": "ok", "said": said, "window": window}
    return row | {"span": "text0 and more words"} | more


def judge(pairs: list[dict], replies: list[dict], **more: Any) -> dict:
    """The verdict on claim 0, whose sentence begins at 7 of its answer, with these replies."""
    more.setdefault("claim", a_claim(start=7, end=16))
    return test_verdicts.judge(pairs, replies=pa.Table.from_pylist(replies, REFEREE), **more)


UNSURE, SURE = a_pair(0, 0.7), a_pair(0, 0.9)


@pytest.mark.parametrize(
    ("pair", "said", "verdict", "rule"),
    [
        (UNSURE, "supported", "supported", "referee"),
        (UNSURE, "contradicted", "contradicted", "referee"),
        (UNSURE, "partial", "unsupported", "nli"),
        (UNSURE, "unsupported", "unsupported", "nli"),
        (SURE, "supported", "supported", "nli"),
        (SURE, "partial", "unsupported", "referee"),
        (SURE, "unsupported", "unsupported", "referee"),
        (SURE, "contradicted", "contradicted", "referee"),
        (a_pair(0, 0.05, 0.95), "unsupported", "unsupported", "referee"),
        (a_pair(0, 0.05, 0.95), "supported", "contradicted", "nli"),
    ],
)
def test_the_referee_decides_where_it_says_otherwise(pair, said, verdict, rule):
    """Partial support is none; a claim that a premise contradicts is not lifted; agreement leaves the judge's rule."""
    row = judge([pair], [a_reply(said)])

    assert (row["verdict"], row["decided_by"], row["referee_said"]) == (verdict, rule, said)


def test_the_window_that_it_named_is_the_evidence():
    """A lifted claim shows that window, is cited where its chunk is, and has no type of hallucination."""
    pairs = [a_pair(0, 0.75), a_pair(3, 0.6, cited=True)]

    row = judge(pairs, [a_reply("supported", 3)], claim=a_claim(cited=("c3",)))

    assert (row["evidence_chunk_id"], row["citation_state"], row["hallucination_type"]) == ("c3", "ok", None)
    assert row["referee_span"] == "text0 and more words"


def test_a_contradiction_that_it_names_is_shown():
    """The contradicting passage is the window of its span."""
    row = judge([a_pair(0, 0.75), a_pair(3, 0.6)], [a_reply("contradicted", 3)])

    assert (row["verdict"], row["contradicting_chunk_id"], row["hallucination_type"]) == (
        *("contradicted", "c3"),
        "intrinsic",
    )


@pytest.mark.parametrize(
    ("pairs", "more", "rule"),
    [
        ([SURE], {"missing": [["5"]]}, "number_veto"),
        ([a_pair(0, 0.9, rival="6", p_rival=0.999)], {}, "rival_value"),
        ([SURE, a_pair(1, 0.1, 0.95)], {"conflict": "contradicted"}, "conflict_policy"),
        ([a_pair(0, None, error="nan")], {}, "unjudged"),
        ([a_pair(0, 0.7), a_pair(1, None, error="nan")], {}, "unjudged"),
    ],
)
@pytest.mark.parametrize("said", ["supported", "unsupported", "contradicted"])
def test_what_others_decided_stays(pairs, more, rule, said):
    """No veto is lifted, no policy overruled, and what nothing judged is not judged by it alone."""
    alone, heard = judge(pairs, [], **more), judge(pairs, [a_reply(said)], **more)

    assert (heard["verdict"], heard["decided_by"]) == (alone["verdict"], rule)


def test_a_window_with_a_surer_rival_lifts_nothing():
    """Below the threshold no veto shows in the rule, yet the judge believes another value of that window more."""
    row = judge([a_pair(0, 0.7, rival="6", p_rival=0.99)], [a_reply("supported")])

    assert (row["verdict"], row["decided_by"]) == ("unsupported", "nli")


@pytest.mark.parametrize("said", ["supported", "contradicted"])
@pytest.mark.parametrize("chunk", [None, 5])
def test_a_window_that_was_not_judged_carries_nothing(said, chunk):
    """A reply without a window, or with one that no pair has, changes nothing."""
    row = judge([UNSURE], [a_reply(said, chunk)])

    assert (row["verdict"], row["decided_by"]) == ("unsupported", "nli")


@pytest.mark.parametrize(
    "fault", ["not_json", "deadline", "span_not_found", "span_lacks_value", "injection", "anything"]
)
def test_a_reply_that_cannot_be_used_leaves_the_verdict(fault):
    """The judge's verdict stands, and the row says that the referee was asked and why it was not heard."""
    row = judge([UNSURE], [a_reply("supported", outcome=fault)])

    assert (row["verdict"], row["decided_by"], row["referee_outcome"]) == ("unsupported", "nli", fault)


def test_a_sampled_claim_is_compared_and_not_decided():
    """Which claim a hash picks must not be what its verdict hangs on."""
    row = judge([UNSURE], [a_reply("supported", reasons=["sampled"])])

    assert (row["verdict"], row["referee_outcome"], row["referee_said"]) == ("unsupported", "ok", "supported")


@pytest.mark.parametrize(
    ("second", "outcome", "verdict"),
    [
        ({"said": "supported"}, "ok", "supported"),
        ({"said": "partial"}, "orders_disagree", "unsupported"),
        ({"said": "contradicted"}, "orders_disagree", "unsupported"),
        ({"said": None, "outcome": "not_json"}, "not_json", "unsupported"),
        ({"said": "supported", "outcome": "span_not_found"}, "span_not_found", "unsupported"),
    ],
)
def test_both_orders_must_agree(second, outcome, verdict):
    """A verdict that hangs on the order of the windows is none."""
    row = judge([UNSURE], [a_reply("supported"), a_reply(turn=1, **second)])

    assert (row["referee_outcome"], row["verdict"]) == (outcome, verdict)


def test_partial_and_unsupported_agree():
    """Both mean unsupported, in whichever order."""
    row = judge([SURE], [a_reply("unsupported", None, turn=1), a_reply("partial")])

    assert (row["referee_outcome"], row["referee_said"], row["verdict"]) == ("ok", "partial", "unsupported")


def test_without_a_referee_its_columns_are_null():
    """No replies: the verdict of the judge, and three nulls."""
    row = test_verdicts.judge([SURE])

    assert [row[name] for name in ("referee_outcome", "referee_said", "referee_span")] == [None] * 3


def test_no_replies_decide_nothing():
    """An empty table is an empty frame of the same columns."""
    assert decisions(REFEREE.empty_table()).height == 0
