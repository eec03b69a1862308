"""The presets: a row as each tool writes it, under our names."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import Shard

PRESETS = Path(__file__).parents[1] / "configs" / "presets"
TEXTS = ["Gebühr: 5 €.", "Zinsen."]
WANTED = [{"id": "7", "text": TEXTS[0], "score": 0.5}, {"id": "8", "text": TEXTS[1], "score": None}]
MOMENT = datetime(2026, 11, 28, 1, 0, 0, 120_000, tzinfo=UTC)

RAGAS = {"user_input": "Fee?", "retrieved_contexts": TEXTS, "retrieved_context_ids": [7, 8], "response": "5 €.",
         "multi_responses": ["5"], "reference": "5", "reference_context_ids": [7]}  # fmt: skip
OLD = {"question": "Fee?", "contexts": str(TEXTS), "answer": "5 €.", "ground_truths": ["5", "five"]}
CASE = {
    "input": "Fee?",
    "actualOutput": "5 €.",
    "expectedOutput": "5",
    "context": ["ideal"],
    "retrievalContext": TEXTS,
}
SNAKE = {"input": "Fee?", "actual_output": "5 €.", "expected_output": "5", "context": ["ideal"],
         "retrieval_context": TEXTS, "metadata": {"id": "r1"}}  # fmt: skip
CHAT = {"query": "Fee?", "response": "5 €.", "documents": [{"metadata": {"id": "7"}, "page_content": TEXTS[0]}],
        "trace_id": "t1", "timestamp": MOMENT, "model_name": "m"}  # fmt: skip
CHAIN = {"input": "Fee?", "answer": "5 €.", "context": [
    {"lc": 1, "type": "constructor", "kwargs": {"page_content": TEXTS[0], "metadata": {"id": "7", "source": "a.md"}}},
    {"lc": 1, "type": "constructor", "kwargs": {"page_content": TEXTS[1], "metadata": {"id": "8", "source": "b.md"}}}]}  # fmt: skip
QA = {
    "query": "Fee?",
    "result": "5 €.",
    "source_documents": [{"page_content": t, "metadata": {"source": t}} for t in TEXTS],
}
NODES = {"question": "Fee?", "response": "5 €.", "source_nodes": [
    {"node": {"id_": k, "text": text}, "score": score} for k, text, score in zip("78", TEXTS, (0.5, None), strict=True)]}  # fmt: skip
AGENT = {"request_id": "r1", "request": "Fee?", "response": "5 €.", "expected_response": "5",
         "retrieved_context": [{"doc_uri": "7", "content": TEXTS[0]}, {"doc_uri": "8", "content": TEXTS[1]}]}  # fmt: skip
OURS = {"request_id": "r1", "answer": "5 €.", "chunks": WANTED, "question": "Fee?"}
PRESET_CASES = [
    (
        "ragas",
        RAGAS,
        {
            "samples": ["5"],
            "reference_answer": "5",
            "gold_chunk_ids": ["7"],
            "flags": ["request_id_synthetic"],
        },
    ),
    (
        "ragas",
        OLD,
        {"reference_answer": "5", "flags": ["ids_synthetic", "request_id_synthetic", "several_references"]},
    ),
    ("deepeval", CASE, {"reference_answer": "5", "flags": ["ids_synthetic", "request_id_synthetic"]}),
    ("deepeval", SNAKE, {"request_id": "r1", "reference_answer": "5", "flags": ["ids_synthetic"]}),
    ("chat", CHAT, {"request_id": "t1", "ts": MOMENT, "model": "m", "flags": []}),
    ("langchain", CHAIN, {"flags": ["request_id_synthetic"]}),
    ("langchain", QA, {"flags": ["ids_synthetic", "request_id_synthetic"]}),
    ("llamaindex", NODES, {"chunks": WANTED, "flags": ["request_id_synthetic"]}),
    ("databricks-agent-eval", AGENT, {"request_id": "r1", "reference_answer": "5", "flags": []}),
    ("claimscore", OURS, {"request_id": "r1", "flags": []}),
]


@pytest.mark.parametrize("preset, logged, expected", PRESET_CASES)
def test_presets(tmp_path, preset, logged, expected):
    """A row as the tool writes it comes out under our names; the gold context of DeepEval is not evidence."""
    text = (PRESETS / f"{preset}.toml").read_text(encoding="utf-8")
    columns = {ours: tuple(names) for ours, names in tomllib.loads(text)["columns"].items()}
    path = str(tmp_path / "log.parquet")
    pq.write_table(pa.Table.from_pylist([logged]), path)
    config = ReadConfig(logs="", columns=columns, preset=preset)
    log, quarantine = read_shard(pyarrow.fs.LocalFileSystem(), Shard("ab", path, (0,), 0, 1), config, {})

    assert quarantine.num_rows == 0
    (found,) = log.to_pylist()
    assert (found["question"], found["answer"]) == ("Fee?", "5 €.")
    assert [c["text"] for c in found["chunks"]] == TEXTS[: len(found["chunks"])]
    assert {name: found[name] for name in expected} == expected


def test_presets_hold_columns_and_nothing_else():
    """One table, lists of names, no key that we do not have."""
    for file in PRESETS.glob("*.toml"):
        preset = tomllib.loads(file.read_text(encoding="utf-8"))
        assert list(preset) == ["columns"], file
        assert all(isinstance(name, str) for names in preset["columns"].values() for name in names), file
