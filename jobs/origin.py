"""Whether claims come from their sentence, and whether the sentence is all in its claims; rules alone.

Origin: no number, name or negation that sentence and context lack, and mostly their words. Coverage: no
number, name, negation, condition, hedge and little other content of the sentence is lost. The cue words are
English; another language fails these checks or passes them, but no claim is ever made up here. Two claims
that differ by a lost cue only ("Refunds are given" beside "... if the seal is unbroken") count as lost too.
What this module does not know: models, tables, and meaning; that is what the NLI checker beside it is for.
The failures it looks for are those listed by Hu et al. 2024 (arXiv:2411.02400) and VeriFact (2505.09701).
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)(?:\s?(%)|[\s-]?([^\W\d_]+))?")
_RANGE_YEAR = re.compile(r"(?<!\d)(\d\d)\d\d\s?[-–/]\s?(\d\d)(?!\d)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{2,3})+(?:\.\d+)?")
_SCALES = {
    "thousand": 1e3, "lakh": 1e5, "lakhs": 1e5, "million": 1e6, "crore": 1e7, "crores": 1e7,
    "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9,
}  # fmt: skip
_WORDED = {
    word: float(value)
    for value, words in {
        2: "two twice both pair", 3: "three thrice", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight",
        9: "nine", 10: "ten", 11: "eleven", 12: "twelve dozen", 13: "thirteen", 14: "fourteen", 15: "fifteen",
        16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty", 40: "forty",
        50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety", 100: "hundred",
    }.items()
    for word in words.split()
}  # fmt: skip
_STOP = _set_of(
    "a an the and or but nor so of in on at to for by from with as into onto over under about after before during "
    "between among through per via than then that this these those which who whom whose what when where how why "
    "is are was were be been being am do does did has have had having will would shall should can could may might "
    "must it its he she they them his her their him we us our you your i me my there here also such both each "
    "either other others another some any all more most many much several one ones not no never none if unless "
    "only except until up out off s t re ve ll d m however although though while because since additionally "
    "furthermore moreover overall finally instead yet still just even including include includes included like "
    "well known too very own same used using use made make makes"
)
_NEGATION = _set_of(
    "not no never none nobody nothing neither nor without cannot hardly barely scarcely isn't aren't wasn't weren't "
    "don't doesn't didn't won't wouldn't can't couldn't shouldn't mustn't hasn't haven't hadn't ain't"
)
_NOT_NEGATION = re.compile(
    r"\bnot only\b|\bno\.? ?\d|\bwhether or not\b|\bnot just\b|\bno (?:less|more|fewer) than\b"
)
_CONDITIONS = (
    re.compile(r"\b(?:if|provided|providing|assuming|as long as|in case|on condition|condition)\b"),
    re.compile(r"\b(?:unless|if not|without)\b"),
    re.compile(r"(?<!\bnot )\b(?:only|solely|exclusively|just)\b"),
    re.compile(r"\b(?:except|excluding|excepting|apart from|other than|exception|but not|not)\b"),
    re.compile(r"\b(?:until|till|up to|through|to|before)\b"),
)
_CONDITION_CUE = tuple(
    re.compile(cue)
    for cue in (
        r"\bif\b|\bprovided that\b|\bas long as\b",
        r"\bunless\b",
        r"(?<!\bnot )\bonly\b(?!\s+(?:an?|\d+|"
        + "|".join(_WORDED)
        + r")\b)",  # "only six years old" is a tone
        r"\bexcept\b|\bexcluding\b",
        r"\buntil\b|\btill\b",
    )
)
_FIGURE = r"(?=(?:\s+(?:the|a|an|of))?\s+[^\w\s]{0,2}(?:\d|(?:" + "|".join(_WORDED) + r")\b))"
_HEDGE_CUE = (
    re.compile(r"\b(?:may|might|could|possibly|perhaps|probably|potentially|allegedly|reportedly|likely)\b"),
    re.compile(r"\b(?:about|around|approximately|roughly|nearly|almost)\b" + _FIGURE),
    re.compile(r"\b(?:up to|at most|no more than|less than|fewer than)\b" + _FIGURE),
    re.compile(r"\b(?:at least|more than|no less than)\b" + _FIGURE),
)
_HEDGES = (
    re.compile(
        r"\b(?:may|might|could|can|possib\w*|perhaps|probabl\w*|potential\w*|alleged\w*|reported\w*|likely|"
        r"unlikely|chance|appears?|seems?)\b"
    ),
    re.compile(r"\b(?:about|around|approximate\w*|roughly|nearly|almost|some|estimated|circa|close to)\b|~"),
    re.compile(
        r"\b(?:up to|at most|no more than|less than|fewer than|under|below|maximum|within|limit\w*)\b"
    ),
    re.compile(r"\b(?:at least|more than|no less than|over|above|minimum|exceed\w*|or more)\b"),
)
_OTHER_LANGUAGE = _set_of(
    "der die das und ist nicht ein eine einen dem den wird auf mit für von zu im sind auch "
    "le les des une est et pas dans que qui pour avec sur sont au aux du "
    "el los las una y del por con para se su como más pero no es "
    "il di che è non gli della nel sono per um uma não os da em ao mais "
    "het een niet van dat zijn voor met och att det som inte är"
)
_ENGLISH = _set_of(
    "the a an of in is to and for was are with on by as at from that it be or this his her has have not its he she "
    "were which they their"
)


def fold(text: str) -> str:
    """NFKC, curly quotes straightened, blanks and control characters folded; case stays."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())


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
        return [_bare(word) for word in WORD.findall(self.text)]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word in lower case, and the parts of hyphened ones."""
        whole = [word.lower() for word in self.tokens]
        return frozenset(whole) | {part for word in whole if "-" in word for part in word.split("-")}

    @cached_property
    def content(self) -> frozenset[str]:
        """Stems of the words that carry meaning: five letters of each that is no function word or number."""
        return frozenset(w[:5] for w in self.words if w not in _STOP and not w[0].isdigit() and len(w) > 1)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Figures of the text, scaled (`3 lakh` is 300000), percentages marked, number words left out."""
        return frozenset(main for main, _ in _figures(self.text))

    @cached_property
    def known_numbers(self) -> frozenset[str]:
        """`numbers`, number words, and what a claim may make of both: ends of ranges and unscaled parts."""
        known = {other for main, others in _figures(self.text) for other in (main, *others)}
        known |= {_plain(_WORDED[word]) for word in self.words if word in _WORDED}
        known |= {century + end for century, end in _RANGE_YEAR.findall(self.text)}
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
    def is_negated(self) -> bool:
        """Whether a negation stands in the text; "not only" and "No. 1" are none."""
        plain = _NOT_NEGATION.sub(" ", self.lower)
        return any(word in _NEGATION for word in WORD.findall(plain))

    def cues(self) -> tuple[bool, ...]:
        """Whether each condition and hedge that must not be lost stands in the text."""
        # "May" is a month: the hedge is looked for in the text as written.
        hedges = [cue.search(self.text) is not None for cue in _HEDGE_CUE]
        return (*(cue.search(self.lower) is not None for cue in _CONDITION_CUE), *hedges)


