"""Sentences of answers and chunks, with offsets into the original text.

Blocks come from `blocks.py`, plain text from `inline.py`, sentence ends from `bounds.py`; here they meet, lines are told
from wrapped prose, and each sentence gets its context. Text is judged without markup; `start:end` keeps it. Blocks
that assert nothing are named (heading, lead_in, question, meta), narrowly: in doubt, and wherever it holds a
value, a sentence is a paragraph and gets claims. Knows no chunk ids: a citation mark stays with the sentence it follows.
A little over 300 lines: one text from its blocks to its sentences.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from claimscore.jobs import phrases, records
from claimscore.jobs.blocks import Block, read_blocks
from claimscore.jobs.bounds import CLOSERS, ENDS, has_word, sentence_bounds
from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.inline import strip_inline
from claimscore.jobs.leads import with_lead
from claimscore.jobs.leaning import leans

_COLUMNS = ("answer_index", "sentence_index", "start", "end", "text", "context", "block", "is_refusal")
_SCHEMA = pa.schema([records.SENTENCES.field(name) for name in _COLUMNS])
_SPANS = pa.list_(pa.struct([("start", pa.int32()), ("end", pa.int32()), ("leans", pa.bool_())]))

_WRAPPED_LINE_CHARS = 45  # a line of prose is broken by hand only beyond this; a shorter one ends on purpose

_LIST_LINE = re.compile(r"[•◦▪‣·●○■▶➤✓✔]\s*|\(?\d{1,2}[.)]\s+|\(?[a-zA-Z][)]\s+|[–—]\s+")
_MARK_BRACKETS = ("[", "【", "［")
_UNDERLINE = re.compile(r"[=\-_*]{3,}")
_INLINE_NUMBER = re.compile(r"\(?\d{1,2}[.)]\s+|[-–—•*]\s+(?=[^\W\d])")


class _Piece(NamedTuple):
    start: int
    end: int
    text: str
    block: str
    leads: bool = False
    """Stands as a heading or before a list, whether or not it asserts something too."""
    begins: bool = False
    """The first sentence of a list item."""


def split_sentences(answers: pa.Array, config: SegmentConfig) -> pa.Table:
    """The sentences of each answer, in order.

    Args:
        answers: N strings; a null or blank one gives no row.
        config: markers of refusals, length of context, longest sentence in characters.

    Returns:
        The first eight columns of `records.SENTENCES`: `answers[answer_index][start:end]` is the sentence with
        marks and markup; `text` is without markup, citation marks still in it; a table row reads
        `Label: Header value, Header value`, a list item that says too little alone has its lead-in before it (leads.py).
        `block` is paragraph, list_item, table_row, quote, heading, lead_in, question, meta or code. Code is one row a block. Empty in, empty out with the schema.
    """
    rows: list[tuple[int, int, int, int, str, str, str, bool]] = []
    markers = phrases.fold_markers(config.refusal_markers)
    for answer_index, answer in enumerate(answers.to_pylist()):
        pieces = _pieces(answer, config) if answer else []
        refusals = phrases.find_refusals([piece.text for piece in pieces], markers)
        for i, (piece, (context, lead)) in enumerate(zip(pieces, _contexts(pieces, config), strict=True)):
            text = with_lead(lead, piece.text) if piece.begins else piece.text
            row = (answer_index, i, piece.start, piece.end, text, context, piece.block, i in refusals)
            rows.append(row)
    columns = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def sentence_spans(texts: pa.Array, config: SegmentConfig) -> pa.ListArray:
    """Spans of the sentences of each chunk, and which lean on the one before (leaning.py); table rows and list items are
    sentences of their own.

    Spans are in order, do not overlap and together hold every character that is not blank, markup included, so a
    window of spans is a slice of the chunk. Null and blank texts give an empty list.
    """
    rows = [_tiled(text, _pieces(text, config, named=False)) if text else [] for text in texts.to_pylist()]
    offsets = pa.array(np.cumsum([0, *map(len, rows)]), pa.int32())
    flat = np.array([span for spans in rows for span in spans], np.int32).reshape(-1, 3)
    columns = [pa.array(flat[:, 0]), pa.array(flat[:, 1]), pa.array(flat[:, 2].astype(np.bool_))]
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(columns, fields=list(_SPANS.value_type))
    )


def _tiled(text: str, pieces: Sequence[_Piece]) -> list[tuple[int, int, bool]]:
    """Spans of `pieces` widened over what lies between them: markers to the span after, the rest at the end to the last."""
    out: list[tuple[int, int, bool]] = []
    at = 0
    for piece in pieces:
        gap = text[at : piece.start]
        out.append((piece.start - len(gap.lstrip()), piece.end, leans(piece.text)))
        at = piece.end
    rest = text[at:].rstrip()
    if out and rest:
        out[-1] = (out[-1][0], at + len(rest), out[-1][2])
    elif rest:
        out.append((at + len(rest) - len(rest.lstrip()), at + len(rest), False))
    return out


# ---- from blocks to pieces ----


def _pieces(text: str, config: SegmentConfig, *, named: bool = True) -> list[_Piece]:
    """The sentences of a text; not `named`, what asserts nothing passes for a sentence of its block: a third cheaper."""
    out: list[_Piece] = []
    blocks = read_blocks(text)
    for block, after in itertools.zip_longest(blocks, blocks[1:]):
        if block.kind in ("code", "table_head", "table_row"):
            (start, end), *_ = block.lines
            plain = text[start:end] if block.kind == "code" else _row_text(block)
            is_head = block.kind == "table_head"
            kind = block.kind if not is_head else "paragraph" if _asserts(block, after) else "heading"
            if has_word(plain):
                out.append(_Piece(start, end, plain, kind, is_head))
            continue
        runs = list(_runs(text, block))
        for i, (run, kind) in enumerate(runs):
            following = runs[i + 1][1] if i + 1 < len(runs) else after.kind if after else None
            pieces = list(_sentences(text, run, kind, config, named=named))
            if pieces and named:
                pieces[0] = pieces[0]._replace(begins=kind == "list_item")
                pieces[-1] = _named_lead_in(pieces[-1], following)
            out += pieces
    return _marks_joined(out)


def _asserts(head: Block, row: Block | None) -> bool:
    """True where a cell of a table's head holds a value that the row below, which repeats its head, does not judge."""
    below = row.cells if row and row.kind == "table_row" else ()
    pairs = itertools.zip_longest(head.cells, below[: len(head.cells)], fillvalue="")
    return any(not cell.strip() and phrases.holds_value(name) for name, cell in pairs)


