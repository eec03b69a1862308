"""Terminal views of finished tables: a run, a plan, two series side by side.

Reads tables through the store, computes no verdict and no rate of its own. All text of logs is hostile: it is
stripped of control characters and never read as markup.
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from claimscore.jobs import compare as comparing
from claimscore.jobs import metrics, outputs, recipes, referee_words
from claimscore.jobs.config import MetricsConfig, StoreConfig
from claimscore.jobs.errors import InputError, one_line
from claimscore.jobs.progress import printable, table
from claimscore.jobs.report_words import interval, percent, points, pooled_words
from claimscore.jobs.store import Store

_SHOWN_FLIPS = 30
_SHOWN_METRICS = (
    "hallucination_rate",
    "groundedness",
    "citation_precision",
    "refusal_rate",
    "over_refusal_rate",
    "refusal_correctness",
    "unscored_rate",
)
_TELLING = {"hallucination_rate": "hallucinated", "groundedness": "grounded"}
"""Rates that tell prompt versions apart -> the heading; longer ones would break within 80 columns."""
_SHOWN_VERSIONS, _VERSION_CHARS = 10, 40


def print_run(report: dict[str, Any]) -> None:
    """What one day adds up to, and where its verdicts lie."""
    console = Console()
    counts = report["counts"]
    quarantined = _prefixed(counts.get("quarantine", {}), "reason_")
    states = _prefixed(counts.get("answers", {}), "state_")
    verdicts = _prefixed(counts.get("verdicts", {}), "verdict_")
    total, n_claims = report["n_rows"], max(1, report["n_claims"])
    n_failed = total - sum(states.values()) - sum(quarantined.values())
    failed = f" + {n_failed:,} in failed shards" if n_failed else ""
    console.print(
        f"[bold]{report['date']}[/bold]: {total:,} rows = {sum(states.values()):,} answers + "
        f"{sum(quarantined.values()):,} quarantined{failed}; {report['n_made']} of {report['n_shards']} shards made, "
        f"{report['wall_s']:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    rows = [["answers", state, n, percent(n / max(1, sum(states.values())))] for state, n in states.items()]
    rows += [["quarantined", reason, n, percent(n / max(1, total))] for reason, n in quarantined.items()]
    n_repeats = counts.get("claims", {}).get("n_duplicates", 0)
    claims = "claims, repeats too" if n_repeats else "claims"
    rows += [[claims, verdict, n, percent(n / n_claims)] for verdict, n in verdicts.items()]
    table("Rows and claims", ["what", "state", "count", "share"], rows, console=console)
    if n_repeats:
        words = (
            f"{n_repeats:,} of the claims repeat what their answer said before: rows of their own above, counted once in "
            "every rate"
        )
        console.print(words, highlight=False, soft_wrap=True)
    if "referee" in counts:
        console.print(referee_words.run_words(counts["referee"]), highlight=False, soft_wrap=True)
    _print_metrics(report["metrics"], console)
    console.print(
        f"verdicts: {report['out']}/tables/verdicts/judge={report['series']}/date={report['date']}/",
        markup=False,
        soft_wrap=True,
    )


def print_next(report: dict[str, Any], *, out: str, is_current: bool) -> None:
    """The one command that shows the day of a run; of a series that dashboards do not read, by its name.

    Nothing where `out`, the place itself, is not what may be shown of it: a command without its region, endpoint or keys
    would look elsewhere.
    """
    if report["out"] != out:
        return
    words = ["claimscore", "report", "--out", report["out"], "--date", report["date"]]
    command = shlex.join([*words, *([] if is_current else ["--series", report["series"]])])
    Console().print(f"next: {command}", highlight=False, markup=False, soft_wrap=True)


def _print_metrics(rates: list[dict[str, Any]], console: Console) -> None:
    """The rates of the day; where it has prompt versions, the two that tell them apart, worst first."""
    of_all = {row["metric"]: row for row in rates if row["grouping"] == "all" and row["denominator"]}
    rows = [
        [name, *_value(of_all[name]), f"{of_all[name]['denominator']:,.0f} {of_all[name]['per']}"]
        for name in _SHOWN_METRICS
        if name in of_all
    ]
    table("Rates", ["metric", "value", "95% interval", "of"], rows, console=console)
    # A log without prompt versions has one group of none: the rates of all once more.
    versions: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rates:
        if row["grouping"] == "prompt_version" and row["prompt_version"] is not None and row["denominator"]:
            versions.setdefault(row["prompt_version"], {})[row["metric"]] = row
    if versions:
        _print_versions(versions, console)


def _print_versions(versions: dict[str, dict[str, dict[str, Any]]], console: Console) -> None:
    def hallucinated(version: str) -> float:
        return float(versions[version].get("hallucination_rate", {"value": -1})["value"])

    worst = sorted(sorted(versions), key=hallucinated, reverse=True)
    rows = [
        [_short(version), *(cell for name in _TELLING for cell in _value(versions[version].get(name)))]
        for version in worst[:_SHOWN_VERSIONS]
    ]
    columns = [column for name in _TELLING.values() for column in (name, "95% interval")]
    table("By prompt version", ["prompt", *columns], rows, console=console)
    if more := len(worst) - len(rows):
        console.print(f"and {more:,} versions more, none worse: they stand in the report", highlight=False)


def _short(version: str) -> str:
    """A prompt version as the first cell of a line, whatever the log gave for one; one of blanks in quotes."""
    text = one_line(version) or f'"{version[:_VERSION_CHARS]}"'
    return text if len(text) <= _VERSION_CHARS else f"{text[:_VERSION_CHARS]}…"


def _value(row: dict[str, Any] | None) -> list[str | None]:
    """A rate and its interval as two cells; of none, nothing in both."""
    return [None, None] if row is None else [percent(row["value"]), interval(row["low"], row["high"])]


def print_plan(document: dict[str, Any]) -> None:
    """The plan of every day, as `claimscore plan` shows it."""
    console = Console()
    for day in document["days"]:
        if "error" in day:
            console.print(printable(day["error"]), markup=False, soft_wrap=True)
            continue
        rows = [
            [name, sum(reasons.values()), day["stale_rows"].get(name, 0), "; ".join(sorted(reasons))]
            for name, reasons in day["stale"].items()
        ]
        title = (
            f"{day['date']}: {day['n_rows']:,} answers in {day['n_shards']} shards, series {day['series']}"
        )
        if rows:
            table(title, ["table", "shards", "answers", "why"], rows, console=console)
            cost = day["estimate"]
            loading = cost["loading_s"]
            console.print(
                f"about {cost['n_llm_tokens']:,} LLM tokens, {cost['n_pairs']:,} pairs and {cost['n_variant_pairs']:,} of their "
                f"variants, {_span(cost['model_s'])} of the models, "
                f"{'without loading them' if loading is None else f'and {_span(loading)} to load them'}; "
                f"rates: {cost['rates_from']}",
                highlight=False,
                markup=False,
                soft_wrap=not console.is_terminal,
            )
        else:
            state = "everything is fresh" if day["n_rows"] else "nothing to score"
            console.print(f"{title}: {state}", highlight=False, markup=False)
        for line in (*day["unreadable"], *day["warnings"]):
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    console.print(f"config {document['config_fingerprint']}", highlight=False)


def _span(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:,.1f} h"


def find_series(store: Store, out: str, name: str) -> str:
    """The series of that name or of that judge, or the only one that begins so: `large` for `large-1a2b3c4d`.

    Raises:
        InputError: there is none, or more than one.
    """
    known = store.list_series()
    if not known and Path(out).exists():
        raise outputs.no_run(out)
    called = [series for series in known if name in (series, series.rpartition("-")[0])]
    found = called or [series for series in known if series.startswith(name)]
    if len(found) != 1:
        wanted = ", ".join(found or known) or "none: run a day first"
        count = "no" if not found else str(len(found))
        raise InputError(f"{out}: {count} series {name!r}, expected one of {wanted}")
    return found[0]


def compare_series(
    out: str, series_a: str, series_b: str, since: str | None, until: str | None
) -> dict[str, Any]:
    """Compare two series over the days that both hold; `messages` says where days of a series were made otherwise.

    Raises:
        InputError: a series is unknown, or its name too short to tell it from others; or they have no day in common.
    """
    store = Store(out, StoreConfig(out=out))
    series_a, series_b = (find_series(store, out, name) for name in (series_a, series_b))
    days = sorted(_dates(store, series_a, since, until) & _dates(store, series_b, since, until))
    if not days:
        raise InputError(
            f"{out}: {series_a} and {series_b} have no day in common, expected one; run a backfill first"
        )
    verdicts = [_verdicts(store, series, days) for series in (series_a, series_b)]
    rates = [
        metrics.measure(_answers(store, series, days), MetricsConfig()) for series in (series_a, series_b)
    ]
    compared = comparing.compare(*verdicts, *rates)
    document = {field.name: getattr(compared, field.name) for field in dataclasses.fields(compared)}
    for name in ("confusion", "shifts", "flips"):
        document[name] = document[name].to_pylist()
    borders = {series: recipes.Recipes(store, series).borders(days) for series in (series_a, series_b)}
    document["made_otherwise"] = {series: found for series, found in borders.items() if found}
    told = (pooled_words(s, days, found, is_current=s == store.current()) for s, found in borders.items())
    document["messages"] = [line for lines in told for line in lines]
    return {"series_a": series_a, "series_b": series_b, "days": days} | document


def _shift(shift: dict[str, Any]) -> list[float | str | None]:
    """Both values of a rate and their difference in points; Cohen's kappa is no share."""
    values = [shift[name] for name in ("value_a", "value_b", "shift")]
    if shift["metric"] == "human_kappa":
        return values
    return [
        None if value is None else show(value)
        for value, show in zip(values, (percent, percent, points), strict=True)
    ]


