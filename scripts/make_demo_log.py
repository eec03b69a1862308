"""Write the demo log: two days of answers from the hand-written material under configs/demo/material.

    python scripts/make_demo_log.py --out demo-run/log

Beside the log folder it writes `gold.parquet`, the true verdict of every atomic claim, and `gold_answers.parquet`,
what each answer is. Nothing is drawn at random: whatever varies (chunk order, scores, times) comes from a hash of the
row's content, so two runs give the same bytes. The material's README tells how to read it.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from claimscore.jobs import records
from claimscore.jobs.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
MATERIAL = ROOT / "configs" / "demo" / "material"
DAYS = (datetime(2026, 11, 27, tzinfo=UTC), datetime(2026, 11, 28, tzinfo=UTC))
ROWS_A_DAY, FILES_A_DAY, ROWS_A_GROUP = 120, 2, 30
REFUSAL = "I don't have enough information to answer that."
VERDICT_OF = {
    "intrinsic": "contradicted",
    "conflation": "contradicted",
    "extrinsic": "unsupported",
    "confabulation": "unsupported",
    "miscitation": "supported",
    "fabricated_citation": "supported",
}
CITATION_OF = {"miscitation": "miscited", "fabricated_citation": "fabricated"}
_TAG = re.compile(rf"({'|'.join(VERDICT_OF)})(?:/(\w+))?: ")
_MARK = re.compile(r"[\[【]\^?(\d+(?:, ?\d+)*)[\]】]")
_ANY_MARK = re.compile(r" ?\[[\w^, -]+\]")

LOG = pa.schema(
    [f.with_nullable(True) if f.name == "request_id" else f for f in records.LOG if f.name != "flags"]
)
GOLD = pa.schema(
    [
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("sentence", pa.string(), nullable=False),
        pa.field("claim", pa.string(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("hallucination_type", pa.string()),
        pa.field("citation_state", pa.string(), nullable=False),
    ]
)
"""One row an atomic claim; `start:end` are code points of the answer: the claim's sentence with its marks."""
GOLD_ANSWERS = pa.schema(
    [
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("prompt_version", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("answerable", pa.bool_(), nullable=False),
        pa.field("hallucinated", pa.bool_(), nullable=False),
        pa.field("cases", pa.list_(pa.string()), nullable=False),
    ]
)
"""One row an answer; `state` is an AnswerState, or `mixed`: a statement and the refusal marker in one answer."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact of a statement: its text, and what is wrong with it (None: nothing)."""

    text: str
    kind: str | None
    verdict: str


@dataclass(slots=True)
class Answer:
    """One composed answer: the text, its statements' spans, and the chunks in the order retrieved."""

    situation: dict[str, Any]
    prompt_version: str
    plan: str
    chunk_ids: list[str]
    text: str = ""
    spans: list[tuple[int, int, list[Claim]]] = field(default_factory=list)

    @property
    def claims(self) -> list[Claim]:
        return [claim for _, _, claims in self.spans for claim in claims]

    @property
    def hallucinated(self) -> bool:
        return any(claim.kind for claim in self.claims)


def unit(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def load_material(folder: Path) -> list[dict[str, Any]]:
    """Every situation of the TOML files, with its topic and the texts of its chunks.

    Raises:
        InputError: no files, or a situation names a chunk that no file has.
    """
    files = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))]
    if not files:
        raise InputError(f"{folder}: no TOML files, expected the demo material; give its folder")
    texts = {id_: text for file in files for id_, text in file["chunks"].items()}
    situations = [{"topic": file["topic"], **s} for file in files for s in file["situation"]]
    for situation in situations:
        unknown = [id_ for id_ in situation["chunks"] if id_ not in texts]
        if unknown:
            raise InputError(f"{folder}: {situation['question']!r} names the chunk {unknown[0]!r}; add it")
        situation["texts"] = texts
    return situations


