"""The second threshold of a card: from which P(contradiction) on a claim is called contradicted.

Fitted only where labels tell contradicted from merely unsupported (`not_supported` does not), to be right in a share of its
calls: an alarm should be right. A claim's score is the highest P(contradiction) among premises that do not entail it and hold
enough of its words, as pair_rules.py counts them. Knows no file.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl

from claimscore.jobs import calibrate, trust
from claimscore.jobs.calibrate import Goal
from claimscore.jobs.trust import Bools, Floats, Labelled

PRECISION = 0.9
LEAST = 10
"""Contradicted claims in each half without which nothing is fitted."""
LOWEST = 0.5
"""No threshold below: there the judge itself finds another label likelier."""
TOLD = ("supported", "unsupported", "partial", "contradicted")
"""Labels that say whether a claim is contradicted."""


def scores(of_pair: pl.DataFrame, supported: Bools) -> Floats:
    """What each claim's call rests on, (N,); 0 where it is supported or nothing contradicts it.

    Args:
        of_pair: pair_rules.outcomes at a contradiction threshold of 0; the request_id is the claim's place.
        supported: (N,) the job's verdict at the same threshold of entailment.
    """
    best = of_pair.filter(pl.col("contradicts")).group_by("request_id").agg(pl.col("p_contradiction").max())
    out: Floats = np.zeros(len(supported))
    places = np.array([int(place) for place in best["request_id"].to_list()], np.int64)
    out[places] = best["p_contradiction"].cast(pl.Float64).fill_null(0.0).to_numpy()
    out[supported] = 0.0
    return out


def fit(
    labels: list[str | None], found: Floats, labelled: Labelled, is_fit: Bools, own: float
) -> dict[str, Any]:
    """The threshold with the most calls of which PRECISION are right, and its figures on the other half.

    Args:
        labels: (N,) words of people.
        found: `scores` of the same claims.
        labelled: their weights and groups.
        is_fit: (N,) the fitting half.
        own: the threshold in force, kept where nothing can be fitted.

    Returns:
        threshold, `reached` (None: not fitted, and `why`), counts and, of the other half, precision and recall.
    """
    folded = [(label or "").strip().casefold() for label in labels]
    told = np.array([label in TOLD for label in folded], bool)
    contradicted = np.array([label == "contradicted" for label in folded], bool)
    halves = [int((contradicted & told & half).sum()) for half in (is_fit, ~is_fit)]
    if min(halves) < LEAST:
        why = f"{sum(halves)} claims are labelled contradicted, expected at least {LEAST} in each half"
        return {"threshold": own, "reached": None, "why": why, "n_contradicted": sum(halves)}
    # A call is a score from the threshold on; a flag of `calibrate` one below it: turned round, the one is the other.
    turned = dataclasses.replace(labelled, supported=~contradicted, scores=1 - found)
    best = calibrate.fit_threshold(
        turned.take(told & is_fit), Goal("precision", PRECISION), highest=1 - LOWEST
    )
    threshold = round(1 - best.threshold, 3)
    rest = told & ~is_fit
    figures = trust.rates(turned.take(rest), found[rest] >= threshold)
    return {
        "threshold": threshold if best.reached else own,
        "reached": best.reached,
        "why": ""
        if best.reached
        else f"no threshold is right in {PRECISION:.0%} of its calls; the card's is kept",
        "n_contradicted": sum(halves),
        "precision": dataclasses.asdict(figures["precision"]),
        "recall": dataclasses.asdict(figures["recall"]),
    }
