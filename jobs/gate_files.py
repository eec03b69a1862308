"""`claimscore gate`: picks the two sides out of an output root, prints the outcome, writes JUnit XML for CI systems.

The sides are answers of a day, of a prompt version, of a judge series, or of an evaluation's file. It decides nothing: `gate` does.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from claimscore.jobs import gate, golden, outputs, recipes, referee_words, reports, settings
from claimscore.jobs.config import StoreConfig
from claimscore.jobs.errors import InputError, reason_of
from claimscore.jobs.layout import TableFile
from claimscore.jobs.progress import printable, table
from claimscore.jobs.records import ANSWERS
from claimscore.jobs.report_words import again_words, counted, names_in_words, percent, points, visible
from claimscore.jobs.store import Store
from claimscore.jobs.wholefile import write_whole

MAX_VERSIONS = 10
"""Prompt versions that an error lists."""


def parse_drop(text: str, option: str = "--max-drop") -> float:
    """`2pt` as the share 0.02.

    Raises:
        InputError: another form, or not within 0 and 100 points.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*pt", text.strip())
    if not found or float(found[1]) > 100:
        raise InputError(f"{option} {text!r}: expected points between 0pt and 100pt; give 2pt for two points")
    return float(found[1]) / 100


def run(
    out: str,
    *,
    candidate: dict[str, str | None],
    baseline: dict[str, str | None],
    metrics: tuple[str, ...],
    max_drop: str,
) -> dict[str, Any]:
    """Judge the candidate's answers against the baseline's.

    Args:
        out: the output root.
        candidate: date, series, prompt_version; None: the newest day, the series that dashboards read, every version
            but the baseline's where it names one. `file`, where it is set, stands for day and series: the JSON that
            `claimscore evaluate` wrote.
        baseline: the same; None: as the candidate's.
        metrics: names of gate.METRICS.
        max_drop: as `parse_drop` takes it.

    Raises:
        InputError: a side is unknown, too small, or the same as the other.
    """
    allowed = parse_drop(max_drop)
    store = Store(out, StoreConfig(out=out))
    sides = _sides(store, out, candidate, baseline)
    for name, side in zip(("candidate", "baseline"), sides, strict=True):
        if not side.get("file") and not store.files("answers", date=side["date"], series=side["series"]):
            raise InputError(
                f"{out}: no answers of the {name}'s {side['date']} in series {side['series']}, expected some; run that day first"
            )
    if _place(sides[0]) == _place(sides[1]):
        instead = "--baseline-date or --baseline-prompt-version"
        if not sides[0].get("file") and not _versions(_read(store, sides[0])):
            instead = f"--baseline-date, --baseline-series or --baseline FILE ({_NO_VERSION})"
        raise InputError(f"gate: candidate and baseline are the same answers; give {instead}")
    with_files = any(side.get("file") for side in sides)
    files = [_load(path) if (path := side.get("file")) else None for side in sides]
    mine, theirs = (
        _answers(store, side, file, as_keys=with_files) for side, file in zip(sides, files, strict=True)
    )
    judged = gate.judge(theirs, mine, metrics, allowed)
    outcomes = [dataclasses.asdict(outcome) for outcome in judged["outcomes"]]
    referees = {
        name: _referee(store, side) for name, side in zip(("candidate", "baseline"), sides, strict=True)
    }
    faults = [
        f"{name}: {fault}"
        for name, counts in referees.items()
        if (fault := referee_words.gate_fault(counts or {}))
    ]
    otherwise = _otherwise(store, sides, files)
    failures = [*judged["failures"], *faults[:1], *([otherwise] if otherwise else [])]
    judged |= {"referee": referees, "made_otherwise": otherwise, "failures": failures}
    return (
        {"candidate": sides[0], "baseline": sides[1], "max_drop": allowed} | judged | {"outcomes": outcomes}
    )


def _sides(
    store: Store, out: str, candidate: dict[str, str | None], baseline: dict[str, str | None]
) -> list[dict[str, str | None]]:
    """Both sides with day and series filled in; `but` is the prompt version that a side leaves out."""
    if candidate.get("file") and baseline.get("file"):
        return [_file_side(candidate), _file_side(baseline)]
    named = [
        side["series"] and reports.find_series(store, out, side["series"]) for side in (candidate, baseline)
    ]
    series = named[0] or store.current()
    if series is None:
        raise outputs.no_run(out, otherwise="give --out, or run a day first")
    date = candidate["date"] or max((f.date for f in store.files("answers", series=series)), default=None)
    first = {"date": date, "series": series, "prompt_version": candidate["prompt_version"], "but": None}
    second = {
        "date": baseline["date"] or date,
        "series": named[1] or series,
        "prompt_version": baseline["prompt_version"] or candidate["prompt_version"],
        "but": None,
    }
    if baseline["prompt_version"] and not candidate["prompt_version"]:
        first["but"] = baseline["prompt_version"]
    return [_file_side(candidate, first), _file_side(baseline, second)]


