"""Disentangled attention of each pair's first token alone, in one Triton kernel.

One program a pair and head reads the pair's keys and values once; there is nothing to share between queries, so it
is plain multiplying and adding in fp32. Torch's own way would either read the lengths back to the host or write
the products of all tokens to memory. Oracle: reference.cls_attention.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from claimscore.kernels.packed import load_rows, operands, table_rows

BLOCK = 64


@triton.jit(do_not_specialize=["scale", "centre", "n_rows"])
def attend(
    q_ptr, k_ptr, v_ptr, c2p_ptr, p2c_ptr, out_ptr, bounds_ptr, slots_ptr,
    q_t, q_h, k_t, k_h, v_t, v_h, c2p_r, c2p_h, p2c_r, p2c_h, out_t, out_h,
    scale, centre, n_rows,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK: tl.constexpr,
    HAS_C2P: tl.constexpr, HAS_P2C: tl.constexpr, HAS_SLOTS: tl.constexpr,
):  # fmt: skip
    """The first token of one pair, in one head."""
    pair, head = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    first = tl.load(bounds_ptr + pair).to(tl.int64)
    length = (tl.load(bounds_ptr + pair + 1) - first).to(tl.int32)
    at, dims = tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    k_ptr += first * k_t + head * k_h
    v_ptr += first * v_t + head * v_h
    q = tl.load(q_ptr + pair * q_t + head * q_h + dims, mask=dims < D, other=0.0).to(tl.float32)[None, :]
    best = tl.full([1], -float("inf"), tl.float32)
    total = tl.zeros([1], tl.float32)
    context = tl.zeros([BLOCK_D], tl.float32)
    for start in range(0, length, BLOCK):
        j = start + at
        k = load_rows(k_ptr, k_t, j, length, dims, D).to(tl.float32)
        terms = q * k
        if HAS_C2P:
            keys = table_rows(
                c2p_ptr + head * c2p_h, c2p_r, slots_ptr, -j, centre, n_rows, dims, D, HAS_SLOTS
            )
            terms += q * keys.to(tl.float32)
        if HAS_P2C:
            queries = table_rows(
                p2c_ptr + head * p2c_h, p2c_r, slots_ptr, -j, centre, n_rows, dims, D, HAS_SLOTS
            )
            terms += k * queries.to(tl.float32)
        scores = tl.where(j < length, tl.sum(terms, 1) * scale, -float("inf"))
        new_best = tl.maximum(best, tl.max(scores, 0))
        weights = tl.exp2(scores - new_best)
        fade = tl.exp2(best - new_best)
        v = load_rows(v_ptr, v_t, j, length, dims, D).to(tl.float32)
        total = total * fade + tl.sum(weights, 0)
        context = context * fade + tl.sum(weights[:, None] * v, 0)
        best = new_best
    context = (context / total).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + pair * out_t + head * out_h + dims, context, mask=dims < D)


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
    """Context (P, H, D) of each pair's first token; args and errors as in `disentangled_attention`."""
    out_PHD = torch.empty(q_PHD.shape, dtype=q_PHD.dtype, device=q_PHD.device)
    given = operands(
        *(q_PHD, k_THD, v_THD, c2p_RHD, p2c_RHD, out_PHD, cu_seqlens),
        max_len=max_len,
        slots=slots,
        scale=scale,
    )
    if q_PHD.shape[0]:
        attend[q_PHD.shape[:2]](
            *given.pointers,
            *given.strides,
            *given.scalars,
            **given.flags,
            BLOCK=BLOCK,
            num_warps=4,
            enable_fp_fusion=True,
        )
    return out_PHD
