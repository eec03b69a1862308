"""Verdict rules on hand-made scores: what supports, vetoes, contradicts, conflicts, and what stays unscored."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import pair_rules
from claimscore.jobs.config import Combiner, VerdictsConfig
from claimscore.jobs.records import CLAIMS, LOG, SCORES
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.verdicts import decide

THRESHOLDS = Thresholds(entailment=0.8, contradiction=0.9)
STRINGS = pa.list_(pa.string())


def a_pair(
    chunk: int, e: float | None, c: float = 0.0, *, cited: bool = False, also: int | None = None, **more: Any
) -> dict:
    """One scored pair of claim 0, over chunk `chunk` (and `also`)."""
    premise = [{"chunk_index": k, "start": 0, "end": 4} for k in (chunk, also) if k is not None]
    probs = {
        "p_entailment": e,
        "p_neutral": None if e is None else 1 - e - c,
        "p_contradiction": None if e is None else c,
    }
    row = {"request_id": "r", "claim_index": 0, "premise": premise, "sample_index": None, "is_cited": cited}
    row |= {"overlap": 0.9, "n_tokens": 9, "rival": None, "p_rival": None, "error": None}
    return row | probs | more


def a_claim(cited: tuple[str, ...] = (), fabricated: tuple[str, ...] = (), **more: Any) -> dict:
    """Claim 0 of answer r."""
    row = {"request_id": "r", "claim_index": 0, "sentence_index": 0, "start": 0, "end": 4, "text": "It is 5."}
    row |= {"source": "atomic", "decompose_outcome": "atomic", "unjudgeable": None, "quotes": []}
    return row | {"cited_ids": list(cited), "fabricated_marks": list(fabricated)} | more


def lacking_of(
    values: list[list[str] | None], names: list[list[str] | None], astray: list[bool | None] | None = None
) -> pa.Table:
    """What the premise of each pair lacks, and which are about another thing."""
    return pa.table(
        {
            "missing_values": pa.array(values, STRINGS),
            "missing_names": pa.array(names, STRINGS),
            "of_another": pa.array(astray or [False] * len(values), pa.bool_()),
        }
    )


def judge(
    pairs: list[dict],
    claim: dict | None = None,
    *,
    missing: list[list[str] | None] | None = None,
    names: list[list[str] | None] | None = None,
    astray: list[bool | None] | None = None,
    novelty: dict | None = None,
    agreement: list[dict] | None = None,
    thresholds: Thresholds = THRESHOLDS,
    replies: pa.Table | None = None,
    **config: Any,
) -> dict:
    """The verdict on claim 0."""
    chunks = [{"id": f"c{k}", "text": f"text{k} and more", "score": None} for k in range(9)]
    log = pa.Table.from_pylist([{"request_id": "r", "chunks": chunks, "flags": []}], schema=LOG)
    novel = {"missing_values": [], "missing_names": [], "conflated": False, "quotes_found": None} | (
        novelty or {}
    )
    kinds = {
        "missing_values": STRINGS,
        "missing_names": STRINGS,
        "conflated": pa.bool_(),
        "quotes_found": pa.bool_(),
    }
    agreed = {
        "request_id": pa.string(),
        "claim_index": pa.int32(),
        "consistency": pa.float32(),
        "n_samples_usable": pa.int32(),
    }
    scores = pa.Table.from_pylist(pairs, schema=SCORES)
    lacking = lacking_of(missing or [None] * len(pairs), names or [None] * len(pairs), astray)
    table = decide(
        pa.Table.from_pylist([claim or a_claim()], schema=CLAIMS),
        pair_rules.outcomes(scores, lacking, thresholds=thresholds, config=VerdictsConfig(**config)),
        novelty=pa.Table.from_pylist([novel], schema=pa.schema(list(kinds.items()))),
        agreement=pa.Table.from_pylist(agreement or [], schema=pa.schema(list(agreed.items()))),
        log=log,
        config=VerdictsConfig(**config),
        replies=replies,
    )
    (row,) = table.to_pylist()
    return row


COMBINED = Thresholds(
    entailment=0.5,
    contradiction=0.9,
    combiner=Combiner(intercept=-3.0, entailment=1.0, contradiction=-0.5, overlap=4.0),
    least=0.3,
)


def test_the_combiner_is_the_logistic_of_its_weights():
    """Log odds of both probabilities and the shared words, weighed by the card, are what the threshold is for."""
    row = judge([a_pair(0, 0.6, 0.2, overlap=0.5)], thresholds=COMBINED)

    logit = -3.0 + math.log(0.6 / 0.4) - 0.5 * math.log(0.2 / 0.8) + 4.0 * 0.5
    assert row["support"] == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-6)
    assert row["verdict"] == "supported"


@pytest.mark.parametrize(
    ("pair", "verdict"),
    [
        ({"overlap": 1.0}, "supported"),
        ({"overlap": 0.1}, "unsupported"),
        ({"overlap": None}, "unsupported"),
        ({"overlap": 1.0, "rival": "6", "p_rival": 0.99}, "unsupported"),
    ],
)
def test_the_combiner_weighs_shared_words_and_lifts_no_veto(pair, verdict):
    """The same probabilities support where the premise holds the claim's words, and never where a rival is surer."""
    assert judge([a_pair(0, 0.6, 0.1, **pair)], thresholds=COMBINED)["verdict"] == verdict


