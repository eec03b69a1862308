"""One invented family: records, statements, or a value in several notations, with the surface of real text."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import _train_forms as forms
from _train_records import records
from _train_rows import CONTRADICTION, ENTAILMENT, NOT_ENTAILED, Example
from _train_statements import padded, statements

FRAMES: tuple[tuple[Callable[[random.Random], forms.Value], tuple[str, ...]], ...] = (
    (forms.large, ("The appeal raised {v} signatures", "The province counts {v} voters", "The archive holds {v} letters", "The vote was followed by {v} viewers")),
    (forms.large, ("The grant comes to Rs {v}", "The prize is worth {v} rupees", "The stadium cost {v} euros", "The estate was valued at {v} dollars")),
    (lambda rng: forms.count(rng, 2, 99), ("The panel heard {v} experts", "The hive has {v} frames", "The quartet gave {v} concerts", "The convoy has {v} trucks")),
    (lambda rng: forms.count(rng, 1000, 90_000), ("The march drew {v} people", "The catalogue lists {v} stars", "The nursery sold {v} seedlings", "The printer made {v} copies")),
    (forms.measure, ("The beam is {v}", "The reading was {v}", "The limit is {v}", "What the label gives is {v}", "The setting was {v}")),
    (forms.date, ("The treaty was signed on {v}", "The comet was seen on {v}", "The lease ends on {v}", "The parcel was posted on {v}")),
    (forms.clock, ("The broadcast begins at {v}", "The last ferry sails at {v}", "The kitchen stops serving at {v}", "The alarm rang at {v}")),
    (forms.percent, ("The price went down by {v}", "Of those asked, {v} agreed", "The tax takes {v} of the sum", "The share of women is {v}")),
    (forms.money, ("The fine is {v}", "The stamp was sold for {v}", "A day's parking comes to {v}", "The seed costs {v} a sack")),
)  # fmt: skip
"""Makers of values and sentences that take them; the sentences say the same of any notation."""
CHANGED = (
    "The {n} went from {a} to {b}", "The {n} rose or fell from {a} to {b}", "Last year the {n} was {a}; this year it is {b}",
    "The {n}: {a} before, {b} after",
)  # fmt: skip
QUANTITIES = (
    "number of pupils",
    "rent",
    "speed limit",
    "yield",
    "membership",
    "price of a pass",
    "catch of herring",
    "workforce",
    "ration",
    "toll",
)


def family(rng: random.Random) -> list[Example]:
    """Some examples over one premise, or nearly one; each labelled, true ones among them."""
    maker = rng.choices([statements, records, notation, change], [12, 6, 3, 1.5])[0]
    return [roughened(example, rng) for example in maker(rng)]


def notation(rng: random.Random) -> list[Example]:
    """One value in two notations, and one that is nearly it."""
    make, sentences = rng.choice(FRAMES)
    value, frame = make(rng), rng.choice(sentences)
    premise = padded(f"{frame.format(v=value.text)}.", rng)
    claims = [
        (value.other(rng), ENTAILMENT, "notation"),
        (value.wrong(rng), CONTRADICTION, "notation_near_miss"),
    ]
    if rng.random() < 0.3:
        claims.append((value.text, ENTAILMENT, "notation_same"))
    return [
        Example(premise, forms.on_month(f"{frame.format(v=text)}."), label, kind, "invented")
        for text, label, kind in claims
    ]


def change(rng: random.Random) -> list[Example]:
    """Two values, and what their difference is in points, parts and percent."""
    n, name = rng.randint(2, 40) * rng.choice([1, 5, 10, 20]), rng.choice(QUANTITIES)
    share, words = rng.choice([(100, "doubled"), (50, "rose by half"), (25, "rose by a quarter"), (200, "tripled"), (10, "rose by 10%"), (20, "rose by 20 percent"), (-50, "halved"), (-25, "fell by a quarter"), (-10, "fell by 10%"), (-20, "fell by a fifth")])  # fmt: skip
    start = n * 20
    end = start + start * share // 100
    premise = padded(rng.choice(CHANGED).format(n=name, a=f"{start:,}", b=f"{end:,}") + ".", rng)
    word = "rose" if share > 0 else "fell"
    opposite = "fell" if share > 0 else "rose"
    gap = abs(end - start)
    claims = [
        (f"The {name} {words}.", ENTAILMENT, "derived"), (f"The {name} {word} by {gap:,}.", ENTAILMENT, "derived"),
        (f"The {name} {word}.", ENTAILMENT, "derived"), (f"The {name} {opposite}.", CONTRADICTION, "derived_wrong"),
        (f"The {name} {word} by {gap + rng.choice([5, 10, 50, -1]):,}.", NOT_ENTAILED, "derived_wrong"),
        (f"The {name} {word} by {abs(share) + rng.choice([5, 15, 40])} percent.", CONTRADICTION, "derived_wrong"),
        (f"The {name} {opposite} by {gap:,}.", CONTRADICTION, "derived_wrong"),
    ]  # fmt: skip
    return [Example(premise, claim, label, kind, "invented") for claim, label, kind in rng.sample(claims, 3)]


def roughened(example: Example, rng: random.Random) -> Example:
    """Now and then the markup, capitals and line breaks of real pages; the meaning stays."""
    what = rng.random()
    if what < 0.02:
        return replace(example, premise=example.premise.upper())
    if what < 0.05:
        return replace(example, claim=_bold(example.claim, rng))
    if what < 0.08:
        return replace(example, premise=_bold(example.premise, rng))
    if what < 0.10 and "\n" not in example.premise:
        return replace(example, premise=example.premise.replace(" ", "\n", rng.randint(1, 3)))
    return example


def _bold(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    k = rng.randrange(len(words))
    words[k] = f"**{words[k]}**" if words[k].strip() else words[k]
    return " ".join(words)
