"""A linear layer's bias and its GELU (the exact one, by erf) in one pass over the product.

It does not multiply: the product comes from the vendor's library, without its bias. Oracle: reference.bias_gelu.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def activate(x_ptr, bias_ptr, out_ptr, E: tl.constexpr, BLOCK: tl.constexpr):
    """One stretch of one row."""
    row = tl.program_id(0).to(tl.int64)  # T * E passes 2**31 in long packs
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < E
    x = tl.load(x_ptr + row * E + columns, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + row * E + columns, y.to(out_ptr.dtype.element_ty), mask=mask)


def bias_gelu(x_TE: Tensor, bias_E: Tensor) -> Tensor:
    """GELU (T, E) of `x_TE + bias_E` in the dtype of `x_TE`, any floating one but fp64; computed in fp32."""
    x_TE = x_TE.contiguous()
    out_TE = torch.empty_like(x_TE)
    n_rows, width = x_TE.shape
    if n_rows:
        block = min(BLOCK, triton.next_power_of_2(width))
        activate[(n_rows, triton.cdiv(width, block))](
            x_TE, bias_E, out_TE, E=width, BLOCK=block, num_warps=4, enable_fp_fusion=True
        )
    return out_TE
