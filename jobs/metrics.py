"""Answers -> metrics: rates of a day by prompt version, model and topic, each with its denominator and interval.

Every metric is a numerator over a denominator, both sums over answers, so that one pass of resampled sums
gives every interval. The intervals are percentiles of a Poisson bootstrap of whole answers (each answer
counts Poisson(1) times in a resample; Chamandy et al. 2012, "Estimating uncertainty for massive data
streams"), because the claims of one answer share their chunks and are not independent. The module knows no
claim, no threshold, no date and no file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.records import METRICS, Action, AnswerState, conform

NEEDED_COLUMNS = (
    "request_id",
    "prompt_version",
    "model",
    "topic",
    "state",
    "groundedness",
    "hallucinated",
    "action",
    "n_claims",
    "n_scored",
    "n_supported",
    "n_contradicted",
    "n_unscored",
    "n_cited_claims",
    "n_citation_ok",
    "n_fabricated_citations",
    "n_conflicts",
    "n_low_consistency",
    "n_samples",
    "injection_suspected",
    "answerable",
    "recall_at_k",
    "reference_overlap",
    "human_label",
)
"""The columns of ANSWERS that `measure` reads; a caller with many shards loads no others."""

HUMAN_LABELS = {"ok": False, "supported": False, "hallucinated": True, "not_supported": True}
"""`human_label` (case and outer blanks folded) -> whether a person found the answer hallucinated."""

_BLOCK_ROWS = 2_048  # answers resampled at once: 1,000 resamples x 2,048 float64 weights are 16 MiB
_TAIL = 0.025  # on either side of a 95% interval

_one = pl.lit(1)
_scored = pl.col("state") == AnswerState.SCORED
_refused = pl.col("state") == AnswerState.REFUSAL
_asserted = pl.col("state").is_in([AnswerState.SCORED.value, AnswerState.NO_CONTEXT.value])
_sampled = pl.col("n_samples") > 0
_label = pl.col("human_label").str.strip_chars().str.to_lowercase()
_human = _label.replace_strict(HUMAN_LABELS, default=None, return_dtype=pl.Boolean)
_found = pl.col("hallucinated")
_unanswerable = ~pl.col("answerable")

# (metric, numerator, denominator, what the denominator counts). Null counts as 0 on either side.
_RATES: tuple[tuple[str, pl.Expr, pl.Expr, str], ...] = (
    ("groundedness", pl.col("n_supported"), pl.col("n_scored"), "scored claims"),
    (
        "mean_groundedness",
        pl.col("groundedness"),
        pl.col("groundedness").is_not_null(),
        "answers with a scored claim",
    ),
    ("hallucination_rate", _found, _found.is_not_null(), "answers judged hallucinated or not"),
    ("contradiction_rate", pl.col("n_contradicted"), pl.col("n_scored"), "scored claims"),
    ("unscored_rate", pl.col("n_unscored"), pl.col("n_claims"), "claims"),
    ("conflict_rate", pl.col("n_conflicts"), pl.col("n_claims"), "claims"),
    (
        "low_consistency_rate",
        _sampled * pl.col("n_low_consistency"),
        _sampled * pl.col("n_claims"),
        "claims of answers with samples",
    ),
    ("citation_precision", pl.col("n_citation_ok"), pl.col("n_cited_claims"), "claims with a citation"),
    (
        "fabricated_citation_rate",
        _scored & (pl.col("n_fabricated_citations") > 0),
        _scored,
        "answers in state scored",
    ),
    ("refusal_rate", _refused, _one, "answers"),
    ("deliver_rate", pl.col("action") == Action.DELIVER, _one, "answers"),
    ("revise_rate", pl.col("action") == Action.REVISE, _one, "answers"),
    ("refuse_rate", pl.col("action") == Action.REFUSE, _one, "answers"),
    ("injection_suspected_rate", pl.col("injection_suspected"), _one, "answers"),
    ("refusal_correctness", _unanswerable & _refused, _unanswerable, "unanswerable questions"),
    ("unanswerable_answered_rate", _unanswerable & _asserted, _unanswerable, "unanswerable questions"),
    ("over_refusal_rate", pl.col("answerable") & _refused, pl.col("answerable"), "answerable questions"),
    ("recall_at_k", pl.col("recall_at_k"), pl.col("recall_at_k").is_not_null(), "answers with gold chunks"),
    (
        "reference_overlap",
        pl.col("reference_overlap"),
        pl.col("reference_overlap").is_not_null(),
        "answers with a reference",
    ),
    (
        "human_label_used_rate",
        _human.is_not_null() & _found.is_not_null(),
        pl.col("human_label").is_not_null(),
        "answers with a human label",
    ),
)
# The four cells of our `hallucinated` against a person's: true and false positives, false and true negatives.
_CELLS = (_found & _human, _found & ~_human, ~_found & _human, ~_found & ~_human)
_AGAINST_HUMANS = (
    ("human_balanced_accuracy", "labelled answers, each class weighted to half"),
    ("human_f1", "answers found hallucinated + answers labelled so"),
    ("human_kappa", "labelled answers beyond chance agreement"),
)

METRIC_NAMES = tuple(rate[0] for rate in _RATES) + tuple(name for name, _ in _AGAINST_HUMANS)
"""Every metric, in the order of the table."""

_PER = tuple(rate[3] for rate in _RATES) + tuple(per for _, per in _AGAINST_HUMANS)
_LOWEST = np.array([-1.0 if name == "human_kappa" else 0.0 for name in METRIC_NAMES])
_N_RATES = len(_RATES)
_STATISTICS = [
    expression.cast(pl.Float64).fill_null(0.0).alias(str(i))
    for i, expression in enumerate([*(r[1] for r in _RATES), *(r[2] for r in _RATES), *_CELLS])
]

_Key = tuple[str | None, str | None, str | None]


def measure(answers: pa.Table, config: MetricsConfig) -> pa.Table:
    """Rates of `answers` (the whole day's, all shards concatenated) as METRICS rows.

    Groupings: `all`, `topic`, `prompt_version`, `model` and `prompt_version+model+topic`; a null prompt
    version, model or topic is a group of its own. A group has a row for each metric whose denominator is
    above 0 in it; `all` has a row for every metric, so that a rate that could not be measured is seen to be
    missing. `value` is `numerator / denominator`, or null with its bounds where the denominator is 0.

    Refused means that the answer's state is `refusal`; `*_rate` of an action counts what the policy would
    do. Against human labels (HUMAN_LABELS; hallucinated is the positive class) answers count that carry a
    known label and a `hallucinated` of ours, and only where both classes occur; `human_label_used_rate` says
    which share of the labels that is. In F1 the numerator is 2 * true positives; in kappa it is
    the agreements above those expected by chance.

    Intervals: 2.5th to 97.5th percentile of `config.n_resamples` resamples (those with denominator 0 left out),
    widened to hold the value. Where all resamples are equal, as for a rate of 0 or of a single answer, the
    bootstrap says nothing: there the interval allows the share 1 - 0.025**(1/n) of answers unlike all n seen.
    They depend on the answers and the seed alone, not on the order of rows nor on other groups.

    Args:
        answers: ANSWERS, or at least its NEEDED_COLUMNS; request_ids are unique. No rows give no rows.
        config: resamples and seed.
    """
    rows: list[tuple[Any, ...]] = []
    for grouping, key, resampled, n_answers in _resampled_groups(answers, config):
        rows.extend(_rows(grouping, key, resampled, n_answers))
    order = {"all": 0, "prompt_version": 1, "model": 2, "topic": 3}
    rows.sort(key=lambda row: order.get(row[0], 4))  # stable: groups by key, metrics as in METRIC_NAMES
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(METRICS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, METRICS, strict=True)]
    return conform(pa.table(arrays, names=METRICS.names), METRICS, where="metrics")


def _resampled_groups(
    answers: pa.Table, config: MetricsConfig
) -> Iterator[tuple[str, _Key, np.ndarray, np.ndarray]]:
    """(grouping, key, sums (1 + resamples, statistics), contributing answers) of each group.

    Coarser groups are sums over the finest ones, so they share their resamples; a topic's are given up as
    soon as it is done, which keeps memory flat for any number of topics.
    """
    n_sums = (1 + config.n_resamples, len(_STATISTICS))
    total: dict[tuple[str, _Key], tuple[np.ndarray, np.ndarray]] = {}

    def add(grouping: str, key: _Key, sums: np.ndarray, n_answers: np.ndarray) -> None:
        if (grouping, key) not in total:
            total[grouping, key] = np.zeros(n_sums), np.zeros(_N_RATES)
        held_sums, held_answers = total[grouping, key]
        held_sums += sums  # in place
        held_answers += n_answers

    for topic, cells in groupby(_cells(answers), key=lambda cell: cell[0][2]):
        for key, part in cells:
            sums, n_answers = _resample(part, _generator(config.seed, key), config.n_resamples)
            yield "prompt_version+model+topic", key, sums, n_answers
            add("all", (None, None, None), sums, n_answers)
            add("prompt_version", (key[0], None, None), sums, n_answers)
            add("model", (None, key[1], None), sums, n_answers)
            add("topic", (None, None, key[2]), sums, n_answers)
        whole_topic = (None, None, topic)
        sums, n_answers = total.pop(("topic", whole_topic))
        yield "topic", whole_topic, sums, n_answers
    for grouping, key in sorted(total, key=lambda item: (item[0], _sortable(item[1]))):
        sums, n_answers = total[grouping, key]
        yield grouping, key, sums, n_answers


def _cells(answers: pa.Table) -> list[tuple[_Key, pl.DataFrame]]:
    """(key, its answers sorted by request_id) of each combination that occurs, topic by topic."""
    keys = ["prompt_version", "model", "topic"]
    frame = pl.DataFrame(pl.from_arrow(answers.select(NEEDED_COLUMNS))).sort("request_id").drop("request_id")
    parts = frame.partition_by(keys, maintain_order=True, as_dict=True, include_key=False)
    found = [((key[0], key[1], key[2]), part) for key, part in parts.items()]
    return sorted(found, key=lambda cell: _sortable((cell[0][2], cell[0][0], cell[0][1])))


def _sortable(key: _Key) -> tuple[tuple[bool, str], ...]:
    """Nulls after every value; an empty string is a value."""
    return tuple((part is None, part or "") for part in key)


def _generator(seed: int, key: _Key) -> np.random.Generator:
    """The random numbers of one group, whatever other groups the day has."""
    digest = hashlib.sha256(repr((seed, key)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def _poisson_table() -> np.ndarray:
    """Poisson(1) at each of 65,536 equally likely draws: a look-up is ten times as fast as numpy's sampler."""
    up_to = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(up_to, (np.arange(65_536) + 0.5) / 65_536).astype(np.float64)


POISSON = _poisson_table()


def _resample(
    answers: pl.DataFrame, random: np.random.Generator, n_resamples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (1 + resamples, statistics), the plain ones in row 0, and how many answers are behind each rate."""
    sums = np.zeros((1 + n_resamples, len(_STATISTICS)))
    n_answers = np.zeros(_N_RATES)
    for block in answers.iter_slices(_BLOCK_ROWS):
        per_answer = block.select(_STATISTICS).to_numpy()
        draws = random.integers(0, 65_536, size=(n_resamples, len(block)), dtype=np.uint16)
        sums[0] += per_answer.sum(axis=0)
        sums[1:] += POISSON[draws] @ per_answer
        n_answers += np.count_nonzero(per_answer[:, _N_RATES : 2 * _N_RATES], axis=0)
    return sums, n_answers


def _rows(grouping: str, key: _Key, sums: np.ndarray, n_answers: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """The METRICS rows of one group."""
    numerator, denominator = _fractions(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(denominator > 0, numerator / denominator, np.nan)
    tp, fp, fn, tn = sums[0, -4:]
    n_behind = np.concatenate([n_answers, np.full(len(_AGAINST_HUMANS), min(tp + fn, fp + tn))])
    low, high = _interval(ratios, n_behind)
    for i, name in enumerate(METRIC_NAMES):
        exists = denominator[0, i] > 0
        if exists or grouping == "all":
            numbers = [float(x) if exists else None for x in (ratios[0, i], low[i], high[i])]
            yield grouping, *key, name, *numbers, float(numerator[0, i]), float(denominator[0, i]), _PER[i]


def _fractions(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numerators and denominators (resamples, metrics) from sums (resamples, statistics).

    Against people: balanced accuracy with each class weighted to half of the labelled answers, F1, and
    Cohen's kappa, (observed - expected agreements) / (all - expected); 0 / 0 unless both classes occur.
    """
    tp, fp, fn, tn = sums[:, -4:].T
    labelled = tp + fp + fn + tn
    positive, negative = tp + fn, fp + tn
    both = (positive > 0) & (negative > 0)
    some = np.where(both, labelled, 1.0)
    right = labelled / 2 * (tp / np.where(both, positive, 1.0) + tn / np.where(both, negative, 1.0))
    expected = (positive * (tp + fp) + negative * (fn + tn)) / some
    above = np.stack([right, 2 * tp, tp + tn - expected], axis=1) * both[:, None]
    below = np.stack([labelled, 2 * tp + fp + fn, labelled - expected], axis=1) * both[:, None]
    numerator = np.concatenate([sums[:, :_N_RATES], above], axis=1)
    return numerator, np.concatenate([sums[:, _N_RATES : 2 * _N_RATES], below], axis=1)


def _interval(ratios: np.ndarray, n_behind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95% bounds (metrics,) of ratios (1 + resamples, metrics); row 0 is the value, NaN is no value."""
    ordered = np.sort(ratios[1:], axis=0)  # NaN last
    n_valid = np.count_nonzero(~np.isnan(ordered), axis=0)
    value = ratios[0]
    bounds = []
    for share in (_TAIL, 1 - _TAIL):
        place = np.maximum(n_valid - 1, 0) * share
        under = np.take_along_axis(ordered, np.floor(place).astype(int)[None], axis=0)[0]
        over = np.take_along_axis(ordered, np.ceil(place).astype(int)[None], axis=0)[0]
        bounds.append(under + (over - under) * (place % 1))
    low, high = np.fmin(bounds[0], value), np.fmax(bounds[1], value)
    seen = _TAIL ** (1 / np.maximum(n_behind, 1))
    flat = high - low < 1e-12
    low = np.where(flat, seen * value + (1 - seen) * _LOWEST, low)
    return low, np.where(flat, seen * value + (1 - seen), high)