def test_the_combiner_lifts_no_missing_value():
    """A premise that lacks the claim's number does not support it, however the words agree."""
    row = judge([a_pair(0, 0.99, overlap=1.0)], missing=[["5"]], thresholds=COMBINED)

    assert (row["verdict"], row["decided_by"]) == ("unsupported", "number_veto")


def test_no_combiner_counts_what_was_not_tried_with_rivals():
    """Below `least` no rival values were tried, so words alone never make such a pair support."""
    eager = dataclasses.replace(COMBINED, combiner=Combiner(intercept=9.0, entailment=1.0))

    assert judge([a_pair(0, 0.29, overlap=1.0)], thresholds=eager)["verdict"] == "unsupported"
    assert judge([a_pair(0, 0.31, overlap=1.0)], thresholds=eager)["verdict"] == "supported"


def test_the_combiner_weighs_missing_names():
    """Each name that the premise lacks counts against it, up to three; what was not looked for counts nothing."""
    wary = dataclasses.replace(COMBINED, combiner=Combiner(intercept=0.0, entailment=1.0, names=-0.5))
    logits = [
        math.log(row["support"] / (1 - row["support"]))
        for names in (None, [], ["A"], ["A", "B", "C"], ["A", "B", "C", "D"])
        for row in [judge([a_pair(0, 0.9)], names=[names], thresholds=wary)]
    ]

    assert [round(logits[0] - logit, 3) for logit in logits] == [0, 0, 0.5, 1.5, 1.5]


def test_a_passage_without_the_claims_names_contradicts_nothing():
    """What is said of another subject is no contradiction, however sure the judge is."""
    rows = [judge([a_pair(0, 0.01, 0.98)], names=[names]) for names in ([], ["Ledger"])]

    assert [row["verdict"] for row in rows] == ["contradicted", "unsupported"]


def test_without_a_combiner_support_is_the_probability():
    """A card without a combiner compares P(entailment) itself."""
    row = judge([a_pair(0, 0.9)])

    assert row["support"] == row["p_entailment"]


def test_one_entailing_premise_supports():
    """The threshold is met at equality, and the entailing chunk is the evidence."""
    row = judge([a_pair(0, 0.1), a_pair(1, 0.8)])

    assert (
        row["verdict"],
        row["decided_by"],
        row["evidence_chunk_id"],
        row["evidence_quote"],
    ) == ("supported", "nli", "c1", "text")


def test_a_cited_chunk_decides_before_a_surer_one():
    """Where cited and uncited chunks both entail, the cited one is the evidence and the citation is ok."""
    row = judge([a_pair(0, 0.99), a_pair(1, 0.85, cited=True)], a_claim(("c1",)))

    assert (row["decided_by"], row["citation_state"], row["evidence_chunk_id"]) == ("nli_cited", "ok", "c1")


def test_another_chunk_than_the_cited_one_is_a_miscitation():
    """The claim is supported, and its citation is named wrong."""
    row = judge([a_pair(0, 0.99), a_pair(1, 0.2, cited=True)], a_claim(("c1",)))

    assert (
        row["verdict"],
        row["citation_state"],
        row["hallucination_type"],
    ) == ("supported", "miscited", "miscitation")


