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

from claimscore.jobs import consistency, pipeline
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
    SAMPLES,
    SCORES,
    VERDICTS,
    SampleSource,
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
    desk.table(
        "quarantine",
        QUARANTINE,
        lambda: (quarantine, _by(quarantine, "reason", rows=task.shard.n_rows, answers=log.num_rows)),
    )
    # Claims and answers both read the sentences, which are no table: made once, and not at all where both are fresh.
    sentences = functools.cache(lambda: pipeline.make_sentences(log, config))
    claims = desk.table("claims", CLAIMS, lambda: _claims(log, sentences(), models, config))
    tick("claims", claims.num_rows)
    scores = desk.table(
        "scores", SCORES, lambda: _scored(*pipeline.make_scores(log, claims, models, config, tick))
    )
    risky = pipeline.high_risk(log, claims, scores, config)
    # Samples that exist are read whatever is stale; new ones are drawn only where sample scores are to be made.
    samples = _samples(task, log, risky, config, store, models, draw="sample_scores" in desk.stale)
    sample_scores = desk.table(
        "sample_scores",
        SCORES,
        lambda: _scored(pipeline.make_sample_scores(claims, samples, models, config, tick), {}),
    )
    replies = None
    if REFEREE_TABLE in task.tables:
        replies = desk.table(
            REFEREE_TABLE,
            REFEREE,
            lambda: pipeline.make_replies(
                log, claims, scores, risky, _stored_replies(task, store), task.referee, models, config
            ),
        )
    verdicts = desk.table(
        "verdicts",
        VERDICTS,
        lambda: _counted(
            pipeline.make_verdicts(
                log,
                claims=claims,
                scores=scores,
                sample_scores=sample_scores,
                samples=samples,
                replies=replies,
                config=config,
            ),
            "verdict",
        ),
    )
    if verdicts.num_rows != claims.num_rows:
        raise OutputError(
            f"shard {task.shard.shard_id}: {verdicts.num_rows} verdicts of {claims.num_rows} claims, expected one each; report this"
        )
    desk.table("answers", ANSWERS, lambda: _answers(log, sentences(), verdicts, risky, samples, config))
    tick("answers", log.num_rows)
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


def _check_accounting(task: ShardTask, log: pa.Table, quarantine: pa.Table) -> None:
    if log.num_rows + quarantine.num_rows != task.shard.n_rows:
        raise OutputError(
            f"{task.shard.file}: shard {task.shard.shard_id}: {log.num_rows} answers + {quarantine.num_rows} quarantined, "
            f"expected {task.shard.n_rows} rows in all; nothing was written, report this"
        )


def _claims(log: pa.Table, sentences: pa.Table, models: Models, config: Config) -> tuple[pa.Table, Counts]:
    claims, counts = pipeline.make_claims(log, sentences, models, config)
    return claims, counts | {"n_claims": claims.num_rows}


def _scored(scores: pa.Table, beside: Counts) -> tuple[pa.Table, Counts]:
    errors = Counter(error for error in scores.column("error").to_pylist() if error)
    n_tokens = pc.sum(scores.column("n_tokens")).as_py() or 0
    n_pairs = scores.num_rows - sum(count for error, count in errors.items() if error != "nan")
    counts = {"n_pairs": n_pairs, "n_tokens": n_tokens} | beside
    return scores, counts | {f"error_{error}": n for error, n in sorted(errors.items())}


