"""Claims x chunks -> the (premise, claim) pairs that are judged, as token ids.

A claim meets windows of single passages and covers made of several (premises.py says which). A claim is never cut.
Every text is tokenised once; pairs are slices of those ids, so nothing is searched for in text afterwards. The module
knows no model and no threshold of a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.pairs import FoundPairs
from claimscore.jobs.premises import Claims, add_covers, add_windows
from claimscore.jobs.records import SCORES, SPAN
from claimscore.jobs.windows import (
    N_SPECIAL_TOKENS,
    Bools,
    Encode,
    SentenceSpans,
    Texts,
    Tokens,
    as_array,
    list_array,
    list_offsets,
)

UNKNOWN_SHARE = 0.25
"""A claim with more tokens than this unknown to the tokenizer is not judged: unknown words entail one another."""


class Found(NamedTuple):
    """What `evidence_pairs` found."""

    pairs: pa.Table
    """PAIRS that are judged, by claim: windows, by chunk and place, and covers."""
    retries: pa.Table
    """PAIRS for claims that none of those carries: their covers without each of the chunks."""
    unpaired: pa.Table
    """records.SCORES of the claims that were paired with nothing, with the reason as `error`."""


def evidence_pairs(
    log: pa.Table,
    claims: pa.Table,
    *,
    encode: Encode,
    sentence_spans: SentenceSpans,
    config: EvidenceConfig,
    unk_id: int | None = None,
) -> Found:
    """Pair every claim with windows of its answer's chunks, and with covers of their sentences.

    Of the cited chunks, and of the others, the window that shares most with the claim is judged, and those that share
    `window_overlap` of its tokens, at most `max_windows`. A cover is made of all chunks and, where only some are cited,
    of the cited ones alone.

    One chunk more, whatever it says and wherever it stands, leaves the cover of all chunks that was best before among the
    pairs and retries: it is the cover still, or the cover without that chunk. It takes the place of a window only where it shares as much
    as that window does. Not promised: that a chunk which shares few of the claim's words, and entails it all the same, is
    judged beside others that share more.

    Args:
        log: answers (records.LOG).
        claims: their claims (records.CLAIMS).
        encode: texts -> ids, starts, ends without special tokens (judge.Tokenizer.encode).
        sentence_spans: texts -> list<struct<start, end>> (segment.sentence_spans).
        config: window sizes and limits.
        unk_id: the id of tokens that the tokenizer does not know; None: it knows all.

    Returns:
        The pairs, retries for those of no avail, and the claims without pairs: `no_context`, `claim_too_long`,
        `unknown_script` (more than a quarter of the claim's tokens are `unk_id`, and one unknown word entails any
        other), or the claim's own reason. No claims give three empty tables.
    """
    chunks = list_array(log.column("chunks"))
    texts = Texts.of(chunks.flatten().field("text"), encode, sentence_spans, config)
    offsets = list_offsets(chunks)
    chunk_ids = chunks.flatten().field("id").to_pylist()
    tokens = Tokens.of(as_array(claims.column("text")), encode)
    errors = _errors(claims, tokens, config, unk_id)
    cited_ids = claims.column("cited_ids").to_pylist()
    found, retries = FoundPairs(claims, tokens), FoundPairs(claims, tokens)
    for answer, limit, rows in _by_answer(log, claims, texts, tokens, errors):
        lo, hi = offsets[answer], offsets[answer + 1]
        windows = texts.windows(lo, hi, limit)
        if not windows.windows:
            errors.update(dict.fromkeys(rows, "no_context"))
            continue
        forms, cited = [tokens.forms_of(row) for row in rows], _cited(cited_ids, rows, chunk_ids[lo:hi])
        few = Claims(rows, forms, cited, [set() for _ in rows])
        add_windows(found, few, windows, config)
        room = min(limit, config.cover_tokens)
        add_covers(found, retries, few, texts.sentences(lo, hi, room), room)
    return Found(found.table(texts.cut), retries.table(texts.cut), _unpaired(claims, errors))


def _cited(cited_ids: list[list[str]], rows: list[int], chunk_ids: list[str]) -> Bools:
    """Which chunks of an answer each of its claims cites, (rows, chunks)."""
    cited = np.zeros((len(rows), len(chunk_ids)), np.bool_)
    for of_claim, row in zip(cited, rows, strict=True):
        if ids := set(cited_ids[row]):  # most of 100,000 claims cite nothing: no list of the chunks for each
            of_claim[:] = [chunk_id in ids for chunk_id in chunk_ids]
    return cited


def sample_pairs(
    samples: pa.Table,
    claims: pa.Table,
    *,
    encode: Encode,
    sentence_spans: SentenceSpans,
    config: EvidenceConfig,
    unk_id: int | None = None,
) -> pa.Table:
    """Pair every judgeable claim of a sampled answer with the windows of its usable samples (PAIRS).

    `samples` are records.SAMPLES; those whose outcome is not `ok` make no pair. All windows of a sample are
    paired: samples are short. Spans have chunk_index -1. A claim that does not fit, or that is of an unknown script
    (`window_pairs`), makes no pair.
    """
    usable = samples.filter(pc.equal(samples.column("outcome"), "ok"))
    texts = Texts.of(as_array(usable.column("text")), encode, sentence_spans, config)
    by_request: dict[str, list[int]] = {}
    for k, request_id in enumerate(usable.column("request_id").to_pylist()):
        by_request.setdefault(request_id, []).append(k)
    sample_index = usable.column("sample_index").to_pylist()
    wanted = claims.filter(
        pc.and_(
            pc.is_in(claims.column("request_id"), value_set=pa.array(list(by_request), pa.string())),
            pc.is_null(claims.column("unjudgeable")),
        )
    )
    tokens = Tokens.of(as_array(wanted.column("text")), encode)
    errors = _errors(wanted, tokens, config, unk_id)
    found = FoundPairs(wanted, tokens)
    for row, request_id in enumerate(wanted.column("request_id").to_pylist()):
        if row in errors:
            continue
        ids = tokens.of_text(row)[0]
        for k in by_request[request_id]:
            group = texts.windows(k, k + 1, texts.limit(len(ids)))
            for counts, n_tokens in group.shared([tokens.forms_of(row)]) if group.windows else ():
                found.add(
                    row,
                    group.rows,
                    np.full(len(group.rows), -1, dtype=np.int32),
                    is_cited=np.zeros(len(group.rows), dtype=np.bool_),
                    overlap=(counts / max(1, n_tokens)).astype(np.float32),
                    sample=sample_index[k],
                )
    return found.table(texts.cut)


def premise_texts(scores: pa.Table, log: pa.Table) -> pa.Array:
    """The text of each evidence pair's premise: its spans, with a blank line between; null for rows without spans.

    The rules that read values take a sentence for one statement, and a list item ends without a full stop.
    """
    answers = {request_id: k for k, request_id in enumerate(log.column("request_id").to_pylist())}
    chunks = list_array(log.column("chunks"))
    texts, offsets = chunks.flatten().field("text"), list_offsets(chunks)
    text_of = cache(lambda place: texts[place].as_py())
    premises = list_array(scores.column("premise"))
    parts = (premises.flatten().field(name).to_pylist() for name in ("chunk_index", "start", "end"))
    spans = list(zip(*parts, strict=True))
    out: list[str | None] = []
    for request_id, (lo, hi) in zip(
        scores.column("request_id").to_pylist(), pairwise(list_offsets(premises)), strict=True
    ):
        first = offsets[answers[request_id]]
        pieces = [text_of(first + chunk)[start:end] for chunk, start, end in spans[lo:hi] if chunk >= 0]
        out.append("\n\n".join(pieces) if pieces else None)
    return pa.array(out, pa.string())


def _errors(claims: pa.Table, tokens: Tokens, config: EvidenceConfig, unk_id: int | None) -> dict[int, str]:
    """Row -> why a claim cannot be judged whatever the evidence; of the others nothing."""
    n_tokens = np.diff(tokens.bounds)
    too_long = config.max_pair_tokens - N_SPECIAL_TOKENS - n_tokens < config.min_premise_tokens
    owner = np.repeat(np.arange(len(n_tokens)), n_tokens)
    n_unknown = np.bincount(
        owner[tokens.ids == unk_id] if unk_id is not None else [], minlength=len(n_tokens)
    )
    errors = dict.fromkeys(np.flatnonzero(n_unknown > UNKNOWN_SHARE * n_tokens).tolist(), "unknown_script")
    errors |= dict.fromkeys(np.flatnonzero(too_long).tolist(), "claim_too_long")
    own = claims.column("unjudgeable").to_pylist()
    return errors | {row: reason for row, reason in enumerate(own) if reason}


def _by_answer(
    log: pa.Table, claims: pa.Table, texts: Texts, tokens: Tokens, errors: Mapping[int, str]
) -> Iterator[tuple[int, int, list[int]]]:
    """(answer, limit of its windows, rows of `claims`) of claims in a row that share them; none with an error."""
    answers = {request_id: k for k, request_id in enumerate(log.column("request_id").to_pylist())}
    rows = [
        (answers[request_id], texts.limit(len(tokens.of_text(row)[0])), row)
        for row, request_id in enumerate(claims.column("request_id").to_pylist())
        if row not in errors
    ]
    for (answer, limit), same in groupby(rows, key=lambda row: row[:2]):
        yield answer, limit, [row for _, _, row in same]


def _unpaired(claims: pa.Table, errors: Mapping[int, str]) -> pa.Table:
    rows = sorted(errors)
    own = claims.take(pa.array(rows, pa.int64()))
    columns: dict[str, pa.Array] = {f.name: pa.nulls(len(rows), f.type) for f in SCORES}
    columns |= {
        "request_id": own.column("request_id"),
        "claim_index": own.column("claim_index"),
        "premise": pa.array([[]] * len(rows), pa.list_(SPAN)),
        "is_cited": pa.array([False] * len(rows), pa.bool_()),
        "error": pa.array([errors[row] for row in rows], pa.string()),
    }
    return pa.table(columns, schema=SCORES)
