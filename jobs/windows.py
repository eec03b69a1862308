"""Texts -> windows of whole sentences, as slices of token ids.

Each distinct text is tokenised and split into sentences once, whoever asks for it; windows are cut once for each
length limit. A sentence that is longer than the limit is cut in tokens, with a quarter of overlap. The module knows
neither claims nor answers nor what a window will be used for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import EvidenceConfig

Ints = np.ndarray[Any, np.dtype[np.int32]]
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
    bounds: Ints

    @classmethod
    def of(cls, texts: pa.Array, encode: Encode) -> Tokens:
        """Tokenise `texts`; no texts give empty columns."""
        table = encode(texts).combine_chunks()
        lists = [list_array(table.column(name)) for name in ("ids", "starts", "ends")]
        flat = [np.asarray(column.flatten(), dtype=np.int32) for column in lists]
        lengths = np.asarray(pc.list_value_length(lists[0]), dtype=np.int64)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return cls(ids=flat[0], starts=flat[1], ends=flat[2], bounds=bounds)

    def of_text(self, t: int) -> tuple[Ints, Ints, Ints, int]:
        """(ids, starts, ends, first flat position) of one text."""
        lo, hi = int(self.bounds[t]), int(self.bounds[t + 1])
        return self.ids[lo:hi], self.starts[lo:hi], self.ends[lo:hi], lo


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of one text: code points `start:end`, its token ids, and the set of them."""

    start: int
    end: int
    ids: Ints
    distinct: frozenset[int]


@dataclass(frozen=True)
class Group:
    """The windows of one answer's texts under one limit, in order; shared by all of its claims."""

    places: Ints
    """Which text of the answer each window is of."""
    windows: list[Window]

    @cached_property
    def is_repeat(self) -> Bools:
        """Whether an earlier window has the same ids: judging it tells nothing new."""
        seen: dict[bytes, int] = {}
        first = [seen.setdefault(w.ids.tobytes(), k) for k, w in enumerate(self.windows)]
        return np.asarray(np.array(first, dtype=np.int64) != np.arange(len(first)))

    def shared(self, distinct: frozenset[int]) -> Ints:
        """How many of the token ids `distinct` each window holds, shape (windows,)."""
        counts = np.zeros(len(self.windows), dtype=np.int32)
        for token in distinct & self._holders.keys():
            counts[self._holders[token]] += 1
        return counts

    @cached_property
    def _holders(self) -> dict[int, Ints]:
        """The windows that hold a token: a claim looks up its few tokens instead of going through all windows."""
        holders: dict[int, list[int]] = {}
        for k, window in enumerate(self.windows):
            for token in window.distinct:
                holders.setdefault(token, []).append(k)
        return {token: np.array(held, dtype=np.int32) for token, held in holders.items()}


@dataclass(frozen=True, slots=True)
class Texts:
    """The distinct texts among N, tokenised and split once; windows of them are cut once for a length limit."""

    index: Ints
    tokens: Tokens
    spans: list[list[dict[str, int]]]
    config: EvidenceConfig
    cache: dict[tuple[int, int], list[Window]]
    groups: dict[tuple[int, int, int], Group]
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
        return cls(
            index=np.asarray(encoded.indices, dtype=np.int32),
            tokens=Tokens.of(distinct, encode),
            spans=sentence_spans(distinct).to_pylist(),
            config=config,
            cache={},
            groups={},
        )

    def windows(self, lo: int, hi: int, n_claim_tokens: int) -> Group:
        """The windows of the texts lo:hi that fit beside a claim of so many tokens."""
        limit_claim = max(n_claim_tokens, self.config.max_pair_tokens // 4)  # one limit for all usual claims
        limit = max(
            self.config.max_pair_tokens - N_SPECIAL_TOKENS - limit_claim, self.config.min_premise_tokens
        )
        limit = min(limit, self.config.max_pair_tokens - N_SPECIAL_TOKENS - n_claim_tokens)
        if (lo, hi, limit) not in self.groups:
            if any(key[:2] != (lo, hi) for key in self.groups):
                self.groups.clear()
            found = [(k - lo, window) for k in range(lo, hi) for window in self._of_text(k, limit)]
            places = np.array([place for place, _ in found], dtype=np.int32)
            self.groups[lo, hi, limit] = Group(places, [window for _, window in found])
        return self.groups[lo, hi, limit]

    def _of_text(self, k: int, limit: int) -> list[Window]:
        key = (int(self.index[k]), limit)
        if key not in self.cache:
            self.cache[key] = list(_windows(self.tokens, key[0], self.spans[key[0]], limit, self.config))
        return self.cache[key]


def _windows(
    tokens: Tokens, t: int, spans: list[dict[str, int]], limit: int, config: EvidenceConfig
) -> Iterator[Window]:
    """Windows of whole sentences of text t, each of at most `limit` tokens; a longer sentence is cut in tokens."""
    ids, starts, ends, _ = tokens.of_text(t)
    lo = np.searchsorted(ends, [s["start"] for s in spans], side="right")
    hi = np.searchsorted(starts, [s["end"] for s in spans], side="left")
    i, n = 0, len(spans)
    while i < n:
        j = min(i + config.window_sentences, n)
        while j > i + 1 and hi[j - 1] - lo[i] > limit:
            j -= 1
        if hi[j - 1] - lo[i] > limit:
            for cut in range(int(lo[i]), int(hi[i]), max(1, limit - limit // 4)):
                stop = min(cut + limit, int(hi[i]))
                yield _window(
                    ids[cut:stop],
                    max(int(starts[cut]), spans[i]["start"]),
                    min(int(ends[stop - 1]), spans[i]["end"]),
                )
                if stop == hi[i]:
                    break
        elif hi[j - 1] > lo[i]:
            yield _window(ids[lo[i] : hi[j - 1]], spans[i]["start"], spans[j - 1]["end"])
        if j == n:
            break
        i = max(i + 1, j - config.overlap_sentences)


def _window(ids: Ints, start: int, end: int) -> Window:
    return Window(start=start, end=end, ids=ids, distinct=frozenset(ids.tolist()))


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
