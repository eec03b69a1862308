"""Decomposers against human claims: what they keep of a sentence, what they add, and what they cost.

    python benchmarks/bench_decompose.py ../shared/data --zero-shot demo-models/smollm2

Coverage: the share of human claims that the joined output entails; focus: the share of output claims that sentence and context
entail; F: their harmonic mean. The judge of the card says what entails, and is no person: the human claims themselves are a row, as
the ceiling. `raw` is what the LLM replied, `checked` what decompose.py lets through (its checker is the same judge, so focus is
flattered there). Replies are kept under build/, so that a second run loads no LLM. Intervals: resamples of whole documents.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _harness
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _quality_judge import CachedJudge

from claimscore.jobs import decompose, rules
from claimscore.jobs.checkpoint import model_fingerprint
from claimscore.jobs.config import DecomposeConfig, SegmentConfig
from claimscore.jobs.config_file import load_card, load_config
from claimscore.jobs.llm import Llm
from claimscore.jobs.names import names_of
from claimscore.jobs.pipeline import entailment
from claimscore.jobs.records import REPLIES, SENTENCES
from claimscore.jobs.segment import sentence_spans
from claimscore.jobs.values import mentions

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "decompose-cache"
DEMO = ROOT / "demo-models" / "demo-decomposer"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a document with a person's claims, and what it may point back to."""

    source: str
    document: str
    text: str
    context: str
    human: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One decomposer's claims of each sentence, and counts a sentence."""

    claims: list[list[str]]
    counts: dict[str, float]


def sentences_of(folder: Path, n: int) -> list[Sentence]:
    """`n` sentences, sources in turn, in the order of a hash of their ids."""
    rows = pq.read_table(folder / "claim_decomposition_dev.parquet").to_pylist()
    of_source: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: hashlib.sha256(row["id"].encode()).hexdigest()):
        if row["claims"] and len(row["sentence"]) <= 420:
            of_source.setdefault(row["source"].split("_")[0], []).append(row)
    chosen = [rows[k] for k in range(n) for rows in of_source.values() if k < len(rows)][:n]
    return [
        Sentence(
            row["source"].split("_")[0],
            row["document"] or row["id"],
            row["sentence"],
            _context(row),
            tuple(claim for claim in row["claims"] if claim.strip()),
        )
        for row in chosen
    ]


def _context(row: dict[str, Any]) -> str:
    """Up to two sentences before, at most 220 characters, as the segmenter gives it."""
    document, settings = row["document"] or "", SegmentConfig()
    before = document[: max(0, document.find(row["sentence"]))]
    (spans,) = sentence_spans(pa.array([before], pa.string()), settings).to_pylist()
    kept = spans[-settings.context_sentences :]
    text = before[kept[0]["start"] :].strip() if kept else ""
    return text if len(text) <= settings.context_chars else text[-settings.context_chars :].partition(" ")[2]


def by_llm(sentences: Sequence[Sentence], model: Path, judge: CachedJudge, dtype: str) -> dict[str, Output]:
    """Raw and checked claims of a chat model; replies are read from the cache where it has all of them."""
    demo = load_config(ROOT / "configs" / "demo.toml").decompose
    config = dataclasses.replace(demo, model=str(model), dtype=dtype)
    told: dict[str, dict[str, Any]] = {}

    def complete(system: str, users: pa.Array) -> pa.Table:
        replies = _cached_replies(config, system, users)
        told.update({user: replies[k] for k, user in enumerate(users.to_pylist())})
        return pa.Table.from_pylist(replies, schema=REPLIES)

    table, counts = decompose.make_claims(
        _table(sentences),
        pa.array([str(k) for k in range(len(sentences))], pa.string()),
        complete=complete,
        entails=lambda premises, claims: entailment(judge, premises, claims, judge.card.max_pair_tokens),
        config=config,
    )
    checked: list[list[str]] = [[] for _ in sentences]
    for row in table.select(["request_id", "text"]).to_pylist():
        checked[int(row["request_id"])].append(row["text"])
    raw, n_unusable = [], 0
    for sentence in sentences:
        reply = told.get(
            decompose.user_prompt(decompose.fold(sentence.text), decompose.fold(sentence.context))
        )
        claims, outcome = (
            decompose.parse_reply(reply["text"], reply["finish_reason"]) if reply else ([sentence.text], "ok")
        )
        raw.append(claims or [])
        n_unusable += outcome != "ok"
    n_tokens = sum(reply["n_prompt_tokens"] + reply["n_output_tokens"] for reply in told.values())
    cost = {"tokens_a_sentence": n_tokens / len(sentences), "asked_share": counts["n_asked"] / len(sentences)}
    return {
        "raw": Output(raw, cost | {"fallback_share": n_unusable / max(1, counts["n_asked"])}),
        "checked": Output(
            checked, cost | {"fallback_share": counts["n_fallback"] / max(1, counts["n_asked"])}
        ),
    }


