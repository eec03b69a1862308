"""Premises of every width for every claim, judged, with what the rules say beside them: what ablations are made of.

A claim may be taken whole or sentence by sentence. Widths: windows of whole sentences up to so many tokens, with one
sentence of overlap; and one premise of the sentences that share most with the claim, in their order. Knows no label.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from _quality_baselines import MIN_PREMISE, PAIR_TOKENS, room
from _quality_cases import Case, words
from _quality_judge import CachedJudge

from claimscore.jobs import rules
from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.segment import sentence_spans
from claimscore.jobs.windows import N_SPECIAL_TOKENS

Texts = list[str]


@dataclass(frozen=True, slots=True)
class Pool:
    """P judged pairs of M claim parts of N cases, in order of their parts."""

    part: np.ndarray
    """int (P,): which part each pair judges."""
    case_of_part: np.ndarray
    """int (M,)"""
    probs: np.ndarray
    """float (P, 3): entailment, neutral, contradiction."""
    n_tokens: np.ndarray
    overlap: np.ndarray
    """Share of the part's distinct words that the premise holds, (P,)."""
    lacks: np.ndarray
    """Values of the part that the premise lacks, (P,)."""
    lacks_names: np.ndarray
    n_cases: int
    is_joined: np.ndarray
    """Whether the premise is several windows, (P,)."""
    premise: np.ndarray
    """The premise's text, blanks folded, object (P,)."""

    @property
    def margin(self) -> np.ndarray:
        """Entailment minus contradiction, (P,)."""
        found: np.ndarray = self.probs[:, 0] - self.probs[:, 2]
        return found

    def take(self, rows: np.ndarray) -> Pool:
        """Some of the pairs."""
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    def and_(self, other: Pool) -> Pool:
        """The pairs of both, of the same parts; a premise that both have is counted and judged once."""
        both = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in _COLUMNS}
        seen: set[tuple[int, str]] = set()
        first = []
        for k, key in enumerate(zip(both["part"].tolist(), both["premise"].tolist(), strict=True)):
            if key not in seen:
                seen.add(key)
                first.append(k)
        order = np.array(first)[np.argsort(both["part"][first], kind="stable")]
        return dataclasses.replace(self, **{name: column[order] for name, column in both.items()})

    def best(self, scores: np.ndarray, lowest: float = -3.0) -> np.ndarray:
        """The highest score of each part, (M,); `lowest` for a part without pairs."""
        out = np.full(len(self.case_of_part), lowest)
        np.maximum.at(out, self.part, scores)
        return out

    def first_of(self, order_by: np.ndarray, k: int) -> np.ndarray:
        """The rows of each part's k highest `order_by`, earlier pairs first among equals, ascending."""
        order = np.lexsort((np.arange(len(order_by)), -order_by, self.part))
        starts = np.searchsorted(self.part[order], np.arange(len(self.case_of_part)))
        rank = np.arange(len(order)) - starts[self.part[order]]
        return np.sort(order[rank < k])

    def of_cases(self, of_parts: np.ndarray, how: str = "min") -> np.ndarray:
        """One number a case of those of its parts: min or mean."""
        if how == "mean":
            counts = np.bincount(self.case_of_part, minlength=self.n_cases)
            total: np.ndarray = np.bincount(self.case_of_part, of_parts, self.n_cases) / counts
            return total
        out = np.full(self.n_cases, np.inf)
        np.minimum.at(out, self.case_of_part, of_parts)
        return out


_COLUMNS = ("part", "probs", "n_tokens", "overlap", "lacks", "lacks_names", "is_joined", "premise")


def folded(texts: Sequence[str | None]) -> np.ndarray:
    """Texts with every run of blanks as one, object (N,)."""
    return np.array([" ".join((text or "").split()) for text in texts], dtype=object)


def whole_claims(cases: Sequence[Case]) -> tuple[Texts, np.ndarray]:
    """Every claim as it is: its text, its case."""
    return [case.claim for case in cases], np.arange(len(cases))


def claim_sentences(cases: Sequence[Case]) -> tuple[Texts, np.ndarray]:
    """Every claim sentence by sentence; pieces without two words are left out, unless nothing else is there."""
    texts, owners = [], []
    for k, (case, found) in enumerate(zip(cases, _sentences([c.claim for c in cases]), strict=True)):
        kept = [piece for piece in found if len(words(piece)) > 1] or [case.claim]
        texts += kept
        owners += [k] * len(kept)
    return texts, np.array(owners)


Premises = Callable[[Case, str], Texts]
"""(case, part of its claim) -> premises."""


