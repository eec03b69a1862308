"""Scores -> one verdict a claim: pure rules over columns, no model, no text search.

Any premise that supports a claim (pair_rules.py) makes it supported, whatever the others say; without support a
contradiction counts. A claim with a pair that could not be judged and no supporting one is unscored: what was not read might
have carried it. Thresholds come from the judge card. The module knows neither answers' policy nor models.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from claimscore.jobs import pair_rules
from claimscore.jobs.config import VerdictsConfig
from claimscore.jobs.frames import as_frame
from claimscore.jobs.pair_rules import KEY
from claimscore.jobs.records import VERDICTS, CitationState, HallucinationType, Rule, Verdict, conform
from claimscore.jobs.referee_rules import with_referee


def decide(
    claims: pa.Table,
    pairs: pl.DataFrame,
    *,
    novelty: pa.Table,
    agreement: pa.Table,
    log: pa.Table,
    config: VerdictsConfig,
    replies: pa.Table | None = None,
) -> pa.Table:
    """Decide every claim.

    Args:
        claims: records.CLAIMS.
        pairs: pair_rules.outcomes of their evidence pairs; a claim has at least one row.
        novelty: beside `claims`: missing_values and missing_names (list<string>: in no chunk at all), conflated
            (bool: all of it in the evidence, never together), each null where it could decide nothing (pair_rules.settled),
            and quotes_found (bool, null without quotations).
        agreement: request_id, claim_index, consistency, n_samples_usable; claims may be absent.
        log: records.LOG rows of the answers, for chunk ids and quotes.
        config: rules and policy of conflicts.
        replies: records.REFEREE of these claims; None: there is no referee.

    Returns:
        records.VERDICTS, one row a claim, in the order of `claims`; no claims give an empty table.

    Raises:
        OutputError: a claim has no row in `pairs`, or a column breaks its schema.
    """
    frame = as_frame(claims).hstack(as_frame(novelty))
    frame = frame.join(pair_rules.best_of_claims(pairs), on=KEY, how="left", maintain_order="left")
    frame = frame.join(as_frame(agreement), on=KEY, how="left", maintain_order="left")
    frame = with_referee(_with_verdict(frame, config), pairs, replies)
    frame = _with_evidence(frame, pairs)
    frame = _with_citation(frame, citations_required=config.citations_required)
    frame = _with_type(frame)
    frame = _with_quotes(frame, log)
    return _as_verdicts(frame, config)


def _with_verdict(frame: pl.DataFrame, config: VerdictsConfig) -> pl.DataFrame:
    supports, contradicts = pl.col("supports_pair").is_not_null(), pl.col("contradicts_pair").is_not_null()
    frame = frame.with_columns(conflict=supports & pl.col("opposes_pair").is_not_null())
    frame = frame.with_columns(
        against_pair=pl.when(pl.col("conflict"))
        .then(pl.col("opposes_pair"))
        .when(~supports)
        .then(pl.col("contradicts_pair"))
    )
    overruled = pl.col("conflict") & pl.lit(config.conflict != Verdict.SUPPORTED)
    verdict = (
        pl.when(overruled)
        .then(pl.lit(config.conflict))
        .when(supports)
        .then(pl.lit(Verdict.SUPPORTED.value))
        .when(pl.col("error").is_not_null() | (pl.col("n_pairs").fill_null(0) == 0))
        .then(pl.lit(Verdict.UNSCORED.value))
        .when(contradicts)
        .then(pl.lit(Verdict.CONTRADICTED.value))
        .otherwise(pl.lit(Verdict.UNSUPPORTED.value))
    )
    frame = frame.with_columns(
        verdict=verdict,
        vetoed=pl.col("vetoed_pair").is_not_null(),
        astray=pl.col("astray_pair").is_not_null(),
        outbid=pl.col("outbid_pair").is_not_null(),
    )
    is_supported, is_contradicted = (
        pl.col("verdict") == Verdict.SUPPORTED,
        pl.col("verdict") == Verdict.CONTRADICTED,
    )
    by_judge = (
        pl.when(
            (is_supported & (pl.col("supports_n_spans") > 1))
            | (is_contradicted & (pl.col("contradicts_n_spans") > 1))
        )
        .then(pl.lit(Rule.NLI_JOINED.value))
        .when(
            (is_supported & pl.col("supports_is_cited")) | (is_contradicted & pl.col("contradicts_is_cited"))
        )
        .then(pl.lit(Rule.NLI_CITED.value))
        .otherwise(pl.lit(Rule.NLI.value))
    )
    decided_by = (
        pl.when(overruled)
        .then(pl.lit(Rule.CONFLICT_POLICY.value))
        .when(pl.col("verdict") == Verdict.UNSCORED)
        .then(pl.lit(Rule.UNJUDGED.value))
        .when((pl.col("verdict") == Verdict.UNSUPPORTED) & pl.col("outbid"))
        .then(pl.lit(Rule.RIVAL_VALUE.value))
        .when((pl.col("verdict") == Verdict.UNSUPPORTED) & pl.col("vetoed"))
        .then(pl.lit(Rule.NUMBER_VETO.value))
        .when((pl.col("verdict") == Verdict.UNSUPPORTED) & pl.col("astray"))
        .then(pl.lit(Rule.SUBJECT_VETO.value))
        .otherwise(by_judge)
    )
    reason = pl.when(pl.col("verdict") == Verdict.UNSCORED).then(
        pl.when(overruled).then(pl.lit("conflict")).otherwise(pl.col("error").fill_null("not_judged"))
    )
    return frame.with_columns(decided_by=decided_by, reason=reason)


def _with_evidence(frame: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The pair that a reader should look at: what decided, or the nearest that was found."""
    shown = (
        pl.when(pl.col("verdict") == Verdict.CONTRADICTED)
        .then(pl.col("against_pair"))
        .otherwise(pl.coalesce("supports_pair", "outbid_pair", "vetoed_pair", "astray_pair", "judged_pair"))
    )
    columns = [
        "pair",
        "premise",
        "support",
        "p_entailment",
        "p_neutral",
        "p_contradiction",
        "missing",
        "rival",
    ]
    contradicting = pairs.select(against_pair=pl.col("pair"), contradicting=pl.col("premise"))
    return (
        frame.with_columns(pair=shown)
        .join(pairs.select(columns), on="pair", how="left", maintain_order="left")
        .join(contradicting, on="against_pair", how="left", maintain_order="left")
    )


