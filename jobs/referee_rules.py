"""What the referee's replies change about verdicts, and what they say of answers: pure rules over columns, after the judge's.

The referee is heard only where the judge alone decided: no veto, conflict policy or unscored claim is overruled, and a claim
that a premise contradicts is not lifted to supported. Replies that cannot be used, that differ between the orders of the
windows, or that were asked for as a sample leave the judge's verdict. Knows no prompt and no reply's form.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import ANSWERS, REFEREE, RefereeWord, Rule, Verdict

KEY = ["request_id", "claim_index"]
_PLACE = {"chunk_index": "place_chunk", "start": "place_start", "end": "place_end"}
"""Fields of a window -> columns; a claim has a start and an end of its own."""
_SAMPLED = "sampled"
_JUDGE_ALONE = [str(rule) for rule in (Rule.NLI, Rule.NLI_CITED, Rule.NLI_JOINED)]


GRADES = pa.schema(
    [(name, ANSWERS.field(name).type) for name in ("request_id", "referee_grade", "referee_grade_outcome")]
)


def grades(replies: pa.Table | None) -> pa.Table:
    """GRADES: what the referee made of whole answers, one row an answer that it was asked to grade.

    Args:
        replies: records.REFEREE; None: there is no referee.
    """
    if replies is None:
        return GRADES.empty_table()
    of_answers = replies.filter(pc.is_null(replies.column("claim_index")))
    return of_answers.select(["request_id", "grade", "outcome"]).rename_columns(GRADES.names).cast(GRADES)


def decisions(replies: pa.Table) -> pl.DataFrame:
    """What was made of the replies of each claim.

    Args:
        replies: records.REFEREE.

    Returns:
        request_id, claim_index, referee_outcome (`ok`, `orders_disagree`, or the first fault of a turn), referee_said and
        referee_span of the first turn, its place (place_chunk, place_start, place_end), and `decides`: supported, unsupported or
        contradicted; null where the judge's verdict stands. No replies, no rows.
    """
    decision = (
        pl.when(pl.col("said") == RefereeWord.PARTIAL)
        .then(pl.lit(Verdict.UNSUPPORTED.value))
        .otherwise(pl.col("said"))
    )
    claims = (
        as_frame(replies)
        .filter(pl.col("claim_index").is_not_null())  # a grade of the whole answer decides nothing
        .sort([*KEY, "turn"])
        .with_columns(decision=decision)
        .group_by(KEY, maintain_order=True)
        .agg(
            pl.col("decision", "reasons", "window").first(),
            fault=pl.col("outcome").filter(pl.col("outcome") != "ok").first(),
            n_decisions=pl.col("decision").n_unique(),
            referee_said=pl.col("said").first(),
            referee_span=pl.col("span").first(),
        )
        .unnest("window")
    )
    agreed = pl.when(pl.col("n_decisions") > 1).then(pl.lit("orders_disagree")).otherwise(pl.lit("ok"))
    claims = claims.with_columns(referee_outcome=pl.coalesce("fault", agreed))
    counts = (pl.col("referee_outcome") == "ok") & ~pl.col("reasons").list.contains(_SAMPLED)
    return claims.with_columns(decides=pl.when(counts).then(pl.col("decision"))).select(
        *KEY,
        *("referee_outcome", "referee_said", "referee_span"),
        *(pl.col(field).alias(column) for field, column in _PLACE.items()),
        "decides",
    )


def with_referee(frame: pl.DataFrame, pairs: pl.DataFrame, replies: pa.Table | None) -> pl.DataFrame:
    """The claims of verdicts.decide with the referee's word beside them, and its decision where it is heard.

    Args:
        frame: a row a claim with the judge's verdict, decided_by and best pairs.
        pairs: pair_rules.outcomes.
        replies: records.REFEREE of these claims; None: there is no referee.
    """
    made = decisions(REFEREE.empty_table() if replies is None else replies)
    frame = frame.join(made, on=KEY, how="left", maintain_order="left")
    first = pl.col("premise").list.first()
    named = pairs.filter(pl.col("n_spans") == 1).select(
        *KEY,
        *(first.struct.field(field).alias(column) for field, column in _PLACE.items()),
        named_pair="pair",
        named_is_cited="is_cited",
        named_is_rivalled="rivalled",
    )
    on = [*KEY, *_PLACE.values()]
    named = named.unique(on, keep="first", maintain_order=True)
    frame = frame.join(named, on=on, how="left", maintain_order="left")
    return _overruled(frame, _is_heard()).drop(
        *("named_pair", "named_is_cited", "named_is_rivalled", "decides"), *_PLACE.values()
    )


def _is_heard() -> pl.Expr:
    decides, verdict = pl.col("decides"), pl.col("verdict")
    lifts = (verdict == Verdict.UNSUPPORTED) & ~pl.col("named_is_rivalled")
    carried = pl.col("named_pair").is_not_null()
    fits = (
        pl.when(decides == Verdict.SUPPORTED)
        .then(carried & lifts)
        .when(decides == Verdict.CONTRADICTED)
        .then(carried)
        .otherwise(decides.is_not_null())
    )
    heard = pl.col("decided_by").is_in(_JUDGE_ALONE) & (decides != verdict) & fits
    return heard.fill_null(value=False)


def _overruled(frame: pl.DataFrame, heard: pl.Expr) -> pl.DataFrame:
    frame = frame.with_columns(heard=heard)
    says = {word: pl.col("heard") & (pl.col("decides") == word) for word in Verdict}
    supports, contradicts = says[Verdict.SUPPORTED], says[Verdict.CONTRADICTED]
    return frame.with_columns(
        verdict=pl.when("heard").then(pl.col("decides")).otherwise(pl.col("verdict")),
        decided_by=pl.when("heard").then(pl.lit(Rule.REFEREE.value)).otherwise(pl.col("decided_by")),
        supports_pair=pl.when(supports).then(pl.col("named_pair")).otherwise(pl.col("supports_pair")),
        supports_is_cited=pl.when(supports)
        .then(pl.col("named_is_cited"))
        .otherwise(pl.col("supports_is_cited")),
        against_pair=pl.when(contradicts)
        .then(pl.col("named_pair"))
        .when(~says[Verdict.UNSUPPORTED])
        .then(pl.col("against_pair")),
    ).drop("heard")
