"""The document of a night, and its Markdown and JSON: figures, warnings, golden texts, hostile words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import report_fixture as fixture

from claimscore.jobs import report, report_text
from claimscore.jobs.report_files import as_json

GOLDEN = Path(__file__).parent / "golden" / "report"


def usual(n: int, n_bad: int, name: str = "r", **fields) -> list[dict]:
    """`n` answers, `n_bad` of them hallucinated."""
    return [fixture.answer(f"{name}{k}", bad=k < n_bad, **fields) for k in range(n)]


def two_prompts():
    """A night whose new prompt p2 is worse than p1, after a day of p1 alone."""
    today = usual(50, 5, "a", prompt_version="p1", topic="fees") + usual(
        50, 30, "b", prompt_version="p2", topic="fees"
    )
    return fixture.night(today, before={"2026-11-27": usual(100, 10, prompt_version="p1", topic="fees")})


def small():
    """Three answers of one model: good, contradicted, and a refusal, after nothing."""
    evidence = {"evidence_chunk_id": "faq#1", "evidence_quote": "The fee is 7 euro.", "start": 0, "end": 18}
    p = {"p_entailment": 0.0625, "p_neutral": 0.125, "p_contradiction": 0.8125}
    samples = {
        "consistency": 0.5,
        "n_samples_usable": 2,
        "low_consistency": True,
        "missing_values": ["5 euro"],
    }
    cited = {"cited_ids": ["faq#1"], "citation_state": "unsupported"}
    claims = [
        fixture.claim("a", end=18),
        fixture.claim("b", 0, "contradicted", **evidence, **p, **samples, **cited),
    ]
    refusal = fixture.answer("c", bad=None, state="refusal", n_claims=0, n_unscored=0)
    return fixture.night([fixture.answer("a"), fixture.answer("b", bad=True), refusal], claims)


def notices(night) -> list[tuple[str, str]]:
    """Level and text of each notice of a night."""
    return [(note["level"], note["text"]) for note in report.collect(night)["notices"]]


def test_the_document_is_strict_json():
    """No NaN, no object of a library; read again it is the same."""
    document = report.collect(two_prompts())

    assert json.loads(as_json(document)) == json.loads(json.dumps(document))


@pytest.mark.parametrize(
    ("night", "name", "form"),
    [
        (two_prompts, "two_prompts.md", report_text.render),
        (small, "small.md", report_text.render),
        (small, "small.json", as_json),
    ],
)
def test_the_forms_are_golden(night, name, form):
    """The whole text of a night as it was looked at; written anew by hand only."""
    assert form(report.collect(night())) == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_worse_prompt_is_on_the_first_screen():
    """Named as the first group, and as new today."""
    document = report.collect(two_prompts())

    assert document["concentration"]["found"][0]["where"] == {"prompt_version": "p2"}
    assert document["notices"] == [{"level": "note", "text": "First day of prompt version p2"}]


def test_an_empty_night_is_not_a_good_one():
    """Without answers every rate is unknown and the first words say stop."""
    document = report.collect(fixture.night([], before={"2026-11-27": usual(40, 4)}))

    assert document["notices"][0] == {
        "level": "stop",
        "text": "No answer of 2026-11-28 was checked: this is not a good night, it is an unknown one",
    }
    assert [rate["value"] for rate in document["rates"]] == [None] * 6
    assert "| Hallucination rate | not known |" in report_text.render(document)


def test_a_night_of_unscored_claims_says_why():
    """Answers without one judged claim: stop, with the reasons counted."""
    rows = [fixture.answer(f"r{k}", bad=None) for k in range(40)]
    claims = [fixture.claim(row["request_id"], 0, "unscored", reason="nan") for row in rows]

    found = notices(fixture.night(rows, claims))

    assert ("stop", "None of 40 answers could be judged (nan 40): the rates say nothing") in found


def test_a_tenth_unscored_is_a_warning():
    """6 of 46 claims: a warning with the share."""
    rows = usual(40, 4) + [fixture.answer(f"u{k}", bad=None) for k in range(6)]

    assert ("warn", "13% of the claims could not be judged (None 6)") in notices(fixture.night(rows))


def test_few_answers_are_a_warning():
    """Below 30 the intervals are what counts."""
    assert ("warn", "Only 9 answers with claims to judge: look at the intervals first") in notices(
        fixture.night(usual(9, 1))
    )


def test_a_refusal_is_no_answer_that_could_not_be_judged():
    """It claims nothing. One whose claims nothing judged is told apart, and a night of refusals says what it was."""
    refusals = [
        fixture.answer(f"n{k}", bad=None, state="refusal", n_claims=0, n_unscored=0) for k in range(3)
    ]
    unscored = [fixture.answer("u", bad=None)]

    assert ("warn", "Only 7 answers with claims to judge: look at the intervals first") in notices(
        fixture.night(usual(7, 1) + refusals)
    )
    assert (
        "warn",
        "Only 7 of 8 answers with claims could be judged: look at the intervals first",
    ) in notices(fixture.night(usual(7, 1) + refusals + unscored))
    assert ("stop", "None of 3 answers claims anything (refusal 3): the rates say nothing") in notices(
        fixture.night(refusals)
    )


def test_a_missing_citation_is_told_only_beside_others():
    """Under every claim of a log without citations it says nothing; under one of an answer that cites, it does."""
    states = {"a": ("missing", "missing"), "b": ("missing", "ok")}
    claims = [
        fixture.claim(name, k, "unsupported", citation_state=state)
        for name, both in states.items()
        for k, state in enumerate(both)
    ]

    document = report.collect(fixture.night([fixture.answer(name, bad=True) for name in states], claims))

    expected = {"a": [None, None], "b": ["missing", "ok"]}
    assert {a["request_id"]: [c["citation"] for c in a["claims"]] for a in document["worst"]} == expected
    assert {
        name: [row["citation"] for row in document["flagged"] if row["request_id"] == name] for name in states
    } == expected


def test_half_the_usual_answers_are_a_warning():
    """Set against the median of the days before."""
    night = fixture.night(usual(40, 4), before={"2026-11-26": usual(90, 9), "2026-11-27": usual(110, 9)})

    assert ("warn", "40 answers; 100 are usual (2 days before)") in notices(night)


def test_unfinished_and_quarantined_rows_are_told():
    """What is missing of the day is told beside what is there."""
    night = fixture.night(usual(40, 4), quarantined={"bad_json": 3}, n_shards=4, n_unfinished=1)

    assert [text for level, text in notices(night) if level == "warn"] == [
        "1 of 4 shards have no answers yet: run the day again",
        "Of the log 3 rows were quarantined (bad_json 3)",
    ]


def test_another_series_than_the_current_is_told():
    """A report of a backfill says so."""
    night = fixture.night(usual(40, 4), is_current=False)

    assert ("note", "stub-12345678 is not the series that dashboards read") in notices(night)


def test_the_other_judge_stands_beside():
    """Shifts of the first screen's rates in its order, and the flips cut to a number."""
    shift = {"grouping": "all", "prompt_version": None, "value_a": 0.1, "value_b": 0.2, "shift": 0.1}
    compared = {
        "series_b": "other-1",
        "shifts": [
            shift | {"metric": name} for name in ("deliver_rate", "groundedness", "hallucination_rate")
        ],
        "flips": [{"claim": "c", "request_id": str(k)} for k in range(99)],
        "agreement": 0.9,
        "kappa": None,
    } | dict.fromkeys(("n_common", "n_only_a", "n_only_b"), 1)

    other = report.collect(fixture.night(usual(40, 4)), compared)["comparison"]

    assert [s["metric"] for s in other["shifts"]] == ["hallucination_rate", "groundedness"]
    assert (other["n_flips"], len(other["flips"])) == (99, report.MAX_FLIPS)


