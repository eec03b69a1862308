"""Whether one step of arithmetic on two numbers of a text gives the number that a claim states.

Sums and differences need two values of one kind, products and quotients words that multiply or divide: any
measure is soon explained by another and a stray count (50 mg, 10 tablets: 500 mg). Numbers are combined only
with near neighbours. What is asked of many texts is looked for at once, on flat arrays: one claim is a few pairs and would be
sixty calls of numpy. The module knows numbers and where they stand, no claim and no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from claimscore.jobs.flat import runs
from claimscore.jobs.neighbours import CODES, NOUN, PERCENT, TIME, Array, Numbers, Pairs, is_year, pair_up
from claimscore.jobs.quantities import Number
from claimscore.jobs.units import UNITS

_MAX_CELLS: Final = 200_000
"""Numbers asked for x pairs beside them at a time, some 30 MB; one number of a monstrous text is asked for alone."""


class Asked(NamedTuple):
    """A number that a claim states, and the text where it is looked for."""

    claimed: Number
    divides: bool
    """Whether its sentence divides."""
    numbers: Numbers


class _Limits(NamedTuple):
    """What a result may be, for each number that is asked for."""

    target: Array
    allowed: Array
    """How far from it."""

    @classmethod
    def of(cls, numbers: Sequence[Number], targets: Sequence[float]) -> _Limits:
        """The numbers claimed, and what each is in the unit of the results."""
        allowed = [_allowed(number, target) for number, target in zip(numbers, targets, strict=True)]
        return cls(np.array(targets, np.float64), np.array(allowed, np.float64))


class _Claimed(NamedTuple):
    """Numbers that are asked for, as columns."""

    written: _Limits
    amount: _Limits
    """In base units where it has a unit."""
    dim: Array
    is_points: Array
    is_year: Array
    counts_years: Array
    """Years between two years may be it."""
    divides: Array

    @classmethod
    def of(cls, asked: Sequence[Asked]) -> _Claimed:
        """A column of each."""
        numbers = [one.claimed for one in asked]
        dims = [number.unit.dimension for number in numbers]
        bare = [dim in ("", "noun") for dim in dims]
        return cls(
            _Limits.of(numbers, [number.raw for number in numbers]),
            _Limits.of(
                numbers, [n.raw if is_bare else n.value for n, is_bare in zip(numbers, bare, strict=True)]
            ),
            np.array([CODES[dim] for dim in dims], np.int16),
            np.array([dim == "points" for dim in dims], np.bool_),
            np.array([is_year(number) for number in numbers], np.bool_),
            np.array([b or n.unit == UNITS["year"] for n, b in zip(numbers, bare, strict=True)], np.bool_),
            np.array([one.divides for one in asked], np.bool_),
        )


@dataclass(frozen=True)
class _Cells:
    """Numbers that are asked for, each beside the pairs of its text, flat; those that a result gives are marked."""

    found: Array
    """Of each number; grows true."""
    claimed: _Claimed
    asked: Array
    """Of each cell: its number."""
    pairs: Pairs
    """Of each cell."""

    def look(self, results: Array, where: Array, limits: _Limits) -> None:
        """Mark the numbers that a result is, of the cells `where` it counts."""
        at = np.flatnonzero(where)
        _mark(self.found, results[at], self.asked[at], limits)


def derivable(asked: Sequence[Asked]) -> list[bool]:
    """Of each number that is asked for, whether one step on two neighbouring numbers of its text gives it.

    Years take part only where years do: a difference of two, or one and a span of time. Without this limit
    any year and most small counts can be worked out of a page that has nothing to do with them.
    """
    if not asked:
        return []
    found = np.zeros(len(asked), np.bool_)
    texts = {id(one.numbers): one.numbers for one in asked}
    row_of = dict(zip(texts, range(len(texts)), strict=True))
    of_text = np.array([row_of[id(one.numbers)] for one in asked], np.int64)
    (pairs, n_pairs), claimed = pair_up(list(texts.values())), _Claimed.of(asked)
    is_rate = claimed.is_points | (claimed.dim == PERCENT)
    is_amount = ~(is_rate | claimed.is_year)
    sizes = n_pairs[of_text]
    with np.errstate(all="ignore"):
        for look, mine in ((_of_rates, is_rate), (_as_year, claimed.is_year), (_of_amounts, is_amount)):
            rows = np.flatnonzero(mine & (sizes > 0))
            for some in np.split(rows, np.flatnonzero(np.diff(np.cumsum(sizes[rows]) // _MAX_CELLS)) + 1):
                cells, owner = _beside(of_text[some], n_pairs)
                look(_Cells(found, claimed, some[owner], pairs.take(cells)))
        _of_products(found, claimed, np.flatnonzero(is_amount & (sizes > 0)), list(texts.values()), of_text)
    out: list[bool] = found.tolist()
    return out


def _beside(texts: Array, n_of_text: Array) -> tuple[Array, Array]:
    """What each text has, where all texts lie one after the other with `n_of_text` each; and whose of `texts` each is."""
    sizes = n_of_text[texts]
    firsts = (np.cumsum(n_of_text) - n_of_text)[texts]
    return runs(firsts, sizes), np.repeat(np.arange(len(texts)), sizes)


def _mark(found: Array, results: Array, asked: Array, limits: _Limits) -> None:
    """Mark the numbers `asked` that the results beside them are."""
    found[asked[np.abs(results - limits.target[asked]) <= limits.allowed[asked]]] = True


def _allowed(claimed: Number, target: float) -> float:
    """How far from the target a result may be; percentages and decimals may be rounded to the digit written."""
    unit = target / claimed.raw if claimed.raw else 1.0
    rounds = claimed.step < 1 or claimed.unit.dimension == "%" or claimed.scale > 1
    return max(1e-6 * max(abs(target), 1e-9), 0.5001 * claimed.step * unit if rounds else 0.0)


def _of_rates(cells: _Cells) -> None:
    a, b = cells.pairs.a.raw, cells.pairs.b.raw
    rate_a, rate_b = cells.pairs.rates
    rates, points, written = rate_a & rate_b, cells.claimed.is_points[cells.asked], cells.claimed.written
    change = np.abs(a - b)
    cells.look(change, rates & points, written)
    for ratio in (100 * a / b, 100 * b / a, 100 * change / a, 100 * change / b):
        cells.look(ratio, cells.pairs.alike & ~points, written)
    cells.look(a + b, rates & ~points, written)


def _as_year(cells: _Cells) -> None:
    """A year and a span of time after or before it."""
    a, b = cells.pairs.a, cells.pairs.b
    one = (a.year & (b.dim == TIME)) | (b.year & (a.dim == TIME))
    cells.look(a.raw + b.raw, one, cells.claimed.written)
    cells.look(np.abs(a.raw - b.raw), one, cells.claimed.written)


def _of_amounts(cells: _Cells) -> None:
    pairs, claimed, amount = cells.pairs, cells.claimed, cells.claimed.amount
    both = pairs.a.year & pairs.b.year
    years = np.abs(pairs.a.raw - pairs.b.raw)
    cells.look(years, both & claimed.counts_years[cells.asked], claimed.written)
    code, divides = claimed.dim[cells.asked], claimed.divides[cells.asked]
    is_bare = code <= NOUN
    a, b = (np.where(is_bare, side.raw, side.value) for side in (pairs.a, pairs.b))
    mine_a, mine_b = pairs.a.dim == code, pairs.b.dim == code
    mine = mine_a | mine_b | is_bare
    alike = pairs.alike & pairs.unrated & mine
    cells.look(a + b, alike, amount)
    cells.look(np.abs(a - b), alike, amount)
    cued = pairs.unrated & (pairs.divided | divides | (pairs.measures & is_bare))
    cells.look(a / b, cued & ((mine_a & (pairs.b.dim <= NOUN)) | is_bare), amount)
    cells.look(b / a, cued & ((mine_b & (pairs.a.dim <= NOUN)) | is_bare), amount)
    # A percentage of a whole, or a whole grown or cut by it; of a mere count only in one sentence.
    rate_a = pairs.rates[0]
    whole_dim = np.where(rate_a, pairs.b.dim, pairs.a.dim)
    counted = (whole_dim <= NOUN) & pairs.together
    one = pairs.shared & ((mine & (whole_dim > NOUN)) | counted)
    rate, whole = np.where(rate_a, a, b) / 100, np.where(rate_a, b, a)
    for share in (whole * rate, whole * (1 + rate), whole * (1 - rate)):
        cells.look(share, one, amount)


def _of_products(
    found: Array, claimed: _Claimed, rows: Array, texts: Sequence[Numbers], of_text: Array
) -> None:
    """The numbers at `rows` that are products which their text itself suggests."""
    made = np.array([product for text in texts for product in text.products], np.float64).reshape(-1, 3)
    n_made = np.array([len(text.products) for text in texts], np.int64)
    cells, owner = _beside(of_text[rows], n_made)
    asked, (raw, value, dim) = rows[owner], made[cells].T
    is_bare = claimed.dim[asked] <= NOUN
    at = np.flatnonzero(is_bare | (dim == claimed.dim[asked]))
    _mark(found, np.where(is_bare, raw, value)[at], asked[at], claimed.amount)
