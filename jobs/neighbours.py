"""The numbers of texts that stand near one another, in pairs, and the products that the text itself suggests.

What of them can be worked out is told by `arithmetic.py`. Knows numbers and where they stand, no claim and no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from claimscore.jobs.flat import runs
from claimscore.jobs.multiples import dividing, sentence_numbers, ties
from claimscore.jobs.quantities import Mention, Number
from claimscore.jobs.units import BARE, CURRENCIES, UNITS

_NEAR_CHARS = 300
_NEAR_NUMBERS = 8
"""Two numbers are combined only within this distance: most of a page's numbers would explain anything."""
CODES: Final = {
    name: i
    for i, name in enumerate(
        dict.fromkeys(["", "noun", "%", *(u.dimension for u in [*UNITS.values(), *CURRENCIES.values()])])
    )
}
UNNAMED, NOUN, PERCENT, TIME = (CODES[name] for name in ("", "noun", "%", "time"))


Array = np.ndarray[Any, Any]


class Numbers(NamedTuple):
    """The numbers of one text that may be combined, read once for all that is asked of it."""

    rows: list[tuple[float, ...]]
    """Of each: as written, in base units, its dimension as a code, whether it is a year, its place, its sentence, and whether
    that speaks of a division."""
    products: list[tuple[float, float, int]]
    """That the text itself suggests: as written, in base units, the dimension as a code."""


class Side(NamedTuple):
    """One number of every pair: as written, in base units, its dimension as a code, whether it is a year."""

    raw: Array
    value: Array
    dim: Array
    year: Array


@dataclass(frozen=True)
class Pairs:
    """Neighbouring numbers a (before) and b (after) of some texts."""

    a: Side
    b: Side
    together: Array
    """In one sentence."""
    divided: Array
    """In one sentence, with a word for a division."""

    def take(self, rows: Array) -> Pairs:
        """Those of `rows`."""
        a, b = (Side(*(column[rows] for column in side)) for side in (self.a, self.b))
        return Pairs(a, b, self.together[rows], self.divided[rows])

    @cached_property
    def timeless(self) -> Array:
        """Neither is a year."""
        return ~(self.a.year | self.b.year)

    @cached_property
    def rates(self) -> tuple[Array, Array]:
        """Whether a is a percentage, and whether b is."""
        return self.a.dim == PERCENT, self.b.dim == PERCENT

    @cached_property
    def unrated(self) -> Array:
        """Two numbers that are neither years nor percentages."""
        rate_a, rate_b = self.rates
        return self.timeless & ~(rate_a | rate_b)

    @cached_property
    def alike(self) -> Array:
        """Pairs of one kind, years left out; a number without a noun joins any kind in its own sentence."""
        a, b = self.a.dim, self.b.dim
        counts = (a <= NOUN) & (b <= NOUN)
        unnamed = ((a == UNNAMED) | (b == UNNAMED)) & self.unrated & self.together
        found: Array = self.timeless & ((a == b) | counts | unnamed)
        return found

    @cached_property
    def measures(self) -> Array:
        """Two measures of one kind, whose ratio is a bare number."""
        found: Array = self.unrated & (self.a.dim == self.b.dim) & (self.a.dim > PERCENT)
        return found

    @cached_property
    def shared(self) -> Array:
        """A percentage and something else."""
        rate_a, rate_b = self.rates
        found: Array = self.timeless & (rate_a ^ rate_b)
        return found


def is_year(number: Number) -> bool:
    """Whether a bare number may be a year."""
    return number.unit == BARE and number.scale == number.step == 1.0 and 1000 <= number.raw <= 2100


def numbers_of(text: str, mentions: Sequence[Mention]) -> Numbers:
    """The numbers among the mentions of `text`, in order of place; none for fewer than two mentions."""
    if len(mentions) < 2:
        return Numbers([], [])
    starts = [mention.start for mention in mentions]
    sentences = sentence_numbers(text, starts)
    # Most sentences hold one number: then no word ties it to another, and none need be looked for.
    are_apart = len(set(sentences)) == len(sentences)
    divided = [False] * len(starts) if are_apart else dividing(text, starts)
    beside = zip(mentions, starts, sentences, divided, strict=True)
    return Numbers(
        [
            (*_side(number), is_year(number), start, sentence, is_divided)
            for mention, start, sentence, is_divided in beside
            for number in (*mention.readings, *mention.shown)
            if isinstance(number, Number)
        ],
        [] if are_apart else [_side(number) for number in _products(text, mentions)],
    )


def _side(number: Number) -> tuple[float, float, int]:
    return number.raw, number.value, CODES[number.unit.dimension]


def pair_up(texts: Sequence[Numbers]) -> tuple[Pairs, Array]:
    """The neighbouring numbers of each text, one text after the other, and how many pairs each has."""
    table = np.array([row for text in texts for row in text.rows], np.float64).reshape(-1, 7)
    text = np.repeat(np.arange(len(texts)), [len(text.rows) for text in texts])
    raw, value, dim, year, start, sentence, divides = table.T
    at = start + text * (start.max(initial=0) + _NEAR_CHARS + 1)  # the texts lie too far apart for neighbours
    near = np.searchsorted(at, at + _NEAR_CHARS, side="right") - np.arange(1, len(at) + 1)
    near = near.clip(max=_NEAR_NUMBERS)  # how many numbers after each are its neighbours
    a = np.repeat(np.arange(len(at)), near)
    b = runs(np.arange(1, len(at) + 1), near)
    apart = at[a] != at[b]
    a, b = a[apart], b[apart]
    together = sentence[a] == sentence[b]
    columns = (raw, value, dim.astype(np.int16), year > 0)
    before, after = (Side(*(column[which] for column in columns)) for which in (a, b))
    n_pairs = np.bincount(text[a], minlength=len(texts))
    return Pairs(before, after, together, together & (divides[a] > 0)), n_pairs


def _products(text: str, mentions: Sequence[Mention]) -> list[Number]:
    """Every measure times every count to which the text ties it."""
    return [
        measure._replace(raw=measure.raw * times)
        for tie in ties(text, [(mention.start, mention.end) for mention in mentions])
        for measure in mentions[tie.measure].readings
        for count in mentions[tie.number].readings
        if isinstance(measure, Number) and isinstance(count, Number)
        if not (is_year(measure) or is_year(count) or measure.unit.dimension == "%")
        if (times := _times(count, tie.each))
    ]


def _times(count: Number, each: str) -> float:
    """How often: a count as it stands, a span in the unit of `per`; 0 where the number is no multiplicity."""
    if count.unit.dimension in ("", "noun"):
        return count.raw
    per = UNITS.get(each)
    return count.value / per.factor if per and per.dimension == count.unit.dimension else 0.0
