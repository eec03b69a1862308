"""The yardstick itself: its measures against definitions, its halves, its flips and its cache. No model."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import _quality_baselines as baselines
import _quality_cases as quality_cases
import _quality_flips as flips
import _quality_judge as judging
import _quality_stats as stats
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parent.parent


def _labelled(labels: list[int], sources: str, families: str | None = None) -> object:
    n = len(labels)
    return stats.Labelled(
        labels=np.array(labels, bool),
        sources=np.array(list(sources)),
        families=np.array(list(families or sources)),
        articles=np.array([str(k) for k in range(n)]),
        is_fit=np.arange(n) % 2 == 0,
    )


def test_auroc_is_the_share_of_ordered_pairs():
    """Equal to counting every pair of a supported and an unsupported claim, ties half."""
    rng = np.random.default_rng(3)
    labels, scores = rng.random(40) < 0.4, rng.integers(0, 6, 40).astype(float)
    pairs = list(product(scores[labels], scores[~labels]))
    counted = sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)

    assert stats.auroc(labels, scores) == pytest.approx(counted)


def test_the_catch_rate_keeps_its_false_alarms():
    """With 20 supported claims one may be flagged: the threshold is the second lowest of them."""
    scores = np.concatenate([np.arange(20.0), [0.5, 1.5, -3.0]])
    labels = np.arange(23) < 20

    assert stats.catch_rate(labels, scores, 0.05) == pytest.approx(2 / 3)


def test_sources_that_share_data_count_once():
    """Two sources of one family are averaged before the families are."""
    cases = _labelled([1, 0, 1, 0, 1, 0], "aabbcc", "xxxxyy")
    right = np.array([1, 0, 1, 0, 0, 1], bool)

    assert stats.macro(cases, right, stats.balanced_accuracy) == pytest.approx(0.5)


def test_a_threshold_is_fitted_on_its_half_only():
    """The reported half has its labels the other way round, and the fitted threshold gets all of it wrong."""
    cases = _labelled([1, 0, 1, 0, 0, 1, 0, 1], "aaaaaaaa")
    scores = np.array([0.9, 0.9, 0.8, 0.8, 0.2, 0.2, 0.1, 0.1])
    figures = stats.summary(cases, scores, n_resamples=5)

    assert 0.2 < figures["threshold"] <= 0.8
    assert (figures["ba_fitted"], figures["auroc"]) == (0.0, 0.0)


def test_intervals_resample_whole_articles():
    """Copies of one article's claim make an interval no narrower."""
    once = _labelled([1, 0] * 10, "a" * 20)
    values = np.array(([1, 0] * 9) + [0, 1], bool)
    rows = np.repeat(np.arange(20), 30)
    low, high = stats.interval(once, values, stats.balanced_accuracy)
    low_30, high_30 = stats.interval(once.take(rows), values[rows], stats.balanced_accuracy)

    assert high_30 - low_30 == pytest.approx(high - low, abs=0.03)
    assert high - low > 0.1


def _write_rows(folder: Path) -> None:
    rows = [
        {
            "id": f"{source}-{k}",
            "source": source,
            "level": "claim",
            "question": f"question {k % 7}" if source == "lfqa_verification" else None,
            "evidence": [f"Article {k % 11}.", "x" * (9_000 if k == 5 else 10)],
            "claim": f"Claim {k}.",
            "supported": k % 2,
            "meta": None,
        }
        for source in ("lfqa_verification", "wice", "true_begin")
        for k in range(60)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "grounding_dev.parquet")


def test_no_article_has_claims_in_both_halves(tmp_path: Path):
    """Also where the evidence differs between two claims of one question; and both halves have claims."""
    _write_rows(tmp_path)
    cases = quality_cases.dev_cases(tmp_path, None)
    halves: dict[tuple, set] = {}
    for case in cases:
        subject = case.question if case.family == "lfqa" else case.chunks
        halves.setdefault((case.family, subject), set()).add(case.is_fit)

    assert {len(found) for found in halves.values()} == {1}
    assert {case.is_fit for case in cases} == {True, False}


def test_fewer_rows_are_among_more(tmp_path: Path):
    """The rows of a smaller run are rows of a larger one, so its pairs are known; long evidence is left out."""
    _write_rows(tmp_path)
    few, many = ([case.id for case in quality_cases.dev_cases(tmp_path, n)] for n in (10, 30))

    assert (len(few), len(many)) == (30, 90)
    assert set(few) < set(many)
    assert not any(case_id.endswith("-5") for case_id in many)


