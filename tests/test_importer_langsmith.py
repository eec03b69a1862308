"""LangSmith: runs of the bulk export and of the API, with keys that only the application knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from imports_fixture import FEE, POOL, run_import

from claimscore.jobs.errors import InputError

FOLDER = "export_id=e/tenant_id=t/session_id=p9/runs/year=2026/month=11/day=28"


def run(run_id: str, run_type: str = "chain", parent: str | None = "01", at: int = 0, **more) -> dict:
    """A run as the bulk export has it: dicts are JSON text."""
    packed = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in more.items()}
    return {
        "id": run_id, "trace_id": "01", "parent_run_id": None if run_id == "01" else parent, "run_type": run_type,
        "name": run_id, "session_id": "p9", "start_time": f"2026-11-28T01:00:0{at}", "end_time": f"2026-11-28T01:00:0{at + 1}",
        "status": "success", "is_root": run_id == "01", "inputs": None, "outputs": None, "extra": None, **packed,
    }  # fmt: skip


ROOT = run("01", inputs={"question": "Fee?"}, outputs={"answer": "5 EUR."})
FOUND = run(
    "02",
    "retriever",
    at=1,
    outputs={
        "documents": [{"page_content": FEE, "type": "Document", "metadata": {"id": "d7", "score": 0.8}}]
    },
)
MESSAGE = {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "5 EUR."}}
ASKED = run(
    "03",
    "llm",
    at=2,
    inputs={"messages": [[{"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "Fee?"}}]]},
    outputs={"generations": [[{"text": "5 EUR.", "message": MESSAGE}]]},
    extra={"metadata": {"ls_model_name": "m", "revision_id": "p14", "thread_id": "s1"}},
)


@pytest.mark.parametrize("name", [f"{FOLDER}/a.parquet", "runs.jsonl", "runs.json", "runs.csv"])
def test_a_trace_of_runs_is_an_answer(tmp_path: Path, name: str):
    """Question and answer of the root, documents of the retriever, the rest of the model's run."""
    found = run_import(tmp_path, "langsmith", {name: [ROOT, FOUND, ASKED]}).row

    assert (found["request_id"], found["question"], found["answer"]) == ("01", "Fee?", "5 EUR.")
    assert found["chunks"] == [{"id": "d7", "text": FEE, "score": 0.8}]
    assert (found["model"], found["prompt_version"]) == ("m", "p14")
    assert found["origin"] == {
        "system": "langsmith", "project": "p9", "trace_id": "01", "span_id": "01", "retriever_span_id": "02",
        "session_id": "s1", "evidence_rule": "last_retriever",
    }  # fmt: skip


@pytest.mark.parametrize("outputs", [{"output": [FEE]}, {"output": [{"page_content": FEE, "metadata": {}}]}])
def test_a_traceable_retriever_returns_a_list(tmp_path: Path, outputs: dict):
    """Stored under `output`, where LangChain's own stand under `documents`."""
    found = run_import(tmp_path, "langsmith", [ROOT, run("02", "retriever", outputs=outputs)]).row

    assert [c["text"] for c in found["chunks"]] == [FEE]


def test_keys_that_nobody_knows_fail_loudly(tmp_path: Path):
    """The keys that were there are named, and taken when a person gives them."""
    odd = run("01", inputs={"frage": "Fee?"}, outputs={"antwort": "5 EUR."})

    with pytest.raises(InputError, match="outputs has antwort; name its key with --answer-key"):
        run_import(tmp_path, "langsmith", [odd, FOUND])
    found = run_import(
        tmp_path, "langsmith", [odd, FOUND], question_keys=("frage",), answer_keys=("antwort",)
    ).row

    assert (found["question"], found["answer"]) == ("Fee?", "5 EUR.")


def test_a_question_under_no_known_key_is_counted(tmp_path: Path):
    """An answer can be judged without it, and somebody is told."""
    odd = run("01", inputs={"frage": "Fee?"}, outputs={"answer": "5 EUR."})

    found = run_import(tmp_path, "langsmith", [odd, FOUND])

    assert (found.row["question"], found.manifest["rows_without_question"]) == (None, 1)


@pytest.mark.parametrize("column", ["id", "trace_id", "run_type", "inputs", "outputs"])
def test_a_column_that_was_left_out_is_named(tmp_path: Path, column: str):
    """`export_fields` can leave any of them out."""
    rows = [{k: v for k, v in row.items() if k != column} for row in (ROOT, FOUND)]

    with pytest.raises(InputError, match=f"no column '{column}', found|none of its 2 rows|no spans"):
        run_import(tmp_path, "langsmith", {"a.parquet": rows})


def test_the_parent_may_be_left_out_where_roots_are_marked(tmp_path: Path):
    """Then every other run is somewhere below the root."""
    rows = [{k: v for k, v in row.items() if k != "parent_run_id"} for row in (ROOT, FOUND, ASKED)]

    assert run_import(tmp_path, "langsmith", rows).row["answer"] == "5 EUR."


def test_two_exports_of_a_day_meet(tmp_path: Path):
    """They overlap under different `export_id`s; a run is one run."""
    files = {f"export_id={k}/a.parquet": [ROOT, FOUND, ASKED] for k in "ab"}

    found = run_import(tmp_path, "langsmith", files)

    assert (len(found.rows), found.manifest["spans_repeated"]) == (1, 3)


def test_values_in_object_storage_are_named(tmp_path: Path):
    """Dumps of the API leave long values out: the trace is put aside and not taken for one without context."""
    away = run(
        "02", "retriever", inputs_s3_urls="{}", outputs_s3_urls=json.dumps({"ROOT": {"presigned_url": "x"}})
    )
    other = {**ROOT, "id": "09", "trace_id": "09"}

    found = run_import(tmp_path, "langsmith", [ROOT, away, other])

    assert (found.reasons, found.row["request_id"]) == (["stored_elsewhere"], "09")


def test_the_filled_prompt_says_what_was_handed_over(tmp_path: Path):
    """A prompt run's inputs are its variables: of five chunks found, the two that were put in."""
    many = run("02", "retriever", at=1, outputs={"documents": [{"page_content": t, "metadata": {"id": t[-9:]}} for t in
                                                                 ("one", POOL, "two", FEE)]})  # fmt: skip
    prompt = run(
        "04",
        "prompt",
        at=2,
        inputs={"question": "Fee?", "context": f"{FEE}\n\n{POOL}"},
        outputs={"output": "x"},
    )

    found = run_import(
        tmp_path, "langsmith", [ROOT, many, prompt, {**ASKED, "start_time": "2026-11-28T01:00:03"}]
    ).row

    assert ([c["text"] for c in found["chunks"]], found["origin"]["evidence_rule"]) == (
        [FEE, POOL],
        "prompt_variables",
    )


def test_examples_of_a_data_set_are_refused(tmp_path: Path):
    """Their outputs are references: the answers are in the runs."""
    example = {
        "id": "e1",
        "dataset_id": "d1",
        "inputs": {"question": "Fee?"},
        "outputs": {"answer": "5"},
        "trace_id": None,
    }

    with pytest.raises(InputError, match="export the runs of the experiment"):
        run_import(tmp_path, "langsmith", [example])
