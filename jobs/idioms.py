"""Amounts that English says half in words, in figures: `an hour and a half`, `two and a half years`, `a week`, `one in five`.

The reader of values (quantities.py) knows numbers, in figures or words, with a unit behind them. These forms are rarer, and
written out only where a claim lacks a value: of 101 pairs of ways to say one amount, each way round, the reader alone
took 41 for two amounts, with this 14. English only; knows no claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from claimscore.jobs.letters import runs_of
from claimscore.jobs.quantities import GLYPHS
from claimscore.jobs.spelled import ONES

Written = Callable[[re.Match[str]], str]


class _Form(NamedTuple):
    """A way to say an amount, and how it is written."""

    signs: frozenset[bytes]
    """Of the runs of letters of a text (letters.py) every match holds one; without them fourteen patterns took 0.6 ms a premise."""
    pattern: re.Pattern[str]
    written: Written


_NUMBER_OF: Final = {word: n for word, n in ONES.items() if 1 <= n <= 12}
_FEW: Final = [word for word, n in _NUMBER_OF.items() if 2 <= n <= 10]
_N = rf"(?P<n>\d{{1,6}}(?:\.\d{{1,3}})?|{'|'.join(_NUMBER_OF)})"
_SPANS = "minute hour day week month year decade century"
_SPAN = rf"(?P<unit>{_SPANS.replace(' ', '|')})"
_UNIT = (
    rf"(?P<unit>{_SPANS.replace(' ', '|')}|mile|kilomet(?:er|re)|met(?:er|re)|lit(?:er|re)|pint|cup|kilo(?:gram)?|pound"
    r"|inch|foot|point)"
)
_PARTS: Final = {
    "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
# What stands before a span that is one amount, where behind another it would be a rate (`5 euros a week`).
_BEFORE = (
    r"(?<![a-z])(?P<before>in|within|for|after|about|almost|nearly|over|under|than|takes?|took|lasts?|lasted|is|was|be|least|most|to|by"
    r"|around|roughly|approximately|only|just|of) "
)


def _form(signs: str, pattern: str, written: Written) -> _Form:
    return _Form(frozenset(signs.encode().split()), re.compile(pattern, re.IGNORECASE), written)


def _value(number: str) -> float:
    return float(_NUMBER_OF.get(number.lower(), 0) or number)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _paid(sign: str, factor: float, amount: re.Match[str]) -> str:
    return f"{sign}{float(amount['n']) * factor:.2f}"


_FORMS: Final = (
    _form("half", rf"\b{_N} and a half\b", lambda m: f"{_value(m['n']) + 0.5:g}"),
    _form("half", rf"\b{_N} {_UNIT}s? and a half\b", lambda m: f"{_value(m['n']) + 0.5:g} {m['unit']}"),
    _form("half", rf"\ban? {_UNIT} and a half\b", lambda m: f"1.5 {m['unit']}"),
    _form("half", rf"\bhalf[ -](?:an? )?{_UNIT}\b", lambda m: f"0.5 {m['unit']}"),
    _form("quarter", rf"\b(?:a |one[ -])?quarter of an? {_UNIT}\b", lambda m: f"0.25 {m['unit']}"),
    _form("quarters", rf"\bthree[ -]quarters of an? {_UNIT}\b", lambda m: f"0.75 {m['unit']}"),
    _form(_SPANS, rf"{_BEFORE}an? {_SPAN}\b", lambda m: f"{m['before']} 1 {m['unit']}"),
    _form("fortnight", r"\b(?:a )?fortnight\b", lambda _: "2 weeks"),
    _form(
        "in out",
        rf"\b{_N} (?:in|out of)(?: every)? (?P<of>{'|'.join(_FEW)}|\d{{1,3}})\b(?! {_SPAN})",
        lambda m: _percent(_value(m["n"]) / max(1.0, _value(m["of"]))),
    ),
    _form(
        " ".join(_PARTS),
        rf"\b(?:an?|one) (?P<part>{'|'.join(_PARTS)}) of\b",
        lambda m: f"{_percent(1 / _PARTS[m['part'].lower()])} of",
    ),
    _form(
        "fold ".join([*_FEW, ""]),
        rf"\b(?P<n>{'|'.join(_FEW)})fold\b",
        lambda m: f"{_value(m['n']):g} fold",
    ),
    _form("noon midday", r"\b(?:noon|midday)\b", lambda _: "12:00"),
    _form("midnight", r"\bmidnight\b", lambda _: "00:00"),
)
_MIXED: Final = re.compile(rf"(?<!\d)(?P<n>\d{{1,6}})[ ]?(?P<part>[{''.join(GLYPHS)}])")
"""`1½`: of no letters."""
_SIGN: Final = re.compile(r"[$€£]")
_CENTS = ("cent cents", r"(?<![\d.,])(?P<n>\d{1,4}) cents?\b", 0.01)
_PENCE = ("p pence penny", r"(?<![\d.,])(?P<n>\d{1,4}) ?(?:p|pence|penny)\b", 0.01)
_POUNDS = ("pound pounds", r"(?<![\d.,])(?P<n>\d{1,9}(?:\.\d\d)?) pounds?\b", 1.0)
_MONEY: Final = {
    sign: tuple(_form(signs, pattern, partial(_paid, sign, factor)) for signs, pattern, factor in forms)
    for sign, forms in {"$": (_CENTS,), "€": (_CENTS,), "£": (_PENCE, _POUNDS)}.items()
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
    said = frozenset(runs_of(text))
    text = _written(text, _FORMS, said)
    text = text if text.isascii() else _MIXED.sub(_mixed, text)
    return _written(text, _MONEY.get(sign, ()), said)


def _written(text: str, forms: tuple[_Form, ...], said: frozenset[bytes]) -> str:
    for form in forms:
        if not form.signs.isdisjoint(said):
            text = form.pattern.sub(form.written, text)
    return text


def _mixed(found: re.Match[str]) -> str:
    return f"{float(found['n']) + GLYPHS[found['part']]:.4g}"
