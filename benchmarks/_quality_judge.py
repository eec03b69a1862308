"""A judge that remembers every pair on disk: variants of the evidence cost their new pairs only.

A pair is known by the judge's fingerprint (the weights), its dtype and its token ids, which are its two texts to the
judge. Records of a key and three floats are appended to one file a judge under build/; a torn last record is ignored.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from claimscore.jobs.config import JudgeCard
from claimscore.jobs.judge import Judge, load_tokenizer, model_fingerprint
from claimscore.jobs.windows import list_array, list_offsets

CACHE = Path(__file__).resolve().parent.parent / "build" / "quality-cache"
_RECORD = np.dtype([("key", "S32"), ("probs", "<f4", 3)])
AT_ONCE = 500
"""Pairs between two writes: what a killed run loses."""


class CachedJudge:
    """pipeline.Judge over one card; loads the weights when the first unknown pair comes."""

    def __init__(
        self, card: JudgeCard, *, dtype: str = "float32", budget_tokens: int = 4_096, folder: Path = CACHE
    ) -> None:
        self.card, self.dtype, self.fingerprint = card, dtype, model_fingerprint(card.model)
        self.reads_cache = True
        self.seconds, self.n_new = 0.0, 0
        self._tokenizer = load_tokenizer(card.model)
        self._judge: Judge | None = None
        self._budget_tokens = budget_tokens
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{self.fingerprint[:16]}-{dtype}.bin"
        self._known = self._read()

    @property
    def unk_id(self) -> int | None:
        """The id of what the tokenizer does not know."""
        return self._tokenizer.unk_id

    def encode(self, texts: pa.Array) -> pa.Table:
        """Ids, starts and ends of each text."""
        return self._tokenizer.encode(texts)

    def ids(self, texts: list[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        found: list[list[int]] = self.encode(pa.array(texts, pa.string()))["ids"].to_pylist()
        return found

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> np.ndarray:
        """As judge.Judge.probabilities; only unknown pairs are judged, unless `reads_cache` is off."""
        premises, claims = list_array(premise_ids), list_array(claim_ids)
        keys = _keys(premises, claims)
        unknown = [k for k, key in enumerate(keys) if not (self.reads_cache and key in self._known)]
        for first in range(0, len(unknown), AT_ONCE):
            rows = unknown[first : first + AT_ONCE]
            began = time.perf_counter()
            fresh = self._loaded().probabilities(premises.take(pa.array(rows)), claims.take(pa.array(rows)))
            self.seconds += time.perf_counter() - began
            self.n_new += len(rows)
            self._remember([keys[k] for k in rows], fresh)
        return np.array([self._known[key] for key in keys], np.float32).reshape(-1, 3)

    def _loaded(self) -> Judge:
        if self._judge is None:
            self._judge = Judge(self.card, budget_tokens=self._budget_tokens, dtype=self.dtype)
        return self._judge

    def _remember(self, keys: list[bytes], probs_P3: np.ndarray) -> None:
        new = {key: probs for key, probs in zip(keys, probs_P3, strict=True) if key not in self._known}
        self._known |= new
        rows = np.array([(key.hex().encode(), tuple(probs)) for key, probs in new.items()], _RECORD)
        with self._path.open("ab") as file:
            file.write(rows.tobytes())

    def _read(self) -> dict[bytes, Any]:
        if not self._path.exists():
            return {}
        raw = self._path.read_bytes()
        rows = np.frombuffer(raw[: len(raw) // _RECORD.itemsize * _RECORD.itemsize], _RECORD)
        return {
            bytes.fromhex(key.decode()): probs
            for key, probs in zip(rows["key"].tolist(), rows["probs"], strict=True)
        }


def _keys(premises: pa.ListArray, claims: pa.ListArray) -> list[bytes]:
    columns = []
    for ids in (premises, claims):
        values, offsets = np.ascontiguousarray(ids.flatten(), dtype=np.int32), list_offsets(ids)
        columns.append([values[lo:hi].tobytes() for lo, hi in itertools.pairwise(offsets)])
    return [
        hashlib.blake2b(len(a).to_bytes(4, "little") + a + b, digest_size=16).digest()
        for a, b in zip(*columns, strict=True)
    ]
