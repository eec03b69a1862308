"""The samples of one shard's high-risk answers: the log's own, those that an earlier run has drawn, and new ones.

Sampled text cannot be drawn again the same, so it is stored under the content of its answer and reused by whoever asks for
that content. It knows no other table and no verdict.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import consistency, pipeline
from claimscore.jobs.config import Config
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import ShardTask
from claimscore.jobs.records import SAMPLES, SampleSource
from claimscore.jobs.store import Store


def of_answers(
    task: ShardTask,
    log: pa.Table,
    risky: pa.Table,
    config: Config,
    store: Store,
    models: Models,
    *,
    draw: bool,
) -> pa.Table:
    """The samples of the high-risk answers: the log's own, those drawn before, and, where asked, new ones.

    Args:
        task: the shard.
        log: its answers (records.LOG).
        risky: request_id of those that samples are asked for; none: no samples.
        config: the deployment.
        store: where samples are kept.
        models: the generator, where new ones are drawn.
        draw: whether new ones may be drawn, and the log's own be stored.

    Returns:
        records.SAMPLES.
    """
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
