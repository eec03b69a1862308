"""One family of invented rules or reports, among sentences about other things."""

from __future__ import annotations

import random

from _train_report_words import FILLERS
from _train_reports import REPORTS
from _train_rows import Example
from _train_rules import RULES


def statements(rng: random.Random) -> list[Example]:
    """One family of any kind."""
    families = RULES | REPORTS
    premise, cases = rng.choices(list(families), list(families.values()))[0](rng)
    return [Example(padded(premise, rng), claim, label, kind, "invented") for claim, label, kind in cases]


def padded(premise: str, rng: random.Random) -> str:
    """The premise among sentences about other things, in two of five cases."""
    if rng.random() < 0.6:
        return premise
    fill = rng.sample(FILLERS, rng.randint(1, 3))
    place = rng.randint(0, len(fill))
    gap = "\n" if "\n" in premise else rng.choice([" ", " ", "\n"])
    return gap.join([*fill[:place], premise, *fill[place:]])