def pool(
    cases: Sequence[Case], parts: tuple[Texts, np.ndarray], premises: Premises, judge: CachedJudge
) -> Pool:
    """Judge every premise of every part."""
    texts, case_of_part = parts
    limit = PAIR_TOKENS - N_SPECIAL_TOKENS - MIN_PREMISE
    claim_ids = [ids[:limit] for ids in judge.ids(texts)]
    found = [premises(cases[k], text) for text, k in zip(texts, case_of_part.tolist(), strict=True)]
    part = np.array([k for k, of_part in enumerate(found) for _ in of_part], dtype=np.int64)
    flat = [text for of_part in found for text in of_part]
    ids = [premise[: room(claim_ids[k])] for premise, k in zip(judge.ids(flat), part.tolist(), strict=True)]
    kind = pa.list_(pa.int32())
    paired = [claim_ids[k] for k in part.tolist()]
    claims = pa.array([texts[k] for k in part.tolist()], pa.string())
    questions = pa.array([cases[case_of_part[k]].question for k in part.tolist()], pa.string())
    premise_texts = pa.array(flat, pa.string())
    missing = rules.missing_values(claims, premise_texts, questions)
    names = rules.missing_names(claims, premise_texts)
    return Pool(
        part=part,
        case_of_part=case_of_part,
        probs=judge.probabilities(pa.array(ids, kind), pa.array(paired, kind)),
        n_tokens=np.array([len(a) + len(b) + N_SPECIAL_TOKENS for a, b in zip(ids, paired, strict=True)]),
        overlap=np.array([share(texts[k], text) for k, text in zip(part.tolist(), flat, strict=True)]),
        lacks=np.array([len(row) for row in missing.to_pylist()]),
        lacks_names=np.array([len(row) for row in names.to_pylist()]),
        n_cases=len(cases),
        is_joined=np.zeros(len(flat), bool),
        premise=folded(flat),
    )


class Widths:
    """The premises of a case by width; sentences and their token counts are found once a case."""

    def __init__(self, cases: Sequence[Case], judge: CachedJudge) -> None:
        self._sentences: dict[str, list[list[tuple[str, int]]]] = {}
        flat = [(case.id, text) for case in cases for text in case.chunks]
        split = _sentences([text for _, text in flat])
        counts = iter(judge.ids([piece for found in split for piece in found]))
        for (case_id, _), found in zip(flat, split, strict=True):
            self._sentences.setdefault(case_id, []).append([(piece, len(next(counts))) for piece in found])

    def windows(self, tokens: int, keep: int) -> Premises:
        """Whole sentences of one chunk up to so many tokens, one of them shared with the window before.

        Of them the `keep` that share most words with the part, for each costs a pair.
        """

        def premises(case: Case, part: str) -> Texts:
            every = dict.fromkeys(t for chunk in self._sentences[case.id] for t in _packed(chunk, tokens))
            return sorted(every, key=lambda text: -share(part, text))[:keep]

        return premises

    def picked(self, tokens: int) -> Premises:
        """One premise: the sentences that hold most of the part's rarer words, up to so many tokens, in order."""

        def premises(case: Case, part: str) -> Texts:
            every = [piece for chunk in self._sentences[case.id] for piece in chunk]
            return [" ".join(every[k][0] for k in _cover(part, every, tokens))]

        return premises


def _packed(sentences: list[tuple[str, int]], tokens: int) -> Texts:
    out, first = [], 0
    while first < len(sentences):
        last, used = first + 1, sentences[first][1]
        while last < len(sentences) and used + sentences[last][1] <= tokens:
            used += sentences[last][1]
            last += 1
        out.append(" ".join(piece for piece, _ in sentences[first:last]))
        if last == len(sentences):
            break
        first = max(first + 1, last - 1)
    return out


def _cover(part: str, sentences: list[tuple[str, int]], tokens: int) -> list[int]:
    """Sentences by new words of the part covered, rare ones counting more; with each its forerunner if it fits."""
    held = [set(words(piece)) for piece, _ in sentences]
    wanted = set(words(part))
    weight = {w: math.log(1 + len(held) / (1 + sum(w in h for h in held))) + 0.05 for w in wanted}
    left, chosen, used = dict(weight), set[int](), 0
    while len(chosen) < len(sentences):
        gains = [
            (sum(left.get(w, 0.15 * weight.get(w, 0.0)) for w in held[k] & wanted), -k)
            for k in range(len(sentences))
            if k not in chosen
        ]
        gain, k = max(gains)
        k = -k
        if chosen and (gain <= 0 or used + sentences[k][1] > tokens):
            break
        chosen.add(k)
        used += sentences[k][1]
        for w in held[k]:
            left.pop(w, None)
    for k in sorted(chosen):
        if k and k - 1 not in chosen and used + sentences[k - 1][1] <= tokens:
            chosen.add(k - 1)
            used += sentences[k - 1][1]
    return sorted(chosen)


def share(part: str, premise: str) -> float:
    """The share of a part's distinct words that a premise holds."""
    said = set(words(part))
    return len(said & set(words(premise))) / max(1, len(said))


def _sentences(texts: Sequence[str]) -> list[Texts]:
    """The sentences of each text; a text without any is one."""
    spans = sentence_spans(pa.array(texts, pa.string()), SegmentConfig()).to_pylist()
    return [
        [text[s["start"] : s["end"]] for s in found if text[s["start"] : s["end"]].strip()] or [text]
        for text, found in zip(texts, spans, strict=True)
    ]
