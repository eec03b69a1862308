"""`claimscore doctor`: whether a run would go through, in plain words, with the fix for what would stop it.

Every check answers within its time or says that it did not, and one that breaks is a finding like any other. The checks
themselves are doctor_checks.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from claimscore.jobs import doctor_checks as checks
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_config
from claimscore.jobs.doctor_checks import FAIL, OK, WARN, Finding
from claimscore.jobs.errors import ClaimscoreError, one_line
from claimscore.jobs.progress import printable

LIMIT_S = 60.0


def examine(
    path: Path | None, overrides: tuple[str, ...], date: str, *, limit_s: float = LIMIT_S
) -> Iterator[Finding]:
    """Every check in turn, each as soon as it is done.

    Args:
        path: the deployment; None: the machine alone.
        overrides: as `load_config`.
        date: the day whose log is looked for.
        limit_s: seconds that one check may take.
    """
    yield _bounded("python and packages", limit_s, checks.packages)
    yield _bounded("memory", limit_s, checks.memory)
    config: Config | None = None
    if path is not None:
        try:
            config = load_config(path, overrides)
            yield Finding("config", OK, f"{path} is valid; judge {config.card.name!r}")
        except ClaimscoreError as err:
            yield checks.failed("config", err)
    yield _bounded("GPU", limit_s, lambda: checks.gpu(config, limit_s))
    yield _bounded(
        "Ray", limit_s, lambda: checks.ray_starts(config.cluster.address if config else "", limit_s)
    )
    if config is None:
        return
    for check, card in (("judge", config.card), ("checker", config.checker_card)):
        yield _bounded(check, limit_s, partial(checks.judge, check, card))
    llms = [("decomposer", config.decompose.model)]
    if config.samples.enabled and config.samples.model:
        llms.append(("generator", config.samples.model))
    if config.referee_card:
        llms.append(("referee", config.referee_card.model))
    for check, model in llms:
        yield _bounded(check, limit_s, partial(checks.llm, check, model))
    yield _bounded("thresholds", limit_s, lambda: checks.thresholds(config))
    yield _bounded("output", limit_s, lambda: checks.output(config))
    yield _bounded("log", limit_s, lambda: checks.log(config, date))


def _bounded(check: str, limit_s: float, ask: Callable[[], Finding]) -> Finding:
    """The finding of `ask`, or that it took too long, or what it raised."""
    box: list[Finding] = []

    def work() -> None:
        try:
            box.append(ask())
        except ClaimscoreError as err:
            box.append(checks.failed(check, err))
        except Exception as err:  # noqa: BLE001 - a check that breaks is a finding, and the others go on
            box.append(Finding(check, FAIL, one_line(f"{type(err).__name__}: {err}"), "report this"))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit_s)
    found = list(box)
    return (
        found[0]
        if found
        else Finding(check, WARN, f"no answer within {limit_s:g} s", "ask again with a longer --limit")
    )


def print_finding(finding: Finding) -> None:
    """One check as it ends: a word, what was found, and the fix on a line of its own."""
    console = Console()
    style = {OK: "green", WARN: "yellow", FAIL: "red"}[finding.status]
    console.print(f"[{style}]{finding.status:<5}[/]", end="", highlight=False)
    console.print(
        printable(f"{finding.check}: {finding.found}"), markup=False, highlight=False, soft_wrap=True
    )
    if finding.fix:
        console.print(printable(f"     fix: {finding.fix}"), markup=False, highlight=False, soft_wrap=True)


def as_document(findings: list[Finding]) -> dict[str, Any]:
    """All findings, and whether a run would be stopped."""
    return {"ready": all(f.status != FAIL for f in findings), "findings": [asdict(f) for f in findings]}
