"""Invented records: several things of one kind with several attributes, as prose, lists or tables, and claims on them.

What is asked is which value belongs to which thing: the right one in another notation, a near miss, the neighbour's
value, the value of another attribute, a thing or an attribute that is not there, sums, differences and comparisons.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import _train_forms as forms
from _train_forms import capital
from _train_rows import CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILED, Example
from _train_words import DOMAINS, MORE_AND_LESS, OPENERS, PEOPLE, PLACES, Attribute, Domain, subject

Told = tuple[str, str, int, str]
"""(claim, what was done, label, kind)."""


@dataclass(frozen=True, slots=True)
class World:
    """Subjects, their attributes, and the value of each."""

    domain: Domain
    subjects: list[str]
    attributes: list[Attribute]
    values: dict[tuple[str, str], forms.Value]
    numbers: dict[tuple[str, str], int]


def records(rng: random.Random) -> list[Example]:
    """A premise over two to four things, and claims of several kinds."""
    world = make_world(rng)
    premise = render(world, rng)
    makers: list[Callable[[World, random.Random], list[tuple[str, int, str]]]] = [
        right, right, near_miss, neighbour, elsewhere, stranger, unasked, compared, added, counted, bare,
    ]  # fmt: skip
    claims = right(world, rng)
    for maker in rng.sample(makers, 3):
        claims += maker(world, rng)
    return [Example(premise, claim, label, kind, "invented") for claim, label, kind in dict.fromkeys(claims)]


def make_world(rng: random.Random) -> World:
    """Values drawn so that no two things share one of an attribute."""
    domain = rng.choice(DOMAINS)
    subjects: list[str] = []
    while len(subjects) < rng.randint(2, 4):
        name = subject(domain, rng)
        if name not in subjects:
            subjects.append(name)
    attributes = rng.sample(domain.attributes, min(len(domain.attributes), rng.randint(1, 3)))
    values: dict[tuple[str, str], forms.Value] = {}
    numbers: dict[tuple[str, str], int] = {}
    for attribute in attributes:
        seen: set[str] = set()
        for name in subjects:
            value, number = draw(attribute, rng)
            while value.text in seen or (
                number is not None and number in (numbers.get((s, attribute.header)) for s in subjects)
            ):
                value, number = draw(attribute, rng)
            seen |= {value.text, *value.same}
            values[name, attribute.header] = value
            if number is not None:
                numbers[name, attribute.header] = number
    return World(domain, subjects, attributes, values, numbers)


def draw(attribute: Attribute, rng: random.Random) -> tuple[forms.Value, int | None]:
    """A value of an attribute, and the number of it where it is one."""
    kind, low, high = attribute.kind, attribute.low, attribute.high
    if kind == "count":
        n = rng.randint(low, high)
        value = forms.count(random.Random(rng.random()), n, n)
        return forms.Value(str(n) if n < 10_000 else f"{n:,}", tuple(forms.notations(n)), value.near), n
    if kind == "choice":
        text = rng.choice(attribute.choices)
        return forms.Value(text, (), tuple(c for c in attribute.choices if c != text)), None
    if kind in {"person", "place"}:
        pool = PEOPLE if kind == "person" else PLACES
        text = rng.choice(pool)
        return forms.Value(text, (), tuple(rng.sample([p for p in pool if p != text], 4))), None
    if kind == "measure":
        return forms.measure(rng, attribute.choices), None
    maker = {"money": forms.money, "date": forms.date, "year": forms.year}.get(kind)
    if maker is not None:
        return maker(rng, low, high) if high else maker(rng), None
    return {"percent": forms.percent, "clock": forms.clock, "large": forms.large}[kind](rng), None


def say(attribute: Attribute, name: str, value: str, rng: random.Random) -> str:
    """One sentence that gives a thing its value."""
    return capital(forms.on_month(rng.choice(attribute.templates).format(s=name, v=value))) + "."


def render(world: World, rng: random.Random) -> str:
    """The whole world as a passage, a table, rows, or lists."""
    style = rng.choices(["prose", "table", "rows", "list", "fields"], [6, 2, 1, 2, 2])[0]
    shown = {key: value.text for key, value in world.values.items()}
    headers = [a.header for a in world.attributes]
    kind = world.domain.kind
    if style == "prose":
        parts = [
            [say(a, name, shown[name, a.header], rng) for a in world.attributes] for name in world.subjects
        ]
        if rng.random() < 0.5:
            parts = [list(column) for column in zip(*parts, strict=True)]
        text = " ".join(sentence for part in parts for sentence in part)
        return f"{rng.choice(OPENERS)} {text}" if rng.random() < 0.25 else text
    if style == "table":
        lines = [f"| {kind} | " + " | ".join(headers) + " |", "|" + "---|" * (len(headers) + 1)]
        lines = lines if rng.random() < 0.7 else lines[:1]
        return "\n".join(
            [*lines, *(f"| {s} | " + " | ".join(shown[s, h] for h in headers) + " |" for s in world.subjects)]
        )
    if style == "rows":
        return "\n".join(
            f"{kind}: {s}; " + "; ".join(f"{h}: {shown[s, h]}" for h in headers) for s in world.subjects
        )
    if style == "list":
        return "\n".join(
            f"- {s}: " + ", ".join(f"{h.lower()} {shown[s, h]}" for h in headers) for s in world.subjects
        )
    return "\n".join(f"{s}\n" + "\n".join(f"{h}: {shown[s, h]}" for h in headers) for s in world.subjects)


def right(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """The value of a thing, often in another notation."""
    name, attribute, value = _pick(world, rng)
    text = value.other(rng) if rng.random() < 0.6 else value.text
    kind = "record" if text == value.text else "record_notation"
    return [(say(attribute, name, text, rng), ENTAILMENT, kind)]


def near_miss(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """A value that is nearly the right one."""
    name, attribute, value = _pick(world, rng)
    wrong = value.wrong(rng)
    if wrong in {v.text for (_, h), v in world.values.items() if h == attribute.header}:
        return []
    return [(say(attribute, name, wrong, rng), CONTRADICTION, "record_near_miss")]


def neighbour(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """The value of another thing beside it, and the right one."""
    name, attribute, value = _pick(world, rng)
    other = rng.choice([s for s in world.subjects if s != name])
    swapped = world.values[other, attribute.header].text
    if swapped == value.text:
        return []
    return [
        (say(attribute, name, swapped, rng), CONTRADICTION, "record_neighbour"),
        (say(attribute, name, value.text, rng), ENTAILMENT, "record"),
    ]


def elsewhere(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """The value of another attribute of the same thing, where both are of a kind."""
    name, attribute, value = _pick(world, rng)
    others = [
        a
        for a in world.attributes
        if (a.kind, a.choices) == (attribute.kind, attribute.choices) and a.header != attribute.header
    ]
    if not others:
        return []
    wrong = world.values[name, rng.choice(others).header].text
    return (
        [] if wrong == value.text else [(say(attribute, name, wrong, rng), CONTRADICTION, "record_elsewhere")]
    )


def stranger(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """A thing of the kind that is not there, with a value that is."""
    _, attribute, value = _pick(world, rng)
    other = subject(world.domain, rng)
    if other in world.subjects:
        return []
    return [(say(attribute, other, value.text, rng), NEUTRAL, "record_stranger")]


def unasked(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """An attribute of a thing that is not told."""
    rest = [a for a in world.domain.attributes if a not in world.attributes]
    if not rest:
        return []
    attribute = rng.choice(rest)
    return [
        (
            say(attribute, rng.choice(world.subjects), draw(attribute, rng)[0].text, rng),
            NEUTRAL,
            "record_unasked",
        )
    ]


def compared(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """Which of two has more, and the other way round."""
    countable = [a for a in world.attributes if (world.subjects[0], a.header) in world.numbers and a.more]
    if not countable:
        return []
    attribute = rng.choice(countable)
    one, two = rng.sample(world.subjects, 2)
    n, m = (world.numbers[s, attribute.header] for s in (one, two))
    if n == m:
        return []
    high, low = (one, two) if n > m else (two, one)
    more, fewer = MORE_AND_LESS[attribute.more]
    true = rng.choice(
        [more.format(a=high, b=low, n=attribute.noun), fewer.format(a=low, b=high, n=attribute.noun)]
    )
    false = rng.choice(
        [more.format(a=low, b=high, n=attribute.noun), fewer.format(a=high, b=low, n=attribute.noun)]
    )
    return [
        (capital(true), ENTAILMENT, "record_compared"),
        (capital(false), CONTRADICTION, "record_compared_wrong"),
    ]


def added(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """The sum or the difference of two counts, and a wrong one."""
    countable = [a for a in world.attributes if (world.subjects[0], a.header) in world.numbers and a.noun]
    if not countable:
        return []
    attribute = rng.choice(countable)
    one, two = rng.sample(world.subjects, 2)
    n, m = sorted((world.numbers[s, attribute.header] for s in (one, two)), reverse=True)
    if rng.random() < 0.5:
        text, result = f"Together, {one} and {two} have {{n}} {attribute.noun}.", n + m
    else:
        text, result = f"The difference between {one} and {two} is {{n}} {attribute.noun}.", n - m
    wrong = result + rng.choice([-2, -1, 1, 2, 3, 10])
    wrong = wrong if wrong > 0 and wrong != result else result + 4
    return [
        (text.format(n=f"{result:,}"), ENTAILMENT, "record_derived"),
        (text.format(n=f"{wrong:,}"), NOT_ENTAILED, "record_derived_wrong"),
    ]


def counted(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """How many have more than a limit."""
    countable = [a for a in world.attributes if (world.subjects[0], a.header) in world.numbers and a.noun]
    if not countable:
        return []
    attribute, name = rng.choice(countable), rng.choice(world.subjects)
    n = world.numbers[name, attribute.header]
    below, above = max(1, n - rng.randint(1, 2 + n // 4)), n + rng.randint(1, 2 + n // 4)
    if below == n:
        return []
    return [
        (f"{capital(name)} has more than {below:,} {attribute.noun}.", ENTAILMENT, "record_limit"),
        (f"{capital(name)} has more than {above:,} {attribute.noun}.", CONTRADICTION, "record_limit_wrong"),
        (f"{capital(name)} has fewer than {above:,} {attribute.noun}.", ENTAILMENT, "record_limit"),
    ]


def bare(world: World, rng: random.Random) -> list[tuple[str, int, str]]:
    """A value alone, or as a row of a table has it."""
    name, attribute, value = _pick(world, rng)
    wrong = value.wrong(rng)
    if any(wrong in (v.text, *v.same) for v in world.values.values()):
        return []
    if rng.random() < 0.5:
        return [
            (f"{capital(value.other(rng))}.", ENTAILMENT, "bare"),
            (f"{capital(wrong)}.", NOT_ENTAILED, "bare_wrong"),
        ]
    row = f"{world.domain.kind}: {name}; {attribute.header}: "
    return [(row + value.text, ENTAILMENT, "row"), (row + wrong, CONTRADICTION, "row_wrong")]


def _pick(world: World, rng: random.Random) -> tuple[str, Attribute, forms.Value]:
    name, attribute = rng.choice(world.subjects), rng.choice(world.attributes)
    return name, attribute, world.values[name, attribute.header]
