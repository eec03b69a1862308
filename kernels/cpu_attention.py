"""Disentangled attention for CPUs: what `reference.py` computes, in the order that keeps it in the cache.

The distances of a block of queries (or keys) span fewer rows of a position table than those of the whole pair, so each
block multiplies its own slice of the table: L + 31 columns instead of 2 L - 1. The shift from distances to keys is a
strided view. A key's scores run with the query: they are written first, turned, and the others are added to them.
Knows no model. Oracle: reference.disentangled_attention.
Shapes: T packed tokens, H heads, D head size, R rows of a position table; inside a group of pairs of nearly one length,
B pairs, L its longest, N = B * X rows of a block of X.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

GROUP_SCORES = {torch.float32: 1 << 19}
"""Attention scores of one group, at most (heads x L x L x pairs); other dtypes: OTHER_GROUP_SCORES. In fp32 a Zen 4 core
with 1 MiB of L2 was 5 % faster at 2**18 than at 2**20, an Intel core with 2 MiB is 2 to 4 % slower at 2**18; in bf16
2**17 is twice as slow as 2**20, since a call of oneDNN costs some tens of us before it begins."""
OTHER_GROUP_SCORES = 1 << 20
BLOCK_ROWS = 32
"""Queries or keys that share one slice of a position table: 24 to 64 are within 5 %."""


class _Group(NamedTuple):
    """Pairs of nearly one length that lie side by side in the stream."""

    n_pairs: int
    longest: int
    shortest: int
    runs: tuple[tuple[slice, slice], ...]
    """Of each run of pairs of one length: its rows of the stream, and its places in the group."""
    is_beyond: Tensor | None
    """(B, 1, L - the shortest): true beyond a pair's end; None where all pairs have the same length."""


