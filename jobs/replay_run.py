"""`claimscore replay`: a night's questions answered again under a new prompt or model, and both sides scored.

Logged and new answers are written as one log apart and go through the ordinary run, so that one judge scores both; the
gate compares them question by question. Answers that were drawn are kept: the same call again asks no model. The new
answers come from the generator of the deployment at temperature 0.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs import apart, gate_files, logrows, replay, replay_sides
from claimscore.jobs.checkpoint import model_fingerprint
from claimscore.jobs.config import Config, fingerprint
from claimscore.jobs.errors import ConfigError, InputError, reason_of
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.store import Store
from claimscore.jobs.uri import shown

REPLAY = "claimscore replay"
_NOTE = b"claimscore.replay"
_NEW, _LOGGED = "log/replayed.parquet", "log/logged.parquet"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of `replay`."""

    date: str | None
    """The day of the log; None: the newest that was run."""
    log: str | None
    """A log in place of the night's, as a golden set; None: `[read] logs` of the day."""
    prompt: str | None
    """The prompt file; None: the system prompt of `[samples]`."""
    model: str | None
    """None: the model of `[samples]`."""
    n: int
    seed: int
    metrics: tuple[str, ...]
    max_drop: str
    out: str | None
    """None: a folder of its own below `replay` in `[store] out`."""


def run(config: Config, asked: Asked, *, quiet: bool) -> dict[str, Any]:
    """Choose questions, have them answered, score both sides, and judge.

    Returns:
        kind, source, prompt_version, model, series, out; n_rows, left_out (reason -> count), n_asked, n_answered, failed
        (reason -> count); logged and replayed (metric -> value, low, high, n, per); gate (as `gate.judge`, with max_drop;
        None: it could not judge); warnings; failures (a line each; none: passed).

    Raises:
        ClaimscoreError: no such log, prompt or model; nothing can be asked; no answer came back; the run fails as a whole.
    """
    allowed = gate_files.parse_drop(asked.max_drop)
    config, date, source = _source(_with_model(config, asked.model), asked.date, asked.log)
    prompt = _prompt(config, asked.prompt)
    rows = _askable(config, date, source)
    ids = replay.choose(rows.filter(pl.col("why_not").is_null()), asked.n, asked.seed)
    if not ids:
        raise InputError(f"{source}: no answer with a question and chunks, expected some to replay")
    out, failed = _replayed(config, asked, date, ids, prompt)
    scored = apart.config_of(config, apart.below(out, "log", "*.parquet"), out, own_names=True)
    scored = dataclasses.replace(scored, samples=dataclasses.replace(config.samples, enabled=False, model=""))
    report = apart.run(scored, quiet=quiet)
    sides = replay_sides.Sides.of(apart.answers(scored, report["series"]), ids, prompt.version)
    n_answered = len(ids) - sum(failed.values())
    return {
        "kind": REPLAY,
        "source": source,
        "prompt_version": prompt.version,
        "model": _model_name(config),
        "series": report["series"],
        "out": report["out"],
        "n_rows": len(rows),
        "left_out": replay.counted(rows["why_not"]),
        "n_asked": len(ids),
        "n_answered": n_answered,
        "failed": failed,
        **replay_sides.compare(
            sides,
            n_asked=len(ids),
            n_answered=n_answered,
            failures=report["failures"],
            names=asked.metrics,
            max_drop=allowed,
            config=config.metrics,
        ),
    }


def _replayed(
    config: Config, asked: Asked, date: str, ids: list[str], prompt: replay.Prompt
) -> tuple[str, dict[str, int]]:
    """The output root that holds both sides' logs, and the questions without an answer by reason; asks what it must."""
    weights = model_fingerprint(config.samples.model)
    made_from = fingerprint([prompt.version, weights, ids, fingerprint(config.samples)])
    name = apart.folder_name(f"{apart.name_of(asked.log) if asked.log else date}-{prompt.version}")
    out = asked.out or apart.below(config.store.out, "replay", f"{name}-{made_from[:8]}")
    root = OutputRoot(out)
    failed = _kept(root, made_from)
    if failed is None:
        failed = _answer(config, date, ids, prompt, root, made_from)
    return out, failed


