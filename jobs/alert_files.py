"""`claimscore alert`: reads the metrics of the days, and tells whoever is on duty where a rate got worse.

To a terminal, stderr, a JSON file, a webhook and a Prometheus textfile. It judges nothing: `alerts` does. A webhook's URL
is a secret: only its host is ever told.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
from rich.console import Console

from claimscore.jobs import alerts, outputs, recipes, reports, trend
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import InputError, OutputError, one_line
from claimscore.jobs.frames import as_frame
from claimscore.jobs.gate_files import parse_drop
from claimscore.jobs.progress import table
from claimscore.jobs.report_words import counted, otherwise_words, percent, points
from claimscore.jobs.sending import Sender, checked_url, error_of
from claimscore.jobs.store import Store

MAX_LISTED = 10


def run(
    out: str, date: str, series: str | None, metrics: Sequence[str], change: str
) -> tuple[dict[str, Any], pl.DataFrame]:
    """What is to be said of a day, and the METRICS rows of it, which the textfile shows.

    Args:
        out: the output root.
        date: YYYY-MM-DD; it may be missing in the output, and then that is what is said.
        series: a series or its beginning; None: the one that dashboards read.
        metrics: names of alerts.WORSE.
        change: as `4pt`.

    Raises:
        InputError: no such series, or another form of change.
    """
    worst = parse_drop(change, "--change")
    if not worst:
        raise InputError(f"--change {change!r}: expected more than 0pt; give 4pt for four points")
    store = Store(out, StoreConfig(out=out))
    found = reports.find_series(store, out, series) if series else store.current()
    if found is None:
        raise outputs.no_run(out)
    first = trend.days_before(date, alerts.WINDOW_DAYS)
    tables = [trend.HISTORY.empty_table()]
    made_at = None
    for file in store.files("metrics", series=found):
        if first <= file.date <= date:
            rows = store.read(file)
            tables.append(rows.add_column(0, "date", pa.repeat(file.date, rows.num_rows)).cast(trend.HISTORY))
            manifest = store.manifest(file)
            made_at = manifest["made_at"] if manifest and file.date == date else None
    history = as_frame(pa.concat_tables(tables))
    otherwise = recipes.Recipes(store, found).otherwise(set(history["date"]) - {date}, date)
    alike = history.filter(~pl.col("date").is_in(list(otherwise)))
    document: dict[str, Any] = {
        "series": found,
        "is_current": found == store.current(),
        "made_at": made_at,
    }
    document |= alerts.examine(alike, date, metrics, worst)
    week = trend.days_before(date, alerts.MIN_DAYS)
    document["gaps"] = sorted({*document["gaps"], *(day for day in otherwise if day >= week)})
    document["made_otherwise"] = dict(sorted(otherwise.items()))
    return document | {"messages": messages(document)}, history.filter(pl.col("date") == date)


def needs_somebody(document: dict[str, Any]) -> bool:
    """Whether there is an alarm, or the day could not be judged, or not with the days before it."""
    return bool(document["gaps"]) or any(
        chart["status"] in ("alarm", "unknown") for chart in document["charts"]
    )


def messages(document: dict[str, Any]) -> list[str]:
    """What somebody should know, a line each: alarms first, then what could not be judged and why."""
    charts = document["charts"]
    out = [_alarm(chart) for chart in charts if chart["status"] == "alarm"]
    unknown, learning = ([c for c in charts if c["status"] == status] for status in ("unknown", "learning"))
    out += [f"not judged: {_name(chart)}: {chart['why']}" for chart in unknown]
    if len(learning) > 1 and all(chart["status"] in ("learning", "empty") for chart in charts):
        out.append(_young(learning))
    else:
        out += [f"not judged yet: {_name(chart)}: {chart['why']}" for chart in learning]
    otherwise = document["made_otherwise"]
    if otherwise:
        spanned, names, again = otherwise_words(otherwise, is_current=document["is_current"])
        out.append(f"not judged: against {spanned}, made otherwise ({names}): {again}")
    gaps = [day for day in document["gaps"] if day not in otherwise]
    if gaps:
        out.append(
            f"not judged: {_listed(gaps)}: no rate of so recent a day, a change that began there would not show; "
            "run it"
        )
    told = {document["date"], *document["gaps"], *otherwise}
    missing = [day for day in document["missing_days"] if day not in told]
    if missing:
        out.append(f"days without any rate: {_listed(missing)}")
    if document["small_versions"]:
        small = _listed([repr(version) for version in document["small_versions"]])
        out.append(f"under {alerts.MIN_COUNT} answers on the day, not judged: prompt version {small}")
    skipped = {(day["date"], day["why"]) for chart in charts for day in chart["skipped_days"]}
    earlier = [f"{date} ({why})" for date, why in sorted(skipped) if date != document["date"]]
    if earlier:
        out.append(f"days with too little to count: {_listed(earlier)}")
    return [one_line(line) for line in out]


def _young(charts: Sequence[dict[str, Any]]) -> str:
    """Of an output so young that no rate can be judged: one line, for each would say the same."""
    held = sorted({chart["n_days_before"] for chart in charts})
    n_days = f"{held[0]}" if len(held) == 1 else f"{held[0]} to {held[-1]}"
    return f"not judged yet: {len(charts)} rates: {n_days} of {alerts.MIN_DAYS} days before it"


def _name(chart: dict[str, Any]) -> str:
    version = chart["prompt_version"]
    return f"{chart['metric']} of {'all answers' if version is None else f'prompt version {version!r}'}"


def _alarm(chart: dict[str, Any]) -> str:
    shift = chart["shift"]
    bounds = f"{points(shift['low'])} to {points(shift['high'])}"
    return (
        f"ALERT: {_name(chart)}: {percent(shift['before'])} -> {percent(shift['now'])}, {points(shift['change'])} points "
        f"({bounds}) since {chart['since']}, {counted(chart['n_days'], 'day')}"
    )


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - MAX_LISTED:,} more" if len(items) > MAX_LISTED else ""
    return ", ".join(items[:MAX_LISTED]) + more


def print_alert(document: dict[str, Any]) -> None:
    """Every chart as a table, whatever its status."""
    rows = [
        [
            chart["metric"],
            "all" if chart["prompt_version"] is None else chart["prompt_version"],
            chart["status"],
            percent(chart["value"]),
            f"{chart['score']:.1f} of {document['threshold']:.1f}",
            chart["since"] if chart["score"] else None,
        ]
        for chart in document["charts"]
    ]
    title = f"{document['date']}, series {document['series']}"
    table(
        title,
        ["metric", "prompt", "status", "rate", "score", "since"],
        rows,
        console=Console(),
    )


def notify(document: dict[str, Any], url: str, sender: Sender | None = None) -> None:
    """POST the document, with `text` for chat programs, where somebody should come.

    Args:
        document: of `run`.
        url: the webhook.
        sender: how to send; a test hands in its own.

    Raises:
        OutputError: no URL, or nobody there took it. Only the host is told.
    """
    sender = sender or Sender(
        checked_url(url, "--webhook")
    )  # a wrong one shows before the night that needs it
    if not needs_somebody(document):
        return
    lines = [f"claimscore {document['date']}, {document['series']}", *document["messages"]]
    # Chat programs read mentions and links in it: a word joiner, which nobody sees, keeps names of logs from being any.
    text = "\n".join(lines).translate({ord("@"): "@\u2060", ord("<"): "<\u2060"}).replace("://", ":\u2060//")
    try:
        answer = sender.request("POST", "", {"text": text, **document})
        if not answer.is_success:
            raise OutputError(f"{sender.place}: the webhook did not take the alert: {error_of(answer)}")
    finally:
        sender.close()


_FAMILIES = (
    ("claimscore_rate_ratio", "A rate of the day; absent where nothing was counted."),
    ("claimscore_rate_denominator", "What the rate was counted over on the day."),
    ("claimscore_unscored_claims", "Claims of the day that nothing judged."),
    ("claimscore_claims", "Claims of the day, unscored ones too."),
    ("claimscore_answers", "Answers of the day."),
    (
        "claimscore_alert_active",
        "1 where the rate got worse and stays so, 0 where not; absent where it was not judged.",
    ),
    ("claimscore_alert_not_judged", "1 where the rate could not be judged on the day."),
    (
        "claimscore_alert_missing_days",
        "Days of the week before without any rate: a change that began there would not show.",
    ),
    ("claimscore_last_success_timestamp_seconds", "When the rates of the day were made."),
)
_NOT_A_LABEL = re.compile(r'[\\"\n]')
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def textfile(document: dict[str, Any], today: pl.DataFrame) -> str:
    """The day in the Prometheus text format, for node_exporter's textfile collector: gauges without timestamps.

    Args:
        document: of `run`.
        today: METRICS rows of the day. Rates of all answers (`prompt_version=""`) and of each version that has a chart.
    """
    samples: dict[str, list[str]] = {name: [] for name, _ in _FAMILIES}

    def add(family: str, value: float, **labels: str) -> None:
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in sorted(labels.items()))
        samples[family].append(f"{family}{{{inside}}} {value!r}" if inside else f"{family} {value!r}")

    charted = {chart["prompt_version"] for chart in document["charts"]}
    of_all = today.filter(pl.col("grouping") == "all")
    own = today.filter(
        pl.col("grouping") == "prompt_version", pl.col("prompt_version").is_in(charted - {None})
    )
    for row in pl.concat([of_all, own]).to_dicts():
        group = {"prompt_version": row["prompt_version"] or ""}
        if row["metric"] == "refusal_rate":
            add("claimscore_answers", row["denominator"], **group)
        if row["metric"] == "unscored_rate":
            add("claimscore_unscored_claims", row["numerator"], **group)
            add("claimscore_claims", row["denominator"], **group)
        if row["value"] is not None:
            add("claimscore_rate_ratio", row["value"], metric=row["metric"], **group)
        add("claimscore_rate_denominator", row["denominator"], metric=row["metric"], **group)
    for chart in document["charts"]:
        labels = {"metric": chart["metric"], "prompt_version": chart["prompt_version"] or ""}
        judged = chart["status"] in ("alarm", "quiet")
        if judged:
            add("claimscore_alert_active", float(chart["status"] == "alarm"), **labels)
        add("claimscore_alert_not_judged", float(not judged), **labels)
    add("claimscore_alert_missing_days", float(len(document["gaps"])))
    if document["made_at"]:
        add(
            "claimscore_last_success_timestamp_seconds",
            dt.datetime.fromisoformat(document["made_at"]).timestamp(),
        )
    lines = []
    for name, help_text in _FAMILIES:
        lines += (
            [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", *samples[name]] if samples[name] else []
        )
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _NOT_A_LABEL.sub(lambda found: _ESCAPED[found[0]], text)
