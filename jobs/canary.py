"""The same pairs scored every night: a judge that scores them otherwise has changed, whatever changed it.

Between two nights it names what is different around the judge (weights, tokenizer, dtype, device, libraries), the pairs whose
probabilities moved by more than rounding, and those that fall on another side of a threshold. A change that moves nothing is
told and is no drift. Knows no judge, no store and no log: two records in, one comparison out.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs import rules
from claimscore.jobs.errors import InputError, reason_of
from claimscore.jobs.records import Label
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.windows import forms_of, list_array

ROUNDING = {"float32": 1e-3, "bfloat16": 2e-2, "float16": 2e-2}
"""The largest difference of a probability that neighbours in a batch, threads or another machine of the kind explain."""
TOO_LONG = "too_long"
NOT_FINITE = "not_finite"
_FIELDS = ("id", "premise", "claim", "label")
MOST_FLIPS = 2
"""Pairs at the threshold may be decided otherwise by rounding alone; more of them are a judge that answers otherwise."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair of the canary, with the label that a person gives it."""

    id: str
    premise: str
    claim: str
    label: str

    @property
    def content(self) -> str:
        """A hash of its two texts."""
        return _hash(f"{self.premise}\0{self.claim}")


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a JSON Lines file.

    Raises:
        InputError: no such file, a line that is no pair, an id twice, or no pair at all.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as err:
        raise InputError(
            f"{path}: cannot be read: {reason_of(err)}; give --pairs, configs/canary.jsonl is one"
        ) from err
    pairs: dict[str, Pair] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        pair = _pair(line)
        if pair is None:
            raise InputError(
                f"{path}: line {number}: {line[:80]!r}, expected one JSON object of texts {', '.join(_FIELDS)}, the label "
                f"one of {', '.join(Label)}; mend it"
            )
        if pair.id in pairs:
            raise InputError(f"{path}: line {number}: id {pair.id!r} twice, expected once; give it another")
        pairs[pair.id] = pair
    if not pairs:
        raise InputError(f"{path}: no pair, expected some; give --pairs, configs/canary.jsonl is one")
    return list(pairs.values())


def _pair(line: str) -> Pair | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    texts = [row.get(name) for name in _FIELDS] if isinstance(row, dict) else []
    words = [text for text in texts if isinstance(text, str)]
    return Pair(*words) if len(words) == len(_FIELDS) and words[-1] in set(Label) else None


def score(
    pairs: Sequence[Pair], judge: Any, max_pair_tokens: int, n_special: int
) -> dict[str, dict[str, Any]]:
    """Id -> content, hash of the token ids, their number, what a combiner weighs, and the three probabilities.

    Args:
        pairs: read_pairs.
        judge: pipeline.Judge.
        max_pair_tokens: of the judge card; a longer pair is `too_long`.
        n_special: special tokens of a pair.
    """
    missing = rules.missing_names(
        *(pa.array([getattr(p, name) for p in pairs], pa.string()) for name in ("claim", "premise"))
    )
    encoded = [
        judge.encode(pa.array(texts, pa.string())).combine_chunks()
        for texts in ([p.premise for p in pairs], [p.claim for p in pairs])
    ]
    premises, claims = (list_array(table.column("ids")) for table in encoded)
    forms = list(zip(*(forms_of(table).to_pylist() for table in encoded), strict=True))
    ids = list(zip(premises.to_pylist(), claims.to_pylist(), strict=True))
    lengths = [len(a) + len(b) + n_special for a, b in ids]
    fits = pa.array([k for k, n in enumerate(lengths) if n <= max_pair_tokens], pa.int64())
    found = judge.probabilities(premises.take(fits), claims.take(fits))
    probs: dict[int, Any] = dict(zip(fits.to_pylist(), np.asarray(found).tolist(), strict=True))
    out = {}
    for k, pair in enumerate(pairs):
        p = probs.get(k)
        error = TOO_LONG if p is None else None if all(map(math.isfinite, p)) else NOT_FINITE
        out[pair.id] = {
            "content": pair.content,
            "tokens": _hash(json.dumps(ids[k])),
            "n_tokens": lengths[k],
            "overlap": round(_overlap(*forms[k]), 6),
            "n_missing_names": len(missing[k]),
            "label": pair.label,
            "p": None if error else [round(x, 6) for x in p or ()],
            "error": error,
        }
    return out


def _overlap(premise: list[int], claim: list[int]) -> float:
    """Share of the claim's tokens that the premise holds, counted as the job counts it."""
    wanted = set(claim)
    return len(wanted.intersection(premise)) / max(1, len(wanted))


