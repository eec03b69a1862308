"""Shards on Ray with models that die, fail and wait: what is tried again, what is reported, and what workers see."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import ray
import ray_fixture
import torch

from claimscore.jobs import actors, cluster, records
from claimscore.jobs.cluster import RayExecutor
from claimscore.jobs.errors import ConfigError, InputError, ModelError
from claimscore.jobs.nightly import plan_day, run_day
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

jobs_fixture, tiny = ray_fixture.jobs_fixture, ray_fixture.tiny
DATE = jobs_fixture.DATE
POISON = "%"
LIMIT_S = 120.0
"""For what comes within a second on an idle machine."""
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def wait_for(path):
    """Whether a file is there within the limit."""
    deadline = time.monotonic() + LIMIT_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return path.exists()


class StubJudge:
    """Entails everything; leaves a line a start in `starts`, and then does what the file `fault` says."""

    poison = -1

    def __init__(self, threads, card, budget_tokens, dtype, device):
        self.folder, self.threads = Path(card.model), threads
        with (self.folder / "starts").open("a") as lines:
            lines.write(f"{os.getpid()} {threads}\n")

    def load(self):
        now = time.time()
        return now, now + 600  # longer than any machine takes for the rest of the call

    def probabilities(self, premise_ids, claim_ids, told):
        fault = (self.folder / "fault").read_text()
        if (self.folder / "slow").exists() and len(claim_ids):
            told(1)
            wait_for(self.folder / "seen")
        n_starts = len((self.folder / "starts").read_text().splitlines())
        is_poisoned = fault == "poison" and self.poison in claim_ids.flatten().to_pylist()
        if (fault == "dies once" and n_starts == 1) or is_poisoned:
            os._exit(9)
        if fault == "raises":
            raise ModelError("judge 'stub': no such weights")
        if fault == "raises once" and n_starts == 1:
            raise RuntimeError("CUDA error: device-side assert")
        if fault == "no array":
            return []
        return np.full((len(claim_ids), 3), [0.9, 0.05, 0.05], np.float32)


class StubLlm:
    """Answers nothing until requests of four shards are there."""

    def __init__(self, threads, *arguments):
        self.n, self.together = 0, asyncio.Event()

    async def load(self):
        return 0.0, 0.0

    async def complete(self, system, users, **options):
        self.n += 1
        if self.n == 4:
            self.together.set()
        await asyncio.wait_for(self.together.wait(), LIMIT_S)
        return records.REPLIES.empty_table()

    async def close(self):
        pass


@pytest.fixture(scope="module", autouse=True)
def workers_path(tmp_path_factory):
    """Ray, started from a folder that holds a `kernels/` and a broken torch.py; what a worker's path is there."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "kernels").mkdir()
    (folder / "torch.py").write_text("raise ImportError('the wrong torch')")
    config = jobs_fixture.make_config(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with RayExecutor(config):
            path = ray.get(ray.remote(lambda: list(sys.path)).remote())
            yield folder, path


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A function that runs a day of four shards with the stub judge under a fault; the deployment's folder."""
    ray_fixture.write_deployment(tmp_path, n_shards=4)
    tiny.write_tokenizer(tmp_path / "model")
    tokenizer = actors._tokenizer(str(tmp_path / "model"))
    StubJudge.poison = tokenizer.encode(records.pa.array([POISON]))["ids"].to_pylist()[0][-1]
    monkeypatch.setattr(cluster, "JudgeActor", StubJudge)

    def run(fault="", *overrides, show=lambda _: None):
        (tmp_path / "model" / "fault").write_text(fault)
        config = jobs_fixture.make_config(tmp_path, *overrides)
        store = Store(config.store.out, config.store)
        plan = plan_day(config, store, Weights.of(config), DATE)
        executor = RayExecutor(config, show=show)
        try:
            return run_day(config, store, plan, executor)
        finally:
            executor._actors.close()

    run.folder = tmp_path
    return run


def starts(job):
    """(pid, threads) of each judge process that was started."""
    path = job.folder / "model" / "starts"
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()] if path.exists() else []


def n_answers(report):
    return sum(n for name, n in report.counts["answers"].items() if name.startswith("state_"))


