"""What samples say about an answer: AUROC of consistency on labelled answers, for one to three samples and three measures.

    python benchmarks/bench_consistency.py ../shared/data

Sentences of an answer stand for its claims. `names, numbers`: the share of them that the samples hold; `words`: the share of
all words; `nli`: the mean over sentences and samples of P(entailment), the sample whole, and with --windows in windows of three
sentences; `both`: names and numbers first, NLI where an answer has none or ties. Intervals bound 95% of resamples of whole answers.
Prints an aligned table and one line of JSON last.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import _harness
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _quality_judge import CachedJudge
from _quality_stats import auroc

from claimscore.jobs.config import SegmentConfig
from claimscore.jobs.config_file import load_card
from claimscore.jobs.names import has_name, names_of
from claimscore.jobs.segment import sentence_spans
from claimscore.jobs.values import held, mentions, values_of

ROOT = Path(__file__).resolve().parent.parent
KS = (1, 2, 3)
MEASURES = ("names, numbers", "words", "nli, whole sample", "both", "nli, windows")
_TIE = 0.05
"""Weight of NLI beside names and numbers: it orders answers that these leave equal."""


def labelled_answers(folder: Path, limit: int | None) -> list[dict[str, Any]]:
    """The rows with a label and samples of the same model."""
    rows = pq.read_table(folder / "self_consistency_dev.parquet").to_pylist()
    return [row for row in rows if row["label"] and row["same_model"] and row["samples"]][:limit]


def sentences_of(texts: list[str]) -> list[list[str]]:
    """The sentences of each text."""
    spans = sentence_spans(pa.array(texts, pa.string()), SegmentConfig()).to_pylist()
    return [
        [text[s["start"] : s["end"]].strip() for s in of_text if text[s["start"] : s["end"]].strip()]
        for text, of_text in zip(texts, spans, strict=True)
    ]


def held_share(answer: str, sample: str) -> float:
    """The share of the answer's names and numbers that the sample holds; NaN where it has none."""
    known = values_of(sample)
    found = [has_name(name, sample) for name in names_of(answer)]
    found += [held(mention, known) for mention in mentions(answer) if mention.demanded]
    return float(np.mean(found)) if found else float("nan")


def word_share(answer: str, sample: str) -> float:
    """The share of the answer's distinct words that the sample holds."""
    wanted, held_words = (set(re.findall(r"\w+", text.lower())) for text in (answer, sample))
    return len(wanted & held_words) / max(1, len(wanted))


def entailments(
    judge: CachedJudge, sentences: list[str], samples: list[str], windows: list[list[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean P(entailment) over the sentences, shape (samples,): of the whole sample, and of its best window."""
    claims = judge.ids(sentences)
    whole, best = [], []
    for sample, pieces in zip(samples, windows, strict=True):
        premises = judge.ids([sample, *pieces])
        longest = judge.card.max_pair_tokens - 3 - max(map(len, claims))
        pairs = [(premise[:longest], claim) for premise in premises for claim in claims]
        columns = [pa.array(column, pa.list_(pa.int32())) for column in zip(*pairs, strict=True)]
        probs = judge.probabilities(*columns)[:, 0].reshape(len(premises), len(claims))
        whole.append(probs[0].mean())
        best.append(probs[1:].max(axis=0).mean() if pieces else np.nan)
    return np.array(whole), np.array(best)


def measure(row: dict[str, Any], judge: CachedJudge | None, *, in_windows: bool) -> np.ndarray:
    """Consistency of one answer, shape (ks, measures); NaN for those of NLI without a judge."""
    samples = row["samples"][: max(KS)]
    (sentences,) = sentences_of([row["answer"]])
    windows = [
        [" ".join(parts[k : k + 3]) for k in range(0, max(1, len(parts) - 1), 2)]
        for parts in sentences_of(samples)
    ]
    windows = windows if in_windows else [[] for _ in samples]
    whole = best = np.full(len(samples), np.nan)
    if judge is not None:
        whole, best = entailments(judge, sentences, samples, windows)
    shares = np.array([held_share(row["answer"], sample) for sample in samples])
    words = np.array([word_share(row["answer"], sample) for sample in samples])
    out = []
    for k in KS:
        nli = whole[:k].mean()
        first = shares[:k].mean()
        both = nli if np.isnan(first) else (first + _TIE * nli) / (1 + _TIE)
        # Without a name or number nothing speaks for or against: the middle, so that no answer is left out.
        out.append([0.5 if np.isnan(first) else first, words[:k].mean(), nli, both, best[:k].mean()])
    return np.array(out)


def figures(labels: np.ndarray, scores: np.ndarray, n_resamples: int) -> dict[str, Any]:
    """AUROC with its 95% interval."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n_resamples):
        rows = rng.integers(0, len(labels), len(labels))
        found.append(auroc(labels[rows], scores[rows]))
    low, high = np.nanquantile(found, [0.025, 0.975])
    return {"auroc": auroc(labels, scores), "low": float(low), "high": float(high)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with self_consistency_dev.parquet")
    parser.add_argument("--card", type=Path, default=ROOT / "configs/judges/demo.toml", help="judge card")
    parser.add_argument("--no-nli", action="store_true", help="names, numbers and words alone: no judge")
    parser.add_argument("--windows", action="store_true", help="NLI over windows of the samples too")
    parser.add_argument("--limit", type=int, help="answers at most")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    arguments = parser.parse_args()
    judge = None if arguments.no_nli else CachedJudge(load_card(arguments.card), dtype=arguments.dtype)
    rows = labelled_answers(arguments.data, arguments.limit)
    labels = np.array([row["label"] == "factual" for row in rows])
    scores = np.array([measure(row, judge, in_windows=arguments.windows) for row in rows])
    results = {
        f"{name}, k={k}": figures(labels, scores[:, i, j], arguments.resamples)
        for j, name in enumerate(MEASURES[: 2 if judge is None else None if arguments.windows else -1])
        for i, k in enumerate(KS)
    }
    lines: list[list[object]] = [["measure", "AUROC", "low", "high"]]
    lines += [[name, f["auroc"], f["low"], f["high"]] for name, f in results.items()]
    print(_harness.table([[f"{c:.3f}" if isinstance(c, float) else c for c in line] for line in lines]))
    counts = {"n_answers": len(rows), "n_factual": int(labels.sum()), "judge": judge and judge.card.name}
    refusals = {"samples_without_words": sum(not s.strip() for r in rows for s in r["samples"])}
    result = _harness.card("consistency") | counts | refusals | {"results": results}
    _harness.finish(json.loads(json.dumps(result)), record=arguments.record)


if __name__ == "__main__":
    main()
