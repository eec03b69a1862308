"""Sentences that refuse in free words, in answers that the log itself calls refusals.

Markers of the config are segment.py's; here the status vouches for the answer, and words only say which of its sentences
deny. Knows no claim.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    texts = as_array(sentences.column("text"))
    cites = [
        bool(a or b)
        for a, b in zip(
            *(sentences.column(n).to_pylist() for n in ("cited_ids", "fabricated_marks")), strict=True
        )
    ]
    rows = zip(
        sentences.column("is_refusal").to_pylist(),
        sentences.column("answer_index").to_pylist(),
        texts.to_pylist(),
        cites,
        rules.has_values(texts).to_pylist(),
        strict=True,
    )
    refuses = [
        is_refusal or (by_status[answer] and not (cited or valued) and _DENIES.search(text) is not None)
        for is_refusal, answer, text, cited, valued in rows
    ]
    place = sentences.column_names.index("is_refusal")
    return sentences.set_column(place, sentences.schema.field(place), pa.array(refuses, pa.bool_()))