def has_words(text: str) -> bool:
    """True where `text` has a letter or digit."""
    return any(c.isalnum() for c in text)


def is_english_like(text: str) -> bool:
    """False for mostly non-Latin script, or where function words of another language outnumber English ones."""
    letters = [c for c in text if c.isalpha()]
    if sum(c < "ɐ" or "Ḁ" <= c <= "ỿ" for c in letters) * 2 < len(letters):
        return False
    words = WORD.findall(text)
    other = {word for word in words if word in _OTHER_LANGUAGE}
    return len(other) < 2 or len(other) <= len({word for word in words if word.lower() in _ENGLISH})


def origin_fault(claim: Facts, sentence: Facts, source: Facts) -> str | None:
    """Why `claim` does not come from `sentence` and its context (`source` is both), or None."""
    if claim.numbers - source.known_numbers:
        return "new_number"
    if any(not _is_known(name, source) for name in claim.names):
        return "new_name"
    if claim.is_negated and not source.is_negated:
        return "new_negation"
    stems = claim.content
    if len(stems & source.content) * 2 < len(stems):
        return "drift"
    # A name may come from the context, where a pronoun points; what is said of it may not.
    borrowed = stems - sentence.content - {name[:5] for name in claim.names}
    n_borrowed = len(borrowed & source.content) + len(claim.numbers - sentence.known_numbers)
    return "drift" if n_borrowed > len(stems & sentence.content) else None


