"""One day of the log from files to metrics: the driver of a run, whoever executes the shards.

Plans the shards, has those executed that have something stale, takes away what the log no longer holds, measures the
day, and accounts for every row. Executing is handed in: Ray actors on a cluster, plain calls in a test. The module
knows no Ray and prints nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.fs as pafs

from claimscore.jobs import metrics
from claimscore.jobs.config import Config
from claimscore.jobs.errors import ClaimscoreError, InputError, OutputError
from claimscore.jobs.layout import TableFile
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import ShardTask, Weights, metrics_parts, series_of, shard_tasks
from claimscore.jobs.read import list_files, survey
from claimscore.jobs.records import METRICS
from claimscore.jobs.shard_run import ShardReport, run_shard
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.store import Store

Outcome = tuple[ShardTask, ShardReport | str]
"""A shard and its report, or the one-line error that it ended with."""
Execute = Callable[[Sequence[ShardTask], pafs.FileSystem], Iterator[Outcome]]


_READ_AS = {"chunk.id": "chunks are called by their place (c0, c1, ..)"}
"""What comes of a mapped column that is not there; null for all others."""


def _named(name: str) -> str:
    return f"{'field' if '.' in name else 'column'} {name!r}"


@dataclass(frozen=True, slots=True)
class DayPlan:
    """What one day holds, and what of it is stale."""

    date: str
    series: str
    fs: pafs.FileSystem
    tasks: list[ShardTask]
    stale: dict[str, dict[str, str]]
    """shard id -> table -> why; shards with nothing stale are not in it."""
    unreadable: list[tuple[str, str]]
    """(file, one-line error) of log files without a readable footer."""
    faults: list[str] = field(default_factory=list)
    """One line a file that lacks a needed column, or has one of a type that cannot hold it: its shards will fail."""
    absent_columns: dict[str, int] = field(default_factory=dict)
    """Column that the deployment maps -> rows of files that lack it."""

    @property
    def n_rows(self) -> int:
        """Rows of the readable files, by their footers."""
        return sum(task.shard.n_rows for task in self.tasks)

    @property
    def warnings(self) -> list[str]:
        """A line a mapped column that is not there: nothing fails without it, and nobody would see that it is null."""
        return [
            f"{self.date}: {_named(name)}, which [read.columns] maps, is in no {'chunk' if '.' in name else 'column'} of {n:,} of "
            f"{self.n_rows:,} rows: {_READ_AS.get(name, 'read as null')}; mend the mapping or take it out"
            for name, n in self.absent_columns.items()
        ]

    @property
    def no_rows(self) -> str:
        """The line of a day without a row: an export that broke looks like that, and would pass for a quiet night."""
        return f"{self.date}: the log has no rows, expected one at least; check what writes it"


@dataclass(slots=True)
class DayReport:
    """What a run did with one day, and what the day now adds up to."""

    date: str
    series: str = ""
    n_shards: int = 0
    n_made: int = 0
    n_rows: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """table -> its counts, summed over the shards, those of earlier runs included."""
    absent_columns: dict[str, int] = field(default_factory=dict)
    """Column that the deployment maps -> rows of files that lack it."""
    made: dict[str, int] = field(default_factory=dict)
    """table -> files made by this run."""
    seconds: dict[str, float] = field(default_factory=dict)
    """table -> seconds of work in this run, summed over the shards."""
    loading_s: float = 0.0
    """How long the shard that waited longest for its models did; in none of `seconds`."""
    n_made_of: dict[str, int] = field(default_factory=dict)
    """What this run made, in units of cost: answers, claims, pairs and tokens."""
    failures: list[str] = field(default_factory=list)
    """One line an unreadable file or failed shard."""
    warnings: list[str] = field(default_factory=list)

    @property
    def n_claims(self) -> int:
        """Claims of the day."""
        return self.counts.get("claims", {}).get("n_claims", 0)

    @property
    def unscored_fraction(self) -> float:
        """Share of the day's claims that nothing judged; 0 without claims."""
        return (
            self.counts.get("verdicts", {}).get("verdict_unscored", 0) / self.n_claims
            if self.n_claims
            else 0.0
        )


