"""Compiles the Triton kernels for an H200 (sm_90) through their own launchers, without a GPU; prints JSON lines.

A stand-in for the driver names the target, and a launch becomes a compilation: so the arguments, their alignment and
the options are those of a real call. Run by test_triton_compile in a process of its own, since in the tests' process
the kernels are interpreted. Triton's wheel brings ptxas and cuobjdump. Argument: float16, bfloat16 or float32.
Nothing is run: speed and results need the device.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

from claimscore.kernels import tuning
from claimscore.kernels.add_layer_norm import add_layer_norm
from claimscore.kernels.bias_gelu import bias_gelu
from claimscore.kernels.cls_attention import cls_attention
from claimscore.kernels.disentangled_attention import disentangled_attention

OPS = ("wgmma.mma_async", "mma.sync", "shfl.sync", "cp.async.cg")


class Hopper:
    """As much of a driver as compiling asks for."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, _=None):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


def launches(dtype):
    """Call every op as the encoder does, with q, k and v as views of one product; the compiled kernels by name."""
    made = {}

    def launch(kernel, grid):
        def compiling(*args, **kwargs):
            name = f"{kernel.fn.__module__.rsplit('.', 1)[-1]}.{kernel.fn.__name__}"
            made[name] = kernel.warmup(*args, grid=grid, **kwargs)

        return compiling

    driver.set_active(Hopper())
    jit.JITFunction.__getitem__ = launch
    qkv, tables = torch.zeros(600, 3, 12, 64, dtype=dtype), torch.zeros(2, 512, 12, 64, dtype=dtype)
    bounds, slots = torch.tensor([0, 100, 600]), torch.zeros(1023, dtype=torch.int64)
    q, k, v = qkv.unbind(1)
    slices = tuning.DEFAULT_FP32 if dtype == torch.float32 else tuning.DEFAULT
    for tile in (slices, slices._replace(variant="slabs", stages=2)):
        classes = (tuning.LengthClass(0, tuning.ANY_LENGTH, tile),)
        disentangled_attention(q, k, v, *tables, bounds, max_len=500, slots=slots, classes=classes)
    cls_attention(q[bounds[:-1]], k, v, *tables, bounds, max_len=500, slots=slots)
    hidden, wide = torch.zeros(600, 768, dtype=dtype), torch.zeros(600, 3072, dtype=dtype)
    add_layer_norm(hidden, hidden, hidden[0], hidden[0], 1e-7)
    bias_gelu(wide, wide[0])
    return made


def resources(binary):
    """Registers and bytes of stack (spills) of a thread."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        text = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return {"registers": int(found[1]), "stack_bytes": int(found[2])}


if __name__ == "__main__":
    for name, out in launches(getattr(torch, sys.argv[1])).items():
        row = {"kernel": name, "warps": out.metadata.num_warps, "shared_bytes": out.metadata.shared}
        row |= resources(out.asm["cubin"]) | {op: out.asm["ptx"].count(op) for op in OPS}
        sys.stdout.write(json.dumps(row) + "\n")
