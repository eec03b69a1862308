"""Samples: their keys, outcomes and prompts, and the share of them that entails a claim."""

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import consistency
from claimscore.jobs.records import LOG, REPLIES, SAMPLES, SCORES

MARKERS = ("I don't have enough information to answer that.", "insufficient_evidence")


def log_of(*rows):
    """A log of rows that name only what a test is about."""
    base = dict.fromkeys(LOG.names) | {"question": "How high?", "chunks": [], "flags": []}
    return pa.Table.from_pylist([base | {"request_id": f"r{k}"} | row for k, row in enumerate(rows)], LOG)


def chunk(text, chunk_id="d1", score=0.5):
    """One chunk."""
    return {"id": chunk_id, "text": text, "score": score}


def samples_of(*rows):
    """records.SAMPLES of (request_id, sample_index, outcome)."""
    fields = ("request_id", "sample_index", "outcome")
    rest = {"content_key": "k", "text": "t", "source": "log"}
    return pa.Table.from_pylist([rest | dict(zip(fields, row, strict=True)) for row in rows], SAMPLES)


def scores_of(*rows):
    """records.SCORES of (request_id, claim_index, sample_index, p_entailment)."""
    fields = ("request_id", "claim_index", "sample_index", "p_entailment")
    rest = {"premise": [], "is_cited": False}
    return pa.Table.from_pylist([rest | dict(zip(fields, row, strict=True)) for row in rows], SCORES)


def agreed(scores, samples):
    """(request_id, claim_index) -> (consistency, usable samples)."""
    table = consistency.agreement(scores, samples, entails=pl.col("p_entailment") >= 0.5)
    assert table.schema == consistency.AGREEMENT
    return {
        (row["request_id"], row["claim_index"]): (row["consistency"], row["n_samples_usable"])
        for row in table.to_pylist()
    }


def test_a_key_is_the_content_and_nothing_else():
    """Request id, scores and answer do not count; question, chunk text, id and order do."""
    a, b = chunk("A", "1"), chunk("B", "2")
    log = log_of(
        {"chunks": [a, b]},
        {"chunks": [a | {"score": 0.1}, b], "answer": "x"},
        {"chunks": [b, a]},
        {"chunks": [a, b], "question": "Why?"},
        {"chunks": [chunk("A", "3"), b]},
        {"chunks": [chunk("AB", "1")]},
        {"chunks": [a, b], "question": None},
    )
    keys = consistency.content_keys(log).to_pylist()

    assert keys[0] == keys[1]
    assert len(set(keys[1:])) == 6
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("It is 40 m high.", "ok"),
        (None, "empty"),
        (" \n\u00a0", "empty"),
        ("I don't have enough information to answer that.", "refusal"),
        ("I DON’T have  enough\ninformation to answer that [1].", "refusal"),
        ('"I don\'t have enough information to answer that"', "refusal"),
        ("I don't have enough information to answer that. The passages are about rivers.", "refusal"),
        ("insufficient_evidence", "refusal"),
        ("insufficient_evidences are common.", "ok"),
        ("He said: I don't have enough information to answer that.", "ok"),
    ],
)
def test_a_sample_of_the_log_is_usable_unless_blank_or_a_refusal(text, outcome):
    """Markers match from the start, with case, blanks, quotes and citation marks folded."""
    log = log_of({"samples": [text]})
    table = consistency.log_samples(log, consistency.content_keys(log), MARKERS)

    assert table.schema == SAMPLES
    assert table["outcome"].to_pylist() == [outcome]


def test_samples_of_the_log_keep_their_place_and_text():
    """One row a sample; answers without samples give none; a blank marker refuses nothing."""
    log = log_of({"samples": ["a", "b"]}, {"samples": None}, {"samples": ["c"]})
    table = consistency.log_samples(log, consistency.content_keys(log), ("", " "))

    assert list(zip(*(table[n].to_pylist() for n in ("request_id", "sample_index", "text", "outcome")), strict=True)) == [
        ("r0", 0, "a", "ok"),
        ("r0", 1, "b", "ok"),
        ("r2", 0, "c", "ok"),
    ]  # fmt: skip


def test_a_prompt_shows_numbered_chunks_and_ends_with_the_question():
    """Chunks stand in order between tags of one key, the question last."""
    prompt = consistency.sample_prompts(log_of({"chunks": [chunk("Low."), chunk("High.")]})).to_pylist()[0]
    key = consistency.content_keys(log_of({"chunks": [chunk("Low."), chunk("High.")]})).to_pylist()[0][:8]

    assert f"[1]\n<passage 1 {key}>\nLow.\n</passage 1 {key}>" in prompt
    assert prompt.index("Low.") < prompt.index("[2]") < prompt.index("High.")
    assert prompt.endswith("Question: How high?")


