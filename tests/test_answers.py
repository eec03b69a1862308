"""Answers from verdicts: state, rates, and the policy's first rule that holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from claimscore.jobs import referee_rules
from claimscore.jobs.answers import summarise
from claimscore.jobs.config import PolicyConfig
from claimscore.jobs.records import LOG, VERDICTS

CHUNKS = [{"id": "a", "text": "One.", "score": 0.9}, {"id": "b", "text": "Two.", "score": 0.85}]
SIGNALS = {
    "refused": pa.bool_(),
    "is_refusal_status": pa.bool_(),
    "uncarried_marks": pa.list_(pa.string()),
    "n_hedges": pa.int32(),
    "n_low_probability_tokens": pa.int32(),
    "injection_suspected": pa.bool_(),
    "high_risk_reasons": pa.list_(pa.string()),
    "n_samples": pa.int32(),
}


def a_verdict(verdict: str, kind: str | None = None, **more: Any) -> dict:
    """One claim of answer r."""
    row: dict[str, Any] = {f.name: None for f in VERDICTS}
    row |= {
        "request_id": "r",
        "claim_index": 0,
        "sentence_index": 0,
        "start": 0,
        "end": 4,
        "claim": "One.",
        "verdict": verdict,
    }
    row |= {
        "decided_by": "nli",
        "cited_ids": [],
        "fabricated_marks": [],
        "conflict": False,
        "missing_values": [],
    }
    row |= {
        "n_samples_usable": 0,
        "low_consistency": False,
        "n_pairs": 1,
        "source": "llm",
        "decompose_outcome": "ok",
    }
    return row | {"hallucination_type": kind} | more


def add_up(
    verdicts: list[dict],
    answer: str = "One. Two.",
    *,
    log: dict | None = None,
    signals: dict | None = None,
    **policy: Any,
) -> dict:
    """The answers row of r, whose claims are numbered in their order."""
    verdicts = [verdict | {"claim_index": k} for k, verdict in enumerate(verdicts)]
    row = {"request_id": "r", "answer": answer, "chunks": CHUNKS, "flags": []} | (log or {})
    signal = {
        "refused": False,
        "is_refusal_status": False,
        "uncarried_marks": [],
        "n_hedges": 0,
        "injection_suspected": False,
    }
    signal |= {"n_low_probability_tokens": None, "high_risk_reasons": [], "n_samples": 0} | (signals or {})
    table = summarise(
        pa.Table.from_pylist([row], schema=LOG),
        pa.Table.from_pylist(verdicts, schema=VERDICTS),
        pa.Table.from_pylist([signal], schema=pa.schema(list(SIGNALS.items()))),
        referee_rules.GRADES.empty_table(),
        PolicyConfig(**policy),
    )
    return table.to_pylist()[0]


def test_groundedness_is_supported_over_scored():
    """Unscored claims are in neither number."""
    row = add_up([a_verdict("supported"), a_verdict("contradicted", "intrinsic"), a_verdict("unscored")])

    assert (row["groundedness"], row["n_scored"], row["n_unscored"]) == (0.5, 2, 1)


@pytest.mark.parametrize(
    ("verdicts", "counted"),
    [
        (["supported", "supported"], "n_supported"),
        (["supported", "unscored"], "n_unscored"),
        (["unscored", "supported", "unsupported"], "n_unsupported"),
        (["supported", "unsupported", "contradicted"], "n_contradicted"),
        (["contradicted", "supported", "supported"], "n_contradicted"),
    ],
)
def test_claims_that_say_the_same_count_once_with_the_worst_of_their_verdicts(
    verdicts: list[str], counted: str
):
    """Beside another claim: two claims in all, and what was said again is told apart; no row is lost."""
    again = [a_verdict(verdict, duplicate_of=1 if k else None) for k, verdict in enumerate(verdicts)]
    names = ("n_supported", "n_contradicted", "n_unsupported", "n_unscored")

    row = add_up([a_verdict("supported"), *again])

    assert {name: row[name] for name in names} == {
        name: (name == "n_supported") + (name == counted) for name in names
    }
    assert (row["n_claims"], row["n_repeats"]) == (2, len(verdicts) - 1)
    assert row["n_scored"] == 2 - row["n_unscored"]


def test_repeating_a_supported_claim_lifts_no_rate():
    """One of two facts is wrong, however often the right one is said."""
    right = [a_verdict("supported", duplicate_of=0 if k else None) for k in range(9)]

    row = add_up([*right, a_verdict("unsupported", "extrinsic")])

    assert (row["groundedness"], row["hallucinated"], row["n_claims"]) == (0.5, True, 2)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["ok", "missing"], (1, 1, 1.0)),
        (["ok", "miscited"], (1, 0, 0.0)),
        (["miscited", "ok"], (1, 0, 0.0)),
        (["missing", "missing"], (0, 0, None)),
    ],
)
def test_a_claim_said_twice_is_cited_rightly_where_each_of_its_citations_is(
    states: list[str], expected: tuple
):
    """A right citation does not make up for a wrong one beside it, and a claim without one takes nothing away."""
    again = [
        a_verdict(
            "supported",
            citation_state=state,
            cited_ids=[] if state == "missing" else ["a"],
            duplicate_of=0 if k else None,
        )
        for k, state in enumerate(states)
    ]

    row = add_up(again)

    assert (row["n_cited_claims"], row["n_citation_ok"], row["citation_precision"]) == expected


@pytest.mark.parametrize("state", ["ok", "miscited"])
def test_a_claim_that_is_not_scored_has_no_citation_to_count(state: str):
    """Unknown once is unknown, whatever its repeat cites: what is cited is never more than what is scored."""
    repeat = a_verdict("supported", citation_state=state, cited_ids=["a"], duplicate_of=0)

    row = add_up([a_verdict("unscored", reason="conflict", cited_ids=["a"]), repeat])

    assert (row["n_scored"], row["n_cited_claims"], row["n_citation_ok"]) == (0, 0, 0)
    assert row["citation_precision"] is None


def test_a_conflict_and_low_consistency_of_a_repeat_count_once():
    """As they would of one claim."""
    flags = {"conflict": True, "low_consistency": True}

    row = add_up([a_verdict("supported"), a_verdict("supported", duplicate_of=0, **flags), a_verdict("supported", duplicate_of=0, **flags)])  # fmt: skip

    assert (row["n_conflicts"], row["n_low_consistency"], row["n_claims"]) == (1, 1, 1)


def test_every_sentence_of_a_repeat_is_marked_by_its_own_verdict():
    """What is revised is the text, so that the supported sentence stays as it is."""
    row = add_up(
        [a_verdict("supported"), a_verdict("unsupported", "extrinsic", start=5, end=9, duplicate_of=0)],
        refuse_below=0.0,
    )

    assert row["revised_answer"] == "One. [unverified: Two.]"


def test_nothing_scored_is_null_and_refused():
    """No scored claim: no groundedness, no hallucination flag, and never delivered."""
    row = add_up([a_verdict("unscored", reason="nan")])

    assert (
        row["groundedness"],
        row["hallucinated"],
        row["action"],
        row["action_reason"],
    ) == (None, None, "refuse", "nothing_scored")


@pytest.mark.parametrize(
    ("kwargs", "state"),
    [
        ({"answer": "   "}, "empty_answer"),
        ({"answer": None}, "empty_answer"),
        ({"log": {"chunks": []}}, "no_context"),
        ({"log": {"chunks": [{"id": "a", "text": " ", "score": None}]}}, "no_context"),
        ({"signals": {"refused": True}}, "refusal"),
        ({"signals": {"is_refusal_status": True}}, "refusal"),
        ({}, "no_claims"),
    ],
)
def test_states_without_claims(kwargs: dict, state: str):
    """Each state from the least that makes it."""
    assert add_up([], **kwargs)["state"] == state


def test_a_refusal_with_a_factual_sentence_is_scored():
    """A refusal marker beside a claim leaves the answer scored."""
    assert add_up([a_verdict("supported")], signals={"refused": True})["state"] == "scored"


def test_a_refusal_by_status_hides_nothing():
    """A false claim or an invented citation beside the status `refusal` is counted and not delivered."""
    signals = {"is_refusal_status": True}
    false = add_up([a_verdict("unsupported", "extrinsic")], signals=signals)
    invented = add_up(
        [a_verdict("supported", "fabricated_citation", fabricated_marks=["[9]"])], signals=signals
    )

    assert (false["state"], false["hallucinated"], false["action"]) == ("scored", True, "refuse")
    assert (invented["action"], invented["action_reason"]) == ("refuse", "fabricated_citation")


def test_an_invented_mark_without_a_claim_refuses():
    """A refusal that cites what was not retrieved is not delivered."""
    row = add_up([], signals={"refused": True, "uncarried_marks": ["[7]"]})

    assert (row["state"], row["action_reason"], row["hallucinated"]) == (
        "refusal",
        "fabricated_citation",
        True,
    )


def test_one_fabricated_citation_refuses_a_grounded_answer():
    """The hard rule comes before the average."""
    row = add_up([a_verdict("supported", "fabricated_citation", fabricated_marks=["[9]"])])

    assert (
        row["groundedness"],
        row["hallucinated"],
        row["action"],
        row["action_reason"],
    ) == (1.0, True, "refuse", "fabricated_citation")


def test_a_topic_carries_its_own_bar():
    """Two of three claims supported: revised in general, refused for fees."""
    verdicts = [a_verdict("supported"), a_verdict("supported"), a_verdict("unsupported", "extrinsic")]

    general, fees = (
        add_up(verdicts, log={"topic": topic}, topic_bars={"fees": 1.0}) for topic in ("travel", "fees")
    )

    assert (general["action"], fees["action"]) == ("revise", "refuse")
    assert fees["action_reason"] == "below_topic_bar"


def test_revise_marks_what_is_not_supported():
    """The grounded sentences stay, the rest is marked, in the answer's own words."""
    row = add_up([a_verdict("supported"), a_verdict("unsupported", "extrinsic", start=5, end=9)])

    assert (
        row["action"],
        row["next_step"],
        row["revised_answer"],
    ) == ("revise", "narrow", "One. [unverified: Two.]")


