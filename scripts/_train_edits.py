"""Edits of real pairs: one fact changed, a cue dropped, evidence moved among other text or taken away.

Each edit gives a family: the changed pair and, on the same premise, a twin that keeps its label, so that what is
learned is the difference and not the edit. An edit that cannot be made gives nothing. Knows no model; methods: MiniCheck
(arXiv:2404.10774) for dropped evidence, FactCC (arXiv:1910.12840) for swapped values and names.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable

from _train_rows import (
    CONTRADICTION,
    ENTAILMENT,
    NAME,
    NEUTRAL,
    NOT_ENTAILED,
    Example,
    Topics,
    relabelled,
    sentences,
)

NUMBER = re.compile(r"(?<![\w.,/-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w/-]|[.,]\d)")
_YEAR = re.compile(r"1[5-9]\d\d|20[0-4]\d")
_TOGETHER = re.compile(r"[\s,/&()-]*(?:and|or|y)?[\s,/&()-]*")
_SYMMETRIC = re.compile(
    r"\b(?:and|or|with|between|married|met|both|siblings?|brothers?|sisters?|equal|same|near)\b"
)
_BE = re.compile(r"\b(is|are|was|were|has|have|had|can|could|will|would|must|should)\b(?! not\b|n't)")
_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|hardly|only|few|little)\b|n't\b",
    re.IGNORECASE,
)
_SEVERAL_CLAUSES = re.compile(r"[,;?]|\b(?:if|unless|because|although|but|while|that|which|who|or)\b")
CUES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\b(?:may|might|could) have been\b", "was"),
        (r"\b(?:may|might|could) be\b", "is"),
        (r"\b(?:may|might|could) (?=[a-z]{3,}\b)(?!not|have|also)", "will "),
        (r"\b(?:reportedly|allegedly|probably|possibly|perhaps|supposedly|presumably|apparently|likely) ", ""),
        (
            (r"\b(is|are|was|were) (?:often |widely |generally |sometimes )?(?:considered|believed|thought|said|rumou?red|"
            r"expected|reported|alleged) to be\b"),
            r"\1",
        ),
        (r"^According to [^,]{3,60}, (\w)", r"\1"),
        (r"^[A-Z][\w .'-]{2,40}? (?:said|claimed|argued|believes|thinks|suggested|reported|alleged) that ", ""),
        (r"\b[Ss]ome of the\b", "all of the"),
        (r"\b(?:[Mm]any|[Mm]ost|[Ss]everal|[Ss]ome) (?=[a-z]+s\b)", "all "),
        (r"\bone of the (?=\w+est\b|most\b)", "the "),
        (r"\b(?:sometimes|occasionally|often|usually|generally|typically) ", "always "),
        (r",? (?:if|unless|provided that|except|as long as|only when) [^.;]{8,80}(?=\.$)", ""),
        (r"\bup to (?=\d)", ""),
        (r"\b(?:planned|intended|attempted|proposed|hoped|wanted) to (\w+)\b", r"did \1"),
    )
)  # fmt: skip
"""What narrows or hedges a sentence, and the sentence that says more without it."""

PREFIXES = (
    "Sure! ", "Of course. ", "Here is what I found: ", "I think that ", "As far as I can tell, ", "Yes, ", "Well, ",
    "To answer your question: ", "In short, ", "Based on the documents, ", "It seems that ", "Certainly! ", "Note that ",
    "Good question! ", "The answer is as follows. ", "As stated in the text, ", "From what I can see, ", "Put simply, ",
)  # fmt: skip
"""What a chat model says before its claim; the label stays."""


def number_changed(row: Example, topics: Topics, rng: random.Random) -> list[Example]:  # noqa: ARG001
    """A number of a true claim, another that the premise does not hold."""
    for found in _in_order(NUMBER.finditer(row.claim), rng):
        if found[0] in row.premise:
            new = other_number(found[0], rng)
            if not re.search(rf"(?<!\d){re.escape(new)}(?!\d)", row.premise):
                return _twins(row, _put(row.claim, found, new), CONTRADICTION, "number_changed")
    return []


def number_elsewhere(row: Example, topics: Topics, rng: random.Random) -> list[Example]:  # noqa: ARG001
    """A number of a true claim, another of the premise's of its kind: right words bound wrongly."""
    held = [m[0] for m in NUMBER.finditer(row.premise)]
    for found in _in_order(NUMBER.finditer(row.claim), rng):
        others = [
            n
            for n in dict.fromkeys(held)
            if n not in row.claim and bool(_YEAR.fullmatch(n)) == bool(_YEAR.fullmatch(found[0]))
        ]
        if found[0] in held and others:
            return _twins(row, _put(row.claim, found, rng.choice(others)), CONTRADICTION, "number_elsewhere")
    return []


def name_elsewhere(row: Example, topics: Topics, rng: random.Random) -> list[Example]:  # noqa: ARG001
    """A name of a true claim, another of the premise's that is no neighbour of it in a list."""
    held = list(NAME.finditer(row.premise))
    for found in _in_order(_names(row.claim), rng):
        own = [m for m in held if m[0] == found[0]]
        others = [
            m[0]
            for m in held
            if own
            and not set(m[0].split()) & set(row.claim.split())
            and len(m[0].split()) == len(found[0].split())
            and not any(_stand_together(row.premise, m, o) for o in own)
            and (m.start() == 0 or row.premise[m.start() - 2] not in ".!?:")
        ]
        if others:
            claim = _put(row.claim, found, rng.choice(others))
            return _twins(row, claim, NOT_ENTAILED, "name_elsewhere")
    return []


