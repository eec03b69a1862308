"""The block structure of Markdown as answers and chunks use it, with the span of every line in the source.

markdown-it-py reads it (CommonMark and tables; 0.02 ms an answer). Four of its rules are off because they would
take text out of the judge's sight: indented code, raw HTML, link definitions and underlined headings. What no
token covers (nesting deeper than 20, a list marker alone) comes back as a paragraph, so no word is lost. Linear
in the text. Knows no sentence and no inline markup: that is `inline.py`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table").disable(["code", "html_block", "reference", "lheading"])
_PROSE_FENCES = {"markdown", "md", "text", "txt", "plaintext"}
_BLOCK_MARKUP = re.compile(r"[ \t]*(?:[-*+>#]|\d{1,9}[.)]|```|~~~)")
"""At the beginning of a line; a line with a `|` anywhere may be a row of a table."""
_LINE_ENDS = str.maketrans(dict.fromkeys("\r\x0b\x0c\x85\u2028\u2029", "\n"))
_ODD_LINE_ENDS = ("\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029")
_RULE_LINE = re.compile(r"\s*+(?:[-*_=]\s*+){3,}+|[|:\-\s]++")
_LONG_NUMBER = re.compile(r"(?<!\d)\d{3,}+[.)][ \t]*+$")
_PIPE_ROW = re.compile(r"\|.+\|")


@dataclass(frozen=True, slots=True)
class Block:
    """A leaf block: its kind and the spans of its lines, without bullets, quote signs and hash signs."""

    kind: str
    """paragraph, list_item, table_head, table_row, heading, code or quote."""
    lines: tuple[tuple[int, int], ...]
    """Start and end of each line's content in the source, in order; never empty."""
    cells: tuple[str, ...] = ()
    """Contents of the cells of a table row, as written."""
    header: tuple[str, ...] = ()
    """Contents of the header cells that stand over `cells`; empty where the table has no header."""


def read_blocks(text: str) -> list[Block]:
    """The leaf blocks of `text`, in order; every line that holds a letter or digit is in exactly one.

    A text without any line that could be markup is cut at blank lines, without a parser. A fence that says
    it holds prose (```markdown) is read as prose. Blank text gives no block.
    """
    source = text
    if [end for end in _ODD_LINE_ENDS if end in text]:  # same length, so offsets stay those of the original
        source = text.replace("\r\n", " \n").translate(_LINE_ENDS)
    return _read(source, 0, fences=True)


def _read(source: str, base: int, *, fences: bool) -> list[Block]:
    lines = _line_spans(source)
    if "|" not in source and not any(_BLOCK_MARKUP.match(source, start) for start, _ in lines):
        return [_shifted(block, base) for block in _paragraphs(source, lines)]
    tokens: list[Token] = []
    _PARSER.block.parse(source, _PARSER, {}, tokens)
    blocks: list[Block] = []
    covered = bytearray(len(lines))
    for kind, first, last, block in _leaves(source, lines, tokens):
        covered[first:last] = b"\x01" * (last - first)
        if kind == "fence" and fences:
            inner = slice(lines[first][0], lines[last - 1][1])
            body = source[inner]
            cut = body.find("\n") + 1 or len(body)
            closing = re.search(r"\n[ \t>]*(?:`{3,}|~{3,})[ \t]*$", body)
            end = closing.start() if closing and closing.start() >= cut - 1 else len(body)
            blocks += _read(body[cut : max(cut, end)], inner.start + cut, fences=False)
        elif block:
            blocks.append(block)
    blocks += _uncovered(source, lines, covered)
    blocks.sort(key=lambda block: block.lines[0][0])
    return list(_finished(source, blocks, base))


def _finished(source: str, blocks: Sequence[Block], base: int) -> Iterator[Block]:
    """`blocks` moved by `base` characters; `| a | b |` lines without a proper table become rows without a header."""
    for block in blocks:
        loose = (
            {span for span in block.lines if _PIPE_ROW.fullmatch(source, *span)}
            if block.kind != "code"
            else ()
        )
        if not loose or block.cells:
            yield _shifted(block, base)
            continue
        for is_row, spans in itertools.groupby(block.lines, key=loose.__contains__):
            if not is_row:
                yield _shifted(Block(block.kind, tuple(spans)), base)
                continue
            for start, end in spans:
                if not _RULE_LINE.fullmatch(source, start, end):
                    cells = tuple(cell.strip() for cell in source[start + 1 : end - 1].split("|"))
                    yield _shifted(Block("table_row", ((start, end),), cells), base)


