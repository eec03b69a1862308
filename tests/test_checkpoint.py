"""A checkpoint on disk: what is refused and how, and what its fingerprint follows."""

import json

import pytest
import tiny_deberta as tiny
import torch
from safetensors.torch import load_file, save_file

from claimscore.jobs import checkpoint
from claimscore.jobs.encoder import load_encoder
from claimscore.jobs.errors import ModelError


def _pickle_only(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _no_weights(folder):
    (folder / "model.safetensors").unlink()


def _torn_weights(folder):
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:1000])


def _no_classifier(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors")


def _config(**changes):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return change


def _no_json(folder):
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_pickle_only, "its weights are a pickle, 'pytorch_model.bin', expected model.safetensors"),
        (_no_weights, "no model.safetensors, expected a checkpoint's weights"),
        (_torn_weights, "model.safetensors: cannot be read: "),
        (
            _no_classifier,
            "no weight 'classifier.weight', expected all of a DebertaV2ForSequenceClassification",
        ),
        (_no_json, "config.json: cannot be read: "),
        (_config(model_type="bert"), "model_type is 'bert', expected 'deberta-v2'"),
        (_config(hidden_act="mish"), "hidden_act is 'mish', expected one of gelu, "),
        (_config(hidden_size="32"), "hidden_size is '32', expected int"),
        (_config(hidden_size=33), "hidden_size is 33, expected a multiple of num_attention_heads = 4"),
        (_config(vocab_size=100), "word_embeddings.weight' is (200, 32), expected (100, 32) by config.json"),
        (_config(conv_kernel_size=4), "conv_kernel_size is 4, expected an odd number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_checkpoint_that_cannot_be_used_is_refused(tmp_path, damage, message):
    """One line names what was found and what was expected; nothing is guessed."""
    folder = tiny.write_tiny(tmp_path)
    damage(folder)

    with pytest.raises(ModelError) as caught:
        load_encoder(folder, dtype=torch.float32, device=torch.device("cpu"))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    """A local path without a folder is not looked up on a hub."""
    with pytest.raises(ModelError, match=r"nowhere: no such folder, expected a checkpoint"):
        checkpoint.find_folder(str(tmp_path / "nowhere"))


def test_the_fingerprint_follows_content_alone(tmp_path):
    """A copy elsewhere has the same fingerprint; one changed weight, or another tokenizer, another."""
    first = checkpoint.model_fingerprint(str(tiny.write_tiny(tmp_path / "a")))
    other = tiny.write_tiny(tmp_path / "c", seed=1)
    (tmp_path / "d").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / "d" / name).write_bytes((tmp_path / "a" / name).read_bytes())

    assert first == checkpoint.model_fingerprint(str(tmp_path / "d"))
    assert first != checkpoint.model_fingerprint(str(other))
    (tmp_path / "d" / "tokenizer.json").write_text("{}")
    assert first != checkpoint.model_fingerprint(str(tmp_path / "d"))
    assert len(first) == 16
