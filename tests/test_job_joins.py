"""Several chunks that support a claim together, through the whole job: one chunk more takes nothing away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jobs_fixture
import numpy as np
import pyarrow as pa
import pytest
import stub_models
import test_job

from claimscore.jobs.pipeline import Models

CLAIM = "Tariff Blue has a fee of 40 euro."
TOGETHER = ["Tariff Blue is sold in Oslo.", "Whoever is in Oslo pays a fee of 40 euro."]
LACKS_THE_VALUE = "Tariff Blue customers pay a fee."
BINDS_ANOTHER = "Tariff Blue has fees: 40 euro in Rome and 55 euro in Bonn."


class WordJudge(stub_models.StubJudge):
    """Gives a pair the entailment that a function of its two texts says."""

    def __init__(self, entailment: Callable[[str, str], float]) -> None:
        super().__init__()
        self._entailment, self._words = entailment, {}

    def encode(self, texts: pa.Array) -> pa.Table:
        """The stub's ids; remembers their words."""
        table = super().encode(texts)
        for text, ids, starts, ends in zip(texts.to_pylist(), *table.to_pydict().values(), strict=True):
            self._words |= {i: text[a:b] for i, a, b in zip(ids, starts, ends, strict=True)}
        return table

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> np.ndarray:
        """(P, 3), never a contradiction."""
        rows = zip(premise_ids.to_pylist(), claim_ids.to_pylist(), strict=True)
        texts = [[" ".join(self._words[i] for i in ids) for ids in pair] for pair in rows]
        entailed = np.array([self._entailment(*pair) for pair in texts], dtype=np.float32)
        return np.stack([entailed, 1 - entailed, np.zeros_like(entailed)], axis=1).reshape(-1, 3)


def verdict(
    folder: Path, chunks: list[str], entailment: Callable[[str, str], float], *, claim: str = CLAIM
) -> tuple[str, str]:
    """Verdict and rule of `claim` against `chunks`."""
    row = jobs_fixture.log_rows(1)[0] | {"answer": claim}
    row["chunks"] = [{"id": f"c{k}", "text": text, "score": None} for k, text in enumerate(chunks)]
    jobs_fixture.write_log(folder, [row])
    config = jobs_fixture.make_config(folder)
    judge = WordJudge(entailment)
    report = test_job.run(
        config, Models(decomposer=stub_models.StubLlm(), checker=stub_models.StubJudge(), judge=judge)
    )
    (found,) = test_job.table(config, "verdicts", report.series).to_pylist()
    return found["verdict"], found["decided_by"]


def entailment(premise: str, claim: str) -> float:
    """The two chunks together carry the claim; the others entail it, with nothing behind."""
    if "sold in Oslo" in premise and "Oslo pays" in premise:
        return 0.97
    if "Rome" in premise:
        return 0.999 if "55" in claim else 0.92
    return 0.95 if "customers" in premise else 0.1


@pytest.mark.parametrize("another", [None, LACKS_THE_VALUE, BINDS_ANOTHER])
def test_a_window_that_supports_nothing_does_not_stop_the_join(tmp_path: Path, another: str | None):
    """A chunk that entails, but lacks the value or binds another one, leaves the joined support as it is."""
    chunks = [*TOGETHER, *([another] if another else [])]

    assert verdict(tmp_path, chunks, entailment) == ("supported", "nli_joined")


def test_alone_such_a_window_does_not_support(tmp_path: Path):
    """The same two chunks by themselves: a veto, and a rival."""
    first = verdict(tmp_path / "a", [LACKS_THE_VALUE], entailment)
    second = verdict(tmp_path / "b", [BINDS_ANOTHER], entailment)

    assert (first, second) == (("unsupported", "number_veto"), ("unsupported", "rival_value"))


def test_two_passages_are_no_sentence_of_the_number_veto(tmp_path: Path):
    """List items without full stops from two chunks are not multiplied: 2 tickets here, 50 euro each there."""
    found = verdict(
        tmp_path,
        ["Group booking for 2 tickets", "The boat trip: 50 euro each"],
        lambda premise, _: 0.97 if "tickets" in premise and "boat" in premise else 0.1,
        claim="The boat trip tickets cost 100 euro.",
    )

    assert found == ("unsupported", "number_veto")


AURUM = "The Aurum card is for travellers. It earns miles."
SILVA = "The Silva card is for students. The annual fee is waived."


def test_what_one_passage_says_of_its_own_thing_supports_nothing_of_another(tmp_path: Path):
    """Joined with a sentence that names the claim's card, another card's fee entails, and is no support; alone neither."""

    def believes(premise: str, _: str) -> float:
        return 0.97 if "waived" in premise else 0.1

    claim = "The Aurum card has its fee waived."
    joined = verdict(tmp_path / "a", [AURUM, SILVA], believes, claim=claim)
    own = verdict(tmp_path / "b", [AURUM + " The annual fee is waived.", SILVA], believes, claim=claim)

    assert joined == ("unsupported", "subject_veto")
    assert own[0] == "supported"


def test_a_cover_without_the_passage_about_another_thing_is_tried(tmp_path: Path):
    """The second passage shares most words, and the third carries the claim together with the first."""
    second = "The Silva card is for travellers. Holders of the card for travellers pay no fee."
    third = "Holders of any such card are charged no fee."

    def believes(premise: str, _: str) -> float:
        return 0.97 if "Aurum" in premise and ("charged" in premise or "pay" in premise) else 0.1

    claim = "Holders of the Aurum card for travellers pay no fee."
    without = verdict(tmp_path / "a", [AURUM, second], believes, claim=claim)
    found = verdict(tmp_path / "b", [AURUM, second, third], believes, claim=claim)

    assert without == ("unsupported", "subject_veto")
    assert found == ("supported", "nli_joined")
