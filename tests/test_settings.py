"""What of a config decides tables: kept once an output by fingerprint, told by key and value, and never with a key to a storage."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jobs_fixture
import pytest

from claimscore.jobs import settings
from claimscore.jobs.config import fingerprint
from claimscore.jobs.plan import Weights, table_parts
from claimscore.jobs.store import Store


def test_every_section_of_a_manifest_is_kept(tmp_path: Path):
    """Each part that is named by a section or card has settings; a second deployment's stand beside the first's."""
    one = jobs_fixture.make_config(tmp_path)
    other = jobs_fixture.make_config(tmp_path, "verdicts.entailment=0.85")
    store = Store(one.store.out, one.store)
    for config in (one, other, one):
        settings.keep(store, config)

    kept = settings.known(store)
    for config in (one, other):
        parts = table_parts(config, Weights.of(config), "s", {}, "none")
        named = [
            (name, value)
            for of in parts.values()
            for name, value in of.items()
            if "[" in name or "card" in name
        ]
        missing = {name for name, value in named if value not in kept}
        assert missing == {"[policy]"}
    before, now = (fingerprint(settings.settings_of(config)[settings.THRESHOLDS]) for config in (one, other))
    assert settings.changes(settings.THRESHOLDS, before, now, kept) == ["entailment threshold 0.8 -> 0.85"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"a": 1.5}, {"a": 2.0}, ["[x] a 1.5 -> 2.0"]),
        ({"a": None, "b": 1}, {"a": "", "b": 1}, ["[x] a none -> empty"]),
        ({"a": True}, {"a": True, "new": ["p"]}, ['[x] new unknown -> ["p"]']),
        ({"a": "x" * 99}, {"a": "y\x1b[31m\nz"}, [f"[x] a {'x' * 40}… -> y [31m z"]),
        ({"a": "x" * 99}, {"a": "x" * 98}, ["[x] a changed"]),
        ({"a": 1}, {"a": 1}, ["[x]"]),  # equal but for what is never kept
        ({}, {"a": 1}, ["[x]"]),
        (
            dict.fromkeys("abcdef", 1),
            dict.fromkeys("abcdef", 2),
            [*(f"[x] {key} 1 -> 2" for key in "abcd"), "[x] 2 keys more"],
        ),
    ],
)
def test_a_change_is_told_by_key_and_both_values(old: dict, new: dict, words: list[str]):
    """In one line of bounded length each."""
    assert settings.changes("[x]", "1", "2", {"1": old, "2": new}) == words


def test_names_that_no_run_of_ours_wrote_are_one_short_line():
    """An evaluation's file, which brings its own, may come from anywhere: a terminal must not obey it."""
    one, other = ({"k\x1b[31m\n" + "x" * 99: value} for value in (1, 2))

    told = settings.changes("[x\x1b[2J\n]", "1", "2", {"1": one, "2": other})
    told += settings.changes(f"{settings.VERSION}a\n", "1\x1b[2J", "2" * 99, {})
    told += settings.changes("p\x07" * 99, None, "2", {})

    assert all(line.isprintable() and len(line) < 160 for line in told)


@pytest.mark.parametrize("wrong", ["x", None, float("nan"), float("inf"), True, [0.5]])
def test_thresholds_that_are_no_numbers_are_not_known(wrong: object):
    """They are formatted, and sent as JSON."""
    parts = {settings.THRESHOLDS: "1", "[verdicts]": "2"}
    kept = {"entailment": 0.5, "contradiction": 0.5, "combiner": None}

    assert settings.thresholds(parts, {"1": kept, "2": {}}) == kept
    assert settings.thresholds(parts, {"1": {**kept, "contradiction": wrong}, "2": {}}) is None


def test_a_part_that_was_none_is_named_alone():
    """As a referee that came, and a fingerprint that nobody knows."""
    assert settings.changes("[x]", None, "2", {"2": {"a": 1}}) == ["[x]"]
    assert settings.changes(settings.THRESHOLDS, "1", "2", {}) == [settings.THRESHOLDS_SHOWN]


def test_no_credentials_are_kept(tmp_path: Path):
    """Were a place ever to stand in a section, its user, password and query would not."""
    config = jobs_fixture.make_config(tmp_path)
    secret = "s3://key:hunter2@bucket/x?token=hunter2"
    config = dataclasses.replace(config, triage=dataclasses.replace(config.triage, topics=(secret,)))
    store = Store(config.store.out, config.store)

    settings.keep(store, config)

    text = (tmp_path / "out" / settings.KEPT).read_text()
    assert "hunter2" not in text
    assert json.loads(text)[fingerprint(config.triage)]["topics"] == ["s3://bucket/x"]
