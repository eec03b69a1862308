"""What a run would make, why, and what it would cost: reads footers, manifests and a few rows, runs nothing.

Costs are reckoned from a sample of the stale answers and from the rates that runs of this output have measured; where there
was none from the `assumed_` rates of `[cluster]`, or from those of the device that the models will run on. They are
estimates, and say from what they come.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import recipes, report_words
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
_PAIRS_A_CLAIM = 4.0  # windows and covers on logged answers of 2 to 8 chunks, measured
_REFEREE_TOKENS = 600  # a prompt of three windows with its reply
_GPU_RATES = {"pairs_per_s": 1_000.0, "claims_per_s": 50.0}
"""A guess: nothing was measured on a GPU."""
_CPU_RATES = {"pairs_per_s": 30.0, "claims_per_s": 3.0}
"""The demo's models on 2 cores: the judge (22M parameters plus its vocabulary) 31.2 pairs/s in float32
(benchmarks/results/2026-11-30_cpu2_nli-demo-judge-rag-cross-encoder.json); the decomposer (135M) 2.3 to 4.8 claims/s
(2026-11-30_cpu2_rag-logs-200.json, the second day of 2026-11-30_cpu2_demo.json)."""
_CPU_PAIRS_PER_S_BFLOAT16 = 75.0
"""76.5 where the CPU multiplies bfloat16 (benchmarks/results/notes-cpu-judge.md, the second machine)."""


def plan_days(config: Config, days: Sequence[str], *, backfill: bool = False) -> dict[str, Any]:
    """The plan of every day: stale tables with reasons, answers, and costs; of a backfill, where that is asked for.

    Raises:
        ClaimscoreError: a model is missing, or the only day has no log.
    """
    store = Store(config.store.out, config.store)
    weights = Weights.of(config)
    planned = []
    told: set[str] = set(days)
    for day in days:
        try:
            plan = plan_day(config, store, weights, day)
            planned.append(_plan_one(config, store, plan))
            planned[-1]["warnings"] += told_first(config, store, plan, told, backfill=backfill)
        except InputError as err:
            if len(days) == 1:
                raise
            planned.append({"date": day, "error": str(err)})
    effective = as_toml_like(config)
    return {"days": planned, "config": effective, "config_fingerprint": fingerprint(effective)}


def told_first(config: Config, store: Store, plan: DayPlan, told: set[str], *, backfill: bool) -> list[str]:
    """What should be known before a day is made: that a backfill replaces stored verdicts of its series, made otherwise, and
    which stored days of the week before what is made will not be comparable with. Most days have nothing.

    Args:
        config: the deployment.
        store: where the tables lie.
        plan: of the day.
        told: days that need no word; those that are not comparable are added.
        backfill: another series than the one that dashboards read is what was asked for.
    """
    if not why_measured_anew(config, store, plan):
        return []
    task, current, out = plan.tasks[0], store.current(), list[str]()
    if backfill and (names := recipes.unlike_itself(config, store, task)):
        out.append(report_words.replaced_words(plan.series, plan.date, names))
    otherwise = recipes.unlike_the_week(config, store, task, but=told, current=None if backfill else current)
    told.update(otherwise)
    if otherwise:
        is_current = not backfill or plan.series == current
        out.append(report_words.unlike_words(plan.date, otherwise, is_current=is_current))
    return out


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
    n_pairs = round(claims_per_row * rates.get("pairs_per_claim", per_row["pairs"]) * stale_rows["scores"])
    n_variants = round(n_pairs * rates.get("variants_per_pair", 0.0))
    n_claims = claims_per_row * stale_rows["claims"]
    # At most: were all claims in doubt, or none; and what the shards' tables hold already is not asked again.
    n_escalated = (
        claims_per_row * n_referee_rows * max(config.referee.max_share, config.referee.sampled_share)
    )
    n_asked = n_escalated * (1 + config.referee.both_orders)
    n_asked += min(n_referee_rows, n_escalated) * config.referee.grade_answers
    (pairs_per_s, pairs_from), (claims_per_s, claims_from) = (
        _rate(config, rates, unit) for unit in ("pairs", "claims")
    )
    said = [(f"{_shown(pairs_per_s)} pairs/s", pairs_from)] * bool(n_pairs)
    said += [(f"{_shown(claims_per_s)} claims/s", claims_from)] * bool(n_claims + n_asked)
    sources = dict.fromkeys(source for _, source in said)
    rates_from = [
        f"{' and '.join(rate for rate, of in said if of == source)} ({source})" for source in sources
    ]
    return {
        "n_llm_tokens": round(per_row["llm_tokens"] * stale_rows["claims"] + _REFEREE_TOKENS * n_asked),
        "n_pairs": n_pairs,
        "n_variant_pairs": n_variants,
        "loading_s": rates.get("loading_s"),
        "model_s": round((n_pairs + n_variants) / pairs_per_s + (n_claims + n_asked) / claims_per_s, 1),
        "rates_from": ", ".join(rates_from) or "nothing to judge",
    }


def _rate(config: Config, measured: dict[str, float], unit: str) -> tuple[float, str]:
    """Pairs or claims a second, and where that is from: measured by earlier runs, set, or assumed for the device."""
    name, cluster = f"{unit}_per_s", config.cluster
    is_judge = unit == "pairs"
    asked = cluster.assumed_pairs_per_s if is_judge else cluster.assumed_claims_per_s
    if name in measured:
        return measured[name], "measured by earlier runs"
    if asked:
        return asked, f"[cluster] assumed_{name}"
    if _on_gpu(config, cluster.judge_gpus if is_judge else cluster.llm_gpus, is_judge=is_judge):
        return _GPU_RATES[name], "a guess for a GPU"
    is_half = is_judge and config.judge.dtype == "bfloat16"
    rate = _CPU_PAIRS_PER_S_BFLOAT16 if is_half else _CPU_RATES[name]
    return rate, "as the demo's models on a CPU of 2 cores; larger ones are slower"


def _shown(rate: float) -> str:
    return f"{rate:,.{1 if rate < 10 else 0}f}"


def _on_gpu(config: Config, n_gpus: float, *, is_judge: bool) -> bool:
    """Whether a model will run on a GPU, as far as one can tell without loading torch: nothing hides those of this machine."""
    device = config.judge.device if is_judge else "auto"
    if device != "auto" or n_gpus:
        return device != "cpu"
    return not config.cluster.address and _sees_gpu()


def _sees_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU and a torch that is built for one."""
    try:
        is_built = not importlib.metadata.version("torch").endswith("+cpu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return is_built and any(Path("/dev").glob("nvidia[0-9]*"))


def _per_row(config: Config, plan: DayPlan) -> dict[str, float]:
    """Means an answer over up to 200 rows of the first stale shard that can be read."""
    log = _first_rows(config, plan)
    if not log.num_rows:
        return {"claims": 0.0, "pairs": 0.0, "llm_tokens": 0.0}
    answers = pa.array(log.column("answer").to_pylist(), pa.string())
    sentences = split_sentences(answers, config.segment)
    n_chars = pc.sum(pc.utf8_length(sentences.column("text"))).as_py() or 0
    spans = sentence_spans(list_array(log.column("chunks")).flatten().field("text"), config.segment)
    step = config.evidence.window_sentences - config.evidence.overlap_sentences
    n_windows = float(np.ceil(np.asarray(pc.list_value_length(spans), dtype=np.float64) / step).sum())
    n_rows = log.num_rows
    return {
        "claims": 2 * sentences.num_rows / n_rows,  # chat answers hold about two claims a sentence
        "pairs": min(1 + n_windows / n_rows, _PAIRS_A_CLAIM),
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
