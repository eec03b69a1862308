"""Windows and pairs: whole sentences, uncut claims, the best of cited and of other chunks, equal pairs judged once."""

from __future__ import annotations

import tracemalloc

import evidence_fixture as fixture
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import evidence, overlaps, pairs, premises
from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.errors import ModelError
from claimscore.jobs.overlaps import Forms
from claimscore.jobs.premises import MAX_CELLS
from claimscore.jobs.records import SPAN
from claimscore.jobs.windows import Encode, Pieces

JUDGE, spans, pair_up = fixture.JUDGE, fixture.spans, fixture.pair_up
a_log, some_claims = fixture.a_log, fixture.some_claims


WORDS, _windows = fixture.WORDS, fixture.windows


def test_windows_are_whole_sentences_with_overlap():
    """Windows of two sentences with one of overlap slice the chunk at its sentences."""
    text = "One is here. Two is there. Three is gone. Four is back."

    found = pair_up(
        a_log([text]),
        some_claims(("r0", "Two", [])),
        window_sentences=2,
        overlap_sentences=1,
        window_overlap=0,
    )

    assert evidence.premise_texts(found.pairs, a_log([text])).to_pylist() == [
        "One is here. Two is there.",
        "Two is there. Three is gone.",
        "Three is gone. Four is back.",
        "Two is there.",  # the cover
    ]


def test_an_endless_sentence_is_cut_in_tokens_and_nothing_is_lost():
    """A sentence above the limit becomes overlapping windows that hold all of its words."""
    words = [f"w{k}" for k in range(300)]

    found, *_ = pair_up(
        a_log([" ".join(words)]),
        some_claims(("r0", "w299", [])),
        max_pair_tokens=80,
        max_windows=99,
        window_overlap=0,
    )

    assert max(found.column("n_tokens").to_pylist()) <= 80
    seen = {i for ids in found.column("premise_ids").to_pylist() for i in ids}
    assert len(seen) == len(words)


def test_a_claim_is_never_cut():
    """Every pair holds all tokens of its claim; a claim that leaves no room is named, not cut."""
    claim = " ".join(f"w{k}" for k in range(120))

    found, _, unpaired = pair_up(
        a_log(["Short one."]), some_claims(("r0", claim, []), ("r0", "Fine.", [])), max_pair_tokens=150
    )

    assert {1} == set(found.column("claim_index").to_pylist())
    assert list(zip(*(unpaired.column(c).to_pylist() for c in ("claim_index", "error")), strict=True)) == [
        (0, "claim_too_long")
    ]


@pytest.mark.parametrize("chunks", [[], [""], ["  \n "]])
def test_without_evidence_there_is_no_pair(chunks: list[str]):
    """No chunks, or only blank ones, give `no_context` and no premise."""
    found, _, unpaired = pair_up(a_log(chunks), some_claims(("r0", "Anything.", [])))

    assert (found.num_rows, unpaired.column("error").to_pylist()) == (0, ["no_context"])


def test_cited_chunks_and_the_others_have_windows_of_their_own():
    """A cited chunk that shares little loses no window to others that share much, nor they to it."""
    filler = " ".join(f"Filler of gate number {k}." for k in range(30))

    found, *_ = pair_up(
        a_log([filler, filler + " The gate opens at noon. The gate opens late."]),
        some_claims(("r0", "The gate opens at noon.", ["c0"])),
        max_windows=2,
        window_sentences=1,
        overlap_sentences=0,
        window_overlap=0,
    )

    assert found["is_cited"].to_pylist()[:4] == [
        True,
        True,
        False,
        False,
    ]  # windows; covers stand behind them
    assert max(found["overlap"].to_pylist()) == 1.0


@pytest.mark.parametrize(("least", "expected"), [(0.0, 3), (0.5, 2), (0.9, 1), (1.0, 1)])
def test_windows_that_share_little_are_not_judged(least: float, expected: int):
    """The best window is judged whatever it shares, others from `window_overlap` on."""
    log = a_log(["The gate opens at noon they say", "The gate opens late", "A gate is a door"])

    found, *_ = pair_up(log, some_claims(("r0", "The gate opens at noon today", [])), window_overlap=least)

    assert found.num_rows == expected


def test_equal_pairs_are_judged_once():
    """The same chunk and claim in two answers cost one pair, and both get its probabilities."""
    log = a_log(["The gate opens at noon."], ["The gate opens at noon."])
    found, *_ = pair_up(log, some_claims(("r0", "The gate opens.", []), ("r1", "The gate opens.", [])))
    judge = type(JUDGE)()

    scores, probs = pairs.judge_pairs(found, judge.probabilities)

    assert (judge.n_pairs, scores.num_rows) == (1, 2)
    assert probs[0].tolist() == probs[1].tolist()


