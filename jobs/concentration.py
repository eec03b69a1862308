"""Where a day's hallucinations concentrate: the groups of answers that hold more of them than the rest, noise kept out.

Each prompt version, model, topic and chunk source is tested against the rest (Fisher's exact test, one-sided), each
pair of the first three against the rest of both its parts, so that a pair stands only for what neither part explains.
Benjamini and Hochberg (1995) keep the share of false findings at 5% among the first three, and among pairs and sources
(apart, so that the many of these do not hide a bad prompt). Groups are ranked by excess: hallucinated
answers above what the rest's rate gives. That a group stands out is not that it is the cause: the module does not know.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from claimscore.jobs.records import HallucinationType, Verdict

FALSE_SHARE = 0.05
MIN_GROUP = 5
"""Answers that a group and its rest must have to be tested."""
MAX_SOURCE = 120
DIMENSIONS = ("prompt_version", "model", "topic")

_CHUNK_NUMBER = re.compile(r"(?:#|::?|/)(?:chunk|part|p)?[-_]?\d+$")


def source_of(chunk_id: str) -> str:
    """The document of a chunk id: without a number behind `#`, `:`, `::` or `/` (`faq#3` and `faq/chunk-3` are `faq`).

    At most MAX_SOURCE code points.
    """
    return (_CHUNK_NUMBER.sub("", chunk_id[-MAX_SOURCE:]) or chunk_id)[:MAX_SOURCE]


def log_factorials(n: int) -> np.ndarray:
    """float64 (n + 1,): the natural logarithms of 0! to n!."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def fisher(bad: int, n: int, rest_bad: int, rest_n: int, logs: np.ndarray) -> float:
    """Chance of at least `bad` of `n` where group and rest have one rate and their totals are what they are.

    Args:
        bad: marked ones of the group.
        n: size of the group.
        rest_bad: marked ones of the rest.
        rest_n: size of the rest.
        logs: `log_factorials` of at least n + rest_n.
    """
    total, all_bad = n + rest_n, bad + rest_bad
    k = np.arange(bad, min(n, all_bad) + 1)
    ways = logs[n] - logs[k] - logs[n - k] + logs[rest_n] - logs[all_bad - k] - logs[rest_n - all_bad + k]
    whole = logs[total] - logs[all_bad] - logs[total - all_bad]
    return float(min(1.0, np.exp(ways - whole).sum()))


def concentrate(answers: pl.DataFrame, verdicts: pl.DataFrame) -> dict[str, Any]:
    """The groups that stand out, ranked, and the kinds of hallucination.

    Args:
        answers: request_id, prompt_version, model, topic, hallucinated, flags of ANSWERS; those whose `hallucinated`
            is null count nowhere.
        verdicts: request_id, verdict, hallucination_type, evidence_chunk_id of VERDICTS.

    Returns:
        n_judged, n_bad; n_tested groups; found: a dict a group, by falling excess, `apart` telling whether it still
        stands out (p < 0.05) among the answers outside the first one found; types: a dict a kind, by falling count.
    """
    judged = answers.filter(pl.col("hallucinated").is_not_null()).rename({"hallucinated": "bad"})
    logs = log_factorials(max(len(judged), len(verdicts)) + 1)
    coarse, fine = _singles(judged, logs), [*_pairs(judged, logs), *_sources(judged, verdicts, logs)]
    found = sorted([*_significant(coarse), *_significant(fine)], key=lambda group: -group["excess"])
    for group in found[1:]:
        group["apart"] = _stands_apart(judged, group, found[0], logs)
    return {
        "n_judged": len(judged),
        "n_bad": int(judged["bad"].sum()),
        "n_tested": len(coarse) + len(fine),
        "found": found,
        "types": _types(judged, verdicts, logs),
    }


