"""Sentences: golden cases, laws over any text, refusals, context, and time on hostile input."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs import records
from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.segment import sentence_spans, split_sentences

CONFIG = SegmentConfig()
GOLDEN = (Path(__file__).parent / "golden" / "segment.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(line) for line in GOLDEN]

# What answers are made of, so that random texts meet every rule, and any character at all.
PIECES = st.sampled_from(
    [
        "The fee is 5.",
        "Dr. Lee",
        "e.g. ",
        "[1]",
        "[2, 3] ",
        ". ",
        "! ",
        "? ",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "12. ",
        "1986. ",
        "> ",
        "# ",
        "```\n",
        "`",
        "**",
        "*",
        "_",
        "| a | b |\n|---|---|\n",
        "| a | b |\n",
        " ",
        "  ",
        "\t",
        "\r\n",
        "\u2028",
        "\\",
        "$",
        "&amp;",
        "<br>",
        "[a](b)",
        "(",
        ")",
        '"',
        "“",
        "”",
        "。",
        "？",
        "กรุงเทพ",
        "费用",
        "शुल्क है।",
        "😀",
        "é",
        ":",
        "x: \n",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=5), max_size=25).map("".join)


def rows(answer, config=CONFIG):
    return split_sentences(pa.array([answer]), config).to_pylist()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden_sentences(case):
    """The golden answer falls into the golden sentences, as written and as judged."""
    found = [
        {"written": case["answer"][r["start"] : r["end"]], "text": r["text"], "block": r["block"]}
        | ({"is_refusal": True} if r["is_refusal"] else {})
        for r in rows(case["answer"])
    ]

    assert case["sentences"] == found


@given(TEXTS)
def test_offsets_slice_the_answer_in_order(answer):
    """Sentences are non-empty slices without outer blanks, in order, and do not overlap."""
    at = 0
    for row in rows(answer):
        written = answer[row["start"] : row["end"]]
        assert at <= row["start"] < row["end"] <= len(answer)
        assert written == written.strip() != ""
        at = row["end"]


@given(TEXTS)
def test_no_word_is_left_out_of_the_sentences(answer):
    """Every letter of an answer is inside a sentence; only list numbers and names of fences may lie outside."""
    covered = bytearray(len(answer))
    for row in rows(answer):
        covered[row["start"] : row["end"]] = b"\x01" * (row["end"] - row["start"])
    outside = "".join(c if not covered[i] else " " for i, c in enumerate(answer))

    assert "fee" not in outside
    assert "费用" not in outside
    assert "กรุงเทพ" not in outside


@given(TEXTS)
def test_spans_tile_all_that_is_not_blank(text):
    """The spans of a chunk are in order, do not overlap and leave nothing but blanks between them."""
    (spans,) = sentence_spans(pa.array([text]), CONFIG).to_pylist()
    at = 0
    for span in spans:
        assert not text[at : span["start"]].strip()
        assert at <= span["start"] < span["end"]
        at = span["end"]

    assert not text[at:].strip()


@given(TEXTS)
def test_two_runs_are_equal(answer):
    """Splitting is a function of the text alone."""
    assert rows(answer) == rows(answer)


def test_null_blank_and_no_answers_give_no_rows():
    """Nulls, blanks and an empty column give an empty table with the schema of the stage."""
    table = split_sentences(pa.array([None, "", " \n"], pa.string()), CONFIG)
    empty = split_sentences(pa.array([], pa.string()), CONFIG)

    assert 0 == table.num_rows == empty.num_rows
    assert table.schema.equals(empty.schema)
    assert all(table.schema.field(n).equals(records.SENTENCES.field(n)) for n in table.column_names)
    assert sentence_spans(pa.array([None, " "], pa.string()), CONFIG).to_pylist() == [[], []]


def test_answer_index_is_the_row_of_the_batch():
    """Sentences carry the row of their answer, and count from 0 in each."""
    table = split_sentences(pa.array(["One. Two.", None, "Three."]), CONFIG)

    assert table["answer_index"].to_pylist() == [0, 0, 2]
    assert table["sentence_index"].to_pylist() == [0, 1, 0]


def test_rows_of_a_table_and_items_are_spans_of_their_own():
    """A chunk's table rows and list items can be told apart by a window."""
    text = "Plans:\n| Plan | Fee |\n|---|---|\n| A | 5 |\n\n- one\n- two"
    (spans,) = sentence_spans(pa.array([text]), CONFIG).to_pylist()

    assert [text[s["start"] : s["end"]] for s in spans] == [
        "Plans:",
        "| Plan | Fee |",
        "|---|---|\n| A | 5 |",
        "- one",
        "- two",
    ]


