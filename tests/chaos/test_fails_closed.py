"""A judge that gives no numbers, and an LLM that gives no words: unscored and counted, and the run says so first."""

from __future__ import annotations

import json

import chaos_job
import jobs_fixture
import numpy as np
import pyarrow as pa
import stub_models
from kill_server import HereExecutor

from claimscore.jobs import operate
from claimscore.jobs.nightly import execute_here
from claimscore.jobs.pipeline import Models
from claimscore.jobs.store import Store


class NanJudge(stub_models.StubJudge):
    """Its logits are not finite, whatever it is asked."""

    def probabilities(self, premise_ids, claim_ids):
        return np.full((len(claim_ids), 3), np.nan, np.float32)


class MuteLlm(stub_models.StubLlm):
    """No reply came in time."""

    def complete(self, system, users, *, n=1, **options):
        replies = super().complete(system, users, n=n)
        for name, value in (("text", None), ("finish_reason", "deadline")):
            if name in replies.column_names:
                place = replies.column_names.index(name)
                field = replies.schema.field(name)
                replies = replies.set_column(place, field, pa.array([value] * len(replies), field.type))
        return replies


def run(tmp_path, monkeypatch, judge, llm):
    """The report of a whole run with these models, and its verdicts."""
    jobs_fixture.write_log(tmp_path, chaos_job.log_rows(0, 8), group=4)
    config = jobs_fixture.make_config(tmp_path)

    class Executor(HereExecutor):
        def __init__(self, config, _, run_id, **__):
            store = Store(config.store.out, config.store, run_id=run_id)
            self._execute = execute_here(config, store, Models(llm, stub_models.StubJudge(), judge))

    monkeypatch.setattr(operate, "_LazyExecutor", Executor)
    (report,) = operate.run_days(config, [chaos_job.DATE], quiet=True)
    store = Store(config.store.out, config.store)
    files = store.files("verdicts", series=report["series"])
    record = json.loads(store.root.get("state/run.json"))
    return report, record, pa.concat_tables([store.read(file) for file in files])


def test_a_judge_without_numbers_ends_the_run_with_code_3(tmp_path, monkeypatch):
    """NaN is no neutral: every claim is unscored with the reason, and the first line of the failures says so."""
    report, record, verdicts = run(tmp_path, monkeypatch, NanJudge(), stub_models.StubLlm())

    assert set(zip(verdicts["verdict"].to_pylist(), verdicts["reason"].to_pylist(), strict=True)) == {
        ("unscored", "nan")
    }
    assert (report["exit_code"], record["exit_code"]) == (3, 3)
    assert report["failures"][0].startswith(
        f"{chaos_job.DATE}: 100.0% of the claims are unscored, expected at most "
    )


def test_a_mute_llm_makes_nothing_supported_that_was_not(tmp_path, monkeypatch):
    """What was asked of it is judged as the whole sentence, marked so; no claim is lost and none is made up."""
    judge = stub_models.StubJudge()
    (tmp_path / "mute").mkdir()
    (tmp_path / "plain").mkdir()
    _, _, mute = run(tmp_path / "mute", monkeypatch, judge, MuteLlm())
    _, _, plain = run(tmp_path / "plain", monkeypatch, judge, stub_models.StubLlm())

    supported = [
        {(v["request_id"], v["claim"]) for v in table.to_pylist() if v["verdict"] == "supported"}
        for table in (mute, plain)
    ]
    assert supported[0] <= supported[1]
    assert set(mute["request_id"].to_pylist()) == set(plain["request_id"].to_pylist())
    assert set(mute["decompose_outcome"].to_pylist()) - set(plain["decompose_outcome"].to_pylist())