def disentangled_attention(
    q_THD: Tensor,
    k_THD: Tensor,
    v_THD: Tensor,
    c2p_RHD: Tensor | None,
    p2c_RHD: Tensor | None,
    cu_seqlens: Tensor,
    *,
    max_len: int,
    slots: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """`reference.disentangled_attention`: the same arguments, shapes and result, but for rounding."""
    assert slots is None or slots.shape[0] >= 2 * max_len - 1, "a distance without a row"
    n_heads, head_size = q_THD.shape[1:]
    n_terms = 1 + (c2p_RHD is not None) + (p2c_RHD is not None)
    scale = 1 / math.sqrt(head_size * n_terms) if scale is None else scale
    tables = _Tables.of(c2p_RHD, p2c_RHD, slots, max_len)
    qkv_T3HD = _side_by_side(q_THD, k_THD, v_THD)
    out_THD = torch.empty_like(v_THD, memory_format=torch.contiguous_format)
    most = GROUP_SCORES.get(q_THD.dtype, OTHER_GROUP_SCORES)
    for group in _groups(tuple(cu_seqlens.tolist()), most // n_heads):
        qkv_3HBLD = _rows_of(group, qkv_T3HD)
        scores_HBLL = _scores(qkv_3HBLD, tables, scale)
        if group.is_beyond is not None:
            scores_HBLL[..., group.shortest :].masked_fill_(group.is_beyond, -math.inf)
        torch.softmax(scores_HBLL, -1, out=scores_HBLL)
        probs_XLL = scores_HBLL.to(v_THD.dtype).flatten(0, 1)
        context_HBLD = torch.bmm(probs_XLL, qkv_3HBLD[2].flatten(0, 1)).view(qkv_3HBLD.shape[1:])
        for rows, pairs in group.runs:
            of_pairs = out_THD[rows].unflatten(0, (pairs.stop - pairs.start, -1))
            of_pairs.copy_(context_HBLD[:, pairs, : of_pairs.shape[1]].permute(1, 2, 0, 3))
    return out_THD


def _rows_of(group: _Group, qkv_T3HD: Tensor) -> Tensor:
    """(3, H, B, L, D): a group's rows of the stream; 0 beyond a pair's end."""
    n_heads, head_size = qkv_T3HD.shape[2:]
    out_3HBLD = qkv_T3HD.new_empty((3, n_heads, group.n_pairs, group.longest, head_size))
    for rows, pairs in group.runs:
        of_pairs = qkv_T3HD[rows].unflatten(0, (pairs.stop - pairs.start, -1))
        out_3HBLD[:, :, pairs, : of_pairs.shape[1]] = of_pairs.permute(2, 3, 0, 1, 4)
        out_3HBLD[:, :, pairs, of_pairs.shape[1] :] = 0
    return out_3HBLD


def _same_length(row: int, lengths: Sequence[int]) -> Iterator[tuple[slice, slice]]:
    """`_Group.runs` of pairs of these lengths that begin at `row`."""
    place = 0
    for length, run in itertools.groupby(lengths):
        n_pairs = len(list(run))
        yield slice(row, row + n_pairs * length), slice(place, place + n_pairs)
        row, place = row + n_pairs * length, place + n_pairs


class _Tables(NamedTuple):
    """The rows of the tables for the distances of the longest pair, as columns; a shorter one takes those in the middle."""

    c2p: Tensor | None
    """(H, D, W) by falling distance, so that the scores of one query run upwards with the key."""
    p2c: Tensor | None
    """(H, D, W) by rising distance, so that the scores of one key run upwards with the query."""

    @classmethod
    def of(
        cls, c2p_RHD: Tensor | None, p2c_RHD: Tensor | None, slots: Tensor | None, max_len: int
    ) -> _Tables:
        parts: list[Tensor | None] = []
        for table_RHD, is_falling in ((c2p_RHD, True), (p2c_RHD, False)):
            if table_RHD is None:
                parts.append(None)
                continue
            rows = _clamped_slots(table_RHD, max_len) if slots is None else slots
            centre = rows.shape[0] // 2
            rows_W = rows[centre - max_len + 1 : centre + max_len]
            chosen_WHD = table_RHD.index_select(0, rows_W.flip(0) if is_falling else rows_W)
            parts.append(chosen_WHD.permute(1, 2, 0).contiguous())
        return cls(*parts)


def _scores(qkv_3HBLD: Tensor, tables: _Tables, scale: float) -> Tensor:
    """Scaled scores (H, B, L, L) of a group, in at least fp32.

    The queries' table comes first, since what is written to fresh scores need not be added: its transposed view is read
    once. Queries times keys come last, since a product can add to what is there.
    """
    _, n_heads, n_pairs, length, _ = qkv_3HBLD.shape
    wide = torch.promote_types(qkv_3HBLD.dtype, torch.float32)
    scores_HBLL = qkv_3HBLD.new_empty((n_heads, n_pairs, length, length), dtype=wide)
    n_blocks = math.ceil(length / BLOCK_ROWS)
    blocks = [slice(length * k // n_blocks, length * (k + 1) // n_blocks) for k in range(n_blocks)]
    if tables.p2c is None:
        scores_HBLL.zero_()
    else:
        for block in blocks:
            shifted_HBXL = _by_distance(qkv_3HBLD[1], tables.p2c, block)
            scores_HBLL[..., block] = shifted_HBXL.transpose(2, 3)
    if tables.c2p is not None:
        for block in blocks:
            scores_HBLL[:, :, block] += _by_distance(qkv_3HBLD[0], tables.c2p, block)
    q_XLD, k_XLD = qkv_3HBLD[:2].flatten(1, 2)
    scores_XLL = scores_HBLL.flatten(0, 1)
    if wide == qkv_3HBLD.dtype:
        scores_XLL.baddbmm_(q_XLD, k_XLD.transpose(1, 2), beta=scale, alpha=scale)
    else:
        scores_XLL.add_(torch.bmm(q_XLD, k_XLD.transpose(1, 2))).mul_(scale)
    return scores_HBLL


def _by_distance(rows_HBLD: Tensor, table_HDW: Tensor, block: slice) -> Tensor:
    """Scores (H, B, X, L) of the rows `block` of each pair against its L others: a view of the product."""
    n_heads, n_pairs, length, head_size = rows_HBLD.shape
    n_rows = block.stop - block.start
    width = length + n_rows - 1
    start = (table_HDW.shape[2] + 1) // 2 - block.stop
    rows_HND = rows_HBLD[:, :, block].reshape(n_heads, n_pairs * n_rows, head_size)
    product_HNW = torch.bmm(rows_HND, table_HDW[:, :, start : start + width])
    strides = (n_pairs * n_rows * width, n_rows * width, width - 1, 1)
    return product_HNW.as_strided((n_heads, n_pairs, n_rows, length), strides, n_rows - 1)


def _side_by_side(*parts_THD: Tensor) -> Tensor:
    """(T, 3, H, D): a view where the parts are slices of one fused product, as the encoder's are; else a copy."""
    q_THD = parts_THD[0]
    n_tokens, n_heads, head_size = q_THD.shape
    size = n_heads * head_size
    gaps = {b.data_ptr() - a.data_ptr() for a, b in itertools.pairwise(parts_THD)}
    strides = {part.stride() for part in parts_THD}
    if gaps == {size * q_THD.element_size()} and strides == {(3 * size, head_size, 1)}:
        return q_THD.as_strided((n_tokens, 3, n_heads, head_size), (3 * size, size, head_size, 1))
    return torch.stack(parts_THD, 1)


def _clamped_slots(table_RHD: Tensor, max_len: int) -> Tensor:
    """Table rows of the distances -(max_len - 1) to max_len - 1: plain relative positions, clamped to the table."""
    n_rows = table_RHD.shape[0]
    return (torch.arange(1 - max_len, max_len) + n_rows // 2).clamp(0, n_rows - 1)


@functools.lru_cache(maxsize=64)
def _groups(bounds: tuple[int, ...], most_squares: int) -> tuple[_Group, ...]:
    """Neighbours of nearly one length together, padded by at most 1/16; micro-batches come sorted by length.

    Every layer asks for the same ones.
    """
    pairs = [(end - start, start) for start, end in itertools.pairwise(bounds) if end > start]
    groups: list[_Group] = []
    lo = 0
    while lo < len(pairs):
        longest = shortest = pairs[lo][0]
        hi = lo + 1
        while hi < len(pairs):
            longest_then, shortest_then = max(longest, pairs[hi][0]), min(shortest, pairs[hi][0])
            fits = (hi + 1 - lo) * longest_then**2 <= most_squares
            if not fits or shortest_then < longest_then - longest_then // 16:
                break
            longest, shortest, hi = longest_then, shortest_then, hi + 1
        lengths = [length for length, _ in pairs[lo:hi]]
        is_beyond = None
        if longest > shortest:
            is_beyond = torch.arange(shortest, longest) >= torch.tensor(lengths)[:, None, None]
        runs = tuple(_same_length(pairs[lo][1], lengths))
        groups.append(_Group(hi - lo, longest, shortest, runs, is_beyond))
        lo = hi
    return tuple(groups)
