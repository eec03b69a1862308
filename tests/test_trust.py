"""Figures of trust: values that can be reckoned by hand, and intervals that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
import trust_fixture as fixture

from claimscore.jobs import trust


def test_rates_are_those_of_the_table_of_four():
    """3 right flags, 1 wrong, 1 missed, 5 right passes: by hand."""
    supported = [False] * 4 + [True] * 6
    flagged = np.array([True] * 3 + [False] + [True] + [False] * 5)

    found = trust.rates(fixture.labelled([0.5] * 10, supported), flagged)

    by_hand = {"precision": 0.75, "recall": 0.75, "f1": 0.75, "balanced_accuracy": 19 / 24, "kappa": 7 / 12}
    assert {name: figure.value for name, figure in found.items()} == pytest.approx(by_hand)


def test_weights_count_as_copies():
    """A claim of weight 3 is three claims."""
    one = fixture.labelled([0.1, 0.6, 0.4, 0.9], [False, False, True, True], weights=[1, 3, 2, 1])
    copies = fixture.labelled([0.1, *[0.6] * 3, *[0.4] * 2, 0.9], [False] * 4 + [True] * 3)

    assert trust.auroc(one).value == pytest.approx(trust.auroc(copies).value)
    assert trust.rates(one, one.scores < 0.5)["kappa"].value == pytest.approx(
        trust.rates(copies, copies.scores < 0.5)["kappa"].value
    )


def test_an_interval_knows_the_weights():
    """A hundred claims of which one stands for as many as the rest say little more than a few do."""
    labels = [k % 2 == 0 for k in range(100)]
    even, uneven = (
        fixture.labelled([0.5] * 100, labels, weights=[weight, *[1.0] * 99]) for weight in (1.0, 99.0)
    )
    widths = [(f := trust.share(some, some.supported)).high - f.low for some in (even, uneven)]

    assert widths[1] > 2 * widths[0]


def test_ties_count_half_in_auroc():
    """Of four pairs one is right, one wrong, two are ties."""
    assert trust.auroc(fixture.labelled([0.5, 0.5, 0.5, 0.7], [False, True, False, True])).value == 0.75


def test_a_figure_without_both_classes_has_no_value():
    """Supported claims alone say nothing of what is told apart."""
    found = fixture.labelled([0.2, 0.8], [True, True])

    assert (trust.auroc(found).value, trust.rates(found, found.scores < 0.5)["balanced_accuracy"].value) == (
        None,
        None,
    )


def test_an_interval_of_a_perfect_figure_is_not_a_point():
    """Ten of ten right does not mean that the next is."""
    found = fixture.labelled([0.1] * 5 + [0.9] * 5, [False] * 5 + [True] * 5)

    assert trust.rates(found, found.scores < 0.5)["precision"].low < 0.8


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """Of 60 data sets of 150 claims, at least 52 intervals hold the AUROC of the whole population."""
    whole = trust.auroc(fixture.drawn(50_000, seed=99)).value

    held = [trust.auroc(fixture.drawn(150, seed=seed)) for seed in range(60)]

    assert sum(figure.low <= whole <= figure.high for figure in held) >= 52


def test_claims_of_one_group_tell_less_than_strangers():
    """The same claims four times over as groups of four: the interval is that of the quarter."""
    one = fixture.drawn(60, seed=5)
    places = np.repeat(np.arange(60), 4)
    grouped = trust.Labelled(
        one.supported[places], one.scores[places], one.weights[places], one.groups[places]
    )
    figures = [trust.rates(found, found.scores < 0.5)["balanced_accuracy"] for found in (one, grouped)]

    assert figures[1].high - figures[1].low == pytest.approx(figures[0].high - figures[0].low, rel=0.01)


def test_four_times_the_claims_halve_the_interval():
    """What more labels would buy follows the square root."""
    found = fixture.drawn(400, seed=7)
    one, four = (
        trust.rates(found, found.scores < 0.5, factor=factor)["balanced_accuracy"] for factor in (1, 4)
    )

    assert (four.high - four.low) / (one.high - one.low) == pytest.approx(0.5, abs=0.08)


def test_a_calibrated_judge_errs_as_much_as_chance_and_an_overconfident_one_more():
    """The calibration error is told beside what so few claims show by chance alone."""
    honest, sharp = (fixture.drawn(2_000, seed=3, sharpness=s) for s in (1.0, 3.0))
    found = [trust.reliability(some, some.scores) for some in (honest, sharp)]

    assert found[0]["ece"].value < 2 * found[0]["ece_by_chance"]
    assert found[1]["ece"].value > 4 * found[1]["ece_by_chance"]


def test_bins_count_every_claim_once():
    """Chances of 0 and 1 fall into the outer bins."""
    found = fixture.labelled([0.0, 1.0, 0.55, 0.5], [True, True, False, True])

    bins = trust.reliability(found, found.scores)["bins"]
    assert [row["n"] for row in bins] == [1, 0, 0, 0, 0, 2, 0, 0, 0, 1]


def test_no_claims_give_no_figures():
    """Nothing labelled is not an error here; it is nothing."""
    none = fixture.labelled([], [])

    assert trust.auroc(none).value is None
    assert trust.reliability(none, none.scores)["ece"].value is None
    assert trust.share(none, none.supported).value is None
