"""The commands that join claimscore to other tools: what comes in from them."""

from __future__ import annotations

from typing import Any

import click

from claimscore.jobs.errors import EXIT_UNFINISHED, one_line
from claimscore.jobs.options import emit, json_option, quiet_option

_TOOLS = ("phoenix", "otlp", "langfuse", "langsmith", "mlflow", "trulens")


@click.command("import")
@click.option("--from", "tool", required=True, type=click.Choice(_TOOLS), help="The tool of the export.")
@click.argument("src", metavar="SRC")
@click.argument("out", metavar="OUT")
@click.option("--project", default=None, metavar="NAME", help="Project, where the export names none.")
@click.option(
    "--prompt-version-key",
    default=None,
    metavar="KEY",
    help="Attribute or metadata key of the prompt version.",
)
@click.option(
    "--question-key", "question_keys", multiple=True, metavar="KEY", help="Your input's key of the question."
)
@click.option(
    "--answer-key", "answer_keys", multiple=True, metavar="KEY", help="Your output's key of the answer."
)
@click.option("--answer-span", default=None, metavar="NAME", help="The span whose output is the answer.")
@click.option(
    "--chunk-table",
    default=None,
    metavar="FILE",
    help="Parquet of id and text, for exports with chunk ids alone.",
)
@json_option
@quiet_option
def import_spans(tool: str, src: str, out: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Turn a span export of a tracing tool into a log that `run` reads.

    SRC is a file or folder of Parquet, JSON lines, JSON or CSV. OUT is a folder, which gets a file a day, or one file
    x.parquet. Every trace becomes a row or is put aside with the reason; the same command again replaces its output.

    Example: claimscore import --from langfuse langfuse-export rag-log
    """
    from claimscore.jobs import import_counts, import_documents, imports  # noqa: PLC0415
    from claimscore.jobs.import_spans import Options  # noqa: PLC0415

    table = options.pop("chunk_table")
    texts = import_documents.chunk_texts(table) if table else None
    told = Options(**options, chunk_texts=texts)
    manifest = imports.import_traces(src, out, tool, told)
    if not quiet:
        for line in import_counts.summary(manifest):
            click.echo(one_line(line), err=True)
    if as_json:
        emit(manifest, None, as_json=True)
    if manifest["rows_unreadable"]:
        raise SystemExit(EXIT_UNFINISHED)
