"""Citation marks, provider citations and quotations: golden cases, laws, and time on hostile input."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs import records
from claimscore.jobs.citations import parse_citations, quotes_found
from claimscore.jobs.config import CitationsConfig, SegmentConfig
from claimscore.jobs.provider import has_unverified_spans
from claimscore.jobs.segment import split_sentences

GOLDEN = (Path(__file__).parent / "golden" / "citations.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(line) for line in GOLDEN]
MARKED = st.lists(
    st.sampled_from(
        [
            "The fee is 5",
            ". ",
            "[1]",
            "[0]",
            "[2, 3]",
            "[1-3]",
            "[9-1]",
            "[^2]",
            "【1†source】",
            "[d_1]",
            "[d_9]",
            "[2024]",
            "`x[1]`",
            "```\n",
            "\n- ",
            "[",
            "]",
            ": ",
            "\n\n",
            "(1)",
            "“five words are in here” ",
            "[1](http://a)",
            "According to ",
        ]
    )
    | st.text(max_size=3),
    max_size=15,
).map("".join)


def log(*answers, ids=("a1", "b2", "c3"), citations=None):
    empty = dict.fromkeys(records.LOG.names)
    chunks = [{"id": i, "text": "text", "score": None} for i in ids]
    return pa.Table.from_pylist(
        [
            empty
            | {"request_id": f"r{n}", "answer": a, "chunks": chunks, "flags": [], "citations": citations}
            for n, a in enumerate(answers)
        ],
        schema=records.LOG,
    )


def parsed(table, **config):
    answers = table["answer"].combine_chunks()
    return parse_citations(split_sentences(answers, SegmentConfig()), table, CitationsConfig(**config))


def rows(answer, *, ids=("a1", "b2", "c3"), citations=None, **config):
    return parsed(log(answer, ids=ids, citations=citations), **config).to_pylist()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden_citations(case):
    """The golden answer cites, makes up and quotes what the golden file says, and its text is free of marks."""
    found = [
        {"text": r["text"], "cited": r["cited_ids"], "fabricated": r["fabricated_marks"]}
        | ({"quotes": r["quotes"]} if r["quotes"] else {})
        for r in rows(case["answer"], ids=case["chunk_ids"], **case.get("config", {}))
    ]

    assert case["sentences"] == found


@given(MARKED, st.booleans())
def test_any_text_parses_to_the_schema(answer, parentheses):
    """Every answer gives rows of the schema, and cited ids are retrieved ones."""
    table = parsed(log(answer, ids=("d_1", "d_2")), parentheses=parentheses)

    assert table.schema.equals(records.SENTENCES)
    assert {i for ids in table["cited_ids"].to_pylist() for i in ids} <= {"d_1", "d_2"}


@given(MARKED)
def test_offsets_and_order_are_those_of_the_sentences(answer):
    """Parsing citations moves, adds and drops no sentence."""
    table = log(answer)
    sentences = split_sentences(table["answer"].combine_chunks(), SegmentConfig())
    keys = ["answer_index", "sentence_index", "start", "end", "is_refusal"]

    assert sentences.select(keys).equals(parsed(table).select(keys))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_every_number_is_cited_or_fabricated(numbers):
    """A listed number is an id where there is such a chunk, and else a fabricated mark; none is lost."""
    (row,) = rows(f"The fee is five [{', '.join(map(str, numbers))}].")

    assert {"a1", "b2", "c3"} & {("a1", "b2", "c3")[n - 1] for n in numbers if 1 <= n <= 3} == set(
        row["cited_ids"]
    )
    assert {f"[{n}]" for n in numbers if not 1 <= n <= 3} == set(row["fabricated_marks"])


def test_empty_sentences_give_the_empty_schema():
    """No sentence in, the empty table with the whole schema out."""
    assert records.SENTENCES.empty_table().equals(parsed(log(None, "")))


def test_rows_cite_the_chunks_of_their_own_answer():
    """`[1]` is the first chunk of the answer at hand, also where an answer between has no sentence."""
    first, second = log("A fee [1].", ids=["x1"]), log(None, "A fee [1].", ids=["y1"])

    assert parsed(pa.concat_tables([first, second]))["cited_ids"].to_pylist() == [["x1"], ["y1"]]


def test_marks_leave_the_context_too():
    """The context that a claim is read in has no marks."""
    assert rows("The fee is 5 [1]. It is due.")[1]["context"] == "The fee is 5."


ANSWER = "Gebühr 😀: 5 €. Und mehr sind 7."


@pytest.mark.parametrize(
    "start, end",
    [(10, 13), (10, 12), (14, 19), (14, 18), (11, 14), (11, 13), (70, 90)],
    ids=[
        "code points",
        "inclusive",
        "bytes",
        "bytes inclusive",
        "utf-16",
        "utf-16 inclusive",
        "wrong: unique find",
    ],
)
def test_provider_offsets_are_read_in_every_unit(start, end):
    """An umlaut and an emoji before the text: whatever the owner counts, the citation lands on its sentence."""
    citations = [{"start": start, "end": end, "text": "5 €", "chunk_ids": ["b2", "zz"]}]
    first, second = rows(ANSWER, citations=citations)

    assert (first["cited_ids"], first["fabricated_marks"]) == (["b2"], ["zz"])
    assert (second["cited_ids"], second["fabricated_marks"]) == ([], [])


def test_provider_citations_replace_marks():
    """Where the provider says what is cited, a mark is taken out of the text and counts for nothing."""
    answer = "The fee is 5 [9]. It is due."
    (first, second) = rows(
        answer, citations=[{"start": 18, "end": 28, "text": "It is due.", "chunk_ids": ["c3"]}]
    )

    assert (first["text"], first["cited_ids"], first["fabricated_marks"]) == ("The fee is 5.", [], [])
    assert second["cited_ids"] == ["c3"]


def test_a_citation_over_two_sentences_counts_for_both():
    """A span that overlaps two sentences cites for both."""
    found = rows(
        "One fee. Two fees. Three.",
        citations=[{"start": 4, "end": 12, "text": "fee. Two", "chunk_ids": ["a1"]}],
    )

    assert [row["cited_ids"] for row in found] == [["a1"], ["a1"], []]


@pytest.mark.parametrize("text", ["not in the answer", "fee"])
def test_a_citation_without_a_place_counts_for_the_whole_answer(text):
    """A cited text that is not there, or there twice, keeps its ids for every sentence, and is reported."""
    citations = [{"start": 90, "end": 95, "text": text, "chunk_ids": ["a1"]}]

    assert [row["cited_ids"] for row in rows("One fee. Two fees.", citations=citations)] == [["a1"], ["a1"]]
    assert has_unverified_spans(log("One fee. Two fees.", citations=citations)).to_pylist() == [True]


def test_an_empty_list_of_provider_citations_leaves_the_marks():
    """A provider that gave no citation does not hide a fabricated mark."""
    assert rows("The fee is 5 [9].", citations=[])[0]["fabricated_marks"] == ["[9]"]


def found(quotes, texts):
    return quotes_found(pa.array([quotes], pa.list_(pa.string())), pa.array([texts], pa.list_(pa.string())))[
        0
    ].as_py()


@pytest.mark.parametrize(
    "quote, text, expected",
    [
        ("the fee is five", "Here THE\u00a0fee  is\nfive euros.", True),
        ("don’t pay “twice” – ever", 'Don\'t pay "twice" - ever.', True),
        ("cooperation", "co\u00adoperation", True),
        ("ﬁve euros", "five euros", True),
        ("the fee is five,", "the fee is five euros", True),
        ("the fee … five euros", "the fee is five euros", True),
        ("five euros ... the fee", "the fee is five euros", False),
        ("[T]he fee is five", "the **fee** is[3] five", True),
        ("the fee is six", "the fee is five", False),
        ("fee is 5", "the fee is 50", False),
        ("he fee is", "the fee is 5", False),
        ("费用是", "年费用是5元", True),
        ("", "the fee", False),
        (" \u00a0", "the fee", False),
        ("...", "the ... fee", False),
        ("\u00ad", "the fee", False),
        ("e", "the fee", False),
        ("fee", "", False),
    ],
)
def test_quotes_are_verbatim_after_folding(quote, text, expected):
    """A quotation is found whatever its case, blanks and typography, never by a part of a word or by being blank."""
    assert found([quote], [text]) is expected


def test_every_quote_needs_one_text():
    """All quotes must be found, each in any one text; the parts of one quote in the same text."""
    assert found(["fee is five", "due in May"], ["The fee is five.", "It is due in May."]) is True
    assert found(["fee is five", "due in June"], ["The fee is five.", "It is due in May."]) is False
    assert found(["fee is … in May"], ["The fee is five.", "It is due in May."]) is False


def test_chunks_that_are_null_or_have_no_id_are_no_place_of_a_mark():
    """Positions count the chunks that have one."""
    table = log("The fee is 5 [2].", "It is 6 [1].", "It is 7 [a1].", ids=("a1", "b2"))
    first, blank, second = ({"id": of, "text": "text", "score": None} for of in ("a1", "", "b2"))
    beside = [[None, first, blank, second], None, [first]]
    chunks = pa.array(beside, table.schema.field("chunks").type)
    table = table.set_column(table.schema.get_field_index("chunks"), "chunks", chunks)
    sentences = split_sentences(table.column("answer").combine_chunks(), SegmentConfig())

    found = parse_citations(sentences, table, CitationsConfig())

    assert found.column("cited_ids").to_pylist() == [["b2"], [], ["a1"]]
    assert found.column("fabricated_marks").to_pylist() == [[], ["[1]"], []]


def test_no_quotes_is_null_and_no_texts_is_false():
    """A row without quotes has nothing to find; a quote without texts is not found."""
    assert found([], ["text"]) is None
    assert found(None, ["text"]) is None
    assert found(["a quote"], []) is False
    assert found(["a quote"], None) is False


@pytest.mark.parametrize(
    "answer",
    [
        "The fee " + "".join(f"[{i}]" for i in range(10_000)),
        "[" * 50_000,
        "[1" * 50_000,
        "[1," * 30_000,
        "“a b c d" * 10_000,
        "According to " * 8_000 + "[1]",
    ],
    ids=["10,000 marks", "open", "open numbers", "open lists", "open quotes", "spoken"],
)
def test_hostile_marks_are_linear(answer):
    """10,000 marks and brackets that never close take a second or two at most."""
    started = time.process_time()

    rows(answer, parentheses=True)

    assert time.process_time() - started < 5


def test_ten_thousand_provider_citations_are_linear():
    """10,000 citations, none of which can be placed by its offsets, take a second or two at most."""
    answer = "Der Preis ist fünf €. " * 2_000
    citations = [
        {"start": i, "end": i + 7, "text": "nowhere", "chunk_ids": [f"x{i % 50}"]} for i in range(10_000)
    ]
    started = time.process_time()

    rows(answer, citations=citations)

    assert time.process_time() - started < 8


@pytest.mark.parametrize("answer", ["A fee [[1]].", "A fee [[1], [2]].", "A fee ([1])."])
def test_brackets_around_marks_go_with_them(answer):
    """Models write [[1]]; an empty pair of brackets is no part of a claim."""
    assert rows(answer)[0]["text"] == "A fee."


def test_a_long_run_of_marks_is_no_claim():
    """A sentence with 10,000 marks is longer than any sentence may be; it is still one sentence, and all its marks are read."""
    found = rows(f"The fee is 5{'[1]' * 10_000}[2].")

    assert [(row["text"], row["cited_ids"], row["fabricated_marks"]) for row in found] == [
        ("The fee is 5.", ["a1", "b2"], [])
    ]