def test_nan_is_an_error_and_never_a_label():
    """Probabilities that are not finite become nulls with the error `nan`."""
    found, *_ = pair_up(a_log(["A b."]), some_claims(("r0", "A b.", [])))

    scores, _ = pairs.judge_pairs(found, lambda p, _: np.full((len(p), 3), np.nan, dtype=np.float32))

    assert scores.column("error").to_pylist() == ["nan"]
    assert scores.column("p_neutral").to_pylist() == [None]


def test_a_probability_outside_0_to_1_is_refused():
    """A judge that gives 1.5 is an error of the program, not a very sure judge."""
    found, *_ = pair_up(a_log(["A b."]), some_claims(("r0", "A b.", [])))

    with pytest.raises(ModelError, match=r"within 0\.\.1"):
        pairs.judge_pairs(found, lambda p, _: np.full((len(p), 3), 1.5, dtype=np.float32))


@settings(max_examples=60, deadline=None)
@given(st.lists(_windows, min_size=1, max_size=8), _windows)
def test_a_chunk_that_shares_less_takes_no_window(chunks: list[str], another: str):
    """Every window that was judged is judged still, where the new chunk shares no more of the claim than it."""
    claims = some_claims(("r0", " ".join(WORDS), []))
    before, *_ = pair_up(a_log(chunks), claims, max_windows=3, window_overlap=0)
    after, retries, _ = pair_up(a_log([*chunks, another]), claims, max_windows=3, window_overlap=0)

    new = len(another.split()) / len(WORDS)
    kept = [
        ids for found in (after, retries) for ids in found.column("premise_ids").to_pylist()
    ]  # of two copies either
    rows = zip(before.column("premise_ids").to_pylist(), before.column("overlap").to_pylist(), strict=True)
    assert all(ids in kept for ids, overlap in rows if overlap >= np.float32(new))


def test_many_chunks_make_no_more_pairs():
    """Forty chunks that each share some of the claim: at most the best windows, and one cover."""
    chunks = [
        f"The hotel in town {k} may let guests stay. {'Dogs pay. ' * (k % 3)}Room {k} is warm."
        for k in range(40)
    ]

    found, retries, _ = pair_up(
        a_log(chunks),
        some_claims(("r0", "The hotel may let dogs stay.", [])),
        max_windows=3,
        window_sentences=1,
        overlap_sentences=0,
    )

    assert (found.num_rows, retries.num_rows) == (4, 2)


def test_copies_of_a_chunk_take_no_place():
    """Twenty copies of one chunk leave room for two others that overlap less."""
    log = a_log([*["The hotel may let guests stay."] * 20, "The hotel is old.", "The hotel."])

    found, *_ = pair_up(
        log, some_claims(("r0", "The hotel may let dogs stay.", [])), max_windows=3, window_overlap=0
    )

    assert [p[0]["chunk_index"] for p in found.column("premise").to_pylist()] == [0, 20, 21]


@pytest.mark.parametrize("cited", ["c0", "c1"])
def test_a_copy_that_is_not_cited_takes_no_window_of_the_cited_chunk(cited: str):
    """The same windows are judged as cited whether the other copy of the chunk stands before or behind it."""
    chunk = "The gate opens at noon. Rain falls. The gate opens at nine."

    found, *_ = pair_up(
        a_log([chunk, chunk]),
        some_claims(("r0", "The gate opens at noon or nine.", [cited])),
        window_sentences=1,
        overlap_sentences=0,
    )

    windows = [
        p for p, is_cited in zip(*found.select(["premise", "is_cited"]), strict=True) if is_cited.as_py()
    ]
    assert [p.as_py()[0]["start"] for p in windows if len(p) == 1] == [0, 36]


@pytest.mark.parametrize("longest", [3, 110])
def test_claims_are_counted_some_at_a_time(longest: int):
    """Neither all of an answer's claims at once, nor each alone because one of 20,000 is long; each once, in order."""
    few, pieces = range(20_000), Pieces(np.arange(80), np.zeros(80, np.int64))
    bounds = np.array([*range(0, 60_000, 3), 59_997 + longest])
    part = evidence._Part(list(few), pieces, pieces, 160, ["c0"])

    blocks = list(evidence._blocks([part], Forms(np.zeros(bounds[-1], np.int64), bounds)))

    assert [row for block in blocks for some in block for row in some.rows] == list(few)
    assert all(sum(len(some.rows) for some in block) * 80 <= MAX_CELLS for block in blocks)
    assert len(blocks) < 50


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.lists(_windows, max_size=3), st.lists(_windows, max_size=3)), max_size=4),
    st.integers(0, 2),
    st.sampled_from([1, 9, MAX_CELLS]),
)
def test_an_answer_is_paired_as_if_it_were_alone(answers: list, cites: int, at_once: int):
    """Whatever answers and claims are counted with it."""
    log = a_log(*(chunks for chunks, _ in answers))
    claims = [(f"r{k}", claim, [f"c{cites}"]) for k, (_, said) in enumerate(answers) for claim in said]
    alone = [pair_up(log, some_claims(claim)) for claim in claims]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "MAX_CELLS", at_once)
        patch.setattr(premises, "MAX_CELLS", at_once)
        together = pair_up(log, some_claims(*claims))

    for found, *each in zip(together, *alone, strict=True):
        rows = [row for table in each for row in table.drop_columns("claim_index").to_pylist()]
        assert found.drop_columns("claim_index").to_pylist() == rows


