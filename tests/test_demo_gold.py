"""The gold of the demo log: that it is true to the answers and chunks it speaks of, and types mean what they say."""

from __future__ import annotations

import re
from pathlib import Path

import make_demo_log
import pytest

from claimscore.jobs import records

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def test_gold_spans_slice_their_sentences(demo_rows, demo_gold):
    """`answer[start:end]` is the sentence, marks and all, and spans are whole statements."""
    for row in demo_gold:
        answer = demo_rows[row["request_id"]]["answer"]
        assert answer[row["start"] : row["end"]] == row["sentence"]
        assert row["sentence"].strip() == row["sentence"] != ""


def test_gold_claims_carry_no_marks(demo_gold):
    """A claim is text for a judge: no citation marks, no tags of the material, no markup."""
    for row in demo_gold:
        assert not re.search(r"\[|\]|\*\*|\||^\w+: ", row["claim"]), row["claim"]


def test_gold_verdicts_follow_their_types(demo_gold):
    """Contradicted and unsupported claims have a type; a supported one has at most a citation's."""
    for row in demo_gold:
        kind = row["hallucination_type"]
        if row["verdict"] == "supported":
            assert kind in {None, "miscitation", "fabricated_citation"}
        else:
            assert kind in set(make_demo_log.VERDICT_OF) - {"miscitation"}
        assert row["verdict"] in set(records.Verdict)
        assert row["citation_state"] in set(records.CitationState)


@pytest.mark.parametrize("kind", list(records.HallucinationType))
def test_every_type_is_planted_at_least_six_times(demo_gold, kind):
    """A recall by type needs something to count."""
    assert sum(row["hallucination_type"] == kind for row in demo_gold) >= 6


def test_fabricated_marks_point_beyond_the_chunks(demo_rows, demo_gold):
    """A mark is fabricated if and only if its number is no chunk's."""
    for row in demo_gold:
        marks = re.findall(r"\[\^?(\d+(?:, \d+)*)\]", row["sentence"])
        beyond = [
            n
            for mark in marks
            for n in mark.split(",")
            if int(n) > len(demo_rows[row["request_id"]]["chunks"])
        ]
        assert bool(beyond) == (row["citation_state"] == "fabricated"), row


def test_a_miscited_claim_cites_none_of_the_evidence(demo_rows, demo_gold):
    """The chunks that a miscitation names are not those that hold the answer, which were retrieved."""
    for row in demo_gold:
        if row["hallucination_type"] == "miscitation":
            log_row = demo_rows[row["request_id"]]
            ids = [chunk["id"] for chunk in log_row["chunks"]]
            cited = {ids[int(n) - 1] for n in re.findall(r"\[(\d+)\]", row["sentence"])}
            assert set(log_row["gold_chunk_ids"]) - cited, row
            assert set(log_row["gold_chunk_ids"]) <= set(ids)


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,:]\d+)*", text))


def test_numbers_of_supported_claims_stand_in_the_chunks_or_the_question(demo_rows, demo_gold):
    """A typing slip in the material would make a true statement false."""
    summed = {"204"}  # 84 + 120: the claim that adds up
    for row in demo_gold:
        if row["verdict"] == "supported":
            source = demo_rows[row["request_id"]]
            evidence = " ".join(c["text"] for c in source["chunks"]) + source["question"]
            assert numbers(row["claim"]) - numbers(evidence) <= summed, row


def test_confabulations_bring_a_new_number_or_name(demo_rows, demo_gold):
    """What makes a confabulation is in no chunk; what makes a conflation is in one of them."""
    for row in demo_gold:
        evidence = " ".join(c["text"] for c in demo_rows[row["request_id"]]["chunks"])
        names = {name for name in re.findall(r"(?<!^)\b[A-Z]\w+", row["claim"]) if name not in evidence}
        new = numbers(row["claim"]) - numbers(evidence)
        if row["hallucination_type"] == "confabulation":
            assert new | names, row
        if row["hallucination_type"] == "conflation":
            assert not new, row
