"""What `evaluate` and `replay` found, as sheets of words.

It computes no figure: shares, intervals and outcomes stand in the documents.
"""

from __future__ import annotations

from typing import Any

from claimscore.jobs import gate_files
from claimscore.jobs.report_words import counted, interval, percent
from claimscore.jobs.sheets import Sheet, Table

SHOWN = {
    "groundedness": "groundedness",
    "hallucination_rate": "hallucination rate",
    "citation_precision": "citation precision",
    "refusal_correctness": "refusal correctness",
    "over_refusal_rate": "over-refusal rate",
    "recall_at_k": "recall@k",
    "reference_overlap": "agreement with the reference (token F1)",
    "conflict_rate": "claims in conflict",
    "unscored_rate": "unscored claims",
    "human_balanced_accuracy": "balanced accuracy against people",
}
"""Rate -> its words, in the order of the tables; the documents hold all that `metrics` measures."""


def sheet_of_evaluation(document: dict[str, Any]) -> Sheet:
    """The document of `evaluate.evaluate`: a table a group, and one of all groups where they are several."""
    out = Sheet(
        title=f"claimscore evaluation of {document['gold']}",
        lines=[
            f"{counted(document['n_items'], 'item')}, series {document['series']}, tables in {document['out']}"
        ],
        warnings=document["warnings"],
        failures=document["failures"],
    )
    groups = document["groups"]
    shown = [(f"{document['by']} {group['name'] or '(none)'}", group) for group in groups]
    if len(groups) > 1:
        shown.append(("all groups", document["all"]))
    out.tables = [_rates_by_kind(title, group) for title, group in shown]
    return out


def _rates_by_kind(title: str, group: dict[str, Any]) -> Table:
    kinds = group["kinds"]
    rows = [
        [
            words,
            kind,
            percent(rate["value"]),
            interval(rate["low"], rate["high"]),
            f"{rate['n']:,.0f} {rate['per']}",
        ]
        for name, words in SHOWN.items()
        for kind in kinds
        if (rate := kinds[kind]["rates"].get(name)) and not _says_nothing(name, kind, kinds)
    ]
    told = ", ".join(f"{part['n_items']} {kind}" for kind, part in kinds.items() if kind != "all")
    return Table(
        f"{title}: {counted(group['n_items'], 'item')} ({told})",
        ["rate", "items", "value", "95% interval", "of"],
        rows,
    )


def _says_nothing(name: str, kind: str, kinds: dict[str, Any]) -> bool:
    """Of one kind only, that kind's row says it all; `all` would say it again."""
    others = [part for other, part in kinds.items() if other != "all" and name in part["rates"]]
    return kind == "all" and len(others) == 1


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
    rows = [
        [words, *(_side(document[side].get(name)) for side in ("logged", "replayed"))]
        for name, words in SHOWN.items()
        if document["logged"].get(name) or document["replayed"].get(name)
    ]
    out.tables.append(Table("Side by side", ["rate", "logged", "replayed"], rows))
    if document["gate"]:
        out.tables.append(_gate_table(document["gate"]))
    return out


def _side(rate: dict[str, Any] | None) -> str:
    if rate is None:
        return "-"
    return f"{percent(rate['value'])} ({interval(rate['low'], rate['high'])}; {rate['n']:,.0f} {rate['per']})"


def _gate_table(judged: dict[str, Any]) -> Table:
    how = f"{counted(judged['n_paired'], 'question')} of both" if judged["n_paired"] else "two samples"
    return Table(
        f"Gate: {how}, {100 * judged['max_drop']:g} points are allowed",
        ["metric", "logged", "replayed", "points", "shows from", "outcome"],
        gate_files.outcome_rows(judged["outcomes"]),
    )