def read_statement(statement: str | dict[str, Any]) -> tuple[str, list[Claim]]:
    """The sentence as it is said, with its marks, and its claims."""
    if isinstance(statement, dict):
        return statement["say"], [read_claim(claim) for claim in statement["claims"]]
    said = statement[match.end() :] if (match := _TAG.match(statement)) else statement
    return said, [read_claim(statement)]


def read_claim(text: str) -> Claim:
    """A claim without marks; a leading `type:` or `type/verdict:` says what is wrong with it."""
    match = _TAG.match(text)
    if match is None:
        return Claim(_ANY_MARK.sub("", text), None, "supported")
    kind, verdict = match.groups()
    return Claim(_ANY_MARK.sub("", text[match.end() :]), kind, verdict or VERDICT_OF[kind])


def compose(situation: dict[str, Any], prompt_version: str, plan: str) -> Answer:
    """The answer that a plan such as `aB` describes, its marks renumbered to the order of its chunks."""
    ids = list(situation["chunks"])
    turn = int(unit(situation["question"], plan) * len(ids)) if not situation.get("fixed_order") else 0
    answer = Answer(situation, prompt_version, plan, ids[turn:] + ids[:turn])

    def renumbered(mark: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda m: moved(int(m[0])), mark[0])

    def moved(n: int) -> str:
        return str((n - 1 - turn) % len(ids) + 1 if 1 <= n <= len(ids) else n)

    if not plan:
        return answer
    answer.text = lead = situation.get("lead", "")
    if situation.get("lead_claims"):
        end = lead.index("\n")
        answer.spans.append((0, end, [read_claim(claim) for claim in situation["lead_claims"]]))
    for position, letter in enumerate(plan):
        said, claims = statement_of(situation, letter)
        answer.text += situation.get("join", " ") if position else ""
        start = len(answer.text)
        answer.text += _MARK.sub(renumbered, said)
        if claims:
            answer.spans.append((start, len(answer.text), claims))
    return answer


def statement_of(situation: dict[str, Any], letter: str) -> tuple[str, list[Claim]]:
    """What a letter of a plan stands for; a refusal makes no claim."""
    if letter == "-":
        return REFUSAL, []
    if letter == "?":
        return situation["refusal_text"], []
    pool = situation["false" if letter.isupper() else "true"]
    return read_statement(pool[ord(letter.lower()) - ord("a")])


def all_answers(situations: Sequence[dict[str, Any]]) -> list[Answer]:
    """Every planned answer, in an order that mixes topics; p13 first."""
    answers = [
        compose(situation, version, plan)
        for version in ("p13", "p14")
        for situation in situations
        for plan in situation[version]
    ]
    return sorted(answers, key=lambda a: (a.prompt_version, unit(a.situation["question"], a.plan)))


