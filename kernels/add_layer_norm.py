"""Sum of two matrices and its layer norm in one pass: each is read once, and the sum is never written.

Mean and variance in fp32, the variance from the centred values. Oracle: reference.add_layer_norm.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit(do_not_specialize=["eps"])
def normalise(
    x_ptr,
    residual_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    x_t,
    residual_t,
    eps,
    E: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row."""
    row = tl.program_id(0).to(tl.int64)  # T * E passes 2**31 in long packs
    columns = tl.arange(0, BLOCK)
    mask = columns < E
    x = tl.load(x_ptr + row * x_t + columns, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + row * residual_t + columns, mask=mask, other=0.0).to(tl.float32)
    centred = tl.where(mask, x - tl.sum(x, 0) / E, 0.0)  # what lies beyond E must not enter the variance
    y = centred * tl.rsqrt(tl.sum(centred * centred, 0) / E + eps)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * E + columns, (y * weight + bias).to(out_ptr.dtype.element_ty), mask=mask)


def add_layer_norm(x_TE: Tensor, residual_TE: Tensor, weight_E: Tensor, bias_E: Tensor, eps: float) -> Tensor:
    """Layer norm (T, E) of `x_TE + residual_TE`, in the dtype of `x_TE`; the sum itself is not rounded.

    Args:
        x_TE: any floating dtype but fp64, rows contiguous.
        residual_TE: likewise.
        weight_E: scale of each column.
        bias_E: shift of each column.
        eps: added to the variance.
    """
    n_rows, width = x_TE.shape
    x_TE, residual_TE = (x if x.stride(1) == 1 else x.contiguous() for x in (x_TE, residual_TE))
    out_TE = torch.empty(x_TE.shape, dtype=x_TE.dtype, device=x_TE.device)
    if n_rows:
        block = triton.next_power_of_2(width)
        normalise[(n_rows,)](
            *(x_TE, residual_TE, weight_E, bias_E, out_TE, x_TE.stride(0), residual_TE.stride(0), eps),
            E=width,
            BLOCK=block,
            num_warps=min(8, max(1, block // 256)),
            enable_fp_fusion=True,
        )
    return out_TE
