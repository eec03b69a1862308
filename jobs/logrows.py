"""The usable rows of a day's log, read again: for commands that need the questions and chunks behind finished tables.

The rules are the run's own: rows that a run would quarantine are not here either. One shard is in memory at a time. A golden
set has one column that no run reads, `conflicting` (its evidence contradicts itself); it is laid beside the rows here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.read import find_repeats, list_files, read_shard
from claimscore.jobs.records import LOG, Shard
from claimscore.jobs.shards import plan_shards

CONFLICTING = pa.field("conflicting", pa.bool_())
ROWS = LOG.append(CONFLICTING)
"""records.LOG and `conflicting`, null where the log has no such column of booleans."""


def shards_of(config: ReadConfig, date: str) -> Iterator[pa.Table]:
    """ROWS of each shard of a day, in order.

    Raises:
        InputError: no log of that day, or a file of it that cannot be read.
    """
    fs, files = list_files(config.logs, date)
    shards, unreadable = plan_shards(fs, files, config.shard_rows)
    if unreadable:
        raise InputError(unreadable[0][1])
    repeats = find_repeats(fs, shards, config)
    for shard in shards:
        log, quarantine = read_shard(fs, shard, config, repeats[shard.shard_id])
        flags = conflicting(fs, shard, quarantine.column("row"), log.num_rows, any_type=True)
        yield log.append_column(CONFLICTING, flags)


def rows_of(config: ReadConfig, date: str, request_ids: Collection[str]) -> pa.Table:
    """The rows of those requests as ROWS, in the order of the log; ids that it does not hold give none.

    Raises:
        InputError: as `shards_of`.
    """
    wanted = pa.array(sorted(request_ids), pa.string())
    found = [
        log.filter(pc.is_in(log.column("request_id"), value_set=wanted)) for log in shards_of(config, date)
    ]
    return pa.concat_tables([ROWS.empty_table(), *found])


def conflicting(
    fs: pafs.FileSystem, shard: Shard, quarantined: pa.ChunkedArray, n_rows: int, *, any_type: bool = False
) -> pa.Array:
    """The column `conflicting` beside the usable rows of a shard, bool; null where the file has none.

    Args:
        fs: of the log.
        shard: of `plan_shards`.
        quarantined: rows of the file that are not among the usable ones.
        n_rows: how many are.
        any_type: a column that is not of booleans is somebody's own and passes for none.

    Raises:
        InputError: the column cannot be read, is not of booleans, or has another number of rows.
    """
    try:
        with fs.open_input_file(shard.file) as source:
            file = pq.ParquetFile(source)
            place = file.schema_arrow.get_field_index(CONFLICTING.name)
            if place < 0 or (any_type and not pa.types.is_boolean(file.schema_arrow.field(place).type)):
                return pa.nulls(n_rows, pa.bool_())
            groups = file.read_row_groups(list(shard.row_groups), columns=[CONFLICTING.name])
            column = groups.column(CONFLICTING.name).cast(pa.bool_()).combine_chunks()
    except (OSError, pa.ArrowException) as err:
        raise InputError(
            f"{shard.file}: column 'conflicting': {err}, expected booleans; mend the golden set"
        ) from err
    rows = np.setdiff1d(np.arange(shard.n_rows), np.asarray(quarantined) - shard.first_row)
    if len(column) != shard.n_rows or len(rows) != n_rows:
        raise InputError(
            f"{shard.file}: {len(column)} rows of 'conflicting' and {n_rows} usable ones, expected one each; the file "
            "changed during the run: run again"
        )
    return column.take(pa.array(rows))