def _place(side: dict[str, str | None]) -> dict[str, str | None]:
    """The side, with its file in the one way that all its names come to: `base.json` is `./base.json`."""
    file = side.get("file")
    return side | {"file": str(Path(file).resolve()) if file else None}


def _otherwise(store: Store, sides: list[dict[str, str | None]], files: list[Any]) -> str | None:
    """Why the sides cannot be compared; two series of an output are, because somebody asked for it."""
    candidate, baseline = sides
    if not (candidate.get("file") or baseline.get("file")) and candidate["series"] != baseline["series"]:
        return None
    now, before = (_recipe(store, side, file) for side, file in zip(sides, files, strict=True))
    # A golden set is read by our own names beside the columns of the config.
    if any(files) and not all(files):
        before = {name: value for name, value in before.items() if name != "[read]"}
    kept = {} if all(files) else dict(settings.known(store))
    for file in files:  # an evaluation brings its own; one of before they were written down, none
        kept |= settings.checked(file.get("settings")) if file else {}
    names = recipes.differing(before, now, kept)
    if not names:
        return None
    again = "evaluate it again"
    if not baseline.get("file"):
        is_current = baseline["series"] == store.current()
        again = again_words([str(baseline["date"])], is_current=is_current)
    return (
        f"{side_words(baseline)} was made otherwise than {side_words(candidate)} ({names_in_words(names)}), "
        f"what moved may be the measure: {again}"
    )


def _recipe(store: Store, side: dict[str, str | None], file: Any) -> recipes.Recipe:
    """How a side was made; an evaluation of before that was written down says nothing."""
    if path := side.get("file"):
        found = file.get("made_by", {})
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise InputError(
                f"{path}: made_by is {str(found)[:40]!r}, expected names and fingerprints; evaluate again"
            )
        return found
    day, series = side["date"], side["series"]
    return recipes.recipe(store, series, day) if day and series else {}


def _referee(store: Store, side: dict[str, str | None]) -> dict[str, int] | None:
    """What the referee of a side's verdicts was counted for; None where none had a part, or the side is a file."""
    if side.get("file"):
        return None
    total: Counter[str] = Counter()
    used = False
    for file in store.files("verdicts", date=side["date"], series=side["series"]):
        manifest = store.manifest(file)
        if manifest is None or not manifest["read"].get("referee"):
            continue
        used = True
        replies = store.manifest(TableFile("referee", file.date, file.shard_id, file.series))
        if replies is None:
            raise InputError(
                f"{store.path(file)}: the referee's table that it was made from is gone, expected it: its found-span rate "
                f"cannot be known; run {file.date} again"
            )
        total.update(replies["counts"])
    return dict(total) if used else None


def _file_side(
    named: dict[str, str | None], other: dict[str, str | None] | None = None
) -> dict[str, str | None]:
    """The side whose answers are in a file, or else `other`."""
    if other and not named.get("file"):
        return other
    place = {"date": None, "series": None, "prompt_version": named["prompt_version"], "but": None}
    return place | {"file": named["file"]}


_NO_VERSION = "no answer names a prompt version; [read.columns] prompt_version maps the log's column of it"


def _read(store: Store, side: dict[str, str | None]) -> pa.Table:
    """The answers of a side's day and series, whatever their prompt version."""
    columns = list(gate.NEEDED_COLUMNS)
    files = store.files("answers", date=side["date"], series=side["series"])
    return pa.concat_tables(
        [ANSWERS.empty_table().select(columns), *(store.read(file, columns) for file in files)]
    )


def _versions(answers: pa.Table) -> list[str]:
    return sorted(v for v in answers.column("prompt_version").unique().to_pylist() if v is not None)


