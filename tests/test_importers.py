"""The rules that every importer keeps, whatever the tool: evidence, answer, ids, scores, repeats, counts."""

from __future__ import annotations

import contextlib
import json
import random
import string
from datetime import UTC, datetime
from pathlib import Path

import imports_fixture as fixture
import jobs_fixture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_job
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from imports_fixture import FEE, POOL, llm, retriever, root, run_import, span

from claimscore.jobs.cli import main
from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import InputError
from claimscore.jobs.import_citations import settle
from claimscore.jobs.import_counts import summary
from claimscore.jobs.import_documents import documents_of
from claimscore.jobs.import_spans import Options, as_frame
from claimscore.jobs.import_texts import answer_of, question_of
from claimscore.jobs.import_values import moment_of, nest
from claimscore.jobs.imports import TOOLS
from claimscore.jobs.literals import BadValueError


def texts(row):
    """The texts of a row's chunks."""
    return [chunk["text"] for chunk in row["chunks"]]


def rule(row):
    """How a row's evidence was found."""
    return row["origin"]["evidence_rule"]


# 1. Which chunks were handed over?


def test_documents_in_the_prompt_go_before_a_reranker(tmp_path: Path):
    """What stands in the variables of the prompt is what the model was handed."""
    rerank = span("cut", "RERANKER", at=2, reranker__output_documents=[{"document.content": "reranked"}])
    asked = llm(llm__prompt_template__variables=json.dumps({"question": "Fee?", "context": [FEE, POOL]}))

    found = run_import(tmp_path, "phoenix", [root(), retriever("far", "off"), rerank, asked]).row

    assert (texts(found), rule(found)) == ([FEE, POOL], "prompt_variables")


def test_chunks_that_a_reranker_cut_are_not_evidence(tmp_path: Path):
    """Never the retriever's top-k when a reranker left fewer."""
    rerank = span(
        "cut", "RERANKER", at=2, reranker__output_documents=[{"document.id": "d7", "document.content": FEE}]
    )

    found = run_import(tmp_path, "phoenix", [root(), retriever(POOL, FEE, "more"), rerank, llm()]).row

    assert (texts(found), rule(found), found["origin"]["retriever_span_id"]) == (
        [FEE],
        "last_reranker",
        "cut",
    )


def test_the_last_reranker_before_the_model_counts(tmp_path: Path):
    """Of two rerankers the later, and one after the answer not at all; that there were two is flagged."""
    cuts = [
        span(f"cut{at}", "RERANKER", at=at, reranker__output_documents=[{"document.content": f"at {at}"}])
        for at in (3, 2, 9)
    ]

    found = run_import(tmp_path, "phoenix", [root(), *cuts, llm()]).row

    assert (texts(found), "several_rerankers" in found["flags"]) == (["at 3"], True)


def test_the_one_retriever_before_the_model_is_the_evidence(tmp_path: Path):
    """A retriever that ran after the answer was made did not inform it."""
    found = run_import(
        tmp_path, "phoenix", [root(), retriever(FEE), llm(), retriever(POOL, name="late", at=9)]
    ).row

    assert (texts(found), rule(found)) == ([FEE], "last_retriever")


def test_a_multi_hop_trace_has_the_union_of_its_retrievers(tmp_path: Path):
    """In order of time, not of the file, and of a chunk found twice the first copy with its score."""
    again = {"document.id": "one-0", "document.content": FEE, "document.score": 0.1}
    second = span(
        "two", "RETRIEVER", at=3, retrieval__documents=[again, {"document.id": "x", "document.content": POOL}]
    )

    found = run_import(tmp_path, "phoenix", [second, llm(), root(), retriever(FEE, name="one", at=1)]).row

    assert rule(found) == "union_of_retrievers"
    assert [(c["id"], c["score"]) for c in found["chunks"]] == [("one-0", 0.8), ("x", None)]


def test_a_retriever_inside_a_retriever_is_not_counted_twice(tmp_path: Path):
    """What the outer one gave is what was handed over: it may have cut what the inner one found."""
    inner = retriever(FEE, POOL, name="inner", at=2, parent="outer")

    found = run_import(tmp_path, "phoenix", [root(), retriever(FEE, name="outer"), inner, llm()]).row

    assert (texts(found), rule(found)) == ([FEE], "last_retriever")


def test_documents_joined_in_the_prompt_are_found_again(tmp_path: Path):
    """A prompt that holds two of three documents as one text was handed those two, in its order."""
    asked = llm(llm__prompt_template__variables={"context": f"{POOL}\n\n{FEE}", "question": "Fee?"})

    found = run_import(tmp_path, "phoenix", [root(), retriever(FEE, "never sent", POOL), asked]).row

    assert (texts(found), rule(found)) == ([POOL, FEE], "prompt_variables")
    assert [c["id"] for c in found["chunks"]] == ["find-2", "find-0"]


def test_a_joined_text_that_is_something_else_is_not_believed(tmp_path: Path):
    """Where the documents make up little of it, the retriever is believed instead."""
    asked = llm(llm__prompt_template__variables={"context": FEE + " and much more that no document says" * 5})

    found = run_import(tmp_path, "phoenix", [root(), retriever(FEE, POOL), asked]).row

    assert (texts(found), rule(found)) == ([FEE, POOL], "last_retriever")


