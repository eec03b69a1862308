"""Claims x chunks -> the (premise, claim) pairs that are judged, as token ids.

A chunk is cut into windows of whole sentences with overlap; a claim is never cut. All windows of cited chunks
are judged, and of the rest those with the best lexical overlap (token coverage of the claim), a cheap order
and never a verdict. A claim that no single window entails is tried again against its best windows joined
(multi-hop). Every text is tokenised once; pairs are slices of those ids, so nothing is searched for in text
afterwards. The module knows no model and no threshold of a verdict. Several granularities and taking the
maximum over premises: Laban et al. 2022 (SummaC, arXiv:2111.09525), tables 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.covers import Windows, covers, tokens_held
from claimscore.jobs.pairs import PAIRS, Floats, PairRows, claim_bounds
from claimscore.jobs.records import SCORES, SPAN
from claimscore.jobs.windows import (
    N_SPECIAL_TOKENS,
    Bools,
    Encode,
    Group,
    Ints,
    SentenceSpans,
    Texts,
    Tokens,
    Window,
    as_array,
    list_array,
    list_offsets,
)

UNKNOWN_SHARE = 0.25
"""A claim with more tokens than this unknown to the tokenizer is not judged: unknown words entail one another."""


def window_pairs(
    log: pa.Table,
    claims: pa.Table,
    *,
    encode: Encode,
    sentence_spans: SentenceSpans,
    config: EvidenceConfig,
    unk_id: int | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Pair every claim with windows of its answer's chunks.

    Another chunk at the end of an answer takes the place of a window only where it shares more of the claim's tokens
    than that window does and `max_windows` are taken; the best window of each chunk stays in any case, as long as
    there are at most `max_windows` chunks. Not promised: that a chunk which shares few of the claim's words, and
    entails it all the same, is judged beside more than `max_windows` chunks that share more.

    Args:
        log: answers (records.LOG).
        claims: their claims (records.CLAIMS).
        encode: texts -> ids, starts, ends without special tokens (judge.Tokenizer.encode).
        sentence_spans: texts -> list<struct<start, end>> (segment.sentence_spans).
        config: window sizes and limits.
        unk_id: the id of tokens that the tokenizer does not know; None: it knows all.

    Returns:
        Pairs (PAIRS), by claim, then chunk, then place in it; and, as records.SCORES rows with an `error`, the
        claims that were paired with nothing: `no_context`, `claim_too_long`, `unknown_script` (more than a quarter
        of the claim's tokens are `unk_id`, and one unknown word entails any other), or the claim's own reason.
        No claims give two empty tables.
    """
    chunks = list_array(log.column("chunks"))
    texts = Texts.of(chunks.flatten().field("text"), encode, sentence_spans, config)
    offsets = list_offsets(chunks)
    chunk_ids = chunks.flatten().field("id").to_pylist()
    rows, unpaired = PairRows(), []
    for claim in _claims(log, claims, encode):
        lo, hi = offsets[claim.answer], offsets[claim.answer + 1]
        error = claim.unjudgeable or _unfit(claim, config, unk_id)
        group = None if error else texts.windows(lo, hi, len(claim.ids))
        if not (group and group.windows):
            unpaired.append((claim.request_id, claim.claim_index, error or "no_context"))
            continue
        cited = np.array([chunk_id in claim.cited for chunk_id in chunk_ids[lo:hi]])[group.places]
        for k in _select(group, group.shared(claim.distinct), cited, config.max_windows):
            chunk, window = int(group.places[k]), group.windows[k]
            rows.add(**_pair(claim, chunk, window, is_cited=bool(cited[k]), sample_index=None))
    return rows.table(), _unpaired(unpaired)


