"""Answers and verdicts -> publications: one row a metric of an answer, the same for every tool that it is sent to.

Nothing is computed anew: values are those of the answers table. What was not scored is a row with a reason and no value,
never a 0. Claims stand in the explanation and the metadata, failed ones first, repeats once, at most MAX_CLAIMS. A publication's key
depends on tool, project, request and metric, so that a backfill overwrites; with the series in the key each judge keeps
its own. The module knows no tool's shape, no network and no file.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from claimscore.jobs.counting import once
from claimscore.jobs.errors import one_line
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import AnswerState, Verdict

METRICS = (
    "claimscore.groundedness",
    "claimscore.citation_precision",
    "claimscore.hallucinated",
    "claimscore.action",
    "claimscore.state",
)
"""What is published of an answer. Higher is better but for `hallucinated`, where 1 is bad; the last two are words."""

_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "request_id": pl.String,
    "ts": pl.Datetime("us", "UTC"),
    "system": pl.String,
    "project": pl.String,
    "trace_id": pl.String,
    "span_id": pl.String,
    "session_id": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "label": pl.String,
    "unscored": pl.String,
    "explanation": pl.String,
    "metadata": pl.String,
    "by_llm": pl.Boolean,
    "key": pl.String,
}
PUBLICATIONS = pl.Schema(_COLUMNS)
"""`value` or `label`, or neither and why in `unscored`. `metadata` is a JSON object. `ts` is the answer's, or the day's
midnight: never now, for some tools tell repeats by day. `by_llm`: an LLM judge decided one of the claims."""

MAX_CLAIMS = 10
MAX_CHARS = 300
"""Claims and characters of a claim that go along with an answer."""

LEFT_OUT = ("no_trace_id", "other_system", "foreign_id", "same_target")
"""Why an answer cannot be written back to a tool; see `addressable`."""

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "claimscore/published")
_ORIGIN = ("system", "project", "trace_id", "span_id", "session_id")
_SEVERITY = {Verdict.CONTRADICTED: 0, Verdict.UNSUPPORTED: 1, Verdict.UNSCORED: 3, Verdict.SUPPORTED: 4}
_COUNTS = ("n_claims", "n_scored", "n_supported", "n_contradicted", "n_unsupported", "n_unscored")
_OF_CLAIM = (
    "claim",
    "verdict",
    "reason",
    "decided_by",
    "hallucination_type",
    "citation_state",
    "evidence_chunk_id",
)
_OF_ANSWER = ("prompt_version", "model", "topic", "action", "action_reason", "next_step", "failure_mode")


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to publish to, of what day and series."""

    tool: str
    date: str
    """YYYY-MM-DD."""
    series: str
    systems: frozenset[str]
    """Values of `origin.system` whose ids the tool knows."""
    trace_ids: str = r".+"
    """What the tool's trace ids look like, a regular expression."""
    keep_series: bool = False
    """The series is part of the key: judges stand side by side, and none overwrites another."""


def key_of(*parts: str) -> str:
    """The publication's id, a UUID: equal parts, equal id, in any process and for ever."""
    return str(uuid.uuid5(NAMESPACE, json.dumps(parts)))


def addressable(answers: pa.Table, target: Target) -> tuple[pa.Table, dict[str, int]]:
    """The answers that the tool can be told about, and how many it cannot, by why.

    Left out are `no_trace_id` (nothing to attach to), `other_system` (the ids are another tool's), `foreign_id` (no id of
    the tool's form) and `same_target` (an earlier answer of the day has the same trace and span: one would overwrite the
    other).
    """
    frame = as_frame(answers.select(["request_id", "origin"])).with_columns(
        pl.col("origin").struct.field(name).alias(name) for name in _ORIGIN
    )
    place = ["trace_id", "span_id"]
    frame = frame.select(
        "system",
        *place,
        why=pl.when(pl.col("trace_id").fill_null("").str.strip_chars() == "")
        .then(pl.lit("no_trace_id"))
        .when(~pl.col("system").is_in(sorted(target.systems)))  # null: not said, and taken at its word
        .then(pl.lit("other_system"))
        .when(~pl.col("trace_id").str.contains(f"^(?:{target.trace_ids})$"))
        .then(pl.lit("foreign_id")),
    )
    repeated = pl.col("why").is_null() & (pl.col("why").is_null().cum_sum().over(place) > 1)
    why = frame.select(pl.when(repeated).then(pl.lit("same_target")).otherwise(pl.col("why"))).to_series()
    counts = {name: int((why == name).sum()) for name in LEFT_OUT}
    return answers.filter(why.is_null().to_arrow()), counts


def publish(answers: pa.Table, verdicts: pa.Table, target: Target) -> pl.DataFrame:
    """PUBLICATIONS of the answers, in their order, METRICS within; no answers give none.

    Args:
        answers: ANSWERS of a day.
        verdicts: VERDICTS of the same; those of other answers are left aside.
        target: see `Target`.
    """
    frame = as_frame(answers).with_row_index("at")
    frame = frame.with_columns(
        *(pl.col("origin").struct.field(name).alias(name) for name in _ORIGIN),
        ts=pl.col("ts").fill_null(dt.datetime.fromisoformat(target.date).replace(tzinfo=dt.UTC)),
    )
    frame = frame.join(_claims(as_frame(verdicts)), on="request_id", how="left", maintain_order="left")
    frame = frame.with_columns(
        _state_word().alias("state_word"),
        by_llm=pl.col("by_llm").fill_null(value=False),
        series=pl.lit(target.series),
        date=pl.lit(target.date),
    )
    rows = [_metric(frame, metric, k) for k, metric in enumerate(METRICS)]
    table = pl.concat(rows).sort("at", "k")
    series = [target.series] if target.keep_series else []
    keys = [
        key_of(target.tool, project or "", request_id, metric, *series)
        for project, request_id, metric in table.select("project", "request_id", "metric").iter_rows()
    ]
    return table.with_columns(key=pl.Series(keys, dtype=pl.String)).select(PUBLICATIONS.names())


