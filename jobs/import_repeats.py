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
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def one_each(spans: Sequence[SpanRow]) -> tuple[list[SpanRow], int] | Problem:
    """The newest version of every span, and how many others there were.

    Exports deliver at least once, and their windows overlap. Versions of one file that differ in their texts say
    that something other than a later update is wrong.
    """
    newest: dict[str, SpanRow] = {}
    kept: list[SpanRow] = []
    for span in spans:
        before = newest.get(span["span_id"]) if span["span_id"] is not None else None
        if before is None:
            kept.append(span)
        elif any(span[name] != before[name] for name in _TEXTS):
            is_tied = _age(span) == _age(before)
            if span["file"] == before["file"] or is_tied:
                where = f"rows {before['row']} of {before['file']} and {span['row']} of {span['file']}"
                return "repeated_span_differs", f"span {str(span['span_id'])[:80]!r}: {where}"
        if span["span_id"] is not None and (before is None or _age(span) >= _age(before)):
            newest[span["span_id"]] = span
    kept = [newest[s["span_id"]] if s["span_id"] is not None else s for s in kept]
    return kept, len(spans) - len(kept)


def one_a_request(log: pa.Table, tally: Tally) -> pa.Table:
    """One row an id: the newest. All of them go where one file has the id with different texts."""
    rows = pl.DataFrame({"id": pl.from_arrow(log["request_id"])}).with_row_index("at")
    often = rows.filter(pl.len().over("id") > 1)
    dropped: set[int] = set()
    for (_,), group in often.group_by("id", maintain_order=True):
        at = group["at"].to_list()
        values = log.select(["request_id", *_SHOWN, "updated", "file", "row"]).take(at).to_pylist()
        texts = {(v["file"], repr([v[name] for name in _SHOWN])) for v in values}
        is_torn = len(texts) > len({file for file, _ in texts})
        newest = max(range(len(at)), key=lambda k: (values[k]["updated"] or _NO_TIME, values[k]["file"]))
        for k, value in enumerate(values):
            if is_torn:
                tally.refuse(value, ("repeated_request_id", f"{len(at)} traces with different texts"))
            elif k != newest:
                where = f"row {values[newest]['row']} of {values[newest]['file']}"
                tally.refuse(value, ("superseded", f"a newer one of that id is {where}"))
            else:
                continue
            dropped.add(at[k])
    return log.take([k for k in range(log.num_rows) if k not in dropped]) if dropped else log


def _age(span: SpanRow) -> datetime:
    return span["updated"] or span["end"] or span["start"] or _NO_TIME