def _answers(store: Store, side: dict[str, str | None], file: Any, *, as_keys: bool) -> pa.Table:
    """A side's answers, of its evaluation `file` where it has one; `as_keys`: with keys for questions, as files have them.

    Raises:
        InputError: none is of the prompt version that is asked for.
    """
    if path := side.get("file"):
        answers = golden.answers_of(file, path)
    else:
        answers = _read(store, side)
        if as_keys:
            keys = golden.question_keys(answers.column("question"))
            answers = answers.set_column(answers.column_names.index("question"), "question", keys)
    versions = answers.column("prompt_version")
    if wanted := side["prompt_version"]:
        if answers.num_rows and not (known := _versions(answers)):
            raise InputError(
                f"gate: prompt version {wanted!r}: {_NO_VERSION}; or compare days (--baseline-date), judge series "
                "(--baseline-series) or evaluations (--candidate FILE, --baseline FILE)"
            )
        if answers.num_rows and wanted not in known:
            more = " and others" if len(known) > MAX_VERSIONS else ""
            listed = ", ".join(map(repr, known[:MAX_VERSIONS]))
            raise InputError(
                f"gate: no answer of {path or side['date']} is of prompt version {wanted!r}, expected one of {listed}{more}"
            )
        answers = answers.filter(pc.equal(versions, wanted))
    elif side["but"]:
        answers = answers.filter(pc.fill_null(pc.not_equal(versions, side["but"]), fill_value=True))
    return answers


def _load(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
        raise InputError(
            f"{path}: cannot be read: {reason_of(err)}; expected the JSON file that `claimscore evaluate --to FILE.json` writes"
        ) from err


def side_words(side: dict[str, str | None]) -> str:
    """A side as a person would name it."""
    version = f", {side['prompt_version']}" if side["prompt_version"] else ""
    if path := side.get("file"):
        return f"{Path(path).name}{version}"
    return f"{side['date']}{version}{', without ' + side['but'] if side['but'] else ''} ({side['series']})"


def print_gate(document: dict[str, Any]) -> None:
    """The outcome as a table, and the reason in words."""
    console = Console()
    how = f"{counted(document['n_paired'], 'question')} of both" if document["n_paired"] else "two samples"
    console.print(
        printable(
            f"{side_words(document['candidate'])}: {counted(document['n_candidate'], 'answer')}, against "
            f"{side_words(document['baseline'])}: {counted(document['n_baseline'], 'answer')}; {how}"
        ),
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if document["made_otherwise"]:
        console.print("not comparable, whatever the table says (below)", highlight=False, soft_wrap=True)
    columns = ["metric", "baseline", "candidate", "points", "shows from", "outcome"]
    table("Gate", columns, outcome_rows(document["outcomes"]), console=console)
    console.print(
        "shows from: the smallest drop, in points, that so many answers show four times in five",
        highlight=False,
        soft_wrap=True,
    )
    for name, counts in document["referee"].items():
        if counts:
            console.print(f"{name}'s {referee_words.run_words(counts)}", highlight=False, soft_wrap=True)
    for line in document["failures"]:
        console.print(f"failed: {line}", highlight=False, markup=False, soft_wrap=True)
    if not document["failures"]:
        console.print("passed")


def outcome_rows(outcomes: list[dict[str, Any]]) -> list[list[str]]:
    """Each outcome in words: metric, baseline, candidate, points (below 0: less), the drop that shows, what came of it."""
    return [
        [
            o["metric"],
            percent(o["baseline"]),
            percent(o["candidate"]),
            points(-o["drop"] if gate.METRICS[o["metric"]][2] else o["drop"]),
            f"{100 * o['visible']:.1f}",
            f"FAILED: at least {100 * o['bound']:.1f} worse" if o["failed"] else "ok",
        ]
        for o in outcomes
    ]


def write_junit(document: dict[str, Any], path: str) -> None:
    """One test case a metric, and one for what could not be scored, as JUnit XML; one more where the sides cannot be compared.

    Raises:
        OutputError: the file cannot be written.
    """
    failed = {outcome["metric"]: outcome["failed"] for outcome in document["outcomes"]}
    lines = list(document["failures"])
    is_referee_unfit = any(referee_words.gate_fault(counts or {}) for counts in document["referee"].values())
    is_other = bool(document["made_otherwise"])
    others = [("unscored", len(lines) - is_referee_unfit - is_other > sum(failed.values()))]
    others += [("referee", is_referee_unfit)] if any(document["referee"].values()) else []
    others += [("made alike", True)] if is_other else []
    suite = ET.Element("testsuite", name=visible(f"claimscore gate {side_words(document['candidate'])}"))
    for metric, is_failed in (*failed.items(), *others):
        case = ET.SubElement(suite, "testcase", classname="claimscore.gate", name=metric)
        if is_failed:
            ET.SubElement(case, "failure", message=visible(lines.pop(0)))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(document["failures"])))
    text = ET.tostring(suite, encoding="utf-8", xml_declaration=True) + b"\n"
    write_whole(Path(path), text, option="--junit")
