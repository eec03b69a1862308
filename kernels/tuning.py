"""Which attention kernel runs, and with which tile: by device, head size, dtype and length of the pair.

`tuned/<device>.json`, written by benchmarks/gpu_suite.py on such a device, holds what was fastest there; a device
without a file gets DEFAULT, which fits every GPU from sm_80 on and was not measured. The choice goes by the length
of each pair alone, never by the pack around it: another tile adds in another order, and a pair's bits must not
depend on its neighbours. It imports no triton, so that it can be read anywhere.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch

FOLDER = Path(__file__).parent / "tuned"
VARIANTS = ("slices", "slabs")
ANY_LENGTH = 1 << 30


class Tile(NamedTuple):
    """One compiled form of an attention kernel."""

    variant: str
    """slices: attention_slices; slabs: attention_slabs."""
    block_m: int
    """Queries of a tile: a power of two from 16; for slices, `block_n` or twice it."""
    block_n: int
    """Keys of a tile: a power of two from 16."""
    warps: int
    stages: int
    registers: int = 0
    """Most of a thread, for more blocks on a processor at the price of spills; 0: as many as it likes."""
    round_positions: bool = False
    """Slices: position scores cross the chip in the inputs' dtype instead of fp32, as eager PyTorch rounds them."""


class LengthClass(NamedTuple):
    """Pairs of `shortest` to `longest` tokens, and the tile that serves them."""

    shortest: int
    longest: int
    tile: Tile


DEFAULT = Tile("slices", block_m=64, block_n=32, warps=4, stages=2)
DEFAULT_FP32 = Tile("slices", block_m=16, block_n=16, warps=4, stages=1)
"""Full fp32 products run on the ordinary units: larger tiles spill registers (compiled for sm_90: 32 x 32 does)."""


def plan(device: torch.device, head_size: int, dtype: torch.dtype) -> tuple[LengthClass, ...]:
    """The classes of pair lengths, shortest first, without a gap, up to ANY_LENGTH."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return _plan(name, head_size, dtype)


def file_name(device_name: str) -> str:
    """`NVIDIA H200` has `nvidia-h200.json`."""
    return re.sub(r"[^a-z0-9]+", "-", device_name.lower()).strip("-") + ".json"


@functools.cache
def _plan(device_name: str, head_size: int, dtype: torch.dtype) -> tuple[LengthClass, ...]:
    path = FOLDER / file_name(device_name)
    default = DEFAULT_FP32 if dtype == torch.float32 else DEFAULT
    if head_size > 64:  # the tiles of two stages would not fit the 99 KiB of the smaller GPUs
        default = default._replace(stages=1)
    found: tuple[LengthClass, ...] = ()
    if path.exists():
        tuned = json.loads(path.read_text(encoding="utf-8"))
        found = parse(tuned, head_size, str(dtype).removeprefix("torch."), where=path.name)
    return found or (LengthClass(0, ANY_LENGTH, default),)


def parse(tuned: dict[str, Any], head_size: int, dtype: str, *, where: str) -> tuple[LengthClass, ...]:
    """The classes for a head size and dtype of a tuning document; none where it has no such entry.

    Neighbouring classes of one tile become one: each class is a launch.

    Raises:
        ValueError: an unknown variant, or a tile that no kernel can have.
    """
    entries = [e for e in tuned["entries"] if (e["head_size"], e["dtype"]) == (head_size, dtype)]
    classes: list[LengthClass] = []
    for entry in sorted(entries, key=lambda e: e["longest"]):
        tile = Tile(**entry["tile"])
        _check(tile, where)
        shortest = classes[-1].longest + 1 if classes else 0
        if classes and classes[-1].tile == tile:
            shortest = classes.pop().shortest
        classes.append(LengthClass(shortest, entry["longest"], tile))
    if classes:
        classes[-1] = classes[-1]._replace(longest=ANY_LENGTH)
    return tuple(classes)


def _check(tile: Tile, where: str) -> None:
    if tile.variant not in VARIANTS:
        raise ValueError(f"{where}: variant is {tile.variant!r}, expected one of {', '.join(VARIANTS)}")
    for name, size in (("block_m", tile.block_m), ("block_n", tile.block_n)):
        if size < 16 or size & (size - 1):
            raise ValueError(f"{where}: {name} is {size}, expected a power of two from 16")
    if tile.variant == "slices" and tile.block_m not in {tile.block_n, 2 * tile.block_n}:
        raise ValueError(
            f"{where}: block_m is {tile.block_m}, expected block_n ({tile.block_n}) or twice it for slices"
        )
