"""The comparison of adapters: its calibration figures and its tables."""

from __future__ import annotations

import numpy as np
import pytest
from bench_judge import calibration, tables


def test_what_is_as_often_right_as_it_says_is_calibrated():
    """Probabilities that are the true rates have no error and need no temperature."""
    rng = np.random.default_rng(0)
    probs = rng.uniform(0.02, 0.98, 20_000)
    entailed = rng.uniform(size=20_000) < probs

    figures = calibration(probs, entailed)

    assert figures["ece"] < 0.02
    assert figures["temperature"] == pytest.approx(1.0, abs=0.1)


def test_what_is_too_sure_is_cooled():
    """Log odds doubled beyond the true ones are told to be halved."""
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1.5, 20_000)
    entailed = rng.uniform(size=20_000) < 1 / (1 + np.exp(-odds))

    figures = calibration(1 / (1 + np.exp(-2 * odds)), entailed)

    assert figures["temperature"] == pytest.approx(2.0, abs=0.1)
    assert figures["log_loss_at_it"] < figures["log_loss"]


def test_adapters_stand_beside_each_other():
    """A table has a row a source and a column an adapter; what one of them lacks is left out."""
    found = {
        "old": {"nli_dev": {"accuracy": {"snli": 0.8}}, "probes": {"all": {"right": 0.5, "n": 2}}},
        "new": {"nli_dev": {"accuracy": {"snli": 0.9, "paws": 0.7}}, "probes": {"all": {"right": 0.6}}},
    }

    by_title = dict(tables(found))

    assert by_title["nli_dev accuracy"] == {"snli": {"old": 0.8, "new": 0.9}, "paws": {"new": 0.7}}
    assert by_title["probes: right"] == {"all": {"old": 0.5, "new": 0.6}}
    assert by_title["flips of dev: caught"] == {}
