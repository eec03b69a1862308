"""`claimscore calibrate`: labelled claims through the job's own path, thresholds fitted on one half, figures of the other.

Every claim goes through windows, judge, joins and rules as in a run; what a verdict hangs on is its best premise that
lacks no value and is not outbid, so one pass of the judge serves every threshold. The figures are those of the verdicts
that the job itself gives at the fitted threshold. Knows no file and prints nothing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs import calibrate, contradictions, pair_rules, pipeline, signals, trust
from claimscore.jobs.calibrate import Fit, Goal
from claimscore.jobs.config import Config
from claimscore.jobs.errors import InputError
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import CLAIMS, LOG, SAMPLES, SCORES, Verdict
from claimscore.jobs.trust import Bools, Floats, Labelled
from claimscore.jobs.verdicts import Thresholds

AT_ONCE = 64
"""Claims judged between two reports of progress."""
FEW = 50
"""Labelled claims in the reporting half, and at least a third of it of each class, below which figures are called few."""
LEAST_OF_CLASS = 5
"""Claims of each class in each half without which nothing is fitted."""
LENGTHS = ((100, "to 100 words"), (400, "101 to 400 words"), (10**9, "over 400 words"))
"""Classes by words of evidence."""

Tick = Callable[[int], None]
"""Told how many claims more were judged."""


@dataclass(frozen=True, slots=True)
class Scored:
    """N labelled claims after the judge, as columns beside the labelled rows."""

    rows: pa.Table
    """calibration_files.LABELLED."""
    log: pa.Table
    claims: pa.Table
    pairs: pa.Table
    """records.SCORES of all claims."""
    scores: Floats
    """The P(entailment) that the verdict hangs on, NaN where none could be had."""
    reasons: list[str | None]
    """Why a claim is left out: `unlabelled`, or the reason why it could not be judged."""


def score(rows: pa.Table, judge: pipeline.Judge, config: Config, tick: Tick = lambda _: None) -> Scored:
    """Judge labelled claims as a run would; one claim is one answer. No rows, no pairs."""
    log, claims = _log_of(rows), _claims_of(rows)
    parts = [SCORES.empty_table()]
    models = pipeline.Models(judge=judge)
    for first in range(0, rows.num_rows, AT_ONCE):
        some = log.slice(first, AT_ONCE), claims.slice(first, AT_ONCE)
        parts.append(pipeline.make_scores(*some, models, config, tick=lambda *_: None))
        tick(some[0].num_rows)
    pairs = pa.concat_tables(parts)
    missing = signals.missing_of_entailing(log, claims, pairs, 0.0)
    of_pair = pair_rules.outcomes(pairs, missing, entailment=0.0, contradiction=1.0, config=config.verdicts)
    of_claim = of_pair.group_by("request_id").agg(
        score=pl.col("p_entailment").filter(pl.col("supports")).max(),
        judged=pl.col("p_entailment").is_not_null().any(),
        error=pl.col("error").drop_nulls().first(),
    )
    order = pl.DataFrame(
        {"request_id": log.column("request_id").to_pylist()}, schema={"request_id": pl.String}
    )
    frame = order.join(of_claim, on="request_id", how="left", maintain_order="left")
    reasons = [
        "unlabelled" if label is None else error or (None if judged else "not_judged")
        for label, error, judged in zip(
            rows.column("supported").to_pylist(),
            frame["error"].to_list(),
            frame["judged"].to_list(),
            strict=True,
        )
    ]
    # Every premise vetoed: no threshold supports the claim.
    scores = frame["score"].cast(pl.Float64).fill_null(0.0).to_numpy()
    return Scored(rows, log, claims, pairs, np.where([r is None for r in reasons], scores, np.nan), reasons)


def calibrate_claims(scored: Scored, config: Config, goal: Goal) -> dict[str, Any]:
    """The whole outcome as a plain document: fit, figures of the other half, warnings.

    Raises:
        InputError: too few claims of a class in a half to fit anything.
    """
    places = np.flatnonzero([reason is None for reason in scored.reasons])
    labelled, parts = _labelled(scored, places)
    strata = [f"{ok}\0{s}" for s, ok in zip(parts["source"], labelled.supported.tolist(), strict=True)]
    is_fit = calibrate.fitting_half(labelled.groups, strata, parts["group"])
    _refuse_too_few(labelled, is_fit)
    lowest, highest = _lowest(config), config.evidence.join_below
    fit = calibrate.fit_threshold(labelled.take(is_fit), goal, lowest=lowest, highest=highest)
    own = Thresholds.of(config.card, config.verdicts)
    fitted, in_force = (_supported(scored, config, t) for t in (fit.threshold, own.entailment))
    alarms = contradictions.scores(scored.pairs, fitted, fit.threshold, config.verdicts)[places]
    document: dict[str, Any] = {
        "judge": {"name": config.card.name} | dataclasses.asdict(own),
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


def _log_of(rows: pa.Table) -> pa.Table:
    """records.LOG, one answer a claim, named by its place: ids of a labelled file need not be unique."""
    records = [
        {
            "request_id": str(k),
            "question": row["question"],
            "answer": row["claim"],
            "chunks": row["chunks"],
            "flags": [],
        }
        for k, row in enumerate(rows.to_pylist())
    ]
    return pa.Table.from_pylist(records, schema=LOG)


def _claims_of(rows: pa.Table) -> pa.Table:
    """records.CLAIMS: each labelled claim as it stands."""
    records = [
        {"request_id": str(k), "claim_index": 0, "sentence_index": 0, "start": 0, "end": len(row["claim"])}
        | {"text": row["claim"], "source": "atomic", "decompose_outcome": "atomic", "unjudgeable": None}
        | {"cited_ids": row["cited_ids"], "fabricated_marks": [], "quotes": []}
        for k, row in enumerate(rows.to_pylist())
    ]
    return pa.Table.from_pylist(records, schema=CLAIMS)


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
    """Below `rivals_above` a claim would be supported untested (1: nothing is tested)."""
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
    if fit.threshold in (round(_lowest(config), 3), round(config.evidence.join_below, 3)):
        lines.append(
            f"the threshold stands at the edge of what [evidence] allows ({_lowest(config):g} rivals_above to "
            f"{config.evidence.join_below:g} join_below): another may be better there"
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
