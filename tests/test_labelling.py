"""Which claims are drawn for labels: deterministic, weighted, and such that weighted rates are those of the night."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from claimscore.jobs.labelling import choose, inclusion_chances


def night(n: int = 2_000) -> pl.DataFrame:
    """Claims of a night: a fifth flagged, a few near the threshold of 0.6, three topics."""
    rng = np.random.default_rng(3)
    p = np.where(rng.random(n) < 0.1, rng.uniform(0.5, 0.7, n), np.where(rng.random(n) < 0.8, 0.97, 0.02))
    return pl.DataFrame(
        {
            "request_id": [f"r{k // 2}" for k in range(n)],
            "claim_index": [k % 2 for k in range(n)],
            "verdict": [
                "supported" if x >= 0.6 else "contradicted" if k % 9 == 0 else "unsupported"
                for k, x in enumerate(p)
            ],
            "support": p,
            "decided_by": ["number_veto" if k % 50 == 0 else "nli" for k in range(n)],
            "conflict": [k % 40 == 1 for k in range(n)],
            "low_consistency": [k % 45 == 2 for k in range(n)],
            "topic": [("fees", "visa", None)[k % 3] for k in range(n)],
            "prompt_version": [("p13", "p14")[k % 4 == 0] for k in range(n)],
        }
    )


def drawn(n: int = 100, *, seed: int = 0, of: pl.DataFrame | None = None) -> pl.DataFrame:
    """A draw at a threshold of 0.6."""
    return choose(night() if of is None else of, n, threshold=0.6, temperature=1.0, seed=seed)


@pytest.mark.parametrize("n", [1, 7, 100, 1_999])
def test_as_many_are_drawn_as_were_asked_for(n: int):
    """To the claim, and none twice."""
    assert drawn(n).unique(["request_id", "claim_index"]).height == n


def test_a_small_night_is_drawn_whole():
    """Every claim, each for itself."""
    few = drawn(100, of=night(30))

    assert (few.height, few["weight"].unique().to_list()) == (30, [1.0])


def test_a_seed_draws_the_same_claims_whatever_the_order_of_rows():
    """The same night and seed give the same sheet; another seed another one."""
    shuffled = night().sample(fraction=1.0, shuffle=True, seed=1)

    assert drawn().equals(drawn(of=shuffled))
    assert not drawn().equals(drawn(seed=1))


def test_both_sides_are_drawn_about_equally():
    """A fifth of the night is flagged, half of the sheet is."""
    assert abs((drawn(100)["verdict"] != "supported").sum() - 50) <= 1


def test_claims_in_doubt_are_drawn_more_often():
    """Those near the threshold, in conflict, inconsistent or vetoed make up more of the sheet than of the night."""
    everything = choose(night(), 2_000, threshold=0.6, temperature=1.0, seed=0)
    share = [(frame["reason"] != "spread").mean() for frame in (everything, drawn(200))]

    assert share[1] > 1.6 * share[0]


def test_a_temperature_widens_what_is_near():
    """With an overconfident judge 0.8 may be as unsure as 0.65 with an honest one."""
    of = night().with_columns(
        support=pl.lit(0.85), conflict=False, low_consistency=False, decided_by=pl.lit("nli")
    )
    reasons = [
        choose(of, 10, threshold=0.6, temperature=t, seed=0)["reason"].unique().to_list() for t in (1.0, 3.0)
    ]

    assert reasons == [["spread"], ["near_threshold"]]


def test_topics_come_in_their_proportions():
    """Where no claim is in doubt, each topic has its third: the draw goes through each side topic by topic."""
    of = night().with_columns(
        support=pl.lit(0.99), conflict=False, low_consistency=False, decided_by=pl.lit("nli")
    )
    counts = drawn(300, of=of)["topic"].value_counts()["count"].to_list()

    assert max(counts) - min(counts) <= 3


def test_weighted_rates_are_those_of_the_night():
    """Over 200 seeds the weighted share of supported claims is the night's, where the plain share is far off."""
    truth = (night()["verdict"] == "supported").mean()
    draws = [drawn(100, seed=seed) for seed in range(200)]
    weighted = [np.average(d["verdict"] == "supported", weights=d["weight"]) for d in draws]
    plain = [(d["verdict"] == "supported").mean() for d in draws]

    assert np.mean(weighted) == pytest.approx(truth, abs=0.01)
    assert abs(np.mean(plain) - truth) > 0.2


def test_weights_add_up_to_the_night():
    """A hundred claims stand for two thousand, about."""
    assert np.mean([drawn(100, seed=seed)["weight"].sum() for seed in range(100)]) == pytest.approx(
        2_000, rel=0.02
    )


def test_no_chance_is_above_one():
    """One claim larger than all others is certain; the others share what is left."""
    chances = inclusion_chances(np.array([100.0, 1.0, 1.0, 2.0]), 2)

    assert chances.tolist() == [1.0, 0.25, 0.25, 0.5]
