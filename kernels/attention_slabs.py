"""Disentangled attention by slabs of pairs: position scores by distance in a scratch, small enough for the L2 cache.

A first kernel multiplies each block of queries (and keys) with the table rows of every distance that the pair has;
a second reads the scores of a tile from there with an affine address, one row further every row, so without a
gather, and does the attention. The scratch is reused by the next slab and rounds to the inputs' dtype, as eager
PyTorch does. Exact for any slots. It knows no other pair than its own. Method: He et al. 2021 (arXiv:2006.03654)
eq. 4; online softmax as in arXiv:2205.14135. Oracle: reference.disentangled_attention.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from claimscore.kernels.packed import PRECISION, Operands, load_rows, softmax_step, table_rows
from claimscore.kernels.tuning import Tile

SLAB_BYTES = 24 << 20
"""Scratch of one slab, unless a single pair needs more. Half of an H200's L2 (50 MB); not measured."""
UNSPECIALISED = [
    "scale",
    "centre",
    "n_rows",
    "first_pair",
    "n_heads",
    "n_tiles",
    "height",
    "shortest",
    "longest",
]


@triton.jit(do_not_specialize=UNSPECIALISED)
def score_distances(
    q_ptr, k_ptr, v_ptr, c2p_ptr, p2c_ptr, out_ptr, bounds_ptr, slots_ptr,
    q_t, q_h, k_t, k_h, v_t, v_h, c2p_r, c2p_h, p2c_r, p2c_h, out_t, out_h,
    scale, centre, n_rows, c2p_scores_ptr, p2c_scores_ptr, first_pair, n_heads, n_tiles, n_blocks, shortest, longest,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK: tl.constexpr,
    HAS_C2P: tl.constexpr, HAS_P2C: tl.constexpr, HAS_SLOTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Scores by distance of one block of tokens: key j of query i at column j + BLOCK - i % BLOCK of row i; p2c transposed."""
    slot, head = tl.program_id(0) // n_tiles, tl.program_id(1).to(tl.int64)
    start = (tl.program_id(0) % n_tiles) * BLOCK
    first = tl.load(bounds_ptr + first_pair + slot).to(tl.int64)
    length = (tl.load(bounds_ptr + first_pair + slot + 1) - first).to(tl.int32)
    if (start >= length) | (length < shortest) | (length > longest):
        return
    at, dims = tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    rows = start + at
    q = load_rows(q_ptr + first * q_t + head * q_h, q_t, rows, length, dims, D)
    k = load_rows(k_ptr + first * k_t + head * k_h, k_t, rows, length, dims, D)
    height = n_blocks * BLOCK  # a multiple of BLOCK that the compiler can see: aligned rows
    width = height + BLOCK
    c2p_scores_ptr += (slot * n_heads + head) * height * width
    p2c_scores_ptr += (slot * n_heads + head) * height * width
    at_scores = rows[:, None] * width + at[None, :]
    for column in range(0, length + BLOCK, BLOCK):
        distances = start + BLOCK - column - at
        if HAS_C2P:
            keys = table_rows(
                c2p_ptr + head * c2p_h, c2p_r, slots_ptr, distances, centre, n_rows, dims, D, HAS_SLOTS
            )
            scores = tl.dot(q, tl.trans(keys), input_precision=PRECISION)
            tl.store(c2p_scores_ptr + at_scores + column, scores.to(q.dtype))
        if HAS_P2C:
            queries = table_rows(
                p2c_ptr + head * p2c_h, p2c_r, slots_ptr, -distances, centre, n_rows, dims, D, HAS_SLOTS
            )
            scores = tl.dot(k, tl.trans(queries), input_precision=PRECISION)
            tl.store(p2c_scores_ptr + at_scores + column, scores.to(q.dtype))


@triton.jit(do_not_specialize=UNSPECIALISED)
def attend(
    q_ptr, k_ptr, v_ptr, c2p_ptr, p2c_ptr, out_ptr, bounds_ptr, slots_ptr,
    q_t, q_h, k_t, k_h, v_t, v_h, c2p_r, c2p_h, p2c_r, p2c_h, out_t, out_h,
    scale, centre, n_rows, c2p_scores_ptr, p2c_scores_ptr, first_pair, n_heads, n_tiles, n_blocks, shortest, longest,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    HAS_C2P: tl.constexpr, HAS_P2C: tl.constexpr, HAS_SLOTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one pair and head."""
    slot, head = tl.program_id(0) // n_tiles, tl.program_id(1).to(tl.int64)
    m_start = (tl.program_id(0) % n_tiles) * BLOCK_M
    first = tl.load(bounds_ptr + first_pair + slot).to(tl.int64)
    length = (tl.load(bounds_ptr + first_pair + slot + 1) - first).to(tl.int32)
    if (m_start >= length) | (length < shortest) | (length > longest):
        return
    k_ptr += first * k_t + head * k_h
    v_ptr += first * v_t + head * v_h
    height = n_blocks * BLOCK  # a multiple of BLOCK that the compiler can see: aligned rows
    width = height + BLOCK
    c2p_scores_ptr += (slot * n_heads + head) * height * width
    p2c_scores_ptr += (slot * n_heads + head) * height * width
    at_n, dims = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    i = m_start + tl.arange(0, BLOCK_M)
    q = load_rows(q_ptr + first * q_t + head * q_h, q_t, i, length, dims, D)
    best = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    context = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for n_start in range(
        0, length, BLOCK_N
    ):  # the scratch has whole blocks: beyond the pair is waste, not a fault
        j = n_start + at_n
        k = load_rows(k_ptr, k_t, j, length, dims, D)
        scores = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        if HAS_C2P:
            columns = j[None, :] + (BLOCK - i % BLOCK)[:, None]
            at = i[:, None] * width + columns
            scores += tl.load(c2p_scores_ptr + at).to(tl.float32)
        if HAS_P2C:
            columns = i[:, None] + (BLOCK - j % BLOCK)[None, :]
            at = j[None, :] * width + columns
            scores += tl.load(p2c_scores_ptr + at).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), scores, input_precision=PRECISION)
        scores = tl.where(j[None, :] < length, scores, -float("inf"))
        v = load_rows(v_ptr, v_t, j, length, dims, D)
        best, total, context = softmax_step(scores, scale, v, best, total, context, PRECISION)
    out_ptr += first * out_t + head * out_h
    mask = (i[:, None] < length) & (dims[None, :] < D)
    context = (context / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + i[:, None] * out_t + dims[None, :], context, mask=mask)


