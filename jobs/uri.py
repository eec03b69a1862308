"""A place as people may read it: a URI without user, password and query, which may be keys."""

from __future__ import annotations

import re

# Possessive and bounded: a run of any sign costs linear time. A key may hold a slash, so all up to the last `@` goes.
# One slash is what pathlib leaves of two.
_SECRETS = re.compile(
    r"(?<![a-z0-9+.-])(?P<scheme>[a-z][a-z0-9+.-]{1,20}:/{1,2})(?:[^\s?#@]*+@)*+(?P<place>[^\s?#'\"]*+)"
    r"(?:[?#][^\s'\"]*?(?=[:;,]?(?:[\s'\"]|$)))?",  # a colon at its end is the sentence's
    re.IGNORECASE,
)


def shown(text: str) -> str:
    """`text` with every URI in it cut down to scheme and place; any other text stays as it is."""
    return _SECRETS.sub(lambda found: found["scheme"] + found["place"], text)