def name_stranger(row: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """A name of a true claim, one of another row's."""
    known = topics.by_source[row.source]
    strangers = [name for text in rng.sample(known, min(8, len(known))) for name in NAME.findall(text)[1:]]
    for found in _in_order(_names(row.claim), rng):
        size = len(found[0].split())
        others = [
            n for n in strangers if len(n.split()) == size and n not in row.premise and n not in row.claim
        ]
        if found[0] in row.premise and others:
            return _twins(row, _put(row.claim, found, rng.choice(others)), NOT_ENTAILED, "name_stranger")
    return []


def names_exchanged(row: Example, topics: Topics, rng: random.Random) -> list[Example]:  # noqa: ARG001
    """Two names of a true claim change places, unless the claim may be as true either way round."""
    names = [m for m in _names(row.claim, first=True) if m[0] in row.premise]
    if len(names) != 2 or _SYMMETRIC.search(row.claim) or names[0][0] == names[1][0]:
        return []
    one, two = names
    if set(one[0].split()) & set(two[0].split()) or _TOGETHER.fullmatch(row.claim[one.end() : two.start()]):
        return []
    between = row.claim[one.end() : two.start()]
    claim = row.claim[: one.start()] + two[0] + between + one[0] + row.claim[two.end() :]
    return _twins(row, claim, NOT_ENTAILED, "names_exchanged")


def negated(row: Example, topics: Topics, rng: random.Random) -> list[Example]:  # noqa: ARG001
    """A true claim of one clause, denied."""
    found = _BE.search(row.claim)
    if found is None or _DENIAL.search(row.claim) or _SEVERAL_CLAUSES.search(row.claim):
        return []
    return _twins(row, f"{row.claim[: found.end()]} not{row.claim[found.end() :]}", CONTRADICTION, "negated")


def cue_dropped(row: Example, topics: Topics, rng: random.Random) -> list[Example]:  # noqa: ARG001
    """A sentence of the premise without what narrows or hedges it, beside the sentence as it stands."""
    pieces = [s for s in sentences(row.premise) if 5 <= len(s.split()) <= 40]
    rng.shuffle(pieces)
    for piece in pieces:
        for pattern, new in CUES:
            bold = pattern.sub(new, piece, count=1)
            if bold != piece and not _DENIAL.search(piece) and len(bold.split()) >= 4:
                bold = bold[0].upper() + bold[1:]
                return [
                    relabelled(row, row.premise, bold, NEUTRAL, "cue_dropped"),
                    relabelled(row, row.premise, piece, ENTAILMENT, "cue_kept"),
                ]
    return []


VALUE_EDITS: tuple[Callable[[Example, Topics, random.Random], list[Example]], ...] = (
    number_elsewhere, number_changed, name_elsewhere, names_exchanged, name_stranger, negated,
)  # fmt: skip


def value_edit(row: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """The first edit of a true claim that can be made, rarer chances first in most cases."""
    if row.label != ENTAILMENT:
        return []
    edits = list(VALUE_EDITS)
    if rng.random() < 0.4:
        rng.shuffle(edits)
    return next((family for edit in edits if (family := edit(row, topics, rng))), [])


def prefixed(example: Example, rng: random.Random) -> Example:
    """The claim as a chat model opens it."""
    prefix = rng.choice(PREFIXES)
    keeps = NAME.match(example.claim) or prefix[-2] in "!.:"
    claim = example.claim if keeps else example.claim[0].lower() + example.claim[1:]
    return relabelled(example, example.premise, prefix + claim, example.label, example.kind)


def other_number(text: str, rng: random.Random) -> str:
    """Another number that could stand in the same place: a digit, a step or a power of ten away."""
    plain = text.replace(",", "")
    if "." in plain:
        new = f"{float(plain) * rng.choice([10, 0.1, 2, 1.5]):.2f}".rstrip("0").rstrip(".")
    elif _YEAR.fullmatch(plain):
        new = str(int(plain) + rng.choice([-20, -10, -3, -2, -1, 1, 2, 3, 7, 10]))
    else:
        value = int(plain)
        steps = [
            value * 10,
            value + rng.randint(1, 3 + value // 3),
            abs(value - rng.randint(1, 2 + value // 3)),
        ]
        digit = rng.randrange(len(plain))
        steps.append(int(plain[:digit] + rng.choice("123456789") + plain[digit + 1 :]))
        new = str(rng.choice([step for step in steps if step != value]))
    return f"{int(new):,}" if "," in text and new.isdigit() else new if new != plain else f"{new}0"


def _twins(row: Example, claim: str, label: int, kind: str) -> list[Example]:
    return [
        relabelled(row, row.premise, claim, label, kind),
        relabelled(row, row.premise, row.claim, row.label, "twin"),
    ]


def _put(text: str, found: re.Match[str], new: str) -> str:
    return text[: found.start()] + new + text[found.end() :]


def _in_order(found: Iterable[re.Match[str]], rng: random.Random) -> list[re.Match[str]]:
    out = list(found)
    rng.shuffle(out)
    return out


def _names(text: str, *, first: bool = False) -> list[re.Match[str]]:
    """Names of a text; what opens it may be any word, and counts as a name where asked or where it is long."""
    return [m for m in NAME.finditer(text) if m.start() > 0 or first or " " in m[0]]


def _stand_together(text: str, one: re.Match[str], two: re.Match[str]) -> bool:
    """Whether two names are parts of a list or of one address, so that one may be as true as the other."""
    lo, hi = sorted([one.span(), two.span()])
    between = NAME.sub("", text[lo[1] : hi[0]])
    return bool(_TOGETHER.fullmatch(between)) or set(one[0].split()) & set(two[0].split()) != set()
