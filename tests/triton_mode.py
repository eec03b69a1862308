"""Loads the Triton kernels for their tests: compiled where a CUDA device is, else in Triton's interpreter on the CPU.

Triton decides between the two when a kernel is defined, so both cannot be had in one process, and the variable
that it asks must be gone again before a test starts a process of its own. What the interpreter of Triton 3.9 gets
wrong in bfloat16 (products of the raw bits, cutting instead of rounding) is put right here, as a GPU computes it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

import numpy as np
import torch

COMPILED = torch.cuda.is_available()
DEVICE = "cuda" if COMPILED else "cpu"
OPS = (
    "add_layer_norm",
    "attention_slabs",
    "attention_slices",
    "bias_gelu",
    "cls_attention",
    "disentangled_attention",
)

HEADS, SIZE, ROWS = 2, 16, 96


def _load():
    if COMPILED:
        return {op: importlib.import_module(f"claimscore.kernels.{op}") for op in OPS}
    if "triton" in sys.modules:
        raise RuntimeError(
            "triton was imported before tests/triton_mode.py, so its kernels cannot be interpreted"
        )
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        modules = {op: importlib.import_module(f"claimscore.kernels.{op}") for op in OPS}
        if importlib.util.find_spec(
            "triton.experimental.gluon"
        ):  # imported by the first launch, and asks again
            importlib.import_module("triton.experimental.gluon")
    finally:
        del os.environ["TRITON_INTERPRET"]
    _mend_bfloat16()
    return modules


def _mend_bfloat16() -> None:
    from triton import language as tl
    from triton.runtime import interpreter

    convert, dot = interpreter._convert_float, interpreter.InterpreterBuilder.create_dot

    def convert_float(array, source, target, rounding):
        if (source, target) == (tl.bfloat16, tl.float32):
            return (array.view(np.uint16).astype(np.uint32) << 16).reshape(array.shape)
        if (source, target) == (tl.float32, tl.bfloat16):
            rounded = torch.from_numpy(np.ascontiguousarray(array).view(np.float32)).bfloat16()
            return rounded.view(torch.uint16).numpy().reshape(array.shape)
        return convert(array, source, target, rounding)

    def create_dot(self, a, b, d, *options):
        a, b = (
            interpreter.TensorHandle(
                convert_float(x.data, x.dtype, tl.float32, None).view(np.float32), tl.float32
            )
            if x.dtype.scalar == tl.bfloat16
            else x
            for x in (a, b)
        )
        return dot(self, a, b, d, *options)

    interpreter._convert_float, interpreter.InterpreterBuilder.create_dot = convert_float, create_dot


KERNELS = _load()


def inputs(lengths, *, dtype=torch.float16, seed=0, heads=HEADS):
    """Queries, keys, values as views of one product, as the encoder has them; both tables, bounds, bucketed slots."""
    generator = torch.Generator().manual_seed(seed)
    qkv = torch.randn(sum(lengths), 3, heads, SIZE, generator=generator).to(DEVICE, dtype)
    tables = torch.randn(2, ROWS, heads, SIZE, generator=generator).to(DEVICE, dtype)
    bounds = torch.tensor([0, *lengths]).cumsum(0).to(DEVICE)
    distances = torch.arange(1 - max(lengths) - 3, max(lengths) + 3)
    bucketed = distances.sign() * (
        distances.abs().clamp(max=16) + (distances.abs() / 16).clamp(min=1).log2().ceil()
    )
    slots = (bucketed.long() + ROWS // 2).to(DEVICE)
    return [*qkv.unbind(1), *tables], bounds, slots
