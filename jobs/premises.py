"""The premises that the claims of one answer meet: windows of single passages, and covers made of several.

The windows that share most with a claim say what one passage says, and whose it is. A cover (covers.py) is sentences from
anywhere that together hold what the claim speaks of. Which is chosen is told by shared tokens, a cheap order and never
a verdict. Several granularities and taking the maximum over premises: Laban et al. 2022 (SummaC, arXiv:2111.09525),
tables 5 and 6; evidence as a set of sentences: Thorne et al. 2018 (FEVER, arXiv:1803.05355).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.covers import covers
from claimscore.jobs.pairs import Floats, FoundPairs
from claimscore.jobs.windows import Bools, Group, Ints, asked

Span = tuple[int, int, int] | bytes
"""Chunk, start and end of a premise; where it is not in one piece, which sentences it is made of."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Some claims of one answer."""

    rows: list[int]
    """Which of all claims they are."""
    forms: list[Ints]
    """The forms of each one's tokens."""
    cited: Bools
    """Which chunks each cites, (claims, chunks)."""
    met: list[set[Span]]
    """The premises that each is paired with already; grows."""

    def take(self, some: slice) -> Claims:
        """Some of them."""
        return Claims(self.rows[some], self.forms[some], self.cited[some], self.met[some])


def add_windows(found: FoundPairs, claims: Claims, group: Group, config: EvidenceConfig) -> None:
    """Pair each claim with the best windows of the chunks that it cites, and of the others."""
    counted = group.shared(claims.forms)
    for row, cites, met, (counts, n_tokens) in zip(
        claims.rows, claims.cited, claims.met, counted, strict=True
    ):
        overlap = (counts / max(1, n_tokens)).astype(np.float32)
        is_cited = cites[group.places]
        sides = (np.flatnonzero(is_cited), np.flatnonzero(~is_cited))
        best = [_best(side, overlap, group.firsts, config) for side in sides if len(side)]
        kept = np.sort(np.concatenate(best))
        places = group.places[kept]
        found.add(row, group.rows[kept], places, is_cited=is_cited[kept], overlap=overlap[kept])
        windows = (group.windows[k] for k in kept.tolist())
        met.update(
            (place, window.start, window.end) for place, window in zip(places.tolist(), windows, strict=True)
        )


def _best(among: Ints, overlap: Floats, firsts: Ints, config: EvidenceConfig) -> Ints:
    """Of the windows `among` the one that shares most, and those that share enough; at most `max_windows`.

    A window with the ids of an earlier one is worth a place only as the best. What counts is `among`: a copy in a chunk that
    is not cited must not stand for the cited one, whose support is then told for another's.
    """
    is_repeat = np.ones(len(overlap), np.bool_)
    is_repeat[among[np.unique(firsts[among], return_index=True)[1]]] = False
    order = among[np.lexsort((-overlap[among], is_repeat[among]))][: config.max_windows]
    enough = (overlap[order] >= config.window_overlap) & ~is_repeat[order]
    enough[:1] = True
    best: Ints = order[enough]
    return best


def add_covers(found: FoundPairs, retries: FoundPairs, claims: Claims, group: Group, room: int) -> None:
    """Pair each claim with its cover and, where it cites some chunks only, with a cover of those.

    Into `retries` go, for each chunk that the first cover has a sentence of, the cover without that chunk.

    Args:
        found: pairs that will be judged.
        retries: pairs for claims that none of those carries.
        claims: of one answer; what they are paired with already is left out.
        group: the sentences of its chunks.
        room: tokens of a cover.
    """
    first = 0
    for asks in asked(claims.forms, len(group.windows)):
        some = claims.take(slice(first, first + len(asks.held)))
        first += len(some.rows)
        made = _Covers(some, group, asks.held, group.holds(asks.wanted).astype(np.float32), room)
        everything, places = np.arange(len(some.rows)), group.places
        partly = np.flatnonzero(some.cited.any(axis=1) & ~some.cited.all(axis=1))
        of = np.concatenate([everything, partly])
        may = np.concatenate(
            [np.ones((len(everything), len(places)), np.bool_), some.cited[partly][:, places]]
        )
        taken = made.of(of, may)
        made.add(found, of, taken)
        owner, at = np.nonzero(taken[: len(everything)])
        chunk = places[at]
        # The chunks of a cover stand in order, each with its sentences in a row.
        begins = np.ones(len(at), np.bool_)
        begins[1:] = (owner[1:] != owner[:-1]) | (chunk[1:] != chunk[:-1])
        owner, chunk = owner[begins], chunk[begins]
        made.add(retries, owner, made.of(owner, places != chunk[:, None]))


@dataclass(frozen=True, slots=True)
class _Covers:
    """Covers of some claims, from the sentences of their answer."""

    claims: Claims
    sentences: Group
    asks: Bools
    """Which of W tokens each claim holds, (claims, W)."""
    holds: Floats
    """1 where a sentence holds one of them, (sentences, W)."""
    room: int

    def of(self, claims: Ints, may: Bools) -> Bools:
        """The covers of these claims, each from the sentences that it may hold, (claims, sentences)."""
        return covers(self.asks[claims], self.holds, self.sentences.sizes, may, self.room)

    def add(self, found: FoundPairs, claims: Ints, taken: Bools) -> None:
        """Pair these claims with their covers; a premise that a claim has met already is left out."""
        group, asks = self.sentences, self.asks[claims]
        sizes = taken.sum(axis=1)
        of_cited = taken & self.claims.cited[claims][:, group.places]
        n_held, n_of_cited = (self._n_held(asks, some) for some in (taken, of_cited))
        overlap = (n_held / np.maximum(1, asks.sum(axis=1))).astype(np.float32)
        # Cited where that carries its part: one word of a cited chunk that says nothing else makes no good citation.
        is_cited: Bools = of_cited.any(axis=1) & (2 * n_of_cited >= n_held)
        every_at, bounds = np.nonzero(taken)[1], np.concatenate([[0], np.cumsum(sizes)]).tolist()
        for k, claim in enumerate(claims.tolist()):
            at, met = every_at[bounds[k] : bounds[k + 1]], self.claims.met[claim]
            if not len(at) or (span := _span(group, at)) in met:
                continue
            met.add(span)
            found.add(
                self.claims.rows[claim],
                group.rows[at],
                group.places[at],
                sizes=sizes[k : k + 1],
                is_cited=is_cited[k : k + 1],
                overlap=overlap[k : k + 1],
            )

    def _n_held(self, asks: Bools, taken: Bools) -> Ints:
        """How many of the tokens that are asked for stand in the sentences taken, (covers,)."""
        held = taken.astype(np.float32) @ self.holds > 0
        n: Ints = (held & asks).sum(axis=1)
        return n


def _span(group: Group, at: Ints) -> Span:
    first, last = int(at[0]), int(at[-1])
    if group.places[first] == group.places[last] and last - first == len(at) - 1:
        return int(group.places[first]), group.windows[first].start, group.windows[last].end
    return at.tobytes()
