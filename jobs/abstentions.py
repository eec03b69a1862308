"""Sentences in which an answer says, in its own English words, that it or its documents do not hold what was asked.

"I do not have specific information about the fee", "The provided documents do not mention it". No premise entails that
something is absent, and a judge only guesses: of 40 such sentences in logged answers the demo's called 16 contradicted
and 23 unsupported. So they refuse, as the markers of a prompt do. Narrow on purpose: what is taken for an abstention is
judged by nobody, so a sentence that may say anything beside it, or that may speak of the world ("There is no evidence
that ...", "The article contains no nuts"), is judged. Knows no answer.
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
_WHAT = r"(?:information|info|details?|knowledge|answers?|specifics|(?<=enough )context|(?<=sufficient )context)\b"
_GIVEN = r"(?:(?:given|provided|retrieved|available|supplied|above|following|current|present) )"
_AFTER = r"(?: (?:provided|given|above|supplied|available))"
_NOUNS = (
    r"(?:contexts?|documents?|passages?|sources?|texts?|excerpts?|articles?|information|chunks?|search results"
    r"|knowledge base)\b"
)
_DOCUMENTS = rf"(?:(?:the|this|these|those|that|your|my|our) )?+{_GIVEN}*+{_NOUNS}{_AFTER}?+"
# An article contains nuts, a source provides water, a document gives a right: what can only be a text, or is called given.
_TEXTS = (
    rf"(?:(?:the|this|these|those) )?+(?:{_GIVEN}++(?!information\b){_NOUNS}|(?:contexts?|excerpts?|chunks?|search results)\b"
    rf"|(?:documents?|passages?|sources?|texts?){_AFTER})"
)
_CANNOT = r"(?:do not|don't|does not|doesn't|cannot|can't|can not|could not|couldn't|(?:am|are|is|was|were) (?:unable|not able) to|wasn't able to)"
_OPENING = (
    r"(?:(?:i apologi[sz]e|(?:(?:i'm|i am|we're|we are) )?+(?:very |so |truly )?+sorry|unfortunately|sadly|however|therefore|thus|additionally"
    rf"|again|also|overall|(?:based on|according to|from|in) {_DOCUMENTS})(?:,? (?:but|that))?+,? ){{0,3}}+"
)
_TOLD = r"(?:mentioned|stated|specified|indicated)"
_TELL = r"(?:mention|specify|state|say(?=\W*$| (?:so|anything|much|more|about|that|this|whether|if|how|what|when|where|which|who)\b)|indicate|explain|clarify)"
_HOLD = r"(?:contain|provide|include|give|address|discuss|answer)"
_ASKED = r"(?:whether|if|how|what|when|where|which|who|whom|whose)\b"
_END = r"(?:\W*$)"
# After "information": no word that makes it another thing, such as an information desk, and no "that suggests".
_TOPIC = (
    rf"(?:{_END}|,? (?:about|on|regarding|concerning|related|relating|for|of|as to|at (?:this|the) (?:time|moment)|available"
    rf"|provided|given|specifically|directly|needed|necessary|required|either|here|yet|to (?:answer|provide an? (?:brief |clear |definitive |complete )?answer)|to (?:the|your|this|that) (?:question|query|request)|{_ASKED}|(?:in|within|from) {_DOCUMENTS}))"
)
_MENTION = (  # "no mention of slavery in the constitution" is about the constitution
    rf"mentions? (?:of|about|regarding|concerning) (?!.*\b(?:in|within|by) (?!{_DOCUMENTS})(?:the|this|that|his|her|its|their)\b)"
)
_FORMS: Final = (  # "we do not provide information to others" is a rule of a firm: only "I cannot provide" abstains
    rf"(?:i {_ADVERB}(?:{_CANNOT}|did not|didn't)|we {_ADVERB}{_CANNOT}) {_ADVERB}(?:find|see|locate) {_ANY}{_WHAT}(?={_TOPIC})",
    rf"i'm {_ADVERB}(?:unable|not able) to {_ADVERB}(?:find|see|locate) {_ANY}{_WHAT}(?={_TOPIC})",
    rf"(?:i|we) {_ADVERB}{_CANNOT} {_ADVERB}(?:have|access) {_ANY}{_WHAT}(?={_TOPIC})",
    rf"i {_ADVERB}(?:cannot|can't|can not|could not|couldn't|am (?:unable|not able) to) {_ADVERB}(?:provide|offer|give) {_ANY}{_WHAT}",
    rf"i {_ADVERB}(?:do not|don't) {_ADVERB}know(?={_END}| (?:that{_END}|the answer\b|about\b|{_ASKED}))",
    rf"(?:i {_ADVERB}{_CANNOT}|i'm {_ADVERB}(?:unable|not able) to) {_ADVERB}answer\b(?! for\b)",
    rf"(?:i {_ADVERB}(?:{_CANNOT}|will not|won't)|i'm {_ADVERB}(?:unable|not able) to) {_ADVERB}(?:help|assist)\b(?: you\b)?(?={_END}| (?:with|on|in|regarding)\b)",
    rf"i (?:can only|am only able to) {_ADVERB}(?:answer|help with|respond to) (?:questions|queries|requests)\b(?={_END}| (?:about|on|regarding|concerning|related|relating)\b)",
    rf"(?:i {_ADVERB}{_CANNOT}|i'm {_ADVERB}(?:unable|not able) to) {_ADVERB}(?:confirm|determine|verify)(?: or deny)?\b(?: (?:whether|if)\b)?",
    rf"{_DOCUMENTS} {_ADVERB}{_CANNOT} {_ADVERB}{_TELL}\b",
    rf"none of {_DOCUMENTS} {_ADVERB}(?:mentions?|specif(?:y|ies)|states?|indicates?|explains?|clarif(?:y|ies))\b",
    rf"{_DOCUMENTS} {_ADVERB}{_CANNOT} {_ADVERB}(?:have|{_HOLD}) {_ANY}(?:(?:information|info|details?|answers?|specifics)\b(?={_TOPIC})|mention\b|the question\b)",
    rf"{_TEXTS} {_ADVERB}{_CANNOT} {_ADVERB}{_HOLD}\b",
    rf"there(?:'s no|(?: is| was| are) (?:no|not (?:any|enough|sufficient))|(?: isn't| aren't| wasn't)(?= (?:any|enough|sufficient))) {_ANY}(?:information|info|details?)\b(?={_TOPIC})",
    rf"there(?:'s| is| was| are) (?:no|not any) {_ANY}{_MENTION}",
    rf"it(?:'s| is| was) not {_ADVERB}{_TOLD}\b(?: (?:explicitly|specifically|directly|clearly))?(?={_END}| (?:about\b|{_ASKED}|(?:in|by) {_DOCUMENTS}(?:{_END}| {_ASKED})))",
)
_BASED_ON = (  # what follows is of them alone, where it would be of the world without it; "In the article, ..." reports
    r"(?:(?:unfortunately|however|therefore|thus|so|additionally),? )?+"
    r"(?:based (?:only |solely )?on (?:the information (?:(?:given|provided|available|found) )?in )?"
    rf"(?:{_TEXTS}|(?:the|this|these|those) {_GIVEN}*+(?:documents?|passages?|sources?|texts?|information))"
    rf"|from {_TEXTS}), "
)
_BY_DOCUMENTS = rf"(?:{_BASED_ON}|(?:according to|in) {_TEXTS}, )"
_WITH_ANSWER = r"(?:the|this|that|your) (?:question|query)"
_IS_NOT_POSSIBLE = (  # to tell twins apart, to confirm a booking by phone: of what only a text would be asked
    r"it(?:'s| is| was) (?:not possible|impossible) to (?:determine\b"
    rf"|(?:confirm|verify|say|tell)(?: (?:this|that|for sure|for certain|with certainty))?(?={_END}| {_ASKED})"
    rf"|answer(?={_END}| {_WITH_ANSWER}\b)"
    r"|(?:provide|give) (?:an?|the) (?:exact|precise|direct|definitive|specific|clear|brief|complete) (?:answer|number|percentage"
    rf"|figure|date|amount|estimate)(?={_END}| (?:of|for|on)\b| to {_WITH_ANSWER}\b))"
)
_FORMS_BY_DOCUMENTS: Final = (
    _IS_NOT_POSSIBLE,
    rf"it (?:cannot|can't|can not|could not) be {_ADVERB}(?:determined|confirmed|verified|said|answered)(?={_END}| {_ASKED})",
    r"there(?:'s| is) no (?:clear )?indication (?:that|whether|of)\b",
)
_SAYS = re.compile(f"{_OPENING}(?:{'|'.join(_FORMS)})")
_SAYS_BY = re.compile(f"{_BASED_ON}(?:{'|'.join(_FORMS_BY_DOCUMENTS)})")
_IS_NOT = r"(?:(?:is|are|was|were) not|isn't|aren't|wasn't|weren't)"
_CANNOT_BE = r"(?:cannot|can't|can not|could not|couldn't) be"
_NOT_TOLD = re.compile(  # "X is not mentioned in the given context"
    rf"{_OPENING}(?P<what>[^,;:]{{3,160}}?) (?:{_IS_NOT} {_ADVERB}(?:(?:{_TOLD}|described|discussed) (?:in|by)"
    r"|(?:provided|given|included|available|found) in)"
    rf"|{_CANNOT_BE} {_ADVERB}(?:found in|(?:determined|answered|confirmed) (?:from|with|by|based on))"
    rf"|(?:(?:is|was) (?:unclear|not clear) (?:from|in))) {_DOCUMENTS}\W*$"
)
_NOT_TOLD_BY = re.compile(  # "Based on the given context, X is not mentioned"; a drug that is not indicated is not for the ill
    rf"(?:{_BY_DOCUMENTS}(?P<what>[^,;:]{{3,160}}?) {_IS_NOT} {_ADVERB}(?:mentioned|stated|specified|described|discussed)"
    rf"|{_BASED_ON}(?P<asked>[^,;:]{{3,160}}?) (?:{_CANNOT_BE} {_ADVERB}determined|(?:is|was) (?:unclear|not clear)"
    rf"|(?:(?<=answer )|(?<=question )|(?<=information )|(?<=this )){_CANNOT_BE} {_ADVERB}(?:found|answered|confirmed))){_END}"
)
_PAIRED = re.compile(r"(?:the|this|any|its|their|his|her) [\w-]+ (?:and|or) ")
"""Two things of one kind at the beginning, where an `and` joins no clauses: "the name and age of the author"."""
_MARK = re.compile(r"\[\d{1,3}\]")
_HIDES = re.compile(  # a clause whose verb is none of _VERBS, a value, a negation: what is not mentioned is taken for true
    r"\b(?:and|or|which|that|who|whom|whose|where|fact|lack|absence|nothing|everything|none|nobody|no|not|never|plus|due|then)\b|n't\b"
    r"|\b(?:by|from|through|during|at|with|against|to(?! (?:the|this|that|your) (?:question|query)\b))\b|^[\w'-]+ [\w'-]+ (?:[\w'-]+ ){0,3}?\w{3,}ing \w"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,6}teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred"
    r"|thousand|million|billion|percent)\b"
    r"|\breasons? (?!for\b|of\b|behind\b)|\b\w{2,}ed (?:of|by|on|in|for|with|to|from|as|at|since)\b"
    r"|\b(?!(?:1[5-9]|20)\d\d\b)\w{0,20}\d|[%$€£]"
)
_GOES_ON = re.compile(  # what follows asserts, or may
    r"[;:/|<>=~{}…]|\.\.|[.!?]\W{0,60}\s\w| [-–—]+ |—|\((?!\w{1,12}\))"
    r"|\b(?:but|however|although|though|instead|whereas|while|because|since|except|only|so|therefore|hence|thus|why|than"
    r"|meaning|means?|indicating|suggest(?:s|ing)|imply|impli(?:es|ed)|implying|even|until|unless|besides|apart|aside|beyond|unlike"
    r"|despite|without|rather|yet(?!\W{0,9}$)|stored|on file|on record|(?:given|provided) that|of course)\b"
    # A comma that begins neither the last of a list nor the item before it.
    r"|(?<!, specifically),(?! (?:or|nor|either|specifically)\b| [^,]{1,30},? (?:or|nor)\b|\W{0,9}$)"
    r"|\b(?:and|or|as|for) (?:it|they|i|we|he|she|you|there|this|these|that|all|no|not|nothing|so|thus|yet)\b(?!\W{0,9}$)"
)
_VERBS = re.compile(  # a clause of its own: "the chief who was fired", "and the service is free", "side effects as it is safe"
    r"\b(?:is|are|was|were|am|has|have|had|does|do|did|will|would|must|shall|isn't|aren't|wasn't|weren't|won't|cannot|can't|gets?|pay|enter"
    r"|pays|requires|allows|contains|provides|includes|applies|enters|became|becomes|won|died|began|made|took|says|said|costs"
    r"|(?<!that you )(?<!that i )(?<!that we )(?:can|could|should|may|might))\b|\b(?:it|they|that|there|this|he|she|you|we)'(?:s|re|ll|ve|d)\b"
)
_CLAUSE = re.compile(
    rf"\W*(?:{_ADVERB})(?:(?:about|on|of|as to|regarding|concerning|for|in {_DOCUMENTS}|to) )?+{_ASKED}"
)
_ABOUT = re.compile(r"\b(?:who|which|that) (?:is|are|was|were|has|have|had|will)\b")
_FIRM = re.compile(r"\b(?:you|your|customers?|clients?|patients?|users?|members?|employees)\b")
_FOREIGN = re.compile(r"[^\x20-\x7e\u00a0-\u00ac\u00ae-\u024f\u2010-\u2015\u2018-\u201f\u2026\u20ac\u2122]")
"""Letters of other scripts, and characters that show nothing: a word written with them is not read."""


def abstains(text: str) -> bool:
    """True for a sentence that says nothing but that the answer or its documents do not hold something. English only."""
    if len(text) > MOST_CHARS or "\n" in text:  # a line break may end a statement without a mark
        return False
    bare = fold(without_marks(text)).replace("*", "").replace("`", "").replace("__", "")
    if _FOREIGN.search(bare):
        return False
    if says := _SAYS.match(bare):
        rest = bare[says.end() :]
        is_of_firm = bare.rfind("we ", 0, says.end()) >= 0 and _FIRM.search(rest)
        return not is_of_firm and _is_topic(says[0], rest)
    if says := _SAYS_BY.match(bare):
        rest = bare[says.end() :]
        asks = _CLAUSE.match(rest)
        return not (_FIRM.search(rest) or _hides(rest[asks.end() if asks else 0 :])) and _is_topic(
            says[0], rest
        )
    if told := _NOT_TOLD.match(bare) or _NOT_TOLD_BY.match(bare):
        what = next(found for found in told.groups() if found)
        asked = re.match(_ASKED, what)
        is_topic = _is_one_clause(what[asked.end() :]) if asked else not _VERBS.search(what)
        return is_topic and not _GOES_ON.search(what) and not _hides(what[asked.end() :] if asked else what)
    return False


def _is_topic(said: str, rest: str) -> bool:
    """Whether what follows one of the forms is what was asked for alone."""
    if _GOES_ON.search(rest):
        return False
    asks = _CLAUSE.match(rest)
    if asks or said.endswith((" whether", " if", " that")):
        return _is_one_clause(rest[asks.end() if asks else 0 :])
    return not _VERBS.search(rest)


def _is_one_clause(text: str) -> bool:
    """Whether an indirect question says only what it asks: no second clause after `and`, none about someone in it."""
    n_verbs = sum(_VERBS.search(part) is not None for part in re.split(rf"\band (?!{_ASKED})", text))
    return n_verbs < 2 and not _ABOUT.search(text)


def _hides(topic: str) -> bool:
    """Whether what is not told may hold a statement beside its topic; citation marks are none."""
    paired = _PAIRED.match(topic)
    return _HIDES.search(_MARK.sub("", topic[paired.end() :] if paired else topic)) is not None
