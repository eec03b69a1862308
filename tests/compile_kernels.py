"""Compiles the Triton kernels for an H200 (sm_90), which needs no GPU, and prints what came out as JSON.

Run by test_triton_compile in a process of its own: in the tests' process the kernels are interpreted. Triton's wheel
brings ptxas and cuobjdump. Arguments: dtypes (fp16, bf16, fp32). Nothing is run; speed and results need the device.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from claimscore.kernels import (
    add_layer_norm,
    attention_slabs,
    attention_slices,
    bias_gelu,
    cls_attention,
    tuning,
)

HEAD_SIZE, WIDTH = 64, 768
INT64 = ("bounds_ptr", "slots_ptr")
DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def kernels(dtype):
    """(name, kernel, constants, warps, stages) of everything that the encoder launches."""
    tile = tuning.DEFAULT_FP32 if dtype == "fp32" else tuning.DEFAULT
    slab = tuning.Tile("slabs", tile.block_m, tile.block_n, 4, 2)
    flags = {"D": HEAD_SIZE, "BLOCK_D": HEAD_SIZE, "HAS_C2P": True, "HAS_P2C": True, "HAS_SLOTS": True}
    flags["PRECISION"] = "ieee" if dtype == "fp32" else "tf32"
    blocks = {
        "BLOCK_M": tile.block_m,
        "BLOCK_N": tile.block_n,
        "BLOCK": tile.block_m,
        "ROUND_POSITIONS": False,
    }
    attention = {**flags, **blocks}
    yield "slices", attention_slices.attend, attention, tile.warps, tile.stages
    yield "slabs scores", attention_slabs.score_distances, attention, slab.warps, slab.stages
    yield "slabs", attention_slabs.attend, attention, slab.warps, slab.stages
    yield "cls", cls_attention.attend, {**attention, "BLOCK": cls_attention.BLOCK}, 4, 3
    yield "add_layer_norm", add_layer_norm.normalise, {"E": WIDTH, "BLOCK": 1024}, 4, 3
    yield "bias_gelu", bias_gelu.activate, {"E": 4 * WIDTH, "BLOCK": bias_gelu.BLOCK}, 4, 3


def compiled(kernel, dtype, constants, warps, stages):
    """The kernel as a launch with aligned pointers and strides specialises it."""
    names = kernel.arg_names
    constants = {name: value for name, value in constants.items() if name in names}

    def kind(name):
        if name in constants:
            return "constexpr"
        if name.endswith("_ptr"):
            return "*i64" if name in INT64 else f"*{dtype}"
        return "fp32" if name in {"scale", "eps"} else "i32"

    aligned = [i for i, n in enumerate(names) if n.endswith("_ptr") or n[-2:] in {"_t", "_h", "_r"}]
    source = ASTSource(
        fn=kernel,
        signature={name: kind(name) for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i in aligned},
    )
    options = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


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
    for dtype in sys.argv[1:]:
        for name, kernel, constants, warps, stages in kernels(dtype):
            out = compiled(kernel, dtype, constants, warps, stages)
            ptx = out.asm["ptx"]
            counts = {op: ptx.count(op) for op in ("wgmma.mma_async", "mma.sync", "shfl.sync", "cp.async.cg")}
            row = {"kernel": name, "dtype": dtype, "warps": warps, "shared_bytes": out.metadata.shared}
            sys.stdout.write(json.dumps({**row, **resources(out.asm["cubin"]), **counts}) + "\n")
