"""The words and numbers of the report, equal in every form: shares, changes, groups, and harmless text.

It decides nothing: what is clear, found or flagged stands in the document. Characters that steer a terminal or turn
the direction of text around are shown by name, never sent on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any

NO_VALUE = "not known"
MAX_NAMES = 6
"""Of what differs in how days were made."""
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line feed
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"  # marks of direction, line separators
    "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]"  # surrogates and private characters
)
_NAMES = {"prompt_version": "prompt version", "source": "chunk source"}


def visible(text: str) -> str:
    """`text` with controls and marks of direction written out (`⟨U+202E⟩`); line breaks and tabs stay.

    Joiners stay too: Persian, Indic scripts and emoji need them.
    """
    return _STEERING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def percent(value: float | None) -> str:
    """A share as `12.3%`."""
    return NO_VALUE if value is None else f"{100 * value:.1f}%"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * value:+.1f}".replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """`1.2% to 3.4%`, or nothing where it is not known."""
    return "" if low is None or high is None else f"{100 * low:.1f}% to {100 * high:.1f}%"


def counted(n: int, word: str) -> str:
    """A number with its word: `1 claim`, `2,000 claims`."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def no_group_words(n_tested: int) -> str:
    """That no group stands out, or that none was large enough to tell."""
    if not n_tested:
        return "too few answers to tell of any group"
    return f"none of {counted(n_tested, 'group')} holds more hallucinated answers than chance explains"


def direction(rate: dict[str, Any], change: dict[str, Any]) -> str:
    """What a change is: `worse`, `better`, `changed` (neither way is good), or `unclear`."""
    if not change["is_clear"]:
        return "unclear"
    if rate["better"] == "either":
        return "changed"
    return "better" if (change["change"] > 0) == (rate["better"] == "higher") else "worse"


def change_words(rate: dict[str, Any], change: dict[str, Any]) -> str:
    """One change in words, its 95% interval behind it."""
    bounds = f"{points(change['low'])} to {points(change['high'])}"
    way = direction(rate, change)
    if way == "unclear":
        return f"against {change['against']}: no clear change ({bounds} points)"
    word = "" if way == "changed" else f"{way}, "
    return f"against {change['against']}: {word}{points(change['change'])} points ({bounds})"


def group_words(where: dict[str, str | None]) -> str:
    """A group by what its answers have in common: `prompt version p14, topic cards`."""
    return ", ".join(f"{_NAMES.get(name, name)} {value or '(none)'}" for name, value in where.items())


