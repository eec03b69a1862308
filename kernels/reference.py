"""Every op of the encoder in plain PyTorch: the oracle of the kernels, and what runs where there is no kernel.

The ops work on a packed stream and read no row outside the pair they are computing, so a NaN in one pair
cannot reach another. They know no model, no checkpoint and no padding token. Method: disentangled attention,
He et al. 2021 (arXiv:2006.03654) eq. 4, with the relative-position lookup done as a strided view: once the
table has one row a distance, the score of (i, j) lies at i * (W - 1) + j + L - 1 of query i's row, so no gather.
Shapes: T packed tokens, P pairs, H heads, D head size, R rows of a position table; inside a group of pairs of
nearly one length, B pairs, L its longest, W = 2 * L - 1 distances, N = B * L rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

GROUP_SCORES = 1 << 20
"""Attention scores (heads x L x L x pairs) of one group, at most. On a CPU core, DeBERTa-v3-xsmall at 116 tokens:
2**17 to 2**21 are within 5 % in fp32; in bf16 2**17 is 20 % slower than 2**21, whose buffers take twice as much."""


class _Group(NamedTuple):
    rows: Tensor
    """(B, L): row of the stream; beyond a pair's end its own last row, so that nothing of a neighbour is read."""
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
    """Attend within each packed pair with content and relative-position scores.

    score(i, j) = scale * (q_i . k_j + q_i . c2p[slot(i - j)] + k_j . p2c[slot(i - j)]), softmax over j in at
    least fp32. Either table may be None, and its term is left out.

    Args:
        q_THD: queries of the stream, in any floating dtype.
        k_THD: its keys.
        v_THD: its values.
        c2p_RHD: projected relative keys, one row a position bucket.
        p2c_RHD: projected relative queries, likewise.
        cu_seqlens: (P + 1,) cumulative tokens from 0; pair p owns rows cu_seqlens[p]:cu_seqlens[p + 1].
        max_len: tokens of the longest pair.
        slots: (2 * S - 1,) int64, S >= max_len: the table row of distance d at index d + S - 1.
            None: distance d has row d + R // 2, clamped to the table (plain relative positions).
        scale: None: 1 / sqrt(D * (1 + number of tables given)).

    Returns:
        (T, H, D) in the dtype of `q_THD`; zero pairs give zero rows.
    """
    assert slots is None or slots.shape[0] >= 2 * max_len - 1, "a distance without a row"
    n_heads, head_size = q_THD.shape[1:]
    scale = _scale(head_size, c2p_RHD, p2c_RHD) if scale is None else scale
    out_THD = torch.empty_like(v_THD, memory_format=torch.contiguous_format)
    for rows_BL, is_real_BL in _groups(cu_seqlens, n_heads):
        n_pairs, length = rows_BL.shape
        rows_N = rows_BL.reshape(-1)
        q_HND, k_HND, v_HND = (x[rows_N].transpose(0, 1).contiguous() for x in (q_THD, k_THD, v_THD))
        scores_HBLL = _scores(
            q_HND, k_HND, c2p_RHD, p2c_RHD, _slots(slots, c2p_RHD, p2c_RHD, length), length=length
        )
        scores_HBLL *= scale
        if is_real_BL is not None:
            scores_HBLL.masked_fill_(~is_real_BL[:, None, :], -math.inf)
        probs_XLL = torch.softmax(scores_HBLL, -1).to(v_THD.dtype).view(n_heads * n_pairs, length, length)
        context_XLD = torch.bmm(probs_XLL, v_HND.view(n_heads * n_pairs, length, head_size))
        context_NHD = context_XLD.view(n_heads, n_pairs * length, head_size).transpose(0, 1)
        if is_real_BL is None:
            out_THD[rows_N] = context_NHD
        else:
            is_real_N = is_real_BL.reshape(-1)
            out_THD[rows_N[is_real_N]] = context_NHD[is_real_N]
    return out_THD


