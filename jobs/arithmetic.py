"""Whether one step of arithmetic on two numbers of a text gives the number that a claim states.

Sums and differences need two values of one kind, products and quotients words that multiply or divide: any
measure is soon explained by another and a stray count (50 mg, 10 tablets: 500 mg). Numbers are combined only
with near neighbours. The module knows numbers and where they stand, no claim and no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from claimscore.jobs.multiples import dividing, sentence_numbers, ties
from claimscore.jobs.quantities import Mention, Number
from claimscore.jobs.units import BARE, CURRENCIES, UNITS

_NEAR_CHARS = 300
_NEAR_NUMBERS = 8
"""Two numbers are combined only within this distance: most of a page's numbers would explain anything."""
_CODES = {
    name: i
    for i, name in enumerate(
        dict.fromkeys(["", "noun", "%", *(u.dimension for u in [*UNITS.values(), *CURRENCIES.values()])])
    )
}
_BARE, _NOUN, _PERCENT, _TIME = (_CODES[name] for name in ("", "noun", "%", "time"))

_Array = np.ndarray[Any, Any]


class Side(NamedTuple):
    """One number of every pair: as written, in base units, its dimension as a code, whether it is a year."""

    raw: _Array
    value: _Array
    dim: _Array
    year: _Array


@dataclass(frozen=True)
class Pairs:
    """Neighbouring numbers a (before) and b (after), and the products that the text itself suggests."""

    a: Side
    b: Side
    together: _Array
    """In one sentence."""
    divided: _Array
    """In one sentence, with a word for a division."""
    products: Side

    @cached_property
    def timeless(self) -> _Array:
        """Neither is a year."""
        return ~(self.a.year | self.b.year)

    @cached_property
    def rates(self) -> tuple[_Array, _Array]:
        """Whether a is a percentage, and whether b is."""
        return self.a.dim == _PERCENT, self.b.dim == _PERCENT

    @cached_property
    def unrated(self) -> _Array:
        """Two numbers that are neither years nor percentages."""
        rate_a, rate_b = self.rates
        return self.timeless & ~(rate_a | rate_b)

    @cached_property
    def alike(self) -> _Array:
        """Pairs of one kind, years left out; a number without a noun joins any kind in its own sentence."""
        a, b = self.a.dim, self.b.dim
        counts = (a <= _NOUN) & (b <= _NOUN)
        unnamed = ((a == _BARE) | (b == _BARE)) & self.unrated & self.together
        found: _Array = self.timeless & ((a == b) | counts | unnamed)
        return found

    @cached_property
    def measures(self) -> _Array:
        """Two measures of one kind, whose ratio is a bare number."""
        found: _Array = self.unrated & (self.a.dim == self.b.dim) & (self.a.dim > _PERCENT)
        return found

    @cached_property
    def shared(self) -> _Array:
        """A percentage and something else."""
        rate_a, rate_b = self.rates
        found: _Array = self.timeless & (rate_a ^ rate_b)
        return found


def derivable(claimed: Number, pairs: Pairs, *, divides: bool) -> bool:
    """Whether one step on two neighbouring numbers gives the number claimed; `divides`: its sentence divides.

    Years take part only where years do: a difference of two, or one and a span of time. Without this limit
    any year and most small counts can be worked out of a page that has nothing to do with them.
    """
    if not len(pairs.a.raw):
        return False
    with np.errstate(all="ignore"):
        if claimed.unit.dimension in ("points", "%"):
            return _of_rates(claimed, pairs)
        if _is_year(claimed):
            return _as_year(claimed, pairs)
        return _of_years(claimed, pairs) or _of_amounts(claimed, pairs, divides=divides)


def _of_rates(claimed: Number, pairs: Pairs) -> bool:
    a, b = pairs.a.raw, pairs.b.raw
    rate_a, rate_b = pairs.rates
    rates = rate_a & rate_b
    change = np.abs(a - b)
    if claimed.unit.dimension == "points":
        return _any(claimed, claimed.raw, [change[rates]])
    ratios = [100 * a / b, 100 * b / a, 100 * change / a, 100 * change / b]
    return _any(claimed, claimed.raw, [*(ratio[pairs.alike] for ratio in ratios), (a + b)[rates]])


def _as_year(claimed: Number, pairs: Pairs) -> bool:
    """A year and a span of time after or before it."""
    a, b = pairs.a, pairs.b
    one = (a.year & (b.dim == _TIME)) | (b.year & (a.dim == _TIME))
    return _any(claimed, claimed.raw, [a.raw[one] + b.raw[one], np.abs(a.raw[one] - b.raw[one])])


def _of_years(claimed: Number, pairs: Pairs) -> bool:
    """The years between two years."""
    if claimed.unit.dimension not in ("", "noun") and claimed.unit != UNITS["year"]:
        return False
    both = pairs.a.year & pairs.b.year
    return _any(claimed, claimed.raw, [np.abs(pairs.a.raw[both] - pairs.b.raw[both])])