def plan_day(config: Config, store: Store, weights: Weights, date: str) -> DayPlan:
    """Cut a day's log into shards and find what is stale.

    Raises:
        InputError: no file for that day, or none with a readable footer and the columns that are needed.
    """
    fs, files = list_files(config.read.logs, date)
    shards, unreadable = plan_shards(fs, files, config.read.shard_rows)
    if not shards and unreadable:
        raise InputError(unreadable[0][1])
    found = survey(fs, shards, config.read)
    if shards and all(shard.file in found.faults for shard in shards):
        raise InputError(next(iter(found.faults.values())))
    tasks = list(shard_tasks(config, weights, date, shards, found.repeats))
    stale = {task.shard.shard_id: why for task in tasks if (why := task.stale(store))}
    faults = list(found.faults.values())
    return DayPlan(date, series_of(config, weights), fs, tasks, stale, unreadable, faults, found.absent)


def run_day(config: Config, store: Store, plan: DayPlan, execute: Execute) -> DayReport:
    """Make what is stale of a day, then its metrics.

    A failed shard or unreadable file is in the report's failures; the others are finished all the same, and the
    metrics cover what there is. What the log no longer holds is removed; where something failed only what came from a
    file that was read whole, and is another by now.

    Raises:
        InputError: nothing of the day could be done.
        OutputError: the tables do not account for every row of the log.
    """
    report = DayReport(plan.date, series=plan.series, n_shards=len(plan.tasks), n_rows=plan.n_rows)
    report.absent_columns, report.warnings = plan.absent_columns, plan.warnings
    report.failures += [error for _, error in plan.unreadable]
    todo = [task for task in plan.tasks if task.shard.shard_id in plan.stale]
    failed = set()
    for task, outcome in execute(todo, plan.fs):
        if isinstance(outcome, str):
            report.failures.append(outcome)
            failed.add(task.shard.shard_id)
        else:
            _add(report, outcome)
            report.warnings += [
                f"{plan.date}: shard {task.shard.shard_id}: {line}" for line in outcome.warnings
            ]
    done = [task for task in plan.tasks if task.shard.shard_id not in failed]
    if report.failures and not done:
        raise InputError(report.failures[0])
    report.warnings += _remove_orphans(store, plan, done, only_replaced=bool(report.failures))
    if not plan.n_rows:
        report.failures.append(plan.no_rows)
    if done:
        _count_all(report, store, done)
        _check_accounting(report, done)
        _measure(config, store, report, done)
    return report


def placed(task: ShardTask, line: str) -> str:
    """The line of what failed, with the file and row groups of the shard in front where it does not name the file."""
    groups = task.shard.row_groups
    return (
        line if task.shard.file in line else f"{task.shard.file}: row groups {groups[0]}-{groups[-1]}: {line}"
    )


