"""Rival values: does the judge believe the claim more with another value of the premise in it?

`Films are lent for four weeks` against `books are lent for four weeks and films for one week`: both values are there,
and a small judge says entailed. It says so more surely of `Films are lent for one week`, and that comparison tells
a wrong binding where the probability alone does not: the two claims differ in the value and in nothing else. Values
only; the same with names was right in 4 of 10 cases on labelled data, as many things hold of two names. Contrast sets:
Gardner et al. 2020 (arXiv:2004.02709). The module knows no threshold and no verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.dates import When
from claimscore.jobs.pairs import PAIRS, Floats
from claimscore.jobs.quantities import Mention, Number, by_sentence
from claimscore.jobs.records import SCORES
from claimscore.jobs.units import BARE, NOUN
from claimscore.jobs.values import Values, demanded, held, mentions, values_in, values_of
from claimscore.jobs.windows import N_SPECIAL_TOKENS, Encode, as_array, list_array

MAX_RIVALS: Final = 6
"""Of one pair, by turns the nearest of each of the claim's values; a table of figures would give hundreds."""

_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n|[。！？।]")
_COUNTED = re.compile(r"[ -]{0,2}([^\W\d_]{3,})")
_COUNT: Final = ("count",)
_RIVALS = pa.schema([("row", pa.int32()), ("text", pa.string()), ("rival", pa.string())])


def rival_claims(claims: pa.Array, premises: pa.Array) -> pa.Table:
    """Each claim with one value replaced by another value of its kind that the premise states.

    A value is of the same kind as another where both have a unit of one dimension, are dates of one precision, or
    count the same noun. Only a value that the premise states itself has rivals, and none is a value that the claim
    states too.

    Args:
        claims: string, no nulls.
        premises: string, row by row; null counts as empty.

    Returns:
        `row` (int32, ascending: which claim), `text` (the claim with the rival) and `rival` (as the premise writes it); at
        most MAX_RIVALS a row. No claims, or none with rivals, give no rows.
    """
    rows: list[tuple[int, str, str]] = []
    for row, (claim, premise) in enumerate(zip(claims.to_pylist(), premises.to_pylist(), strict=True)):
        if premise and demanded(claim) and _has_alike(premise):
            rows += [(row, text, rival) for text, rival in _rivals(claim, premise)]
    columns = [pa.array([values[k] for values in rows], field.type) for k, field in enumerate(_RIVALS)]
    return pa.table(columns, schema=_RIVALS)


def variant_pairs(
    pairs: pa.Table, rows: pa.Array, variants: pa.Table, *, encode: Encode, max_pair_tokens: int
) -> tuple[pa.Table, pa.Table]:
    """Pairs with another text of their claim, and the variants that were paired; those too long for the judge are left out.

    Args:
        pairs: PAIRS.
        rows: the row of `pairs` that each claim of the variants was taken from, int64.
        variants: row (of `rows`) and text, and what else is known of them.
        encode: texts -> ids without special tokens (Judge.encode).
        max_pair_tokens: premise, claim and special tokens.

    Returns:
        PAIRS, and beside them `variants` with row as the row of `pairs` (int64). No variants give no rows.
    """
    variants = variants.set_column(0, "row", rows.cast(pa.int64()).take(variants.column("row")))
    tested = pairs.take(variants.column("row"))
    claim_ids = list_array(encode(as_array(variants.column("text"))).column("ids"))
    n_premise = pc.list_value_length(list_array(tested.column("premise_ids")))
    n_tokens = pc.add(pc.add(n_premise, pc.list_value_length(claim_ids)), N_SPECIAL_TOKENS)
    place = PAIRS.get_field_index
    tested = tested.set_column(place("claim_ids"), PAIRS.field("claim_ids"), claim_ids)
    tested = tested.set_column(place("n_tokens"), PAIRS.field("n_tokens"), n_tokens.cast(pa.int32()))
    fits = pc.less_equal(n_tokens, max_pair_tokens)
    return tested.filter(fits), variants.filter(fits)