def p_words(p: float) -> str:
    """A chance: `p < 0.001`, `p = 0.012`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def apart_words(group: dict[str, Any], first: dict[str, Any]) -> str:
    """Whether a group says anything beside the first one; nothing for the first itself."""
    if group is first or group["apart"] is None:
        return ""
    name = group_words(first["where"])
    return f"also apart from {name}" if group["apart"] else f"not apart from {name}"


def grounds(claim: dict[str, Any]) -> list[str]:
    """Why a claim has its verdict, each ground a few words."""
    out = [f"rule {claim['decided_by']}" + (f" ({claim['reason']})" if claim["reason"] else "")]
    if claim["p"] is not None and len(claim["p"]) == 3:
        names = ("entailment", "neutral", "contradiction")
        out.append(", ".join(f"{name} {p:.2f}" for name, p in zip(names, claim["p"], strict=True)))
    if claim["citation"]:
        cited = f" ({', '.join(claim['cited'])})" if claim["cited"] else ""
        out.append(f"citation {claim['citation']}{cited}")
    if claim["missing_values"]:
        out.append(f"not in the evidence: {', '.join(claim['missing_values'])}")
    if claim["rival"]:
        out.append(f"the evidence is surer of {claim['rival']}")
    if claim["consistency"] is not None:
        low = ", low" if claim["low_consistency"] else ""
        out.append(f"{claim['consistency']:.0%} of {claim['n_samples']} samples agree{low}")
    if claim["repeats"] is not None:
        out.append(f"repeats claim {claim['repeats']}, counted once")
    return out


def show_command(document: dict[str, Any], request_id: str = "REQUEST_ID") -> str:
    """The command that shows an answer of this report whole, to be pasted into a shell in any folder."""
    words = ["claimscore", "show", "--out", document["out"], "--series", document["series"]]
    return shlex.join([*words, *(["--"] if request_id.startswith("-") else []), request_id])


def _repeated(volume: dict[str, Any]) -> str:
    n = volume["n_repeats"]
    return f", {counted(n, 'repeat')} of them counted once" if n else ""


def volume_words(volume: dict[str, Any]) -> str:
    """How much was checked, in one line."""
    share = volume["n_unscored"] / volume["n_claims"] if volume["n_claims"] else 0
    text = (
        f"{counted(volume['n_answers'], 'answer')} ({volume['n_judged']:,} judged), "
        f"{counted(volume['n_claims'], 'claim')} ({share:.1%} unscored){_repeated(volume)}, "
        f"{counted(volume['n_quarantined'], 'row')} quarantined"
    )
    if volume["usual_answers"] is not None:
        text += f"; usual are {volume['usual_answers']:,.0f} answers"
    return text


def names_in_words(names: Iterable[str]) -> str:
    """Each once, sorted, the first of them where there are many."""
    told = sorted(set(names))
    more = f" and {len(told) - MAX_NAMES} more" if len(told) > MAX_NAMES else ""
    return ", ".join(told[:MAX_NAMES]) + more


def again_words(days: Collection[str], *, is_current: bool) -> str:
    """The command that makes these days, and those between them, anew: a series that is not the current one needs its card."""
    first, last = min(days), max(days)
    if not is_current:
        return f"claimscore backfill CONFIG --since {first} --until {last} --judge CARD"
    asked = f"--date {first}" if first == last else f"--since {first} --until {last}"
    return f"claimscore run CONFIG {asked}"


def pooled_words(
    series: str, days: Collection[str], borders: Mapping[str, list[str]], *, is_current: bool
) -> list[str]:
    """A line where days that are counted together were made otherwise than one another; none where all were made alike."""
    if not borders:
        return []
    parts = [f"from {day} on ({names_in_words(names)})" for day, names in sorted(borders.items())]
    again = again_words(days, is_current=is_current)
    line = (
        f"{series}: counted together are {len(days)} days, {min(days)} to {max(days)}, made otherwise than one another: "
        f"{', '.join(parts)}; to compare: {again}"
    )
    return [line]


def otherwise_words(otherwise: Mapping[str, list[str]], *, is_current: bool) -> tuple[str, str, str]:
    """The days, what differs, and the command that makes them alike, for people.

    As (`3 days, 2026-11-25 to 2026-11-27`, `[verdicts] rival_margin 1.5 -> 2, version of the scores 4 -> 5`, `claimscore run
    CONFIG --since … --until …`, or `backfill` for a series that is not the current one).
    """
    days = sorted(otherwise)
    names = names_in_words(name for names in otherwise.values() for name in names)
    spanned = days[0] if len(days) == 1 else f"{len(days)} days, {days[0]} to {days[-1]}"
    return spanned, names, again_words(days, is_current=is_current)


def unlike_words(date: str, otherwise: Mapping[str, list[str]], *, is_current: bool) -> str:
    """That a day will not be comparable with days that are stored, why, and what makes them so."""
    spanned, names, again = otherwise_words(otherwise, is_current=is_current)
    return f"{date}: not comparable with {spanned}, made otherwise ({names}); to compare: {again}"


def replaced_words(series: str, day: str, names: Iterable[str]) -> str:
    """That a day of a series is made anew in its place, and how it was made before."""
    return (
        f"{day}: series {series} holds this day, made otherwise ({names_in_words(names)}): it is replaced; to keep both, give "
        "the judge card another name"
    )
