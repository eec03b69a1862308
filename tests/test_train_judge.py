"""The trainer of the demo judge on a tiny checkpoint: its forward pass, its low-rank product, and runs that repeat."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from _train_loop import Plan, loss_of, train
from _train_model import PairClassifier, _LowRankProduct, blend
from build_demo_models import merge_lora
from safetensors.torch import load_file, save_file
from tiny_deberta import write_tiny
from train_demo_judge import parse, run

from claimscore.jobs.encoder import load_encoder

ROWS = [
    ("The shop is open on Sundays.", "The shop is open.", "entailment"),
    ("The library lends 12 books.", "The library lends 12 books.", "entailment"),
    ("The library is closed.", "The library is open.", "contradiction"),
    ("The shop lends books to Ann Lee in 1990.", "Ann Lee is a nurse.", "neutral"),
] * 6


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny three-way checkpoint."""
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a few rows, one of which may not be used."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        {"premise": p, "hypothesis": h, "label": y, "label2": None, "source": "own", "licence": "CC0"}
        for p, h, y in ROWS
    ]
    barred = {"source": "sick", "licence": "CC-BY-NC-SA", "premise": "A.", "hypothesis": "B.", "label": "neutral", "label2": None}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([*rows, barred]), folder / "nli_train.parquet")
    return folder


def _model(base: Path, **changes: int) -> PairClassifier:
    config = json.loads((base / "config.json").read_text())
    model = PairClassifier(config, load_file(base / "model.safetensors"), seed=0, **changes)
    return model.place(torch.device("cpu"), torch.float32)


def _ids(lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(4, 60, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return ids * mask, mask


def _packed(folder: Path, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Logits of the job's own encoder."""
    encoder = load_encoder(folder, dtype=torch.float32, device=torch.device("cpu"))
    bounds = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0))
    return encoder.logits(ids[mask], bounds, max_len=ids.shape[1])


@pytest.mark.parametrize("lengths", [[7, 7], [5, 40, 23], [9, 150, 301]])
def test_the_forward_pass_is_the_jobs(base: Path, lengths: list[int]):
    """Padded, by shifts and with the last layer for one token, it gives the logits of the packed encoder."""
    ids, mask = _ids(lengths)

    with torch.no_grad():
        ours = _model(base)(ids, mask)

    assert (ours - _packed(base, ids, mask)).abs().max() < 2e-5


def test_the_low_rank_product_has_the_gradients_of_the_plain_one():
    """Gradients of the input and of both factors equal autograd's of x (W + 2 B A)."""
    generator = torch.Generator().manual_seed(0)
    x, a, b, w, bias, grad = (
        torch.randn(*shape, generator=generator, dtype=torch.float32)
        for shape in ((2, 3, 8), (16, 8), (5, 16), (5, 8), (5,), (2, 3, 5))
    )
    leaves = [t.requires_grad_() for t in (x, a, b)]

    ours = torch.autograd.grad(_LowRankProduct.apply(x, (w + 2 * b @ a).detach(), bias, a, b), leaves, grad)
    plain = torch.autograd.grad(torch.nn.functional.linear(x, w + 2 * b @ a, bias), leaves, grad)

    assert max(float((o - p).abs().max()) for o, p in zip(ours, plain, strict=True)) < 1e-4


def test_an_adapter_merges_into_what_was_trained(base: Path, tmp_path: Path):
    """The stored adapter, merged as the demo models are built, gives the trained logits but for fp16 rounding."""
    model, (ids, mask) = _model(base), _ids([12, 30])
    rounds = [[(ids[k][mask[k]].tolist(), k) for k in range(2)]] * 4
    train(model, rounds, Plan(minutes=1, steps=4, learning_rate=3e-3), lambda: None, lambda _text: None)
    model.save_adapter(tmp_path / "adapter.safetensors")
    weights = load_file(base / "model.safetensors")

    merge_lora(weights, tmp_path / "adapter.safetensors")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((base / name).read_bytes())
    save_file(
        {k: v.contiguous() for k, v in weights.items()},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    (tmp_path / "adapter.safetensors").unlink()

    with torch.no_grad():
        difference = (model(ids, mask) - _packed(tmp_path, ids, mask)).abs().max()
    assert difference < 2e-2
    assert (_packed(tmp_path, ids, mask) - _packed(base, ids, mask)).abs().max() > 10 * difference


def test_a_blend_lies_between_its_adapters(tmp_path: Path):
    """A quarter of the earlier adapter and three of the new one, tensor by tensor."""
    for name, value in (("old", 4.0), ("new", 8.0)):
        save_file({"pooler.dense.bias": torch.full((3,), value)}, tmp_path / f"{name}.safetensors")

    blend(tmp_path / "new.safetensors", tmp_path / "old.safetensors", 0.25)

    assert load_file(tmp_path / "new.safetensors")["pooler.dense.bias"].tolist() == [7.0, 7.0, 7.0]


def test_layers_below_the_first_do_not_learn(base: Path):
    """Only layers from `first_layer` on get gradients."""
    model, (ids, mask) = _model(base, first_layer=1), _ids([6, 9])

    loss_of(model(ids, mask), [0, -1]).backward()

    learns = {
        key.split("|")[3] for key, p in model.learned.items() if p.grad is not None and "|layer|" in key
    }
    assert learns == {"1", "2"}


def test_a_run_of_steps_repeats_bit_by_bit(base: Path, data: Path, tmp_path: Path):
    """Two runs of two steps with one seed write the same adapter; another seed writes another."""
    digests = []
    for k, seed in enumerate(("3", "3", "4")):
        out = tmp_path / f"{k}.safetensors"
        run(parse([str(data), "--out", str(out), "--base", str(base), "--from", "base", "--steps", "2", "--dtype", "float32", "--batch-tokens", "400", "--seed", seed]))  # fmt: skip
        digests.append(hashlib.sha256(out.read_bytes()).hexdigest())

    assert digests[0] == digests[1] != digests[2]


def test_what_only_two_ways_are_known_of_is_trained_two_ways():
    """A pair known as not entailed costs nothing however the other two classes share the rest."""
    logits = torch.tensor([[9.0, -9.0, 0.0], [0.0, -9.0, 9.0]])

    assert loss_of(logits, [-1, -1]) < 1e-3
    assert loss_of(logits, [1, 1]) > 9
