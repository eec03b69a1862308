"""Texts -> windows of whole sentences, and single sentences, as slices of token ids.

Each distinct text is tokenised and split into sentences once, whoever asks for it; windows are cut once for each
length limit. A sentence that is longer than the limit is cut in tokens, in windows with a quarter of overlap. The module
knows neither claims nor answers nor what a window will be used for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import EvidenceConfig

Ints = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Encode = Callable[[pa.Array], pa.Table]
SentenceSpans = Callable[[pa.Array], pa.ListArray]

N_SPECIAL_TOKENS = 3  # [CLS] premise [SEP] claim [SEP]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of N texts, flat: text t owns `bounds[t]:bounds[t + 1]`; starts and ends are code points."""

    ids: Ints
    starts: Ints
    ends: Ints
    forms: Ints
    """Beside `ids`, equal where two tokens differ in case alone: a sentence begins with a capital."""
    bounds: Ints

    @classmethod
    def of(cls, texts: pa.Array, encode: Encode) -> Tokens:
        """Tokenise `texts`; no texts give empty columns."""
        table = encode(texts).combine_chunks()
        lists = [*(list_array(table.column(name)) for name in ("ids", "starts", "ends")), forms_of(table)]
        flat = [np.asarray(column.flatten(), dtype=np.int32) for column in lists]
        lengths = np.asarray(pc.list_value_length(lists[0]), dtype=np.int64)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return cls(ids=flat[0], starts=flat[1], ends=flat[2], forms=flat[3], bounds=bounds)

    def of_text(self, t: int) -> tuple[Ints, Ints, Ints, int]:
        """(ids, starts, ends, first flat position) of one text."""
        lo, hi = int(self.bounds[t]), int(self.bounds[t + 1])
        return self.ids[lo:hi], self.starts[lo:hi], self.ends[lo:hi], lo

    def forms_of(self, t: int) -> Ints:
        """The forms of one text's tokens."""
        return self.forms[int(self.bounds[t]) : int(self.bounds[t + 1])]


class Window(NamedTuple):
    """A piece of one text: code points `start:end`, its token ids and forms, and its row among all windows that were cut."""

    start: int
    end: int
    ids: Ints
    forms: Ints
    row: int


MAX_CELLS = 16_000_000
"""Of the tables in which tokens are counted, windows x tokens of some claims: 64 MB."""


@dataclass(frozen=True)
class Group:
    """The windows of one answer's texts under one limit, in order; shared by all of its claims."""

    places: Ints
    """Which text of the answer each window is of."""
    windows: list[Window]

    @cached_property
    def rows(self) -> Ints:
        """The row of each window among all that were cut."""
        return np.array([window.row for window in self.windows], dtype=np.int32)

    @cached_property
    def sizes(self) -> Ints:
        """Tokens of each window."""
        return np.diff(self._flat[1])

    @cached_property
    def firsts(self) -> Ints:
        """Of each window the first with the same ids, as its place among them; judging another tells nothing new."""
        seen: dict[bytes, int] = {}
        return np.array([seen.setdefault(w.ids.tobytes(), k) for k, w in enumerate(self.windows)], np.int64)

    def shared(self, claims: Sequence[Ints]) -> Iterator[tuple[Ints, int]]:
        """Of each claim's forms, each distinct one once: how many every window holds, (windows,), and of how many."""
        for asks in asked(claims, len(self.windows)):
            holds = self.holds(asks.wanted).astype(np.float32)
            yield from zip(
                (asks.held.astype(np.float32) @ holds.T).astype(np.int32),
                asks.held.sum(axis=1).tolist(),
                strict=True,
            )

    def holds(self, wanted: Ints) -> Bools:
        """Which of the forms `wanted` each window holds, (windows, wanted)."""
        return tokens_held(wanted, *self._flat)

    @cached_property
    def _flat(self) -> tuple[Ints, Ints]:
        """The forms of all windows, and where each window's begin; one place more."""
        bounds = np.cumsum([0, *(len(window.forms) for window in self.windows)]).astype(np.int32)
        return np.concatenate([window.forms for window in self.windows]), bounds


