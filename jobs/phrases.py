"""Sentences that assert nothing: refusals by the deployment's markers, small talk, lead-ins, headings, questions.

Narrow on purpose: what asserts is judged. A refusal is a whole sentence (or run of sentences) that equals a marker
of the config; small talk is a whole sentence of a fixed vocabulary. A lead-in, heading or question that holds a
value (a figure that numbers and counts nothing in the text itself), and one that says more than it announces or
asks, is a statement. Small talk and statements by their words are English only; another language's are judged.
Knows no Markdown: what stands as a heading or before a list, `segment.py` says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from claimscore.jobs.bounds import CLOSERS, MARKS

_ASK = r"(?:please )?(?:let me know|feel free to (?:ask|reach out|contact me)|don't hesitate to ask)"
_META = re.compile(
    r"(?:sure|certainly|of course|absolutely|great question|good question|hello|hi|hi there|happy to help|thank you|thanks)"
    r"(?: thing)?(?:[,!.] (?:i'd be|i'm|i am|i would be) happy to help(?: with that| you)?)?[!.,:]*"
    r"|(?:i'm|i am|i'd be|i would be) happy to help(?: you)?(?: with that)?[!.]*"
    r"|i hope (?:this|that|it) (?:helps|answers your question|is helpful|clarifies things)(?: you)?[!.]*"
    rf"|{_ASK}(?: if (?:you|there)(?:'s| is| are|'d| would)? ?(?:have|need|want|like)?(?: to know)?"
    r" ?(?:any|anything|more|further|other|additional|another)?(?: (?:questions?|help|details?|information|clarification|assistance|else|more|other|further|you need|i can help with))*)?[!.]*"
    r"|(?:here (?:is|are)|here's) (?:what i found|(?:the|a|an|your) (?:short |brief |quick |detailed )?(?:answer|summary|overview|information|details|list|breakdown|steps))"
    r"(?: (?:you asked for|you requested|you need|to your question))?(?:,? based on the (?:provided |given |retrieved )?(?:context|documents?|sources?|information|passages))?[:.]?"
    r"|(?:based on|according to) the (?:provided |given |retrieved )?(?:context|documents?|sources?|information|passages)[,:.]?"
    r"|in (?:summary|conclusion|short)[,:.]?"
    r"|(?:i apologi[sz]e|(?:i'm|i am) sorry|sorry) (?:for|about|if) (?:the|any|my|this) (?:(?:previous|earlier|last|response|answer|message|may have|has|caused|any|some|the) ){0,6}+"
    r"(?:confusion|misunderstanding|inconvenience|mistake|error|delay)(?: caused)?(?: in my (?:previous|earlier|last) (?:response|answer|message))?[!.]*"
)
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}"
_ADDRESS = re.compile(
    r"\W*(?:(?:available|retrieved)(?: at| from)?:?\s+|source:?\s+)?<?https?://\S+"
    rf"|\[(?:online|accessed(?: on)?:?(?:\s+(?:\d[\d.,/\-]*+|{_MONTH}[.,]?))*+)\]\W*",
    re.IGNORECASE,
)
_UNIT = (
    r"(?:percent|per cent|%|euros?|eur|dollars?|usd|pounds?|gbp|cents?|rupees?|inr|rs|francs?|chf|yen|nights?|days?|weeks?|months?"
    r"|years?|hours?|minutes?|times|people|guests|points|miles|kilometers|km|kg|mg|gb|mb)\b"
)
_SMALL = r"\d{1,2}(?:\.\d{1,2})*+"
_NUMBERED = re.compile(  # "2. Fees", "(2) Fees", "2.1 Fees", "Step 2 of 5: Pay", "Q1: Who pays"
    rf"\W{{0,40}}(?:\(?{_SMALL}(?:[.):]|\.\))\s+|\d{{1,2}}(?:\.\d{{1,2}})++\s+(?!{_UNIT})(?=[^\W\d])"
    r"|(?:step|part|chapter|section|phase|option|stage|day|week|question|q|example|figure|table|appendix|article"
    rf"|point|item|level|lesson|module|note|tip|method|rule|reason|scenario|case|version|number|no\.|(?=#))[ #]*+{_SMALL}"
    rf"(?: ?(?:of|/|and|to|-|–) ?\d{{1,2}})?(?:\W*$|\s*[:.)–—-]\s| (?!{_UNIT})(?-i:(?=[A-Z]))))",
    re.IGNORECASE,
)
_COUNT = re.compile(  # "Here are 3 options", "5 ways to save", "the 2 main reasons": how long the list is
    rf"\b(?:(?:here are|these(?: are)?|following|top|below are)(?: the| our| my)? \d{{1,2}}(?!\s?{_UNIT}|[\d.,%]*\d|\s?[%$€£¥])"
    r"|\d{1,2} (?:[a-z]+ )?(?:options|ways|steps|things|reasons|items|examples|methods|choices|tips|questions|topics)\b)",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    rf"\W*(?:(?:{_MONTH}|q[1-4]|h[12]|fy|fiscal|year|in)\s)?(?:19|20)\d\d(?:\s?[-–/]\s?\d{{2,4}})?\W*",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(  # COVID-19, W-2, but not EUR900 and not May-5
    rf"\b(?!(?:eur|usd|gbp|chf|jpy|inr|rs|us|{_MONTH})-?\d)(?-i:[A-Z])[A-Za-z]{{0,7}}-?\d{{1,3}}\b(?![.,]\d|\s?[%$€£¥])",
    re.IGNORECASE,
)
_SPELLED = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]{3,5}teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-[a-z]+)?|hundred|thousand|million|billion)"
    rf"(?: (?:hundred|thousand|million|billion)){{0,6}} {_UNIT}",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"(?:here(?: is| are|'s)|these are|below (?:is|are)|the following(?: [a-z]+)?(?: is| are| apply| applies)?)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?<!\W)\W*+(?:if|when|whenever|once|unless|whether|where|to|for|depending|in case|before|after)\b[^,]*+,",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    r"\b(?:is|are|was|were|isn't|aren't|has|have|had|costs?|includes?|offers?|provides?|can|cannot|can't|may|must|will"
    r"|gets?|requires?|needs?|allows?|contains?|covers?|starts?|ends?|applies|closes?|opens?|charges?|pays?)"
    r"\b[^,;–—.]{0,120}?(?:[,;–—.]|\b(?:and|but|while|because|so)\b)",
    re.IGNORECASE,
)
_LONG_LEAD_IN_WORDS, _LONG_LEAD_IN_CHARS, _LONG_LEAD_IN_WIDE = (
    14,
    110,
    24,
)  # 13 words is common: "Some of the ... include:"
_TELLS = re.compile(
    r"\W*(?:did|do) you know(?: that)?\b(?! (?:what|how|why|when|where|who|which|whether|if)\b)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[,–—-]\s*(?:right|correct|yes|no|ok|okay|eh|you see|am i (?:right|correct)|don't you (?:think|agree)"
    r"|(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|ca|wo)(?:n't| not)? (?:it|they|he|she|you|we|i"
    r"|there)(?: not)?)\W*$",
    re.IGNORECASE,
)
_QUESTION = re.compile(rf"[?？؟՞፧⁇⁈⸮\u037e][{CLOSERS}\s]*$")
_FOLDED_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})


def kind_of(sentence: str, kind: str) -> str:
    """`question`, `meta` or `heading` where `sentence`, of a block of this kind, asserts nothing; else its kind.

    A heading that asserts is a paragraph.
    """
    bare = without_marks(sentence)
    if kind == "heading":  # a statement in large print is still a statement
        is_closed = bare.rstrip()[-1:] in ".!。" and len(bare.split()) > 3
        return "paragraph" if is_closed or not only_asks(bare) else kind
    if _QUESTION.search(bare[-40:]):
        return "question" if only_asks(bare) else kind
    return "meta" if is_small_talk(sentence) else kind


def is_small_talk(text: str) -> bool:
    """True for a greeting, an offer of help, an announcement or a bare address; citation marks are looked past."""
    if ("://" in text or "[" in text) and _ADDRESS.fullmatch(text):
        return True
    bare = without_marks(text)
    return len(bare) < 160 and _META.fullmatch(fold(bare)) is not None


def holds_value(text: str) -> bool:
    """True where `text` gives a number, date, percentage or sum.

    Figures that number or count parts of the text do not count, nor do citation marks, names such as COVID-19
    and a year or month that is the whole text. Words count before a unit: "nine hundred euro".
    """
    if _SPELLED.search(text):
        return True
    if not _has_figure(text):
        return False
    bare = without_marks(text)
    numbered = _NUMBERED.match(bare)
    bare = bare[numbered.end() :] if numbered else bare
    if _PERIOD.fullmatch(bare):
        return False
    return _has_figure(_CODE_NAME.sub("", _COUNT.sub("", bare)))


def only_announces(text: str) -> bool:
    """True for a lead-in ("The card costs:") that says nothing but that something follows.

    False where it holds a value, is longer than 14 words, or has a clause with a verb before a comma or
    `and`, conditions at its front aside.
    """
    bare = without_marks(text.translate(_FOLDED_QUOTES))
    wide = sum(char > "\u2e7f" for char in bare)
    if (
        len(bare) > _LONG_LEAD_IN_CHARS
        or wide > _LONG_LEAD_IN_WIDE
        or len(bare.split()) > _LONG_LEAD_IN_WORDS
    ):
        return False
    rest = _LEADING.sub("", _CONDITION.sub("", bare, count=1), count=1)
    return not holds_value(bare) and not _SAID_BEFORE.search(rest)


def only_asks(text: str) -> bool:
    """True for a question or heading without a value that does not tell ("Did you know ...?", "..., right?")."""
    bare = without_marks(text.translate(_FOLDED_QUOTES))
    return not holds_value(bare) and not _TELLS.match(bare) and not _TAG.search(bare[-60:])


def without_marks(text: str) -> str:
    """`text` without citation marks; a 【passage in such brackets】 is none, whatever a mark may look like."""
    return _unmarked(text) if any(bracket in text for bracket in "[［【") else text


@lru_cache(maxsize=256)
def _unmarked(text: str) -> str:
    """Asked for three times of a sentence: what kind it is, whether it is small talk, and whether it refuses."""
    return MARKS.sub(lambda mark: mark[0] if _is_passage(mark[0]) else "", text)


def _is_passage(mark: str) -> bool:
    return "【" in mark and "†" not in mark and len(mark.split()) > 2  # 【source 1】 is a mark


def _has_figure(text: str) -> bool:
    return any(char.isdecimal() or char in "½¼¾⅓⅔" for char in text)


def fold_markers(markers: Iterable[str]) -> frozenset[str]:
    """Refusal markers in the form that `find_refusals` compares; blank ones are dropped."""
    return frozenset(folded for marker in markers if (folded := _bare(marker)))


def find_refusals(texts: Sequence[str], markers: frozenset[str]) -> set[int]:
    """Indices of the sentences that are a marker, alone or, for a marker of several sentences, together.

    Case, blanks, outer quote signs, a last full stop and citation marks do not count.
    """
    folded = [fold(without_marks(text)) for text in texts] if markers else []
    found: set[int] = set()
    for first in range(len(folded)):
        run = ""
        for last in range(first, len(folded)):
            run = f"{run} {folded[last]}".strip().removeprefix("answer: ")
            bare = run.strip(".!。 \"'")
            if bare in markers:
                found.update(range(first, last + 1))
            if not any(marker.startswith(bare) for marker in markers):
                break
    return found


def _bare(text: str) -> str:
    return fold(without_marks(text)).rstrip(".!。 \"'")


def fold(text: str) -> str:
    """Lower case, plain quotes and single blanks; quotes and emphasis around all of it do not count."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_FOLDED_QUOTES))
    folded = text.casefold()
    return " ".join(folded.split()).strip("\"'«»“”*`_ ")
