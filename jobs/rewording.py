"""The claim with its values as the premise writes them: `12 metres` becomes `1,200 cm`, `7 May 2026` becomes `2026-05-07`.

A small judge reads words, not quantities: it doubts a claim whose number is right and written another way. Where a
rule reads both as one value, exactly and in one way, the claim in the premise's writing says the same and is
judged beside it. Only what is stated on both sides is reworded, nothing that must be worked out. Knows no judge.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa

from claimscore.jobs.dates import When
from claimscore.jobs.pairs import Floats
from claimscore.jobs.quantities import Mention, Number
from claimscore.jobs.records import SCORES
from claimscore.jobs.values import demanded, mentions
from claimscore.jobs.windows import as_array

LEAST_OVERLAP: Final = 0.5
"""Share of the claim's tokens that a premise must hold to be tried: another passage is no nearer in any writing."""
_REWORDED = pa.schema([("row", pa.int32()), ("text", pa.string())])


def reworded_claims(claims: pa.Array, premises: pa.Array) -> pa.Table:
    """Each claim with every value that the premise writes otherwise as the premise writes it.

    Args:
        claims: string, no nulls.
        premises: string, row by row; null counts as empty.

    Returns:
        `row` (int32, ascending: which claim) and `text`; only of claims that change. No claims give no rows.
    """
    rows, texts = [], []
    for row, (claim, premise) in enumerate(zip(claims.to_pylist(), premises.to_pylist(), strict=True)):
        text = _reworded(claim, premise or "")
        if text != claim:
            rows.append(row)
            texts.append(text)
    return pa.table([pa.array(rows, pa.int32()), pa.array(texts, pa.string())], schema=_REWORDED)


def _reworded(claim: str, premise: str) -> str:
    stated = demanded(claim)
    found = mentions(premise) if stated else ()
    for mention in reversed(stated):  # from the end, so that the places before stay
        written = claim[mention.start : mention.end]
        same = [
            premise[m.start : m.end] for m in found if _is_same(mention, m) and not _is_signed(premise, m)
        ]
        if same and written.casefold() not in (text.casefold() for text in same):
            claim = claim[: mention.start] + same[0] + claim[mention.end :]
    return claim


def _is_same(claimed: Mention, found: Mention) -> bool:
    """One value, of one kind and exactly: `around 69%` is not 75%, and a bare 5 is not 5 euros.

    What can be read in two ways (`04/12`, `2.000`) is left to the judge: either reading would pass for the other's. So are money,
    whose sign may say more than its code (`S$100` is not 100 dollars), and times of day, whose zone stands beside them.
    """
    if len(claimed.readings) != 1 or len(found.readings) != 1:
        return False
    here, there = claimed.readings[0], found.readings[0]
    if isinstance(here, When):
        return here == there and here.minute is None
    if isinstance(there, When):
        return False
    return not here.unit.dimension.startswith("money") and _is_equal(here, there)


def _is_signed(premise: str, found: Mention) -> bool:
    """Whether a minus or a bracket stands before the value: `−5`, `(5)`."""
    return premise[: found.start].rstrip()[-1:] in {"-", "−", "–", "("}


def _is_equal(a: Number, b: Number) -> bool:
    alike = (a.unit.dimension or "noun") == (b.unit.dimension or "noun") and a.per == b.per
    return alike and math.isclose(a.value, b.value, rel_tol=1e-9)


def with_reworded(scores: pa.Table, rows: pa.Array, probs_P3: Floats) -> pa.Table:
    """`scores` with the probabilities of the reworded claim where it is entailed more surely.

    Args:
        scores: records.SCORES.
        rows: int64, the row of `scores` of each reworded pair, each once.
        probs_P3: beside `rows`, the judge's probabilities; NaN changes nothing.
    """
    names = ("p_entailment", "p_neutral", "p_contradiction")
    places = np.asarray(rows)
    before = np.asarray(scores.column("p_entailment").take(rows).fill_null(-1.0))
    surer = probs_P3[:, 0] > before  # false for NaN
    out = scores
    for k, name in enumerate(names):
        column = as_array(scores.column(name))
        values = np.asarray(column.fill_null(np.nan)).copy()
        values[places[surer]] = probs_P3[surer, k]
        unknown = np.asarray(column.is_null())
        place = scores.column_names.index(name)
        out = out.set_column(place, SCORES.field(name), pa.array(values, pa.float32(), mask=unknown))
    return out
