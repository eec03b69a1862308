"""The long form of the chaos suite: kills for as long as asked, with another seed each time, and what they came to.

Ends with code 1 and the folder of the output at the first one that differs; its seed is printed first. Two thirds of
the time go to runs without Ray, which are quick to kill, the rest to the processes of runs on two Ray nodes.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import _harness as harness
import chaos_job
from campaign import Campaign

_QUICK = 2 / 3
"""Share of the time for runs without Ray."""


def kill_quick_runs(
    folder: Path, seed: int, until: float, n_kills: int, *, small: bool
) -> tuple[Counter[str], bool]:
    """Random moments until the time is over and there were `n_kills`, then one of each kind of boundary; whether to go on."""
    told, goes_on = [time.monotonic()], True

    def is_enough(counts: Counter[str]) -> bool:
        if time.monotonic() > told[0] + 60:
            told[0] = time.monotonic()
            print(dict(counts), flush=True)
        return time.monotonic() > until and counts["random kills"] >= n_kills

    with Campaign(folder, seed, small=small) as campaign:
        try:
            campaign.random_kills(is_enough)
            campaign.boundary_kills(at_most=sys.maxsize)
        except KeyboardInterrupt:
            print("interrupted: the counts so far", flush=True)
            goes_on = False
    return campaign.counts, goes_on


def kill_on_ray(folder: Path, seed: int, until: float) -> Counter[str]:
    """Each process of a run in turn, at least once."""
    from ray_fleet import ROLES, Fleet

    rng, counts, turn = random.Random(seed), Counter[str](), 0
    with Fleet(folder) as fleet:
        while turn < len(ROLES) or time.monotonic() < until:
            role, out = ROLES[turn % len(ROLES)], folder / f"out-{turn}"
            counts[f"kills of a {role}"] += fleet.survive(out, [role], rng)
            found = chaos_job.problems(out, finished=True) + chaos_job.differences(out, fleet.expected)
            assert not found, (str(out), found)
            counts["outputs on Ray that held"] += 1
            turn += 1
    return counts


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description="Kill runs, and compare what comes of it."
    )
    parser.add_argument("--minutes", type=float, default=10, help="how long; 10 if not given")
    parser.add_argument("--kills", type=int, default=0, help="random kills at least, however long it takes")
    parser.add_argument("--small", action="store_true", help="two shards and not six: more kills a minute")
    parser.add_argument("--seed", type=int, default=None, help="to draw the same moments again")
    parser.add_argument(
        "--record", type=Path, default=None, metavar="FILE", help="JSON to write the counts to"
    )
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    for stop in (signal.SIGINT, signal.SIGTERM):  # also where a shell started it in the background
        signal.signal(stop, signal.default_int_handler)
    folder, began = Path(tempfile.mkdtemp(prefix="chaos-")), time.monotonic()
    quick, on_ray = folder / "quick", folder / "ray"
    quick.mkdir()
    on_ray.mkdir()
    counts, goes_on = kill_quick_runs(
        quick, seed, began + _QUICK * 60 * arguments.minutes, arguments.kills, small=arguments.small
    )
    if goes_on:
        counts += kill_on_ray(on_ray, seed, began + 60 * arguments.minutes)
    shutil.rmtree(folder)
    for name, n in counts.items():
        print(f"{n:>8,}  {name}")
    if arguments.record:
        result = harness.card("chaos") | {
            "command": " ".join(["scripts/chaos", *(part for part in sys.argv[1:] if "/" not in part)]),
            "seed": seed,
            "wall_s": round(time.monotonic() - began, 1),
            "counts": dict(counts),
            "lost, doubled or differing rows": 0,  # or an assertion would have ended it
        }
        arguments.record.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