def test_documents_joined_in_the_prompt_and_found_nowhere_are_one_chunk(tmp_path: Path):
    """No span gave them, and their borders are lost: flagged."""
    asked = llm(llm__prompt_template__variables={"context": f"{FEE}\n\n{POOL}"})

    found = run_import(tmp_path, "phoenix", [root(), asked]).row

    assert (texts(found), found["flags"]) == ([f"{FEE}\n\n{POOL}"], ["chunks_joined", "ids_synthetic"])


def test_a_list_of_ids_in_the_prompt_is_no_evidence(tmp_path: Path):
    """Ids have no text: what the retriever gave is believed."""
    asked = llm(llm__prompt_template__variables={"documents": ["find-0", "find-1"]})

    found = run_import(tmp_path, "phoenix", [root(), retriever(FEE), asked]).row

    assert (texts(found), rule(found)) == ([FEE], "last_retriever")


def test_a_retriever_without_documents_is_not_an_empty_one(tmp_path: Path):
    """Content that was not recorded is unknown; an empty list was found to be empty."""
    hidden = [root(trace="a1"), span("find", "RETRIEVER", at=1), llm()]
    empty = [{**s, "context.trace_id": "a2"} for s in (root(), retriever(), llm())]

    found = run_import(tmp_path, "phoenix", [*hidden, *empty])

    assert found.reasons == ["documents_not_recorded"]
    assert (found.row["chunks"], rule(found.row)) == ([], "last_retriever")


def test_a_trace_without_retrieval_says_so(tmp_path: Path):
    """No retrieval is no context, and it is counted as found nowhere."""
    found = run_import(tmp_path, "phoenix", [root(), llm()])

    assert (found.row["chunks"], found.manifest["evidence_rules"]) == ([], {"none_found": 1})
    (warning,) = [line for line in summary(found.manifest) if line.startswith("warning: of ")]
    assert warning.startswith("warning: of 1 of 1 rows no retrieval was found among the spans")


@pytest.mark.parametrize("kind", ["EVALUATOR", "GUARDRAIL"])
def test_what_a_judge_retrieved_is_not_evidence(tmp_path: Path, kind: str):
    """A judge looks things up for itself, before the answer or after, and its words are no answer."""
    judge = span("judge", kind, at=2, output__value="bad")
    looked = retriever(POOL, name="look", at=3, parent="judge")
    said = {**llm(at=7, name="opinion"), "parent_id": "judge", "attributes.llm.model_name": "judge-model"}

    found = run_import(tmp_path, "phoenix", [root(), retriever(FEE), llm(at=5), judge, looked, said]).row

    assert (texts(found), found["model"]) == ([FEE], "m")


# 2. Which span is the answer?


def test_a_span_whose_parent_is_missing_is_the_root(tmp_path: Path):
    """A trace that began in another service, or on another day, has a root all the same."""
    found = run_import(tmp_path, "phoenix", [{**root(), "parent_id": "elsewhere"}, retriever(FEE), llm()])

    assert found.row["answer"] == "5 EUR."


def test_two_roots_are_not_guessed_at(tmp_path: Path):
    """Two outputs that may both be the answer put the trace aside, and a person can name the span."""
    spans = [
        root(),
        retriever(FEE),
        {**span("other", parent=None, at=2, output__value="No."), "parent_id": None},
    ]

    found = run_import(tmp_path, "phoenix", [*spans, {**root(trace="a2")}])
    named = run_import(tmp_path, "phoenix", spans, answer_span="other")

    assert found.reasons == ["ambiguous_root"]
    assert "--answer-span" in found.quarantine[0]["detail"]
    assert (named.row["answer"], texts(named.row)) == ("No.", [FEE])


def test_a_root_without_an_output_leaves_it_to_the_span_below(tmp_path: Path):
    """A web server's span on top says nothing; the chain under it does, and not the model calls under that."""
    web = span("root")
    chain = span("chain", at=1, input__value="Fee?", output__value="5 EUR.")

    found = run_import(tmp_path, "phoenix", [web, chain, {**llm(), "parent_id": "chain"}])

    assert (found.row["answer"], found.row["origin"]["span_id"]) == ("5 EUR.", "chain")


def test_a_trace_that_failed_has_no_answer(tmp_path: Path):
    """The last words of a call inside it were never shown to anybody."""
    failed = {**span("root", input__value="Fee?"), "status_code": "ERROR"}

    found = run_import(tmp_path, "phoenix", [failed, llm(), {**root(trace="a2")}])

    assert found.reasons == ["trace_failed"]


@pytest.mark.parametrize("size", [1, 2, 3_000])
def test_parents_in_a_circle_are_named(tmp_path: Path, size: int):
    """A span that is its own ancestor neither hangs the import nor has a root."""
    circle = [
        {**span(f"s{k}", at=1, output__value="x"), "parent_id": f"s{(k + 1) % size}"} for k in range(size)
    ]

    found = run_import(tmp_path, "phoenix", [*circle, {**root(trace="a2")}])

    assert found.reasons == ["no_root"]


