"""A small deployment to be killed: its log, what it starts from, and what must hold of its output afterwards.

Seventeen usable rows in six shards of three files, with rows that belong into quarantine, and stub models. `problems`
looks at an output by itself, `differences` puts it beside one that nothing interrupted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jobs_fixture
import pyarrow.parquet as pq

from claimscore.jobs.config import Config
from claimscore.jobs.layout import MANIFESTS, TABLES

DATE = jobs_fixture.DATE
ANSWERS = (
    *jobs_fixture.ANSWERS,
    "The refund window is 60 days, and premium members pay no fee [1].",
    "Guests pay 20 euro and the lounge allows 8 visits a year [2]. It opens at 7.",
)
EXTRA = '[samples]\nmodel = "./llm"\nk = 2\n'
"""Some samples are drawn and some are in the log."""
ALL_AT_ONCE = "a corrected log and other claims"
"""The scenario whose run does everything: makes, makes again, draws samples and removes."""


@dataclass(frozen=True)
class Scenario:
    """What an output holds before the run that is killed, and the settings of that run."""

    before: tuple[str, ...] | None
    """Settings of an earlier, whole run; None: nothing is there."""
    settings: tuple[str, ...]


def log_rows(start: int, n: int) -> list[dict[str, Any]]:
    """`n` rows with ids from `start` on; no two ask the same question, or they would share their samples."""
    return [
        {
            "request_id": f"r{k}",
            "question": f"What applies in case {k}?",
            "answer": ANSWERS[k % len(ANSWERS)],
            "chunks": jobs_fixture.CHUNKS,
            "samples": ["The refund window is 60 days.", "It is 60 days."] if k % 3 == 1 else None,
            "prompt_version": f"p{k % 2}",
        }
        for k in range(start, start + n)
    ]


def write_deployment(folder: Path, *, small: bool = False) -> dict[str, Scenario]:
    """The config, its two judges and its two logs; the scenarios by name. A small one has two shards of six."""
    files = {"a": log_rows(0, 8), "b": log_rows(8, 6), "c": log_rows(14, 6)}
    files["a"][2] |= {"request_id": None}
    files["b"][4] |= {"chunks": None}
    files["c"][1] = files["a"][0]  # the same row again, and one that differs under the same id
    files["c"][5] |= {"request_id": "r3"}
    corrected = {"a": files["a"], "b": log_rows(8, 4), "d": log_rows(30, 4)}
    for name in ("b", "c") if small else ():
        files.pop(name), corrected.pop(name, None)
    _write(folder, files)
    _write(folder / "corrected", corrected)
    jobs_fixture.write_config(folder, extra=EXTRA)
    (folder / "other").mkdir()
    (folder / "other" / "config.json").write_text("{}")
    (folder / "other" / "model.safetensors").write_bytes(b"other")
    (folder / "other.toml").write_text('name = "other"\nmodel = "./other"\nentailment = 0.5\n')
    other_log = f'read.logs="{folder}/corrected/logs/{{date}}/*.parquet"'
    return {
        "nothing there": Scenario(None, ()),
        "another threshold": Scenario((), ("verdicts.entailment=0.85",)),
        "another judge": Scenario((), (f'judge.card="{folder}/other.toml"',)),
        "a corrected log": Scenario((), (other_log,)),
        ALL_AT_ONCE: Scenario((), (other_log, "decompose.max_output_tokens=99")),
    }


def _write(folder: Path, files: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    for name, rows in files.items():
        jobs_fixture.write_log(folder, rows, name=f"{name}.parquet", group=4)


def load(folder: Path, settings: Sequence[str], out: Path) -> Config:
    """The deployment in `folder` with these settings, writing into `out`."""
    return jobs_fixture.make_config(folder, *settings, f'store.out="{out}"')


def start(before: Path | None, out: Path) -> Path:
    """A fresh copy of what was there before, at `out`."""
    shutil.rmtree(out, ignore_errors=True)
    if before is not None:
        shutil.copytree(before, out)
    return out


def problems(out: Path, *, finished: bool) -> list[str]:
    """What must not be in an output at any moment; of a finished one also what must be.

    At any moment: whatever lies in tables/ is a whole Parquet file, and a manifest whose size is that of its file
    vouches for its bytes. Finished: every file has a manifest, rows add up, and nothing half-written is left.
    """
    found = []
    stems: dict[str, set[str]] = {TABLES: set(), MANIFESTS: set()}
    for path in sorted((out / TABLES).rglob("*")):
        if path.is_file():
            stems[TABLES].add(str(path.relative_to(out / TABLES).with_suffix("")))
            if path.suffix != ".parquet" or not _is_whole(path):
                found.append(f"{path.name} in tables/ is no whole Parquet file")
    for path in sorted((out / MANIFESTS).rglob("*.json")):
        stem = str(path.relative_to(out / MANIFESTS).with_suffix(""))
        stems[MANIFESTS].add(stem)
        table, manifest = out / TABLES / f"{stem}.parquet", json.loads(path.read_bytes())
        if not (out / "state" / "runs" / manifest["run_id"] / "run.json").is_file() or not manifest["run_id"]:
            found.append(f"{stem} was made by {manifest['run_id']!r}, which is no run")
        if table.exists() and (data := table.read_bytes()):
            is_vouched = len(data) == manifest["bytes"]
            if is_vouched and hashlib.sha256(data).hexdigest()[:16] != manifest["content"]:
                found.append(f"the manifest of {stem} vouches for other bytes")
    if finished:
        samples = {stem for stem in stems[TABLES] if stem.startswith("samples/")}
        odd = (stems[TABLES] - samples) ^ stems[MANIFESTS]
        found += [f"{stem} is a table or a manifest alone" for stem in sorted(odd)]
        found += [f"{path.name} is left in tmp/" for path in (out / "tmp").rglob("*")]
        found += _unaccounted(out)
    return found


def _is_whole(path: Path) -> bool:
    try:
        pq.read_table(path)
    except (OSError, ValueError):
        return False
    return True


def _unaccounted(out: Path) -> list[str]:
    """Rows of a finished output that are missing, doubled, or come from another table than the one that is there."""
    found = []
    for answers in sorted((out / TABLES / "answers").rglob("*.parquet")):
        stem = answers.relative_to(out / TABLES / "answers")  # judge=…/date=…/<shard>.parquet
        rows = {
            name: pq.read_table(out / TABLES / name / (stem if name in {"scores", "verdicts"} else stem.relative_to(stem.parts[0])))
            for name in ("quarantine", "claims", "scores", "verdicts")
        }  # fmt: skip
        ids = Counter(pq.read_table(answers)["request_id"].to_pylist())
        counts = json.loads((out / MANIFESTS / "quarantine" / stem.relative_to(stem.parts[0])).with_suffix(".json").read_bytes())["counts"]  # fmt: skip
        if max(ids.values(), default=1) > 1 or counts["rows"] != ids.total() + rows["quarantine"].num_rows:
            found.append(f"{stem.stem}: {counts['rows']} rows, {ids.total()} answers, {rows['quarantine'].num_rows} quarantined")  # fmt: skip
        keys = {name: list(zip(rows[name]["request_id"].to_pylist(), rows[name]["claim_index"].to_pylist(), strict=True)) for name in ("claims", "scores", "verdicts")}  # fmt: skip
        claims = dict(zip(keys["claims"], rows["claims"]["text"].to_pylist(), strict=True))
        judged = dict(zip(keys["verdicts"], rows["verdicts"]["claim"].to_pylist(), strict=True))
        if len(claims) != len(keys["claims"]) or len(judged) != len(keys["verdicts"]) or claims != judged:
            found.append(f"{stem.stem}: the claims of the verdicts are not those of the claims table")
        if not set(keys["scores"]) <= claims.keys() or not {key[0] for key in claims} <= ids.keys():
            found.append(f"{stem.stem}: a score without a claim, or a claim without an answer")
    return found


def tables(out: Path) -> dict[str, Any]:
    """Every table by its key, as values."""
    root = out / TABLES
    return {str(path.relative_to(root)): pq.read_table(path) for path in sorted(root.rglob("*.parquet"))}


def differences(out: Path, expected: Mapping[str, Any]) -> list[str]:
    """Tables that are missing, too many, or not equal in every value of every column; no column is a time of the run."""
    found = tables(out)
    return [f"{key} is there on one side only" for key in sorted(found.keys() ^ expected.keys())] + [
        f"{key} has other values" for key in found.keys() & expected.keys() if not found[key].equals(expected[key])
    ]  # fmt: skip
