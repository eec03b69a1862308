"""Score the verdicts of a run over the demo log against its gold file.

    python scripts/check_demo.py --run demo-run/out

A predicted claim is matched to the gold claim of its sentence that shares most words with it; a claim that is the whole
sentence stands for every fact of it. Recall: the planted hallucinations that some matched claim flags. Precision: the
flagged claims that carry a planted one; a flag where the gold has no claim at all is a false alarm. Intervals are
Wilson's, 95%. Prints aligned tables and, with --json, one line of JSON last. Knows nothing of how verdicts are made.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from claimscore.jobs.errors import InputError
from claimscore.jobs.records import AnswerState, CitationState, HallucinationType, Verdict

ROOT = Path(__file__).resolve().parent.parent
BAD_VERDICTS = {Verdict.CONTRADICTED, Verdict.UNSUPPORTED}
BAD_CITATIONS = {CitationState.FABRICATED, CitationState.MISCITED}
CITATION_TYPES = {HallucinationType.FABRICATED_CITATION, HallucinationType.MISCITATION}
WHOLE_SENTENCE = 0.9
"""Share of the sentence's words from which a claim counts as the whole sentence."""

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_]+")  # a Chinese character is a word of its own
_MARK = re.compile(r"\[[\w^, -]+\]")

Row = dict[str, Any]


def rate(hits: int, n: int) -> Row:
    """A share with its Wilson interval at 95%; nulls where n is 0."""
    if n == 0:
        return {"hits": 0, "n": 0, "value": None, "low": None, "high": None}
    z, p = 1.959964, hits / n
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    return {
        "hits": hits,
        "n": n,
        "value": round(p, 4),
        "low": round(max(0, low), 4),
        "high": round(min(1, high), 4),
    }


def score_against_gold(verdicts: pa.Table, gold: pa.Table) -> Row:
    """Recall of the planted hallucinations, precision of the flags, and both by what was planted.

    Args:
        verdicts: rows of records.VERDICTS; at least request_id, start, end, claim, verdict, hallucination_type and
            citation_state.
        gold: rows of the gold file. Empty tables give rates over 0.

    Returns:
        `recall`, `precision`, `verdict_agreement` (of matched claims with one fact) as rates; `by_type`: type ->
        rate found, with `named`, the rate of those found that also got the type's name; counts `n_claims`,
        `n_unscored`, `n_unmatched`, `n_gold_unmatched`; `missed` and `false_alarms`: the rows themselves.
    """
    facts = gold.to_pylist()
    claims = verdicts.to_pylist()
    carried = match(claims, facts)
    found_by: dict[int, list[Row]] = defaultdict(list)
    for claim, indices in zip(claims, carried, strict=True):
        for index in indices:
            found_by[index].append(claim)
    planted = [i for i, fact in enumerate(facts) if fact["hallucination_type"]]
    found = {i for i in planted if any(finds(claim, facts[i]) for claim in found_by[i])}
    flagged = [(c, indices) for c, indices in zip(claims, carried, strict=True) if is_flagged(c)]
    right = [any(facts[i]["hallucination_type"] for i in indices) for _, indices in flagged]
    single = [(c, facts[i[0]]) for c, i in zip(claims, carried, strict=True) if len(i) == 1]
    scored = [(c, fact) for c, fact in single if c["verdict"] != Verdict.UNSCORED]
    return {
        "recall": rate(len(found), len(planted)),
        "precision": rate(sum(right), len(flagged)),
        "verdict_agreement": rate(sum(c["verdict"] == fact["verdict"] for c, fact in scored), len(scored)),
        "by_type": {str(kind): by_type(kind, facts, planted, found, found_by) for kind in HallucinationType},
        "n_claims": len(claims),
        "n_unscored": sum(c["verdict"] == Verdict.UNSCORED for c in claims),
        "n_unmatched": sum(not indices for indices in carried),
        "n_gold_unmatched": len(facts) - sum(bool(rows) for rows in found_by.values()),
        "missed": [facts[i] | {"predicted": found_by[i]} for i in planted if i not in found],
        "false_alarms": [claim for (claim, _), is_right in zip(flagged, right, strict=True) if not is_right],
    }


def by_type(
    kind: str,
    facts: Sequence[Row],
    planted: Sequence[int],
    found: set[int],
    found_by: Mapping[int, list[Row]],
) -> Row:
    """The recall of one type, and how many of those found were also called by its name."""
    mine = [i for i in planted if facts[i]["hallucination_type"] == kind]
    named = [i for i in mine if i in found and any(c["hallucination_type"] == kind for c in found_by[i])]
    hits = sum(i in found for i in mine)
    return rate(hits, len(mine)) | {"named": rate(len(named), hits)}


