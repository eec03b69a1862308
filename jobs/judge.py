"""The NLI judge: token ids of (premise, claim) pairs in, three probabilities a pair out; weights stay loaded.

Class order comes from the checkpoint's id2label (or the judge card), never from a habit, and a self-test proves
it before any pair is scored. A pair is `[CLS] premise [SEP] claim [SEP]`; nothing is truncated here. It knows no
threshold and no verdict: the card's thresholds belong to those who read the scores. torch is imported when a
Judge is made, so tokenising and fingerprinting stay light.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from claimscore.jobs.batch import micro_batches
from claimscore.jobs.checkpoint import find_folder, model_fingerprint, read_json
from claimscore.jobs.config import JudgeCard
from claimscore.jobs.errors import ModelError
from claimscore.jobs.flat import runs
from claimscore.jobs.lanes import budget_of, in_lanes
from claimscore.jobs.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    import torch

__all__ = ["Judge", "Tokenizer", "class_columns", "load_tokenizer", "model_fingerprint"]

N_SPECIAL = 3
"""[CLS] and two [SEP] of a pair."""
CPU_TOKENS = 1024
"""Tokens of a forward pass on a core, at most: what a layer makes of them stays in its cache. Two cores with 2 MiB each,
in fp32: 512 and 1,024 are within 1 %, 2,048 is 5 % slower."""
THREE = ("entailment", "neutral", "contradiction")
SUPPORTED = ("entailment", "supported")
NOT_SUPPORTED = ("not_entailment", "not_supported", "unsupported")
SELF_TEST: tuple[tuple[str, str, int], ...] = (
    ("The shop is open on Sundays.", "The shop is open on Sundays.", 0),
    ("The library lends books for three weeks.", "The volcano erupted last night.", 1),
    ("The shop is open on Sundays.", "The shop is closed on Sundays.", 2),
)
"""Premise, claim, and the label (index into THREE) that no NLI checkpoint worth using misses."""


def class_columns(where: str, names: Sequence[str]) -> tuple[int, ...]:
    """Class index of (entailment, neutral, contradiction), or of (supported, not supported).

    Case, blanks and hyphens do not matter. Three classes: entailment, neutral, contradiction. Two classes:
    entailment or supported against not_entailment, not_supported or unsupported.

    Raises:
        ModelError: other names (LABEL_0 among them), another count, or a name twice.
    """
    folded = ["_".join(name.lower().replace("-", " ").replace("_", " ").split()) for name in names]
    if sorted(folded) == sorted(THREE):
        return tuple(folded.index(label) for label in THREE)
    if len(folded) == 2:
        for positive, negative in ((0, 1), (1, 0)):
            if folded[positive] in SUPPORTED and folded[negative] in NOT_SUPPORTED:
                return positive, negative
    raise ModelError(
        f"{where}: classes are {list(names)!r}, expected {', '.join(THREE)} in any order, or two of "
        f"{' / '.join(SUPPORTED)} and {' / '.join(NOT_SUPPORTED)}; name them by class index in the card's `labels`"
    )


class Judge:
    """A DeBERTa cross-encoder under one judge card."""

    def __init__(
        self,
        card: JudgeCard,
        *,
        budget_tokens: int,
        dtype: str = "auto",
        device: str = "auto",
        self_test: bool = True,
    ) -> None:
        """Load the checkpoint, settle its classes and run the self-test.

        Args:
            card: which checkpoint, the names of its classes where id2label has none, its longest pair.
            budget_tokens: real tokens in one forward pass, at most; on a CPU no more than CPU_TOKENS.
            dtype: float32, bfloat16, float16, or auto (float16 on a GPU, float32 on a CPU: bfloat16 decides 3 of 1,500
                pairs differently there, and is from 1.7 times as fast to 1.7 times as slow).
            device: cpu, cuda or auto.
            self_test: score known pairs first; without it nothing proves that the class names are right.

        Raises:
            ModelError: the checkpoint is missing, refused or inconsistent, or fails the self-test.
        """
        import torch  # noqa: PLC0415 - seconds and hundreds of MiB; only a process with a judge pays

        from claimscore.jobs.encoder import load_encoder  # noqa: PLC0415 - imports torch

        folder = find_folder(card.model)
        cuda = torch.cuda.is_available()
        if device == "cuda" and not cuda:
            raise ModelError(
                f"judge {card.name!r}: device is 'cuda', but no CUDA device is there; use 'auto' or 'cpu'"
            )
        self._device = torch.device("cuda" if device in {"auto", "cuda"} and cuda else "cpu")
        on_gpu = self._device.type == "cuda"
        self.dtype = ("float16" if on_gpu else "float32") if dtype == "auto" else dtype
        self.card, self._budget_tokens = card, budget_tokens if on_gpu else min(budget_tokens, CPU_TOKENS)
        # Asked for here: a thread that comes later is told what a lane has set.
        self._n_lanes = 1 if on_gpu else torch.get_num_threads()
        self._tokenizer = load_tokenizer(card.model)
        self._encoder = load_encoder(folder, dtype=getattr(torch, self.dtype), device=self._device)
        self._columns = class_columns(f"judge {card.name!r}", self._class_names())
        self._check_lengths()
        if self_test:
            self._self_test()

    @property
    def device_name(self) -> str:
        """What it runs on, as its maker names it where that is known: another device rounds otherwise."""
        import torch  # noqa: PLC0415 - as in __init__

        if self._device.type == "cuda":
            return torch.cuda.get_device_name(self._device)
        return f"{self._device.type} ({torch.backends.cpu.get_cpu_capability()})"

    def probabilities(
        self,
        premise_ids: pa.ListArray,
        claim_ids: pa.ListArray,
        tick: Callable[[int], None] = lambda _: None,
    ) -> np.ndarray:
        """Probabilities of entailment, neutral and contradiction for each pair.

        A score does not depend on the pairs beside it, but for rounding (1e-5 in float32, 2e-2 in bfloat16).

        Args:
            premise_ids: token ids without special tokens, list<int32>, no nulls; a list may be empty.
            claim_ids: the same of the claims, row by row.
            tick: told the pairs of each micro-batch once they are scored.

        Returns:
            float32 (P, 3) in input order. Two-class heads: (P(supported), 1 - P(supported), 0). A row whose
            logits are not finite is NaN throughout. No pairs: (0, 3).

        Raises:
            ValueError: a null, unequal counts, an id outside the vocabulary, or a pair of more than
                `card.max_pair_tokens` tokens with its three special ones: windows are the caller's business.
        """
        premises, claims = (_Ragged.of(ids) for ids in (premise_ids, claim_ids))
        lengths_P = self._checked_lengths(premises, claims)
        probs_P3 = np.full((len(lengths_P), 3), np.nan, np.float32)
        budget = budget_of(int(lengths_P.sum()), self._n_lanes, most=self._budget_tokens)
        batches = [np.asarray(batch) for batch in micro_batches(lengths_P.tolist(), budget)]

        def score(rows: np.ndarray) -> np.ndarray:
            return self._score(premises, claims, rows, lengths_P[rows])

        for rows, probs in in_lanes(score, batches, self._n_lanes):
            probs_P3[rows] = probs
            tick(len(rows))
        return probs_P3

    def _score(
        self, premises: _Ragged, claims: _Ragged, rows: np.ndarray, lengths_P: np.ndarray
    ) -> np.ndarray:
        import torch  # noqa: PLC0415 - as in __init__

        n_premise, n_claim = premises.lengths[rows], claims.lengths[rows]
        cu_seqlens = np.concatenate([[0], np.cumsum(lengths_P)])
        ids_T = np.empty(cu_seqlens[-1], np.int64)
        segments_T = np.zeros(cu_seqlens[-1], np.int64)
        premise_at, claim_at = cu_seqlens[:-1] + 1, cu_seqlens[:-1] + n_premise + 2
        ids_T[cu_seqlens[:-1]] = self._tokenizer.cls_id
        ids_T[claim_at - 1] = ids_T[cu_seqlens[1:] - 1] = self._tokenizer.sep_id
        ids_T[runs(premise_at, n_premise)] = premises.values[runs(premises.starts[rows], n_premise)]
        ids_T[runs(claim_at, n_claim)] = claims.values[runs(claims.starts[rows], n_claim)]
        segments_T[runs(claim_at, n_claim + 1)] = 1
        ids, bounds, segments = (
            torch.from_numpy(a).to(self._device, non_blocking=True) for a in (ids_T, cu_seqlens, segments_T)
        )
        types = segments if self._encoder.config.type_vocab_size > 1 else None
        logits_PC = self._encoder.logits(ids, bounds, max_len=int(lengths_P.max()), type_ids_T=types)
        return self._to_labels(logits_PC)

    def _to_labels(self, logits_PC: torch.Tensor) -> np.ndarray:
        """Class probabilities in the order of THREE; a row with any logit that is not finite becomes NaN."""
        logits = logits_PC.double().cpu().numpy()
        with np.errstate(invalid="ignore"):
            exps = np.exp(logits - logits.max(axis=1, keepdims=True))
            probs = (exps / exps.sum(axis=1, keepdims=True))[:, self._columns]
        if len(self._columns) == 2:
            probs = np.stack([probs[:, 0], 1 - probs[:, 0], np.zeros(len(probs))], axis=1)
        probs[~np.isfinite(logits).all(axis=1)] = np.nan
        labels_P3: np.ndarray = probs.astype(np.float32)
        return labels_P3

    def _class_names(self) -> list[str]:
        """Names by class index: the card's, else the checkpoint's id2label."""
        n_classes = self._encoder.n_classes
        where = f"judge {self.card.name!r}"
        if self.card.labels:
            names = list(self.card.labels)
        else:
            path = find_folder(self.card.model) / "config.json"
            id2label = read_json(path).get("id2label")
            if not isinstance(id2label, dict) or set(id2label) != {str(i) for i in range(n_classes)}:
                raise ModelError(
                    f"{where}: {path}: id2label is {id2label!r}, expected a name for each of {n_classes} classes; "
                    "name them by class index in the card's `labels`"
                )
            names = [str(id2label[str(i)]) for i in range(n_classes)]
        if len(names) != n_classes:
            raise ModelError(
                f"{where}: {len(names)} labels, expected {n_classes}, as many as the classifier has"
            )
        return names

    def _check_lengths(self) -> None:
        config, where = self._encoder.config, f"judge {self.card.name!r}"
        if config.position_biased_input and self.card.max_pair_tokens > config.max_position_embeddings:
            raise ModelError(
                f"{where}: max_pair_tokens is {self.card.max_pair_tokens}, expected at most "
                f"{config.max_position_embeddings}, the checkpoint's absolute positions; lower it in the card"
            )
        if self._tokenizer.n_ids > config.vocab_size:
            raise ModelError(
                f"{where}: the tokenizer has {self._tokenizer.n_ids} ids, expected at most {config.vocab_size}, "
                "the rows of the word embeddings; the folder mixes two checkpoints"
            )

    def _checked_lengths(self, premises: _Ragged, claims: _Ragged) -> np.ndarray:
        if len(premises.lengths) != len(claims.lengths):
            raise ValueError(
                f"{len(premises.lengths)} premises and {len(claims.lengths)} claims, expected as many"
            )
        lengths_P: np.ndarray = premises.lengths + claims.lengths + N_SPECIAL
        if len(lengths_P) and lengths_P.max() > self.card.max_pair_tokens:
            row = int(lengths_P.argmax())
            raise ValueError(
                f"pair {row} has {lengths_P[row]} tokens, expected at most {self.card.max_pair_tokens}; window its premise"
            )
        vocab_size = self._encoder.config.vocab_size
        for ids in (premises.values, claims.values):
            if len(ids) and (ids.min() < 0 or ids.max() >= vocab_size):  # on a GPU it would end the process
                raise ValueError(f"token ids span {ids.min()} to {ids.max()}, expected 0 to {vocab_size - 1}")
        return lengths_P

    def _self_test(self) -> None:
        """Known pairs get their label, and a blank and a longest pair finite scores, in this dtype and device."""
        premises, claims = [pair[0] for pair in SELF_TEST], [pair[1] for pair in SELF_TEST]
        long = " ".join([SELF_TEST[0][0]] * 100)
        ids = self._tokenizer.encode(pa.array([*premises, "", long, *claims, ""]))["ids"].combine_chunks()
        n = len(SELF_TEST)
        longest = ids[n + 1].values.slice(0, min(self.card.max_pair_tokens, 512) - N_SPECIAL)
        premise_ids = pa.array([*ids[: n + 1].to_pylist(), longest.to_pylist()], pa.list_(pa.int32()))
        claim_ids = pa.array([*ids[n + 2 :].to_pylist(), []], pa.list_(pa.int32()))
        probs_P3 = self.probabilities(premise_ids, claim_ids)
        where = f"judge {self.card.name!r}: self-test in {self.dtype} on {self._device.type}"
        if not np.isfinite(probs_P3).all():
            raise ModelError(
                f"{where}: scores are not finite; set [judge] dtype = 'float32', or fetch the weights again"
            )
        for (premise, claim, label), probs in zip(SELF_TEST, probs_P3, strict=False):
            entailed = probs[0] > 0.5
            if entailed != (label == 0) or (label == 2 and len(self._columns) == 3 and probs[2] <= probs[1]):
                scores = ", ".join(f"{name} {p:.2f}" for name, p in zip(THREE, probs, strict=True))
                raise ModelError(
                    f"{where}: {claim!r} after {premise!r} scored {scores}, expected {THREE[label]}; "
                    "the class names (the card's `labels`, or id2label) or the weights are wrong"
                )


class _Ragged(NamedTuple):
    """Lists of ids as one array of values with the start and length of each list."""

    values: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, lists: pa.ListArray | pa.ChunkedArray) -> _Ragged:
        if isinstance(lists, pa.ChunkedArray):
            lists = lists.combine_chunks()
        if lists.null_count or lists.values.null_count:
            raise ValueError(
                f"{lists.null_count} lists and {lists.values.null_count} ids are null, expected none"
            )
        offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        # Only what the lists cover: the values of a slice reach beyond it.
        first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        values = lists.values.slice(first, last - first).to_numpy(zero_copy_only=False)
        return cls(values, offsets[:-1] - first, np.diff(offsets))
