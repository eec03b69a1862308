"""Claims x chunks -> the (premise, claim) pairs that are judged, as token ids.

A chunk is cut into windows of whole sentences with overlap; a claim is never cut. All windows of cited chunks
are judged, and of the rest those with the best lexical overlap (token coverage of the claim), a cheap order
and never a verdict. A claim that no single window entails is tried again against its best windows joined
(multi-hop). Every text is tokenised once; pairs are slices of those ids, so nothing is searched for in text
afterwards. The module knows no model and no threshold of a verdict. Several granularities and taking the
maximum over premises: Laban et al. 2022 (SummaC, arXiv:2111.09525), tables 5 and 6. A few lines over 300: the pairs of
claims, of joins and of samples share all that is private here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.covers import Windows, covers
from claimscore.jobs.pairs import PAIRS, Floats, FoundPairs, claim_bounds
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
    as_array,
    list_array,
    list_offsets,
    tokens_held,
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
    tokens = Tokens.of(as_array(claims.column("text")), encode)
    errors = _errors(claims, tokens, config, unk_id)
    cited_ids = claims.column("cited_ids").to_pylist()
    found = FoundPairs(claims, tokens)
    for answer, group, rows in _by_answer(log, claims, texts, offsets, tokens, errors):
        if not group.windows:
            errors.update(dict.fromkeys(rows, "no_context"))
            continue
        own = chunk_ids[offsets[answer] : offsets[answer + 1]]
        shared = group.shared([tokens.of_text(row)[0] for row in rows])
        for row, (counts, n_tokens) in zip(rows, shared, strict=True):
            cited_chunks = set(cited_ids[row])
            cited = np.array([chunk_id in cited_chunks for chunk_id in own])[group.places]
            kept = _select(group, counts, cited, config.max_windows)
            found.add(
                row,
                group.rows[kept],
                group.places[kept],
                is_cited=cited[kept],
                overlap=(counts[kept] / max(1, n_tokens)).astype(np.float32),
                sample=None,
            )
    return found.table(texts.cut), _unpaired(claims, errors)


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
    entailment = np.nan_to_num(probs_P3[:, 0], nan=0.0)
    premise_ids, premise_bounds = _flat(pairs.column("premise_ids"))
    claim_ids, claim_bounds_ = _flat(pairs.column("claim_ids"))
    sizes = np.diff(premise_bounds)
    chunk = list_array(pairs.column("premise")).flatten().field("chunk_index").to_numpy(zero_copy_only=False)
    chosen: list[list[int]] = []
    overlap: list[float] = []
    for lo, hi in pairwise(claim_bounds(pairs)):
        if hi - lo < 2 or carries[lo:hi].any():
            continue
        claim = claim_ids[claim_bounds_[lo] : claim_bounds_[lo + 1]]
        wanted = np.unique(claim)
        own = slice(premise_bounds[lo], premise_bounds[hi])
        held = tokens_held(wanted, premise_ids[own], premise_bounds[lo : hi + 1])
        windows = Windows(held, entailment[lo:hi], sizes[lo:hi], chunk[lo:hi])
        for rows in covers(
            windows, config.join_windows, config.max_pair_tokens - N_SPECIAL_TOKENS - len(claim)
        ):
            chosen.append([lo + k for k in rows])
            overlap.append(np.count_nonzero(held[rows].any(axis=0)) / max(1, len(wanted)))
    return _join(pairs, chosen, overlap)


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
            for counts, n_tokens in group.shared([ids]) if group.windows else ():
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
    """The text of each evidence pair's premise: its spans, joined by a blank; null for rows without spans."""
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
        out.append(" ".join(pieces) if pieces else None)
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
    log: pa.Table,
    claims: pa.Table,
    texts: Texts,
    offsets: list[int],
    tokens: Tokens,
    errors: Mapping[int, str],
) -> Iterator[tuple[int, Group, list[int]]]:
    """(answer, windows, rows of `claims`) of claims in a row that share them; claims with an error are left out."""
    answers = {request_id: k for k, request_id in enumerate(log.column("request_id").to_pylist())}
    rows = [
        (answers[request_id], texts.limit(len(tokens.of_text(row)[0])), row)
        for row, request_id in enumerate(claims.column("request_id").to_pylist())
        if row not in errors
    ]
    for (answer, limit), same in groupby(rows, key=lambda row: row[:2]):
        group = texts.windows(offsets[answer], offsets[answer + 1], limit)
        yield answer, group, [row for _, _, row in same]


def _flat(column: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """The values of a list column, and where each list begins; one place more."""
    lists = list_array(column)
    return np.asarray(lists.flatten(), dtype=np.int32), np.array(list_offsets(lists), dtype=np.int64)


def _select(group: Group, shared: Ints, cited: Bools, max_windows: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Windows to judge, ascending: all of cited chunks; of the rest the best, and the best one of the best chunks."""
    rest = np.flatnonzero(~cited)
    if len(rest) <= max_windows:
        return np.arange(len(cited), dtype=np.int32)
    order = rest[np.lexsort((-shared[rest], group.is_repeat[rest]))]
    _, best_of_chunk = np.unique(group.places[order], return_index=True)
    of_chunks = order[np.sort(best_of_chunk)][:max_windows]
    kept = cited.copy()
    kept[order[:max_windows]] = True
    kept[of_chunks] = True
    return np.flatnonzero(kept).astype(np.int32)


def _join(pairs: pa.Table, chosen: list[list[int]], overlap: list[float]) -> pa.Table:
    """One row a list of rows of `pairs`: their premises joined; the first row's claim; `overlap` beside the lists."""
    if not chosen:
        return PAIRS.empty_table()
    sizes = np.array([len(rows) for rows in chosen])
    starts = np.cumsum(sizes) - sizes
    flat = np.concatenate(chosen)
    taken, first = pairs.take(pa.array(flat)), pairs.take(pa.array(flat[starts]))
    ids = _joined(list_array(taken.column("premise_ids")), sizes)
    n_claim = np.asarray(pc.list_value_length(list_array(first.column("claim_ids"))), dtype=np.int32)
    n_tokens = np.asarray(pc.list_value_length(ids), dtype=np.int32) + n_claim + np.int32(N_SPECIAL_TOKENS)
    columns = {
        "premise": _joined(list_array(taken.column("premise")), sizes),
        "is_cited": pa.array(np.logical_or.reduceat(np.asarray(taken.column("is_cited")), starts)),
        "overlap": pa.array(overlap, pa.float32()),
        "n_tokens": pa.array(n_tokens),
        "premise_ids": ids,
    }
    return pa.table([columns.get(name, first.column(name)) for name in PAIRS.names], schema=PAIRS)


def _joined(lists: pa.ListArray, sizes: Ints) -> pa.ListArray:
    """The first `sizes[0]` lists as one, the next `sizes[1]` as another, and so on."""
    bounds = np.array(list_offsets(lists))[np.concatenate([[0], np.cumsum(sizes)])]
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), lists.flatten())


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
