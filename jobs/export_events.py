"""A day as audit events: one JSON line a request, with all that its verdict rests on, by ids and hashes.

Each line stands alone: who answered, what was judged by which versions, every claim with verdict, rule, evidence span and
citations, what the policy did and why. Questions, answers and chunks are given as SHA-256, never as text; claims are given
as the tables hold them, which are hashes where `[privacy] store_text = false`. Chunks and answer tokens stand in the log
alone: they are null where the log is not given. The module opens no file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from claimscore.jobs.records import AnswerState

NAME = "events"
ENDING = "jsonl"
SCHEMA = "claimscore.event/1"
_HASHED = re.compile(r"sha256:[0-9a-f]{16}")
_COUNTS = (
    *(
        "n_claims",
        "n_repeats",
        "n_scored",
        "n_supported",
        "n_contradicted",
        "n_unsupported",
        "n_unscored",
        "n_cited_claims",
    ),
    *("n_citation_ok", "n_fabricated_citations", "n_conflicts", "n_low_consistency", "n_samples", "n_hedges"),
)
_OF_ANSWER = (
    *("state", "groundedness", "citation_precision", "hallucinated", "action", "action_reason", "next_step"),
    *("failure_mode", "high_risk_reasons", "injection_suspected", "answerable", "flags"),
)
_OF_CLAIM = (
    *("claim_index", "start", "end", "claim", "verdict", "reason", "decided_by", "hallucination_type"),
    *(
        "citation_state",
        "cited_ids",
        "fabricated_marks",
        "missing_values",
        "rival",
        "conflict",
        "consistency",
    ),
    *("n_samples_usable", "n_pairs", "source", "decompose_outcome", "duplicate_of"),
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the tables of a shard do not say row by row."""

    date: str
    series: str
    versions: dict[str, Any]
    """Table -> fingerprint, what it was made from, and when."""
    judge_tokens: Mapping[str, int]
    """request_id -> tokens of all pairs that the judge read."""
    log: Mapping[str, dict[str, Any]] | None
    """request_id -> `of_log`; None: the log was not given."""


def of_log(log: pa.Table) -> dict[str, dict[str, Any]]:
    """What only the log knows of each request: its chunks by id, score and hash, and the answer's tokens."""
    out = {}
    columns = [log.column(name).to_pylist() for name in ("request_id", "chunks", "token_logprobs")]
    for request_id, chunks, tokens in zip(*columns, strict=True):
        named = [
            {
                "id": chunk["id"],
                "score": chunk["score"],
                "sha256": _digest(chunk["text"] or ""),
                "n_chars": len(chunk["text"] or ""),
            }
            for chunk in chunks
        ]
        out[request_id] = {"chunks": named, "answer_tokens": None if tokens is None else len(tokens)}
    return out


def lines(answers: pa.Table, verdicts: pa.Table, grounds: Grounds) -> Iterator[bytes]:
    """One line an answer, in their order, each with its line feed.

    Args:
        answers: ANSWERS of a shard.
        verdicts: VERDICTS of the same.
        grounds: the rest.
    """
    claims: dict[str, list[dict[str, Any]]] = {}
    for row in verdicts.to_pylist():
        claims.setdefault(row["request_id"], []).append(_claim(row))
    for row in answers.to_pylist():
        event = _event(row, claims.get(row["request_id"], []), grounds)
        yield json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _event(row: dict[str, Any], claims: list[dict[str, Any]], grounds: Grounds) -> dict[str, Any]:
    margin = row["retrieval_margin"]
    known = (grounds.log or {}).get(row["request_id"], {})
    blind = row["state"] == AnswerState.SCORED and not row["n_scored"]
    return {
        "schema": SCHEMA,
        "request_id": row["request_id"],
        "date": grounds.date,
        "ts": row["ts"].isoformat() if row["ts"] else None,
        "series": grounds.series,
        **{name: row[name] for name in ("prompt_version", "model", "topic", "origin")},
        "question": _hash(row["question"]),
        "answer": _hash(row["answer"]),
        **{name: row[name] for name in _OF_ANSWER},
        "retrieval_margin": margin
        if margin is not None and math.isfinite(margin)
        else None,  # of scores near 1e308
        "unscored": blind or row["state"] == AnswerState.NO_CONTEXT,
        "counts": {name.removeprefix("n_"): row[name] for name in _COUNTS},
        "chunks": known.get("chunks"),
        "claims": sorted(claims, key=lambda claim: claim["claim_index"]),
        "tokens": {
            "answer": known.get("answer_tokens"),
            "judge": grounds.judge_tokens.get(row["request_id"]),
        },
        "versions": grounds.versions,
    }


def _claim(row: dict[str, Any]) -> dict[str, Any]:
    p = [row[f"p_{name}"] for name in ("entailment", "neutral", "contradiction")]
    return {name: row[name] for name in _OF_CLAIM} | {
        "evidence": _span(row, "evidence"),
        "against": _span(row, "contradicting"),
        "p": None if p[0] is None else [round(value, 6) for value in p],
    }


def _span(row: dict[str, Any], kind: str) -> dict[str, Any] | None:
    if row[f"{kind}_chunk_id"] is None:
        return None
    return {name: row[f"{kind}_{name}"] for name in ("chunk_id", "start", "end")}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hash(text: str | None) -> str | None:
    """The text's hash; of a table without texts the shorter one that it holds, which begins alike."""
    if text is None or _HASHED.fullmatch(text):
        return text
    return f"sha256:{_digest(text)}"
