"""Structured citations of a provider, placed in the answer and handed to the sentences they overlap.

Owners count offsets in code points (Anthropic, Cohere), UTF-8 bytes (Google) or UTF-16 units (whatever passed
through JavaScript), and some make the end inclusive. The cited text decides: the first reading that gives it is
believed, then a unique occurrence of it. Knows no marks and no retrieved chunks.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_MAX_SEARCHED_CHARS = (
    20_000_000  # of one answer, for cited texts that no reading of the offsets gives: a second
)


def ids_by_sentence(
    answer: str, citations: Sequence[Mapping[str, Any] | None] | None, sentences: Sequence[tuple[int, int]]
) -> list[list[str]] | None:
    """The ids that citations give each sentence, each once, in order; None where the log has no citations.

    Args:
        answer: the original answer.
        citations: `records.PROVIDER_CITATION` dicts.
        sentences: spans in `answer`, in order.

    A citation belongs to every sentence it overlaps. One without a verified place belongs to all, since its id
    must not vanish. None and an empty list give None: then marks in the text are what there is.
    """
    if not citations:
        return None
    starts, ends = [start for start, _ in sentences], [end for _, end in sentences]
    ranges: dict[tuple[int, int, str], None] = {}
    for citation, span in zip(citations, place_citations(answer, citations), strict=True):
        low, high = 0, len(sentences)
        if span:
            low = bisect.bisect_right(ends, span[0])
            high = bisect.bisect_left(starts, span[1])
        for chunk_id in (citation or {}).get("chunk_ids") or ():
            if chunk_id is not None:
                ranges[(low, max(low, high), chunk_id)] = None
    found: list[dict[str, None]] = [{} for _ in sentences]
    for low, high, chunk_id in ranges:
        for i in range(low, high):
            found[i][chunk_id] = None
    return [list(ids) for ids in found]


def has_unverified_spans(log: pa.Table) -> pa.BooleanArray:
    """For each row of the log, whether a provider citation could not be placed in the answer (false without any)."""
    pairs = zip(log.column("answer").to_pylist(), log.column("citations").to_pylist(), strict=True)
    return pa.array(
        [bool(cited) and None in place_citations(answer or "", cited) for answer, cited in pairs], pa.bool_()
    )


def place_citations(
    answer: str, citations: Sequence[Mapping[str, Any] | None]
) -> list[tuple[int, int] | None]:
    """The code-point span in `answer` of each citation, or None where its place cannot be verified.

    A citation with offsets but without text is believed where the offsets lie in the answer.
    """
    readings = [_units(answer, encoding) for encoding in ((None,) if answer.isascii() else (None, 8, 16))]
    searched = 0
    spans: list[tuple[int, int] | None] = []
    for citation in citations:
        given = citation or {}
        start, end, text = given.get("start"), given.get("end"), given.get("text")
        span = (
            next(_read(answer, readings, start, end, text), None)
            if start is not None and end is not None
            else None
        )
        if span is None and text and text.strip() and searched < _MAX_SEARCHED_CHARS:
            searched += len(answer)
            at = answer.find(text)
            if at >= 0 and answer.find(text, at + 1) < 0:
                span = (at, at + len(text))
        spans.append(span)
    return spans


def _read(
    answer: str, readings: Sequence[np.ndarray | None], start: int, end: int, text: str | None
) -> Iterator[tuple[int, int]]:
    """The spans that give `text`, over units and over an exclusive and an inclusive end."""
    for units in readings:
        for stop in (end, end + 1):
            low, high = start, stop
            if units is not None:
                low, high = int(np.searchsorted(units, start)), int(np.searchsorted(units, stop))
            if 0 <= low < high <= len(answer) and (not text or answer[low:high] == text):
                yield low, high


def _units(answer: str, bits: int | None) -> np.ndarray | None:
    """Offset of every code point in UTF-8 bytes or UTF-16 units, with the total last; None for code points."""
    if bits is None:
        return None
    points = np.frombuffer(answer.encode("utf-32-le", "surrogatepass"), np.uint32)
    if bits == 16:
        sizes = 1 + (points > 0xFFFF)
    else:
        sizes = 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)
    return np.concatenate(([0], np.cumsum(sizes)))
