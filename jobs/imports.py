"""Span exports of tracing tools as our log, once and deterministically.

    files -> rows -> spans of one shape -> traces -> answers with their evidence -> the log's own rules -> files

Every trace comes out once, as a row or as a reason. The same input gives the same bytes. A tool's own shapes are in
`import_<tool>.py`, what an answer and its evidence are in `import_traces.py` and `import_evidence.py`; here they
are joined, repeats are settled and everything is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
from claimscore.jobs.import_counts import Tally, manifest_of
from claimscore.jobs.import_files import Export, list_exports, read_rows
from claimscore.jobs.import_log import Target
from claimscore.jobs.import_repeats import one_a_request, one_each
from claimscore.jobs.import_spans import SCHEMA, Kind, Options, Span, Tool, as_frame
from claimscore.jobs.import_traces import answer_of_trace
from claimscore.jobs.literals import PLAIN, BadValueError
from claimscore.jobs.logfile import Column
from claimscore.jobs.lookalikes import advice
from claimscore.jobs.records import LOG
from claimscore.jobs.rows import fit_batch

TOOLS: dict[str, Tool] = {
    "phoenix": import_phoenix.TOOL,
    "otlp": import_otlp.TOOL,
    "langfuse": import_langfuse.TOOL,
    "langsmith": import_langsmith.TOOL,
    "mlflow": import_mlflow.TOOL,
    "trulens": import_trulens.TOOL,
}
_MAX_BYTES = 64 << 20
"""Texts of one answer and its chunks. Generous: which rows are too large to judge is the run's decision ([read])."""
_SPANS_A_FRAME = 4_096
_ROWS_A_BATCH = 1_000
_META = ("updated", "n_dropped", "file", "row")
_COLUMNS = [name for name in LOG.names if name in {
    *("request_id", "question", "answer", "chunks", "prompt_version", "model", "ts", "reference_answer"),
    *("citations", "origin", "flags"),
}]  # fmt: skip


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
    tally = Tally()
    exports, others = list_exports(src)
    spans = _read_spans(exports, TOOLS[tool], options, tally)
    if spans.is_empty():
        raise InputError(
            f"{src}: no spans of {tool} in {sum(e.n_rows for e in exports)} rows{_put_aside(tally.unreadable)}; "
            "check --from and the export"
        )
    if (spans["kind"] == Kind.TRACE).all() and tool == "langfuse":
        raise InputError(
            f"{src}: has traces and no observations, so nothing says what was retrieved; export both tables"
        )
    log = one_a_request(_answers(spans, TOOLS[tool], options, tally), tally)
    if target.is_daily:
        log = _with_days(log, tally)
    manifest = manifest_of(log, tally, spans, tool)
    manifest["files"] = {export.label: export.n_rows for export in exports}
    manifest["files_of_another_kind"] = others
    _refuse_nothing(src, log, tally)
    notes = [{"of": "row", **note} for note in tally.unreadable] + [
        {"of": "trace", **note} for note in tally.quarantined
    ]
    target.write(log.select(LOG.names), notes, manifest)
    return {**manifest, "manifest": target.shown(), "quarantine": target.shown("quarantine")}


def _put_aside(unreadable: list[dict[str, Any]]) -> str:
    """How many rows no span could be made of, and why most of them; empty for none."""
    usual = Counter((note["reason"], note["detail"]) for note in unreadable).most_common(1)
    return "".join(
        f", {len(unreadable)} of them put aside, {n}: {why}: {detail}" for (why, detail), n in usual
    )


def _refuse_nothing(src: str, log: pa.Table, tally: Tally) -> None:
    """An import without a single row is a failure, and names its usual reason."""
    if log.num_rows:
        return
    ((reason, detail), n), *_ = Counter((q["reason"], q["detail"]) for q in tally.quarantined).most_common(1)
    n_traces = len(tally.quarantined)
    raise InputError(f"{src}: none of its {n_traces} traces can be imported, {n} of them: {reason}: {detail}")


def _read_spans(exports: list[Export], tool: Tool, options: Options, tally: Tally) -> pl.DataFrame:
    """All spans in order of trace and time."""
    frames, held = [SCHEMA.to_frame()], []
    for export in exports:
        for number, row in read_rows(export, tool.wants, tool.unwrap):
            if isinstance(row, tuple):
                tally.skip(export.label, number, row)
                continue
            try:
                found = list(tool.spans(row, options))
            except BadValueError as err:
                problem = err.reason, str(err)
                tally.skip(export.label, number, problem)
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


def _frames(spans: list[Span], tally: Tally) -> Iterator[pl.DataFrame]:
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
            tally.skip(spans[0].file, spans[0].row, (reason, str(err)[:200]))


def _check(export: Export, tool: Tool, tally: Tally) -> None:
    """Whether the file is one that can be imported, now that its columns are known."""
    refusal = tool.refuse(export.columns)
    if refusal:
        raise InputError(f"{export.label}: {refusal}")
    # Of a Parquet file the columns are known though none is read: of another tool's, whose rows say nothing then.
    missing = [names for names in tool.needs if export.columns and not export.columns.intersection(names)]
    if missing:
        found = ", ".join(sorted(map(repr, export.columns))[:40])
        wanted = ", none ".join(" or ".join(map(repr, names)) for names in missing)
        what = (
            advice(export.columns, beside=tool.system, is_export=True) or "export it with them; check --from"
        )
        raise InputError(f"{export.label}: no column {wanted}, found {found[:600]}; {what}")
    suspicion = tool.warn(export.n_rows)
    if suspicion:
        tally.warnings.append(f"{export.label}: {suspicion}")


def _answers(spans: pl.DataFrame, tool: Tool, options: Options, tally: Tally) -> pa.Table:
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


def _fit(rows: list[dict[str, Any]], tally: Tally) -> Iterator[pa.Table]:
    """The rows by the rules of the log; those without an id apart, since theirs are made from content."""
    for named in (True, False):
        part = [row for row in rows if (row["request_id"] is not None) == named]
        if not part:
            continue
        names = [name for name in _COLUMNS if named or name != "request_id"]
        arrays = {name: pa.array([row[name] for row in part], LOG.field(name).type) for name in names}
        columns = {name: Column(name, (name,), LOG.field(name).type, PLAIN) for name in names}
        batch = fit_batch(arrays, columns, _MAX_BYTES, _MAX_BYTES)
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


def _with_days(log: pa.Table, tally: Tally) -> pa.Table:
    """The rows that have a day to be written under."""
    undated = log.filter(log["ts"].is_null())
    for value in undated.select(["request_id", *_META]).to_pylist():
        tally.refuse(value, ("no_time", "no span of it has a time; give OUT as one file, x.parquet"))
    return log.filter(log["ts"].is_valid())
