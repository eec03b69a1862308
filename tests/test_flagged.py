"""The worst answers and the flagged claims: their order, the marked answer, cuts and caps."""

from __future__ import annotations

import polars as pl
import pytest
import report_fixture as fixture

from claimscore.jobs import flagged

TEXT = "One is so. Two is not. And Ünï — three."


def shown(answer_rows: list[dict], claim_rows: list[dict]) -> tuple[list[dict], list[dict]]:
    """The worst answers and the flagged rows of those tables."""
    answers, verdicts = (
        pl.from_arrow(t) for t in (fixture.answers(answer_rows), fixture.verdicts(claim_rows))
    )
    ranked = flagged.rank(answers, verdicts)
    return flagged.worst(ranked, verdicts), flagged.rows(ranked, verdicts)


def test_the_most_flagged_answer_comes_first():
    """More flagged claims before fewer, at equal numbers the smaller supported share, then the id."""
    rows = [
        fixture.answer(name, groundedness=share)
        for name, share in (("b", 0.5), ("a", 0.5), ("c", 0.2), ("d", 0.8))
    ]
    claims = [fixture.claim(name, 0, "unsupported") for name in "abcd"] + [
        fixture.claim("d", 1, "contradicted")
    ]

    worst, _ = shown(rows, claims)

    assert [answer["request_id"] for answer in worst] == ["d", "c", "a", "b"]


def test_a_supported_claim_with_a_bad_citation_is_flagged():
    """Miscited is a kind of hallucination; supported without one is fine; unscored is not flagged."""
    rows = [fixture.answer(name) for name in "abc"]
    claims = [
        fixture.claim("a", hallucination_type="miscitation", end=18),
        fixture.claim("b"),
        fixture.claim("c", 0, "unscored"),
    ]

    worst, listed = shown(rows, claims)

    assert [row["request_id"] for row in listed] == ["a"]
    assert [part.get("label") for part in worst[0]["parts"]] == ["supported, badly cited"]


@pytest.mark.parametrize("first", ["unscored", "supported"])
def test_a_claim_is_flagged_where_any_of_its_repeats_is(first: str):
    """One that could not be scored hides no bad citation of the same words."""
    rows = [fixture.answer("a"), fixture.answer("b")]
    claims = [
        fixture.claim("a", 0, first),
        fixture.claim("a", 1, hallucination_type="miscitation", duplicate_of=0),
        fixture.claim("b", 0, "unscored"),
    ]

    worst, listed = shown(rows, claims)

    assert [(answer["request_id"], answer["n_flagged"]) for answer in worst] == [("a", 1)]
    assert [(row["request_id"], row["type"]) for row in listed] == [("a", "miscitation")]


def test_a_fabricated_citation_without_a_claim_is_worth_a_look():
    """An answer whose invented mark stands on no claim is shown, after those with flagged claims."""
    rows = [
        fixture.answer("a", n_claims=0, n_fabricated_citations=1),
        fixture.answer("b"),
        fixture.answer("c"),
    ]

    worst, listed = shown(rows, [fixture.claim("b"), fixture.claim("c", 0, "unsupported")])

    assert [(answer["request_id"], answer["n_flagged"], len(answer["claims"])) for answer in worst] == [
        ("c", 1, 1),
        ("a", 0, 0),
    ]
    assert [row["request_id"] for row in listed] == ["c"]


def test_the_answer_is_marked_by_its_gravest_claim():
    """Parts join to the whole answer; a sentence with two claims has the graver verdict and both numbers."""
    claims = [
        fixture.claim("a", 0, start=0, end=10),
        fixture.claim("a", 1, start=11, end=22),
        fixture.claim("a", 2, "unsupported", start=11, end=22),
        fixture.claim("a", 3, "contradicted", start=27, end=39),
    ]

    worst, _ = shown([fixture.answer("a", answer=TEXT)], claims)

    parts = worst[0]["parts"]
    assert "".join(part["text"] for part in parts) == TEXT
    assert [(part["text"], part["verdict"], part["claims"]) for part in parts if part["verdict"]] == [
        ("One is so.", "supported", [1]),
        ("Two is not.", "unsupported", [2, 3]),
        ("Ünï — three.", "contradicted", [4]),
    ]


def test_overlapping_spans_lose_no_text():
    """Offsets of a damaged table still show the answer once."""
    claims = [fixture.claim("a", k, "unsupported", start=k * 3, end=k * 3 + 9) for k in range(5)]

    worst, _ = shown([fixture.answer("a", answer=TEXT)], claims)

    assert "".join(part["text"] for part in worst[0]["parts"]) == TEXT


def test_a_flagged_claim_carries_its_place_in_the_answer():
    """The sentence with what stands around it."""
    _, listed = shown(
        [fixture.answer("a", answer=TEXT)], [fixture.claim("a", 0, "unsupported", start=11, end=22)]
    )

    assert [(row["before"], row["sentence"], row["after"]) for row in listed] == [
        ("One is so. ", "Two is not.", " And Ünï — three.")
    ]


def test_long_text_is_cut_and_says_so():
    """A token of a million letters is shown by its beginning and its length, wherever it stands."""
    word = "x" * 1_000_000
    worst, listed = shown(
        [fixture.answer("a", answer=word, question=word)],
        [
            fixture.claim(
                "a", 0, "unsupported", claim=word, end=len(word), evidence_chunk_id=word, evidence_quote=word
            )
        ],
    )

    assert len(repr(worst)) + len(repr(listed)) < 20_000
    assert listed[0]["claim"].endswith("… [cut: 1,000,000 characters]")
    assert worst[0]["parts"][-1]["text"] == "… [cut: 1,000,000 characters]"


def test_only_so_many_are_shown(monkeypatch):
    """Caps hold, and a row whose answer is not shown whole has no anchor."""
    monkeypatch.setattr(flagged, "MAX_ANSWERS", 2)
    monkeypatch.setattr(flagged, "MAX_CLAIMS", 3)
    names = "abcde"

    worst, listed = shown(
        [fixture.answer(n) for n in names], [fixture.claim(n, 0, "unsupported") for n in names]
    )

    assert [answer["request_id"] for answer in worst] == ["a", "b"]
    assert [row["anchor"] for row in listed] == ["a-a", "a-b", None]


@pytest.mark.parametrize(
    ("request_id", "anchor"), [("r1", "a-r1"), ("a b/c", "a-a%20b%2Fc"), ('"><', "a-%22%3E%3C")]
)
def test_an_anchor_is_a_word(request_id, anchor):
    """Whatever an id holds, its anchor holds no blank and no mark of HTML."""
    assert flagged.anchor(request_id) == anchor
