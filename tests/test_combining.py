"""The weights of a combiner: what is told apart gets weight, what says nothing does not, and the card gives the same numbers."""

from __future__ import annotations

import dataclasses

import jobs_fixture
import numpy as np
import polars as pl
import pytest
import stub_models
import trust_fixture as fixture

from claimscore.jobs import calibration, calibration_files, calibration_scores, combining
from claimscore.jobs.thresholds import NEAREST, Thresholds


def drawn(n: int = 400, *, seed: int = 0):
    """Claims of three pairs; the best pair's P(entailment) and its shared words tell, the names say nothing."""
    rng = np.random.default_rng(seed)
    supported = rng.random(n) < 0.5
    claim = np.repeat(np.arange(n), 3)
    good = np.repeat(supported, 3) & (np.tile(np.arange(3), n) == 0)
    e = 1 / (1 + np.exp(-(rng.normal(0, 1, 3 * n) + 2.0 * good)))
    overlap = np.clip(rng.normal(0.4, 0.15, 3 * n) + 0.3 * good, 0, 1)
    names = rng.integers(0, 5, 3 * n)
    pairs = combining.features(e, np.full(3 * n, 0.1), overlap, names)
    return pairs, claim, supported


def test_what_tells_gets_weight():
    """Entailment and shared words count for support, chance does not, and a constant has none."""
    found = combining.fit_combiner(*drawn(), np.ones(400))

    assert found.entailment > 0.3
    assert found.overlap > 2
    assert abs(found.names) < 0.3
    assert found.contradiction == 0.0


def test_the_fit_depends_on_no_order():
    """Pairs and claims in another order give the same weights."""
    pairs, claim, supported = drawn()
    rng = np.random.default_rng(1)
    places = rng.permutation(len(supported))  # claim k becomes claim places[k]
    order = rng.permutation(len(claim))
    moved = np.empty_like(supported)
    moved[places] = supported

    again = combining.fit_combiner(pairs[order], places[claim][order], moved, np.ones(len(supported)))

    assert again == combining.fit_combiner(pairs, claim, supported, np.ones(len(supported)))


def test_a_claim_that_stands_for_many_counts_as_many():
    """A weight of three is the claim three times."""
    pairs, claim, supported = drawn(60)
    weights = np.where(np.arange(60) % 4 == 0, 3.0, 1.0)
    copies = np.repeat(np.arange(60), weights.astype(int))
    rows = np.concatenate([np.flatnonzero(claim == k) for k in copies])

    thrice = combining.fit_combiner(
        pairs[rows], np.repeat(np.arange(len(copies)), 3), supported[copies], np.ones(len(copies))
    )
    weighed = combining.fit_combiner(pairs, claim, supported, weights)

    # Features are standardised over the pairs, of which the one has more: equal but for what the ridge makes of that.
    for name, value in dataclasses.asdict(weighed).items():
        assert dataclasses.asdict(thrice)[name] == pytest.approx(value, abs=0.1)


def test_a_fit_weighs_as_a_card_does():
    """What was fitted is what thresholds.support makes of a pair."""
    pairs, claim, supported = drawn(60)
    combiner = combining.fit_combiner(pairs, claim, supported, np.ones(60))
    pairs[:2, 0] = [-12.0, 12.0]  # surer than any threshold: both hold the log odds at the same bound
    e = 1 / (1 + np.exp(-pairs[:, 0]))
    held = np.clip(pairs[:, 0], *(np.log(p / (1 - p)) for p in (NEAREST, 1 - NEAREST)))
    frame = pl.DataFrame({"p_entailment": e, "p_contradiction": np.full(len(e), 0.1), "overlap": pairs[:, 2]})

    support = Thresholds(entailment=0.5, contradiction=0.9, combiner=combiner).support(pl.lit(2))

    weights = np.array([combiner.entailment, combiner.contradiction, combiner.overlap, combiner.names])
    logit = combiner.intercept + np.column_stack([held, pairs[:, 1:3], np.full(len(e), 2)]) @ weights
    assert combining.features(e, np.full(len(e), 0.1), pairs[:, 2], np.full(len(e), 2))[
        :, 0
    ] == pytest.approx(held)
    assert frame.select(support).to_series().to_numpy() == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-5)


def test_calibration_with_a_combiner_is_the_jobs_own_verdict(tmp_path):
    """Scores after fitting are the `support` that the job writes, and the figures are of its verdicts."""
    config = jobs_fixture.make_config(tmp_path)
    rows = calibration_files.read_labelled(fixture.write(tmp_path / "labelled.parquet")).rows
    scored = calibration_scores.score(rows, stub_models.StubJudge(), config)

    combined, fitted = calibration.combined(scored, config)
    document = calibration.calibrate_claims(combined, fitted, calibration.Goal())

    assert fitted.card.combiner is not None
    assert document["combiner"] == dataclasses.asdict(fitted.card.combiner)
    supported = calibration._supported(combined, fitted, document["entailment"]["threshold"])
    assert (combined.scores >= document["entailment"]["threshold"]).tolist() == supported.tolist()