def decisions(
    rows: Sequence[Mapping[str, Any]], probs: Sequence[Sequence[float] | None], thresholds: Thresholds
) -> list[str]:
    """What the judge's probabilities of pairs mean, by the card's thresholds and its combiner.

    Args:
        rows: of `score`: what the texts of each pair share and lack.
        probs: beside `rows`; None: no score.
        thresholds: in force.
    """
    frame = pl.DataFrame(
        {
            "p_entailment": [p[0] if p else None for p in probs],
            "p_contradiction": [p[2] if p else None for p in probs],
            "overlap": [row["overlap"] for row in rows],
            "n_names": [row["n_missing_names"] for row in rows],
        },
        schema={
            **dict.fromkeys(("p_entailment", "p_contradiction", "overlap"), pl.Float32),
            "n_names": pl.Int64,
        },
    )
    meaning = (
        pl.when(pl.col("p_entailment").is_null())
        .then(pl.lit("no score"))
        .when(thresholds.entails(pl.col("n_names")))
        .then(pl.lit(Label.ENTAILMENT.value))
        .when(thresholds.contradicts())
        .then(pl.lit(Label.CONTRADICTION.value))
        .otherwise(pl.lit(Label.NEUTRAL.value))
    )
    return frame.select(meaning).to_series().to_list()


def compare(before: Mapping[str, Any], now: Mapping[str, Any], thresholds: Thresholds) -> dict[str, Any]:
    """What is different between two records.

    Args:
        before: the record of an earlier night: date, series, environment and pairs.
        now: this night's.
        thresholds: this night's.

    Returns:
        `changed` (what, before, now), `retokenized`, `moved` and `flipped` pairs (the largest difference first),
        `new` and `gone` ids, `n_compared`, `max_difference` and its pair, the `rounding` allowed, and `drifted`.
        Decisions of both nights are taken at this night's thresholds: a new threshold is no drift of the judge.
    """
    old, new = before["pairs"], now["pairs"]
    common = [key for key in new if key in old and old[key]["content"] == new[key]["content"]]
    sides = before["environment"], now["environment"]
    changed = [
        {"what": name, "before": sides[0].get(name), "now": sides[1].get(name)}
        for name in dict.fromkeys([*sides[1], *sides[0]])
        if sides[0].get(name) != sides[1].get(name)
    ]
    rounding = max(ROUNDING.get(str(side.get("dtype")), ROUNDING["float32"]) for side in sides)
    rows = [_difference(key, old[key], new[key]) for key in common]
    texts = [new[key] for key in common]  # of equal content on both nights
    for side in ("before", "now"):
        for row, meaning in zip(rows, decisions(texts, [row[side] for row in rows], thresholds), strict=True):
            row[f"decision_{side}"] = meaning
    rows.sort(key=lambda row: (-row["difference"], row["id"]))
    moved = [row for row in rows if row["difference"] > rounding]
    retokenized = [key for key in common if old[key]["tokens"] != new[key]["tokens"]]
    flipped = [row for row in rows if row["decision_before"] != row["decision_now"]]
    return {
        "before": {"date": before["date"], "series": before["series"]},
        "n_compared": len(common),
        "changed": changed,
        "rounding": rounding,
        "max_difference": rows[0]["difference"] if rows else None,
        "max_pair": rows[0]["id"] if rows else None,
        "retokenized": retokenized,
        "moved": moved,
        "flipped": flipped,
        "new": [key for key in new if key not in common],
        "gone": [key for key in old if key not in common],
        "drifted": bool(moved or retokenized or not common or len(flipped) > MOST_FLIPS),
    }


def _difference(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    p, q = old["p"], new["p"]
    if p is None or q is None:  # 1, the most there is, where one night has a score and the other none
        difference = float(old["error"] != new["error"])
    else:
        difference = max(abs(a - b) for a, b in zip(p, q, strict=True))
    return {"id": key, "difference": round(difference, 6), "before": p, "now": q}


def agreement(pairs: Mapping[str, Any], thresholds: Thresholds) -> dict[str, int]:
    """How many pairs are decided as a person would, how many not, and how many have no score."""
    out = {"as_a_person": 0, "otherwise": 0, "no_score": 0}
    rows = list(pairs.values())
    for row, found in zip(rows, decisions(rows, [row["p"] for row in rows], thresholds), strict=True):
        out["no_score" if row["p"] is None else "as_a_person" if found == row["label"] else "otherwise"] += 1
    return out


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