def is_flagged(claim: Row) -> bool:
    """True where the job holds something against a claim."""
    return claim["verdict"] in BAD_VERDICTS or claim["citation_state"] in BAD_CITATIONS


def finds(claim: Row, fact: Row) -> bool:
    """True where the flag is one that can mean this fact: a bad citation alone does not find a false statement."""
    return claim["verdict"] in BAD_VERDICTS or (
        fact["hallucination_type"] in CITATION_TYPES and claim["citation_state"] in BAD_CITATIONS
    )


def match(claims: Sequence[Row], facts: Sequence[Row]) -> list[list[int]]:
    """For every predicted claim the indices of the gold facts that it carries; none where no span overlaps."""
    by_answer: dict[str, list[int]] = defaultdict(list)
    for index, fact in enumerate(facts):
        by_answer[fact["request_id"]].append(index)
    out: list[list[int]] = []
    for claim in claims:
        near = [
            i
            for i in by_answer[claim["request_id"]]
            if claim["start"] < facts[i]["end"] and facts[i]["start"] < claim["end"]
        ]
        if not near:
            out.append([])
            continue
        said = words(claim["claim"])
        best = max(near, key=lambda i: overlap(said, words(facts[i]["claim"])))
        sentence = words(_MARK.sub("", facts[best]["sentence"]))
        is_whole = len(said & sentence) >= WHOLE_SENTENCE * len(sentence)
        out.append([i for i in near if facts[i]["start"] == facts[best]["start"]] if is_whole else [best])
    return out


def words(text: str) -> set[str]:
    """The words and numbers of a text, case folded."""
    return set(_WORD.findall(text.casefold()))


def overlap(a: set[str], b: set[str]) -> float:
    """F1 of two sets of words; 0 where both are empty."""
    return 2 * len(a & b) / max(1, len(a) + len(b))


def score_states(answers: pa.Table, gold_answers: pa.Table) -> Row:
    """Refusals found, answers wrongly taken for refusals, empty answers, and hallucinated answers a prompt version.

    Args:
        answers: rows of records.ANSWERS. An answer of the gold that is not among them counts as not found.
        gold_answers: rows of the gold answers file; the state `mixed` is in no rate, since both readings are fair.
    """
    got = {row["request_id"]: row for row in answers.to_pylist()}
    gold = [(row, got.get(row["request_id"], {})) for row in gold_answers.to_pylist()]

    def share(rows: Iterable[tuple[Row, Row]], *states: str) -> Row:
        taken = [found.get("state") in states for _, found in rows]
        return rate(sum(taken), len(taken))

    refused = [(row, found) for row, found in gold if row["state"] == AnswerState.REFUSAL]
    out: Row = {
        "refusals_found": share(refused, AnswerState.REFUSAL),
        "wrong_refusals_found": share([p for p in refused if p[0]["answerable"]], AnswerState.REFUSAL),
        "answers_taken_for_refusals": share(
            [p for p in gold if p[0]["state"] == "scored"], AnswerState.REFUSAL
        ),
    }
    for state in (AnswerState.EMPTY_ANSWER, AnswerState.NO_CONTEXT):
        out[f"{state}_found"] = share([p for p in gold if p[0]["state"] == state], state)
    for version in sorted({row["prompt_version"] for row, _ in gold}):
        rows = [(r, f) for r, f in gold if r["prompt_version"] == version and r["state"] == "scored"]
        out[f"hallucinated_{version}_gold"] = rate(sum(r["hallucinated"] for r, _ in rows), len(rows))
        out[f"hallucinated_{version}_job"] = rate(
            sum(bool(f.get("hallucinated")) for _, f in rows), len(rows)
        )
    return out


def read_table(run: Path, table: str, series: str | None) -> pa.Table:
    """A table of one series of a run, all dates; not named: the series that dashboards read.

    Raises:
        InputError: no such table, or no such series of it.
    """
    folder, pointer = run / "tables" / table, run / "state" / "current.json"
    found = sorted(path.name.removeprefix("judge=") for path in folder.glob("judge=*"))
    current = json.loads(pointer.read_bytes())["series"] if pointer.is_file() else None
    wanted = series or (current if current in found else None) or (found[0] if len(found) == 1 else None)
    if wanted not in found:
        raise InputError(f"{folder}: series {found!r}, expected {series or 'one'}; name one with --series")
    files = sorted((folder / f"judge={wanted}").glob("date=*/*.parquet"))
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])


