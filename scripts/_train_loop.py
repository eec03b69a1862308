"""The training loop of the demo judge: batches of like lengths, a learning rate that follows the clock, checkpoints.

Progress is the share of the time (or of the steps, where steps are given) that is used up, so a slow machine ends
with as low a learning rate as a fast one and has merely seen less. Knows nothing of where examples come from.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from _train_model import PairClassifier
from _train_rows import ENTAILMENT, Example
from tokenizers import Tokenizer
from torch import Tensor

CLS, SEP = "[CLS]", "[SEP]"
MAX_CLAIM = 96
WARM_UP = 50
"""Steps until the learning rate is whole."""
LAST = 0.02
"""The share of the learning rate that is left at the end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long and how fast."""

    minutes: float
    steps: int | None = None
    """Ends after so many steps, and the learning rate follows them: for runs that must repeat bit by bit."""
    learning_rate: float = 2e-4
    flat_until: float = 0.0
    """The share of the run during which the learning rate does not sink."""
    batch_tokens: int = 1_600
    max_pair: int = 256
    save_minutes: float = 10.0
    seed: int = 0


Ids = list[int]
Pair = tuple[Ids, int]


class Pairs:
    """Examples as token ids: [CLS] premise [SEP] claim [SEP], the premise cut where a pair is full."""

    def __init__(self, tokenizer_file: Path, max_pair: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._cls, self._sep = (self._tokenizer.token_to_id(t) for t in (CLS, SEP))
        self._max_pair = max_pair

    def of(self, examples: Sequence[Example]) -> list[Pair]:
        """(ids, label) of each example."""
        sides = (
            self._tokenizer.encode_batch([getattr(e, side) for e in examples], add_special_tokens=False)
            for side in ("premise", "claim")
        )
        out = []
        for premise, claim, example in zip(*sides, examples, strict=True):
            said = claim.ids[:MAX_CLAIM]
            room = self._max_pair - len(said) - 3
            out.append(([self._cls, *premise.ids[:room], self._sep, *said, self._sep], example.label))
        return out


def train(
    model: PairClassifier,
    rounds: Iterable[list[Pair]],
    plan: Plan,
    save: Callable[[], None],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Train until the plan's end; `save` is called every so many minutes and at the end."""
    optimiser = torch.optim.AdamW(_groups(model), lr=plan.learning_rate, betas=(0.9, 0.98))
    began = saved = time.monotonic()
    step, seen, n_tokens, mean = 0, 0, 0, 0.0
    for batch in _batches(rounds, plan):
        now = time.monotonic()
        used = step / plan.steps if plan.steps else (now - began) / (60 * plan.minutes)
        if used >= 1:
            break
        rate = plan.learning_rate * min(1, (step + 1) / WARM_UP) * _sink(used, plan.flat_until)
        for group in optimiser.param_groups:
            group["lr"] = rate
        loss = loss_of(model(*padded([ids for ids, _ in batch], model)), [label for _, label in batch])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.learned.values(), 1.0)
        optimiser.step()
        step, seen = step + 1, seen + len(batch)
        n_tokens += sum(len(ids) for ids, _ in batch)
        mean = 0.98 * mean + 0.02 * loss.item()
        if step % 50 == 0:
            speed = n_tokens / (now - began + 1e-9)
            tell(
                f"step {step} {used:.1%} loss {mean / (1 - 0.98**step):.4f} pairs {seen} tokens/s {speed:.0f}"
            )
        if now - saved > 60 * plan.save_minutes:
            save()
            saved = now
    save()
    minutes = (time.monotonic() - began) / 60
    return {"steps": step, "pairs": seen, "tokens": n_tokens, "minutes": round(minutes, 1)}


def loss_of(logits: Tensor, labels: Sequence[int]) -> Tensor:
    """Mean negative log-likelihood; where only "not entailed" is known, of the two other classes together."""
    target = torch.tensor(labels, device=logits.device)
    logs = logits.log_softmax(-1)
    known = F.nll_loss(logs, target.clamp(min=0), reduction="none")
    others = [k for k in range(logits.shape[1]) if k != ENTAILMENT]
    return torch.where(target >= 0, known, -logs[:, others].logsumexp(-1)).mean()


def padded(ids: Sequence[Ids], model: PairClassifier) -> tuple[Tensor, Tensor]:
    """(ids, mask), both (B, L), on the model's device."""
    longest = max(map(len, ids))
    out = torch.zeros(len(ids), longest, dtype=torch.long)
    for row, of_pair in enumerate(ids):
        out[row, : len(of_pair)] = torch.tensor(of_pair)
    lengths = torch.tensor([len(of_pair) for of_pair in ids])
    mask = torch.arange(longest) < lengths[:, None]
    return out.to(model.device), mask.to(model.device)


@torch.inference_mode()
def probabilities(model: PairClassifier, pairs: Sequence[Pair], batch_tokens: int = 4_096) -> Tensor:
    """Class probabilities (P, 3) of the pairs in their order."""
    out = torch.zeros(len(pairs), 3)
    order = sorted(range(len(pairs)), key=lambda k: len(pairs[k][0]))
    for rows in _grouped(order, [len(ids) for ids, _ in pairs], batch_tokens):
        out[rows] = model(*padded([pairs[k][0] for k in rows], model)).softmax(-1).cpu()
    return out


def accuracy(probs: Tensor, rows: Sequence[Example]) -> dict[str, float]:
    """Share of right classes by source and of `all`; of rows known as not entailed, whether entailment is not first."""
    best = probs.argmax(-1).tolist()
    right: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for guess, row in zip(best, rows, strict=True):
        is_right = guess == row.label if row.label >= 0 else guess != ENTAILMENT
        for name in ("all", row.source):
            right[name] += is_right
            of[name] += 1
    return {name: round(right[name] / n, 4) for name, n in of.items()}


def _sink(used: float, flat_until: float) -> float:
    share = max(0.0, (used - flat_until) / (1 - flat_until))
    return LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))


def _batches(rounds: Iterable[list[Pair]], plan: Plan) -> Iterator[list[Pair]]:
    """Batches of at most `batch_tokens` padded tokens, of pairs of like length, in random order within a round."""
    rng = random.Random(f"{plan.seed} batches")
    for pairs in rounds:
        lengths = [len(ids) for ids, _ in pairs]
        order = sorted(range(len(pairs)), key=lambda k: lengths[k] + 6 * rng.random())
        grouped = list(_grouped(order, lengths, plan.batch_tokens))
        rng.shuffle(grouped)
        for rows in grouped:
            yield [pairs[k] for k in rows]


def _grouped(order: Sequence[int], lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    group: list[int] = []
    longest = 0
    for k in order:
        longest = max(longest, lengths[k])
        if group and longest * (len(group) + 1) > budget:
            yield group
            group, longest = [], lengths[k]
        group.append(k)
    if group:
        yield group


def _groups(model: PairClassifier) -> list[dict[str, Any]]:
    matrices = [p for p in model.learned.values() if p.ndim > 1]
    vectors = [p for p in model.learned.values() if p.ndim == 1]
    return [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
