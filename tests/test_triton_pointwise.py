"""add_layer_norm and bias_gelu against their oracles: interpreted on a CPU, compiled where a CUDA device is."""

import importlib.util
import math

import pytest
import torch

from claimscore.kernels import dispatch, reference

if importlib.util.find_spec("triton") is None:  # not importorskip: the import itself settles the mode
    pytest.skip("triton is not installed; the kernels need it even when interpreted", allow_module_level=True)
import triton_mode as mode

pytestmark = [pytest.mark.gpu] if mode.COMPILED else []

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SHAPES = [(1, 1), (3, 384), (17, 769), (5, 1024), (4, 1536)]


def draw(*shape, dtype, seed, around=0.0):
    """Random numbers around a mean; layer norm's inputs are not centred."""
    generator = torch.Generator().manual_seed(seed)
    return (around + torch.randn(*shape, generator=generator)).to(mode.DEVICE, dtype)


def norm_inputs(n_rows, width, dtype):
    """Two summands, scale and shift of each column."""
    return (
        draw(n_rows, width, dtype=dtype, seed=0, around=2.0),
        draw(n_rows, width, dtype=dtype, seed=1),
        draw(width, dtype=dtype, seed=2, around=1.0),
        draw(width, dtype=dtype, seed=3),
    )


def assert_as_exact_as_torch(ours, exact, eager):
    """The error against fp64 is at most twice that of eager PyTorch in the same dtype, plus rounding."""
    rounding = torch.finfo(ours.dtype).eps * exact.abs().max()
    assert (ours.double() - exact).abs().max() <= 2 * (eager.double() - exact).abs().max() + rounding


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("n_rows", "width"), SHAPES)
def test_add_layer_norm_is_as_exact_as_torch(n_rows, width, dtype):
    """Also where the width is no power of two, and of one column, whose variance is nothing but eps."""
    given = norm_inputs(n_rows, width, dtype)

    ours = dispatch.add_layer_norm(*given, 1e-7, backend="triton")

    assert dispatch.last_backend("add_layer_norm") == "triton"
    assert ours.dtype == dtype
    exact = reference.add_layer_norm(*(x.double() for x in given), 1e-7)
    assert_as_exact_as_torch(ours, exact, reference.add_layer_norm(*given, 1e-7))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("n_rows", "width"), [*SHAPES, (2, 4096)])
def test_bias_gelu_is_as_exact_as_torch(n_rows, width, dtype):
    """The exact GELU: the tanh approximation is off by 5e-4 and would fail in fp32."""
    x_TE, bias_E = draw(n_rows, width, dtype=dtype, seed=0), draw(width, dtype=dtype, seed=1)

    ours = dispatch.bias_gelu(x_TE, bias_E, backend="triton")

    assert dispatch.last_backend("bias_gelu") == "triton"
    assert ours.dtype == dtype
    exact = reference.bias_gelu(x_TE.double(), bias_E.double())
    assert_as_exact_as_torch(ours, exact, reference.bias_gelu(x_TE, bias_E))


def test_rows_with_a_stride_are_read_by_it():
    """Each summand has its own; what lies between the rows is NaN and is not read."""
    wide, wider = (torch.full((6, width), math.nan, device=mode.DEVICE) for width in (100, 130))
    x_TE, residual_TE, weight_E, bias_E = norm_inputs(6, 40, torch.float32)
    wide[:, :40], wider[:, 30:70] = x_TE, residual_TE

    ours = dispatch.add_layer_norm(wide[:, :40], wider[:, 30:70], weight_E, bias_E, 1e-7, backend="triton")

    assert torch.equal(
        ours, dispatch.add_layer_norm(x_TE, residual_TE, weight_E, bias_E, 1e-7, backend="triton")
    )


def test_a_rows_bits_do_not_depend_on_the_others():
    """A row alone, and beside rows of NaN."""
    x_TE, residual_TE, weight_E, bias_E = norm_inputs(3, 384, torch.float16)
    alone = dispatch.add_layer_norm(x_TE[1:2], residual_TE[1:2], weight_E, bias_E, 1e-7, backend="triton")
    x_TE[0] = x_TE[2] = math.nan

    ours = dispatch.add_layer_norm(x_TE, residual_TE, weight_E, bias_E, 1e-7, backend="triton")

    assert torch.equal(ours[1:2], alone)


def test_no_rows_give_no_rows():
    """An empty pack is not an error."""
    x_TE, residual_TE, weight_E, bias_E = norm_inputs(0, 8, torch.float32)

    assert dispatch.add_layer_norm(x_TE, residual_TE, weight_E, bias_E, 1e-7, backend="triton").shape == (
        0,
        8,
    )
    assert dispatch.bias_gelu(x_TE, bias_E, backend="triton").shape == (0, 8)
