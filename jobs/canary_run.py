"""`claimscore canary`: scores the canary pairs with the deployment's judge, keeps the record, compares it with the night before.

Records lie in OUT/state/canary/<series>/<date>.json. The night before is the newest earlier record of the same series; a
series without one is compared with the newest of any, so that a changed judge is named too. The judge runs in this
process: run it where the nightly judge runs, or its device is another.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from claimscore.jobs import canary
from claimscore.jobs.actors import JudgeProxy
from claimscore.jobs.checkpoint import find_folder, model_fingerprint
from claimscore.jobs.config import Config
from claimscore.jobs.layout import is_day
from claimscore.jobs.pipeline import Judge as JudgeProtocol
from claimscore.jobs.plan import Weights, series_of
from claimscore.jobs.progress import printable, table
from claimscore.jobs.store import Store
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.windows import N_SPECIAL_TOKENS

FOLDER = "state/canary"
_VERSIONED = ("claimscore", "torch", "tokenizers", "numpy", "triton")
_SHOWN = 20


def run(
    config: Config,
    date: str,
    *,
    pairs: str | None = None,
    judge: JudgeProtocol | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Score the canary pairs, keep the record of the night, and compare.

    Args:
        config: the deployment.
        date: the night, YYYY-MM-DD; a record of it that is there is replaced.
        pairs: JSON Lines; None: `canary.jsonl` beside the config.
        judge: None: the config's, loaded into this process.
        environment: what it runs in; None: asked here.

    Returns:
        The record's path, agreement with people, `against` (canary.compare with the night before, None on the first
        night), and `since_first` (the largest difference to the series' first record).

    Raises:
        ClaimscoreError: no pairs, no judge, or an output root that cannot be written.
    """
    found = canary.read_pairs(
        Path(pairs) if pairs else Path(config.path).absolute().with_name("canary.jsonl")
    )
    weights = model_fingerprint(config.card.model)
    series = series_of(config, Weights(decomposer="", checker="", judge=weights, generator=""))
    if judge is None:
        judge, environment = _loaded(config, weights)
    thresholds = Thresholds.of(config)
    record = _record(date, series, environment or {}, thresholds)
    record["pairs"] = canary.score(
        found, judge, min(config.card.max_pair_tokens, config.evidence.max_pair_tokens), N_SPECIAL_TOKENS
    )
    store = Store(config.store.out, config.store)
    earlier = _earlier(store, date)
    key = f"{FOLDER}/{series}/{date}.json"
    store.root.put(key, (json.dumps(record, indent=1) + "\n").encode())
    return {
        "date": date,
        "series": series,
        "record": store.root.shown(key),
        "n_pairs": len(found),
        "environment": record["environment"],
        "agreement": canary.agreement(record["pairs"], thresholds),
        **_against(earlier, record, thresholds),
    }


def _record(date: str, series: str, environment: Mapping[str, str], thresholds: Thresholds) -> dict[str, Any]:
    """What is kept of a night, beside its pairs."""
    return {
        "date": date,
        "series": series,
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": dict(environment),
        "thresholds": {"entailment": thresholds.entailment, "contradiction": thresholds.contradiction},
    }


def _against(
    earlier: list[dict[str, Any]], record: Mapping[str, Any], thresholds: Thresholds
) -> dict[str, Any]:
    """The night against the one before it, of its own series where there is one, and against its series' first."""
    mine = [r for r in earlier if r["series"] == record["series"]]
    before = (mine or earlier)[-1] if earlier else None
    first = canary.compare(mine[0], record, thresholds) if len(mine) > 1 else None
    return {
        "against": canary.compare(before, record, thresholds) if before else None,
        "since_first": _since_first(first) if first else None,
    }


def _loaded(config: Config, weights: str) -> tuple[JudgeProtocol, dict[str, str]]:
    """The judge and everything around it that may change its scores."""
    from claimscore.jobs.judge import Judge  # noqa: PLC0415 - torch

    settings = config.judge
    judge = Judge(
        config.card, budget_tokens=settings.budget_tokens, dtype=settings.dtype, device=settings.device
    )
    from claimscore.kernels import dispatch  # noqa: PLC0415 - torch

    environment = {
        "judge": config.card.name,
        "weights and config": weights,
        "tokenizer": hashlib.sha256(
            (find_folder(config.card.model) / "tokenizer.json").read_bytes()
        ).hexdigest()[:16],
        "dtype": judge.dtype,
        "device": judge.device_name,
        "kernels": str(dispatch.last_backend()),  # the self-test has run
        "python": platform.python_version(),
    }
    for name in _VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            environment[name] = importlib.metadata.version(name)
    return JudgeProxy(judge.probabilities, config.card.model), environment


def _earlier(store: Store, date: str) -> list[dict[str, Any]]:
    """The records of nights before `date`, oldest first; what is no record of ours is left out."""
    dated = []
    for key in store.root.keys(FOLDER, ".json"):
        series, _, day = key.removeprefix(f"{FOLDER}/").removesuffix(".json").rpartition("/")
        if is_day(day) and day < date:
            dated.append((day, series, key))
    found = []
    for _, _, key in sorted(dated):
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(store.root.get(key) or b"")
            if isinstance(record, dict) and isinstance(record.get("pairs"), dict):
                found.append(record)
    return found


def _since_first(compared: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("before", "n_compared", "max_difference", "max_pair", "drifted")
    return {name: compared[name] for name in kept} | {"n_flipped": len(compared["flipped"])}


def print_canary(document: dict[str, Any]) -> None:
    """What moved since the night before, and what is different around the judge."""
    console = Console()
    right = document["agreement"]
    _say(
        console,
        f"{document['date']}, {document['series']}: {document['n_pairs']} pairs, {right['as_a_person']} decided as a person "
        f"would, {right['otherwise']} otherwise, {right['no_score']} without a score; kept as {document['record']}",
    )
    against = document["against"]
    if against is None:
        _say(console, "the first record: there is nothing to compare it with")
        return
    _print_against(against, console)
    first = document["since_first"]
    if first and first["drifted"]:
        _say(
            console,
            f"since the first record, {first['before']['date']}: {first['max_difference']:.4f} ({first['max_pair']})",
        )


def _print_against(against: dict[str, Any], console: Console) -> None:
    night = f"{against['before']['date']} ({against['before']['series']})"
    for change in against["changed"]:
        _say(
            console,
            f"changed since {night}: {change['what']}: {change['before'] or '-'} -> {change['now'] or '-'}",
        )
    if against["n_compared"]:
        largest = (
            f"largest difference of a probability {against['max_difference']:.4f} ({against['max_pair']})"
        )
    else:
        largest = "no pair in common"
    _say(
        console,
        f"{'DRIFT' if against['drifted'] else 'no drift'} since {night}: {against['n_compared']} pairs compared, {largest}, "
        f"{against['rounding']:g} is rounding; {len(against['moved'])} moved by more, {len(against['flipped'])} decided "
        f"otherwise, {len(against['retokenized'])} with other tokens",
    )
    told = against["moved"] or against["flipped"]
    rows = [
        [
            row["id"],
            _probabilities(row["before"]),
            _probabilities(row["now"]),
            row["decision_before"],
            row["decision_now"],
        ]
        for row in told[:_SHOWN]
    ]
    if rows:
        columns = ["pair", "before e/n/c", "now e/n/c", "meant", "means"]
        table(f"Pairs that moved: {len(told)}, largest first", columns, rows, console=console)


def _probabilities(p: list[float] | None) -> str:
    return "none" if p is None else " / ".join(f"{x:.3f}" for x in p)


def _say(console: Console, text: str) -> None:
    console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
