"""What the commands share: click's options, days, how a document is printed, and errors as one line of text.

Knows no command, and imports nothing that takes a second.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import click

from claimscore.jobs.errors import ClaimscoreError, one_line
from claimscore.jobs.uri import shown

EXIT_INTERRUPTED = 130
MAX_DAYS = 3_660
"""Ten years: more is a slip of the pen, and each day is looked for in the log."""


class Group(click.Group):
    """Commands whose named failures are one line on stderr and exit code 1, here and nowhere else; none shows a key."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and what it was given; nothing may be empty, for an empty path would be the folder at hand."""
        name, command, rest = super().resolve_command(ctx, args)
        for before, given in zip([name, *rest], () if ctx.resilient_parsing else rest, strict=False):
            option, is_joined, value = given.partition("=") if given.startswith("--") else ("", "", given)
            if not value.strip() and (is_joined or not option):
                where = option or (before if before and before.startswith("-") else "")
                raise click.UsageError(
                    f"{where or 'an argument'} is empty, expected a value; leave an option out that has none"
                )
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with the whole first sentence of their help; click would cut it at the end of the line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=1_000)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ClaimscoreError as err:
            raise click.ClickException(str(err)) from err
        except click.UsageError as err:
            raise click.UsageError(shown(one_line(err.format_message())), err.ctx) from err
        except KeyboardInterrupt:
            click.echo(
                "interrupted; what is finished is kept, and the same command goes on from there", err=True
            )
            raise SystemExit(EXIT_INTERRUPTED) from None


def as_day(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """A day in ISO form; `yesterday` and `today` are in UTC, as the log's folders should be."""
    if value is None:
        return None
    today = dt.datetime.now(dt.UTC).date()
    named = {"today": today, "yesterday": today - dt.timedelta(days=1)}
    try:
        return str(named.get(value) or dt.date.fromisoformat(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a day; give YYYY-MM-DD, yesterday or today") from None


config_argument = click.argument("config_path", metavar="CONFIG", type=click.Path(path_type=Path))
sets_option = click.option(
    "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Override one key of the config."
)
date_option = click.option("--date", callback=as_day, metavar="DAY", help="YYYY-MM-DD, yesterday or today.")
since_option = click.option("--since", callback=as_day, metavar="DAY", help="First day of a range.")
until_option = click.option("--until", callback=as_day, metavar="DAY", help="Last day of a range.")
out_option = click.option(
    "--out",
    default="out",
    show_default=True,
    metavar="DIR",
    help="Output root, as [store] out of the config.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document on stdout instead of tables."
)
quiet_option = click.option(
    "--quiet", is_flag=True, help="No progress and no tables; failures are still told."
)
address_option = click.option(
    "--address", default=None, metavar="ADDRESS", help="Ray cluster to join, as ray.init takes it."
)


def days_of(date: str | None, since: str | None, until: str | None) -> list[str]:
    """The days asked for, in order."""
    if date and (since or until):
        raise click.UsageError("--date excludes --since and --until")
    if date:
        return [date]
    if not (since and until):
        raise click.UsageError("give --date, or --since and --until")
    first, last = dt.date.fromisoformat(since), dt.date.fromisoformat(until)
    if last < first:
        raise click.UsageError(f"--until {until} lies before --since {since}")
    if (last - first).days > MAX_DAYS:
        raise click.UsageError(
            f"{since} to {until} are {(last - first).days + 1:,} days, expected at most {MAX_DAYS:,}"
        )
    return [str(first + dt.timedelta(days=k)) for k in range((last - first).days + 1)]


def emit(document: dict[str, Any], printer: Any, *, as_json: bool) -> None:
    """Print a document: as JSON, or as its printer lays it out."""
    if as_json:
        click.echo(json.dumps(document, indent=2, default=str))
    else:
        printer(document)
