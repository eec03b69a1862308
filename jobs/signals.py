"""What the texts alone say beside claims and answers, as columns for the verdict and answer rules.

Missing values, novelty, quotations, refusals, hedges, planted instructions: one call of each stage that reads text,
laid beside the rows that the rules decide over. No model, no policy and no threshold of its own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import citations, evidence, rules, subjects, triage
from claimscore.jobs.config import Config
from claimscore.jobs.windows import as_array, list_array, list_offsets

QUOTED_BYTES = 32 * 1024 * 1024
"""Chunk text that is laid beside claims with quotations at a time: claims x chunks may be gigabytes."""


def lacking(
    log: pa.Table,
    claims: pa.Table,
    scores: pa.Table,
    *,
    values_of: pa.Array | None = None,
    names_of: pa.Array | None = None,
) -> pa.Table:
    """Beside `scores`: missing_values and missing_names (list<string>), what of the claim the premise lacks, and of_another
    (bool), whether the premise is about another thing (subjects.of_another).

    Args:
        log: records.LOG.
        claims: records.CLAIMS.
        scores: records.SCORES.
        values_of: boolean beside `scores`: the pairs that could support their claim, whose values and subjects are looked
            for, null elsewhere; None: of none.
        names_of: the same for names.
    """
    none = pa.array(np.zeros(scores.num_rows, np.bool_))
    values, names = (np.asarray(none if wanted is None else wanted) for wanted in (values_of, names_of))
    either = values | names
    chosen = scores.take(pa.array(np.flatnonzero(either)))
    texts, questions = texts_and_questions(log, claims, chosen)
    premises = evidence.premise_texts(chosen, log)
    valued, named = pa.array(values[either]), pa.array(names[either])
    missing_values = rules.missing_values(*(a.filter(valued) for a in (texts, premises, questions)))
    missing_names = rules.missing_names(*(a.filter(named) for a in (texts, premises)))
    spans, answers = list_array(chosen.column("premise")).filter(valued), evidence.answers_of(chosen, log)
    of_another = subjects.of_another(
        texts.filter(valued), spans, _chunk_texts(log), answers[values[either]].tolist()
    )
    return pa.table(
        {
            "missing_values": _spread(missing_values, values),
            "missing_names": _spread(missing_names, names),
            "of_another": _spread(of_another, values),
        }
    )


def _spread(values: pa.Array, where: np.ndarray) -> pa.Array:
    """`values` at the true places of `where`, in order; null at the others."""
    places = np.cumsum(where) - 1
    return values.take(pa.array(places, mask=~where))


def texts_and_questions(log: pa.Table, claims: pa.Table, scores: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Claim text and question of each row of `scores`."""
    answers = evidence.answers_of(scores, log)
    known, asked = (
        of_answer.astype(np.int64) << 32 | np.asarray(table.column("claim_index"), np.int64)
        for of_answer, table in ((evidence.answers_of(claims, log), claims), (answers, scores))
    )
    order = np.argsort(known, kind="stable")
    rows = order[np.searchsorted(known, asked, sorter=order)]
    questions = as_array(log.column("question")).take(pa.array(answers))
    return as_array(claims.column("text")).take(pa.array(rows)), questions.fill_null("")


def novelty(log: pa.Table, claims: pa.Table, *, of: pa.Array | None = None) -> pa.Table:
    """Beside `claims`: what stands in no chunk of the answer, conflation, and whether quotations are found.

    The claims of an answer share one copy of its evidence, which may be a thousand times their own size. A claim of which
    the evidence lacks a value or a name is not conflated: it is not searched for in single sentences.

    Args:
        log: records.LOG.
        claims: records.CLAIMS.
        of: boolean beside `claims`: those whose values and names are looked for, null elsewhere; None: all.
    """
    of_claim = evidence.answers_of(claims, log)
    chunk_texts = _chunk_texts(log)
    everything, questions = pc.binary_join(chunk_texts, "\n"), as_array(log.column("question"))
    asked = np.ones(claims.num_rows, np.bool_) if of is None else np.asarray(of)
    rows = np.flatnonzero(asked)
    texts = as_array(claims.column("text")).take(pa.array(rows))
    answers = pa.array(of_claim[rows])
    shared = [pa.DictionaryArray.from_arrays(answers, column) for column in (everything, questions)]
    missing_values = rules.missing_values(texts, *shared)
    missing_names = rules.missing_names(texts, shared[0])
    n_missing = pc.add(pc.list_value_length(missing_values), pc.list_value_length(missing_names))
    whole = pc.equal(n_missing, 0)
    bound = rules.bound_elsewhere(texts.filter(whole), chunk_texts, answers.filter(whole).to_pylist())
    conflated = _spread(bound, np.asarray(whole)).fill_null(False)
    return pa.table(
        {
            "missing_values": _spread(missing_values, asked),
            "missing_names": _spread(missing_names, asked),
            "conflated": _spread(conflated, asked),
            "quotes_found": _quotes_found(
                list_array(claims.column("quotes")), chunk_texts, of_claim.tolist()
            ),
        }
    )


