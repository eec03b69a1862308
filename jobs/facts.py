"""What rules read from the text of a claim or a sentence: words, numbers, names, negation, cues.

A text is folded first (`fold`), so that two ways to write the same compare equal. Names are told by their capitals, numbers
are scaled (`3 lakh` is 300000), words are stems of five letters: enough to tell words of one sentence apart. The cue words
are English (cues.py). What the module does not know: two texts, or what follows from them; that is origin.py's.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from claimscore.jobs.cues import (
    CUES,
    ENGLISH,
    NEGATION,
    NEGATION_RUNS,
    NOT_NEGATION,
    OTHER_LANGUAGE,
    SCALES,
    STOP,
    WORDED,
)
from claimscore.jobs.hidden import strip_hidden
from claimscore.jobs.letters import runs_of

WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)(?:\s?(%)|[\s-]?([^\W\d_]+))?")
# Its first digit before what stands before it, as in multiples.py: three times as fast.
RANGE_YEAR = re.compile(r"((\d(?<!\d\d)\d)\d\d\s?[-–/]\s?)(?=\d\d(?!\d|[-–/]\d))")
WEIGHTLESS = STOP | WORDED.keys() | SCALES.keys() | {"percent", "pct"}
_MAY = re.compile(r"\bMay\b(?!\s+(?:be|not|have)\b)")
_DIGIT = re.compile(r"\d")
_SIGNED = [(sign.split()[0].encode(), (sign, at)) for at, cue in enumerate(CUES) for sign in cue.signs]
_SIGNS = {first: [sign for run, sign in _SIGNED if run == first] for first, _ in _SIGNED}
"""First word of a sign -> the signs that begin with it, and whose they are."""
_FOREIGN_RUNS = frozenset(word.encode() for word in OTHER_LANGUAGE if word.isascii())
_GROUPED = re.compile(r"\d{1,3}(?:,\d{2,3})+(?:\.\d+)?")
_CONTROLS = dict.fromkeys([*range(32), 127], " ")


_PLACED = re.compile(r"[²³¹¼-¾\u2070-\u209c\u2150-\u215f\u2189]+")
"""Raised, lowered and fractional figures: NFKC sets them on the line, and 10⁶ is not 106, nor 1½ 11/2."""


def fold(text: str) -> str:
    """NFKC but for raised, lowered and fractional figures, curly quotes straightened, blanks and control characters folded,
    hidden ones dropped; case stays.
    """
    if text.isascii():  # nothing to normalise or hidden, and the control characters are known
        return " ".join((text if text.isprintable() else text.translate(_CONTROLS)).split())
    text = _nfkc(strip_hidden(text)).replace("’", "'").replace("‘", "'")
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())


def _nfkc(text: str) -> str:
    pieces = (unicodedata.normalize("NFKC", piece) for piece in _PLACED.split(text))
    kept = [*_PLACED.findall(text), ""]
    return "".join(piece + figure for piece, figure in zip(pieces, kept, strict=True))


def in_same_words(text: str) -> str:
    """What two folded sentences in the same words have in common: without the case of a first letter, and an end mark.

    The case of all else stays (US and us, mW and MW), and so does the mark of a factorial.
    """
    text = text.rstrip(" .")
    if text[-1:] == "!" and text[-2:-1].isalpha():
        text = text.rstrip("! .")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


@dataclass(frozen=True)
class Facts:
    """What the rules see of one text; each part is computed once, when it is asked for."""

    text: str
    """As `fold` gives it."""

    @cached_property
    def lower(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    @cached_property
    def tokens(self) -> list[str]:
        """The words as written, without a possessive."""
        words: list[str] = WORD.findall(self.text)
        return [bare(word) for word in words] if "'" in self.text or "’" in self.text else words

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word in lower case, and the parts of hyphened ones."""
        whole = frozenset([word.lower() for word in self.tokens])
        if "-" not in self.text:
            return whole
        return whole | {part for word in whole if "-" in word for part in word.split("-")}

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the words that carry meaning, function words and numbers left out."""
        return frozenset([stem(w) for w in self.words - WEIGHTLESS if len(w) > 1 and not w[0].isdigit()])

    @cached_property
    def figures(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each figure as (its value, other readings that a claim may give it)."""
        return _figures(self.text)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Figures of the text, scaled (`3 lakh` is 300000), percentages marked, number words left out."""
        return frozenset(main for main, _ in self.figures)

    @cached_property
    def known_numbers(self) -> frozenset[str]:
        """`numbers`, number words, and what a claim may make of both: ends of ranges and unscaled parts."""
        known = {other for main, others in self.figures for other in (main, *others)}
        known |= {_plain(WORDED[word]) for word in self.words if word in WORDED}
        return frozenset(known)

    @cached_property
    def names(self) -> frozenset[str]:
        """Words with a capital that is not the sentence's own, in lower case."""
        return frozenset(_names(self.tokens))

    @cached_property
    def initials(self) -> str:
        """First letters of the capitalised words in order: an abbreviation of them is a run of it."""
        return "".join(token[0] for token in self.tokens if token[0].isupper()).lower()

    @cached_property
    def runs(self) -> frozenset[bytes]:
        """The runs of ASCII letters of the text in lower case (letters.py)."""
        return frozenset(runs_of(self.lower))

    @cached_property
    def is_negated(self) -> bool:
        """Whether a negation stands in the text; "not only" and "No. 1" are none."""
        if NEGATION_RUNS.isdisjoint(self.runs):
            return False
        plain = NOT_NEGATION.sub(" ", self.lower)
        return any(word in NEGATION for word in WORD.findall(plain))

    @cached_property
    def qualified(self) -> str:
        """The text in lower case without the month May, which is no hedge."""
        return _MAY.sub(" ", self.text).lower() if "May" in self.text else self.lower

    @cached_property
    def cues(self) -> frozenset[int]:
        """Indices into CUES of the qualifications that stand in the text."""
        signed = (sign for run in _SIGNS.keys() & self.runs for sign in _SIGNS[run])
        signs = {at for sign, at in signed if sign in self.qualified}
        return frozenset([at for at in signs if CUES[at].asks.search(self.qualified)])

    def keeps(self, cue: int) -> bool:
        """Whether the text says what CUES[cue] stands for, in whatever words."""
        return CUES[cue].keeps.search(self.qualified) is not None


