"""Sentences to claims: one prompt a sentence, a strict parser, and checks that let nothing made up through.

A sentence becomes the LLM's claims only where every claim comes from it and nothing of it is lost (`origin`
holds the rules, `entails` a pinned NLI checker); otherwise the sentence itself is its claim and
`decompose_outcome` says why. Nothing is dropped and nothing is defaulted to fine. The module knows no engine
and no judge: both are handed in as functions. The claim form is FActScore's (Min et al. 2023,
arXiv:2305.14251); checking claims back against their sentence follows Core (arXiv:2407.03572).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from claimscore.jobs import records
from claimscore.jobs.config import DecomposeConfig
from claimscore.jobs.cues import JOINS, REFUSAL
from claimscore.jobs.errors import ModelError
from claimscore.jobs.facts import WORD, Facts, fold, has_words, in_same_words, is_english_like
from claimscore.jobs.origin import coverage_fault, origin_fault
from claimscore.jobs.records import ClaimSource

Complete = Callable[[str, pa.Array], pa.Table]
Entails = Callable[[pa.Array, pa.Array], np.ndarray]

_OPENING = re.compile(r'\s*\{\s*"claims"\s*:\s*\[')
_QUOTES = re.compile(r"[\"“”„«»]")
_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class _Row:
    """One sentence on its way; `claims` is empty where it asserts nothing."""

    text: str
    context: str
    outcome: str
    claims: list[str] = field(default_factory=list)
    source: ClaimSource = ClaimSource.SENTENCE

    @property
    def premise(self) -> str:
        return f"{self.context} {self.text}".strip()


def claims_schema(config: DecomposeConfig) -> dict[str, Any]:
    """JSON schema of a reply: strings in one list and nothing else, since every field more is one to get wrong."""
    claim = {"type": "string", "maxLength": config.max_claim_chars}
    return {
        "type": "object",
        "properties": {"claims": {"type": "array", "items": claim, "maxItems": config.max_claims}},
        "required": ["claims"],
        "additionalProperties": False,
    }


def user_prompt(sentence: str, context: str) -> str:
    """The user turn that the demo decomposer was trained on; without context, that line is left out.

    Double quotes become single: a small model copies them unescaped, and the claim breaks off there.
    """
    prompt = (f"Context: {context}\n" if context else "") + f"Sentence: {sentence}"
    return _QUOTES.sub("'", prompt)


def is_atomic(sentence: str, config: DecomposeConfig) -> bool:
    """True for a short sentence with no sign of a second fact, which needs no LLM."""
    # Each piece between blanks that begins with a letter or digit holds a word: most sentences are too long at the first look.
    if len([piece for piece in sentence.split() if piece[0].isalnum()]) > config.atomic_max_words:
        return False
    words = WORD.findall(sentence)
    if len(words) > config.atomic_max_words or JOINS.search(sentence):
        return False
    return sum(any(c.isdigit() for c in word) for word in words) <= 1


def parse_reply(text: str | None, finish_reason: str) -> tuple[list[str] | None, str]:
    """The claims of one reply and `ok`, or None (after `length`: the claims so far) and what is wrong with it.

    Outcomes: ok, empty_list, wrong_shape, not_json, refusal, whitespace, truncated_json, `fragment` (a claim
    that begins or ends with a blank was broken off, mostly at a quote), and the finish reasons that come
    without a text: deadline, prompt_too_long, error. Never raises, whatever the text.
    """
    if finish_reason not in {"stop", "length"} or text is None:
        known = finish_reason in {"deadline", "prompt_too_long"}
        return None, finish_reason if known else "error"
    if not text.strip():
        return None, "whitespace"
    try:
        reply = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return _parse_broken(text, finish_reason)
    claims = reply.get("claims") if isinstance(reply, dict) and reply.keys() == {"claims"} else None
    if not isinstance(claims, list) or not all(isinstance(c, str) and _is_text(c) for c in claims):
        return None, "wrong_shape"
    if not any(has_words(claim) for claim in claims):
        return None, "empty_list"
    if all(REFUSAL.match(claim) for claim in claims):
        return None, "refusal"
    if any(claim != claim.strip() for claim in claims):
        return None, "fragment"
    return claims, "ok"


def make_claims(
    sentences: pa.Table,
    request_ids: pa.Array,
    *,
    complete: Complete,
    entails: Entails,
    config: DecomposeConfig,
) -> tuple[pa.Table, dict[str, int]]:
    """Decompose the sentences of a shard.

    Args:
        sentences: records.SENTENCES, any number of answers.
        request_ids: string, indexed by `answer_index`.
        complete: (system, users (P,)) -> records.REPLIES, rows in any order; called once, with distinct prompts,
            those of equal context beside each other. What it leaves out is `error`.
        entails: (premises (N,), hypotheses (N,)) -> P(entailment) (N,); called once at most, with distinct pairs.
        config: `[decompose]`.

    Returns:
        records.CLAIMS in the order of answers and sentences, `claim_index` from 0 in each answer, `duplicate_of` null; and counts of
        sentences: `n_sentences`, `n_no_claim`, `n_atomic`, `n_asked`, `n_unique_asked`, `n_fallback`, each
        outcome by name (they add up to `n_sentences`), `n_claims`, and `n_marks_without_claim`, the fabricated
        marks that hang on a sentence without a claim. Empty in, empty out.

    Raises:
        ModelError: `entails` returned another number of probabilities than pairs.
    """
    columns = [sentences.column(name).to_pylist() for name in ("text", "context", "block", "is_refusal")]
    rows = [
        _route(text, context, block, is_refusal, config)
        for text, context, block, is_refusal in zip(*columns, strict=True)
    ]
    asked = [row for row in rows if not row.outcome]
    unique = {(row.context, row.text): row for row in asked}
    prompts = [unique[key] for key in sorted(unique)]
    if prompts:
        _ask(prompts, complete, config)
        _check(prompts, entails, config)
    for row in asked:
        done = unique[row.context, row.text]
        row.outcome, row.claims, row.source = done.outcome, done.claims, done.source
    counts = Counter(row.outcome for row in rows)
    table = _table(sentences, request_ids, rows)
    marks = sentences.column("fabricated_marks").to_pylist()
    totals = {
        "n_sentences": len(rows),
        "n_no_claim": sum(not row.claims for row in rows),
        "n_atomic": counts["atomic"],
        "n_asked": len(asked),
        "n_unique_asked": len(prompts),
        "n_fallback": sum(row.source == ClaimSource.SENTENCE for row in asked),
        "n_claims": table.num_rows,
        "n_marks_without_claim": sum(len(m) for m, row in zip(marks, rows, strict=True) if not row.claims),
    }
    return table, totals | dict(sorted(counts.items()))


def _route(text: str, context: str, block: str, is_refusal: bool, config: DecomposeConfig) -> _Row:
    """A row with its outcome, or with an empty one where the LLM is to be asked."""
    if block == "code":
        return _Row(text, "", "code", [text])
    text, context = fold(text), fold(context)
    if is_refusal:
        return _Row(text, context, "no_claim_refusal")
    if block in records.CLAIMLESS_BLOCKS:
        return _Row(text, context, f"no_claim_{block}")
    if not has_words(text):
        return _Row(text, context, "no_claim_no_words")
    if not is_english_like(text):
        return _Row(text, context, "language", [text])
    if is_atomic(text, config):
        return _Row(text, context, "atomic", [text], ClaimSource.ATOMIC)
    return _Row(text, context, "")


def _ask(prompts: list[_Row], complete: Complete, config: DecomposeConfig) -> None:
    """Set the outcome and claims of every prompt from its reply."""
    users = pa.array([user_prompt(row.text, row.context) for row in prompts], pa.string())
    replies = complete(config.system_prompt, users)
    names = ("prompt_index", "sample_index", "text", "finish_reason")
    by_prompt = {
        index: (text, reason)
        for index, sample, text, reason in zip(*(replies.column(n).to_pylist() for n in names), strict=True)
        if sample == 0
    }
    for index, row in enumerate(prompts):
        claims, row.outcome = parse_reply(*by_prompt.get(index, (None, "error")))
        row.claims = _distinct(claims or [])
        if claims and max(map(len, claims)) >= config.max_claim_chars:
            row.outcome = "too_long"  # the schema cut it there


def _check(prompts: list[_Row], entails: Entails, config: DecomposeConfig) -> None:
    """Turn every prompt into claims of the LLM that hold, or into its sentence with the reason."""
    for row in prompts:
        fault = _rule_fault(row) if row.outcome in {"ok", "truncated_json"} else row.outcome
        if fault:
            row.claims = []
            row.outcome = fault if row.outcome == "ok" else row.outcome
    sent = {(row.premise, claim) for row in prompts for claim in row.claims if claim != row.text}
    known = probabilities_of(sorted(sent), entails)
    for row in prompts:
        # A NaN is below every threshold here: what the checker cannot judge it does not let pass.
        if not all(known.get((row.premise, claim), 1.0) >= config.checker_entails for claim in row.claims):
            row.outcome, row.claims = "not_entailed", []
        if row.claims:
            row.outcome = "truncated_kept" if row.outcome == "truncated_json" else row.outcome
            row.source = ClaimSource.LLM
        else:
            row.claims = [row.text]


def _rule_fault(row: _Row) -> str | None:
    facts = {
        text: Facts(text) for text in (row.text, row.premise, *row.claims)
    }  # many a claim is its sentence
    sentence, source, *claims = (facts[text] for text in (row.text, row.premise, *row.claims))
    for claim in claims:
        if fault := origin_fault(claim, sentence, source):
            return fault
    return coverage_fault(claims, sentence, is_truncated=row.outcome == "truncated_json")


def probabilities_of(pairs: list[tuple[str, str]], entails: Entails) -> dict[tuple[str, str], float]:
    """P(entailment) of each distinct (premise, claim), in one call of the checker; no pairs, no call.

    Raises:
        ModelError: the checker returned another number of probabilities than pairs.
    """
    if not pairs:
        return {}
    premises, claims = zip(*pairs, strict=True)
    found = np.asarray(entails(pa.array(premises, pa.string()), pa.array(claims, pa.string())))
    if found.shape != (len(pairs),):
        raise ModelError(
            f"claims: the checker returned shape {found.shape}, expected ({len(pairs)},); check its card"
        )
    return dict(zip(pairs, found.tolist(), strict=True))


def _table(sentences: pa.Table, request_ids: pa.Array, rows: list[_Row]) -> pa.Table:
    n_claims = np.array([len(row.claims) for row in rows], dtype=np.int64)
    taken = pa.array(np.repeat(np.arange(len(rows)), n_claims), pa.int64())
    own = sentences.take(taken)
    answers = own.column("answer_index").to_numpy()
    order = np.argsort(answers, kind="stable")
    starts = np.searchsorted(answers[order], answers[order], side="left")
    flat = [(row, claim) for row in rows for claim in row.claims]
    made = {
        "request_id": request_ids.take(own.column("answer_index").combine_chunks()),
        "text": pa.array([claim for _, claim in flat], pa.string()),
        "source": pa.array([str(row.source) for row, _ in flat], pa.string()),
        "decompose_outcome": pa.array([row.outcome for row, _ in flat], pa.string()),
        "unjudgeable": pa.array(["code" if row.outcome == "code" else None for row, _ in flat], pa.string()),
        "duplicate_of": pa.nulls(len(flat), pa.int32()),
    }
    table = pa.table({name: own.column(name) for name in own.column_names if name != "text"} | made)
    table = table.take(pa.array(order))
    indices = pa.array(np.arange(len(flat)) - starts, pa.int32())
    table = table.append_column("claim_index", indices).select(records.CLAIMS.names)
    return records.conform(table, records.CLAIMS, where="claims")


def _distinct(claims: list[str]) -> list[str]:
    """Folded claims with words, in order, each once (`in_same_words`)."""
    out: dict[str, str] = {}
    for claim in map(fold, claims):
        if has_words(claim):
            out.setdefault(in_same_words(claim), claim)
    return list(out.values())


def _parse_broken(text: str, finish_reason: str) -> tuple[list[str] | None, str]:
    if REFUSAL.match(text):
        return None, "refusal"
    opening = _OPENING.match(text)
    if finish_reason != "length" or not opening:
        return None, "not_json"
    claims, at = [], opening.end()
    try:
        while True:
            at += len(_GAP.match(text, at)[0])  # type: ignore[index]  # matches the empty string too
            claim, at = _DECODER.raw_decode(text, at)
            if not isinstance(claim, str) or not _is_text(claim):
                return None, "wrong_shape"
            claims.append(claim)
    except (ValueError, RecursionError):  # the end of what is whole
        if not claims and not text[at:].strip():
            return None, "whitespace"
        return claims or None, "truncated_json"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs) if len(dict(pairs)) == len(pairs) else {}  # a key twice is no shape of ours


def _is_text(claim: str) -> bool:
    """False for half a surrogate pair, which JSON can spell and UTF-8 cannot hold."""
    return claim.isascii() or not any("\ud800" <= c <= "\udfff" for c in claim)
