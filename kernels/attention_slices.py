"""Disentangled attention in one Triton kernel: the position scores of a tile are computed where they are used.

A tile of scores needs few distances. The table rows that hold them are multiplied with the tile's queries (and
keys) on the tensor cores, a select keeps one result for each score, and scores by distance become scores by key by
a rotation within the tile: nothing of the size of the scores leaves the chip. Exact for any slots, buckets or
none. It knows no other pair than its own. Method: He et al. 2021 (arXiv:2006.03654) eq. 4; online softmax as in
arXiv:2205.14135. Oracle: reference.disentangled_attention.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from claimscore.kernels.packed import PRECISION, Operands, load_rows, softmax_step, table_rows
from claimscore.kernels.tuning import Tile

UNSPECIALISED = ["scale", "centre", "n_rows", "n_tiles", "shortest", "longest"]
"""Arguments that change from call to call: a kernel must not be compiled anew for some of their values."""


@triton.jit(do_not_specialize=UNSPECIALISED)
def attend(
    q_ptr, k_ptr, v_ptr, c2p_ptr, p2c_ptr, out_ptr, bounds_ptr, slots_ptr,
    q_t, q_h, k_t, k_h, v_t, v_h, c2p_r, c2p_h, p2c_r, p2c_h, out_t, out_h,
    scale, centre, n_rows, n_tiles, shortest, longest,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    HAS_C2P: tl.constexpr, HAS_P2C: tl.constexpr, HAS_SLOTS: tl.constexpr,
    PRECISION: tl.constexpr, ROUND_POSITIONS: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one pair and head; BLOCK_M is BLOCK_N or twice it."""
    pair, head = tl.program_id(0) // n_tiles, tl.program_id(1).to(tl.int64)
    m_start = (tl.program_id(0) % n_tiles) * BLOCK_M
    first = tl.load(bounds_ptr + pair).to(tl.int64)  # rows times stride pass 2**31 in long packs
    length = (tl.load(bounds_ptr + pair + 1) - first).to(tl.int32)
    if (m_start >= length) | (length < shortest) | (length > longest):
        return
    k_ptr += first * k_t + head * k_h
    v_ptr += first * v_t + head * v_h
    c2p_ptr += head * c2p_h
    p2c_ptr += head * p2c_h
    at_m, at_n, dims = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    i = m_start + at_m
    q = load_rows(q_ptr + first * q_t + head * q_h, q_t, i, length, dims, D)

    # c2p: column b of block x holds distance m_start - n_start + x * BLOCK_N - b. Query m finds key n at
    # b = (n - m) mod BLOCK_N of block x = (m + b) // BLOCK_N. p2c likewise, with queries and keys exchanged.
    block_MN = (at_m[:, None] + at_n[None, :]) // BLOCK_N
    is_near_MN = at_m[:, None] % BLOCK_N + at_n[None, :] < BLOCK_N
    turn_MN = (at_n[None, :] - at_m[:, None]) & (BLOCK_N - 1)
    turn_XNN = (at_n[None, :, None] - at_n[None, None, :]) & (BLOCK_N - 1)
    turn_XNN = tl.broadcast_to(turn_XNN, [BLOCK_M // BLOCK_N, BLOCK_N, BLOCK_N])
    if HAS_C2P:
        keys = table_rows(
            c2p_ptr, c2p_r, slots_ptr, m_start + BLOCK_N - at_n, centre, n_rows, dims, D, HAS_SLOTS
        )
        c2p_1 = tl.dot(q, tl.trans(keys), input_precision=PRECISION)
        c2p_far = c2p_1  # all blocks from 1 on, each where it is used
        if BLOCK_M > BLOCK_N:
            beyond = m_start + 2 * BLOCK_N - at_n
            keys = table_rows(c2p_ptr, c2p_r, slots_ptr, beyond, centre, n_rows, dims, D, HAS_SLOTS)
            c2p_2 = tl.dot(q, tl.trans(keys), input_precision=PRECISION)
            c2p_far = tl.where(block_MN == 1, c2p_1, c2p_2)
    best = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    context = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for n_start in range(0, length, BLOCK_N):
        j = n_start + at_n
        k = load_rows(k_ptr, k_t, j, length, dims, D)
        if not (HAS_C2P or HAS_P2C):
            scores = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        if HAS_C2P:
            near = m_start - n_start - at_n
            keys = table_rows(c2p_ptr, c2p_r, slots_ptr, near, centre, n_rows, dims, D, HAS_SLOTS)
            c2p_0 = tl.dot(q, tl.trans(keys), input_precision=PRECISION)
            by_distance = tl.where(block_MN == 0, c2p_0, c2p_far)
            if ROUND_POSITIONS:
                by_distance = by_distance.to(q.dtype)
            scores = tl.gather(by_distance, turn_MN, 1).to(tl.float32)
            # One block further off in the next tile. Carrying c2p_1 on as it is would be a dependence over two
            # rounds, and Triton does not pipeline the loads of such a loop.
            c2p_far = tl.where(block_MN == 1, c2p_0, c2p_1) if BLOCK_M > BLOCK_N else c2p_0
            c2p_1 = c2p_0
        if HAS_P2C:
            near = m_start - n_start + at_m
            queries = table_rows(p2c_ptr, p2c_r, slots_ptr, near, centre, n_rows, dims, D, HAS_SLOTS)
            p2c_0 = tl.dot(queries, tl.trans(k), input_precision=PRECISION)
            queries = table_rows(
                p2c_ptr, p2c_r, slots_ptr, near - BLOCK_N, centre, n_rows, dims, D, HAS_SLOTS
            )
            p2c_1 = tl.dot(queries, tl.trans(k), input_precision=PRECISION)
            by_distance = tl.where(is_near_MN, p2c_0, p2c_1)
            if ROUND_POSITIONS:
                by_distance = by_distance.to(q.dtype)
            by_distance = tl.reshape(by_distance, [BLOCK_M // BLOCK_N, BLOCK_N, BLOCK_N])
            by_query = tl.reshape(tl.gather(by_distance, turn_XNN, 1), [BLOCK_M, BLOCK_N]).to(tl.float32)
            scores = scores + by_query if HAS_C2P else by_query
        # Last, so that the sum has the layout of a product and the softmax is not computed in two layouts.
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
    n_tiles = triton.cdiv(longest, tile.block_m)
    attend[(n_pairs * n_tiles, n_heads)](
        *given.pointers,
        *given.strides,
        *given.scalars,
        n_tiles,
        shortest,
        longest,
        **given.flags,
        BLOCK_M=tile.block_m,
        BLOCK_N=tile.block_n,
        PRECISION=PRECISION[out_THD.dtype],
        ROUND_POSITIONS=tile.round_positions,
        num_warps=tile.warps,
        num_stages=tile.stages,
        maxnreg=tile.registers or None,
        enable_fp_fusion=True,
    )
