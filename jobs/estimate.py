"""What a run would make, why, and what it would cost: reads footers, manifests and a few rows, runs nothing.

Costs are reckoned from a sample of the stale answers and from the rates that runs of this output have measured, or from
the `assumed_` rates of `[cluster]` where there was none. They are estimates, and say from what they come.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.config import Config, fingerprint
from claimscore.jobs.config_file import as_toml_like
from claimscore.jobs.errors import InputError
from claimscore.jobs.nightly import DayPlan, plan_day, why_measured_anew
from claimscore.jobs.plan import TABLES, Weights
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import LOG
from claimscore.jobs.segment import sentence_spans, split_sentences
from claimscore.jobs.store import Store
from claimscore.jobs.windows import list_array

SAMPLE_ROWS = 200
_TOKENS_PER_CHAR = 0.25  # English in SentencePiece and BPE vocabularies of 50k to 130k, roughly
_PROMPT_TOKENS = 60  # system turn and template
_REFEREE_TOKENS = 600  # a prompt of three windows with its reply


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
    tables = plan.tasks[0].tables if plan.tasks else TABLES
    reasons = {table: Counter(why[table] for why in plan.stale.values() if table in why) for table in tables}
    stale_rows = {
        table: sum(
            task.shard.n_rows for task in plan.tasks if table in plan.stale.get(task.shard.shard_id, {})
        )
        for table in tables
    }
    why = why_measured_anew(config, store, plan)
    if why:
        reasons["metrics"], stale_rows["metrics"] = Counter([why]), plan.n_rows
    return {
        "date": plan.date,
        "series": plan.series,
        "n_shards": len(plan.tasks),
        "n_rows": plan.n_rows,
        "n_stale_shards": len(plan.stale),
        "unreadable": [error for _, error in plan.unreadable] + plan.faults,
        "absent_columns": plan.absent_columns,
        "warnings": plan.warnings,
        "stale": {table: dict(counted) for table, counted in reasons.items() if counted},
        "stale_rows": {table: n for table, n in stale_rows.items() if n},
        "estimate": _estimate(config, store, plan, stale_rows),
    }


def remember(store: Store, day: dict[str, Any], shards_in_flight: int) -> None:
    """Keep the rates that a day of a run has measured (state/rates.json); one that made nothing changes nothing."""
    made, seconds = day["n_made_of"], day["seconds"]
    side_by_side = min(shards_in_flight, max(1, day["n_made"]))  # the seconds of shards overlap
    n_variants = made.get("n_variant_pairs", 0)
    measured = {}
    for unit, table, n_more in (("pairs", "scores", n_variants), ("claims", "claims", 0)):
        if made.get(f"n_{unit}") and seconds.get(table):
            measured[f"{unit}_per_s"] = (made[f"n_{unit}"] + n_more) / seconds[table] * side_by_side
    if day["loading_s"]:
        measured["loading_s"] = day["loading_s"]
    if made.get("n_claims") and made.get("answers"):
        measured["claims_per_answer"] = made["n_claims"] / made["answers"]
    if made.get("n_claims") and made.get("n_pairs"):
        measured["pairs_per_claim"] = made["n_pairs"] / made["n_claims"]
        measured["variants_per_pair"] = n_variants / made["n_pairs"]
    if measured:
        store.root.put(
            "state/rates.json", (json.dumps(_remembered(store) | measured, indent=2) + "\n").encode()
        )


def _remembered(store: Store) -> dict[str, float]:
    """The rates of earlier runs; none where there was no run, or the file is not one of ours."""
    try:
        rates = json.loads(store.root.get("state/rates.json") or b"{}")
        return {name: float(rate) for name, rate in rates.items() if float(rate) > 0}
    except (ValueError, TypeError, AttributeError):
        return {}


def _estimate(config: Config, store: Store, plan: DayPlan, stale_rows: dict[str, int]) -> dict[str, Any]:
    """Tokens, pairs and seconds of the stale claims and scores, and of loading the models as far as a run has measured it."""
    n_referee_rows = stale_rows.get("referee", 0)
    if not (stale_rows["scores"] or stale_rows["claims"] or n_referee_rows):
        nothing = {"n_llm_tokens": 0, "n_pairs": 0, "n_variant_pairs": 0, "model_s": 0.0, "loading_s": 0.0}
        return nothing | {"rates_from": "nothing to run"}
    rates, per_row = _remembered(store), _per_row(config, plan)
    claims_per_row = rates.get("claims_per_answer", per_row["claims"])
    n_pairs = round(claims_per_row * rates.get("pairs_per_claim", per_row["windows"]) * stale_rows["scores"])
    n_variants = round(n_pairs * rates.get("variants_per_pair", 0.0))
    n_claims = claims_per_row * stale_rows["claims"]
    # At most: what the shards' tables hold already is not asked again.
    n_asked = claims_per_row * n_referee_rows * config.referee.max_share * (1 + config.referee.both_orders)
    pairs_per_s = rates.get("pairs_per_s", config.cluster.assumed_pairs_per_s)
    claims_per_s = rates.get("claims_per_s", config.cluster.assumed_claims_per_s)
    return {
        "n_llm_tokens": round(per_row["llm_tokens"] * stale_rows["claims"] + _REFEREE_TOKENS * n_asked),
        "n_pairs": n_pairs,
        "n_variant_pairs": n_variants,
        "loading_s": rates.get("loading_s"),
        "model_s": round((n_pairs + n_variants) / pairs_per_s + (n_claims + n_asked) / claims_per_s, 1),
        "rates_from": "measured in earlier runs" if rates else "assumed ([cluster] assumed_...)",
    }


def _per_row(config: Config, plan: DayPlan) -> dict[str, float]:
    """Means an answer over up to 200 rows of the first stale shard that can be read."""
    log = _first_rows(config, plan)
    if not log.num_rows:
        return {"claims": 0.0, "windows": 0.0, "llm_tokens": 0.0}
    answers = pa.array(log.column("answer").to_pylist(), pa.string())
    sentences = split_sentences(answers, config.segment)
    n_chars = pc.sum(pc.utf8_length(sentences.column("text"))).as_py() or 0
    spans = sentence_spans(list_array(log.column("chunks")).flatten().field("text"), config.segment)
    step = config.evidence.window_sentences - config.evidence.overlap_sentences
    n_windows = float(np.ceil(np.asarray(pc.list_value_length(spans), dtype=np.float64) / step).sum())
    n_rows = log.num_rows
    return {
        "claims": 2 * sentences.num_rows / n_rows,  # chat answers hold about two claims a sentence
        "windows": min(n_windows / n_rows, 2 * config.evidence.max_windows),
        # Prompt: template, sentence and its context; reply: the sentence's words once more and some JSON.
        "llm_tokens": (_PROMPT_TOKENS * sentences.num_rows + 3.5 * n_chars * _TOKENS_PER_CHAR) / n_rows,
    }


def _first_rows(config: Config, plan: DayPlan) -> pa.Table:
    """Some rows of a stale shard; none where no stale shard can be read: the run will say why."""
    for task in plan.tasks:
        if task.shard.shard_id in plan.stale:
            with contextlib.suppress(InputError):
                return read_shard(plan.fs, task.shard, config.read, task.repeats)[0].slice(0, SAMPLE_ROWS)
    return LOG.empty_table()
