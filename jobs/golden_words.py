"""What `evaluate` and `replay` found, as sheets of words.

It computes no figure: shares, intervals and outcomes stand in the documents.
"""

from __future__ import annotations

from typing import Any

from claimscore.jobs import gate_files, golden
from claimscore.jobs.report_words import counted, interval, percent
from claimscore.jobs.sheets import Sheet, Table

MAX_COLUMNS = 4
SHOWN = {
    "groundedness": "groundedness",
    "hallucination_rate": "hallucination rate",
    "citation_precision": "citation precision",
    "refusal_correctness": "refusal correctness",
    "over_refusal_rate": "over-refusal rate",
    "recall_at_k": "recall@k",
    "reference_overlap": "token F1 with the reference",
    "conflict_rate": "claims in conflict",
    "unscored_rate": "unscored claims",
    "human_balanced_accuracy": "balanced accuracy against people",
}
"""Rate -> its words, in the order of the tables; the documents hold all that `metrics` measures."""


def sheet_of_evaluation(document: dict[str, Any]) -> Sheet:
    """The document of `evaluate.evaluate`: a table a kind of item, its columns the groups."""
    out = Sheet(
        title=f"claimscore evaluation of {document['gold']}",
        lines=[
            f"{counted(document['n_items'], 'item')}, series {document['series']}, tables in {document['out']}"
        ],
        warnings=document["warnings"],
        failures=document["failures"],
    )
    groups = document["groups"]
    for first in range(0, len(groups), MAX_COLUMNS):
        shown = groups[first : first + MAX_COLUMNS]
        kinds = dict.fromkeys(kind for group in shown for kind in group["kinds"])
        for kind in ("all", *(kind for kind in golden.KINDS if kind in kinds)):
            out.tables.append(_rates_table(f"{kind} items", kind, shown, document["by"]))
    return out


def _rates_table(title: str, kind: str, groups: list[dict[str, Any]], by: str) -> Table:
    parts = [group["kinds"].get(kind, {"n_items": 0, "rates": {}}) for group in groups]
    heads = [
        f"{group['name'] or f'no {by}'}: {counted(part['n_items'], 'item')}"
        for group, part in zip(groups, parts, strict=True)
    ]
    rows = []
    for name, words in SHOWN.items():
        found = [part["rates"].get(name) for part in parts]
        if pers := [rate["per"] for rate in found if rate]:
            rows.append([f"{words}, of {pers[0]}", *(_cell(rate) for rate in found)])
    return Table(title, ["rate", *heads], rows)


def _cell(rate: dict[str, Any] | None) -> str:
    """Value, 95% interval and what it was counted over."""
    if rate is None:
        return "-"
    return f"{percent(rate['value'])} ({interval(rate['low'], rate['high'])}) of {rate['n']:,.0f}"


def sheet_of_replay(document: dict[str, Any]) -> Sheet:
    """The document of `replay.replay`: both sides beside each other, then the gate."""
    prompt = f"prompt {document['prompt_version']}" + (
        f", model {document['model']}" if document["model"] else ""
    )
    failed = ", ".join(f"{n} {reason}" for reason, n in document["failed"].items())
    left_out = ", ".join(f"{n} {reason}" for reason, n in document["left_out"].items() if n)
    said = (
        f"{prompt}: {counted(document['n_answered'], 'answer')} to {counted(document['n_asked'], 'question')}"
    )
    lines = [
        said + (f"; no answer: {failed}" if failed else ""),
        f"chosen from {counted(document['n_rows'], 'answer')}"
        + (f"; left out: {left_out}" if left_out else ""),
        f"series {document['series']}, tables in {document['out']}",
    ]
    out = Sheet(
        f"claimscore replay of {document['source']}", lines, document["warnings"], document["failures"]
    )
    sides = [
        {"name": side, "kinds": {"all": {"n_items": document["n_answered"], "rates": document[side]}}}
        for side in ("logged", "replayed")
    ]
    out.tables.append(_rates_table("side by side", "all", sides, ""))
    if document["gate"]:
        out.tables.append(_gate_table(document["gate"]))
    return out


def _gate_table(judged: dict[str, Any]) -> Table:
    how = f"{counted(judged['n_paired'], 'question')} of both" if judged["n_paired"] else "two samples"
    return Table(
        f"Gate: {how}, {100 * judged['max_drop']:g} points are allowed",
        ["metric", "logged", "replayed", "points", "shows from", "outcome"],
        gate_files.outcome_rows(judged["outcomes"]),
    )