def _with_citation(frame: pl.DataFrame, *, citations_required: bool) -> pl.DataFrame:
    cites = pl.col("cited_ids").list.len() > 0
    state = (
        pl.when(pl.col("fabricated_marks").list.len() > 0)
        .then(pl.lit(CitationState.FABRICATED.value))
        .when(pl.col("verdict") == Verdict.UNSCORED)
        .then(pl.lit(None, dtype=pl.String))
        .when(~pl.col("quotes_found").fill_null(value=True))
        .then(pl.lit(CitationState.QUOTE_NOT_FOUND.value))
        .when(cites & (pl.col("verdict") != Verdict.SUPPORTED))
        .then(pl.lit(CitationState.UNSUPPORTED.value))
        .when(cites & pl.col("supports_is_cited"))
        .then(pl.lit(CitationState.OK.value))
        .when(cites)
        .then(pl.lit(CitationState.MISCITED.value))
        .when(pl.lit(citations_required))
        .then(pl.lit(CitationState.MISSING.value))
    )
    return frame.with_columns(citation_state=state)


def _with_type(frame: pl.DataFrame) -> pl.DataFrame:
    unsupported = pl.col("verdict") == Verdict.UNSUPPORTED
    is_novel = (pl.col("missing_values").list.len() > 0) | (pl.col("missing_names").list.len() > 0)
    kind = (
        pl.when(pl.col("citation_state") == CitationState.FABRICATED)
        .then(pl.lit(HallucinationType.FABRICATED_CITATION.value))
        .when(pl.col("verdict") == Verdict.CONTRADICTED)
        .then(pl.lit(HallucinationType.INTRINSIC.value))
        .when(unsupported & is_novel)
        .then(pl.lit(HallucinationType.CONFABULATION.value))
        .when(unsupported & (pl.col("conflated") | pl.col("outbid") | pl.col("astray")))
        .then(pl.lit(HallucinationType.CONFLATION.value))
        .when(unsupported)
        .then(pl.lit(HallucinationType.EXTRINSIC.value))
        .when(pl.col("citation_state") == CitationState.MISCITED)
        .then(pl.lit(HallucinationType.MISCITATION.value))
    )
    return frame.with_columns(hallucination_type=kind)


def _with_quotes(frame: pl.DataFrame, log: pa.Table) -> pl.DataFrame:
    """Chunk id, place and text of the evidence and of the contradicting premise; the first span where several joined."""
    chunks = dict(zip(log.column("request_id").to_pylist(), log.column("chunks").to_pylist(), strict=True))
    columns: dict[str, list[str | int | None]] = {}
    for source, name in (("premise", "evidence"), ("contradicting", "contradicting")):
        quoted = [
            _quote(chunks[request_id], premise)
            for request_id, premise in zip(
                frame["request_id"].to_list(), frame[source].to_list(), strict=True
            )
        ]
        for k, part in enumerate(("chunk_id", "start", "end", "quote")):
            columns[f"{name}_{part}"] = [q[k] for q in quoted]
    types = {name: pl.Int32 if name.endswith(("start", "end")) else pl.String for name in columns}
    return frame.with_columns(pl.Series(name, values, dtype=types[name]) for name, values in columns.items())


def _quote(
    chunks: list[dict[str, str]], premise: list[dict[str, int]] | None
) -> tuple[str | None, int | None, int | None, str | None]:
    if not premise:
        return None, None, None, None
    pieces = [chunks[s["chunk_index"]]["text"][s["start"] : s["end"]] for s in premise]
    first = premise[0]
    return chunks[first["chunk_index"]]["id"], first["start"], first["end"], " […] ".join(pieces)


def _as_verdicts(frame: pl.DataFrame, config: VerdictsConfig) -> pa.Table:
    none = pl.lit([], dtype=pl.List(pl.String))
    missing = (
        pl.when(pl.col("decided_by") == Rule.NUMBER_VETO)
        .then(pl.col("missing"))
        .when(pl.col("verdict") != Verdict.SUPPORTED)
        .then(pl.col("missing_values"))
        .otherwise(none)
    )
    frame = frame.with_columns(
        pl.col("n_pairs").fill_null(0),
        pl.col("n_samples_usable").fill_null(0),
        claim=pl.col("text"),
        missing_values=missing.fill_null(none),
        rival=pl.when(pl.col("decided_by") == Rule.RIVAL_VALUE).then(pl.col("rival")),
        low_consistency=(pl.col("consistency") < config.low_consistency).fill_null(value=False),
    )
    return conform(frame.select(VERDICTS.names).to_arrow(), VERDICTS, where="verdicts")
