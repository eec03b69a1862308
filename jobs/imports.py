"""Span exports of tracing tools as our log, once and deterministically.

    files -> rows -> spans of one shape -> traces -> answers with their evidence -> the log's own rules -> files

Every trace comes out once, as a row or as a reason. The same input gives the same bytes. A tool's own shapes are in
`import_<tool>.py`, what an answer and its evidence are in `import_traces.py` and `import_evidence.py`; here they
are joined, repeats are settled and everything is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs import (
    import_langfuse,
    import_langsmith,
    import_mlflow,
    import_otlp,
    import_phoenix,
    import_trulens,
)
from claimscore.jobs.errors import InputError
from claimscore.jobs.import_files import Export, list_exports, read_rows
from claimscore.jobs.import_log import Target
from claimscore.jobs.import_spans import SCHEMA, Kind, Options, Problem, Span, Tool, as_frame
from claimscore.jobs.import_traces import answer_of_trace, one_each
from claimscore.jobs.literals import PLAIN, BadValueError
from claimscore.jobs.logfile import Column
from claimscore.jobs.records import LOG
from claimscore.jobs.rows import fit_batch
from claimscore.jobs.uri import shown

TOOLS: dict[str, Tool] = {
    "phoenix": import_phoenix.TOOL,
    "otlp": import_otlp.TOOL,
    "langfuse": import_langfuse.TOOL,
    "langsmith": import_langsmith.TOOL,
    "mlflow": import_mlflow.TOOL,
    "trulens": import_trulens.TOOL,
}
MAX_ROW_BYTES = 64 << 20
"""Texts of one answer and its chunks: what the log's reader takes by default."""
_SPANS_A_FRAME = 4_096
_ROWS_A_BATCH = 1_000
_META = ("updated", "n_dropped", "file", "row")
_COLUMNS = [name for name in LOG.names if name in {
    *("request_id", "question", "answer", "chunks", "prompt_version", "model", "ts", "reference_answer"),
    *("citations", "origin", "flags"),
}]  # fmt: skip


@dataclass(slots=True)
class _Tally:
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
        self.quarantined.append(_note(span, request_id, problem))


def import_traces(src: str, out: str, tool: str, options: Options) -> dict[str, Any]:
    """Import an export and write it as our log.

    Args:
        src: a file or folder, local or a URI.
        out: as `import_log.Target`.
        tool: a key of TOOLS.
        options: a person's word on what the export leaves open.

    Returns:
        The manifest: traces = rows + quarantined.

    Raises:
        InputError: a file cannot be read or lacks what is needed, or not one trace could be imported.
        OutputError: the log cannot be written.
    """
    target = Target(out, tool, src)
    tally = _Tally()
    exports, others = list_exports(src)
    spans = _read_spans(exports, TOOLS[tool], options, tally)
    if spans.is_empty():
        raise InputError(
            f"{shown(src)}: no spans of {tool} in {sum(e.n_rows for e in exports)} rows; check --from and the export"
        )
    if (spans["kind"] == Kind.TRACE).all() and tool == "langfuse":
        raise InputError(
            f"{shown(src)}: has traces and no observations, so nothing says what was retrieved; export both tables"
        )
    log = _without_repeats(_answers(spans, TOOLS[tool], options, tally), tally)
    if target.is_daily:
        log = _with_days(log, tally)
    manifest = _manifest(log, tally, spans, tool)
    manifest["files"] = {export.label: export.n_rows for export in exports}
    manifest["files_of_another_kind"] = others
    if not log.num_rows:
        worst = Counter((q["reason"], q["detail"]) for q in tally.quarantined).most_common(1)
        (reason, detail), n = worst[0]
        raise InputError(
            f"{shown(src)}: none of its {manifest['traces']} traces can be imported, {n} of them: {reason}: {detail}"
        )
    notes = [{"of": "row", **note} for note in tally.unreadable] + [
        {"of": "trace", **note} for note in tally.quarantined
    ]
    target.write(log.select(LOG.names), notes, manifest)
    return {**manifest, "manifest": target.shown(), "quarantine": target.shown("quarantine")}


def _read_spans(exports: list[Export], tool: Tool, options: Options, tally: _Tally) -> pl.DataFrame:
    """All spans in order of trace and time."""
    frames, held = [SCHEMA.to_frame()], []
    for export in exports:
        for number, row in read_rows(export, tool.wants, tool.unwrap):
            if isinstance(row, tuple):
                tally.unreadable.append(_note({"file": export.label, "row": number}, None, row))
                continue
            try:
                found = list(tool.spans(row, options))
            except BadValueError as err:
                problem = err.reason, str(err)
                tally.unreadable.append(_note({"file": export.label, "row": number}, None, problem))
                continue
            for span in found:
                span.file, span.row = export.label, number
                span.group = span.group or f"{export.label}:{number}"
            tally.counts["rows_of_no_span"] += not found
            held += found
            if len(held) >= _SPANS_A_FRAME:
                frames += _frames(held, tally)
                held = []
        _check(export, tool, tally)
    frames += _frames(held, tally)
    return pl.concat(frames).sort("group", "start", "file", "row", "span_id", nulls_last=True)


