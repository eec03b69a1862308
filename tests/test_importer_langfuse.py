"""Langfuse: traces and observations in every form of its exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from imports_fixture import FEE, POOL, run_import

from claimscore.jobs.errors import InputError

TRACE = {
    "id": "t1", "timestamp": "2026-11-28 01:00:00.000", "name": "faq", "project_id": "p9", "session_id": "s1",
    "input": '"Fee?"', "output": '"5 EUR."', "metadata": '{"prompt": "p3"}', "release": "r8",
}  # fmt: skip
FOUND = {
    "id": "o2", "trace_id": "t1", "project_id": "p9", "type": "RETRIEVER", "start_time": "2026-11-28 01:00:00.120",
    "input": '"Fee?"', "output": json.dumps([{"id": "d7", "text": FEE, "score": 0.8}]),
}  # fmt: skip
ASKED = {
    "id": "o3", "trace_id": "t1", "project_id": "p9", "type": "GENERATION", "start_time": "2026-11-28 01:00:00.500",
    "end_time": "2026-11-28 01:00:01.500", "provided_model_name": "m", "prompt_name": "faq", "prompt_version": 14,
    "input": '[{"role":"user","content":"Fee?"}]', "output": '{"role":"assistant","content":"5 EUR."}',
}  # fmt: skip


def camel(row: dict) -> dict:
    """The row with the names of the API and the UI's files."""
    return {
        "".join(p if k == 0 else p.title() for k, p in enumerate(name.split("_"))): v
        for name, v in row.items()
    }


@pytest.mark.parametrize(
    "files",
    [
        {"p9/traces/1.parquet": [TRACE], "p9/observations/1.parquet": [FOUND, ASKED]},
        {"p9/traces/1.csv": [TRACE], "p9/observations/1.csv": [FOUND, ASKED]},
        {"p9/traces/1.jsonl": [TRACE], "p9/observations_v2/1.jsonl": [FOUND, ASKED]},
        {"traces.json": [{**camel(TRACE), "observations": [camel(FOUND), camel(ASKED)]}]},
        {"page.json": {"data": [camel(row) for row in (TRACE, FOUND, ASKED)], "meta": {}}},
    ],
    ids=["parquet", "csv", "lines", "one trace", "api page"],
)
def test_every_form_gives_the_same_row(tmp_path: Path, files: dict):
    """Tables apart or together, in snake or camel case: one answer, scored at its GENERATION."""
    found = run_import(tmp_path, "langfuse", files).row

    assert (found["request_id"], found["question"], found["answer"]) == ("t1", "Fee?", "5 EUR.")
    assert found["chunks"] == [{"id": "d7", "text": FEE, "score": 0.8}]
    assert (found["model"], found["prompt_version"]) == ("m", "faq@14")
    assert found["origin"] == {
        "system": "langfuse", "project": "p9", "trace_id": "t1", "span_id": "o3", "retriever_span_id": "o2",
        "session_id": "s1", "evidence_rule": "last_retriever",
    }  # fmt: skip


def test_observations_alone_are_enough(tmp_path: Path):
    """The newer tables have no traces: the one generation without a parent is the answer."""
    found = run_import(tmp_path, "langfuse", {"p9/observations_v2/1.jsonl": [FOUND, ASKED]}).row

    assert (found["answer"], found["question"], found["origin"]["span_id"]) == ("5 EUR.", "Fee?", "o3")


def test_two_generations_without_a_trace_are_not_guessed_at(tmp_path: Path):
    """A rewriting call and an answering one look alike; with the trace it is plain."""
    rewriting = {**ASKED, "id": "o1", "start_time": "2026-11-28 01:00:00.010", "output": '"fee amount"'}

    with pytest.raises(InputError, match="ambiguous_root"):
        run_import(tmp_path / "1", "langfuse", [rewriting, FOUND, ASKED])
    found = run_import(tmp_path / "2", "langfuse", [rewriting, FOUND, ASKED, TRACE]).row

    assert (found["answer"], found["origin"]["span_id"]) == ("5 EUR.", "o3")


@pytest.mark.parametrize(
    "logged, expected",
    [
        ('"5 EUR."', "5 EUR."),
        ("5 EUR.", "5 EUR."),
        ("5", "5"),
        ("[1] says 5 EUR.", "[1] says 5 EUR."),
        ('"{\\"fee\\": 5}"', '{"fee": 5}'),
        ('{"answer": "5 EUR."}', "5 EUR."),
    ],
)
def test_output_may_be_json_or_plain_text(tmp_path: Path, logged: str, expected: str):
    """One layer of JSON is the export's; what is inside is the answer, whatever it looks like."""
    assert run_import(tmp_path, "langfuse", [{**TRACE, "output": logged}, FOUND]).row["answer"] == expected


