"""The nightly job of one shard on one page: each table made from the table before it, in order.

Every function is pure but for the models handed in. They come as protocols, so that the same page runs on plain
objects in a test and on actors of a cluster; it knows no Ray. What is fresh and where tables lie is `shard_run.py`'s.
A little over 300 lines: every stage once, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import answers as answer_rules
from claimscore.jobs import (
    citations,
    consistency,
    decompose,
    duplicates,
    escalation,
    evidence,
    grades,
    pair_rules,
    pairs,
    referee_rules,
    refusals,
    rewording,
    rivals,
    rules,
    segment,
    signals,
    triage,
    verdicts,
)
from claimscore.jobs.config import Config, SamplesConfig
from claimscore.jobs.errors import ModelError
from claimscore.jobs.records import SCORES
from claimscore.jobs.thresholds import Thresholds
from claimscore.jobs.windows import N_SPECIAL_TOKENS, Bools, as_array, list_array, list_offsets

T = TypeVar("T")


class Judge(Protocol):
    """An NLI cross-encoder: the judge, or the checker that guards decomposition."""

    @property
    def unk_id(self) -> int | None:
        """The id of what the tokenizer does not know; None where it knows all."""

    def encode(self, texts: pa.Array) -> pa.Table:
        """Ids, starts and ends (list<int32>) of each text, without special tokens."""

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> pairs.Floats:
        """(P, 3): entailment, neutral, contradiction of each pair; NaN where the logits were not finite."""


class Generator(Protocol):
    """A local LLM: it decomposes sentences, draws samples, and is the referee."""

    def complete(self, system: str, users: pa.Array, **options: Any) -> pa.Table:
        """records.REPLIES, `n` rows a prompt, in order."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a run; None where the plan says that nothing of theirs is stale."""

    decomposer: Generator | None = None
    checker: Judge | None = None
    judge: Judge | None = None
    generator: Generator | None = None
    referee: Generator | None = None


Tick = Callable[[str, int], None]
"""Told (`claims`, 12) when 12 claims more were made: for progress only."""


def make_sentences(log: pa.Table, config: Config) -> pa.Table:
    """records.SENTENCES of the answers of `log`, with their citations and refusals."""
    sentences = segment.split_sentences(as_array(log.column("answer")), config.segment)
    sentences = citations.parse_citations(sentences, log, config.citations)
    sentences = refusals.with_status_refusals(sentences, signals.refusal_statuses(log, config))
    if config.segment.abstentions:
        sentences = refusals.with_abstentions(sentences, as_array(log.column("question")))
    return sentences


def make_claims(
    log: pa.Table, sentences: pa.Table, models: Models, config: Config
) -> tuple[pa.Table, dict[str, int]]:
    """records.CLAIMS of the `sentences` of `log`, and how often each outcome of decomposition occurred."""
    llm, checker = _needed(models.decomposer, "decomposer"), _needed(models.checker, "checker")
    options = {
        "schema": decompose.claims_schema(config.decompose),
        "max_tokens": config.decompose.max_output_tokens,
        "temperature": 0.0,
        "deadline_s": config.decompose.deadline_s,
    }
    longest, settings = config.checker_card.max_pair_tokens, config.decompose
    claims, counts = decompose.make_claims(
        sentences,
        as_array(log.column("request_id")),
        complete=lambda system, users: llm.complete(system, users, **options),
        entails=lambda premises, claims: entailment(checker, premises, claims, longest),
        config=settings,
    )
    claims, repeated = duplicates.with_duplicates(
        claims,
        entails=lambda one, other: entailment(checker, one, other, longest, unk_id=checker.unk_id),
        how=settings.duplicates,
        above=settings.duplicates_above,
    )
    return claims, counts | repeated


def make_scores(
    log: pa.Table, claims: pa.Table, models: Models, config: Config, tick: Tick
) -> tuple[pa.Table, dict[str, int]]:
    """records.SCORES of the evidence pairs: windows and covers, then other covers for what none of them carries.

    Beside them what the judge was asked for about those pairs and no row tells: pairs and tokens of claims in other
    words (rewordings, rivals).
    """
    judge = _needed(models.judge, "judge")
    found = evidence.evidence_pairs(
        log,
        claims,
        encode=judge.encode,
        sentence_spans=lambda texts: segment.sentence_spans(texts, config.segment),
        config=config.evidence,
        unk_id=judge.unk_id,
    )
    first, asked = _judged(log, claims, found.pairs, judge, config)
    tick("pairs", first.num_rows)
    retries = pair_rules.without_claims(found.retries, first, _carrying(log, claims, first, config))
    retried, asked_again = _judged(log, claims, retries, judge, config)
    tick("pairs", retried.num_rows)
    variants = pa.concat_tables([*asked, *asked_again])
    counts = {
        "n_variant_pairs": variants.num_rows,
        "n_variant_tokens": pc.sum(variants.column("n_tokens")).as_py() or 0,
    }
    return pa.concat_tables([first, retried, found.unpaired]), counts


