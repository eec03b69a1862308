"""Which tokens of each claim every piece of its answer holds, for the claims of many answers at once.

The distinct tokens of a claim are numbered, and beside each piece stand as bits those that it holds: what two share, and what one
adds to others, is then counted on flat arrays. An answer has few claims and pieces, and calls of numpy for each cost
more than all else here (benchmarks/results/notes-job-cpu.md). Knows neither citations nor which premises are worth judging.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from claimscore.jobs.flat import runs
from claimscore.jobs.windows import Cut, Ints, Pieces, Tokens

Bits = np.ndarray[Any, np.dtype[np.uint64]]

WORD_BITS = 64
MAX_EQUAL = 1_000_000
"""Pairs of a form that is asked for and a token that has it, at a time: 50 MB."""


@dataclass(frozen=True)
class Forms:
    """The distinct forms of the tokens of N claims, flat: claim c has `forms[bounds[c]:bounds[c + 1]]`."""

    forms: Ints
    bounds: Ints

    @classmethod
    def of(cls, tokens: Tokens) -> Forms:
        """Of the tokens of claims."""
        n_claims = len(tokens.bounds) - 1
        owner = np.repeat(np.arange(n_claims), np.diff(tokens.bounds))
        keys = np.unique(_keys(owner, tokens.forms))
        bounds = np.searchsorted(keys >> 32, np.arange(n_claims + 1))
        return cls((keys & 0xFFFFFFFF).astype(np.int64) - 2**31, bounds)

    @cached_property
    def sizes(self) -> Ints:
        """How many each claim has."""
        return np.diff(self.bounds)

    @cached_property
    def n_words(self) -> Ints:
        """How many words their bits take, one at least."""
        return 1 + (self.sizes - 1).clip(min=0) // WORD_BITS


@dataclass(frozen=True)
class Grid:
    """C claims, each beside the pieces of its answer, flat: claim c has the cells `bounds[c]:bounds[c + 1]`."""

    claims: Ints
    """Which of all claims they are, (C,)."""
    n_forms: Ints
    """Their distinct forms, (C,)."""
    bounds: Ints
    """(C + 1,)."""
    owner: Ints
    """Of each cell: its claim among the C."""
    rows: Ints
    """Of each cell: its piece among all that were cut."""
    places: Ints
    """Of each cell: which text of the answer its piece is of."""
    bits: Bits
    """Of each cell: which forms of the claim the piece holds, (cells, words)."""

    @classmethod
    def of(cls, beside: Sequence[tuple[list[int], Pieces]], forms: Forms, cut: Cut, tokens: Tokens) -> Grid:
        """The claims of each answer, as rows of `forms`, beside the pieces of its texts, whose tokens `tokens` are."""
        claims = np.array([row for rows, _ in beside for row in rows], np.int64)
        rows = np.concatenate([pieces.rows for _, pieces in beside])
        places = np.concatenate([pieces.places for _, pieces in beside])
        n_pieces = np.array([len(pieces.rows) for _, pieces in beside], np.int64)
        firsts = np.cumsum(n_pieces) - n_pieces
        answer_of_claim = np.repeat(np.arange(len(beside)), [len(rows) for rows, _ in beside])
        answer_of_piece = np.repeat(np.arange(len(beside)), n_pieces)
        n_cells = n_pieces[answer_of_claim]
        bounds = np.concatenate([[0], np.cumsum(n_cells)])
        piece = runs(firsts[answer_of_claim], n_cells)
        n_forms = forms.sizes[claims]
        # Every form that a claim of an answer asks for, by answer and form: the forms of its pieces are looked up there.
        claim_of_form = np.repeat(np.arange(len(claims)), n_forms)
        asked = _keys(answer_of_claim[claim_of_form], forms.forms[runs(forms.bounds[claims], n_forms)])
        n_tokens = cut.stop[rows] - cut.first[rows]
        piece_of_token = np.repeat(np.arange(len(rows)), n_tokens)
        said = _keys(answer_of_piece[piece_of_token], tokens.forms[runs(cut.first[rows], n_tokens)])
        held = np.zeros((int(bounds[-1]), WORD_BITS * int(forms.n_words[claims].max(initial=1))), np.bool_)
        number = runs(np.zeros_like(n_forms), n_forms)
        for form, token in _equal(asked, said, piece_of_token):
            holding = piece_of_token[token]
            cell = bounds[claim_of_form[form]] + holding - firsts[answer_of_piece[holding]]
            held[cell, number[form]] = True
        return cls(
            claims=claims,
            n_forms=n_forms,
            bounds=bounds,
            owner=np.repeat(np.arange(len(claims)), n_cells),
            rows=rows[piece],
            places=places[piece],
            bits=np.packbits(held, axis=1, bitorder="little").view(np.uint64),
        )

    @cached_property
    def overlap(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Of each cell: the share of the claim's distinct forms that the piece holds."""
        return share(n_bits(self.bits), self.n_forms[self.owner])


def share(n: Ints, of: Ints) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Of each what part; 0 of none."""
    shares: np.ndarray[Any, np.dtype[np.float32]] = (n / np.maximum(1, of)).astype(np.float32)
    return shares


def n_bits(bits: Bits) -> Ints:
    """How many bits of each row are set."""
    counted: Ints = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return counted


def _equal(asked: Ints, said: Ints, piece: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The places of every two equal numbers, one of `asked` and one of `said`, some at a time.

    A number that many pieces say and many claims ask for, or one that a piece says 150 times for 300 claims, makes more
    pairs than memory should hold: those are parted, and what a piece (`piece`, of each of `said`) repeats is left out.
    """
    order = np.argsort(asked, kind="stable")
    keys = asked[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))  # no key is negative
    n = np.diff(begins, append=len(keys))
    at = np.searchsorted(keys[begins], said)
    token = np.flatnonzero(np.append(keys[begins], -1)[at] == said)
    at = at[token]
    if n[at].sum() > MAX_EQUAL:
        _, firsts = np.unique(piece[token] * len(begins) + at, return_index=True)
        at, token = at[firsts], token[firsts]
    ends = np.cumsum(n[at])
    first = 0
    while first < len(at):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + MAX_EQUAL, side="right")))
        some = at[first:last]
        yield order[runs(begins[some], n[some])], np.repeat(token[first:last], n[some])
        first = last


def _keys(owner: Ints, forms: Ints) -> Ints:
    """One number an owner and form, in their order."""
    return (owner.astype(np.int64) << 32) + (forms.astype(np.int64) + 2**31)