def _row_text(block: Block) -> str:
    """`Label: Header value, Header value` of a table row, its first cell being the label; what cells there are without heads.

    Of 16 rows beside prose that bears them or not the demo's judge had 15 on the right side, with `Header value; ...` 14 and
    by .10 less clearly. A head that ends in a figure gets a colon: `Nimbus 4 199 euros` was read as 4,199.
    """
    names = [" ".join(strip_inline(name)[0].split()) for name in block.header]
    values = [" ".join(strip_inline(cell)[0].split()) for cell in block.cells]
    if block.kind != "table_row" or not any(names):
        return "; ".join(value for value in values if value)
    told = [
        f"{name}{':' if name[-1].isdecimal() else ''} {value}" if name else value
        for name, value in itertools.zip_longest(names, values, fillvalue="")
        if value
    ]
    label = values[0] if len(told) > 1 else ""
    if not label or not label[0].isalpha():
        return ", ".join(told)
    return f"{label}: {', '.join(told[1:])}"


def _runs(text: str, block: Block) -> Iterator[tuple[list[tuple[int, int]], str]]:
    """The lines of a block cut where a line end is meant, each run with its kind."""
    run: list[tuple[int, int]] = []
    kind = block.kind
    for line_start, end in block.lines:
        if _UNDERLINE.fullmatch(text, line_start, end):
            if run:
                yield run, kind
            run, kind = [], block.kind
            continue
        start = line_start
        bullet = _LIST_LINE.match(text, start, end) if block.kind in ("paragraph", "list_item") else None
        if run and (bullet or _ends_line(text[run[-1][0] : run[-1][1]], text[start:end])):
            yield run, kind
            run, kind = [], block.kind
        if bullet and not run and (block.kind == "paragraph") and bullet.end() < end:
            start, kind = bullet.end(), "list_item"
        run.append((start, end))
    if run:
        yield run, kind


def _ends_line(line: str, following: str) -> bool:
    """True where the line end between the two is meant, not a wrap of running prose."""
    last = line.rstrip(CLOSERS + " ")[-1:]
    if last in ENDS or last in ":：":
        return True
    starts_low = following[:1].islower() or following[:1] in ",;)]"
    return len(line) < _WRAPPED_LINE_CHARS and not starts_low


def _named_lead_in(piece: _Piece, following: str | None) -> _Piece:
    """A lead-in where the piece ends with a colon and a list, table, code or another block comes after it."""
    if (
        following is None
        or not piece.text.endswith((":", "："))
        or piece.block not in ("paragraph", "list_item", "quote")
    ):
        return piece
    is_short = len(piece.text.split()) <= 8 and not any(c.isdigit() for c in piece.text)
    if following in ("list_item", "table_head", "table_row", "code", "quote") or is_short:
        block = "lead_in" if phrases.only_announces(piece.text) else piece.block
        return piece._replace(block=block, leads=True)
    return piece


