"""How far a run is: what calls tell, how seldom, and what a person sees of it."""

from __future__ import annotations

import io
import types

import pytest
from rich.console import Console

from claimscore.jobs import actors, progress
from claimscore.jobs.actors import Progress, Told

DATE = "2026-11-28"


def test_a_run_names_its_phase_and_counts_in_it(monkeypatch: pytest.MonkeyPatch):
    """On a terminal of 80 columns a person sees what is done and how much of it, while the first shard is under way."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=screen, force_terminal=True, width=80))
    seen = []
    for counts in (
        {},
        {"loading decomposer_open": 2, "loading checker_open": 1},
        {"decomposer": 7, "decomposer_of": 402, "decomposer_open": 1, "loading judge_open": 1},
        {"decomposer": 402, "decomposer_of": 402, "judge": 1_300, "judge_of": 2_000, "judge_open": 2},
    ):
        screen = io.StringIO()
        with progress.RunProgress(DATE, 4) as shown:
            shown.show({"shards": 0, **counts})
        seen.append(screen.getvalue())

    for text, words in zip(
        seen,
        (
            "the log is read",
            "models load: decomposer, checker",
            "claims are made: 7 of 402 sentences",
            "pairs are judged: 1,300 of 2,000",
        ),
        strict=True,
    ):
        assert words in text
        assert "0/4" in text
    assert "load" not in seen[2]  # another shard's call that waits behind a busy judge
    assert "claims" not in seen[3]


def test_a_line_of_a_log_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Where stderr is no terminal nothing is broken at a width that nobody has."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: 0.0))
    with progress.RunProgress(DATE, 4) as shown:
        shown.say("starting Ray and loading models")
        shown.show({"shards": 1, "judge": 7, "judge_of": 2_000, "judge_open": 1})

    assert capsys.readouterr().err.splitlines() == [
        f"{DATE}: starting Ray and loading models",
        f"{DATE}: 1/4 shards, pairs are judged: 7 of 2,000, 0 s",
    ]


def test_calls_under_way_are_counted_beside_those_that_ended():
    """What is asked and done of one role adds up over shards; a call that failed leaves nothing behind."""
    told = Progress()
    for call, of in (("a", 40), ("b", 10), ("c", 10)):
        told.begin(call, "judge", of, "try 1")
    told.at("a", 12)
    told.end("b", 10)
    told.end("c", 0)  # its model died: another try asks for the ten again
    told.at("c", 5)  # said before it died, heard after

    assert told.read() == {"judge": 22, "judge_of": 50, "judge_open": 1}


def test_a_worker_that_was_killed_leaves_no_call_open():
    """It says no end; of what it sent before, nothing that comes after counts, and other tries are left alone."""
    told = Progress()
    told.begin("a", "judge", 40, "killed")
    told.begin("b", "judge", 10, "other")
    told.at("a", 12)
    told.leave("killed")
    told.at("a", 30)
    told.end("a", 40)
    told.begin("c", "judge", 99, "killed")
    told.end("b", 10)

    assert told.read() == {"judge": 10, "judge_of": 10}


def test_a_call_tells_now_and_then(monkeypatch: pytest.MonkeyPatch):
    """Two messages a second at most, however many pieces are done; each has all of them so far."""
    said, now = [], {"s": 0.0}
    monkeypatch.setattr(actors.time, "monotonic", lambda: now["s"])
    at = types.SimpleNamespace(remote=lambda call, n: said.append((call, n)))
    tell = Told(types.SimpleNamespace(at=at), "a")
    for _ in range(100):
        tell(1)
        now["s"] += 0.02

    assert said == [("a", 1), ("a", 26), ("a", 51), ("a", 76)]
