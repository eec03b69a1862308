"""Where hallucinations concentrate: the test is exact, what is planted is found, noise is not."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
import report_fixture as fixture

from claimscore.jobs.concentration import concentrate, fisher, log_factorials, source_of


def found_in(rows: list[dict], claims: list[dict] | None = None) -> dict:
    """What `concentrate` finds in answers; without claims each has the one that it counts."""
    verdicts = fixture.verdicts(fixture.claims_of(rows) if claims is None else claims)
    return concentrate(pl.from_arrow(fixture.answers(rows)), pl.from_arrow(verdicts))


def block(name: str, n: int, n_bad: int, **fields) -> list[dict]:
    """`n` answers of one group, `n_bad` of them hallucinated."""
    return [fixture.answer(f"{name}-{k}", bad=k < n_bad, **fields) for k in range(n)]


@pytest.mark.parametrize(
    ("bad", "n", "rest_bad", "rest_n"), [(3, 5, 2, 7), (0, 4, 3, 4), (5, 5, 0, 9), (1, 1, 0, 1)]
)
def test_fisher_is_the_sum_of_the_hypergeometric_tail(bad, n, rest_bad, rest_n):
    """Against binomial coefficients in whole numbers."""
    all_bad, total = bad + rest_bad, n + rest_n
    ways = sum(math.comb(n, k) * math.comb(rest_n, all_bad - k) for k in range(bad, min(n, all_bad) + 1))

    p = fisher(bad, n, rest_bad, rest_n, log_factorials(total))

    assert p == pytest.approx(ways / math.comb(total, all_bad))


def test_a_bad_prompt_version_is_the_first_found():
    """60 of 100 against 20 of 100: 40 more than the rest's rate gives."""
    rows = block("a", 100, 20, prompt_version="p1") + block("b", 100, 60, prompt_version="p2")

    first = found_in(rows)["found"][0]

    assert (first["where"], first["n"], first["n_bad"], first["rest_n"]) == (
        {"prompt_version": "p2"},
        100,
        60,
        100,
    )
    assert first["excess"] == pytest.approx(40)
    assert first["p"] < 1e-6


def test_chance_is_seldom_a_finding():
    """Answers of one rate in 40 topics, 3 prompts and 2 models: at most 10 of 100 nights name a group."""
    random = np.random.default_rng(11)
    n_named = 0
    for _ in range(100):
        bad = random.random(400) < 0.2
        names = [
            {"topic": f"t{t}", "prompt_version": f"p{p}", "model": f"m{m}"}
            for t, p, m in zip(
                random.integers(0, 40, 400),
                random.integers(0, 3, 400),
                random.integers(0, 2, 400),
                strict=True,
            )
        ]
        rows = [fixture.answer(str(k), bad=bool(bad[k]), **names[k]) for k in range(400)]
        n_named += bool(found_in(rows)["found"])

    assert n_named <= 10


def test_what_only_rides_on_another_group_is_told_apart():
    """A model that serves mostly the bad prompt stands out, but not apart from it."""
    rows = (
        block("a", 90, 60, prompt_version="p2", model="m2")
        + block("b", 30, 20, prompt_version="p2", model="m1")
        + block("c", 30, 6, prompt_version="p1", model="m2")
        + block("d", 90, 18, prompt_version="p1", model="m1")
    )

    found = {tuple(group["where"].items()): group["apart"] for group in found_in(rows)["found"]}

    assert found == {(("prompt_version", "p2"),): None, (("model", "m2"),): False}


def test_a_pair_is_named_where_neither_part_explains_it():
    """Only the new prompt on one topic is bad: the pair is found; with the prompt bad everywhere it is not."""
    other = block("a", 60, 6, prompt_version="p1", topic="x") + block(
        "b", 60, 6, prompt_version="p1", topic="y"
    )
    only = [
        *other,
        *block("c", 60, 6, prompt_version="p2", topic="x"),
        *block("d", 60, 40, prompt_version="p2", topic="y"),
    ]
    all_over = [
        *other,
        *block("c", 60, 40, prompt_version="p2", topic="x"),
        *block("d", 60, 40, prompt_version="p2", topic="y"),
    ]
    pair = {"prompt_version": "p2", "topic": "y"}

    assert pair in [group["where"] for group in found_in(only)["found"]]
    assert [group["where"] for group in found_in(all_over)["found"]] == [{"prompt_version": "p2"}]


def leaning(synthetic: bool) -> dict:
    """A night where the claims on one document fail; with ids of the log or our own."""
    flags = ["ids_synthetic"] if synthetic else []
    rows = block("a", 40, 30, flags=flags) + block("b", 40, 4, flags=flags)
    claims = [
        fixture.claim(
            row["request_id"],
            verdict="unsupported" if row["hallucinated"] else "supported",
            evidence_chunk_id=f"{'old' if row['request_id'].startswith('a') else 'new'}-doc#{k % 4}",
        )
        for k, row in enumerate(rows)
    ]
    return found_in(rows, claims)


def test_a_document_whose_claims_fail_is_found():
    """Chunks of one document count together."""
    (group,) = leaning(synthetic=False)["found"]

    assert (group["where"], group["n"], group["n_bad"]) == ({"source": "old-doc"}, 40, 30)


def test_positions_are_no_documents():
    """Where chunk ids are our own positions, nothing is said of documents."""
    assert leaning(synthetic=True)["found"] == []


def test_unjudged_answers_count_nowhere():
    """An unscored answer is neither good nor bad."""
    rows = block("a", 10, 2, topic="x") + [fixture.answer(f"u{k}", bad=None, topic="y") for k in range(50)]

    result = found_in(rows)

    assert (result["n_judged"], result["n_bad"], result["n_tested"], result["found"]) == (10, 2, 0, [])


def test_kinds_are_counted_and_placed():
    """Each kind with its claims and answers, and the group that it stands out in."""
    rows = block("a", 60, 30, prompt_version="p1") + block("b", 60, 0, prompt_version="p2")
    claims = [
        fixture.claim(row["request_id"], k, "contradicted", hallucination_type="intrinsic")
        for row in rows[:30]
        for k in range(2)
    ]

    (kind,) = found_in(rows, claims)["types"]

    assert (kind["type"], kind["n_claims"], kind["n_answers"]) == ("intrinsic", 60, 30)
    assert kind["where"]["where"] == {"prompt_version": "p1"}


@pytest.mark.parametrize(
    ("chunk_id", "source"),
    [
        ("faq#3", "faq"),
        ("faq/chunk-3", "faq"),
        ("a:b::12", "a:b"),
        ("doc_7", "doc_7"),
        ("#3", "#3"),
        ("faq#intro", "faq#intro"),
    ],
)
def test_the_document_of_a_chunk(chunk_id, source):
    """A number behind a separator is the chunk's; anything else belongs to the document."""
    assert source_of(chunk_id) == source
