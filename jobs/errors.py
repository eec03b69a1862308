"""The named failures of the job; each is turned into one line of text in `cli.py` and nowhere else.

A message has one form: `where: what was found, what was expected; what to do`. Values are quoted with
`!r`, alternatives are listed, and there is no full stop at the end. Programming mistakes are not here:
they stay ordinary exceptions with a traceback. A message may quote a log, a library or a place that a user gave: it is
always one printable line, and never holds the keys of a URI.
"""

from __future__ import annotations

from claimscore.jobs.uri import shown

EXIT_UNFINISHED = 3
"""Exit code of a run that finished although something of it failed, or of a gate that tripped."""

MAX_CHARS = 300
"""Of an error that is not one of ours."""


def one_line(text: str) -> str:
    """`text` without line breaks, control characters and terminal escapes: a blank stands for each run of them."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def reason_of(err: Exception) -> str:
    """What an exception says: of an operating system's, without its number and the place that the message names itself."""
    return (isinstance(err, OSError) and err.strerror) or str(err)


def in_short(err: BaseException) -> str:
    """The text of an error in one line of bounded length."""
    text = " ".join(str(err).split())
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"


class ClaimscoreError(Exception):
    """Something a user can mend; the message says where, what was found, what was expected, what to do."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shown(one_line(message)))


class ConfigError(ClaimscoreError):
    """A deployment's TOML, a judge card or a preset is wrong."""


class InputError(ClaimscoreError):
    """A log, or one row, reply or reference in it, cannot be used as it is."""


class ModelError(ClaimscoreError):
    """Weights or a tokenizer are missing, refused, or fail their self-test."""


class OutputError(ClaimscoreError):
    """A table cannot be written or does not add up."""
