"""Models without weights: a judge that counts shared words, an LLM that gives the sentence back."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from claimscore.jobs.records import REPLIES

_WORD = re.compile(r"\w+|[^\w\s]")
_NOT = zlib.crc32(b"not") & 0x7FFFFFFF


class StubJudge:
    """Entailment is the share of the claim's words in the premise; a lone `not` on one side contradicts.

    Counts its calls, so that a test can say that no model was touched.
    """

    unk_id = None

    def __init__(self) -> None:
        self.n_calls = 0
        self.n_pairs = 0

    def encode(self, texts: pa.Array) -> pa.Table:
        """Words as ids, with their places."""
        rows: dict[str, list[list[int]]] = {"ids": [], "starts": [], "ends": []}
        for text in texts.to_pylist():
            found = list(_WORD.finditer(text))
            rows["ids"].append([zlib.crc32(m[0].casefold().encode()) & 0x7FFFFFFF for m in found])
            rows["starts"].append([m.start() for m in found])
            rows["ends"].append([m.end() for m in found])
        return pa.table({name: pa.array(column, pa.list_(pa.int32())) for name, column in rows.items()})

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> np.ndarray:
        """(P, 3) of each pair by its words alone."""
        self.n_calls += 1
        self.n_pairs += len(premise_ids)
        out = np.zeros((len(premise_ids), 3), dtype=np.float32)
        for row, (premise, claim) in enumerate(
            zip(premise_ids.to_pylist(), claim_ids.to_pylist(), strict=True)
        ):
            shared = len(set(premise) & set(claim)) / max(1, len(set(claim)))
            if (_NOT in premise) != (_NOT in claim) and shared > 0.6:
                out[row] = (0.02, 0.03, 0.95)
            else:
                out[row] = (0.98 * shared, 1 - 0.98 * shared, 0.0)
        return out


class StubLlm:
    """Replies with the sentence as the only claim; `replies` maps a sentence to another reply text."""

    def __init__(self, replies: dict[str, str] | None = None) -> None:
        self.replies = replies or {}
        self.n_calls = 0
        self.n_prompts = 0

    def complete(self, system: str, users: pa.Array, *, n: int = 1, **options: Any) -> pa.Table:
        """One row a prompt and sample, all finished."""
        self.n_calls += 1
        self.n_prompts += len(users)
        rows = []
        for index, user in enumerate(users.to_pylist()):
            sentence = user.rpartition("Sentence: ")[2]
            text = self.replies.get(sentence, json.dumps({"claims": [sentence]}))
            rows += [(index, sample, text, "stop", len(user) // 4, len(text) // 4) for sample in range(n)]
        columns = list(zip(*rows, strict=True)) or [()] * len(REPLIES.names)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, REPLIES, strict=True)], schema=REPLIES)


class UntouchableModel:
    """Fails at any use."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a model was touched: {name}")
