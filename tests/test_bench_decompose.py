"""The decomposition benchmark on a folder of four sentences and a judge that entails what holds every word."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench_decompose as bench
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TEXT = "Mara Lind opened the hall in 1911. It seats 280 people and has two bars."


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@pytest.fixture(autouse=True)
def _judge(monkeypatch: pytest.MonkeyPatch) -> None:
    def entails(_judge: Any, premises: pa.Array, claims: pa.Array, _longest: int) -> np.ndarray:
        rows = zip(premises.to_pylist(), claims.to_pylist(), strict=True)
        return np.array([float(_words(claim) <= _words(premise)) for premise, claim in rows])

    monkeypatch.setattr(bench, "entailment", entails)


JUDGE: Any = SimpleNamespace(card=SimpleNamespace(max_pair_tokens=512))


def _sentence(text: str, *human: str, document: str = "d", context: str = "") -> bench.Sentence:
    return bench.Sentence("own", document, text, context, human)


def _figures(sentences: list[bench.Sentence], claims: list[list[str]]) -> dict[str, Any]:
    return bench.figures(sentences, bench.Output(claims, {}), JUDGE, 0.5)


def test_sentences_come_from_the_sources_in_turn_with_what_stands_before(tmp_path: Path):
    first, second = TEXT.split(". ", 1)
    rows = [
        {"id": f"{source}{k}", "source": f"{source}_dev", "document": TEXT, "sentence": sentence, "claims": claims}
        for source in ("a", "b")
        for k, (sentence, claims) in enumerate([(f"{first}.", ["x"]), (second, ["x", " "]), (second, [])])
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "claim_decomposition_dev.parquet")

    found = bench.sentences_of(tmp_path, 3)

    assert [s.source for s in found] == ["a", "b", "a"]
    assert {(s.text, s.context) for s in bench.sentences_of(tmp_path, 9)} == {
        (f"{first}.", ""),
        (second, f"{first}."),
    }
    assert all(s.human == ("x",) for s in found), "a blank claim is none"


def test_a_lost_fact_lowers_coverage_and_an_added_one_focus():
    sentence = _sentence("The hall seats 280 people.", "The hall seats 280 people.", "The hall seats people.")

    whole = _figures([sentence], [["The hall seats 280 people."]])
    lost = _figures([sentence], [["The hall seats people."]])
    added = _figures([sentence], [["The hall seats 280 people.", "Mara Lind seats 94 people."]])

    assert (whole["coverage"][0], whole["focus"][0], whole["number_coverage"]) == (1.0, 1.0, 1.0)
    assert (lost["coverage"][0], lost["focus"][0], lost["number_coverage"]) == (0.5, 1.0, 0.0)
    assert (added["coverage"][0], added["focus"][0], added["new_value_or_name"]) == (1.0, 0.5, 0.5)
    assert added["f"][0] == pytest.approx(2 / 3)


def test_context_is_a_source_and_no_claims_cover_nothing():
    sentence = _sentence("It seats people.", "The hall seats people.", context="Mara Lind built the hall.")

    assert _figures([sentence], [["The hall seats people."]])["focus"][0] == 1.0
    assert _figures([sentence], [[]])["coverage"][0] == 0.0


def test_intervals_come_from_whole_documents():
    """Ten sentences of one document are one observation: nothing to resample."""
    one = [_sentence("It seats people.", "It seats people.", "Nobody knows.") for _ in range(10)]
    many = [
        _sentence("It seats people.", "It seats people." if k % 2 else "Nobody knows.", document=str(k))
        for k in range(10)
    ]
    claims = [["It seats people."] for _ in range(10)]

    coverage, low, high = _figures(one, claims)["coverage"]
    assert coverage == low == high == 0.5
    coverage, low, high = _figures(many, claims)["coverage"]
    assert low < coverage == 0.5 < high
