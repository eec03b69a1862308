"""Where the sentences of a plain text end, in any script, as spans of code points.

sentencex decides (Latin, CJK, Indic, Arabic, ...: 0.02 ms an answer); citation marks are masked before it looks, so
`costs 5. [2] Late` ends after the mark. Some of its cuts are undone (numbering, an abbreviation before a
number, a German date, a dash that goes on, a Japanese quotation). Where a script writes no blanks between words, ICU's line breaks stand in under a
length cap. Linear in the text. Knows no Markdown and no chunk ids: a mark is what looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import sentencex
from icu4py.breakers import LineBreaker

_WINDOW_CHARS = 4_000
_MARK_CHARS = 100  # a longer bracket is no mark that has to stay whole
_UNSPACED_CHARS = 160  # Thai, Lao, Khmer, Burmese: about a sentence; a blank there parts clauses as often
# Possessive throughout: a failed mark is given up at once, so a megabyte of one character stays linear.
_ITEM = r"\^?(?=[^\d\s\[\]［］,;]*+\d)[\w.:#/\-]++"
_MARK = (
    r"(?:[\[［]\s*+(?:(?:sources?|docs?|documents?|refs?|chunks?|citations?|contexts?|passages?)\b\s*+:?\s*+#?)?"
    rf"{_ITEM}\s*+(?:[,;–—、，]\s*+{_ITEM}\s*+)*+(?:†[^\[\]［］\n]*+)?[\]］]|【[^【】\n]*+】)"
)
MARKS = re.compile(rf"(?<!\s)\s*+{_MARK}", re.IGNORECASE)
ENDS = ".!?。！？؟।॥։።…"
CLOSERS = "\"'”’»)）」』】*_"
_MARKS_AFTER_END = re.compile(rf"(?<=[{ENDS}])[{CLOSERS}]*+((?:\s*+{_MARK})++)(?=(\s*)(\S?))", re.IGNORECASE)
NUMBERING = re.compile(r"\s*\(?(?:\d{1,2}|[A-Za-z]|[ivxIVX]{1,4})[.)]\s*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
)
_OPEN_ABBREVIATION = re.compile(
    r"(?:^|\W)(?:approx|ca|cf|vs|est|max|min|incl|excl|nos?|figs?|sect?|eqs?|vol|pp?)\.\s*$", re.IGNORECASE
)
_ADDRESSED = re.compile(r"(?:^|\W)(?:Ms|Mx|Messrs|Mmes)\.\s*$")
"""Titles that sentencex does not know, as it knows Mr. and Dr."""
_TITLES = ("Ms.", "Mx.", "Messrs.", "Mmes.")
_DASHED_ON = re.compile(r"[-–—] [a-z]")  # "Snap it! - a game about an eclipse"
_DAY = re.compile(r"\b\d{1,2}\.\s*$")
_GERMAN_MONTH = re.compile("(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-zä]*[ .]")
_JA_QUOTED = re.compile(r"(?:と|って)")


def sentence_bounds(plain: str, language: str, max_chars: int) -> Iterator[tuple[int, int]]:
    """Spans of sentences without outer blanks, none longer than the cap."""
    masked = _masked(plain)
    if not plain.isascii() and _UNSPACED.search(plain) and len(_UNSPACED.findall(plain)) * 2 > len(plain):
        pieces: Iterable[str] = _unspaced(masked)
    else:
        pieces = _segments(_language(plain, language), masked)
    at = 0
    held: int | None = None
    sizes = [len(piece) for piece in pieces]
    for size in sizes:
        start, at = (at if held is None else held), at + size
        held = start if at < len(plain) and _goes_on(plain[start:at], plain[at : at + 12]) else None
        if held is None and at - start <= max_chars:  # as nearly all
            piece = plain[start:at]
            stop = start + len(piece.rstrip())
            if stop > start:
                yield stop - len(piece.strip()), stop
        elif held is None:
            yield from _capped(plain, start, at, max_chars)
    if at < len(plain):  # never seen; the last characters must not be lost if it happens
        yield from _capped(plain, at, len(plain), max_chars)


def _segments(language: str, masked: str) -> Iterator[str]:
    """Cut by sentencex in windows: its search for a closing quote is quadratic (20,000 opening quotes: 0.2 s)."""
    at = 0
    while len(masked) - at > _WINDOW_CHARS:
        window = masked[at : at + _WINDOW_CHARS]
        pieces = sentencex.segment(language, window)
        # The last may be cut short: it opens the next window. One alone is longer than any sentence.
        whole = pieces[:-1] or [window[: window.rfind("][") + 1 or None]]
        yield from whole
        at += sum(map(len, whole))
    yield from sentencex.segment(language, masked[at:])


def _goes_on(piece: str, following: str) -> bool:
    """True where sentencex cut too early: numbering alone, an abbreviation before a number, a title, a German date, a dash,
    a Japanese quotation.
    """
    if len(piece) < 12 and NUMBERING.fullmatch(piece):
        return True
    ended = piece.rstrip()
    if ended[-1:] in "」』" and _JA_QUOTED.match(following):
        return True
    first = following[:1]
    if first in "-–—" and _DASHED_ON.match(following):
        return True
    if first in "JFMASOND" and _GERMAN_MONTH.match(following) and _DAY.search(piece[-4:]):
        return True
    if first.isupper() and ended.endswith(_TITLES) and _ADDRESSED.search(piece[-8:]):
        return True
    return first.isdigit() and bool(_OPEN_ABBREVIATION.search(piece[-12:]))


def _masked(plain: str) -> str:
    """`plain` with marks after a sentence end blanked, so that they stay with the sentence they follow.

    Kept apart: a mark that opens the next sentence as its subject (`[2] says`), and a text that puts its
    marks in front (begins with one and does not end with one).
    """
    if "[" not in plain and "【" not in plain and "［" not in plain:
        return plain
    first = MARKS.match(plain)
    in_front = first and not plain[first.end() :].lstrip()[:1].islower()
    if in_front and not plain.rstrip(ENDS + CLOSERS + " ").endswith(("]", "】", "］")):
        return MARKS.sub(lambda m: _filled(m[0]), plain)

    def blank(match: re.Match[str]) -> str:
        marks = match[1]
        return match[0][: -len(marks)] + (_filled(marks) if match[3].islower() else " " * len(marks))

    return _MARKS_AFTER_END.sub(blank, plain)


def _filled(marks: str) -> str:
    return re.sub(r"\S", "X", marks)


def _language(plain: str, default: str) -> str:
    if plain.isascii():
        return default
    for language, script in _SCRIPTS:
        if len(script.findall(plain)) * 3 > len(plain):
            return language
    return default


def _unspaced(masked: str) -> Iterator[str]:
    """Pieces of a text without blanks between words: at its end marks, else at a blank or ICU line break near 160."""
    for piece in _segments("my", masked):
        at = 0
        while len(piece) - at > _UNSPACED_CHARS:
            window = piece[at : at + _UNSPACED_CHARS]
            cuts = [m.end() for m in re.finditer(r"(?<!\d)\s+(?!\d)", window)]
            cut = cuts[-1] if cuts and cuts[-1] > 20 else _line_break(piece[at : at + 2 * _UNSPACED_CHARS])
            yield piece[at : at + cut]
            at += cut
        yield piece[at:]


def _line_break(text: str) -> int:
    """The last of the first 160 characters after which ICU would break a line; it sees more, to know the word there."""
    units = 0  # ICU counts UTF-16
    to_points = {}
    for i, char in enumerate(text[: _UNSPACED_CHARS + 1]):
        to_points[units] = i
        units += 2 if ord(char) > 0xFFFF else 1
    ends = (end for _, end in LineBreaker(text, "th").segments())
    return max((to_points[end] for end in ends if to_points.get(end)), default=_UNSPACED_CHARS)


def _capped(plain: str, start: int, end: int, cap: int) -> Iterator[tuple[int, int]]:
    """The span without outer blanks, cut at the last blank before every `cap` characters, and not within a mark."""
    while True:
        piece = plain[start:end] if end - start <= 2 * cap else plain[start : start + 2 * cap]
        start += len(piece) - len(piece.lstrip())
        if end - start <= cap:
            break
        blank, mark = (plain.rfind(between, start + 1, start + cap + 1) for between in (" ", "]["))
        cut = max(blank, mark + 1, start)
        cut = _before_mark(plain, start, cut if cut > start else start + cap)
        yield start, start + len(plain[start:cut].rstrip())
        start = cut
    stop = start + len(plain[start:end].rstrip())
    if stop > start:
        yield start, stop


def _before_mark(plain: str, start: int, cut: int) -> int:
    """`cut`, or the bracket before it that a short mark opens there: half a mark would pass for words."""
    opened = max(plain.rfind(sign, max(start + 1, cut - _MARK_CHARS), cut) for sign in "[［【")
    is_open = opened > start and not any(sign in plain[opened:cut] for sign in "]］】")
    return opened if is_open and any(sign in plain[cut : opened + _MARK_CHARS] for sign in "]］】") else cut


def has_word(text: str) -> bool:
    """True where `text` has a letter or digit of any script."""
    return text[:1].isalnum() or any(char.isalnum() for char in text)