def _frames(spans: list[Span], tally: _Tally) -> Iterator[pl.DataFrame]:
    """The spans as frames; one with a text that is no UTF-8 is put aside."""
    if not spans:
        return
    try:
        yield as_frame(spans)
    except (UnicodeEncodeError, OverflowError, pl.exceptions.PolarsError) as err:
        if len(spans) > 1:
            yield from _frames(spans[: len(spans) // 2], tally)
            yield from _frames(spans[len(spans) // 2 :], tally)
        else:
            reason = "invalid_utf8" if isinstance(err, UnicodeEncodeError) else "bad_value"
            where = {"file": spans[0].file, "row": spans[0].row}
            tally.unreadable.append(_note(where, None, (reason, str(err)[:200])))


def _check(export: Export, tool: Tool, tally: _Tally) -> None:
    """Whether the file is one that can be imported, now that its columns are known."""
    refusal = tool.refuse(export.columns)
    if refusal:
        raise InputError(f"{export.label}: {refusal}")
    for names in tool.needs if export.n_rows else ():
        if not export.columns.intersection(names):
            found = ", ".join(sorted(map(repr, export.columns))[:40])
            raise InputError(
                f"{export.label}: no column {' or '.join(map(repr, names))}, found {found[:600]}; export it with that column"
            )
    suspicion = tool.warn(export.n_rows)
    if suspicion:
        tally.warnings.append(f"{export.label}: {suspicion}")


def _answers(spans: pl.DataFrame, tool: Tool, options: Options, tally: _Tally) -> pa.Table:
    """A row of the log for every trace that has one, by the log's own rules, with _META beside it."""
    rows: list[dict[str, Any]] = []
    tables = [pa.Table.from_batches([], _meta_schema())]
    for group in _groups(spans):
        tally.counts["traces"] += 1
        kept = one_each(group)
        if isinstance(kept[0], str):
            tally.refuse(group[0], (kept[0], str(kept[1])))
            continue
        unique, n_repeated = kept
        tally.counts["spans_repeated"] += int(n_repeated)
        row = answer_of_trace(unique, options, tool.system, answer_is_llm_span=tool.answer_is_llm_span)
        if isinstance(row, tuple):
            tally.refuse(group[0], row)
        else:
            rows.append(row)
        if len(rows) >= _ROWS_A_BATCH:
            tables += _fit(rows, tally)
            rows = []
    return pa.concat_tables([*tables, *_fit(rows, tally)])


def _groups(spans: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    at = 0
    for n in spans["group"].rle().struct.field("len"):
        yield spans.slice(at, n).to_dicts()
        at += n


def _fit(rows: list[dict[str, Any]], tally: _Tally) -> Iterator[pa.Table]:
    """The rows by the rules of the log; those without an id apart, since theirs are made from content."""
    for named in (True, False):
        part = [row for row in rows if (row["request_id"] is not None) == named]
        if not part:
            continue
        names = [name for name in _COLUMNS if named or name != "request_id"]
        arrays = {name: pa.array([row[name] for row in part], LOG.field(name).type) for name in names}
        columns = {name: Column(name, (name,), LOG.field(name).type, PLAIN) for name in names}
        batch = fit_batch(arrays, columns, MAX_ROW_BYTES)
        for index, problem in batch.bad.items():
            tally.refuse(part[index], problem)
        meta = pa.Table.from_pylist([{k: row[k] for k in _META} for row in part], _meta_schema(only=True))
        table = pa.Table.from_batches([batch.good])
        for name in _META:
            table = table.append_column(name, meta[name].take(pa.array(batch.rows)))
        yield table.cast(_meta_schema())


def _meta_schema(*, only: bool = False) -> pa.Schema:
    types = {"updated": LOG.field("ts").type, "n_dropped": pa.int64(), "file": pa.string(), "row": pa.int64()}
    return pa.schema([*([] if only else LOG), *(pa.field(name, types[name]) for name in _META)])


def _without_repeats(log: pa.Table, tally: _Tally) -> pa.Table:
    """One row an id: the newest. All of them go where one file has the id with different texts."""
    rows = pl.DataFrame({"id": pl.from_arrow(log["request_id"])}).with_row_index("at")
    often = rows.filter(pl.len().over("id") > 1)
    dropped: set[int] = set()
    for (_,), group in often.group_by("id", maintain_order=True):
        at = group["at"].to_list()
        values = log.select(["request_id", "question", "answer", "chunks", *_META]).take(at).to_pylist()
        texts = {(v["file"], repr((v["question"], v["answer"], v["chunks"]))) for v in values}
        is_torn = len(texts) > len({file for file, _ in texts})
        newest = max(range(len(at)), key=lambda k: (str(values[k]["updated"] or ""), values[k]["file"]))
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


def _with_days(log: pa.Table, tally: _Tally) -> pa.Table:
    """The rows that have a day to be written under."""
    undated = log.filter(log["ts"].is_null())
    for value in undated.select(["request_id", *_META]).to_pylist():
        tally.refuse(value, ("no_time", "no span of it has a time; give OUT as one file, x.parquet"))
    return log.filter(log["ts"].is_valid())


def _note(where: dict[str, Any], request_id: str | None, problem: Problem) -> dict[str, Any]:
    reason, detail = problem
    return {
        "file": where["file"],
        "row": where["row"],
        "request_id": request_id,
        "reason": reason,
        "detail": detail[:500],
    }


def _manifest(log: pa.Table, tally: _Tally, spans: pl.DataFrame, tool: str) -> dict[str, Any]:
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
