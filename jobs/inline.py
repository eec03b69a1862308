"""Inline Markdown, HTML and LaTeX taken off a text, with a map from what is left to where it stood.

markdown-it-py keeps no offsets inside a line, hence this one pass over a fixed set of signs: emphasis, code ticks,
links, tags, entities, escapes, and the LaTeX that language models put around numbers. A sign without a partner is text.
Linear in the text. Knows no block and no citation, only what a link text that may be a citation mark looks like.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_TAGS = "a|b|blockquote|br|cite|code|del|div|em|h[1-6]|hr|i|ins|li|mark|ol|p|s|small|span|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul"
_INLINE = re.compile(
    r"(?=[*_`~\\$<&!\[])(?:(?P<code>`+)"
    r"|\\\[(?P<bracket>\s*\^?\d[\d\s,\-–]{0,40})\\\]|(?P<math>\\[()\[\]]|\$\$)|(?P<escape>\\(?=[!-/:-@\[-`{-~]))"
    r"|\\(?P<styled>text|textbf|textit|textrm|mathbf|mathrm|mathit|operatorname|boxed|emph)\s?\{(?P<inner>[^{}\n]{0,500})\}"
    r"|\\frac\{(?P<top>[^{}\n]{0,99})\}\{(?P<under>[^{}\n]{0,99})\}"
    r"|\\(?P<symbol>times|cdot|approx|leq?|geq?|neq|pm|degree|circ|percent|ldots|quad)(?![a-zA-Z])"
    r"|\$(?P<dollars>(?=[^\s$])[^$\n]{0,199}[^\s$\\]|[^\s$\\])\$(?!\d)"
    r"|!?\[(?P<label>\[?[^\[\]\n]*+\]?)\]\((?P<url>(?:[^()\s]|\([^()\s]*+\))*+(?:\s++\"[^\"\n]*+\")?)\)"
    rf"|(?P<tag></?(?:{_TAGS})(?:\s[^<>]{{0,200}})?/?>)"
    r"|(?P<entity>&(?:[a-zA-Z]{2,8}|\#\d{1,7}|\#x[0-9a-fA-F]{1,6});)"
    r"|(?P<emphasis>\*+|_+|~~))",
    re.IGNORECASE,
)
_SIGN = re.compile(r"[*_`~\\$<&!\[]")
"""What every match of _INLINE begins with; looked for by itself, as `re` tries a lookahead at every character."""
_SIGNS = ("*", "_", "`", "~", "\\", "$", "<", "&")
"""Every match of _INLINE holds one of them, or is a link; each is looked for by itself, which is ten times as fast as a pattern."""
_SYMBOLS = {
    "times": "×", "cdot": "·", "approx": "≈", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "neq": "≠",
    "pm": "±", "degree": "°", "circ": "°", "percent": "%", "ldots": "…", "quad": " ",
}  # fmt: skip
_IS_MATH = re.compile(r".*[\\^{].*|[\d.,\s+\-*/=%()<>]+|[A-Za-z]{1,2}")
_MARK_LABEL = re.compile(
    r"\[?\s*\^?(?:(?:source|doc|document|ref|chunk|citation)\s*+:?\s*+)?"
    r"(?:\d{1,3}(?:\s*[,\-–]\s*\d{1,3})*+|[\w.:#/]{0,60}[A-Za-z][\w.:#/]{0,60}[_\-:#]\d[\w\-]{0,60})\s*\]?",
    re.IGNORECASE,
)

Edit = tuple[int, int, str]


def strip_inline(text: str) -> tuple[str, Sequence[int]]:
    """`text` without emphasis, code ticks, links, tags, entities and LaTeX dress, and where each character was.

    The second value has an offset into `text` for every character of the first, non-decreasing. A link becomes
    its text, but keeps its brackets where the text reads like a citation mark. What has no partner stays.
    """
    if not _may_hold_markup(text):
        return text, range(len(text))
    edits = _edits(text)
    if not edits:
        return text, range(len(text))
    parts: list[str] = []
    offsets: list[int] = []
    at = 0
    for start, end, replacement in sorted(edits):
        if start < at:
            continue
        parts += (text[at:start], replacement)
        offsets.extend(range(at, start))
        offsets.extend([start] * len(replacement))
        at = end
    parts.append(text[at:])
    offsets.extend(range(at, len(text)))
    return "".join(parts), offsets


def _may_hold_markup(text: str) -> bool:
    """False where _INLINE has no match; a sign of one character costs a tenth of one of two."""
    return bool([sign for sign in _SIGNS if sign in text]) or ("]" in text and "](" in text)


def code_spans(text: str) -> dict[int, tuple[int, int]]:
    """Start of each run of backticks that opens code -> (its length, end of the code with its closing run)."""
    runs = [(m.start(), m.end()) for m in re.finditer("`+", text)]
    after: dict[int, int] = {}  # length of a run -> index of the nearest later run that long
    closing: list[int | None] = [None] * len(runs)
    for i in range(len(runs) - 1, -1, -1):
        length = runs[i][1] - runs[i][0]
        closing[i] = after.get(length)
        after[length] = i
    spans: dict[int, tuple[int, int]] = {}
    i = 0
    while i < len(runs):
        partner = closing[i]
        if partner is None:
            i += 1
            continue
        spans[runs[i][0]] = (runs[i][1] - runs[i][0], runs[partner][1])
        i = partner + 1
    return spans


def _edits(text: str) -> list[Edit]:
    edits: list[Edit] = []
    code = code_spans(text) if "`" in text else {}
    opened: dict[str, tuple[int, int]] = {}
    at = 0
    while sign := _SIGN.search(text, at):
        at = sign.end()
        match = _INLINE.match(text, sign.start())
        if match is None:
            continue
        start, at = match.span()
        if match["code"]:
            if start in code:
                length, at = code[start]
                edits += ((start, start + length, ""), (at - length, at, ""))
        elif match["emphasis"]:
            _pair(text, match, opened, edits)
        elif match["label"] is not None:
            keeps = _MARK_LABEL.fullmatch(match["label"])
            label = match.span("label")
            if keeps and match["label"].startswith("["):  # [[1]](url)
                keeps = None
            edits += _around(text, match, label, ("[", "]") if keeps else ("", ""))
        elif match["inner"] is not None:
            edits += _around(text, match, match.span("inner"), ("", ""))
        elif match["dollars"] is not None:
            if _IS_MATH.fullmatch(match["dollars"]):
                edits += ((start, start + 1, ""), (at - 1, at, ""))
            at = start + 1
        elif match["bracket"] is not None:
            edits += _around(text, match, match.span("bracket"), ("[", "]"))
        else:
            edits.append((start, at, _replacement(text, match)))
            at += match["escape"] is not None  # the escaped character is text, not markup
    edits += ((s, e, "") for delimiter, (s, e) in opened.items() if delimiter == "**")
    return edits


def _around(text: str, match: re.Match[str], inner: tuple[int, int], brackets: tuple[str, str]) -> list[Edit]:
    """Edits that leave `inner` of a match, itself without markup."""
    start, end = inner
    within = [(s + start, e + start, r) for s, e, r in _edits(text[start:end])]
    return [(match.start(), start, brackets[0]), *within, (end, match.end(), brackets[1])]


def _replacement(text: str, match: re.Match[str]) -> str:
    """What stands for a tag, an entity, a LaTeX command or an escape sign."""
    if match["tag"]:
        tag = match["tag"].lower()
        is_power = tag == "<sup>" and match.start() > 0 and text[match.start() - 1].isalnum()
        return (
            " "
            if tag.startswith("<br")
            else "^"
            if is_power and text[match.end() : match.end() + 1] != "["
            else ""
        )
    if match["entity"]:
        return html.unescape(match["entity"])
    if match["symbol"]:
        return _SYMBOLS[match["symbol"].lower()]
    if match["top"] is not None:
        return f"{match['top']}/{match['under']}"
    return ""


def _pair(text: str, match: re.Match[str], opened: dict[str, tuple[int, int]], edits: list[Edit]) -> None:
    """Take off an emphasis sign with its partner; signs between digits, in words or alone are text."""
    start, end = match.span()
    sign = match["emphasis"]
    before, after = text[start - 1 : start], text[end : end + 1]
    in_word = before.isalnum() and after.isalnum() and (sign == "*" or (before + after).isdigit())
    if len(sign) > 3 or in_word:  # x*y*z, 2**3
        return
    opens = bool(after) and not after.isspace() and not (sign[0] == "_" and before.isalnum())
    closes = bool(before) and not before.isspace() and not (sign[0] == "_" and after.isalnum())
    if closes and sign in opened:
        edits += ((*opened.pop(sign), ""), (start, end, ""))
    elif opens:
        opened[sign] = (start, end)
