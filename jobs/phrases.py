"""Sentences that assert nothing about the subject: refusals by the deployment's own markers, and small talk.

Both lists are exact on purpose. A refusal is a whole sentence (or run of sentences) that equals a marker of the
config; small talk is a whole sentence of a fixed vocabulary, without a number or a name. What is near to
either but not equal gets claims like any other sentence. English only: another language's small talk is judged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from claimscore.jobs.bounds import MARKS

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
)
_ADDRESS = re.compile(
    r"\W*(?:(?:available|retrieved)(?: at| from)?:?\s+|source:?\s+)?<?https?://\S+|\[(?:online|accessed\b[^\]]*)\]\W*",
    re.IGNORECASE,
)
_FOLDED_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})


def is_small_talk(text: str) -> bool:
    """True for a greeting, an offer of help, an announcement or a bare address; citation marks are looked past."""
    if _ADDRESS.fullmatch(text):
        return True
    bare = MARKS.sub("", text)
    return len(bare) < 160 and _META.fullmatch(_fold(bare)) is not None


def fold_markers(markers: Iterable[str]) -> frozenset[str]:
    """Refusal markers in the form that `find_refusals` compares; blank ones are dropped."""
    return frozenset(folded for marker in markers if (folded := _bare(marker)))


def find_refusals(texts: Sequence[str], markers: frozenset[str]) -> set[int]:
    """Indices of the sentences that are a marker, alone or, for a marker of several sentences, together.

    Case, blanks, outer quote signs, a last full stop and citation marks do not count.
    """
    folded = [_fold(MARKS.sub("", text)) for text in texts] if markers else []
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
    return _fold(MARKS.sub("", text)).rstrip(".!。 \"'")


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text.translate(_FOLDED_QUOTES)).casefold()
    return " ".join(folded.split()).strip("\"'«»“”*`_ ")