def test_joined_windows_support_last():
    """A single window comes before joined ones; joined ones alone decide as nli_joined."""
    alone, both = (
        judge([a_pair(0, 0.1), a_pair(0, 0.95, also=1)]),
        judge([a_pair(0, 0.85), a_pair(0, 0.95, also=1)]),
    )

    assert (alone["decided_by"], both["decided_by"]) == ("nli_joined", "nli")
    assert alone["evidence_quote"] == "text […] text"


def test_a_surer_rival_takes_the_support_away():
    """The premise entails the claim, and far more surely the claim with another of its values: wrongly bound."""
    row = judge([a_pair(0, 0.85, rival="one week", p_rival=0.99)])

    assert (row["verdict"], row["decided_by"], row["hallucination_type"], row["rival"]) == (
        "unsupported",
        "rival_value",
        "conflation",
        "one week",
    )


@pytest.mark.parametrize(("e", "p_rival"), [(0.85, 0.95), (0.98, 0.99), (0.9, 0.2)])
def test_a_rival_that_is_hardly_surer_changes_nothing(e, p_rival):
    """Two values may both be true of a thing; the margin is in log-odds."""
    row = judge([a_pair(0, e, rival="one week", p_rival=p_rival)])

    assert (row["verdict"], row["rival"]) == ("supported", None)


def test_another_premise_supports_in_spite_of_a_rival():
    """Adding a premise with a rival never takes away what another premise supports."""
    row = judge([a_pair(0, 0.85, rival="one week", p_rival=0.99), a_pair(1, 0.82)])

    assert (row["verdict"], row["evidence_chunk_id"], row["rival"]) == ("supported", "c1", None)


def test_a_value_missing_from_the_entailing_premise_is_vetoed():
    """The judge says entailed, the number is not there: not supported, whatever the model says."""
    row = judge([a_pair(0, 0.99)], missing=[["5"]])

    assert (row["verdict"], row["decided_by"], row["missing_values"]) == ("unsupported", "number_veto", ["5"])


def test_a_veto_holds_for_its_premise_alone():
    """Another premise that entails and holds the number supports."""
    row = judge([a_pair(0, 0.99), a_pair(1, 0.9)], missing=[["5"], []])

    assert (row["verdict"], row["evidence_chunk_id"]) == ("supported", "c1")


def test_the_veto_can_be_switched_off():
    """number_veto = false leaves the verdict to the judge."""
    assert judge([a_pair(0, 0.99)], missing=[["5"]], number_veto=False)["verdict"] == "supported"


def test_a_premise_about_another_thing_is_vetoed():
    """The judge says entailed, of a passage that is about something else: not supported, and a conflation."""
    row = judge([a_pair(0, 0.99)], astray=[True])

    found = row["verdict"], row["decided_by"], row["hallucination_type"], row["evidence_chunk_id"]
    assert found == ("unsupported", "subject_veto", "conflation", "c0")


def test_a_subject_veto_holds_for_its_premise_alone():
    """Another premise supports; switched off, the judge's word stands."""
    supported = judge([a_pair(0, 0.99), a_pair(1, 0.9)], astray=[True, False])
    off = judge([a_pair(0, 0.99)], astray=[True], subject_veto=False)

    assert (supported["verdict"], supported["evidence_chunk_id"]) == ("supported", "c1")
    assert (off["verdict"], off["decided_by"]) == ("supported", "nli")


def test_a_contradiction_needs_the_same_subject():
    """A contradicting premise with little of the claim's words does not contradict."""
    close, far = judge([a_pair(0, 0.0, 0.95)]), judge([a_pair(0, 0.0, 0.95, overlap=0.1)])

    assert (close["verdict"], close["hallucination_type"]) == ("contradicted", "intrinsic")
    assert (far["verdict"], far["hallucination_type"]) == ("unsupported", "extrinsic")


@pytest.mark.parametrize(
    ("policy", "verdict", "rule"),
    [
        ("supported", "supported", "nli"),
        ("contradicted", "contradicted", "conflict_policy"),
        ("unscored", "unscored", "conflict_policy"),
    ],
)
def test_a_conflict_is_flagged_and_the_policy_decides(policy: str, verdict: str, rule: str):
    """One chunk entails and another contradicts: both spans are shown, and config says what it counts as."""
    row = judge([a_pair(0, 0.9), a_pair(1, 0.0, 0.97)], conflict=policy)

    assert (True, verdict, rule) == (row["conflict"], row["verdict"], row["decided_by"])
    assert row["contradicting_chunk_id"] == "c1"