def _chunk_texts(log: pa.Table) -> pa.ListArray:
    """The texts of each answer's chunks."""
    chunks = list_array(log.column("chunks"))
    return pa.ListArray.from_arrays(
        pa.array(list_offsets(chunks), pa.int32()), chunks.flatten().field("text")
    )


def _quotes_found(quotes: pa.ListArray, chunk_texts: pa.ListArray, of_claim: list[int]) -> pa.Array:
    """citations.quotes_found of each claim in its answer's chunks, few enough at a time that their copies fit."""
    out: list[bool | None] = [None] * len(quotes)
    quoting = np.flatnonzero(np.asarray(pc.list_value_length(quotes).fill_null(0))).tolist()
    batch: list[int] = []
    n_bytes = 0
    for k, claim in enumerate(quoting):
        batch.append(claim)
        n_bytes += pc.sum(pc.binary_length(chunk_texts[of_claim[claim]].values)).as_py() or 0
        if n_bytes >= QUOTED_BYTES or k == len(quoting) - 1:
            answers = chunk_texts.take(pa.array([of_claim[row] for row in batch], pa.int32()))
            found = citations.quotes_found(quotes.take(pa.array(batch, pa.int64())), answers)
            for row, is_found in zip(batch, found.to_pylist(), strict=True):
                out[row] = is_found
            batch, n_bytes = [], 0
    return pa.array(out, pa.bool_())


def of_answers(
    log: pa.Table, sentences: pa.Table, risky: pa.Table, samples: pa.Table, config: Config
) -> pa.Table:
    """Beside `log`: the signals that answers.summarise takes. No answers: no rows."""
    answers = as_array(log.column("answer"))
    refusing = set(sentences.filter(sentences.column("is_refusal")).column("answer_index").to_pylist())
    reasons = dict(
        zip(risky.column("request_id").to_pylist(), risky.column("reasons").to_pylist(), strict=True)
    )
    n_samples: dict[str, int] = {}
    for request_id in samples.column("request_id").to_pylist():
        n_samples[request_id] = n_samples.get(request_id, 0) + 1
    request_ids = log.column("request_id").to_pylist()
    chunk_texts = list_array(log.column("chunks"))
    suspected = pc.or_(
        rules.injection_suspected(answers),
        _any_in_list(chunk_texts, rules.injection_suspected(chunk_texts.flatten().field("text"))),
    )
    return pa.table(
        {
            "refused": pa.array([k in refusing for k in range(log.num_rows)], pa.bool_()),
            "uncarried_marks": citations.uncarried_marks(sentences, log.num_rows),
            "is_refusal_status": pa.array(refusal_statuses(log, config), pa.bool_()),
            "n_hedges": rules.count_hedges(answers, config.policy.hedges),
            "n_low_probability_tokens": triage.low_probability_tokens(log, config.triage.low_logprob),
            "injection_suspected": suspected,
            "high_risk_reasons": pa.array([reasons.get(r, []) for r in request_ids], pa.list_(pa.string())),
            "n_samples": pa.array([n_samples.get(r, 0) for r in request_ids], pa.int32()),
        }
    )


def refusal_statuses(log: pa.Table, config: Config) -> list[bool]:
    """Whether the log itself calls each answer a refusal."""
    known = {status.casefold() for status in config.segment.refusal_statuses}
    return [(status or "").casefold() in known for status in log.column("status").to_pylist()]


def _any_in_list(lists: pa.ListArray, flags: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(lists), dtype=np.int64))])
    counts = np.concatenate([[0], np.cumsum(np.asarray(flags.fill_null(False)))])
    return pa.array(counts[offsets[1:]] > counts[offsets[:-1]], pa.bool_())