def _state_word() -> pl.Expr:
    """The answer's state; `unscored` where there are claims and none of them could be judged."""
    blind = (pl.col("state") == AnswerState.SCORED) & (pl.col("n_scored") == 0)
    return pl.when(blind).then(pl.lit("unscored")).otherwise(pl.col("state"))


def _claims(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Per answer: its gravest claims in words and as JSON, why claims are unscored, whether an LLM judged."""
    failed_otherwise = (pl.col("verdict") == Verdict.SUPPORTED) & pl.col("hallucination_type").is_not_null()
    rank = pl.when(failed_otherwise).then(2).otherwise(pl.col("verdict").replace_strict(_SEVERITY, default=3))
    ordered = (
        once(verdicts, rank)
        .with_columns(rank.alias("rank"), claim=pl.col("claim").map_elements(_cut, return_dtype=pl.String))
        .sort("request_id", "rank", "claim_index")
    )
    grounds = pl.concat_str(
        pl.coalesce("reason", "decided_by"),
        pl.col("hallucination_type"),
        pl.lit("citation ") + pl.col("citation_state"),
        separator=", ",
        ignore_nulls=True,
    )
    line = pl.concat_str(pl.col("verdict"), pl.lit(": "), pl.col("claim"), pl.lit(" ("), grounds, pl.lit(")"))
    unscored = once(verdicts).filter(pl.col("verdict") == Verdict.UNSCORED).group_by("request_id")
    why = unscored.agg(pl.col("reason").drop_nulls().mode().sort().first().alias("why"))
    by_llm = verdicts.group_by("request_id").agg(by_llm=pl.col("decided_by").str.starts_with("referee").any())
    worded = ordered.group_by("request_id").agg(
        line.filter(pl.col("rank") < _SEVERITY[Verdict.SUPPORTED])
        .head(MAX_CLAIMS)
        .str.join("\n")
        .alias("lines"),
        pl.struct(*_OF_CLAIM, "p_entailment").head(MAX_CLAIMS).alias("claims"),
    )
    return worded.join(why, on="request_id", how="left").join(by_llm, on="request_id", how="left")


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}… [cut: {len(text):,} characters]"


def _metric(frame: pl.DataFrame, metric: str, k: int) -> pl.DataFrame:
    """PUBLICATIONS rows of one metric, but for the key; `at` and `k` are their places."""
    name = metric.removeprefix("claimscore.")
    value, label = pl.lit(None, pl.Float64), pl.lit(None, pl.String)
    if name in ("action", "state"):
        label = pl.col("state_word" if name == "state" else name)
    else:
        value = pl.col(name).cast(pl.Float64)
    metadata = pl.struct(
        *("series", "date"),
        pl.col("state_word").alias("state"),
        *(
            pl.col(column).map_elements(_cut, return_dtype=pl.String)
            for column in ("request_id", *_OF_ANSWER)
        ),
        *_COUNTS,
        *(["claims"] if name == "groundedness" else []),
    )
    return frame.select(
        *("at", "request_id", "ts", *_ORIGIN, "by_llm"),
        k=pl.lit(k),
        metric=pl.lit(metric),
        value=value,
        label=label,
        unscored=pl.when(value.is_null() & label.is_null()).then(_why(name)),
        explanation=_words(name),
        metadata=metadata.struct.json_encode(),
    )


def _words(name: str) -> pl.Expr:
    """What is said of one metric beside its value."""
    failed = pl.col("n_scored") - pl.col("n_supported")
    counted = pl.format("{} of {} scored claims not supported, {} unscored", failed, "n_scored", "n_unscored")
    nothing = pl.format("{}: no claim to judge", "state")
    judged = pl.when(pl.col("n_claims") == 0).then(nothing).otherwise(counted)
    listed = judged + (pl.lit("\n") + pl.col("lines").replace("", None)).fill_null("")
    return {
        "groundedness": listed,
        "citation_precision": pl.format(
            "{} of {} claims with a citation are cited rightly, {} invented citations",
            "n_citation_ok",
            "n_cited_claims",
            "n_fabricated_citations",
        ),
        "hallucinated": judged,
        "action": pl.format("{}; next step {}", "action_reason", "next_step"),
        "state": pl.when(pl.col("state_word") == "unscored").then(listed).otherwise(judged),
    }[name]


def _why(name: str) -> pl.Expr:
    """Why a metric has no value: the answer's state, no citation to check, or why most claims are unscored."""
    why = pl.coalesce("why", pl.lit("nothing_scored"))
    if name == "citation_precision":
        why = pl.when(pl.col("n_cited_claims") == 0).then(pl.lit("no_citations")).otherwise(why)
    return pl.when(pl.col("state") != AnswerState.SCORED).then(pl.col("state")).otherwise(why)
