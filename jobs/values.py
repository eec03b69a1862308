"""Whether a value that one text mentions is held by another: the same, converted, rounded or worked out.

Precision comes first, because a value that is not held vetoes a verdict: whatever a careful reader could
find or derive in one step is let through. What may differ (10% after "about", 5% between systems of
units) stands in constants beside the reason. The module knows no claims and no Arrow, only parsed text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from claimscore.jobs.dates import When
from claimscore.jobs.quantities import Mention, Number, parse
from claimscore.jobs.units import BARE, CURRENCIES, UNITS

_CACHED_CHARS = 4_000
"""Longer texts are kept only a few at a time, so that hostile ones cannot fill the memory."""
_NEAR_CHARS = 300
_NEAR_NUMBERS = 8
"""Two numbers are combined only within this distance: most of a page's numbers would explain anything."""
_APPROX = 0.1
_FAR = 0.12
"""Numbers further apart than this are never the same as written: wider than any allowance."""
_SHORT = 64
_CODES = {
    name: i
    for i, name in enumerate(
        dict.fromkeys(["", "noun", "%", *(u.dimension for u in [*UNITS.values(), *CURRENCIES.values()])])
    )
}
_CONVERTED = 0.05
"""`65 cm or 2 feet`: people round when they convert between systems."""


class Values(NamedTuple):
    """The readings of a text, ready to be searched."""

    numbers: tuple[Number, ...]
    """Each once, sorted by what is written."""
    by_value: tuple[Number, ...]
    """The same, sorted by the value in base units."""
    hours: frozenset[float]
    """Bare numbers that may be an hour: `let's make it 7`."""
    whens: tuple[When, ...]
    pairs: Pairs

    def like(self, claimed: Number) -> Iterable[Number]:
        """The numbers that could be `claimed`: near as written, or of its dimension; all of a short list."""
        if len(self.numbers) <= _SHORT:
            return self.numbers
        written = _between(self.numbers, claimed.raw, key=_raw)
        if claimed.unit.dimension in ("", "noun"):
            return written
        return chain(written, _between(self.by_value, claimed.value, key=_value))


class Pairs(NamedTuple):
    """Neighbouring numbers a (before) and b (after): as written, in base units, dimensions as codes."""

    raw_a: np.ndarray[Any, Any]
    raw_b: np.ndarray[Any, Any]
    value_a: np.ndarray[Any, Any]
    value_b: np.ndarray[Any, Any]
    dim_a: np.ndarray[Any, Any]
    dim_b: np.ndarray[Any, Any]
    year_a: np.ndarray[Any, Any]
    year_b: np.ndarray[Any, Any]


def held(mention: Mention, values: Values, *, derive: bool) -> bool:
    """Whether any reading of `mention` is among `values`, or (`derive`) follows from two of them."""
    for reading in mention.readings:
        if isinstance(reading, When):
            if _dated(reading, values):
                return True
        elif any(_same(reading, number) for number in values.like(reading)):
            return True
    return derive and any(isinstance(r, Number) and _derivable(r, values.pairs) for r in mention.readings)


def _same(claimed: Number, found: Number) -> bool:
    """Whether a number of the premise is the one claimed."""
    if claimed.per and found.per and claimed.per != found.per:
        return False
    if not claimed.unit.dimension or claimed.unit.dimension == "noun":
        return _close(claimed, claimed.raw, found.raw, found.step)
    if found.unit.dimension == claimed.unit.dimension:
        if found.unit == claimed.unit:
            return _close(claimed, claimed.raw, found.raw, found.step)
        if found.unit.system != claimed.unit.system:
            return abs(claimed.value - found.value) <= _CONVERTED * abs(found.value)
        return _close(claimed, claimed.value, found.value, found.step * found.unit.factor)
    money = claimed.unit.dimension.startswith("money")
    absent = not found.unit.dimension or (money and found.unit.dimension == "noun")
    return absent and _close(claimed, claimed.raw, found.raw, found.step)


def _close(claimed: Number, a: float, b: float, found_step: float) -> bool:
    """Equal, within 10% after "about", or a rounding: claimed with fewer digits than found."""
    gap = abs(a - b)
    if gap <= 1e-6 * max(abs(a), abs(b)) or (claimed.approx and gap <= _APPROX * abs(b)):
        return True
    if not claimed.step or not found_step:  # two thirds is 67%, 66.7% and 66.67%
        return gap <= 0.5001 * max(claimed.step, found_step)
    step = claimed.step * (a / claimed.raw if claimed.raw else 1.0)
    rounded = claimed.step < claimed.scale or claimed.raw >= 10 * claimed.step > claimed.step >= 1_000
    return rounded and found_step < step and gap <= 0.5001 * step


