"""Amounts that English says half in words, in figures: `an hour and a half`, `two and a half years`, `a week`, `one in five`.

The reader of values (quantities.py) knows numbers, in figures or words, with a unit behind them. These forms are rarer, and
written out only where a claim lacks a value: of 101 pairs of ways to say one amount, each way round, the reader alone
took 41 for two amounts, with this 14. Hardly a text holds one: a look at all that are asked for says which to write out.
English only; knows no claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import compress
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.quantities import GLYPHS
from claimscore.jobs.remembered import Remembered
from claimscore.jobs.spelled import ONES

Written = Callable[[re.Match[str]], str]


class _Form(NamedTuple):
    """A way to say an amount, and how it is written."""

    sign: str
    """What every match holds, as RE2 reads it: no named groups, and `\\d` is ASCII."""
    pattern: re.Pattern[str]
    written: Written


_REMEMBERED_BYTES: Final = 32 * 1024 * 1024
"""Of each sign: half of it holds the chunks of the largest row, however many claims ask; few texts have anything to remember."""
_NUMBER_OF: Final = {word: n for word, n in ONES.items() if 1 <= n <= 12}
_FEW: Final = [word for word, n in _NUMBER_OF.items() if 2 <= n <= 10]
_FIGURE = r"\p{Nd}"
_N = rf"(?P<n>\d{{1,6}}(?:\.\d{{1,3}})?|{'|'.join(_NUMBER_OF)})"
_SPANS = "minute|hour|day|week|month|year|decade|century"
_UNITS = (
    f"{_SPANS}|mile|kilomet(?:er|re)|met(?:er|re)|lit(?:er|re)|pint|cup|kilo(?:gram)?|pound|inch|foot|point"
)
_SPAN, _UNIT = f"(?P<unit>{_SPANS})", f"(?P<unit>{_UNITS})"
_PARTS: Final = {
    "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
# What stands before a span that is one amount, where behind another it would be a rate (`5 euros a week`).
_BEFORE = (
    r"(?<![a-z])(?P<before>in|within|for|after|about|almost|nearly|over|under|than|takes?|took|lasts?|lasted|is|was|be|least|most|to|by"
    r"|around|roughly|approximately|only|just|of) "
)


def _form(sign: str, pattern: str, written: Written) -> _Form:
    return _Form(sign, re.compile(pattern, re.IGNORECASE), written)


def _value(number: str) -> float:
    return float(_NUMBER_OF.get(number.lower(), 0) or number)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _paid(sign: str, factor: float, amount: re.Match[str]) -> str:
    return f"{sign}{float(amount['n']) * factor:.2f}"


_FORMS: Final = (
    _form("and a half", rf"\b{_N} and a half\b", lambda m: f"{_value(m['n']) + 0.5:g}"),
    _form("and a half", rf"\b{_N} {_UNIT}s? and a half\b", lambda m: f"{_value(m['n']) + 0.5:g} {m['unit']}"),
    _form("and a half", rf"\ban? {_UNIT} and a half\b", lambda m: f"1.5 {m['unit']}"),
    _form(f"half[ -](?:an? )?(?:{_UNITS})", rf"\bhalf[ -](?:an? )?{_UNIT}\b", lambda m: f"0.5 {m['unit']}"),
    _form("quarter of an? ", rf"\b(?:a |one[ -])?quarter of an? {_UNIT}\b", lambda m: f"0.25 {m['unit']}"),
    _form("quarters of an? ", rf"\bthree[ -]quarters of an? {_UNIT}\b", lambda m: f"0.75 {m['unit']}"),
    _form(f" an? (?:{_SPANS})", rf"{_BEFORE}an? {_SPAN}\b", lambda m: f"{m['before']} 1 {m['unit']}"),
    _form("fortnight", r"\b(?:a )?fortnight\b", lambda _: "2 weeks"),
    _form(
        rf"(?:{_FIGURE}|{'|'.join(_NUMBER_OF)}) (?:in|out of)(?: every)? (?:{_FIGURE}|{'|'.join(_FEW)})",
        rf"\b{_N} (?:in|out of)(?: every)? (?P<of>{'|'.join(_FEW)}|\d{{1,3}})\b(?! {_SPAN})",
        lambda m: _percent(_value(m["n"]) / max(1.0, _value(m["of"]))),
    ),
    _form(
        rf"(?:an?|one) (?:{'|'.join(_PARTS)}) of",
        rf"\b(?:an?|one) (?P<part>{'|'.join(_PARTS)}) of\b",
        lambda m: f"{_percent(1 / _PARTS[m['part'].lower()])} of",
    ),
    _form(
        f"(?:{'|'.join(_FEW)})fold",
        rf"\b(?P<n>{'|'.join(_FEW)})fold\b",
        lambda m: f"{_value(m['n']):g} fold",
    ),
    _form("noon|midday", r"\b(?:noon|midday)\b", lambda _: "12:00"),
    _form("midnight", r"\bmidnight\b", lambda _: "00:00"),
)
_GLYPH = f"[{''.join(GLYPHS)}]"
_MIXED: Final = re.compile(rf"(?<!\d)(?P<n>\d{{1,6}})[ ]?(?P<part>{_GLYPH})")
"""`1½`: of no letters."""
_SIGN: Final = re.compile(r"[$€£]")
_CENTS = (rf"{_FIGURE} cent", r"(?<![\d.,])(?P<n>\d{1,4}) cents?\b", 0.01)
_PENCE = (rf"{_FIGURE} ?(?:p\b|pence|penny)", r"(?<![\d.,])(?P<n>\d{1,4}) ?(?:p|pence|penny)\b", 0.01)
_POUNDS = (rf"{_FIGURE} pound", r"(?<![\d.,])(?P<n>\d{1,9}(?:\.\d\d)?) pounds?\b", 1.0)
_MONEY: Final = {
    sign: tuple(_form(mark, pattern, partial(_paid, sign, factor)) for mark, pattern, factor in forms)
    for sign, forms in {"$": (_CENTS,), "€": (_CENTS,), "£": (_PENCE, _POUNDS)}.items()
}


def sign_of(text: str) -> str:
    """The first sign of a currency that has cents and stands in `text`; "" without one."""
    found = _SIGN.search(text)
    return found[0] if found else ""


def half_said(texts: Iterable[str]) -> set[str]:
    """Those of `texts` that may hold an amount half in words, of any currency: no other is changed by `in_figures`.

    One look at all of them: a chunk of 100 words takes 3 microseconds, where the thirteen patterns took 0.1 ms.
    """
    distinct = list(dict.fromkeys(texts))
    is_said = pc.match_substring_regex(pa.array(distinct, pa.large_string()), _ANY_SIGN, ignore_case=True)
    return set(compress(distinct, is_said.to_pylist()))


def in_figures(text: str, sign: str = "") -> str:
    """`text` with its half-spoken amounts in figures; itself where it has none.

    Args:
        text: of a claim or a premise; remembered, as many claims may ask for one premise.
        sign: of the currency that cents, pence and pounds are of, as the other text names it; "": they stay.
    """
    return _WRITTEN[sign][text]


def _written(sign: str, text: str) -> str:
    for form in _FORMS:
        text = form.pattern.sub(form.written, text)
    text = text if text.isascii() else _MIXED.sub(_mixed, text)
    for form in _MONEY.get(sign, ()):
        text = form.pattern.sub(form.written, text)
    return text


def _mixed(found: re.Match[str]) -> str:
    return f"{float(found['n']) + GLYPHS[found['part']]:.4g}"


_ANY_SIGN: Final = "|".join(
    dict.fromkeys(
        [f"{_FIGURE} ?{_GLYPH}", *(form.sign for forms in (_FORMS, *_MONEY.values()) for form in forms)]
    )
)
_WRITTEN: Final = {
    sign: Remembered(partial(_written, sign), len, _REMEMBERED_BYTES) for sign in ("", *_MONEY)
}
