"""Characters that show nothing: soft hyphens, zero-width blanks and joiners, direction marks, invisible tags.

PDFs, chat windows and attackers leave them within words, where a tokenizer takes `re-fund` for two words. They are taken off
what is judged; offsets stay those of the text as it was logged. Joiners stay where a script writes with them. The
module knows no markup and no control characters.
"""

from __future__ import annotations

import re

import numpy as np

_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
    "|(?<=[\u0000-\u024f])[\u200c\u200d]+"
)


def strip_hidden(text: str) -> str:
    """`text` without what shows nothing; the text itself where there is none."""
    return text if text.isascii() else _HIDDEN.sub("", text)


def visible(text: str) -> tuple[str, np.ndarray | None]:
    """`strip_hidden(text)` and the place in `text` of each of its characters; None: nothing was taken off."""
    if text.isascii() or not _HIDDEN.search(text):
        return text, None
    shown = np.ones(len(text), dtype=bool)
    for found in _HIDDEN.finditer(text):
        shown[found.start() : found.end()] = False
    return _HIDDEN.sub("", text), np.flatnonzero(shown)
