"""Cue words and patterns of English text: negation, conditions, hedges, numbers, opposites, and other languages' signs.

Data, not rules: `origin`, `decompose` and `duplicates` say what follows from a cue. A cue stands for a class ("at least" is
kept by "no less than" and "minimum"), since a claim may say the same with another word. Every pattern is linear
in the length of the text. What the module does not know: any grammar.
"""

from __future__ import annotations

import re
from typing import NamedTuple


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Cue(NamedTuple):
    """A qualification that must not be lost, and what a claim may call it."""

    fault: str
    signs: tuple[str, ...]
    """Every match of `asks` holds one of them, the first word of it whole: to look for those first takes a tenth of the time."""
    asks: re.Pattern[str]
    keeps: re.Pattern[str]


def _cue(fault: str, signs: str, asks: str, keeps: str) -> Cue:
    return Cue(fault, tuple(signs.split("|")), re.compile(asks), re.compile(keeps))


SCALES = {
    "thousand": 1e3, "lakh": 1e5, "lakhs": 1e5, "million": 1e6, "crore": 1e7, "crores": 1e7,
    "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9,
}  # fmt: skip
"""What a figure is multiplied with by the word after it."""
WORDED = {
    word: float(value)
    for value, words in {
        2: "two twice both pair", 3: "three thrice", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight",
        9: "nine", 10: "ten", 11: "eleven", 12: "twelve dozen", 13: "thirteen", 14: "fourteen", 15: "fifteen",
        16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty", 40: "forty",
        50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety", 100: "hundred",
    }.items()
    for word in words.split()
}  # fmt: skip
"""Number words; "one" is left out, being a pronoun more often."""
STOP = _set_of(
    "a an the and or but nor so of in on at to for by from with as into onto over under about after before during "
    "between among through per via than then that this these those which who whom whose what when where how why "
    "is are was were be been being am do does did has have had having will would shall should can could may might "
    "must it its he she they them his her their him we us our you your i me my there here also such both each "
    "either other others another some any all more most many much several one ones not no never none if unless "
    "only except until up out off s t re ve ll d m however although though while because since additionally "
    "addition furthermore moreover overall finally instead yet still just even including include includes included like "
    "well known too very own same used using use made make makes"
)
"""Function words and filler: what two ways to say the same may differ in."""
AUXILIARY = _set_of(
    "is are was were be been am has have had do does did will would can could may might must should shall"
)
"""What a subject needs where its sentence gave it one, lest only fragments are left."""
PRESENT, PAST = _set_of("is are am do does has have"), _set_of("was were did had")
"""Forms that say when, and little else."""
POINTING = _set_of("it they them he him she this these those former latter aforementioned")
POINTING_FIRST = _set_of("its their his her hers theirs such both others another that one")
"""They point at something that was said before: the first anywhere, the second as first words."""
OPPOSITES = _set_of(
    "rise rises rose risen rising fall falls fell fallen falling increase increases increased increasing decrease "
    "decreases decreased decreasing grow grows grew grown growing shrink shrinks shrank gain gains gained lose "
    "loses lost win wins won up down high higher highest low lower lowest less least fewer fewest greater lesser "
    "big bigger small smaller large larger long longer short shorter old older new newer early earlier late later "
    "before after first last next previous open opens opened close closes closed closing start starts started "
    "begin begins began end ends ended stop stops stopped buy buys bought sell sells sold lend lends lent borrow "
    "borrows borrowed import export imports exports accept accepts accepted reject rejects rejected allow allows "
    "allowed permit permits permitted forbid forbids forbidden prohibit prohibits prohibited ban banned include "
    "includes included including exclude excludes excluded excluding require requires required optional mandatory "
    "compulsory voluntary enable enables enabled disable disables disabled add adds added remove removes removed "
    "keep keeps kept delete deletes deleted send sends sent receive receives received give gives gave take takes "
    "took join joins joined leave leaves left right east west north south eastern western northern southern "
    "inside outside above below internal external public private male female man woman men women boy girl husband "
    "wife father mother son daughter brother sister hot cold warm cool wet dry light dark fast slow hard soft "
    "easy difficult true false safe dangerous good bad better worse best worst positive negative always never "
    "daily weekly monthly yearly annual annually hourly quarterly morning evening day night summer winter spring "
    "autumn minimum maximum min max gross net free paid full empty complete partial partly fully alive dead born "
    "died dies same different alone together"
)
"""Words that have an opposite or a sister in their own place: with the one for the other, a claim says something else."""
NEGATION = _set_of(
    "not no never none nobody nothing neither nor without cannot hardly barely scarcely isn't aren't wasn't weren't "
    "don't doesn't didn't won't wouldn't can't couldn't shouldn't mustn't hasn't haven't hadn't ain't"
)
NEGATION_RUNS = frozenset((word.partition("n't")[1] and b"t") or word.encode() for word in NEGATION)
"""Every word of NEGATION has one of them among its runs of letters (letters.py)."""
NOT_NEGATION = re.compile(
    r"\bnot only\b|\bno\.? ?\d|\bwhether or not\b|\bnot just\b|\bno (?:less|more|fewer) than\b"
)
"""Phrases with a negation word that negate nothing."""
OTHER_LANGUAGE = _set_of(
    "der die das und ist nicht ein eine einen dem den wird auf mit für von zu im sind auch "
    "le les des une est et pas dans que qui pour avec sur sont au aux du "
    "el los las una y del por con para se su como más pero no es "
    "il di che è non gli della nel sono per um uma não os da em ao mais "
    "het een niet van dat zijn voor met och att det som inte är"
)
"""Frequent function words of German, French, Spanish, Italian, Portuguese, Dutch and Swedish."""
ENGLISH = _set_of(
    "the a an of in is to and for was are with on by as at from that it be or this his her has have not its he she "
    "were which they their"
)

