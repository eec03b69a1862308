"""Write the reference of every table (jobs/TABLES.md) and column from `claimscore.jobs.records`.

`python scripts/table_docs.py` prints the text; with a file name it puts the text between the markers of that file.
Types and null rules come from the schemas; only what a column means is written here, once.
"""

import argparse
import ast
import enum
import inspect
import itertools
import sys
from pathlib import Path

import pyarrow as pa

from claimscore.jobs import records
from claimscore.jobs.metrics import METRIC_NAMES

BEGIN, END = "<!-- tables:begin -->", "<!-- tables:end -->"


def _one_of(words: type[enum.StrEnum]) -> str:
    return ", ".join(f"`{word}`" for word in words)


TABLES: dict[str, tuple[pa.Schema, str]] = {
    "log": (records.LOG, "The input, one row an answer, whatever your columns are called."),
    "claims": (records.CLAIMS, "One row an atomic claim of an answer."),
    "scores": (records.SCORES, "One row a pair of a premise and a claim, with what the judge says of it."),
    "samples": (records.SAMPLES, "One row a sampled answer to a high-risk question."),
    "referee": (
        records.REFEREE,
        "One row what the referee replied of a claim in doubt, in one order of its windows, or of a whole answer; only with a `[referee] card`.",
    ),
    "verdicts": (records.VERDICTS, "One row the verdict on a claim, with the evidence that it rests on."),
    "answers": (
        records.ANSWERS,
        "One row an answer: what its claims add up to, and what the policy would have done.",
    ),
    "metrics": (records.METRICS, "One row a rate of a group of answers of the day."),
    "quarantine": (
        records.QUARANTINE,
        "One row a row of the log that could not be used, or that repeats another.",
    ),
}
"""Every table that a user meets: its schema and what one row is."""

WORDS: dict[str, type[enum.StrEnum]] = {
    "verdict": records.Verdict,
    "decided_by": records.Rule,
    "hallucination_type": records.HallucinationType,
    "citation_state": records.CitationState,
    "state": records.AnswerState,
    "action": records.Action,
    "next_step": records.NextStep,
    "failure_mode": records.FailureMode,
}
"""Columns of verdicts and answers that hold one of a few words."""

# What a column means in every table that does not say otherwise below.
COMMON = {
    "request_id": "The answer's id in the log; unique within a day",
    "claim_index": "Number of the claim in its answer, from 0",
    "sentence_index": "Number of the claim's sentence in its answer, from 0",
    "sample_index": "Number of the sample, from 0",
    "start": "First code point of the claim's sentence in the answer",
    "end": "Code point after the claim's sentence in the answer",
    "cited_ids": "Ids of the retrieved chunks that the claim's sentence cites",
    "fabricated_marks": "Citation marks that point at nothing that was retrieved, as they stand",
    "decompose_outcome": "`ok`, `atomic` or why what the LLM gave was refused",
    "prompt_version": "Version of the answering prompt",
    "model": "The answering model",
    "topic": "Topic of the question",
    "ts": "When the answer was given",
    "answerable": "Gold: whether the chunks of the corpus can answer the question",
    "human_label": "Gold: `supported` or `ok`, `not_supported` or `hallucinated`, of the whole answer",
    "flags": "What we made up: `ids_synthetic` (chunk ids are positions, `c0` the first), `request_id_synthetic` (a content hash)",
    "origin": "Where the row comes from in a tracing tool, and the rule by which its evidence was found",
    "question": "The user's question",
    "answer": "The answer as the user saw it",
    "p_entailment": "The judge's probability that the premise entails the claim, or the claim with its values in the premise's writing",
    "p_neutral": "The judge's probability that it does neither",
    "p_contradiction": "The judge's probability that the premise contradicts the claim",
}