def _samples(
    task: ShardTask,
    log: pa.Table,
    risky: pa.Table,
    config: Config,
    store: Store,
    models: Models,
    *,
    draw: bool,
) -> pa.Table:
    """The samples of the high-risk answers: the log's own, those drawn before, and, where asked, new ones."""
    chosen = log.filter(
        pc.is_in(log.column("request_id"), value_set=risky.column("request_id").combine_chunks())
    )
    if not chosen.num_rows:
        return SAMPLES.empty_table()
    keys = consistency.content_keys(chosen)
    own = consistency.log_samples(chosen, keys, config.segment.refusal_markers)
    lacks_own = pc.invert(
        pc.is_in(chosen.column("request_id"), value_set=pc.unique(own.column("request_id")))
    )
    others, other_keys = chosen.filter(lacks_own), keys.filter(lacks_own.combine_chunks())
    stored = store.read_samples(task.date, task.generator)
    # The log's samples serve their own answer alone: whether another file holds them must change nothing here.
    generated = stored.filter(pc.equal(stored.column("source"), SampleSource.GENERATED.value))
    if draw:
        drawn = _drawn(others, other_keys, generated, models, config)
        unstored = own.filter(
            pc.invert(pc.is_in(own.column("request_id"), value_set=pc.unique(stored.column("request_id"))))
        )
        new = pa.concat_tables([unstored, drawn])
        if new.num_rows and task.stores_text:
            store.add_samples(new, date=task.date, shard_id=task.shard.shard_id, generator=task.generator)
        generated = pa.concat_tables([generated, drawn])
    return pa.concat_tables([own, _reused(generated, others, other_keys)])


def _stored_replies(task: ShardTask, store: Store) -> pa.Table:
    """What the referee replied when this shard's table was made last; an LLM is not asked the same twice."""
    file = task.file(REFEREE_TABLE)
    if not task.stores_text or store.manifest(file) is None:
        return REFEREE.empty_table()
    try:
        return store.read(file)
    except OutputError:  # lost or damaged: that is why it is made again
        return REFEREE.empty_table()


def _drawn(
    answers: pa.Table, keys: pa.Array, generated: pa.Table, models: Models, config: Config
) -> pa.Table:
    """New samples for the answers whose content none were drawn for yet; equal content is drawn for once."""
    lacking = pc.invert(pc.is_in(keys, value_set=pc.unique(generated.column("content_key")))).to_pylist()
    first = {key: row for row, key in reversed(list(enumerate(keys.to_pylist())))}
    rows = pa.array([row for row in sorted(first.values()) if lacking[row]], pa.int64())
    if not (len(rows) and config.samples.enabled and config.samples.model):
        return SAMPLES.empty_table()
    return pipeline.draw_samples(answers.take(rows), keys.take(rows), models, config)


def _reused(stored: pa.Table, answers: pa.Table, keys: pa.Array) -> pa.Table:
    """Stored samples of equal content, under the request ids of `answers`; SAMPLES."""
    # Two requests of equal content may both have drawn: one set is taken, the same one whoever asks.
    by_key: dict[str, dict[int, int]] = {}
    order = stored.column("request_id").to_pylist()
    keyed = list(
        zip(stored.column("content_key").to_pylist(), stored.column("sample_index").to_pylist(), strict=True)
    )
    for row in sorted(range(stored.num_rows), key=order.__getitem__):
        key, index = keyed[row]
        by_key.setdefault(key, {}).setdefault(index, row)
    pairs = [
        (row, request_id)
        for request_id, key in zip(answers.column("request_id").to_pylist(), keys.to_pylist(), strict=True)
        for _, row in sorted(by_key.get(key, {}).items())
    ]
    taken = stored.take(pa.array([row for row, _ in pairs], pa.int64()))
    request_ids = pa.array([request_id for _, request_id in pairs], pa.string())
    return taken.set_column(0, SAMPLES.field("request_id"), request_ids)


def _counted(table: pa.Table, column: str) -> tuple[pa.Table, Counts]:
    return table, _by(table, column)


def _answers(
    log: pa.Table,
    sentences: pa.Table,
    verdicts: pa.Table,
    risky: pa.Table,
    samples: pa.Table,
    config: Config,
) -> tuple[pa.Table, Counts]:
    answers = pipeline.make_answers(log, sentences, verdicts, risky, samples, config)
    return answers, _by(answers, "state") | _by(answers, "action")


def _by(table: pa.Table, column: str, **more: int) -> Counts:
    """Rows by the values of one column, as `<column>_<value>`."""
    counted: Counter[Any] = Counter(table.column(column).to_pylist())
    return {f"{column}_{value}": n for value, n in sorted(counted.items())} | more
