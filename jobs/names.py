"""The capitalised names of a text, and whether another text holds them.

A name is a run of capitalised words that does not merely begin a sentence; it is held where every word of it
is (case, possessives and usual endings folded), or the words that an acronym is made of. The module knows no
dictionary and no script without capitals, where it finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache
from typing import Final

from claimscore.jobs.dates import MONTH_WORDS
from claimscore.jobs.remembered import Remembered

WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_MAY_BE_CAPITAL = re.compile(rf"(?<![^\W_])(?<![^\W_][-'’.&])(?![a-z])(?=[^\W\d_]){WORD.pattern}")
"""Words that do not begin in lower case, as far as a class of characters can tell: one in six of English."""
_PIECES = re.compile(r"[^\W_]+")
_FUNCTION = (
    "a an and are as at be but by can did do does for from had has have he her his how i if in is it its may me more "
    "my no nor not of on one or our she so some such than that the their them there these they this those to was we "
    "were what when where which who why will with would you your yes also however although though while since both "
    "all any each every here then thus only"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())
_ACRONYM_CHARS: Final = range(2, 7)
_STEM_CHARS: Final = 4
_SEARCHED_CHARS: Final = 20_000
"""A longer text is cut into its words once: hundreds of claims may each search it for a dozen forms of a name."""
_ENDINGS: Final = ("s", "n", "an", "ian", "ese", "y")


def missing_from(claim: str, premise: str) -> list[str]:
    """The names of `claim` that `premise` does not hold, in order, each once."""
    return [name for name in names_of(claim) if not has_name(name, premise)]


def names_of(text: str) -> tuple[str, ...]:
    """Runs of capitalised words, without those that only begin a sentence; remembered."""
    return _names_of[text]


def _read_names(text: str) -> tuple[str, ...]:
    out: dict[str, None] = {}
    run: list[tuple[str, bool]] = []
    end = -1
    for found in _MAY_BE_CAPITAL.finditer(text):
        word, start = found[0], found.start()
        if not word[0].isupper() or word.lower() in FUNCTION_WORDS or word.lower() in MONTH_WORDS:
            continue
        before = start
        while before and not text[before - 1].isalnum():
            before -= 1
        gap = text[before:start]
        begins = before == 0 or any(mark in ".!?:\n•" for mark in gap)
        if run and not (before == end and gap in (" ", "-")):
            _keep(out, run)
            run = []
        run.append((word, begins))
        end = found.end()
    _keep(out, run)
    return tuple(out)


def _keep(out: dict[str, None], run: list[tuple[str, bool]]) -> None:
    if not run:
        return
    first, begins = run[0]
    shaped = len(first) > 1 and not first[1:].islower()
    if begins and len(run) == 1 and not shaped:
        return
    out[" ".join(word for word, _ in run)] = None


def has_name(name: str, text: str) -> bool:
    """Whether `text` holds every word of `name`."""
    words = _Words(text) if len(text) <= _SEARCHED_CHARS else _words[text]
    for piece in _PIECES.findall(name):
        folded = piece.casefold()
        if len(piece) < 2 or folded in words or folded in FUNCTION_WORDS:
            continue
        if piece.isupper() and len(piece) in _ACRONYM_CHARS and folded in _initials(text):
            continue
        if not _has_stem(folded, words):
            return False
    return True


def stems_of(name: str) -> tuple[str, ...]:
    """What stands in every text in lower case (`casefold`) that holds `name`; to look for it costs a twentieth."""
    return tuple(
        piece.casefold()[:_STEM_CHARS]
        for piece in _PIECES.findall(name)
        if len(piece) > 1 and piece.casefold() not in FUNCTION_WORDS
        if not (piece.isupper() and len(piece) in _ACRONYM_CHARS)
    )


def _has_stem(word: str, words: Container[str]) -> bool:
    """`Germany` for `German`, `Adlers` for `Adler`: one is the other with an ending of at most three letters."""
    cut = range(max(_STEM_CHARS, len(word) - 3), len(word))
    return any(word[:n] in words for n in cut) or any(word + end in words for end in _ENDINGS)


def _word_set(text: str) -> frozenset[str]:
    return frozenset(_PIECES.findall(text.casefold()))


class _Words:
    """`_word_set` of a text that is searched for each word: the names of a claim are few, and its evidence has 500 words."""

    def __init__(self, text: str) -> None:
        self._text = _casefolded(text)

    def __contains__(self, word: object) -> bool:
        if not isinstance(word, str) or not word.isalnum():
            return False
        text, at = self._text, self._text.find(word)
        while at >= 0:
            end = at + len(word)
            if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
                return True
            at = text.find(word, at + 1)
        return False


@lru_cache(maxsize=4)
def _casefolded(text: str) -> str:
    """Asked for once for each name of a claim."""
    return text.casefold()


_names_of = Remembered(_read_names, lambda names: 80 * len(names), 4 * 1024 * 1024)


_words = Remembered(_word_set, lambda words: 100 * len(words), 32 * 1024 * 1024)


@lru_cache(maxsize=4)
def _initials(text: str) -> frozenset[str]:
    """The acronyms that runs of capitalised words of `text` would have."""
    letters = "".join(
        word[0].casefold() if word[0].isupper() else ("" if word in ("of", "the", "and", "for") else " ")
        for word in _PIECES.findall(text)
    )
    return frozenset(
        run[i : i + n] for run in letters.split() for n in _ACRONYM_CHARS for i in range(len(run) - n + 1)
    )


def first_word(claim: str) -> str | None:
    """The word that begins the claim, where it is written with a capital and could be a name."""
    first = WORD.search(claim)
    capital = first and first[0][0].isupper() and first[0].lower() not in FUNCTION_WORDS
    return first[0] if first and capital else None


def whole_word(word: str, flags: int = 0) -> re.Pattern[str]:
    """Finds `word` where it is no part of a longer one."""
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", flags)


def is_name_in(word: str, chunks: Sequence[str | None]) -> bool:
    """Whether the chunks write `word`, and only ever with a capital."""
    found = whole_word(word, re.IGNORECASE)
    written = {match[0] for text in chunks for match in found.finditer(text or "")}
    return bool(written) and not any(form.islower() for form in written)
