"""Small exports made in the test, imported, and what came of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.import_spans import Options
from claimscore.jobs.imports import import_traces

FEE = "The fee is 5 EUR."
POOL = "The hotel has a pool."


class Imported(NamedTuple):
    """What an import made."""

    manifest: dict[str, Any]
    rows: list[dict[str, Any]]
    quarantine: list[dict[str, Any]]

    @property
    def row(self) -> dict[str, Any]:
        """The only row."""
        (row,) = self.rows
        return row

    @property
    def reasons(self) -> list[str]:
        """Why traces and rows were put aside, in order."""
        return [note["reason"] for note in self.quarantine]


def write_export(path: Path, rows: Any) -> Path:
    """Rows as a file of the form that its name says; bytes as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, bytes):
        path.write_bytes(rows)
    elif path.suffix == ".parquet":
        names = dict.fromkeys(name for row in rows for name in row) if not isinstance(rows, pa.Table) else ()
        padded = [{name: row.get(name) for name in names} for row in rows] if names else rows
        table = padded if isinstance(padded, pa.Table) else pa.Table.from_pylist(padded)
        pq.write_table(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text(json.dumps(rows))
    return path


def run_import(
    folder: Path, tool: str, files: Mapping[str, Any] | Sequence[Any], out: str = "log", **options: Any
) -> Imported:
    """Import files (name -> rows, or the rows of one file of JSON lines) and read back what was written."""
    named = files if isinstance(files, Mapping) else {"export.jsonl": files}
    for name, rows in named.items():
        write_export(folder / "export" / name, rows)
    manifest = import_traces(str(folder / "export"), str(folder / out), tool, Options(**options))
    return read_import(folder / out, manifest)


def read_import(out: Path, manifest: dict[str, Any]) -> Imported:
    """The rows, in order of day, and the notes of an import."""
    root = out.parent if out.suffix or "{date}" in out.name else out
    rows = [row for key in manifest["written"] for row in pq.ParquetFile(root / key).read().to_pylist()]
    notes = [json.loads(line) for line in Path(manifest["quarantine"]).read_text().splitlines()]
    return Imported(manifest, rows, notes)


def span(
    span_id: str,
    kind: str = "CHAIN",
    parent: str | None = "root",
    at: int = 0,
    *,
    trace: str = "a1",
    **more: Any,
) -> dict[str, Any]:
    """A span as Phoenix' data frame has it: second `at` of an hour, one second long; the id `root` has no parent."""
    return {
        "context.trace_id": trace,
        "context.span_id": span_id,
        "span_kind": kind,
        "name": span_id,
        "parent_id": None if span_id == "root" else parent,
        "start_time": f"2026-11-28T01:00:{at:02}+00:00",
        "end_time": f"2026-11-28T01:00:{at + 1:02}+00:00",
        **{f"attributes.{key.replace('__', '.')}": value for key, value in more.items()},
    }


def root(answer: Any = "5 EUR.", question: Any = "Fee?", **more: Any) -> dict[str, Any]:
    """A root with a question and an answer."""
    return span("root", input__value=question, output__value=answer, **more)


def retriever(*texts: str, name: str = "find", at: int = 1, **more: Any) -> dict[str, Any]:
    """A retriever with documents whose ids are d0, d1.. after its name."""
    documents = [
        {"document.id": f"{name}-{k}", "document.content": text, "document.score": (8 - k) / 10}
        for k, text in enumerate(texts)
    ]
    return span(name, "RETRIEVER", at=at, retrieval__documents=documents, **more)


def llm(at: int = 5, name: str = "ask", **more: Any) -> dict[str, Any]:
    """A call of the model."""
    return span(name, "LLM", at=at, llm__model_name="m", output__value="5 EUR.", **more)
