"""List items that say nothing, or the opposite, without the line that leads into their list.

`Liquid damage` under `The following is not covered:` was judged alone: of 16 such items the demo's judge had 6 on the wrong
side, `damage caused by liquids` under `covered:` entailed by `not covered` at .99 among them; behind their lead-in one. So an
item takes it in front of it as the text that is judged. Not the steps of an instruction (`Open the app.`), which the
documents word as it does, unless the lead-in denies; nor a sentence with a verb of its own. English only; knows no block.
"""

from __future__ import annotations

import re
from typing import Final

from claimscore.jobs.cues import AUXILIARY
from claimscore.jobs.phrases import without_marks

MAX_LEAD_CHARS: Final = 200
"""A longer lead-in is a paragraph of its own, and would be judged with each of its items."""
_DENIES = re.compile(
    r"\b(?:not|no|never|none|cannot|without|except|excluding|excludes?|excluded|exceptions?|exclusions?|avoid|forbidden|prohibited|unless"
    r"|false|untrue|incorrect|wrong|refrain|stop|neither)\b|n['’]t\b",
    re.IGNORECASE,
)
_FINITE = "|".join(sorted(AUXILIARY - {"be", "been"}))
_VERBS = re.compile(rf"\b(?:{_FINITE}|cannot)\b|n['’]t\b", re.IGNORECASE)
_SUBJECTLESS: Final = (AUXILIARY | {"cannot"}) - {"am", "be", "been", "do", "had", "have", "shall"}
"""An item that begins with one says nothing of whom: `has a 19 bar pump` under `The Mini:` was judged as any machine's.
`Have it ready` and `Do so` are orders."""
_STEP_WORDS = (
    "add adjust allow apply ask attach avoid back begin bring build buy call cancel change check choose clean clear click close collect "
    "compare complete configure confirm connect consider contact copy create cut delete disable disconnect do don't don’t double-check download "
    "draw edit enable ensure enter exit fill find follow format get give go hold identify implement import include insert install keep learn leave let "
    "limit log look maintain make measure monitor move navigate never open order pack pay place plan plug practice press prepare print provide pull "
    "push put read remember remove repeat replace report request reset restart review rinse run save scan schedule scroll search see "
    "seek select send set share show sign start stay stir stop store submit switch take tap test try turn type uninstall unplug update upload use "
    "verify visit wait watch wear wipe write"
)
_STEPS: Final = frozenset(_STEP_WORDS.split())


def with_lead(lead: str, item: str) -> str:
    """The text of a list item as it is judged: behind its lead-in where it says too little alone, else as it is.

    Args:
        lead: what leads into the list, a colon at its end; "" for none.
        item: the first sentence of an item.
    """
    lead = without_marks(lead).strip()
    if not lead.endswith((":", "：")) or len(lead) > MAX_LEAD_CHARS:
        return item
    denies = _DENIES.search(lead) is not None
    first = next(iter(item.split(maxsplit=1)), "").strip("*_`,").lower()
    has_verb = _VERBS.search(item) is not None and first not in _SUBJECTLESS
    says_enough = has_verb or first in _STEPS
    return item if says_enough and not denies else f"{lead} {item}"
