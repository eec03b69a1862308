"""The README's first command in a fresh clone: how long it takes, how much memory, and the second call.

Clones the committed state into a folder of its own, calls `scripts/demo` there twice and samples the memory of all its
processes (PSS: shared pages are counted once), which carry a mark in their environment. The floor is what the parts need:
the packages' download, the engine's start, and the models' arithmetic. Prints one JSON document as the last line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_S = 2.0
MARK = "CLAIMSCORE_BENCH"


def pss_mib(mark: str) -> float:
    """Proportional set size of every process with the mark in its environment, in MiB; Linux only."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:  # it ended, or is not ours to read
            continue
    return total / 1024


def timed(command: list[str], folder: Path, log: Path) -> dict[str, float]:
    """Run `command`; its exit code, wall seconds and peak memory."""
    mark = uuid.uuid4().hex
    peak, done = [0.0], threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_S):
            peak[0] = max(peak[0], pss_mib(mark))

    sampler = threading.Thread(target=sample)
    sampler.start()
    began = time.monotonic()
    with log.open("ab") as sink:
        code = subprocess.run(
            command, cwd=folder, env=os.environ | {MARK: mark}, stdout=sink, stderr=sink, check=False
        ).returncode
    wall_s = time.monotonic() - began
    done.set()
    sampler.join()
    return {"exit_code": code, "wall_s": round(wall_s, 1), "peak_pss_mib": round(peak[0])}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Time scripts/demo in a fresh clone.")
    parser.add_argument(
        "folder", type=Path, help="an empty folder to clone into; what is printed goes to demo.log there"
    )
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, folder / "claimscore"], check=True)
    clone = folder / "claimscore"
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=clone, capture_output=True, text=True, check=True
    )
    steps = {
        "setup": ["scripts/setup", "cpu", "demo"],
        "models": [".venv/bin/python", "scripts/build_demo_models.py"],
        "demo": ["scripts/demo"],
        "again": ["scripts/demo"],
    }
    result = {name: timed(command, clone, folder / "demo.log") for name, command in steps.items()}
    for name, step in result.items():
        print(f"{name:<8}{step['wall_s']:>8.1f} s{step['peak_pss_mib']:>8.0f} MiB  exit {step['exit_code']}")
    print(
        json.dumps(
            {"name": "demo-setup", "commit": commit.stdout.strip(), "cpus": os.cpu_count(), "steps": result}
        )
    )
    return max(int(step["exit_code"]) for step in result.values())


if __name__ == "__main__":
    sys.exit(main())
