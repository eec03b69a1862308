"""How a calibration looks on a terminal; computes nothing."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from claimscore.jobs.progress import printable, table

LEAST_SHOWN = 10
"""Claims of a source or length below which a figure of it is not shown; the JSON has it."""
_NAMES = {
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1 of the flags",
    "kappa": "kappa with people",
    "precision": "precision: flags that are right",
    "recall": "recall: unsupported claims flagged",
}
_GOALS = {
    "balanced": "best balanced accuracy",
    "precision": "most flags of which at least {:.0%} are right",
    "recall": "fewest false alarms with at least {:.0%} of the unsupported claims flagged",
    "cost": "lowest cost where an unsupported claim that passes costs {:g} false alarms",
}


def print_calibration(document: dict[str, Any]) -> None:
    """The outcome as tables, what it rests on above, what to beware of below."""
    console = Console()
    fit, judge = document["entailment"], document["judge"]
    left_out = ", ".join(f"{n} {reason}" for reason, n in document["left_out"].items()) or "none"
    goal = _GOALS[document["goal"]["kind"]].format(document["goal"]["value"])
    _say(
        console,
        f"judge {judge['name']}: {document['n_used']:,} labelled claims used, left out: {left_out}; fitted on "
        f"{document['n_fitted_on']:,}, every figure is of the other {document['n_reported_on']:,} "
        f"({document['n_reported_groups']:,} groups)",
    )
    _say(console, f"goal: {goal}")
    _say(
        console,
        f"entailment = {fit['threshold']:g} (95% of resamples: {fit['low']:.2f} to {fit['high']:.2f}), in force now: "
        f"{judge['entailment']:g}; temperature = {document['temperature']:g}",
    )
    if weights := document["combiner"]:
        parts = ", ".join(f"{name} {weight:+.2f}" for name, weight in weights.items())
        _say(console, f"combiner: {parts}; the threshold is for what it gives, not for P(entailment)")
    alarm = document["contradiction"]
    why = f" ({alarm['why']})" if alarm["why"] else ""
    _say(console, f"contradiction = {alarm['threshold']:g}{why or ', from labels that say contradicted'}")
    _print_figures(document, console)
    _print_reliability(document, console)
    _print_parts(document, console)
    _say(console, _more(document["more_labels"]))
    for line in document["warnings"]:
        _say(console, f"beware: {line}")
    _say(
        console,
        f"wrote {document['written']}"
        if document.get("written")
        else "no card was written; --to CARD.toml writes one, --force overwrites the config's own",
    )


def _print_figures(document: dict[str, Any], console: Console) -> None:
    fit, judge = document["entailment"], document["judge"]
    both = document["figures"]["fitted"], document["figures"]["in_force"]
    rows = [[words, *(_cell(side[name]) for side in both)] for name, words in _NAMES.items()]
    rows.append(["AUROC of the scores", _cell(document["auroc"]), ""])
    for key, words in (
        ("reliability", "ECE of the scores"),
        ("reliability_tempered", "ECE after temperature"),
    ):
        rows.append(
            [f"{words} (by chance {document[key]['ece_by_chance']:.2f})", _cell(document[key]["ece"]), ""]
        )
    table(
        "Against people, with 95% intervals; flags are what is positive",
        ["figure", f"at {fit['threshold']:g}", f"at {judge['entailment']:g}, in force"],
        rows,
        console=console,
    )


def _print_reliability(document: dict[str, Any], console: Console) -> None:
    rows = [
        [
            f"{b['low']:.1f} to {b['high']:.1f}",
            b["n"],
            b["mean_chance"],
            b["share_supported"],
            f"{b['share_low']:.2f} to {b['share_high']:.2f}",
        ]
        for b in document["reliability"]["bins"]
        if b["n"]
    ]
    table(
        "Reliability: what the judge says, and what people say",
        ["P(entailment)", "claims", "mean", "supported", "95% interval"],
        rows,
        console=console,
    )


def _print_parts(document: dict[str, Any], console: Console) -> None:
    for key, title in (("by_source", "By source"), ("by_length", "By length of the evidence")):
        parts = [
            [
                name,
                part["n"],
                part["n_supported"],
                *(_cell(part[f], part["n"]) for f in ("balanced_accuracy", "auroc")),
            ]
            for name, part in document[key].items()
        ]
        table(title, ["", "claims", "supported", "balanced accuracy", "AUROC"], parts, console=console)


def _more(steps: list[dict[str, Any]]) -> str:
    if steps[0]["width"] is None:
        return "balanced accuracy has no interval: a class is missing in the reporting half"
    told = [f"{step['n']:,}: {100 * step['width']:.0f} points" for step in steps]
    return f"width of the interval of balanced accuracy by claims reported on: {told[0]} now; {', '.join(told[1:])}"


def _cell(figure: dict[str, float | None], n: int = LEAST_SHOWN) -> str:
    if n < LEAST_SHOWN:
        return "too few"
    return (
        "-"
        if figure["value"] is None
        else f"{figure['value']:.2f} ({figure['low']:.2f} to {figure['high']:.2f})"
    )


def _say(console: Console, text: str) -> None:
    console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
