"""`claimscore promote`: candidates of a golden set out of a night's tables and its log, into a Parquet file.

What a file already holds stays as it is, labels, further columns and all; an item that it holds is not added again. The
file is replaced as a whole, or not at all.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs import logrows, outputs, promote, reports
from claimscore.jobs.config import Config
from claimscore.jobs.errors import InputError, OutputError, reason_of
from claimscore.jobs.frames import as_frame, joined
from claimscore.jobs.records import ANSWERS, VERDICTS
from claimscore.jobs.store import Store
from claimscore.jobs.uri import shown
from claimscore.jobs.wholefile import parquet_bytes, write_whole

LOOKED_AT = 10
"""Candidates whose rows are read, a row that may be promoted: most of a bad night may say the same."""


def run(
    config: Config, *, date: str | None, series: str | None, to: str, append: bool, limit: int
) -> dict[str, Any]:
    """Promote a night's candidates.

    Args:
        config: the deployment whose log and tables these are.
        date: the night; None: the newest.
        series: the judge's series; None: the one that dashboards read.
        to: the Parquet file.
        append: add to the file where it exists.
        limit: at most so many a night, however often it is asked.

    Returns:
        date, series, to, n_candidates, n_added, n_items (in the file now), left_out (reason -> count).

    Raises:
        InputError: nothing of that night, a log that changed, or a file that is no golden set.
        OutputError: the file exists and `append` is not set, or it cannot be written.
    """
    target = Path(to).expanduser()
    existing = _existing(target, to, append=append) if target.exists() else None
    store = Store(config.store.out, config.store)
    date, series = _night(store, config, date, series)
    answers, verdicts = (_table(store, name, date, series) for name in ("answers", "verdicts"))
    found = promote.candidates(as_frame(answers), as_frame(verdicts))
    rows, left_out = _chosen(config, found, as_frame(verdicts), date, series, limit)
    new = _unheld(rows, existing, to, left_out)
    n_before = existing.num_rows if existing is not None else 0
    if new or existing is None:
        write_whole(
            target,
            parquet_bytes(_joined(existing, pa.Table.from_pylist(new, schema=promote.GOLDEN), to)),
            option="--to",
        )
    return {
        "date": date,
        "series": series,
        "to": to,
        "n_candidates": len(found),
        "n_added": len(new),
        "n_items": n_before + len(new),
        "left_out": dict(sorted(left_out.items())),
    }


def _unheld(
    rows: list[dict[str, Any]], existing: pa.Table | None, to: str, left_out: Counter[str]
) -> list[dict[str, Any]]:
    """The rows that the file does not hold; `left_out` counts the others."""
    held = _held(existing, to)
    likes = [held.like(_likeness(row)) for row in rows]
    left_out.update(f"{like} as an item of the file" for like in likes if like)
    return [row for row, like in zip(rows, likes, strict=True) if not like]


def words(document: dict[str, Any]) -> str:
    """What was promoted, in one line."""
    left_out = "".join(f"; {n} {reason}" for reason, n in document["left_out"].items())
    return (
        f"{document['to']}: {document['n_added']} of {document['n_candidates']} candidates of {document['date']} "
        f"({document['series']}) added, {document['n_items']} items in all{left_out}"
    )


def _night(store: Store, config: Config, date: str | None, series: str | None) -> tuple[str, str]:
    out = shown(config.store.out)
    series = reports.find_series(store, config.store.out, series) if series else store.current()
    days = {file.date for file in store.files("answers", series=series)} if series else set()
    if not (series and days):
        raise InputError(f"{out}: no finished run, expected one; run a day first")
    date = date or max(days)
    if date not in days:
        raise InputError(
            f"{out}: no answers of {date} in series {series}, expected {outputs.held_words(days)}; run that day first"
        )
    return date, series


def _table(store: Store, name: str, date: str, series: str) -> pa.Table:
    schema = {"answers": ANSWERS, "verdicts": VERDICTS}[name]
    return joined(schema, (store.read(file) for file in store.files(name, date=date, series=series)))


def _chosen(
    config: Config, found: pl.DataFrame, verdicts: pl.DataFrame, date: str, series: str, limit: int
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Rows of GOLDEN, first candidates first, no two alike, at most `limit`; and why the others are left out."""
    left_out: Counter[str] = Counter()
    looked_at = found.head(LOOKED_AT * limit)
    ids = looked_at["request_id"].to_list()
    log = {row["request_id"]: row for row in logrows.rows_of(config.read, date, ids).to_pylist()}
    claims = verdicts.filter(pl.col("request_id").is_in(looked_at["request_id"].implode())).sort(
        "claim_index"
    )
    by_id = claims.partition_by("request_id", as_dict=True)
    held = promote.Held()
    rows: list[dict[str, Any]] = []
    for candidate in looked_at.iter_rows(named=True):
        row = log.get(candidate["request_id"])
        if row is None:
            left_out["no longer in the log"] += 1
        elif not (row["question"] or "").strip():
            left_out["without a question"] += 1
        elif like := held.like(_likeness(row)):
            left_out[f"{like} as another of the night"] += 1
        elif len(rows) == limit:
            left_out["beyond the limit"] += 1
        else:
            held.add(_likeness(row))
            mine = by_id[candidate["request_id"],].to_dicts() if (candidate["request_id"],) in by_id else []
            rows.append(promote.golden_row(row, mine, candidate, date, series))
    if len(found) > len(looked_at):
        left_out["beyond the limit"] += len(found) - len(looked_at)
    return rows, left_out


def _likeness(row: dict[str, Any]) -> promote.Likeness:
    return promote.Likeness.of(row["question"], (chunk["text"] for chunk in row["chunks"]))


def _existing(path: Path, to: str, *, append: bool) -> pa.Table:
    if not append:
        raise OutputError(
            f"{to}: exists, expected a new file: it may hold labels; give --append, or another --to"
        )
    try:
        return pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as err:
        raise InputError(
            f"{to}: cannot be read: {reason_of(err)}, expected a golden set in Parquet; give another --to"
        ) from err


def _held(existing: pa.Table | None, to: str) -> promote.Held:
    """The items of the file."""
    held = promote.Held()
    if existing is not None:
        try:
            for row in existing.select(["request_id", "question", "chunks"]).to_pylist():
                held.add(
                    promote.Likeness.of(row["question"], (chunk["text"] for chunk in row["chunks"] or ()))
                )
        except (KeyError, TypeError, AttributeError) as err:
            raise InputError(
                f"{to}: its questions and chunks cannot be read: {reason_of(err)}, expected a file of `claimscore promote`; "
                "give another --to"
            ) from err
    return held


def _joined(existing: pa.Table | None, new: pa.Table, to: str) -> pa.Table:
    """The rows of the file and the new ones behind them, in the file's types; columns that one side lacks are null."""
    if existing is None:
        return new
    try:
        for k, name in enumerate(new.column_names):
            if name in existing.column_names:
                new = new.set_column(k, name, _as(new.column(name), existing.schema.field(name).type))
        return pa.concat_tables([existing, new], promote_options="permissive")
    except (pa.ArrowException, ValueError) as err:
        raise InputError(
            f"{to}: new items do not fit its columns: {err}, expected those that `claimscore promote` writes; give "
            "another --to"
        ) from err


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column in the file's type, where nothing of it is lost; a file whose column is all null takes ours."""
    if pa.types.is_null(kind):
        return column
    cast = column.cast(kind)
    if not cast.cast(column.type).equals(column):  # Arrow drops the fields that a struct of the file lacks
        raise ValueError(f"{column.type} does not fit into {kind}")
    return cast
