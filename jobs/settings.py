"""The settings that decide tables, by the part of a manifest that they are, and what of them changed, in words.

A manifest holds fingerprints: two that differ say that something changed, and not what. So the settings behind each
are kept once an output, in state/settings.json, and told by key and value where days, sides or runs differ. What is not
kept there (days of an earlier version) is told by its section alone. No freshness hangs on that file.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from claimscore.jobs.config import Config, fingerprint, hashed_fields
from claimscore.jobs.errors import one_line
from claimscore.jobs.store import Store
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.uri import shown

THRESHOLDS = "thresholds of the judge card"
"""The part of the verdicts, and of no series, that the thresholds in force are. Older than `[verdicts]`' say in them: another
name would make every verdict stale."""
THRESHOLDS_SHOWN = "thresholds (judge card or [verdicts])"
"""What people read in its place."""
VERSION = "version of the "
"""How the parts begin that are numbers and no fingerprints."""

KEPT = "state/settings.json"
MAX_CHARS = 40
"""Of a value that is told."""
MAX_KEYS = 4
"""Of a section that are told one by one."""

Known = Mapping[str, Mapping[str, Any]]
"""Fingerprint -> key -> value."""

_KEYS = {
    "checker card": ("labels", "max_pair_tokens"),
    "judge card": ("labels", "max_pair_tokens"),
    THRESHOLDS: ("entailment", "contradiction", "combiner"),
}
"""Parts that are lists, and what stands in them."""


def settings_of(config: Config) -> dict[str, Any]:
    """Part of a manifest -> the section, card or list whose fingerprint it is."""
    thresholds, card, checker = Thresholds.of(config), config.card, config.checker_card
    sections = ("read", "segment", "citations", "decompose", "evidence", "judge", "triage", "referee")
    return {f"[{name}]": getattr(config, name) for name in sections} | {
        "checker card": [list(checker.labels), checker.max_pair_tokens],
        "judge card": [list(card.labels), card.max_pair_tokens],
        # As they are in force, whoever gives them: a threshold that moves from the card to the config decides as before.
        "[verdicts]": dataclasses.replace(config.verdicts, entailment=None, contradiction=None),
        THRESHOLDS: [thresholds.entailment, thresholds.contradiction, thresholds.combiner],
    }


def by_fingerprint(config: Config) -> Known:
    """The settings of a deployment, key by key; URIs without their keys."""
    found = {}
    for name, section in settings_of(config).items():
        fields = _without_keys(hashed_fields(section))
        found[fingerprint(section)] = dict(zip(_KEYS[name], fields, strict=True)) if name in _KEYS else fields
    return found


def keep(store: Store, config: Config) -> None:
    """Keep the settings of a deployment beside those of earlier runs."""
    kept, mine = known(store), by_fingerprint(config)
    if not mine.keys() <= kept.keys():
        store.root.put(KEPT, (json.dumps({**mine, **kept}, indent=1, sort_keys=True) + "\n").encode())


def known(store: Store) -> Known:
    """All that runs of this output kept; nothing where there is no such file, or none of ours."""
    try:
        return checked(json.loads(store.root.get(KEPT) or b"{}"))
    except (ValueError, RecursionError):
        return {}


def checked(found: Any) -> Known:
    """`found` where it is what `keep` wrote, else nothing: it only gives words."""
    is_ours = isinstance(found, dict) and all(isinstance(value, dict) for value in found.values())
    return found if is_ours else {}


def thresholds(parts: Mapping[str, str], kept: Known) -> dict[str, Any] | None:
    """The thresholds in force of verdicts made from these parts: entailment, contradiction, combiner; None: not known.

    Verdicts of an earlier version are known where it gave `[verdicts]` none: else that part held them too, and is not kept.
    """
    found = kept.get(parts.get(THRESHOLDS, ""), {})
    is_known = parts.get("[verdicts]") in kept and found.keys() == set(_KEYS[THRESHOLDS])
    # The file lies where others may write: what no run of ours can have kept must end no report.
    is_ours = all(
        type(found.get(key)) in (float, int) and math.isfinite(found[key])
        for key in ("entailment", "contradiction")
    )
    return dict(found) if is_known and is_ours else None


def changes(part: str, before: str | None, now: str | None, kept: Known) -> list[str]:
    """What of a part changed, in words: `[verdicts] rival_margin 1.5 -> 2`; the part alone where no more is known.

    Args:
        part: its name in a manifest, or `version of the <table>`.
        before: its fingerprint (or version) there; None: it was no part.
        now: the same, of what it is held against.
        kept: of the output, or of the files, that both come from.
    """
    name = THRESHOLDS_SHOWN if part == THRESHOLDS else _words(part)
    if before is None or now is None:
        return [name]
    if part.startswith(VERSION):
        return [f"{name} {_words(before)} -> {_words(now)}"]
    old, new = kept.get(before, {}), kept.get(now, {})
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    if not (old and new and keys):
        return [name]
    told = [f"{_key(part, key)} {_change(old, new, key)}" for key in keys[:MAX_KEYS]]
    return told + ([f"{name} {len(keys) - MAX_KEYS} keys more"] if len(keys) > MAX_KEYS else [])


def _key(part: str, key: str) -> str:
    if part == THRESHOLDS:
        return (
            f"{key} threshold"
            if key in ("entailment", "contradiction")
            else f"{_words(key)} of the judge card"
        )
    return f"{_words(part)} {_words(key)}"


def _change(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> str:
    one, other = (_words(side[key]) if key in side else "unknown" for side in (old, new))
    return f"{one} -> {other}" if one != other else "changed"


def _words(value: Any) -> str:
    """A value in one line of bounded length."""
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    text = one_line(text) or "empty"
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"


def _without_keys(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {key: _without_keys(item) for key, item in value.items()}
    return [_without_keys(item) for item in value] if isinstance(value, list) else value
