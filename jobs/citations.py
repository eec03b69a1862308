"""What each sentence cites and quotes, with the marks taken out of its text.

Brackets are found here and read by `marks.py`; provider citations, where the log has them, take the place of
marks (`provider.py`); quotations are `quotes.py`'s. What sentences without a claim cite (lead-ins, headings, refusals,
marks alone) is handed to those with one, so that a fabricated mark never drops out. Knows nothing of meaning: whether a
cited chunk supports the sentence is for the judge.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import records
from claimscore.jobs.config import CitationsConfig
from claimscore.jobs.inline import code_spans
from claimscore.jobs.marks import ChunkIds, read_mark
from claimscore.jobs.provider import ids_by_sentence
from claimscore.jobs.quotes import presented_quotes, quotes_found
from claimscore.jobs.windows import list_array, list_offsets

__all__ = ["parse_citations", "quotes_found", "uncarried_marks"]

_OPEN, _CLOSE = r"\[［【〔", r"\]］】〕"
_BRACKET = rf"[{_OPEN}](?P<body>[^{_OPEN}{_CLOSE}\n]++)[{_CLOSE}]"
_LINK = r"(?:\((?:https?:|#|/|www\.)[^()\s]*+\))?"
_MARK = re.compile(_BRACKET + _LINK)
_MARK_OR_PAREN = re.compile(
    rf"{_BRACKET}{_LINK}|\((?P<paren>\s*+\d{{1,3}}(?:\s*+[,;\-–—]\s*+\d{{1,3}})*+\s*+)\)"
)
_SPOKEN = re.compile(
    r"(?:according to|based on|see(?: also)?|(?:as )?per|cf\.?|(?:as )?(?:stated|noted|mentioned|described|shown"
    r"|reported|cited|found|discussed|outlined|seen|given|listed) (?:in|by))\s+(?:(?:the )?(?:source|document|passage|chunk|context)s?\s+)?$",
    re.IGNORECASE,
)
_SPOKEN_FIRST = re.compile(
    r"\s*(?:in|from|by|(?:the )?(?:source|document|passage|chunk|context))\s+$", re.IGNORECASE
)
_SPOKEN_ENDS = (
    *("to", "on", "see", "also", "per", "cf", "cf.", "in", "from", "by"),
    *(
        "source",
        "sources",
        "document",
        "documents",
        "passage",
        "passages",
        "chunk",
        "chunks",
        "context",
        "contexts",
    ),
)
"""Every match of the two above ends with one of them, blanks aside."""
_SAYS = re.compile(
    r"\s*(?:says?|states?|notes?|reports?|shows?|indicates?|mentions?|explains?|confirms?|describes?)(?: that)?\s+"
)
_ONLY_SOURCES = re.compile(r"\W*(?:sources?|references?|citations?|refs?|see|quellen?)?\W*", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*+(?:,|;|and|&|-|–)?\s*+")
_CUT_OFF = re.compile(rf"(?<!\s)\s*+[{_OPEN}]\s?\^?\d{{0,4}}\Z")  # an answer that ends within a mark
_WRAPS = ("()", "（）", "[]", "［］", "【】")
_BRACKETS = re.compile(rf"[{_OPEN}]")


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


def uncarried_marks(sentences: pa.Table, n_answers: int) -> pa.ListArray:
    """The fabricated marks of each answer that no claim will carry, since no sentence of it makes one.

    Args:
        sentences: what `parse_citations` gives, `answer_index` below `n_answers`.
        n_answers: rows of the log.

    Returns:
        list<string>, `n_answers` long: marks that stand on sentences without a claim and on no other, each once,
        in order; an empty list for an answer without any, and for one without a sentence.
    """
    lost: list[dict[str, None]] = [{} for _ in range(n_answers)]
    carried: list[set[str]] = [set() for _ in range(n_answers)]
    columns = ("answer_index", "block", "is_refusal", "text", "fabricated_marks")
    for row in sentences.select(columns).to_pylist():
        index, marks = row["answer_index"], row["fabricated_marks"]
        if _makes_claim(row):
            carried[index].update(marks)
        else:
            lost[index].update(dict.fromkeys(marks))
    rows = [[m for m in marks if m not in kept] for marks, kept in zip(lost, carried, strict=True)]
    return pa.array(rows, pa.list_(pa.string()))


def _makes_claim(row: dict[str, Any]) -> bool:
    """False for what `decompose` makes no claim of."""
    if row["block"] == "code":
        return True
    is_claimless = row["is_refusal"] or row["block"] in records.CLAIMLESS_BLOCKS
    return not is_claimless and any(char.isalnum() for char in row["text"])


def _by_answer(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    for index, group in itertools.groupby(rows, key=lambda row: row["answer_index"]):
        yield index, list(group)


def _chunks_of(log: pa.Table, config: CitationsConfig) -> list[ChunkIds]:
    chunks = list_array(log.column("chunks"))
    ids, offsets = pc.struct_field(chunks.flatten(), "id").to_pylist(), list_offsets(chunks)
    return [
        ChunkIds.of([chunk_id for chunk_id in ids[lo:hi] if chunk_id], config.first_number)
        for lo, hi in itertools.pairwise(offsets)
    ]


def _resolve(row: dict[str, Any], answer: str, chunks: ChunkIds, config: CitationsConfig) -> None:
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
        row["text"] = _CUT_OFF.sub("", _without(text, [span for span, _, _ in marks]))
        if marks and _ONLY_SOURCES.fullmatch(row["text"]):
            row["text"], row["block"] = "", "meta"
    if _BRACKETS.search(row["context"]):
        spans = [span for span, _, _ in _marks(row["context"], "", pattern, chunks)]
        row["context"] = _without(row["context"], spans)
    row["quotes"] = presented_quotes(row["text"])


def _carry(rows: Sequence[dict[str, Any]]) -> None:
    """Hand the citations of sentences that make no claim to those that do, so that none is lost.

    A lead-in's ids count for the list items and rows under it that cite nothing themselves. What was fabricated there
    or in a heading goes to the next claim, what was in a refusal or another sentence to the claim before, and
    either to the only side that has one. Code, which no judge reads, gets marks only where nothing else claims.
    """
    claims = [i for i, row in enumerate(rows) if _makes_claim(row)]
    claims = [i for i in claims if rows[i]["block"] != "code"] or claims
    for i, row in enumerate(rows):
        if not (row["cited_ids"] or row["fabricated_marks"]):
            continue
        if row["block"] == "lead_in" or row["text"].endswith((":", "：")):
            _lend(row, rows[i + 1 : i + 99])
        if _makes_claim(row) or not claims:
            continue
        at = bisect.bisect(claims, i)
        forward = row["block"] in ("lead_in", "heading") and not row["is_refusal"]
        heir = rows[claims[at] if at < len(claims) and (forward or at == 0) else claims[at - 1]]
        if row["block"] == "meta" and not row["is_refusal"]:
            bare = [rows[j] for j in claims if not rows[j]["cited_ids"]] if i == len(rows) - 1 else [heir]
            for item in bare:  # a list of sources at the end is for what cites nothing else
                item["cited_ids"] = list(dict.fromkeys([*item["cited_ids"], *row["cited_ids"]]))
        heir["fabricated_marks"] = list(dict.fromkeys([*heir["fabricated_marks"], *row["fabricated_marks"]]))
        row["fabricated_marks"] = []


def _lend(lead: dict[str, Any], following: Sequence[dict[str, Any]]) -> None:
    """Give the ids of a lead-in to the items and rows under it that cite nothing."""
    for item in itertools.takewhile(lambda item: item["block"] in ("list_item", "table_row"), following):
        if not (item["cited_ids"] or item["fabricated_marks"]):
            item["cited_ids"] = list(lead["cited_ids"])


_Mark = tuple[tuple[int, int], Sequence[str], Sequence[str]]


def _marks(text: str, written: str, pattern: re.Pattern[str], chunks: ChunkIds) -> Iterator[_Mark]:
    """(span in `text`, ids, what points nowhere) of every citation mark of `text` that is not code in `written`."""
    code = _in_code(written, pattern) if "`" in written else iter(())
    for match in pattern.finditer(text):
        literal, is_code = next(((m, c) for m, c in code if m == match[0]), ("", False))
        if literal and is_code:
            continue
        paren = match.groupdict().get("paren")
        if paren is not None:
            starts = not text[: match.start()].strip()  # (1) in front numbers a list
            found = None if starts else read_mark(paren, match[0], chunks)
        elif match["body"].isalpha() and text[match.end() : match.end() + 1].isalpha():
            found = None  # [a]nother
        elif text[: match.start()].rstrip()[-1:] == "=":
            found = None  # xs = [1, 2]
        else:
            found = read_mark(match["body"], match[0], chunks)
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


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """`text` without the marks at `spans`, the words that only lead to them and the blanks around them."""
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, stop in _groups(text, spans):
        before, end = text[at:start], stop
        spoken = _spoken(before[-40:], is_first=not parts)
        before = before[: len(before) - len(spoken[0])] if spoken else before
        if (before.rstrip()[-1:] + text[end : end + 1]) in _WRAPS:  # ([1]) and [[1]]
            before, end = before.rstrip()[:-1], end + 1
        after = text[end : end + 1]
        opens = not before.strip() and not parts
        if opens or not after or after in " .,;:!?。，、；：！？)）":
            before = before.rstrip()
        parts.append(before)
        drops = ",:" if spoken else ":"  # "In [1], the fee"; "[^1]: the fee"
        at = end + (1 if opens and after and after in drops else 0)
        says = _SAYS.match(text, at) if opens else None
        if opens and (
            says or (spoken and spoken[0].lstrip()[:1].isupper())
        ):  # "In [1], the fee" -> "The fee"
            at = says.end() if says else at
            at = next((i for i in range(at, len(text)) if not text[i].isspace()), len(text))
            parts.append(text[at : at + 1].upper())
            at += 1
    return "".join((*parts, text[at:])).strip()


def _spoken(before: str, *, is_first: bool) -> re.Match[str] | None:
    """The words at the end of `before` that only lead to a mark; `is_first`: to the first of a sentence."""
    if before.isascii() and not before.rstrip().lower().endswith(_SPOKEN_ENDS):
        return None
    return _SPOKEN.search(before) or (_SPOKEN_FIRST.fullmatch(before) if is_first else None)


def _groups(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Marks that stand together, with what joins them, as one span."""
    out = [spans[0]]
    for start, end in spans[1:]:
        if _BETWEEN.fullmatch(text, out[-1][1], start):
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out
