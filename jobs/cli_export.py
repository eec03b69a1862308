"""Commands that tell others: `claimscore export` to other tools, `claimscore alert` to whoever is on duty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from claimscore.jobs.errors import EXIT_UNFINISHED, one_line
from claimscore.jobs.options import date_option, emit, json_option

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
    from claimscore.jobs.config import load_config  # noqa: PLC0415

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
