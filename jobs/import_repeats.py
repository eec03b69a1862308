"""Repeats in an export: of a span within its trace, and of a request over traces.

Exports deliver at least once, and their windows overlap: the newest version counts and the others are counted. Two
versions in one file that differ in their texts are no later update, and nobody can say which one was shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs.import_counts import Tally
from claimscore.jobs.import_spans import Problem

SpanRow = Mapping[str, Any]
_TEXTS = ("question", "answer", "answer_problem", "documents", "documents_problem", "handed", "joined")
_SHOWN = ("question", "answer", "chunks")
_LIST_ROWS = 4
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def one_each(spans: Sequence[SpanRow]) -> tuple[list[SpanRow], int] | Problem:
    """The newest version of every span of a trace, in their order, and how many others there were."""
    versions: dict[str | int, list[SpanRow]] = {}
    for k, span in enumerate(spans):
        versions.setdefault(k if span["span_id"] is None else span["span_id"], []).append(span)
    kept = []
    for span_id, same in versions.items():
        newest = _newest([(span["file"], repr([span[t] for t in _TEXTS]), _age(span)) for span in same])
        if newest is None:
            rows = ", ".join(f"row {span['row']} of {span['file']}" for span in same[:_LIST_ROWS])
            return "repeated_span_differs", f"span {str(span_id)[:80]!r}: {rows}"
        kept.append(same[newest])
    return kept, len(spans) - len(kept)


def one_a_request(log: pa.Table, tally: Tally) -> pa.Table:
    """One row an id, the newest; the others, and all of an id that stands for different texts, are put aside."""
    rows = pl.DataFrame({"id": pl.from_arrow(log["request_id"])}).with_row_index("at")
    often = rows.filter(pl.len().over("id") > 1)
    dropped: set[int] = set()
    for (_,), group in often.group_by("id", maintain_order=True):
        at = group["at"].to_list()
        values = log.select(["request_id", *_SHOWN, "updated", "file", "row"]).take(at).to_pylist()
        newest = _newest(
            [(v["file"], repr([v[name] for name in _SHOWN]), v["updated"] or _NO_TIME) for v in values]
        )
        for k, value in enumerate(values):
            if newest is None:
                tally.refuse(value, ("repeated_request_id", f"{len(at)} traces with different texts"))
            elif k != newest:
                where = f"row {values[newest]['row']} of {values[newest]['file']}"
                tally.refuse(value, ("superseded", f"a newer one of that id is {where}"))
            else:
                continue
            dropped.add(at[k])
    return log.take([k for k in range(log.num_rows) if k not in dropped]) if dropped else log


def _newest(versions: Sequence[tuple[str, str, datetime]]) -> int | None:
    """Which (file, texts, time) counts; null where a file has two texts, or of the newest two differ."""
    if len(versions) == 1:
        return 0
    texts = {(file, text) for file, text, _ in versions}
    latest = max(age for _, _, age in versions)
    tied = [k for k, (_, _, age) in enumerate(versions) if age == latest]
    if len(texts) > len({file for file, _ in texts}) or len({versions[k][1] for k in tied}) > 1:
        return None
    return tied[-1]


def _age(span: SpanRow) -> datetime:
    moment: datetime | None = span["updated"] or span["end"] or span["start"]
    return moment or _NO_TIME
