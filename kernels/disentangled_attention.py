"""Disentangled attention on a GPU: one launch for each class of pair lengths, by the variant tuned for it.

It reads nothing back from the device: the grid is an upper bound from the number of pairs and the longest, and
programs without a tile end at once. What the variants do is in attention_slices and attention_slabs; which one
runs is decided in tuning. Oracle: reference.disentangled_attention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from claimscore.kernels import attention_slabs, attention_slices
from claimscore.kernels.packed import operands
from claimscore.kernels.tuning import LengthClass, plan

LAUNCH = {"slices": attention_slices.launch, "slabs": attention_slabs.launch}


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
    classes: tuple[LengthClass, ...] | None = None,
) -> Tensor:
    """Attend within each packed pair with content and relative-position scores.

    Arguments as in `reference.disentangled_attention`, in float32, float16 or bfloat16; softmax and sums in fp32.
    `classes` names the tile of each length of pair; None: what is tuned for the device.

    Returns:
        (T, H, D) in the dtype of `q_THD`, contiguous; zero pairs give zero rows.

    Raises:
        ValueError: as in `packed.operands`.
    """
    out_THD = torch.empty(q_THD.shape, dtype=q_THD.dtype, device=q_THD.device)
    given = operands(
        *(q_THD, k_THD, v_THD, c2p_RHD, p2c_RHD, out_THD, cu_seqlens),
        max_len=max_len,
        slots=slots,
        scale=scale,
    )
    n_pairs, n_heads = cu_seqlens.shape[0] - 1, q_THD.shape[1]
    if n_pairs < 1:
        return out_THD
    for shortest, longest, tile in (
        plan(q_THD.device, q_THD.shape[2], q_THD.dtype) if classes is None else classes
    ):
        if shortest <= max_len:
            upto = min(longest, max_len)
            LAUNCH[tile.variant](given, out_THD, n_pairs, n_heads, tile, shortest=shortest, longest=upto)
    return out_THD
