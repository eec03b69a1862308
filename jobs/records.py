"""Every table of the job as an Arrow schema, and the words its columns use.

A table is written only with its schema from here, so an empty shard, an all-null column and a full
shard concatenate. This module knows no stage, no file and no model. Offsets are code points, end
exclusive, into the text named beside them, never bytes. Column order is the order a reader wants.
Over 300 lines, because it is the one list of every word that a table uses.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from claimscore.jobs.errors import OutputError


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of row groups of one log file: the unit of work, retry and resume."""

    shard_id: str
    """16 hex digits over the file's footer and size and the row groups: the content, not the place."""
    file: str
    """Path within the log's file system."""
    row_groups: tuple[int, ...]
    """Indices of the row groups, consecutive."""
    first_row: int
    """Row of the file that the first row group begins with."""
    n_rows: int
    """Rows by the footer; answers + quarantined rows must equal it."""
    stamp: str = dataclasses.field(default="", compare=False)
    """Footer and time of change of the file that was planned: another one was written since; "" asks nothing."""


class Label(StrEnum):
    """What the judge says of one (premise, claim) pair."""

    ENTAILMENT = "entailment"
    NEUTRAL = "neutral"
    CONTRADICTION = "contradiction"


class Verdict(StrEnum):
    """What we decide of one claim against the whole evidence set of its answer."""

    SUPPORTED = "supported"
    """Some premise entails it."""
    CONTRADICTED = "contradicted"
    """No premise entails it and some premise contradicts it."""
    UNSUPPORTED = "unsupported"
    """Neither: the evidence does not say it."""
    UNSCORED = "unscored"
    """It could not be judged; never a default for fine: `reason` says why."""


class Rule(StrEnum):
    """Which check decided a verdict (`decided_by`)."""

    NLI_CITED = "nli_cited"
    """The judge, on a chunk that the claim cites."""
    NLI = "nli"
    """The judge, on a chunk that the claim does not cite."""
    NLI_JOINED = "nli_joined"
    """The judge, on several passages joined (multi-hop)."""
    NUMBER_VETO = "number_veto"
    """The judge said entailed, but a number, date or unit of the claim is in no entailing premise."""
    SUBJECT_VETO = "subject_veto"
    """The judge said entailed, but each entailing premise has a passage about another thing than the claim names."""
    RIVAL_VALUE = "rival_value"
    """The judge said entailed, but is surer of the claim with another value of the same premise: wrongly bound."""
    REFEREE = "referee"
    """The referee, an LLM with a verbatim span, said otherwise than the judge, who was unsure."""
    CONFLICT_POLICY = "conflict_policy"
    """One chunk entails and another contradicts; the deployment's policy decided."""
    UNJUDGED = "unjudged"
    """Nothing judged it; `reason` says why."""


