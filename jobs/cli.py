"""The `claimscore` command: what runs at night, and what is read in the morning.

Exit codes: 0 done, 1 a named failure, 2 usage, 3 finished, but a shard failed or too much is unscored. Heavy imports
stand inside the commands, so that help and usage errors need neither torch nor ray nor vllm. A little over 300 lines: one command
after the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from claimscore.jobs import cli_export, cli_golden, cli_joins, cli_trust
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import EXIT_UNFINISHED, one_line
from claimscore.jobs.options import (
    Group,
    address_option,
    as_day,
    config_argument,
    date_option,
    days_of,
    emit,
    json_option,
    out_option,
    quiet_option,
    sets_option,
    since_option,
    until_option,
)


@click.group(cls=Group)
@click.version_option(package_name="claimscore")
def main() -> None:
    """Claim-level verdicts on the Parquet logs of RAG systems, every night.

    A run makes what is not fresh and nothing else: run it again after a crash, a late file or a changed threshold.
    """


@main.command()
@config_argument
@date_option
@since_option
@until_option
@sets_option
@address_option
@json_option
@quiet_option
@click.option(
    "--gate-exit-code", default=EXIT_UNFINISHED, show_default=True, help="Exit code where code 3 is due."
)
def run(
    config_path: Path, overrides: tuple[str, ...], address: str | None, gate_exit_code: int, **options: Any
) -> None:
    """Make every stale table of a day, from its log to its metrics.

    Example: claimscore run configs/demo.toml --date 2026-11-28
    """
    config = load_config(config_path, _with_address(overrides, address))
    days = days_of(options["date"], options["since"], options["until"])
    _finish(
        _run_days(config, days, quiet=options["quiet"] or options["as_json"]),
        options,
        gate_exit_code,
        out=config.store.out,
        is_current=True,
    )


@main.command()
@config_argument
@since_option
@until_option
@click.option("--judge", required=True, metavar="CARD", help="The other judge card.")
@sets_option
@address_option
@json_option
@quiet_option
def backfill(
    config_path: Path, judge: str, overrides: tuple[str, ...], address: str | None, **options: Any
) -> None:
    """Judge past days again with another judge, as a new series beside the old one.

    Claims are reused as they are: no LLM is loaded. The series that dashboards read is not changed; days of the new one that
    were made otherwise are replaced, and told.

    Example: claimscore backfill configs/demo.toml --since 2026-11-27 --until 2026-11-28 --judge configs/judges/nli-deberta-v3-base.toml
    """
    config = load_config(config_path, _with_address(overrides, address), judge=judge)
    days = days_of(None, options["since"], options["until"])
    _finish(
        _run_days(config, days, quiet=options["quiet"] or options["as_json"], backfill=True),
        options,
        EXIT_UNFINISHED,
        out=config.store.out,
        is_current=False,
    )


@main.command()
@config_argument
@date_option
@since_option
@until_option
@click.option("--judge", default=None, metavar="CARD", help="Plan a backfill with this judge card.")
@sets_option
@json_option
def plan(
    config_path: Path, judge: str | None, overrides: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Say what a run would make and why, and what it would cost; runs nothing.

    Example: claimscore plan configs/demo.toml --date 2026-11-28
    """
    from claimscore.jobs import estimate, reports  # noqa: PLC0415

    config = load_config(config_path, overrides, judge=judge)
    planned = estimate.plan_days(
        config, days_of(options["date"], options["since"], options["until"]), backfill=judge is not None
    )
    emit(planned, reports.print_plan, as_json=as_json)
    if any("error" in day for day in planned["days"]):
        raise SystemExit(EXIT_UNFINISHED)


@main.command()
@click.argument("series_a")
@click.argument("series_b")
@out_option
@since_option
@until_option
@json_option
def compare(series_a: str, series_b: str, out: str, as_json: bool, **options: Any) -> None:
    """Put two judge series side by side: agreement, kappa, metric shifts, claims that flipped.

    Example: claimscore compare demo nli-deberta-v3-base --out demo-run/out
    """
    from claimscore.jobs import reports  # noqa: PLC0415

    compared = reports.compare_series(out, series_a, series_b, options["since"], options["until"])
    emit(compared, reports.print_comparison, as_json=as_json)


@main.command()
@click.argument("request_id")
@out_option
@click.option("--series", default=None, help="Judge series; the one that dashboards read if not given.")
@json_option
def show(request_id: str, out: str, series: str | None, as_json: bool) -> None:
    """Show one answer: every claim with its verdict, rule, citation state and evidence.

    Example: claimscore show 1128-035 --out demo-run/out
    """
    from claimscore.jobs import show as showing  # noqa: PLC0415

    emit(showing.find_answer(out, request_id, series), showing.print_answer, as_json=as_json)


