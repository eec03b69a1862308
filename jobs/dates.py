"""Dates, periods and times of day at one place of a text, with every reading that the writing allows.

A reading is as precise as the text: `12 April 2024` is a day, `the 1960s` ten years, `June` a month of no
year. 12/04/2024 is read both ways unless the text states an order (`dd/mm/yyyy`, `month/day/year`). The
module knows English month names, ISO and CJK forms, no calendar arithmetic, and never today's date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple


class When(NamedTuple):
    """One reading of a date, a period or a time of day; what the text leaves open is None."""

    first_year: int | None = None
    last_year: int | None = None
    month: int | None = None
    day: int | None = None
    minute: int | None = None
    """Minutes after midnight."""


class Dated(NamedTuple):
    """A date found in a text up to `end`, and the bare numbers that it also shows (day, year)."""

    end: int
    readings: tuple[When, ...]
    shown: tuple[float, ...] = ()


_NAMES = "january february march april may june july august september october november december".split()  # noqa: SIM905
_MONTHS: Final = {name[:n]: i for i, name in enumerate(_NAMES, 1) for n in (3, len(name))} | {"sept": 9}
MONTH_WORDS: Final = frozenset(_MONTHS)
"""English month names and their usual abbreviations, in lower case."""
_M = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")(?![A-Za-z])\.?"
_YEAR = r"(\d{4})(?![\d%]|[.,]\d)"

_ISO = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)")
_SLASHED = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|(?<=/)\d{2})(?!\d)")
_DAY_MONTH = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -]{_M}(?:,?[ -]{_YEAR})?", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"{_M} (\d{{1,2}})(?:st|nd|rd|th)?(?![\d:%]|[.,]\d)(?:,? {_YEAR})?", re.IGNORECASE)
_MONTH_YEAR = re.compile(rf"{_M},?[ -]{_YEAR}", re.IGNORECASE)
_LETTERS = re.compile(r"[A-Za-z]{3,9}")
_FIGURE_AFTER = re.compile(r"\.?,?[ -]\d")
"""How what _MONTH_DAY and _MONTH_YEAR ask for after the name begins; `may be` has none, and is tried once."""
_CJK = re.compile(r"(\d{4})年(?:(\d{1,2})月(?:(\d{1,2})日)?)?")
_YEARS = re.compile(r"(1\d{3}|20\d{2})[ ]?[-–—/][ ]?(\d{4}|\d{2})(?![\d-])")
_DECADE = re.compile(r"(\d{1,3}0)['’]?s(?![A-Za-z])")
_ORDINAL = r"(?:\d{1,2}(?:st|nd|rd|th)|[a-z]{5,11}th|first|second|third)"
_CENTURY_TAIL = (  # "19th century", and the first of "late 19th and early 20th centuries"
    r"(?:[ -]centur(?:y|ies)(?![a-z])"
    rf"|(?=(?:,| and| or| to|[ ]?[-–])[ ]?(?:the )?(?:early |late |mid-)?{_ORDINAL}[ -]centur))"
)
_CENTURY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)" + _CENTURY_TAIL, re.IGNORECASE)
_WORD_CENTURY = re.compile(r"[a-z]+" + _CENTURY_TAIL, re.IGNORECASE)
_CLOCK = re.compile(
    r"(\d{1,2})(?:[:.](\d{2}))?(?::\d{2})?[ ]?([ap])(?:\.m\.|m(?![A-Za-z]))|(\d{1,2}):(\d{2})(?![\d:])",
    re.IGNORECASE,
)
_BEGINS_DATE = re.compile(
    rf"\d{{1,4}}(?:[-–—/.:年'’s]|st|nd|rd|th|[ ](?:[-–—/]|of[ -])|[ ]?(?:[ap](?:\.m|m)|{'|'.join(n[:3] for n in _NAMES)}))",
    re.IGNORECASE,
)
"""How every match of the patterns of `date_at` begins: most numbers are no date, and are tried once instead of eight times."""
_DAY_FIRST = re.compile(r"\b(?:day/month|dd?[/.-]mm?[/.-]|day-month|day first)", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"\b(?:month/day|mm?[/.-]dd?[/.-]|month-day|month first)", re.IGNORECASE)
_ORDER_SIGNS: Final = (
    ("/", ("d/m", "m/d", "y/m", "h/d")),
    ("-", ("d-m", "m-d", "y-m", "h-d")),
    (".", ("d.m", "m.d")),
    ("first", ("day first", "month first")),
)
"""Every match of the two above holds one of them in lower case; what most texts lack, they lack at the first look."""


def stated_order(text: str) -> str:
    """`day`, `month` or empty: which of the two the text says comes first in its slashed dates."""
    lowered = text.lower()
    if not [sign for mark, signs in _ORDER_SIGNS if mark in lowered for sign in signs if sign in lowered]:
        return ""
    day, month = _DAY_FIRST.search(text), _MONTH_FIRST.search(text)
    if bool(day) == bool(month):
        return ""
    return "day" if day else "month"


def date_at(text: str, at: int, order: str = "") -> Dated | None:
    """The date that begins with the digit at `at`, or None. `order` is what `stated_order` found."""
    if not _BEGINS_DATE.match(text, at):
        return None
    for pattern, build in _BUILDERS:
        found = pattern.match(text, at)
        if found:
            dated = build(found, order)
            if dated is not None:
                return dated
    return None


def month_at(text: str, at: int) -> Dated | None:
    """The date that begins with the month name at `at` (`April 12, 2024`, `April 2024`, `April`), or None."""
    word = _LETTERS.match(text, at)
    if word is None or word[0].lower() not in _MONTHS:
        return None
    if _FIGURE_AFTER.match(text, word.end()):
        found = _MONTH_DAY.match(text, at)
        if found and 1 <= int(found[2]) <= 31:
            return _dated(found, found[3], _MONTHS[found[1].lower()], int(found[2]))
        found = _MONTH_YEAR.match(text, at)
        if found:
            return _dated(found, found[2], _MONTHS[found[1].lower()], None)
    return Dated(word.end(), (When(month=_MONTHS[word[0].lower()]),))


def century_at(text: str, at: int, ordinal: float) -> Dated | None:
    """The century whose spelled ordinal (`nineteenth`) begins at `at`, or None."""
    found = _WORD_CENTURY.match(text, at)
    first = (int(ordinal) - 1) * 100
    return Dated(found.end(), (When(first, first + 100),)) if found else None


def _dated(found: re.Match[str], year: str | None, month: int | None, day: int | None) -> Dated | None:
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    number = int(year) if year else None
    shown = tuple(float(n) for n in (day, number) if n is not None)
    return Dated(found.end(), (When(number, number, month, day),), shown)


def _slashed(found: re.Match[str], order: str) -> Dated | None:
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    years = (year,) if len(found[4]) == 4 else (1900 + year, 2000 + year)
    orders = [(second, first)] if order == "day" else [(first, second)] if order == "month" else []
    pairs = orders or [(second, first), (first, second)]
    readings = tuple(
        When(y, y, month, day) for y in years for month, day in pairs if 1 <= month <= 12 and 1 <= day <= 31
    )
    return Dated(found.end(), readings, tuple(float(y) for y in years)) if readings else None


def _years(found: re.Match[str], _order: str) -> Dated | None:
    first = int(found[1])
    last = int(found[2]) if len(found[2]) == 4 else first // 100 * 100 + int(found[2])
    if not first < last <= 2199:
        return None
    return Dated(found.end(), (When(first, first), When(last, last), When(first, last)), (first, last))


def _decade(found: re.Match[str], _order: str) -> Dated | None:
    start = int(found[1])
    if len(found[1]) == 2:
        return Dated(found.end(), tuple(When(c + start, c + start + 9) for c in (1800, 1900, 2000)), (start,))
    if not 1000 <= start <= 2190:
        return None
    century = (When(start, start + 99),) if start % 100 == 0 else ()
    return Dated(found.end(), (When(start, start + 9), *century), (start,))


def _century(found: re.Match[str], _order: str) -> Dated:
    first = (int(found[1]) - 1) * 100
    return Dated(found.end(), (When(first, first + 100),))


def _clock(found: re.Match[str], _order: str) -> Dated | None:
    hour, minute = int(found[1] or found[4]), int(found[2] or found[5] or 0)
    if hour > 24 or minute > 59:
        return None
    half = (found[3] or "").lower()
    if half:
        hours = [hour % 12 + (12 if half == "p" else 0)]
    else:
        hours = [hour, hour + 12] if 1 <= hour <= 11 and not found[0].startswith("0") else [hour % 24]
    return Dated(found.end(), tuple(When(minute=60 * h + minute) for h in hours), (float(hour),))


_BUILDERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Dated | None]], ...]] = (
    (_ISO, lambda m, _: _dated(m, m[1], int(m[3]), int(m[4]))),
    (_SLASHED, _slashed),
    (_DAY_MONTH, lambda m, _: _dated(m, m[3], _MONTHS[m[2].lower()], int(m[1]))),
    (_CJK, lambda m, _: _dated(m, m[1], int(m[2]) if m[2] else None, int(m[3]) if m[3] else None)),
    (_YEARS, _years),
    (_DECADE, _decade),
    (_CENTURY, _century),
    (_CLOCK, _clock),
)
"""In this order: the first that fits wins, so the most specific stands first."""
