"""Kills without end: whole runs killed at every boundary and at random moments, and what the run after them makes.

Every output must equal that of a run that nothing interrupted, from the same start. With an LLM that drifts it cannot
equal it; then the tables must belong together. Raises AssertionError at the first output that does not.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

import chaos_job
from kill_server import KILLED, KillServer

DRIFTING = 0.25
"""Share of the chains whose LLM says something else in every process."""


class Campaign(AbstractContextManager["Campaign"]):
    """A deployment, a server that forks its runs, and the outputs to compare with.

    Attributes:
        counts: kills, runs that ended by themselves, rows and tables compared.

    Args:
        folder: an empty folder; outputs are left there when something does not hold.
        seed: of the moments and scenarios; the machine decides how far a run gets until then.
        small: see chaos_job.write_deployment.
    """

    def __init__(self, folder: Path, seed: int, *, small: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._folder, self._rng = folder, random.Random(seed)
        self._server = KillServer(folder)
        self._scenarios = chaos_job.write_deployment(folder, small=small)
        self._expected: dict[str, dict[str, Any]] = {}
        self._seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._server.__enter__()
        for name, scenario in self._scenarios.items():
            if scenario.before is not None:
                out = self._folder / "before" / name
                assert self._server.run(out, scenario.before)["code"] == 0
            out = chaos_job.start(self._before(name), self._folder / "whole" / name)
            reply = self._server.run(out, scenario.settings)
            assert reply["code"] == 0, reply
            assert chaos_job.problems(out, finished=True) == []
            self._expected[name], self._seconds[name] = chaos_job.tables(out), reply["seconds"]
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()

    def random_kills(self, is_enough: Callable[[Counter[str]], bool]) -> None:
        """Chains of runs, each killed at a random moment until one ends by itself, until it is enough."""
        while not is_enough(self.counts):
            name = self._rng.choice(list(self._scenarios))
            drifting = self._rng.random() < DRIFTING
            out = chaos_job.start(self._before(name), self._folder / "out")
            reply: dict[str, Any] = {"code": KILLED}
            n_tries = 0
            while reply["code"] == KILLED:
                n_tries += 1  # a machine that got slower must not kill every run before its end
                moment = self._rng.uniform(0, (1 + n_tries / 20) * self._seconds[name])
                reply = self._server.run(
                    out, self._scenarios[name].settings, after_s=moment, drifting=drifting
                )
                self._count(out, reply, "random kills")
            self._check(name, out, reply, drifting=drifting)

    def boundary_kills(self, *, at_most: int | None = None, name: str = chaos_job.ALL_AT_ONCE) -> None:
        """A run killed at each of its boundaries, or at so many, each of another kind, and the run after it."""
        settings = self._scenarios[name].settings
        out = chaos_job.start(self._before(name), self._folder / "out")
        boundaries = self._server.run(out, settings, counted=True)["boundaries"]
        places = list(range(len(boundaries)))
        if at_most is not None:
            self._rng.shuffle(places)
            places = list({_plain(boundaries[place]): place for place in places}.values())[:at_most]
        for place in places:
            out = chaos_job.start(self._before(name), self._folder / "out")
            reply = self._server.run(out, settings, at=place)
            assert reply["code"] == KILLED, (boundaries[place], reply)
            self._count(out, reply, "boundary kills")
            self._check(name, out, self._server.run(out, settings), drifting=False)
        self.counts["boundaries"] += len(places)
        self.counts["kinds of boundary"] = len({_plain(boundary) for boundary in boundaries})
        self.counts["kinds of boundary killed at"] = len({_plain(boundaries[place]) for place in places})

    def _before(self, name: str) -> Path | None:
        return self._folder / "before" / name if self._scenarios[name].before is not None else None

    def _count(self, out: Path, reply: dict[str, Any], what: str) -> None:
        """Account for a run that was to be killed, and look at what it left."""
        if reply["code"] != KILLED:
            self.counts["runs that ended first"] += 1
            return
        self.counts[what] += 1
        self.counts["kills that left a half-written file in tmp"] += any((out / "tmp").glob("*"))
        found = chaos_job.problems(out, finished=False)
        assert not found, (str(out), found)

    def _check(self, name: str, out: Path, reply: dict[str, Any], *, drifting: bool) -> None:
        """The output of a run that ended by itself, after the kills before it."""
        assert (reply["code"], reply.get("exit_code")) == (0, 0), (name, str(out), reply)
        found = chaos_job.problems(out, finished=True)
        expected = self._expected[name]
        if not drifting:
            found += chaos_job.differences(out, expected)
            self.counts["tables compared"] += len(expected)
            self.counts["rows compared"] += sum(table.num_rows for table in expected.values())
        again = self._server.run(out, self._scenarios[name].settings, drifting=drifting)
        found += [f"the run after it makes {again.get('made')}"] if again.get("made") else []
        assert not found, (name, str(out), found)
        self.counts["outputs that held"] += 1


def _plain(boundary: str) -> str:
    """The kind of a boundary: tables of a shard are alike, and so are their manifests."""
    moment, _, key = boundary.partition(": ")
    if key.startswith("manifest of"):
        return f"{moment}: manifest"
    return f"{moment}: {key if key.endswith('.json') or key in {'lock', 'samples'} else 'table'}"
