"""Which answers are high-risk: reasons, shares, and independence of the other rows."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import triage
from claimscore.jobs.config import TriageConfig
from claimscore.jobs.records import CLAIMS, LOG, SCORES

CHUNK = {"id": "d1", "text": "Text.", "score": 0.5}
CALM = {"random_share": 0.0, "max_share": 1.0}


def answer(request_id, *, topic=None, tokens=None, chunks=(CHUNK,)):
    """One row of the log."""
    row = dict.fromkeys(LOG.names) | {"request_id": request_id, "chunks": list(chunks), "flags": []}
    return row | {"topic": topic, "token_logprobs": tokens}


def tokens_of(*pairs):
    """Token log-probabilities."""
    return [{"token": token, "logprob": logprob} for token, logprob in pairs]


def case(rows):
    """Log, claims and scores of (answer row, best entailments of its claims, None for an unscored one)."""
    claims, scores = [], []
    for row, best in rows:
        for k, p in enumerate(best):
            claims.append(
                {"request_id": row["request_id"], "claim_index": k, "sentence_index": k, "start": 0, "end": 1}
                | {"text": "t", "source": "atomic", "decompose_outcome": "atomic", "unjudgeable": None}
                | {"cited_ids": [], "fabricated_marks": [], "quotes": []}
            )
            base = {"request_id": row["request_id"], "claim_index": k, "premise": [], "is_cited": False}
            error = "nan" if p is None else None
            scores += [
                base | {"p_entailment": value, "error": error} for value in (p, None if p is None else p / 2)
            ]
    log = pa.Table.from_pylist([row for row, _ in rows], LOG)
    return SimpleNamespace(
        log=log, claims=pa.Table.from_pylist(claims, CLAIMS), scores=pa.Table.from_pylist(scores, SCORES)
    )


def chosen(rows, **settings_):
    """request_id -> reasons, in the order that comes back."""
    found = case(rows)
    config = TriageConfig(**(CALM | settings_))
    table = triage.high_risk(found.log, found.claims, found.scores, entailment=0.5, config=config)
    assert table.schema == triage.HIGH_RISK
    return dict(zip(table["request_id"].to_pylist(), table["reasons"].to_pylist(), strict=True))


def test_each_reason_is_named_and_a_plain_answer_has_none():
    """Topic, guessed number, near threshold and unsupported claim; not a well supported answer."""
    rows = [
        (answer("topic", topic="fees"), [0.99]),
        (answer("guess", tokens=tokens_of(("It costs", -0.1), (" 45", -3.0))), [0.99]),
        (answer("near"), [0.99, 0.55]),
        (answer("unsupported"), [0.99, 0.1]),
        (answer("plain", topic="menus"), [0.99, 0.98]),
    ]  # fmt: skip

    assert chosen(rows, topics=("fees",)) == {
        "topic": ["topic"],
        "unsupported": ["unsupported"],
        "guess": ["low_probability_value"],
        "near": ["near_threshold"],
    }


def test_a_threshold_is_near_from_both_sides_and_at_its_edge():
    """0.6 in float32 is a little more than 0.1 from 0.5, and still near."""
    rows = [(answer("a"), [0.6]), (answer("b"), [0.4]), (answer("c"), [0.61])]

    assert set(chosen(rows, unsupported=False)) == {"a", "b"}


def test_the_best_pair_of_a_claim_counts():
    """A weak second premise makes no claim unsupported."""
    assert chosen([(answer("a"), [0.9])]) == {}


@pytest.mark.parametrize(
    ("row", "best"),
    [
        (answer("no chunks", topic="fees", chunks=()), [0.1]),
        (answer("no claims", topic="fees", tokens=tokens_of((" 45", -9.0))), []),
    ],
)
def test_an_answer_without_chunks_or_claims_is_never_chosen(row, best):
    """There is nothing to sample from, or nothing to compare with the samples."""
    assert chosen([(row, best)], topics=("fees",), random_share=1.0) == {}


def test_without_a_scored_claim_only_topic_and_guesses_count():
    """NaN scores are neither near nor unsupported, and such an answer is not drawn at random."""
    rows = [(answer("unscored"), [None]), (answer("topic", topic="fees"), [None])]

    assert chosen(rows, topics=("fees",), random_share=1.0) == {"topic": ["topic"]}


def test_an_answer_of_code_alone_is_not_chosen():
    """Samples can say nothing of claims that no judge may see."""
    found = case([(answer("a", topic="fees"), [None])])
    claims = found.claims.set_column(8, CLAIMS.field("unjudgeable"), pa.array(["code"]))
    config = TriageConfig(topics=("fees",), **CALM)

    assert triage.high_risk(found.log, claims, found.scores, entailment=0.5, config=config).num_rows == 0


def test_the_random_share_is_drawn_by_the_id():
    """About the share asked for, only of those without a reason, and the same ones each time."""
    rows = [(answer(f"r{k}"), [0.99]) for k in range(400)]
    drawn = chosen(rows, random_share=0.2)

    assert 50 < len(drawn) < 110
    assert set(map(tuple, drawn.values())) == {("random",)}
    assert drawn == chosen(rows[::-1], random_share=0.2)
    assert drawn.keys() < chosen(rows, random_share=0.4).keys()


def test_the_two_shares_are_drawn_apart():
    """Of the answers that are drawn as random, a cap of the same size keeps about that share and not all of them."""
    rows = [(answer(f"r{k}"), [0.99]) for k in range(1_000)]

    drawn = chosen(rows, random_share=0.5, max_share=0.5)

    assert 200 < len(drawn) < 300
    assert drawn.keys() < chosen(rows, random_share=0.5).keys()


def test_the_answers_come_by_their_ids():
    """No cap reads an order of risk any more, so that there is none."""
    rows = [(answer(name), best) for name, best in (("b", [0.1]), ("c", [0.1, 0.1]), ("a", [0.45, 0.99]))]

    assert list(chosen(rows)) == ["a", "b", "c"]


def test_a_share_of_the_answers_with_a_reason_is_drawn_by_the_id():
    """About the share asked for, the same ones each time and more of them for more; a topic is never left to the draw."""
    rows = [(answer(f"r{k}", topic="fees" if k < 20 else None), [0.1]) for k in range(420)]
    drawn = chosen(rows, topics=("fees",), max_share=0.2)

    assert {f"r{k}" for k in range(20)} < drawn.keys()
    assert 50 < len(drawn) - 20 < 110
    assert drawn.keys() < chosen(rows, topics=("fees",), max_share=0.4).keys()
    assert len(chosen(rows, topics=("fees",), max_share=0.0)) == 20


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1, width=32), max_size=3), max_size=12),
    st.floats(0, 1),
    st.randoms(use_true_random=False),
)
def test_the_choice_depends_on_no_other_row(bests, share, shuffle):
    """Any order of the log gives the same table, and each row alone the same choice."""
    rows = [(answer(f"r{k}", topic="fees" if k % 3 == 0 else None), best) for k, best in enumerate(bests)]
    options = {"topics": ("fees",), "max_share": share, "random_share": 0.5}
    expected = chosen(rows, **options)
    alone = [chosen([row], **options) for row in rows]
    shuffle.shuffle(rows)

    assert list(chosen(rows, **options).items()) == list(expected.items())
    assert {request_id: reasons for one in alone for request_id, reasons in one.items()} == expected


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (None, None),
        ([], 0),
        (tokens_of(("It", -9.0), (" costs", -9.0), (" 45", -3.0)), 1),
        (tokens_of(("It", -9.0), (" costs", -9.0), (" 45", -2.0)), 0),
        (tokens_of(("Then", -9.0), (" came", -0.1), (" Ing", -0.1), ("rid", -5.0)), 1),
        (tokens_of(("ĠIngrid", -9.0), ("Ġcame", -9.0), (".", -9.0), ("ĠPaul", -9.0)), 0),
        (tokens_of(("▁with", -9.0), ("▁Paul", -9.0)), 1),
        (tokens_of(("So", -0.1), (" I", -9.0), (" went", -9.0)), 0),
        (tokens_of((None, -9.0), (" 4", None), (" 5", float("nan"))), 0),
        ([None], 0),
    ],
)
def test_low_probability_tokens_are_those_of_numbers_and_names(tokens, expected):
    """Digits anywhere, and capitalised words that begin no sentence, piece by piece; null without tokens."""
    log = pa.Table.from_pylist([answer("a", tokens=tokens)], LOG)
    counts = triage.low_probability_tokens(log, -2.3)

    assert (counts.type, counts.to_pylist()) == (pa.int32(), [expected])


def test_an_empty_shard_gives_an_empty_choice():
    """The schema stands without rows."""
    assert chosen([]) == {}