def test_a_trace_of_two_days_meets_over_its_files(tmp_path: Path):
    """Spans of a trace that crosses midnight lie in two files of the export."""
    files = {"day=1/a.jsonl": [retriever(FEE)], "day=2/a.jsonl": [root(), llm()]}

    assert texts(run_import(tmp_path, "phoenix", files).row) == [FEE]


# 3. No id.


def test_the_trace_is_the_request(tmp_path: Path):
    """Without an id of its own an answer has its trace's; a chunk without one is counted, and flagged."""
    found = run_import(
        tmp_path,
        "phoenix",
        [root(), span("f", "RETRIEVER", retrieval__documents=[{"document.content": FEE}])],
    ).row

    assert (found["request_id"], found["chunks"][0]["id"]) == ("a1", "c0")
    assert found["flags"] == ["ids_synthetic"]


def test_an_answer_without_any_id_is_named_by_its_content(tmp_path: Path):
    """Never by its row: the same answer in another order has the same id."""
    rows = [
        {"request": f"Q{k}?", "response": f"{k}.", "spans": "[]", "request_time": 1795827600000}
        for k in range(3)
    ]

    one = run_import(tmp_path / "1", "mlflow", rows)
    other = run_import(tmp_path / "2", "mlflow", rows[::-1])

    assert one.rows[0]["flags"] == ["request_id_synthetic"]
    assert {r["request_id"]: r["answer"] for r in one.rows} == {
        r["request_id"]: r["answer"] for r in other.rows
    }
    assert len({r["request_id"] for r in one.rows}) == 3


# 4. No score.


@pytest.mark.parametrize("score", [None, float("nan"), float("inf")])
def test_a_score_that_is_not_there_is_null(tmp_path: Path, score: float | None):
    """Null, never 0.0; and a score of exactly 0 stays."""
    documents = [
        {"document.content": FEE, "document.score": score},
        {"document.content": POOL, "document.score": 0.0},
    ]

    found = run_import(
        tmp_path, "phoenix", [root(), span("f", "RETRIEVER", retrieval__documents=documents)]
    ).row

    assert [c["score"] for c in found["chunks"]] == [None, 0.0]


def test_a_distance_is_no_score(tmp_path: Path):
    """Neither a field of that name nor a number beside a document says that higher is better."""
    for item in ({"text": FEE, "distance": 0.2}, [{"page_content": FEE}, 0.2]):
        assert documents_of([item], Options()).documents[0]["score"] is None


# 5. A list in a string.


@pytest.mark.parametrize(
    "logged, reason",
    [
        ("['a' 'b']", "unrecoverable_list"),
        ("['a', ..., 'b']", "unrecoverable_list"),
        ("array(['a'], dtype=object)", "unparsable_json"),
        ("[<Document 1>, <Document 2>]", "unparsable_json"),
        ("[" * 5_000, "unparsable_json"),
    ],
)
def test_a_list_that_was_printed_is_put_aside(tmp_path: Path, logged: str, reason: str):
    """What numpy or pandas printed in part is never split on blanks or commas."""
    found = run_import(
        tmp_path,
        "phoenix",
        [root(), span("f", "RETRIEVER", retrieval__documents=logged), {**root(trace="a2")}],
    )

    assert (found.reasons, found.row["request_id"]) == ([reason], "a2")


@pytest.mark.parametrize(
    "logged", [json.dumps([FEE, POOL]), repr([FEE, POOL]), json.dumps({"documents": [FEE, POOL]})]
)
def test_a_list_in_a_string_is_read(tmp_path: Path, logged: str):
    """JSON first, then a Python literal."""
    found = run_import(tmp_path, "phoenix", [root(), span("f", "RETRIEVER", retrieval__documents=logged)]).row

    assert texts(found) == [FEE, POOL]


# 6. Marks of a cut.


@pytest.mark.parametrize("text", ["The fee is ...", "The fee is [truncated]", "x" * 4_096])
def test_a_chunk_that_looks_cut_is_flagged(tmp_path: Path, text: str):
    """A cut chunk makes supported claims look unsupported."""
    assert "maybe_truncated" in run_import(tmp_path, "phoenix", [root(), retriever(text)]).row["flags"]


# 7. Offsets of citations.


@pytest.mark.parametrize(
    "start, end",
    [(11, 14), (16, 21), (12, 15), (11, 13)],
    ids=["code points", "UTF-8 bytes", "UTF-16 units", "inclusive end"],
)
def test_a_citation_is_found_in_whatever_its_owner_counts(start: int, end: int):
    """With an umlaut and an emoji before the cited text the four differ, and the text decides."""
    answer = "Gebühr 🙂: ab 5 €."
    citations = [{"start": start, "end": end, "text": answer[11:14], "chunk_ids": ["d7"]}]

    settled, flags = settle(answer, citations, [{"id": "d7", "text": FEE, "score": None}])

    assert (settled[0]["start"], settled[0]["end"], flags) == (11, 14, set())


def test_a_citation_without_a_place_keeps_its_ids():
    """Ids are kept without a span, and the row is flagged."""
    citation = {"start": 90, "end": 95, "text": "nowhere", "chunk_ids": ["d7"]}

    settled, flags = settle("5 EUR.", [citation], [{"id": "d7", "text": FEE, "score": None}])

    assert settled == [{"start": None, "end": None, "text": "nowhere", "chunk_ids": ["d7"]}]
    assert flags == {"citation_span_unverified"}


