"""The morning report from an output root: reads a day's finished tables, writes HTML, Markdown or JSON.

The newest day and the series that dashboards read are taken where none is named. It computes no figure: `report` does.
Rates of a day come from its `metrics` file; where that is missing (a run that was stopped) they are measured from the
answers. The day's answers and verdicts are held in memory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import metrics, outputs, recipes, report, report_html, report_text, reports, trend
from claimscore.jobs.config import MetricsConfig, StoreConfig
from claimscore.jobs.errors import InputError, OutputError
from claimscore.jobs.frames import joined
from claimscore.jobs.records import ANSWERS, VERDICTS
from claimscore.jobs.store import Store
from claimscore.jobs.wholefile import write_whole

TABLES_OF_A_DAY = ("metrics", "answers", "verdicts")


def as_json(document: dict[str, Any]) -> str:
    """The document as strict JSON in ASCII, so that no terminal obeys it."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


FORMS = {"html": report_html.render, "md": report_text.render, "json": as_json}
"""Form -> document -> text."""


def make(out: str, date: str | None, series: str | None, compare: str | None) -> dict[str, Any]:
    """The document of a day.

    Args:
        out: the output root.
        date: YYYY-MM-DD; None: the newest day of the series.
        series: a series or its beginning; None: the one that dashboards read.
        compare: another series of that day, or its beginning; None: none.

    Raises:
        InputError: no such series, or nothing of that day.
    """
    store = Store(out, StoreConfig(out=out))
    current = store.current()
    series = reports.find_series(store, out, series) if series else current
    if series is None:
        raise outputs.no_run(out, otherwise="give --out, or run a day first")
    days = {file.date for table in TABLES_OF_A_DAY for file in store.files(table, series=series)}
    days |= {file.date for table in ("claims", "quarantine") for file in store.files(table)}
    if not days:
        raise InputError(f"{out}: no day in series {series}, expected one; run a day first")
    date = date or max(days)
    if date not in days:
        raise InputError(
            f"{out}: nothing of {date} in series {series}, expected {outputs.held_words(days)}; run that day first"
        )
    night = read_night(store, date, series, is_current=series == current)
    compared = reports.compare_series(out, series, compare, date, date) if compare else None
    return report.collect(night, compared)


def read_night(store: Store, date: str, series: str, *, is_current: bool) -> report.Night:
    """All that the store holds for the report of a day."""
    files = {name: store.files(name, date=date, series=series) for name in ("answers", "verdicts")}
    answers = joined(ANSWERS, (store.read(file) for file in files["answers"]))
    verdicts = joined(VERDICTS, (store.read(file) for file in files["verdicts"]))
    claimed = {file.shard_id for file in store.files("claims", date=date)}
    history = _history(store, date, series, answers)
    days, made = set(history.column("date").to_pylist()), recipes.Recipes(store, series)
    return report.Night(
        date=date,
        series=series,
        is_current=is_current,
        answers=answers,
        verdicts=verdicts,
        history=history,
        otherwise=made.otherwise(days - {date}, date),
        borders=made.borders(days),
        quarantined=_quarantined(store, date),
        n_shards=len(claimed),
        n_unfinished=len(claimed - {file.shard_id for file in files["answers"]}),
        out=store.root.shown("").rstrip("/"),
    )


def _history(store: Store, date: str, series: str, answers: pa.Table) -> pa.Table:
    """METRICS of the day and of the trailing days, each row with its day."""
    first = trend.days_before(date, max(trend.TRAILING_DAYS))
    files = [file for file in store.files("metrics", series=series) if first <= file.date <= date]
    tables = [(file.date, store.read(file)) for file in files]
    if date not in {day for day, _ in tables}:
        tables.append((date, metrics.measure(answers, MetricsConfig())))
    dated = [rows.add_column(0, "date", pa.repeat(day, rows.num_rows)) for day, rows in tables]
    return pa.concat_tables([table.cast(trend.HISTORY) for table in dated])


def _quarantined(store: Store, date: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in store.files("quarantine", date=date):
        for entry in pc.value_counts(store.read(file, ["reason"]).column("reason")).to_pylist():
            counts[entry["values"]] = counts.get(entry["values"], 0) + entry["counts"]
    return counts


def form_of(form: str | None, to: str | None) -> str:
    """The form asked for: named, else by the file's ending, else HTML.

    Raises:
        OutputError: an ending of another form, and none named: a .pdf would hold HTML.
    """
    ending = Path(to).suffix.removeprefix(".") if to else ""
    found = form or {"htm": "html", "markdown": "md", "": "html"}.get(ending, ending)
    if found not in FORMS:
        raise OutputError(
            f"{to}: .{ending} is no form of the report, expected {', '.join(FORMS)}; or name one with --format"
        )
    return found


def write(document: dict[str, Any], form: str, to: str | None) -> str | None:
    """Write the report; what is for stdout is given back.

    Args:
        document: of `make`.
        form: one of FORMS.
        to: a file, or `-` for stdout; None: stdout, but for HTML `claimscore-<day>.html` here, with the series in the
            name where it is not the one that dashboards read.

    Returns:
        The text to print: the report itself, or None where `to` names a file that was written.

    Raises:
        OutputError: the file cannot be written.
    """
    text = FORMS[form](document)
    path = target(document, form, to)
    if path is None:
        return text
    write_whole(path, text.encode(), option="--to")
    return None


def target(document: dict[str, Any], form: str, to: str | None) -> Path | None:
    """The file to write; None: stdout."""
    if to is None:
        series = "" if document["is_current"] else f"-{document['series']}"
        return Path(f"claimscore-{document['date']}{series}.html") if form == "html" else None
    return None if to == "-" else Path(to)