@pytest.mark.parametrize(
    "output",
    [
        json.dumps([FEE, POOL]),
        json.dumps({"documents": [{"page_content": FEE}, {"content": POOL}]}),
        repr([FEE, POOL]),
    ],
)
def test_a_retriever_s_output_is_the_application_s_own(tmp_path: Path, output: str):
    """Texts, dicts under any of the usual names, or a dict around them."""
    found = run_import(tmp_path, "langfuse", [TRACE, {**FOUND, "output": output}, ASKED]).row

    assert [c["text"] for c in found["chunks"]] == [FEE, POOL]


def test_a_retriever_that_returned_one_text_is_flagged(tmp_path: Path):
    """The borders of its chunks are lost; it counts as one."""
    found = run_import(
        tmp_path, "langfuse", [TRACE, {**FOUND, "output": json.dumps(f"{FEE}\n\n{POOL}")}, ASKED]
    ).row

    assert ([c["text"] for c in found["chunks"]], "chunks_joined" in found["flags"]) == (
        [f"{FEE}\n\n{POOL}"],
        True,
    )


def test_a_span_named_after_reranking_reranks(tmp_path: Path):
    """Langfuse has no type for it; a span of that name that gives documents cut the retriever's."""
    many = {**FOUND, "output": json.dumps([FEE, POOL])}
    cut = {
        **FOUND,
        "id": "o9",
        "type": "SPAN",
        "name": "cohere-rerank",
        "start_time": "2026-11-28 01:00:00.300",
    }
    timing = {
        **cut,
        "id": "o8",
        "name": "rerank-timer",
        "output": '"12 ms"',
        "start_time": "2026-11-28 01:00:00.200",
    }

    found = run_import(tmp_path, "langfuse", [TRACE, many, timing, cut, ASKED]).row

    assert ([c["text"] for c in found["chunks"]], found["origin"]["evidence_rule"]) == (
        [FEE],
        "last_reranker",
    )


def test_a_later_export_of_a_trace_counts(tmp_path: Path):
    """By `updated_at`: rows are exported again when their window overlaps."""
    old = {**TRACE, "output": '"still thinking"', "updated_at": "2026-11-28 01:00:02"}
    new = {**TRACE, "updated_at": "2026-11-28 01:00:09"}

    found = run_import(tmp_path, "langfuse", {"a.jsonl": [new, FOUND], "b.jsonl": [old, FOUND, ASKED]})

    assert (found.row["answer"], found.manifest["spans_repeated"]) == ("5 EUR.", 2)


def test_scores_are_not_read(tmp_path: Path):
    """They lie beside the other tables, and are counted as no span."""
    score = {
        "id": "s1",
        "trace_id": "t1",
        "name": "helpful",
        "value": 1.0,
        "data_type": "NUMERIC",
        "timestamp": "2026-11-28",
    }

    found = run_import(
        tmp_path, "langfuse", {"p/scores/1.jsonl": [score], "p/observations/1.jsonl": [TRACE, FOUND, ASKED]}
    )

    assert (found.manifest["rows_of_no_span"], found.manifest["traces"]) == (1, 1)


def test_traces_without_observations_are_refused(tmp_path: Path):
    """Nothing then says what was retrieved, and every answer would look ungrounded."""
    with pytest.raises(InputError, match="export both tables"):
        run_import(tmp_path, "langfuse", [TRACE])


@pytest.mark.parametrize("key, expected", [("prompt", "p3"), ("release", "r8")])
def test_the_prompt_version_may_be_the_application_s(tmp_path: Path, key: str, expected: str):
    """A key of the metadata, or the release."""
    unnamed = {k: v for k, v in ASKED.items() if not k.startswith("prompt_")}

    assert (
        run_import(tmp_path, "langfuse", [TRACE, FOUND, unnamed], prompt_version_key=key).row[
            "prompt_version"
        ]
        == expected
    )


def test_citations_of_the_provider_are_kept(tmp_path: Path):
    """Anthropic's blocks: the number of a document becomes the id of the chunk that holds the cited words."""
    cited = {"type": "char_location", "cited_text": "fee is 5 EUR", "document_index": 1}
    output = {"role": "assistant", "content": [{"type": "text", "text": "It is "},
                                               {"type": "text", "text": "5 EUR.", "citations": [cited]}]}  # fmt: skip
    trace, asked = {**TRACE, "output": '"It is 5 EUR."'}, {**ASKED, "output": json.dumps(output)}
    found = {**FOUND, "output": json.dumps([{"id": "d8", "text": POOL}, {"id": "d7", "text": FEE}])}

    row = run_import(tmp_path, "langfuse", [trace, found, asked]).row

    assert row["citations"] == [{"start": 6, "end": 12, "text": "5 EUR.", "chunk_ids": ["d7"]}]
    assert row["flags"] == []