def joined_pairs(pairs: pa.Table, probs_P3: Floats, config: EvidenceConfig, *, carries: Bools) -> pa.Table:
    """Pairs whose premise is windows of one claim joined in document order.

    For each claim with two windows or more, none of which carries it alone: the best
    cover (covers.py), and for each of its windows the best cover without that window's chunk; `join_windows` + 1
    joined pairs a claim at most. One more chunk, whatever it says, therefore never takes away the cover that was best
    before; several chunks that cover the claim better can. Joined pairs that would be too long are left out.

    Args:
        pairs: what `window_pairs` gave, in its order.
        probs_P3: what the judge said of them; NaN counts as no entailment.
        config: how many windows, and for which claims.
        carries: beside `pairs`, whether the window alone supports its claim so surely that none need be joined, shape
            (P,). A window that entails and supports nothing must not be among them: one chunk more would then take
            away what two others support together.

    Returns:
        PAIRS; no pairs give none.
    """
    if config.join_windows < 2 or not pairs.num_rows:
        return PAIRS.empty_table()
    claim_ids = list_array(pairs.column("claim_ids"))
    entailment = np.nan_to_num(probs_P3[:, 0], nan=0.0)
    sizes = np.asarray(pc.list_value_length(pairs.column("premise_ids")), dtype=np.int32)
    chunk = list_array(pairs.column("premise")).flatten().field("chunk_index").to_numpy(zero_copy_only=False)
    chosen: list[list[int]] = []
    for lo, hi in pairwise(claim_bounds(pairs)):
        if hi - lo < 2 or carries[lo:hi].any():
            continue
        wanted = np.unique(np.asarray(claim_ids[lo].values, dtype=np.int32))
        room = config.max_pair_tokens - N_SPECIAL_TOKENS - len(claim_ids[lo])
        held = tokens_held(wanted, list_array(pairs.column("premise_ids").slice(lo, hi - lo)))
        windows = Windows(held, entailment[lo:hi], sizes[lo:hi], chunk[lo:hi])
        chosen += [[lo + k for k in rows] for rows in covers(windows, config.join_windows, room)]
    return _join(pairs, chosen)


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
    rows = PairRows()
    for claim in _claims(None, wanted, encode):
        if _unfit(claim, config, unk_id):
            continue
        for k in by_request[claim.request_id]:
            for window in texts.windows(k, k + 1, len(claim.ids)).windows:
                rows.add(**_pair(claim, -1, window, is_cited=False, sample_index=sample_index[k]))
    return rows.table()


def premise_texts(scores: pa.Table, log: pa.Table) -> pa.Array:
    """The text of each evidence pair's premise: its spans, joined by a blank; null for rows without spans."""
    answers = {request_id: k for k, request_id in enumerate(log.column("request_id").to_pylist())}
    chunks = list_array(log.column("chunks"))
    texts, offsets = chunks.flatten().field("text"), list_offsets(chunks)
    out: list[str | None] = []
    for request_id, premise in zip(
        scores.column("request_id").to_pylist(), scores.column("premise").to_pylist(), strict=True
    ):
        first = offsets[answers[request_id]]
        pieces = [
            texts[first + s["chunk_index"]].as_py()[s["start"] : s["end"]]
            for s in premise
            if s["chunk_index"] >= 0
        ]
        out.append(" ".join(pieces) if pieces else None)
    return pa.array(out, pa.string())


@dataclass(frozen=True, slots=True)
class _Claim:
    request_id: str
    claim_index: int
    answer: int
    ids: Ints
    distinct: frozenset[int]
    cited: frozenset[str]
    unjudgeable: str | None


def _claims(log: pa.Table | None, claims: pa.Table, encode: Encode) -> Iterator[_Claim]:
    answers = {} if log is None else {r: k for k, r in enumerate(log.column("request_id").to_pylist())}
    tokens = Tokens.of(as_array(claims.column("text")), encode)
    columns = (
        claims.column(name).to_pylist() for name in ("request_id", "claim_index", "cited_ids", "unjudgeable")
    )
    for t, (request_id, claim_index, cited, unjudgeable) in enumerate(zip(*columns, strict=True)):
        ids = tokens.of_text(t)[0]
        yield _Claim(
            request_id=request_id,
            claim_index=claim_index,
            answer=answers.get(request_id, -1),
            ids=ids,
            distinct=frozenset(ids.tolist()),
            cited=frozenset(cited),
            unjudgeable=unjudgeable,
        )