def coverage_fault(claims: list[Facts], sentence: Facts, *, min_content: float) -> str | None:
    """What of `sentence` is in none of `claims`, or None; `min_content` is the share of its words to be kept."""
    if sentence.numbers - frozenset().union(*(claim.known_numbers for claim in claims)):
        return "lost_number"
    if any(all(not _is_known(name, claim) for claim in claims) for name in sentence.names):
        return "lost_name"
    if sentence.is_negated and not any(claim.is_negated for claim in claims):
        return "lost_negation"
    for cue, (needed, keeps) in enumerate(zip(sentence.cues(), (*_CONDITIONS, *_HEDGES), strict=True)):
        if needed and not any(keeps.search(claim.lower) for claim in claims):
            return "lost_condition" if cue < len(_CONDITIONS) else "lost_hedge"
    kept = frozenset().union(*(claim.content for claim in claims)) & sentence.content
    if len(kept) < min_content * len(sentence.content):
        return "lost_content"
    return _stripped(claims, sentence)


def _stripped(claims: list[Facts], sentence: Facts) -> str | None:
    """`lost_condition`, `lost_hedge` or `lost_negation` where one claim is another without the sentence's cue."""
    for full in claims:
        # "from 2002 to 2016" may give "until 2016": a cue that the sentence has not is none that got lost
        cues = [own and needed for own, needed in zip(full.cues(), sentence.cues(), strict=True)]
        if not (any(cues) or full.is_negated):
            continue
        for bare in claims:
            if bare is full or not bare.content or not bare.content <= full.content:
                continue
            lost = [i for i, (a, b) in enumerate(zip(cues, bare.cues(), strict=True)) if a and not b]
            if lost:
                return "lost_condition" if lost[0] < len(_CONDITIONS) else "lost_hedge"
            if full.is_negated and not bare.is_negated:
                return "lost_negation"
    return None


def _bare(word: str) -> str:
    return word.replace("’", "'").removesuffix("'s").rstrip(".")


def _names(tokens: list[str]) -> set[str]:
    names = set()
    for at, token in enumerate(tokens):
        has_capital = any(c.isupper() for c in token)
        if not has_capital or (token.lower() in _STOP and not (token.isupper() and len(token) > 1)):
            continue
        inner_capital = any(c.isupper() for c in token[1:])
        followed = at + 1 < len(tokens) and tokens[at + 1][:1].isupper()
        # The first word has a capital anyway: a name only where its shape or its neighbour says so.
        if at > 0 or inner_capital or followed:
            names.add(token.lower())
    return names


def _is_known(name: str, source: Facts) -> bool:
    words = source.words
    if name in words or name + "s" in words or name.removesuffix("s") in words:
        return True
    if "-" in name and all(part in words or part in _STOP for part in name.split("-")):
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
    found = list(_NUMBER.finditer(text))
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
    return _plain(value) + "%" if unit == "%" else _plain(value * _SCALES.get(unit, 1))


def _value(figure: str) -> float | None:
    if _GROUPED.fullmatch(figure) or figure.count(",") == 0:
        figure = figure.replace(",", "")
    try:
        return float(figure)
    except ValueError:  # 2.0.1, 1.234,5: known by their digits alone
        return float(re.sub(r"\D", "", figure)) if len(figure) < 40 else None


def _plain(value: float) -> str:
    return f"{value:.12g}"
