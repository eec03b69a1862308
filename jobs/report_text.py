"""The report as Markdown for a chat post: a screen of text, what to read first at its end.

Text of logs is hostile here too: marks of Markdown are escaped, line breaks fall, and `@` is kept from calling anybody.
It computes nothing.
"""

from __future__ import annotations

import re
from typing import Any

from claimscore.jobs.report_words import (
    apart_words,
    change_words,
    counted,
    grounds,
    group_words,
    interval,
    no_group_words,
    p_words,
    percent,
    visible,
    volume_words,
)

MAX_GROUPS = 5
MAX_ANSWERS = 5
_LEVELS = {"stop": "**Stop.**", "warn": "**Beware.**", "note": "Note."}
_MARKS = re.compile(r"([\\`*_\[\]<>|~#&])")
_COPIED = re.compile(r"(?<![\w.+-])[\w.+-]*\w(?:@|://)\w(?:[\w.:/+-]*[\w/])?")
"""`card@3`, an address of mail or of the web: as code it calls nobody, is no link, and is copied as it was written."""


def plain(text: str | None, limit: int = 160) -> str:
    """Text of a log as Markdown that shows just it, on one line of at most `limit` characters.

    Any other `@` gets a word joiner behind it, which nobody sees, so that `@here` calls nobody.
    """
    one_line = " ".join(visible(text or "-").split())
    short = one_line if len(one_line) <= limit else one_line[: limit - 1] + "…"
    out, at = "", 0
    for found in _COPIED.finditer(short):
        out += f"{_escaped(short[at : found.start()])}`{found[0]}`"
        at = found.end()
    return out + _escaped(short[at:])


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text).replace("@", "@\u2060").replace("://", ":\u2060//")


def render(document: dict[str, Any]) -> str:
    """The document of `report.collect` as Markdown, with a line break at its end."""
    parts = [
        f"## claimscore {document['date']}, {plain(document['series'])}",
        volume_words(document["volume"]),
        "\n".join(f"- {_LEVELS[note['level']]} {plain(note['text'], 300)}" for note in document["notices"]),
        _rates(document["rates"]),
        _concentration(document["concentration"]),
        _comparison(document["comparison"]),
        _worst(document),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rates(rates: list[dict[str, Any]]) -> str:
    rows = ["| rate | value | 95% interval | change |", "|---|---|---|---|"]
    for rate in rates:
        changes = "; ".join(
            change_words(rate, change) for change in rate["changes"][:1] + rate["changes"][-1:][1:]
        )
        over = f"{interval(rate['low'], rate['high'])} of {rate['denominator']:,.0f} {rate['per']}"
        known = over if rate["value"] is not None else ""
        rows.append(f"| {rate['label']} | {percent(rate['value'])} | {known} | {changes} |")
    return "\n".join(rows)


def _concentration(found: dict[str, Any]) -> str:
    groups = found["found"]
    if not groups:
        return f"**Where it concentrates:** {no_group_words(found['n_tested'])}."
    out = ["**Where it concentrates**"]
    for group in groups[:MAX_GROUPS]:
        apart = apart_words(group, groups[0])
        out.append(
            f"- {plain(group_words(group['where']))}: {group['n_bad']} of {group['n']} {group['unit']} "
            f"({percent(group['rate'])}), the rest {percent(group['rest_rate'])}: {group['excess']:.0f} more than at that rate "
            f"({p_words(group['p'])}{'; ' + plain(apart) if apart else ''})"
        )
    if len(groups) > MAX_GROUPS:
        out.append(f"- and {len(groups) - MAX_GROUPS} groups more")
    return "\n".join(out)


def _comparison(compared: dict[str, Any] | None) -> str:
    if compared is None:
        return ""
    kappa = "-" if compared["kappa"] is None else f"{compared['kappa']:.3f}"
    return (
        f"**Against {plain(compared['series'])}:** {compared['n_common']:,} claims in both, "
        f"agreement {percent(compared['agreement'])}, kappa {kappa}, {compared['n_flips']:,} claims flipped."
    )


def _worst(document: dict[str, Any]) -> str:
    answers = document["worst"][:MAX_ANSWERS]
    if not answers:
        return "**Read first:** no claim was flagged."
    n_claims = counted(document["n_flagged"], "flagged claim")
    n_answers = counted(document["n_flagged_answers"], "answer")
    cut = f", {len(answers)} shown" if document["n_flagged_answers"] > len(answers) else ""
    out = [f"**Read first** ({n_claims} in {n_answers}{cut})"]
    for k, answer in enumerate(answers, 1):
        groups = [plain(answer[name], 60) for name in ("topic", "prompt_version", "model") if answer[name]]
        of = f"{answer['n_flagged']} of {counted(answer['n_claims'], 'claim')} flagged"
        asked = f": {plain(answer['question'], 120)}" if answer["question"] else ""
        out.append(f"{k}. {plain(answer['request_id'])} ({', '.join([*groups, of])}){asked}")
        first = next((claim for claim in answer["claims"] if claim["flagged"]), None)
        if first is None:
            out.append(f"   {counted(answer['n_fabricated_citations'], 'fabricated citation')} on no claim")
            continue
        kind = f", {first['type']}" if first["type"] else ""
        out.append(
            f"   {first['verdict']}{kind}: “{plain(first['claim'])}” ({plain('; '.join(grounds(first)), 200)})"
        )
    return "\n".join(out)