@pytest.mark.parametrize(
    "answer, expected",
    [
        ("I'm sorry. I can't say!", [True, True]),
        ("**I'M SORRY.**  I can't say", [True, True]),
        ("I'm sorry. The fee is 5.", [False, False]),
        ("The fee is 5. I'm sorry. I can't say. [2]", [False, True, True]),
        ("I'm sorry. I can't say. The fee is 5.", [True, True, False]),
        ("I'm sorry. I can't say, but the fee is 5.", [False, False]),
    ],
)
def test_refusal_is_a_whole_marker(answer, expected):
    """A marker of two sentences is found as a whole and only so, whatever its case, blanks, markup and marks."""
    config = SegmentConfig(refusal_markers=("I'm sorry. I can't say.",))

    assert expected == [row["is_refusal"] for row in rows(answer, config)]


def test_context_is_the_sentences_before_cut_at_a_word():
    """The context ends with the sentence before and begins at a word, within its limits."""
    config = SegmentConfig(context_sentences=2, context_chars=20)
    contexts = [row["context"] for row in rows("Alpha beta gamma one. Delta two. It ends.", config)]

    assert contexts == ["", "beta gamma one.", "one. Delta two."]


def test_context_stays_within_an_answer():
    """The first sentence of an answer never sees the answer before it."""
    assert split_sentences(pa.array(["One.", "Two."]), CONFIG)["context"].to_pylist() == ["", ""]


def test_a_late_list_item_still_sees_its_lead_in():
    """`Not included:` stands in the context of every item of its list, however long."""
    contexts = [row["context"] for row in rows("Not included:\n- batteries\n- cable\n- lamp\n- case")]

    assert all(context.startswith("Not included:") for context in contexts[1:])


def test_a_long_sentence_is_cut_at_a_blank():
    """No sentence is longer than the cap, and words stay whole where there are blanks."""
    answer = "word " * 200
    config = SegmentConfig(max_sentence_chars=203)

    texts = [row["text"] for row in rows(answer, config)]

    assert len(texts) == 5
    assert {"word"} == set(" ".join(texts).split())


def test_a_text_without_blanks_is_cut_by_icu():
    """A long Thai text falls into pieces of at most 160 characters and none is cut within a word."""
    answer = "😀" * 3 + "กรุงเทพเป็นเมืองหลวงของไทย" * 30

    written = [answer[r["start"] : r["end"]] for r in rows(answer)]

    assert answer == "".join(written)
    assert max(map(len, written)) <= 160
    assert all(piece.startswith(("กรุงเทพ", "เป็น", "เมือง", "หลวง", "ของ", "ไทย")) for piece in written[1:])


@pytest.mark.parametrize("prose", ["Fees:", "Here are 3 options:"])
def test_a_colon_before_a_list_is_a_lead_in(prose):
    """What introduces a list makes no claim of its own; at the end of an answer it is an ordinary sentence."""
    assert rows(f"{prose}\n- five")[0]["block"] == "lead_in"
    assert rows(prose)[0]["block"] == "paragraph"


@pytest.mark.parametrize("mark", "?？؟")
def test_questions_of_any_script(mark):
    """A question is named by its mark, also behind a quote sign and a citation."""
    assert rows(f"Is it due{mark}")[0]["block"] == "question"
    assert rows(f"Is “it due{mark}” [1]")[0]["block"] == "question"


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "1",
        " ",
        "\n",
        ".",
        "a. ",
        "(",
        "[",
        "[1]",
        "[1",
        "`",
        "*",
        "**a",
        "_",
        "“",
        '"',
        "|",
        "<b",
        "$a",
        "\\",
        "](",
        "> ",
        "😀",
        "ก",
        "。",
    ],
)
def test_hostile_text_is_linear(text):
    """100,000 characters of one kind take a second or two at most, not the minutes of a quadratic rule."""
    answer = text * (100_000 // len(text))
    started = time.process_time()

    rows(answer)
    sentence_spans(pa.array([answer]), CONFIG)

    assert time.process_time() - started < 5
