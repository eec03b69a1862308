"""No text takes a pattern or a reader of texts longer than a time that is linear in it.

A pattern that is quadratic takes ten thousand times as long on a megabyte as on ten kilobytes; here each is tried on
repeats that are made from its own characters and words, in CPU time, and stopped when it takes far too long.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator

import patterns
import pyarrow as pa
import pytest

from claimscore.jobs import consistency, decompose, literals, names, quotes, rules, segment, subjects
from claimscore.jobs.citations import parse_citations
from claimscore.jobs.config import CitationsConfig, SegmentConfig
from claimscore.jobs.progress import printable
from claimscore.jobs.records import LOG

FOUND = patterns.patterns()
LIMIT_S = 0.4
"""CPU seconds for 30,000 characters of one kind, or 6,000 of two; a linear pattern takes 0.005."""


class TookTooLongError(Exception):
    """The time was up."""


@contextlib.contextmanager
def cpu_limit(seconds: float, what: str) -> Iterator[None]:
    """Raises TookTooLongError in a block that computes for longer, within a pattern too."""

    def stop(*_: object) -> None:
        raise TookTooLongError(f"{what}: more than {seconds} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("name", FOUND)
def test_a_pattern_is_linear_in_repeats_of_its_own_signs(name):
    """Searched, matched and replaced as the code does it: runs of one sign, of two, of a word, and a run after a beginning."""
    used = FOUND[name]
    chars, words = patterns.alphabet(used.pattern)
    pairs = [a + b for a in chars[:14] for b in chars[:14] if a != b]
    texts = [(char, char * 30_000 + "!\0") for char in chars]
    texts += [
        (unit, unit * (6_000 // len(unit)) + "!\0") for unit in (*pairs, *words, *(f"{w} " for w in words))
    ]
    texts += [(f"{a}, then {b}", a + b * 6_000 + "\0") for a in (*chars[:8], *words[:8]) for b in chars[:14]]
    for what, text in texts:
        with cpu_limit(LIMIT_S, f"{name} on {what!r}"):
            patterns.run(used, text)


def test_every_pattern_was_found():
    """A module whose patterns the walk does not see would be held by nothing."""
    seen = {name.partition(".")[0] for name in FOUND}
    files = {file.stem for file in patterns.JOBS.glob("*.py") if patterns.compiles(file)}

    assert files <= seen
    assert all(used.methods for used in FOUND.values())


def _citations(text: str) -> None:
    chunk = {"id": "a", "text": "x", "score": None}
    row = dict.fromkeys(LOG.names) | {"request_id": "r", "answer": text, "chunks": [chunk], "flags": []}
    log = pa.Table.from_pylist([row], LOG)
    sentences = segment.split_sentences(pa.array([text]), SegmentConfig())
    parse_citations(sentences, log, CitationsConfig(parentheses=True))


def _json(text: str) -> None:
    with contextlib.suppress(literals.BadValueError):
        literals.parse(text)


READERS: dict[str, Callable[[str], object]] = {
    "sentences and citations": _citations,
    "spans of chunks": lambda text: segment.sentence_spans(pa.array([text]), SegmentConfig()),
    "reply": lambda text: decompose.parse_reply(text, "length"),
    "reply of claims": lambda text: decompose.parse_reply(json.dumps({"claims": [text]})[:-2], "length"),
    "values": lambda text: rules.missing_values(
        pa.array(["It is 7 euro."]), pa.array([text]), pa.array([""])
    ),
    "values of a claim": lambda text: rules.has_values(pa.array([text])),
    "names": lambda text: names.has_name("Alpha Beta", text) or names.names_of(text),
    "subjects": lambda text: subjects.Passages([text, "Alpha is red. It is old."]).speak_of_another(
        "Alpha pays.", [(0, 0, len(text))]
    ),
    "injection": lambda text: rules.injection_suspected(pa.array([text])),
    "hedges": lambda text: rules.count_hedges(pa.array([text]), ["may", "it seems"]),
    "quotations": quotes.presented_quotes,
    "quotations found": lambda text: quotes.quotes_found(pa.array([["a word or two"]]), pa.array([[text]])),
    "list as text": _json,
    "samples": lambda text: consistency._outcome(text, ["no"]),
    "shown": printable,
}
RUNS = [*"a1A .,;:!?-_'\"()[]{}<>*`#|\\/=&$~@+%\n\t\0", "é", "字", "ä ", "。", "\u200b", "\u202e", "😀", "ก"]
UNITS = ["[1]", "[1, ", "(1)", "【1】", "[[", "](", "[a](b)", "**a ", "`` ` ", "<b>", "&amp;", "$1$", "- ", "> ", "1. ", "| a ", "\\(", "\\[1\\]", "# ", "\n\n", "```\n", '"a" ', "'a', ", "{'a': ", "A. B", "12 ", "1,", "1.", "1 / 2 ", "5 EUR ", "Mr. ", "a-", "Aa ", "no not ", "ignore all ", '"\\u', "“", "ß.", "I "]  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_takes_any_text_in_linear_time(reader):
    """30,000 characters of any sign or short repeat in a second of CPU time, mostly in a tenth of it."""
    for unit in (*RUNS, *UNITS):
        text = unit * (30_000 // len(unit))
        assert min(_cpu_seconds(reader, unit, text) for _ in range(2)) < 1.0, unit


def _cpu_seconds(reader: str, unit: str, text: str) -> float:
    """One of two tries: on a machine that others use a second of CPU time is now and then a third of one."""
    began = time.process_time()
    with cpu_limit(4.0, f"{reader} on {unit!r}"):
        READERS[reader](text)
    return time.process_time() - began
