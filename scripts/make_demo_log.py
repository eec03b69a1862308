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
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs import records

ROOT = Path(__file__).resolve().parent.parent
MATERIAL = ROOT / "configs" / "demo" / "material"
DAYS = (datetime(2026, 11, 27, tzinfo=UTC), datetime(2026, 11, 28, tzinfo=UTC))
ROWS_A_DAY, FILES_A_DAY, ROWS_A_GROUP = 120, 2, 30
REPEATED_ROW, ROW_WITHOUT_ID = 31, 77  # of the first day and of the last
REFUSAL = "I don't have enough information to answer that."
VERDICT_OF = (
    dict.fromkeys(("intrinsic", "conflation"), "contradicted")
    | dict.fromkeys(("extrinsic", "confabulation"), "unsupported")
    | dict.fromkeys(("miscitation", "fabricated_citation"), "supported")
)
CITATION_OF = {"miscitation": "miscited", "fabricated_citation": "fabricated"}
_TAG = re.compile(rf"({'|'.join(VERDICT_OF)})(?:/(\w+))?: ")
_NUMBERED = re.compile(r"\[\^?(\d+(?:, \d+)*)\]")
_MARK = re.compile(r" ?\[[\w^, -]+\]")

LOG = records.LOG.remove(records.LOG.get_field_index("flags")).set(0, pa.field("request_id", pa.string()))
_TEXTS = ("sentence", "claim", "verdict", "hallucination_type", "citation_state")
GOLD = pa.schema(
    {"request_id": pa.string(), "start": pa.int32(), "end": pa.int32()} | dict.fromkeys(_TEXTS, pa.string())
)
"""One row an atomic claim; `start:end` are code points of the answer: the claim's sentence with its marks."""
GOLD_ANSWERS = pa.schema(
    dict.fromkeys(("request_id", "prompt_version", "topic", "state"), pa.string())
    | {"answerable": pa.bool_(), "hallucinated": pa.bool_(), "cases": pa.list_(pa.string())}
)
"""One row an answer; `state` is an AnswerState, or `mixed`: a statement and the refusal marker in one answer."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact of a statement, without marks, and what is wrong with it (None: nothing)."""

    text: str
    kind: str | None
    verdict: str


@dataclass(slots=True)
class Answer:
    """One composed answer: its chunks in the order retrieved, its text, the span and claims of its statements."""

    situation: dict[str, Any]
    prompt_version: str
    plan: str
    chunk_ids: list[str]
    text: str = ""
    spans: list[tuple[int, int, list[Claim]]] = field(default_factory=list)

    def hallucinated(self) -> bool:
        """True where a claim or its citation is wrong."""
        return any(claim.kind for _, _, claims in self.spans for claim in claims)

    def state(self) -> str:
        """What the job should find the answer to be."""
        if not self.plan:
            return "empty_answer"
        if not self.spans:
            return "refusal"
        return "mixed" if "-" in self.plan else "scored" if self.chunk_ids else "no_context"


