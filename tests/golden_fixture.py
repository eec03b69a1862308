"""Golden sets of a few rows, and a run of them on stub models in this process, where Ray would have been started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import jobs_fixture
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
import stub_models

from claimscore.jobs import cluster
from claimscore.jobs.config import Config
from claimscore.jobs.nightly import Outcome, execute_here
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import ShardTask
from claimscore.jobs.store import Store

REFUSAL = "I don't have enough information to answer that."
SAID = {
    "true": "The refund window is 60 days [1].",
    "false": "The refund window is 30 days [1].",
    "guests": "Guests pay 20 euro [2].",
    "miscited": "Premium members pay no fee [2].",
    "refused": REFUSAL,
}
QUICK = "[metrics]\nn_resamples = 100\n"
REFERENCE = "The refund window is 60 days."


def row(request_id: str, said: str, **fields: Any) -> dict[str, Any]:
    """One row of a log; `said` is a key of SAID or the answer itself."""
    return {
        "request_id": request_id,
        "question": f"What of {request_id.partition('/')[2] or request_id}?",
        "answer": SAID.get(said, said),
        "chunks": jobs_fixture.CHUNKS,
        "prompt_version": "p1",
        "model": "m",
        "topic": "cards",
    } | fields


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Rows as one Parquet file, three a row group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    pq.write_table(table, path, row_group_size=3)
    return path


class InThisProcess:
    """Takes the place of `cluster.RayExecutor`; `n_tasks` counts what was executed."""

    n_tasks = 0

    def __init__(self, config: Config, *, run_id: str = "", show: Any = None) -> None:
        self._config = config

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, tasks: Sequence[ShardTask], fs: pafs.FileSystem) -> Iterator[Outcome]:
        InThisProcess.n_tasks += len(tasks)
        judge = stub_models.StubJudge()
        models = Models(decomposer=stub_models.StubLlm(), checker=judge, judge=judge, generator=None)
        store = Store(self._config.store.out, self._config.store)
        return execute_here(self._config, store, models)(tasks, fs)


def without_ray(monkeypatch: pytest.MonkeyPatch) -> type[InThisProcess]:
    """Have every run of this test use the stubs above."""
    monkeypatch.setattr(InThisProcess, "n_tasks", 0)
    monkeypatch.setattr(cluster, "RayExecutor", InThisProcess)
    return InThisProcess
