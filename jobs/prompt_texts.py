"""Texts of a log inside a prompt: between keyed tags, and without anything that reads as structure.

A tag carries a hash of the whole content, so no text can close its own tag; what looks like a tag of ours or like a chat
template's token is swapped for a look-alike. The engine encodes control tokens as plain text besides (replies.py). Knows no
prompt and no model.
"""

from __future__ import annotations

import re

_STRUCTURE = re.compile(
    r"<(?=[ \t]{0,8}/?[ \t]{0,8}(?:passage|window|claim|answer|s>|start_of_turn|end_of_turn|bos>|eos>))"
    r"|<(?=\|)|\[(?=/?INST\])",
    re.IGNORECASE,
)


def defused(text: str) -> str:
    """`text` with the opening bracket of anything that reads as structure swapped for a look-alike."""
    return _STRUCTURE.sub(lambda found: "‹" if found[0] == "<" else "⟦", text)


def framed(kind: str, name: str, key: str, text: str) -> str:
    """`text`, defused, on lines of its own between `<kind name key>` and its closing tag."""
    return f"<{kind} {name} {key}>\n{defused(text)}\n</{kind} {name} {key}>"