COLUMNS: dict[str, dict[str, str]] = {
    "log": {
        "chunks": "The evidence set, in the order the model was given it; `score` is the retriever's, higher is better",
        "samples": "Other answers sampled for the same question and chunks",
        "token_logprobs": "Tokens of the answer with their log-probabilities",
        "status": "Status that the service logged; some of them mean refusal (`[segment] refusal_statuses`)",
        "gold_chunk_ids": "Gold: ids of the chunks that hold the answer",
        "reference_answer": "Gold: a right answer",
        "citations": "Structured citations of a provider, by code points; they take the place of marks in the text",
    },
    "claims": {
        "text": "The claim, without citation marks and markup",
        "source": f"How the text came about: {_one_of(records.ClaimSource)}",
        "unjudgeable": "Why no judge may see the claim (`code`); null: it is judged",
        "quotes": "Quotations in the claim's sentence",
        "duplicate_of": "`claim_index` of the first claim of the answer that says the same, in the same words or so that each entails the other; null: none does",
    },
    "scores": {
        "premise": "The pieces of chunks that are the premise: one, or several joined; `chunk_index` -1 is the sample",
        "sample_index": "The sample that is the premise; null: chunks are",
        "is_cited": "Whether the claim cites a chunk of the premise",
        "overlap": "Share of the claim's tokens that the premise holds",
        "n_tokens": "Tokens of the pair with its special tokens",
        "rival": "Another value of the premise that the judge believes most in the place of the claim's own; null: none tried",
        "p_rival": "The judge's probability that the premise entails the claim with `rival` in it",
        "error": "Why there are no probabilities (`claim_too_long`, `nan`, `no_context`, `code`); null: there are",
    },
    "samples": {
        "content_key": "Hash of question and chunks: what the sample depends on, and no judge",
        "text": "The sampled answer; null where there is none",
        "source": f"Where it comes from: {_one_of(records.SampleSource)}",
        "outcome": "`ok`, or why it is not usable: `refusal`, `empty`, `length`, `deadline`, `error`",
    },
    "referee": {
        "claim_index": "Number of the claim in its answer, from 0; null: the whole answer was graded (`[referee] grade_answers`)",
        "turn": "0: the windows in document order; 1: in reverse",
        "reasons": "Why it was asked: `near_threshold`, `high_risk`, `sampled` (for comparison; decides nothing); empty for a whole answer",
        "prompt_key": "Hash of all that the reply depends on: weights, settings and prompt; empty: it was not asked",
        "reply": "What came back, as it was; null: nothing",
        "finish_reason": "`stop`, `length`, `deadline`, `prompt_too_long`, `error`, `not_asked`",
        "outcome": "`ok`, or why the reply is not used: `not_json`, `wrong_shape`, `unknown_window`, `span_not_found`, `span_too_short`, `span_lacks_value`, `injection` (claim or windows, or anything of an answer to be graded, speak to a model: not asked), or the finish reason; of a grade also `unknown_source`, `span_lacking` (no stretch of the kind that the grade needs) and `span_in_passages` (a stretch said to be in no passage is in one)",
        "said": f"{_one_of(records.RefereeWord)}; null: nothing readable",
        "window": "The window that it named, as a piece of a chunk; null: none",
        "span": "What it quoted from that window; of a whole answer the stretches that decided, of passages or of the answer, joined by […]",
        "grade": "Of a whole answer: 5 all of it is in the passages, 3 its main points are, 1 most of it is not; null: of a claim, or not usable (`outcome`)",
    },
    "verdicts": {
        "claim": "The claim that was judged",
        "verdict": _one_of(records.Verdict),
        "reason": "Why a claim is `unscored`; null otherwise",
        "decided_by": f"The rule that decided: {_one_of(records.Rule)}",
        "hallucination_type": f"{_one_of(records.HallucinationType)}; null: none. Intrinsic: the evidence contradicts it. Extrinsic: the evidence does not say it. "
        "Confabulation: it holds a value or name that stands nowhere in the evidence. Conflation: all of it stands there, never together. Fabricated citation: it "
        "cites a chunk that was not retrieved. Miscitation: the evidence supports it, the cited chunk does not",
        "citation_state": f"{_one_of(records.CitationState)}; null: nothing to say",
        "evidence_chunk_id": "Chunk of the premise that decided, or that came nearest",
        "evidence_start": "First code point of that premise in the chunk's text",
        "evidence_end": "Code point after that premise in the chunk's text",
        "evidence_quote": "Text of that premise; pieces of several chunks are joined by […]",
        "support": "What was compared with the card's entailment threshold: P(entailment), or what its combiner makes of the pair",
        "p_entailment": "The judge's probability that this premise entails the claim",
        "p_neutral": "The judge's probability that it does neither",
        "p_contradiction": "The judge's probability that this premise contradicts the claim",
        "conflict": "One chunk entails the claim and another contradicts it",
        "contradicting_chunk_id": "Chunk that contradicts the claim; null: none does",
        "contradicting_start": "First code point of the contradicting premise in that chunk's text",
        "contradicting_end": "Code point after the contradicting premise in that chunk's text",
        "contradicting_quote": "Text of the contradicting premise",
        "missing_values": "Numbers, dates, units and percentages of the claim that its evidence lacks",
        "rival": "The value that the premise gives instead, where `decided_by` is `rival_value`; null otherwise",
        "consistency": "Share of the usable samples that entail the claim; null: none usable",
        "n_samples_usable": "Samples behind `consistency`",
        "low_consistency": "`consistency` is below `[verdicts] low_consistency`; never changes the verdict",
        "referee_outcome": "`ok`, or why the referee's reply was not used (see `referee`; `orders_disagree`: the two orders of its windows gave two verdicts); null: it was not asked",
        "referee_said": f"What it said, whether or not it was used: {_one_of(records.RefereeWord)}; null: nothing readable",
        "referee_span": "What it quoted from its window",
        "n_pairs": "Pairs that the judge scored for the claim",
        "source": f"How the claim's text came about: {_one_of(records.ClaimSource)}",
        "duplicate_of": "`claim_index` of the first claim of the answer that says the same: all of them count once, with the worst of their verdicts; null: none does",
    },
    "answers": {
        "state": f"What the answer is: {_one_of(records.AnswerState)}",
        "groundedness": "`n_supported / n_scored`; null: no claim was scored",
        "citation_precision": "`n_citation_ok / n_cited_claims`; null: no scored claim cites",
        "hallucinated": "A claim is unsupported or contradicted, or a citation fabricated; null: not known, or a refusal",
        "action": f"What the policy would have done: {_one_of(records.Action)}",
        "action_reason": "The first rule of the policy that held",
        "next_step": f"Rung of the fallback ladder beside the action: {_one_of(records.NextStep)}. Narrow: keep what is supported. Re-answer: the evidence is there, "
        "ask again. Re-retrieve: it is not, search again. Escalate: a person should look",
        "failure_mode": f"{_one_of(records.FailureMode)}; null: none. Conflation: facts of the evidence bound wrongly. Grounding failure: it contradicts the evidence, or "
        "cites what does not support it. Retrieval miss: it says what no chunk says",
        "n_claims": "Claims, scored and unscored; those that say the same (`duplicate_of`) count once here and in all counts and rates below, with the worst of their verdicts: contradicted, unsupported, unscored, supported",
        "n_repeats": "Claims that say again what an earlier one said: rows of `verdicts` that no other count holds",
        "n_scored": "Claims with a verdict other than `unscored`",
        "n_supported": "Claims `supported`",
        "n_contradicted": "Claims `contradicted`",
        "n_unsupported": "Claims `unsupported`",
        "n_unscored": "Claims `unscored`",
        "n_cited_claims": "Scored claims with a citation, found or fabricated; of claims that say the same, one with a citation is enough",
        "n_citation_ok": "Claims with citation state `ok`; of claims that say the same, all that cite",
        "n_fabricated_citations": "Different citation marks that point at nothing that was retrieved",
        "n_conflicts": "Claims with a conflict",
        "n_low_consistency": "Claims with low consistency",
        "revised_answer": "For `revise`: the answer with what is not supported marked; for `refuse`: the policy's fallback",
        "retrieval_margin": "Best retrieval score less the second; null: fewer than two scores",
        "n_hedges": "Hedging words of `[policy] hedges` in the answer",
        "n_low_probability_tokens": "Tokens of numbers and names below `[triage] low_logprob`; null: no log-probabilities",
        "high_risk_reasons": "Why samples were asked for; empty: they were not",
        "n_samples": "Samples of the answer, usable or not",
        "referee_grade": "The referee's grade of the whole answer: 5, 3 or 1 (see `referee`); changes nothing else; null: not asked for, or not usable",
        "referee_grade_outcome": "`ok`, or why there is no grade (`outcome` of `referee`); null: it was not asked for",
        "injection_suspected": "The chunks or the answer carry what looks like instructions to a model",
        "recall_at_k": "Share of the gold chunks among the chunks; null: no gold chunks",
        "reference_overlap": "Token F1 of answer and reference answer; null: no reference",
    },
    "metrics": {
        "grouping": "`all`, `prompt_version`, `model`, `topic` or `prompt_version+model+topic`: which of the next three count",
        "prompt_version": "Prompt version of the group",
        "model": "Answering model of the group",
        "topic": "Topic of the group",
        "metric": "Name of the rate: " + ", ".join(f"`{name}`" for name in METRIC_NAMES),
        "value": "`numerator / denominator`; null: the denominator is 0",
        "low": "Lower end of the 95% interval, by a bootstrap of whole answers",
        "high": "Upper end of the 95% interval",
        "numerator": "What was counted or added up",
        "denominator": "What it was counted over",
        "per": "What the denominator counts, in words",
    },
    "quarantine": {
        "file": "File of the log",
        "row_group": "Row group of the file",
        "row": "Row of the file, from 0",
        "request_id": "The row's id, where it could be read",
        "reason": "Why the row is here, in one word",
        "detail": "What was found and what was expected",
    },
}


