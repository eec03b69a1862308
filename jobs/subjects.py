"""Whether a premise is of a passage about another thing than the claim: one card's `The fee is 95 euros.` for another's.

A passage that lacks a name of the claim, which another passage opens with, and itself opens with one that the claim lacks,
speaks of that. A small judge believes what it says of any subject: of 40 claims that give one of two like things the other's property
it supported 29, and supports 16 with this rule, which took one of 36 true ones from it (benchmarks/results/notes-quality.md).
The rule reads names alone and knows no `shoes` from `clothing`. Where the passage has a name that may be the claim's in
another form (`Modi`, `Narendra Modi`) it lets the premise pass, and where a piece of the premise leads from one to the other:
`Acme was founded by Maria Lopez.`, `Maria Lopez was born in Lima.` Knows no judge and no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

import pyarrow as pa

from claimscore.jobs.names import FUNCTION_WORDS, WORD, first_word, has_name, names_of, whole_word

MAX_CLAIM_WORDS: Final = 40
"""A longer one is an answer of several sentences, which may speak of several things."""
MAX_WORDS_BEFORE: Final = 4
"""A name behind so many words of a passage's first line is not what it is about."""
_STEM_CHARS: Final = 4
_KINDS = (
    "academy account act agency airport association avenue bank bay beach bond bridge building camp campus card castle cathedral "
    "church city class clinic club college committee company council county court cup department edition fund grant group hall "
    "harbour hospital hotel house hut institute island kit lake law league library line loop museum office package palace park "
    "pass plan plant policy port prize programme program project province railway report river road route school series service "
    "square station street team theatre tower trail tram treaty trust university valley village ward warehouse zone"
)
_KIND_WORDS: Final = frozenset(_KINDS.split())
_SENTENCE_END = re.compile(r"[.!?]['\")\]]?\s")
_FIRST_LINE = re.compile(r"(?:[^\w\n]*\d{1,4}[\])])?[^\w\n]*([^\n]*?)(?:[.!?:](?=\s)|\n|$)")
"""Without the number that a prompt gave the passage, `[2]`."""
_TAG = re.compile(r"<[^<>\n]{0,200}>")
_OPENING_CHARS: Final = 2_000

Spans = Sequence[tuple[int, int, int]]
"""Chunk, start and end of the pieces of a premise."""


def of_another(
    claims: pa.Array, premises: pa.ListArray, chunks: pa.ListArray, answers: Sequence[int]
) -> pa.Array:
    """True where a piece of the premise is of a passage about another thing than the claim.

    Args:
        claims: string, the text as it is judged.
        premises: list<struct<chunk_index, start, end>>, beside the claims.
        chunks: list<string>, the chunk texts of each answer.
        answers: the row of `chunks` of each claim, in runs: the claims of an answer share what is found in them.
    """
    out, answer, passages = [], -1, Passages(())
    rows = zip(claims.to_pylist(), premises.to_pylist(), answers, strict=True)
    for claim, premise, row in rows:
        if row != answer:
            answer, passages = row, Passages(chunks[row].as_py())
        spans = [(span["chunk_index"], span["start"], span["end"]) for span in premise]
        out.append(passages.speak_of_another(claim or "", spans))
    return pa.array(out, pa.bool_())


