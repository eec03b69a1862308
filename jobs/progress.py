"""How a run looks on a terminal: a bar while it goes, tables when it ends.

On a terminal a bar on stderr; elsewhere (cron, a pod's log) one line when a shard ends and at least one a minute. Both
name what the models are asked for, with a count that moves: a shard can take minutes.
Results go to stdout, everything else to stderr. It knows no model and computes no rate that a table does not hold.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
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
)
from rich.table import Table

LINE_EVERY_S = 60.0
FIRST_LINES_EVERY_S = 15.0
"""Until something is made: models load for minutes, and silence looks like a hang."""
_PHASES = (
    ("decomposer", "claims are made: {} of {} sentences"),
    ("checker", "claims are checked: {} of {}"),
    ("judge", "pairs are judged: {} of {}"),
    ("generator", "samples are drawn: {} of {} questions"),
    ("referee", "the referee reads: {} of {} prompts"),
)
"""Whom a call is for, and what it does. `of` grows: a shard asks when it gets there."""
_MADE = ("claims", "pairs")
_BAR_CHARS = 12  # what is left of 80 columns holds a phase


class RunProgress:
    """The progress of one day's shards; a context manager."""

    def __init__(self, title: str, n_shards: int, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._title, self._n_shards = title, n_shards
        self._began = self._last_line = time.monotonic()
        self._n_done = -1
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(_BAR_CHARS),
            MofNCompleteColumn(),
            TextColumn("shards"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[doing]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task(self._title, total=self._n_shards, doing="")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, what: str) -> None:
        """Show what is waited for, until there are counts."""
        self._bar.update(self._task, doing=what)
        if not self._console.is_terminal:
            self._console.print(f"{self._title}: {what}", highlight=False, soft_wrap=True)

    def show(self, counts: dict[str, int]) -> None:
        """Show counts so far: of shards, claims, pairs and answers, and of what the models are asked (actors.Progress)."""
        now, n_done = time.monotonic(), counts.get("shards", 0)
        doing = _doing(counts)
        self._bar.update(self._task, completed=n_done, doing=doing)
        if left := self._bar.tasks[self._task].time_remaining:
            self._bar.update(self._task, doing=f"{doing}, {dt.timedelta(seconds=round(left))} left")
        is_first = not (n_done or any(counts.get(name) for name in _MADE))
        every = FIRST_LINES_EVERY_S if is_first else LINE_EVERY_S
        if not self._console.is_terminal and (n_done != self._n_done or now - self._last_line > every):
            seconds = now - self._began
            # No rates: of the time since the start most is models that load, and whole shards come at once.
            words = f"{n_done}/{self._n_shards} shards, {doing}, {seconds:.0f} s"
            self._console.print(f"{self._title}: {words}", highlight=False, soft_wrap=True)
            self._last_line = now
        self._n_done = n_done


def _doing(counts: Mapping[str, int]) -> str:
    """What the models are asked for now. One that only waits for its turn is no phase: another shard is served."""
    said = [
        words.format(f"{counts.get(role, 0):,}", f"{counts[f'{role}_of']:,}")
        for role, words in _PHASES
        if counts.get(f"{role}_open") and counts[f"{role}_of"]
    ]
    if said:
        return ", ".join(said)
    if loading := [role for role, _ in _PHASES if counts.get(f"loading {role}_open")]:
        return f"models load: {', '.join(loading)}"
    return "tables are made" if any(counts.values()) else "the log is read"


def table(title: str, columns: list[str], rows: list[list[Any]], *, console: Console | None = None) -> None:
    """Print an aligned table to stdout; numbers right-aligned; text from logs is escaped and stripped of controls."""
    out = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for k, name in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[k]) for row in rows)
        out.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        out.add_row(*[shown(value) for value in row])
    (console or Console()).print(out)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and value.endswith("%"))


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
