"""For every test: no deadline of an example on a busy machine, and the demo log and its gold, made once."""

from __future__ import annotations

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


def pytest_collection_modifyitems(config, items):
    """Leave the slow tests out, and say so; the demo's run goes first.

    It keeps the cores busy for three minutes, and the stores and kills that come next mostly wait: side by side they take as
    long as the longer of the two.
    """
    items.sort(key=lambda item: item.path.name != "test_demo_run.py")
    if not config.getoption("--slow"):
        skip = pytest.mark.skip(reason="slow: run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


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
