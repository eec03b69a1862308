"""A place as people may read it: a URI without user, password and query, which may be keys."""

from __future__ import annotations

import re

_SECRETS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?:[^/\s?#]*@)?(?P<place>[^\s?#'\"]*)(?:[?#][^\s'\"]*)?"
)


def shown(text: str) -> str:
    """`text` with every URI in it cut down to scheme and place; any other text stays as it is."""
    return _SECRETS.sub(lambda found: found["scheme"] + found["place"], text)
