"""What a run would make, why, and what it would cost: reads footers, manifests and a few rows, runs nothing.

Costs are reckoned from a sample of the stale answers and from the rates of the last run of this output, or from the
`assumed_` rates of `[cluster]` where there was none. They are estimates, and say from what they come.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import Config, as_toml_like, fingerprint
from claimscore.jobs.errors import InputError
from claimscore.jobs.nightly import DayPlan, plan_day
from claimscore.jobs.plan import TABLES, Weights
from claimscore.jobs.read import read_shard
from claimscore.jobs.segment import sentence_spans, split_sentences
from claimscore.jobs.store import Store
from claimscore.jobs.windows import list_array

SAMPLE_ROWS = 200
_TOKENS_PER_CHAR = 0.25  # English in SentencePiece and BPE vocabularies of 50k to 130k, roughly
_PROMPT_TOKENS = 60  # system turn and template


def plan_days(config: Config, days: Sequence[str]) -> dict[str, Any]:
    """The plan of every day: stale tables with reasons, answers, and costs.

    Raises:
        ClaimscoreError: a model is missing, or the only day has no log.
    """
    store = Store(config.store.out, config.store)
    weights = Weights.of(config)
    planned = []
    for day in days:
        try:
            planned.append(_plan_one(config, store, plan_day(config, store, weights, day)))
        except InputError as err:
            if len(days) == 1:
                raise
            planned.append({"date": day, "error": str(err)})
    effective = as_toml_like(config)
    return {"days": planned, "config": effective, "config_fingerprint": fingerprint(effective)}


def _plan_one(config: Config, store: Store, plan: DayPlan) -> dict[str, Any]:
    reasons = {table: Counter(why[table] for why in plan.stale.values() if table in why) for table in TABLES}
    stale_rows = {
        table: sum(
            task.shard.n_rows for task in plan.tasks if table in plan.stale.get(task.shard.shard_id, {})
        )
        for table in TABLES
    }
    return {
        "date": plan.date,
        "series": plan.series,
        "n_shards": len(plan.tasks),
        "n_rows": plan.n_rows,
        "n_stale_shards": len(plan.stale),
        "unreadable": [error for _, error in plan.unreadable],
        "stale": {table: dict(counted) for table, counted in reasons.items() if counted},
        "stale_rows": {table: n for table, n in stale_rows.items() if n},
        "estimate": _estimate(config, store, plan, stale_rows),
    }


def _estimate(config: Config, store: Store, plan: DayPlan, stale_rows: dict[str, int]) -> dict[str, Any]:
    """Tokens, pairs and seconds of the stale claims and scores."""
    if not stale_rows["scores"] and not stale_rows["claims"]:
        return {"n_llm_tokens": 0, "n_pairs": 0, "model_s": 0.0, "rates_from": "nothing to run"}
    per_row = _per_row(config, plan)
    rates, source = _rates(config, store)
    n_pairs = round(per_row["pairs"] * stale_rows["scores"])
    n_claims = per_row["claims"] * stale_rows["claims"]
    return {
        "n_llm_tokens": round(per_row["llm_tokens"] * stale_rows["claims"]),
        "n_pairs": n_pairs,
        "model_s": round(n_pairs / rates["pairs"] + n_claims / rates["claims"], 1),
        "rates_from": source,
    }


def _per_row(config: Config, plan: DayPlan) -> dict[str, float]:
    """Means an answer over up to 200 rows of the first stale shard."""
    task = next(task for task in plan.tasks if task.shard.shard_id in plan.stale)
    log, _ = read_shard(plan.fs, task.shard, config.read, task.repeats)
    log = log.slice(0, SAMPLE_ROWS)
    if not log.num_rows:
        return {"claims": 0.0, "pairs": 0.0, "llm_tokens": 0.0}
    answers = pa.array(log.column("answer").to_pylist(), pa.string())
    sentences = split_sentences(answers, config.segment)
    n_chars = pc.sum(pc.utf8_length(sentences.column("text"))).as_py() or 0
    spans = sentence_spans(list_array(log.column("chunks")).flatten().field("text"), config.segment)
    step = config.evidence.window_sentences - config.evidence.overlap_sentences
    n_windows = float(np.ceil(np.asarray(pc.list_value_length(spans), dtype=np.float64) / step).sum())
    n_rows = log.num_rows
    n_claims = 2 * sentences.num_rows / n_rows  # chat answers hold about two claims a sentence
    windows = min(n_windows / n_rows, 2 * config.evidence.max_windows)
    return {
        "claims": n_claims,
        "pairs": n_claims * windows,
        # Prompt: template, sentence and its context; reply: the sentence's words once more and some JSON.
        "llm_tokens": (_PROMPT_TOKENS * sentences.num_rows + 3.5 * n_chars * _TOKENS_PER_CHAR) / n_rows,
    }


def _rates(config: Config, store: Store) -> tuple[dict[str, float], str]:
    """Pairs and claims a second, as the last run that judged or decomposed did them; else as assumed."""
    rates = {"pairs": config.cluster.assumed_pairs_per_s, "claims": config.cluster.assumed_claims_per_s}
    last = _last_run(store)
    measured = []
    for unit, table, count in (("pairs", "scores", "n_pairs"), ("claims", "claims", "n_claims")):
        seconds = sum(day["seconds"].get(table, 0.0) for day in last["days"])
        n = sum(day["n_made_of"].get(count, 0) for day in last["days"])
        if n and seconds:
            # Shards run side by side: their seconds overlap.
            rates[unit] = (
                n / seconds * min(config.cluster.shards_in_flight, max(1, last["days"][0]["n_shards"]))
            )
            measured.append(unit)
    return rates, f"the last run ({' and '.join(measured)})" if measured else "[cluster] assumed rates"


def _last_run(store: Store) -> dict[str, Any]:
    """The record of the last run; one without days where there is none, or none that can be read."""
    try:
        last = json.loads(store.root.get("state/run.json") or b"{}")
        return {
            "days": [
                day for day in last["days"] if day["seconds"] is not None and day["n_made_of"] is not None
            ]
        }
    except (ValueError, TypeError, KeyError):
        return {"days": []}
