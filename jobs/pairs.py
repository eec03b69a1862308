"""Pairs as columns: how they grow, which are equal, and what the judge said of each.

Equal pairs (the same premise ids and claim ids) are judged once. The module knows neither chunks nor claims nor
which pairs are worth judging.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.errors import ModelError
from claimscore.jobs.flat import runs
from claimscore.jobs.records import SCORES, SPAN
from claimscore.jobs.windows import (
    N_SPECIAL_TOKENS,
    Bools,
    Cut,
    Ints,
    Tokens,
    as_array,
    list_array,
    list_offsets,
)

Floats = np.ndarray[Any, np.dtype[np.float32]]
Probabilities = Callable[[pa.ListArray, pa.ListArray], Floats]

# One pair to be judged. `premise` and the rest are columns of records.SCORES.
PAIRS = pa.schema(
    [
        SCORES.field(name)
        for name in (
            "request_id",
            "claim_index",
            "premise",
            "sample_index",
            "is_cited",
            "overlap",
            "n_tokens",
        )
    ]
    + [
        pa.field("premise_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("claim_ids", pa.list_(pa.int32()), nullable=False),
    ]
)


class FoundPairs:
    """Pairs as they are found: rows of claims and of windows; their columns are gathered once, at the end.

    Args:
        claims: records.CLAIMS, whose ids and places the pairs carry.
        tokens: of the texts of `claims`.
    """

    def __init__(self, claims: pa.Table, tokens: Tokens) -> None:
        self._claims, self._tokens = claims, tokens
        self._found: list[tuple[np.ndarray, ...]] = []

    def add(
        self,
        claims: Ints,
        windows: Ints,
        chunks: Ints,
        *,
        sizes: Ints | None = None,
        is_cited: Bools,
        overlap: Floats,
        samples: Ints | None = None,
    ) -> None:
        """Pair claims with premises made of windows (rows of Texts.cut), whose chunks stand beside them.

        A premise is `sizes` windows in a row, joined; None: one each. All but windows and chunks is beside the premises; without
        `samples` they are of none.
        """
        if not len(claims):
            return
        sizes = np.ones(len(claims), np.int64) if sizes is None else sizes
        samples = np.full(len(claims), -1) if samples is None else samples
        self._found.append((claims, windows, chunks, sizes, is_cited, overlap, samples))

    def table(self, cut: Cut, ids: Ints) -> pa.Table:
        """The pairs so far, as PAIRS, by claim; `cut` are all windows that were cut, from texts with these token ids."""
        if not self._found:
            return PAIRS.empty_table()
        claim, windows, chunks, size, is_cited, overlap, sample = map(
            np.concatenate, zip(*self._found, strict=True)
        )
        order = np.argsort(claim, kind="stable")
        flat = runs((np.cumsum(size) - size)[order], size[order])
        windows, chunks, of_claim = windows[flat], chunks[flat], claim[order]
        bounds = np.concatenate([[0], np.cumsum(size[order])])
        claim_ids = pa.ListArray.from_arrays(
            pa.array(self._tokens.bounds, pa.int32()), pa.array(self._tokens.ids, pa.int32())
        )
        n_ids = cut.stop[windows] - cut.first[windows]
        premise_ids = pa.ListArray.from_arrays(
            pa.array(np.concatenate([[0], np.cumsum(n_ids)])[bounds], pa.int32()),
            pa.array(ids[runs(cut.first[windows], n_ids)], pa.int32()),
        )
        lengths = np.diff(np.array(list_offsets(premise_ids), dtype=np.int32))
        columns = {
            "request_id": as_array(self._claims.column("request_id")).take(pa.array(of_claim)),
            "claim_index": as_array(self._claims.column("claim_index")).take(pa.array(of_claim)),
            "premise": _premises(cut, windows, chunks, bounds),
            "sample_index": pa.array(sample[order], pa.int32(), mask=sample[order] < 0),
            "is_cited": pa.array(is_cited[order]),
            "overlap": pa.array(overlap[order]),
            "n_tokens": pa.array(
                lengths + np.diff(self._tokens.bounds)[of_claim] + np.int32(N_SPECIAL_TOKENS)
            ),
            "premise_ids": premise_ids,
            "claim_ids": claim_ids.take(pa.array(of_claim)),
        }
        return pa.table(columns, schema=PAIRS)


def _premises(cut: Cut, flat: Ints, chunks: Ints, bounds: Ints) -> pa.ListArray:
    """The spans of each premise; windows that were cut one after the other from one chunk are one span."""
    follows = np.zeros(len(flat), dtype=np.bool_)
    follows[1:] = (flat[1:] == flat[:-1] + 1) & (chunks[1:] == chunks[:-1])
    follows[bounds[:-1]] = False
    begins = np.flatnonzero(~follows)
    ends = np.append(begins[1:], len(flat)) - 1
    parts = [chunks[begins], cut.start[flat[begins]], cut.end[flat[ends]]]
    spans = pa.StructArray.from_arrays([pa.array(part, pa.int32()) for part in parts], fields=list(SPAN))
    offsets = np.searchsorted(begins, bounds).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), spans)


def judge_pairs(pairs: pa.Table, probabilities: Probabilities) -> tuple[pa.Table, Floats]:
    """Judge `pairs`, each distinct (premise, claim) once, and give records.SCORES rows and probs (P, 3).

    A pair whose probabilities are not finite has the error `nan` and no probabilities. No pairs: no call.

    Raises:
        ModelError: a probability lies outside 0..1, or the judge gave another number of rows.
    """
    first, inverse = unique_pairs(pairs)
    if not len(first):
        return SCORES.empty_table(), np.zeros((0, 3), dtype=np.float32)
    premise_ids, claim_ids = (
        list_array(pairs.column(name)).take(pa.array(first)) for name in ("premise_ids", "claim_ids")
    )
    probs = probabilities(premise_ids, claim_ids)
    if (
        probs.shape != (len(first), 3)
        or np.nanmin(probs, initial=0) < 0
        or np.nanmax(probs, initial=0) > 1 + 1e-4
    ):
        raise ModelError(
            f"judge: probabilities of shape {probs.shape} from {np.nanmin(probs, initial=0):.3g} to "
            f"{np.nanmax(probs, initial=0):.3g} for {len(first)} pairs, expected (pairs, 3) within 0..1; "
            "check the checkpoint"
        )
    probs_P3 = probs[inverse]
    bad = np.asarray(~np.isfinite(probs_P3).all(axis=1))
    columns = {name: pairs.column(name) for name in PAIRS.names if name in SCORES.names}
    for k, name in enumerate(("p_entailment", "p_neutral", "p_contradiction")):
        columns[name] = pa.array(probs_P3[:, k], pa.float32(), mask=bad)
    columns["rival"] = pa.nulls(pairs.num_rows, pa.string())
    columns["p_rival"] = pa.nulls(pairs.num_rows, pa.float32())
    columns["error"] = pc.if_else(pa.array(bad), "nan", pa.scalar(None, pa.string()))
    return pa.table({name: columns[name] for name in SCORES.names}, schema=SCORES), probs_P3


def unique_pairs(pairs: pa.Table) -> tuple[Ints, Ints]:
    """(row of the first of each distinct pair, for each row its distinct pair); by ids, so by what is judged."""
    seen: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    inverse = np.empty(pairs.num_rows, dtype=np.int32)
    columns = [_byte_rows(list_array(pairs.column(name))) for name in ("premise_ids", "claim_ids")]
    for row, key in enumerate(zip(*columns, strict=True)):
        k = seen.setdefault(key, len(first))
        if k == len(first):
            first.append(row)
        inverse[row] = k
    return np.array(first, dtype=np.int32), inverse


def _byte_rows(column: pa.ListArray) -> list[bytes]:
    values, offsets = np.ascontiguousarray(column.flatten(), dtype=np.int32), list_offsets(column)
    return [values[lo:hi].tobytes() for lo, hi in pairwise(offsets)]