SENTENCES = {
    "recall": "Of the planted hallucinations, how many a flagged claim of their sentence finds:",
    "precision": "Of the flagged claims, how many carry a planted hallucination:",
    "verdict_agreement": "Of the claims that state one fact, how many have the verdict that the gold has:",
    "recall by type": "Recall by what was planted; `named so`: found, and called by that name:",
    "answers": "Refusals and empty answers found, and answers with a hallucination by prompt version (gold, job):",
}
"""What each table tells, above it."""


def print_rates(title: str, rates: Mapping[str, Row]) -> None:
    """A sentence of SENTENCES, and one aligned line a rate."""
    print(f"\n{SENTENCES[title]}\n{title:<34}{'hits':>6}{'n':>6}{'share':>8}   95% interval")
    for name, r in rates.items():
        share = "-" if r["value"] is None else f"{r['value']:.3f}   {r['low']:.3f} to {r['high']:.3f}"
        named = f"   named so: {r['named']['hits']}" if "named" in r else ""
        print(f"  {name:<32}{r['hits']:>6}{r['n']:>6}   {share}{named}")


def print_errors(scores: Row) -> None:
    """Every miss and every false alarm, for reading."""
    for fact in scores["missed"]:
        print(f"\nmissed {fact['request_id']} {fact['hallucination_type']}: {fact['claim']}")
        for c in fact["predicted"]:
            print(f"    {c['verdict']} ({c['decided_by']}, p {c['p_entailment']}): {c['claim']}")
            print(f"    on: {c['evidence_quote']}")
    for c in scores["false_alarms"]:
        print(f"\nfalse alarm {c['request_id']} {c['verdict']}, citation {c['citation_state']}: {c['claim']}")
        print(f"    {c['decided_by']}, p {c['p_entailment']}, missing {c['missing_values']}")


def score_parts(verdicts: pa.Table, gold: pa.Table, gold_answers: pa.Table) -> dict[str, Row]:
    """The scores of everything, of English alone and of the other languages, which an English judge cannot read."""
    foreign = pa.array(
        [r["request_id"] for r in gold_answers.to_pylist() if "language" in r["cases"]], pa.string()
    )
    parts = {"all": score_against_gold(verdicts, gold)}
    for name, is_foreign in (("english", False), ("other languages", True)):
        kept = [
            table.filter(pc.equal(pc.is_in(table["request_id"], foreign), pa.scalar(is_foreign)))
            for table in (verdicts, gold)
        ]
        parts[name] = score_against_gold(*kept)
    return parts


def print_scores(parts: Mapping[str, Row], states: Row, *, as_json: bool) -> None:
    """Everything as aligned tables, then, where asked, the same as one line of JSON."""
    print("\nThe run's verdicts against the demo log's gold file, with 95% intervals.")
    for kind in ("recall", "precision", "verdict_agreement"):
        print_rates(kind, {name: part[kind] for name, part in parts.items()})
    print_rates("recall by type", parts["all"]["by_type"])
    print_rates("answers", states)
    counts = {key: value for key, value in parts["all"].items() if key.startswith("n_")}
    print("\nClaims of the run, and gold facts that none of them matches:")
    print(", ".join(f"{key} {value}" for key, value in counts.items()))
    if not as_json:
        return
    lists = {"missed", "false_alarms"}
    summary = {name: {k: v for k, v in part.items() if k not in lists} for name, part in parts.items()}
    print(json.dumps(summary | {"answers": states}))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Score a run over the demo log against its gold file.")
    parser.add_argument("--run", type=Path, default=ROOT / "demo-run" / "out", help="output root of the run")
    parser.add_argument("--gold", type=Path, default=ROOT / "demo-run" / "gold.parquet", help="the gold file")
    parser.add_argument("--series", help="judge series, where the run has several")
    parser.add_argument("--json", action="store_true", help="print the same as one line of JSON, last")
    parser.add_argument("--errors", action="store_true", help="print every miss and every false alarm")
    args = parser.parse_args()
    try:
        verdicts = read_table(args.run, "verdicts", args.series)
        answers = read_table(args.run, "answers", args.series)
        gold = pq.read_table(args.gold)
        gold_answers = pq.read_table(args.gold.with_name("gold_answers.parquet"))
    except (InputError, OSError) as err:
        print(f"Error: {err}", file=sys.stderr)
        return 1
    parts = score_parts(verdicts, gold, gold_answers)
    if args.errors:
        print_errors(parts["all"])
    print_scores(parts, score_states(answers, gold_answers), as_json=args.json)
    return 0


def main_quietly() -> int:
    """`main`; 1, and not a word, where who reads it (`| head`) has seen enough, as click ends the commands."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer would be tried again, and told of, at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    raise SystemExit(main_quietly())
