"""Commands about trust: calibrate, label, canary, doctor. Heavy imports stand inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import EXIT_UNFINISHED
from claimscore.jobs.options import as_day, config_argument, emit, json_option, quiet_option, sets_option

_share = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@config_argument
@click.argument("labelled", metavar="LABELLED")
@click.option("--precision", type=_share, help="Goal: at least this share of the flags is right.")
@click.option("--recall", type=_share, help="Goal: at least this share of the unsupported claims is flagged.")
@click.option(
    "--cost",
    type=click.FloatRange(0, min_open=True),
    help="Goal: an unsupported claim that passes costs so many false alarms.",
)
@click.option(
    "--combine",
    is_flag=True,
    help="Fit a combiner of the judge's probabilities, shared words and missing names too.",
)
@click.option(
    "--to", default=None, metavar="CARD", help="Judge card to write: the config's with what was fitted."
)
@click.option(
    "--force", is_flag=True, help="Overwrite the card that is there; without --to, the config's own."
)
@sets_option
@json_option
@quiet_option
def calibrate(
    config_path: Path, labelled: str, overrides: tuple[str, ...], as_json: bool, quiet: bool, **options: Any
) -> None:
    """Fit the judge's threshold to claims that people labelled, and say how far to trust it.

    LABELLED is Parquet with claim, chunks and supported (0 or 1), or a sheet of `claimscore label`. Half of it is
    fitted on, every figure is of the other half. Without a goal: best balanced accuracy.

    Example: claimscore calibrate configs/demo.toml labelled.parquet --recall 0.9 --to configs/judges/mine.toml
    """
    from claimscore.jobs import calibration_run, calibration_text  # noqa: PLC0415

    goals = {name: options[name] for name in ("precision", "recall", "cost") if options[name] is not None}
    if len(goals) > 1:
        raise click.UsageError(f"--{' excludes --'.join(goals)}: give one goal")
    config = load_config(config_path, overrides)
    with _bar("judging", quiet=quiet or as_json) as tick:
        document = calibration_run.run(
            config,
            labelled,
            goals=goals,
            combine=options["combine"],
            to=options["to"],
            force=options["force"],
            tick=tick,
        )
    if as_json or not quiet:
        emit(document, calibration_text.print_calibration, as_json=as_json)
    if not document["entailment"]["reached"]:
        raise SystemExit(EXIT_UNFINISHED)


@click.command()
@click.argument("config_path", metavar="[CONFIG]", type=click.Path(path_type=Path), required=False)
@click.option("--n", default=100, show_default=True, type=click.IntRange(1), help="Claims to draw.")
@click.option(
    "--to", default=None, metavar="FILE", help="The sheet to write; with --read, the Parquet of the labels."
)
@click.option("--read", "sheet", default=None, metavar="SHEET", help="Read the labels of a sheet back.")
@click.option(
    "--claims",
    default=None,
    metavar="FILE",
    help="With --read: the claims beside the sheet, where it was renamed.",
)
@click.option(
    "--date", callback=as_day, metavar="DAY", help="The night; the newest finished one if not given."
)
@click.option("--series", default=None, help="Judge series; the one that dashboards read if not given.")
@click.option("--seed", default=0, show_default=True, help="Another seed draws other claims.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@sets_option
@json_option
def label(config_path: Path | None, overrides: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Draw the claims of a night that are most worth a label into a sheet, and read the labels back.

    Drawn are claims near the threshold or in doubt more often than others, with weights, so that rates over the labels are
    rates over the night. The labels read back are what `claimscore calibrate` takes.

    Example: claimscore label configs/demo.toml --n 100 --to sheet.csv
    """
    from claimscore.jobs import label_run  # noqa: PLC0415

    if options["sheet"]:
        if config_path or overrides:
            raise click.UsageError("--read excludes CONFIG and --set: the sheet holds all it needs")
        read = label_run.read_sheet(
            options["sheet"], options["to"], options["claims"], force=options["force"]
        )
        emit(read, label_run.print_labels, as_json=as_json)
        return
    if not (config_path and options["to"]):
        raise click.UsageError("give CONFIG and --to SHEET.csv, or --read SHEET.csv")
    config = load_config(config_path, overrides)
    chosen = {name: options[name] for name in ("date", "series", "seed", "force")}
    emit(
        label_run.make_sheet(config, options["n"], options["to"], **chosen),
        label_run.print_sheet,
        as_json=as_json,
    )


@click.command()
@config_argument
@click.option(
    "--date",
    default="today",
    show_default=True,
    callback=as_day,
    metavar="DAY",
    help="The night of the record.",
)
@click.option(
    "--pairs", default=None, metavar="FILE", help="The pairs; canary.jsonl beside CONFIG if not given."
)
@sets_option
@json_option
@quiet_option
def canary(config_path: Path, overrides: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> None:
    """Score the same pairs every night, and name what changed where the judge answers otherwise (exit code 3).

    Example: claimscore canary configs/demo.toml
    """
    from claimscore.jobs import canary_run  # noqa: PLC0415

    config = load_config(config_path, overrides)
    document = canary_run.run(config, options["date"], pairs=options["pairs"])
    drifted = bool(document["against"] and document["against"]["drifted"])
    if as_json or drifted or not quiet:
        emit(document, canary_run.print_canary, as_json=as_json)
    if drifted or document["agreement"]["no_score"]:
        raise SystemExit(EXIT_UNFINISHED)


@click.command()
@click.argument("config_path", metavar="[CONFIG]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--date",
    default="yesterday",
    show_default=True,
    callback=as_day,
    metavar="DAY",
    help="Whose log is looked for.",
)
@click.option(
    "--limit",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1),
    help="Seconds that one check may take.",
)
@sets_option
@json_option
def doctor(
    config_path: Path | None, overrides: tuple[str, ...], date: str, limit: float, *, as_json: bool
) -> None:
    """Look whether a run would go through: packages, GPU, Ray, models, disk, log; each with its fix (exit code 1).

    Example: claimscore doctor configs/demo.toml --date 2026-11-28
    """
    from claimscore.jobs import doctor as checks  # noqa: PLC0415

    found = []
    for finding in checks.examine(config_path, overrides, date, limit_s=limit):
        found.append(finding)
        if not as_json:
            checks.print_finding(finding)
    document = checks.as_document(found)
    if as_json:
        emit(document, None, as_json=True)
    if not document["ready"]:
        raise SystemExit(1)


@contextmanager
def _bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Tells (done, of) on stderr: a line that is written over on a terminal, nothing elsewhere."""
    import sys  # noqa: PLC0415
    import time  # noqa: PLC0415

    began, shown = time.monotonic(), sys.stderr.isatty() and not quiet

    def tick(done: int, total: int) -> None:
        if shown:
            seconds = time.monotonic() - began
            left = seconds / max(1, done) * (total - done)
            click.echo(f"\r{title}: {done:,} of {total:,} claims, {left:.0f} s left   ", err=True, nl=False)

    try:
        yield tick
    finally:
        if shown:
            click.echo(err=True)