class Asked(NamedTuple):
    """Some claims in a row: their distinct forms, ascending, and which of them each holds, (claims, forms)."""

    wanted: Ints
    held: Bools


def asked(claims: Sequence[Ints], n_windows: int) -> Iterator[Asked]:
    """The forms of claims' tokens, so many claims at a time that claims x their ids x `n_windows` keeps to MAX_CELLS.

    A claim is counted beside the ids of all that go with it: twice the claims at a time are four times the work. One claim
    is counted at least, whatever it and the windows come to.
    """
    longest = max(map(len, claims), default=0)
    step = max(1, math.isqrt(MAX_CELLS // max(1, longest * n_windows)))
    for first in range(0, len(claims), step):
        some = claims[first : first + step]
        wanted, at = np.unique(np.concatenate(some), return_inverse=True)
        held = np.zeros((len(some), len(wanted)), dtype=np.bool_)
        held[np.repeat(np.arange(len(some)), [len(ids) for ids in some]), at.ravel()] = True
        yield Asked(wanted, held)


def tokens_held(wanted: Ints, ids: Ints, bounds: Ints) -> Bools:
    """Which of the ids `wanted` (sorted, distinct) stand in `ids[bounds[k]:bounds[k + 1]]`, shape (k, wanted)."""
    held = np.zeros((len(bounds) - 1, len(wanted)), dtype=np.bool_)
    if len(wanted):
        at = np.searchsorted(wanted, ids).clip(max=len(wanted) - 1)
        found = wanted[at] == ids
        held[np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[found], at[found]] = True
    return held


@dataclass(frozen=True, slots=True)
class Spans:
    """The sentences of N texts, flat: text t owns `bounds[t]:bounds[t + 1]`."""

    rows: list[tuple[int, int, int, int]]
    """Start and end of each sentence in its text, its first token there and the one after its last."""
    bounds: list[int]

    @classmethod
    def of(cls, spans: pa.ListArray, tokens: Tokens) -> Spans:
        """From list<struct<start, end>>, beside the tokens of the same texts."""
        bounds, flat = list_offsets(spans), spans.flatten()
        start, end = (np.asarray(flat.field(name), dtype=np.int64) for name in ("start", "end"))
        # One search for all texts: the places of each text lie behind all places of the text before.
        beyond = 1 + max(end.max(initial=0), tokens.ends.max(initial=0))
        of_span = np.repeat(np.arange(len(spans)), np.diff(bounds))
        of_token = np.repeat(np.arange(len(spans)), np.diff(tokens.bounds))
        first = np.searchsorted(tokens.ends + beyond * of_token, start + beyond * of_span, side="right")
        stop = np.searchsorted(tokens.starts + beyond * of_token, end + beyond * of_span, side="left")
        before = tokens.bounds[of_span]
        columns = (start, end, first - before, stop - before)
        return cls(list(zip(*(column.tolist() for column in columns), strict=True)), bounds)

    def of_text(self, t: int) -> list[tuple[int, int, int, int]]:
        """The sentences of one text."""
        return self.rows[self.bounds[t] : self.bounds[t + 1]]


@dataclass(frozen=True, slots=True)
class Texts:
    """The distinct texts among N, tokenised and split once; windows of them are cut once for a length limit."""

    index: Ints
    tokens: Tokens
    spans: Spans
    config: EvidenceConfig
    cut: list[Window]
    """Every window, once."""
    cache: dict[tuple[int, _Cut], list[Window]]
    groups: dict[tuple[int, int, _Cut], Group]
    """Of the answer asked for last: its claims come one after the other."""

    @classmethod
    def of(
        cls,
        texts: pa.Array,
        encode: Encode,
        sentence_spans: SentenceSpans,
        config: EvidenceConfig,
    ) -> Texts:
        """The distinct texts of `texts`, each tokenised and split once; null texts must not be among them."""
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary
        tokens = Tokens.of(distinct, encode)
        return cls(
            index=np.asarray(encoded.indices, dtype=np.int32),
            tokens=tokens,
            spans=Spans.of(sentence_spans(distinct), tokens),
            config=config,
            cut=[],
            cache={},
            groups={},
        )

    def limit(self, n_claim_tokens: int) -> int:
        """The longest window beside a claim of so many tokens, in tokens; one limit for all usual claims."""
        room = self.config.max_pair_tokens - N_SPECIAL_TOKENS
        usual = room - max(n_claim_tokens, self.config.max_pair_tokens // 4)
        return min(max(usual, self.config.min_premise_tokens), room - n_claim_tokens)

    def windows(self, lo: int, hi: int, limit: int) -> Group:
        """The windows of at most `limit` tokens of the texts lo:hi."""
        config = self.config
        return self._group(lo, hi, _Cut(limit, config.window_sentences, config.overlap_sentences, limit // 4))

    def sentences(self, lo: int, hi: int, limit: int) -> Group:
        """The single sentences of the texts lo:hi, those of over `limit` tokens cut."""
        return self._group(lo, hi, _Cut(limit, 1, 0, 0))

    def _group(self, lo: int, hi: int, how: _Cut) -> Group:
        if (lo, hi, how) not in self.groups:
            if any(key[:2] != (lo, hi) for key in self.groups):
                self.groups.clear()
            found = [(k - lo, window) for k in range(lo, hi) for window in self._of_text(k, how)]
            places = np.array([place for place, _ in found], dtype=np.int32)
            self.groups[lo, hi, how] = Group(places, [window for _, window in found])
        return self.groups[lo, hi, how]

    def _of_text(self, k: int, how: _Cut) -> list[Window]:
        key = (int(self.index[k]), how)
        if key not in self.cache:
            (ids, starts, ends, _), forms = self.tokens.of_text(key[0]), self.tokens.forms_of(key[0])
            rows = itertools.count(len(self.cut))
            self.cache[key] = [
                Window(start, end, ids[first:stop], forms[first:stop], row)
                for (start, end, first, stop), row in zip(
                    _cuts(starts, ends, self.spans.of_text(key[0]), how), rows, strict=False
                )
            ]
            self.cut.extend(self.cache[key])
        return self.cache[key]


class _Cut(NamedTuple):
    """How a text is cut: tokens and sentences of a window, sentences that two share, and tokens where one is cut."""

    limit: int
    n_sentences: int
    n_shared: int
    n_shared_tokens: int


def _cuts(
    starts: Ints, ends: Ints, spans: list[tuple[int, int, int, int]], how: _Cut
) -> Iterator[tuple[int, int, int, int]]:
    """Windows of whole sentences of a text; a sentence that is longer than the limit is cut in tokens.

    Gives start and end in the text, and the first token and the one after the last.
    """
    lo, hi = [first for _, _, first, _ in spans], [stop for *_, stop in spans]
    i, n, limit = 0, len(spans), how.limit
    while i < n:
        j = min(i + how.n_sentences, n)
        while j > i + 1 and hi[j - 1] - lo[i] > limit:
            j -= 1
        if hi[j - 1] - lo[i] > limit:
            for cut in range(lo[i], hi[i], max(1, limit - how.n_shared_tokens)):
                stop = min(cut + limit, hi[i])
                yield max(int(starts[cut]), spans[i][0]), min(int(ends[stop - 1]), spans[i][1]), cut, stop
                if stop == hi[i]:
                    break
        elif hi[j - 1] > lo[i]:
            yield spans[i][0], spans[j - 1][1], lo[i], hi[j - 1]
        if j == n:
            break
        i = max(i + 1, j - how.n_shared)


def forms_of(encoded: pa.Table) -> pa.ListArray:
    """The forms of texts that were encoded; of a tokenizer that tells none every id is its own."""
    return list_array(encoded.column("forms" if "forms" in encoded.column_names else "ids"))


def as_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array, however many chunks the table keeps it in."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def list_array(column: pa.ChunkedArray | pa.Array) -> pa.ListArray:
    """`as_array` of a list column, typed as what it is."""
    return as_array(column)


def list_offsets(column: pa.ListArray) -> list[int]:
    """Offsets into `column.flatten()`, from 0, whatever slice of a larger array it is."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0), dtype=np.int64)
    return [0, *np.cumsum(lengths).tolist()]