def _judged(
    log: pa.Table, claims: pa.Table, found: pa.Table, judge: Judge, config: Config
) -> tuple[pa.Table, tuple[pa.Table, pa.Table]]:
    """SCORES of the pairs `found`, and of the variants of their claims that were asked for beside them."""
    scores, _ = pairs.judge_pairs(found, judge.probabilities)
    scores, reworded = _with_reworded(log, claims, found, scores, judge, config)
    scores, rivalled = _with_rivals(log, claims, found, scores, judge, config)
    return scores, (reworded, rivalled)


def _carrying(log: pa.Table, claims: pa.Table, scores: pa.Table, config: Config) -> pa.Array:
    """Beside `scores`: the premise entails its claim surely, is about it, holds its values, and no rival of theirs more surely.

    Stricter than any `[verdicts]`, on which scores must not depend.
    """
    sure = pair_rules.holds(scores, pair_rules.surely(config.evidence.carried_at))
    lacking = signals.lacking(log, claims, scores, values_of=sure)
    holds = pc.equal(pc.list_value_length(lacking.column("missing_values")), 0).fill_null(False)
    rivalled = pc.greater(scores.column("p_rival"), scores.column("p_entailment")).fill_null(False)
    barred = pc.or_(rivalled, lacking.column("of_another").fill_null(True))
    return pc.and_(holds, pc.invert(barred))


def _with_reworded(
    log: pa.Table, claims: pa.Table, found: pa.Table, scores: pa.Table, judge: Judge, config: Config
) -> tuple[pa.Table, pa.Table]:
    """`scores` of the pairs `found`; those in doubt are also asked for the claim with its values in the premise's writing.

    With them SCORES of the pairs that were asked.
    """
    in_doubt = pair_rules.holds(
        scores,
        ~pair_rules.surely(config.evidence.carried_at) & (pl.col("overlap") >= rewording.LEAST_OVERLAP),
    )
    asked = log, claims, found, scores, in_doubt
    tried, variants, probs_P3 = _judge_variants(*asked, rewording.reworded_claims, judge, config)
    return rewording.with_reworded(scores, as_array(tried.column("row")), probs_P3), variants


def _with_rivals(
    log: pa.Table, claims: pa.Table, found: pa.Table, scores: pa.Table, judge: Judge, config: Config
) -> tuple[pa.Table, pa.Table]:
    """`scores` of the pairs `found`; those that entail are also asked for the claim with another value of the premise.

    With them SCORES of the pairs that were asked.
    """
    entailing = pair_rules.holds(scores, pair_rules.surely(config.evidence.rivals_above))
    asked = log, claims, found, scores, entailing
    tried, variants, probs_P3 = _judge_variants(*asked, rivals.rival_claims, judge, config)
    return rivals.with_rivals(scores, tried, probs_P3[:, 0]), variants


def _judge_variants(
    log: pa.Table,
    claims: pa.Table,
    found: pa.Table,
    scores: pa.Table,
    chosen: pa.Array,
    variants_of: Callable[[pa.Array, pa.Array], pa.Table],
    judge: Judge,
    config: Config,
) -> tuple[pa.Table, pa.Table, pairs.Floats]:
    """The variants of the claims of the `chosen` pairs that could be paired with their premises, and what the judge says.

    As SCORES and as probabilities, (P, 3).
    """
    rows = pa.array(np.flatnonzero(np.asarray(chosen)))
    some = scores.take(rows)
    texts, _ = signals.texts_and_questions(log, claims, some)
    valued = rules.has_values(texts)  # no other has variants, and needs its premise put together
    rows, some, texts = rows.filter(valued), some.filter(valued), texts.filter(valued)
    tested, tried = rivals.variant_pairs(
        found,
        rows,
        variants_of(texts, evidence.premise_texts(some, log)),
        encode=judge.encode,
        max_pair_tokens=config.evidence.max_pair_tokens,
    )
    scored, probs_P3 = pairs.judge_pairs(tested, judge.probabilities)
    return tried, scored, probs_P3


def make_sample_scores(
    claims: pa.Table, samples: pa.Table, models: Models, config: Config, tick: Tick
) -> pa.Table:
    """records.SCORES of the (sample, claim) pairs of high-risk answers: the second part of the scores."""
    if not samples.num_rows:
        return SCORES.empty_table()
    judge = _needed(models.judge, "judge")
    found = evidence.sample_pairs(
        samples,
        claims,
        encode=judge.encode,
        sentence_spans=lambda texts: segment.sentence_spans(texts, config.segment),
        config=config.evidence,
        unk_id=judge.unk_id,
    )
    scored, _ = pairs.judge_pairs(found, judge.probabilities)
    tick("pairs", scored.num_rows)
    return scored


def high_risk(log: pa.Table, claims: pa.Table, scores: pa.Table, config: Config) -> pa.Table:
    """request_id and reasons of the answers that samples are asked for."""
    return triage.high_risk(log, claims, scores, entailment=config.triage.entailment, config=config.triage)


