"""The demo's second day through both real models: what it finds of the planted hallucinations, with a floor.

About two minutes on two cores. The floors are what was measured (benchmarks/results/) less a small margin: vLLM may
split a sentence differently in another batch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import check_demo
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parent.parent
DATE = "2026-11-28"

pytestmark = [
    pytest.mark.demo,
    pytest.mark.skipif(
        not (ROOT / "demo-models" / "demo-decomposer").exists(),
        reason="the demo models are not built; run scripts/build_demo_models.py",
    ),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> dict:
    """One run of the day in a folder of its own: the record, and the scores against the gold."""
    folder = tmp_path_factory.mktemp("demo")
    log, out = folder / "log", folder / "out"
    subprocess.run([sys.executable, ROOT / "scripts" / "make_demo_log.py", "--out", log], check=True)
    command = [
        Path(sys.executable).with_name("claimscore"),
        "run",
        ROOT / "configs" / "demo.toml",
        "--date",
        DATE,
        "--quiet",
    ]
    sets = [f'read.logs="{log}/date={{date}}/*.parquet"', f'store.out="{out}"']
    done = subprocess.run(
        [*command, *(part for s in sets for part in ("--set", s))],
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = check_demo.read_table(out, "verdicts", None)
    answers = check_demo.read_table(out, "answers", None)
    gold = pq.read_table(folder / "gold.parquet")
    # The other day's facts have no verdicts here.
    of_day = pc.is_in(gold["request_id"], value_set=pa.array(answers["request_id"].to_pylist()))
    record = json.loads((out / "state" / "run.json").read_text())
    return {
        "done": done,
        "record": record,
        "scores": check_demo.score_against_gold(verdicts, gold.filter(of_day)),
        "answers": answers,
    }


def test_the_run_ends_well_and_accounts_for_every_row(run: dict):
    """Exit code 0, nothing on stdout or stderr that cron would mail, and 120 rows out of 120."""
    (day,) = run["record"]["days"]
    quarantined = sum(n for name, n in day["counts"]["quarantine"].items() if name.startswith("reason_"))

    assert (run["done"].returncode, run["done"].stdout) == (0, "")
    assert day["n_rows"] == 120 == run["answers"].num_rows + quarantined


def test_planted_hallucinations_are_found(run: dict):
    """Recall over all types stays above its floor."""
    assert run["scores"]["recall"]["value"] >= 0.84


def test_what_is_flagged_was_planted(run: dict):
    """Precision of the flags stays above its floor."""
    assert run["scores"]["precision"]["value"] >= 0.82


@pytest.mark.parametrize("kind", ["intrinsic", "extrinsic", "confabulation", "fabricated_citation"])
def test_recall_by_type(run: dict, kind: str):
    """The plain types are found nearly always; conflation and miscitation are harder, and counted in the whole."""
    assert run["scores"]["by_type"][kind]["value"] >= 0.85


def test_the_regressing_prompt_version_is_worse(run: dict):
    """p14 hallucinates more than p13 by the job's own rates, intervals apart."""
    rates = {
        row["prompt_version"]: row
        for row in run["record"]["days"][0]["metrics"]
        if row["metric"] == "hallucination_rate" and row["grouping"] == "prompt_version"
    }

    assert rates["p13"]["high"] < rates["p14"]["low"]