def _cached_replies(config: DecomposeConfig, system: str, users: pa.Array) -> list[dict[str, Any]]:
    key = [model_fingerprint(config.model), config.dtype, system, users.to_pylist()]
    path = CACHE / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]}.json"
    if not path.exists():
        llm = Llm(config.model, max_model_tokens=config.max_model_tokens, dtype=config.dtype)
        options = {"max_tokens": config.max_output_tokens, "deadline_s": config.deadline_s}
        replies = llm.complete(system, users, schema=decompose.claims_schema(config), **options)
        llm.close()
        CACHE.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(replies.to_pylist()))
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def _table(sentences: Sequence[Sentence]) -> pa.Table:
    rows = [
        {
            "answer_index": k,
            "sentence_index": 0,
            "start": 0,
            "end": len(s.text),
            "text": s.text,
            "context": s.context,
        }
        | {"block": "paragraph", "is_refusal": False, "cited_ids": [], "fabricated_marks": [], "quotes": []}
        for k, s in enumerate(sentences)
    ]
    return pa.Table.from_pylist(rows, schema=SENTENCES)


def figures(
    sentences: Sequence[Sentence], output: Output, judge: CachedJudge, threshold: float
) -> dict[str, Any]:
    """Coverage, focus, F with intervals; values and names kept; claims with a new one; claims a sentence."""
    covered, focused = [], []
    for sentence, claims in zip(sentences, output.claims, strict=True):
        source = f"{sentence.context} {sentence.text}".strip()
        covered.append(_entailed(judge, " ".join(claims), sentence.human, threshold))
        focused.append(_entailed(judge, source, claims, threshold))
    return {
        **_rates(sentences, covered, focused),
        "number_coverage": _kept(sentences, output.claims, names=False),
        "name_coverage": _kept(sentences, output.claims, names=True),
        "new_value_or_name": _new(sentences, output.claims),
        "claims_a_sentence": sum(map(len, output.claims)) / len(sentences),
        **output.counts,
    }


def _entailed(judge: CachedJudge, premise: str, claims: Sequence[str], threshold: float) -> list[bool]:
    if not premise or not claims:
        return [False] * len(claims)
    columns = pa.array([premise] * len(claims), pa.string()), pa.array(list(claims), pa.string())
    return [bool(p >= threshold) for p in entailment(judge, *columns, judge.card.max_pair_tokens)]


def _rates(
    sentences: Sequence[Sentence], covered: list[list[bool]], focused: list[list[bool]]
) -> dict[str, Any]:
    sums = np.array([[sum(c), len(c), sum(f), len(f)] for c, f in zip(covered, focused, strict=True)], float)
    _, of_document = np.unique([s.document for s in sentences], return_inverse=True)
    by_document = np.array([sums[of_document == k].sum(axis=0) for k in range(of_document.max() + 1)])
    rng, n = np.random.default_rng(0), len(by_document)
    resampled = [_f(by_document[rng.integers(0, n, n)].sum(axis=0)) for _ in range(1_000)]
    low, high = np.nanquantile(resampled, [0.025, 0.975], axis=0)
    return {
        name: [float(v), float(lo), float(hi)]
        for name, v, lo, hi in zip(("coverage", "focus", "f"), _f(sums.sum(axis=0)), low, high, strict=True)
    }


def _f(sums: np.ndarray) -> tuple[float, float, float]:
    coverage, focus = sums[0] / max(1.0, sums[1]), sums[2] / max(1.0, sums[3])
    return coverage, focus, 2 * coverage * focus / max(1e-9, coverage + focus)


