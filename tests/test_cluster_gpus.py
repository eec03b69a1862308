"""Models that share GPUs: equal ones are one actor, and what does not fit together is refused, not waited for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jobs_fixture
import pytest

from claimscore.jobs import cluster
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import ModelError
from claimscore.jobs.shard_run import ShardReport

ROOT = Path(__file__).parents[1]
ROLES = ("decomposer", "checker", "judge", "generator")


@pytest.fixture(autouse=True)
def _one_gpu(monkeypatch: pytest.MonkeyPatch):
    """A cluster of one GPU, whose actors are nothing but names."""
    monkeypatch.setattr(cluster.ray, "cluster_resources", lambda: {"GPU": 1.0, "CPU": 8.0})
    monkeypatch.setattr(cluster, "_threads", lambda _: 1)
    monkeypatch.setattr(cluster, "_remote", lambda *_, **__: SimpleNamespace(remote=lambda *_: object()))


def with_shares(config: Config, **shares: Any) -> Config:
    """The config with other shares of GPUs."""
    return dataclasses.replace(config, cluster=dataclasses.replace(config.cluster, **shares))


def test_the_shipped_deployment_fits_on_one_gpu():
    """The LLM of both its roles is one engine, and checker and judge lie beside it."""
    actors = cluster._Actors(load_config(ROOT / "configs" / "nightly.toml"))

    made = {role: actors.one(role, 0) for role in ROLES}

    assert made["decomposer"] is made["generator"]
    assert made["checker"] is not made["judge"]


def test_what_does_not_fit_is_refused_with_the_sum(tmp_path):
    """Ray would let the shard wait for ever; the message says who took what, and what to lower."""
    actors = cluster._Actors(with_shares(jobs_fixture.make_config(tmp_path), llm_gpus=0.7, judge_gpus=0.4))
    actors.one("decomposer", 0)

    with pytest.raises(
        ModelError, match=r"judge: needs 0\.4 of a GPU, .* took 0\.7 of the cluster's 1; lower \[cluster\]"
    ):
        actors.one("judge", 0)


def test_an_actor_that_failed_gives_its_gpu_back(tmp_path):
    """The one that takes its place fits where it was."""
    actors = cluster._Actors(with_shares(jobs_fixture.make_config(tmp_path), judge_gpus=0.8))
    failed = actors.one("judge", 0)
    actors.heed(cluster._Failure("x", retried=True, role="judge"), {"judge": failed})

    assert actors.one("judge", 0) is not failed


def test_an_actor_that_failed_at_what_no_verdict_needs_is_replaced_too(tmp_path):
    """The shard was done; the next one is not to lose a try to it, and nothing is given up."""
    actors = cluster._Actors(jobs_fixture.make_config(tmp_path))
    for _ in range(50):
        failed = actors.one("judge", 0)
        actors.heed(ShardReport("aa", failed_roles=["judge"]), {"judge": failed})
        assert actors.one("judge", 0) is not failed

    assert actors.given_up == ""


def test_without_gpus_nothing_is_counted(tmp_path, monkeypatch):
    """On CPUs any number of models may stand side by side."""
    monkeypatch.setattr(cluster.ray, "cluster_resources", lambda: {"CPU": 1.0})
    actors = cluster._Actors(jobs_fixture.make_config(tmp_path))

    assert all(actors.one(role, 0) for role in ROLES)