def is_gone(pid):
    """Whether a process has ended within the limit."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_ray_that_does_not_start_is_told_in_a_line(monkeypatch):
    """Ray raises a bare Exception where its node starts too late, as on a busy machine."""

    def late(**_):
        raise Exception("The current node timed out during startup.")  # noqa: TRY002 - as Ray does

    monkeypatch.setattr(cluster.ray, "init", late)

    with pytest.raises(
        ConfigError,
        match=r"Ray cannot be started here: The current node timed out during startup\., .*run it again",
    ):
        cluster.start_ray("")


@pytest.mark.parametrize("fault", ["dies once", "raises once"])
def test_a_model_that_fails_once_costs_no_shard(job, fault):
    """A dead process and a broken device are replaced by a fresh one, which has the device to itself."""
    report = job(fault)

    assert (report.failures, n_answers(report), len(starts(job))) == ([], 12, 2)
    assert is_gone(starts(job)[0][0])


def test_the_time_that_a_model_loads_is_told_apart(job):
    """Once a shard, and not in the time of its tables."""
    report = job()

    assert report.loading_s == pytest.approx(600, abs=60)  # a loaded machine asks late
    assert (report.seconds["scores"], report.failures) == (0.0, [])


def test_how_far_the_models_are_is_shown(job):
    """While a judge is half-way through a shard, where it waits to be seen, the counts say so."""
    (job.folder / "model" / "slow").touch()
    seen = job.folder / "model" / "seen"

    def show(counts):
        if 0 < counts.get("judge", 0) < counts.get("judge_of", 0):
            seen.touch()

    report = job("", "cluster.shards_in_flight=1", show=show)

    assert report.failures == []
    assert seen.exists()


def test_a_killed_worker_leaves_no_phase_behind(job, monkeypatch):
    """What its first try was asking for when it was killed is in no count of the rest of the run."""
    run_shard, killed, seen = cluster._run_shard, job.folder / "killed", job.folder / "seen"
    shown = []

    def killed_once(task, config, run_id, handles, fs, progress):
        if not killed.exists():
            killed.touch()
            with cluster._Calls(progress)._under_way("judge", 1_000):
                wait_for(seen)
                os._exit(9)
        return run_shard(task, config, run_id, handles, fs, progress)

    def show(counts):
        shown.append(counts)
        if counts.get("judge_of", 0) >= 1_000:
            seen.touch()

    monkeypatch.setattr(cluster, "_run_shard", killed_once)
    report = job("", "cluster.shards_in_flight=1", show=show)

    assert (report.failures, n_answers(report)) == ([], 12)
    assert seen.exists()
    assert shown[-1]["judge_of"] < 1_000


def test_a_shard_that_kills_every_model_takes_no_other_with_it(job):
    """With its tries used up the one shard is reported, file and cause in its line; its neighbours are done."""
    rows = jobs_fixture.log_rows(12)
    rows[4]["answer"] = f"Guests pay 20{POISON} more [2]."
    jobs_fixture.write_log(job.folder, rows)

    report = job("poison", "cluster.shards_in_flight=4")

    assert n_answers(report) == 9
    (line,) = report.failures
    assert line.startswith(
        f"{job.folder}/logs/{DATE}/part-0.parquet: row groups 1-1: judge: its process ended: "
    )


def test_a_model_that_cannot_run_is_given_up(job):
    """Weights that are refused are not loaded again for every try of every shard."""
    jobs_fixture.write_log(job.folder, jobs_fixture.log_rows(60))

    with pytest.raises(InputError, match="judge 'stub': no such weights"):
        job("raises", "cluster.retries=0", "cluster.shards_in_flight=1")

    assert len(starts(job)) == 4


def test_a_mistake_in_a_stage_is_told_with_its_place(job):
    """The line of a shard that raised holds the error and where it was raised, not the head of a traceback."""
    with pytest.raises(InputError) as caught:
        job("no array", "cluster.retries=0")

    assert re.search(r"row groups (\d)-\1: AttributeError: .*/jobs/pairs.py\", line \d+", str(caught.value))


def test_requests_of_all_shards_in_flight_meet(job, monkeypatch):
    """Four shards wait for the LLM at once, however few CPUs there are: their prompts share its batches."""
    monkeypatch.setattr(cluster, "LlmActor", StubLlm)
    rows = jobs_fixture.log_rows(12)
    for row in rows:
        row["answer"] = "The refund window is 60 days, and premium members pay no fee at all [1]."
    jobs_fixture.write_log(job.folder, rows)

    report = job("", "cluster.shards_in_flight=4", "cluster.retries=0")

    assert (report.failures, n_answers(report)) == ([], 12)


@pytest.mark.parametrize("in_flight", [1, 3, 64])
def test_all_shards_in_flight_fit_on_the_cpus(in_flight):
    """A shard that waits for a CPU keeps its prompts from the batch that the others share."""
    share = cluster._cpus_of_a_shard(in_flight)

    assert 0 < share <= 1
    assert in_flight * share <= ray.cluster_resources()["CPU"]


@pytest.mark.parametrize(
    ("override", "n_started"), [("verdicts.entailment=0.85", 1), ("evidence.max_windows=7", 2)]
)
def test_only_what_is_stale_starts_a_model(job, override, n_started):
    """A threshold starts no model's process; a setting of the evidence starts the judge's, and never the LLM's."""
    job()

    job("", override)

    assert len(starts(job)) == n_started


