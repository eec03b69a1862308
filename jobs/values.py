"""Whether a value that one text mentions is held by another: the same, converted, rounded or worked out.

Precision comes first, because a value that is not held vetoes a verdict: whatever a careful reader could
find or derive in one step is let through. What may differ (10% after "about", 5% between systems of
units) stands in constants beside the reason. The module knows no claims and no Arrow, only parsed text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from claimscore.jobs.arithmetic import Asked, derivable
from claimscore.jobs.dates import When
from claimscore.jobs.hidden import strip_hidden
from claimscore.jobs.neighbours import Numbers, numbers_of
from claimscore.jobs.quantities import Mention, Number, parse, size_of, with_cues
from claimscore.jobs.remembered import Remembered
from claimscore.jobs.units import BARE

_REMEMBERED_BYTES = 32 * 1024 * 1024
"""Of each of two: a shard of 500 answers asks for some 10,000 texts in each of three stages."""
_CLAIM_BYTES = 16 * 1024 * 1024
"""The same for what only claims are asked for."""
_APPROX = 0.1
_FAR = 0.12
"""Numbers further apart than this are never the same as written: wider than any allowance."""
_SHORT = 64
_CONVERTED = 0.05
"""`65 cm or 2 feet`: people round when they convert between systems."""
_MEASURES = frozenset({"length", "mass", "volume", "area", "bytes", "temperature"})
"""640 steps are not 640 m; times, shares and money also count things (`27 holidays`, `27 days of holiday`)."""


class Pairing:
    """The numbers of a text that may be combined, read when a derivation is first looked for: most texts never are."""

    def __init__(self, text: str, found: Sequence[Mention]) -> None:
        self._text, self._found = text, found

    @cached_property
    def numbers(self) -> Numbers:
        """See neighbours.numbers_of."""
        return numbers_of(self._text, [mention for mention in self._found if mention.demanded])


class Values(NamedTuple):
    """The readings of a text, ready to be searched."""

    numbers: tuple[Number, ...]
    """Each once, sorted by what is written."""
    by_value: tuple[Number, ...]
    """The same, sorted by the value in base units."""
    hours: frozenset[float]
    """Bare numbers that may be an hour: `let's make it 7`."""
    whens: tuple[When, ...]
    pairing: Pairing

    def like(self, claimed: Number) -> Iterable[Number]:
        """The numbers that could be `claimed`: near as written, or of its dimension; all of a short list."""
        if len(self.numbers) <= _SHORT:
            return self.numbers
        written = _between(self.numbers, claimed.raw, key=_raw)
        if claimed.unit.dimension in ("", "noun"):
            return written
        return chain(written, _between(self.by_value, claimed.value, key=_value))


def held(mention: Mention, values: Values) -> bool:
    """Whether any reading of `mention` is among `values`."""
    for reading in mention.readings:
        if isinstance(reading, When):
            if _dated(reading, values):
                return True
        elif any(_same(reading, number) for number in values.like(reading)):
            return True
    return False


def derived(asked: Sequence[tuple[Mention, Values]]) -> list[bool]:
    """Of each mention whether any reading of it follows from two of its values; all at once, see arithmetic.py."""
    flat = [
        (k, Asked(reading, mention.divides, values.pairing.numbers))
        for k, (mention, values) in enumerate(asked)
        for reading in mention.readings
        if isinstance(reading, Number)
    ]
    out = [False] * len(asked)
    for (k, _), is_derived in zip(flat, derivable([one for _, one in flat]), strict=True):
        out[k] |= is_derived
    return out


def _same(claimed: Number, found: Number) -> bool:
    """Whether a number of the premise is the one claimed."""
    if claimed.per and found.per and claimed.per != found.per:
        return False
    if claimed.unit.dimension == "noun" and found.unit.dimension in _MEASURES:
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


def mentions(text: str) -> tuple[Mention, ...]:
    """`parse` without cues, remembered."""
    return _mentions[text]


def demanded(claim: str) -> tuple[Mention, ...]:
    """The `mentions` that a claim has to prove, remembered: each of its premises is asked for them."""
    return _demanded[claim]


def cued(claim: str) -> tuple[Mention, ...]:
    """`demanded` with word of whether their sentence divides, remembered: asked for where one must be worked out."""
    return _cued[claim]


def values_of(text: str) -> Values:
    """The values of a text, remembered: a premise is searched for many claims."""
    return _values[text]


def values_in(found: Iterable[Mention]) -> Values:
    """The values of single mentions; nothing is worked out from two of them."""
    return _searchable(found, Pairing("", ()))


def _index(text: str) -> Values:
    text = strip_hidden(text)
    found = mentions(text)
    return _searchable(found, Pairing(text, found))


def _size_of(values: Values) -> int:
    return 400 * (len(values.numbers) + len(values.whens))


_mentions = Remembered(lambda text: parse(text, cues=False), size_of, _REMEMBERED_BYTES)
_values = Remembered(_index, _size_of, _REMEMBERED_BYTES)
_demanded = Remembered(lambda text: tuple(m for m in mentions(text) if m.demanded), size_of, _CLAIM_BYTES)
_cued = Remembered(lambda text: with_cues(text, demanded(text)), size_of, _CLAIM_BYTES)


def _searchable(found: Iterable[Mention], pairing: Pairing) -> Values:
    read = [reading for mention in found for reading in mention.readings]
    stated = dict.fromkeys([r for r in read if isinstance(r, Number)])
    shown = dict.fromkeys([number for mention in found for number in mention.shown])
    return Values(
        numbers=tuple(sorted(stated | shown, key=_raw)),
        by_value=tuple(sorted(stated, key=_value)) if len(stated) + len(shown) > _SHORT else (),
        hours=frozenset([n.raw for n in stated if 1 <= n.raw <= 12 and n.unit == BARE]),
        whens=tuple(dict.fromkeys([r for r in read if isinstance(r, When)])),
        pairing=pairing,
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
