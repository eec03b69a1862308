"""The Triton kernel for first tokens against the oracle: interpreted on a CPU, compiled where a CUDA device is."""

import importlib.util
import math

import pytest
import torch

from claimscore.kernels import dispatch, reference

if importlib.util.find_spec("triton") is None:  # not importorskip: the import itself settles the mode
    pytest.skip("triton is not installed; the kernels need it even when interpreted", allow_module_level=True)
import triton_mode as mode

inputs = mode.inputs
pytestmark = [pytest.mark.gpu] if mode.COMPILED else []

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MIXED = [64, 1, 65, 17, 2, 129]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lengths", [MIXED, [1], [257, 1]], ids=str)
def test_cls_attention_is_as_exact_as_torch(lengths, dtype):
    """The first token of each pair, as the oracle has it."""
    tensors, bounds, slots = inputs(lengths, dtype=dtype)
    first = tensors[0][bounds[:-1]]
    options = {"max_len": max(lengths), "slots": slots}

    ours = dispatch.cls_attention(first, *tensors[1:], bounds, backend="triton", **options)

    wide = [x.double() for x in (first, *tensors[1:])]
    exact = reference.cls_attention(*wide, bounds, **options)
    eager = reference.cls_attention(first, *tensors[1:], bounds, **options)
    rounding = torch.finfo(dtype).eps * exact.abs().max()
    assert dispatch.last_backend("cls_attention") == "triton"
    assert (ours.double() - exact).abs().max() <= 2 * (eager.double() - exact).abs().max() + rounding


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NaN that is thrown away
def test_cls_attention_reads_its_own_pair_alone():
    """NaN in the neighbours changes no bit."""
    tensors, bounds, slots = inputs([9, 70, 8])
    options = {"max_len": 70, "slots": slots, "backend": "triton"}
    clean = dispatch.cls_attention(tensors[0][bounds[:-1]], *tensors[1:], bounds, **options)
    for tensor in tensors[:3]:
        tensor[:9] = tensor[79:] = math.nan

    ours = dispatch.cls_attention(tensors[0][bounds[:-1]], *tensors[1:], bounds, **options)

    assert torch.equal(ours[1], clean[1])


def test_no_pairs_give_no_rows():
    """An empty pack is not an error."""
    tensors, _, _ = inputs([1])
    bounds = torch.zeros(1, dtype=torch.int64, device=mode.DEVICE)
    empty = [x[:0] for x in tensors[:3]] + tensors[3:]

    out = dispatch.cls_attention(*empty, bounds, max_len=0, backend="triton")

    assert out.shape == (0, mode.HEADS, mode.SIZE)