def execute_here(config: Config, store: Store, models: Models) -> Execute:
    """Run shards one after another in this process, on plain model objects: for tests, benchmarks and debuggers."""

    def execute(tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        for task in tasks:
            try:
                yield task, run_shard(task, config, store, models, fs)
            except ClaimscoreError as err:
                yield task, str(err)

    return execute


def _add(report: DayReport, shard: ShardReport) -> None:
    report.n_made += bool(shard.made)
    for table in shard.made:
        report.made[table] = report.made.get(table, 0) + 1
        report.seconds[table] = report.seconds.get(table, 0.0) + shard.seconds[table]
    report.loading_s = max(report.loading_s, shard.loading_s)
    units = [("claims", "n_claims"), ("quarantine", "answers")]
    units += [("scores", f"n_{unit}") for unit in ("pairs", "tokens", "variant_pairs", "variant_tokens")]
    units += [("referee", f"n_{unit}") for unit in ("prompts", "reused")]
    for table, unit in units:
        n = shard.counts.get(table, {}).get(unit, 0)
        report.n_made_of[unit] = report.n_made_of.get(unit, 0) + n


def _remove_orphans(store: Store, plan: DayPlan, tasks: list[ShardTask], *, only_replaced: bool) -> list[str]:
    """Drop the day's files of shards that the log no longer holds; a corrected log must not be counted twice.

    `only_replaced`: of those only what came from a file whose shards are all done. What came from a file that cannot be read
    now, or was renamed since, stays: nobody can tell whether the log still holds it.
    """
    kept = {task.shard.shard_id for task in plan.tasks}
    replaced = _replaced(store, plan, tasks) - kept if only_replaced else None
    kept |= {f"{shard_id}-samples" for shard_id in kept} | ({"metrics"} if tasks else set())
    gone: set[str] = set()
    for table, series in (*_tables_of(plan), ("metrics", plan.series)):
        gone.update(store.remove_orphans(table, plan.date, series, kept, of=replaced))
    shard_ids = sorted({shard_id.removesuffix("-samples") for shard_id in gone} - {"metrics"})
    return [f"removed shard {shard_id}: the log of {plan.date} no longer holds it" for shard_id in shard_ids]


def _replaced(store: Store, plan: DayPlan, done: list[ShardTask]) -> set[str]:
    """The shards, samples' parts too, that were made of a file all of whose present shards are done."""
    n_done = Counter(task.shard.file for task in done)
    whole = {file for file, n in Counter(task.shard.file for task in plan.tasks).items() if n == n_done[file]}
    found: set[str] = set()
    # Of every table: another series, or a run that was killed here, may have removed the day's quarantine already.
    for table, series in _tables_of(plan):
        for file in store.files(table, date=plan.date, series=series):
            if (store.manifest(file) or {}).get("source") in whole:
                found.add(file.shard_id.removesuffix("-samples"))
    return found | {f"{shard_id}-samples" for shard_id in found}


def _tables_of(plan: DayPlan) -> list[tuple[str, str | None]]:
    """The tables that shards are made into, with the series that each belongs to: the first two belong to all."""
    shared: list[tuple[str, str | None]] = [("quarantine", None), ("claims", None)]
    return shared + [(table, plan.series) for table in ("scores", "referee", "verdicts", "answers")]


def _count_all(report: DayReport, store: Store, tasks: list[ShardTask]) -> None:
    for table in tasks[0].tables:
        total: Counter[str] = Counter()
        for task in tasks:
            manifest = store.manifest(task.file(table))
            if manifest is None:
                raise OutputError(
                    f"{store.path(task.file(table))}: its manifest is gone, expected one; run {report.date} again"
                )
            total.update(manifest["counts"])
        report.counts[table] = dict(total)


def _check_accounting(report: DayReport, tasks: list[ShardTask]) -> None:
    n_rows = sum(task.shard.n_rows for task in tasks)
    counts = report.counts["quarantine"]
    n_states = sum(n for name, n in report.counts["answers"].items() if name.startswith("state_"))
    n_quarantined = sum(n for name, n in counts.items() if name.startswith("reason_"))
    if counts.get("rows", 0) != n_rows or n_states + n_quarantined != n_rows:
        raise OutputError(
            f"{report.date}: {n_rows} rows in, {n_states} answers + {n_quarantined} quarantined out, "
            "expected every row once; report this"
        )


def _metrics_file(date: str, series: str) -> TableFile:
    return TableFile("metrics", date, "metrics", series)


def why_measured_anew(config: Config, store: Store, plan: DayPlan) -> str:
    """Why the metrics of a day must be made, in words; "" where they are fresh, or no shard is left to measure."""
    if plan.stale:
        return "answers made again"
    if not plan.tasks:
        return ""
    return store.why_stale(_metrics_file(plan.date, plan.series), metrics_parts(config, store, plan.tasks))


def _measure(config: Config, store: Store, report: DayReport, tasks: list[ShardTask]) -> None:
    file, parts = _metrics_file(report.date, tasks[0].series), metrics_parts(config, store, tasks)
    if store.is_fresh(file, parts):
        return
    answers = pa.concat_tables(
        [store.read(task.file("answers"), list(metrics.NEEDED_COLUMNS)) for task in tasks]
    )
    measured = metrics.measure(answers, config.metrics)
    store.write(file, measured, METRICS, parts=parts, counts={"n_answers": answers.num_rows})
    report.made["metrics"] = 1
