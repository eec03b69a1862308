"""Which attention kernel serves which pair: the tuning files, and what a device without one gets."""

import pytest
import torch

from claimscore.kernels import tuning
from claimscore.kernels.tuning import ANY_LENGTH, LengthClass, Tile

SLICES = {"variant": "slices", "block_m": 64, "block_n": 32, "warps": 4, "stages": 2}
SLABS = {"variant": "slabs", "block_m": 64, "block_n": 64, "warps": 4, "stages": 2}


def entry(longest, tile, *, head_size=64, dtype="float16"):
    """One line of a tuning file."""
    return {"head_size": head_size, "dtype": dtype, "longest": longest, "tile": tile}


def classes(*entries):
    """What a file of these entries says of head size 64 in float16."""
    return tuning.parse({"entries": list(entries)}, 64, "float16", where="gpu.json")


def test_classes_leave_no_gap_and_end_nowhere():
    """In the order of length, whatever the file's; the last serves all that is longer."""
    found = classes(entry(512, SLABS), entry(128, SLICES))

    assert found == (LengthClass(0, 128, Tile(**SLICES)), LengthClass(129, ANY_LENGTH, Tile(**SLABS)))


def test_neighbours_with_one_tile_are_one_class():
    """Each class is a launch."""
    found = classes(entry(64, SLABS), entry(128, SLICES), entry(256, SLICES), entry(512, SLICES))

    assert [(c.shortest, c.longest) for c in found] == [(0, 64), (65, ANY_LENGTH)]


def test_entries_of_other_dtypes_and_heads_do_not_count():
    """None is left: the caller takes its default."""
    assert classes(entry(64, SLABS, dtype="bfloat16"), entry(64, SLABS, head_size=128)) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "slice"}, "gpu.json: variant is 'slice', expected one of slices, slabs"),
        ({"block_n": 48}, "gpu.json: block_n is 48, expected a power of two from 16"),
        ({"block_m": 8}, "gpu.json: block_m is 8, expected a power of two from 16"),
        ({"block_m": 128}, "gpu.json: block_m is 128, expected block_n (32) or twice it for slices"),
    ],
)
def test_a_tile_that_no_kernel_has_is_refused(change, message):
    """It would give wrong scores, or an error of the compiler's in the middle of a night."""
    with pytest.raises(ValueError) as error:
        classes(entry(64, {**SLICES, **change}))

    assert str(error.value) == message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("head_size", [64, 128])
def test_a_device_without_a_file_gets_one_class(head_size, dtype):
    """One tile for every length, which the kernels accept."""
    (only,) = tuning.plan(torch.device("cpu"), head_size, dtype)

    assert only[:2] == (0, ANY_LENGTH)
    assert classes(entry(64, only.tile._asdict())) == (only,)


def test_a_file_is_found_by_the_devices_name(tmp_path, monkeypatch):
    """The name that the driver gives, with everything but letters and digits as one hyphen."""
    assert tuning.file_name("NVIDIA H200") == "nvidia-h200.json"
    assert tuning.file_name("NVIDIA RTX 6000 Ada (48 GB)") == "nvidia-rtx-6000-ada-48-gb.json"

    monkeypatch.setattr(tuning, "FOLDER", tmp_path)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Some GPU")
    document = '{"entries": [{"head_size": 64, "dtype": "float16", "longest": 512, "tile": '
    document += '{"variant": "slabs", "block_m": 64, "block_n": 64, "warps": 4, "stages": 2}}]}'
    (tmp_path / "some-gpu.json").write_text(document)

    assert tuning.plan(torch.device("cuda"), 64, torch.float16)[0].tile == Tile(**SLABS)
