"""One fact of a supported claim changed by rule: a number, a unit, a date, a name, or a negation.

Each rule gives at most one flipped claim and is sure of little, so a claim whose flip might still be true by its
evidence is left out: the new value or name must not make the claim another true one. Deterministic; knows no judge.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence

from _quality_cases import Case, digest, words

MAX_WORDS = 25
"""In a long claim one fact is one of many, and the annotators' word on the rest of them is worth less."""
_NUMBER = re.compile(r"(?<![\w.,:/\[-])(?<!\. )(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w:/-]|[.,]\d)")
_YEAR = re.compile(r"(?<![\w.,/-])(1[5-9]\d\d|20[0-4]\d)(?![\w,/-]|\.\d)")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]  # not May, which is a verb too
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b")
_COUNTED_ELSEWHERE = re.compile(rf" ?(?:%|percent|st\b|nd\b|rd\b|th\b|{'|'.join(_MONTHS)}|May\b)")
_UNITS = {
    "km": "miles",
    "kilometres": "miles",
    "kilometers": "miles",
    "miles": "kilometres",
    "metres": "feet",
    "meters": "feet",
    "feet": "metres",
    "inches": "feet",
    "cm": "mm",
    "mg": "g",
    "grams": "kilograms",
    "kg": "g",
    "pounds": "ounces",
    "litres": "gallons",
    "liters": "gallons",
    "ml": "litres",
    "seconds": "minutes",
    "minutes": "hours",
    "hours": "days",
    "days": "weeks",
    "weeks": "months",
    "months": "years",
    "years": "months",
    "million": "billion",
    "billion": "million",
    "thousand": "million",
    "MB": "GB",
    "euros": "pounds",
    "dollars": "euros",
    "rupees": "dollars",
}
_UNIT = re.compile(rf"(?<=\d )(?:{'|'.join(_UNITS)})\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,}){0,2}\b(?![-'’]| [A-Z])")
_NOT_NAMES = set(_MONTHS) | {
    "The",
    "This",
    "That",
    "These",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
}
_STRANGERS = ("Elsa Brandt", "Marlow", "Viktor Hanning", "Osterby", "Ruth Calder", "Tavira")
_END = re.compile(r"(?<=[.!?])\s+|\n")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|has|have|had|must|should|may)\b(?! not\b| to\b|n't)"
)
_DENIED = re.compile(
    r"\b(?:(is|are|was|were|can|could|will|would|has|have|had|must|should|may) not|cannot)\b"
)
_DENIALS = re.compile(
    r"\b(?:not|no|never|none|nobody|neither|nor|without|hardly|only)\b|n't\b", re.IGNORECASE
)


def flips(cases: Sequence[Case], limit_a_kind: int | None = None) -> Iterator[Case]:
    """Unsupported twins of the supported cases, `kinds` holding the kind of flip; ids are unique.

    With `limit_a_kind` at most so many of each kind, chosen by the hash of the claim.
    """
    counts = dict.fromkeys(RULES, 0)
    for case in sorted(cases, key=lambda c: digest("flip", c.id)):
        if not case.supported or case.conflict or len(case.claim.split()) > MAX_WORDS or not case.chunks:
            continue
        for kind, rule in RULES.items():
            flipped = None if counts[kind] == limit_a_kind else rule(case.claim, " ".join(case.chunks))
            if flipped is not None and not _is_said(flipped, case):
                counts[kind] += 1
                right = ("contradicted", "unsupported") if case.right else ()
                yield dataclasses.replace(
                    case, id=f"{case.id}~{kind}", claim=flipped, supported=False, kinds=(kind,), right=right,
                    citation=None, conflict=None,
                )  # fmt: skip


def _is_said(flipped: str, case: Case) -> bool:
    """Whether one sentence of the evidence has all words of the flipped claim, and none all of the true one's."""
    held = [set(words(piece)) for text in case.chunks for piece in _END.split(text)]
    return any(set(words(flipped)) <= h for h in held) and not any(set(words(case.claim)) <= h for h in held)


def number(claim: str, evidence: str) -> str | None:
    """The first whole number that is no year, half as large again, unless the evidence has that number too."""
    for found in _NUMBER.finditer(claim):
        value = int(found[1].replace(",", ""))
        is_mark = any(m.start() < found.start() < m.end() for m in _BRACKETS.finditer(claim))
        is_other = _YEAR.fullmatch(found[1]) or _COUNTED_ELSEWHERE.match(claim, found.end())
        if found[2] or value < 2 or is_mark or is_other:
            continue
        new = value + max(1, value // 2)
        text = f"{new:,}" if "," in found[1] else str(new)
        if not re.search(rf"(?<!\d){text}(?!\d)", evidence):
            return claim[: found.start()] + text + claim[found.end() :]
    return None


def unit(claim: str, evidence: str) -> str | None:
    """The first unit after a number, another of its kind that the evidence does not use."""
    for found in _UNIT.finditer(claim):
        new = _UNITS[found[0]]
        if new not in evidence:
            return claim[: found.start()] + new + claim[found.end() :]
    return None


def date(claim: str, evidence: str) -> str | None:
    """The first year three later, or else the first month four later; neither may stand in the evidence."""
    for found in _YEAR.finditer(claim):
        new = str(int(found[1]) + 3)
        if new not in evidence and not claim[found.end() :].startswith("s"):
            return claim[: found.start()] + new + claim[found.end() :]
    for found in _MONTH.finditer(claim):
        new = _MONTHS[(_MONTHS.index(found[0]) + 4) % len(_MONTHS)]
        if new not in evidence:
            return claim[: found.start()] + new + claim[found.end() :]
    return None


def entity(claim: str, evidence: str) -> str | None:
    """The first name of the claim that the evidence holds, another of the evidence's of as many words, or a stranger."""
    names = [
        found[0]
        for found in _NAME.finditer(claim)
        if found[0] in evidence
        and not set(found[0].split()) & _NOT_NAMES
        and not claim[: found.start()].rsplit(maxsplit=1)[-1][0].isupper()  # part of a longer name
    ]
    if not names:
        return None
    old = names[0]
    others = [
        n
        for n in dict.fromkeys(_NAME.findall(evidence))
        if len(n.split()) == len(old.split())
        and not set(n.split()) & (set(claim.split()) | set(old.split()) | _NOT_NAMES)
    ]
    new = others[0] if others else next((s for s in _STRANGERS if len(s.split()) == len(old.split())), None)
    return None if new is None else re.sub(rf"\b{re.escape(old)}\b", new, claim)


def negation(claim: str, _evidence: str) -> str | None:
    """`is` to `is not`, or back; claims of several clauses are left alone, for they may stay half true."""
    if re.search(r"[,;?]|\b(?:if|unless|because|although|but|while|that|which|who)\b", claim):
        return None
    denied = _DENIED.search(claim)
    if denied is not None:
        rest = claim[: denied.start()] + (denied[1] or "can") + claim[denied.end() :]
        return None if _DENIALS.search(rest) else rest
    found = _AUXILIARY.search(claim)
    if found is None or _DENIALS.search(claim):
        return None
    return f"{claim[: found.end()]} not{claim[found.end() :]}"


RULES: dict[str, Callable[[str, str], str | None]] = {
    "number": number,
    "unit": unit,
    "date": date,
    "entity": entity,
    "negation": negation,
}