def _kept(sentences: Sequence[Sentence], claims: list[list[str]], *, names: bool) -> float:
    """The share of the sentences' names, or of their values, that their claims hold; one count a distinct one."""
    texts = pa.array([s.text for s in sentences], pa.string())
    joined = pa.array([" ".join(of_sentence) for of_sentence in claims], pa.string())
    if names:
        lost, n = rules.missing_names(texts, joined), sum(len(names_of(s.text)) for s in sentences)
    else:
        lost = rules.missing_values(texts, joined, pa.nulls(len(texts), pa.string()))
        n = sum(len({s.text[m.start : m.end] for m in mentions(s.text) if m.demanded}) for s in sentences)
    return 1 - sum(map(len, lost.to_pylist())) / max(1, n)


def _new(sentences: Sequence[Sentence], claims: list[list[str]]) -> float:
    """The share of claims with a name or value that neither the sentence nor its context holds."""
    flat = [(claim, f"{s.context} {s.text}") for s, of in zip(sentences, claims, strict=True) for claim in of]
    if not flat:
        return float("nan")
    texts, sources = (pa.array(list(column), pa.string()) for column in zip(*flat, strict=True))
    values = rules.missing_values(texts, sources, pa.nulls(len(texts), pa.string())).to_pylist()
    names = rules.missing_names(texts, sources).to_pylist()
    return float(np.mean([bool(v or n) for v, n in zip(values, names, strict=True)]))


def measured(arguments: argparse.Namespace, sentences: list[Sentence], judge: CachedJudge) -> dict[str, Any]:
    """Every decomposer, over all sentences and by source."""
    free = {"tokens_a_sentence": 0.0, "asked_share": 0.0, "fallback_share": 0.0}
    outputs = {
        "human claims": Output([list(s.human) for s in sentences], free),
        "the sentence itself": Output([[s.text] for s in sentences], free),
    }
    for name, model in (("demo adapter", arguments.adapter), ("zero-shot", arguments.zero_shot)):
        if model is not None:
            outputs |= {
                f"{name}, {kind}": output
                for kind, output in by_llm(sentences, model, judge, arguments.llm_dtype).items()
            }
    results = {}
    for name, output in outputs.items():
        results[name] = figures(sentences, output, judge, arguments.threshold)
        for source in sorted({s.source for s in sentences}):
            rows = [k for k, s in enumerate(sentences) if s.source == source]
            part = Output([output.claims[k] for k in rows], {})
            some = figures([sentences[k] for k in rows], part, judge, arguments.threshold)
            results[name][source] = {key: some[key] for key in ("coverage", "focus", "f", "number_coverage")}
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with claim_decomposition_dev.parquet")
    parser.add_argument("--sentences", type=int, default=120)
    parser.add_argument(
        "--card", type=Path, default=ROOT / "configs/judges/demo.toml", help="judge and checker"
    )
    parser.add_argument(
        "--threshold", type=float, default=0.5, help="P(entailment) from which on the judge entails"
    )
    parser.add_argument("--adapter", type=Path, default=DEMO, help="a model folder tuned to decompose")
    parser.add_argument("--zero-shot", type=Path, help="a chat model folder that is not")
    parser.add_argument("--no-llm", action="store_const", const=None, dest="adapter", help="rules alone")
    parser.add_argument("--llm-dtype", default="bfloat16")
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    arguments = parser.parse_args()
    judge = CachedJudge(load_card(arguments.card))
    sentences = sentences_of(arguments.data, arguments.sentences)
    results = measured(arguments, sentences, judge)
    heads = (
        "coverage",
        "focus",
        "f",
        "number_coverage",
        "name_coverage",
        "new_value_or_name",
        "claims_a_sentence",
    )
    heads += ("fallback_share", "tokens_a_sentence")
    lines: list[list[object]] = [["decomposer", *heads]]
    for name, found in results.items():
        cells = [found[head][0] if isinstance(found[head], list) else found[head] for head in heads]
        lines.append([name, *(f"{cell:.3f}" for cell in cells)])
    print(_harness.table(lines))
    counts = {"n_sentences": len(sentences), "n_documents": len({s.document for s in sentences})}
    result = _harness.card("decompose") | counts | {"judge": judge.card.name, "results": results}
    _harness.finish(result, record=arguments.record)


if __name__ == "__main__":
    main()
