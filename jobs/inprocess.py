"""Shards whose stale tables need no model, made one after another in the process of the run: no Ray is started for them.

A changed threshold, rule or policy makes verdicts and answers alone. On 2 cores Ray takes 13 s to start, in which this
process makes the verdicts and answers of some ten thousand answers. What a shard writes, and how one that fails is told,
is as on Ray; only a process that is killed takes the whole run with it, and the next run goes on from there.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow.fs as pafs
from polars.exceptions import PanicException

from claimscore.jobs.config import Config
from claimscore.jobs.errors import ClaimscoreError, in_short
from claimscore.jobs.nightly import Outcome, placed
from claimscore.jobs.pipeline import Models, Tick
from claimscore.jobs.plan import NEED_MODELS, ShardTask
from claimscore.jobs.shard_run import ShardReport, run_shard
from claimscore.jobs.store import Store

MAX_ROWS = 10_000
"""Of one command: more are made faster by Ray's workers, side by side, than it takes to start them."""


def fits(tasks: Sequence[ShardTask], stale: Mapping[str, Mapping[str, str]], n_rows_before: int) -> bool:
    """Whether the stale tables of all these shards need no model, and are few enough.

    Args:
        tasks: the shards.
        stale: shard id -> stale tables.
        n_rows_before: rows that this command made here already.
    """
    needed = any(NEED_MODELS & stale.get(task.shard.shard_id, {}).keys() for task in tasks)
    return not needed and n_rows_before + sum(task.shard.n_rows for task in tasks) <= MAX_ROWS


def execute(
    config: Config,
    store: Store,
    tasks: Sequence[ShardTask],
    fs: pafs.FileSystem,
    show: Callable[[dict[str, int]], None],
) -> Iterator[Outcome]:
    """Make what is stale of each shard; yields its report, or the line of its error, as it ends.

    A named error ends a shard; any other is a mistake of ours, or the machine's, and is tried `[cluster] retries` times more.

    Args:
        config: the deployment.
        store: where tables go, under the lock of the run.
        tasks: shards of one day; none of their stale tables needs a model.
        fs: the file system of the log.
        show: told the counts so far: shards, claims, answers.
    """
    counts: Counter[str] = Counter()

    def tick(what: str, n: int) -> None:
        counts[what] += n

    for task in tasks:
        outcome = _made(task, config, store, fs, tick)
        counts["shards"] += 1
        show(dict(counts))
        yield task, outcome


def _made(
    task: ShardTask, config: Config, store: Store, fs: pafs.FileSystem, tick: Tick
) -> ShardReport | str:
    for n_left in reversed(range(1 + config.cluster.retries)):
        try:
            return run_shard(task, config, store, Models(), fs, tick)
        except ClaimscoreError as err:
            return placed(task, str(err))
        # What a worker of Ray would end with, and no other shard; a panic of Polars is no Exception.
        except (Exception, PanicException) as err:  # noqa: BLE001
            if not n_left:
                place = traceback.extract_tb(err.__traceback__)[-1]
                where = f'File "{place.filename}", line {place.lineno}, in {place.name}'
                return placed(task, f"{type(err).__name__}: {in_short(err)} ({where}); report this")
    raise AssertionError("[cluster] retries is below 0")
