"""The whole encoder on the Triton kernels against the whole encoder on PyTorch."""

import importlib.util

import pytest
import torch

from claimscore.jobs.encoder import load_encoder
from claimscore.kernels import dispatch

if importlib.util.find_spec("triton") is None:  # not importorskip: the import itself settles the mode
    pytest.skip("triton is not installed; the kernels need it even when interpreted", allow_module_level=True)
import tiny_deberta as tiny
import triton_mode as mode

pytestmark = [pytest.mark.gpu] if mode.COMPILED else []

SHAPES = {
    "v3": {},
    "convolution": {"conv_kernel_size": 3, "conv_act": "gelu"},
    "c2p alone": {"pos_att_type": "c2p"},
    "no buckets": {"position_buckets": -1, "max_relative_positions": 40},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_logits_are_those_of_the_oracle(tmp_path, monkeypatch, changes):
    """Every op goes through dispatch, and the kernels take its tensors as they come: views, strides and all."""
    folder = tiny.write_tiny(tmp_path, **changes)
    encoder = load_encoder(folder, dtype=torch.float32, device=torch.device(mode.DEVICE))
    lengths = [33, 17, 1]
    ids = torch.randint(4, 200, (sum(lengths),), generator=torch.Generator().manual_seed(0)).to(mode.DEVICE)
    bounds = torch.tensor([0, *lengths]).cumsum(0).to(mode.DEVICE)
    logits = {}

    for name in ("torch", "triton"):
        monkeypatch.setattr(dispatch, "backend_for", lambda _, name=name: name)
        logits[name] = encoder.logits(ids, bounds, max_len=33)

    torch.testing.assert_close(logits["triton"], logits["torch"], rtol=1e-5, atol=1e-5)
    ops = ("disentangled_attention", "cls_attention", "add_layer_norm", "bias_gelu")
    assert [dispatch.last_backend(op) for op in ops] == ["triton"] * 4
