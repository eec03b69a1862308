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
import pyarrow as pa

from claimscore.jobs.errors import InputError
from claimscore.jobs.records import Label

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
        raise InputError(f"{path}: cannot be read: {err}; give --pairs, configs/canary.jsonl is one") from err
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
    """Id -> content, hash of the token ids, their number and the three probabilities, or why there are none.

    Args:
        pairs: read_pairs.
        judge: pipeline.Judge.
        max_pair_tokens: of the judge card; a longer pair is `too_long`.
        n_special: special tokens of a pair.
    """
    premises, claims = (
        judge.encode(pa.array(texts, pa.string())).column("ids").combine_chunks()
        for texts in ([p.premise for p in pairs], [p.claim for p in pairs])
    )
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
            "label": pair.label,
            "p": None if error else [round(x, 6) for x in p or ()],
            "error": error,
        }
    return out


def decision(p: Sequence[float] | None, thresholds: Mapping[str, float]) -> str:
    """What the probabilities of a pair mean at the card's thresholds."""
    if p is None:
        return "no score"
    if p[0] >= thresholds["entailment"]:
        return Label.ENTAILMENT.value
    return Label.CONTRADICTION.value if p[2] >= thresholds["contradiction"] else Label.NEUTRAL.value


def compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What is different between two records.

    Args:
        before: the record of an earlier night: date, series, environment, thresholds and pairs.
        now: this night's.

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
    rows = [_difference(key, old[key], new[key], now["thresholds"]) for key in common]
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


def _difference(
    key: str, old: Mapping[str, Any], new: Mapping[str, Any], thresholds: Mapping[str, float]
) -> dict[str, Any]:
    p, q = old["p"], new["p"]
    if p is None or q is None:  # 1, the most there is, where one night has a score and the other none
        difference = float(old["error"] != new["error"])
    else:
        difference = max(abs(a - b) for a, b in zip(p, q, strict=True))
    return {
        "id": key,
        "difference": round(difference, 6),
        "before": p,
        "now": q,
        "decision_before": decision(p, thresholds),
        "decision_now": decision(q, thresholds),
    }


def agreement(record: Mapping[str, Any]) -> dict[str, int]:
    """How many pairs are decided as a person would, how many not, and how many have no score."""
    out = {"as_a_person": 0, "otherwise": 0, "no_score": 0}
    for row in record["pairs"].values():
        found = decision(row["p"], record["thresholds"])
        out["no_score" if row["p"] is None else "as_a_person" if found == row["label"] else "otherwise"] += 1
    return out


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
