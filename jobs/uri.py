"""A place as people may read it: a URI without user, password and query, which may be keys; a path without `..`."""

from __future__ import annotations

import re
from pathlib import Path

# A key may hold any sign: behind `user:` all up to the last `@` of the word goes, within a bound that keeps long texts linear.
# Without a colon only what stands before the first slash can be one: a path may hold an `@`. One slash after the scheme is what
# pathlib leaves of two, and a quote ends a query only where the word ends.
_SECRETS = re.compile(
    r"(?<![a-z0-9+.-])(?P<scheme>[a-z][a-z0-9+.-]{1,20}:/{1,2})"
    r"(?:[^\s/@:]*+:(?!\d{1,5}(?:[/?#]|$))\S{0,1024}@|[^\s/@?#]*+@)?+"
    r"(?P<place>[^\s?#'\"]*+)"
    r"(?:[?#]\S*?(?=['\"]?[:;,]?(?:\s|$)))?",  # a colon at its end is the sentence's
    re.IGNORECASE,
)


def shown(text: str) -> str:
    """`text` with every URI in it cut down to scheme and place; any other text stays as it is."""
    return _SECRETS.sub(lambda found: found["scheme"] + found["place"], text)


def straight(path: Path) -> Path:
    """The same place without `..`, where the path has any; links that lie on the way are followed then."""
    return path.resolve() if ".." in path.parts else path
