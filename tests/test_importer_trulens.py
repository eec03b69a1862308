"""TruLens: its table of events, and the two older forms that hold no contexts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from imports_fixture import FEE, POOL, run_import

from claimscore.jobs.errors import InputError


def event(span_id: str, span_type: str, at: int = 0, parent: str = "b1", **attributes) -> dict:
    """An event of record r1; keys of attributes are dotted by two underscores."""
    told = {f"ai.observability.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return {
        "event_id": f"e-{span_id}",
        "record": {"name": span_type, "kind": 1, "parent_span_id": parent, "status": "STATUS_CODE_UNSET"},
        "record_attributes": {
            "ai.observability.span_type": span_type,
            "ai.observability.record_id": "r1",
            **told,
        },
        "record_type": "SPAN",
        "resource_attributes": {"ai.observability.app_name": "faq", "ai.observability.app_version": "p14"},
        "start_timestamp": f"2026-11-28T01:00:0{at}",
        "timestamp": f"2026-11-28T01:00:0{at + 1}",
        "trace": {"trace_id": "a1", "span_id": span_id, "parent_id": parent},
    }


ROOT = event(
    "b1",
    "record_root",
    parent="",
    record_root__input="Fee?",
    conversation_id="s1",
    record_root__output="5 EUR.",
    record_root__ground_truth_output="5 EUR",
)
FOUND = event("b2", "retrieval", 1, retrieval__query_text="Fee?", retrieval__retrieved_contexts=[FEE, POOL])
ASKED = event("b3", "generation", 3, cost__model="m", call__return='"5 EUR."')


@pytest.mark.parametrize(
    "rows",
    [
        [ROOT, FOUND, ASKED],
        [
            {k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()}
            for row in (ROOT, FOUND, ASKED)
        ],
        [{"record_id": "r1", "input": "Fee?", "output": "5 EUR.", "events": [ROOT, FOUND, ASKED]}],
    ],
    ids=["dicts", "sql dump", "events of a record"],
)
def test_events_of_a_record_are_an_answer(tmp_path: Path, rows: list):
    """Contexts are texts without ids and scores, so that their ids are positions."""
    found = run_import(tmp_path, "trulens", rows).row

    assert (found["request_id"], found["question"], found["answer"]) == ("r1", "Fee?", "5 EUR.")
    assert found["chunks"] == [
        {"id": "c0", "text": FEE, "score": None},
        {"id": "c1", "text": POOL, "score": None},
    ]
    assert (found["model"], found["prompt_version"], found["reference_answer"]) == ("m", "p14", "5 EUR")
    assert found["flags"] == ["ids_synthetic"]
    assert found["origin"] == {
        "system": "trulens", "project": "faq", "trace_id": "a1", "span_id": "b1", "retriever_span_id": "b2",
        "session_id": "s1", "evidence_rule": "last_retriever",
    }  # fmt: skip


def test_what_the_reranker_left_is_the_evidence(tmp_path: Path):
    """With its scores."""
    cut = event(
        "b4", "reranking", 2, reranking__output_context_texts=[POOL], reranking__output_context_scores=[0.0]
    )

    found = run_import(tmp_path, "trulens", [ROOT, FOUND, cut, ASKED]).row

    assert found["chunks"] == [{"id": "c0", "text": POOL, "score": 0.0}]


def test_scores_of_another_number_are_put_aside(tmp_path: Path):
    """Two texts and one score: nobody knows whose it is."""
    cut = event(
        "b4",
        "reranking",
        2,
        reranking__output_context_texts=[FEE, POOL],
        reranking__output_context_scores=[0.1],
    )

    with pytest.raises(InputError, match="parallel_lists_differ"):
        run_import(tmp_path, "trulens", [ROOT, cut])


def test_an_answer_that_looks_like_json_is_an_answer(tmp_path: Path):
    """The root's output is what the user saw."""
    root = event("b1", "record_root", parent="", record_root__output='{"fee": 5}')

    assert run_import(tmp_path, "trulens", [root, FOUND]).row["answer"] == '{"fee": 5}'


def test_spans_of_an_evaluation_are_not_read(tmp_path: Path):
    """They have the record's id and are about it."""
    judged = event("b9", "eval_root", 5, call__return='"bad"')

    found = run_import(tmp_path, "trulens", [ROOT, FOUND, ASKED, judged])

    assert (found.manifest["rows_of_no_span"], found.row["answer"]) == (1, "5 EUR.")


@pytest.mark.parametrize(
    "row, message",
    [
        ({"record_id": "r1", "record_json": "{}", "input": "Fee?", "output": "5"}, "upgrade to TruLens 2"),
        (
            {"app_name": "faq", "record_id": "r1", "input": "Fee?", "output": "5", "ts": 1},
            "which has no contexts",
        ),
    ],
)
def test_forms_without_contexts_are_refused(tmp_path: Path, row: dict, message: str):
    """The database of 1.x and the frame of records say nothing of evidence; the way out is named."""
    with pytest.raises(InputError, match=message):
        run_import(tmp_path, "trulens", {"records.parquet": [row]})