def _unfit(claim: _Claim, config: EvidenceConfig, unk_id: int | None) -> str | None:
    """Why a claim cannot be judged whatever the evidence; None: it can."""
    if config.max_pair_tokens - N_SPECIAL_TOKENS - len(claim.ids) < config.min_premise_tokens:
        return "claim_too_long"
    if unk_id is not None and np.count_nonzero(claim.ids == unk_id) > UNKNOWN_SHARE * len(claim.ids):
        return "unknown_script"
    return None


def _select(group: Group, shared: Ints, cited: Bools, max_windows: int) -> list[int]:
    """Windows to judge, ascending: all of cited chunks; of the rest the best, and the best one of the best chunks."""
    rest = np.flatnonzero(~cited)
    if len(rest) > max_windows:
        order = rest[np.lexsort((-shared[rest], group.is_repeat[rest]))]
        _, best_of_chunk = np.unique(group.places[order], return_index=True)
        of_chunks = order[np.sort(best_of_chunk)][:max_windows]
        rest = np.union1d(order[:max_windows], of_chunks)
    kept: list[int] = np.union1d(np.flatnonzero(cited), rest).tolist()
    return kept


def _pair(
    claim: _Claim, chunk: int, window: Window, *, is_cited: bool, sample_index: int | None
) -> dict[str, Any]:
    """One row of PAIRS; overlap is the share of the claim's distinct tokens that the window holds."""
    return {
        "request_id": claim.request_id,
        "claim_index": claim.claim_index,
        "premise": [{"chunk_index": chunk, "start": window.start, "end": window.end}],
        "sample_index": sample_index,
        "is_cited": is_cited,
        "overlap": len(claim.distinct & window.distinct) / max(1, len(claim.distinct)),
        "n_tokens": len(window.ids) + len(claim.ids) + N_SPECIAL_TOKENS,
        "premise_ids": window.ids,
        "claim_ids": claim.ids,
    }


def _join(pairs: pa.Table, chosen: list[list[int]]) -> pa.Table:
    """One row a list of rows of `pairs`: their premises joined; the first row's claim."""
    out = PairRows()
    for rows in chosen:
        parts = pairs.take(pa.array(rows)).to_pylist()
        ids = np.concatenate([np.array(p["premise_ids"], dtype=np.int32) for p in parts])
        claim_ids = np.array(parts[0]["claim_ids"], dtype=np.int32)
        wanted = set(claim_ids.tolist())
        joined = {
            "premise": [span for p in parts for span in p["premise"]],
            "is_cited": any(p["is_cited"] for p in parts),
            "overlap": len(wanted.intersection(ids.tolist())) / max(1, len(wanted)),
            "n_tokens": len(ids) + len(claim_ids) + N_SPECIAL_TOKENS,
            "premise_ids": ids,
            "claim_ids": claim_ids,
        }
        out.add(**(parts[0] | joined))
    return out.table()


def _unpaired(rows: list[tuple[str, int, str]]) -> pa.Table:
    columns: dict[str, pa.Array] = {f.name: pa.nulls(len(rows), f.type) for f in SCORES}
    columns |= {
        "request_id": pa.array([r[0] for r in rows], pa.string()),
        "claim_index": pa.array([r[1] for r in rows], pa.int32()),
        "premise": pa.array([[]] * len(rows), pa.list_(SPAN)),
        "is_cited": pa.array([False] * len(rows), pa.bool_()),
        "error": pa.array([r[2] for r in rows], pa.string()),
    }
    return pa.table(columns, schema=SCORES)
