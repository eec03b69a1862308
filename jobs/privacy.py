"""Tables without texts: what `[privacy] store_text = false` puts in place of every text that came from a log or a model.

A text becomes `sha256:` and 16 hex digits, so that equal texts can be told and joined; a short or guessable text can be
guessed from it, for it is not keyed. Ids, offsets, numbers, states and the labels (topic, model, prompt version) stay. The
module knows the columns of each table that hold texts, and nothing of where tables lie.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa

TEXTS: dict[str, tuple[str, ...]] = {
    "quarantine": (),
    "claims": ("text", "fabricated_marks", "quotes"),
    "scores": ("rival",),
    "sample_scores": ("rival",),
    "referee": ("reply", "span"),
    "verdicts": (
        *("claim", "fabricated_marks", "evidence_quote", "contradicting_quote", "missing_values", "rival"),
        "referee_span",
    ),
    "answers": ("question", "answer", "revised_answer"),
}
"""Table -> its columns of texts or lists of texts. Samples are not stored at all."""
_DROPPED = {"quarantine": ("detail",)}
"""What tells of a text in words of its own: nulls."""


def without_texts(table: pa.Table, name: str) -> pa.Table:
    """`table` with hashes for its texts; nulls stay null. Empty in, empty out."""
    for column in TEXTS[name]:
        at = table.column_names.index(column)
        values = [_hashed(value) for value in table.column(column).to_pylist()]
        table = table.set_column(at, table.field(column), pa.array(values, table.field(column).type))
    for column in _DROPPED.get(name, ()):
        at = table.column_names.index(column)
        table = table.set_column(at, table.field(column), pa.nulls(table.num_rows, table.field(column).type))
    return table


def _hashed(value: str | list[str] | None) -> str | list[str] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return [str(_hashed(item)) for item in value]
