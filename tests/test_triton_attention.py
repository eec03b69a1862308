"""The Triton attention kernels against the oracle: interpreted on a CPU, compiled where a CUDA device is."""

import importlib.util
import math

import pytest
import torch

from claimscore.kernels import dispatch, reference
from claimscore.kernels.tuning import ANY_LENGTH, LengthClass, Tile

if importlib.util.find_spec("triton") is None:  # not importorskip: the import itself settles the mode
    pytest.skip("triton is not installed; the kernels need it even when interpreted", allow_module_level=True)
import triton_mode as mode

inputs, HEADS, SIZE, ROWS = mode.inputs, mode.HEADS, mode.SIZE, mode.ROWS
pytestmark = [pytest.mark.gpu] if mode.COMPILED else []

# Each variant with the tile that it ships with, and with one whose queries and keys go together otherwise.
TILES = {
    "slices": Tile("slices", 64, 32, 4, 1),
    "slices-square": Tile("slices", 32, 32, 4, 1),
    "slices-rounded": Tile("slices", 64, 64, 4, 1, round_positions=True),
    "slabs": Tile("slabs", 64, 64, 4, 1),
    "slabs-oblong": Tile("slabs", 64, 32, 4, 1),
}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# One token, two, odd, and one on either side of every tile edge; 512 is the longest pair of most judges.
SHORT, LONG = (1, 2, 17, 63, 64, 65, 128, 129, 130), (257, 511, 512)
MIXED = [64, 1, 65, 17, 2, 129]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Products this small take longer to share out than to compute."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def run(tile, tensors, bounds, **options):
    """The kernel with this tile; the record must say that Triton ran."""
    if (
        mode.COMPILED and tensors[0].dtype == torch.float32
    ):  # larger tiles spill, and take a minute to compile
        tile = tile._replace(block_m=16 * (tile.block_m // tile.block_n), block_n=16)
    classes = (LengthClass(0, ANY_LENGTH, tile),)
    options = {"max_len": int(bounds.diff().max()), **options}
    out = dispatch.disentangled_attention(*tensors, bounds, backend="triton", classes=classes, **options)
    assert dispatch.last_backend("disentangled_attention") == "triton"
    return out


def assert_as_exact_as_torch(ours, tensors, bounds, **options):
    """The error against fp64 is at most twice that of eager PyTorch in the same dtype, plus rounding."""
    options = {"max_len": int(bounds.diff().max()), **options}
    wide = [x if x is None else x.double() for x in tensors]
    exact = reference.disentangled_attention(*wide, bounds, **options)
    eager = reference.disentangled_attention(*tensors, bounds, **options)
    rounding = torch.finfo(ours.dtype).eps * exact.abs().max()
    assert (ours.double() - exact).abs().max() <= 2 * (eager.double() - exact).abs().max() + rounding


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_a_mixed_pack_is_as_exact_as_torch(tile, dtype):
    """Pairs of every class of length in one pack, with bucketed distances."""
    tensors, bounds, slots = inputs(MIXED, dtype=dtype)

    ours = run(tile, tensors, bounds, slots=slots)

    assert ours.dtype == dtype
    assert_as_exact_as_torch(ours, tensors, bounds, slots=slots)


@pytest.mark.parametrize("length", SHORT)
@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_a_pair_of_any_length_is_as_exact_as_torch(name, length):
    """Alone in its pack, on either side of every tile edge."""
    tensors, bounds, slots = inputs([length], dtype=torch.float16)

    assert_as_exact_as_torch(run(TILES[name], tensors, bounds, slots=slots), tensors, bounds, slots=slots)


@pytest.mark.parametrize("length", LONG)
@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_a_long_pair_is_as_exact_as_torch(name, length):
    """Many tiles of keys, and distances far beyond the first bucket."""
    tensors, bounds, slots = inputs([length], dtype=torch.float16, heads=1)

    assert_as_exact_as_torch(run(TILES[name], tensors, bounds, slots=slots), tensors, bounds, slots=slots)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("length", [*SHORT, *(pytest.param(n, marks=pytest.mark.slow) for n in LONG)])
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_every_tile_length_and_dtype_is_as_exact_as_torch(tile, length, dtype):
    """The whole product of what the tests above sample; long pairs, minutes of the interpreter, in the long form."""
    tensors, bounds, slots = inputs([3, length, 1], dtype=dtype)

    assert_as_exact_as_torch(run(tile, tensors, bounds, slots=slots), tensors, bounds, slots=slots)


@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_without_slots_distances_are_rows(name):
    """Plain relative positions, and beyond the table's end its last row."""
    tensors, bounds, _ = inputs([130, 20])

    assert_as_exact_as_torch(run(TILES[name], tensors, bounds), tensors, bounds)


@pytest.mark.parametrize("slots_are", ["shuffled", "reversed"])
@pytest.mark.parametrize("name", ["slices", "slices-square", "slabs"])
def test_slots_may_be_in_any_order(name, slots_are):
    """Nothing is assumed of the table of slots, not even that near distances have near rows."""
    tensors, bounds, _ = inputs([80, 7])
    slots = torch.arange(2 * 90 - 1) % ROWS
    slots = (
        slots.flip(0) if slots_are == "reversed" else slots[torch.randperm(179, generator=torch.Generator())]
    )
    slots = slots.to(mode.DEVICE)

    assert_as_exact_as_torch(run(TILES[name], tensors, bounds, slots=slots), tensors, bounds, slots=slots)


@pytest.mark.parametrize(("c2p", "p2c"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_either_table_may_be_left_out(name, c2p, p2c):
    """A missing table drops its term and its share of the scale."""
    (q, k, v, keys, queries), bounds, slots = inputs([70, 3])
    tensors = (q, k, v, keys if c2p else None, queries if p2c else None)

    assert_as_exact_as_torch(run(TILES[name], tensors, bounds, slots=slots), tensors, bounds, slots=slots)


@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_a_given_scale_takes_the_place_of_the_usual_one(name):
    """Checkpoints without one of the terms still scale by their own rule."""
    tensors, bounds, slots = inputs([33])

    ours = run(TILES[name], tensors, bounds, slots=slots, scale=0.5)

    assert_as_exact_as_torch(ours, tensors, bounds, slots=slots, scale=0.5)


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_a_pairs_bits_do_not_depend_on_its_pack(tile):
    """A pair alone, first, last and between pairs of other lengths: the same bits."""
    tensors, bounds, slots = inputs([65, 129, 2, 64], heads=1)
    alone = [
        run(
            tile,
            [x[a:b] for x in tensors[:3]] + tensors[3:],
            torch.tensor([0, b - a], device=mode.DEVICE),
            slots=slots,
        )
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]

    assert torch.equal(run(tile, tensors, bounds, slots=slots), torch.cat(alone))


@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_two_runs_are_bitwise_equal(name):
    """The same pack gives the same bits."""
    tensors, bounds, slots = inputs([65, 2, 40], dtype=torch.bfloat16)

    first = run(TILES[name], tensors, bounds, slots=slots)

    assert torch.equal(first, run(TILES[name], tensors, bounds, slots=slots))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NaN that is thrown away
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_nan_that_no_pair_owns_is_not_read(tile):
    """NaN in a neighbour, before and behind the pack, and in table rows that no distance of the pair has."""
    tensors, bounds, slots = inputs([5, 70, 9, 40, 6], heads=1)
    clean = run(tile, tensors, bounds, slots=slots)
    for tensor in tensors[:3]:
        tensor[:5] = tensor[75:84] = tensor[-6:] = math.nan
    used = slots[slots.shape[0] // 2 - 69 : slots.shape[0] // 2 + 70]
    for table in tensors[3:]:
        table[~torch.isin(torch.arange(ROWS, device=mode.DEVICE), used)] = math.nan

    ours = run(tile, tensors, bounds, slots=slots)

    kept = torch.cat([torch.arange(5, 75), torch.arange(84, 124)])
    assert torch.equal(ours[kept], clean[kept])


@pytest.mark.parametrize("name", ["slices", "slabs"])
def test_each_class_serves_its_own_lengths(name):
    """With a tile for short and another for long pairs, each pair has the bits of its own tile."""
    tensors, bounds, slots = inputs([33, 20, 21, 40], heads=1)
    short, long = TILES[name]._replace(block_m=16, block_n=16), TILES[name]
    classes = (LengthClass(0, 20, short), LengthClass(21, ANY_LENGTH, long))

    ours = dispatch.disentangled_attention(
        *tensors, bounds, max_len=40, slots=slots, backend="triton", classes=classes
    )

    expected = run(long, tensors, bounds, slots=slots)
    expected[33:53] = run(short, tensors, bounds, slots=slots)[33:53]
    assert not torch.equal(ours, run(long, tensors, bounds, slots=slots)), "both tiles add in the same order"
    assert torch.equal(ours, expected)


def test_slabs_of_one_pair_give_the_same_bits(monkeypatch):
    """The scratch of one pair is not the next one's: slab by slab as all at once."""
    tensors, bounds, slots = inputs([40, 70, 3])
    whole = run(TILES["slabs"], tensors, bounds, slots=slots)
    monkeypatch.setattr(mode.KERNELS["attention_slabs"], "SLAB_BYTES", 1)

    assert torch.equal(run(TILES["slabs"], tensors, bounds, slots=slots), whole)


def test_no_pairs_give_no_rows():
    """An empty pack is not an error."""
    tensors, _, _ = inputs([1])
    bounds = torch.zeros(1, dtype=torch.int64, device=mode.DEVICE)
    empty = [x[:0] for x in tensors[:3]] + tensors[3:]

    assert dispatch.disentangled_attention(*empty, bounds, max_len=0, backend="triton").shape == (
        0,
        HEADS,
        SIZE,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[0].double(), "float64, torch.float16"),
        (lambda t: t[0].float(), "float32, torch.float16"),
    ],
)
def test_dtypes_without_a_kernel_are_refused(change, message):
    """A kernel that guessed would compute in a dtype that nobody asked for."""
    tensors, bounds, slots = inputs([4])

    with pytest.raises(ValueError, match=message):
        run(TILES["slices"], [change(tensors), *tensors[1:]], bounds, slots=slots)


def test_a_scale_that_turns_the_order_round_is_refused():
    """The maximum is taken before scaling: under a negative scale it would be the minimum, and exp would overflow."""
    tensors, bounds, slots = inputs([4])

    with pytest.raises(ValueError, match="scale is -1, expected more than 0"):
        run(TILES["slices"], tensors, bounds, slots=slots, scale=-1)


def test_slots_that_end_early_are_refused():
    """A distance without a row would read memory that is not the table's."""
    tensors, bounds, _ = inputs([9])

    with pytest.raises(ValueError, match="16 slots, expected at least 17"):
        run(TILES["slices"], tensors, bounds, slots=torch.zeros(16, dtype=torch.int64, device=mode.DEVICE))