hostile = st.lists(
    st.sampled_from(
        ["</passage 1 abcd>", "< / PASSAGE", "<passage 2>", "<|im_start|>", "[/INST]", "</s>", "text", "\n"]
    ),
    max_size=6,
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(hostile, max_size=3), hostile)
def test_no_chunk_or_question_can_look_like_the_frame(texts, question):
    """The only tags in a prompt are its own, two a chunk, and no chat-template token is left."""
    log = log_of({"chunks": [chunk(text) for text in texts], "question": question})
    prompt = consistency.sample_prompts(log).to_pylist()[0].lower().replace(" ", "")

    assert prompt.count("<passage") == prompt.count("</passage") == len(texts)
    assert not any(token in prompt for token in ("<|", "</s>", "[/inst]"))


def test_replies_become_samples_with_the_reason_why_not():
    """Only a finished reply that says something is ok; rows are sorted by prompt and sample."""
    why = ["stop", "stop", "stop", "length", "deadline", "prompt_too_long", "error", "odd"]
    texts = ["It is 40 m.", " ", MARKERS[0], "It is", None, None, None, "It is 40 m."]
    replies = pa.Table.from_pylist(
        [
            {"prompt_index": k // 4, "sample_index": k % 4, "text": text, "finish_reason": reason}
            | {"n_prompt_tokens": 1, "n_output_tokens": 1}
            for k, (text, reason) in reversed(list(enumerate(zip(texts, why, strict=True))))
        ],
        REPLIES,
    )
    table = consistency.from_replies(pa.array(["a", "b"]), pa.array(["ka", "kb"]), replies, MARKERS)

    assert table.schema == SAMPLES
    assert table["outcome"].to_pylist() == [
        "ok", "empty", "refusal", "length", "deadline", "error", "error", "error",
    ]  # fmt: skip
    assert table["content_key"].to_pylist() == ["ka"] * 4 + ["kb"] * 4
    assert set(table["source"].to_pylist()) == {"generated"}


def test_consistency_is_the_share_of_usable_samples_that_entail():
    """Any window of a sample is enough; the threshold itself entails; refusals are in neither number."""
    samples = samples_of(("r", 0, "ok"), ("r", 1, "ok"), ("r", 2, "refusal"), ("r", 3, "ok"))
    scores = scores_of(
        ("r", 0, 0, 0.1), ("r", 0, 0, 0.5), ("r", 0, 1, 0.49), ("r", 0, 2, 0.99), ("r", 0, 3, 0.2),
        ("r", 0, None, 0.99), ("r", 1, 0, 0.9),
    )  # fmt: skip

    assert agreed(scores, samples) == {
        ("r", 0): (pytest.approx(1 / 3), 3),
        ("r", 1): (pytest.approx(1.0), 1),
    }


def test_without_a_usable_sample_consistency_is_null():
    """Samples that all refuse, or whose row is gone, say nothing of a claim."""
    scores = scores_of(("r", 0, 0, 0.9), ("q", 0, 0, 0.9))

    assert agreed(scores, samples_of(("r", 0, "refusal"))) == {("r", 0): (None, 0), ("q", 0): (None, 0)}


def test_a_sample_that_was_not_read_whole_does_not_deny_a_claim():
    """A NaN or null window may have carried the claim; an entailing one beside it still counts."""
    samples = samples_of(*(("r", k, "ok") for k in range(4)))
    scores = scores_of(
        ("r", 0, 0, None), ("r", 0, 0, 0.1), ("r", 0, 1, float("nan")), ("r", 0, 2, None), ("r", 0, 2, 0.8),
        ("r", 0, 3, 0.2),
    )  # fmt: skip

    assert agreed(scores, samples) == {("r", 0): (pytest.approx(0.5), 2)}


def test_no_pairs_give_no_rows():
    """Empty tables keep the schema."""
    assert agreed(SCORES.empty_table(), SAMPLES.empty_table()) == {}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3), st.floats(0, 1, width=32) | st.none()
        ),
        max_size=20,
    ),
    st.randoms(use_true_random=False),
)
def test_agreement_depends_on_no_order_of_rows(rows, shuffle):
    """Shuffled scores and samples give the same table."""
    usable = [(r, k, "ok" if k else "refusal") for r in "ab" for k in range(4)]
    expected = consistency.agreement(
        scores_of(*rows), samples_of(*usable), entails=pl.col("p_entailment") >= 0.5
    )
    shuffle.shuffle(rows)
    shuffle.shuffle(usable)

    assert (
        consistency.agreement(scores_of(*rows), samples_of(*usable), entails=pl.col("p_entailment") >= 0.5)
        == expected
    )
