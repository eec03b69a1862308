"""What lies at a place that was given for an output root and is none, and where tables are near it; local folders alone.

A folder above the outputs, or one inside an output, is what people name by mistake. Looks at names, and reads no file.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from claimscore.jobs.errors import InputError
from claimscore.jobs.layout import TABLES

MAX_DEPTH = 3
MAX_FOLDERS = 2_000
"""That are looked into: a home folder, or a disk, is no place to search whole."""
MAX_NAMES = 3
MAX_OUTPUTS = 5


def no_run(out: str, *, otherwise: str = "run a day first") -> InputError:
    """The error of a place without a finished run: what was found there, and which folders hold tables.

    Args:
        out: as it was given.
        otherwise: what to do where no tables are near.
    """
    here = Path(out)
    if "://" in out or not here.exists() or _holds_tables(here):  # tables: the first run has not ended
        return InputError(f"{out}: no finished run, expected one; {otherwise}")
    outputs = near(here)
    if outputs:
        shown = [str(path) for path in outputs[:MAX_OUTPUTS]]
        more = f" and {len(outputs) - MAX_OUTPUTS} more" if len(outputs) > MAX_OUTPUTS else ""
        give = "give that" if len(outputs) == 1 else "give one of them"
        return InputError(
            f"{out}: no finished run ({_found(here)}), expected an output root; tables are in {', '.join(shown)}{more}: {give}"
        )
    return InputError(
        f"{out}: no finished run ({_found(here)}), expected one; no folder near it holds tables: {otherwise}"
    )


def held_words(days: Iterable[str]) -> str:
    """The days that there are, as an error says what it expected: the one, or the first and the last."""
    found = sorted(set(days))
    return found[0] if len(found) == 1 else f"one of {found[0]} to {found[-1]}"


def near(here: Path) -> list[Path]:
    """Folders below `here` that hold tables, sorted; else the one that `here` is a part of.

    Links are not followed, and neither hidden folders nor outputs are looked into.
    """
    found, waiting = [], deque([(here, 0)])
    n_seen = 0
    while waiting and n_seen < MAX_FOLDERS:
        folder, depth = waiting.popleft()
        n_seen += 1
        if depth and _holds_tables(folder):
            found.append(folder)
        elif depth < MAX_DEPTH:
            waiting += [(path, depth + 1) for path in _folders(folder)]
    above = list(here.absolute().parents)[: 2 * MAX_DEPTH]
    return sorted(found) or [folder for folder in above if _holds_tables(folder)][:1]


def _holds_tables(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return any((folder / TABLES / name).is_dir() for name in ("answers", "verdicts", "claims"))
    return False


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        entries = sorted(folder.iterdir())
        return [p for p in entries if not p.name.startswith(".") and p.is_dir() and not p.is_symlink()]
    return []


def _found(here: Path) -> str:
    """What is there, in words."""
    if not here.is_dir():
        return "a file"
    with contextlib.suppress(OSError):
        names = sorted(path.name for path in here.iterdir())
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        return f"holds {', '.join(names[:MAX_NAMES])}{more}" if names else "an empty folder"
    return "a folder that cannot be read"
