"""Checks of a claim against text that need no model: values, names, hedges, planted instructions.

A missing value is a veto on "supported", so precision comes first: whatever a careful reader could find,
convert or work out of two neighbouring numbers is let through. The rules know neither verdicts nor the
judge, and never read the world: a value is in the premise, given by the question, derived, or missing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa

from claimscore.jobs.idioms import half_said, in_figures, sign_of
from claimscore.jobs.injections import are_injections
from claimscore.jobs.names import first_word, has_name, is_name_in, missing_from, names_of, stems_of
from claimscore.jobs.quantities import Mention
from claimscore.jobs.values import Values, cued, demanded, derived, held, values_of

_STRINGS = pa.list_(pa.string())
_SENTENCE_END = re.compile(  # one class of characters first, as in multiples.py
    r"[.!?\n。！？](?:(?<=[.!?])(?=[ \t]+[A-Z0-9\"'(\[]|\s*$)|(?<=\n)\n*|(?<=[。！？]))"
)

MAX_DERIVED: Final = 64
"""Values of a claim: of more it is a list and no claim, and whether each can be worked out of the evidence is not asked
(20,000 of them in front of a MiB of chunks took 37 s of CPU); such a value is held only where it is stated."""
NUMBERS_AT_ONCE: Final = 50_000
"""Of the premises out of which values of claims are worked out together, some 20 MB."""
MAX_SENTENCES: Final = 20_000
"""Of one answer's chunks, 1 to 2 MB of text: in more, conflation is not looked for, as each claim searches them all."""


def missing_values(claims: pa.Array, premises: pa.Array, questions: pa.Array) -> pa.Array:
    """The numbers, dates and amounts of each claim that its premise does not hold.

    A value counts as held where the premise or the question states it in any unit or form, where it is a
    rounding of such a value or within 10% after "about", and where it is one step from two neighbouring numbers
    of the premise: a sum, difference, ratio or percent change of values of one kind, or a product or quotient
    that words (of, each, per, x; split, half) call for (in a claim of at most MAX_DERIVED values). A bare number of the claim
    matches any unit; a unit, a percentage or a per-unit of the claim must be the premise's, or absent there.
    Measured and ordered as the rule table of the design's notes; signs are not compared.

    Args:
        claims: string, the text as it is judged.
        premises: string, what is said to entail the claim; null counts as empty. Dictionary-encoded, a text that
            many claims share is copied and read once.
        questions: string, the user's question; null counts as empty. As `premises`.

    Returns:
        list<string> in the claims' order, the surface strings of what is missing; an empty list for none.
    """
    rows = zip(claims.to_pylist(), _texts(premises), _texts(questions), strict=True)
    unstated = (_unstated(c or "", p or "", q or "") for c, p, q in rows)
    return pa.array(list(_underived(unstated)), _STRINGS)


def has_values(claims: pa.Array) -> pa.Array:
    """True where a claim states a value that a premise would have to prove; null counts as False."""
    return pa.array([bool(demanded(c or "")) for c in claims.to_pylist()], pa.bool_())


class _Unstated(NamedTuple):
    """The values of a claim that neither premise nor question states."""

    claim: str
    premise: str
    question: str
    values: list[Mention]
    evidence: Values | None = None
    """What they may be worked out of; None: of nothing."""


def _unstated(claim: str, premise: str, question: str) -> _Unstated:
    stated = demanded(claim)
    if not stated:
        return _Unstated(claim, premise, question, [])
    evidence, given = values_of(premise), values_of(question)
    missed = [m for m in stated if not (held(m, evidence) or held(m, given))]
    if not missed or len(stated) > MAX_DERIVED or not evidence.pairing.numbers.rows:
        return _Unstated(claim, premise, question, missed)
    starts = {mention.start for mention in missed}
    values = [m for m in cued(claim) if m.start in starts]
    return _Unstated(claim, premise, question, values, evidence)


def _underived(unstated: Iterable[_Unstated]) -> Iterator[list[str]]:
    """What of each claim's values can neither be written out nor worked out, as written; of many claims at once."""
    for some in _held_at_once(unstated):
        lacking = _unwritten(some)
        asked = [(value, row.evidence) for row in lacking if row.evidence for value in row.values]
        is_derived = iter(derived(asked))
        for row in lacking:
            missed = [m for m in row.values if row.evidence is None or not next(is_derived)]
            yield list(dict.fromkeys(row.claim[m.start : m.end] for m in missed))