class RefereeWord(StrEnum):
    """What the referee says of one claim; partial support counts as unsupported."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"


class CitationState(StrEnum):
    """What became of the citations of one claim."""

    OK = "ok"
    """A chunk that the claim cites supports it."""
    MISCITED = "miscited"
    """Another chunk than the cited ones supports the claim."""
    FABRICATED = "fabricated"
    """A cited id was not retrieved."""
    MISSING = "missing"
    """The claim cites nothing, in an answer of a deployment that asks for citations."""
    QUOTE_NOT_FOUND = "quote_not_found"
    """The claim presents a quotation that stands in no cited chunk."""
    UNSUPPORTED = "unsupported"
    """The cited ids exist, and no chunk at all supports the claim."""


class HallucinationType(StrEnum):
    """The kind of a claim that the evidence does not carry."""

    INTRINSIC = "intrinsic"
    """The evidence contradicts it."""
    EXTRINSIC = "extrinsic"
    """The evidence does not say it, though it holds its names and values."""
    FABRICATED_CITATION = "fabricated_citation"
    """It cites what was not retrieved."""
    MISCITATION = "miscitation"
    """It is supported, by other chunks than those that it cites."""
    CONFLATION = "conflation"
    """What is said of one thing in the evidence is said of another, or what stands apart there together."""
    CONFABULATION = "confabulation"
    """It holds a name or a value that stands nowhere in the evidence."""


class AnswerState(StrEnum):
    """What an answer is, before any of its claims is judged."""

    SCORED = "scored"
    """It has claims, and chunks to judge them by."""
    REFUSAL = "refusal"
    """It says that it does not or cannot answer, and claims nothing."""
    EMPTY_ANSWER = "empty_answer"
    """Nothing, or nothing but blanks."""
    NO_CONTEXT = "no_context"
    """The model was given no text to answer from."""
    NO_CLAIMS = "no_claims"
    """It asserts nothing that could be judged."""


class Action(StrEnum):
    """What the policy would have done with an answer."""

    DELIVER = "deliver"
    """It may be shown as it is."""
    REVISE = "revise"
    """It may be shown with what is not supported marked or taken out."""
    REFUSE = "refuse"
    """It should not be shown."""


class NextStep(StrEnum):
    """The rung of the fallback ladder beside an action; ungrounded generation is not on it."""

    NONE = "none"
    """Nothing is to be done."""
    RE_RETRIEVE = "re_retrieve"
    """Ask the index again: the chunks do not hold what was asked."""
    RE_ANSWER = "re_answer"
    """Ask the model again, on the same chunks."""
    NARROW = "narrow"
    """Show only the sentences that are supported."""
    ESCALATE = "escalate"
    """Ask a person."""


class FailureMode(StrEnum):
    """What went wrong in an answer with a hallucinated claim, so that the right people mend it."""

    GROUNDING_FAILURE = "grounding_failure"
    """The evidence was there and was misread, contradicted, miscited or cited with an invented id."""
    CONFLATION = "conflation"
    """The evidence was there, but an attribute of one thing was bound to another."""
    RETRIEVAL_MISS = "retrieval_miss"
    """The evidence does not hold what the answer asserts."""


class ClaimSource(StrEnum):
    """How the text of a claim came about."""

    ATOMIC = "atomic"
    """The sentence was already one fact; no LLM was asked."""
    LLM = "llm"
    """A claim of the LLM that passed every check."""
    SENTENCE = "sentence"
    """The sentence itself, because what the LLM gave was refused; `decompose_outcome` says why."""


class SampleSource(StrEnum):
    """Where a sampled answer comes from."""

    LOG = "log"
    GENERATED = "generated"


_string, _int, _float = pa.string(), pa.int32(), pa.float32()
_strings = pa.list_(_string)
_when = pa.timestamp("us", tz="UTC")

CHUNK = pa.struct([("id", _string), ("text", _string), ("score", pa.float64())])
TOKEN_LOGPROB = pa.struct([("token", _string), ("logprob", _float)])
PROVIDER_CITATION = pa.struct([("start", _int), ("end", _int), ("text", _string), ("chunk_ids", _strings)])
ORIGIN = pa.struct(
    [
        (name, _string)
        for name in (
            "system",
            "project",
            "trace_id",
            "span_id",
            "retriever_span_id",
            "session_id",
            "evidence_rule",
        )
    ]
)
SPAN = pa.struct([("chunk_index", _int), ("start", _int), ("end", _int)])
"""A piece of a premise: `chunks[chunk_index].text[start:end]`."""


def _schema(*fields: tuple[str, pa.DataType] | tuple[str, pa.DataType, bool]) -> pa.Schema:
    """A schema of (name, type) nullable columns and (name, type, False) columns without nulls."""
    return pa.schema([pa.field(*field) for field in fields])


# The log as every stage sees it, whatever the user's columns were called. One row is one answer.
LOG = _schema(
    ("request_id", _string, False),
    ("question", _string),
    ("answer", _string),
    ("chunks", pa.list_(CHUNK), False),
    ("samples", _strings),
    ("token_logprobs", pa.list_(TOKEN_LOGPROB)),
    ("prompt_version", _string),
    ("model", _string),
    ("topic", _string),
    ("status", _string),
    ("ts", _when),
    ("answerable", pa.bool_()),
    ("gold_chunk_ids", _strings),
    ("reference_answer", _string),
    ("human_label", _string),
    ("citations", pa.list_(PROVIDER_CITATION)),
    ("origin", ORIGIN),
    ("flags", _strings, False),
)
"""`flags` is ours: `ids_synthetic` (chunk ids are positions, `c0` the first), `request_id_synthetic` (a content hash),
`maybe_truncated` (the answer or a chunk looks cut by a logger), `several_references` (the first was taken). An import
adds: `chunks_joined` (one text was recorded for all chunks), `parts_dropped` (thinking, tool calls or pictures beside the
text), `several_rerankers` (the last one counts), `citation_span_unverified` (a provider citation without a verified
place in the answer), `citation_unresolved` (one whose document is not among the chunks)."""

# A row that could not be read, or that repeats another. Together with the answers: every row of the log.
QUARANTINE = _schema(
    ("file", _string, False),
    ("row_group", _int, False),
    ("row", pa.int64(), False),
    ("request_id", _string),
    ("reason", _string, False),
    ("detail", _string),
)

# One sentence of an answer, in order. Not stored: the stage between the log and the claims.
SENTENCES = _schema(
    ("answer_index", _int, False),
    ("sentence_index", _int, False),
    ("start", _int, False),
    ("end", _int, False),
    ("text", _string, False),
    ("context", _string, False),
    ("block", _string, False),
    ("is_refusal", pa.bool_(), False),
    ("cited_ids", _strings, False),
    ("fabricated_marks", _strings, False),
    ("quotes", _strings, False),
)
"""`answer_index` is the row of the log batch; `start:end` slices the original answer, marks and markup and
all; `text` is what is judged: without citation marks and markup. `context` is what a pronoun may point at:
up to two sentences before. `block` is paragraph, list_item, table_row, quote, code, or one of CLAIMLESS_BLOCKS."""

CLAIMLESS_BLOCKS = frozenset({"heading", "lead_in", "question", "meta"})
"""Blocks of sentences that make no claim. Nor do sentences with `is_refusal`, and those without a letter or digit."""

# One atomic claim of an answer.
CLAIMS = _schema(
    ("request_id", _string, False),
    ("claim_index", _int, False),
    ("sentence_index", _int, False),
    ("start", _int, False),
    ("end", _int, False),
    ("text", _string, False),
    ("source", _string, False),
    ("decompose_outcome", _string, False),
    ("unjudgeable", _string),
    ("cited_ids", _strings, False),
    ("fabricated_marks", _strings, False),
    ("quotes", _strings, False),
    ("duplicate_of", _int),
)
"""`start:end` is the claim's sentence in the original answer. `decompose_outcome` is `ok`, `atomic` or the
named reason for a fallback. `unjudgeable` is null, or why no judge may see the claim (`code`). `duplicate_of` is the
claim_index of the first claim of the answer that says the same; null for that one, and for a claim that nothing repeats."""

# One (premise, claim) pair with the judge's three probabilities, or one claim that no pair could be made of.
SCORES = _schema(
    ("request_id", _string, False),
    ("claim_index", _int, False),
    ("premise", pa.list_(SPAN), False),
    ("sample_index", _int),
    ("is_cited", pa.bool_(), False),
    ("overlap", _float),
    ("n_tokens", _int),
    ("p_entailment", _float),
    ("p_neutral", _float),
    ("p_contradiction", _float),
    ("rival", _string),
    ("p_rival", _float),
    ("error", _string),
)
"""`premise` holds one span for a passage, several where sentences were joined, and spans with chunk_index -1 into the
sample `sample_index` for a sample pair. Where `error` is set (`claim_too_long`, `nan`, `no_context`, `unknown_script`, `code`)
the probabilities are null. `rival` is another value of the premise, of the kind of a value of the claim, and `p_rival` the
probability that the premise entails the claim with that value in its place; of several the one with the highest."""

# One sampled answer to a high-risk question. Keyed by content and generator, never by the judge.
SAMPLES = _schema(
    ("request_id", _string, False),
    ("content_key", _string, False),
    ("sample_index", _int, False),
    ("text", _string),
    ("source", _string, False),
    ("outcome", _string, False),
)
"""`outcome` is `ok`, or why the text is not usable: `refusal`, `empty`, `length`, `deadline`, `error`."""

# What the referee replied of one escalated claim, in one order of its windows, or of a whole answer. Replies cannot be made
# again the same.
REFEREE = _schema(
    ("request_id", _string, False),
    ("claim_index", _int),
    ("turn", _int, False),
    ("reasons", _strings, False),
    ("prompt_key", _string, False),
    ("reply", _string),
    ("finish_reason", _string, False),
    ("outcome", _string, False),
    ("said", _string),
    ("window", SPAN),
    ("span", _string),
    ("grade", _int),
)
"""`claim_index` is null for a whole answer, whose `grade` is 1, 3 or 5 where its `outcome` is `ok`. `turn` 0 shows the windows in document order, 1 in reverse. `reasons` are `near_threshold`, `high_risk`, `sampled`. `outcome` is
`ok`, or why the reply is not used: `not_json`, `wrong_shape`, `unknown_window`, `span_not_found`, `span_too_short`,
`span_lacks_value`, `injection` (not asked: the claim or every window speaks to a model), or the finish reason of a reply without text."""

# The verdict on one claim, and all that it rests on.
VERDICTS = _schema(
    ("request_id", _string, False),
    ("claim_index", _int, False),
    ("sentence_index", _int, False),
    ("start", _int, False),
    ("end", _int, False),
    ("claim", _string, False),
    ("verdict", _string, False),
    ("reason", _string),
    ("decided_by", _string, False),
    ("hallucination_type", _string),
    ("citation_state", _string),
    ("cited_ids", _strings, False),
    ("fabricated_marks", _strings, False),
    ("evidence_chunk_id", _string),
    ("evidence_start", _int),
    ("evidence_end", _int),
    ("evidence_quote", _string),
    ("support", _float),
    ("p_entailment", _float),
    ("p_neutral", _float),
    ("p_contradiction", _float),
    ("conflict", pa.bool_(), False),
    ("contradicting_chunk_id", _string),
    ("contradicting_start", _int),
    ("contradicting_end", _int),
    ("contradicting_quote", _string),
    ("missing_values", _strings, False),
    ("rival", _string),
    ("consistency", _float),
    ("n_samples_usable", _int, False),
    ("low_consistency", pa.bool_(), False),
    ("referee_outcome", _string),
    ("referee_said", _string),
    ("referee_span", _string),
    ("n_pairs", _int, False),
    ("source", _string, False),
    ("decompose_outcome", _string, False),
    ("duplicate_of", _int),
)

# One answer: what its claims add up to, and what the policy would have done.
ANSWERS = _schema(
    ("request_id", _string, False),
    ("question", _string),
    ("answer", _string),
    ("prompt_version", _string),
    ("model", _string),
    ("topic", _string),
    ("ts", _when),
    ("state", _string, False),
    ("groundedness", pa.float64()),
    ("citation_precision", pa.float64()),
    ("hallucinated", pa.bool_()),
    ("action", _string, False),
    ("action_reason", _string, False),
    ("next_step", _string, False),
    ("failure_mode", _string),
    ("n_claims", _int, False),
    ("n_repeats", _int, False),
    ("n_scored", _int, False),
    ("n_supported", _int, False),
    ("n_contradicted", _int, False),
    ("n_unsupported", _int, False),
    ("n_unscored", _int, False),
    ("n_cited_claims", _int, False),
    ("n_citation_ok", _int, False),
    ("n_fabricated_citations", _int, False),
    ("n_conflicts", _int, False),
    ("n_low_consistency", _int, False),
    ("revised_answer", _string),
    ("retrieval_margin", pa.float64()),
    ("n_hedges", _int, False),
    ("n_low_probability_tokens", _int),
    ("high_risk_reasons", _strings, False),
    ("n_samples", _int, False),
    ("referee_grade", _int),
    ("referee_grade_outcome", _string),
    ("injection_suspected", pa.bool_(), False),
    ("answerable", pa.bool_()),
    ("recall_at_k", pa.float64()),
    ("reference_overlap", pa.float64()),
    ("human_label", _string),
    ("flags", _strings, False),
    ("origin", ORIGIN),
)

# One rate of one group of answers, with what it was counted over.
METRICS = _schema(
    ("grouping", _string, False),
    ("prompt_version", _string),
    ("model", _string),
    ("topic", _string),
    ("metric", _string, False),
    ("value", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("numerator", pa.float64(), False),
    ("denominator", pa.float64(), False),
    ("per", _string, False),
)
"""`per` names the denominator (`scored claims`, `answers`). `low` and `high` bound 95% of bootstrap
resamples of whole answers; value and bounds are null where the denominator is 0."""

# What came back for one prompt of an LLM; `n` rows a prompt when `n` completions were asked for.
REPLIES = _schema(
    ("prompt_index", _int, False),
    ("sample_index", _int, False),
    ("text", _string),
    ("finish_reason", _string, False),
    ("n_prompt_tokens", _int, False),
    ("n_output_tokens", _int, False),
)
"""`finish_reason` is `stop`, `length` (token limit), `deadline`, `prompt_too_long` or `error`; `text` is null
for the last three."""


def conform(table: pa.Table, schema: pa.Schema, *, where: str) -> pa.Table:
    """`table` with exactly the columns, order, types and null rules of `schema`.

    Casts are safe ones (no overflow, no lost fraction). Empty in, empty out with the schema.

    Raises:
        OutputError: a column is missing, unknown, of another kind, or null where no null may be.
    """
    names = table.column_names
    missing = [name for name in schema.names if name not in names]
    surplus = [name for i, name in enumerate(names) if name not in schema.names or name in names[:i]]
    if missing or surplus:
        raise OutputError(
            f"{where}: columns missing {missing!r}, unknown or repeated {surplus!r}; "
            f"expected exactly {schema.names!r}"
        )
    for field in schema:  # before the cast: Arrow would refuse the nulls without counting them
        n_null = table.column(field.name).null_count
        if n_null and not field.nullable:
            raise OutputError(f"{where}: column {field.name!r} has {n_null} nulls, expected none")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as err:
        raise OutputError(f"{where}: a column does not fit its schema: {err}") from err
