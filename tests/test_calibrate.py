"""Thresholds per goal, temperature and halves, on claims whose right answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import trust_fixture as fixture

from claimscore.jobs.calibrate import Goal, fit_temperature, fit_threshold, fitting_half
from claimscore.jobs.trust import tempered

SCORES = [0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
SUPPORTED = [False, False, False, True, False, True, True, True]


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (Goal("balanced"), 0.45),  # 0.65 is as good, and 0.55 between them is not
        (Goal("recall", 1.0), 0.65),
        (Goal("recall", 0.75), 0.45),
        (Goal("precision", 1.0), 0.45),
        (Goal("precision", 0.8), 0.65),
        (Goal("cost", 10.0), 0.65),
        (Goal("cost", 0.1), 0.45),
    ],
)
def test_each_goal_has_its_threshold(goal: Goal, expected: float):
    """Where the four unsupported and four supported claims part, by what a mistake costs."""
    fit = fit_threshold(fixture.labelled(SCORES, SUPPORTED), goal)

    assert (fit.threshold, fit.reached) == (pytest.approx(expected), True)


def test_a_goal_that_no_threshold_reaches_is_said():
    """Half the claims of each score are wrong: no flags can be 90% right."""
    fit = fit_threshold(
        fixture.labelled([0.2, 0.2, 0.8, 0.8], [True, False, True, False]), Goal("precision", 0.9)
    )

    assert not fit.reached


def test_a_threshold_stays_within_what_the_evidence_stage_allows():
    """Below rivals_above and above carried_at scores mean something else."""
    fit = fit_threshold(fixture.labelled(SCORES, SUPPORTED), Goal("recall", 1.0), lowest=0.3, highest=0.5)

    assert (fit.threshold, fit.reached) == (0.5, False)


def test_weights_move_the_threshold():
    """A flagged claim that stands for many supported ones makes a lower threshold cheaper."""
    weights = [1.0, 1.0, 1.0, 50.0, 1.0, 1.0, 1.0, 1.0]

    fit = fit_threshold(fixture.labelled(SCORES, SUPPORTED, weights=weights), Goal("cost", 2.0))

    assert fit.threshold == pytest.approx(0.45)


def test_bounds_shrink_with_more_claims():
    """Resamples of 2,000 claims agree on the threshold more than those of 60."""
    few, many = (fit_threshold(fixture.drawn(n, seed=1), Goal()) for n in (60, 2_000))

    assert many.high - many.low < few.high - few.low


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.5])
def test_the_temperature_undoes_overconfidence(sharpness: float):
    """Log-odds that are 2.5 times too large are divided by 2.5."""
    assert fit_temperature(fixture.drawn(20_000, sharpness=sharpness)) == pytest.approx(sharpness, rel=0.05)


def test_tempering_keeps_the_order():
    """A temperature never changes which of two claims is better supported."""
    scores = np.linspace(0.01, 0.99, 50)

    assert (np.diff(tempered(scores, 3.0)) > 0).all()


def test_a_group_is_never_cut():
    """Claims of one article are all fitted on, or all reported on."""
    groups = np.arange(200) // 3

    half = fitting_half(groups, ["s"] * 200, [f"g{g}" for g in groups])

    assert all(len({bool(half[k]) for k in np.flatnonzero(groups == g)}) == 1 for g in np.unique(groups))


def test_every_stratum_is_in_both_halves():
    """Sources and labels are dealt out evenly, those of two claims too."""
    strata = [f"s{k // 2}" for k in range(40)]

    half = fitting_half(np.arange(40), strata, [f"g{k}" for k in range(40)])

    assert [half[2 * k : 2 * k + 2].sum() for k in range(20)] == [1] * 20


def test_labels_are_balanced_where_every_source_has_one_claim_of_each():
    """Ten sources with a supported and another claim each: five and five in either half."""
    strata = [f"{k % 2}\0s{k // 2}" for k in range(20)]

    half = fitting_half(np.arange(20), strata, [f"g{k}" for k in range(20)])

    assert [int(half[label::2].sum()) for label in (0, 1)] == [5, 5]


def test_the_order_of_rows_does_not_choose_the_half():
    """Shuffled rows fall into the same halves."""
    groups = np.arange(60) // 2
    order = np.random.default_rng(0).permutation(60)
    keys, strata = [f"g{g}" for g in groups], [f"s{g % 3}" for g in groups]

    half = fitting_half(groups, strata, keys)
    shuffled = fitting_half(groups[order], [strata[k] for k in order], [keys[k] for k in order])

    assert (half[order] == shuffled).all()
