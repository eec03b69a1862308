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

from claimscore.jobs.errors import ModelError
from claimscore.jobs.records import SCORES
from claimscore.jobs.windows import Ints, list_array, list_offsets

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


class PairRows:
    """Columns of PAIRS as they grow; one numpy concatenation at the end instead of a list of ids a row."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in PAIRS.names}

    def add(self, **row: Any) -> None:
        """Append one pair: every column of PAIRS by name; ids as int32 arrays."""
        for name, values in self.columns.items():
            values.append(row[name])

    def table(self) -> pa.Table:
        """The rows so far, as PAIRS."""
        arrays = [
            _list_of(self.columns[f.name])
            if f.name in ("premise_ids", "claim_ids")
            else pa.array(self.columns[f.name], f.type)
            for f in PAIRS
        ]
        return pa.Table.from_arrays(arrays, schema=PAIRS)


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
    columns["error"] = pa.array(["nan" if is_bad else None for is_bad in bad.tolist()], pa.string())
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


def claim_bounds(pairs: pa.Table) -> list[int]:
    """Rows where a new claim begins, and the number of rows: pairs of a claim stand together."""
    keys = list(
        zip(pairs.column("request_id").to_pylist(), pairs.column("claim_index").to_pylist(), strict=True)
    )
    return [0, *(k for k in range(1, len(keys)) if keys[k] != keys[k - 1]), len(keys)]


def _list_of(arrays: list[Ints]) -> pa.ListArray:
    lengths = np.fromiter((len(a) for a in arrays), dtype=np.int32, count=len(arrays))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def _byte_rows(column: pa.ListArray) -> list[bytes]:
    values, offsets = np.ascontiguousarray(column.flatten(), dtype=np.int32), list_offsets(column)
    return [values[lo:hi].tobytes() for lo, hi in pairwise(offsets)]
