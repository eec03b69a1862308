"""The Triton kernels compile for an H200, and fit it: what can be known of a GPU without having one."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("compile_kernels.py")
SHARED_BYTES = 227 << 10
"""Shared memory of one block on sm_90."""
REGISTERS = 65536
"""Of one multiprocessor on sm_90."""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed; it holds the compiler"
)


def compiled(dtype, folder):
    """What the script prints, by kernel, compiled anew."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("TRITON_")}
    out = subprocess.run(
        [sys.executable, SCRIPT, dtype],
        capture_output=True,
        text=True,
        check=False,
        env={**variables, "TRITON_CACHE_DIR": str(folder)},
    )
    assert out.returncode == 0, out.stderr[-2000:]
    return {row["kernel"]: row for row in map(json.loads, out.stdout.splitlines())}


@pytest.fixture(scope="module")
def fp16(tmp_path_factory):
    """The kernels in the dtype that a GPU judge runs in."""
    return compiled("float16", tmp_path_factory.mktemp("triton"))


def test_every_kernel_compiles_and_fits(fp16):
    """No spilled registers, no more shared memory than there is."""
    assert {name for name, row in fp16.items() if row["stack_bytes"]} == set()
    assert {name for name, row in fp16.items() if row["shared_bytes"] > SHARED_BYTES} == set()
    assert len(fp16) == 6


@pytest.mark.parametrize("name", ["attention_slices.attend", "attention_slabs.attend"])
def test_two_blocks_of_attention_fit_on_a_processor(fp16, name):
    """While one waits for memory or a barrier, another computes."""
    row = fp16[name]

    assert 2 * row["shared_bytes"] <= SHARED_BYTES
    assert 2 * row["registers"] * row["warps"] * 32 <= REGISTERS


@pytest.mark.parametrize(
    "name", ["attention_slices.attend", "attention_slabs.attend", "attention_slabs.score_distances"]
)
def test_products_run_on_the_tensor_cores_of_hopper(fp16, name):
    """As warp-group products; the older instructions reach little more than half of the speed."""
    assert fp16[name]["wgmma.mma_async"] > 0
    assert fp16[name]["mma.sync"] == 0


def test_slices_rotate_by_shuffles(fp16):
    """32 for the two rotations of a tile, 8 for its softmax: one shuffle a score, not one for each that it could be."""
    assert 32 <= fp16["attention_slices.attend"]["shfl.sync"] <= 48


def test_loads_run_ahead(fp16):
    """The loop over keys is pipelined: its loads are copies that the next round waits for."""
    assert fp16["attention_slices.attend"]["cp.async.cg"] > 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_every_kernel_compiles_and_fits_in_other_dtypes(dtype, tmp_path):
    """bfloat16 spills nothing; float32, which is there to check against, may spill a little."""
    rows = compiled(dtype, tmp_path)

    allowed = 64 if dtype == "float32" else 0
    assert {name for name, row in rows.items() if row["stack_bytes"] > allowed} == set()
    assert {name for name, row in rows.items() if row["shared_bytes"] > SHARED_BYTES} == set()
    assert len(rows) == 6
