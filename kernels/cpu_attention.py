"""Disentangled attention for CPUs: what `reference.py` computes, in the order that keeps it in the cache.

The distances of a block of queries (or keys) span fewer rows of a position table than those of the whole pair, so each
block multiplies its own slice of the table: L + 31 columns instead of 2 L - 1. The shift from distances to keys is a
strided view; a key's scores run with the query, so they are copied once into rows (1.3 to 8 times as fast as adding the
transposed view). Where lengths are equal nothing is gathered. Knows no model. Oracle: reference.disentangled_attention.
Shapes: T packed tokens, H heads, D head size, R rows of a position table; inside a group of pairs of nearly one length,
B pairs, L its longest, N = B * L rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

GROUP_SCORES = {torch.float32: 1 << 18}
"""Attention scores of one group, at most (heads x L x L x pairs); other dtypes: OTHER_GROUP_SCORES. One Zen 4 core with
1 MiB of L2: in fp32 2**18 is 5 % faster than 2**20, in bf16 2**17 is twice as slow
as 2**20, since a call of oneDNN costs some tens of us before it begins."""
OTHER_GROUP_SCORES = 1 << 20
BLOCK_ROWS = 32
"""Queries or keys that share one slice of a position table: 24 to 64 are within 5 %."""


class _Group(NamedTuple):
    first: int
    """First row of the stream; a group's pairs lie side by side."""
    n_pairs: int
    length: int
    rows: Tensor | None
    """(N,): rows of the stream, a pair's own last one beyond its end; None: first, first + 1, ..."""
    is_real: Tensor | None
    """(B, L): false beyond a pair's end; None where all pairs have the same length."""


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
    for group in _groups(cu_seqlens.tolist(), most // n_heads):
        last = group.first + group.n_pairs * group.length
        rows_N3HD = (
            qkv_T3HD[group.first : last]
            if group.rows is None
            else qkv_T3HD.flatten(1).index_select(0, group.rows).unflatten(1, qkv_T3HD.shape[1:])
        )
        qkv_3HBLD = rows_N3HD.permute(1, 2, 0, 3).contiguous().unflatten(2, (group.n_pairs, group.length))
        scores_HBLL = _scores(qkv_3HBLD, tables, scale)
        if group.is_real is not None:
            scores_HBLL.masked_fill_(~group.is_real[:, None, :], -math.inf)
        torch.softmax(scores_HBLL, -1, out=scores_HBLL)
        probs_XLL = scores_HBLL.to(v_THD.dtype).flatten(0, 1)
        context_NHD = (
            torch.bmm(probs_XLL, qkv_3HBLD[2].flatten(0, 1)).view(n_heads, -1, head_size).transpose(0, 1)
        )
        if group.rows is None or group.is_real is None:
            out_THD[group.first : last] = context_NHD
        else:
            real_N = group.is_real.reshape(-1).nonzero().squeeze(1)
            out_THD[group.rows[real_N]] = context_NHD[real_N]
    return out_THD


class _Tables(NamedTuple):
    """The rows of the tables for the distances of the longest pair; a shorter one takes those in the middle."""

    stacked: Tensor | None
    """(K * H, W, D) of the K tables given: the keys' by falling distance, so that the scores of one query run upwards
    with the key; the queries' by rising distance, so that those of one key run upwards with the query."""
    has_keys: bool
    has_queries: bool

    @classmethod
    def of(
        cls, c2p_RHD: Tensor | None, p2c_RHD: Tensor | None, slots: Tensor | None, max_len: int
    ) -> _Tables:
        parts: list[Tensor] = []
        for table_RHD, is_falling in ((c2p_RHD, True), (p2c_RHD, False)):
            if table_RHD is not None:
                rows = _clamped_slots(table_RHD, max_len) if slots is None else slots
                centre = rows.shape[0] // 2
                rows_W = rows[centre - max_len + 1 : centre + max_len]
                chosen_WHD = table_RHD.index_select(0, rows_W.flip(0) if is_falling else rows_W)
                parts.append(chosen_WHD.transpose(0, 1))
        return cls(torch.cat(parts) if parts else None, c2p_RHD is not None, p2c_RHD is not None)


def _scores(qkv_3HBLD: Tensor, tables: _Tables, scale: float) -> Tensor:
    """Scaled scores (H, B, L, L) of a group, in at least fp32."""
    _, n_heads, n_pairs, length, _ = qkv_3HBLD.shape
    q_XLD, k_XLD = qkv_3HBLD[:2].flatten(1, 2)
    scores_XLL = torch.bmm(q_XLD, k_XLD.transpose(1, 2))
    wide = torch.promote_types(scores_XLL.dtype, torch.float32)
    scores_HBLL = scores_XLL.to(wide).mul_(scale).view(n_heads, n_pairs, length, length)
    if tables.stacked is None:
        return scores_HBLL
    rows_KHBLD = qkv_3HBLD[0 if tables.has_keys else 1 : 2 if tables.has_queries else 1]
    block = math.ceil(length / math.ceil(length / BLOCK_ROWS))
    for first in range(0, length, block):
        last = min(first + block, length)
        shifted_KHBXL = _by_distance(rows_KHBLD[:, :, :, first:last], tables.stacked, first, length)
        if tables.has_keys:
            scores_HBLL[:, :, first:last].add_(shifted_KHBXL[0], alpha=scale)
        if tables.has_queries:
            scores_HBLL[..., first:last].add_(shifted_KHBXL[-1].transpose(2, 3).contiguous(), alpha=scale)
    return scores_HBLL


def _by_distance(rows_KHBXD: Tensor, table_YWD: Tensor, first: int, length: int) -> Tensor:
    """Scores (K, H, B, X, L) of X rows of each pair, from `first` on, against its L others: a view of the products.

    One product for both tables: a call of oneDNN costs some tens of us before it begins.
    """
    n_tables, n_heads, n_pairs, n_rows, head_size = rows_KHBXD.shape
    width = length + n_rows - 1
    start = (table_YWD.shape[1] + 1) // 2 - first - n_rows
    rows_YND = rows_KHBXD.reshape(n_tables * n_heads, n_pairs * n_rows, head_size)
    products_YNW = torch.bmm(rows_YND, table_YWD[:, start : start + width].transpose(1, 2))
    of_head = n_pairs * n_rows * width
    strides = (n_heads * of_head, of_head, n_rows * width, width - 1, 1)
    return products_YNW.as_strided((n_tables, n_heads, n_pairs, n_rows, length), strides, n_rows - 1)


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


def _groups(bounds: list[int], most_squares: int) -> Iterator[_Group]:
    """Neighbours of nearly one length together, padded by at most 1/16; micro-batches come sorted by length."""
    pairs = [(end - start, start) for start, end in itertools.pairwise(bounds) if end > start]
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
        first, n_pairs = pairs[lo][1], hi - lo
        if longest == shortest:
            yield _Group(first, n_pairs, longest, None, None)
        else:
            lengths_B, starts_B = torch.tensor(pairs[lo:hi]).unbind(1)
            offsets_L = torch.arange(longest)
            rows_BL = starts_B[:, None] + torch.minimum(offsets_L, lengths_B[:, None] - 1)
            yield _Group(first, n_pairs, longest, rows_BL.reshape(-1), offsets_L < lengths_B[:, None])
        lo = hi
