"""How the tables of a day were made, and which days of a series were made otherwise than another.

A rate moves when what makes it changes: a threshold, the LLM that finds the claims, a version of this program. It must show
as that, and not as answers that got better or worse; so days that were made otherwise are not compared with one another.
Told by the manifests of one shard a day: a run makes a whole day alike. What a table was made from, its log and the
tables before it, is no part of how. Both values of a key that changed are told as far as they are kept (settings.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from claimscore.jobs import settings, trend
from claimscore.jobs.config import Config
from claimscore.jobs.layout import TableFile
from claimscore.jobs.plan import ShardTask, metrics_parts
from claimscore.jobs.settings import THRESHOLDS, VERSION, Known
from claimscore.jobs.store import Store

WEEK_DAYS = 7
"""The days before a day that it should be comparable with: what alert and report look at first."""
_STAGE = "stage version"
_TABLES = ("quarantine", "claims", "scores", "referee", "verdicts", "answers")
_OF_NO_SERIES = ("quarantine", "claims")
_NOT_HOW = frozenset(
    {
        "log",
        "log content",
        "repeated rows",
        "[privacy]",
        "claims",
        "scores",
        "verdicts",
        "answers",
        "[policy]",
        "[metrics]",
    }
)
"""Parts of a manifest (plan.table_parts) that name what a table was made from; and those that move no rate that days
are compared by: the policy, which moves actions, the resampling, which moves intervals, and whether texts are kept."""
_READING = frozenset({"[read]", f"{VERSION}quarantine"})
"""Parts that an evaluation of an earlier version did not write down: they tell two recipes apart where both have them."""

Recipe = Mapping[str, str]
"""Section, card or weights, or `version of the <table>` -> its fingerprint; empty where a day has no answers."""


class Recipes:
    """How the days of a series were made; each day's manifests are read once.

    Args:
        store: where the tables lie.
        series: of the judge.
        more: settings that the output does not keep yet.
    """

    def __init__(self, store: Store, series: str, more: Known | None = None) -> None:
        self._store, self._series = store, series
        self._kept: Known = {**settings.known(store), **(more or {})}
        self._of: dict[str, Recipe] = {}

    def of(self, day: str) -> Recipe:
        """The recipe of a day."""
        if day not in self._of:
            self._of[day] = recipe(self._store, self._series, day)
        return self._of[day]

    def otherwise(self, days: Iterable[str], than: str | Recipe) -> dict[str, list[str]]:
        """Day -> what differs in how it and `than` were made, as words for people, sorted.

        Args:
            days: YYYY-MM-DD each.
            than: the day that they are held against, or its recipe.

        Returns:
            Only the days that differ. A day of which no answers are held, as where old tables were deleted and their
            metrics kept, cannot be told and is not among them; without answers of `than` no day is.
        """
        now = self.of(than) if isinstance(than, str) else than
        found = {day: differing(self.of(day), now, self._kept) for day in days}
        return {day: names for day, names in found.items() if names}

    def borders(self, days: Iterable[str]) -> dict[str, list[str]]:
        """Day -> what differs from the day held before it: where a series began to be made otherwise."""
        found: dict[str, list[str]] = {}
        before: Recipe = {}
        for day in sorted(days):
            now = self.of(day)
            if names := differing(before, now, self._kept):
                found[day] = names
            before = now or before
        return found


def differing(before: Recipe, now: Recipe, kept: Known) -> list[str]:
    """What differs between two recipes, from the one to the other, sorted; nothing where one is not known, and so empty."""
    if not before or not now:
        return []
    held = (before.keys() | now.keys()) - _NOT_HOW  # an evaluation of an earlier version may bring more
    held -= _READING - (before.keys() & now.keys())
    names = [name for name in held if before.get(name) != now.get(name)]
    if not (settings.thresholds(before, kept) and settings.thresholds(now, kept)):
        kept = {key: value for key, value in kept.items() if key != before.get(THRESHOLDS)}
    return sorted(
        words for name in names for words in settings.changes(name, before.get(name), now.get(name), kept)
    )


def recipe(store: Store, series: str, day: str) -> Recipe:
    """What decided how a day was made."""
    shards = store.files("answers", date=day, series=series)
    if not shards:
        return {}
    shard = shards[0].shard_id
    files = {
        table: TableFile(table, day, shard, None if table in _OF_NO_SERIES else series) for table in _TABLES
    }
    files["metrics"] = TableFile("metrics", day, "metrics", series)
    parts = {table: _parts(store, file) for table, file in files.items() if table != "referee"}
    if "referee" in parts["verdicts"]:
        parts["referee"] = _parts(store, files["referee"])
    return _how(parts)


def recipe_now(config: Config, store: Store, task: ShardTask) -> Recipe:
    """What would decide how the day of this shard is made, were it made now."""
    parts = {table: task.parts[table] for table in _TABLES if table in task.parts}
    return _how(parts | {"metrics": metrics_parts(config, store, [])})


def unlike_the_week(
    config: Config, store: Store, task: ShardTask, *, but: Collection[str], current: str | None
) -> dict[str, list[str]]:
    """The stored days of the week before a shard's day that it will not be comparable with -> what differs.

    Args:
        config: the deployment.
        store: where the tables lie.
        task: any shard of the day.
        but: days that are not told of, as they are made anew too.
        current: the series that dashboards read until now: what it alone holds was judged by another judge. None: nobody asks.
    """
    week = {trend.days_before(task.date, k) for k in range(1, WEEK_DAYS + 1)}
    days = sorted(week - {task.date, *but})
    mine = Recipes(store, task.series, settings.by_fingerprint(config))
    found = mine.otherwise(days, recipe_now(config, store, task))
    if current and current != task.series:
        theirs = [past for past in days if not mine.of(past)]
        held = [past for past in theirs if store.files("answers", date=past, series=current)]
        found |= {past: [f"judge series {current} -> {task.series}"] for past in held}
    return found


def unlike_itself(config: Config, store: Store, task: ShardTask) -> list[str]:
    """What will differ in how a shard's day is made from how it is stored; nothing where it is not."""
    mine = Recipes(store, task.series, settings.by_fingerprint(config))
    return mine.otherwise([task.date], recipe_now(config, store, task)).get(task.date, [])


def _how(parts: Mapping[str, Mapping[str, str]]) -> Recipe:
    return {
        f"{VERSION}{table}" if name == _STAGE else name: value
        for table, of_table in parts.items()
        for name, value in of_table.items()
        if name not in _NOT_HOW and not (table == "verdicts" and name == "referee")
    }


def _parts(store: Store, file: TableFile) -> dict[str, str]:
    manifest = store.manifest(file)
    return dict(manifest["parts"]) if manifest else {}
