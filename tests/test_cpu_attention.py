"""Attention for CPUs against the oracle, and weights in oneDNN's layout against torch's own product."""

import math

import pytest
import torch

from claimscore.kernels import cpu_attention, cpu_linear, reference

HEADS, SIZE, ROWS = 2, 8, 64
# 31 to 33 and 63 to 65: one block of queries and the next; the sorted packs: a group of equal and one of unequal lengths.
PACKS = {
    "one": [1],
    "two": [2],
    "blocks": [65, 64, 63, 33, 32, 31],
    "long": [257, 130],
    "equal": [40, 40, 40],
    "unsorted": [64, 63, 65, 5, 64, 64, 1, 40, 40, 2],
}


def inputs(lengths, *, dtype=torch.float64, fused=True):
    """Random queries, keys and values, side by side or apart, both tables, and bounds."""
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(sum(lengths), 3, HEADS, SIZE, generator=generator, dtype=torch.float64).to(dtype)
    tables = torch.randn(2, ROWS, HEADS, SIZE, generator=generator, dtype=torch.float64).to(dtype)
    parts = qkv.unbind(1) if fused else [part.clone() for part in qkv.unbind(1)]
    return [*parts, *tables], torch.tensor([0, *lengths]).cumsum(0)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("lengths", PACKS.values(), ids=PACKS.keys())
def test_attention_is_the_oracles(lengths, fused):
    """Every token's context is the oracle's, whatever is packed and wherever queries, keys and values lie."""
    tensors, bounds = inputs(lengths, fused=fused)
    slots = torch.randint(0, ROWS, (2 * 300 - 1,), generator=torch.Generator().manual_seed(1))

    ours = cpu_attention.disentangled_attention(*tensors, bounds, max_len=max(lengths), slots=slots)

    oracle = reference.disentangled_attention(*tensors, bounds, max_len=max(lengths), slots=slots)
    torch.testing.assert_close(ours, oracle, rtol=0, atol=1e-12)


@pytest.mark.parametrize("c2p", [True, False])
@pytest.mark.parametrize("p2c", [True, False])
def test_either_table_may_be_left_out(c2p, p2c):
    """A missing table drops its term and its share of the scale, with plain relative positions as well."""
    (q, k, v, keys, queries), bounds = inputs(PACKS["unsorted"])
    tensors = (q, k, v, keys if c2p else None, queries if p2c else None)

    ours = cpu_attention.disentangled_attention(*tensors, bounds, max_len=65)

    oracle = reference.disentangled_attention(*tensors, bounds, max_len=65)
    torch.testing.assert_close(ours, oracle, rtol=0, atol=1e-12)


def test_nan_in_one_pair_stays_there():
    """Pairs beside a pair of NaN are finite and unchanged, even in its group."""
    lengths = [64, 64, 63, 60]
    tensors, bounds = inputs(lengths)
    clean = cpu_attention.disentangled_attention(*tensors, bounds, max_len=64)
    for tensor in tensors[:3]:
        tensor[bounds[1] : bounds[2]] = math.nan

    ours = cpu_attention.disentangled_attention(*tensors, bounds, max_len=64)

    others = torch.cat([torch.arange(64), torch.arange(128, 251)])
    torch.testing.assert_close(ours[others], clean[others], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_error_is_at_most_twice_the_oracles_in_the_same_dtype(dtype):
    """Against fp64 the error is that of the oracle in this dtype, doubled at most, and a rounding."""
    tensors, bounds = inputs(PACKS["blocks"], dtype=dtype)
    exact = reference.disentangled_attention(*(t.double() for t in tensors), bounds, max_len=65)

    ours = cpu_attention.disentangled_attention(*tensors, bounds, max_len=65)

    oracle = reference.disentangled_attention(*tensors, bounds, max_len=65)
    allowed = 2 * (oracle.double() - exact).abs().max() + torch.finfo(dtype).eps
    assert ours.dtype == dtype
    assert (ours.double() - exact).abs().max() <= allowed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_packed_product_is_torchs(dtype, bias):
    """A weight in oneDNN's layout gives torch's product, but for the order of sums."""
    if not cpu_linear.packs(torch.device("cpu"), dtype):
        pytest.skip(f"no packed product in {dtype} on this machine")
    generator = torch.Generator().manual_seed(0)
    x, weight, offset = (torch.randn(*s, generator=generator).to(dtype) for s in ((37, 48), (96, 48), (96,)))

    ours = cpu_linear.linear(x, cpu_linear.packed(weight), offset if bias else None)

    theirs = torch.nn.functional.linear(x, weight, offset if bias else None)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=64 * torch.finfo(dtype).eps)