_A_WORDED = r"(?:" + "|".join(WORDED) + r")\b"
_FIGURE = r"(?=(?:\s+(?:the|a|an|of))?\s+[^\w\s]{0,2}(?:\d|" + _A_WORDED + "))"
_OFTEN = r"\b(?:usually|generally|typically|often|sometimes|mostly|normally|rarely|seldom|occasionally|tends? to)\b"
CUES = (
    _cue(
        "lost_condition",
        "if|provided that|as long as",
        r"(?<!\beven )\bif\b|\bprovided that\b|\bas long as\b",
        r"\b(?:if|provided|providing|assuming|as long as|in case|conditions?)\b",
    ),
    _cue("lost_condition", "unless", r"\bunless\b", r"\b(?:unless|if not|without)\b"),
    _cue(
        "lost_condition",
        "only",
        r"(?<!\bnot )\bonly\b(?!\s+(?:an?\b|\d|" + _A_WORDED + "))",  # "only six years old" is a tone
        r"(?<!\bnot )\b(?:only|solely|exclusively|just)\b",
    ),
    _cue(
        "lost_condition",
        "except|excluding",
        r"\bexcept\b|\bexcluding\b",
        r"\b(?:except|excluding|excepting|apart from|other than|exceptions?|not)\b",
    ),
    _cue("lost_condition", "until|till", r"\b(?:until|till)\b", r"\b(?:until|till|up to|through|before)\b"),
    _cue(
        "lost_hedge",
        "may|might|could|possibly|perhaps|probably|potentially|allegedly|reportedly|likely",
        r"\b(?:may|might|could|possibly|perhaps|probably|potentially|allegedly|reportedly|likely)\b",
        r"\b(?:may|might|could|can|possib\w*|perhaps|probabl\w*|potential\w*|alleged\w*|reported\w*|likely|"
        r"unlikely|chance|appears?|seems?)\b",
    ),
    _cue(
        "lost_hedge",
        "about|around|approximately|roughly|nearly|almost",
        r"\b(?:about|around|approximately|roughly|nearly|almost)\b" + _FIGURE,
        r"\b(?:about|around|approximate\w*|roughly|nearly|almost|some|estimated|circa|close to)\b|~",
    ),
    _cue(
        "lost_hedge",
        "up to|at most|more than|less than|fewer than",
        r"\b(?:up to|at most|no more than|less than|fewer than)\b" + _FIGURE,
        r"\b(?:up to|at most|no more than|less than|fewer than|under|below|maximum|within|limit\w*)\b",
    ),
    _cue(
        "lost_hedge",
        "at least|more than|less than",
        r"\b(?:at least|more than|no less than)\b" + _FIGURE,
        r"\b(?:at least|more than|no less than|over|above|minimum|exceed\w*|or more)\b",
    ),
    _cue(
        "lost_hedge",
        "usually|generally|typically|often|sometimes|mostly|normally|rarely|seldom|occasionally|tend|tends",
        _OFTEN,
        _OFTEN,
    ),
)
JOINS = re.compile(
    r"[,;:()\[\]{}，、；：（）–—]|\s-\s|\b(?:and|or|but|nor|yet|while|whereas|because|although|though|since|so|as|"
    r"who|whom|whose|which|that|where|when|plus|including)\b",
    re.IGNORECASE,
)
"""Signs of a second fact. A condition (if, unless, until, except) is none: cut off, it would change the first."""
REFUSAL = re.compile(
    r"\W*(?:i'?m (?:sorry|unable|not able)|(?:i )?apologi[sz]e|sorry\b|i (?:can(?:no|')t|won'?t|am (?:unable|not able|sorry))"
    r"|as an? (?:ai|language model)|unfortunately,? i )",
    re.IGNORECASE,
)
"""How a chat model begins when it will not do what it was asked."""