def unit(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone."""
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:6]) / 2**48


def load_material(folder: Path = MATERIAL) -> list[dict[str, Any]]:
    """Every situation of the TOML files, with its topic and the texts of all chunks."""
    files = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))]
    texts = {id_: text for file in files for id_, text in file["chunks"].items()}
    defaults = [{"topic": file["topic"], "answerable": True, "cases": [], "texts": texts} for file in files]
    return [head | s for head, file in zip(defaults, files, strict=True) for s in file["situation"]]


def read_claim(text: str) -> Claim:
    """A claim without marks; a leading `type:` or `type/verdict:` says what is wrong with it."""
    tag = _TAG.match(text)
    plain = _MARK.sub("", text[tag.end() :] if tag else text)
    return Claim(plain, tag[1], tag[2] or VERDICT_OF[tag[1]]) if tag else Claim(plain, None, "supported")


def read_statement(statement: str | dict[str, Any]) -> tuple[str, list[Claim]]:
    """The sentence as it is said, with its marks, and its claims."""
    if isinstance(statement, dict):
        return statement["say"], [read_claim(claim) for claim in statement["claims"]]
    return _TAG.sub("", statement, count=1), [read_claim(statement)]


def statement_of(situation: dict[str, Any], letter: str) -> tuple[str, list[Claim]]:
    """What a letter of a plan stands for; a refusal makes no claim."""
    if letter in "-?":
        return REFUSAL if letter == "-" else situation["refusal_text"], []
    pool = situation["false" if letter.isupper() else "true"]
    return read_statement(pool[ord(letter.lower()) - ord("a")])


def compose(situation: dict[str, Any], prompt_version: str, plan: str) -> Answer:
    """The answer that a plan such as `aB` describes, its marks renumbered to the order of its chunks."""
    ids = situation["chunks"]
    turn = 0 if situation.get("fixed_order") else int(unit(situation["question"], prompt_version) * len(ids))
    answer = Answer(situation, prompt_version, plan, ids[turn:] + ids[:turn])

    def renumbered(mark: re.Match[str]) -> str:
        return re.sub(r"\d+", lambda m: str(moved(int(m[0]))), mark[0])

    def moved(n: int) -> int:
        return (n - 1 - turn) % len(ids) + 1 if n <= len(ids) else n  # a fabricated mark stays one

    answer.text = situation.get("lead", "") if plan else ""
    if plan and situation.get("lead_claims"):
        claims = [read_claim(claim) for claim in situation["lead_claims"]]
        answer.spans.append((0, answer.text.index("\n"), claims))
    for position, letter in enumerate(plan):
        said, claims = statement_of(situation, letter)
        answer.text += situation.get("join", " ") if position else ""
        start = len(answer.text)
        answer.text += _NUMBERED.sub(renumbered, said)
        if claims:
            answer.spans.append((start, len(answer.text), claims))
    return answer


def plan_days(situations: Sequence[dict[str, Any]]) -> list[list[Answer]]:
    """The answers of two days: the first mostly p13, the second, after the roll-out, mostly p14; topics mixed."""
    p13, p14 = (
        sorted(
            (compose(s, version, plan) for s in situations for plan in s[version]),
            key=lambda a: unit(a.situation["question"], a.plan),
        )
        for version in ("p13", "p14")
    )
    many = 2 * len(p13) // 3
    few = ROWS_A_DAY - 1 - many  # the repeated row fills the day
    days = [p13[:many] + p14[:few], p13[many:] + p14[few:]]
    return [sorted(day, key=lambda a: unit(a.situation["question"], a.plan, "hour")) for day in days]


def gold_rows(request_id: str, answer: Answer) -> Iterator[dict[str, Any]]:
    """One row an atomic claim; none for an answer without evidence: its state decides it, no claim is judged."""
    for start, end, claims in answer.spans if answer.chunk_ids else ():
        said = answer.text[start:end]
        cites = bool(_MARK.search(said)) or answer.situation.get("provider_citations", False)
        for claim in claims:
            state = "missing" if not cites else "ok" if claim.verdict == "supported" else "unsupported"
            state = CITATION_OF.get(claim.kind or "", state)
            row = (request_id, start, end, said, claim.text, claim.verdict, claim.kind, state)
            yield dict(zip(GOLD.names, row, strict=True))


def token_logprobs(request_id: str, answer: Answer) -> list[dict[str, Any]]:
    """Words as tokens; the numbers and names of false sentences were mostly unlikely ones."""
    wrong = [(start, end) for start, end, claims in answer.spans if any(c.kind for c in claims)]
    tokens = []
    for match in re.finditer(r"\s*\S+", answer.text):
        chance = unit(request_id, match.start())
        telling = re.search(r"[A-Z0-9]", match[0]) and any(s <= match.start() < e for s, e in wrong)
        low = chance > (0.3 if telling else 0.985)
        tokens.append({"token": match[0], "logprob": -2.4 - 2 * chance if low else -0.01 - 0.6 * chance})
    return tokens


def samples(answer: Answer, number: int) -> list[str]:
    """Three other answers to the question: two hold the truth, except where every sample repeats the error."""
    truth = "ab"[: len(answer.situation["true"])] or "-"
    plans = [truth, answer.plan, truth[:1]] if number % 3 else [answer.plan] * 3
    return [compose(answer.situation, answer.prompt_version, plan).text for plan in plans]


def provider_citations(answer: Answer) -> list[dict[str, Any]]:
    """Take the marks out of the answer; what they said comes back as a provider's structured citations."""
    said = [answer.text[start:end] for start, end, _ in answer.spans]
    plain = [_MARK.sub("", text) for text in said]
    starts = [sum(len(text) + 1 for text in plain[:i]) for i in range(len(plain))]
    answer.text = " ".join(plain)
    ends = [start + len(text) for start, text in zip(starts, plain, strict=True)]
    answer.spans = list(zip(starts, ends, (claims for _, _, claims in answer.spans), strict=True))
    return [
        {
            "start": start,
            "end": start + len(text),
            "text": text,
            "chunk_ids": chunks_cited(marked, answer.chunk_ids),
        }
        for start, text, marked in zip(starts, plain, said, strict=True)
    ]


def chunks_cited(text: str, chunk_ids: Sequence[str]) -> list[str]:
    """The ids that the numbered marks of a text point at."""
    return sorted({chunk_ids[int(n) - 1] for mark in _NUMBERED.findall(text) for n in mark.split(",")})


def log_row(request_id: str, number: int, when: datetime, answer: Answer) -> dict[str, Any]:
    """The row of the log; which of the optional columns are filled goes by the row's number of the day."""
    s, scored = answer.situation, answer.state() == "scored"
    stated = " ".join(read_statement(statement)[0] for statement in s["true"])
    citations = provider_citations(answer) if s.get("provider_citations") else None
    label = "hallucinated" if answer.hallucinated() else "grounded"
    scores = [
        round(0.93 - 0.08 * rank - 0.07 * unit(request_id, rank), 4) for rank in range(len(s["chunks"]))
    ]
    digest = hashlib.sha256(request_id.encode()).hexdigest()
    origin = {"system": "tracing-tool", "project": f"{s['topic']}-assistant", "trace_id": digest[:32]}
    return {
        "request_id": None if (when.day, number) == (DAYS[-1].day, ROW_WITHOUT_ID) else request_id,
        "question": s["question"],
        "answer": answer.text,
        "chunks": [
            {"id": i, "text": s["texts"][i], "score": scores[n]} for n, i in enumerate(answer.chunk_ids)
        ],
        "samples": samples(answer, number // 5) if number % 5 == 0 and answer.spans else None,
        "token_logprobs": token_logprobs(request_id, answer) if number % 4 == 0 else None,
        "prompt_version": answer.prompt_version,
        "model": "harbor-70b" if unit(request_id) < 0.4 else "harbor-8b",
        "topic": s["topic"],
        "status": "insufficient_evidence" if answer.plan == "?" else "ok" if number % 2 else None,
        "ts": when,
        "answerable": s["answerable"],
        "gold_chunk_ids": s.get("gold", chunks_cited(stated, s["chunks"])) if s["answerable"] else [],
        "reference_answer": read_statement(s["true"][0])[1][0].text if s["true"] else None,
        "human_label": label if number % 3 == 0 and scored else None,
        "citations": citations,
        "origin": origin | {"evidence_rule": "last_retriever"} if number % 30 == 7 else None,
    }


def write_demo(out: Path) -> tuple[int, int]:
    """Write the log under `out` and the gold files beside it; return the counts of rows and gold claims."""
    gold: list[dict[str, Any]] = []
    states: list[dict[str, Any]] = []
    n_rows = 0
    for day, answers in zip(DAYS, plan_days(load_material()), strict=True):
        rows = []
        for number, answer in enumerate(answers):
            request_id = f"{day:%m%d}-{number:03d}"
            rows.append(log_row(request_id, number, day + timedelta(minutes=12 * number), answer))
            if rows[-1]["request_id"] is None:
                continue  # it will be quarantined: no gold
            gold += gold_rows(request_id, answer)
            states.append(
                {name: answer.situation.get(name) for name in ("topic", "answerable", "cases")}
                | {"request_id": request_id, "prompt_version": answer.prompt_version}
                | {"state": answer.state(), "hallucinated": answer.hallucinated()}
            )
        if day == DAYS[0]:
            rows.insert(3 * REPEATED_ROW, rows[REPEATED_ROW])
        n_rows += len(rows)
        size = -(-len(rows) // FILES_A_DAY)
        for part in range(FILES_A_DAY):
            path = out / f"date={day:%Y-%m-%d}" / f"part-{part}.parquet"
            write(rows[part * size : (part + 1) * size], LOG, path)
    write(gold, GOLD, out.parent / "gold.parquet")
    write(states, GOLD_ANSWERS, out.parent / "gold_answers.parquet")
    return n_rows, len(gold)


def write(rows: list[dict[str, Any]], schema: pa.Schema, path: Path) -> None:
    """One Parquet file with small row groups, so that a day makes several shards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=ROWS_A_GROUP)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Write the demo log and its gold files.")
    parser.add_argument("--out", type=Path, default=ROOT / "demo-run" / "log", help="folder of the log")
    out = parser.parse_args().out
    n_rows, n_claims = write_demo(out)
    print(f"{out}: {n_rows} answers over {len(DAYS)} days; {n_claims} gold claims beside it")


if __name__ == "__main__":
    main()
