"""A stub decomposer and checker, and the sentences that the decomposer's tests share."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from claimscore.jobs import records
from claimscore.jobs.config import DecomposeConfig
from claimscore.jobs.decompose import make_claims

CONFIG = DecomposeConfig(model="stub", checker="stub")
FEE = "The annual fee is Rs 2,999, and it is waived at a spend of Rs 3 lakh."
FEE_CLAIMS = ["The annual fee is Rs 2,999.", "The annual fee is waived at a spend of Rs 3 lakh."]
TOUR = "The tour visits Porto, Braga and Lisbon in May."


def sentence(text: str, *, answer: int = 0, **fields: object) -> dict[str, object]:
    """One row of SENTENCES."""
    row: dict[str, object] = {
        "answer_index": answer,
        "sentence_index": 0,
        "start": 0,
        "end": len(text),
        "text": text,
        "context": "",
        "block": "paragraph",
        "is_refusal": False,
        "cited_ids": [],
        "fabricated_marks": [],
        "quotes": [],
    }
    return row | fields


def reply(*claims: str) -> str:
    """What a well-behaved model sends."""
    return json.dumps({"claims": list(claims)})


class Stub:
    """A decomposer that answers by sentence, and a checker that lets all but the named claims through."""

    def __init__(
        self,
        replies: dict[str, str | tuple[str | None, str]] | None = None,
        refuted: tuple[str, ...] = (),
        arrival: Callable[[list[dict[str, object]]], list[dict[str, object]]] = list,
    ) -> None:
        self.replies, self.refuted, self.arrival = replies or {}, refuted, arrival
        self.users: list[list[str]] = []
        self.pairs: list[tuple[str, str]] = []

    def complete(self, system: str, users: pa.Array) -> pa.Table:
        self.users.append(users.to_pylist())
        rows: list[dict[str, object]] = []
        for index, user in enumerate(users.to_pylist()):
            said = user.rpartition("Sentence: ")[2]
            given = self.replies.get(said, reply(said))
            text, reason = given if isinstance(given, tuple) else (given, "stop")
            row = dict.fromkeys(records.REPLIES.names, 0) | {"prompt_index": index}
            rows.append(row | {"text": text, "finish_reason": reason})
        return pa.Table.from_pylist(self.arrival(rows), schema=records.REPLIES)

    def entails(self, premises: pa.Array, claims: pa.Array) -> np.ndarray:
        self.pairs += zip(premises.to_pylist(), claims.to_pylist(), strict=True)
        return np.array([0.0 if claim in self.refuted else 1.0 for claim in claims.to_pylist()])


def run(stub: Stub, *rows: dict[str, object]) -> tuple[list[dict[str, object]], dict[str, int]]:
    """Claims and counts of the rows; the schema always holds."""
    table = pa.Table.from_pylist(list(rows), schema=records.SENTENCES)
    n_answers = 1 + max((int(str(row["answer_index"])) for row in rows), default=0)
    ids = pa.array([f"r{i}" for i in range(n_answers)], pa.string())
    claims, counts = make_claims(table, ids, complete=stub.complete, entails=stub.entails, config=CONFIG)
    assert claims.schema == records.CLAIMS
    return claims.to_pylist(), counts


def outcome_of(text: str, given: str | tuple[str | None, str], *, context: str = "") -> str:
    """The outcome of one sentence; where it is a fallback, its only claim must be the sentence."""
    claims, counts = run(Stub({text: given}), sentence(text, context=context))
    if claims[0]["source"] == "sentence":
        assert [text] == [claim["text"] for claim in claims]
        assert counts["n_fallback"] == 1
    return str(claims[0]["decompose_outcome"])
