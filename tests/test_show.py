"""`claimscore show`: the threshold stands beside the number that was held against it, and where it is known."""

from __future__ import annotations

from pathlib import Path

import jobs_fixture
import pytest
import test_report_files

from claimscore.jobs import settings, show
from claimscore.jobs.store import Store

VERDICT = {
    "verdict": "supported",
    "decided_by": "nli_cited",
    "reason": None,
    "hallucination_type": None,
    "citation_state": None,
    "p_entailment": 0.9,
    "p_contradiction": 0.05,
    "support": 0.9,
    "missing_values": [],
    "rival": None,
    "consistency": None,
    "n_referee": None,
    "referee": None,
}
THRESHOLDS = {"entailment": 0.65, "contradiction": 0.5, "combiner": None}


@pytest.mark.parametrize(
    ("fields", "thresholds", "words"),
    [
        ({}, THRESHOLDS, "entailment 0.90 (threshold 0.65), contradiction 0.05"),
        ({"verdict": "unsupported", "decided_by": "nli"}, THRESHOLDS, "entailment 0.90 (threshold 0.65), "),
        (
            {"verdict": "contradicted", "decided_by": "nli_joined"},
            THRESHOLDS,
            "entailment 0.90, contradiction 0.05 (threshold 0.5)",
        ),
        (
            {"support": 0.7},
            THRESHOLDS | {"combiner": {"intercept": 1.0}},
            "entailment 0.90, contradiction 0.05; combined 0.70 (threshold 0.65)",
        ),
        (
            {"verdict": "unsupported", "decided_by": "number_veto"},
            THRESHOLDS,
            "entailment 0.90, contradiction 0.05",
        ),
        ({"decided_by": "referee"}, THRESHOLDS, "entailment 0.90, contradiction 0.05"),
        ({}, None, "entailment 0.90, contradiction 0.05"),
    ],
)
def test_the_threshold_that_decided_is_told(fields, thresholds, words, monkeypatch):
    """Of the judge's own rules; a veto or a referee decided by something else."""
    monkeypatch.setattr(show.referee_words, "verdict_words", lambda _: None)

    said = show._explanation(VERDICT | fields, thresholds, cites=False)

    assert words in said
    assert ("threshold" in said) == ("threshold" in words)


def test_it_is_the_one_that_the_verdicts_were_made_with(tmp_path: Path):
    """Not today's: what the manifest says, where its settings were kept."""
    jobs_fixture.write_log(tmp_path)
    config = jobs_fixture.make_config(tmp_path, "verdicts.entailment=0.7")
    series = test_report_files.run(config)
    store = Store(config.store.out, config.store)
    before = show.find_answer(config.store.out, "r0", None)["thresholds"]
    for one in (config, jobs_fixture.make_config(tmp_path)):
        settings.keep(store, one)

    (file, _) = store.files("verdicts", series=series)
    parts = store.manifest(file)["parts"]
    assert before is None
    assert show.find_answer(config.store.out, "r0", None)["thresholds"] == {
        "entailment": 0.7,
        "contradiction": 0.9,
        "combiner": None,
    }
    as_written = parts | {"[verdicts]": "of an earlier version, whose part held a threshold too"}
    assert settings.thresholds(as_written, settings.known(store)) is None
