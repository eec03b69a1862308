"""`claimscore calibrate`: labelled claims through the job's own path, thresholds fitted on one half, figures of the other.

Every claim goes through windows, judge, joins and rules as in a run; what a verdict hangs on is its best premise that
lacks no value and is not outbid, so one pass of the judge serves every threshold. The figures are those of the verdicts
that the job itself gives at the fitted threshold. Knows no file and prints nothing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs import calibrate, combining, contradictions, pipeline, trust
from claimscore.jobs.calibrate import Fit, Goal
from claimscore.jobs.calibration_scores import Scored, outcomes
from claimscore.jobs.config import Combiner, Config
from claimscore.jobs.errors import InputError
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import SAMPLES, SCORES, Verdict
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.trust import Bools, Floats, Labelled

FEW = 50
"""Labelled claims in the reporting half, and at least a third of it of each class, below which figures are called few."""
LEAST_OF_CLASS = 5
"""Claims of each class in each half without which nothing is fitted."""
LENGTHS = ((100, "to 100 words"), (400, "101 to 400 words"), (10**9, "over 400 words"))
"""Classes by words of evidence."""


def combined(scored: Scored, config: Config) -> tuple[Scored, Config]:
    """The claims scored by a combiner fitted on the fitting half, and the config with that combiner in its card.

    Pairs that a veto takes out do not take part, as they never support.

    Raises:
        InputError: as `calibrate_claims`.
    """
    labelled, _, places, is_fit = _halves(scored)
    of_pair = outcomes(scored.pairs, scored.lacking, with_combiner(config, None)).filter(pl.col("supports"))
    claim = of_pair["request_id"].cast(pl.Int64).to_numpy()
    column = np.full(scored.rows.num_rows, -1)
    fitted_on = np.intersect1d(places[is_fit], claim)
    column[fitted_on] = np.arange(len(fitted_on))
    used = column[claim] >= 0
    columns = ("p_entailment", "p_contradiction", "overlap", "n_names")
    values = (of_pair[name].cast(pl.Float64).fill_null(0.0).to_numpy()[used] for name in columns)
    beside = np.searchsorted(places, fitted_on)
    combiner = combining.fit_combiner(
        combining.features(*values), column[claim[used]], labelled.supported[beside], labelled.weights[beside]
    )
    config = with_combiner(config, combiner)
    best = outcomes(scored.pairs, scored.lacking, config).filter(pl.col("supports"))
    scores = np.where(np.isnan(scored.scores), np.nan, 0.0)
    found = best.group_by("request_id").agg(pl.col("support").max())
    rows = found["request_id"].cast(pl.Int64).to_numpy()
    scores[rows] = np.where(np.isnan(scores[rows]), np.nan, found["support"].cast(pl.Float64).to_numpy())
    return dataclasses.replace(scored, scores=scores), config


def with_combiner(config: Config, combiner: Combiner | None) -> Config:
    """The config with another combiner, or none, in its judge card."""
    card = dataclasses.replace(config.card, combiner=combiner)
    return dataclasses.replace(config, judge=dataclasses.replace(config.judge, judge_card=card))


def calibrate_claims(
    scored: Scored, config: Config, goal: Goal, *, before: Config | None = None
) -> dict[str, Any]:
    """The whole outcome as a plain document: fit, figures of the other half, warnings.

    Args:
        scored: the claims as `config` scores them.
        config: with the combiner that the threshold is fitted for.
        goal: what for.
        before: the config in force, where that is another.

    Raises:
        InputError: too few claims of a class in a half to fit anything.
    """
    labelled, parts, places, is_fit = _halves(scored)
    lowest, highest = _lowest(config), 1.0 if config.card.combiner else config.evidence.carried_at
    fit = calibrate.fit_threshold(labelled.take(is_fit), goal, lowest=lowest, highest=highest)
    own = Thresholds.of(before or config)
    fitted = _supported(scored, config, fit.threshold)
    in_force = _supported(scored, before or config, own.entailment)
    of_pair = outcomes(scored.pairs, scored.lacking, config, fit.threshold)
    alarms = contradictions.scores(of_pair, fitted)[places]
    document: dict[str, Any] = {
        "judge": {"name": config.card.name} | dataclasses.asdict(own),
        "combiner": None if config.card.combiner is None else dataclasses.asdict(config.card.combiner),
        "n_claims": scored.rows.num_rows,
        "n_used": len(labelled),
        "left_out": dict(sorted(Counter(r for r in scored.reasons if r).items())),
        "n_pairs": int(scored.pairs.num_rows),
        "share_supported": float(np.average(labelled.supported, weights=labelled.weights)),
        "goal": dataclasses.asdict(goal),
        "n_fitted_on": int(is_fit.sum()),
        "entailment": dataclasses.asdict(fit),
        "temperature": calibrate.fit_temperature(labelled.take(is_fit)),
        "contradiction": contradictions.fit(parts["label"], alarms, labelled, is_fit, own.contradiction),
    }
    told = labelled.take(~is_fit)
    flags = {"fitted": ~fitted[places][~is_fit], "in_force": ~in_force[places][~is_fit]}
    names = {name: [values[k] for k in np.flatnonzero(~is_fit)] for name, values in parts.items()}
    document |= _figures(told, flags, names, document["temperature"])
    return document | {"warnings": warnings(document, told, config)}


def _halves(scored: Scored) -> tuple[Labelled, dict[str, list[Any]], np.ndarray, Bools]:
    """The usable claims, what is known of them, their places, and which are fitted on."""
    places = np.flatnonzero([reason is None for reason in scored.reasons])
    labelled, parts = _labelled(scored, places)
    strata = [f"{ok}\0{s}" for s, ok in zip(parts["source"], labelled.supported.tolist(), strict=True)]
    is_fit = calibrate.fitting_half(labelled.groups, strata, parts["group"])
    _refuse_too_few(labelled, is_fit)
    return labelled, parts, places, is_fit


def _figures(
    told: Labelled, flags: dict[str, Bools], names: dict[str, list[Any]], temperature: float
) -> dict[str, Any]:
    """Everything that is said of the reporting half."""
    return {
        "n_reported_on": len(told),
        "n_reported_groups": len(np.unique(told.groups)),
        "n_effective": round(told.n_effective, 1),
        "figures": {name: _plain(trust.rates(told, flagged)) for name, flagged in flags.items()},
        "auroc": dataclasses.asdict(trust.auroc(told)),
        "reliability": _reliability(told, told.scores),
        "reliability_tempered": _reliability(told, trust.tempered(told.scores, temperature)),
        "by_source": _by(told, flags["fitted"], names["source"]),
        "by_length": _by(told, flags["fitted"], names["length"]),
        "more_labels": _more(told, flags["fitted"]),
    }


def _labelled(scored: Scored, places: np.ndarray) -> tuple[Labelled, dict[str, list[Any]]]:
    """The usable claims, and source, group, label and length class of each."""
    rows = scored.rows.take(pa.array(places))
    groups = rows.column("group").to_pylist()
    n_words = [sum(len(c["text"].split()) for c in chunks) for chunks in rows.column("chunks").to_pylist()]
    lengths = [next(name for most, name in LENGTHS if n <= most) for n in n_words]
    labelled = Labelled(
        supported=np.array(rows.column("supported").to_pylist(), bool),
        scores=scored.scores[places],
        weights=np.asarray(rows.column("weight").to_pylist(), np.float64),
        groups=np.unique(groups, return_inverse=True)[1].astype(np.int64)
        if groups
        else np.zeros(0, np.int64),
    )
    return labelled, {
        "source": rows.column("source").to_pylist(),
        "group": groups,
        "label": rows.column("label").to_pylist(),
        "length": lengths,
    }


def _supported(scored: Scored, config: Config, threshold: float) -> Bools:
    """What the job itself says at a threshold, bool (N,)."""
    at = dataclasses.replace(config, verdicts=dataclasses.replace(config.verdicts, entailment=threshold))
    table = pipeline.make_verdicts(
        scored.log, scored.claims, scored.pairs, SCORES.empty_table(), SAMPLES.empty_table(), at
    )
    supported: Bools = (as_frame(table)["verdict"] == Verdict.SUPPORTED.value).to_numpy()
    return supported


def _lowest(config: Config) -> float:
    """Below `rivals_above` a claim would be supported untested (1: nothing is tested); a combiner has a floor of its own."""
    if config.card.combiner:
        return 0.0
    return config.evidence.rivals_above if config.evidence.rivals_above < 1 else 0.0


def _refuse_too_few(labelled: Labelled, is_fit: Bools) -> None:
    for name, half in (("fitted", labelled.take(is_fit)), ("reported", labelled.take(~is_fit))):
        n_good = int(half.supported.sum())
        if min(n_good, len(half) - n_good) < LEAST_OF_CLASS:
            raise InputError(
                f"calibrate: {n_good} supported and {len(half) - n_good} other claims in the half that is {name}, expected "
                f"at least {LEAST_OF_CLASS} of each; label more (`claimscore label`), 100 are a start"
            )


def _by(told: Labelled, flagged: Bools, names: list[str]) -> dict[str, Any]:
    out = {}
    column = np.array(names)
    classes = [name for _, name in LENGTHS if name in names]
    for name in classes or sorted(set(names)):
        rows = column == name
        some = told.take(rows)
        found = trust.rates(some, flagged[rows])
        out[name] = {"n": len(some), "n_supported": int(some.supported.sum())} | _plain(
            {"balanced_accuracy": found["balanced_accuracy"], "f1": found["f1"], "auroc": trust.auroc(some)}
        )
    return out


def _more(told: Labelled, flagged: Bools) -> list[dict[str, Any]]:
    """How wide the interval of balanced accuracy is, and would be with twice and four times the claims."""
    out = []
    for factor in (1, 2, 4):
        figure = trust.rates(told, flagged, factor=factor)["balanced_accuracy"]
        width = None if figure.low is None or figure.high is None else figure.high - figure.low
        out.append({"factor": factor, "n": factor * len(told), "width": width})
    return out


def _reliability(told: Labelled, chances: Floats) -> dict[str, Any]:
    found = trust.reliability(told, chances)
    return found | {"ece": dataclasses.asdict(found["ece"])}


def _plain(figures: dict[str, trust.Figure]) -> dict[str, Any]:
    return {name: dataclasses.asdict(figure) for name, figure in figures.items()}


def warnings(document: dict[str, Any], told: Labelled, config: Config) -> list[str]:
    """What a reader must know before trusting the figures, one line each."""
    lines = []
    n, n_good = len(told), int(told.supported.sum())
    if n < FEW or min(n_good, n - n_good) < FEW // 3:
        lines.append(
            f"few labels: the figures rest on {n} claims, {n_good} of them supported; with fewer than {FEW}, or {FEW // 3} "
            "of a class, they say little"
        )
    if document["n_effective"] < 0.6 * n:
        lines.append(
            f"some claims stand for many more than others: the {n} tell as much as {document['n_effective']:.0f} of equal weight"
        )
    fit = Fit(**document["entailment"])
    if not fit.reached:
        goal = document["goal"]
        lines.append(
            f"no threshold reaches {goal['kind']} {goal['value']:g} on the fitting half; the nearest is given"
        )
    if not config.card.combiner and fit.threshold in (
        round(_lowest(config), 3),
        round(config.evidence.carried_at, 3),
    ):
        lines.append(
            f"the threshold stands at the edge of what [evidence] allows ({_lowest(config):g} rivals_above to "
            f"{config.evidence.carried_at:g} carried_at): another may be better there"
        )
    if fit.high - fit.low > 0.2:
        lines.append(
            f"resamples of the fitting half put the threshold anywhere from {fit.low:.2f} to {fit.high:.2f}: more labels would settle it"
        )
    if config.verdicts.entailment is not None:
        lines.append(
            f"{config.path}: [verdicts] entailment = {config.verdicts.entailment:g} goes before any card; take it out "
            "for the card's to count"
        )
    if config.verdicts.conflict != Verdict.SUPPORTED:
        lines.append(
            f"[verdicts] conflict = {config.verdicts.conflict!r} takes claims out of supported at any threshold"
        )
    return lines
