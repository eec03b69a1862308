"""Commands that tell others: `claimscore export` to other tools, `claimscore alert` to whoever is on duty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from claimscore.jobs.errors import EXIT_UNFINISHED, one_line
from claimscore.jobs.options import as_day, date_option, emit, json_option

_TOOLS = ("phoenix", "langfuse", "langsmith", "mlflow", "otlp", "events", "csv")
out_argument = click.argument("out", metavar="OUT")
series_option = click.option(
    "--series", default=None, metavar="SERIES", help="A series or its judge; else the one dashboards read."
)


@click.command()
@out_argument
@click.option("--to", required=True, type=click.Choice(_TOOLS), help="Whose shape.")
@date_option
@series_option
@click.option(
    "--dest", default=None, metavar="FILE", help="File to write; - for stdout.  [default: by tool and day]"
)
@click.option(
    "--send", default=None, metavar="URL", help="Send to the tool at this base URL, in place of a file."
)
@click.option(
    "--keep-series", is_flag=True, help="Judges stand side by side; else the newest export overwrites."
)
@click.option("--again", is_flag=True, help="Send everything, also what was sent before and has not changed.")
@click.option(
    "--config", "config_path", default=None, metavar="CONFIG", help="Events take chunks from its log."
)
@json_option
def export(config_path: str | None, as_json: bool, **options: Any) -> None:
    """Write a day's scores for another tool, or send them: one an answer and metric, unscored told as such.

    Example: claimscore export demo-run/out --to csv --date 2026-11-28 --dest night.csv
    """
    from claimscore.jobs import export_files  # noqa: PLC0415
    from claimscore.jobs.config_file import load_config  # noqa: PLC0415

    if config_path and options["to"] != "events":
        raise click.UsageError("--config is for --to events")
    config = load_config(Path(config_path), []) if config_path else None
    document = export_files.run(export_files.Order(**options), config)
    text = document.pop("text")
    for line in export_files.notes(document):
        click.echo(one_line(line), err=True)
    if text is not None:
        click.echo(text, nl=False)
    else:
        emit(document, export_files.print_export, as_json=as_json)
    if document.get("sent", {}).get("failed"):
        raise SystemExit(EXIT_UNFINISHED)


@click.command()
@out_argument
@click.option(
    "--date", default="yesterday", show_default=True, callback=as_day, metavar="DAY", help="Day to judge."
)
@series_option
@click.option(
    "--metric", "metrics", multiple=True, metavar="METRIC", help="A rate to watch; may be given again."
)
@click.option(
    "--change", default="4pt", show_default=True, metavar="POINTS", help="The worsening to find soonest."
)
@click.option("--webhook", default=None, metavar="URL", help="POST there where somebody should come.")
@click.option("--textfile", default=None, metavar="FILE.prom", help="Prometheus textfile, written whole.")
@click.option("--dest", default=None, metavar="FILE", help="The JSON document as a file too.")
@json_option
def alert(out: str, date: str, metrics: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Exit with code 3 where a rate got worse and stays so, or where the day cannot be judged.

    Example: claimscore alert demo-run/out --date 2026-11-28
    """
    from claimscore.jobs import alert_files, alerts  # noqa: PLC0415
    from claimscore.jobs.report_files import as_json as to_json  # noqa: PLC0415
    from claimscore.jobs.wholefile import write_whole  # noqa: PLC0415

    unknown = [name for name in metrics if name not in alerts.WORSE]
    if unknown:
        raise click.UsageError(f"--metric {unknown[0]!r} is none of {', '.join(alerts.WORSE)}")
    watched = tuple(dict.fromkeys(metrics)) or alerts.DEFAULT_METRICS
    document, today = alert_files.run(out, date, options["series"], watched, options["change"])
    emit(document, alert_files.print_alert, as_json=as_json)
    for line in document["messages"]:
        click.echo(one_line(line), err=True)
    if options["dest"]:
        write_whole(Path(options["dest"]), to_json(document).encode())
    if options["textfile"]:
        write_whole(Path(options["textfile"]), alert_files.textfile(document, today).encode())
    if options["webhook"]:
        alert_files.notify(document, options["webhook"])
    if alert_files.needs_somebody(document):
        raise SystemExit(EXIT_UNFINISHED)
