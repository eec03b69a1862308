"""The usable rows of a day's log, read again: for commands that need the questions and chunks behind finished tables.

The rules are the run's own: rows that a run would quarantine are not here either. One shard is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.read import find_repeats, list_files, read_shard
from claimscore.jobs.records import LOG
from claimscore.jobs.shards import plan_shards


def shards_of(config: ReadConfig, date: str) -> Iterator[pa.Table]:
    """records.LOG of each shard of a day, in order.

    Raises:
        InputError: no log of that day, or a file of it that cannot be read.
    """
    fs, files = list_files(config.logs, date)
    shards, unreadable = plan_shards(fs, files, config.shard_rows)
    if unreadable:
        raise InputError(unreadable[0][1])
    repeats = find_repeats(fs, shards, config)
    for shard in shards:
        log, _ = read_shard(fs, shard, config, repeats[shard.shard_id])
        yield log


def rows_of(config: ReadConfig, date: str, request_ids: Collection[str]) -> pa.Table:
    """The rows of those requests as records.LOG, in the order of the log; ids that it does not hold give none.

    Raises:
        InputError: as `shards_of`.
    """
    wanted = pa.array(sorted(request_ids), pa.string())
    found = [
        log.filter(pc.is_in(log.column("request_id"), value_set=wanted)) for log in shards_of(config, date)
    ]
    return pa.concat_tables([LOG.empty_table(), *found])
