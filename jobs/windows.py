"""Texts -> windows of whole sentences, and single sentences, as slices of token ids.

Each distinct text is tokenised and split into sentences once, whoever asks for it; windows are cut once for each
length limit. A sentence that is longer than the limit is cut in tokens, in windows with a quarter of overlap. The module
knows neither claims nor answers nor what a window will be used for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


class Cut(NamedTuple):
    """Pieces of texts as columns: code points `start:end` of their text, and their tokens among those of all texts."""

    start: Ints
    end: Ints
    first: Ints
    stop: Ints
    leans: Ints
    """1 of a piece whose first sentence says whom it speaks of only with the one before it (leaning.py)."""


class Pieces(NamedTuple):
    """The pieces of the texts of one answer, in order: their rows among all that were cut, and which text each is of."""

    rows: Ints
    places: Ints


@dataclass(frozen=True, slots=True)
class Spans:
    """The sentences of N texts, flat: text t owns `bounds[t]:bounds[t + 1]`."""

    rows: list[tuple[int, int, int, int, int]]
    """Start and end of each sentence in its text, its first token there, the one after its last, and whether it leans."""
    bounds: list[int]

    @classmethod
    def of(cls, spans: pa.ListArray, tokens: Tokens) -> Spans:
        """From list<struct<start, end, leans>>, beside the tokens of the same texts."""
        bounds, flat = list_offsets(spans), spans.flatten()
        start, end, leans = (
            np.asarray(flat.field(name).cast(pa.int64()), dtype=np.int64)
            for name in ("start", "end", "leans")
        )
        # One search for all texts: the places of each text lie behind all places of the text before.
        beyond = 1 + max(end.max(initial=0), tokens.ends.max(initial=0))
        of_span = np.repeat(np.arange(len(spans)), np.diff(bounds))
        of_token = np.repeat(np.arange(len(spans)), np.diff(tokens.bounds))
        first = np.searchsorted(tokens.ends + beyond * of_token, start + beyond * of_span, side="right")
        stop = np.searchsorted(tokens.starts + beyond * of_token, end + beyond * of_span, side="left")
        before = tokens.bounds[of_span]
        columns = (start, end, first - before, stop - before, leans)
        return cls(list(zip(*(column.tolist() for column in columns), strict=True)), bounds)

    def of_text(self, t: int) -> list[tuple[int, int, int, int, int]]:
        """The sentences of one text."""
        return self.rows[self.bounds[t] : self.bounds[t + 1]]


@dataclass(frozen=True, slots=True)
class Texts:
    """The distinct texts among N, tokenised and split once; windows of them are cut once for a length limit."""

    index: Ints
    tokens: Tokens
    spans: Spans
    config: EvidenceConfig
    cut: list[tuple[int, int, int, int, int]]
    """Every piece, once: a row of `Cut`."""
    cache: dict[tuple[int, _Cutting], range]
    """Which rows of `cut` a text was cut to."""

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
        )

    def limit(self, n_claim_tokens: int) -> int:
        """The longest window beside a claim of so many tokens, in tokens; one limit for all usual claims."""
        room = self.config.max_pair_tokens - N_SPECIAL_TOKENS
        usual = room - max(n_claim_tokens, self.config.max_pair_tokens // 4)
        return min(max(usual, self.config.min_premise_tokens), room - n_claim_tokens)

    def windows(self, lo: int, hi: int, limit: int) -> Pieces:
        """The windows of at most `limit` tokens of the texts lo:hi."""
        config = self.config
        how = _Cutting(limit, config.window_sentences, config.overlap_sentences, limit // 4)
        return self._pieces(lo, hi, how)

    def sentences(self, lo: int, hi: int, limit: int) -> Pieces:
        """The single sentences of the texts lo:hi, those of over `limit` tokens cut."""
        return self._pieces(lo, hi, _Cutting(limit, 1, 0, 0))

    def columns(self) -> Cut:
        """All pieces that were cut so far."""
        return Cut(*np.array(self.cut, np.int64).reshape(-1, 5).T)

    def copies(self, rows: Ints) -> Ints:
        """A number for each piece that was cut, equal where two of `rows` have the same ids; of the others 0."""
        seen: dict[bytes, int] = {}
        out = np.zeros(len(self.cut), np.int64)
        for row in np.unique(rows).tolist():
            _, _, first, stop, _ = self.cut[row]
            out[row] = seen.setdefault(self.tokens.ids[first:stop].tobytes(), row)
        return out

    def _pieces(self, lo: int, hi: int, how: _Cutting) -> Pieces:
        found = [self._of_text(k, how) for k in self.index[lo:hi].tolist()]
        rows = np.array([row for some in found for row in some], np.int64)
        return Pieces(rows, np.repeat(np.arange(len(found)), [len(some) for some in found]))

    def _of_text(self, k: int, how: _Cutting) -> range:
        if (k, how) not in self.cache:
            n_before = len(self.cut)
            _, starts, ends, at = self.tokens.of_text(k)
            self.cut.extend(
                (start, end, at + first, at + stop, leans)
                for start, end, first, stop, leans in _cuts(starts, ends, self.spans.of_text(k), how)
            )
            self.cache[k, how] = range(n_before, len(self.cut))
        return self.cache[k, how]


class _Cutting(NamedTuple):
    """How a text is cut: tokens and sentences of a window, sentences that two share, and tokens where one is cut."""

    limit: int
    n_sentences: int
    n_shared: int
    n_shared_tokens: int


def _cuts(
    starts: Ints, ends: Ints, spans: list[tuple[int, int, int, int, int]], how: _Cutting
) -> Iterator[tuple[int, int, int, int, int]]:
    """Windows of whole sentences of a text; a sentence that is longer than the limit is cut in tokens.

    Gives start and end in the text, the first token and the one after the last, and whether the first sentence leans.
    """
    lo, hi = [span[2] for span in spans], [span[3] for span in spans]
    i, n, limit = 0, len(spans), how.limit
    while i < n:
        j = min(i + how.n_sentences, n)
        while j > i + 1 and hi[j - 1] - lo[i] > limit:
            j -= 1
        if hi[j - 1] - lo[i] > limit:
            for cut in range(lo[i], hi[i], max(1, limit - how.n_shared_tokens)):
                stop = min(cut + limit, hi[i])
                start, end = max(int(starts[cut]), spans[i][0]), min(int(ends[stop - 1]), spans[i][1])
                yield start, end, cut, stop, spans[i][4] if cut == lo[i] else 0
                if stop == hi[i]:
                    break
        elif hi[j - 1] > lo[i]:
            yield spans[i][0], spans[j - 1][1], lo[i], hi[j - 1], spans[i][4]
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