def test_a_judge_on_the_cpu_has_all_cores(job, monkeypatch):
    """Ray would give a process that reserves no CPU one thread."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    job()

    assert [threads for _, threads in starts(job)] == [int(ray.cluster_resources()["CPU"])]


def test_a_worker_is_as_nice_as_its_run():
    """Ray's own 15 would give a run what is left on a machine that does anything else."""
    assert ray.get(ray.remote(lambda: os.nice(0)).remote()) == os.nice(0)


def test_a_worker_wakes_no_pool_of_threads_for_small_tables():
    """There are as many workers as CPUs."""
    assert ray.get(ray.remote(lambda: __import__("polars").thread_pool_size()).remote()) == 1


def test_a_worker_ends_with_its_node():
    """What a killed run leaves running would write beside the run after it."""
    child = (
        "import os, time\nfrom claimscore.jobs.actors import die_with_parent\ndie_with_parent()\n"
        "print(os.getpid(), flush=True)\ntime.sleep(120)"
    )
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as node:
        pid = int(node.stdout.readline())
        node.kill()

    assert is_gone(pid)


def test_a_worker_collects_rarely_before_it_works(monkeypatch):
    done = []
    monkeypatch.setattr(cluster, "die_with_parent", lambda: None)
    monkeypatch.setattr(cluster, "collect_rarely", lambda: done.append("collect_rarely"))
    monkeypatch.setattr(cluster, "_Calls", lambda _: SimpleNamespace(failed_roles=set(), loading_s=0.0))
    monkeypatch.setattr(cluster, "Store", lambda *_, **__: None)
    monkeypatch.setattr(cluster, "run_shard", lambda *_, **__: done.append("run_shard") or SimpleNamespace())
    config = SimpleNamespace(store=SimpleNamespace(out="out"))
    progress = SimpleNamespace(add=SimpleNamespace(remote=None))

    cluster._run_shard(None, config, "run", {}, None, progress)

    assert done == ["collect_rarely", "run_shard"]


def test_the_garbage_collector_is_set_once_and_by_nothing_that_is_imported():
    """What is frozen between two shards is garbage of the first, and would stay for good."""
    found = run_python(
        "import gc\nbefore = gc.get_threshold()\nfrom claimscore.jobs import cluster, pipeline\n"
        "from claimscore.jobs.actors import COLLECT_AFTER, collect_rarely\n"
        "assert gc.get_threshold() == before and gc.get_freeze_count() == 0\n"
        "collect_rarely()\nn_frozen = gc.get_freeze_count()\nkept = [[] for _ in range(1000)]\ncollect_rarely()\n"
        "print(gc.get_threshold()[0] == COLLECT_AFTER, n_frozen > 10_000, gc.get_freeze_count() == n_frozen)"
    )

    assert found.split() == ["True"] * 3


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_children_end_with_a_killed_parent():
    """An engine that outlives its actor would keep the memory that the next one needs."""
    parent = (
        "import subprocess, sys\nfrom claimscore.jobs.actors import take_children_along\ntake_children_along()\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(120)'])\n"
        "print(child.pid, flush=True)\nchild.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as actor:
        pid = int(actor.stdout.readline())
        actor.kill()

    assert is_gone(pid)


def test_threads_hold_for_a_torch_that_is_loaded_already(monkeypatch):
    """The environment variable alone comes too late for a library that has read it."""
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        actors.use_threads(before + 1)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_the_working_folder_is_not_on_a_workers_path(workers_path):
    """Its kernels/ or torch.py would shadow packages that a model imports."""
    folder, path = workers_path

    assert not {str(folder), ""} & set(path)
