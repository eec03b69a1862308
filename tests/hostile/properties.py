"""What holds for every text that a reader of hostile texts is given; a broken promise raises.

Shared by the hypothesis tests and the coverage-guided fuzz target: one function a reader, a text in, nothing out.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pyarrow as pa

from claimscore.jobs import blocks, consistency, decompose, inline, literals, quotes, rules, segment
from claimscore.jobs.citations import parse_citations
from claimscore.jobs.config import CitationsConfig, SegmentConfig
from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import ConfigError
from claimscore.jobs.hidden import visible
from claimscore.jobs.provider import place_citations
from claimscore.jobs.records import CHUNK, LOG

SEEDS = (
    "0The fee is 5 euro [1]. It is due on 3 May 2024 (see [2, 3-4]).\n\n- a **b** `c`\n| a | b |\n|---|---|\n| 1 | 2 |",
    '1{"claims": ["The fee is 5.", "It is \\u00e9."]}',
    "2[{'id': 'a', 'text': 'x', 'score': 1.5}, None]",
    '3[decompose]\nmodel = "m"\nchecker = "c"\n[read]\nlogs = "x/{date}"\ncolumns = {answer = ["a"]}\n',
    "4It costs Rs 3 lakh, 12/04/2024, 5:30 pm, 1.250,00 EUR each, about ½ of 2.9 million.\x00It costs 300,000 rupees.",
    "5“a quoted text of words” and 'one'\x00a quoted text … of words",
    "6[1](http://x) <b>y</b> &amp; $x^2$ \\(5\\) \\frac{1}{2} **z** [[1]](u)",
    "7answer é😀\x00text",
)


def sentences(text: str) -> None:
    """Offsets slice the answer in order; spans tile the chunk; parsing citations keeps every row."""
    table = segment.split_sentences(pa.array([text]), SegmentConfig())
    at = 0
    for start, end in zip(table["start"].to_pylist(), table["end"].to_pylist(), strict=True):
        assert at <= start < end <= len(text), "a sentence out of place"
        at = end
    (spans,) = segment.sentence_spans(pa.array([text]), SegmentConfig()).to_pylist()
    covered = "".join(text[s["start"] : s["end"]] for s in spans)
    assert "".join(covered.split()) == "".join(text.split()), "a character of a chunk in no span"
    chunk = pa.array([[{"id": i, "text": "x", "score": None} for i in ("a1", "doc_2", "3")]], pa.list_(CHUNK))
    columns = {f.name: pa.nulls(1, f.type) for f in LOG} | {"answer": pa.array([text]), "chunks": chunk}
    cited = parse_citations(table, pa.table(columns), CitationsConfig(parentheses=len(text) % 2 == 0))
    assert cited.num_rows == table.num_rows
    assert {i for ids in cited["cited_ids"].to_pylist() for i in ids} <= {"a1", "doc_2", "3"}


def reply(text: str) -> None:
    """A reply is claims or a named reason."""
    for reason in ("stop", "length"):
        claims, outcome = decompose.parse_reply(text, reason)
        assert outcome
        for claim in claims or ():
            claim.encode()  # half a surrogate pair raises


def literal(text: str) -> None:
    """A value, or the one exception that quarantines the row."""
    with contextlib.suppress(literals.BadValueError):
        target = LOG.field("chunks").type
        pa.array([literals.from_python(literals.parse(text), target)], target)


def config(text: str) -> None:
    """A config, or a ConfigError in one line."""
    path = Path(tempfile.gettempdir()) / "claimscore-fuzz.toml"
    path.write_text(text, encoding="utf-8")
    told = ""
    try:
        load_config(path, [text.partition("\n")[0]])
    except ConfigError as err:
        told = str(err)
    assert told.isprintable()


def values(text: str) -> None:
    """Values that a claim lacks stand in the claim; nothing lacks its own values."""
    claim, _, premise = text.partition("\0")
    (missing,) = rules.missing_values(pa.array([claim]), pa.array([premise]), pa.array([""])).to_pylist()
    assert all(value in claim for value in missing)
    rules.missing_names(pa.array([claim]), pa.array([premise]))
    rules.injection_suspected(pa.array([claim]))


def quoted(text: str) -> None:
    """Quotations are parts of the sentence, and a quotation is found in itself."""
    sentence, _, chunk = text.partition("\0")
    found = quotes.presented_quotes(sentence)
    assert all(quote in sentence for quote in found)
    quotes.quotes_found(pa.array([found], pa.list_(pa.string())), pa.array([[chunk]]))
    consistency._outcome(sentence, ["i do not know"])


def marked_up(text: str) -> None:
    """Plain text has a place in the source for every character, in order; blocks hold every word once."""
    plain, places = inline.strip_inline(text)
    assert len(plain) == len(places)
    assert list(places) == sorted(places)
    at = -1
    for block in blocks.read_blocks(text):
        for start, end in block.lines:
            assert at <= start <= end <= len(text)
            at = end
    shown, where = visible(text)
    assert where is None or "".join(text[i] for i in where) == shown


def provider(text: str) -> None:
    """A place of a citation is within the answer."""
    answer, _, cited = text.partition("\0")
    spans = place_citations(answer, [{"start": len(cited), "end": 2 * len(cited), "text": cited or None}])
    assert all(span is None or 0 <= span[0] < span[1] <= len(answer) for span in spans)


TARGETS = (sentences, reply, literal, config, values, quoted, marked_up, provider)
