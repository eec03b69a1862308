"""Citation marks of sentences resolved to chunk ids, and quotations checked against chunk texts.

A mark is a bracket in which every item is a chunk's id, a position, a range of positions, or an id of the same
shape as the retrieved ones; ids beat positions. What points nowhere is kept as fabricated; what does not
read as a citation (a year, `[sic]`, `[...]`, code) stays in the text. Provider citations, where the log has
them, replace marks; their offsets are believed only when they give the cited text. Knows nothing of meaning: whether
a cited chunk supports the sentence is for the judge.
"""

from __future__ import annotations

import bisect
import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from claimscore.jobs import records
from claimscore.jobs.config import CitationsConfig
from claimscore.jobs.inline import code_spans
from claimscore.jobs.provider import ids_by_sentence
from claimscore.jobs.quotes import presented_quotes, quotes_found

__all__ = ["parse_citations", "quotes_found"]

_CLAIMLESS = {"heading", "lead_in", "question", "meta", "code"}
_MAX_RANGE = 50  # `[1-3]` is a range of chunks; `[1-900]` is none

_OPEN, _CLOSE = r"\[［【〔", r"\]］】〕"
_BRACKET = rf"[{_OPEN}](?P<body>[^{_OPEN}{_CLOSE}\n]++)[{_CLOSE}]"
_LINK = r"(?:\((?:https?:|#|/|www\.)[^()\s]*+\))?"
_MARK = re.compile(_BRACKET + _LINK)
_MARK_OR_PAREN = re.compile(
    rf"{_BRACKET}{_LINK}|\((?P<paren>\s*+\d{{1,3}}(?:\s*+[,;\-–—]\s*+\d{{1,3}})*+\s*+)\)"
)
_PREFIX = re.compile(
    r"(?:sources?|src|docs?|documents?|refs?|references?|citations?|cite|chunks?|contexts?|passages?|evidence"
    r"|quellen?|来源|文献|出典|資料)(?![^\W\d])\s*[.:#]*\s*(?=\S)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*(?:[,;、，；]|\band\b|&)\s*")
