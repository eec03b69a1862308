"""Sentences that refuse in free words: those that abstain, and those that deny in answers that the log calls refusals.

Markers of the config are segment.py's. A value or a citation that holds makes a sentence a claim like any other: a fee
that is denied is a fee. Knows no claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from claimscore.jobs import rules
from claimscore.jobs.abstentions import abstains
from claimscore.jobs.phrases import without_marks
from claimscore.jobs.windows import as_array

# Values, in figures or words: a fee of five hundred euro hides in an abstention as one of 500 does.
_VALUE = re.compile(
    r"\d+|[½¼¾⅓⅔]|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]{3,5}teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|hundred|thousand|million|billion|half|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|april|june|july|august"
    r"|september|october|november|december|(?-i:March|May))\b",
    re.IGNORECASE,
)
# What a refusal in free words says somewhere: that there is none, in the languages of our logs and their neighbours.
_DENIES = re.compile(
    r"\b(?:no|not|cannot|can't|couldn't|don't|doesn't|unable|sorry|nothing|none|without|unfortunately|nicht|kein\w*|leider"
    r"|ne|pas|aucun\w*|désolé|ningun\w*|lamento|non|não|niet|geen)\b|n't\b|नहीं|没有|沒有|不|無|无|ない|ません|없",
    re.IGNORECASE,
)


def with_status_refusals(sentences: pa.Table, by_status: Sequence[bool]) -> pa.Table:
    """Sentences of answers whose status is a refusal are refusals, where they deny and give no value and no citation.

    A refusal in free words (`Sorry, the handbook says nothing about this`) is nothing that evidence could entail; a
    fee, a date or a plain statement beside it is a claim like any other.

    Args:
        sentences: records.SENTENCES with their citations.
        by_status: whether the log's status calls each answer a refusal.
    """
    refuses = _refusing(sentences)
    asked = np.flatnonzero(np.array(by_status, dtype=np.bool_)[_answers(sentences)] & ~refuses)
    names = ("text", "cited_ids", "fabricated_marks")
    texts, *marks = (as_array(sentences.column(name).take(pa.array(asked))) for name in names)
    columns = (column.to_pylist() for column in (texts, rules.has_values(texts), *marks))
    refuses[asked] = [
        not (valued or cited or made_up) and _DENIES.search(text) is not None
        for text, valued, cited, made_up in zip(*columns, strict=True)
    ]
    return _with_refusing(sentences, refuses)


def with_abstentions(sentences: pa.Table, questions: pa.Array) -> pa.Table:
    """Sentences that say only that the answer or its documents do not hold something are refusals.

    Not where one has a figure, number word, weekday or month that the question has not, or a mark that points at nothing: those are claims.

    Args:
        sentences: records.SENTENCES with their citations.
        questions: string, nullable, indexed by `answer_index`.
    """
    refuses = _refusing(sentences)
    asked = np.flatnonzero(~refuses)
    of_answer = _answers(sentences)
    texts, made_up = (sentences.column(name).take(pa.array(asked)) for name in ("text", "fabricated_marks"))
    for row, text, marks in zip(asked.tolist(), texts.to_pylist(), made_up.to_pylist(), strict=True):
        if not marks and abstains(text):
            asked_for = _values(questions[int(of_answer[row])].as_py() or "")
            refuses[row] = asked_for.issuperset(_values(without_marks(text)))
    return _with_refusing(sentences, refuses)


def _values(text: str) -> set[str]:
    return {value.casefold() for value in _VALUE.findall(text)}


def _refusing(sentences: pa.Table) -> np.ndarray:
    return np.array(sentences.column("is_refusal"), dtype=np.bool_)


def _answers(sentences: pa.Table) -> np.ndarray:
    return np.asarray(sentences.column("answer_index"), dtype=np.int64)


def _with_refusing(sentences: pa.Table, refuses: np.ndarray) -> pa.Table:
    place = sentences.column_names.index("is_refusal")
    return sentences.set_column(place, sentences.schema.field(place), pa.array(refuses))