def peak_bytes(log, claims):
    """The most memory of Python and numpy while the claims are paired up."""
    tracemalloc.start()
    try:
        pair_up(log, claims)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("n_chunks", "n_claims"),
    [
        (1_000, 3_000),
        (5_000, 5),
    ],  # a byte for each claim and chunk, no pointer; and nothing of chunks x sentences
)
def test_the_memory_of_many_claims_and_of_many_chunks(n_chunks: int, n_claims: int):
    """Neither takes more than some bytes of claims x chunks."""
    log = a_log(["gate x y"] * n_chunks)
    claims = some_claims(*[("r0", "Gate.", [])] * n_claims)

    assert peak_bytes(log, claims) < 20_000_000


@pytest.mark.parametrize("word", ["t1 " * 150, " ".join(f"t{k}" for k in range(60))])
def test_what_claims_and_sentences_share_again_and_again_takes_no_memory(word: str):
    """A sentence of one word 150 times for each of 300 claims, or of all their 60 words: a hostile chunk took 1.5 GB."""
    sentence = f"{word.strip().capitalize()}. "
    log = a_log([sentence * 300])
    claims = some_claims(*[("r0", f"{' '.join(dict.fromkeys(word.split()))} x{k}.", []) for k in range(300)])

    assert peak_bytes(log, claims) < 120_000_000


