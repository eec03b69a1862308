"""A log apart from the nightly one, run as one day of its own in an output root of its own.

Golden sets and replayed answers are scored by the ordinary run, so that resume, freshness and accounting are the same.
The day is one that no log has. Nothing here touches the tables of the nights. It knows no model and prints nothing.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from claimscore.jobs import operate
from claimscore.jobs.config import Config
from claimscore.jobs.records import ANSWERS
from claimscore.jobs.store import Store
from claimscore.jobs.uri import shown

DAY = "1970-01-01"
"""The day that the rows of a log apart are filed under."""


def below(out: str, *parts: str) -> str:
    """A place below an output root: `s3://bucket/a?region=x` and `b` give `s3://bucket/a/b?region=x`."""
    place, mark, query = out.partition("?") if "://" in out else (out, "", "")
    return "/".join([place.rstrip("/"), *parts]) + mark + query


def place(log: str) -> str:
    """A log as a person names it, from the working folder, as a place for workers that have others; a URI stays."""
    return log if "://" in log else os.path.abspath(os.path.expanduser(log))  # noqa: PTH100, PTH111  a glob is no path


def name_of(log: str) -> str:
    """What a log is called: its file or folder, without an ending; of a glob the last part that is none."""
    parts = [part for part in shown(log).split("/") if part.strip(".") and not set(part) & set("*?[")]
    return folder_name(PurePath(parts[-1]).stem if parts else "")


def folder_name(text: str) -> str:
    """`text` as the name of a folder: lower case letters, digits and `. _ -`; never empty, never dots alone."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:60] or "unnamed"


def config_of(config: Config, logs: str, out: str, *, own_names: bool = False) -> Config:
    """The deployment with another log and output root.

    Args:
        config: the deployment; everything else stays as it is.
        logs: a Parquet file, folder or glob.
        out: the output root.
        own_names: the log has our own column names. Else its columns are looked for as the config maps them, and
            where those are not there under our names.
    """
    mapped = {name: _with_own(name, candidates) for name, candidates in config.read.columns.items()}
    read = dataclasses.replace(
        config.read,
        logs=logs,
        preset="" if own_names else config.read.preset,
        columns={} if own_names else mapped,
        mapped=(),
    )
    return dataclasses.replace(config, read=read, store=dataclasses.replace(config.store, out=out))


def run(config: Config, *, quiet: bool) -> dict[str, Any]:
    """Make what is stale of the log apart; the report of its day, as `operate.run_days` gives it.

    Raises:
        ClaimscoreError: as `operate.run_days`.
    """
    (report,) = operate.run_days(config, [DAY], quiet=quiet)
    return report


def answers(config: Config, series: str) -> pa.Table:
    """records.ANSWERS of the run, shard by shard in the order of the store; none: an empty table."""
    store = Store(config.store.out, config.store)
    files = store.files("answers", date=DAY, series=series)
    return pa.concat_tables([ANSWERS.empty_table(), *(store.read(file) for file in files)])


def _with_own(name: str, candidates: tuple[str, ...]) -> tuple[str, ...]:
    """The candidates and our own name after them; a column that is not to be read stays so."""
    own = name.rpartition(".")[2] if name.startswith("chunk.") else name
    return (*candidates, own) if candidates and own not in candidates else candidates
