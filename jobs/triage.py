"""Which answers are high-risk, so that samples are asked for: reasons per answer.

Self-consistency costs k generations an answer and says little where the evidence is plain, so only answers
with a reason get it, and of those a share. Nothing here depends on the place of a row, on the rows beside it or on
chance: shares are drawn by a hash of the request id, each share by a draw of its own. The module knows the first-pass scores but neither the judge nor the verdicts; a token
log-probability is read as a signal of a guessed number or name, never as a probability of truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import TriageConfig
from claimscore.jobs.draws import share_of
from claimscore.jobs.frames import as_frame

HIGH_RISK: Final = pa.schema(
    [pa.field("request_id", pa.string(), nullable=False), pa.field("reasons", pa.list_(pa.string()))]
)
REASONS: Final = ("topic", "low_probability_value", "unsupported", "near_threshold", "random")
"""In the order in which they are listed for an answer."""

_ROUNDING = 1e-6  # scores are float32: 0.6 - 0.5 is a little over 0.1
_SPACE_MARKS: Final = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})
_WORD_CHARS = 48  # as far as the word around a token is followed


def high_risk(
    log: pa.Table, claims: pa.Table, scores: pa.Table, *, entailment: float, config: TriageConfig
) -> pa.Table:
    """Choose the answers that samples are asked for.

    Reasons: `topic` (one of `config.topics`), `low_probability_value` (a number or name whose token has a
    log-probability below `config.low_logprob`), `unsupported` (a scored claim that no pair entails),
    `near_threshold` (a claim whose best entailment is that near the threshold), and `random` for a share of
    those without another reason. An answer needs a chunk and a claim that a judge may see; the last three
    reasons also need a scored claim. Of the answers with a reason, those with `topic` are chosen, and of the others
    `config.max_share`: a cap on a shard's answers would let a row lose its samples to a neighbour. The two shares are drawn
    apart: with one draw for both, each answer that was drawn as `random` would come through a `max_share` of at least
    `random_share`, and none beside it.

    Args:
        log: records.LOG of one shard; request ids are unique.
        claims: their records.CLAIMS.
        scores: records.SCORES of the evidence pairs; rows of samples are ignored.
        entailment: the judge's threshold, 0 to 1.
        config: rules and shares.

    Returns:
        HIGH_RISK (request_id, reasons) by request_id, the same for any order of the rows. Empty for none.
    """
    best = _best_entailment(scores)
    judgeable = set(claims.filter(pc.is_null(claims["unjudgeable"]))["request_id"].to_pylist())
    has_chunks = pc.greater(pc.list_value_length(log["chunks"]), 0).to_pylist()
    low = low_probability_tokens(log, config.low_logprob).to_pylist()
    found = []
    ids, topics = log["request_id"].to_pylist(), log["topic"].to_pylist()
    for request_id, topic, n_low, has_chunk in zip(ids, topics, low, has_chunks, strict=True):
        if request_id not in judgeable or not has_chunk:
            continue
        probabilities = best.get(request_id, [])
        reasons = _reasons(request_id, topic, n_low, probabilities, entailment, config)
        if "topic" in reasons or (reasons and share_of("triage:max_share", request_id) < config.max_share):
            found.append((request_id, reasons))
    found.sort()
    return pa.table(
        {"request_id": [item[0] for item in found], "reasons": [item[1] for item in found]},
        schema=HIGH_RISK,
    )


def low_probability_tokens(log: pa.Table, low_logprob: float) -> pa.Array:
    """Count, an answer, the tokens below `low_logprob` (natural log) within a number or a name.

    A name is a word with a capital that does not begin a sentence; every token of the word counts, since the
    guess often shows in a later piece. int32, null where the log has no log-probabilities. Tokens may carry
    the blank marks of a tokenizer (`Ġ`, `▁`); a null token or log-probability counts for nothing.
    """
    counts = [
        None if tokens is None else _count_low(tokens, low_logprob)
        for tokens in log["token_logprobs"].to_pylist()
    ]
    return pa.array(counts, pa.int32())


def _best_entailment(scores: pa.Table) -> Mapping[str, list[float]]:
    """request_id -> the best P(entailment) of each scored claim; NaN and null are no score."""
    usable = pl.col("sample_index").is_null() & pl.col("p_entailment").is_not_nan().fill_null(value=False)
    best = (
        as_frame(scores.select(["request_id", "claim_index", "sample_index", "p_entailment"]))
        .filter(usable)
        .group_by("request_id", "claim_index", maintain_order=True)
        .agg(pl.col("p_entailment").max())
    )
    out: dict[str, list[float]] = {}
    for request_id, value in best.select("request_id", "p_entailment").iter_rows():
        out.setdefault(request_id, []).append(value)
    return out


def _reasons(
    request_id: str,
    topic: str | None,
    n_low: int | None,
    probabilities: Sequence[float],
    entailment: float,
    config: TriageConfig,
) -> list[str]:
    near = any(abs(p - entailment) <= config.near_threshold + _ROUNDING for p in probabilities)
    holds = {
        "topic": topic is not None and topic in config.topics,
        "low_probability_value": bool(n_low),
        "unsupported": config.unsupported and any(p < entailment for p in probabilities),
        "near_threshold": near,
    }
    reasons = [reason for reason in REASONS if holds.get(reason)]
    if not reasons and probabilities and share_of("triage:random_share", request_id) < config.random_share:
        return ["random"]
    return reasons


def _count_low(tokens: Sequence[Mapping[str, Any] | None], low_logprob: float) -> int:
    pieces = [((token or {}).get("token") or "").translate(_SPACE_MARKS) for token in tokens]
    text = "".join(pieces)
    at = n_low = 0
    for piece, token in zip(pieces, tokens, strict=True):
        logprob = (token or {}).get("logprob")
        if logprob is not None and logprob < low_logprob and piece.strip():
            n_low += _is_value(text, at + len(piece) - len(piece.lstrip()), at + len(piece.rstrip()))
        at += len(piece)
    return n_low


def _is_value(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` has a digit or lies in a capitalised word that begins no sentence."""
    if any(char.isdigit() for char in text[start:end]):
        return True
    head = re.search(r"[^\W_]*$", text[max(0, start - _WORD_CHARS) : start])
    begin = start - (len(head[0]) if head else 0)
    word = re.match(r"\W{0,3}([^\W_]{2,})", text[begin : end + _WORD_CHARS])
    if not word or not word[1][0].isupper():
        return False
    before = text[max(0, begin - 16) : begin].rstrip(" \t\"'“‘(*#_[>-")
    return bool(before) and before[-1] not in ".!?:\n。！？"
