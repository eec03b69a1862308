"""A driver to be killed: one whole run on a Ray cluster, with models that need no weights and take their time.

    python ray_driver.py ADDRESS FOLDER OUT

The report goes to OUT.json. Each model's process leaves its pid in FOLDER/pids, so that a test knows whom to kill.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import chaos_job
import ray
import stub_models

from claimscore.jobs import cluster, operate
from claimscore.jobs.actors import die_with_parent

PAUSE_S = 0.05
"""What a model takes for a call: a run without it is over before a kill can hit it."""


def leave_pid(role: str, folder: Path) -> None:
    """Say which process this is."""
    die_with_parent()
    (folder / "pids").mkdir(exist_ok=True)
    (folder / "pids" / f"{role}-{os.getpid()}").touch()


class Judge:
    """The stub judge as an actor."""

    def __init__(self, _: int, card: Any, *__: object) -> None:
        leave_pid("judge", Path(card.model).parent)
        self._judge = stub_models.StubJudge()

    def load(self) -> tuple[float, float]:
        """Nothing to load."""
        return 0.0, 0.0

    def probabilities(self, premise_ids: Any, claim_ids: Any, **_: object) -> Any:
        """See StubJudge."""
        time.sleep(PAUSE_S)
        return self._judge.probabilities(premise_ids, claim_ids)


class Llm:
    """The stub LLM as an async actor."""

    def __init__(self, _: int, model: str, *__: object) -> None:
        leave_pid("llm", Path(model).parent)
        self._llm = stub_models.StubLlm()

    async def load(self) -> tuple[float, float]:
        """Nothing to load."""
        return 0.0, 0.0

    async def complete(self, *arguments: Any, **options: Any) -> Any:
        """See StubLlm."""
        await asyncio.sleep(PAUSE_S)
        return self._llm.complete(*arguments, **options)

    async def close(self) -> None:
        """Nothing to stop."""


def main(address: str, folder: Path, out: Path) -> int:
    """The exit code of the run."""
    for module in (sys.modules[__name__], stub_models):  # workers cannot import what lies in tests/
        ray.cloudpickle.register_pickle_by_value(module)
    cluster.JudgeActor, cluster.LlmActor = Judge, Llm  # type: ignore[misc,assignment]
    settings = (f'cluster.address="{address}"', "cluster.shards_in_flight=2")
    (report,) = operate.run_days(chaos_job.load(folder, settings, out), [chaos_job.DATE], quiet=True)
    out.with_suffix(".json").write_text(json.dumps(report))
    return int(report["exit_code"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
