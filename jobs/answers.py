"""Verdicts -> one row an answer: its state, its rates, and what the policy would have done with it.

Hard rules come before averages: one fabricated citation refuses however high the groundedness is. Unknown is never
fine: an answer none of whose claims could be scored is refused and escalated. Beside the action stands the next step
of the fallback ladder; ungrounded generation is not on it. A claim that the answer repeats counts once, with the worst of
its verdicts (counting.py). The module knows no scores, only verdicts.
"""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pyarrow as pa

from claimscore.jobs import counting
from claimscore.jobs.config import PolicyConfig
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import (
    ANSWERS,
    Action,
    AnswerState,
    CitationState,
    FailureMode,
    HallucinationType,
    NextStep,
    Verdict,
    conform,
)

UNVERIFIED = "[unverified: {}]"


def summarise(
    log: pa.Table, verdicts: pa.Table, signals: pa.Table, grades: pa.Table, config: PolicyConfig
) -> pa.Table:
    """Add up the verdicts of every answer.

    Args:
        log: records.LOG, one row an answer.
        verdicts: records.VERDICTS of all their claims, and of no other answer.
        signals: beside `log`: refused (bool: a refusal by marker or status), is_refusal_status (bool),
            uncarried_marks (list<string>: fabricated marks that stand on no claim), n_hedges,
            n_low_probability_tokens, injection_suspected, high_risk_reasons, n_samples.
        grades: request_id, referee_grade, referee_grade_outcome of the answers that a referee was asked to grade; no rule
            of the policy reads them.
        config: the policy.

    Returns:
        records.ANSWERS in the order of `log`. groundedness and citation_precision are null where their
        denominators (scored claims; scored claims that carry a citation) are 0. No answers: an empty table.
    """
    frame = as_frame(log).hstack(as_frame(signals))
    frame = frame.join(_counts(as_frame(verdicts)), on="request_id", how="left", maintain_order="left")
    frame = frame.join(as_frame(grades), on="request_id", how="left", maintain_order="left")
    frame = frame.with_columns(pl.col("^n_.*claims$|^n_scored$|^n_citation_ok$").fill_null(0))
    counts = [name for name in frame.columns if name.startswith("n_") and name != "n_low_probability_tokens"]
    frame = frame.with_columns(pl.col(counts).fill_null(0).cast(pl.Int32))
    uncarried = pl.col("uncarried_marks").list.len().cast(pl.Int32)
    frame = frame.with_columns(n_fabricated_citations=pl.col("n_fabricated_citations") + uncarried)
    frame = _with_state(frame)
    frame = _with_rates(frame)
    frame = _with_action(frame, config)
    frame = _with_next_step(frame, config)
    frame = frame.with_columns(
        _text_column("revised_answer", _revised(frame, verdicts, config)),
        pl.Series("reference_overlap", _reference_overlaps(frame), dtype=pl.Float64),
    )
    return conform(frame.select(ANSWERS.names).to_arrow(), ANSWERS, where="answers")


def _text_column(name: str, values: list[str | None]) -> pl.Series:
    return pl.Series(name, values, dtype=pl.String)


