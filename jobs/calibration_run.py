"""`claimscore calibrate` from files to files: loads the judge, has the claims judged, writes the card.

The judge runs in this process, on the device of the config: a few hundred claims need no cluster.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from claimscore.jobs import calibration, calibration_files, calibration_scores, label_sheet
from claimscore.jobs.actors import JudgeProxy
from claimscore.jobs.calibrate import Goal
from claimscore.jobs.config import Config
from claimscore.jobs.errors import InputError, OutputError
from claimscore.jobs.pipeline import Judge as JudgeProtocol


def load_judge(config: Config) -> JudgeProtocol:
    """The judge of a deployment, loaded into this process."""
    from claimscore.jobs.judge import Judge  # noqa: PLC0415 - torch

    judge = Judge(
        config.card,
        budget_tokens=config.judge.budget_tokens,
        dtype=config.judge.dtype,
        device=config.judge.device,
    )
    return JudgeProxy(judge.probabilities, config.card.model)


def run(
    config: Config,
    labelled: str,
    *,
    goals: dict[str, float],
    combine: bool = False,
    to: str | None = None,
    force: bool = False,
    tick: Callable[[int, int], None] = lambda *_: None,
    judge: JudgeProtocol | None = None,
) -> dict[str, Any]:
    """Calibrate a deployment's judge on a labelled file.

    Args:
        config: the deployment; its card is the one that is fitted.
        labelled: a file as `calibration_files.read_labelled` takes it, or a sheet (.csv) of `claimscore label`.
        goals: at most one of precision, recall, cost; none: balanced accuracy.
        combine: fit a combiner too; without, the card's own is used, if it has one.
        to: the card to write; None: the config's own where `force` is on, else none.
        force: overwrite.
        tick: told (claims judged, of all).
        judge: None: the config's.

    Returns:
        calibration.calibrate_claims, with the file's counts and `written`, the card's path or None.

    Raises:
        ClaimscoreError: nothing could be fitted, or the card cannot be written; nothing is judged in vain
            where the card is there and `force` is off.
    """
    if to and Path(to).exists() and not force:
        raise OutputError(
            f"{to}: is there already, expected a new file; give --to another, or --force to overwrite it"
        )
    found = _read(labelled)
    before, scored = config, _scored(found.rows, judge or load_judge(config), config, tick)
    if combine:
        scored, config = calibration.combined(scored, config)
    (name, value), *_ = [*goals.items(), ("balanced", 0.0)]
    document = calibration.calibrate_claims(scored, config, Goal(name, value), before=before)  # type: ignore[arg-type]
    document |= {"left_out": _left_out(document["left_out"], found)}
    document |= {"labelled": os.path.basename(labelled), "n_rows": found.n_rows, "written": None}  # noqa: PTH119 - may be a URI
    if (to or force) and document["entailment"]["reached"]:
        document["written"] = _write(document, config, to, force=force)
    return document


def _scored(
    rows: pa.Table, judge: JudgeProtocol, config: Config, tick: Callable[[int, int], None]
) -> calibration_scores.Scored:
    """The scores of the labelled claims; what nobody could label is not worth the judge's time."""
    worth = rows.filter(rows.column("supported").is_valid())
    done = 0

    def told(n: int) -> None:
        nonlocal done
        done += n
        tick(done, worth.num_rows)

    return calibration_scores.score(worth, judge, config, told)


def _left_out(unjudged: Mapping[str, int], found: calibration_files.LabelledFile) -> dict[str, int]:
    """Reason -> rows that nothing was fitted on: unusable, without a label, or not to be judged."""
    n_unlabelled = found.rows.column("supported").null_count
    unlabelled = {"unlabelled": n_unlabelled} if n_unlabelled else {}
    return dict(sorted({**unjudged, **found.unusable, **unlabelled}.items()))


def _read(labelled: str) -> calibration_files.LabelledFile:
    """A labelled file, or a sheet of `claimscore label` with its labels in it.

    Raises:
        InputError: it has no row that can be used.
    """
    found = (
        _of_sheet(labelled)
        if labelled.lower().endswith(".csv")
        else calibration_files.read_labelled(labelled)
    )
    if not found.rows.num_rows:
        raise InputError(
            f"{labelled}: no row that can be used of {found.n_rows}, expected labelled claims: {found.unusable}"
        )
    return found


def _of_sheet(path: str) -> calibration_files.LabelledFile:
    sheet = label_sheet.read(path)
    rows = sheet.rows.select(calibration_files.LABELLED.names).cast(calibration_files.LABELLED)
    return calibration_files.LabelledFile(
        rows, sheet.n_rows, {"blank": sheet.n_blank} if sheet.n_blank else {}
    )


def _write(document: dict[str, Any], config: Config, to: str | None, *, force: bool) -> str:
    goal = document["goal"]
    target = "" if goal["kind"] == "balanced" else f" {goal['value']:g}"
    accuracy = document["figures"]["fitted"]["balanced_accuracy"]
    on: str = (
        f"entailment: {document['n_fitted_on']} of {document['n_used']} labelled claims of {document['labelled']} "
        f"({datetime.now(UTC).date()}), goal {goal['kind']}{target}; on the other {document['n_reported_on']} balanced "
        f"accuracy {accuracy['value']:.3f} ({accuracy['low']:.3f} to {accuracy['high']:.3f})"
    )
    changes: dict[str, Any] = {
        "entailment": document["entailment"]["threshold"],
        "temperature": document["temperature"],
        "calibrated_on": on,
    }
    if config.card.combiner:
        changes["combiner"] = dataclasses.asdict(config.card.combiner)
    contradiction = document["contradiction"]
    if contradiction["reached"]:
        changes["contradiction"] = contradiction["threshold"]
        changes["calibrated_on"] += (
            f"; contradiction: {contradiction['n_contradicted']} claims labelled contradicted"
        )
    card = str(Path(config.path).absolute().parent / config.judge.card)
    return calibration_files.write_card(card, to, changes, f"claimscore calibrate, {on}", force=force)
