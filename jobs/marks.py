"""One citation mark, read against the ids of an answer's chunks.

A bracket is a mark when every item in it is a chunk's id, a position, a range of positions, or an id of the same
shape as the retrieved ones; ids beat positions. What points nowhere is fabricated; what does not read as a
citation (a year, `[sic]`, `[...]`, plain words) is none and stays text. Knows no sentence and no code.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MAX_RANGE = 50  # `[1-3]` is a range of chunks; `[1-900]` is none
_PREFIX = re.compile(
    r"(?:sources?|src|docs?|documents?|refs?|references?|citations?|cite|chunks?|contexts?|passages?|evidence"
    r"|quellen?|来源|文献|出典|資料)(?![^\W\d])\s*[.:#]*\s*(?=\S)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[,;、，；]|\band\b|&")
_NUMBER = re.compile(r"[\^#]?(\d{1,9})")
_RANGE = re.compile(r"\^?(\d{1,9})\s*(?:[-‐‑–—~〜]|\bto\b)\s*\^?(\d{1,9})")
_OPENAI = re.compile(r"\d+:(\d{1,4})")
_LOCATOR = re.compile(
    r"(?:pp?|pages?|sect?|sections?|§+|paras?|lines?|ch|chapters?|fig|table|l)\.?\s*[\dA-Za-z.\-–]{1,12}",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[^\W\d_]{3}[^\d]*")  # [2, emphasis added]
_HEX = re.compile(r"(?=[^\d]*\d)[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*")


@dataclass(frozen=True, slots=True)
class ChunkIds:
    """The ids of an answer's chunks, and what an id of theirs looks like."""

    ids: tuple[str, ...]
    known: frozenset[str]
    folded: Mapping[str, str]
    shapes: frozenset[str]
    by_position: bool
    """False where ids are numbers that positions could be taken for: then only ids count."""
    first_number: int
    has_long_numbers: bool
    """Some id is a number of five digits or more."""

    @classmethod
    def of(cls, ids: Sequence[str], first_number: int) -> ChunkIds:
        """What marks of an answer with these chunk ids, in order, can mean; no ids: every mark is fabricated."""
        numbers = {int(i) for i in ids if i.isascii() and i.isdigit() and len(i) < 10}
        positions = range(first_number, first_number + len(ids))
        all_numbers = bool(ids) and all(i.isascii() and i.isdigit() for i in ids)
        shapes = frozenset(shape for i in ids if (shape := _shape(i)))
        clash = all_numbers and any(n in positions for n in numbers)
        return cls(
            tuple(ids),
            frozenset(ids),
            {i.casefold(): i for i in reversed(ids)},
            shapes,
            not clash,
            first_number,
            any(i.isdigit() and len(i) > 4 for i in ids),
        )

    def at(self, number: int) -> str | None:
        """The id of the chunk that a mark with this number points at, None where there is none."""
        index = number - self.first_number
        return self.ids[index] if self.by_position and 0 <= index < len(self.ids) else None


def _shape(text: str) -> str:
    """`doc_042` -> `a_0`: runs of letters and of digits by kind; "" without a letter and a digit."""
    if _HEX.fullmatch(text):
        return "hex"
    if not any(c.isdigit() for c in text) or not any(c.isalpha() for c in text) or len(text) > 200:
        return ""
    first = re.match(
        r"[^\W\d_]{0,2}(?![^\W\d_])", text
    )  # one or two letters must be the same: `v2` is no `c2`
    kept = first[0].casefold() if first else "a"
    rest = re.sub(r"^[^\W\d_]+", "", text)
    return kept + re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", rest))


def read_mark(body: str, mark: str, chunks: ChunkIds) -> tuple[list[str], list[str]] | None:
    """Ids and fabricated marks of one bracket; None where it is no citation.

    Args:
        body: what stands between the brackets.
        mark: the bracket as written, kept where it is fabricated.
        chunks: the ids that it can point at.
    """
    raw = body.strip()
    if raw in chunks.known:
        return [raw], []
    head, dagger, _ = unicodedata.normalize("NFKC", raw).partition("†")
    items = [item for part in _SEPARATOR.split(head) if (item := part.strip())]
    prefixed = bool(dagger)
    ids: list[str] = []
    made_up: list[str] = []
    for i, item in enumerate(items):
        prefix = _PREFIX.match(item)
        prefixed = prefixed or prefix is not None
        cited = _item(item, item[prefix.end() :] if prefix else item, chunks, prefixed=prefixed)
        if cited is None:
            if i and (_LOCATOR.fullmatch(item) or _ASIDE.fullmatch(item)):
                continue
            return None
        ids += cited[0]
        if cited[1]:
            made_up.append(mark if len(items) == 1 else f"[{item}]")
    return (ids, made_up) if ids or made_up else None


def _item(item: str, bare: str, chunks: ChunkIds, *, prefixed: bool) -> tuple[list[str], bool] | None:
    """Ids of one item of a mark and whether it (also) points nowhere; None where it does not read as a citation."""
    for name in (item, bare, bare.lstrip("^#")):
        known = name if name in chunks.known else chunks.folded.get(name.casefold())
        if known is not None:
            return [known], False
    if number := _NUMBER.fullmatch(bare) or (prefixed and _OPENAI.fullmatch(bare)) or None:
        return _numbers(int(number[1]), int(number[1]), chunks, prefixed=prefixed)
    if ends := _RANGE.fullmatch(bare):
        return _numbers(int(ends[1]), int(ends[2]), chunks, prefixed=prefixed)
    if {_shape(item), _shape(bare)} & chunks.shapes:
        return [], True
    return None


def _numbers(first: int, last: int, chunks: ChunkIds, *, prefixed: bool) -> tuple[list[str], bool] | None:
    """Ids at the positions first..last; years and long numbers are no positions unless a word says so."""
    if first >= 1000 and not prefixed:
        return ([], True) if first > 9999 and chunks.has_long_numbers else None
    if last < first or last - first >= _MAX_RANGE:
        return [], True
    found = [str(n) if str(n) in chunks.known else chunks.at(n) for n in range(first, last + 1)]
    return [cited for cited in found if cited is not None], None in found
