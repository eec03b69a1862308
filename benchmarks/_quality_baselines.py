"""The plain ways to ask a judge, each over the whole of the evidence: what any finer path must beat.

Word overlap asks no judge. The whole context is cut to fit one pair. Chunks of 400 tokens keep the best. Single
sentences keep the best a claim sentence, and the claim is the mean of its sentences (Laban et al. 2022, SummaC-ZS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from _quality_cases import Case, words
from _quality_judge import CachedJudge

from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.segment import sentence_spans
from claimscore.jobs.windows import N_SPECIAL_TOKENS

CHUNK_TOKENS = 400
PAIR_TOKENS = 512
MIN_PREMISE = 64
Ids = list[int]


@dataclass(frozen=True, slots=True)
class Scored:
    """One number a case, higher for better supported, and what it cost."""

    scores: np.ndarray
    n_pairs: int
    n_tokens: int


def overlap(cases: Sequence[Case]) -> Scored:
    """The share of a claim's distinct words that its evidence holds; a claim without words has all."""
    shares = []
    for case in cases:
        said, known = set(words(case.claim)), set(words(" ".join(case.chunks)))
        shares.append(len(said & known) / len(said) if said else 1.0)
    return Scored(np.array(shares), 0, 0)


def whole(cases: Sequence[Case], judge: CachedJudge) -> Scored:
    """One pair a case: the chunks joined, cut where the pair is full."""
    claims, contexts = _claims(cases, judge), _contexts(cases, judge)
    premises = [[ids[: room(claim)]] for ids, claim in zip(contexts, claims, strict=True)]
    return _best(premises, claims, judge)


def chunks(cases: Sequence[Case], judge: CachedJudge, size: int = CHUNK_TOKENS) -> Scored:
    """The best of pieces of `size` tokens of the chunks joined, beside a long claim of fewer."""
    claims, contexts = _claims(cases, judge), _contexts(cases, judge)
    premises = []
    for ids, claim in zip(contexts, claims, strict=True):
        step = min(size, room(claim))
        premises.append([ids[k : k + step] for k in range(0, len(ids), step)])
    return _best(premises, claims, judge)


def sentences(cases: Sequence[Case], judge: CachedJudge) -> Scored:
    """Every sentence of the claim against every sentence of the evidence: the best, then the mean."""
    claims, of_claim = _flat_sentences([case.claim for case in cases], judge)
    evidence = [_flat_sentences(list(case.chunks), judge)[0] for case in cases]
    premises = [
        [ids[: room(claim)] for ids in evidence[k]] for claim, k in zip(claims, of_claim, strict=True)
    ]
    best = _best(premises, claims, judge)
    means = np.bincount(of_claim, best.scores, len(cases)) / np.bincount(of_claim, minlength=len(cases))
    return Scored(means, best.n_pairs, best.n_tokens)


BASELINES: dict[str, Callable[[Sequence[Case], CachedJudge], Scored]] = {
    "word overlap": lambda cases, _judge: overlap(cases),
    "whole context, 512 tokens": whole,
    "400-token chunks, max": chunks,
    "sentences, max-mean": sentences,
}


def room(claim: Ids) -> int:
    """Tokens that a premise may have beside a claim."""
    return max(1, PAIR_TOKENS - N_SPECIAL_TOKENS - len(claim))


def _claims(cases: Sequence[Case], judge: CachedJudge) -> list[Ids]:
    """Ids of the claims; one that leaves no room is cut, for a baseline has no other way."""
    return [
        ids[: PAIR_TOKENS - N_SPECIAL_TOKENS - MIN_PREMISE] for ids in judge.ids([c.claim for c in cases])
    ]


def _contexts(cases: Sequence[Case], judge: CachedJudge) -> list[Ids]:
    return judge.ids(["\n".join(case.chunks) for case in cases])


def _flat_sentences(texts: list[str], judge: CachedJudge) -> tuple[list[Ids], np.ndarray]:
    """Ids of the sentences of all texts, and the text of each; a text without any is one sentence."""
    spans = sentence_spans(pa.array(texts, pa.string()), SegmentConfig()).to_pylist()
    pieces = [
        (piece, k)
        for k, (text, of_text) in enumerate(zip(texts, spans, strict=True))
        for piece in ([text[s["start"] : s["end"]] for s in of_text] or [text])
    ]
    limit = PAIR_TOKENS - N_SPECIAL_TOKENS - MIN_PREMISE
    ids = [found[:limit] for found in judge.ids([piece for piece, _ in pieces])]
    return ids, np.array([k for _, k in pieces], dtype=np.int64)


def _best(premises: list[list[Ids]], claims: list[Ids], judge: CachedJudge) -> Scored:
    """The highest entailment over the premises of each claim; 0 for a claim without any."""
    owner = np.array([k for k, of_claim in enumerate(premises) for _ in of_claim], dtype=np.int64)
    flat = [ids for of_claim in premises for ids in of_claim]
    paired = [claims[k] for k in owner.tolist()]
    kind = pa.list_(pa.int32())
    probs_P3 = judge.probabilities(pa.array(flat, kind), pa.array(paired, kind))
    best = np.zeros(len(claims))
    np.maximum.at(best, owner, np.nan_to_num(probs_P3[:, 0]))
    n_tokens = sum(len(a) + len(b) + N_SPECIAL_TOKENS for a, b in zip(flat, paired, strict=True))
    return Scored(best, len(flat), n_tokens)