def _unwritten(unstated: Sequence[_Unstated]) -> list[_Unstated]:
    """`unstated`, without values where all of a claim are stated once amounts half in words are written out."""
    said = half_said(text for row in unstated if row.values for text in (row.claim, row.premise))
    return [
        row._replace(values=[])
        if row.values and not said.isdisjoint((row.claim, row.premise)) and _are_held_in_figures(row)
        else row
        for row in unstated
    ]


def _are_held_in_figures(row: _Unstated) -> bool:
    sign = sign_of(row.claim) or sign_of(row.premise)
    claim, premise = in_figures(row.claim, sign), in_figures(row.premise, sign)
    if (claim, premise) == (row.claim, row.premise):
        return False
    evidence, given = values_of(premise), values_of(row.question)
    return all(held(m, evidence) or held(m, given) for m in demanded(claim))


def _held_at_once(unstated: Iterable[_Unstated]) -> Iterator[list[_Unstated]]:
    """Rows in a row whose premises hold about NUMBERS_AT_ONCE numbers."""
    some: list[_Unstated] = []
    n_numbers = 0
    for row in unstated:
        some.append(row)
        n_numbers += 1 + (len(row.evidence.numbers) if row.evidence else 0)
        if n_numbers > NUMBERS_AT_ONCE:
            yield some
            some, n_numbers = [], 0
    yield some


def missing_names(claims: pa.Array, premises: pa.Array) -> pa.Array:
    """The capitalised names of each claim that its premise does not hold, as list<string>; [] for none.

    A feature, no veto: on labelled data a name that the evidence lacks says "unsupported" with precision 0.8.
    A name counts as held where every word of it stands in the premise (case, possessives and endings folded) or,
    for an acronym, where the premise has the words that it is made of. A first word counts as a name only
    where another capitalised word follows. Text without capitals has no names; null counts as empty. `premises` may
    be dictionary-encoded, as for `missing_values`.
    """
    rows = zip(claims.to_pylist(), _texts(premises), strict=True)
    return pa.array([missing_from(claim or "", premise or "") for claim, premise in rows], _STRINGS)


def bound_elsewhere(claims: pa.Array, chunks: pa.Array, answers: Sequence[int] | None = None) -> pa.Array:
    """True where all values and names of a claim are in its chunks, and no one sentence holds them together.

    The signature of a conflation: the right numbers bound to the wrong things. It says nothing against a claim
    that is supported (on labelled data 10% of those have it, long ones, against 7% of the others); it only names
    the type of a claim that failed. A claim with fewer than two
    values and names, or with one that no chunk holds, gives False. A sentence may be completed by the one
    before it, which is where a pronoun points.

    Args:
        claims: string.
        chunks: list<string>, the chunk texts of each answer; null counts as none.
            More than MAX_SENTENCES sentences give False.
        answers: the row of `chunks` of each claim, so that the claims of an answer share them; None: one a claim.
    """
    out, row, evidence = [], -1, _Evidence(())
    for claim, answer in zip(
        claims.to_pylist(), range(len(chunks)) if answers is None else answers, strict=True
    ):
        if answer != row:
            row, evidence = answer, _Evidence(chunks[answer].as_py() or ())
        out.append(_is_bound_elsewhere(claim or "", evidence))
    return pa.array(out, pa.bool_())


def injection_suspected(texts: pa.Array) -> pa.Array:
    """True where a text speaks to a model instead of to a reader: orders, role changes, template tokens.

    A small set of patterns that flags for a person and decides nothing; an attack in other words passes.
    Invisible characters are dropped first. Null and empty give False.
    """
    return pa.array(are_injections(texts), pa.bool_())


def count_hedges(answers: pa.Array, hedges: Sequence[str]) -> pa.Array:
    """How often the words of `hedges` stand in each answer, as whole words of any case; int32, null counts 0.

    `May` with a capital inside a sentence is the month. No hedges give zeros.
    """
    words = sorted({" ".join(hedge.split()) for hedge in hedges} - {""}, key=len, reverse=True)
    if not words:
        return pa.array([0] * len(answers), pa.int32())
    choices = "|".join(re.escape(word).replace(r"\ ", r"\s{1,3}") for word in words)
    pattern = re.compile(rf"(?<!\w)(?:{choices})(?!\w)", re.IGNORECASE)
    return pa.array([_count_hedges(answer or "", pattern) for answer in answers.to_pylist()], pa.int32())


