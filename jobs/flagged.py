"""The claims a person should look at: the worst answers with every claim, and a row for each flagged claim, repeats once.

An answer is worse the more of its claims are flagged, and at equal numbers the smaller its supported share. Flagged
is what is contradicted, unsupported, or carries a hallucination type (a supported claim may be miscited). Long text
is cut, and says so. Text is left as it is otherwise: who prints it makes it harmless. Knows no file and no format.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import polars as pl

from claimscore.jobs.counting import WORST_FIRST, once
from claimscore.jobs.records import CitationState, Verdict

MAX_ANSWERS = 40
"""Answers shown whole."""
MAX_CLAIMS = 10_000
"""Flagged claims listed."""
MAX_CHARS = {"answer": 6_000, "question": 600, "claim": 800, "quote": 800, "id": 120, "context": 320}

_OF_ANSWER = (
    *(
        "state",
        "groundedness",
        "n_supported",
        "n_scored",
        "n_flagged",
        "n_fabricated_citations",
        "failure_mode",
    ),
    *("action", "action_reason", "next_step", "injection_suspected"),
)

is_flagged = (
    pl.col("verdict").is_in([Verdict.CONTRADICTED.value, Verdict.UNSUPPORTED.value])
    | pl.col("hallucination_type").is_not_null()
)
"""Of VERDICTS rows: whether somebody should look."""
_cites = pl.col("citation_state").is_not_null() & (pl.col("citation_state") != CitationState.MISSING)


def cut(text: str | None, kind: str) -> str | None:
    """The first MAX_CHARS[kind] code points of a text, and how many there were."""
    limit = MAX_CHARS[kind]
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… [cut: {len(text):,} characters]"


def anchor(request_id: str) -> str:
    """The id of an answer's place in a page."""
    return f"a-{quote(request_id[: MAX_CHARS['id']], safe='')}"


def once_flagged(verdicts: pl.DataFrame) -> pl.DataFrame:
    """A row each class with a flagged member: the worst of those. That another member is unscored hides none of them."""
    return once(verdicts.filter(is_flagged))


