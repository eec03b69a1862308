"""Claims x chunks -> the (premise, claim) pairs that are judged, as token ids.

A claim meets windows of single passages and covers made of several (premises.py says which). A claim is never cut.
Every text is tokenised once; pairs are slices of those ids, so nothing is searched for in text afterwards. The module
knows no model and no threshold of a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import EvidenceConfig
from claimscore.jobs.overlaps import Forms, Grid
from claimscore.jobs.pairs import FoundPairs
from claimscore.jobs.premises import MAX_CELLS, Claims, add_covers, add_windows
from claimscore.jobs.records import SCORES, SPAN
from claimscore.jobs.windows import (
    N_SPECIAL_TOKENS,
    Bools,
    Encode,
    Ints,
    Pieces,
    SentenceSpans,
    Texts,
    Tokens,
    as_array,
    list_array,
    list_offsets,
)

UNKNOWN_SHARE = 0.25
"""A claim with more tokens than this unknown to the tokenizer is not judged: unknown words entail one another."""


SAMPLES_AT_ONCE = 2_000
"""Claims beside a sample: each has a few windows."""


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
        sentence_spans: texts -> list<struct<start, end, leans>> (segment.sentence_spans).
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
    parts: list[_Part] = []
    for answer, limit, rows in _by_answer(log, claims, texts, tokens, errors):
        lo, hi = offsets[answer], offsets[answer + 1]
        windows, room = texts.windows(lo, hi, limit), min(limit, config.cover_tokens)
        if len(windows.rows):
            parts.append(_Part(rows, windows, texts.sentences(lo, hi, room), room, chunk_ids[lo:hi]))
        else:
            errors.update(dict.fromkeys(rows, "no_context"))
    cut, forms = texts.columns(), Forms.of(tokens)
    for block in _blocks(parts, forms):
        some = Claims(
            _cited(cited_ids, block),
            np.array([len(part.chunk_ids) for part in block for _ in part.rows]),
            np.array([part.room for part in block for _ in part.rows]),
        )
        beside = Grid.of([(part.rows, part.windows) for part in block], forms, cut, texts.tokens)
        add_windows(found, some, beside, texts.copies(beside.rows), cut, config)
        beside = Grid.of([(part.rows, part.sentences) for part in block], forms, cut, texts.tokens)
        add_covers(found, retries, some, beside, cut)
    ids = texts.tokens.ids
    return Found(found.table(cut, ids), retries.table(cut, ids), _unpaired(claims, errors))


class _Part(NamedTuple):
    """Claims of one answer, and what they may meet."""

    rows: list[int]
    windows: Pieces
    sentences: Pieces
    room: int
    chunk_ids: list[str]

    def cells(self, forms: Forms) -> int:
        """What a claim of these takes beside the pieces of its answer, at most."""
        longest = max(len(self.windows.rows), len(self.sentences.rows), len(self.chunk_ids))
        return longest * int(forms.n_words[self.rows].max(initial=1))


def _blocks(parts: Iterable[_Part], forms: Forms) -> Iterator[list[_Part]]:
    """As many claims at a time, of one answer or several, as keep to MAX_CELLS: one at least, whatever it comes to."""
    block: list[_Part] = []
    n_claims = widest = 0
    for part in parts:
        width = part.cells(forms)
        step = max(1, MAX_CELLS // width)
        for first in range(0, len(part.rows), step):
            some = part._replace(rows=part.rows[first : first + step])
            n_claims, widest = n_claims + len(some.rows), max(widest, width)
            if block and n_claims * widest > MAX_CELLS:
                yield block
                block, n_claims, widest = [], len(some.rows), width
            block.append(some)
    if block:
        yield block


def _cited(cited_ids: list[list[str]], block: list[_Part]) -> Bools:
    """Which chunks of its answer each claim cites, (claims, most chunks of an answer)."""
    n_claims = sum(len(part.rows) for part in block)
    cited = np.zeros((n_claims, max(len(part.chunk_ids) for part in block)), np.bool_)
    owners = ((part.chunk_ids, row) for part in block for row in part.rows)
    for of_claim, (chunk_ids, row) in zip(cited, owners, strict=True):
        if ids := set(cited_ids[row]):  # most of 100,000 claims cite nothing: no list of the chunks for each
            of_claim[: len(chunk_ids)] = [chunk_id in ids for chunk_id in chunk_ids]
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
    lengths = np.diff(tokens.bounds).tolist()
    parts, indices = [], []
    for row, request_id in enumerate(wanted.column("request_id").to_pylist()):
        for k in by_request[request_id] if row not in errors else ():
            windows = texts.windows(k, k + 1, texts.limit(lengths[row]))
            if len(windows.rows):
                parts.append(([row], windows))
                indices.append(sample_index[k])
    found, cut, forms = FoundPairs(wanted, tokens), texts.columns(), Forms.of(tokens)
    for first in range(0, len(parts), SAMPLES_AT_ONCE):
        some = slice(first, first + SAMPLES_AT_ONCE)
        grid = Grid.of(parts[some], forms, cut, texts.tokens)
        found.add(
            grid.claims[grid.owner],
            grid.rows,
            np.full(len(grid.rows), -1),
            is_cited=np.zeros(len(grid.rows), np.bool_),
            overlap=grid.overlap,
            samples=np.array(indices[some], np.int64)[grid.owner],
        )
    return found.table(cut, texts.tokens.ids)


def answers_of(rows: pa.Table, log: pa.Table) -> Ints:
    """Of each of some rows with a `request_id`: the row of its answer in `log`."""
    ids = as_array(log.column("request_id"))
    return np.asarray(pc.index_in(as_array(rows.column("request_id")), value_set=ids))


def premise_texts(scores: pa.Table, log: pa.Table) -> pa.Array:
    """The text of each evidence pair's premise: its spans, with a blank line between; null for rows without spans.

    The rules that read values take a sentence for one statement, and a list item ends without a full stop.
    """
    chunks, premises = list_array(log.column("chunks")), list_array(scores.column("premise"))
    bounds = np.array(list_offsets(premises))
    spans = premises.flatten()
    chunk, start, end = (np.asarray(spans.field(name)) for name in ("chunk_index", "start", "end"))
    place = np.repeat(np.array(list_offsets(chunks))[answers_of(scores, log)], np.diff(bounds)) + chunk
    is_some = chunk >= 0  # those of samples are of no chunk
    needed, at = np.unique(place[is_some], return_inverse=True)
    texts = chunks.flatten().field("text").take(pa.array(needed)).to_pylist()
    columns = (at.tolist(), start[is_some].tolist(), end[is_some].tolist())
    pieces = [texts[k][lo:hi] for k, lo, hi in zip(*columns, strict=True)]
    kept = np.concatenate([[0], np.cumsum(is_some)])[bounds].tolist()
    out = ["\n\n".join(pieces[lo:hi]) if hi > lo else None for lo, hi in pairwise(kept)]
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
    lengths = np.diff(tokens.bounds).tolist()
    rows = [
        (answers[request_id], texts.limit(lengths[row]), row)
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
