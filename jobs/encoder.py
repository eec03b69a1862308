"""Inference-only DebertaV2ForSequenceClassification, v2 and v3 of any size, over a packed token stream.

Pairs lie end to end without padding from the embeddings to the logits; position projections are computed once
at load; the last layer is computed for each pair's first token only, which is all that the head reads. No
transformers, no remote code. It does not know labels, tokenizers, or how a pair is joined. Method: He et al.
2021 (arXiv:2006.03654) and 2023 (arXiv:2111.09543); names, buckets, convolution as in transformers' DebertaV2.
Over 300 lines: loading and forward pass name the same weights and are read side by side.
Shapes: T packed tokens, P pairs, H heads, D head size, E hidden, R position rows, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from claimscore.jobs.checkpoint import EncoderConfig, Weights, read_encoder_config
from claimscore.jobs.errors import ModelError
from claimscore.kernels import cpu_linear, dispatch

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": torch.ops.aten.gelu_,
    "gelu_new": lambda x: torch.ops.aten.gelu_(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: torch.ops.aten.gelu_(x, approximate="tanh"),
    "relu": torch.relu_,
    "silu": lambda x: F.silu(x, inplace=True),
    "swish": lambda x: F.silu(x, inplace=True),
    "tanh": torch.tanh_,
}
"""In place, on what a product has just written: a buffer less, and its 6 MB of fresh pages a layer and 1,024 tokens."""


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x, self.bias)

    def without_bias(self, x: Tensor) -> Tensor:
        """The product alone, for a kernel that adds the bias."""
        return self._product(x, None)

    def _product(self, x: Tensor, bias: Tensor | None) -> Tensor:
        if self.weight.is_mkldnn:
            return cpu_linear.linear(x, self.weight, bias)
        return F.linear(x, self.weight, bias)


@dataclass(frozen=True, slots=True)
class _LayerNorm:
    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def after_adding(self, x: Tensor, residual: Tensor) -> Tensor:
        """The norm of the sum, in one pass where the device has a kernel for it."""
        return dispatch.add_layer_norm(x, residual, self.weight, self.bias, self.eps)


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: tuple[_Linear, ...]
    """Queries, keys and values in one product; in two, queries apart, where first tokens alone are computed."""
    position_keys: Tensor | None
    """(R, H, D), for the score of a query against a distance."""
    position_queries: Tensor | None
    """(R, H, D), for the score of a key against a distance."""
    attention_out: _Linear
    attention_norm: _LayerNorm
    up: _Linear
    down: _Linear
    out_norm: _LayerNorm


@dataclass(frozen=True, slots=True)
class _Embeddings:
    words: Tensor
    positions: Tensor | None
    types: Tensor | None
    project: _Linear | None
    norm: _LayerNorm


@dataclass(frozen=True, slots=True)
class _Conv:
    weight: Tensor
    bias: Tensor
    groups: int
    norm: _LayerNorm


@dataclass(frozen=True, slots=True)
class Encoder:
    """A loaded checkpoint; `logits` is all that it does."""

    config: EncoderConfig
    n_classes: int
    device: torch.device
    _embeddings: _Embeddings
    _layers: list[_Layer]
    _conv: _Conv | None
    _pooler: _Linear
    _classifier: _Linear
    _slots: dict[int, Tensor] = field(default_factory=dict)
    """Table row of each distance, by the longest pair it serves (a power of two); built when first needed."""

    @torch.inference_mode()
    def logits(
        self, ids_T: Tensor, cu_seqlens: Tensor, *, max_len: int, type_ids_T: Tensor | None = None
    ) -> Tensor:
        """Logits (P, C) in fp32 of the pairs in a packed stream; zero pairs give zero rows.

        Args:
            ids_T: token ids below `config.vocab_size`, special tokens included, on this encoder's device.
            cu_seqlens: (P + 1,) cumulative tokens from 0; every pair has at least one token.
            max_len: tokens of the longest pair; with absolute positions at most `max_position_embeddings`.
            type_ids_T: segment ids; None: all 0. Ignored by checkpoints without segments.
        """
        if cu_seqlens.shape[0] < 2:
            return torch.zeros(0, self.n_classes, device=self.device)
        options = {"max_len": max_len, "slots": self._slots_for(max_len), "scale": self.config.score_scale}
        embedded_TE = self._embed(ids_T, cu_seqlens, type_ids_T)
        hidden_TE = embedded_TE
        for index, layer in enumerate(self._layers):
            hidden_TE = self._run_layer(layer, hidden_TE, cu_seqlens, options)
            if index == 0 and self._conv is not None:
                hidden_TE = self._convolve(self._conv, embedded_TE, hidden_TE, cu_seqlens)
                hidden_TE = hidden_TE[cu_seqlens[:-1]] if len(self._layers) == 1 else hidden_TE
        pooled_PE = ACTIVATIONS[self.config.pooler_hidden_act](self._pooler(hidden_TE))
        return self._classifier(pooled_PE).float()

    def _embed(self, ids_T: Tensor, cu_seqlens: Tensor, type_ids_T: Tensor | None) -> Tensor:
        parts = self._embeddings
        embedded_TE = F.embedding(ids_T, parts.words)
        if parts.positions is not None:
            lengths_P = cu_seqlens.diff()
            starts_T = torch.repeat_interleave(cu_seqlens[:-1], lengths_P, output_size=ids_T.shape[0])
            embedded_TE = (
                embedded_TE + parts.positions[torch.arange(ids_T.shape[0], device=self.device) - starts_T]
            )
        if parts.types is not None:
            types_TE = parts.types[0] if type_ids_T is None else parts.types[type_ids_T]
            embedded_TE = embedded_TE + types_TE
        if parts.project is not None:
            embedded_TE = parts.project(embedded_TE)
        return parts.norm(embedded_TE)

    def _run_layer(
        self, layer: _Layer, hidden_TE: Tensor, cu_seqlens: Tensor, options: dict[str, Any]
    ) -> Tensor:
        """One layer: (T, E) to (T, E), or to (P, E) where only first tokens are asked for."""
        n_heads = self.config.num_attention_heads
        tables = (layer.position_keys, layer.position_queries, cu_seqlens)
        if len(layer.qkv) == 2:
            residual = hidden_TE[cu_seqlens[:-1]]
            q_PHD = layer.qkv[0](residual).unflatten(-1, (n_heads, -1))
            k_THD, v_THD = layer.qkv[1](hidden_TE).unflatten(-1, (2, n_heads, -1)).unbind(1)
            context = dispatch.cls_attention(q_PHD, k_THD, v_THD, *tables, **options)
        else:
            residual = hidden_TE
            q_THD, k_THD, v_THD = layer.qkv[0](hidden_TE).unflatten(-1, (3, n_heads, -1)).unbind(1)
            context = dispatch.disentangled_attention(q_THD, k_THD, v_THD, *tables, **options)
        attended = layer.attention_norm.after_adding(layer.attention_out(context.flatten(1)), residual)
        if self.config.hidden_act == "gelu" and dispatch.backend_for(attended) == "triton":
            widened = dispatch.bias_gelu(layer.up.without_bias(attended), layer.up.bias)
        else:  # without a kernel that adds the bias, the product does it at no cost
            widened = ACTIVATIONS[self.config.hidden_act](layer.up(attended))
        return layer.out_norm.after_adding(layer.down(widened), attended)

    def _convolve(self, conv: _Conv, embedded_TE: Tensor, hidden_TE: Tensor, cu_seqlens: Tensor) -> Tensor:
        """Add a convolution over the embeddings; zero rows between the pairs keep it within each pair."""
        n_zeros = conv.weight.shape[-1] // 2
        n_tokens, lengths_P = embedded_TE.shape[0], cu_seqlens.diff()
        pair_T = torch.repeat_interleave(
            torch.arange(lengths_P.shape[0], device=self.device), lengths_P, output_size=n_tokens
        )
        spaced_T = torch.arange(n_tokens, device=self.device) + (pair_T + 1) * n_zeros
        spaced = embedded_TE.new_zeros(n_tokens + (lengths_P.shape[0] + 1) * n_zeros, embedded_TE.shape[1])
        spaced[spaced_T] = embedded_TE
        convolved = F.conv1d(spaced.T[None], conv.weight, conv.bias, padding=n_zeros, groups=conv.groups)[0].T
        return conv.norm(hidden_TE + ACTIVATIONS[self.config.conv_act](convolved[spaced_T]))

    def _slots_for(self, max_len: int) -> Tensor | None:
        if not self.config.relative_attention or not self.config.pos_att_type:
            return None
        size = 1 << max(max_len - 1, 1).bit_length()
        if size not in self._slots:
            self._slots[size] = position_slots(self.config, size).to(self.device)
        return self._slots[size]


def position_slots(config: EncoderConfig, max_len: int) -> Tensor:
    """(2 * max_len - 1,) int64: row of the position table for each distance from -(max_len - 1) upwards.

    Small distances have a row each, larger ones share rows in logarithmic buckets (arXiv:2006.03654, A.5, as in
    transformers, in fp32 as there, so that a distance on the edge of a bucket falls on the same side).
    """
    distances = torch.arange(1 - max_len, max_len)
    rows = distances
    if config.position_buckets > 0:
        mid = config.position_buckets // 2
        size = distances.abs().clamp(min=max(mid - 1, 1))
        widest = torch.log(torch.tensor((config.max_distance - 1) / mid))
        logs = torch.ceil(torch.log(size / mid) / widest * (mid - 1)) + mid
        rows = torch.where(distances.abs() <= mid, distances, (logs * distances.sign()).to(torch.int64))
    span = config.position_span
    return (rows + span).clamp(0, 2 * span - 1)


def load_encoder(folder: Path, *, dtype: torch.dtype, device: torch.device) -> Encoder:
    """Load a checkpoint's folder.

    Raises:
        ModelError: an unreadable or unsupported config.json, no safetensors, a weight missing or misshapen.
    """
    config = read_encoder_config(folder)
    for name in ("hidden_act", "conv_act", "pooler_hidden_act"):
        if (act := getattr(config, name)) not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ModelError(f"{folder / 'config.json'}: {name} is {act!r}, expected one of {known}")
    load = _Loader(config, Weights(folder), dtype, device)
    table_RE = load.position_table()
    n_classes = load.weights.read("classifier.bias", -1).shape[0]
    return Encoder(
        config=config,
        n_classes=n_classes,
        device=device,
        _embeddings=load.embeddings(),
        _layers=[load.layer(i, table_RE) for i in range(config.num_hidden_layers)],
        _conv=load.conv("deberta.encoder.conv") if config.conv_kernel_size > 0 else None,
        _pooler=load.linear("pooler.dense", config.hidden_size, config.hidden_size),
        _classifier=load.linear("classifier", n_classes, config.hidden_size),
    )


@dataclass(frozen=True, slots=True)
class _Loader:
    """Builds the parts of an encoder; every weight's shape is checked against the config."""

    config: EncoderConfig
    weights: Weights
    dtype: torch.dtype
    device: torch.device

    def place(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, self.dtype).contiguous()

    def linear(self, name: str, n_out: int, n_in: int) -> _Linear:
        weight, bias = (
            self.weights.read(f"{name}.weight", n_out, n_in),
            self.weights.read(f"{name}.bias", n_out),
        )
        return self.packed(weight, bias)

    def packed(self, weight: Tensor, bias: Tensor | None) -> _Linear:
        placed = self.place(weight)
        if cpu_linear.packs(self.device, self.dtype):
            placed = cpu_linear.packed(placed)
        return _Linear(placed, None if bias is None else self.place(bias))

    def norm(self, name: str) -> _LayerNorm:
        weight, bias = (
            self.weights.read(f"{name}.{part}", self.config.hidden_size) for part in ("weight", "bias")
        )
        return _LayerNorm(self.place(weight), self.place(bias), self.config.layer_norm_eps)

    def embeddings(self) -> _Embeddings:
        config, prefix = self.config, "deberta.embeddings"
        width = config.embedding_size or config.hidden_size

        def table(name: str, n_rows: int) -> Tensor | None:
            return (
                self.place(self.weights.read(f"{prefix}.{name}.weight", n_rows, width))
                if n_rows > 0
                else None
            )

        words = table("word_embeddings", config.vocab_size)
        assert words is not None
        project = None
        if width != config.hidden_size:
            weight = self.weights.read(f"{prefix}.embed_proj.weight", config.hidden_size, width)
            project = self.packed(weight, None)
        n_positions = config.max_position_embeddings if config.position_biased_input else 0
        return _Embeddings(
            words=words,
            positions=table("position_embeddings", n_positions),
            types=table("token_type_embeddings", config.type_vocab_size),
            project=project,
            norm=self.norm(f"{prefix}.LayerNorm"),
        )

    def position_table(self) -> Tensor | None:
        """Relative-position embeddings (R, E) in fp32, normalised as the checkpoint asks."""
        config = self.config
        if not config.relative_attention or not config.pos_att_type:
            return None
        width = config.hidden_size
        table_RE = self.weights.read("deberta.encoder.rel_embeddings.weight", 2 * config.position_span, width)
        if "layer_norm" in config.norm_rel_ebd.lower():
            norm = [
                self.weights.read(f"deberta.encoder.LayerNorm.{part}", width) for part in ("weight", "bias")
            ]
            table_RE = F.layer_norm(table_RE, (width,), norm[0], norm[1], config.layer_norm_eps)
        return table_RE

    def layer(self, index: int, table_RE: Tensor | None) -> _Layer:
        config, width = self.config, self.config.hidden_size
        prefix = f"deberta.encoder.layer.{index}"

        def projection(name: str) -> tuple[Tensor, Tensor]:
            name = f"{prefix}.attention.self.{name}"
            return self.weights.read(f"{name}.weight", width, width), self.weights.read(f"{name}.bias", width)

        def position(kind: str, shared: str, own: str) -> Tensor | None:
            if table_RE is None or kind not in config.pos_att_type:
                return None
            projected_RE = F.linear(table_RE, *projection(shared if config.share_att_key else own))
            return self.place(projected_RE.unflatten(-1, (config.num_attention_heads, -1)))

        matrices, biases = zip(*map(projection, ("query_proj", "key_proj", "value_proj")), strict=True)
        # The convolution reads the first layer's output at every token.
        cls_only = index == config.num_hidden_layers - 1 and not (index == 0 and config.conv_kernel_size > 0)
        parts = [slice(0, 1), slice(1, 3)] if cls_only else [slice(0, 3)]
        return _Layer(
            qkv=tuple(self.packed(torch.cat(matrices[part]), torch.cat(biases[part])) for part in parts),
            position_keys=position("c2p", "key_proj", "pos_key_proj"),
            position_queries=position("p2c", "query_proj", "pos_query_proj"),
            attention_out=self.linear(f"{prefix}.attention.output.dense", width, width),
            attention_norm=self.norm(f"{prefix}.attention.output.LayerNorm"),
            up=self.linear(f"{prefix}.intermediate.dense", config.intermediate_size, width),
            down=self.linear(f"{prefix}.output.dense", width, config.intermediate_size),
            out_norm=self.norm(f"{prefix}.output.LayerNorm"),
        )

    def conv(self, prefix: str) -> _Conv:
        config, width = self.config, self.config.hidden_size
        kernel = self.weights.read(
            f"{prefix}.conv.weight", width, width // config.conv_groups, config.conv_kernel_size
        )
        bias = self.weights.read(f"{prefix}.conv.bias", width)
        return _Conv(
            self.place(kernel), self.place(bias), config.conv_groups, self.norm(f"{prefix}.LayerNorm")
        )
