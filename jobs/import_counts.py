"""What an import counts on the way, as a manifest for programs and a summary for people.

Every trace is a row or quarantined with a reason; rows of an export that no span could be made of are apart, since
nobody knows which trace they were of. The module knows no tool and decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs.import_spans import Problem


@dataclass(slots=True)
class Tally:
    """What is counted on the way, and the rows that come to nothing."""

    quarantined: list[dict[str, Any]] = field(default_factory=list)
    """Traces without a row."""
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the export that no span could be made of."""
    warnings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def refuse(self, span: dict[str, Any], problem: Problem) -> None:
        """Put a trace or a row aside, with the reason."""
        request_id = span.get("request_id") or span.get("trace_id") or span.get("group")
        self.quarantined.append(note(span, request_id, problem))

    def skip(self, file: str, row: int, problem: Problem) -> None:
        """Put a row of the export aside that no span could be made of."""
        self.unreadable.append(note({"file": file, "row": row}, None, problem))


def note(where: Mapping[str, Any], request_id: str | None, problem: Problem) -> dict[str, Any]:
    """A trace or row that was put aside, as the quarantine file has it."""
    reason, detail = problem
    return {
        "file": where["file"],
        "row": where["row"],
        "request_id": request_id,
        "reason": reason,
        "detail": detail[:500],
    }


def manifest_of(log: pa.Table, tally: Tally, spans: pl.DataFrame, tool: str) -> dict[str, Any]:
    """What there is to tell of an import; traces = rows + quarantined.

    Args:
        log: the rows, with a column `n_dropped` beside those of the LOG schema.
        tally: what was counted on the way.
        spans: all spans.
        tool: the system's name.
    """
    rules = Counter(log["origin"].combine_chunks().field("evidence_rule").to_pylist()) if log.num_rows else {}
    flags = Counter(flag for row in log["flags"].to_pylist() for flag in row)
    traces = tally.counts["traces"]
    assert traces == log.num_rows + len(tally.quarantined)
    return {
        "system": tool,
        "traces": traces,
        "rows": log.num_rows,
        "quarantined": len(tally.quarantined),
        "quarantined_by_reason": _sorted(Counter(q["reason"] for q in tally.quarantined)),
        "rows_unreadable": len(tally.unreadable),
        "rows_unreadable_by_reason": _sorted(Counter(q["reason"] for q in tally.unreadable)),
        "rows_of_no_span": tally.counts["rows_of_no_span"],
        "spans": spans.height,
        "spans_repeated": tally.counts["spans_repeated"],
        "spans_by_kind": _sorted(Counter(spans["kind"].to_list())),
        "evidence_rules": _sorted(rules),
        "flags": _sorted(flags),
        "rows_without_question": log["question"].null_count,
        "parts_dropped": sum(log["n_dropped"].to_pylist()),
        "times_without_zone_taken_as_utc": int(spans["has_naive_time"].sum()),
        "warnings": tally.warnings,
    }


def summary(manifest: dict[str, Any]) -> Iterator[str]:
    """A manifest in lines for people: what came out, what did not and why, and what to do next."""
    counts = ", ".join(f"{rule} {n:,}" for rule, n in manifest["evidence_rules"].items())
    yield (
        f"{manifest['system']}: {manifest['traces']:,} traces of {manifest['spans']:,} spans: "
        f"{manifest['rows']:,} rows, {manifest['quarantined']:,} quarantined"
    )
    yield f"evidence: {counts}"
    if without := manifest["evidence_rules"].get("none_found"):
        yield (
            f"warning: of {without:,} of {manifest['rows']:,} rows no retrieval was found among the spans, so that nothing of theirs can be "
            "scored (no_context); expected a span that the tool knows as retrieval (Langfuse: type RETRIEVER) or documents in the prompt's variables"
        )
    for what in ("quarantined", "rows_unreadable"):
        for reason, n in manifest[f"{what}_by_reason"].items():
            yield f"{what}: {n:,} {reason}"
    for flag, n in manifest["flags"].items():
        yield f"flagged: {n:,} {flag}"
    if manifest["rows_without_question"]:
        yield f"warning: {manifest['rows_without_question']:,} rows without a question; name its key with --question-key"
    if manifest["times_without_zone_taken_as_utc"]:
        yield f"warning: {manifest['times_without_zone_taken_as_utc']:,} times without a zone were taken for UTC"
    for label in manifest["files_of_another_kind"]:
        yield f"warning: {label} is of another kind and was not read"
    for warning in manifest["warnings"]:
        yield f"warning: {warning}"
    if manifest["quarantined"] or manifest["rows_unreadable"]:
        yield f"each with its reason: {manifest['quarantine']}"
    days = list(manifest["days"])
    yield f'next: [read] logs = "{manifest["logs"]}"' + (f", days {days[0]} to {days[-1]}" if days else "")


def _sorted(counts: Any) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