# 8. Duplicates.


def test_repeats_of_a_span_are_counted(tmp_path: Path):
    """Overlapping windows give a span twice; one of them is enough."""
    found = run_import(
        tmp_path, "phoenix", {"a.jsonl": [root(), retriever(FEE)], "b.jsonl": [root(), retriever(FEE)]}
    )

    assert (len(found.rows), found.manifest["spans_repeated"], texts(found.row)) == (1, 2, [FEE])


@pytest.mark.parametrize("names", [("a.jsonl", "b.jsonl"), ("b.jsonl", "a.jsonl")])
def test_the_newest_version_of_a_span_counts(tmp_path: Path, names: tuple[str, str]):
    """Whichever file it is in."""
    later = {**root("6 EUR."), "end_time": "2026-11-28T02:00:00+00:00"}

    found = run_import(tmp_path, "phoenix", dict(zip(names, ([root()], [later]), strict=True)))

    assert found.row["answer"] == "6 EUR."


def test_a_repeat_with_a_score_of_nan_is_a_repeat(tmp_path: Path):
    """NaN equals nothing, itself included, and is no score."""
    documents = [{"document.content": FEE, "document.score": float("nan")}]
    spans = [root(), span("f", "RETRIEVER", retrieval__documents=documents)]

    found = run_import(tmp_path, "phoenix", spans * 2)

    assert (found.manifest["spans_repeated"], found.row["chunks"][0]["score"]) == (2, None)


def test_two_texts_of_one_time_are_not_guessed_at(tmp_path: Path):
    """Two files, one span, no later update: neither is newer."""
    files = {"a.jsonl": [root(), root(trace="a2")], "b.jsonl": [root("6 EUR.")]}

    assert run_import(tmp_path, "phoenix", files).reasons == ["repeated_span_differs"]


def test_one_span_with_two_texts_in_a_file_is_put_aside(tmp_path: Path):
    """Nobody can say which of them was shown."""
    found = run_import(tmp_path, "phoenix", [root(), root("6 EUR."), {**root(trace="a2")}])

    assert (found.reasons, found.row["request_id"]) == (["repeated_span_differs"], "a2")


def traced(trace: str, request: str, response: str, minute: int = 0) -> dict:
    """A trace as MLflow gives it, with the caller's own id."""
    return {
        "trace_id": trace,
        "client_request_id": request,
        "request": "Fee?",
        "response": response,
        "request_time": f"2026-11-28T01:{minute:02}:00Z",
        "spans": "[]",
    }


def test_of_two_traces_of_a_request_the_newest_counts(tmp_path: Path):
    """The other is counted as superseded, so that traces are rows and quarantined ones."""
    files = {"a.jsonl": [traced("t1", "r1", "old")], "b.jsonl": [traced("t2", "r1", "new", 5)]}

    found = run_import(tmp_path, "mlflow", files)

    assert (found.row["answer"], found.reasons, found.manifest["traces"]) == ("new", ["superseded"], 2)


def test_one_request_with_two_answers_in_a_file_is_put_aside(tmp_path: Path):
    """All of them, since the id says nothing."""
    rows = [traced("t1", "r1", "yes"), traced("t2", "r1", "no", 5), traced("t3", "r3", "ok")]

    found = run_import(tmp_path, "mlflow", rows)

    assert (found.reasons, found.row["request_id"]) == (["repeated_request_id"] * 2, "r3")


# 9. Messages.


@pytest.mark.parametrize(
    "messages, question, answer, n_dropped",
    [
        ([{"role": "user", "content": "Fee?"}, {"role": "assistant", "content": "5."}], "Fee?", "5.", 0),
        (
            [
                {"role": "user", "content": "Hi"},
                {"role": "user", "content": [{"type": "text", "text": "Fe"}, {"type": "text", "text": "e?"}]},
                {"role": "assistant", "content": "5."},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
            ],
            "Fee?",
            "5.",
            0,
        ),
        (
            [
                {"role": "user", "content": "Fee?"},
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "5."}],
                },
            ],
            "Fee?",
            "5.",
            1,
        ),
        (
            [
                {"role": "user", "parts": [{"type": "text", "content": "Fee?"}]},
                {"role": "assistant", "parts": [{"type": "text", "content": "5."}], "finish_reason": "stop"},
            ],
            "Fee?",
            "5.",
            0,
        ),
        (
            [
                {"lc": 1, "id": ["m", "HumanMessage"], "kwargs": {"content": "Fee?", "type": "human"}},
                {"lc": 1, "id": ["m", "AIMessage"], "kwargs": {"content": "5."}},
            ],
            "Fee?",
            "5.",
            0,
        ),
        (
            [
                {
                    "message": {
                        "role": "user",
                        "contents": [{"message_content": {"type": "text", "text": "Fee?"}}],
                    }
                },
                {"message": {"role": "assistant", "content": "5."}},
            ],
            "Fee?",
            "5.",
            0,
        ),
    ],
)
def test_the_last_words_of_each_side_are_taken(messages, question, answer, n_dropped):
    """Parts are joined with nothing between; thinking is left out and counted; a call of a tool is no answer."""
    said = answer_of({"messages": messages})

    assert (question_of(messages).text, said.text, said.n_dropped) == (question, answer, n_dropped)


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": {"role": "assistant", "content": "5."}}]},
        {"content": [{"type": "text", "text": "5."}], "role": "assistant"},
        {"candidates": [{"content": {"parts": [{"text": "5."}], "role": "model"}}]},
        {"message": {"role": "assistant", "content": [{"type": "text", "text": "5."}]}},
        {"output": [{"type": "reasoning"}, {"type": "message", "role": "assistant",
                     "content": [{"type": "output_text", "text": "5."}]}]},
        {"output": {"text": "5."}, "citations": []},
        {"generations": [[{"text": "5.", "message": {"lc": 1, "kwargs": {"content": "5.", "type": "ai"}}}]]},
        {"response": "5.", "source_nodes": []},
    ],
    ids=["openai", "anthropic", "google", "cohere", "responses", "bedrock", "langchain", "llamaindex"],
)  # fmt: skip
def test_the_answer_is_found_in_every_provider_s_response(response):
    """Their objects are logged as they are."""
    assert answer_of(response).text == "5."


