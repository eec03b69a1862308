"""The referee's grades of a shard's answers: which are asked about, the texts shown, and which replies may be used.

Asked is about the answers of which a claim was put to the referee: its cap is theirs. An answer or passage that speaks to a
model is shown to none, and as a grade over half of the passages would say nothing, such an answer gets none. Rows lie in the
referee's table beside those of the claims, without a claim_index. Knows no cluster and no threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from claimscore.jobs import rubric, rules
from claimscore.jobs.asking import Complete, key_of, replies_to
from claimscore.jobs.config import Config, RefereeCard, RefereeConfig
from claimscore.jobs.errors import ModelError
from claimscore.jobs.prompt_texts import defused
from claimscore.jobs.records import REFEREE, REPLIES, conform

NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One answer and what is shown of it; `fault` says why nothing is."""

    request_id: str
    answer: str
    places: list[int]
    passages: list[str]
    fault: str
    key: str
    prompt: str


def make_grades(
    log: pa.Table,
    sentences: pa.Table,
    asked_about: pa.Table,
    stored: pa.Table,
    *,
    complete: Complete,
    made_by: str,
    config: Config,
    warn: Callable[[str], None] = lambda _: None,
) -> tuple[pa.Table, dict[str, int]]:
    """Ask the referee for a grade of each answer of which it was asked about a claim.

    Args:
        log: records.LOG.
        sentences: records.SENTENCES of `log`: an answer is shown as its sentences, without marks and markup.
        asked_about: records.REFEREE of the claims.
        stored: records.REFEREE that were made before: finished replies to equal prompts are taken from it.
        complete: the referee; called only where a reply is lacking.
        made_by: fingerprint of the referee's weights and settings; a part of each prompt's key.
        config: the deployment.
        warn: told why the referee failed. No verdict needs a grade: what it was not asked for or lost has the outcome `error`.

    Returns:
        records.REFEREE, a row an answer, without claim_index; and counts: `n_grades_asked` answers, of those
        `n_grades_reused`, `grade_outcome_*` (they add up), `grade_1`, `grade_3` and `grade_5` of those that are used. Nothing
        asked about: no rows and no call.
    """
    card, settings = config.referee_card, config.referee
    assert card is not None, "without a referee there is no table of it"
    wanted = set(asked_about.column("request_id").to_pylist())
    asked = _asked(log, sentences, wanted, made_by, card, settings)
    failure = ""

    def ask(n_passages: int, users: pa.Array) -> pa.Table:
        nonlocal failure
        if failure:  # each call to a model that is gone may take the time of loading it
            return REPLIES.empty_table()
        try:
            return complete(
                card.grade_prompt,
                users,
                schema=rubric.reply_schema(n_passages, settings.max_span_chars),
                max_tokens=settings.max_output_tokens * rubric.MAX_SPANS,
                temperature=0.0,
                deadline_s=settings.deadline_s,
                needed=False,
            )
        except ModelError as err:
            failure = str(err)
            return REPLIES.empty_table()

    prompts = {one.key: (len(one.passages), one.prompt) for one in asked if not one.fault}
    replies = replies_to(prompts, stored, ask)
    if failure:
        warn(f"answers stay without a grade, verdicts are as they would be with one: {failure}")
    rows = [_row(one, *replies.of.get(one.key, (None, NOT_ASKED))) for one in asked]
    table = conform(pa.Table.from_pylist(rows, REFEREE), REFEREE, where="grades")
    counts = {"n_grades_asked": len(asked), "n_grades_reused": replies.n_reused}
    return table, counts | {f"grade_{name}": n for name, n in replies.tokens.items()} | _counts(rows)


def _asked(
    log: pa.Table,
    sentences: pa.Table,
    wanted: set[str],
    made_by: str,
    card: RefereeCard,
    settings: RefereeConfig,
) -> list[_Asked]:
    """The answers asked about, by request id, each with what is shown."""
    texts: dict[int, list[str]] = {}
    columns = (sentences.column(name).to_pylist() for name in ("answer_index", "text"))
    for index, text in zip(*columns, strict=True):
        texts.setdefault(index, []).append(text)
    ids = log.column("request_id").to_pylist()
    out = []
    for row in sorted((k for k, request_id in enumerate(ids) if request_id in wanted), key=ids.__getitem__):
        chunks: list[str] = [chunk["text"] or "" for chunk in log.column("chunks")[row].as_py()]
        places = [k for k, text in enumerate(chunks) if text.strip()]
        said, logged = "\n".join(texts.get(row, [])), log.column("answer")[row].as_py()
        answer, passages = defused(said), [defused(chunks[k]) for k in places]
        prompt = rubric.user_prompt(answer, passages)
        made_from = [made_by, card.grade_prompt, prompt, settings.max_span_chars, settings.max_output_tokens]
        fault = ""
        as_logged = pa.array([logged, said, *chunks], pa.string())  # a defused token is a sign of nothing
        if any(rules.injection_suspected(as_logged).to_pylist()):
            fault = "injection"
        elif len(prompt) > rubric.MAX_CHARS_A_TOKEN * card.max_model_tokens:
            fault = "prompt_too_long"
        out.append(_Asked(ids[row], answer, places, passages, fault, key_of(made_from), prompt))
    return out


def _row(one: _Asked, text: str | None, finish_reason: str) -> dict[str, Any]:
    """A row of REFEREE; the window is the place of the first stretch that a passage holds."""
    row: dict[str, Any] = dict.fromkeys(REFEREE.names) | {
        "request_id": one.request_id,
        "turn": 0,
        "reasons": [],
        "prompt_key": "" if one.fault else one.key,
        "reply": text,
        "finish_reason": finish_reason,
        "outcome": one.fault,
    }
    if one.fault:
        return row
    graded, row["outcome"] = rubric.parse_reply(text, finish_reason, n_passages=len(one.passages))
    if graded is None:
        return row
    row["outcome"] = rubric.evidence_fault(graded, one.answer, one.passages) or "ok"
    row["span"] = " […] ".join(item.span for item in graded.evidence)
    place = next((item.passage for item in graded.evidence if item.passage is not None), None)
    if place is not None:
        row["window"] = {"chunk_index": one.places[place], "start": 0, "end": len(one.passages[place])}
    if row["outcome"] == "ok":
        row["grade"] = graded.grade
    return row


def _counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    outcomes, grades = (Counter(row[name] for row in rows) for name in ("outcome", "grade"))
    counts = {f"grade_outcome_{name}": n for name, n in sorted(outcomes.items())}
    return counts | {f"grade_{n}": count for n, count in sorted(grades.items(), key=str) if n is not None}