def _marks_joined(pieces: Sequence[_Piece]) -> list[_Piece]:
    """A piece of nothing but marks goes to the piece before it, across a line or block end."""
    out: list[_Piece] = []
    tail: list[_Piece] = []  # marks that follow out[-1]; joined once, so that 100,000 of them stay linear
    for piece in [*pieces, None]:
        if piece and out and "code" not in (piece.block, out[-1].block) and _is_marks(piece.text):
            tail.append(piece)
            continue
        if tail:
            text = " ".join((out[-1].text, *(mark.text for mark in tail)))
            out[-1] = out[-1]._replace(end=tail[-1].end, text=text)
            tail = []
        if piece:
            out.append(piece)
    return out


def _is_marks(text: str) -> bool:
    return text[:1] in _MARK_BRACKETS and (len(text) < 6 or not has_word(phrases.without_marks(text)))


# ---- from a run of lines to sentences ----


def _sentences(
    text: str, run: Sequence[tuple[int, int]], kind: str, config: SegmentConfig, *, named: bool
) -> Iterator[_Piece]:
    joined, where = _joined(text, run)
    plain, offsets = strip_inline(joined)
    bounds = list(sentence_bounds(plain, config.language, config.max_sentence_chars))
    spans = [(start, end) for start, end in bounds if has_word(plain[start:end])]
    # Of a text without markup nothing but blanks lies between its sentences.
    is_bare = plain is joined and len(spans) == len(bounds)
    for (start, end), (first, last) in zip(
        spans, spans if is_bare else _with_markup(joined, offsets, spans), strict=True
    ):
        sentence = plain[start:end]
        if numbering := _INLINE_NUMBER.match(sentence) if len(spans) > 1 else None:
            sentence = sentence[numbering.end() :] or sentence
        yield _Piece(
            where[first],
            where[last - 1] + 1,
            " ".join(sentence.split()) if named or sentence[0] in _MARK_BRACKETS else sentence,
            phrases.kind_of(sentence, kind) if named else kind,
            kind == "heading",
        )


def _with_markup(
    joined: str, offsets: Sequence[int], spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Where the sentences at `spans` of the plain text stand in `joined`, with the markup that belongs to each."""
    ends = [offsets[end - 1] + 1 for _, end in spans]
    for i, (start, _) in enumerate(spans):
        # Markup taken off between two sentences: what touches the one before closes it, the rest opens the next.
        low = ends[i - 1] if i else 0
        gap = joined[low : offsets[start]]
        if i:
            gap = gap[_touching(gap) :]
        high = offsets[spans[i + 1][0]] if i + 1 < len(spans) else len(joined)
        yield offsets[start] - len(gap.lstrip()), ends[i] + _touching(joined[ends[i] : high])


def _touching(gap: str) -> int:
    """Characters at the front of `gap` before its first blank."""
    if not gap or gap[0].isspace():
        return 0
    return next((i for i, char in enumerate(gap) if char.isspace()), len(gap))


def _joined(text: str, run: Sequence[tuple[int, int]]) -> tuple[str, Sequence[int]]:
    """The lines of a run joined by blanks, and the offset in `text` of each character."""
    if len(run) == 1:
        start, end = run[0]
        return text[start:end], range(start, end)
    offsets: list[int] = []
    for start, end in run:
        offsets.extend(range(start, end + 1))  # the blank stands where the line end was
    return " ".join(text[s:e] for s, e in run), offsets[:-1]


# ---- context ----


def _contexts(pieces: Sequence[_Piece], config: SegmentConfig) -> Iterator[tuple[str, str]]:
    """For each piece, the text before it that a pronoun may point into, list items and rows with their lead-in; and that."""
    recent: list[str] = []
    lead = ""
    for piece in pieces:
        before = recent[-config.context_sentences :] if config.context_sentences else []
        in_list = piece.block in ("list_item", "table_row")
        lead = lead if in_list or piece.leads or piece.block == "question" else ""
        if in_list and lead and lead not in before and before:
            before = before[1:] if len(before) == config.context_sentences else before
            room = config.context_chars - len(lead) - 1
            behind = f"{lead} {_tail(' '.join(before), room)}".strip() if room > 0 else ""
            yield behind or _tail(lead, config.context_chars), lead
        else:
            yield _tail(" ".join(before), config.context_chars), lead if in_list else ""
        if piece.block not in ("code", "meta"):
            recent = [*recent[-8:], piece.text]
        if piece.leads:
            lead = piece.text


def _tail(text: str, limit: int) -> str:
    """The last `limit` characters at most, beginning at a word."""
    if len(text) <= limit:
        return text
    cut = text[len(text) - limit :] if limit > 0 else ""
    if cut and not text[len(text) - limit - 1].isspace():
        blank = next((i for i, char in enumerate(cut) if char.isspace()), None)
        cut = cut if blank is None else cut[blank:]
    return cut.strip()
