"""The report's charts as inline SVG: rates over days with intervals, first days of a version, answers a night.

Drawn by pygal: 1.3 MB of pure Python (LGPL, used as it is), 0.4 s to import, and SVG whose looks are all in classes, so
that one style sheet serves light, dark and print and the page needs no inline style. matplotlib (75 MB, 2 s, looks in
style attributes) and altair with vl-convert (100 MB, 5 s) draw as well and cost more. pygal's own script and style are
taken out. No text of a log is drawn: lines are named by letters, and the page says which is which.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any
from xml.etree import ElementTree as ET

import pygal

WIDTH, HEIGHT = 560, 230
LETTERS = "ABCDEF"
_SVG = "{http://www.w3.org/2000/svg}"
_DROPPED = ("style", "script", "title", "desc", "foreignObject")


def rate_chart(
    lines: list[dict[str, Any]],
    deploys: list[dict[str, str]],
    metric: str,
    *,
    days: tuple[str, str],
    name: str,
) -> str:
    """One metric over days: a line a group, bars for the 95% intervals, an upright line on a first day.

    Args:
        lines: of `trend.lines`; the k-th is drawn as LETTERS[k] and has the classes of series 2k and 2k + 1.
        deploys: those to mark; numbered from 1 in their order.
        metric: a key of the points.
        days: the first and last day of the axis.
        name: the text alternative.
    """
    first = dt.date.fromisoformat(days[0])
    n_days = (dt.date.fromisoformat(days[1]) - first).days
    chart = _chart(n_days, first)
    highest = 0.0
    for k, line in enumerate(lines):
        known = [
            (_at(p["date"], first), *p[metric])
            for p in line["points"]
            if p.get(metric, [None])[0] is not None
        ]
        shift = 0.06 * (k - (len(lines) - 1) / 2) * min(1.0, max(1, n_days) / 7)  # intervals side by side
        dots = _unbroken([{"value": (x + shift, value), "label": ""} for x, value, _, _ in known])
        if dots:
            dots[-1]["label"] = LETTERS[k]
        highest = max([highest, *(high for *_, high in known)])
        chart.add(LETTERS[k], dots)
        bars = [(x + shift, y) for x, _, low, high in known for y in (low, high, None)]
        chart.add("", bars, show_dots=False)
    top = _set_shares(chart, highest)
    for number, deploy in enumerate(deploys, 1):
        x = _at(deploy["date"], first)
        chart.add("", [(x, 0), {"value": (x, top), "label": str(number)}])
    return _clean(chart, name, n_lines=len(lines))


def _set_shares(chart: pygal.XY, highest: float) -> float:
    """Give the upright axis round shares from 0 to a tenth above the highest value; that tenth is given back."""
    top = min(1.0, max(0.1, math.ceil(highest * 10 + 0.2) / 10))
    step = 2 if top > 0.5 else 1
    chart.range = (0, top)
    chart.y_labels = [{"value": k / 10, "label": f"{10 * k}%"} for k in range(0, round(10 * top) + 1, step)]
    return top


def volume_chart(volumes: list[dict[str, Any]], *, days: tuple[str, str], name: str) -> str:
    """Answers a night, an upright bar a day; a day without a bar was not run."""
    first = dt.date.fromisoformat(days[0])
    n_days = (dt.date.fromisoformat(days[1]) - first).days
    chart = _chart(n_days, first)
    for day in volumes:
        x = _at(day["date"], first)
        chart.add("", [(x, 0), {"value": (x, day["n_answers"]), "label": f"{day['n_answers']:,}"}])
    top = max([1, *(day["n_answers"] for day in volumes)])
    chart.range = (0, top * 1.15)
    chart.y_labels = [{"value": 0, "label": "0"}, {"value": top, "label": f"{top:,}"}]
    if len(volumes) > 10:
        chart.print_labels = False
    return _clean(chart, name, n_lines=0)


def _chart(n_days: int, first: dt.date) -> pygal.XY:
    step = max(1, math.ceil((n_days + 1) / 7))
    ticks = range(n_days, -1, -step) if n_days else range(1)
    return pygal.XY(
        js=(),
        css=(),
        no_prefix=True,
        disable_xml_declaration=True,
        show_legend=False,
        allow_interruptions=True,
        print_labels=True,
        width=WIDTH,
        height=HEIGHT,
        margin=8,
        margin_right=26,
        dots_size=3,
        xrange=(-0.4, n_days + 0.4),
        x_labels=[{"value": k, "label": f"{first + dt.timedelta(days=k):%m-%d}"} for k in sorted(ticks)],
    )


def _unbroken(dots: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The dots with a break wherever a day is missing: a line across it would claim what nobody measured."""
    out: list[dict[str, Any]] = []
    for dot in dots:
        if out and dot["value"][0] - out[-1]["value"][0] > 1.5:
            out.append({"value": (out[-1]["value"][0] + 1, None), "label": ""})
        out.append(dot)
    return out


def _at(date: str, first: dt.date) -> int:
    return (dt.date.fromisoformat(date) - first).days


def _clean(chart: pygal.XY, name: str, *, n_lines: int) -> str:
    """The chart's SVG without script, style and titles, with its text alternative, and each series with its role."""
    root = chart.render_tree()
    for parent in list(root.iter()):
        for child in list(parent):
            tag = str(child.tag).removeprefix(_SVG)
            if tag in _DROPPED or not isinstance(child.tag, str) or child.get("class") == "tooltip":
                parent.remove(child)
    for element in root.iter():
        words = (element.get("class") or "").split()
        number = next((int(word[6:]) for word in words if word.startswith("serie-")), None)
        if number is not None:
            role = ("line", "bounds")[number % 2] if number < 2 * n_lines else "upright"
            group = f" group-{number // 2}" if role != "upright" else ""
            element.set("class", f"{element.get('class')} {role}{group}")
        if element.get("id") is not None:
            del element.attrib["id"]
    _spread([e for e in root.iter() if e.get("class") == "label"])
    root.set("role", "img")
    root.set("aria-label", name)
    root.set("class", "chart")
    return ET.tostring(root, encoding="unicode").replace("ns0:", "").replace(":ns0", "")


def _spread(labels: list[ET.Element]) -> None:
    """Put each label beside its dot, and one below another where they would cover each other."""
    for label in labels:
        label.set("y", f"{float(label.get('y', 0)) - 6:.1f}")
    placed: list[tuple[float, float]] = []
    for label in sorted(labels, key=lambda label: float(label.get("y", 0))):
        x, y = float(label.get("x", 0)), float(label.get("y", 0))
        y = max(
            [y, *(other_y + 12 for other_x, other_y in placed if abs(other_x - x) < 24 and other_y + 12 > y)]
        )
        label.set("y", f"{y:.1f}")
        placed.append((x, y))
