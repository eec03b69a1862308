"""A sheet (a title, lines, warnings and tables of words) for a terminal, as Markdown and as one HTML page.

What a command found comes as a sheet, so that each form is written once. All text may be of a log and hostile: it is
escaped and made visible here. The page needs no network and runs no script. It knows no figure's meaning.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
from rich.console import Console
from rich.markup import escape

from claimscore.jobs import progress
from claimscore.jobs.report_files import as_json, form_of
from claimscore.jobs.report_text import plain
from claimscore.jobs.report_words import visible
from claimscore.jobs.wholefile import write_whole

_FOLDER = Path(__file__).parent / "templates"
_CELL_CHARS = 400


@dataclass(slots=True)
class Table:
    """A table of words."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(slots=True)
class Sheet:
    """What a command found, in words."""

    title: str
    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def print_sheet(sheet: Sheet) -> None:
    """The sheet on stdout."""
    console = Console()
    told = [sheet.title, *sheet.lines, *(f"beware: {line}" for line in sheet.warnings)]
    for line in told:
        console.print(progress.printable(visible(line)), highlight=False, markup=False, soft_wrap=True)
    for table in sheet.tables:
        title, *columns = (
            escape(progress.printable(visible(text))) for text in (table.title, *table.columns)
        )
        rows = [[visible(cell) for cell in row] for row in table.rows]
        progress.table(title, columns, rows, console=console)
    for line in sheet.failures:
        words = progress.printable(visible(f"failed: {line}"))
        console.print(words, highlight=False, markup=False, soft_wrap=True)


def markdown(sheet: Sheet) -> str:
    """The sheet as Markdown that shows just its text."""
    notices = [f"- **Beware.** {plain(line, _CELL_CHARS)}" for line in sheet.warnings]
    notices += [f"- **Failed.** {plain(line, _CELL_CHARS)}" for line in sheet.failures]
    parts = [
        f"## {plain(sheet.title)}",
        *(plain(line, _CELL_CHARS) for line in sheet.lines),
        "\n".join(notices),
    ]
    for table in sheet.tables:
        rows = [table.columns, ["---"] * len(table.columns), *table.rows]
        lines = [f"| {' | '.join(c if c == '---' else plain(c, _CELL_CHARS) for c in row)} |" for row in rows]
        parts += [f"**{plain(table.title)}**", "\n".join(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def html(sheet: Sheet) -> str:
    """The sheet as one page: one style sheet, by its hash, and nothing else that a browser would load or run."""
    style = (_FOLDER / "sheet.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return environment.get_template("sheet.html").render(s=sheet, style=style, policy=policy)


def write(
    document: dict[str, Any], sheet_of: Callable[[dict[str, Any]], Sheet], form: str | None, to: str
) -> None:
    """Write a document to a file: itself as JSON, or its sheet as Markdown or HTML.

    Args:
        document: what a command found.
        sheet_of: makes its sheet.
        form: html, md or json; None: by the ending of `to`.
        to: the file.

    Raises:
        OutputError: no such form, or the file cannot be written.
    """
    chosen = form_of(form, to)
    text = (
        as_json(document) if chosen == "json" else {"md": markdown, "html": html}[chosen](sheet_of(document))
    )
    write_whole(Path(to), text.encode(), option="--to")
