"""Numbers written in digits, with every reading that their marks allow.

`10,000` and `2,99,900` are grouped, `1.250` is a decimal or grouped, `3,5` a decimal or two numbers, and
`10, 000` or `2. 2` were perhaps split by a tokenizer. The module knows neither units nor signs, and takes runs
of groups (`10.4.2`, `555-01-99`) for versions and ids.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Bounded repeats: an unbounded one that fails at its end would be tried again from every number of a long run.
_NUMBER = re.compile(
    r"(?P<grouped>\d{1,3}(?:,[ ]?\d{2,3}){0,6}[ ]?,[ ]?\d{3}(?!\d)(?:\.\d+)?)"
    r"|(?P<spaced>\d{1,3}(?:[ ]\d{3}){1,5}(?!\d))"
    r"|(?P<dotted>\d{1,3}(?:\.\d{3}){2,5}(?![\d.])(?:,\d+)?)"
    r"|(?P<id>\d+(?:[.-]\d+){2,}[\w.-]*|\d{16,})"
    r"|(?P<fraction>\d{1,4}/\d{1,4}(?![\d/]))"
    r"|(?P<plain>\d+(?:\.[ ]?\d+|,\d+)?|\.\d+)"
)
_WHOLE = re.compile(r"\d{1,15}(?!\d|[ ]?[.,/-][ ]?\d|[ ]\d)")
"""Digits that nothing can join: nine of ten numbers, tried before the six forms of the others."""
_RUN = re.compile(r"\d{1,15}")
_PARTS = 8


class Digits(NamedTuple):
    """A number in digits that ends at `end`."""

    end: int
    parts: tuple[float, ...]
    """Its runs of digits as they stand."""
    readings: tuple[float, ...] = ()
    """The likeliest first; none for an id."""
    step: float = 1.0
    """What the last digit is worth."""
    is_id: bool = False


def number_at(text: str, at: int) -> Digits:
    """The number that begins at `at` with an ASCII digit, or with the dot of `.5`."""
    if whole := _WHOLE.match(text, at):
        number = (float(whole[0]),)
        return Digits(whole.end(), number, number)
    found = _NUMBER.match(text, at)
    assert found, "a digit, or a dot before one, always matches the last alternative"
    parts = tuple(float(run) for run in _RUN.findall(found[0][:200])[:_PARTS])
    if found.lastgroup == "id":
        return Digits(found.end(), parts, is_id=True)
    readings, step = _read(found, parts)
    return Digits(found.end(), parts, readings, step)


def _read(found: re.Match[str], parts: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
    surface, kind = found[0], found.lastgroup
    if kind == "fraction":
        return ((parts[0] / parts[1], *parts) if parts[1] else parts), 0.01
    if kind == "spaced":
        return (float(surface.replace(" ", "")), *parts), 1.0
    if kind == "dotted":
        whole, _, decimals = surface.partition(",")
        return (float(f"{whole.replace('.', '')}.{decimals or 0}"),), 1.0
    if kind == "grouped":
        joined = surface.replace(",", "").replace(" ", "")
        return (float(joined), *(parts if " " in surface else ())), 10.0 ** -len(joined.partition(".")[2])
    mark = "." if "." in surface else ","
    whole, _, decimals = surface.partition(mark)
    decimals = decimals.strip()[:30]
    first = float(f"{whole[:30] or 0}.{decimals or 0}")
    if not decimals:
        return (first,), 1.0
    also = (float(whole + decimals),) if whole and len(decimals) == 3 and mark == "." else ()
    apart = parts if mark == "," or " " in surface else ()
    return (first, *also, *apart), 10.0 ** -len(decimals)