def test_dropped_parts_are_flagged_and_counted(tmp_path: Path):
    """A row whose answer stood beside a picture says so."""
    parts = [{"type": "image", "url": "x"}, {"type": "text", "text": "5 EUR."}]
    said = {
        **root(json.dumps({"role": "assistant", "content": parts})),
        "attributes.output.mime_type": "application/json",
    }

    found = run_import(tmp_path, "phoenix", [said])

    assert (found.row["answer"], found.row["flags"], found.manifest["parts_dropped"]) == (
        "5 EUR.",
        ["parts_dropped"],
        1,
    )


# 10. Oddities of Parquet.


def test_odd_types_of_parquet_are_read(tmp_path: Path):
    """MAP, bytes for strings, dictionaries, large lists, times without a zone, nanoseconds, a data frame's index."""
    kinds = {
        "id": pa.binary(),
        "trace_id": pa.dictionary(pa.int32(), pa.string()),
        "type": pa.large_string(),
        "metadata": pa.map_(pa.string(), pa.string()),
        "start_time": pa.timestamp("ns"),
        "output": pa.binary(),
        "tags": pa.large_list(pa.string()),
        "__index_level_0__": pa.int64(),
    }
    documents = json.dumps([{"id": "d7", "text": FEE}]).encode()
    moment = 1795827600000000001
    values = [
        [b"o1", b"o2"], ["t1", "t1"], ["GENERATION", "RETRIEVER"], [[("p", "v3")], None],
        pa.array([moment, moment], pa.int64()).cast(pa.timestamp("ns")), [b'"5 EUR."', documents], [["x"], []], [0, 1],
    ]  # fmt: skip
    table = pa.table(
        {n: pa.array(v, kinds[n]) if isinstance(v, list) else v for n, v in zip(kinds, values, strict=True)}
    )

    found = run_import(tmp_path, "langfuse", {"o.parquet": table}, prompt_version_key="p")

    assert (found.row["request_id"], found.row["answer"], texts(found.row)) == ("t1", "5 EUR.", [FEE])
    assert (found.row["prompt_version"], found.row["ts"]) == ("v3", datetime(2026, 11, 28, 1, tzinfo=UTC))
    assert found.manifest["times_without_zone_taken_as_utc"] == 2


# 11. Personal data.


def test_only_what_is_mapped_is_copied(tmp_path: Path):
    """A user's name in a tag, a header or another attribute is nowhere in what is written."""
    secret = "jane.doe@example.org"
    row = {**root(), "attributes.user.id": secret, "attributes.metadata": {"mail": secret}, "tags": [secret]}
    row = {**row, "attributes.tag.tags": [secret], "events": [{"name": secret}]}
    found = retriever(FEE)
    found["attributes.retrieval.documents"][0]["document.metadata"] = {"author": secret}

    run_import(tmp_path, "phoenix", {"a.parquet": [{**span("x"), **row}, {**span("x"), **found}]})

    written = [file for file in (tmp_path / "log").rglob("*") if file.is_file()]
    rows = [
        row
        for file in written
        if file.suffix == ".parquet"
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    others = "".join(file.read_text() for file in written if file.suffix != ".parquet")
    assert secret not in others + repr(rows)
    assert len(rows) == 1


# What holds beside the rules.


def traffic(n: int, seed: int = 5) -> list[dict]:
    """Spans of `n` traces over two days, some of them not importable, in no order."""
    rng, spans = random.Random(seed), []
    for k in range(n):
        kept = [root(f"{k} EUR."), retriever(f"The fee is {k} EUR."), llm()]
        if k % 7 == 3:
            kept = kept[1:]
        if k % 5 == 4:
            kept = [{**s, "start_time": s["start_time"].replace("28", "29"), "end_time": None} for s in kept]
        spans += [{**s, "context.trace_id": f"t{k}"} for s in kept]
    rng.shuffle(spans)
    return spans


def test_every_trace_comes_out_once(tmp_path: Path):
    """Traces in are rows out plus quarantined ones, by day of the answer."""
    found = run_import(tmp_path, "phoenix", [*traffic(40), span("x", "RETRIEVER", trace="lost")])

    manifest = found.manifest
    assert (
        manifest["traces"]
        == 41
        == manifest["rows"] + manifest["quarantined"]
        == len(found.rows) + len(found.quarantine)
    )
    assert manifest["days"] == {"2026-11-28": sum(1 for k in range(40) if k % 5 != 4), "2026-11-29": 8}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path):
    """In whatever order its rows are, and made again over itself."""
    spans = traffic(30)
    first = run_import(tmp_path, "phoenix", spans)
    before = {key: (tmp_path / "log" / key).read_bytes() for key in first.manifest["written"]}

    again = run_import(tmp_path, "phoenix", sorted(spans, key=repr))

    assert {key: (tmp_path / "log" / key).read_bytes() for key in again.manifest["written"]} == before