def _with_model(config: Config, model: str | None) -> Config:
    """The deployment with the model that answers."""
    if not config.privacy.store_text:
        raise ConfigError(
            "[privacy] store_text = false: a replay keeps questions, chunks and answers to score them; allow it with "
            "--set privacy.store_text=true and an --out of its own"
        )
    model = model or config.samples.model
    if not model:
        raise ConfigError(
            f"{config.path}: [samples] model is empty, expected the model that answers; or give --model"
        )
    local = Path(model).expanduser()
    model = os.path.abspath(local) if local.exists() else model  # noqa: PTH100  resolve() would follow links
    return dataclasses.replace(config, samples=dataclasses.replace(config.samples, model=model))


def _model_name(config: Config) -> str:
    model = config.samples.model
    return Path(model).name if Path(model).is_dir() else model


def _prompt(config: Config, path: str | None) -> replay.Prompt:
    if path is None:
        return replay.prompt_of("samples", "", config.samples.system_prompt)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as err:
        raise InputError(f"{path}: cannot be read: {reason_of(err)}; expected a prompt in UTF-8") from err
    if not text.strip():
        raise InputError(f"{path}: is empty, expected a prompt; leave --prompt out for that of [samples]")
    return replay.prompt_of(apart.folder_name(Path(path).stem), text, config.samples.system_prompt)


def _source(config: Config, date: str | None, log: str | None) -> tuple[Config, str, str]:
    """The deployment with the log that is replayed, the day that it is filed under, and its words."""
    if log:
        return apart.config_of(config, apart.place(log), config.store.out), apart.DAY, shown(log)
    if date is None:
        store = Store(config.store.out, config.store)
        series = store.current()
        days = [file.date for file in store.files("answers", series=series)] if series else []
        if not days:
            raise InputError(
                f"{config.store.out}: no finished run, expected one; give --date, or run a day first"
            )
        date = max(days)
    return config, date, f"the log of {date}"


def _askable(config: Config, date: str, source: str) -> pl.DataFrame:
    """The rows of the day that may be chosen from, without their texts."""
    frames = [replay.askable(log) for log in logrows.shards_of(config.read, date)]
    if not frames:
        raise InputError(f"{source}: has no rows, expected some to replay")
    return pl.concat(frames)


def _kept(root: OutputRoot, made_from: str) -> dict[str, int] | None:
    """How many questions got no answer when these were asked before; None: they were not."""
    data = root.get(_NEW) if root.size(_LOGGED) is not None else None
    if data is None:
        return None
    try:
        note = json.loads(pq.read_schema(pa.BufferReader(data)).metadata[_NOTE])
        return dict(note["failed"]) if note["made_from"] == made_from else None
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        return None


def _answer(
    config: Config, date: str, ids: list[str], prompt: replay.Prompt, root: OutputRoot, made_from: str
) -> dict[str, int]:
    """Have the questions answered and write both sides as logs, the new one last; reason -> questions without an answer."""
    from claimscore.jobs import cluster  # noqa: PLC0415 - ray, and only once there is something to ask

    log = logrows.rows_of(config.read, date, ids)
    turns = replay.user_turns(log, prompt, config.citations.first_number)
    settings = config.samples
    with cluster.generator(config) as llm:
        replies = llm.complete(
            prompt.system,
            turns,
            schema=None,
            max_tokens=settings.max_output_tokens,
            temperature=0.0,
            n=1,
            seed=0,
            deadline_s=settings.deadline_s,
        )
    new, failed = replay.new_answers(log, replies, prompt_version=prompt.version, model=_model_name(config))
    if not new.num_rows:
        reasons = ", ".join(f"{n} {reason}" for reason, n in failed.items())
        raise InputError(
            f"replay: no answer to {log.num_rows} questions ({reasons}), expected some; see [samples] limits"
        )
    note = json.dumps({"made_from": made_from, "failed": failed}).encode()
    root.put(_LOGGED, _parquet(replay.logged_answers(log), {}))
    root.put(_NEW, _parquet(new, {_NOTE: note}))
    return failed


def _parquet(table: pa.Table, metadata: dict[bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd", row_group_size=500)
    return buffer.getvalue()