def describe(table: str, column: str) -> str:
    """What `column` of `table` means.

    Raises:
        KeyError: nothing is written about it.
    """
    return COLUMNS[table].get(column) or COMMON[column]


def type_name(kind: pa.DataType) -> str:
    """An Arrow type in short: `list<struct<id string, text string>>`."""
    if pa.types.is_list(kind):
        return f"list<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name} {type_name(field.type)}' for field in kind)}>"
    return {"double": "float64", "float": "float32", "timestamp[us, tz=UTC]": "timestamp UTC"}.get(
        str(kind), str(kind)
    )


def meanings(words: type[enum.StrEnum]) -> dict[str, str]:
    """Each word of a column and what it means: what records.py says below it, on one line."""
    (cls,) = ast.parse(inspect.getsource(words)).body
    assert isinstance(cls, ast.ClassDef)
    out = {}
    for member, said in itertools.pairwise(cls.body):
        if isinstance(member, ast.Assign) and isinstance(said, ast.Expr):
            out[ast.literal_eval(member.value)] = " ".join(ast.literal_eval(said.value).split()).rstrip(".")
    return out


def _words() -> list[str]:
    lines = ["### words", "", "What the words in these columns mean.", ""]
    lines += ["| column | word | meaning |", "|---|---|---|"]
    for column, words in WORDS.items():
        lines += [f"| `{column}` | `{word}` | {meaning} |" for word, meaning in meanings(words).items()]
    return [*lines, ""]


