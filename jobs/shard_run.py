"""One shard from log to answers: what is fresh is read, what is not is made and written, in table order.

The unit of work, retry and resume. It reads the log at most once, asks only for the models that a stale table needs,
and checks on every run that rows in = answers + quarantined. It knows no Ray and no other shard.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from claimscore.jobs import pipeline, shard_samples
from claimscore.jobs.config import Config
from claimscore.jobs.errors import OutputError
from claimscore.jobs.pipeline import Models, Tick
from claimscore.jobs.plan import REFEREE as REFEREE_TABLE
from claimscore.jobs.plan import ShardTask
from claimscore.jobs.privacy import without_texts
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import (
    ANSWERS,
    CLAIMS,
    QUARANTINE,
    REFEREE,
    SCORES,
    VERDICTS,
)
from claimscore.jobs.store import Store

Counts = dict[str, int]


@dataclass(slots=True)
class ShardReport:
    """What was made of one shard, and how long each table took."""

    shard_id: str
    made: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, Counts] = field(default_factory=dict)
    loading_s: float = 0.0
    """How long it waited for models to load; in none of `seconds`."""
    warnings: list[str] = field(default_factory=list)
    failed_roles: list[str] = field(default_factory=list)
    """Models that failed at what no verdict needs."""


def run_shard(
    task: ShardTask,
    config: Config,
    store: Store,
    models: Models,
    fs: pafs.FileSystem,
    tick: Tick = lambda *_: None,
    loading: Callable[[], float] = lambda: 0.0,
) -> ShardReport:
    """Make every stale table of a shard.

    Args:
        task: the shard and what its tables are made from.
        config: the deployment.
        store: where tables go.
        models: those that a stale table needs.
        fs: the file system of the log.
        tick: told what was made, for progress.
        loading: how many seconds its calls have waited for models to load so far.

    Raises:
        InputError: the file cannot be used as a whole.
        ModelError: a model failed, or none was loaded for a table that needs one.
        OutputError: a table cannot be written, or rows do not add up.
    """
    desk = _Desk(task, store, loading, task.stale(store), ShardReport(task.shard.shard_id))
    if not desk.stale:
        return desk.report
    log, quarantine = read_shard(fs, task.shard, config.read, task.repeats)
    _check_accounting(task, log, quarantine)
    steps = _Steps(desk, log, config, models, tick)
    steps.quarantine(quarantine)
    claims = steps.claims()
    scores = steps.scores(claims)
    risky = pipeline.high_risk(log, claims, scores, config)
    samples = steps.samples(risky)
    sample_scores = steps.sample_scores(claims, samples)
    replies = steps.replies(claims, scores, risky)
    verdicts = steps.verdicts(claims, scores, sample_scores, samples, replies)
    steps.answers(verdicts, risky, samples, replies)
    return desk.report


@dataclass(slots=True)
class _Desk:
    """Reads a fresh table, makes and writes a stale one."""

    task: ShardTask
    store: Store
    loading: Callable[[], float]
    stale: Mapping[str, str]
    report: ShardReport
    contents: dict[str, str] = field(default_factory=dict)

    def table(self, name: str, schema: pa.Schema, make: Callable[[], tuple[pa.Table, Counts]]) -> pa.Table:
        file = self.task.file(name)
        if name not in self.stale:
            self.contents[name] = self.store.content(file)
            return self.store.read(file)
        began, waited = time.perf_counter(), self.loading()
        table, counts = make()
        read = {source: self.contents[source] for source in self.task.read_by(name)}
        stored = table if self.task.stores_text else without_texts(table, name)
        self.contents[name] = self.store.write(
            file,
            stored,
            schema,
            parts=self.task.parts[name],
            counts=counts,
            read=read,
            source=self.task.shard.file,
        )
        waited = self.loading() - waited
        self.report.seconds[name] = max(0.0, time.perf_counter() - began - waited)
        self.report.loading_s += waited
        self.report.counts[name] = counts
        self.report.made.append(name)
        return table


@dataclass(frozen=True)
class _Steps:
    """The tables of one shard, each made of those before it, unless the desk has it fresh."""

    desk: _Desk
    log: pa.Table
    config: Config
    models: Models
    tick: Tick

    @functools.cached_property
    def sentences(self) -> pa.Table:
        """Claims and answers both read them, and they are no table: made once, and not at all where both are fresh."""
        return pipeline.make_sentences(self.log, self.config)

    def quarantine(self, rows: pa.Table) -> None:
        n_rows = self.desk.task.shard.n_rows
        counts = _by(rows, "reason", rows=n_rows, answers=self.log.num_rows)
        self.desk.table("quarantine", QUARANTINE, lambda: (rows, counts))

    def claims(self) -> pa.Table:
        def make() -> tuple[pa.Table, Counts]:
            claims, counts = pipeline.make_claims(self.log, self.sentences, self.models, self.config)
            return claims, counts | {"n_claims": claims.num_rows}

        claims = self.desk.table("claims", CLAIMS, make)
        self.tick("claims", claims.num_rows)
        return claims

    def scores(self, claims: pa.Table) -> pa.Table:
        def make() -> tuple[pa.Table, Counts]:
            return _scored(*pipeline.make_scores(self.log, claims, self.models, self.config, self.tick))

        return self.desk.table("scores", SCORES, make)

    def samples(self, risky: pa.Table) -> pa.Table:
        """Those that exist are read whatever is stale; new ones are drawn only where sample scores are to be made."""
        desk, draw = self.desk, "sample_scores" in self.desk.stale
        return shard_samples.of_answers(
            desk.task, self.log, risky, self.config, desk.store, self.models, draw=draw
        )

    def sample_scores(self, claims: pa.Table, samples: pa.Table) -> pa.Table:
        def make() -> tuple[pa.Table, Counts]:
            scores = pipeline.make_sample_scores(claims, samples, self.models, self.config, self.tick)
            return _scored(scores, {})

        return self.desk.table("sample_scores", SCORES, make)

    def replies(self, claims: pa.Table, scores: pa.Table, risky: pa.Table) -> pa.Table | None:
        """What the referee said; None where there is none."""
        task = self.desk.task
        if REFEREE_TABLE not in task.tables:
            return None

        def make() -> tuple[pa.Table, Counts]:
            stored = _stored_replies(task, self.desk.store)
            beside = stored, task.referee, self.models, self.config
            replies, counts = pipeline.make_replies(self.log, claims, scores, risky, *beside)
            if not self.config.referee.grade_answers:
                return replies, counts
            grades, n = pipeline.make_grades(
                self.log, self.sentences, replies, *beside, self.desk.report.warnings.append
            )
            return pa.concat_tables([replies, grades]), counts | n

        return self.desk.table(REFEREE_TABLE, REFEREE, make)

    def verdicts(
        self,
        claims: pa.Table,
        scores: pa.Table,
        sample_scores: pa.Table,
        samples: pa.Table,
        replies: pa.Table | None,
    ) -> pa.Table:
        def make() -> tuple[pa.Table, Counts]:
            made = pipeline.make_verdicts(
                self.log, claims, scores, sample_scores, samples, self.config, replies
            )
            return made, _by(made, "verdict")

        verdicts = self.desk.table("verdicts", VERDICTS, make)
        if verdicts.num_rows != claims.num_rows:
            raise OutputError(
                f"shard {self.desk.task.shard.shard_id}: {verdicts.num_rows} verdicts of {claims.num_rows} claims, "
                "expected one each; report this"
            )
        return verdicts

    def answers(
        self, verdicts: pa.Table, risky: pa.Table, samples: pa.Table, replies: pa.Table | None
    ) -> None:
        def make() -> tuple[pa.Table, Counts]:
            read = self.log, self.sentences, verdicts, risky, samples
            made = pipeline.make_answers(*read, self.config, replies)
            return made, _by(made, "state") | _by(made, "action")

        self.desk.table("answers", ANSWERS, make)
        self.tick("answers", self.log.num_rows)


def _check_accounting(task: ShardTask, log: pa.Table, quarantine: pa.Table) -> None:
    if log.num_rows + quarantine.num_rows != task.shard.n_rows:
        raise OutputError(
            f"{task.shard.file}: shard {task.shard.shard_id}: {log.num_rows} answers + {quarantine.num_rows} quarantined, "
            f"expected {task.shard.n_rows} rows in all; nothing was written, report this"
        )


def _scored(scores: pa.Table, beside: Counts) -> tuple[pa.Table, Counts]:
    errors = Counter(error for error in scores.column("error").to_pylist() if error)
    n_tokens = pc.sum(scores.column("n_tokens")).as_py() or 0
    n_pairs = scores.num_rows - sum(count for error, count in errors.items() if error != "nan")
    counts = {"n_pairs": n_pairs, "n_tokens": n_tokens} | beside
    return scores, counts | {f"error_{error}": n for error, n in sorted(errors.items())}


def _stored_replies(task: ShardTask, store: Store) -> pa.Table:
    """What the referee replied when this shard's table was made last; an LLM is not asked the same twice."""
    file = task.file(REFEREE_TABLE)
    if not task.stores_text or store.manifest(file) is None:
        return REFEREE.empty_table()
    try:
        return store.read(file)
    except OutputError:  # lost or damaged: that is why it is made again
        return REFEREE.empty_table()


def _by(table: pa.Table, column: str, **more: int) -> Counts:
    """Rows by the values of one column, as `<column>_<value>`."""
    counted: Counter[Any] = Counter(table.column(column).to_pylist())
    return {f"{column}_{value}": n for value, n in sorted(counted.items())} | more