def _of_amounts(claimed: Number, pairs: Pairs, *, divides: bool) -> bool:
    code = _CODES[claimed.unit.dimension]
    is_bare = code <= _NOUN
    target = claimed.raw if is_bare else claimed.value
    a, b = (side.raw if is_bare else side.value for side in (pairs.a, pairs.b))
    mine_a, mine_b = pairs.a.dim == code, pairs.b.dim == code
    mine = mine_a | mine_b | is_bare
    alike = pairs.alike & pairs.unrated & mine
    sums = [a[alike] + b[alike], np.abs(a[alike] - b[alike])]
    made = pairs.products.raw if is_bare else pairs.products.value[pairs.products.dim == code]
    cued = pairs.unrated & (pairs.divided | divides | (pairs.measures & is_bare))
    over_b = cued & ((mine_a & (pairs.b.dim <= _NOUN)) | is_bare)
    over_a = cued & ((mine_b & (pairs.a.dim <= _NOUN)) | is_bare)
    quotients = [a[over_b] / b[over_b], b[over_a] / a[over_a]]
    return _any(claimed, target, [*sums, made, *quotients, *_shares(pairs, a, b, mine)])


def _shares(pairs: Pairs, a: _Array, b: _Array, mine: _Array) -> list[_Array]:
    """A percentage of a whole, or a whole grown or cut by it; of a mere count only in one sentence."""
    if not pairs.shared.any():
        return []
    rate_a = pairs.rates[0]
    whole_dim = np.where(rate_a, pairs.b.dim, pairs.a.dim)
    counted = (whole_dim <= _NOUN) & pairs.together
    one = pairs.shared & ((mine & (whole_dim > _NOUN)) | counted)
    rate, whole = np.where(rate_a, a, b)[one] / 100, np.where(rate_a, b, a)[one]
    return [whole * rate, whole * (1 + rate), whole * (1 - rate)]


def _is_year(number: Number) -> bool:
    return number.unit == BARE and number.scale == number.step == 1.0 and 1000 <= number.raw <= 2100


def _any(claimed: Number, target: float, results: Sequence[_Array]) -> bool:
    """Whether a result is the target; percentages and decimals may be rounded to the digit written."""
    unit = target / claimed.raw if claimed.raw else 1.0
    rounds = claimed.step < 1 or claimed.unit.dimension == "%" or claimed.scale > 1
    allowed = max(1e-6 * max(abs(target), 1e-9), 0.5001 * claimed.step * unit if rounds else 0.0)
    return bool((np.abs(np.concatenate(results) - target) <= allowed).any())


def pair_up(text: str, mentions: Sequence[Mention]) -> Pairs:
    """The neighbouring numbers among the mentions of `text`, in order of place; no pairs for fewer than two."""
    if len(mentions) < 2:
        return _NO_PAIRS
    numbers = [
        (i, n) for i, m in enumerate(mentions) for n in (*m.readings, *m.shown) if isinstance(n, Number)
    ]
    owner = np.array([i for i, _ in numbers], np.int64)
    starts = [mention.start for mention in mentions]
    at = np.array(starts, np.int64)[owner]
    near = np.searchsorted(at, at + _NEAR_CHARS, side="right") - np.arange(1, len(at) + 1)
    near = near.clip(max=_NEAR_NUMBERS)  # how many numbers after each are its neighbours
    a = np.repeat(np.arange(len(at)), near)
    b = a + 1 + np.arange(len(a)) - np.repeat(np.cumsum(near) - near, near)
    apart = at[a] != at[b]
    a, b = a[apart], b[apart]
    sentence = np.array(sentence_numbers(text, starts), np.int64)[owner]
    together = sentence[a] == sentence[b]
    # Most sentences hold one number: then no word ties it to another, and none need be looked for.
    divided = together & np.array(dividing(text, starts), np.bool_)[owner[a]] if together.any() else together
    side = _side([n for _, n in numbers])
    return Pairs(
        Side(*(column[a] for column in side)),
        Side(*(column[b] for column in side)),
        together,
        divided,
        _side(_products(text, mentions)),
    )


def _side(numbers: Sequence[Number]) -> Side:
    return Side(
        np.array([n.raw for n in numbers], np.float64),
        np.array([n.value for n in numbers], np.float64),
        np.array([_CODES[n.unit.dimension] for n in numbers], np.int16),
        np.array([_is_year(n) for n in numbers], np.bool_),
    )


_NO_PAIRS = Pairs(_side([]), _side([]), np.empty(0, np.bool_), np.empty(0, np.bool_), _side([]))


def _products(text: str, mentions: Sequence[Mention]) -> list[Number]:
    """Every measure times every count to which the text ties it."""
    return [
        measure._replace(raw=measure.raw * times)
        for tie in ties(text, [(mention.start, mention.end) for mention in mentions])
        for measure in mentions[tie.measure].readings
        for count in mentions[tie.number].readings
        if isinstance(measure, Number) and isinstance(count, Number)
        if not (_is_year(measure) or _is_year(count) or measure.unit.dimension == "%")
        if (times := _times(count, tie.each))
    ]


def _times(count: Number, each: str) -> float:
    """How often: a count as it stands, a span in the unit of `per`; 0 where the number is no multiplicity."""
    if count.unit.dimension in ("", "noun"):
        return count.raw
    per = UNITS.get(each)
    return count.value / per.factor if per and per.dimension == count.unit.dimension else 0.0
