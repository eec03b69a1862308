"""Judged pairs of cases with what the rules say beside them, and premises of every width: what ablations are made of.

Widths are windows of whole sentences up to so many tokens, with one sentence of overlap. Knows no label.
"""

from __future__ import annotations

import dataclasses
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
    """P judged pairs of N cases, in order of their cases."""

    case: np.ndarray
    """int (P,): which case each pair is of."""
    probs: np.ndarray
    """float (P, 3): entailment, neutral, contradiction."""
    n_tokens: np.ndarray
    overlap: np.ndarray
    """Share of the claim's distinct words that the premise holds, (P,)."""
    lacks: np.ndarray
    """Values of the claim that the premise lacks, (P,)."""
    lacks_names: np.ndarray
    n_cases: int
    is_joined: np.ndarray
    """Whether the premise is several passages, (P,)."""

    @property
    def margin(self) -> np.ndarray:
        """Entailment minus contradiction, (P,)."""
        found: np.ndarray = self.probs[:, 0] - self.probs[:, 2]
        return found

    def take(self, rows: np.ndarray) -> Pool:
        """Some of the pairs."""
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})

    def best(self, scores: np.ndarray, lowest: float = -3.0) -> np.ndarray:
        """The highest score of each case, (N,); `lowest` for a case without pairs."""
        out = np.full(self.n_cases, lowest)
        np.maximum.at(out, self.case, scores)
        return out

    def first_of(self, order_by: np.ndarray) -> np.ndarray:
        """The row of each case's highest `order_by`, the earlier of equals, ascending; cases without pairs have none."""
        order = np.lexsort((np.arange(len(order_by)), -order_by, self.case))
        _, first = np.unique(self.case[order], return_index=True)
        return np.sort(order[first])


_COLUMNS = ("case", "probs", "n_tokens", "overlap", "lacks", "lacks_names", "is_joined")

Premises = Callable[[Case], Texts]


def pool(cases: Sequence[Case], premises: Premises, judge: CachedJudge) -> Pool:
    """Judge every premise of every case."""
    limit = PAIR_TOKENS - N_SPECIAL_TOKENS - MIN_PREMISE
    claim_ids = [ids[:limit] for ids in judge.ids([case.claim for case in cases])]
    found = [premises(case) for case in cases]
    owner = np.array([k for k, of_case in enumerate(found) for _ in of_case], dtype=np.int64)
    flat = [text for of_case in found for text in of_case]
    ids = [premise[: room(claim_ids[k])] for premise, k in zip(judge.ids(flat), owner.tolist(), strict=True)]
    kind = pa.list_(pa.int32())
    paired = [claim_ids[k] for k in owner.tolist()]
    claims = pa.array([cases[k].claim for k in owner.tolist()], pa.string())
    questions = pa.array([cases[k].question for k in owner.tolist()], pa.string())
    premise_texts = pa.array(flat, pa.string())
    missing = rules.missing_values(claims, premise_texts, questions)
    names = rules.missing_names(claims, premise_texts)
    return Pool(
        case=owner,
        probs=judge.probabilities(pa.array(ids, kind), pa.array(paired, kind)),
        n_tokens=np.array([len(a) + len(b) + N_SPECIAL_TOKENS for a, b in zip(ids, paired, strict=True)]),
        overlap=np.array([share(c, text) for c, text in zip(claims.to_pylist(), flat, strict=True)]),
        lacks=np.array([len(row) for row in missing.to_pylist()]),
        lacks_names=np.array([len(row) for row in names.to_pylist()]),
        n_cases=len(cases),
        is_joined=np.zeros(len(flat), bool),
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

        Of them the `keep` that share most words with the claim, for each costs a pair.
        """

        def premises(case: Case) -> Texts:
            every = dict.fromkeys(t for chunk in self._sentences[case.id] for t in _packed(chunk, tokens))
            return sorted(every, key=lambda text: -share(case.claim, text))[:keep]

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


def share(claim: str, premise: str) -> float:
    """The share of a claim's distinct words that a premise holds."""
    said = set(words(claim))
    return len(said & set(words(premise))) / max(1, len(said))


def _sentences(texts: Sequence[str]) -> list[Texts]:
    """The sentences of each text; a text without any is one."""
    spans = sentence_spans(pa.array(texts, pa.string()), SegmentConfig()).to_pylist()
    return [
        [text[s["start"] : s["end"]] for s in found if text[s["start"] : s["end"]].strip()] or [text]
        for text, found in zip(texts, spans, strict=True)
    ]
