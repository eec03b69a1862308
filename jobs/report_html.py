"""The report as one HTML file that needs nothing else: no network, no font, no picture file.

Jinja2 with autoescape writes every text; before that each is made visible (controls, marks of direction). The page's
Content-Security-Policy allows one style sheet and one script, each by its hash and both static: data is in the DOM as
text, or in a JSON block that no browser runs. Without scripts all but the search over the claims is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2

from claimscore.jobs import concentration, report_charts, report_words, trend
from claimscore.jobs.flagged import MAX_CHARS

MAX_GROUPS = 12
N_OPEN = 3
"""Of the worst answers, how many are unfolded at first."""

_FOLDER = Path(__file__).parent / "templates"
_COLUMNS = (
    "request_id",
    "anchor",
    "before",
    "sentence",
    "after",
    "topic",
    "prompt_version",
    "model",
    "claim",
    "verdict",
)
_LEVELS = {"stop": "Stop.", "warn": "Beware.", "note": "Note."}
_ROLES = {
    "supported": "evidence",
    "contradicted": "contradicted by",
    "unsupported": "nearest",
    "unscored": "nearest",
}
_WORDS = (
    "apart_words",
    "change_words",
    "counted",
    "direction",
    "grounds",
    "group_words",
    "interval",
    "no_group_words",
    "p_words",
    "percent",
    "show_command",
)
_CHARTS = (
    ("prompt_version", "Hallucination rate by prompt version"),
    ("model", "Hallucination rate by model"),
)


def render(document: dict[str, Any]) -> str:
    """The document of `report.collect` as one HTML page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: report_words.visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {name: getattr(report_words, name) for name in (*_WORDS, "points", "volume_words")}
    style, script = (_FOLDER / name for name in ("report.css", "report.js"))
    style_text, script_text = style.read_text(encoding="utf-8"), script.read_text(encoding="utf-8")
    return environment.get_template("report.html").render(
        d=document,
        charts=_charts(document),
        data=_data(document["flagged"]),
        style=style_text,
        script=script_text,
        policy=_policy(style_text, script_text),
        levels=_LEVELS,
        roles=_ROLES,
        max_groups=MAX_GROUPS,
        min_group=concentration.MIN_GROUP,
        n_open=N_OPEN,
        max_id=MAX_CHARS["id"],
    )


def _policy(style: str, script: str) -> str:
    """Nothing but this style sheet and this script; no base, no form target, no frame."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _data(flagged: list[dict[str, Any]]) -> str:
    """The flagged claims as JSON that can stand in a script element: no `<`, `>`, `&` in it at all."""
    columns = (*_COLUMNS, "type", "citation", "rule", "chunk", "quote", "against", "against_quote", "grounds")
    table = {"columns": columns, "rows": [_row(claim) for claim in flagged]}
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text


def _row(claim: dict[str, Any]) -> list[str | None]:
    evidence, against = claim["evidence"] or {}, claim["against"] or {}
    values = [
        *(claim[name] for name in _COLUMNS),
        *(claim["type"], claim["citation"], claim["decided_by"]),
        *(evidence.get("chunk_id"), evidence.get("quote"), against.get("chunk_id"), against.get("quote")),
        "; ".join(report_words.grounds(claim)),
    ]
    return [None if value is None else report_words.visible(value) for value in values]


def _charts(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Each chart with its title, its SVG and what its letters and numbers mean; none where nothing is known."""
    dates = [point["date"] for line in document["lines"]["all"] for point in line["points"]]
    if not dates:
        return []
    days = min(dates), max(*dates, document["date"])  # the day itself even where it has nothing
    out = []
    for grouping, title in _CHARTS:
        lines = document["lines"][grouping]
        marks = [deploy for deploy in document["deploys"] if deploy["kind"] in (grouping, trend.JUDGING)]
        if [line["name"] for line in lines] == [None]:  # a log that names none has but one line, that of all
            continue
        out.append(_rate_chart(title, lines, marks, "hallucination_rate", days))
    if not out:
        out.append(
            _rate_chart("Hallucination rate", document["lines"]["all"], [], "hallucination_rate", days)
        )
    out.append(
        _rate_chart(
            "Groundedness, all answers", document["lines"]["all"], document["deploys"], "groundedness", days
        )
    )
    volumes = document["volume"]["days"]
    name = "Answers a day: " + ", ".join(f"{day['date']} {day['n_answers']:,}" for day in volumes)
    svg = report_charts.volume_chart(volumes, days=days, name=name)
    picture = svg.replace('class="chart"', 'class="chart volume"')
    out.append({"title": "Answers a day", "svg": picture, "legend": [], "marks": []})
    return out


def _rate_chart(
    title: str, lines: list[dict[str, Any]], marks: list[dict[str, str]], metric: str, days: tuple[str, str]
) -> dict[str, Any]:
    """A chart of `report_charts` with its legend and a text alternative that gives each line's last value."""
    legend = []
    for letter, line in zip(report_charts.LETTERS, lines, strict=False):
        known = [point for point in line["points"] if point.get(metric, [None])[0] is not None]
        last = f"{report_words.percent(known[-1][metric][0])} on {known[-1]['date']}" if known else "no value"
        name = line["name"] or ("all answers" if len(lines) == 1 else "(none)")
        legend.append({"letter": letter, "name": name, "last": last})
    text = f"{title}, {days[0]} to {days[1]}. " + "; ".join(f"{e['letter']}: {e['last']}" for e in legend)
    svg = report_charts.rate_chart(lines, marks, metric, days=days, name=text)
    return {"title": title, "svg": svg, "legend": legend, "marks": marks}
