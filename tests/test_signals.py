"""What texts alone say beside claims: the same whether claims share their answer's evidence or each has a copy."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import citations, rules, signals
from claimscore.jobs.records import CLAIMS, LOG

TEXTS = (
    "The Zurich office opened in 1998 with 40 people.",
    "Geneva opened in 2004. It has 12 people and pays 20 euro.",
    "Rooms cost 20 euro. Breakfast in Geneva costs 5 euro.",
    "the club has no fee\n\nAcme pays 40 euro",
    "Zurich",
    "",
)
QUESTIONS = (None, "Who paid 12 euro in Zurich?", "")


def a_log(answers: list[tuple[list[str], str | None]]) -> pa.Table:
    """Answers r0, r1 ... of (chunk texts, question)."""
    rows = [
        {
            "request_id": f"r{k}",
            "question": question,
            "chunks": [{"id": f"c{i}", "text": text, "score": None} for i, text in enumerate(texts)],
            "flags": [],
        }
        for k, (texts, question) in enumerate(answers)
    ]
    return pa.Table.from_pylist(rows, schema=LOG)


def some_claims(claims: list[tuple[int, str, list[str]]]) -> pa.Table:
    """(answer, text, quotes) as claims."""
    rows = [
        {
            "request_id": f"r{answer}",
            "claim_index": k,
            "sentence_index": k,
            "start": 0,
            "end": 0,
            "text": text,
            "source": "atomic",
            "decompose_outcome": "atomic",
            "unjudgeable": None,
            "cited_ids": [],
            "fabricated_marks": [],
            "quotes": quotes,
        }
        for k, (answer, text, quotes) in enumerate(claims)
    ]
    return pa.Table.from_pylist(rows, schema=CLAIMS)


_answers = st.lists(
    st.tuples(st.lists(st.sampled_from(TEXTS), max_size=4), st.sampled_from(QUESTIONS)),
    min_size=1,
    max_size=3,
)
_texts = st.sampled_from(
    [
        *TEXTS,
        "Geneva opened in 1998.",
        "Zurich has 12 people.",
        "Acme pays 20 euro.",
        "Rooms cost 7 euro in 1998.",
    ]
)
_quotes = st.lists(st.sampled_from(["opened in 2004. It has", "costs 9 euro a night"]), max_size=2)


@settings(max_examples=150, deadline=None)
@given(_answers, st.lists(st.tuples(st.integers(0, 9), _texts, _quotes), max_size=6))
def test_shared_evidence_says_what_copies_say(answers, claims):
    """Every column equals that of one copy of the evidence a claim."""
    claims = sorted((k % len(answers), text, quotes) for k, text, quotes in claims)

    found = signals.novelty(a_log(answers), some_claims(claims))

    texts = pa.array([text for _, text, _ in claims], pa.string())
    lists = [answers[k][0] for k, _, _ in claims]
    everything = pa.array(["\n".join(chunk_texts) for chunk_texts in lists], pa.string())
    questions = pa.array([answers[k][1] for k, _, _ in claims], pa.string())
    quotes = pa.array([quotes for _, _, quotes in claims], pa.list_(pa.string()))
    chunks = pa.array(lists, pa.list_(pa.string()))
    alone = [
        rules.bound_elsewhere(texts.slice(k, 1), chunks.slice(k, 1))[0].as_py() for k in range(len(claims))
    ]
    assert found.to_pydict() == {
        "missing_values": rules.missing_values(texts, everything, questions).to_pylist(),
        "missing_names": rules.missing_names(texts, everything).to_pylist(),
        "conflated": alone,
        "quotes_found": citations.quotes_found(quotes, chunks).to_pylist(),
    }


def test_evidence_is_not_copied_for_each_claim(monkeypatch):
    """200 claims, half of them quoting, over 200 KB of chunks stay below 8 MB; a copy each is 40 MB."""
    chunk = "The pool in Geneva costs 5 euro a day. " * 100
    log = a_log([([f"Chunk {k}. {chunk}" for k in range(50)], None)])
    quote = "The pool in Geneva costs 5 euro"
    claims = some_claims([(0, f"Room {k} costs {k} euro.", [quote] * (k % 2)) for k in range(200)])
    monkeypatch.setattr(signals, "QUOTED_BYTES", 1_000_000)
    pool, old = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        signals.novelty(log, claims)
    finally:
        pa.set_memory_pool(old)

    assert 200_000 < pool.max_memory() < 8_000_000


def test_what_is_too_much_to_search_is_no_conflation(monkeypatch):
    """Above the limit of sentences a claim is not called conflated; below it, it is."""
    log = a_log([(["Zurich opened in 1998. Rooms are small. Geneva opened in 2004."], None)])
    claims = some_claims([(0, "Zurich opened in 2004.", [])])
    flags = []
    for limit in (4, 3):
        monkeypatch.setattr(rules, "MAX_SENTENCES", limit)
        flags += signals.novelty(log, claims).column("conflated").to_pylist()

    assert flags == [True, False]


def test_conflation_is_looked_for_in_the_own_answer():
    """One claim, bound together by the chunk of its own answer and torn apart by that of another, in either order."""
    bound, torn = "Zurich opened in 2004.", "Zurich opened in 1998. Rooms are small. Geneva opened in 2004."

    found = signals.novelty(
        a_log([([bound], None), ([torn], None)]), some_claims([(k, bound, []) for k in (0, 1, 0)])
    )

    assert found.column("conflated").to_pylist() == [False, True, False]


def test_novelty_is_looked_for_where_it_is_asked_for():
    """What is not asked for is null, and what is has the same values; quotations are looked for in any case."""
    log = a_log([(list(TEXTS), None)])
    quote = ["opened in 2004. It has"]
    claims = some_claims(
        [(0, text, quote) for text in ("Zurich opened in 2004.", "The Bern office opened.", "Zurich.")]
    )

    everything = signals.novelty(log, claims).to_pydict()
    some = signals.novelty(log, claims, of=pa.array([True, False, True])).to_pydict()

    assert everything["conflated"] == [True, False, False]
    assert everything["missing_names"] == [[], ["Bern"], []]
    assert some == {
        name: values if name == "quotes_found" else [values[0], None, values[2]]
        for name, values in everything.items()
    }