_NUMBER = re.compile(r"[\^#]?(\d{1,9})")
_RANGE = re.compile(r"\^?(\d{1,9})\s*(?:[-‐‑–—~〜]|\bto\b)\s*\^?(\d{1,9})")
_OPENAI = re.compile(r"\d+:(\d{1,4})")
_LOCATOR = re.compile(
    r"(?:pp?|pages?|sect?|sections?|§+|paras?|lines?|ch|chapters?|fig|table|l)\.?\s*[\dA-Za-z.\-–]{1,12}",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[^\W\d_]{3}[^\d]*")  # [2, emphasis added]
_SPOKEN = re.compile(
    r"(?:according to|based on|see(?: also)?|(?:as )?per|cf\.?|(?:as )?(?:stated|noted|mentioned|described|shown"
    r"|reported|cited|found|discussed|outlined|seen|given|listed) (?:in|by))\s+$",
    re.IGNORECASE,
)
_SPOKEN_FIRST = re.compile(
    r"\s*(?:in|from|by|(?:the )?(?:source|document|passage|chunk|context))\s+$", re.IGNORECASE
)
_SAYS = re.compile(
    r"\s*(?:says?|states?|notes?|reports?|shows?|indicates?|mentions?|explains?|confirms?|describes?)(?: that)?\s+"
)
_ONLY_SOURCES = re.compile(r"\W*(?:sources?|references?|citations?|refs?|see|quellen?)?\W*", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:,|;|and|&|-|–)?\s*")
_BRACKETS = re.compile(rf"[{_OPEN}]")
_HEX = re.compile(r"(?=[^\d]*\d)[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*")


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The ids of an answer's chunks, and what an id of theirs looks like."""

    ids: tuple[str, ...]
    known: frozenset[str]
    folded: Mapping[str, str]
    shapes: frozenset[str]
    by_position: bool
    """False where ids are numbers that positions could be taken for: then only ids count."""
    first_number: int

    @classmethod
    def of(cls, ids: Sequence[str], first_number: int) -> _Chunks:
        numbers = {int(i) for i in ids if i.isascii() and i.isdigit() and len(i) < 10}
        positions = range(first_number, first_number + len(ids))
        all_numbers = bool(ids) and all(i.isascii() and i.isdigit() for i in ids)
        shapes = frozenset(shape for i in ids if (shape := _shape(i)))
        clash = all_numbers and any(n in positions for n in numbers)
        return cls(
            tuple(ids),
            frozenset(ids),
            {i.casefold(): i for i in reversed(ids)},
            shapes,
            not clash,
            first_number,
        )

    def at(self, number: int) -> str | None:
        index = number - self.first_number
        return self.ids[index] if self.by_position and 0 <= index < len(self.ids) else None


def _shape(text: str) -> str:
    """`doc_042` -> `doc_0`: the letters before the first digit, folded, and digits of any count; "" without a digit."""
    if _HEX.fullmatch(text):
        return "hex"
    if not any(c.isdigit() for c in text) or not any(c.isalpha() for c in text) or len(text) > 200:
        return ""
    first = re.match(
        r"[^\W\d_]{0,2}(?![^\W\d_])", text
    )  # one or two letters say too little: they must be the same
    kept = first[0].casefold() if first else "a"
    rest = re.sub(r"^[^\W\d_]+", "", text)
    return kept + re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", rest))


def parse_citations(sentences: pa.Table, log: pa.Table, config: CitationsConfig) -> pa.Table:
    """Add what each sentence cites and quotes, and take the marks out of its text.

    Args:
        sentences: what `split_sentences` gives, `answer_index` being the row of `log`.
        log: `records.LOG`; read are answer, chunks and citations.
        config: whether `(1)` is a mark, and the number of the first chunk.

    Returns:
        `records.SENTENCES`, as many rows, same order. `cited_ids` are retrieved ids, each once, in order;
        `fabricated_marks` are the marks (for provider citations the ids) that point at nothing retrieved. Where a row of
        the log has provider citations these count for every sentence they overlap, and marks are only taken
        out; a provider citation whose place cannot be verified counts for the whole answer. `text` and `context`
        lose their marks; a sentence of marks alone keeps an empty text and is `meta`. Empty in, empty out.
    """
    rows = sentences.to_pylist()
    answers, chunks = log.column("answer").to_pylist(), _chunks_of(log, config)
    provided = log.column("citations").to_pylist()
    for index, group in _by_answer(rows):
        given = ids_by_sentence(answers[index], provided[index], [(r["start"], r["end"]) for r in group])
        for i, row in enumerate(group):
            _resolve(row, answers[index], chunks[index], config)
            if given is not None:
                known = chunks[index].known
                row["cited_ids"] = [cited for cited in given[i] if cited in known]
                row["fabricated_marks"] = [cited for cited in given[i] if cited not in known]
        _carry(group)
    return pa.Table.from_pylist(rows, schema=records.SENTENCES)


def _by_answer(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for index, group in itertools.groupby(rows, key=lambda row: row["answer_index"]):
        yield index, list(group)


def _chunks_of(log: pa.Table, config: CitationsConfig) -> list[_Chunks]:
    column = log.column("chunks").combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # older pyarrow returns one for nested types
        column = column.chunk(0)
    return [
        _Chunks.of([chunk["id"] for chunk in row or () if chunk and chunk["id"]], config.first_number)
        for row in column.to_pylist()
    ]


def _resolve(row: dict[str, Any], answer: str, chunks: _Chunks, config: CitationsConfig) -> None:
    """Fill one sentence's citations and quotes, and clean its text and context."""
    row["cited_ids"], row["fabricated_marks"], row["quotes"] = [], [], []
    if row["block"] == "code":
        return
    pattern = _MARK_OR_PAREN if config.parentheses else _MARK
    text, marks = row["text"], []
    if config.parentheses or _BRACKETS.search(text):
        written = answer[row["start"] : row["end"]]
        marks = list(_marks(text, written, pattern, chunks))
        ids = dict.fromkeys(cited for _, found, _ in marks for cited in found)
        row["cited_ids"] = list(ids)
        row["fabricated_marks"] = list(dict.fromkeys(mark for _, _, made_up in marks for mark in made_up))
        row["text"] = _without(text, [span for span, _, _ in marks])
        if marks and _ONLY_SOURCES.fullmatch(row["text"]):
            row["text"], row["block"] = "", "meta"
    if _BRACKETS.search(row["context"]):
        spans = [span for span, _, _ in _marks(row["context"], "", pattern, chunks)]
        row["context"] = _without(row["context"], spans)
    row["quotes"] = presented_quotes(row["text"])


def _carry(rows: Sequence[dict[str, Any]]) -> None:
    """Hand the citations of sentences that make no claim to those that do, so that none is lost.

    A lead-in's ids count for the list items and rows under it that cite nothing themselves. What was fabricated there
    goes to the next claim, and all that a sentence of marks alone has to the claim before.
    """
    claims = [i for i, row in enumerate(rows) if row["block"] not in _CLAIMLESS]
    for i, row in enumerate(rows):
        if row["block"] not in _CLAIMLESS or not (row["cited_ids"] or row["fabricated_marks"]) or not claims:
            continue
        at = bisect.bisect(claims, i)
        forward = row["block"] in ("lead_in", "heading")
        heir = rows[claims[at] if at < len(claims) and (forward or at == 0) else claims[at - 1]]
        if row["block"] == "lead_in":
            under = itertools.takewhile(
                lambda item: item["block"] in ("list_item", "table_row"), rows[i + 1 : i + 99]
            )
            for item in [item for item in under if not (item["cited_ids"] or item["fabricated_marks"])]:
                item["cited_ids"] = list(row["cited_ids"])
        elif row["block"] == "meta":
            heir["cited_ids"] = list(dict.fromkeys([*heir["cited_ids"], *row["cited_ids"]]))
        heir["fabricated_marks"] = list(dict.fromkeys([*heir["fabricated_marks"], *row["fabricated_marks"]]))
        row["fabricated_marks"] = []


_Mark = tuple[tuple[int, int], Sequence[str], Sequence[str]]


def _marks(text: str, written: str, pattern: re.Pattern[str], chunks: _Chunks) -> Iterator[_Mark]:
    """(span in `text`, ids, what points nowhere) of every citation mark of `text` that is not code in `written`."""
    code = _in_code(written, pattern) if "`" in written else iter(())
    for match in pattern.finditer(text):
        literal, is_code = next(((m, c) for m, c in code if m == match[0]), ("", False))
        if literal and is_code:
            continue
        paren = match.groupdict().get("paren")
        if paren is not None:
            starts = not text[: match.start()].strip()  # (1) in front numbers a list
            found = None if starts else _read(paren, match[0], chunks)
        elif match["body"].isalpha() and text[match.end() : match.end() + 1].isalpha():
            found = None  # [a]nother
        else:
            found = _read(match["body"], match[0], chunks)
        if found:
            yield match.span(), found[0], found[1]


def _in_code(written: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Every bracket of the sentence as written, and whether it stands in code ticks."""
    ends = sorted((start, end) for start, (_, end) in code_spans(written).items())
    i = 0
    for match in pattern.finditer(written):
        while i < len(ends) and ends[i][1] <= match.start():
            i += 1
        yield match[0], i < len(ends) and ends[i][0] <= match.start()


def _read(body: str, mark: str, chunks: _Chunks) -> tuple[list[str], list[str]] | None:
    """Ids and fabricated marks of one bracket; None where it is no citation."""
    raw = body.strip()
    if raw in chunks.known:
        return [raw], []
    head, dagger, _ = unicodedata.normalize("NFKC", raw).partition("†")
    items = [item for item in _SEPARATOR.split(head.strip()) if item]
    prefixed = bool(dagger)
    ids: list[str] = []
    made_up: list[str] = []
    for i, item in enumerate(items):
        prefix = _PREFIX.match(item)
        prefixed = prefixed or prefix is not None
        cited = _item(item, item[prefix.end() :] if prefix else item, chunks, prefixed=prefixed)
        if cited is None:
            if i and (_LOCATOR.fullmatch(item) or _ASIDE.fullmatch(item)):
                continue
            return None
        ids += cited[0]
        if cited[1]:
            made_up.append(mark if len(items) == 1 else f"[{item}]")
    return (ids, made_up) if ids or made_up else None


def _item(item: str, bare: str, chunks: _Chunks, *, prefixed: bool) -> tuple[list[str], bool] | None:
    """Ids of one item of a mark and whether it (also) points nowhere; None where it does not read as a citation."""
    for name in (item, bare, bare.lstrip("^#")):
        known = name if name in chunks.known else chunks.folded.get(name.casefold())
        if known is not None:
            return [known], False
    if number := _NUMBER.fullmatch(bare) or (prefixed and _OPENAI.fullmatch(bare)) or None:
        return _numbers(int(number[1]), int(number[1]), chunks, prefixed=prefixed)
    if ends := _RANGE.fullmatch(bare):
        return _numbers(int(ends[1]), int(ends[2]), chunks, prefixed=prefixed)
    if {_shape(item), _shape(bare)} & chunks.shapes:
        return [], True
    return None


def _numbers(first: int, last: int, chunks: _Chunks, *, prefixed: bool) -> tuple[list[str], bool] | None:
    """Ids at the positions first..last; years and long numbers are no positions unless a word says so."""
    if first >= 1000 and not prefixed:
        long_ids = first > 9999 and any(i.isdigit() and len(i) > 4 for i in chunks.ids)
        return ([], True) if long_ids else None
    if last < first or last - first >= _MAX_RANGE:
        return [], True
    found = [str(n) if str(n) in chunks.known else chunks.at(n) for n in range(first, last + 1)]
    return [cited for cited in found if cited is not None], None in found


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """`text` without the marks at `spans`, the words that only lead to them and the blanks around them."""
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, stop in _groups(text, spans):
        before, end = text[at:start], stop
        spoken = _SPOKEN.search(before[-40:]) or (None if parts else _SPOKEN_FIRST.fullmatch(before[-40:]))
        before = before[: len(before) - len(spoken[0])] if spoken else before
        if before.rstrip()[-1:] in ("(", "（") and text[end : end + 1] in (")", "）"):
            before, end = before.rstrip()[:-1], end + 1
        after = text[end : end + 1]
        opens = not before.strip() and not parts
        if opens or not after or after in " .,;:!?。，、；：！？)）":
            before = before.rstrip()
        parts.append(before)
        at = end + (1 if opens and spoken and after == "," else 0)
        says = _SAYS.match(text, at) if opens else None
        if opens and (
            says or (spoken and spoken[0].lstrip()[:1].isupper())
        ):  # "In [1], the fee" -> "The fee"
            at = says.end() if says else at
            at = next((i for i in range(at, len(text)) if not text[i].isspace()), len(text))
            parts.append(text[at : at + 1].upper())
            at += 1
    return "".join((*parts, text[at:])).strip()


def _groups(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Marks that stand together, with what joins them, as one span."""
    out = [spans[0]]
    for start, end in spans[1:]:
        if _BETWEEN.fullmatch(text, out[-1][1], start):
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out