def test_a_refused_answer_carries_the_policys_fallback():
    """What the service would have said instead stands beside the refusal, with the place to ask; without one, nothing."""
    refused = [a_verdict("unsupported", "extrinsic")]

    row = add_up(refused, fallback_text="Not in the documents.", fallback_link="https://help.example")

    assert row["action"] == "refuse"
    assert row["revised_answer"] == "Not in the documents. https://help.example"
    assert add_up(refused)["revised_answer"] is None


@pytest.mark.parametrize(
    ("kind", "verdict", "mode", "step"),
    [
        ("extrinsic", "unsupported", "retrieval_miss", "re_retrieve"),
        ("intrinsic", "contradicted", "grounding_failure", "re_answer"),
        ("conflation", "unsupported", "conflation", "re_answer"),
    ],
)
def test_failure_mode_and_next_step(kind: str, verdict: str, mode: str, step: str):
    """Evidence that was not there is retrieved again; evidence that was misread is answered again."""
    row = add_up([a_verdict(verdict, kind)])

    assert (mode, step) == (row["failure_mode"], row["next_step"])


def test_citation_precision_counts_scored_claims_that_cite():
    """An unscored claim with a citation is in neither number."""
    row = add_up(
        [
            a_verdict("supported", cited_ids=["a"], citation_state="ok"),
            a_verdict("unsupported", "extrinsic", cited_ids=["a"], citation_state="unsupported"),
            a_verdict("unscored", cited_ids=["a"]),
        ]
    )

    assert (row["citation_precision"], row["n_cited_claims"]) == (0.5, 2)


def test_retrieval_numbers():
    """Margin is top-1 minus top-2; recall is over the gold ids; both null without their inputs."""
    row = add_up([], log={"gold_chunk_ids": ["b", "z"]})
    bare = add_up([], log={"chunks": [{"id": "a", "text": "One.", "score": None}]})

    assert (pytest.approx(0.05), 0.5) == (row["retrieval_margin"], row["recall_at_k"])
    assert (bare["retrieval_margin"], bare["recall_at_k"]) == (None, None)


def test_the_reference_is_compared_by_words():
    """Token F1 against the reference answer; null without one."""
    assert add_up([], "one two", log={"reference_answer": "Two three"})["reference_overlap"] == pytest.approx(
        0.5
    )
    assert add_up([])["reference_overlap"] is None