def render() -> str:
    """The reference as Markdown, one table of columns a table, then their words; ends with a line break."""
    lines = []
    for table, (schema, row) in TABLES.items():
        lines += [f"### {table}", "", row, "", "| column | type | null | meaning |", "|---|---|---|---|"]
        for field in schema:
            null = "yes" if field.nullable else "no"
            lines.append(
                f"| `{field.name}` | `{type_name(field.type)}` | {null} | {describe(table, field.name)} |"
            )
        lines.append("")
    return "\n".join([*lines, *_words()])


def replace_block(text: str, block: str) -> str:
    """`text` with what stands between the two markers replaced by `block`.

    Raises:
        ValueError: the markers are not there once each, in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in after or END in before:
        raise ValueError(f"expected {BEGIN} and then {END}, once each")
    return f"{before}{BEGIN}\n{block}{END}{after}"


def main(arguments: list[str]) -> None:
    """Print the reference, or put it into a file."""
    parser = argparse.ArgumentParser(description="Print the reference of every table, or put it into a file.")
    parser.add_argument("file", nargs="?", type=Path, help=f"a file with the markers {BEGIN} and {END}")
    file = parser.parse_args(arguments).file
    if file is None:
        print(render(), end="")
        return
    try:
        file.write_text(replace_block(file.read_text(encoding="utf-8"), render()), encoding="utf-8")
    except (OSError, ValueError) as err:
        parser.exit(1, f"Error: {file}: {err}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
