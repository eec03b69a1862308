"""The ops of the encoder against the formula, written out pair by pair in fp64."""

import math

import pytest
import torch

from claimscore.kernels import dispatch, reference

HEADS, SIZE, ROWS = 2, 8, 64
# 1 and 2: nothing to shift; 17: odd; 63 to 65: the table's edge (slots saturate at R // 2 = 32 below); a mixed pack:
# groups of equal length, of nearly equal length, and of one pair.
PACKS = {
    "one": [1],
    "two": [2],
    "odd": [17],
    "edge": [31, 32, 33, 34],
    "long": [130],
    "mixed": [64, 63, 65, 5, 64, 64, 1, 40, 40, 2],
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Products this small take longer to share out than to compute."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def inputs(lengths, *, dtype=torch.float64, seed=0):
    """Random queries, keys, values, both tables, and bounds."""
    generator = torch.Generator().manual_seed(seed)
    n_tokens = sum(lengths)
    qkv = [torch.randn(n_tokens, HEADS, SIZE, generator=generator, dtype=torch.float64) for _ in range(3)]
    tables = [torch.randn(ROWS, HEADS, SIZE, generator=generator, dtype=torch.float64) for _ in range(2)]
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    return [x.to(dtype) for x in (*qkv, *tables)], bounds


def spelled_out(q, k, v, c2p, p2c, bounds, row_of):
    """The formula of He et al. 2021, eq. 4, one pair at a time and with an explicit index for each distance."""
    out = torch.zeros_like(v)
    scale = 1 / math.sqrt(q.shape[-1] * (1 + (c2p is not None) + (p2c is not None)))
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        n = end - start
        rows = torch.tensor([[row_of(i - j) for j in range(n)] for i in range(n)])
        for h in range(q.shape[1]):
            qh, kh = q[start:end, h], k[start:end, h]
            scores = qh @ kh.T
            if c2p is not None:
                scores = scores + torch.einsum("id,ijd->ij", qh, c2p[rows, h])
            if p2c is not None:
                scores = scores + torch.einsum("jd,ijd->ij", kh, p2c[rows, h])
            out[start:end, h] = torch.softmax(scores * scale, -1) @ v[start:end, h]
    return out


def clamped(distance):
    """Plain relative positions: a row a distance, until the table ends."""
    return min(max(distance + ROWS // 2, 0), ROWS - 1)


@pytest.mark.parametrize("lengths", PACKS.values(), ids=PACKS.keys())
def test_attention_is_the_formula(lengths):
    """Every token's context is what the formula gives, whatever lengths are packed together."""
    tensors, bounds = inputs(lengths)

    ours = reference.disentangled_attention(*tensors, bounds, max_len=max(lengths))

    torch.testing.assert_close(ours, spelled_out(*tensors, bounds, clamped), rtol=0, atol=1e-12)


@pytest.mark.parametrize("c2p", [True, False])
@pytest.mark.parametrize("p2c", [True, False])
def test_either_table_may_be_left_out(c2p, p2c):
    """A missing table drops its term and its share of the scale."""
    (q, k, v, keys, queries), bounds = inputs(PACKS["mixed"])
    tensors = (q, k, v, keys if c2p else None, queries if p2c else None)

    ours = reference.disentangled_attention(*tensors, bounds, max_len=65)

    torch.testing.assert_close(ours, spelled_out(*tensors, bounds, clamped), rtol=0, atol=1e-12)


def test_slots_name_the_row_of_each_distance():
    """With a table of slots, distance d reads the row that the table names, not row d."""
    tensors, bounds = inputs(PACKS["mixed"])
    slots = torch.randint(0, ROWS, (2 * 70 - 1,), generator=torch.Generator().manual_seed(1))

    ours = reference.disentangled_attention(*tensors, bounds, max_len=65, slots=slots)

    expected = spelled_out(*tensors, bounds, lambda distance: int(slots[distance + 69]))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", PACKS.values(), ids=PACKS.keys())
def test_cls_attention_is_the_first_row_of_attention(lengths):
    """The op for first tokens gives what the whole op gives there."""
    tensors, bounds = inputs(lengths)
    slots = torch.randint(0, ROWS, (2 * 140 - 1,), generator=torch.Generator().manual_seed(1))
    firsts = bounds[:-1]

    ours = reference.cls_attention(
        tensors[0][firsts], *tensors[1:], bounds, max_len=max(lengths), slots=slots
    )

    whole = reference.disentangled_attention(*tensors, bounds, max_len=max(lengths), slots=slots)
    torch.testing.assert_close(ours, whole[firsts], rtol=0, atol=1e-12)


def test_nan_in_one_pair_stays_there():
    """Pairs beside a pair of NaN are finite and unchanged, even in its group."""
    lengths = [60, 64, 63, 64]
    tensors, bounds = inputs(lengths)
    clean = reference.disentangled_attention(*tensors, bounds, max_len=64)
    for tensor in tensors[:3]:
        tensor[bounds[1] : bounds[2]] = math.nan

    ours = reference.disentangled_attention(*tensors, bounds, max_len=64)

    others = torch.cat([torch.arange(60), torch.arange(124, 251)])
    torch.testing.assert_close(ours[others], clean[others], rtol=0, atol=0)


def test_two_runs_are_bitwise_equal():
    """The same pack gives the same bits."""
    tensors, bounds = inputs(PACKS["mixed"], dtype=torch.float32)

    first = reference.disentangled_attention(*tensors, bounds, max_len=65)

    assert torch.equal(first, reference.disentangled_attention(*tensors, bounds, max_len=65))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_keeps_its_dtype_and_its_digits(dtype):
    """Softmax is in fp32, so the error is that of rounding inputs and products alone."""
    tensors, bounds = inputs(PACKS["mixed"], dtype=dtype)
    exact = spelled_out(*(t.double() for t in tensors), bounds, clamped)

    ours = reference.disentangled_attention(*tensors, bounds, max_len=65)

    assert ours.dtype == dtype
    assert (ours.double() - exact).abs().max() < 60 * torch.finfo(dtype).eps


def test_dispatch_records_what_ran():
    """After a call on the CPU, the CPU's own attention is what ran, and its result is the oracle's."""
    tensors, bounds = inputs([5, 3])

    ours = dispatch.disentangled_attention(*tensors, bounds, max_len=5)

    assert dispatch.last_backend("disentangled_attention") == "cpu"
    oracle = reference.disentangled_attention(*tensors, bounds, max_len=5)
    torch.testing.assert_close(ours, oracle, rtol=0, atol=1e-12)
