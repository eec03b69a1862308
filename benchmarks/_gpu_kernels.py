"""Parts of gpu_suite about single kernels: their tests, the attention variants by length, and each fused op.

Every time is taken after the result was compared with the fp64 oracle. The attention part writes the tuning file of
this device, which belongs into kernels/tuned/ once somebody has looked at it.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from _gpu_parts import HEAD_SIZE, PEAK_TFLOPS, ROOT, active_rows, attention_flops, bucket_config, interleaved

SLICES = [
    {"block_m": 64, "block_n": 32, "warps": 4, "stages": 2},
    {"block_m": 64, "block_n": 32, "warps": 4, "stages": 1},
    {"block_m": 64, "block_n": 32, "warps": 4, "stages": 3},
    {"block_m": 64, "block_n": 32, "warps": 4, "stages": 2, "registers": 168},
    {"block_m": 64, "block_n": 32, "warps": 4, "stages": 2, "round_positions": True},
    {"block_m": 64, "block_n": 32, "warps": 8, "stages": 2},
    {"block_m": 64, "block_n": 64, "warps": 4, "stages": 2},
    {"block_m": 64, "block_n": 64, "warps": 8, "stages": 2},
    {"block_m": 32, "block_n": 32, "warps": 4, "stages": 2},
]
SLABS = [
    {"block_m": 64, "block_n": 32, "warps": 4, "stages": 2},
    {"block_m": 64, "block_n": 64, "warps": 4, "stages": 2},
    {"block_m": 64, "block_n": 64, "warps": 4, "stages": 1},
    {"block_m": 128, "block_n": 64, "warps": 8, "stages": 2},
]


def kernel_tests(suite: Any) -> dict[str, Any]:
    """The kernel tests in a process of their own: compiled on a GPU, interpreted without."""
    files = ["attention", "cls", "pointwise", "encoder"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x" if suite.smoke else "--maxfail=20",
        "-p",
        "no:cacheprovider",
    ]
    command += [
        "-c",
        str(ROOT / "pyproject.toml"),
        *(str(ROOT / f"tests/test_triton_{name}.py") for name in files),
    ]
    if suite.smoke:
        command += ["-k", "mixed_pack and slices-square and float32 or add_layer_norm and 384 and float16"]
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    paths = os.pathsep.join(filter(None, [suite.claimscore, variables.get("PYTHONPATH")]))
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**variables, "PYTHONPATH": paths},
        timeout=180,
    )
    lines = ran.stdout.strip().splitlines()
    if ran.returncode:
        raise RuntimeError(f"kernel tests ended with {ran.returncode}: " + " | ".join(lines[-15:]))
    return {"summary": lines[-1] if lines else "no output"}


def attention(suite: Any) -> dict[str, Any]:
    """Each variant and tile by length of pair: TFLOP/s by useful FLOPs beside the packed PyTorch oracle."""
    from claimscore.kernels import reference, tuning
    from claimscore.kernels.disentangled_attention import disentangled_attention

    n_heads, budget = (2, 96) if suite.smoke else (12, 16384)
    rows, entries, fastest_of = [], [], {}
    for dtype in [torch.float16] if suite.smoke else [torch.float16, torch.bfloat16]:
        # Each tile takes seconds to compile: bfloat16 gets those that were fastest at some length in float16.
        tiles = list(dict.fromkeys(fastest_of.values())) or list(_tiles(suite.smoke))
        for length in [40] if suite.smoke else [64, 128, 256, 384, 512]:
            case = _Case(suite.device, length, max(1, budget // length), n_heads, dtype)
            runs, rejected = {}, {}
            for tile in tiles:
                classes = (tuning.LengthClass(0, tuning.ANY_LENGTH, tile),)
                run = functools.partial(disentangled_attention, *case.given, **case.options, classes=classes)
                try:
                    case.check(run)
                    runs[_name(tile)] = run
                except Exception as error:  # noqa: BLE001 - a tile that does not fit this GPU is a result
                    rejected[_name(tile)] = f"{type(error).__name__}: {error}"[:300]
            runs["pytorch"] = functools.partial(reference.disentangled_attention, *case.given, **case.options)
            flops = attention_flops(np.full(case.n_pairs, length), n_heads * HEAD_SIZE)
            times = interleaved(
                runs, suite.device, rounds=1 if suite.smoke else 3, repeats=1 if suite.smoke else 5
            )
            for name, time in times.items():
                tflops = flops / time["ms"] / 1e9
                rows.append(
                    {"dtype": str(dtype)[6:], "length": length, "kernel": name, **time, "tflops": tflops}
                    | {"of_peak": tflops / PEAK_TFLOPS}
                )
            ours = {name: time["ms"] for name, time in times.items() if name != "pytorch"}
            if ours:
                fastest = next(
                    tile for tile in _tiles(suite.smoke) if _name(tile) == min(ours, key=ours.__getitem__)
                )
                entries.append(
                    {
                        "head_size": HEAD_SIZE,
                        "dtype": str(dtype)[6:],
                        "longest": length,
                        "tile": fastest._asdict(),
                    }
                )
            if rejected:
                rows.append(
                    {"dtype": str(dtype)[6:], "length": length, "kernel": "rejected", "why": rejected}
                )
    name = torch.cuda.get_device_name() if suite.device.type == "cuda" else suite.device.type
    path = suite.folder / tuning.file_name(name)
    path.write_text(
        json.dumps({"device": name, "measured": suite.device.type == "cuda", "entries": entries}, indent=1)
    )
    return {
        "rows": rows,
        "formula": "useful FLOPs 4Ld + 4Rd a token; d = heads x 64, R = position rows in use",
    }


def ops(suite: Any) -> dict[str, Any]:
    """The fused ops beside PyTorch's own, at the shapes of the base model: an op that does not win is not kept."""
    from claimscore.kernels import dispatch

    n_rows, width = (8, 64) if suite.smoke else (16384, 768)
    device, dtype = suite.device, torch.float16
    x, residual, weight, bias = (
        torch.randn(*shape, device=device, dtype=dtype) for shape in ((n_rows, width),) * 2 + ((width,),) * 2
    )
    wide, up = torch.randn(n_rows, 4 * width, device=device, dtype=dtype), torch.randn(4 * width, width).to(x)
    wide_bias = torch.randn(4 * width, device=device, dtype=dtype)
    gelu, linear = torch.nn.functional.gelu, torch.nn.functional.linear
    case = _Case(
        device, 40 if suite.smoke else 256, 2 if suite.smoke else 64, 2 if suite.smoke else 12, dtype
    )
    firsts = (case.given[0][case.given[5][:-1]], *case.given[1:])
    runs = {}
    for backend in ("triton", "torch"):
        option = {"backend": backend}
        runs[f"add_layer_norm {backend}"] = functools.partial(
            dispatch.add_layer_norm, x, residual, weight, bias, 1e-7, **option
        )
        runs[f"bias_gelu alone {backend}"] = functools.partial(dispatch.bias_gelu, wide, wide_bias, **option)
        runs[f"cls_attention {backend}"] = functools.partial(
            dispatch.cls_attention, *firsts, **case.options, **option
        )
    # What the encoder would do without the kernel: the product adds its bias, then GELU.
    runs["linear + bias_gelu triton"] = lambda: dispatch.bias_gelu(linear(x, up), wide_bias, backend="triton")
    runs["linear + bias_gelu torch"] = lambda: gelu(linear(x, up, wide_bias))
    times = interleaved(runs, device, rounds=1 if suite.smoke else 5, repeats=1 if suite.smoke else 5)
    return {"rows": [{"op": name, **time} for name, time in times.items()], "shape": [n_rows, width]}