def test_hostile_text_is_plain_in_markdown():
    """No escape, no mark of Markdown or HTML unescaped, no name that calls somebody."""
    text = report_text.render(report.collect(fixture.hostile_night()))

    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e]", text)
    assert not re.search(r"(?<!\\)[<>]", text)
    assert "@here" not in text
    assert "⟨U+202E⟩" in text


def test_what_to_read_first_is_told_by_its_question():
    """An id made of a row's content says nothing to who reads a chat post."""
    row = fixture.answer("3591d3d4", bad=True, question="What does late pickup cost?")

    text = report_text.render(report.collect(fixture.night([row])))

    assert "3591d3d4 (1 of 1 claim flagged): What does late pickup cost?" in text


def test_a_name_is_copied_from_markdown_as_it_was_written():
    """With no sign in it that nobody sees; what might call somebody is not a name and keeps its word joiner."""
    assert report_text.plain("card-prompt@3 of https://x.io/a") == "`card-prompt@3` of `https://x.io/a`"
    assert report_text.plain("@here a_b") == "@\u2060here a\\_b"
    assert report_text.plain("a@b`@here") == "`a@b`\\`@\u2060here"


def test_hostile_text_is_ascii_in_json():
    """The JSON form holds the text as it was, in characters that no terminal obeys."""
    text = as_json(report.collect(fixture.hostile_night()))

    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["worst"][0]["parts"][0]["text"] == fixture.HOSTILE


def test_a_long_token_stays_short_in_markdown():
    """A token of a million letters everywhere: still a chat post."""
    assert len(report_text.render(report.collect(fixture.hostile_night("x" * 1_000_000)))) < 6_000


def test_what_is_flagged_adds_up_where_a_repeat_could_not_be_scored():
    """The count, the answer's own and the list name the bad citation that an unscored repeat stands beside."""
    claims = [
        fixture.claim("a", 0, "unscored"),
        fixture.claim("a", 1, hallucination_type="miscitation", duplicate_of=0),
    ]

    document = report.collect(fixture.night([fixture.answer("a", bad=None)], claims))

    assert (document["n_flagged"], document["n_flagged_answers"], len(document["flagged"])) == (1, 1, 1)
