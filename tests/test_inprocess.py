"""A run that needs no model starts no Ray, and keeps what a run on Ray promises."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import golden_fixture
import jobs_fixture
import pytest
from polars.exceptions import PanicException

from claimscore.jobs import cluster, inprocess, operate, pipeline, progress
from claimscore.jobs.config import Config
from claimscore.jobs.errors import InputError
from claimscore.jobs.store import Store

DATE = jobs_fixture.DATE
THRESHOLD = "verdicts.entailment=0.85"


def run(config: Config, **options: bool) -> dict:
    """The report of a whole run of the day."""
    (report,) = operate.run_days(config, [DATE], quiet=True, **options)
    return report


@pytest.fixture
def job(tmp_path, monkeypatch) -> Config:
    """A deployment whose day of two shards was run, after which nothing may start Ray."""
    jobs_fixture.write_log(tmp_path)
    config = jobs_fixture.make_config(tmp_path)
    golden_fixture.without_ray(monkeypatch)
    run(config)
    monkeypatch.setattr(cluster, "RayExecutor", None)
    return config


def changed(job: Config, *overrides: str) -> Config:
    return jobs_fixture.make_config(Path(job.path).parent, *overrides)


def tables(out: Path) -> dict[str, bytes]:
    """The files of the judge's tables, by their keys."""
    root = out / "tables"
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.glob("*/judge=*/**/*.parquet"))
    }


@pytest.mark.parametrize("override", [THRESHOLD, "policy.refuse_below=0.1", "metrics.seed=7"])
def test_rules_alone_start_no_ray_and_give_equal_tables(job: Config, tmp_path: Path, monkeypatch, override):
    """The same bytes as a run on other hands, written under this run's lock and accounted for."""
    report = run(changed(job, override))

    golden_fixture.without_ray(monkeypatch)
    run(changed(job, override, f'store.out="{tmp_path}/whole"'))
    assert tables(tmp_path / "out") == tables(tmp_path / "whole")
    record = json.loads((tmp_path / "out" / "state" / "run.json").read_text())
    assert (report["failures"], record["exit_code"], record["days"][0]["made"]) == ([], 0, report["made"])
    if override == THRESHOLD:
        assert report["made"] == {"verdicts": 2, "answers": 2, "metrics": 1}
        store = Store(job.store.out, job.store)
        made = [store.manifest(file) for file in store.files("verdicts", series=report["series"])]
        assert {manifest["run_id"] for manifest in made} == {record["run_id"]}


@pytest.mark.parametrize(
    ("error", "n_tries", "line"),
    [
        (InputError("the day is odd"), 1, "row groups 0-0: the day is odd"),
        (RuntimeError("a\nslip"), 3, 'row groups 0-0: RuntimeError: a slip (File "'),
        (PanicException("a slip"), 3, 'row groups 0-0: PanicException: a slip (File "'),
    ],
)
def test_a_shard_that_fails_costs_itself(
    job: Config, monkeypatch, error: BaseException, n_tries: int, line: str
):
    """Its line names the file; a mistake of ours is tried again; the other shard is finished, and the next run mends it."""
    decide, tries = pipeline.make_verdicts, []

    def failing(log, *rest):
        if "r0" in log.column("request_id").to_pylist():
            tries.append(1)
            raise error
        return decide(log, *rest)

    monkeypatch.setattr(pipeline, "make_verdicts", failing)
    report = run(changed(job, THRESHOLD))
    monkeypatch.setattr(pipeline, "make_verdicts", decide)

    assert (report["exit_code"], len(report["failures"]), len(tries)) == (3, 1, n_tries)
    assert report["failures"][0].startswith(f"{Path(job.path).parent}/logs/{DATE}/part-0.parquet: {line}")
    assert report["failures"][0].endswith("report this") == (n_tries > 1)
    assert report["made"]["verdicts"] == 1
    assert run(changed(job, THRESHOLD))["made"] == {"verdicts": 1, "answers": 1, "metrics": 1}


def test_a_run_that_was_killed_goes_on(job: Config, monkeypatch):
    """What was written before stays."""
    write = Store.write

    def killed(self, file, *rest, **named):
        if file.table == "answers":
            raise KeyboardInterrupt
        return write(self, file, *rest, **named)

    monkeypatch.setattr(Store, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        run(changed(job, THRESHOLD))
    monkeypatch.setattr(Store, "write", write)

    assert run(changed(job, THRESHOLD))["made"] == {"verdicts": 1, "answers": 2, "metrics": 1}


@pytest.mark.parametrize(("override", "max_rows"), [("evidence.max_windows=3", 10_000), (THRESHOLD, 5)])
def test_models_and_many_rows_are_ray_s(job: Config, monkeypatch, override: str, max_rows: int):
    """Side by side on Ray a large day is made sooner than here."""
    executed = golden_fixture.without_ray(monkeypatch)
    monkeypatch.setattr(inprocess, "MAX_ROWS", max_rows)

    run(changed(job, override))

    assert executed.n_tasks == 2


def test_the_rows_of_all_days_count(job: Config, tmp_path: Path, monkeypatch):
    """A month is many rows too: once there are more than fit here, the days that follow are Ray's."""
    days = [DATE, "2026-11-29"]
    (tmp_path / "logs" / days[1]).symlink_to(tmp_path / "logs" / DATE)
    executed = golden_fixture.without_ray(monkeypatch)
    list(operate.run_days(job, days, quiet=True))
    executed.n_tasks = 0
    monkeypatch.setattr(inprocess, "MAX_ROWS", 6)

    list(operate.run_days(changed(job, THRESHOLD), days, quiet=True))

    assert executed.n_tasks == 2


def test_a_terminal_sees_shards_and_hears_of_no_ray(job: Config, capsys, monkeypatch: pytest.MonkeyPatch):
    """A line a shard where there is no terminal; the clock of the lines stands still, or a busy machine's would show."""
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    list(operate.run_days(changed(job, THRESHOLD), [DATE]))

    assert capsys.readouterr().err.splitlines() == [
        f"{DATE}: {k}/2 shards, tables are made, 0 s" for k in (1, 2)
    ]