def test_labels_and_halves_come_in_turn(tmp_path: Path):
    """Of 12 rows a source three are of each label and half, though the hash alone would not have it so."""
    _write_rows(tmp_path)
    cases = quality_cases.dev_cases(tmp_path, 12)
    strata = Counter((case.source, case.supported, case.is_fit) for case in cases)

    assert (len(strata), set(strata.values())) == (12, {3})


@pytest.mark.parametrize(
    ("kind", "claim", "evidence", "flipped"),
    [
        ("number", "The hall seats 280 people.", "280 seats", "The hall seats 420 people."),
        ("number", "It has 1,200 rooms [2].", "1,200", "It has 1,800 rooms [2]."),
        ("number", "It fell by 3% in 1999.", "", None),
        ("number", "There are 4 doors.", "4 doors and 6 windows", None),
        ("unit", "The tank takes 60 litres.", "60 litres", "The tank takes 60 gallons."),
        ("unit", "The tank takes 60 litres.", "60 litres or 13 gallons", None),
        ("date", "It opened in 1904.", "1904", "It opened in 1907."),
        ("date", "It opens in June.", "June", "It opens in October."),
        ("entity", "The play is by Ada Lind.", "Ada Lind met Tom Cart", "The play is by Tom Cart."),
        ("entity", "The play is by Ada Lind.", "nobody", None),
        ("negation", "The filter is not safe.", "", "The filter is safe."),
        ("negation", "The filter is safe.", "", "The filter is not safe."),
        ("negation", "The filter is safe, and cheap.", "", None),
        ("negation", "Nobody was hurt.", "", None),
        ("negation", "You have to pay.", "", None),
    ],
)
def test_a_flip_changes_one_fact_or_nothing(kind: str, claim: str, evidence: str, flipped: str | None):
    """One value, name or negation is changed; a change that the evidence might carry, or half a one, is not made."""
    assert flips.RULES[kind](claim, evidence) == flipped


def test_flips_are_of_supported_claims_and_unsupported():
    """Every twin comes from a supported case, is unsupported, and says which fact was changed."""
    probes = quality_cases.probe_cases()
    supported = {case.id for case in probes if case.supported}
    twins = list(flips.flips(probes))

    assert {twin.id.rsplit("~", 1)[0] for twin in twins} <= supported
    assert {twin.kinds[0] for twin in twins} == set(flips.RULES)
    assert not any(twin.supported for twin in twins)


def test_a_known_pair_is_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A second judge over the same folder reads what the first wrote, in any order, and asks the model for the rest."""
    asked: list[int] = []

    class Counting:
        def __init__(self, *_args, **_kwargs) -> None: ...

        def probabilities(self, premises, claims):
            asked.append(len(premises))
            return np.array([[len(p), len(c), 1] for p, c in zip(premises, claims, strict=True)], np.float32)

    monkeypatch.setattr(judging, "Judge", Counting)
    monkeypatch.setattr(judging, "load_tokenizer", lambda _model: None)
    monkeypatch.setattr(judging, "model_fingerprint", lambda _model: "f" * 16)
    card = type("Card", (), {"model": "m"})
    kind = pa.list_(pa.int32())
    premises, claims = pa.array([[1, 2], [1], [3, 4, 5]], kind), pa.array([[3], [2, 3], [9]], kind)
    first = judging.CachedJudge(card, folder=tmp_path).probabilities(premises.slice(0, 2), claims.slice(0, 2))
    again = judging.CachedJudge(card, folder=tmp_path)
    order = pa.array([2, 1, 0])

    assert again.probabilities(premises.take(order), claims.take(order)).tolist() == [
        [3, 1, 1],
        [1, 2, 1],
        [2, 1, 1],
    ]
    assert (asked, first.tolist()) == ([2, 1], [[2, 1, 1], [1, 2, 1]])


def test_word_overlap_is_a_share_of_the_claim():
    """Case does not matter, words count once, and a claim without words holds nothing against itself."""
    chunk, claims = ("The shop sells TEA.",), ["tea tea coffee", "!"]
    cases = [
        quality_cases.Case(str(k), "s", "s", "claim", chunk, claim, supported=True, article="0")
        for k, claim in enumerate(claims)
    ]

    assert baselines.overlap(cases).scores.tolist() == [0.5, 1.0]
