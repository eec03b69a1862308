"""Numbers written in words: `two hundred and five`, `half a million`, `two thirds`, `nineteen eighty-four`.

English only; a word that means a number only sometimes (one, first, double, IV) is read, but not asked for.
The module knows no units and no dates.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ONE_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
ONES: Final = {word: float(n) for n, word in enumerate(_ONE_WORDS.split())}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_LARGE: Final = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "lakh": 1e5, "crore": 1e7}
_WORDS: Final = (
    ONES
    | {word: 10.0 * n for n, word in enumerate(_TENS.split(), 2)}
    | {"hundred": 100.0, "dozen": 12.0, **_LARGE}
)  # fmt: skip
_ORDINAL_NAMES = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS: Final = {word: float(n) for n, word in enumerate(_ORDINAL_NAMES.split(), 1)}
_MULTIPLES: Final = {
    "half": 0.5, "halves": 0.5, "halved": 0.5, "quarter": 0.25, "twice": 2.0, "double": 2.0, "doubled": 2.0,
    "thrice": 3.0, "triple": 3.0, "tripled": 3.0, "couple": 2.0, "pair": 2.0, "both": 2.0, "duo": 2.0,
    "trio": 3.0, "quartet": 4.0,
}  # fmt: skip
_NUMERALS = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV"
_ROMAN: Final = {word: float(n) for n, word in enumerate(_NUMERALS.split(), 1)}
_PARTS: Final = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "eighth": 8, "tenth": 10}

WORDS: Final = frozenset({*_WORDS, *ORDINALS, *_MULTIPLES, *(numeral.lower() for numeral in _ROMAN)})
"""Every word, in lower case, that `spelled_at` may know: most words of a text are not worth a call."""

_RUN = re.compile(
    rf"[a-z]+(?:(?:-|[ ](?:and[ ])?)(?:{'|'.join(_WORDS)})(?![A-Za-z0-9])){{0,12}}", re.IGNORECASE
)
_PART = re.compile(rf"(one|two|three|four|five)[ -]({'|'.join(_PARTS)})s?(?![A-Za-z0-9])", re.IGNORECASE)
_HALF_A = re.compile(rf"half an? ({'|'.join(_LARGE)}|hundred|dozen)(?![A-Za-z])", re.IGNORECASE)


class Spelled(NamedTuple):
    """A number in words that ends at `end`."""

    end: int
    value: float
    is_share: bool = False
    """A part of a whole (two thirds, half): also a percentage."""
    takes_unit: bool = True
    demanded: bool = True


def spelled_at(text: str, at: int, word: str) -> Spelled | None:
    """The number whose first word, `word` as written, begins at `at`; None where the word is no number."""
    lower = word.lower()
    if lower in _WORDS:
        part = _PART.match(text, at)
        if part:
            share = _WORDS[part[1].lower()] / _PARTS[part[2].lower()]
            return Spelled(part.end(), share, is_share=True, takes_unit=False)
        run = _RUN.match(text, at)
        assert run, "a word always begins a run"
        return Spelled(run.end(), _value(run[0]), demanded=lower not in _LARGE or len(run[0]) > len(word))
    if lower in _MULTIPLES:
        half = _HALF_A.match(text, at)
        if half:
            return Spelled(half.end(), 0.5 * _WORDS[half[1].lower()])
        return Spelled(at + len(word), _MULTIPLES[lower], is_share=True, takes_unit=False, demanded=False)
    known = ORDINALS.get(lower) or _ROMAN.get(word)
    return Spelled(at + len(word), known, takes_unit=False, demanded=False) if known else None


def _value(run: str) -> float:
    total = current = 0.0
    for word in re.findall(r"[a-z]+", run.lower()):
        value = _WORDS.get(word)
        if value is None:
            continue
        if value >= 1_000:
            total, current = total + max(current, 1.0) * value, 0.0
        elif word in ("hundred", "dozen"):
            current = max(current, 1.0) * value
        elif 10 <= current < 100 and value >= 10:  # a year: nineteen eighty-four
            current = current * 100 + value
        else:
            current += value
    return total + current
