"""Tiny seeded DeBERTa checkpoints written by code: config.json, model.safetensors, tokenizer.json. No download."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import decoders, models, normalizers, pre_tokenizers

from claimscore.jobs.config import JudgeCard
from claimscore.jobs.judge import Judge

THREE_WAY = {"0": "contradiction", "1": "entailment", "2": "neutral"}

V3: dict[str, Any] = {
    "model_type": "deberta-v2",
    "architectures": ["DebertaV2ForSequenceClassification"],
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "relative_attention": True,
    "max_relative_positions": -1,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "pooler_hidden_act": "gelu",
    "pooler_dropout": 0,
    "pooler_hidden_size": 32,
    "pad_token_id": 0,
}
"""The shape of every v3 checkpoint, at a width of 32."""


def write_tiny(
    folder: Path, *, seed: int = 0, id2label: dict[str, str] | None = None, **changes: Any
) -> Path:
    """Write a checkpoint with random weights; `changes` go over `V3`, a value of None drops the key."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = THREE_WAY if id2label is None else id2label
    config = {key: value for key, value in {**V3, "id2label": labels, **changes}.items() if value is not None}
    config["pooler_hidden_size"] = config["hidden_size"]
    config["label2id"] = {name: int(index) for index, name in labels.items()}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        random_weights(config, len(labels), seed), folder / "model.safetensors", metadata={"format": "pt"}
    )
    write_tokenizer(folder)
    return folder


def random_weights(config: dict[str, Any], n_classes: int, seed: int) -> dict[str, torch.Tensor]:
    """Weights large enough that every part of the forward pass moves the logits."""
    generator = torch.Generator().manual_seed(seed)
    weights: dict[str, torch.Tensor] = {}
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    width = config.get("embedding_size", hidden)

    def matrix(name: str, *shape: int) -> None:
        weights[f"{name}.weight"] = torch.randn(*shape, generator=generator) * 0.25

    def linear(name: str, n_out: int, n_in: int) -> None:
        matrix(name, n_out, n_in)
        weights[f"{name}.bias"] = torch.randn(n_out, generator=generator) * 0.1

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = 1 + torch.randn(hidden, generator=generator) * 0.1
        weights[f"{name}.bias"] = torch.randn(hidden, generator=generator) * 0.1

    matrix("deberta.embeddings.word_embeddings", config["vocab_size"], width)
    norm("deberta.embeddings.LayerNorm")
    if config.get("position_biased_input", True):
        matrix("deberta.embeddings.position_embeddings", config["max_position_embeddings"], width)
    if config["type_vocab_size"]:
        matrix("deberta.embeddings.token_type_embeddings", config["type_vocab_size"], width)
    if width != hidden:
        matrix("deberta.embeddings.embed_proj", hidden, width)
    if config["relative_attention"]:
        farthest = config["max_relative_positions"]
        span = config.get("position_buckets", -1)
        span = span if span > 0 else farthest if farthest > 0 else config["max_position_embeddings"]
        matrix("deberta.encoder.rel_embeddings", 2 * span, hidden)
        if "layer_norm" in config.get("norm_rel_ebd", "none"):
            norm("deberta.encoder.LayerNorm")
    own = (
        []
        if config.get("share_att_key") or not config["relative_attention"]
        else ["pos_key_proj", "pos_query_proj"]
    )
    for index in range(config["num_hidden_layers"]):
        layer = f"deberta.encoder.layer.{index}"
        for name in ("query_proj", "key_proj", "value_proj", *own):
            linear(f"{layer}.attention.self.{name}", hidden, hidden)
        linear(f"{layer}.attention.output.dense", hidden, hidden)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", inner, hidden)
        linear(f"{layer}.output.dense", hidden, inner)
        norm(f"{layer}.output.LayerNorm")
    if config.get("conv_kernel_size", 0):
        kernel = (hidden, hidden // config.get("conv_groups", 1), config["conv_kernel_size"])
        matrix("deberta.encoder.conv.conv", *kernel)
        weights["deberta.encoder.conv.conv.bias"] = torch.randn(hidden, generator=generator) * 0.1
        norm("deberta.encoder.conv.LayerNorm")
    linear("pooler.dense", hidden, hidden)
    linear("classifier", n_classes, hidden)
    return weights


def write_tokenizer(folder: Path) -> None:
    """A Unigram tokenizer of the family's form: [PAD] [CLS] [SEP] [UNK] first, spaces as part of a word."""
    pieces = ["▁", *string.ascii_letters, *string.digits, *".,:;!?$%[]()-'"]
    pieces += [
        f"▁{word}"
        for word in ["the", "shop", "is", "open", "closed", "on", "Sundays", "library", "lends", "books"]
    ]
    vocabulary = [(special, 0.0) for special in ("[PAD]", "[CLS]", "[SEP]", "[UNK]")]
    vocabulary += [(piece, -float(1 + rank % 7)) for rank, piece in enumerate(pieces)]
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]"])
    tokenizer.enable_truncation(16)  # as some checkpoints ship it: whoever reads the file must switch it off
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(folder / "tokenizer.json"))


def pass_self_test(folder: Path, pairs: list[tuple[list[int], int]]) -> Path:
    """Rewrite the classifier so that each packed id list gets its class: a checkpoint that a judge accepts.

    The last layer before the classifier gives as many features as it is wide, so a handful of pairs can be
    told apart exactly by a least-squares classifier, random as the layers below may be.
    """
    from safetensors.torch import load_file

    from claimscore.jobs.encoder import load_encoder

    weights = load_file(folder / "model.safetensors")
    n_classes, hidden = weights["classifier.weight"].shape
    whole = {**weights, "classifier.weight": torch.eye(hidden), "classifier.bias": torch.zeros(hidden)}
    save_file(whole, folder / "model.safetensors")
    encoder = load_encoder(folder, dtype=torch.float32, device=torch.device("cpu"))
    bounds = torch.tensor([0, *(len(ids) for ids, _ in pairs)]).cumsum(0)
    ids = torch.tensor([i for ids, _ in pairs for i in ids])
    features = encoder.logits(ids, bounds, max_len=max(len(ids) for ids, _ in pairs)).double()
    wanted = torch.full((len(pairs), n_classes), -2.0, dtype=torch.float64)
    wanted[range(len(pairs)), [label for _, label in pairs]] = 2.0
    solution = torch.linalg.lstsq(features, wanted, driver="gelsd").solution
    weights["classifier.weight"] = solution.T.float().contiguous()
    weights["classifier.bias"] = torch.zeros(n_classes)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def make_judge(
    folder: Path, *, budget_tokens: int = 4096, self_test: bool = False, dtype: str = "auto", **changes: Any
) -> Judge:
    """A judge of `folder` on the CPU under a card with `changes`; random weights pass no self-test."""
    card = JudgeCard(name="tiny", model=str(folder), entailment=0.5, **changes)
    return Judge(card, budget_tokens=budget_tokens, self_test=self_test, dtype=dtype, device="cpu")
