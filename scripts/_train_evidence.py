"""Evidence moved: amid other text, taken away, half of it, or a sentence of it as the claim.

As in _train_edits each move gives a family with a twin that keeps its label. Method: MiniCheck (arXiv:2404.10774).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from _train_edits import name_elsewhere, negated, number_changed, number_elsewhere
from _train_forms import capital, spelled
from _train_rows import ENTAILMENT, NAME, NEUTRAL, NOT_ENTAILED, Example, Topics, relabelled, sentences, words

MOST_SPELLED = 100
_THING = re.compile(
    r"\b(?:(?:on|in|at|to|from|by|with) )?(?:the|a|an|his|her|their) [a-z]+(?: [a-z]+)?(?=[.,;])"
)
_COUNT = re.compile(r"(?<![\w.,])\d{1,4}(?: [a-z]{3,})?(?![\w.,]*\d)")
_OPENS_ELSEWHERE = re.compile(
    r"(?:It|He|She|They|This|That|These|Those|His|Her|Its|Their|In addition|However)\b"
)


def sentence_of(row: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """A sentence amid other text is true, is unknown without itself, and is false with one value changed."""
    pieces = [
        s for s in sentences(row.premise) if 5 <= len(s.split()) <= 30 and not _OPENS_ELSEWHERE.match(s)
    ]
    near = topics.near(row, rng.randint(2, 4), rng)
    if not pieces or not near:
        return []
    claim = rng.choice(pieces)
    around = mixed([*near, row.premise], rng)
    out = [relabelled(row, around, claim, ENTAILMENT, "sentence_amid")]
    if not any(len(words(claim) & words(text)) > 0.6 * len(words(claim)) for text in near):
        out.append(relabelled(row, mixed(near, rng), claim, NEUTRAL, "sentence_gone"))
    true = relabelled(row, around, claim, ENTAILMENT, "sentence_amid")
    edits = [number_elsewhere, number_changed, name_elsewhere, negated]
    rng.shuffle(edits)
    changed = next((family for edit in edits if (family := edit(true, topics, rng))), [])
    return [*out, *changed[:1]]


def amid(row: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """The premise among others, label kept."""
    near = topics.near(row, rng.randint(1, 4), rng)
    return [relabelled(row, mixed([*near, row.premise], rng), row.claim, row.label, "amid")] if near else []


def evidence_gone(row: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """Other text about the same thing, or the premise without its most telling sentence: nothing follows."""
    if row.label in {NEUTRAL, NOT_ENTAILED}:
        return []
    near = topics.near(row, rng.randint(1, 3), rng)
    pieces = sentences(row.premise)
    if len(pieces) > 2:
        asked = words(row.claim)
        told = max(pieces, key=lambda s: len(asked & words(s)))
        rest = [s for s in pieces if s is not told]
        if all(len(asked & words(s)) < 0.5 * len(asked) for s in rest):
            near = [" ".join(rest), *near[:1]]
    if not near:
        return []
    gone = relabelled(row, mixed(near, rng), row.claim, NEUTRAL, "evidence_gone")
    kept = relabelled(row, mixed([*near[1:], row.premise], rng), row.claim, row.label, "evidence_kept")
    return [gone, kept]


def joined(row: Example, other: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """Two true claims as one, over both premises; without one premise half of it is unknown."""
    if row.label != ENTAILMENT or other.label != ENTAILMENT or row.premise == other.premise:
        return []
    first = row.claim.rstrip(" .")
    link = rng.choice([". ", ", and ", "; "])
    second = (
        other.claim if link == ". " or NAME.match(other.claim) else other.claim[0].lower() + other.claim[1:]
    )
    claim = f"{first}{link}{second}"
    near = topics.near(row, 1, rng)
    both = mixed([row.premise, other.premise, *near], rng)
    half = mixed([rng.choice([row.premise, other.premise]), *near], rng)
    return [
        relabelled(row, both, claim, ENTAILMENT, "joined"),
        relabelled(row, half, claim, NEUTRAL, "joined_half"),
    ]


def fragment(row: Example, topics: Topics, rng: random.Random) -> list[Example]:
    """A bare answer: a name, a count or a thing of the premise alone is backed by it, one of another premise is not."""
    held = _answers(row.premise)
    strangers = [
        answer
        for text in rng.sample(topics.by_source[row.source], min(6, len(topics.by_source[row.source])))
        for answer in _answers(text)
        if answer.casefold() not in row.premise.casefold() and not words(answer) & words(row.premise)
    ]
    if not held or not strangers:
        return []
    said = rng.choice(held)
    first, _, rest = said.partition(" ")
    if first.isdigit() and int(first) <= MOST_SPELLED and rng.random() < 0.5:
        said = f"{spelled(int(first))} {rest}".strip()
    return [
        relabelled(row, row.premise, capital(f"{said}."), ENTAILMENT, "fragment"),
        relabelled(row, row.premise, capital(f"{rng.choice(strangers)}."), NOT_ENTAILED, "fragment_other"),
    ]


def _answers(text: str) -> list[str]:
    names = [m[0] for m in NAME.finditer(text) if m.start() > 0 and text[m.start() - 1] == " "]
    return [*names, *(m[0] for m in _THING.finditer(text)), *(m[0] for m in _COUNT.finditer(text))]


def mixed(texts: Sequence[str], rng: random.Random) -> str:
    """The texts in any order, as one passage, as lines or as a list."""
    order = list(texts)
    rng.shuffle(order)
    return rng.choices([" ", "\n", "\n- "], [8, 3, 1])[0].join(order)
