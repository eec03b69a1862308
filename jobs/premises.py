"""The premises that claims meet: windows of single passages, and covers made of several.

The windows that share most with a claim say what one passage says, and whose it is. A cover (covers.py) is sentences from
anywhere that together hold what the claim speaks of. Which is chosen is told by shared tokens, a cheap order and never
a verdict. Several granularities and taking the maximum over premises: Laban et al. 2022 (SummaC, arXiv:2111.09525),
tables 5 and 6; evidence as a set of sentences: Thorne et al. 2018 (FEVER, arXiv:1803.05355).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.covers import covers, with_antecedents
from claimscore.jobs.flat import runs
from claimscore.jobs.overlaps import Grid, n_bits, share
from claimscore.jobs.pairs import FoundPairs
from claimscore.jobs.windows import Bools, Cut, Ints

MAX_CELLS = 100_000
"""Claims x pieces x words of their bits at a time, 6 MB: those of all answers of a usual shard, some claims of a monstrous one."""

Span = tuple[int, int, int, int] | bytes
"""Claim, chunk, start and end of a premise; where it is not in one piece, which cells it is made of."""


@dataclass(frozen=True)
class Claims:
    """Some claims of some answers, and what each has met."""

    cited: Bools
    """Which chunks each cites, (claims, most chunks of an answer)."""
    n_chunks: Ints
    """How many chunks its answer has."""
    room: Ints
    """Tokens that its cover may have."""
    met: set[Span] = field(default_factory=set)
    """The premises that they are paired with already; grows."""

    @property
    def cites_some(self) -> Bools:
        """Whether a claim cites some of the chunks and not all."""
        n_cited = self.cited.sum(axis=1)
        some: Bools = (n_cited > 0) & (n_cited < self.n_chunks)
        return some


def add_windows(
    found: FoundPairs, claims: Claims, grid: Grid, copies: Ints, cut: Cut, config: EvidenceConfig
) -> None:
    """Pair each claim with the best windows of the chunks that it cites, and of the others.

    `copies` is a number for each window that was cut, equal where two have the same ids.
    """
    is_cited = claims.cited[grid.owner, grid.places]
    side = 2 * grid.owner + is_cited
    kept = np.flatnonzero(_best(side, grid.overlap, copies[grid.rows], config))
    claim, row, place = grid.claims[grid.owner[kept]], grid.rows[kept], grid.places[kept]
    found.add(claim, row, place, is_cited=is_cited[kept], overlap=grid.overlap[kept])
    spans = (claim, place, cut.start[row], cut.end[row])
    claims.met.update(zip(*(column.tolist() for column in spans), strict=True))


def _best(side: Ints, overlap: np.ndarray, copies: Ints, config: EvidenceConfig) -> Bools:
    """Of the windows of each side the one that shares most, and those that share enough; at most `max_windows`.

    A window with the ids of an earlier one is worth a place only as the best. What counts is its side: a copy in a chunk that
    is not cited must not stand for the cited one, whose support is then told for another's.
    """
    by_copy = np.lexsort((copies, side))
    is_repeat = np.ones(len(side), np.bool_)
    is_repeat[by_copy[_begins(side[by_copy], copies[by_copy])]] = False
    order = np.lexsort((-overlap, is_repeat, side))
    begins = _begins(side[order])
    rank = np.arange(len(side)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    enough = (overlap[order] >= config.window_overlap) & ~is_repeat[order]
    best = np.zeros(len(side), np.bool_)
    best[order[(rank == 0) | (enough & (rank < config.max_windows))]] = True
    return best


def add_covers(found: FoundPairs, retries: FoundPairs, claims: Claims, grid: Grid, cut: Cut) -> None:
    """Pair each claim with its cover and, where it cites some chunks only, with a cover of those.

    Into `retries` go, for each chunk that the first cover has a sentence of, the cover without that chunk.

    Args:
        found: pairs that will be judged.
        retries: pairs for claims that none of those carries.
        claims: what they are paired with already is left out.
        grid: the claims beside the sentences of their answers.
        cut: all pieces that were cut.
    """
    made = _Covers(claims, grid, cut, claims.cited[grid.owner, grid.places])
    cells, n_claims = np.arange(len(grid.owner)), len(grid.claims)
    of_cited = np.flatnonzero(made.is_cited & claims.cites_some[grid.owner])
    at, owner = made.of(
        np.concatenate([cells, of_cited]),
        np.concatenate([grid.owner, n_claims + grid.owner[of_cited]]),
        np.tile(claims.room, 2),
    )
    made.add(found, at, owner)
    first = at[owner < n_claims]
    # The chunks of a cover stand in order, each with its sentences in a row.
    first = first[_begins(grid.owner[first], grid.places[first])]
    claim, chunk = grid.owner[first], grid.places[first]
    n_cells = np.diff(grid.bounds)[claim]
    step = max(1, MAX_CELLS // max(1, n_cells.max(initial=0) * grid.bits.shape[1]))
    for some in (slice(k, k + step) for k in range(0, len(claim), step)):
        cells = runs(grid.bounds[claim[some]], n_cells[some])
        owner = np.repeat(np.arange(len(claim[some])), n_cells[some])
        may = grid.places[cells] != chunk[some][owner]
        made.add(retries, *made.of(cells[may], owner[may], claims.room[claim[some]]))


@dataclass(frozen=True)
class _Covers:
    """Covers of some claims, from the sentences of their answers."""

    claims: Claims
    grid: Grid
    cut: Cut
    is_cited: Bools
    """Of each cell: whether the claim cites the chunk."""

    def of(self, cells: Ints, owner: Ints, room: Ints) -> tuple[Ints, Ints]:
        """The cells that covers are made of, and whose each is; each owner's cover from the cells that it is offered."""
        rows = self.grid.rows[cells]
        sizes = self.cut.stop[rows] - self.cut.first[rows]
        taken = covers(self.grid.bits[cells], owner, sizes, room)
        leans = (self.cut.leans[rows] != 0) & ~_begins(owner, self.grid.places[cells])
        taken = with_antecedents(taken, leans, owner, sizes, room)
        return cells[taken], owner[taken]

    def add(self, found: FoundPairs, cells: Ints, owner: Ints) -> None:
        """Pair claims with these covers; a premise that a claim has met already is left out."""
        if not len(cells):
            return
        grid = self.grid
        begins = np.flatnonzero(_begins(owner))
        sizes = np.diff(begins, append=len(cells))
        cited = self.is_cited[cells]
        bits, of_cited = grid.bits[cells], grid.bits[cells] * cited[:, None]
        n_held, n_of_cited = (n_bits(np.bitwise_or.reduceat(some, begins)) for some in (bits, of_cited))
        claim = grid.owner[cells[begins]]
        # Cited where that carries its part: one word of a cited chunk that says nothing else makes no good citation.
        is_cited = np.logical_or.reduceat(cited, begins) & (2 * n_of_cited >= n_held)
        new = np.array(
            [self._is_new(cells[k : k + n]) for k, n in zip(begins.tolist(), sizes.tolist(), strict=True)]
        )
        flat = cells[np.repeat(new, sizes)]
        found.add(
            grid.claims[claim[new]],
            grid.rows[flat],
            grid.places[flat],
            sizes=sizes[new],
            is_cited=is_cited[new],
            overlap=share(n_held, grid.n_forms[claim])[new],
        )

    def _is_new(self, cells: Ints) -> bool:
        """Whether the claim of these cells has not met the premise that they make; it has now."""
        grid, first, last = self.grid, int(cells[0]), int(cells[-1])
        span: Span = cells.tobytes()
        if grid.places[first] == grid.places[last] and last - first == len(cells) - 1:
            start, end = self.cut.start[grid.rows[first]], self.cut.end[grid.rows[last]]
            span = int(grid.claims[grid.owner[first]]), int(grid.places[first]), int(start), int(end)
        n_met = len(self.claims.met)
        self.claims.met.add(span)
        return len(self.claims.met) > n_met


def _begins(*columns: Ints) -> Bools:
    """Where a run of equal values begins."""
    out = np.zeros(len(columns[0]), np.bool_)
    out[:1] = True
    for column in columns:
        out[1:] |= column[1:] != column[:-1]
    return out
