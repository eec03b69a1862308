"""The consistency benchmark: what counts as held by a sample, and how samples and measures are put together."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench_consistency as bench
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


class _Judge:
    """Entails a claim as surely as the premise's first token says; its tokens are the words' lengths."""

    card: Any = SimpleNamespace(max_pair_tokens=64)

    def ids(self, texts: list[str]) -> list[list[int]]:
        return [[len(word) for word in text.split()] for text in texts]

    def probabilities(self, premises: pa.Array, _claims: pa.Array) -> np.ndarray:
        return np.array([[ids[0] / 10, 0.0, 0.0] for ids in premises.to_pylist()])


def _row(answer: str, *samples: str) -> dict[str, Any]:
    return {"answer": answer, "samples": list(samples)}


def _measured(name: str, scores: np.ndarray) -> list[float]:
    return list(scores[:, bench.MEASURES.index(name)])


@pytest.mark.parametrize(
    ("sample", "share"),
    [
        ("Ruth Adler left in 1911.", 1.0),
        ("Ruth Adler left in 1912.", 0.5),
        ("She left.", 0.0),
    ],
)
def test_names_and_numbers_that_a_sample_holds(sample: str, share: float):
    assert bench.held_share("In the end Ruth Adler left in 1911.", sample) == share


def test_an_answer_without_name_or_number_has_no_share_and_stands_in_the_middle():
    assert np.isnan(bench.held_share("it is open.", "it is closed."))

    scores = bench.measure(_row("it is open.", "it is closed."), None, in_windows=False)

    assert _measured("names, numbers", scores) == [0.5, 0.5, 0.5]
    assert np.isnan(_measured("nli, whole sample", scores)).all(), "no judge, no number"


def test_k_samples_are_the_first_k():
    scores = bench.measure(
        _row("in the end 12 left.", "12 left.", "9 left.", "9 left."), None, in_windows=False
    )

    assert _measured("names, numbers", scores) == pytest.approx([1.0, 0.5, 1 / 3])


def test_the_judge_orders_what_names_and_numbers_leave_equal():
    judge: Any = _Judge()
    sure, unsure = (
        bench.measure(_row("in the end 12 left.", sample), judge, in_windows=False)
        for sample in ("12345678 12 left.", "a 12 left.")
    )

    assert _measured("nli, whole sample", sure)[0] == pytest.approx(0.8)
    assert _measured("nli, whole sample", unsure)[0] == pytest.approx(0.1)
    assert _measured("both", sure)[0] > _measured("both", unsure)[0] > 0.9


def test_the_best_window_of_a_sample_speaks_for_it():
    sample = "A one. B two. Whatever three. D four. E five."
    scores = bench.measure(_row("it is open.", sample), _Judge(), in_windows=True)  # type: ignore[arg-type]

    assert _measured("nli, whole sample", scores)[0] == pytest.approx(0.1)
    assert _measured("nli, windows", scores)[0] == pytest.approx(0.8), "the second begins two on"


def test_only_labelled_answers_with_samples_of_their_model_count(tmp_path: Path):
    rows = [
        {"label": "factual", "same_model": True, "samples": ["a"], "answer": "1"},
        {"label": None, "same_model": True, "samples": ["a"], "answer": "2"},
        {"label": "factual", "same_model": False, "samples": ["a"], "answer": "3"},
        {"label": "non-factual", "same_model": True, "samples": [], "answer": "4"},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "self_consistency_dev.parquet")

    assert [row["answer"] for row in bench.labelled_answers(tmp_path, None)] == ["1"]
    assert bench.labelled_answers(tmp_path, 0) == []


def test_figures_are_of_the_order():
    labels = np.array([True, True, False, False] * 5)

    found = bench.figures(labels, np.where(labels, 1.0, 0.0), 50)

    assert (found["auroc"], found["low"], found["high"]) == (1.0, 1.0, 1.0)
