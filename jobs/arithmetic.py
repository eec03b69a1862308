"""Whether one step of arithmetic on two numbers of a text gives the number that a claim states.

Sums and differences need two values of one kind, products and quotients words that multiply or divide: any
measure is soon explained by another and a stray count (50 mg, 10 tablets: 500 mg). Numbers are combined only
with near neighbours. The module knows numbers and where they stand, no claim and no Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from claimscore.jobs.multiples import dividing, sentence_numbers, ties
from claimscore.jobs.quantities import Mention, Number
from claimscore.jobs.units import ANY_DOLLAR, BARE, CURRENCIES, DOLLARS, UNITS

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


class Pairs(NamedTuple):
    """Neighbouring numbers a (before) and b (after), and the products that the text itself suggests."""

    a: Side
    b: Side
    together: _Array
    """In one sentence."""
    divided: _Array
    """In one sentence, with a word for a division."""
    products: Side


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
        return _of_years(claimed, pairs) or _of_amounts(claimed, pairs, divides=divides)


def _of_rates(claimed: Number, pairs: Pairs) -> bool:
    a, b = pairs.a.raw, pairs.b.raw
    rates = (pairs.a.dim == _PERCENT) & (pairs.b.dim == _PERCENT)
    change = np.abs(a - b)
    if claimed.unit.dimension == "points":
        return _any(claimed, claimed.raw, [change[rates]])
    alike = _alike(pairs)
    ratios = [100 * a / b, 100 * b / a, 100 * change / a, 100 * change / b]
    return _any(claimed, claimed.raw, [*(r[alike] for r in ratios), (a + b)[rates]])


def _of_years(claimed: Number, pairs: Pairs) -> bool:
    a, b = pairs.a, pairs.b
    gap = np.abs(a.raw - b.raw)
    if _is_year(claimed):
        one = (a.year & (b.dim == _TIME)) | (b.year & (a.dim == _TIME))
        return _any(claimed, claimed.raw, [(a.raw + b.raw)[one], gap[one]])
    counts_years = claimed.unit.dimension in ("", "noun") or claimed.unit == UNITS["year"]
    return counts_years and _any(claimed, claimed.raw, [gap[a.year & b.year]])


def _of_amounts(claimed: Number, pairs: Pairs, *, divides: bool) -> bool:
    if _is_year(claimed):
        return False
    own = _codes_of(claimed.unit.dimension)
    bare = own[0] <= _NOUN
    target = claimed.raw if bare else claimed.value
    a, b = (side.raw if bare else side.value for side in (pairs.a, pairs.b))
    dim_a, dim_b, products = pairs.a.dim, pairs.b.dim, pairs.products
    a_is_mine, b_is_mine = _is_any(dim_a, own), _is_any(dim_b, own)
    mine = bare | a_is_mine | b_is_mine
    alike = _alike(pairs) & mine & (dim_a != _PERCENT)
    sums = [(a + b)[alike], np.abs(a - b)[alike]]
    made = products.raw if bare else products.value[_is_any(products.dim, own)]
    cued = _quotients(pairs, bare=bare, divides=divides)
    over_b = cued & (bare | (a_is_mine & (dim_b <= _NOUN)))
    over_a = cued & (bare | (b_is_mine & (dim_a <= _NOUN)))
    return _any(claimed, target, [*sums, made, (a / b)[over_b], (b / a)[over_a], *_shares(pairs, a, b, mine)])


def _codes_of(dimension: str) -> list[int]:
    """The codes of a dimension: of `$` those of every dollar too, and of each of them that of `$`."""
    if dimension == ANY_DOLLAR:
        return [_CODES[name] for name in sorted(DOLLARS)]
    return [_CODES[name] for name in (dimension, *([ANY_DOLLAR] if dimension in DOLLARS else []))]


def _is_any(dim: _Array, codes: Sequence[int]) -> _Array:
    found: _Array = dim == codes[0]
    for code in codes[1:]:
        found = found | (dim == code)
    return found


def _alike(pairs: Pairs) -> _Array:
    """Pairs of one kind, years left out; a number without a noun joins any kind in its own sentence."""
    a, b = pairs.a, pairs.b
    counts = (a.dim <= _NOUN) & (b.dim <= _NOUN)
    unnamed = ((a.dim == _BARE) | (b.dim == _BARE)) & (a.dim != _PERCENT) & (b.dim != _PERCENT)
    kinds: _Array = ~a.year & ~b.year & ((a.dim == b.dim) | counts | (unnamed & pairs.together))
    return kinds


def _quotients(pairs: Pairs, *, bare: bool, divides: bool) -> _Array:
    """Pairs of which a quotient may be taken: on a cue, or of two measures of one kind for a bare ratio."""
    a, b = pairs.a, pairs.b
    numbers = ~a.year & ~b.year & (a.dim != _PERCENT) & (b.dim != _PERCENT)
    same = (a.dim == b.dim) & (a.dim > _PERCENT) & bare
    allowed: _Array = numbers & (pairs.divided | divides | same)
    return allowed


def _shares(pairs: Pairs, a: _Array, b: _Array, mine: _Array | bool) -> list[_Array]:
    """A percentage of a whole, or a whole grown or cut by it; of a mere count only in one sentence."""
    rate_a, rate_b = pairs.a.dim == _PERCENT, pairs.b.dim == _PERCENT
    whole_dim = np.where(rate_a, pairs.b.dim, pairs.a.dim)
    counted = (whole_dim <= _NOUN) & pairs.together
    one = ~pairs.a.year & ~pairs.b.year & (rate_a ^ rate_b) & ((mine & (whole_dim > _NOUN)) | counted)
    rate, whole = np.where(rate_a, a, b) / 100, np.where(rate_a, b, a)
    return [(whole * rate)[one], (whole * (1 + rate))[one], (whole * (1 - rate))[one]]


def _is_year(number: Number) -> bool:
    return number.unit == BARE and number.scale == number.step == 1.0 and 1000 <= number.raw <= 2100


def _any(claimed: Number, target: float, results: Iterable[_Array]) -> bool:
    """Whether a result is the target; percentages and decimals may be rounded to the digit written."""
    unit = target / claimed.raw if claimed.raw else 1.0
    rounds = claimed.step < 1 or claimed.unit.dimension == "%" or claimed.scale > 1
    allowed = max(1e-6 * max(abs(target), 1e-9), 0.5001 * claimed.step * unit if rounds else 0.0)
    return any(bool((np.abs(result - target) <= allowed).any()) for result in results)


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
    first = [
        np.flatnonzero(at[k:] - at[:-k] <= _NEAR_CHARS) for k in range(1, min(_NEAR_NUMBERS, len(at) - 1) + 1)
    ]
    a = np.concatenate([*first, np.empty(0, np.int64)]).astype(np.int64)
    b = np.concatenate([*(idx + k for k, idx in enumerate(first, 1)), np.empty(0, np.int64)]).astype(np.int64)
    apart = at[a] != at[b]
    a, b = a[apart], b[apart]
    sentence = np.array(sentence_numbers(text, starts), np.int64)[owner]
    divided = np.array(dividing(text, starts), np.bool_)[owner]
    together = sentence[a] == sentence[b]
    side = _side([n for _, n in numbers])
    return Pairs(
        Side(*(column[a] for column in side)),
        Side(*(column[b] for column in side)),
        together,
        together & divided[a],
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
