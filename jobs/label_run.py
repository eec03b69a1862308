"""`claimscore label`: a sheet from a finished night and its log, and what the labels on it say of that night.

The claims come from the verdicts, their chunks from the log, which must still be there. Rates over the labels are weighted
back to the night.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from claimscore.jobs import label_sheet, labelling, outputs, reports, trust
from claimscore.jobs.calibration_files import evidence_group
from claimscore.jobs.config import Config
from claimscore.jobs.counting import once
from claimscore.jobs.errors import InputError, OutputError
from claimscore.jobs.frames import as_frame, joined
from claimscore.jobs.progress import printable, table
from claimscore.jobs.read import list_files, read_shard
from claimscore.jobs.records import VERDICTS, Verdict
from claimscore.jobs.report_words import interval, percent
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.store import Store
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.wholefile import parquet_bytes, write_whole

_OF_VERDICT = (
    "request_id",
    "claim_index",
    "claim",
    "verdict",
    "support",
    "p_entailment",
    "decided_by",
    "conflict",
)
_OF_ANSWER = ("request_id", "question", "topic", "prompt_version")


def make_sheet(
    config: Config, n: int, to: str, *, date: str | None, series: str | None, seed: int, force: bool
) -> dict[str, Any]:
    """Draw claims of a finished night and write the sheet.

    Args:
        config: the deployment; its `[store] out` holds the night, its log the chunks.
        n: claims.
        to: the CSV; the Parquet file goes beside it.
        date: None: the newest day of the series.
        series: None: the one that dashboards read.
        seed: of the draw.
        force: overwrite.

    Raises:
        InputError: no such night, no texts in it, or its log is gone.
        OutputError: a file is there, or cannot be written.
    """
    store = Store(config.store.out, config.store)
    series = reports.find_series(store, config.store.out, series) if series else store.current()
    days = {file.date for file in store.files("verdicts", series=series)} if series else set()
    date = date or max(days, default=None)
    if series is None or date not in days:
        held = outputs.held_words(days) if days else "a finished run"
        raise InputError(
            f"{config.store.out}: nothing of {date or 'any day'}, expected {held}; run that day first"
        )
    claims, n_unscored = _claims(store, date, series)
    chosen = labelling.choose(
        claims,
        n,
        threshold=Thresholds.of(config).entailment,
        temperature=config.card.temperature,
        seed=seed,
    )
    rows = _with_chunks(chosen, config, date, series)
    label_sheet.write(rows, to, force=force)
    reasons = chosen.group_by("reason").len().sort("reason")
    return {
        "date": date,
        "series": series,
        "sheet": to,
        "claims": str(label_sheet.claims_path(to)),
        "n_claims": len(claims),
        "n_unscored": n_unscored,
        "n_drawn": len(chosen),
        "reasons": dict(reasons.iter_rows()),
        "verdicts": dict(chosen.group_by("verdict").len().sort("verdict").iter_rows()),
    }


def _claims(store: Store, date: str, series: str) -> tuple[pl.DataFrame, int]:
    """The scored claims of a night with what a draw needs, what an answer repeats once, and how many are unscored."""
    columns = [*_OF_VERDICT, "low_consistency", "cited_ids"]
    files = store.files("verdicts", date=date, series=series)
    verdicts = once(as_frame(joined(VERDICTS, (store.read(file) for file in files)))).select(columns)
    answers = [
        as_frame(store.read(file, list(_OF_ANSWER)))
        for file in store.files("answers", date=date, series=series)
    ]
    scored = verdicts.filter(pl.col("verdict") != Verdict.UNSCORED.value)
    if scored.is_empty():
        raise InputError(
            f"{date}: no scored claim in series {series}, expected some; look at the night's report"
        )
    if scored["claim"].str.starts_with("sha256:").all():
        raise InputError(
            f"{date}: the claims are stored as hashes ([privacy] store_text = false), expected their words"
        )
    beside = scored.join(pl.concat(answers), on="request_id", how="left", maintain_order="left")
    return beside, len(verdicts) - len(scored)


def _with_chunks(chosen: pl.DataFrame, config: Config, date: str, series: str) -> pa.Table:
    """label_sheet.SHEET rows of the claims drawn, their chunks from the log."""
    ids = pa.array(chosen["request_id"].unique().to_list(), pa.string())
    fs, files = list_files(config.read.logs, date)
    chunks: dict[str, list[dict[str, Any]]] = {}
    for shard in plan_shards(fs, files, config.read.shard_rows)[0]:
        log, _ = read_shard(fs, shard, config.read, {})
        log = log.filter(pc.is_in(log.column("request_id"), value_set=ids)).select(["request_id", "chunks"])
        for row in log.to_pylist():
            chunks.setdefault(row["request_id"], row["chunks"])
    gone = [request_id for request_id in ids.to_pylist() if request_id not in chunks]
    if gone:
        raise InputError(
            f"{config.read.logs}: {len(gone)} of {len(ids)} answers drawn are not in the log of {date} ({gone[0]!r} first), "
            "expected the log that was scored; give the --date whose log is still there"
        )
    rows = [
        row
        | {
            "key": label_sheet.key_of(row["request_id"], row["claim_index"], row["claim"]),
            "chunks": chunks[row["request_id"]],
            "source": f"{series}/{date}",
            "group": evidence_group(chunks[row["request_id"]]),
        }
        for row in chosen.to_dicts()
    ]
    names = label_sheet.SHEET.names
    return pa.Table.from_pylist(
        [{name: row[name] for name in names} for row in rows], schema=label_sheet.SHEET
    )


def read_sheet(sheet: str, to: str | None, claims: str | None, *, force: bool) -> dict[str, Any]:
    """Read the labels, write them as a labelled file, and say what they tell of the night.

    Raises:
        InputError: the sheet cannot be used; its rows are named.
        OutputError: `to` is there and `force` is off, or cannot be written.
    """
    found = label_sheet.read(sheet, claims)
    document: dict[str, Any] = {
        "sheet": sheet,
        "n_rows": found.n_rows,
        "n_blank": found.n_blank,
        "labels": label_sheet.counts(found.rows),
        "night": night(found.rows),
        "written": None,
    }
    if to:
        if found.n_blank == found.n_rows:
            raise InputError(
                f"{sheet}: none of its {found.n_rows:,} rows has a label, expected one of {', '.join(label_sheet.ALLOWED)} in the column label"
            )
        if Path(to).exists() and not force:
            raise OutputError(
                f"{to}: is there already, expected a new file; give --to another, or --force to overwrite it"
            )
        write_whole(Path(to), parquet_bytes(found.rows), option="--to")
        document["written"] = to
    return document


def night(rows: pa.Table) -> dict[str, Any]:
    """Weighted back to the night: what share of claims people call unsupported, what share the job flagged, and how they agree.

    Each figure has a 95% interval; None without a label that says anything.
    """
    known = rows.filter(rows.column("supported").is_valid())
    if not known.num_rows:
        return {"n": 0}
    groups = np.unique(known.column("group").to_pylist(), return_inverse=True)[1]
    labelled = trust.Labelled(
        supported=np.array(known.column("supported").to_pylist(), bool),
        scores=np.zeros(known.num_rows),
        weights=np.asarray(known.column("weight").to_pylist(), np.float64),
        groups=groups.astype(np.int64),
    )
    flagged = np.array(
        [verdict != Verdict.SUPPORTED.value for verdict in known.column("verdict").to_pylist()], bool
    )
    figures = {
        "unsupported_by_people": trust.share(labelled, ~labelled.supported),
        "flagged_by_the_job": trust.share(labelled, flagged),
        **trust.rates(labelled, flagged),
    }
    return {"n": known.num_rows, "n_effective": round(labelled.n_effective, 1)} | {
        name: dataclasses.asdict(figure) for name, figure in figures.items()
    }


def print_sheet(document: dict[str, Any]) -> None:
    """What was drawn, and what to do with it."""
    drawn = ", ".join(f"{n} {name}" for name, n in document["reasons"].items())
    verdicts = ", ".join(f"{n} {name}" for name, n in document["verdicts"].items())
    for line in (
        (
            f"{document['date']}, {document['series']}: {document['n_drawn']:,} of {document['n_claims']:,} scored claims drawn "
            f"({document['n_unscored']:,} unscored left out): {drawn}; verdicts, which the sheet does not show: {verdicts}"
        ),
        (
            f"fill the column `label` of {document['sheet']} with {', '.join(label_sheet.ALLOWED)}; keep {document['claims']} "
            f"beside it; then: claimscore label --read {document['sheet']} --to labelled.parquet"
        ),
    ):
        Console().print(printable(line), markup=False, highlight=False, soft_wrap=True)


def print_labels(document: dict[str, Any]) -> None:
    """What was read, and the night by people's labels."""
    console = Console()
    labels = ", ".join(f"{n} {name}" for name, n in document["labels"].items()) or "none"
    line = f"{document['sheet']}: {document['n_rows']:,} rows, {document['n_blank']:,} without a label; labels: {labels}"
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    figures = {name: value for name, value in document["night"].items() if isinstance(value, dict)}
    if figures:
        rows = [[name.replace("_", " "), *_figure(name, figure)] for name, figure in figures.items()]
        title = f"By {document['night']['n']} labels, weighted back to the night"
        table(title, ["share", "value", "95% interval"], rows, console=console)
    if document["written"]:
        console.print(
            printable(f"wrote {document['written']}"), markup=False, highlight=False, soft_wrap=True
        )


def _figure(name: str, figure: dict[str, float | None]) -> tuple[str, str]:
    """Value and 95% interval in words: shares in percent, Cohen's kappa, which is none, as it is."""
    value, low, high = figure["value"], figure["low"], figure["high"]
    if name != "kappa":
        return percent(value) if value is not None else "-", interval(low, high) or "-"
    return f"{value:.3f}" if value is not None else "-", "-" if low is None else f"{low:.3f} to {high:.3f}"