def launch(
    given: Operands, out_THD: Tensor, n_pairs: int, n_heads: int, tile: Tile, *, shortest: int, longest: int
) -> None:
    """Fill the rows of `out_THD` that belong to pairs of `shortest` to `longest` tokens."""
    block, n_tables = tile.block_m, given.flags["HAS_C2P"] + given.flags["HAS_P2C"]
    n_blocks, n_tiles = triton.cdiv(longest, block), triton.cdiv(longest, tile.block_m)
    height = n_blocks * block
    pair_scores = n_heads * height * (height + block)
    fits = SLAB_BYTES // max(1, pair_scores * n_tables * out_THD.element_size())
    per_slab = min(n_pairs, max(1, fits))
    scratch = [
        torch.empty(per_slab * pair_scores if has else 0, dtype=out_THD.dtype, device=out_THD.device)
        for has in (given.flags["HAS_C2P"], given.flags["HAS_P2C"])
    ]
    options = {
        **given.flags,
        "BLOCK": block,
        "PRECISION": PRECISION[out_THD.dtype],
        "num_warps": tile.warps,
        "num_stages": tile.stages,
        "maxnreg": tile.registers or None,
        "enable_fp_fusion": True,
    }
    for first_pair in range(0, n_pairs, per_slab):
        n_here = min(per_slab, n_pairs - first_pair)
        arguments = (*given.pointers, *given.strides, *given.scalars, *scratch, first_pair, n_heads)
        lengths = (n_blocks, shortest, longest)
        if n_tables:
            score_distances[(n_here * n_blocks, n_heads)](*arguments, n_blocks, *lengths, **options)
        attend[(n_here * n_tiles, n_heads)](
            *arguments, n_tiles, *lengths, **options, BLOCK_M=tile.block_m, BLOCK_N=tile.block_n
        )