@settings(max_examples=40, deadline=None)
@given(chunks=st.lists(_windows, min_size=1, max_size=6), texts=st.lists(_windows, min_size=1, max_size=6))
def test_what_is_equal_in_parts_is_equal(chunks: list[str], texts: list[str]):
    """However few are held at a time, and though a piece's repeats are left out then."""
    log = a_log([f"{text} {text}. {text}." for text in chunks])
    claims = some_claims(*[("r0", text, []) for text in texts])
    found = []
    for most in (overlaps.MAX_EQUAL, 1, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(overlaps, "MAX_EQUAL", most)
            found.append(pair_up(log, claims))

    assert found[0].pairs.num_rows
    assert all(one.pairs == found[0].pairs and one.retries == found[0].retries for one in found)


def with_case(texts: pa.Array) -> pa.Table:
    """The stub tokenizer, but that a capital makes another token."""
    table = JUDGE.encode(texts)
    ids = [
        [i + 10_000 if text[start].isupper() else i for i, start in zip(*row, strict=True)]
        for text, *row in zip(
            texts.to_pylist(), table["ids"].to_pylist(), table["starts"].to_pylist(), strict=True
        )
    ]
    return table.set_column(0, "ids", pa.array(ids, pa.list_(pa.int32())))


def with_forms(texts: pa.Array) -> pa.Table:
    """The same with the forms of its tokens."""
    return with_case(texts).append_column("forms", JUDGE.encode(texts)["ids"])


@pytest.mark.parametrize(("encode", "best"), [(with_case, "Dear guests."), (with_forms, "Fuel is dear.")])
def test_a_word_of_another_case_is_shared(encode: Encode, best: str):
    """A sentence begins with a capital: it speaks of what the claim says in its middle."""
    log = a_log(["Dear guests.", "Fuel is dear."])

    found = evidence.evidence_pairs(
        log,
        some_claims(("r0", "Dear fuel", [])),
        encode=encode,
        sentence_spans=spans,
        config=EvidenceConfig(window_overlap=1),
    )

    assert evidence.premise_texts(found.pairs, log)[0].as_py() == best


def with_unknown(texts: pa.Array) -> pa.Table:
    """The stub tokenizer, to which words that begin with `q` are unknown: id 3."""
    table = JUDGE.encode(texts)
    ids = [
        [3 if text[start] == "q" else i for i, start in zip(*row, strict=True)]
        for text, *row in zip(
            texts.to_pylist(), table["ids"].to_pylist(), table["starts"].to_pylist(), strict=True
        )
    ]
    return table.set_column(0, "ids", pa.array(ids, pa.list_(pa.int32())))


@pytest.mark.parametrize(
    ("claim", "unk_id", "errors"),
    [
        ("qa b c d", 3, []),
        ("qa qb c d", 3, ["unknown_script"]),
        ("qa qb", 3, ["unknown_script"]),
        ("qa qb", None, []),
    ],
)
def test_a_claim_of_unknown_tokens_is_not_judged(claim: str, unk_id: int | None, errors: list[str]):
    """More than a quarter of unknown tokens: the claim is named and makes no pair; any unknown word would entail it."""
    found, _, unpaired = evidence.evidence_pairs(
        a_log(["qx qy"]),
        some_claims(("r0", claim, [])),
        encode=with_unknown,
        sentence_spans=spans,
        config=EvidenceConfig(),
        unk_id=unk_id,
    )

    assert unpaired.column("error").to_pylist() == errors
    assert found.num_rows == 1 - len(errors)


def test_samples_support_no_claim_of_unknown_tokens():
    """A claim of unknown tokens makes no pair with a sample either."""
    row = {"request_id": "r0", "sample_index": 0, "text": "qx qy.", "outcome": "ok"}
    samples = pa.table({name: pa.array([value]) for name, value in row.items()})
    options = {"encode": with_unknown, "sentence_spans": spans, "config": EvidenceConfig()}
    claims = some_claims(("r0", "qa qb", []))

    counts = [
        evidence.sample_pairs(samples, claims, unk_id=unk_id, **options).num_rows for unk_id in (3, None)
    ]

    assert counts == [0, 1]


def test_premise_texts_slice_the_chunks():
    """The text of a premise is what its spans slice, a blank line between; null without spans."""
    log = a_log(["The lab is on floor four.", "Floor four is closed."])
    claims = some_claims(("r0", "The lab is on floor four and closed.", []), ("r0", "lab " * 600, []))
    found, _, unpaired = pair_up(log, claims)
    scores, _ = pairs.judge_pairs(found, JUDGE.probabilities)

    texts = evidence.premise_texts(pa.concat_tables([scores, unpaired]), log).to_pylist()

    assert texts == [
        "The lab is on floor four.",
        "Floor four is closed.",
        "The lab is on floor four.\n\nFloor four is closed.",
        None,
    ]


def test_premises_of_samples_have_no_text():
    """Their spans are of no chunk; the rows around them keep theirs, of whichever answer."""
    log = a_log(["One.", "Two."], ["Three."])
    spans = {"r0": [(1, 0, 4), (0, 0, 3)], "r1": [(0, 1, 5)]}
    rows = [("r1", spans["r1"]), ("r0", [(-1, 0, 4)]), ("r0", spans["r0"]), ("r0", [])]
    names = [field.name for field in SPAN]
    scores = pa.table(
        {
            "request_id": [request_id for request_id, _ in rows],
            "premise": pa.array(
                [[dict(zip(names, span, strict=True)) for span in some] for _, some in rows], pa.list_(SPAN)
            ),
        }
    )

    assert evidence.premise_texts(scores, log).to_pylist() == ["hree", None, "Two.\n\nOne", None]
    assert evidence.premise_texts(scores.slice(1, 2), log).to_pylist() == [None, "Two.\n\nOne"]
    assert evidence.premise_texts(scores.slice(0, 0), log).to_pylist() == []


_words = st.lists(
    st.sampled_from(["alpha", "beta", "gamma.", "delta!", "eps\n", "漢字。", "12.5"]), max_size=60
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_words.map(" ".join), max_size=3), _words.map(" ".join))
def test_pairs_keep_to_the_limit_and_slice_their_chunk(chunks: list[str], claim: str):
    """Whatever the texts, no pair is over the limit, and every span lies in its chunk."""
    found, _, unpaired = pair_up(a_log(chunks), some_claims(("r0", claim, [])), max_pair_tokens=96)

    assert found.num_rows or unpaired.num_rows == 1
    assert all(n <= 96 for n in found.column("n_tokens").to_pylist())
    for span in found.column("premise").combine_chunks().flatten().to_pylist():
        assert 0 <= span["start"] < span["end"] <= len(chunks[span["chunk_index"]])


def test_a_sentence_that_points_back_comes_into_a_cover_with_the_one_before_it():
    """`It has four ports` of one router is no sentence about the other."""
    log = a_log(
        ["The Nimbus 4 suits large homes. It has four ports. It is grey.", "The Nimbus Mini is small."]
    )

    found, *_ = pair_up(log, some_claims(("r0", "The Nimbus Mini has four ports.", [])))

    covers = [p for p in found.column("premise").to_pylist() if len(p) > 1]
    assert [(s["chunk_index"], s["start"], s["end"]) for s in covers[0]] == [(0, 0, 50), (1, 0, 25)]
