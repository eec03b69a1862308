"""The referee's second question: how much of a whole answer stands in its passages, on a scale with three anchors.

5: all that the answer asserts is in the passages; 3: its main points are, some details are not; 1: most of it is not. The
stretches that show it come before the grade, and each is looked for word for word: a grade whose stretches do not stand
where it says counts for nothing, and so does a reply that is not exactly of the asked form. Grades of LLM judges on scales
without anchors and without evidence are known to drift (Zheng et al. 2023, arXiv:2306.05685). Knows no engine, no judge and
no verdict of ours: a grade stands beside them and changes none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from claimscore.jobs.prompt_texts import framed
from claimscore.jobs.quotes import n_words, stands_in
from claimscore.jobs.referee import MIN_SPAN_WORDS, is_text, keys_of, read_json

GRADES: Final = ("1", "3", "5")
ANSWER: Final = "answer"
"""The source of a stretch that is the answer's own."""
KEYS: Final = ("evidence", "grade")
"""Of a reply, in this order: a grade that is written first is defended afterwards."""
EVIDENCE_KEYS: Final = ("source", "span")
MAX_SPANS: Final = 3
MAX_CHARS_A_TOKEN: Final = 16
"""A prompt with more characters than this a token of the model's window cannot fit, and is not sent to be counted."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A stretch and where it is said to stand: the place of the passage, or None for the answer itself."""

    passage: int | None
    span: str


@dataclass(frozen=True, slots=True)
class Graded:
    """What the referee says of one answer."""

    evidence: tuple[Evidence, ...]
    grade: int


def user_prompt(answer: str, passages: Sequence[str]) -> str:
    """The user turn: the passages and then the answer, each between tags keyed by a hash of all of them.

    Nothing else of the log is in it: no ids, scores, authors or question.
    """
    key = hashlib.sha256(json.dumps([answer, list(passages)]).encode()).hexdigest()[:8]
    shown = [framed("passage", _name(k), key, text) for k, text in enumerate(passages)]
    asked = "How much of the answer is in these passages: 1, 3 or 5?"
    return "\n\n".join([*shown, framed("answer", "A", key, answer), asked])


def reply_schema(n_passages: int, max_span_chars: int) -> dict[str, Any]:
    """JSON schema of a reply: the stretches with their sources, then the grade."""
    one = {
        "type": "object",
        "properties": {
            "source": {"type": "string", "enum": [ANSWER, *(_name(k) for k in range(n_passages))]},
            "span": {"type": "string", "maxLength": max_span_chars},
        },
        "required": list(EVIDENCE_KEYS),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "evidence": {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_SPANS},
            "grade": {"type": "string", "enum": list(GRADES)},
        },
        "required": list(KEYS),
        "additionalProperties": False,
    }


def parse_reply(text: str | None, finish_reason: str, *, n_passages: int) -> tuple[Graded | None, str]:
    """The grade and `ok`, or None and what is wrong with the reply.

    Outcomes: ok, not_json, wrong_shape (another key, order, word or count), unknown_source (a passage that was not shown),
    and the finish reasons: length (even where what is there could be read), deadline, prompt_too_long, error. Never raises.
    """
    reply, outcome = read_json(text, finish_reason)
    if outcome != "ok":
        return None, outcome
    if keys_of(reply) != KEYS:
        return None, "wrong_shape"
    (_, items), (_, grade) = reply
    is_list = isinstance(items, list) and 1 <= len(items) <= MAX_SPANS
    if not (is_list and is_text(grade) and grade in GRADES):
        return None, "wrong_shape"
    if not all(keys_of(item) == EVIDENCE_KEYS and all(is_text(value) for _, value in item) for item in items):
        return None, "wrong_shape"
    places: dict[str, int | None] = {ANSWER: None} | {_name(k): k for k in range(n_passages)}
    pairs = [(source, span) for (_, source), (_, span) in items]
    if not all(source in places for source, _ in pairs):
        return None, "unknown_source"
    evidence = tuple(Evidence(places[source], span) for source, span in pairs)
    return Graded(evidence, int(grade)), "ok"


def evidence_fault(graded: Graded, answer: str, passages: Sequence[str]) -> str:
    """Why the stretches do not carry the grade, or "" where they do.

    Every stretch must stand where it is said to stand (`span_not_found`) and have MIN_SPAN_WORDS words (`span_too_short`).
    Grades 3 and 5 need one from a passage, and 1 one from the answer (`span_lacking`); what is quoted from the answer is to
    show what is not in the passages, and must stand in none of them (`span_in_passages`).
    """
    for item in graded.evidence:
        if not stands_in(item.span, answer if item.passage is None else passages[item.passage]):
            return "span_not_found"
        if n_words(item.span) < MIN_SPAN_WORDS:
            return "span_too_short"
    needed = [item for item in graded.evidence if (item.passage is None) == (graded.grade == 1)]
    if not needed:
        return "span_lacking"
    own = [item.span for item in graded.evidence if item.passage is None]
    return "span_in_passages" if any(stands_in(s, text) for s in own for text in passages) else ""


def _name(place: int) -> str:
    return f"P{place + 1}"
