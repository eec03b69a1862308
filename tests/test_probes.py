"""The probes of tests/probes/: their form, and what the job's own path with the demo judge makes of them.

A floor is what was measured when it was last raised; floors are raised as verdicts improve and never lowered.
Decomposition and its LLM do not take part: every probe is one claim.
"""

# ruff: noqa: T201 - the table is what a failing run is read by

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from claimscore.jobs.records import CitationState, Verdict

ROOT = Path(__file__).parent.parent
PROBES = Path(__file__).with_name("probes") / "probes.jsonl"
DEMO_JUDGE = ROOT / "demo-models" / "demo-judge"

FLOORS = {
    "numbers": 10,
    "units": 9,
    "dates": 9,
    "negation": 12,
    "quantifiers": 10,
    "comparatives": 7,
    "entity_swap": 10,
    "conflation": 12,
    "partial": 11,
    "multi_hop": 9,
    "conflict": 10,
    "hedged": 10,
    "conditions": 8,
    "lists_tables": 10,
    "coreference": 8,
    "paraphrase": 10,
    "temporal_scope": 9,
    "world_knowledge": 10,
    "similar_chunk": 8,
    "citation": 10,
    "fragment": 8,
    "form": 9,
    "non_english": 9,
    "injection": 9,
}
"""Phenomenon -> probes with the right verdict, citation state and conflict flag; demo judge, its card's thresholds."""
FLOOR_OF_ALL = 227
FLOOR_OF_SIDES = 240
"""Probes on the right side of `supported`, whatever the other verdict's name."""

FIELDS = {
    "id", "phenomenon", "domain", "language", "question", "chunks", "padding_sentences", "claim", "right",
    "conflict", "citation",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """The probes as they stand in the file."""
    return [json.loads(line) for line in PROBES.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def judged() -> list[tuple]:
    """(case, verdict row) of every probe, by the real evidence, judge and rules."""
    if not DEMO_JUDGE.exists():
        pytest.skip("the demo models are not built; run scripts/build_demo_models.py")
    import _quality_cases as cases
    import _quality_path as path

    from claimscore.jobs.judge import Judge, load_tokenizer

    config = path.read_config()
    judge = Judge(config.card, budget_tokens=4_096, dtype="float32", device="cpu")
    probes = cases.probe_cases()
    tokenizer = load_tokenizer(config.card.model)
    found = path.judge_cases(probes, _Uncached(judge, tokenizer), config)
    return list(zip(probes, found.verdicts, strict=True))


class _Uncached:
    """pipeline.Judge as a run has it, without the benchmark's cache: a test must see the code of today."""

    def __init__(self, judge, tokenizer) -> None:
        self.probabilities, self.encode, self.unk_id = judge.probabilities, tokenizer.encode, tokenizer.unk_id


def _is_right(case, row: dict) -> bool:
    return (
        row["verdict"] in case.right
        and case.citation in {None, row["citation_state"]}
        and case.conflict in {None, row["conflict"]}
    )


def test_the_file_has_its_form(rows: list[dict]):
    """Known fields, unique ids that name their phenomenon, known verdicts, a claim, and texts of a readable size."""
    ids = [row["id"] for row in rows]
    wrong = [
        row["id"]
        for row in rows
        if set(row) - FIELDS
        or not {"id", "phenomenon", "domain", "chunks", "claim", "right"} <= set(row)
        or not row["id"].startswith(row["phenomenon"] + "-")
        or not row["right"]
        or set(row["right"]) - set(Verdict)
        or row.get("citation", "ok") not in set(CitationState)
        or not row["claim"].strip()
        or len(json.dumps(row, ensure_ascii=False)) > 1_500
    ]

    assert (wrong, len(ids) - len(set(ids))) == ([], 0)


def test_no_probe_stands_twice(rows: list[dict]):
    """The same chunks, question and claim are asked once."""
    seen = Counter(json.dumps([row["chunks"], row.get("question"), row["claim"]]) for row in rows)

    assert [text for text, n in seen.items() if n > 1] == []


def test_every_phenomenon_has_cases_of_both_kinds(rows: list[dict]):
    """At least 200 probes, ten a phenomenon, six domains, languages beside English, and neither side of the verdict rare."""
    counts = Counter(row["phenomenon"] for row in rows)
    supported = sum(row["right"] == ["supported"] for row in rows)

    assert set(counts) == set(FLOORS)
    assert min(counts.values()) >= 10
    assert len(rows) >= 200
    assert len({row["domain"] for row in rows}) >= 6
    assert len({row.get("language", "en") for row in rows}) >= 4
    assert 0.35 <= supported / len(rows) <= 0.65


def test_every_phenomenon_keeps_its_floor(judged: list[tuple]):
    """No phenomenon has fewer right probes than when its floor was set; the table says which, and of how many."""
    right = Counter(case.kinds[0] for case, row in judged if _is_right(case, row))
    counts = Counter(case.kinds[0] for case, _ in judged)
    print(f"\n{'phenomenon':<18}{'right':>6}{'of':>4}{'floor':>7}")
    for name, floor in FLOORS.items():
        print(f"{name:<18}{right[name]:>6}{counts[name]:>4}{floor:>7}")

    assert {name: right[name] for name, floor in FLOORS.items() if right[name] < floor} == {}


def test_the_probes_together_keep_their_floors(judged: list[tuple]):
    """Right probes, and probes on the right side of `supported`, over all phenomena."""
    right = sum(_is_right(case, row) for case, row in judged)
    side = sum((row["verdict"] == "supported") == case.supported for case, row in judged)
    print(f"\nright {right}, right side {side} of {len(judged)}")

    assert right >= FLOOR_OF_ALL
    assert side >= FLOOR_OF_SIDES


def test_the_mix_ups_are_whole():
    """Every set has passages, claims of both sides by kind, and an id of its own."""
    rows = [json.loads(line) for line in PROBES.with_name("mixups.jsonl").read_text().splitlines()]
    n = Counter((row["kind"], row["seen"], claim["supported"]) for row in rows for claim in row["claims"])

    assert len({row["id"] for row in rows}) == len(rows)
    assert all(set(row) == {"id", "kind", "seen", "chunks", "claims"} for row in rows)
    assert all(len(row["chunks"]) > 1 and all(text.strip() for text in row["chunks"]) for row in rows)
    assert n == {
        ("like", True, True): 100, ("like", True, False): 100, ("like", False, True): 40, ("like", False, False): 40,
        ("plain", False, True): 50, ("plain", False, False): 30,
    }  # fmt: skip