def draw_samples(log: pa.Table, keys: pa.Array, models: Models, config: Config) -> pa.Table:
    """records.SAMPLES, k an answer, drawn from the grounded-answer prompt for the answers of `log`."""
    llm, settings = _needed(models.generator, "generator"), config.samples
    replies = llm.complete(settings.system_prompt, consistency.sample_prompts(log), **_sampling(settings))
    return consistency.from_replies(
        as_array(log.column("request_id")), keys, replies, config.segment.refusal_markers
    )


def make_replies(
    log: pa.Table,
    claims: pa.Table,
    scores: pa.Table,
    risky: pa.Table,
    stored: pa.Table,
    made_by: str,
    models: Models,
    config: Config,
) -> tuple[pa.Table, dict[str, int]]:
    """records.REFEREE of the claims in doubt, and counts; what `stored` holds is not asked again."""
    return escalation.make_replies(
        log,
        claims,
        scores,
        risky,
        stored,
        complete=lambda *prompts, **options: _needed(models.referee, "referee").complete(*prompts, **options),
        made_by=made_by,
        config=config,
    )


def make_grades(
    log: pa.Table,
    sentences: pa.Table,
    replies: pa.Table,
    stored: pa.Table,
    made_by: str,
    models: Models,
    config: Config,
    warn: Callable[[str], None],
) -> tuple[pa.Table, dict[str, int]]:
    """records.REFEREE of the answers that `replies` speak of, and counts; what `stored` holds is not asked again.

    A model that fails costs grades and nothing else; `warn` is told.
    """
    return grades.make_grades(
        log,
        sentences,
        replies,
        stored,
        complete=lambda *prompts, **options: _needed(models.referee, "referee").complete(*prompts, **options),
        made_by=made_by,
        config=config,
        warn=warn,
    )


def make_verdicts(
    log: pa.Table,
    claims: pa.Table,
    scores: pa.Table,
    sample_scores: pa.Table,
    samples: pa.Table,
    config: Config,
    replies: pa.Table | None = None,
) -> pa.Table:
    """records.VERDICTS of `claims`: no model."""
    thresholds = Thresholds.of(config)
    values_of, names_of = (
        pair_rules.holds(scores, what) for what in (thresholds.may_entail(), thresholds.needs_names())
    )
    lacking = signals.lacking(log, claims, scores, values_of=values_of, names_of=names_of)
    found = pair_rules.outcomes(scores, lacking, thresholds=thresholds, config=config.verdicts)
    # Novelty names what is wrong with a claim that failed, and only a referee makes a settled one fail.
    may_fail = pc.invert(pair_rules.settled(claims, found)) if replies is None else None
    return verdicts.decide(
        claims,
        found,
        novelty=signals.novelty(log, claims, of=may_fail),
        agreement=consistency.agreement(sample_scores, samples, entails=thresholds.entails()),
        log=log,
        config=config.verdicts,
        replies=replies,
    )


def make_answers(
    log: pa.Table,
    sentences: pa.Table,
    verdict_table: pa.Table,
    risky: pa.Table,
    samples: pa.Table,
    config: Config,
    replies: pa.Table | None = None,
) -> pa.Table:
    """records.ANSWERS of `log`: no model."""
    beside = signals.of_answers(log, sentences, risky, samples, config)
    graded = referee_rules.grades(replies)
    return answer_rules.summarise(log, verdict_table, beside, graded, config.policy)


def entailment(
    checker: Judge, premises: pa.Array, claims: pa.Array, max_pair_tokens: int, *, unk_id: int | None = None
) -> pairs.Floats:
    """P(entailment) of each (premise, claim) text pair, shape (P,); NaN for a pair that does not fit or gives none.

    With `unk_id` also for a pair with such a token: one unknown word entails any other.
    """
    columns = [list_array(checker.encode(texts).column("ids")) for texts in (premises, claims)]
    lengths = sum(np.asarray(pc.list_value_length(ids), dtype=np.int64) for ids in columns)
    may: Bools = np.asarray(lengths + N_SPECIAL_TOKENS <= max_pair_tokens)
    for ids in columns if unk_id is not None else ():
        unknown = np.flatnonzero(np.asarray(ids.flatten()) == unk_id)
        may[np.searchsorted(list_offsets(ids), unknown, side="right") - 1] = False
    fits = np.flatnonzero(may)
    out = np.full(len(premises), np.nan, dtype=np.float32)
    if len(fits):
        premise_ids, claim_ids = (ids.take(pa.array(fits)) for ids in columns)
        out[fits] = checker.probabilities(premise_ids, claim_ids)[:, 0]
    return out


def _sampling(settings: SamplesConfig) -> dict[str, Any]:
    return {
        "schema": None,
        "max_tokens": settings.max_output_tokens,
        "temperature": settings.temperature,
        "n": settings.k,
        "seed": settings.seed,
        "deadline_s": settings.deadline_s,
    }


def _needed(model: T | None, role: str) -> T:
    if model is None:
        raise ModelError(
            f"{role}: a table needs it, but the plan loaded none; run `claimscore plan` and report this"
        )
    return model