def _dates(store: Store, series: str, since: str | None, until: str | None) -> set[str]:
    dates = {file.date for file in store.files("verdicts", series=series)}
    return {date for date in dates if (since or date) <= date <= (until or date)}


def _verdicts(store: Store, series: str, days: list[str]) -> pa.Table:
    """The verdicts of the days; over several days a request id is told apart by its day."""
    tables = []
    for day in days:
        for file in store.files("verdicts", date=day, series=series):
            verdicts = store.read(file, list(comparing.NEEDED_COLUMNS))
            if len(days) > 1:
                ids = pc.binary_join_element_wise(day, verdicts.column("request_id"), "/")
                verdicts = verdicts.set_column(verdicts.column_names.index("request_id"), "request_id", ids)
            tables.append(verdicts)
    return pa.concat_tables(tables)


def _answers(store: Store, series: str, days: list[str]) -> pa.Table:
    files = [file for day in days for file in store.files("answers", date=day, series=series)]
    return pa.concat_tables([store.read(file, list(metrics.NEEDED_COLUMNS)) for file in files])


def print_comparison(document: dict[str, Any]) -> None:
    """Agreement, kappa, metric shifts and flips of two series."""
    console = Console()
    a, b = document["series_a"], document["series_b"]
    agreement = "-" if document["agreement"] is None else f"{document['agreement']:.1%}"
    kappa = "-" if document["kappa"] is None else f"{document['kappa']:.3f}"
    console.print(
        f"{a} against {b}, {', '.join(document['days'])}: {document['n_common']:,} claims in both, agreement "
        f"{agreement}, Cohen's kappa {kappa}; only in one: {document['n_only_a']:,} and {document['n_only_b']:,}",
        highlight=False,
        soft_wrap=True,
    )
    for line in document["messages"]:
        console.print(printable(line), highlight=False, markup=False, soft_wrap=True)
    shifts = [
        [s["metric"], s["prompt_version"] or "all", *_shift(s)] for s in document["shifts"] if s["shift"]
    ]
    if shifts:
        console.print(f"a: {a}, b: {b}", highlight=False)
        table(
            "Metrics that shifted", ["metric", "prompt", "a", "b", "b - a, points"], shifts, console=console
        )
    else:
        console.print("no metric shifted")
    flips = [[f["request_id"], f["verdict_a"], f["verdict_b"], f["claim"]] for f in document["flips"]]
    if flips:
        title = f"Claims that flipped: {len(flips)}" + (
            f", the first {_SHOWN_FLIPS}" if len(flips) > _SHOWN_FLIPS else ""
        )
        table(title, ["request_id", "a", "b", "claim"], flips[:_SHOWN_FLIPS], console=console)
    else:
        console.print("no claim flipped")


def _prefixed(counts: dict[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix)}
