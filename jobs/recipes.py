"""How the tables of a day were made, and which days of a series were made otherwise than another.

A rate moves when what makes it changes: a threshold, the LLM that finds the claims, a version of this program. It must show
as that, and not as answers that got better or worse; so days that were made otherwise are not compared with one another.
Told by the manifests of one shard a day: a run makes a whole day alike. What a table was made from, its log and the
tables before it, is no part of how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from claimscore.jobs.layout import TableFile
from claimscore.jobs.plan import THRESHOLDS, THRESHOLDS_SHOWN
from claimscore.jobs.store import Store

VERSION = "stage version"
_NOT_HOW = frozenset(
    {"log", "log content", "repeated rows", "claims", "scores", "verdicts", "answers", "[policy]"}
)
"""Parts of a manifest (plan.table_parts) that name what a table was made from; and the policy, which moves actions and no rate."""


def made_otherwise(store: Store, series: str, days: Iterable[str], than: str) -> dict[str, list[str]]:
    """Day -> what differs in how it and the day `than` were made, as words for people, sorted.

    Args:
        store: where the tables lie.
        series: of the judge.
        days: YYYY-MM-DD each.
        than: the day that they are held against.

    Returns:
        Only the days that differ. A day of which no answers are held, as where old tables were deleted and their
        metrics kept, cannot be told and is not among them; without answers of `than` no day is.
    """
    now = recipe(store, series, than)
    found = {day: differing(now, recipe(store, series, day)) for day in days}
    return {day: names for day, names in found.items() if names}


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """What differs between two recipes, sorted; nothing where one is not known, and so empty."""
    if not one or not other:
        return []
    names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    return sorted(THRESHOLDS_SHOWN if name == THRESHOLDS else name for name in names)


def recipe(store: Store, series: str, day: str) -> dict[str, str]:
    """What decided how a day was made: section or weights, or the version of a stage -> its fingerprint; empty without answers."""
    shards = store.files("answers", date=day, series=series)
    if not shards:
        return {}
    shard = shards[0].shard_id
    parts = {
        "claims": _parts(store, TableFile("claims", day, shard)),
        **{
            table: _parts(store, TableFile(table, day, shard, series))
            for table in ("scores", "verdicts", "answers")
        },
        "metrics": _parts(store, TableFile("metrics", day, "metrics", series)),
    }
    if "referee" in parts["verdicts"]:
        parts["referee"] = _parts(store, TableFile("referee", day, shard, series))
        del parts["verdicts"]["referee"]
    return {
        f"version of the {table}" if name == VERSION else name: value
        for table, of_table in parts.items()
        for name, value in of_table.items()
        if name not in _NOT_HOW
    }


def _parts(store: Store, file: TableFile) -> dict[str, str]:
    manifest = store.manifest(file)
    return dict(manifest["parts"]) if manifest else {}
