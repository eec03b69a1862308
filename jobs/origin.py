"""Whether claims come from their sentence, and whether the sentence is all in its claims; rules alone.

Origin: no number, name or negation that sentence and context lack, and mostly their words. Coverage: no
number, name, negation, condition, hedge and little other content of the sentence is lost. The cue words are
English; another language fails these checks or passes them, but no claim is ever made up here. Two claims
that differ by a lost cue only ("Refunds are given" beside "... if the seal is unbroken") count as lost too.
What this module does not know: models, tables, and meaning; that is what the NLI checker beside it is for.
The failures it looks for are those listed by Hu et al. 2024 (arXiv:2411.02400) and VeriFact (2505.09701).
"""

from __future__ import annotations

from collections import Counter

from claimscore.jobs.cues import AUXILIARY, CUES
from claimscore.jobs.facts import RANGE_YEAR, WEIGHTLESS, Facts, is_known, singular, stem

MAY_LOSE, MAY_LOSE_TRUNCATED = 0.2, 0.05
"""Share of a sentence's content words that its claims may lose: of 3,380 sentences with human claims, 97.8%
keep to the first. A reply that was cut off has lost something, so nearly all words must be there."""


def origin_fault(claim: Facts, sentence: Facts, source: Facts) -> str | None:
    """Why `claim` does not come from `sentence` and its context (`source` is both), or None.

    What the sentence holds, the source holds: the source is read only for what a claim has from elsewhere.
    """
    # As most claims of a sentence with one fact: every word and number of it is there.
    is_whole = claim is sentence
    is_own = is_whole or claim.numbers <= sentence.known_numbers
    is_asked = not is_own or RANGE_YEAR.search(source.text)  # "in 1954-" "57 of them"
    if is_asked and claim.numbers - source.known_numbers:
        return "new_number"
    if not is_whole and any(
        name not in sentence.words and not is_known(name, source) for name in claim.names
    ):
        return "new_name"
    if claim.is_negated and not source.is_negated:
        return "new_negation"
    if is_whole:
        return None
    stems = claim.content
    if not stems <= sentence.content and len(stems & source.content) * 2 < len(stems):
        return "drift"
    # A name may come from the context, where a pronoun points; what is said of it may not.
    borrowed = stems - sentence.content - {stem(name) for name in claim.names}
    n_borrowed = len(borrowed & source.content) if borrowed else 0
    n_borrowed += len(claim.numbers - sentence.known_numbers)
    if n_borrowed > len(stems & sentence.content):
        return "drift"
    if _says_again(claim, sentence):
        return "repeated_word"
    return "new_name" if _has_new_subject(claim, sentence, source) else None


def _says_again(claim: Facts, sentence: Facts) -> bool:
    """Whether a word of the claim, singular or plural, stands in it more often than in its sentence, a name thrice: "The locker is
    in the locker".

    A small LLM puts one thing of a sentence in the place of another, or cannot stop, and a checker of its size believes
    it. Of the demo's replies to 267 logged sentences 23 hold such a claim, 22 of them wrong; of 17,305 claims that people
    wrote 29 do, half of them two claims in one or no good ones.
    """
    words = _weighty(claim)
    if len(set(words)) == len(words):
        return False
    names, of_sentence = {singular(name) for name in claim.names}, Counter(_weighty(sentence))
    return any(
        n > max(of_sentence[word], 2 if word in names else 1) and len(word) > 2 and not word[0].isdigit()
        for word, n in Counter(words).items()
    )


def _weighty(facts: Facts) -> list[str]:
    """Every word that carries meaning, as often as it stands there, in lower case and without a plural s."""
    return [singular(word) for token in facts.tokens if (word := token.lower()) not in WEIGHTLESS]


def coverage_fault(claims: list[Facts], sentence: Facts, *, is_truncated: bool = False) -> str | None:
    """What of `sentence` is in none of `claims`, or None (the first fault found)."""
    if claims == [
        sentence
    ]:  # nothing is lost of it, but what a claim must say in another way than the sentence
        return next((CUES[cue].fault for cue in sorted(sentence.cues) if not sentence.keeps(cue)), None)
    if sentence.numbers - frozenset().union(*(claim.known_numbers for claim in claims)):
        return "lost_number"
    if any(all(not is_known(name, claim) for claim in claims) for name in sentence.names):
        return "lost_name"
    if sentence.is_negated and not any(claim.is_negated for claim in claims):
        return "lost_negation"
    for cue in sorted(sentence.cues):
        if not any(claim.keeps(cue) for claim in claims):
            return CUES[cue].fault
    lost = sentence.content - frozenset().union(*(claim.content for claim in claims))
    may_lose = MAY_LOSE_TRUNCATED if is_truncated else MAY_LOSE
    if len(lost) > int(may_lose * len(sentence.content)):
        return "lost_content"
    if any(_lacks_verb(claim, sentence) for claim in claims):
        return "lost_verb"
    return _stripped(claims, sentence)


def _stripped(claims: list[Facts], sentence: Facts) -> str | None:
    """`lost_condition`, `lost_hedge` or `lost_negation` where one claim is another without the sentence's cue."""
    for full in claims:
        cues = (
            sentence.cues and full.cues & sentence.cues
        )  # "from 2002 to 2016" may give "until 2016": nothing got lost
        if not (cues or full.is_negated):
            continue
        for bare in claims:
            if bare is full or not bare.content or not bare.content <= full.content:
                continue
            for cue in sorted(cues):
                if not bare.keeps(cue):
                    return CUES[cue].fault
            if full.is_negated and not bare.is_negated:
                return "lost_negation"
    return None


def _has_new_subject(claim: Facts, sentence: Facts, source: Facts) -> bool:
    """True where the first word, whose capital says nothing, is nowhere in the source in any form."""
    first = claim.tokens[0].lower() if claim.tokens else ""
    if not first[:1].isalpha() or first in WEIGHTLESS or stem(first) in sentence.content:
        return False
    return stem(first) not in source.content and not is_known(first, source)


def _lacks_verb(claim: Facts, sentence: Facts) -> bool:
    """True for `They still in the box` out of `They have to be new and still in the box`.

    The claim begins as the sentence does, the sentence goes on with an auxiliary, and the claim has none at all.
    """
    shared = 0
    for ours, theirs in zip(claim.tokens, sentence.tokens, strict=False):
        if ours.lower() != theirs.lower():
            break
        shared += 1
    goes_on = sentence.tokens[shared].lower() if shared < len(sentence.tokens) else ""
    return shared > 0 and goes_on in AUXILIARY and not AUXILIARY.intersection(t.lower() for t in claim.tokens)