def with_rivals(scores: pa.Table, rivals: pa.Table, entailment: Floats) -> pa.Table:
    """`scores` with the columns rival and p_rival: of each row the rival that the judge believes most; else null.

    A row with a rival whose score is not finite becomes a row with the error `nan`: what could not be compared
    must not pass for support.

    Args:
        scores: records.SCORES.
        rivals: row (of `scores`) and rival, beside `entailment`.
        entailment: P(entailment) of the claim with the rival, shape (rivals,).
    """
    best_p = np.full(scores.num_rows, -1.0, dtype=np.float32)
    best_rival: list[str | None] = [None] * scores.num_rows
    rows = rivals.column("row").to_pylist()
    for row, rival, p in zip(rows, rivals.column("rival").to_pylist(), entailment.tolist(), strict=True):
        if p > best_p[row]:
            best_p[row], best_rival[row] = p, rival
    spoilt = np.zeros(scores.num_rows, dtype=np.bool_)
    spoilt[[row for row, p in zip(rows, entailment.tolist(), strict=True) if not math.isfinite(p)]] = True
    columns = {
        "rival": pa.array(best_rival, pa.string()),
        "p_rival": pa.array(best_p, pa.float32(), mask=best_p < 0),
        "error": pc.if_else(pa.array(spoilt), "nan", as_array(scores.column("error"))),
    }
    for name in ("p_entailment", "p_neutral", "p_contradiction"):
        columns[name] = pc.if_else(
            pa.array(spoilt), pa.scalar(None, pa.float32()), as_array(scores.column(name))
        )
    return pa.table([columns.get(name, scores.column(name)) for name in SCORES.names], schema=SCORES)


def _rivals(claim: str, premise: str) -> list[tuple[str, str]]:
    """(claim with a rival, rival): the rivals of each value by turns, the nearest of each first."""
    stated = demanded(claim)
    if not stated:
        return []
    said, there = values_of(claim), _by_kind(premise)
    turns = [_of_value(claim, premise, m, there.get(_kind(m, claim), ()), said) for m in stated]
    pairs = (pair for turn in zip_longest(*turns) for pair in turn if pair)
    return list(dict(islice(pairs, MAX_RIVALS)).items())


def _of_value(
    claim: str, premise: str, mention: Mention, alike: Sequence[Mention], said: Values
) -> list[tuple[str, str]]:
    if len(alike) < 2:
        return []
    own = [m for m in alike if _same(mention, m)]
    others = [m for m in alike if m not in own and not held(m, said)]
    near = {m: gaps for m in others if (gaps := [_gap(m, o) for o in own if _same_sentence(premise, m, o)])}
    rivals = (premise[m.start : m.end] for m in sorted(near, key=lambda m: min(near[m])))
    return [(claim[: mention.start] + rival + claim[mention.end :], rival) for rival in dict.fromkeys(rivals)]


@lru_cache(maxsize=256)
def _has_alike(premise: str) -> bool:
    """Whether a sentence of a premise holds two values that could be of one kind: no other has rivals, and few do."""
    # Its values are read for other rules too; in most premises no two are of one kind, wherever they stand.
    return _are_alike(mentions(premise)) and any(_are_alike(found) for found in by_sentence(premise))


def _are_alike(found: tuple[Mention, ...]) -> bool:
    if len(found) < 2:
        return False
    kinds = [_rough_kind(mention) for mention in found if _counts(mention)]
    return len(set(kinds)) < len(kinds)


@lru_cache(maxsize=256)
def _by_kind(premise: str) -> dict[Hashable, tuple[Mention, ...]]:
    """The values of a premise that can be rivals, by kind: read once for all of its claims."""
    out: dict[Hashable, list[Mention]] = {}
    for mention in mentions(premise):
        kind = _kind(mention, premise)
        if kind is not None and _counts(mention):
            out.setdefault(kind, []).append(mention)
    return {kind: tuple(found) for kind, found in out.items()}


def _same(mention: Mention, other: Mention) -> bool:
    return held(mention, values_in((other,)))


def _gap(a: Mention, b: Mention) -> int:
    return max(a.start - b.end, b.start - a.end)


def _counts(mention: Mention) -> bool:
    """Whether a value can be a rival: `one week` can, though no claim need prove a `one`; a number in a name cannot."""
    first = mention.readings[0]
    return mention.demanded or (isinstance(first, Number) and first.unit not in (BARE, NOUN))


def _same_sentence(text: str, a: Mention, b: Mention) -> bool:
    first, last = sorted((a, b), key=lambda m: m.start)
    return _SENTENCE_END.search(text, first.end, last.start) is None


def _kind(mention: Mention, text: str) -> Hashable | None:
    """What a value must share with another to stand in its place; None: nothing can."""
    kind = _rough_kind(mention)
    if kind != _COUNT:
        return kind
    counted = _COUNTED.match(text, mention.end)
    return (*_COUNT, counted[1].casefold().removesuffix("s")) if counted else None


def _rough_kind(mention: Mention) -> Hashable:
    """`_kind` without the noun that a number counts."""
    dates = [reading for reading in mention.readings if isinstance(reading, When)]
    if dates:
        when = dates[0]
        span = None if when.first_year is None or when.last_year is None else when.last_year - when.first_year
        return ("date", span, *(part is not None for part in (when.month, when.day, when.minute)))
    number = mention.readings[0]
    assert not isinstance(number, When), "a mention without dates holds numbers"
    if number.unit.dimension not in ("", "noun"):
        return (number.unit.dimension, number.per)
    return _COUNT
