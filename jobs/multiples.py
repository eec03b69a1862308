"""Which numbers of a sentence its words multiply: `2 instalments of 45 euros`, `50 mg a tablet, 3 tablets`.

Without such words a product proves nothing: beside any small count, 50 mg would explain 500 mg. The module
finds cues (of, at, x, times, each, per) and the numbers that they tie, and cues of a division (split, each,
half). It knows spans of text and the names of units, not what the numbers are worth.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from claimscore.jobs.units import UNITS

Span = tuple[int, int]


class Tie(NamedTuple):
    """The number at index `measure` is meant as often as the one at `number` says."""

    measure: int
    number: int
    each: str = ""
    """The noun of `per noun`; empty where the phrase itself multiplies."""


_NEAR = 8
_GAP_CHARS = 60
_SENTENCE = (
    re.compile(  # one class of characters first: `re` then skips from one to the next, 20 times as fast
        r"[.!?\n。！？](?:(?<=[.!?])(?=\s)(?<!\bRs.)(?<!\bca.)(?<!approx.)|(?<=\n)(?![a-z])|(?<=[。！？]))"
    )
)
_WORD = r"(?!(?:and|or|but|with|in|out|up|to|from|than)\b)[A-Za-z]{1,20}"
_MONEY = r"(?:about |around |up to |some )?(?:[$€£₹]|US\$|Rs\.?\s?)?"
_GAP: Final = re.compile(
    rf"\s?(?:[x×*]|times|(?:multiplied )?by)\s?{_MONEY}|(?:[ -]{_WORD}){{1,2}} (?:of|at|x|×|times) {_MONEY}"
)
_TIMES = re.compile(r"\s?(?:times\b|[x×](?!\w))")
_EACH = re.compile(
    r"\b(?P<cue>each|every|per|apiece|an?)\b(?P<of>\s+of(?:\s+(?:the|these|those|its|his|her))?\b)?"
    r"(?:[ \n]{1,2}(?P<noun>\w{1,20}))?",
    re.IGNORECASE,
)
_VERBS_AND_LINKS = (
    "with of has have had having hold holds holding at for cost costs costing contain contains containing is are was "
    "were worth last lasts lasting weigh weighs weighing measure measures measuring take takes seat seats seating get "
    "gets and or in on from to receive receives pay pays"
)
_PRONOUN_BEFORE: Final = frozenset(_VERBS_AND_LINKS.split())
_COUNTED = re.compile(r"\S{1,20}[\s-]([A-Za-z]{1,20})$")
_NOUNS = re.compile(r"[ -]([A-Za-z]{2,20})(?:[ -]([A-Za-z]{2,20}))?")
_DIVIDES = re.compile(
    r"\b(?:each|apiece|split|splits|splitting|divid\w{1,4}|shar(?:e|es|ed|ing)|spread|equal(?:ly)?|half|halves|halved"
    r"|quarterly|average[ds]?|times|fold|double[ds]?|doubling|triple[ds]?|tripling|twice|ratio"
    r"|every(?!\s{1,2}\d)|per(?!\s{1,2}(?:cent|day|week|month|year|hour|minute|second)\b)"
    r"|(?:between|among|amongst)\s(?:the |all )?\w{1,20}\s(?!and\b|to\b)\w{1,20}(?!\s(?:and|to)\b))\b",
    re.IGNORECASE,
)
_DIVIDES_STARTS = re.compile(
    r"(?:each|apiece|split|divid|shar|spread|equal|half|halv|quarterly|average|times|fold|doubl|tripl|twice|ratio|every|per"
    r"|between|among)"
)
_EACH_STARTS = re.compile(r"(?:each|every|per|apiece|an?)\b")
"""Every match of _DIVIDES, and of _EACH, begins as one of these in lower case: without `\\b` in front `re` is five times as
fast at finding where to look."""


def sentence_numbers(text: str, starts: Sequence[int]) -> list[int]:
    """The ordinal of the sentence in which each place of `starts` lies."""
    ends = _sentence_ends(text)
    return [bisect_left(ends, start) for start in starts]


@lru_cache(maxsize=4)
def _sentence_ends(text: str) -> list[int]:
    """Asked for five times in a row where the numbers of a text are paired up."""
    return [found.start() for found in _SENTENCE.finditer(text)]


def dividing(text: str, starts: Sequence[int]) -> list[bool]:
    """Whether a word in the sentence of each place (split, each, per guest) speaks of a division."""
    found = [match.start() for match in _matches(text, _DIVIDES, _DIVIDES_STARTS)] if starts else []
    cued = set(sentence_numbers(text, found)) if found else set()
    return [number in cued for number in (sentence_numbers(text, starts) if cued else [-1] * len(starts))]


def _matches(text: str, pattern: re.Pattern[str], starts: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text)`, tried only where `starts` finds its beginning in lower case."""
    if not text.isascii():  # `re` folds more letters than `lower`
        yield from pattern.finditer(text)
        return
    end = 0
    for start in starts.finditer(text.lower()):
        match = pattern.match(text, start.start()) if start.start() >= end else None
        if match:
            end = match.end()
            yield match


