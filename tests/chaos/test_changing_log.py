"""A log file that is replaced, cut or written again while a run reads it: that run says so, the next one mends it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import chaos_job
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models

from claimscore.jobs.config import Config
from claimscore.jobs.logfile import LogFile
from claimscore.jobs.nightly import DayReport, execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store


def other_file(path: Path) -> bytes:
    """As many rows in the same row groups, with other answers."""
    table = pq.read_table(path)
    answers = pa.array([f"{answer} The fee is 12 euro." for answer in table["answer"].to_pylist()])
    table = table.set_column(table.column_names.index("answer"), "answer", answers)
    pq.write_table(table, path.with_suffix(".new"), row_group_size=4)
    return path.with_suffix(".new").read_bytes()


def replace(path: Path) -> None:
    """Another file takes its name; who has the old one open goes on reading that."""
    other_file(path)
    path.with_suffix(".new").replace(path)


def overwrite(path: Path) -> None:
    """Another file is written over it."""
    path.write_bytes(other_file(path))


def truncate(path: Path) -> None:
    """It is being written again: so far, half of it is there."""
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size // 2)


def append(path: Path) -> None:
    """More rows, and a new footer behind the old one."""
    table = pa.concat_tables([pq.read_table(path), pa.Table.from_pylist(chaos_job.log_rows(90, 4))])
    pq.write_table(table, path, row_group_size=4)


def run(config: Config, *, planned: Callable[[], None] = lambda: None) -> DayReport:
    """Run the day in this process; `planned` is called between plan and reading."""
    store = Store(config.store.out, config.store)
    plan = plan_day(config, store, Weights.of(config), chaos_job.DATE)
    planned()
    judge = stub_models.StubJudge()
    models = Models(stub_models.StubLlm(), judge, judge, stub_models.StubLlm())
    return run_day(config, store, plan, execute_here(config, store, models))


@pytest.fixture
def job(tmp_path):
    """A deployment of three log files, and the one that changes."""
    chaos_job.write_deployment(tmp_path)
    return chaos_job.load(tmp_path, (), tmp_path / "out"), tmp_path / "logs" / chaos_job.DATE / "b.parquet"


def check_next_run(config: Config, tmp_path: Path) -> None:
    """The run after it does everything that is left, and the output is that of the log as it is now."""
    assert run(config).failures == []
    run(chaos_job.load(tmp_path, (), tmp_path / "whole"))
    for out in (Path(config.store.out), tmp_path / "whole"):  # samples are kept: they cannot be drawn again
        shutil.rmtree(out / "tables" / "samples")
    assert chaos_job.differences(Path(config.store.out), chaos_job.tables(tmp_path / "whole")) == []


@pytest.mark.parametrize("change", [replace, overwrite, truncate, append])
def test_a_file_that_changes_after_the_plan_is_not_taken_for_the_planned_one(job, tmp_path, change):
    """Rows of another file never stand under the shard of the one that was planned; the other files are done."""
    config, path = job
    before = path.read_bytes()

    report = run(config, planned=lambda: change(path))

    assert len(report.failures) == 2  # the shards of that file
    assert all(str(path) in line for line in report.failures)
    path.write_bytes(before if change is truncate else path.read_bytes())
    check_next_run(config, tmp_path)


@pytest.mark.parametrize("change", [replace, overwrite, truncate, append])
def test_a_file_that_changes_while_it_is_read_is_not_believed(job, tmp_path, change, monkeypatch):
    """What was read before and after the change is one file's or nobody's; written again as it was, it is read again."""
    config, path = job
    before, batches, n_read = path.read_bytes(), LogFile.batches, [0]

    def changing(self, group, columns):
        if self.file == str(path) and len(columns) > 1:
            n_read[0] += 1
            if n_read[0] == 1:
                change(path)
        yield from batches(self, group, columns)

    monkeypatch.setattr(LogFile, "batches", changing)
    report = run(config)
    monkeypatch.undo()
    if change is truncate:
        path.write_bytes(before)

    assert report.failures
    assert all(str(path) in line for line in report.failures)
    check_next_run(config, tmp_path)