def _count_hedges(answer: str, pattern: re.Pattern[str]) -> int:
    answer = answer.replace("’", "'")
    return sum(
        not (found[0] == "May" and re.search(r"\w,? $", answer[max(0, found.start() - 3) : found.start()]))
        for found in pattern.finditer(answer)
    )


class _Evidence:
    """The chunks of one answer and what was found in them; most of the answer's claims name the same things."""

    def __init__(self, chunks: Sequence[str | None]) -> None:
        self.chunks = chunks
        self.whole = "\n".join(text or "" for text in chunks)
        self._is_name: dict[str, bool] = {}
        self._named: dict[str, frozenset[int]] = {}
        self._of_row: dict[int, tuple[Values, int]] = {}
        self._groups: dict[Hashable, int] = {}
        self._stated: dict[tuple[Mention, int], bool] = {}

    @cached_property
    def _sentences(self) -> list[str]:
        """Every sentence after the one before it; each once, as chunks overlap and repeat their headings."""
        pairs = (pairwise(["", *_SENTENCE_END.split(text or "")]) for text in self.chunks)
        return list(
            dict.fromkeys(f"{before} {sentence}" for of_chunk in pairs for before, sentence in of_chunk)
        )

    @cached_property
    def _folded(self) -> list[str]:
        return [text.casefold() for text in self._sentences]

    def subject(self, claim: str) -> tuple[str, ...]:
        """The word that begins the claim, where the chunks only ever write it with a capital: a name."""
        word = first_word(claim)
        if word is None:
            return ()
        if word not in self._is_name:
            self._is_name[word] = is_name_in(word, self.chunks)
        return (word,) if self._is_name[word] else ()

    def _values(self, row: int) -> tuple[Values, int]:
        """The values of a sentence, and a number that sentences with the same values share; read when asked for."""
        if row not in self._of_row:
            known = values_of(self._sentences[row])
            key = (known.numbers, known.by_value, known.hours, known.whens)
            self._of_row[row] = (known, self._groups.setdefault(key, len(self._groups)))
        return self._of_row[row]

    def holding(self, keys: Iterable[Mention | str]) -> frozenset[int]:
        """The sentences that hold all of these values and names; all, where there are too many to tell."""
        left = frozenset(range(len(self._sentences)))
        if len(left) > MAX_SENTENCES:
            return left
        # Names first: to look up words costs a hundredth of reading values, and few sentences are left to be read.
        for key in sorted(keys, key=lambda key: not isinstance(key, str)):
            if isinstance(key, str):
                left &= self._naming(key)
            else:
                left = frozenset(row for row in left if self._states(key, row))
        return left

    def _naming(self, name: str) -> frozenset[int]:
        if name not in self._named:
            stems = stems_of(name)
            self._named[name] = frozenset(
                k
                for k, (text, folded) in enumerate(zip(self._sentences, self._folded, strict=True))
                if all(stem in folded for stem in stems) and has_name(name, text)
            )
        return self._named[name]

    def _states(self, value: Mention, row: int) -> bool:
        known, group = self._values(row)
        if not (known.numbers or known.whens):
            return False
        if (value, group) not in self._stated:
            self._stated[value, group] = held(value, known)
        return self._stated[value, group]


def _is_bound_elsewhere(claim: str, evidence: _Evidence) -> bool:
    keys: list[Mention | str] = [*names_of(claim), *evidence.subject(claim)]
    keys += [mention._replace(start=0, end=0) for mention in demanded(claim)]
    if len(keys) < 2 or not evidence.chunks:
        return False
    known = values_of(evidence.whole)
    if not all(_holds(key, evidence.whole, known) for key in keys):
        return False
    return not evidence.holding(keys)


def _holds(key: Mention | str, text: str, known: Values) -> bool:
    """Whether a text, `known` being its values, holds a value or a name."""
    return has_name(key, text) if isinstance(key, str) else held(key, known)


def _texts(column: pa.Array) -> list[str | None]:
    """The column as strings; the rows of a dictionary-encoded one share them, and with them what is remembered."""
    if not pa.types.is_dictionary(column.type):
        texts: list[str | None] = column.to_pylist()
        return texts
    distinct = column.dictionary.to_pylist()
    return [None if k is None else distinct[k] for k in column.indices.to_pylist()]
