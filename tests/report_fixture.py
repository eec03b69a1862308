"""Hand-made nights: ANSWERS, VERDICTS and METRICS rows from the few fields that a test is about."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.metrics import measure
from claimscore.jobs.records import ANSWERS, VERDICTS
from claimscore.jobs.report import Night
from claimscore.jobs.trend import HISTORY

DAY = "2026-11-28"
_OF_TYPE: dict[pa.DataType, Any] = {
    pa.int32(): 0,
    pa.bool_(): False,
    pa.string(): "",
    pa.list_(pa.string()): [],
}
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=2'>{{ 7*7 }}\x1b[31m\u202eevil @here"


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    defaults = {field.name: None if field.nullable else _OF_TYPE[field.type] for field in schema}
    return pa.Table.from_pylist([defaults | row for row in rows], schema=schema)


def claim(request_id: str, index: int = 0, verdict: str = "supported", **fields: Any) -> dict[str, Any]:
    """One VERDICTS row; a failed claim is extrinsic unless told otherwise."""
    failed = verdict in ("contradicted", "unsupported")
    return {
        "request_id": request_id,
        "claim_index": index,
        "claim": "The fee is 5 euro.",
        "verdict": verdict,
        "decided_by": "unjudged" if verdict == "unscored" else "nli",
        "hallucination_type": "extrinsic" if failed else None,
        "source": "llm",
        "decompose_outcome": "ok",
    } | fields


def answer(request_id: str, *, bad: bool | None = False, **fields: Any) -> dict[str, Any]:
    """One ANSWERS row of one claim, supported unless `bad`; None: unscored."""
    scored = bad is not None
    return {
        "request_id": request_id,
        "answer": "The fee is 5 euro.",
        "state": "scored",
        "action": "refuse" if bad else "deliver",
        "action_reason": "low_groundedness" if bad else "grounded",
        "next_step": "re_answer" if bad else "none",
        "hallucinated": bad,
        "groundedness": (0.0 if bad else 1.0) if scored else None,
        "n_claims": 1,
        "n_scored": int(scored),
        "n_supported": int(bad is False),
        "n_unsupported": int(bool(bad)),
        "n_unscored": int(not scored),
    } | fields


def claims_of(answer_rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The one claim that each `answer` row counts."""
    verdict = {True: "unsupported", False: "supported", None: "unscored"}
    return [claim(row["request_id"], 0, verdict[row["hallucinated"]], end=18) for row in answer_rows]


def answers(rows: list[dict[str, Any]]) -> pa.Table:
    """ANSWERS of `answer` rows."""
    return _table(rows, ANSWERS)


def verdicts(rows: list[dict[str, Any]]) -> pa.Table:
    """VERDICTS of `claim` rows."""
    return _table(rows, VERDICTS)


def history(days: dict[str, list[dict[str, Any]]]) -> pa.Table:
    """trend.HISTORY of each day's `answer` rows."""
    tables = []
    for day, rows in days.items():
        rates = measure(answers(rows), MetricsConfig(n_resamples=200))
        tables.append(rates.add_column(0, "date", pa.repeat(day, rates.num_rows)).cast(HISTORY))
    return pa.concat_tables([HISTORY.empty_table(), *tables])


def night(
    answer_rows: list[dict[str, Any]],
    claim_rows: list[dict[str, Any]] | None = None,
    *,
    before: dict[str, list[dict[str, Any]]] | None = None,
    **fields: Any,
) -> Night:
    """A night of those answers; without claim rows each answer has the one claim that it counts."""
    claim_rows = claims_of(answer_rows) if claim_rows is None else claim_rows
    defaults: dict[str, Any] = {
        "is_current": True,
        "otherwise": {},
        "borders": {},
        "quarantined": {},
        "n_shards": 1,
        "n_unfinished": 0,
        "out": "/data/claimscore out",
    }
    return Night(
        date=DAY,
        series="stub-12345678",
        answers=answers(answer_rows),
        verdicts=verdicts(claim_rows),
        history=history((before or {}) | {DAY: answer_rows}),
        **(defaults | fields),
    )


def hostile_night(text: str = HOSTILE) -> Night:
    """One answer whose every text of the log is `text`."""
    named = dict.fromkeys(("question", "prompt_version", "model", "topic"), text)
    row = answer("r1", bad=True, answer=text) | named | {"request_id": text}
    quoted = dict.fromkeys(("claim", "evidence_chunk_id", "evidence_quote", "rival"), text)
    lists = {name: [text] for name in ("cited_ids", "fabricated_marks", "missing_values")}
    against = {"conflict": True, "contradicting_chunk_id": text, "contradicting_quote": text}
    row_of_claim = claim(text, 0, "contradicted", end=len(text), **quoted, **lists, **against)
    return night([row], [row_of_claim], quarantined={text: 1})


def large_night(n_claims: int, words: int = 60) -> Night:
    """A night with `n_claims` flagged claims, two an answer, with evidence and answers of ordinary length."""
    sentence = "The annual fee of the card is waived after a yearly spend of three lakh rupees or more. "
    text = (sentence * (words // 8))[: words * 6]
    rows, claims = [], []
    for k in range(n_claims // 2):
        name = f"request-{k:06d}"
        rows.append(
            answer(
                name, bad=True, answer=text, topic=f"topic {k % 20}", prompt_version=f"p{k % 3}", model="m"
            )
        )
        for index in range(2):
            span = {
                "start": len(sentence) * index,
                "end": len(sentence) * (index + 1) - 1,
                "claim_index": index,
            }
            evidence = {"evidence_chunk_id": f"doc-{k % 50}#{k % 7}", "evidence_quote": text}
            p = {"p_entailment": 0.1, "p_neutral": 0.8, "p_contradiction": 0.1}
            words_of = {"claim": f"Claim {index} of answer {k} says that the fee is {k} rupees a year."}
            claims.append(
                claim(
                    name, verdict=("unsupported", "contradicted")[index], **span, **evidence, **p, **words_of
                )
            )
    return night(rows, claims)