class Passages:
    """The chunks of one answer, and what each is about; asked by all of the answer's claims."""

    def __init__(self, chunks: Sequence[str]) -> None:
        self._chunks = chunks
        self._asked: dict[str, tuple[str, ...]] = {}
        self._held: dict[tuple[str, int], bool] = {}
        self._topics: dict[int, str | None] = {}
        self._named: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self._is_topic: dict[str, bool] = {}
        self._is_name: dict[str, bool] = {}
        self._is_common: dict[str, bool] = {}

    @cached_property
    def _openings(self) -> list[str]:
        return [_opening(text.strip()) for text in self._chunks]

    @cached_property
    def _folded(self) -> list[str]:
        return [text.casefold() for text in self._chunks]

    def speak_of_another(self, claim: str, premise: Spans) -> bool:
        """Whether a piece of the premise is of a chunk about another thing than the claim."""
        if claim not in self._asked:
            self._asked[claim] = _names(claim) if len(claim.split()) <= MAX_CLAIM_WORDS else ()
        for name in self._asked[claim]:
            for span in premise:
                if self._holds(name, span[0]) or not self._is_of_another(claim, name, span[0]):
                    continue
                is_needed = len(premise) == 1 or self._shares(claim, span)
                if is_needed and not self._is_led_to(span[0], name, premise):
                    return True
        return False

    def _shares(self, claim: str, span: tuple[int, int, int]) -> bool:
        """Whether a piece has a word of the claim beyond `of` and `the`: without one it carries nothing of it, beside others that do."""
        chunk, start, end = span
        return not _stems(claim).isdisjoint(_stems(self._chunks[chunk][start:end]))

    def _holds(self, name: str, chunk: int) -> bool:
        if (name, chunk) not in self._held:
            self._held[name, chunk] = has_name(name, self._chunks[chunk])
        return self._held[name, chunk]

    def _is_of_another(self, claim: str, name: str, chunk: int) -> bool:
        topic = self._topic(chunk)
        words = [_bare(word) for word in name.casefold().split()]
        if topic is None or not self._is_a_topic(name) or self._may_be_meant(name, chunk):
            return False
        if not self._is_a_name(name, claim):
            return False
        # With a word of the topic that the name lacks a claim speaks of both.
        return not any(has_name(word, claim) for word in topic.split() if word.casefold() not in words)

    def _topic(self, chunk: int) -> str | None:
        """The name that a chunk of more than one sentence opens with: a single one says itself what it is about."""
        if chunk not in self._topics:
            text = self._chunks[chunk].strip()
            opening = self._openings[chunk] if "\n" in text or _SENTENCE_END.search(text) else ""
            name = next((name for name in _names(opening) if self._is_a_name(name, opening)), "")
            n_before = len(WORD.findall(opening, 0, opening.find(name)))
            is_topic = name and n_before < MAX_WORDS_BEFORE and self._is_no_title(name, opening)
            self._topics[chunk] = name if is_topic else None
        return self._topics[chunk]

    def _is_no_title(self, name: str, opening: str) -> bool:
        """Whether a word of the name is a name beyond a title: in one, `Getting Started`, a capital says nothing.

        It is where the chunks write it again, copies of a chunk aside, and never in lower case.
        """
        if any(word.islower() and word not in FUNCTION_WORDS for word in WORD.findall(opening)):
            return True
        for word in WORD.findall(name):
            if any(char.isdigit() for char in word):
                return True
            low = word.casefold()
            if low in FUNCTION_WORDS or self._is_a_kind(low):
                continue
            written = whole_word(word)
            texts = {text for text in self._chunks if word in text}
            if sum(1 for text in texts for _ in written.finditer(text)) > 1:
                return True
        return False

    def _is_a_topic(self, name: str) -> bool:
        """Whether a chunk opens with the name: only then are the chunks of things side by side.

        A company that one chunk mentions, of a call with several speakers or a handbook of many headings, is what all are about.
        """
        if name not in self._is_topic:
            self._is_topic[name] = any(self._opens_with(name, text) for text in self._openings)
        return self._is_topic[name]

    def _opens_with(self, name: str, opening: str) -> bool:
        if not has_name(name, opening):
            return False
        first = next((n for n in _names(opening) if has_name(name, n) or self._is_a_name(n, opening)), None)
        return first is not None and has_name(name, first)

    def _is_a_name(self, word: str, text: str) -> bool:
        """Whether one of `_names` of a text is a name: a first word where the chunks write it so within a sentence, and never low."""
        if word in names_of(text):
            return True
        if word not in self._is_name:
            written = whole_word(word, re.IGNORECASE)
            # The pattern costs twenty times the search for a fixed text, and most words stand in one chunk.
            low = word.casefold()
            texts = [text for text, folded in zip(self._chunks, self._folded, strict=True) if low in folded]
            found = [(text, match) for text in texts for match in written.finditer(text)]
            before = [text[max(0, match.start() - 2) : match.start()] for text, match in found]
            is_within = any(gap[1:] == " " and (gap[0].isalnum() or gap[0] == ",") for gap in before)
            self._is_name[word] = is_within and not any(match[0].islower() for _, match in found)
        return self._is_name[word]

    def _may_be_meant(self, name: str, chunk: int) -> bool:
        """Whether a name of the chunk may mean the same: it is part of the claim's, or ends in the same surname."""
        if chunk not in self._named:
            folded = [
                other.casefold() for other in (self._topic(chunk) or "", *names_of(self._chunks[chunk]))
            ]
            self._named[chunk] = frozenset(folded), frozenset(other.rpartition(" ")[2] for other in folded)
        names, last_words = self._named[chunk]
        words = name.casefold().split()
        last = _bare(words[-1])
        parts = (" ".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1))
        return any(part in names for part in parts) or (last in last_words and not self._is_a_kind(last))

    def _is_a_kind(self, word: str) -> bool:
        """Whether a name's last word says what kind of thing it is, `Hut`: the chunks write it in lower case, and no surname."""
        if word not in self._is_common:
            low = whole_word(word)
            self._is_common[word] = word in _KIND_WORDS or any(
                word in text and low.search(text) for text in self._chunks
            )
        return self._is_common[word]

    def _is_led_to(self, chunk: int, name: str, premise: Spans) -> bool:
        """Whether a piece of a chunk about the claim's name, in the premise, names what `chunk` is about.

        Of a chunk about the name, for what lists like things (`The Nimbus is black, the Cirrus white`) leads from none to another.
        """
        topic = self._topic(chunk) or ""
        return any(
            self._opens_with(name, self._openings[other]) and has_name(topic, self._chunks[other][start:end])
            for other, start, end in premise
            if other != chunk
        )


def _bare(word: str) -> str:
    return word.removesuffix("'s").removesuffix("’s")


@lru_cache(maxsize=1_024)
def _stems(text: str) -> frozenset[str]:
    """How the words begin that say something."""
    words = (word.casefold() for word in WORD.findall(text))
    return frozenset(word[:_STEM_CHARS] for word in words if word not in FUNCTION_WORDS)


def _opening(text: str) -> str:
    """The first line of a text, up to the end of its first sentence."""
    line = _FIRST_LINE.match(_TAG.sub("\n", text[:_OPENING_CHARS]).lstrip())
    return line[1] if line else ""


def _names(text: str) -> tuple[str, ...]:
    """The names of a text in order, before them its first word, which may be one, where it has a capital and is in none of them."""
    names, first = names_of(text), first_word(text)
    if first is None or any(first in name.split() for name in names):
        return names
    return first, *names
