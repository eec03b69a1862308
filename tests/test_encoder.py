"""The encoder against transformers' own forward, on a seeded tiny checkpoint of every shape supported."""

import itertools
import json

import pytest
import tiny_deberta as tiny
import torch
from safetensors.torch import load_file, save_file

from claimscore.jobs import checkpoint
from claimscore.jobs.encoder import load_encoder, position_slots
from claimscore.kernels import dispatch

# 129 is the last length whose distances all have a row of their own; beyond lie the logarithmic buckets.
LENGTHS = (1, 2, 17, 128, 129, 130, 257, 512, 17, 16)
SHAPES = {
    "v3": {},
    "one-layer": {"num_hidden_layers": 1},
    "v2-xlarge": {"conv_kernel_size": 3, "conv_act": "gelu", "position_buckets": 32},
    "one-layer-conv": {"num_hidden_layers": 1, "conv_kernel_size": 3, "conv_act": "tanh"},
    "conv-groups": {"conv_kernel_size": 5, "conv_groups": 4, "conv_act": "gelu"},
    "own-position-projections": {"share_att_key": False},
    "content-to-position": {"pos_att_type": "c2p"},
    "position-to-content": {"pos_att_type": ["p2c"]},
    "no-position-scores": {"pos_att_type": None},
    "no-relative-attention": {"relative_attention": False},
    "plain-relative-positions": {"position_buckets": -1, "max_relative_positions": 40},
    "plain-relative-by-default": {"position_buckets": None, "norm_rel_ebd": "none"},
    "few-buckets": {"position_buckets": 8, "max_relative_positions": 64},
    "absolute-positions": {"position_biased_input": True},
    "segments": {"type_vocab_size": 2},
    "narrow-embeddings": {"embedding_size": 24},
    "two-classes": {"id2label": {"0": "not_supported", "1": "supported"}},
    "other-activations": {"hidden_act": "gelu_new", "pooler_hidden_act": "tanh"},
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Products this small take longer to share out than to compute."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def load(folder, dtype=torch.float32):
    return load_encoder(folder, dtype=dtype, device=torch.device("cpu"))


def packed(lengths, seed=0):
    """Random ids and segments of pairs of the given lengths, and their bounds."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, 200, (sum(lengths),), generator=generator)
    segments = torch.cat([(torch.arange(n) > n // 2).long() for n in lengths])
    return ids, segments, torch.tensor([0, *lengths]).cumsum(0)


def by_transformers(folder, ids, segments, bounds):
    """Logits of each pair alone, unpadded, by transformers."""
    from transformers import DebertaV2ForSequenceClassification

    model = DebertaV2ForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    rows = []
    with torch.no_grad():
        for start, end in itertools.pairwise(bounds.tolist()):
            mask = torch.ones(1, end - start, dtype=torch.long)
            rows.append(model(ids[None, start:end], mask, token_type_ids=segments[None, start:end]).logits)
    return torch.cat(rows)


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_logits_are_those_of_transformers(tmp_path, changes):
    """Packed logits agree to 1e-4 in fp32 with each pair alone in transformers, up to 512 tokens."""
    folder = tiny.write_tiny(tmp_path, **changes)
    ids, segments, bounds = packed(LENGTHS)
    expected = by_transformers(folder, ids, segments, bounds)

    ours = load(folder).logits(ids, bounds, max_len=512, type_ids_T=segments)

    assert expected.std(0).min() > 1e-3, "a checkpoint whose logits do not move proves nothing"
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-4)


def test_pairs_beyond_the_trained_length_agree_too(tmp_path):
    """Distances past the last bucket share the last row, as in transformers."""
    folder = tiny.write_tiny(tmp_path, position_buckets=32)
    ids, segments, bounds = packed((700,))

    ours = load(folder).logits(ids, bounds, max_len=700)

    torch.testing.assert_close(ours, by_transformers(folder, ids, segments, bounds), rtol=0, atol=1e-4)


@pytest.mark.parametrize("changes", [{}, SHAPES["v2-xlarge"]], ids=["v3", "v2-xlarge"])
def test_a_pair_does_not_feel_its_neighbours(tmp_path, changes):
    """Alone, in a pack, and beside a 500-token pair, a pair's logits differ by rounding alone."""
    encoder = load(tiny.write_tiny(tmp_path, **changes))
    lengths = (40, 500, 39, 40, 7)
    ids, _, bounds = packed(lengths)
    together = encoder.logits(ids, bounds, max_len=500)

    for row, length in enumerate(lengths):
        alone = encoder.logits(ids[bounds[row] : bounds[row + 1]], torch.tensor([0, length]), max_len=length)
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-5)


def test_nan_does_not_cross_a_border(tmp_path):
    """A pair whose embedding is NaN leaves the pairs on both sides finite, through the convolution too."""
    folder = tiny.write_tiny(tmp_path, **SHAPES["v2-xlarge"])
    weights = load_file(folder / "model.safetensors")
    weights["deberta.embeddings.word_embeddings.weight"][199] = torch.nan
    save_file(weights, folder / "model.safetensors")
    ids, _, bounds = packed((20, 20, 20))
    ids[ids == 199] = 5
    ids[20:40] = 199

    ours = load(folder).logits(ids, bounds, max_len=20)

    assert torch.isfinite(ours).all(1).tolist() == [True, False, True]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 0.15), (torch.float16, 0.02)])
def test_half_precision_stays_near_fp32(tmp_path, dtype, tolerance):
    """bf16 and fp16 run, are finite, and give fp32 logits near those of fp32."""
    folder = tiny.write_tiny(tmp_path)
    ids, _, bounds = packed((1, 129, 512))
    exact = load(folder).logits(ids, bounds, max_len=512)

    ours = load(folder, dtype).logits(ids, bounds, max_len=512)

    torch.testing.assert_close(ours, exact, rtol=0, atol=tolerance)


def test_no_pairs_give_no_rows(tmp_path):
    """An empty pack has logits of shape (0, classes)."""
    encoder = load(tiny.write_tiny(tmp_path))

    assert encoder.logits(torch.zeros(0, dtype=torch.long), torch.tensor([0]), max_len=0).shape == (0, 3)


def test_the_cpus_own_path_ran(tmp_path):
    """The backend that computed the attention of both ops is on record."""
    encoder = load(tiny.write_tiny(tmp_path))
    encoder.logits(*packed((5,))[::2], max_len=5)

    assert (dispatch.last_backend(), dispatch.last_backend("cls_attention")) == ("cpu", "cpu")


def test_slots_of_a_v3_checkpoint():
    """To distance 128 a row each; beyond, rows are shared; both ends stay inside the table."""
    config = checkpoint.EncoderConfig(relative_attention=True, position_buckets=256)
    slots = position_slots(config, 600).tolist()

    assert list(range(256 - 128, 256 + 129)) == slots[599 - 128 : 599 + 129]
    assert slots == sorted(slots)
    assert (slots[599 - 511], slots[599 + 511]) == (1, 511)


def test_sharded_weights_are_read(tmp_path):
    """Weights in two files under an index give the logits of one file."""
    folder = tiny.write_tiny(tmp_path)
    ids, _, bounds = packed((9, 5))
    whole = load(folder).logits(ids, bounds, max_len=9)
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, members in parts.items():
        save_file({name: weights[name].clone() for name in members}, folder / file)
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {name: file for file, members in parts.items() for name in members}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    assert torch.equal(whole, load(folder).logits(ids, bounds, max_len=9))