def cls_attention(
    q_PHD: Tensor,
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
    """`disentangled_attention` of each pair's first token alone: all that a classifier needs of the last layer.

    Args and errors as there; `q_PHD` holds the query of row cu_seqlens[p] at p.

    Returns:
        (P, H, D) in the dtype of `q_PHD`.
    """
    assert slots is None or slots.shape[0] >= 2 * max_len - 1, "a distance without a row"
    n_heads, head_size = q_PHD.shape[1:]
    scale = _scale(head_size, c2p_RHD, p2c_RHD) if scale is None else scale
    out_PHD = torch.empty_like(q_PHD, memory_format=torch.contiguous_format)
    pair_of_row = {row: pair for pair, row in enumerate(cu_seqlens[:-1].tolist())}
    for rows_BL, is_real_BL in _groups(cu_seqlens, n_heads):
        pairs_B = torch.tensor([pair_of_row[row] for row in rows_BL[:, 0].tolist()], device=q_PHD.device)
        length = rows_BL.shape[1]
        # Distances of the first token to key j are -j: the first half of the table of distances, reversed.
        slots_L = _slots(slots, c2p_RHD, p2c_RHD, length)[:length].flip(0)
        q_B1HD, k_BLHD, v_BLHD = q_PHD[pairs_B, None], k_THD[rows_BL], v_THD[rows_BL]
        terms_BLHD = _wide(q_B1HD) * _wide(k_BLHD)
        if c2p_RHD is not None:
            terms_BLHD += _wide(q_B1HD) * _wide(c2p_RHD[slots_L])
        if p2c_RHD is not None:
            terms_BLHD += _wide(k_BLHD) * _wide(p2c_RHD[slots_L])
        scores_BLH = terms_BLHD.sum(-1) * scale
        if is_real_BL is not None:
            scores_BLH.masked_fill_(~is_real_BL[:, :, None], -math.inf)
        probs_BLH = torch.softmax(scores_BLH, 1)
        out_PHD[pairs_B] = (probs_BLH[..., None] * _wide(v_BLHD)).sum(1).to(out_PHD.dtype)
    return out_PHD


def add_layer_norm(x_TE: Tensor, residual_TE: Tensor, weight_E: Tensor, bias_E: Tensor, eps: float) -> Tensor:
    """Layer norm over E of `x_TE + residual_TE`; zero rows give zero rows."""
    return F.layer_norm(x_TE + residual_TE, weight_E.shape, weight_E, bias_E, eps)


def bias_gelu(x_TE: Tensor, bias_E: Tensor) -> Tensor:
    """Exact GELU (by erf, not the tanh approximation) of `x_TE + bias_E`; zero rows give zero rows."""
    return F.gelu(x_TE + bias_E)


def _scores(
    q_HND: Tensor,
    k_HND: Tensor,
    c2p_RHD: Tensor | None,
    p2c_RHD: Tensor | None,
    slots_W: Tensor,
    *,
    length: int,
) -> Tensor:
    """Unscaled scores (H, B, L, L) of a group, in at least fp32."""
    n_heads, n_rows, head_size = q_HND.shape
    shape = (n_heads * (n_rows // length), length, head_size)
    scores_XLL = _wide(torch.bmm(q_HND.view(shape), k_HND.view(shape).transpose(1, 2)))
    scores_HBLL = scores_XLL.view(n_heads, n_rows // length, length, length)
    if c2p_RHD is not None:  # reversed, so that the scores of one query run upwards with the key
        table_HDW = c2p_RHD[slots_W.flip(0)].permute(1, 2, 0)
        scores_HBLL += _by_distance(torch.bmm(q_HND, table_HDW), length)
    if p2c_RHD is not None:  # a key's scores run upwards with the query: the same view, transposed
        table_HDW = p2c_RHD[slots_W].permute(1, 2, 0)
        scores_HBLL += _by_distance(torch.bmm(k_HND, table_HDW), length).transpose(-1, -2)
    return scores_HBLL


def _by_distance(scores_HNW: Tensor, length: int) -> Tensor:
    """View (H, B, L, L) of scores by distance: [..., i, j] is row i's column j - i + L - 1. No copy."""
    n_heads, n_rows, width = scores_HNW.shape
    shape = (n_heads, n_rows // length, length, length)
    return scores_HNW.as_strided(shape, (n_rows * width, length * width, width - 1, 1), length - 1)


def _slots(slots: Tensor | None, c2p_RHD: Tensor | None, p2c_RHD: Tensor | None, length: int) -> Tensor:
    """Table rows (W,) of the distances -(L - 1) to L - 1."""
    if slots is not None:
        centre = slots.shape[0] // 2
        return slots[centre - length + 1 : centre + length]
    table = c2p_RHD if c2p_RHD is not None else p2c_RHD
    if table is None:
        return torch.empty(0, dtype=torch.int64)
    distances_W = torch.arange(1 - length, length, device=table.device)
    return (distances_W + table.shape[0] // 2).clamp(0, table.shape[0] - 1)


def _scale(head_size: int, *tables: Tensor | None) -> float:
    return 1 / math.sqrt(head_size * (1 + sum(table is not None for table in tables)))


def _wide(x: Tensor) -> Tensor:
    """`x` in fp32, or as it is in fp64."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _groups(cu_seqlens: Tensor, n_heads: int) -> Iterator[_Group]:
    """Pairs of nearly one length together, padded by at most 1/16, so that each group is a few large products."""
    bounds = cu_seqlens.tolist()
    spans = sorted(
        ((end - start, start) for start, end in itertools.pairwise(bounds) if end > start),
        reverse=True,
    )
    first = 0
    while first < len(spans):
        longest = spans[first][0]
        most = max(1, GROUP_SCORES // (n_heads * longest * longest))
        last = first + 1
        while last < len(spans) and last - first < most and spans[last][0] >= longest - longest // 16:
            last += 1
        lengths_B, starts_B = torch.tensor(spans[first:last], device=cu_seqlens.device).unbind(1)
        offsets_L = torch.arange(longest, device=cu_seqlens.device)
        rows_BL = starts_B[:, None] + torch.minimum(offsets_L, lengths_B[:, None] - 1)
        is_even = spans[last - 1][0] == longest
        yield _Group(rows_BL, None if is_even else offsets_L < lengths_B[:, None])
        first = last