def ties(text: str, spans: Sequence[Span]) -> list[Tie]:
    """The pairs of numbers that a sentence multiplies, each once; `spans` in order of place. Linear in the text."""
    if len(spans) < 2:
        return []
    sentences = sentence_numbers(text, [start for start, _ in spans])
    if len(set(sentences)) == len(spans):  # a tie is one of two numbers of a sentence
        return []
    found = dict.fromkeys(_by_phrase(text, spans, sentences))
    found |= dict.fromkeys(_by_each(text, spans, sentences))
    return [tie for tie in found if sentences[tie.measure] == sentences[tie.number]]


def _by_phrase(text: str, spans: Sequence[Span], sentences: Sequence[int]) -> Iterator[Tie]:
    for i in range(len(spans) - 1):
        if sentences[i] != sentences[i + 1]:
            continue
        end, start = spans[i][1], spans[i + 1][0]
        spelled = text[end - 1].isalpha() and text[end:start] == " "  # two 50 mg tablets
        linked = start - end <= _GAP_CHARS and (spelled or _GAP.fullmatch(text, end, start))
        if linked or _TIMES.match(text, spans[i + 1][1]):
            yield Tie(i, i + 1)
            yield Tie(i + 1, i)


def _by_each(text: str, spans: Sequence[Span], sentences: Sequence[int]) -> Iterator[Tie]:
    starts = [start for start, _ in spans]
    ends = _sentence_ends(text)
    for cue in _matches(text, _EACH, _EACH_STARTS):
        place, sentence = bisect_right(starts, cue.start()), bisect_left(ends, cue.start())
        near = [
            i
            for i in range(max(0, place - _NEAR), min(len(spans), place + _NEAR))
            if sentences[i] == sentence
        ]
        if len(near) < 2:
            continue
        noun = (cue["noun"] or "").lower()
        if cue["cue"].lower() in ("each", "apiece") and not cue["of"] and _is_pronoun(noun):
            yield from _around(near, place)
        elif cue["of"] and cue["noun"] and cue.start("noun") in (starts[i] for i in near):
            count = starts.index(cue.start("noun"), near[0])
            yield from (Tie(i, count) for i in near if 0 < abs(i - count) <= 2)
        elif noun:
            counts = [i for i in near if _counts(text, spans[i], noun)]
            yield from (Tie(i, count, noun) for count in counts for i in near if i != count)


def _is_pronoun(noun: str) -> bool:
    """Whether `each` before this word stands alone: `each with 4 panes`, `4 panes each.`"""
    return not noun or noun in _PRONOUN_BEFORE or noun[0].isdigit()


def _around(near: Sequence[int], place: int) -> Iterator[Tie]:
    """`6 columns of 4 panes each`, `6 columns, each with 4 panes`: the number before the cue and its neighbours."""
    last = place - 1
    for other in (last - 2, last - 1, place, place + 1):
        if last in near and other in near:
            yield Tie(last, other)
            yield Tie(other, last)


def _counts(text: str, span: Span, noun: str) -> bool:
    """Whether the number counts `noun`: `12 monthly tickets` for ticket, `1 year` for month."""
    unit = _COUNTED.fullmatch(text, *span)
    if unit:
        return _alike(unit[1].lower(), noun)
    nouns = _NOUNS.match(text, span[1])
    return nouns is not None and any(_alike(word.lower(), noun) for word in nouns.groups() if word)


def _alike(word: str, noun: str) -> bool:
    if word in UNITS and noun in UNITS:
        return UNITS[word].dimension == UNITS[noun].dimension
    return word.rstrip("s") == noun.rstrip("s") or (word.endswith("ies") and word[:-3] + "y" == noun)