def test_a_conflict_needs_nearly_the_claims_words_in_another_chunk():
    """A contradiction with half of the claim's words, or in the chunk that supports, is no conflict."""
    loose = judge([a_pair(0, 0.9), a_pair(1, 0.0, 0.97, overlap=0.5)])
    same = judge([a_pair(0, 0.9), a_pair(0, 0.0, 0.97)])
    behind = judge([a_pair(0, 0.9), a_pair(0, 0.0, 0.99), a_pair(1, 0.0, 0.97)])

    assert [row["conflict"] for row in (loose, same, behind)] == [False, False, True]
    assert [row["contradicting_chunk_id"] for row in (loose, same, behind)] == [None, None, "c1"]


@pytest.mark.parametrize(("against", "conflict"), [(0, False), (2, False), (1, True)])
def test_a_chunk_is_in_no_conflict_with_what_it_supports_beside_others(against: int, conflict: bool):
    """Any chunk of a joined premise, not the first alone; a chunk outside of it is."""
    row = judge([a_pair(0, 0.9, also=2), a_pair(against, 0.0, 0.95)])

    assert (row["conflict"], row["contradicting_chunk_id"]) == (conflict, f"c{against}" if conflict else None)


def test_what_could_not_be_judged_is_unscored():
    """A claim with a failed pair and no support is unscored, even beside a judged neutral one."""
    nan = a_pair(1, None, error="nan")
    row = judge([a_pair(0, 0.1), nan])

    assert (row["verdict"], row["reason"], row["decided_by"]) == ("unscored", "nan", "unjudged")
    assert judge([a_pair(0, 0.95), nan])["verdict"] == "supported"


def test_a_claim_without_pairs_carries_its_reason():
    """No premise at all: the reason of the score row is the reason of the verdict."""
    row = judge([a_pair(0, None, premise=[], error="claim_too_long")])

    assert (row["verdict"], row["reason"], row["citation_state"]) == ("unscored", "claim_too_long", None)


@pytest.mark.parametrize(
    ("claim", "pairs", "novelty", "state"),
    [
        (a_claim(fabricated=("[7]",)), [a_pair(0, 0.9)], {}, "fabricated"),
        (a_claim(), [a_pair(0, 0.9)], {}, "missing"),
        (a_claim(("c0",)), [a_pair(0, 0.2, cited=True)], {}, "unsupported"),
        (a_claim(("c0",)), [a_pair(0, 0.9, cited=True)], {"quotes_found": False}, "quote_not_found"),
        (a_claim(("c0",)), [a_pair(0, 0.9, cited=True)], {"quotes_found": True}, "ok"),
    ],
)
def test_citation_states(claim: dict, pairs: list[dict], novelty: dict, state: str):
    """Each state of a citation from the least that makes it."""
    assert judge(pairs, claim, novelty=novelty)["citation_state"] == state


@pytest.mark.parametrize(
    ("novelty", "kind"),
    [
        ({}, "extrinsic"),
        ({"missing_values": ["5"]}, "confabulation"),
        ({"missing_names": ["Bern"]}, "confabulation"),
        ({"conflated": True}, "conflation"),
    ],
)
def test_types_of_unsupported_claims(novelty: dict, kind: str):
    """Invented values and names, wrong binding, and the rest are told apart."""
    assert judge([a_pair(0, 0.1)], novelty=novelty)["hallucination_type"] == kind


@pytest.mark.parametrize(
    ("first", "second", "shown"), [(0.04, 0.01, "c1"), (0.3, 0.01, "c0"), (0.3, 0.2, "c0")]
)
def test_a_reader_is_shown_what_comes_nearest(first: float, second: float, shown: str):
    """Where no premise comes near, the one that shares most with the claim: 0.04 is no nearer than 0.01."""
    row = judge([a_pair(0, first, overlap=0.2), a_pair(1, second, overlap=0.7)])

    assert (row["verdict"], row["evidence_chunk_id"]) == ("unsupported", shown)