def has_words(text: str) -> bool:
    """True where `text` has a letter or digit."""
    return any(c.isalnum() for c in text)


def is_english_like(text: str) -> bool:
    """False for mostly non-Latin script, or where function words of another language outnumber English ones."""
    if not text.isascii():
        letters = [c for c in text if c.isalpha()]
        if sum(c < "ɐ" or "Ḁ" <= c <= "ỿ" for c in letters) * 2 < len(letters):
            return False
    elif len(_FOREIGN_RUNS.intersection(runs_of(text))) < 2:
        return True
    words = WORD.findall(text)
    other = OTHER_LANGUAGE.intersection(words)
    return len(other) < 2 or len(other) <= len({word for word in words if word.lower() in ENGLISH})


def stem(word: str) -> str:
    """Five letters without a plural s: enough to tell words of one sentence apart."""
    return singular(word)[:5]


def singular(word: str) -> str:
    """A word without a plural s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def bare(word: str) -> str:
    """A word without a possessive and a last point."""
    return word.replace("’", "'").removesuffix("'s").rstrip(".")


def _names(tokens: list[str]) -> set[str]:
    names = set()
    for at, token in enumerate(tokens):
        if token.islower() or not any(c.isupper() for c in token):
            continue
        if token.lower() in STOP and not (token.isupper() and len(token) > 1):
            continue
        inner_capital = any(c.isupper() for c in token[1:])
        followed = at + 1 < len(tokens) and tokens[at + 1][:1].isupper()
        # The first word has a capital anyway: a name only where its shape or its neighbour says so.
        if at > 0 or inner_capital or followed:
            names.add(token.lower())
    return names


def is_known(name: str, source: Facts) -> bool:
    """Whether the source has the name in one of its forms, part by part, or as initials."""
    words = source.words
    if name in words or name + "s" in words or name.removesuffix("s") in words:
        return True
    if "-" in name and all(part in words or part in STOP for part in name.split("-")):
        return True
    plain = name.replace(".", "")
    if 2 <= len(plain) <= 6 and plain in source.initials:
        return True
    return any(_are_kin(plain, word.replace(".", "")) for word in words)


def _are_kin(name: str, word: str) -> bool:
    """German, Germany; Japan, Japanese. Not Austria, Australia, nor Mara, marathon."""
    short, long = sorted((name, word), key=len)
    return name == word or (len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 3)


def _figures(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Each figure of the text as (its value, other readings that a claim may give it)."""
    if not _DIGIT.search(text):
        return []
    found = list(_NUMBER.finditer(RANGE_YEAR.sub(r"\1\2", text)))  # 1954-57 is 1954-1957
    out = []
    for match, after in itertools.zip_longest(found, found[1:]):
        value, unit = _value(match[1]), _unit(match)
        if value is None:
            continue
        readings = [_plain(value)]
        if after and after.start() - match.end() <= 2 and unit in {"", "and", "to", "or"}:
            readings.append(_scaled(value, _unit(after)))  # "between 3 and 5 million" holds 3 million
        out.append((_scaled(value, unit), tuple(readings)))
    return out


def _unit(figure: re.Match[str]) -> str:
    word = (figure[3] or "").lower()
    return "%" if figure[2] or word in {"percent", "pct"} else word


def _scaled(value: float, unit: str) -> str:
    return _plain(value) + "%" if unit == "%" else _plain(value * SCALES.get(unit, 1))


def _value(figure: str) -> float | None:
    if _GROUPED.fullmatch(figure) or figure.count(",") == 0:
        figure = figure.replace(",", "")
    try:
        return float(figure)
    except ValueError:  # 2.0.1, 1.234,5: known by their digits alone
        return float(re.sub(r"\D", "", figure)) if len(figure) < 40 else None


def _plain(value: float) -> str:
    return f"{value:.12g}"