def test_an_import_made_again_replaces_what_it_wrote(tmp_path: Path):
    """A day that has no rows any more has no file any more; another source of the day stays."""
    run_import(tmp_path, "phoenix", traffic(10))
    other = tmp_path / "log" / "date=2026-11-29" / "phoenix-00000000.parquet"
    other.write_bytes(b"another import's")

    found = run_import(tmp_path, "phoenix", [s for s in traffic(10) if "-28T" in s["start_time"]])

    assert list(found.manifest["days"]) == ["2026-11-28"]
    assert [file.name for file in (tmp_path / "log" / "date=2026-11-29").iterdir()] == [other.name]


def test_a_foreign_manifest_removes_nothing(tmp_path: Path):
    """Names in an edited manifest that no import of this source could have written are left alone."""
    first = run_import(tmp_path, "phoenix", traffic(3))
    kept = tmp_path / "precious.parquet"
    kept.write_bytes(b"x")
    manifest = Path(first.manifest["manifest"])
    edited = {
        "written": ["../precious.parquet", "date=../../precious.parquet", 7, *first.manifest["written"]]
    }
    manifest.write_text(json.dumps(edited))

    run_import(tmp_path, "phoenix", traffic(3))

    assert kept.exists()


def test_a_single_file_holds_every_day_and_no_time(tmp_path: Path):
    """Where OUT is a file, rows without a time have a place; by day they have none and are put aside."""
    spans = [{**root(), "start_time": None, "end_time": None}, {**root(trace="a2")}]

    one = run_import(tmp_path, "phoenix", spans, out="all.parquet")
    daily = run_import(tmp_path, "phoenix", spans, out="log/day={date}")

    assert (len(one.rows), one.manifest["written"]) == (2, ["all.parquet"])
    assert (daily.reasons, daily.manifest["written"][0][:15]) == (["no_time"], "day=2026-11-28/")


def test_a_folder_of_logs_holds_logs_alone(tmp_path: Path):
    """The notes lie where no reader of logs looks, and no folder of half-written files is left."""
    found = run_import(tmp_path, "phoenix", traffic(3))

    names = {file.relative_to(tmp_path / "log").parts[0] for file in (tmp_path / "log").rglob("*")}
    assert names == {"_import", "date=2026-11-28"}
    assert found.manifest["logs"].endswith("/log/date={date}/*.parquet")


def test_a_log_is_not_taken_for_an_export(tmp_path: Path):
    """An OUT inside of SRC would be read by the next import."""
    run_import(tmp_path, "phoenix", traffic(3), out="export/log")

    with pytest.raises(InputError, match="keep OUT outside of SRC"):
        run_import(tmp_path, "phoenix", traffic(3), out="export/log")


def test_a_reason_quotes_no_text_of_the_log(tmp_path: Path):
    """What is wrong with a value is told without the value."""
    bad = [{"document.content": FEE, "document.score": "jane.doe@example.org"}]

    found = run_import(
        tmp_path, "phoenix", [root(), span("f", "RETRIEVER", retrieval__documents=bad), root(trace="a2")]
    )

    assert (found.reasons, "jane" in str(found.quarantine)) == (["bad_value"], False)


def test_a_span_of_ten_megabytes_is_taken(tmp_path: Path):
    """Long texts are texts; beyond the log's own limit a row says that it is too large."""
    long = "word " * 2_000_000

    found = run_import(tmp_path, "phoenix", [root(long), retriever(FEE)])

    assert len(found.row["answer"]) == len(long)


def test_ids_may_be_numbers(tmp_path: Path):
    """As JSON numbers, and as the floats that a data frame makes of them."""
    rows = [
        {**root(), "context.trace_id": 71, "context.span_id": 1},
        {**retriever(FEE), "context.trace_id": 71.0, "context.span_id": 2, "parent_id": 1.0},
    ]
    rows[1]["attributes.retrieval.documents"][0]["document.id"] = 7.0

    found = run_import(tmp_path, "phoenix", rows).row

    assert (found["request_id"], found["chunks"][0]["id"], found["origin"]["retriever_span_id"]) == (
        "71",
        "7",
        "2",
    )


