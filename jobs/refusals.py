"""Sentences that refuse in free words, in answers that the log itself calls refusals.

Markers of the config are segment.py's; here the status vouches for the answer, and words only say which of its sentences
deny. Knows no claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from claimscore.jobs import rules
from claimscore.jobs.windows import as_array

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
    refuses = np.array(sentences.column("is_refusal"), dtype=np.bool_)
    of_answer = np.asarray(sentences.column("answer_index"), dtype=np.int64)
    asked = np.flatnonzero(np.array(by_status, dtype=np.bool_)[of_answer] & ~refuses)
    names = ("text", "cited_ids", "fabricated_marks")
    texts, *marks = (as_array(sentences.column(name).take(pa.array(asked))) for name in names)
    columns = (column.to_pylist() for column in (texts, rules.has_values(texts), *marks))
    refuses[asked] = [
        not (valued or cited or made_up) and _DENIES.search(text) is not None
        for text, valued, cited, made_up in zip(*columns, strict=True)
    ]
    place = sentences.column_names.index("is_refusal")
    return sentences.set_column(place, sentences.schema.field(place), pa.array(refuses))
