"""The commands around golden sets: evaluate one, replay a night under a new prompt, promote its flagged answers.

Registered in `cli.py`. Heavy imports stand inside the commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import EXIT_UNFINISHED, one_line
from claimscore.jobs.options import config_argument, date_option, emit, json_option, quiet_option, sets_option

to_option = click.option(
    "--to", default=None, metavar="FILE", help="File to write instead of tables on stdout."
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json"]),
    default=None,
    help="By the ending of FILE if not given, else html.",
)


@click.command()
@config_argument
@click.argument("gold", metavar="GOLD")
@click.option(
    "--by",
    type=click.Choice(["prompt_version", "model", "topic"]),
    default="prompt_version",
    show_default=True,
    help="What the groups have in common.",
)
@click.option(
    "--out", default=None, metavar="DIR", help="Output root; evaluate/NAME below [store] out if not given."
)
@to_option
@format_option
@sets_option
@json_option
@quiet_option
def evaluate(
    config_path: Path, gold: str, overrides: tuple[str, ...], to: str | None, **options: Any
) -> None:
    """Score a golden set: its rates on answerable, unanswerable and conflicting items apart.

    GOLD is a log (Parquet file, folder or glob) with gold columns: answerable, gold_chunk_ids, reference_answer,
    human_label and, where evidence contradicts itself, conflicting.

    Example: claimscore evaluate configs/demo.toml golden.parquet --to evaluation.json
    """
    from claimscore.jobs import evaluate as evaluating  # noqa: PLC0415
    from claimscore.jobs import golden_words  # noqa: PLC0415

    _check_form(to, options["form"])
    config = load_config(config_path, overrides)
    document = evaluating.evaluate(
        config, gold, by=options["by"], out=options["out"], quiet=options["quiet"] or options["as_json"]
    )
    _tell(document, golden_words.sheet_of_evaluation, to, options)


@click.command()
@config_argument
@click.option(
    "--prompt", default=None, metavar="FILE", help="The new prompt; that of [samples] if not given."
)
@click.option(
    "--model", default=None, metavar="MODEL", help="Folder or hub id; that of [samples] if not given."
)
@click.option(
    "--n", "n", type=click.IntRange(min=1), default=200, show_default=True, help="Questions to ask."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other questions.")
@date_option
@click.option("--log", default=None, metavar="LOG", help="A log in place of the day's, as a golden set.")
@click.option(
    "--metric", "metrics", multiple=True, default=["groundedness"], show_default=True, help="May be repeated."
)
@click.option("--max-drop", default="2pt", show_default=True, metavar="POINTS", help="Allowed drop, as 2pt.")
@click.option("--out", default=None, metavar="DIR", help="Output root; one below [store] out if not given.")
@to_option
@format_option
@sets_option
@json_option
@quiet_option
def replay(config_path: Path, overrides: tuple[str, ...], to: str | None, **options: Any) -> None:
    """Answer logged questions again under a new prompt or model; exit code 3 where that is really worse.

    Each question keeps the chunks that it was answered from. A prompt file with {question} and {chunks} is the whole
    user turn; one without is the system turn. Both sides are scored by the same judge.

    Example: claimscore replay configs/nightly.toml --prompt prompts/p15.txt --n 200 --max-drop 2pt
    """
    from claimscore.jobs import gate, golden_words, replay_run  # noqa: PLC0415

    if not (options["prompt"] or options["model"]):
        raise click.UsageError("give --prompt FILE, --model MODEL, or both")
    if options["log"] and options["date"]:
        raise click.UsageError("--log excludes --date")
    unknown = [name for name in options["metrics"] if name not in gate.METRICS]
    if unknown:
        raise click.UsageError(f"--metric {unknown[0]!r} is none of {', '.join(gate.METRICS)}")
    _check_form(to, options["form"])
    names = ("date", "log", "prompt", "model", "n", "seed", "max_drop", "out")
    asked = replay_run.Asked(
        metrics=tuple(dict.fromkeys(options["metrics"])), **{name: options[name] for name in names}
    )
    quiet = options["quiet"] or options["as_json"]
    document = replay_run.run(load_config(config_path, overrides), asked, quiet=quiet)
    _tell(document, golden_words.sheet_of_replay, to, options)


@click.command()
@config_argument
@date_option
@click.option("--series", default=None, help="Judge series; the one that dashboards read if not given.")
@click.option("--to", required=True, metavar="FILE", help="Golden set in Parquet to write or add to.")
@click.option("--append", is_flag=True, help="Add to FILE where it exists; what it holds stays as it is.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=200, show_default=True, help="At most so many of a night."
)
@sets_option
@json_option
def promote(config_path: Path, overrides: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Make golden-set candidates of a night's flagged and escalated answers, with their evidence.

    The verdicts come as suggestions; the gold columns are for a person to fill. What says the same is taken once.

    Example: claimscore promote configs/demo.toml --date 2026-11-28 --to golden.parquet
    """
    from claimscore.jobs import promote_files  # noqa: PLC0415

    document = promote_files.run(load_config(config_path, overrides), **options)
    emit(document, lambda found: click.echo(one_line(promote_files.words(found))), as_json=as_json)


def _check_form(to: str | None, form: str | None) -> None:
    """Refuse an ending before the work and not after it."""
    from claimscore.jobs.report_files import form_of  # noqa: PLC0415

    if form and not to:
        raise click.UsageError("--format goes with --to FILE")
    if to:
        form_of(form, to)


def _tell(document: dict[str, Any], sheet_of: Any, to: str | None, options: dict[str, Any]) -> None:
    """Write and print what was found; exit code 3 where it failed."""
    from claimscore.jobs import sheets  # noqa: PLC0415

    if to:
        sheets.write(document, sheet_of, options["form"], to)
        if not options["quiet"]:
            click.echo(f"wrote {to}", err=True)
    if options["as_json"] or not (to or options["quiet"]):
        emit(document, lambda found: sheets.print_sheet(sheet_of(found)), as_json=options["as_json"])
    elif document["failures"]:
        for line in document["failures"]:
            click.echo(f"failed: {one_line(line)}", err=True)
    if document["failures"]:
        raise SystemExit(EXIT_UNFINISHED)
