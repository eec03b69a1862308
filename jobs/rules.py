"""Checks of a claim against text that need no model: values, names, hedges, planted instructions.

A missing value is a veto on "supported", so precision comes first: whatever a careful reader could find,
convert or work out of two neighbouring numbers is let through. The rules know neither verdicts nor the
judge, and never read the world: a value is in the premise, given by the question, derived, or missing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from claimscore.jobs.values import held, mentions, values_of


def missing_values(claims: pa.Array, premises: pa.Array, questions: pa.Array) -> pa.Array:
    """The numbers, dates and amounts of each claim that its premise does not hold.

    A value counts as held where the premise or the question states it in any unit or form, where it is a
    rounding of such a value or within 10% after "about", and where it is one sum, difference, product,
    quotient, ratio or percent change of two neighbouring numbers of the premise. A bare number of the claim
    matches any unit; a unit, a percentage or a per-unit of the claim must be the premise's, or absent there.
    Measured and ordered as the rule table of the design's notes; signs are not compared.

    Args:
        claims: string, the text as it is judged.
        premises: string, what is said to entail the claim; null counts as empty.
        questions: string, the user's question; null counts as empty.

    Returns:
        list<string> in the claims' order, the surface strings of what is missing; an empty list for none.
    """
    rows = zip(claims.to_pylist(), premises.to_pylist(), questions.to_pylist(), strict=True)
    return pa.array([_missing(c or "", p or "", q or "") for c, p, q in rows], pa.list_(pa.string()))


def has_values(claims: pa.Array) -> pa.Array:
    """True where a claim states a value that a premise would have to prove; null counts as False."""
    return pa.array([any(m.demanded for m in mentions(c or "")) for c in claims.to_pylist()], pa.bool_())


def _missing(claim: str, premise: str, question: str) -> list[str]:
    demanded = [m for m in mentions(claim) if m.demanded]
    if not demanded:
        return []
    evidence, given = values_of(premise), values_of(question)
    out: dict[str, None] = {}
    for mention in demanded:
        if not (held(mention, evidence, derive=True) or held(mention, given, derive=False)):
            out[claim[mention.start : mention.end]] = None
    return list(out)
