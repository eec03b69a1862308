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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from claimscore.jobs import apart, gate, gate_files, logrows, metrics, replay
from claimscore.jobs.checkpoint import model_fingerprint
from claimscore.jobs.config import Config, fingerprint
from claimscore.jobs.errors import ConfigError, InputError
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.store import Store
from claimscore.jobs.uri import shown

REPLAY = "claimscore replay"
MAX_FAILED = 0.1
"""Of the questions asked, the share without an answer above which the rest says too little."""
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
        raise InputError(
            f"{asked.log or asked.date}: no answer with a question and chunks, expected some to replay"
        )
    made_from = fingerprint(
        [prompt.version, model_fingerprint(config.samples.model), ids, fingerprint(config.samples)]
    )
    name = apart.folder_name(f"{Path(asked.log).stem if asked.log else date}-{prompt.version}")
    out = asked.out or apart.below(config.store.out, "replay", f"{name}-{made_from[:8]}")
    root = OutputRoot(out)
    failed = _kept(root, made_from)
    if failed is None:
        failed = _answer(config, date, ids, prompt, root, made_from)
    sides = apart.config_of(config, apart.below(out, "log", "*.parquet"), out, own_names=True)
    sides = dataclasses.replace(sides, samples=dataclasses.replace(config.samples, enabled=False, model=""))
    report = apart.run(sides, quiet=quiet)
    counts = {reason: n for reason, n in _counted(rows["why_not"]).items() if reason}
    told = {
        "kind": REPLAY,
        "source": source,
        "prompt_version": prompt.version,
        "model": _model_name(config),
        "series": report["series"],
        "out": report["out"],
        "n_rows": len(rows),
        "left_out": counts,
        "n_asked": len(ids),
        "n_answered": len(ids) - sum(failed.values()),
        "failed": failed,
    }
    return told | _judged(
        config, apart.answers(sides, report["series"]), ids, told, report, asked.metrics, allowed
    )


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
        raise InputError(f"{path}: cannot be read: {err}; expected a prompt in UTF-8") from err
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
                f"{shown(config.store.out)}: no finished run, expected one; give --date, or run a day first"
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


def _judged(
    config: Config,
    answers: pa.Table,
    ids: list[str],
    told: dict[str, Any],
    report: dict[str, Any],
    names: tuple[str, ...],
    allowed: float,
) -> dict[str, Any]:
    """Both sides' rates, the gate over the questions that have both answers, and what failed."""
    is_logged = pc.is_in(answers.column("request_id"), value_set=pa.array(ids, pa.string()))
    replayed = answers.filter(pc.invert(is_logged))
    mark = "~" + told["prompt_version"].rpartition("-")[2]
    both = pa.array([i.removesuffix(mark) for i in replayed.column("request_id").to_pylist()], pa.string())
    logged = answers.filter(is_logged)
    logged = logged.filter(pc.is_in(logged.column("request_id"), value_set=both))
    failures = list(report["failures"])
    share = 1 - told["n_answered"] / told["n_asked"]
    if share > MAX_FAILED:
        failures.append(
            f"{share:.1%} of the questions got no answer, expected at most {MAX_FAILED:.0%}: the rest says too little"
        )
    judged = None
    try:
        judged = gate.judge(logged, replayed, names, allowed)
        judged |= {"outcomes": [dataclasses.asdict(o) for o in judged["outcomes"]], "max_drop": allowed}
        failures += judged["failures"]
    except InputError as err:
        failures.append(f"not judged: {err}")
    lost = told["n_asked"] + told["n_answered"] - answers.num_rows
    warnings = [f"{lost} answers are not in the rates: quarantined, or their shard failed"] if lost else []
    rates = [_rates(side, config) for side in (logged, replayed)]
    refused = [side["refusal_rate"]["value"] if side else 0.0 for side in rates]
    if refused[1] - refused[0] > allowed and "refusal_rate" not in names:
        warnings.append(
            f"{refused[1]:.1%} are refusals, {refused[0]:.1%} of the logged answers: who says nothing is well grounded; "
            "gate on --metric refusal_rate too"
        )
    return {
        "logged": rates[0],
        "replayed": rates[1],
        "gate": judged,
        "warnings": warnings,
        "failures": failures,
    }


def _rates(answers: pa.Table, config: Config) -> dict[str, dict[str, Any]]:
    rows = metrics.measure(answers, config.metrics).filter(pc.field("grouping") == "all").to_pylist()
    return {
        row["metric"]: {name: row[name] for name in ("value", "low", "high", "per")}
        | {"n": row["denominator"]}
        for row in rows
        if row["denominator"]
    }


def _counted(values: pl.Series) -> dict[str | None, int]:
    return dict(values.value_counts(name="n").sort(values.name).iter_rows())