def _significant(tested: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that Benjamini and Hochberg let stand."""
    by_p = sorted(tested, key=lambda group: group["p"])
    bars = [FALSE_SHARE * (rank + 1) / len(by_p) for rank in range(len(by_p))]
    passing = [rank for rank, group in enumerate(by_p) if group["p"] <= bars[rank]]
    return by_p[: passing[-1] + 1] if passing else []


def _group(where: dict[str, str | None], n: int, bad: int, total: int, all_bad: int) -> dict[str, Any]:
    """One group with its excess; `p` is for the caller to set."""
    rest_n, rest_bad = total - n, all_bad - bad
    rest_rate = rest_bad / rest_n
    return {
        "where": where,
        "unit": "answers",
        "n": n,
        "n_bad": bad,
        "rate": bad / n,
        "rest_n": rest_n,
        "rest_bad": rest_bad,
        "rest_rate": rest_rate,
        "excess": bad - n * rest_rate,
        "p": 1.0,
        "apart": None,
    }


def _counts(judged: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[str | None, ...], tuple[int, int]]:
    """Values of the keys -> (answers, hallucinated ones)."""
    counted = judged.group_by(list(keys)).agg(pl.len(), pl.col("bad").sum().alias("n_bad"))
    return {row[:-2]: (row[-2], row[-1]) for row in counted.sort(list(keys), nulls_last=True).iter_rows()}


def _singles(judged: pl.DataFrame, logs: np.ndarray) -> list[dict[str, Any]]:
    total, all_bad = len(judged), int(judged["bad"].sum())
    out = []
    for dimension in DIMENSIONS:
        for (value,), (n, bad) in _counts(judged, [dimension]).items():
            if min(n, total - n) >= MIN_GROUP:
                group = _group({dimension: value}, n, bad, total, all_bad)
                out.append(group | {"p": fisher(bad, n, all_bad - bad, total - n, logs)})
    return out


def _pairs(judged: pl.DataFrame, logs: np.ndarray) -> list[dict[str, Any]]:
    """Pairs of values; the larger p of the two tests against what else each of its parts has."""
    total, all_bad = len(judged), int(judged["bad"].sum())
    out = []
    for keys in itertools.combinations(DIMENSIONS, 2):
        parents = [_counts(judged, [key]) for key in keys]
        for values, (n, bad) in _counts(judged, keys).items():
            wholes = [parent[(value,)] for parent, value in zip(parents, values, strict=True)]
            if min(n, *(whole_n - n for whole_n, _ in wholes)) >= MIN_GROUP:
                p = max(fisher(bad, n, whole_bad - bad, whole_n - n, logs) for whole_n, whole_bad in wholes)
                group = _group(dict(zip(keys, values, strict=True)), n, bad, total, all_bad)
                out.append(group | {"p": p})
    return out


def _sources(judged: pl.DataFrame, verdicts: pl.DataFrame, logs: np.ndarray) -> list[dict[str, Any]]:
    """Documents; an answer counts once for each document that its claims' best evidence lies in.

    Left out: answers whose log had no chunk ids, for ours are positions and say nothing of a document.
    """
    known = judged.filter(~pl.col("flags").list.contains("ids_synthetic")).select("request_id")
    scored = verdicts.filter(pl.col("verdict") != Verdict.UNSCORED, pl.col("evidence_chunk_id").is_not_null())
    scored = scored.join(known, on="request_id", how="semi").with_columns(
        source=pl.col("evidence_chunk_id").map_elements(source_of, return_dtype=pl.String),
        bad=pl.col("hallucination_type").is_not_null() | (pl.col("verdict") != Verdict.SUPPORTED),
    )
    once = scored.group_by("request_id", "source").agg(pl.col("bad").any())
    total, all_bad = len(once), int(once["bad"].sum())
    out = []
    for (source,), (n, bad) in _counts(once, ["source"]).items():
        if min(n, total - n) >= MIN_GROUP:
            group = _group({"source": source}, n, bad, total, all_bad) | {"unit": "answers that lean on it"}
            out.append(group | {"p": fisher(bad, n, all_bad - bad, total - n, logs)})
    return out


def _stands_apart(
    judged: pl.DataFrame, group: dict[str, Any], first: dict[str, Any], logs: np.ndarray
) -> bool | None:
    """Whether a group also stands out among the answers outside the first; None: it cannot be told."""
    if "source" in group["where"] or "source" in first["where"]:
        return None
    outside = judged.filter(~_is_in(first["where"]))
    inside = outside.filter(_is_in(group["where"]))
    n, total = len(inside), len(outside)
    if min(n, total - n) < MIN_GROUP:
        return None
    bad, all_bad = int(inside["bad"].sum()), int(outside["bad"].sum())
    return fisher(bad, n, all_bad - bad, total - n, logs) < 0.05


def _is_in(where: dict[str, str | None]) -> pl.Expr:
    return pl.all_horizontal(
        pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in where.items()
    )


def _types(judged: pl.DataFrame, verdicts: pl.DataFrame, logs: np.ndarray) -> list[dict[str, Any]]:
    """Each kind of hallucination with its claims and answers, and the one group where it stands out most."""
    typed = verdicts.filter(pl.col("hallucination_type").is_not_null())
    out: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    for kind in HallucinationType:
        mine = typed.filter(pl.col("hallucination_type") == kind)
        if len(mine):
            ids = mine.select("request_id").unique()
            out.append({"type": kind.value, "n_claims": len(mine), "n_answers": len(ids), "where": None})
            marked = judged.with_columns(bad=pl.col("request_id").is_in(ids["request_id"].implode()))
            groups += [group | {"type": kind.value} for group in _singles(marked, logs)]
    for group in sorted(_significant(groups), key=lambda group: group["excess"]):  # the largest last, to stay
        next(row for row in out if row["type"] == group["type"])["where"] = group
    return sorted(out, key=lambda row: -row["n_claims"])