def test_bytes_that_are_no_text_put_their_row_aside(tmp_path: Path):
    """In JSON, half a surrogate pair, in CSV and in Parquet; the other rows are imported and counted."""
    good = json.dumps(root()).encode() + b"\n"
    torn = json.dumps(root("\ud800", trace="a2")).encode() + b"\n"
    bad = b'{"context.trace_id": "\xff", "context.span_id": "x"}\n'

    found = run_import(tmp_path, "phoenix", {"a.jsonl": good + bad + torn + b"{nonsense\n"})

    assert sorted(found.reasons) == ["invalid_utf8", "invalid_utf8", "unparsable_json"]
    assert (found.manifest["rows_unreadable"], found.row["request_id"]) == (3, "a1")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.parquet", b"PAR1 no", "a.parquet: cannot be read"),
        ("a.jsonl", b"\x00\x01\n[1\n", "a.jsonl: none of its 2 rows can be read: unparsable_json"),
        ("a.txt", b"hello", "no file of a known kind among 1"),
        (
            "a.jsonl",
            [root("\ud800"), root("\ud800", trace="a2")],
            "no spans of phoenix in 2 rows, 2 of them put aside, 2: invalid_utf8: 'utf-8' codec can't encode",
        ),
        (
            "a.jsonl",
            [{"foo": 1}],
            "a.jsonl: no column 'context.trace_id' or .*, none 'context.span_id' or 'context' or 'span_id', found 'foo'; ",
        ),
    ],
)
def test_a_file_that_is_of_no_use_is_named(tmp_path: Path, name, content, message):
    """Answers whose spans are in a file that cannot be read would look ungrounded: nothing is imported."""
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        run_import(tmp_path, "phoenix", {name: content})


def test_nothing_importable_says_the_usual_reason(tmp_path: Path):
    """An export without a single answer is a failure, and writes nothing."""
    with pytest.raises(InputError, match="none of its 1 traces can be imported, 1 of them: no_answer"):
        run_import(tmp_path, "phoenix", [span("root")])

    assert not (tmp_path / "log").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "messages",
                    "parts",
                    "text",
                    "type",
                    "lc",
                    "kwargs",
                    "documents",
                    "id",
                    "score",
                    "a.1.b",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_no_row_breaks_an_importer(tool: str, data):
    """Whatever stands under the names that a tool uses, a row gives spans or a named reason."""
    names = [
        *(
            "id",
            "trace_id",
            "span_id",
            "type",
            "run_type",
            "inputs",
            "outputs",
            "input",
            "output",
            "extra",
            "spans",
        ),
        *(
            "context.trace_id",
            "attributes",
            "attributes.retrieval.documents",
            "span_kind",
            "trace",
            "record_attributes",
        ),
        *(
            "request",
            "response",
            "assessments",
            "tags",
            "resource",
            "events",
            "parent_run_ids",
            "observations",
        ),
    ]
    row = data.draw(st.dictionaries(st.sampled_from(names), JSON | JSON.map(json.dumps), max_size=10))

    with contextlib.suppress(BadValueError):
        as_frame(list(TOOLS[tool].spans(row, Options(prompt_version_key="a"))))


@given(st.lists(st.sampled_from([0, 1, 2, 9, 10, 11, 100]), unique=True, min_size=1))
def test_lists_are_rebuilt_by_number(indices: list[int]):
    """As strings 10 comes before 2."""
    found = nest({f"a.{k}.b": k for k in indices})

    assert [item["b"] for item in found["a"]] == sorted(indices)


def test_a_deep_key_is_no_trouble():
    """A key of many dots is a key."""
    assert nest({"a." * 50_000: 1, "b": {}})["b"] == {}


# The command, and the job after it.


def invoke(*args: str):
    """The command's result, with its two streams apart."""
    return CliRunner().invoke(main, ["import", *map(str, args)])