def test_samples_never_support():
    """Samples that all agree flag nothing and change no verdict; disagreement flags low consistency."""
    agreed = {"request_id": "r", "claim_index": 0, "n_samples_usable": 3}
    high = judge([a_pair(0, 0.1)], agreement=[agreed | {"consistency": 1.0}])
    low = judge([a_pair(0, 0.9)], agreement=[agreed | {"consistency": 0.33}])

    assert (high["verdict"], high["low_consistency"]) == ("unsupported", False)
    assert (low["verdict"], low["low_consistency"]) == ("supported", True)


_probs = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda p: p[0] + p[1] <= 1)
_pairs = st.lists(
    st.builds(
        lambda k, p, cited: a_pair(k, p[0], p[1], cited=cited), st.integers(0, 5), _probs, st.booleans()
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=50, deadline=None)
@given(_pairs, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(pairs: list[dict], random):
    """A verdict is the same whatever order its pairs come in."""
    shuffled = list(pairs)
    random.shuffle(shuffled)

    first, second = judge(pairs), judge(shuffled)

    assert (first["verdict"], first["decided_by"], first["conflict"]) == (
        second["verdict"],
        second["decided_by"],
        second["conflict"],
    )


@settings(max_examples=50, deadline=None)
@given(_pairs, st.lists(_probs, min_size=1, max_size=5))
def test_more_chunks_never_take_support_away(pairs: list[dict], more: list[tuple[float, float]]):
    """Under the default policy a supported claim stays supported, whatever chunks are added."""
    before = judge(pairs)

    after = judge(pairs + [a_pair(6, e, c) for e, c in more])

    assert before["verdict"] != "supported" or after["verdict"] == "supported"


def test_no_claims_give_an_empty_table():
    """An empty shard keeps the schema."""
    empty = {
        "missing_values": STRINGS,
        "missing_names": STRINGS,
        "conflated": pa.bool_(),
        "quotes_found": pa.bool_(),
    }
    agreed = {
        "request_id": pa.string(),
        "claim_index": pa.int32(),
        "consistency": pa.float32(),
        "n_samples_usable": pa.int32(),
    }
    table = decide(
        CLAIMS.empty_table(),
        pair_rules.outcomes(
            SCORES.empty_table(), lacking_of([], []), thresholds=THRESHOLDS, config=VerdictsConfig()
        ),
        novelty=pa.schema(list(empty.items())).empty_table(),
        agreement=pa.schema(list(agreed.items())).empty_table(),
        log=LOG.empty_table(),
        config=VerdictsConfig(),
    )

    assert (table.num_rows, pl.from_arrow(table).columns[6]) == (0, "verdict")


def test_a_combiner_that_gives_no_number_supports_nothing():
    """Weights beyond all bounds make infinities and NaN, which compare as true; they are no support."""
    wild = dataclasses.replace(
        COMBINED, combiner=Combiner(intercept=1e308, entailment=1e308, contradiction=1e308, overlap=1e308)
    )

    assert judge([a_pair(0, 0.9, 0.05)], thresholds=wild)["verdict"] == "unsupported"


def settled(pairs: list[dict], missing: list[list[str] | None]) -> list[bool]:
    """pair_rules.settled of claim 0."""
    outcomes = pair_rules.outcomes(
        pa.Table.from_pylist(pairs, schema=SCORES),
        lacking_of(missing, [None] * len(pairs)),
        thresholds=THRESHOLDS,
        config=VerdictsConfig(),
    )
    return pair_rules.settled(pa.Table.from_pylist([a_claim()], schema=CLAIMS), outcomes).to_pylist()


@pytest.mark.parametrize(
    ("pairs", "missing", "expected"),
    [
        ([a_pair(0, 0.95)], [[]], True),
        ([a_pair(0, 0.95), a_pair(1, 0.1)], [[], None], True),
        ([a_pair(0, 0.1)], [None], False),
        ([a_pair(0, 0.95)], [["5"]], False),
        ([a_pair(0, 0.95), a_pair(1, 0.01, 0.97)], [[], None], False),
        ([], [], False),
    ],
    ids=["supported", "beside another", "unsupported", "vetoed", "in conflict", "without pairs"],
)
def test_a_settled_claim_is_supported_whatever_the_policy_of_conflicts(pairs, missing, expected):
    """Only where a pair supports and none contradicts can nothing that names a failure matter."""
    assert settled(pairs, missing) == [expected]