def split_days(answers: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Two days: the first mostly p13, the second, after the roll-out, mostly p14; topics mixed."""
    p13 = [a for a in answers if a.prompt_version == "p13"]
    p14 = [a for a in answers if a.prompt_version == "p14"]
    cut = 2 * len(p13) // 3
    first = p13[:cut] + p14[: ROWS_A_DAY - 1 - cut]
    second = p13[cut:] + p14[ROWS_A_DAY - 1 - cut :]
    order = [sorted(day, key=lambda a: unit(a.situation["question"], a.plan, "hour")) for day in (first, second)]
    return order[0], order[1]


def state_of(answer: Answer) -> str:
    """The answer's state, as the job should find it."""
    if not answer.plan:
        return "empty_answer"
    if answer.spans:
        mixed = set(answer.plan) & {"-", "?"}
        return "mixed" if mixed else "scored" if answer.chunk_ids else "no_context"
    return "refusal"


def citation_state_of(claim: Claim, said: str, answer: Answer) -> str:
    """What the citations of a claim in the sentence `said` should be found to be."""
    if claim.kind in CITATION_OF:
        return CITATION_OF[claim.kind]
    if not _MARK.search(said) and not _ANY_MARK.search(said):
        return "missing"
    return "ok" if claim.verdict == "supported" else "unsupported"


def gold_rows(request_id: str, answer: Answer) -> Iterator[dict[str, Any]]:
    """One row an atomic claim; none for an answer without evidence, whose state decides it."""
    if state_of(answer) == "no_context":
        return
    for start, end, claims in answer.spans:
        said = answer.text[start:end]
        for claim in claims:
            yield {
                "request_id": request_id,
                "start": start,
                "end": end,
                "sentence": said,
                "claim": claim.text,
                "verdict": claim.verdict,
                "hallucination_type": claim.kind,
                "citation_state": citation_state_of(claim, said, answer),
            }


def token_logprobs(request_id: str, answer: Answer) -> list[dict[str, Any]]:
    """Words as tokens; the numbers and names of false sentences were mostly unlikely ones."""
    wrong = [(start, end) for start, end, claims in answer.spans if any(c.kind for c in claims)]
    tokens = []
    for match in re.finditer(r"\s*\S+", answer.text):
        chance = unit(request_id, match.start())
        telling = re.search(r"[A-Z0-9]", match[0]) and any(s <= match.start() < e for s, e in wrong)
        low = chance > 0.3 if telling else chance > 0.985
        tokens.append({"token": match[0], "logprob": -2.4 - 2 * chance if low else -0.01 - 0.6 * chance})
    return tokens


def samples(answer: Answer, number: int) -> list[str]:
    """Three other answers: the truth in two of three cases, except where every sample repeats the error."""
    s, version, plan = answer.situation, answer.prompt_version, answer.plan
    truth = "ab"[: len(s["true"])] or "-"
    if not answer.hallucinated:
        plans = [truth, truth[:1], truth[::-1]]
    else:
        plans = [plan, plan, plan] if number % 3 == 0 else [truth, plan, truth[:1]]
    return [compose(s | {"fixed_order": False}, version, p).text for p in plans]


def provider_citations(answer: Answer) -> list[dict[str, Any]]:
    """Take the marks out of the answer; give what they said as a provider's structured citations."""
    text, spans, out = "", [], []
    for start, end, claims in answer.spans:
        said = answer.text[start:end]
        ids = [answer.chunk_ids[int(n) - 1] for m in _MARK.findall(said) for n in m.split(",")]
        text += " " if text else ""
        plain = _ANY_MARK.sub("", said)
        spans.append((len(text), len(text) + len(plain), claims))
        out.append({"start": len(text), "end": len(text) + len(plain), "text": plain, "chunk_ids": ids})
        text += plain
    answer.text, answer.spans = text, spans
    return out


def log_row(request_id: str, number: int, when: datetime, answer: Answer) -> dict[str, Any]:
    """The row of the log; which of the optional columns are filled goes by the row's number of the day."""
    s = answer.situation
    cited = {answer.chunk_ids[int(n) - 1] for n in cited_numbers(s, answer)}
    row = {name: None for name in LOG.names} | {
        "request_id": request_id,
        "question": s["question"],
        "chunks": [
            {"id": id_, "text": s["texts"][id_], "score": round(0.93 - 0.08 * rank - 0.07 * unit(request_id, rank), 4)}
            for rank, id_ in enumerate(answer.chunk_ids)
        ],
        "prompt_version": answer.prompt_version,
        "model": "harbor-70b" if unit(request_id) < 0.4 else "harbor-8b",
        "topic": s["topic"],
        "ts": when,
        "answerable": s.get("answerable", True),
        "gold_chunk_ids": sorted(cited) if s.get("answerable", True) else [],
        "reference_answer": read_statement(s["true"][0])[1][0].text if s["true"] else None,
        "status": "insufficient_evidence" if answer.plan == "?" else "ok" if number % 2 else None,
    }
    if s.get("provider_citations"):
        row["citations"] = provider_citations(answer)
    if number % 4 == 0 and answer.text:
        row["token_logprobs"] = token_logprobs(request_id, answer)
    if number % 5 == 0 and answer.spans:
        row["samples"] = samples(answer, number // 5)
    if number % 3 == 0 and state_of(answer) == "scored":
        row["human_label"] = "hallucinated" if answer.hallucinated else "grounded"
    if number % 30 == 7:
        row["origin"] = origin(request_id, s["topic"])
    return row | {"answer": answer.text}


def cited_numbers(situation: dict[str, Any], answer: Answer) -> set[str]:
    """The numbers, in the order of this answer's chunks, of the chunks that hold what was asked for."""
    if "gold" in situation:
        ids = set(situation["gold"])
    else:
        marks = " ".join(read_statement(statement)[0] for statement in situation["true"])
        ids = {situation["chunks"][int(n) - 1] for m in _MARK.findall(marks) for n in m.split(",")}
    return {str(answer.chunk_ids.index(id_) + 1) for id_ in ids}


def origin(request_id: str, topic: str) -> dict[str, str]:
    """Where an imported row came from; the ids are hashes."""
    digest = hashlib.sha256(request_id.encode()).hexdigest()
    return {
        "system": "tracing-tool",
        "project": f"{topic}-assistant",
        "trace_id": digest[:32],
        "span_id": digest[32:48],
        "evidence_rule": "last_retriever_before_answer",
    }


def day_rows(day: datetime, answers: Sequence[Answer]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Log rows, gold claims and gold answers of one day. The first day repeats a row, the last has one without an id."""
    rows: list[dict[str, Any]] = []
    gold: list[dict[str, Any]] = []
    states: list[dict[str, Any]] = []
    for number, answer in enumerate(answers):
        request_id = f"{day:%m%d}-{number:03d}"
        row = log_row(request_id, number, day + timedelta(minutes=12 * number, seconds=number % 60), answer)
        rows.append(row)
        if day == DAYS[-1] and number == 77:
            row["request_id"] = None
            continue
        gold += gold_rows(request_id, answer)
        states.append(
            {
                "request_id": request_id,
                "prompt_version": answer.prompt_version,
                "topic": answer.situation["topic"],
                "state": state_of(answer),
                "answerable": answer.situation.get("answerable", True),
                "hallucinated": answer.hallucinated,
                "cases": answer.situation.get("cases", []),
            }
        )
    if day == DAYS[0]:
        rows.insert(90, rows[31])
    return rows, gold, states


def write_demo(out: Path, material: Path = MATERIAL) -> tuple[int, int]:
    """Write the log under `out` and the gold files beside it; return the counts of rows and gold claims."""
    gold: list[dict[str, Any]] = []
    states: list[dict[str, Any]] = []
    n_rows = 0
    for day, answers in zip(DAYS, split_days(all_answers(load_material(material))), strict=True):
        rows, day_gold, day_states = day_rows(day, answers)
        gold, states, n_rows = gold + day_gold, states + day_states, n_rows + len(rows)
        folder = out / f"date={day:%Y-%m-%d}"
        folder.mkdir(parents=True, exist_ok=True)
        size = -(-len(rows) // FILES_A_DAY)
        for part in range(FILES_A_DAY):
            table = pa.Table.from_pylist(rows[part * size : (part + 1) * size], schema=LOG)
            write(table, folder / f"part-{part}.parquet")
    write(pa.Table.from_pylist(gold, schema=GOLD), out.parent / "gold.parquet")
    write(pa.Table.from_pylist(states, schema=GOLD_ANSWERS), out.parent / "gold_answers.parquet")
    return n_rows, len(gold)


def write(table: pa.Table, path: Path) -> None:
    """One Parquet file with small row groups, so that a day makes several shards."""
    pq.write_table(table, path, row_group_size=ROWS_A_GROUP, compression="zstd")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "demo-run" / "log", help="folder of the log")
    args = parser.parse_args()
    try:
        n_rows, n_claims = write_demo(args.out)
    except InputError as err:
        print(f"Error: {err}", file=sys.stderr)
        return 1
    print(f"{args.out}: {n_rows} answers over {len(DAYS)} days; {n_claims} gold claims beside it")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
