"""What the attention kernels share: a pair's place in the packed stream, table rows by distance, one softmax step.

Also what their launchers share: strides, and stand-ins for what was left out. It knows no tile size and no device.
Shapes: T packed tokens, P pairs, H heads, D head size, R rows of a position table, M queries and N keys of a tile.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = math.log2(math.e)
PRECISION = {torch.float32: "ieee", torch.float16: "tf32", torch.bfloat16: "tf32"}
"""How `tl.dot` multiplies: fp32 in full, not as tf32. Half-precision products are exact in fp32 either way."""


@triton.jit
def table_rows(
    table_ptr,
    row_stride,
    slots_ptr,
    distances,
    centre,
    n_rows,
    dims,
    D: tl.constexpr,
    HAS_SLOTS: tl.constexpr,
):
    """Rows (N, BLOCK_D) of a position table for N distances; a distance that no pair has reads the nearest row."""
    if HAS_SLOTS:
        rows = tl.load(slots_ptr + tl.minimum(tl.maximum(distances + centre, 0), 2 * centre)).to(tl.int32)
    else:
        rows = tl.minimum(tl.maximum(distances + n_rows // 2, 0), n_rows - 1)
    pointers = table_ptr + rows[:, None] * row_stride + dims[None, :]
    if dims.shape[0] == D:
        return tl.load(pointers)
    else:  # noqa: RET505 - a branch of the compiler's, and a return after it would be another
        return tl.load(pointers, mask=dims[None, :] < D, other=0.0)


@triton.jit
def load_rows(ptr, row_stride, rows, length, dims, D: tl.constexpr):
    """Rows (N, BLOCK_D) of a pair's queries, keys or values; zeros from row `length` and column D on."""
    mask = rows[:, None] < length
    if dims.shape[0] > D:
        mask = mask & (dims[None, :] < D)
    return tl.load(ptr + rows[:, None] * row_stride + dims[None, :], mask=mask, other=0.0)


@triton.jit
def softmax_step(scores_MN, scale, v_ND, best_M, total_M, context_MD, PRECISION: tl.constexpr):
    """Take one tile of scores (-inf where there is no key) into the running base-2 softmax of its queries."""
    new_best_M = tl.maximum(best_M, tl.max(scores_MN, 1) * scale)
    weights_MN = tl.exp2(scores_MN * scale - new_best_M[:, None])
    fade_M = tl.exp2(best_M - new_best_M)
    total_M = total_M * fade_M + tl.sum(weights_MN, 1)
    context_MD = tl.dot(
        weights_MN.to(v_ND.dtype), v_ND, context_MD * fade_M[:, None], input_precision=PRECISION
    )
    return new_best_M, total_M, context_MD


class Operands(NamedTuple):
    """Arguments of a launch in the order of every attention kernel here: pointers, strides, scalars."""

    pointers: tuple[Tensor, ...]
    """q, k, v, c2p, p2c, out, bounds, slots; a left-out one is `q`, never read."""
    strides: tuple[int, ...]
    """(row, head) of q, k, v, c2p, p2c, out."""
    scalars: tuple[Any, ...]
    """scale in base 2, the slot table's centre, rows of a position table."""
    flags: dict[str, Any]
    """The constants that follow from what was given."""


def operands(
    q: Tensor,
    k_THD: Tensor,
    v_THD: Tensor,
    c2p_RHD: Tensor | None,
    p2c_RHD: Tensor | None,
    out: Tensor,
    cu_seqlens: Tensor,
    *,
    max_len: int,
    slots: Tensor | None,
    scale: float | None,
) -> Operands:
    """Check what `reference.disentangled_attention` takes and lay it out for a launch.

    Raises:
        ValueError: dtypes differ or have no kernel, the slots do not reach `max_len`, or `scale` is not positive.
    """
    given = [q, k_THD, v_THD, *(table for table in (c2p_RHD, p2c_RHD) if table is not None)]
    if q.dtype not in PRECISION or any(x.dtype != q.dtype for x in given):
        found = ", ".join(str(x.dtype) for x in given)
        raise ValueError(f"attention: dtypes are {found}, expected one of float32, float16, bfloat16 for all")
    if slots is not None and slots.shape[0] < 2 * max_len - 1:
        raise ValueError(f"attention: {slots.shape[0]} slots, expected at least {2 * max_len - 1} distances")
    if scale is not None and scale <= 0:  # the running maximum is taken before scaling
        raise ValueError(f"attention: scale is {scale}, expected more than 0")
    q, k_THD, v_THD = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k_THD, v_THD))
    tables = [x if x is None or x.stride(-1) == 1 else x.contiguous() for x in (c2p_RHD, p2c_RHD)]
    c2p, p2c = (q if table is None else table for table in tables)
    head_size, n_tables = q.shape[-1], sum(table is not None for table in tables)
    scale = 1 / math.sqrt(head_size * (1 + n_tables)) if scale is None else scale
    rows = next((table.shape[0] for table in tables if table is not None), 1)
    return Operands(
        pointers=(q, k_THD, v_THD, c2p, p2c, out, cu_seqlens, q if slots is None else slots.contiguous()),
        strides=tuple(s for x in (q, k_THD, v_THD, c2p, p2c, out) for s in (x.stride(0), x.stride(1))),
        scalars=(scale * LOG2_E, 0 if slots is None else slots.shape[0] // 2, rows),
        flags={
            "D": head_size,
            "BLOCK_D": max(16, triton.next_power_of_2(head_size)),
            "HAS_C2P": tables[0] is not None,
            "HAS_P2C": tables[1] is not None,
            "HAS_SLOTS": slots is not None,
        },
    )
