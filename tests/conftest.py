"""For every test: no deadline of an example on a busy machine, and the demo log and its gold, made once."""

from __future__ import annotations

import os

import make_demo_log
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

# What must not take long is held by CPU time (tests/hostile/test_regex_time.py); wall time is the neighbours'.
settings.register_profile("claimscore", deadline=None)
settings.load_profile("claimscore")


def pytest_addoption(parser):
    """`--slow` runs the tests marked so; scripts/test leaves them out."""
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


LONGEST = (
    "test_demo_run.py", "test_faulty_s3.py", "test_hostile.py", "test_cluster_run.py", "test_triton_attention.py",
    "test_cluster.py", "test_evaluate.py", "test_ray_kills.py", "test_gpu_suite.py", "test_bench_smoke.py",
    "test_regex_time.py", "test_triton_compile.py", "test_changing_log.py", "test_monsters.py", "test_gate.py",
)  # fmt: skip
"""The files of half a minute and more, longest first: one that begins last is waited for by the cores alone.

The demo's run keeps the cores busy, and the store with faults beside it mostly waits.
"""


def pytest_collection_modifyitems(config, items):
    """Leave the slow tests out, and say so; the longest files go first."""
    at = {name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: at.get(item.path.name, len(at)))
    if not config.getoption("--slow"):
        skip = pytest.mark.skip(reason="slow: run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def no_power_loss():
    """Fsync does nothing in the tests' own process: no test can see what it is for, and the suite waits thousands of times.

    That it is called, and what follows where it fails, is tried by tests that put their own in its place.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The folder that holds the log and the gold files."""
    root = tmp_path_factory.mktemp("demo")
    make_demo_log.write_demo(root / "log")
    return root


@pytest.fixture(scope="session")
def demo_log(demo) -> pa.Table:
    files = sorted((demo / "log").glob("date=*/*.parquet"))
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])


@pytest.fixture(scope="session")
def demo_rows(demo_log) -> dict[str, dict]:
    return {row["request_id"]: row for row in demo_log.to_pylist() if row["request_id"]}


@pytest.fixture(scope="session")
def demo_gold(demo) -> list[dict]:
    return pq.read_table(demo / "gold.parquet").to_pylist()


@pytest.fixture(scope="session")
def demo_states(demo) -> list[dict]:
    return pq.read_table(demo / "gold_answers.parquet").to_pylist()