def rank(answers: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """The answers with a flagged claim or a fabricated citation that stands on no claim, worst first.

    With `n_flagged`, and `cites`: any claim of it carries a citation.

    Args:
        answers: ANSWERS of a day.
        verdicts: VERDICTS of the same.
    """
    counts = once_flagged(verdicts).group_by("request_id").agg(n_flagged=pl.len())
    cites = verdicts.group_by("request_id").agg(cites=_cites.any())
    counted = answers.join(counts, on="request_id", how="left").join(cites, on="request_id", how="left")
    counted = counted.with_columns(pl.col("n_flagged").fill_null(0), pl.col("cites").fill_null(value=False))
    flagged = counted.filter((pl.col("n_flagged") > 0) | (pl.col("n_fabricated_citations") > 0))
    return flagged.sort(
        ["n_flagged", "groundedness", "request_id"],
        descending=[True, False, False],
        nulls_last=[False, False, False],
    )


def worst(ranked: pl.DataFrame, verdicts: pl.DataFrame) -> list[dict[str, Any]]:
    """The first MAX_ANSWERS of `rank` whole: the answer in parts by verdict, and each claim with its grounds."""
    top = ranked.head(MAX_ANSWERS)
    claims = verdicts.filter(pl.col("request_id").is_in(top["request_id"].implode()))
    by_id = claims.sort("claim_index").partition_by("request_id", as_dict=True)
    out = []
    for row in top.to_dicts():
        mine = by_id[row["request_id"],].to_dicts() if (row["request_id"],) in by_id else []
        out.append(
            {
                "anchor": anchor(row["request_id"]),
                "request_id": cut(row["request_id"], "id"),
                "ts": row["ts"].isoformat() if row["ts"] else None,
                "question": cut(row["question"], "question"),
                "parts": _parts(row["answer"] or "", mine),
                "claims": [
                    {"number": k + 1} | _claim(claim, cites=row["cites"]) for k, claim in enumerate(mine)
                ],
                "n_claims": sum(claim["duplicate_of"] is None for claim in mine),
            }
            | {name: cut(row[name], "id") for name in ("prompt_version", "model", "topic")}
            | {name: row[name] for name in _OF_ANSWER}
        )
    return out


def rows(ranked: pl.DataFrame, verdicts: pl.DataFrame) -> list[dict[str, Any]]:
    """The first MAX_CLAIMS flagged claims, those of the worst answers first, each with its place in the answer."""
    columns = ("request_id", "answer", "cites", "prompt_version", "model", "topic")
    answers = ranked.select(columns).with_row_index("place")
    flagged = once_flagged(verdicts).join(answers, on="request_id", how="inner")
    out = []
    for row in flagged.sort("place", "claim_index").head(MAX_CLAIMS).iter_rows(named=True):
        before, sentence, after = _in_context(row["answer"] or "", row["start"], row["end"])
        out.append(
            {
                "request_id": cut(row["request_id"], "id"),
                "anchor": anchor(row["request_id"]) if row["place"] < MAX_ANSWERS else None,
                "before": before,
                "sentence": sentence,
                "after": after,
            }
            | {name: cut(row[name], "id") for name in ("prompt_version", "model", "topic")}
            | _claim(row, cites=row["cites"])
        )
    return out


def _claim(row: dict[str, Any], *, cites: bool) -> dict[str, Any]:
    """A VERDICTS row as a reader wants it. Where the whole answer cites nothing, no single claim of it misses a citation."""
    p = row["p_entailment"], row["p_neutral"], row["p_contradiction"]
    return {
        "claim": cut(row["claim"], "claim"),
        "verdict": row["verdict"],
        "flagged": row["verdict"] in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
        or row["hallucination_type"] is not None,
        "reason": row["reason"],
        "decided_by": row["decided_by"],
        "type": row["hallucination_type"],
        "citation": row["citation_state"] if cites else None,
        "cited": [cut(item, "id") for item in (*row["cited_ids"], *row["fabricated_marks"])],
        "evidence": _evidence(row["evidence_chunk_id"], row["evidence_quote"]),
        "against": _evidence(row["contradicting_chunk_id"], row["contradicting_quote"])
        if row["conflict"]
        else None,
        "p": None if p[0] is None else [round(x, 3) for x in p if x is not None],
        "missing_values": [cut(item, "id") for item in row["missing_values"]],
        "rival": cut(row["rival"], "id"),
        "consistency": row["consistency"],
        "n_samples": row["n_samples_usable"],
        "low_consistency": row["low_consistency"],
        "repeats": None if row["duplicate_of"] is None else row["duplicate_of"] + 1,
    }


def _evidence(chunk_id: str | None, text: str | None) -> dict[str, str | None] | None:
    return None if chunk_id is None else {"chunk_id": cut(chunk_id, "id"), "quote": cut(text, "quote")}


def _parts(answer: str, claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answer in order: pieces with the gravest verdict of the claims made there and their numbers, or neither."""
    spans: dict[tuple[int, int], list[int]] = {}
    for number, claim in enumerate(claims):
        spans.setdefault((claim["start"], claim["end"]), []).append(number)
    parts: list[dict[str, Any]] = []
    at, limit = 0, MAX_CHARS["answer"]
    for (start, end), numbers in sorted(spans.items()):
        if start < at or start >= limit:  # offsets of sentences never overlap; a damaged table is still shown
            continue
        parts.append({"text": answer[at:start], "verdict": None, "claims": []})
        mine = [claims[number] for number in numbers]
        gravest = min((claim["verdict"] for claim in mine), key=WORST_FIRST.index)
        is_bad = any(claim["hallucination_type"] is not None for claim in mine)
        label = "supported, badly cited" if is_bad and gravest == Verdict.SUPPORTED else gravest
        text = answer[start : min(end, limit)]
        parts.append({"text": text, "verdict": gravest, "label": label, "claims": [n + 1 for n in numbers]})
        at = min(end, limit)
    parts.append({"text": answer[at:limit], "verdict": None, "claims": []})
    if len(answer) > limit:
        parts.append({"text": f"… [cut: {len(answer):,} characters]", "verdict": None, "claims": []})
    return [part for part in parts if part["text"]]


def _in_context(answer: str, start: int, end: int) -> tuple[str, str, str]:
    """The claim's sentence and what stands around it, each within bounds."""
    around, limit = 80, MAX_CHARS["context"]
    before = answer[max(0, start - around) : start]
    after = answer[end : end + around]
    sentence = answer[start:end]
    return (
        ("…" if start > around else "") + before,
        sentence if len(sentence) <= limit else sentence[:limit] + "…",
        after + ("…" if len(answer) > end + around else ""),
    )
