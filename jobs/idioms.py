"""Amounts that English says half in words, in figures: `an hour and a half`, `two and a half years`, `a week`, `one in five`.

The reader of values (quantities.py) knows numbers, in figures or words, with a unit behind them. These forms are rarer, and
written out only where a claim lacks a value: of 101 pairs of ways to say one amount, each way round, the reader alone
took 41 for two amounts, with this 14. English only; knows no claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

_NUMBER_OF: Final = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12,
}  # fmt: skip
_N = rf"(?P<n>\d{{1,6}}(?:\.\d{{1,3}})?|{'|'.join(_NUMBER_OF)})"
_SPAN = r"(?P<unit>minute|hour|day|week|month|year|decade|century)"
_UNIT = (
    r"(?P<unit>minute|hour|day|week|month|year|decade|century|mile|kilomet(?:er|re)|met(?:er|re)|lit(?:er|re)|pint|cup|kilo(?:gram)?|pound"
    r"|inch|foot|point)"
)
_PARTS: Final = {
    "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
_GLYPHS: Final = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
# What stands before a span that is one amount, where behind another it would be a rate (`5 euros a week`).
_BEFORE = (
    r"(?<![a-z])(?P<before>in|within|for|after|about|almost|nearly|over|under|than|takes?|took|lasts?|lasted|is|was|be|least|most|to|by"
    r"|around|roughly|approximately|only|just|of) "
)


def _value(number: str) -> float:
    return float(_NUMBER_OF.get(number.lower(), 0) or number)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _paid(sign: str, factor: float, amount: re.Match[str]) -> str:
    return f"{sign}{float(amount['n']) * factor:.2f}"


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), written)
    for pattern, written in (
        (rf"\b{_N} and a half\b", lambda m: f"{_value(m['n']) + 0.5:g}"),
        (rf"\b{_N} {_UNIT}s? and a half\b", lambda m: f"{_value(m['n']) + 0.5:g} {m['unit']}"),
        (rf"\ban? {_UNIT} and a half\b", lambda m: f"1.5 {m['unit']}"),
        (rf"\bhalf[ -](?:an? )?{_UNIT}\b", lambda m: f"0.5 {m['unit']}"),
        (rf"\b(?:a |one[ -])?quarter of an? {_UNIT}\b", lambda m: f"0.25 {m['unit']}"),
        (rf"\bthree[ -]quarters of an? {_UNIT}\b", lambda m: f"0.75 {m['unit']}"),
        (rf"{_BEFORE}an? {_SPAN}\b", lambda m: f"{m['before']} 1 {m['unit']}"),
        (r"\b(?:a )?fortnight\b", lambda _: "2 weeks"),
        (
            rf"\b{_N} (?:in|out of)(?: every)? (?P<of>two|three|four|five|six|seven|eight|nine|ten|\d{{1,3}})\b(?! {_SPAN})",
            lambda m: _percent(_value(m["n"]) / max(1.0, _value(m["of"]))),
        ),
        (
            rf"\b(?:an?|one) (?P<part>{'|'.join(_PARTS)}) of\b",
            lambda m: f"{_percent(1 / _PARTS[m['part'].lower()])} of",
        ),
        (
            r"\b(?P<n>two|three|four|five|six|seven|eight|nine|ten)fold\b",
            lambda m: f"{_value(m['n']):g} fold",
        ),
        (r"\b(?:noon|midday)\b", lambda _: "12:00"),
        (r"\bmidnight\b", lambda _: "00:00"),
        (
            r"(?<!\d)(?P<n>\d{1,6})[ ]?(?P<part>[½¼¾⅓⅔])",
            lambda m: f"{float(m['n']) + _GLYPHS[m['part']]:.4g}",
        ),
    )
)
_SIGN: Final = re.compile(r"[$€£]")
_OF_SIGN: Final = {
    "$": ((r"(?<![\d.,])(?P<n>\d{1,4}) cents?\b", 0.01),),
    "€": ((r"(?<![\d.,])(?P<n>\d{1,4}) cents?\b", 0.01),),
    "£": ((r"(?<![\d.,])(?P<n>\d{1,4}) ?(?:p|pence|penny)\b", 0.01), (r"(?<![\d.,])(?P<n>\d{1,9}(?:\.\d\d)?) pounds?\b", 1.0)),
}  # fmt: skip
_MONEY: Final = {
    sign: tuple((re.compile(pattern, re.IGNORECASE), factor) for pattern, factor in forms)
    for sign, forms in _OF_SIGN.items()
}


def sign_of(text: str) -> str:
    """The first sign of a currency that has cents and stands in `text`; "" without one."""
    found = _SIGN.search(text)
    return found[0] if found else ""


def in_figures(text: str, sign: str = "") -> str:
    """`text` with its half-spoken amounts in figures; itself where it has none.

    Args:
        text: of a claim or a premise.
        sign: of the currency that cents, pence and pounds are of, as the other text names it; "": they stay.
    """
    for pattern, written in _FORMS:
        text = pattern.sub(written, text)
    for pattern, factor in _MONEY.get(sign, ()):
        text = pattern.sub(partial(_paid, sign, factor), text)
    return text