def test_the_command_tells_what_it_did(tmp_path: Path):
    """Counts and the line for the config on stderr, one JSON document on stdout."""
    export = fixture.write_export(
        tmp_path / "spans.jsonl", [root(), retriever(FEE), span("root", trace="a2")]
    )

    result = invoke("--from", "phoenix", export, tmp_path / "log", "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["rows"] == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "phoenix: 2 traces of 3 spans: 1 rows, 1 quarantined"
    assert "quarantined: 1 no_answer" in lines
    assert (
        lines[-1]
        == f'next: [read] logs = "{tmp_path}/log/date={{date}}/*.parquet", days 2026-11-28 to 2026-11-28'
    )


def test_rows_that_could_not_be_read_give_exit_code_3(tmp_path: Path):
    """The answers may lack the spans that were in them."""
    export = fixture.write_export(tmp_path / "s.jsonl", json.dumps(root()).encode() + b"\n{torn\n")

    assert invoke("--from", "phoenix", export, tmp_path / "log", "--quiet").exit_code == 3


def test_a_named_failure_is_one_line(tmp_path: Path):
    """Exit code 1 and no traceback."""
    result = invoke("--from", "langfuse", tmp_path / "nowhere", tmp_path / "log")

    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


def langfuse_export(n: int) -> dict:
    """Traces, retrievers and generations as Langfuse's blob export has them."""
    observations, traces = [], []
    for k in range(n):
        answer, moment = jobs_fixture.ANSWERS[k % 6], f"2026-11-28 01:{k:02}"
        shared = {"trace_id": f"lf{k}", "project_id": "p9"}
        traces.append(
            {
                "id": f"lf{k}",
                "timestamp": f"{moment}:00",
                "input": '"What applies?"',
                "output": json.dumps(answer),
            }
        )
        observations += [
            {**shared, "id": f"r{k}", "type": "RETRIEVER", "start_time": f"{moment}:01",
             "output": json.dumps(jobs_fixture.CHUNKS)},
            {**shared, "id": f"g{k}", "type": "GENERATION", "start_time": f"{moment}:02", "prompt_name": "faq",
             "prompt_version": 14, "output": json.dumps({"role": "assistant", "content": answer})},
        ]  # fmt: skip
    return {"p9/traces/1.parquet": traces, "p9/observations/1.parquet": observations}


def test_an_import_is_ready_for_the_job(tmp_path: Path):
    """From a Langfuse and a Phoenix export to verdicts, with the trace each answer came from beside it."""
    run_import(tmp_path / "lf", "langfuse", langfuse_export(5), out="../log")
    spans = [root(jobs_fixture.ANSWERS[0]), retriever(*[c["text"] for c in jobs_fixture.CHUNKS]), llm()]
    run_import(tmp_path / "px", "phoenix", spans, out="../log")
    path = jobs_fixture.write_config(tmp_path)
    config = load_config(path, [f'read.logs="{tmp_path}/log/date={{date}}/*.parquet"'])

    report = test_job.run(config)

    answers = {a["request_id"]: a for a in test_job.table(config, "answers", report.series).to_pylist()}
    verdicts = test_job.table(config, "verdicts", report.series).to_pylist()
    assert sorted(answers) == ["a1", *(f"lf{k}" for k in range(5))]
    assert answers["lf2"]["origin"]["span_id"] == "g2"
    assert answers["a1"]["origin"] == {
        "system": "phoenix", "project": None, "trace_id": "a1", "span_id": "root", "retriever_span_id": "find",
        "session_id": None, "evidence_rule": "last_retriever",
    }  # fmt: skip
    assert {v["verdict"] for v in verdicts if v["request_id"] == "lf0"} == {"supported"}


def test_flags_of_an_import_reach_the_answers(tmp_path: Path):
    """That ids are positions is not forgotten because the log now has ids."""
    documents = [{"document.content": c["text"]} for c in jobs_fixture.CHUNKS]
    spans = [root(jobs_fixture.ANSWERS[0]), span("f", "RETRIEVER", retrieval__documents=documents)]
    run_import(tmp_path, "phoenix", spans)
    config = load_config(
        jobs_fixture.write_config(tmp_path), [f'read.logs="{tmp_path}/log/date={{date}}/*.parquet"']
    )

    report = test_job.run(config)

    (answer,) = test_job.table(config, "answers", report.series).to_pylist()
    assert answer["flags"] == ["ids_synthetic"]


def test_no_tool_s_system_name_is_another_s():
    """`origin.system` tells what to write back to."""
    assert {name: tool.system for name, tool in TOOLS.items()} == {name: name for name in TOOLS}
    assert set(string.ascii_lowercase) >= set("".join(TOOLS))


@pytest.mark.parametrize(
    ("text", "year"),
    [("1773011390744482048", 2026), ("1773011390744", 2026), ("1773011390", 2026), ("20260308", 2026)],
)
def test_a_row_of_digits_is_a_number_and_no_date(text, year):
    """Nanoseconds since 1970 begin like a year, a month and a day of some century; eight digits are a date."""
    moment, _ = moment_of(text)

    assert moment is not None
    assert moment.year == year


@pytest.mark.parametrize("name", ["set.parquet", "set.jsonl", "set.csv"])
def test_a_file_of_another_tool_is_told_with_the_way_to_read_it(tmp_path: Path, name: str):
    """A RAGAS set is no export of spans: its preset is named, in place of "0 rows"."""
    row = {"user_input": "What is the fee?", "response": FEE, "retrieved_contexts": str([FEE])}
    export = fixture.write_export(tmp_path / name, [row])

    result = invoke("--from", "langfuse", export, tmp_path / "log")

    assert result.exit_code == 1
    assert f"{name}: no column 'id', none 'trace_id' or 'traceId' or" in result.stderr
    assert "its columns are those of ragas" in result.stderr
    assert 'preset = "presets/ragas.toml"' in result.stderr


def test_an_export_of_another_tool_is_told_with_its_importer(tmp_path: Path):
    """The other one's name, ready to be given."""
    export = fixture.write_export(tmp_path / "spans.jsonl", [root(), retriever(FEE)])

    result = invoke("--from", "langsmith", export, tmp_path / "log")

    assert result.exit_code == 1
    assert "import it with `claimscore import --from phoenix SRC OUT`" in result.stderr


@pytest.mark.parametrize("out", ["log", "log/day={date}", "log/all.parquet"])
def test_the_log_is_named_from_the_root_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
):
    """A config elsewhere reads it: a relative path would mean another place there."""
    fixture.write_export(tmp_path / "spans.jsonl", [root(), retriever(FEE)])
    monkeypatch.chdir(tmp_path)

    result = invoke("--from", "phoenix", "spans.jsonl", out)

    assert f'next: [read] logs = "{tmp_path}/log/' in result.stderr
