"""Terminal view of one answer: each claim with its verdict, rule, citation state and evidence.

Reads tables through the store and judges nothing. Text of logs is hostile: it is stripped of control characters and never
read as markup.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.text import Text

from claimscore.jobs import outputs, referee_words, settings
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.progress import printable
from claimscore.jobs.records import CitationState, Rule, Verdict
from claimscore.jobs.report_words import percent
from claimscore.jobs.reports import find_series
from claimscore.jobs.store import Store

_STYLE = {
    Verdict.SUPPORTED: "green",
    Verdict.CONTRADICTED: "red",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.UNSCORED: "magenta",
}
_BY_JUDGE = (Rule.NLI, Rule.NLI_CITED, Rule.NLI_JOINED)
"""Rules by which a threshold decides."""


def find_answer(out: str, request_id: str, series: str | None) -> dict[str, Any]:
    """The newest row of one answer and its verdicts, and what of that id was quarantined on that day or later.

    Raises:
        InputError: no such answer in the series, or no series at all.
    """
    store = Store(out, StoreConfig(out=out))
    series = find_series(store, out, series) if series else store.current()
    if series is None:
        raise outputs.no_run(out, otherwise="give --out, or run a day first")
    for file in reversed(store.files("answers", series=series)):
        answers = store.read(file)
        row = answers.filter(pc.equal(answers.column("request_id"), request_id))
        if row.num_rows:
            verdict_file = type(file)("verdicts", file.date, file.shard_id, series)
            verdicts = store.read(verdict_file)
            mine = verdicts.filter(pc.equal(verdicts.column("request_id"), request_id))
            return {
                "date": file.date,
                "series": series,
                "answer": row.to_pylist()[0],
                "verdicts": mine.to_pylist(),
                "thresholds": settings.thresholds(
                    (store.manifest(verdict_file) or {}).get("parts", {}), settings.known(store)
                ),
                "quarantined": _quarantined(store, request_id, since=file.date),
            }
    raise InputError(_why_not_found(store, out, request_id, series))


def _quarantined(store: Store, request_id: str, *, since: str = "") -> list[dict[str, Any]]:
    """The quarantined rows of an id, the newest day first, each with its date."""
    return [
        {"date": file.date, **row}
        for file in reversed(store.files("quarantine"))
        if file.date >= since
        for row in store.read(file).filter(pc.field("request_id") == request_id).to_pylist()
    ]


def _in_quarantine(row: dict[str, Any]) -> str:
    return f"in quarantine ({row['reason']}: {row['detail']}), row {row['row']} of {row['file']}"


def _why_not_found(store: Store, out: str, request_id: str, series: str) -> str:
    for row in _quarantined(store, request_id):
        return f"{out}: {request_id!r} of {row['date']} is {_in_quarantine(row)}; correct the log and run the day again"
    return (
        f"{out}: no answer {request_id!r} in series {series}, and none in quarantine, expected a request_id of the log; "
        "its day was not run, or was run for another series"
    )


def print_answer(document: dict[str, Any]) -> None:
    """One answer, claim by claim; verdicts are words as well as colours."""
    console, answer = Console(), document["answer"]
    console.print(
        Text(printable(answer["request_id"]), style="bold")
        + Text(f"  {document['date']}  {document['series']}")
    )
    _print_named(console, "question", answer["question"])
    _print_named(console, "answer", answer["answer"])
    groundedness = "-" if answer["groundedness"] is None else percent(answer["groundedness"])
    cites = any(v["citation_state"] not in (None, CitationState.MISSING) for v in document["verdicts"])
    counts_as = "hallucinated, " if answer["hallucinated"] else ""
    summary = (
        f"{answer['state']}, {counts_as}groundedness {groundedness} ({answer['n_supported']} of {answer['n_scored']} scored claims), "
        f"{answer['action']} ({answer['action_reason']}), next: {answer['next_step']}"
    )
    if document["verdicts"] and not cites:
        summary += "; no claim carries a citation"
    _print_hanging(console, Text(summary), 2)
    if graded := referee_words.grade_words(answer):
        _print_hanging(console, Text(graded), 2)
    for row in document["quarantined"]:
        words = printable(f"another row of {row['date']} is {_in_quarantine(row)}")
        _print_hanging(console, Text(words, style="yellow"), 2)
    if "ids_synthetic" in answer["flags"]:
        words = "chunks without an id are called by their place: c0 is the first, as a rule the one that [1] marks"
        _print_hanging(console, Text(words), 2)
    for verdict in document["verdicts"]:
        label = f"  {verdict['verdict']:<13}"
        line = Text.assemble((label, _STYLE[Verdict(verdict["verdict"])]), printable(verdict["claim"]))
        _print_hanging(console, line, len(label))
        _print_hanging(
            console, Text(f"    {_explanation(verdict, document['thresholds'], cites=cites)}", style="dim"), 6
        )
        if verdict["evidence_quote"]:
            _print_named(console, f"    {verdict['evidence_chunk_id']}", verdict["evidence_quote"])
        if verdict["conflict"]:
            name = f"    but {verdict['contradicting_chunk_id']}"
            _print_named(console, name, verdict["contradicting_quote"])


def _threshold(verdict: dict[str, Any], thresholds: dict[str, Any] | None) -> dict[str, str]:
    """The threshold that a number of the judge was held against, by the name of the number, where that decided."""
    if not thresholds or verdict["decided_by"] not in _BY_JUDGE:
        return {}
    if verdict["verdict"] == Verdict.CONTRADICTED:
        return {"contradiction": f" (threshold {thresholds['contradiction']:g})"}
    name = "combined" if thresholds["combiner"] else "entailment"
    return {name: f" (threshold {thresholds['entailment']:g})"}


def _explanation(verdict: dict[str, Any], thresholds: dict[str, Any] | None, *, cites: bool) -> str:
    """Why a claim has its verdict; where the whole answer `cites` nothing, that is not said of each claim."""
    against = _threshold(verdict, thresholds)
    parts = [verdict["reason"] or verdict["decided_by"], verdict["hallucination_type"]]
    parts.append(referee_words.verdict_words(verdict))
    if verdict["citation_state"] and cites:
        parts.append(f"citation {verdict['citation_state']}")
    if verdict["p_entailment"] is not None:
        parts.append(
            f"entailment {verdict['p_entailment']:.2f}{against.get('entailment', '')}, "
            f"contradiction {verdict['p_contradiction']:.2f}{against.get('contradiction', '')}"
        )
    if verdict["support"] != verdict["p_entailment"]:
        parts.append(f"combined {verdict['support']:.2f}{against.get('combined', '')}")
    if verdict["missing_values"]:
        parts.append(f"not in the evidence: {', '.join(verdict['missing_values'])}")
    if verdict["rival"]:
        parts.append(f"the evidence is surer of {verdict['rival']}")
    if verdict["consistency"] is not None:
        parts.append(f"consistent with {verdict['consistency']:.0%} of {verdict['n_samples_usable']} samples")
    # Days that were judged before repeats were known lack the column.
    if verdict.get("duplicate_of") is not None:
        parts.append(f"repeats claim {verdict['duplicate_of'] + 1} of the answer, counted once")
    return printable("; ".join(part for part in parts if part))


def _print_named(console: Console, name: str, text: str | None) -> None:
    """`name: text`, later lines two columns further in than the name."""
    line = Text.assemble((f"{printable(name)}: ", "bold"), printable(text or "-"))
    _print_hanging(console, line, len(name) - len(name.lstrip()) + 2)


def _print_hanging(console: Console, line: Text, indent: int) -> None:
    """A line that hangs by `indent` columns where a terminal is too narrow for it; elsewhere it is never broken."""
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        return
    first = line.wrap(console, console.width)[0]
    rest = line[len(first) :]
    rest = rest[len(rest) - len(rest.plain.lstrip()) :]
    indent = min(indent, console.width // 2)  # a name may begin with any number of blanks
    later = rest.wrap(console, console.width - indent) if rest else ()
    for part in (first, *(Text(" " * indent) + one for one in later)):
        part.rstrip()
        console.print(part)
