"""Where a row stands changes nothing of it: shuffled, in other shards, files and micro-batches, its tables stay."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chaos_job
import jobs_fixture
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import ray_fixture
import stub_models
import test_job_referee

from claimscore.jobs.actors import JudgeProxy
from claimscore.jobs.judge import Judge
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

N_ROWS = 24
TABLES = ("claims", "verdicts", "answers")
GEMM = 2e-6
"""A product of other rows beside it sums in another order: what a probability of the real judge may move by."""


def run(
    folder: Path, rows: Sequence[dict[str, Any]], *, group: int, n_files: int, judge: Any = None
) -> dict[str, pa.Table]:
    """The tables of a day whose rows stand in this order, sorted by request; `judge` takes a config."""
    folder.mkdir()
    for k in range(n_files):
        jobs_fixture.write_log(folder, rows[k::n_files], name=f"{k}.parquet", group=group)
    jobs_fixture.write_config(folder, extra=chaos_job.EXTRA)
    test_job_referee.write_card(folder)
    refereed = ("referee.card=referee.toml", "referee.band=0.3", "referee.max_share=0.5")
    config = jobs_fixture.make_config(folder, f"read.shard_rows={group}", "triage.max_share=0.5", *refereed)
    judge = judge or stub_models.StubJudge()
    referee = test_job_referee.says("supported", test_job_referee.first_sentence)
    models = Models(stub_models.StubLlm(), judge, judge, stub_models.StubLlm(), referee)
    store = Store(config.store.out, config.store)
    plan = plan_day(config, store, Weights.of(config), chaos_job.DATE)
    report = run_day(config, store, plan, execute_here(config, store, models))
    assert report.failures == []
    found = {}
    for name in TABLES:
        series = None if name == "claims" else report.series
        table = pa.concat_tables([store.read(file) for file in store.files(name, series=series)])
        keys = [key for key in ("request_id", "claim_index") if key in table.column_names]
        found[name] = table.sort_by([(key, "ascending") for key in keys])
    return found


def shuffled(seed: int) -> list[dict[str, Any]]:
    """The rows in another order."""
    rows = chaos_job.log_rows(0, N_ROWS)
    random.Random(seed).shuffle(rows)
    return rows


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The tables of the rows in order, in one shard."""
    return run(
        tmp_path_factory.mktemp("plain") / "day", chaos_job.log_rows(0, N_ROWS), group=N_ROWS, n_files=1
    )


def test_some_answers_get_samples_and_some_do_not(plain):
    """Or the tests below would not see whether a row takes the samples of another: `[triage] max_share` is in force."""
    n_reasons = pc.list_value_length(plain["answers"]["high_risk_reasons"])

    assert 0 < pc.sum(pc.greater(n_reasons, 0)).as_py() < N_ROWS / 2
    assert pc.sum(pc.greater(plain["verdicts"]["n_samples_usable"], 0)).as_py() > 0


def test_some_claims_are_put_to_the_referee_and_some_in_doubt_are_not(plain):
    """Likewise for `[referee] max_share`."""
    rules = plain["verdicts"]["decided_by"].to_pylist()

    assert 0 < rules.count("referee") < len(rules) / 2


@pytest.mark.parametrize(("group", "n_files"), [(N_ROWS, 1), (1, 1), (5, 1), (3, 4)])
def test_a_row_is_the_same_in_any_place(plain, tmp_path, group, n_files):
    """Shuffled, cut into shards of 24, 5, 3 or one row, in one file or four: every value of every row is equal."""
    moved = run(tmp_path / "day", shuffled(group), group=group, n_files=n_files)

    assert [name for name in TABLES if not moved[name].equals(plain[name])] == []


@pytest.mark.parametrize("missing", [3, 11])
def test_a_row_does_not_feel_that_others_are_gone(plain, tmp_path, missing):
    """Without every third of its neighbours, what is left of the day is as it was."""
    rows = [row for k, row in enumerate(shuffled(missing)) if k % 3]
    moved = run(tmp_path / "day", rows, group=missing, n_files=1)

    ids = pa.array([row["request_id"] for row in rows])
    kept = {name: table.filter(pc.is_in(table["request_id"], value_set=ids)) for name, table in plain.items()}
    assert [name for name in TABLES if not moved[name].equals(kept[name])] == []


@pytest.mark.slow
def test_a_real_judge_gives_a_row_the_same_verdict_in_any_place(tmp_path):
    """Micro-batches of 64 tokens or 65,536, rows shuffled, shards of another size: equal verdicts, equal but for rounding."""
    card = jobs_fixture.make_config(tmp_path).card
    ray_fixture.write_judge(tmp_path / "model")
    found = []
    for name, budget, rows, group in (
        ("wide", 65_536, chaos_job.log_rows(0, N_ROWS), N_ROWS),
        ("narrow", 512, shuffled(1), 5),
    ):
        real = Judge(card, budget_tokens=budget, dtype="float32", device="cpu")
        judge = JudgeProxy(real.probabilities, card.model)
        found.append(run(tmp_path / name, rows, group=group, n_files=1, judge=judge)["verdicts"])
    wide, narrow = found
    floats = [field.name for field in wide.schema if pa.types.is_floating(field.type)]

    assert wide.drop_columns(floats).equals(narrow.drop_columns(floats))
    for name in floats:
        gaps = pc.abs(pc.subtract(wide[name], narrow[name]))
        assert (pc.max(gaps).as_py() or 0) <= GEMM, name
        assert wide[name].is_null().equals(narrow[name].is_null())