def _counts(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Per answer: claims by verdict, citations by state, and which kinds of failure it holds; a class of repeats once.

    A scored class cites where a scored member of it does, and is cited rightly where all of those are; a class has a conflict
    or low consistency where a member has.
    """
    worst = pl.col("severity").min()
    cites = (pl.col("cited_ids").list.len() > 0) | (pl.col("fabricated_marks").list.len() > 0)
    scored_cites = cites & (pl.col("verdict") != Verdict.UNSCORED)
    is_ok = pl.col("citation_state") == CitationState.OK
    kind = pl.col("hallucination_type")
    of_claims = verdicts.with_columns(counting.first_claim, severity=counting.severity)
    classes = of_claims.group_by(counting.CLASS, maintain_order=True).agg(
        verdict=worst.replace_strict(dict(enumerate(counting.WORST_FIRST)), return_dtype=pl.String),
        cites=scored_cites.any(),
        cites_ok=(is_ok.fill_null(value=False) | ~scored_cites).all(),
        conflict=pl.col("conflict").any(),
        low_consistency=pl.col("low_consistency").any(),
    )
    is_scored = pl.col("verdict") != Verdict.UNSCORED
    cites = is_scored & pl.col("cites")
    counts = classes.group_by("request_id", maintain_order=True).agg(
        n_claims=pl.len(),
        n_scored=is_scored.sum(),
        n_supported=(pl.col("verdict") == Verdict.SUPPORTED).sum(),
        n_contradicted=(pl.col("verdict") == Verdict.CONTRADICTED).sum(),
        n_unsupported=(pl.col("verdict") == Verdict.UNSUPPORTED).sum(),
        n_unscored=(~is_scored).sum(),
        n_cited_claims=cites.sum(),
        n_citation_ok=(cites & pl.col("cites_ok")).sum(),
        n_conflicts=pl.col("conflict").sum(),
        n_low_consistency=pl.col("low_consistency").sum(),
    )
    kinds = verdicts.group_by("request_id").agg(
        n_repeats=pl.col("duplicate_of").count(),
        n_fabricated_citations=pl.col("fabricated_marks").explode().drop_nulls().n_unique(),
        has_grounding_failure=kind.is_in(
            [
                HallucinationType.INTRINSIC,
                HallucinationType.FABRICATED_CITATION,
                HallucinationType.MISCITATION,
            ]
        ).any(),
        has_conflation=(kind == HallucinationType.CONFLATION).any(),
        has_novelty=kind.is_in([HallucinationType.EXTRINSIC, HallucinationType.CONFABULATION]).any(),
    )
    return counts.join(kinds, on="request_id", how="left", maintain_order="left")


def _with_state(frame: pl.DataFrame) -> pl.DataFrame:
    is_blank = pl.col("answer").fill_null("").str.strip_chars().str.len_chars() == 0
    state = (
        pl.when((pl.col("is_refusal_status") | pl.col("refused")) & (pl.col("n_claims") == 0))
        .then(pl.lit(AnswerState.REFUSAL.value))
        .when(is_blank)
        .then(pl.lit(AnswerState.EMPTY_ANSWER.value))
        .when(
            pl.col("chunks")
            .list.eval(pl.element().struct.field("text").str.contains(r"\S"))
            .list.any()
            .fill_null(value=False)
            .not_()
        )
        .then(pl.lit(AnswerState.NO_CONTEXT.value))
        .when(pl.col("n_claims") == 0)
        .then(pl.lit(AnswerState.NO_CLAIMS.value))
        .otherwise(pl.lit(AnswerState.SCORED.value))
    )
    return frame.with_columns(state=state)


def _with_rates(frame: pl.DataFrame) -> pl.DataFrame:
    failed = (pl.col("n_contradicted") + pl.col("n_unsupported") > 0) | (pl.col("n_fabricated_citations") > 0)
    is_known = (pl.col("n_scored") > 0) | (pl.col("n_fabricated_citations") > 0)
    scores = pl.col("chunks").list.eval(pl.element().struct.field("score").drop_nulls().sort(descending=True))
    gold = pl.col("gold_chunk_ids").list.unique()
    found = gold.list.set_intersection(pl.col("chunks").list.eval(pl.element().struct.field("id")))
    return frame.with_columns(
        groundedness=pl.when(pl.col("n_scored") > 0).then(pl.col("n_supported") / pl.col("n_scored")),
        citation_precision=pl.when(pl.col("n_cited_claims") > 0).then(
            pl.col("n_citation_ok") / pl.col("n_cited_claims")
        ),
        hallucinated=pl.when(is_known).then(failed),
        retrieval_margin=scores.list.get(0, null_on_oob=True) - scores.list.get(1, null_on_oob=True),
        recall_at_k=pl.when(gold.list.len() > 0).then(found.list.len() / gold.list.len()),
    )


def _with_action(frame: pl.DataFrame, config: PolicyConfig) -> pl.DataFrame:
    """The first rule that holds, top to bottom: (when, action, reason)."""
    state, groundedness = pl.col("state"), pl.col("groundedness")
    bars = pl.col("topic").replace_strict(dict(config.topic_bars), default=None, return_dtype=pl.Float64)
    rules: list[tuple[pl.Expr, Action, str]] = [
        (
            pl.lit(config.fabricated_refuses) & (pl.col("n_fabricated_citations") > 0),
            Action.REFUSE,
            "fabricated_citation",
        ),
        (state == AnswerState.REFUSAL, Action.DELIVER, "refusal"),
        (state == AnswerState.EMPTY_ANSWER, Action.REFUSE, "empty_answer"),
        (state == AnswerState.NO_CONTEXT, Action.REFUSE, "no_context"),
        (state == AnswerState.NO_CLAIMS, Action.REVISE, "no_claims"),
        (groundedness.is_null(), Action.REFUSE, "nothing_scored"),
        (
            pl.lit(config.contradicted_refuses) & (pl.col("n_contradicted") > 0),
            Action.REFUSE,
            "contradicted_claim",
        ),
        ((groundedness < bars).fill_null(value=False), Action.REFUSE, "below_topic_bar"),
        (groundedness < config.refuse_below, Action.REFUSE, "low_groundedness"),
        (groundedness < config.deliver_at, Action.REVISE, "partly_grounded"),
        (pl.col("n_unscored") > 0, Action.REVISE, "unscored_claims"),
        (pl.lit(value=True), Action.DELIVER, "grounded"),
    ]
    first = pl.coalesce(pl.when(when).then(pl.lit(k)) for k, (when, _, _) in enumerate(rules))
    actions = {k: action.value for k, (_, action, _) in enumerate(rules)}
    reasons = {k: reason for k, (_, _, reason) in enumerate(rules)}
    return frame.with_columns(
        action=first.replace_strict(actions, return_dtype=pl.String),
        action_reason=first.replace_strict(reasons, return_dtype=pl.String),
    )


def _with_next_step(frame: pl.DataFrame, config: PolicyConfig) -> pl.DataFrame:
    is_true = {
        name: pl.col(name).fill_null(value=False)
        for name in ("has_grounding_failure", "has_conflation", "has_novelty")
    }
    thin = (pl.col("retrieval_margin") < config.thin_margin).fill_null(value=False)
    failure_mode = (
        pl.when(is_true["has_conflation"])
        .then(pl.lit(FailureMode.CONFLATION.value))
        .when(is_true["has_grounding_failure"])
        .then(pl.lit(FailureMode.GROUNDING_FAILURE.value))
        .when(is_true["has_novelty"])
        .then(pl.lit(FailureMode.RETRIEVAL_MISS.value))
    )
    frame = frame.with_columns(failure_mode=failure_mode)
    misses = pl.col("failure_mode") == FailureMode.RETRIEVAL_MISS
    step = (
        pl.when(pl.col("action") == Action.DELIVER)
        .then(pl.lit(NextStep.NONE.value))
        .when((pl.col("action") == Action.REVISE) & (pl.col("n_supported") > 0))
        .then(pl.lit(NextStep.NARROW.value))
        .when((pl.col("state") == AnswerState.NO_CONTEXT) | (misses & (thin | (pl.col("n_supported") == 0))))
        .then(pl.lit(NextStep.RE_RETRIEVE.value))
        .when(pl.col("failure_mode").is_not_null())
        .then(pl.lit(NextStep.RE_ANSWER.value))
        .otherwise(pl.lit(NextStep.ESCALATE.value))
    )
    return frame.with_columns(next_step=step)


def _revised(frame: pl.DataFrame, verdicts: pa.Table, config: PolicyConfig) -> list[str | None]:
    """For `revise` the answer with every sentence that is not wholly supported marked, for `refuse` the fallback; else null."""
    bad: dict[str, set[tuple[int, int]]] = {}
    columns = (verdicts.column(name).to_pylist() for name in ("request_id", "start", "end", "verdict"))
    for request_id, start, end, verdict in zip(*columns, strict=True):
        if verdict != Verdict.SUPPORTED:
            bad.setdefault(request_id, set()).add((start, end))
    fallback = " ".join(filter(None, (config.fallback_text, config.fallback_link))) or None
    out: list[str | None] = []
    for request_id, answer, action in frame.select("request_id", "answer", "action").iter_rows():
        if action == Action.REVISE:
            out.append(_mark(answer, sorted(bad.get(request_id, ()))))
        else:
            out.append(fallback if action == Action.REFUSE else None)
    return out


def _mark(answer: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [answer[at:start], UNVERIFIED.replace("{}", answer[start:end])]
        at = end
    return "".join([*pieces, answer[at:]])


def _reference_overlaps(frame: pl.DataFrame) -> list[float | None]:
    """Token F1 of answer and reference answer (Rajpurkar et al. 2016); null without a reference."""
    return [
        _token_f1(a, b) if a and b else None
        for a, b in frame.select("answer", "reference_answer").iter_rows()
    ]


def _token_f1(answer: str, reference: str) -> float:
    ours, theirs = (_bag(text) for text in (answer, reference))
    shared = sum(min(n, theirs.get(word, 0)) for word, n in ours.items())
    total = sum(ours.values()) + sum(theirs.values())
    return 2 * shared / total if total else 0.0


def _bag(text: str) -> dict[str, Any]:
    bag: dict[str, int] = {}
    for word in re.findall(r"\w+", text.casefold()):
        bag[word] = bag.get(word, 0) + 1
    return bag
