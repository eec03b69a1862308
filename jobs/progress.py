"""How a run looks on a terminal: a bar while it goes, tables when it ends.

On a terminal a bar on stderr; elsewhere (cron, a pod's log) one line when a shard ends and at least one a minute.
Results go to stdout, everything else to stderr. It knows no model and computes no rate that a table does not hold.
"""

from __future__ import annotations

import time
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

LINE_EVERY_S = 60.0
FIRST_LINES_EVERY_S = 15.0
"""Until something is made: models load for minutes, and silence looks like a hang."""


class RunProgress:
    """The progress of one day's shards; a context manager."""

    def __init__(self, title: str, n_shards: int, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._title, self._n_shards = title, n_shards
        self._began = self._last_line = time.monotonic()
        self._n_done = -1
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("shards"),
            TextColumn("{task.fields[rates]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task(self._title, total=self._n_shards, rates="")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, what: str) -> None:
        """Show what is waited for, until there are counts."""
        self._bar.update(self._task, rates=what)
        if not self._console.is_terminal:
            self._console.print(f"{self._title}: {what}", highlight=False)

    def show(self, counts: dict[str, int]) -> None:
        """Show counts of shards, claims, pairs and answers so far."""
        now, n_done = time.monotonic(), counts.get("shards", 0)
        rates = "  ".join(
            f"{counts.get(name, 0) / max(now - self._began, 1e-9):,.1f} {name}/s"
            for name in ("claims", "pairs")
        )
        is_first = not any(counts.values())
        rates = "models load, the first claims are made" if is_first else rates
        self._bar.update(self._task, completed=n_done, rates=rates)
        every = FIRST_LINES_EVERY_S if is_first else LINE_EVERY_S
        if not self._console.is_terminal and (n_done != self._n_done or now - self._last_line > every):
            self._console.print(
                f"{self._title}: {n_done}/{self._n_shards} shards, {rates}, {now - self._began:.0f} s",
                highlight=False,
            )
            self._last_line = now
        self._n_done = n_done


def table(title: str, columns: list[str], rows: list[list[Any]], *, console: Console | None = None) -> None:
    """Print an aligned table to stdout; numbers right-aligned; text from logs is escaped and stripped of controls."""
    out = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for k, name in enumerate(columns):
        numeric = all(isinstance(row[k], int | float) for row in rows) if rows else False
        out.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        out.add_row(*[shown(value) for value in row])
    (console or Console()).print(out)


def shown(value: Any) -> str:
    """One value as a cell: floats to three places, `-` for none, hostile text made harmless."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return escape(printable(str(value)))


def printable(text: str) -> str:
    """`text` without control characters and terminal escapes; line breaks and tabs become blanks."""
    return "".join(" " if c in "\n\r\t" else c for c in text if c.isprintable() or c in "\n\r\t")
