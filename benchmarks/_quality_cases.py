"""Labelled claims as cases: the grounding rows of a data folder, and the probes of tests/probes/.

Knows no judge and no measure. Rows are chosen, and articles are dealt to the two halves, by hashes of their content, so
the same folder gives the same cases everywhere. An article is the evidence, folded; where two sources share
questions it is the question, so that no article has rows in both halves.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

PROBES = Path(__file__).resolve().parent.parent / "tests" / "probes" / "probes.jsonl"
MIXUPS = PROBES.with_name("mixups.jsonl")
MAX_CHARS = 7_000
"""Rows with more evidence are left out: on a CPU a few of them would take most of the time."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Case:
    """One claim, what it is judged against, and what is right."""

    id: str
    source: str
    family: str
    """Sources that share data have one family and count as one in a macro average."""
    level: str
    chunks: tuple[str, ...]
    claim: str
    supported: bool
    article: str
    question: str | None = None
    kinds: tuple[str, ...] = ()
    """The phenomenon of a probe, or the edits that made the claim false, where the data says so."""
    right: tuple[str, ...] = ()
    """Verdicts that are right, for probes."""
    citation: str | None = None
    conflict: bool | None = None

    @property
    def is_fit(self) -> bool:
        """Whether thresholds may be fitted on this case; the others are reported."""
        return int(self.article[:2], 16) % 2 == 0


def words(text: str) -> list[str]:
    """The words and numbers of a text, case folded, in order."""
    return _WORD.findall(text.casefold())


def digest(*parts: str) -> str:
    """A hash of texts, hex."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def dev_cases(folder: Path, rows_a_source: int | None, max_chars: int = MAX_CHARS) -> list[Case]:
    """The rows of grounding_dev.parquet, at most so many a source, chosen by the hash of their ids.

    In turn one of each label and half, as long as there are any: no figure here depends on how often a source is
    supported, and a half with two supported claims of a source would say nothing of it.

    Raises:
        OSError: no such file in `folder`.
    """
    rows = pq.read_table(folder / "grounding_dev.parquet").to_pylist()
    strata: dict[str, dict[tuple[bool, bool], list[Case]]] = {}
    for row in sorted(rows, key=lambda r: digest(r["id"])):
        if sum(map(len, row["evidence"])) <= max_chars and any(t.strip() for t in row["evidence"]):
            case = _dev_case(row)
            of_source = strata.setdefault(row["source"], {})
            of_source.setdefault((case.supported, case.is_fit), []).append(case)
    chosen = {source: _in_turn(list(found.values())) for source, found in sorted(strata.items())}
    return [case for found in chosen.values() for case in itertools.islice(found, rows_a_source)]


def _in_turn(lists: list[list[Case]]) -> Iterator[Case]:
    for row in itertools.zip_longest(*lists):
        yield from (case for case in row if case is not None)


def _dev_case(row: dict[str, Any]) -> Case:
    meta = json.loads(row["meta"] or "{}") or {}
    source = row["source"]
    if source == "attributionbench":
        source += ":" + str(meta.get("from_dataset"))
    family = family_of(source)
    subject = row["question"] if family == "lfqa" and row["question"] else " ".join(row["evidence"])
    return Case(
        id=row["id"],
        source=source,
        family=family,
        level=row["level"],
        chunks=tuple(row["evidence"]),
        claim=row["claim"],
        supported=bool(row["supported"]),
        article=digest(*words(subject)),
        question=row["question"],
        kinds=tuple(meta.get("edit_types") or ()),
    )


def family_of(source: str) -> str:
    """The sources that share data, as one."""
    if source in {"lfqa_verification", "attributionbench:LFQA"}:
        return "lfqa"
    if source.startswith(("begin_v2", "true_begin")):
        return "begin"
    return source.split(":", maxsplit=1)[0]


def probe_cases(path: Path = PROBES) -> list[Case]:
    """The probes, in the order of the file."""
    return [_probe(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _probe(row: dict[str, Any]) -> Case:
    chunks = list(row["chunks"])
    if "padding_sentences" in row:
        chunks[0] = " ".join([*_padding(row["padding_sentences"]), chunks[0]])
    return Case(
        id=row["id"],
        source="probes",
        family="probes",
        level="claim",
        chunks=tuple(chunks),
        claim=row["claim"],
        supported=row["right"] == ["supported"],
        article=digest(row["id"]),
        question=row.get("question"),
        kinds=(row["phenomenon"],),
        right=tuple(row["right"]),
        citation=row.get("citation"),
        conflict=row.get("conflict"),
    )


def mixup_cases(path: Path = MIXUPS) -> list[Case]:
    """The claims of mixups.jsonl, in the order of the file; the kind of each is its own and whether the rules have seen it."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Case(
            id=f"{row['id']}-{k}",
            source="mixups",
            family="mixups",
            level="claim",
            chunks=tuple(row["chunks"]),
            claim=claim["claim"],
            supported=claim["supported"],
            article=digest(row["id"]),
            kinds=(f"{row['kind']}, {'seen' if row['seen'] else 'unseen'}",),
        )
        for row in rows
        for k, claim in enumerate(row["claims"])
    ]


def _padding(n: int) -> Iterator[str]:
    """So many sentences that say nothing of interest, none twice."""
    for k in range(n):
        yield f"Room {k + 1} is cleaned by the {('early', 'late', 'night')[k % 3]} shift of team {k % 17 + 1}."


def by_source(cases: Iterable[Case]) -> dict[str, list[int]]:
    """Source -> places of its cases."""
    out: dict[str, list[int]] = {}
    for k, case in enumerate(cases):
        out.setdefault(case.source, []).append(k)
    return out