def _shifted(block: Block, base: int) -> Block:
    lines = tuple((start + base, end + base) for start, end in block.lines)
    return Block(block.kind, lines, block.cells, block.header) if base else block


def _line_spans(source: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for line in source.split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans


def _paragraphs(source: str, lines: Sequence[tuple[int, int]]) -> list[Block]:
    out: list[Block] = []
    run: list[tuple[int, int]] = []
    for start, end in [*lines, (len(source), len(source))]:
        span = _stripped(source, start, end)
        if span:
            run.append(span)
        elif run:
            out.append(Block("paragraph", tuple(run)))
            run = []
    if run:
        out.append(Block("paragraph", tuple(run)))
    return out


def _stripped(source: str, start: int, end: int) -> tuple[int, int] | None:
    piece = source[start:end]
    left = len(piece) - len(piece.lstrip())
    right = len(piece.rstrip())
    return (start + left, start + right) if right > left else None


def _leaves(
    source: str, lines: Sequence[tuple[int, int]], tokens: Sequence[Token]
) -> Iterator[tuple[str, int, int, Block | None]]:
    """(kind, first line, line after the last, block) of each token that holds text or is a rule."""
    around: list[str] = []
    header: tuple[str, ...] = ()
    cells: list[str] = []
    for i, token in enumerate(tokens):
        name = token.type
        if name in ("list_item_open", "blockquote_open"):
            around.append("list_item" if name == "list_item_open" else "quote")
        elif name in ("list_item_close", "blockquote_close"):
            around.pop()
        elif name == "tr_open":
            cells, row = [], token.map or [0, 1]
        elif name == "tr_close":
            is_head = tokens[i + 1].type == "thead_close"
            header = tuple(cells) if is_head else header
            span = _stripped(source, *lines[row[0]])
            kind = "table_head" if is_head else "table_row"
            if span:
                yield kind, row[0], row[0] + 1 + is_head, Block(kind, (span,), tuple(cells), header)
        elif name == "inline" and tokens[i - 1].type in ("td_open", "th_open"):
            cells.append(token.content)
        elif name == "inline" and token.map:
            kind = "heading" if tokens[i - 1].type == "heading_open" else (around or ["paragraph"])[-1]
            yield kind, token.map[0], token.map[1], _content(source, lines, token, kind)
        elif name == "fence" and token.map:
            first, last = token.map[0], min(token.map[1], len(lines))
            if token.info.strip().lower() in _PROSE_FENCES:
                yield "fence", first, last, None
            else:
                span = _stripped(source, lines[first][0], lines[last - 1][1])
                yield "code", first, last, Block("code", (span,)) if span else None
        elif name == "hr" and token.map:
            yield "rule", token.map[0], token.map[1], None


def _content(source: str, lines: Sequence[tuple[int, int]], token: Token, kind: str) -> Block | None:
    """The block of an inline token: each of its lines found again in the source, after its markers."""
    assert token.map is not None
    spans = []
    contents = (line.strip() for line in token.content.split("\n"))
    for number, content in zip(range(*token.map), contents, strict=False):
        line_start, line_end = lines[number]
        start = source.rfind(content, line_start, line_end) if content else -1
        if start < 0:
            continue
        year = _LONG_NUMBER.search(source, line_start, start) if kind == "list_item" else None
        spans.append(
            (year.start() if year else start, start + len(content))
        )  # "1986. A good year." is no bullet
    return Block(kind, tuple(spans)) if spans else None


def _uncovered(source: str, lines: Sequence[tuple[int, int]], covered: bytearray) -> Iterator[Block]:
    for number, (start, end) in enumerate(lines):
        if covered[number] or not source[start:end].strip() or _RULE_LINE.fullmatch(source, start, end):
            continue
        bare = source[start:end].lstrip(" \t>*+-#|")
        span = _stripped(source, end - len(bare), end)
        if span and any(char.isalnum() for char in bare):
            yield Block("paragraph", (span,))
