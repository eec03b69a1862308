"""Small logs and claims for the stages that pair them, judged by the stub model."""

from __future__ import annotations

import pyarrow as pa
import stub_models
from hypothesis import strategies as st

from claimscore.jobs import evidence
from claimscore.jobs.config import EvidenceConfig, SegmentConfig
from claimscore.jobs.records import CLAIMS, LOG
from claimscore.jobs.segment import sentence_spans

JUDGE = stub_models.StubJudge()
WORDS = [
    "alpha",
    "bravo",
    "carol",
    "delta",
    "eagle",
    "fancy",
    "giant",
    "hotel",
    "india",
    "jolly",
    "koala",
    "lemon",
]
windows = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9, unique=True).map(" ".join)
"""Texts of a few of the words, each once."""


def spans(texts: pa.Array) -> pa.ListArray:
    """Sentences under the default config."""
    return sentence_spans(texts, SegmentConfig())


def a_log(*chunk_lists: list[str]) -> pa.Table:
    """Answers r0, r1 ... with chunks c0, c1 ... each."""
    rows = [
        {
            "request_id": f"r{k}",
            "chunks": [{"id": f"c{i}", "text": text, "score": None} for i, text in enumerate(texts)],
            "flags": [],
        }
        for k, texts in enumerate(chunk_lists)
    ]
    return pa.Table.from_pylist(rows, schema=LOG)


def some_claims(*claims: tuple[str, str, list[str]]) -> pa.Table:
    """(request id, text, cited ids) as claims."""
    rows = [
        {
            "request_id": request_id,
            "claim_index": k,
            "sentence_index": k,
            "start": 0,
            "end": 0,
            "text": text,
            "source": "atomic",
            "decompose_outcome": "atomic",
            "unjudgeable": None,
            "cited_ids": cited,
            "fabricated_marks": [],
            "quotes": [],
        }
        for k, (request_id, text, cited) in enumerate(claims)
    ]
    return pa.Table.from_pylist(rows, schema=CLAIMS)


def pair_up(log: pa.Table, claims: pa.Table, **settings_: float) -> evidence.Found:
    """evidence_pairs with the stub tokenizer."""
    config = EvidenceConfig(**settings_)
    return evidence.evidence_pairs(log, claims, encode=JUDGE.encode, sentence_spans=spans, config=config)
