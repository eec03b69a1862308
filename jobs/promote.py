"""Which answers of a night become candidates of a golden set, which of them say the same, and how one looks.

Candidates are answers with a flagged claim or a fabricated citation (worst first, as the report ranks them), then those
that the policy escalates. Two are the same item where question and evidence are, and nearly the same where
`is_near` says so; the first is kept. Verdicts come along as suggestions: gold is what a person writes, or what the log
already held. The module knows no file.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl
import pyarrow as pa

from claimscore.jobs import flagged
from claimscore.jobs.records import LOG, NextStep

NEAR_WORDS = 0.8
NEAR_CHUNKS = 0.5
SUGGESTED = (
    "claim",
    "verdict",
    "hallucination_type",
    "citation_state",
    "evidence_chunk_id",
    "evidence_quote",
)
GOLDEN = pa.schema(
    [
        *(
            item.with_nullable(True)
            for item in LOG
            if item.name not in ("samples", "token_logprobs", "flags")
        ),
        pa.field("conflicting", pa.bool_()),
        pa.field("suggested_label", pa.string()),
        pa.field("suggested_verdicts", pa.list_(pa.struct([(name, pa.string()) for name in SUGGESTED]))),
        pa.field("promoted_from", pa.string()),
        pa.field("promoted_for", pa.string()),
    ]
)
"""A golden set: a log with gold columns to fill (answerable, gold_chunk_ids, reference_answer, human_label, conflicting),
and what the night found. `request_id` is the day, a slash and the id of the log, so that days do not collide."""

_WORD = re.compile(r"\w+")


def candidates(answers: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """request_id, hallucinated and `why` of each candidate, the one to look at first first.

    Args:
        answers: ANSWERS of a night.
        verdicts: VERDICTS of the same.
    """
    bad = flagged.rank(answers, verdicts).with_columns(
        why=pl.when(pl.col("n_flagged") > 0)
        .then(pl.format("{} of {} claims flagged", "n_flagged", "n_claims"))
        .otherwise(pl.lit("a fabricated citation on no claim"))
    )
    escalated = answers.filter(pl.col("next_step") == NextStep.ESCALATE.value).sort("request_id")
    others = escalated.join(bad, on="request_id", how="anti", maintain_order="left")
    others = others.with_columns(why=pl.format("escalated: {}", "action_reason"))
    columns = ["request_id", "hallucinated", "why"]
    return pl.concat([bad.select(columns), others.select(columns)])


@dataclass(frozen=True, slots=True)
class Likeness:
    """What of an item decides whether another says the same."""

    key: str
    """Hash of question and chunks, both folded, the chunks in no order."""
    words: frozenset[str]
    numbers: frozenset[str]
    chunks: frozenset[str]

    @classmethod
    def of(cls, question: str | None, texts: Iterable[str | None]) -> Self:
        """Of a question and the texts of its chunks: case, marks, blanks and forms of letters are folded away."""
        words, chunks = _words(question), frozenset(" ".join(_words(text)) for text in texts)
        digest = hashlib.sha256(
            "\n".join([" ".join(words), *sorted(chunks)]).encode("utf-8", "surrogatepass")
        )
        numbers = frozenset(word for word in words if any(c.isdigit() for c in word))
        return cls(
            digest.hexdigest()[:32], frozenset(words), numbers, frozenset(_short(text) for text in chunks)
        )


def is_near(a: Likeness, b: Likeness) -> bool:
    """Whether two items are nearly the same.

    Their questions share NEAR_WORDS of all their different words and hold the same numbers, and at least NEAR_CHUNKS of
    the smaller evidence is in the other. Items without chunks are near to none.
    """
    if not (a.chunks and b.chunks) or a.numbers != b.numbers:
        return False
    same_words = len(a.words & b.words) >= NEAR_WORDS * len(a.words | b.words)
    return same_words and len(a.chunks & b.chunks) >= NEAR_CHUNKS * min(len(a.chunks), len(b.chunks))


@dataclass(slots=True)
class Held:
    """The items held so far; finds what says the same among those that share a chunk."""

    keys: set[str] = field(default_factory=set)
    by_chunk: dict[str, list[Likeness]] = field(default_factory=dict)

    def like(self, item: Likeness) -> str:
        """`same`, `near`, or nothing."""
        if item.key in self.keys:
            return "same"
        others = {id(o): o for chunk in item.chunks for o in self.by_chunk.get(chunk, ())}
        return "near" if any(is_near(item, other) for other in others.values()) else ""

    def add(self, item: Likeness) -> None:
        """Hold one more."""
        self.keys.add(item.key)
        for chunk in item.chunks:
            self.by_chunk.setdefault(chunk, []).append(item)


def golden_row(
    log_row: dict[str, Any], verdicts: list[dict[str, Any]], candidate: dict[str, Any], date: str, series: str
) -> dict[str, Any]:
    """One row of GOLDEN: the logged answer, what its log knows of gold, and the night's verdicts beside it.

    Args:
        log_row: of logrows.ROWS.
        verdicts: rows of VERDICTS of the answer.
        candidate: of `candidates`.
        date: the night.
        series: the judge's.
    """
    label = {True: "hallucinated", False: "ok", None: None}[candidate["hallucinated"]]
    return {name: log_row[name] for name in GOLDEN.names if name in log_row} | {
        "request_id": f"{date}/{log_row['request_id']}",
        "suggested_label": label,
        "suggested_verdicts": [{name: verdict[name] for name in SUGGESTED} for verdict in verdicts],
        "promoted_from": f"{date} {series}",
        "promoted_for": candidate["why"],
    }


def _words(text: str | None) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text or "").casefold())


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