@main.command()
@out_option
@click.option("--date", callback=as_day, metavar="DAY", help="The day; the newest finished one if not given.")
@click.option("--series", default=None, help="Judge series; the one that dashboards read if not given.")
@click.option(
    "--compare", default=None, metavar="SERIES", help="Another judge series of that day to set beside it."
)
@click.option(
    "--to",
    default=None,
    metavar="FILE",
    help="File to write, - for stdout; html: claimscore-DAY.html if not given.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json"]),
    default=None,
    help="By the ending of FILE if not given, else html.",
)
def report(out: str, form: str | None, to: str | None, **options: Any) -> None:
    """Write the morning report of a day: rates and changes, where it concentrates, the worst answers.

    Html is one file that needs no network; md is for a chat post, json for programs.

    Example: claimscore report --out demo-run/out --to report.html
    """
    from claimscore.jobs import report_files  # noqa: PLC0415

    form = report_files.form_of(form, to)
    document = report_files.make(out, options["date"], options["series"], options["compare"])
    text = report_files.write(document, form, to)
    click.echo(
        text if text is not None else f"wrote {report_files.target(document, form, to)}", nl=text is None
    )


@main.command()
@out_option
@click.option("--date", callback=as_day, metavar="DAY", help="The candidate's day; the newest if not given.")
@click.option("--series", default=None, help="Judge series; the one that dashboards read if not given.")
@click.option("--prompt-version", default=None, metavar="NAME", help="Of the candidate, only these answers.")
@click.option(
    "--baseline-date",
    callback=as_day,
    metavar="DAY",
    help="The baseline's day; the candidate's if not given.",
)
@click.option("--baseline-series", default=None, help="The baseline's series; the candidate's if not given.")
@click.option(
    "--baseline-prompt-version", default=None, metavar="NAME", help="Of the baseline, only these answers."
)
@click.option(
    "--candidate", default=None, metavar="FILE", help="The candidate: JSON of `claimscore evaluate`."
)
@click.option("--baseline", default=None, metavar="FILE", help="The baseline: JSON of `claimscore evaluate`.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    default=["groundedness"],
    show_default=True,
    help="May be given again.",
)
@click.option("--max-drop", default="2pt", show_default=True, metavar="POINTS", help="Allowed drop, as 2pt.")
@click.option("--junit", default=None, metavar="FILE", help="JUnit XML for a CI system.")
@json_option
def gate(
    out: str, metrics: tuple[str, ...], max_drop: str, junit: str | None, as_json: bool, **options: Any
) -> None:
    """Fail (exit code 3) where answers are really worse than a baseline's, by more than is allowed.

    Example: claimscore gate --out demo-run/out --prompt-version p14 --baseline-prompt-version p13 --max-drop 2pt
    """
    from claimscore.jobs import gate as gating  # noqa: PLC0415
    from claimscore.jobs import gate_files  # noqa: PLC0415

    unknown = [name for name in metrics if name not in gating.METRICS]
    if unknown:
        raise click.UsageError(f"--metric {unknown[0]!r} is none of {', '.join(gating.METRICS)}")
    candidate, baseline = (
        {name: options[prefix + name] for name in ("date", "series", "prompt_version")}
        | {"file": options[side]}
        for side, prefix in (("candidate", ""), ("baseline", "baseline_"))
    )
    for name, side in (("candidate", candidate), ("baseline", baseline)):
        if side["file"] and (side["date"] or side["series"]):
            raise click.UsageError(f"--{name} FILE excludes the {name}'s date and series")
    document = gate_files.run(
        out, candidate=candidate, baseline=baseline, metrics=tuple(dict.fromkeys(metrics)), max_drop=max_drop
    )
    if junit:
        gate_files.write_junit(document, junit)
    emit(document, gate_files.print_gate, as_json=as_json)
    if document["failures"]:
        raise SystemExit(EXIT_UNFINISHED)


def _with_address(overrides: tuple[str, ...], address: str | None) -> list[str]:
    return [*overrides, *([f"cluster.address={json.dumps(address)}"] if address else [])]


def _run_days(
    config: Config, days: list[str], *, quiet: bool, backfill: bool = False
) -> Iterator[dict[str, Any]]:
    from claimscore.jobs import operate  # noqa: PLC0415

    return operate.run_days(config, days, quiet=quiet, backfill=backfill)


def _finish(
    reports_of_days: Iterator[dict[str, Any]],
    options: dict[str, Any],
    unfinished: int,
    *,
    out: str,
    is_current: bool,
) -> None:
    """Print every day as it ends, and at last how to read it; exit 0, 1 (nothing could be done) or 3 (something failed)."""
    from claimscore.jobs import reports  # noqa: PLC0415

    done = []
    for report in reports_of_days:
        done.append(report)
        for line in (*report["warnings"], *report["failures"]):
            click.echo(one_line(line), err=True)
        if not (options["as_json"] or options["quiet"]):
            reports.print_run(report)
    if options["as_json"]:
        click.echo(json.dumps({"days": done}, indent=2))
    finished = [report for report in done if report["series"]]
    if finished and not (options["as_json"] or options["quiet"]):
        reports.print_next(finished[-1], out=out, is_current=is_current)
    if any(report["exit_code"] for report in done):
        raise SystemExit(unfinished)


for _command in (
    *(cli_golden.evaluate, cli_golden.replay, cli_golden.promote),
    *(cli_trust.calibrate, cli_trust.label, cli_trust.canary, cli_trust.doctor),
    *(cli_joins.import_spans, cli_export.export, cli_export.alert),
):
    main.add_command(_command)
