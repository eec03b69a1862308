"""Which claims of an answer say the same as an earlier one, so that rates count them once.

A repeat is a claim in the same words, or one that entails an earlier claim and is entailed by it (Core, arXiv:2407.03572),
as the checker that guards decomposition says: which claims there are must not depend on the judge under comparison. No model
is trusted with what rules can see: two claims are only compared where everything that turns a meaning round is the same in
both, in the same order (values, names, negations, function words, opposites), and never merged where a value, a condition or
a negation differs. So most paraphrases pass for two claims, as they did before; two facts that pass for one would be worse.
Each member of a class is compared with its first, which keeps classes from drifting. Knows no verdict and no evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Final, NamedTuple

import pyarrow as pa

from claimscore.jobs.cues import (
    ENGLISH,
    NEGATION,
    OPPOSITES,
    OTHER_LANGUAGE,
    PAST,
    POINTING,
    POINTING_FIRST,
    PRESENT,
    SCALES,
    STOP,
    WORDED,
)
from claimscore.jobs.decompose import Entails, probabilities_of
from claimscore.jobs.facts import Facts, in_same_words, is_english_like
from claimscore.jobs.spelled import WORDS
from claimscore.jobs.values import held, mentions, values_of

MIN_WORDS: Final = 4
"""A shorter claim is a fragment: what `Email support included` says depends on the heading that it stands under."""
MIN_SHARED: Final = 0.6
"""Of the words of two claims together, function words that bear nothing left out, the share that both have."""
MAX_OWN: Final = 2
"""Words that either claim may have and the other not."""
MAX_LOOKED_AT: Final = 16
"""Earlier claims with the same frame that a claim is compared with by words; of them MAX_PAIRED are judged."""
MAX_PAIRED: Final = 2
MAX_PAIRS: Final = 256
"""Of one answer, where no more are looked for: one of 20,000 claims costs no more of the model than one of 200."""

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:['’.&-][^\W_]+)*|%|[$€£¥₹]|(?<![\w.])[-+−±~<>≤≥](?=[ ]?\d)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_OPENING = re.compile(
    r"\A(?:(?:in (?:summary|short|conclusion|addition)|to (?:summari[sz]e|sum up|conclude)|overall|finally|additionally"
    r"|moreover|furthermore|however|therefore|thus|also),|(?:please )?note that\b)[ ]+",
    re.IGNORECASE,
)
"""With its comma: `Overall survival was 40 months` begins with no such phrase."""
_SIGNS = re.compile(
    r"(?<=\d)(?:[ ]?[\"'′″]|!)|(?<=\w)[+-](?!\w)|(?<!\w)-(?=\.?\d)|\(\d+\)|!=|[^\w\s.,;:!'\"()\[\]&/%-]"
)
"""What is neither word nor punctuation says things too: ticks and crosses, arrows, minus, feet and inches, (5) for -5."""
_THAT_ONE = re.compile(
    r"\b(?:in|on|at|for|of|by|to|with|from|under|during) that\b|\b(?:above|below)\b|\Ahere\b|\bsame\b",
    re.IGNORECASE,
)
"""More ways to point at something said before."""
_HARDLY_ANY = re.compile(r"\ba (?:few|little)\b", re.IGNORECASE)
"""Some, where `few` and `little` without the article are hardly any."""
_FOCUS: Final = frozenset({"only", "just", "even"})
"""They speak of the word beside them: `only the members`, `the only members`."""
_BE_AND_HAVE: Final = PRESENT | PAST | {"be", "been", "being"}
_FREE: Final = _BE_AND_HAVE | {"a", "an", "the", "that", "also", "however", "therefore", "thus"}
"""What two ways to say the same may differ in without a look at it; of the verbs, not in both tenses, and not in none."""
_TURNS: Final = (
    STOP | NEGATION | OTHER_LANGUAGE | WORDS | WORDED.keys() | SCALES.keys() | OPPOSITES
    | {"whether", "whenever", "wherever", "working", "business", "calendar", "doubled", "tripled", "quadrupled", "quintupled", "plus", "minus"}
)  # fmt: skip
_ENGLISH_TOO: Final = frozenset({"no", "per"})
_ALIKE: Final = {"percent": "%", "pct": "%", "−": "-"} | {word: f"{n:g}" for word, n in WORDED.items()}


class _Said(NamedTuple):
    """One text, as it is compared."""

    row: int
    text: str
    order: tuple[str, ...]
    """Its words without those of _FREE, each where it stands first."""
    words: frozenset[str]
    """The same, without their order."""
    frame: tuple[str, ...]
    """Its first word, and in order all that must be the same in a claim that says the same."""


def with_duplicates(
    claims: pa.Table, *, entails: Entails, how: str, above: float
) -> tuple[pa.Table, dict[str, int]]:
    """`claims` with `duplicate_of`: the claim_index of the first claim of the answer that says the same; null for that one.

    Claims of code, fragments and claims that point elsewhere (`It ...`, `... this plan`) repeat nothing. Two answers are
    never compared. The number of pairs grows with the claims, and stops at MAX_PAIRS an answer.

    Args:
        claims: records.CLAIMS, those of an answer together and in order, their texts folded as decompose gives them; its
            `duplicate_of` is not read.
        entails: (premises (N,), hypotheses (N,)) -> P(entailment) (N,), NaN where there is none; called once at most, with
            distinct pairs.
        how: `entailed`; `verbatim`: in the same words alone, no call; `none`: nothing repeats anything.
        above: P(entailment) that both ways must reach.

    Returns:
        The table, and counts: `n_duplicates` (claims) and `n_duplicate_pairs` (asked of the checker, both ways counted).
        No claims: no rows.

    Raises:
        ModelError: `entails` returned another number of probabilities than pairs.
    """
    first: list[int | None] = [None] * claims.num_rows
    asked: list[tuple[_Said, _Said]] = []
    for rows in _answers(claims) if how != "none" else ():
        _mark_verbatim(rows, first)
        if how == "entailed":
            asked += _candidates([(row, text) for row, text in rows if first[row] is None])
    sent = list(dict.fromkeys(pair for a, b in asked for pair in ((a.text, b.text), (b.text, a.text))))
    known = probabilities_of(sent, entails)
    for earlier, later in asked:
        both = (known[earlier.text, later.text], known[later.text, earlier.text])
        is_first = first[earlier.row] is None and first[later.row] is None
        if is_first and all(p >= above for p in both):  # a NaN is below everything
            first[later.row] = earlier.row
    for row, of in enumerate(first):  # in the words of a claim that turned out to repeat another one
        if of is not None and first[of] is not None:
            first[row] = first[of]
    indices: list[int] = claims.column("claim_index").to_pylist()
    named = pa.array([None if of is None else indices[of] for of in first], pa.int32())
    place = claims.schema.get_field_index("duplicate_of")
    counts = {"n_duplicates": len(first) - named.null_count, "n_duplicate_pairs": len(sent)}
    return claims.set_column(place, claims.schema.field(place), named), counts


def _answers(claims: pa.Table) -> Iterator[list[tuple[int, str]]]:
    """(row, text without its opening) of the claims of each answer that a judge may see, where there are two or more."""
    names = ("request_id", "text", "unjudgeable")
    columns = zip(range(claims.num_rows), *(claims.column(name).to_pylist() for name in names), strict=True)
    for _, group in groupby(columns, key=lambda item: item[1]):
        judged = [
            (row, _OPENING.sub("", text, count=1))
            for row, _, text, unjudgeable in group
            if unjudgeable is None
        ]
        if len(judged) > 1:
            yield judged


def _mark_verbatim(rows: Sequence[tuple[int, str]], first: list[int | None]) -> None:
    """Says in `first` of what stands there again in the same words (`in_same_words`) where it stood first."""
    seen: dict[str, int] = {}
    for row, text in rows:
        of = seen.setdefault(in_same_words(text), row)
        if of != row and _said(row, text):
            first[row] = of


def _said(row: int, text: str) -> _Said | None:
    """None for what may stand for another thing elsewhere: a fragment, a row of a table, a pronoun."""
    tokens: list[str] = _TOKEN.findall(text)
    if len(tokens) < MIN_WORDS or ";" in text or "|" in text:
        return None
    lower = [token.lower() for token in tokens]
    if lower[0] in POINTING_FIRST or not POINTING.isdisjoint(lower) or _THAT_ONE.search(text):
        return None
    plain = [_plain(word) for word in lower]
    order = tuple(dict.fromkeys([word for word in plain if word not in _FREE]))
    if not order:
        return None
    fixed = [
        word
        for place, (token, word) in enumerate(zip(tokens, plain, strict=True))
        if (word in _TURNS or not word.isalpha() or (place and not token.islower())) and word not in _FREE
    ]
    return _Said(row, text, order, frozenset(order), (order[0], *fixed))


def _plain(word: str) -> str:
    """A word in lower case as it is compared: without possessive; numbers in figures, without their grouping."""
    if word.isalpha():
        return _ALIKE.get(word, word)
    if word[0].isdigit():
        return word.replace(",", "") if _GROUPED.fullmatch(word) else word
    word = word.replace("’", "'").removesuffix("'s").rstrip(".")
    return _ALIKE.get(word, word)


def _candidates(rows: Sequence[tuple[int, str]]) -> list[tuple[_Said, _Said]]:
    """(earlier, later): different texts of one frame, mostly of the same words, that no rule tells apart."""
    words = [_first_word(text) for _, text in rows]
    often = {word for word, n in Counter(words).items() if n > 1}  # few claims of an answer begin alike
    out: list[tuple[_Said, _Said]] = []
    frames: dict[tuple[str, ...], list[_Said]] = {}
    for (row, text), word in zip(rows, words, strict=True):
        said = _said(row, text) if word in often else None
        if said is None:
            continue
        earlier = frames.setdefault(said.frame, [])
        close = islice((other for other in earlier if _is_close(other, said)), MAX_PAIRED)
        if len(out) < MAX_PAIRS:
            out += [(other, said) for other in close if not _differ(other.text, said.text)]
        if len(earlier) < MAX_LOOKED_AT:
            earlier.append(said)
    return out


def _first_word(text: str) -> str:
    """The first of `_Said.order`, for a tenth of its cost; "" where there is none."""
    words = (_plain(found[0].lower()) for found in _TOKEN.finditer(text))
    return next((word for word in words if word not in _FREE), "")


def _is_close(a: _Said, b: _Said) -> bool:
    """Whether two claims have nearly the same words, those of both in the same order."""
    shared = a.words & b.words
    if len(a.words) - len(shared) > MAX_OWN or len(b.words) - len(shared) > MAX_OWN:
        return False
    if len(shared) < MIN_SHARED * len(a.words | b.words):
        return False
    if [word for word in a.order if word in shared] != [word for word in b.order if word in shared]:
        return False
    return not any(_are_forms(ours, theirs) for ours in a.words - shared for theirs in b.words - shared)


def _are_forms(a: str, b: str) -> bool:
    """Two forms of one word say when, who or how much: opens, opened; employer, employee; possible, impossible."""
    short, long = sorted((a, b), key=len)
    return a[:4] == b[:4] or (len(short) > 3 and long.endswith(short))


def _differ(a: str, b: str) -> bool:
    """Whether a rule tells two texts of one frame apart: qualification, negation, tense, value, or a language it cannot read."""
    ours, theirs = _facts(a), _facts(b)
    if ours.cues != theirs.cues or ours.is_negated != theirs.is_negated:
        return True
    if _SIGNS.findall(a) != _SIGNS.findall(b) or bool(_HARDLY_ANY.search(a)) != bool(_HARDLY_ANY.search(b)):
        return True
    # `The bank is owed 40 million` and `The bank owed 40 million` differ in such a verb alone.
    if _BE_AND_HAVE.isdisjoint(ours.words) != _BE_AND_HAVE.isdisjoint(theirs.words):
        return True
    if _focused(ours) != _focused(theirs) or _differ_in_case(ours, theirs):
        return True
    tenses = [
        {name for name, forms in (("present", PRESENT), ("past", PAST)) if forms & facts.words}
        for facts in (ours, theirs)
    ]
    if all(tenses) and tenses[0] != tenses[1]:
        return True
    if not all(held(m, values_of(there)) for here, there in ((a, b), (b, a)) for m in mentions(here)):
        return True
    return not (_is_english(ours) and _is_english(theirs))


def _focused(facts: Facts) -> list[list[str]]:
    """The words beside each of _FOCUS."""
    words = [token.lower() for token in facts.tokens]
    return [words[max(0, k - 1) : k + 2] for k, word in enumerate(words) if word in _FOCUS]


def _differ_in_case(a: Facts, b: Facts) -> bool:
    """Whether a word of both, but for the first ones, is written in other cases: US and us, MW and mW."""
    forms: list[dict[str, set[str]]] = []
    for facts in (a, b):
        forms.append({})
        for token in facts.tokens[1:]:
            forms[-1].setdefault(token.lower(), set()).add(token)
    return any(forms[0][word].isdisjoint(forms[1][word]) for word in forms[0].keys() & forms[1].keys())


def _is_english(facts: Facts) -> bool:
    """Whether nothing says that it is of another language, which the rules here cannot read: one function word may be enough."""
    others = len(OTHER_LANGUAGE & facts.words - _ENGLISH_TOO)
    return is_english_like(facts.text) and (not others or len(ENGLISH & facts.words) > others)


@lru_cache(maxsize=256)
def _facts(text: str) -> Facts:
    return Facts(text)
