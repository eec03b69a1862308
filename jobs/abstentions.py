"""Sentences in which an answer says, in its own English words, that it or its documents do not hold what was asked.

"I do not have specific information about the fee", "The provided documents do not mention it". No premise entails that
something is absent, and a judge only guesses: of 40 such sentences in logged answers the demo's called 16 contradicted
and 23 unsupported. So they refuse, as the markers of a prompt do. Narrow on purpose: a sentence that says anything
beside it, or of the world instead of the documents ("There is no evidence that ..."), is judged. Knows no answer.
"""

from __future__ import annotations

import re
from typing import Final

from claimscore.jobs.phrases import fold, without_marks

MOST_CHARS = 400
"""A longer sentence says more than that it does not know."""

_ADVERB = r"(?:(?:explicitly|specifically|directly|clearly|currently|actually|yet|also|really|personally) )*+"
_ANY = (
    r"(?:(?:any|much|enough|sufficient|specific|direct|that|this|the|more|additional|further|explicit|detailed|relevant|exact"
    r"|precise|clear|an?|access to|such|other) )*+"
)
_WHAT = r"(?:information|info|details?|knowledge|answers?|specifics)\b"
_DOCUMENTS = (
    r"(?:(?:the|this|these|those|that|your|my|our) )?+"
    r"(?:(?:given|provided|retrieved|available|supplied|above|following|current|present) )*+"
    r"(?:contexts?|documents?|passages?|sources?|texts?|excerpts?|articles?|information|chunks?|search results|knowledge base)\b(?: (?:provided|given|above|supplied|available))?+"
)
_CANNOT = r"(?:do not|don't|does not|doesn't|did not|didn't|cannot|can't|can not|could not|couldn't|(?:am|are|is|was|were) (?:unable|not able) to)"
_OPENING = (
    r"(?:(?:i apologi[sz]e|(?:(?:i'm|i am|we're|we are) )?+(?:very |so |truly )?+sorry|unfortunately|sadly|however|additionally"
    rf"|again|also|no|overall|(?:based on|according to|from|in) {_DOCUMENTS})(?:,? (?:but|that))?+,? ){{0,3}}+"
)
_TOLD = r"(?:mentioned|stated|specified|indicated)"
_TELL = r"(?:contain|provide|mention|specify|state|include|say|give|address|discuss|indicate|explain|answer|clarify)"
_FORMS: Final = (  # "we do not provide information to others" is a rule of a firm: only "I cannot provide" abstains
    rf"(?:i|we) {_ADVERB}{_CANNOT} {_ADVERB}(?:have|find|see|locate|access) {_ANY}{_WHAT}",
    rf"i {_ADVERB}(?:cannot|can't|can not|could not|couldn't|am (?:unable|not able) to) {_ADVERB}(?:provide|offer|give) {_ANY}{_WHAT}",
    rf"i {_ADVERB}{_CANNOT} {_ADVERB}(?:know|answer|confirm|determine|verify)\b",
    rf"i'm {_ADVERB}(?:unable|not able) to {_ADVERB}(?:answer|confirm|determine|verify)\b",
    rf"{_DOCUMENTS} {_ADVERB}{_CANNOT} {_ADVERB}{_TELL}\b",
    rf"there(?:'s| is| was| are) (?:no|not any) {_ANY}(?:information|info|details?|mention)\b",
    rf"it(?:'s| is| was) not {_ADVERB}{_TOLD}\b",
)
_SAYS = re.compile(f"{_OPENING}(?:{'|'.join(_FORMS)})")
_NOT_TOLD = re.compile(  # "X is not mentioned in the given context"
    rf"{_OPENING}[^,;:]{{3,160}}? (?:is|are|was|were) not {_ADVERB}(?:{_TOLD}|described|provided|given|included|discussed) (?:in|by) {_DOCUMENTS}\W*$"
)
_GOES_ON = re.compile(  # what follows asserts, or may
    r"[;:]|\b(?:but|however|although|though|instead|whereas|while|because|since|except|only)\b"
    r"|, (?:it|they|i|we|he|she|there|this|these|the|so|and|yet|as|which|who)\b"
)


def abstains(text: str) -> bool:
    """True for a sentence that says nothing but that the answer or its documents do not hold something. English only."""
    if len(text) > MOST_CHARS:
        return False
    bare = fold(without_marks(text))
    says = _SAYS.match(bare)
    if says:
        return not _GOES_ON.search(bare, says.end())
    return _NOT_TOLD.match(bare) is not None
