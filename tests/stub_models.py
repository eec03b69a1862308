"""Models without weights: a judge that counts shared words, an LLM that gives the sentence back, a referee as told."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from claimscore.jobs.records import REPLIES

_WORD = re.compile(r"\w+|[^\w\s]")
_FRAMED = re.compile(r"<(window|claim) (\w+) (?:[0-9a-f]{8})>\n(.*?)\n</\1 \2 [0-9a-f]{8}>", re.DOTALL)
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


class StubReferee:
    """Reads windows and claims out of the prompt, and replies as `decide` says of each claim.

    Args:
        decide: (claim, windows by letter) -> (window, span, verdict), or the whole reply as a string.
    """

    def __init__(self, decide: Callable[[str, dict[str, str]], Any]) -> None:
        self.decide = decide
        self.users: list[str] = []

    def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        """One finished row a prompt."""
        rows = []
        for index, user in enumerate(users.to_pylist()):
            self.users.append(user)
            windows, claims = (
                {name: text for kind, name, text in _FRAMED.findall(user) if kind == what}
                for what in ("window", "claim")
            )
            said = [self.decide(claim, windows) for claim in claims.values()]
            text = next((one for one in said if isinstance(one, str)), None)
            if text is None:
                entries = [dict(zip(("window", "span", "verdict"), one, strict=True)) for one in said]
                text = json.dumps(entries[0] if len(entries) == 1 else {"claims": entries})
            rows.append((index, 0, text, "stop", len(user) // 4, len(text) // 4))
        columns = list(zip(*rows, strict=True)) or [()] * len(REPLIES.names)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, REPLIES, strict=True)], schema=REPLIES)
