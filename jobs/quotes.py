"""Quotations that an answer presents, and whether they stand in the chunks word for word.

A match is exact after folding: NFKC, case, blanks, typographic quotes and dashes, soft hyphens, emphasis signs and
reference numbers. There is no near match: a quotation is verbatim or it is not one. An empty quote never matches
(`"" in text` is true, which is the trap). Knows no ids and no marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import pyarrow as pa

_MIN_CHARS = 12
_MIN_WORDS = 3
_PAIRS = {"“": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』", "‟": "”"}
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ELLIPSIS = re.compile(r"[\[(]\s*(?:\.{3,}|…)\s*[\])]|\.{3,}|…|\. \. \.")
_REFERENCE = re.compile(r"\[(?:\d{1,3}|sic)\]")
_ALTERED_LETTER = re.compile(r"\[([^\W\d_])\]")
_DROPPED = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff*`]")
_TYPOGRAPHIC = str.maketrans(
    dict.fromkeys("“”„‟«»「」『』", '"') | dict.fromkeys("‘’‚‛ʼ′", "'") | dict.fromkeys("‐‑‒–—―−", "-")
)
_OUTER = "\"' \t.,;:!?。，、；：！？"


def presented_quotes(text: str) -> list[str]:
    """The quotations of a sentence, verbatim, without their quote signs, in order.

    A quotation has at least 12 characters and 3 words (in scripts without blanks, 12 characters) and is not in
    title case: `"The Old Man and the Sea"` names a thing. Inner quotations belong to the outer one.
    """
    if not any(sign in text for sign in ('"', *_PAIRS)):
        return []
    return [quote for quote in _quoted(text) if _is_quotation(quote)]


def _quoted(text: str) -> Iterator[str]:
    opened: tuple[int, str] | None = None
    for match in re.finditer('["“”„‟«»「」『』]', text):
        sign, at = match[0], match.start()
        if opened and sign in opened[1] and (sign != '"' or _closes(text, at)):
            yield text[opened[0] : at].strip()
            opened = None
        elif opened is None and (sign == '"' or sign in _PAIRS) and (sign != '"' or _opens(text, at)):
            opened = (at + 1, _PAIRS.get(sign, '"'))


def _opens(text: str, at: int) -> bool:
    """False for the inch sign of `5"` and a stray closing sign."""
    return not text[at - 1 : at].isalnum() if at else True


def _closes(text: str, at: int) -> bool:
    return not text[at + 1 : at + 2].isalnum()


def _is_quotation(quote: str) -> bool:
    if len(quote) < _MIN_CHARS:
        return False
    if _UNSPACED.search(quote):
        return True
    words = [word for word in quote.split() if any(char.isalnum() for char in word)]
    capitals = sum(word.strip(_OUTER)[:1].isupper() for word in words)
    small = sum(word.islower() and len(word) <= 3 for word in words)
    is_title = capitals >= 2 and capitals + small == len(words)
    return len(words) >= _MIN_WORDS and not is_title


def quotes_found(quotes: pa.ListArray, texts: pa.ListArray) -> pa.BooleanArray:
    """Whether every quote of a row stands in one of the row's texts, after folding.

    Args:
        quotes: N lists of quotations.
        texts: N lists of chunk texts that they may stand in.

    Returns:
        N booleans; null for a row with no quotes. An ellipsis within a quote parts it: all parts must stand in one
        text, in that order, at word borders. A blank quote, or one with a blank text alone, is not found.
    """
    folded: dict[str, str] = {}
    out: list[bool | None] = []
    for row_quotes, row_texts in zip(quotes.to_pylist(), texts.to_pylist(), strict=True):
        if not row_quotes:
            out.append(None)
            continue
        for text in row_texts or ():
            if text and text not in folded:
                folded[text] = _fold(text)
        haystacks = [folded[text] for text in row_texts or () if text]
        out.append(all(_found(quote or "", haystacks) for quote in row_quotes))
    return pa.array(out, pa.bool_())


def stands_in(span: str, text: str) -> bool:
    """Whether `span` stands in `text` as one piece, word for word, at word borders, after typographic folding.

    Stricter than `quotes_found`: an ellipsis parts nothing, and reference numbers count. A blank span stands nowhere.
    """
    wanted = _typeset(span).strip(_OUTER)
    return bool(wanted) and _in_order([wanted], _typeset(text))


def n_words(text: str) -> int:
    """Words of a text; in scripts without blanks three characters count as one."""
    return sum(
        -(-len(word) // 3) if _UNSPACED.search(word) else 1 for word in re.findall(r"\w+", _typeset(text))
    )


def _found(quote: str, haystacks: Sequence[str]) -> bool:
    parts = [part for piece in _ELLIPSIS.split(quote) if (part := _fold(piece).strip(_OUTER))]
    return bool(parts) and any(_in_order(parts, text) for text in haystacks)


def _in_order(parts: Sequence[str], text: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        while at >= 0 and not _at_borders(part, text, at):
            at = text.find(part, at + 1)
        if at < 0:
            return False
        at += len(part)
    return True


def _at_borders(part: str, text: str, at: int) -> bool:
    """False where the match begins or ends within a word or number, in scripts that part words by blanks."""
    before, after = text[at - 1 : at] if at else "", text[at + len(part) : at + len(part) + 1]
    return not (_joins(before, part[0]) or _joins(part[-1], after))


def _joins(left: str, right: str) -> bool:
    both = left.isalnum() and right.isalnum()
    return both and not (_UNSPACED.match(left) or _UNSPACED.match(right))


def _fold(text: str) -> str:
    return _typeset(_ALTERED_LETTER.sub(r"\1", _REFERENCE.sub("", text)))


def _typeset(text: str) -> str:
    folded = unicodedata.normalize("NFKC", _DROPPED.sub("", text)).translate(_TYPOGRAPHIC).casefold()
    return " ".join(folded.split())
