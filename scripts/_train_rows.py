"""Labelled pairs of a data folder that a trained artefact may use, and which of their texts are about the same thing.

Rows come from nli_train.parquet (premise, hypothesis, label, label2, source, licence). A row counts only where its
licence is known to allow it. Knows no model and changes no text, but for undoing the spaces of tokenised corpora.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILED = 0, 1, 2, -1
"""Classes of the judge; NOT_ENTAILED is a label that leaves open which of the two others it is."""
LABELS = {"contradiction": CONTRADICTION, "entailment": ENTAILMENT, "neutral": NEUTRAL}
BARRED_LICENCES = {"unstated", "research-terms", "CC-BY-NC-SA"}
BARRED_SOURCES = {"sick", "faithbench", "rgb", "scifact_rte"}
"""Whatever their rows say; SciFact because its publishers' terms, unchecked here, may be non-commercial."""
CAPTIONS = {"snli", "cad_nli"}
"""Sources whose premises are captions of pictures: no two of them are about the same thing."""

NAME = re.compile(r"\b[A-Z][\w’'-]*[^\W\d_](?:(?: of| the| de| van| von)?(?: [A-Z][\w’'-]+))*")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}
_BEFORE = re.compile(r" +(?=[.,;:!?)\]%]|n't\b|'s\b|'re\b|'ve\b|'ll\b)")
_SENTENCE = re.compile(r"(?<=[a-z0-9)\]\"”][.!?])\s+(?=[A-Z\"“(])")


@dataclass(frozen=True, slots=True)
class Example:
    """One pair to learn from."""

    premise: str
    claim: str
    label: int
    kind: str
    """What was done to it; `plain` is a row as it stands."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Topics:
    """Finds other premises that share a name with a text and were not labelled against the same claim."""

    by_source: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    by_name: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    of_claim: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def near(self, row: Example, n: int, rng: random.Random) -> list[str]:
        """Up to `n` other premises, those that share a rare name with the row first."""
        pool: list[str] = []
        names = {name for name in NAME.findall(row.premise) if 1 < len(self.by_name.get(name, ())) <= 60}
        for name in sorted(names, key=lambda name: len(self.by_name[name])):
            pool += self.by_name[name]
        if len(set(pool)) < n + 2:
            pool += rng.sample(self.by_source[row.source], min(2 * n, len(self.by_source[row.source])))
        own = self.of_claim[row.claim] | {row.premise}
        kept = [text for text in dict.fromkeys(pool) if text not in own and not _repeats(text, row)]
        rng.shuffle(kept)
        return kept[:n]


def read_rows(path: Path) -> list[Example]:
    """The rows that may be trained on, in the order of the file, texts with natural spaces.

    Raises:
        SystemExit: no such file, or no row of it may be used.
    """
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; the first argument is a folder that holds {path.name}")
    rows = [
        Example(natural(r["premise"]), natural(r["hypothesis"]), _label(r), "plain", r["source"])
        for r in pq.read_table(path).to_pylist()
        if is_allowed(r["source"], r["licence"]) and r["premise"].strip() and r["hypothesis"].strip()
    ]
    if not rows:
        raise SystemExit(f"{path}: no row has a licence that allows training; see BARRED_LICENCES")
    return rows


def is_allowed(source: str, licence: str | None) -> bool:
    """Whether a trained artefact may use a row of this source and licence; an unnamed licence is none."""
    return bool(licence) and licence not in BARRED_LICENCES and source not in BARRED_SOURCES


def topics_of(rows: Iterable[Example]) -> Topics:
    """The index of these rows."""
    out = Topics()
    for row in rows:
        if row.premise not in out.of_claim[row.claim]:
            out.of_claim[row.claim].add(row.premise)
            out.by_source[row.source].append(row.premise)
            if row.source not in CAPTIONS:
                for name in set(NAME.findall(row.premise)):
                    out.by_name[name].append(row.premise)
    return out


def natural(text: str) -> str:
    """A corpus's tokenised text with brackets, quotes and spaces as people write them."""
    for mark, plain in _BRACKETS.items():
        text = text.replace(mark, plain)
    text = _BEFORE.sub("", " ".join(text.split()))
    return re.sub(r"(?<=[(\[]) ", "", text)


def sentences(text: str) -> list[str]:
    """A text at its sentence ends, roughly; an abbreviation in capitals does not end one."""
    return [piece for piece in _SENTENCE.split(text.replace("\n", " ")) if piece.strip()]


def words(text: str) -> set[str]:
    """The distinct words of four or more letters and the numbers, case folded."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3 or word.isdigit()}


def relabelled(row: Example, premise: str, claim: str, label: int, kind: str) -> Example:
    """The row with other texts."""
    return replace(row, premise=premise, claim=claim, label=label, kind=kind)


def _repeats(text: str, row: Example) -> bool:
    """Whether another premise may well hold what the row's premise says of the claim."""
    asked = words(row.claim)
    return len(asked & words(text)) >= 0.6 * max(1, len(asked))


def _label(row: dict[str, str | None]) -> int:
    if row["label"] is not None:
        return LABELS[row["label"]]
    return ENTAILMENT if row["label2"] == "entailment" else NOT_ENTAILED


def by_source(rows: Sequence[Example]) -> dict[str, list[Example]]:
    """The rows of each source, sources in the order of their first rows."""
    out: dict[str, list[Example]] = {}
    for row in rows:
        out.setdefault(row.source, []).append(row)
    return out