def _tiles(smoke: bool) -> Iterator[Any]:
    from claimscore.kernels.tuning import Tile

    for variant, choices in (("slices", SLICES), ("slabs", SLABS)):
        for choice in choices[:1] if smoke else choices:
            yield Tile(variant=variant, **choice)


def _name(tile: Any) -> str:
    name = f"{tile.variant} {tile.block_m}x{tile.block_n} w{tile.warps} s{tile.stages}"
    return (
        name
        + (f" r{tile.registers}" if tile.registers else "")
        + (" rounded" if tile.round_positions else "")
    )


class _Case:
    """Pairs of one length, as the encoder hands them over: q, k, v as views of one product."""

    def __init__(
        self, device: torch.device, length: int, n_pairs: int, n_heads: int, dtype: torch.dtype
    ) -> None:
        from claimscore.jobs.encoder import position_slots

        generator = torch.Generator().manual_seed(length)
        self.n_pairs, self.length = n_pairs, length
        qkv = torch.randn(n_pairs * length, 3, n_heads, HEAD_SIZE, generator=generator).to(device, dtype)
        tables = torch.randn(2, 512, n_heads, HEAD_SIZE, generator=generator).to(device, dtype)
        bounds = (torch.arange(n_pairs + 1) * length).to(device)
        slots = position_slots(bucket_config(), length).to(device)
        self.given = (*qkv.unbind(1), *tables, bounds)
        self.options = {"max_len": length, "slots": slots}
        n = min(2, n_pairs)
        few = [x[: n * length].double() for x in self.given[:3]] + [x.double() for x in self.given[3:5]]
        few_given = [x[: n * length] for x in self.given[:3]] + list(self.given[3:5])
        from claimscore.kernels import reference

        self._exact = reference.disentangled_attention(*few, bounds[: n + 1], **self.options)
        eager = reference.disentangled_attention(*few_given, bounds[: n + 1], **self.options)
        self._allowed = 2 * (eager.double() - self._exact).abs().max() + torch.finfo(dtype).eps
        assert active_rows(length) <= 2 * length - 1

    def check(self, run: Any) -> None:
        """The first pairs' error is at most twice that of PyTorch in the same dtype, plus rounding."""
        error = (run()[: len(self._exact)].double() - self._exact).abs().max()
        if not error <= self._allowed:
            raise AssertionError(f"error {float(error):.2e}, allowed {float(self._allowed):.2e}")