def _dated(claimed: When, values: Values) -> bool:
    """Whether the premise holds a date: whole, or day and month in one place and the year in another."""
    if claimed.minute is not None:
        hour = (claimed.minute // 60 + 11) % 12 + 1
        is_bare = claimed.minute % 60 == 0 and hour in values.hours
        return is_bare or any(w.minute == claimed.minute for w in values.whens)
    if claimed.month is None:
        return any(_within(w, claimed) for w in values.whens)
    fits = [
        w for w in values.whens if w.month == claimed.month and (claimed.day is None or w.day == claimed.day)
    ]
    if claimed.first_year is None or any(_within(w, claimed) for w in fits):
        return bool(fits)
    return any(w.first_year is None for w in fits) and any(_within(w, claimed) for w in values.whens)


def _within(found: When, claimed: When) -> bool:
    """Whether the years found lie in those claimed: 1899 in the 19th century, not the other way round."""
    if found.first_year is None or found.last_year is None or claimed.first_year is None:
        return False
    assert claimed.last_year is not None, "a reading has both years or none"
    return claimed.first_year <= found.first_year and found.last_year <= claimed.last_year


def _derivable(claimed: Number, pairs: Pairs) -> bool:
    """Whether one step of arithmetic on two neighbouring numbers gives the number claimed.

    Years take part only where years do: a difference of two, or one and a span of time. Without this limit
    any year and most small counts can be worked out of a page that has nothing to do with them.
    """
    if not len(pairs.raw_a):
        return False
    a, b = pairs.raw_a, pairs.raw_b
    percent_a, percent_b = pairs.dim_a == _code("%"), pairs.dim_b == _code("%")
    neither = ~pairs.year_a & ~pairs.year_b
    with np.errstate(all="ignore"):
        if claimed.unit.dimension == "points":
            return _any(claimed, claimed.raw, [np.abs(a - b)[percent_a & percent_b]])
        if claimed.unit.dimension == "%":
            alike = neither & (percent_a == percent_b)
            change = np.abs(a - b)
            ratios = [100 * a / b, 100 * b / a, 100 * change / a, 100 * change / b]
            sums = (a + b)[percent_a & percent_b]
            return _any(claimed, claimed.raw, [*(r[alike] for r in ratios), sums])
        return _of_years(claimed, pairs) or _of_amounts(claimed, pairs)


def _of_years(claimed: Number, pairs: Pairs) -> bool:
    a, b = pairs.raw_a, pairs.raw_b
    if _is_year(claimed):
        span_a, span_b = pairs.dim_a == _code("time"), pairs.dim_b == _code("time")
        one = (pairs.year_a & span_b) | (pairs.year_b & span_a)
        return _any(claimed, claimed.raw, [(a + b)[one], np.abs(a - b)[one]])
    counts_years = claimed.unit.dimension in ("", "noun") or claimed.unit == UNITS["year"]
    return counts_years and _any(claimed, claimed.raw, [np.abs(a - b)[pairs.year_a & pairs.year_b]])


def _of_amounts(claimed: Number, pairs: Pairs) -> bool:
    dimension = claimed.unit.dimension
    if _is_year(claimed):
        return False
    bare = dimension in ("", "noun")
    a, b = (pairs.raw_a, pairs.raw_b) if bare else (pairs.value_a, pairs.value_b)
    target = claimed.raw if bare else claimed.value
    percent_a, percent_b = pairs.dim_a == _code("%"), pairs.dim_b == _code("%")
    neither = ~pairs.year_a & ~pairs.year_b
    loose_a, loose_b = pairs.dim_a <= _code("noun"), pairs.dim_b <= _code("noun")
    mine_a, mine_b = pairs.dim_a == _code(dimension), pairs.dim_b == _code(dimension)
    plain = neither & ~percent_a & ~percent_b
    fits = plain if bare else plain & ((mine_a & (mine_b | loose_b)) | (mine_b & loose_a))
    alike = fits & ((pairs.dim_a == pairs.dim_b) | loose_a | loose_b)
    one = neither & (percent_a ^ percent_b) & (bare | mine_a | mine_b | loose_a | loose_b)
    rate, whole = np.where(percent_a, a, b) / 100, np.where(percent_a, b, a)
    sums = [(a + b)[alike], np.abs(a - b)[alike], (a * b)[fits], (a / b)[alike], (b / a)[alike]]
    shares = [(whole * rate)[one], (whole * (1 + rate))[one], (whole * (1 - rate))[one]]
    return _any(claimed, target, [*sums, *shares])


def _code(dimension: str) -> int:
    """A small number for a dimension; bare numbers and numbers of things come first."""
    return _CODES[dimension]


def _is_year(number: Number) -> bool:
    return number.unit == BARE and number.scale == number.step == 1.0 and 1000 <= number.raw <= 2100


def _any(claimed: Number, target: float, results: Iterable[np.ndarray[Any, Any]]) -> bool:
    """Whether a result is the target; percentages and decimals may be rounded to the digit written."""
    unit = target / claimed.raw if claimed.raw else 1.0
    rounds = claimed.step < 1 or claimed.unit.dimension == "%" or claimed.scale > 1
    allowed = max(1e-6 * max(abs(target), 1e-9), 0.5001 * claimed.step * unit if rounds else 0.0)
    return any(bool((np.abs(result - target) <= allowed).any()) for result in results)


@lru_cache(maxsize=1024)
def _short_mentions(text: str) -> tuple[Mention, ...]:
    return parse(text)


def mentions(text: str) -> tuple[Mention, ...]:
    """`parse`, remembered for short texts."""
    return _short_mentions(text) if len(text) <= _CACHED_CHARS else parse(text)


@lru_cache(maxsize=1024)
def _short_values(text: str) -> Values:
    return _index(parse(text))


@lru_cache(maxsize=4)
def _long_values(text: str) -> Values:
    return _index(parse(text))


def values_of(text: str) -> Values:
    """The values of a text, remembered: a premise is searched for many claims."""
    return _short_values(text) if len(text) <= _CACHED_CHARS else _long_values(text)


def _index(found: Sequence[Mention]) -> Values:
    read = [reading for mention in found for reading in mention.readings]
    stated = dict.fromkeys(r for r in read if isinstance(r, Number))
    shown = dict.fromkeys(number for mention in found for number in mention.shown)
    combined = [
        (m.start, r) for m in found if m.demanded for r in (*m.readings, *m.shown) if isinstance(r, Number)
    ]
    return Values(
        numbers=tuple(sorted(stated | shown, key=_raw)),
        by_value=tuple(sorted(stated, key=_value)) if len(stated) + len(shown) > _SHORT else (),
        hours=frozenset(n.raw for n in stated if n.unit == BARE and 1 <= n.raw <= 12),
        whens=tuple(dict.fromkeys(r for r in read if isinstance(r, When))),
        pairs=_pair_up(combined),
    )


def _between(numbers: Sequence[Number], center: float, *, key: Callable[[Number], float]) -> Sequence[Number]:
    margin = _FAR * abs(center)
    return numbers[
        bisect_left(numbers, center - margin, key=key) : bisect_right(numbers, center + margin, key=key)
    ]


def _raw(number: Number) -> float:
    return number.raw


def _value(number: Number) -> float:
    return number.value


def _pair_up(numbers: Sequence[tuple[int, Number]]) -> Pairs:
    at = np.array([start for start, _ in numbers], np.int64)
    first = [
        np.flatnonzero(at[k:] - at[:-k] <= _NEAR_CHARS) for k in range(1, min(_NEAR_NUMBERS, len(at) - 1) + 1)
    ]
    a = np.concatenate([*first, np.empty(0, np.int64)]).astype(np.int64)
    b = np.concatenate([*(idx + k for k, idx in enumerate(first, 1)), np.empty(0, np.int64)]).astype(np.int64)
    apart = at[a] != at[b] if len(at) else np.empty(0, np.bool_)
    a, b = a[apart], b[apart]
    raw = np.array([n.raw for _, n in numbers], np.float64)
    value = np.array([n.value for _, n in numbers], np.float64)
    dim = np.array([_code(n.unit.dimension) for _, n in numbers], np.int16)
    year = np.array([_is_year(n) for _, n in numbers], np.bool_)
    return Pairs(raw[a], raw[b], value[a], value[b], dim[a], dim[b], year[a], year[b])
