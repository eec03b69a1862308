"""How often the referee's quotations were found, and what is said of it to people and to the gate.

A referee that says `supported` and quotes what is not there invents its evidence: its verdicts are refused one by one, and
below LEAST_FOUND the whole of it is not fit to gate on. Knows counts and rows of verdicts, no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GRADE_WORDS = {
    5: "all of it is in the passages",
    3: "its main points are in the passages, some details are not",
    1: "most of it is not in the passages",
}
"""The anchors of its scale."""
LEAST_FOUND = 0.9
"""Share of the `supported` replies whose span, of four words or more, must stand in the named window for a gate to use them."""


def found_rate(counts: Mapping[str, int]) -> float | None:
    """Spans found of the replies that say `supported`; None where none does.

    Args:
        counts: of the table `referee`, summed over its files.
    """
    n = counts.get("said_supported", 0)
    return counts.get("n_spans_found", 0) / n if n else None


def run_words(counts: Mapping[str, int]) -> str:
    """One line for the report of a run."""
    n_replies = sum(n for name, n in counts.items() if name.startswith("outcome_"))
    n_ok, n_asked = counts.get("outcome_ok", 0), counts.get("n_asked", 0)
    rate, n_supported = found_rate(counts), counts.get("said_supported", 0)
    found = "none said supported" if rate is None else f"spans found: {rate:.1%} of {n_supported:,}"
    words = f"referee: {n_asked:,} claims asked about, {n_ok:,} of {n_replies:,} replies usable, {found}"
    return f"{words}{_grades(counts)}"


def _grades(counts: Mapping[str, int]) -> str:
    """What became of the grades of answers; "" where none was asked for."""
    n_asked = counts.get("n_grades_asked", 0)
    if not n_asked:
        return ""
    given = ", ".join(f"{counts.get(f'grade_{grade}', 0):,} at {grade}" for grade in (5, 3, 1))
    return f"; {n_asked:,} answers graded: {given}, {n_asked - counts.get('grade_outcome_ok', 0):,} without a usable grade"


def grade_words(answer: Mapping[str, Any]) -> str:
    """The referee's grade of a row of the answers table; "" where none was asked for."""
    outcome = answer.get("referee_grade_outcome")
    if outcome is None:
        return ""
    if outcome != "ok":
        return f"the referee's grade was not used ({outcome})"
    return f"the referee graded it {answer['referee_grade']} of 5: {GRADE_WORDS[answer['referee_grade']]}"


def gate_fault(counts: Mapping[str, int]) -> str:
    """Why verdicts of this referee must not be gated on; "" where they may be, or where it was asked nothing."""
    if not counts.get("n_asked", 0):
        return ""
    rate, n_supported = found_rate(counts), counts.get("said_supported", 0)
    if rate is None:
        return (
            "the referee's found-span rate is not known (none of its replies said supported), at least "
            f"{LEAST_FOUND:.0%} is expected: its verdicts cannot be gated on"
        )
    if rate < LEAST_FOUND:
        return (
            f"the referee's found-span rate is {rate:.1%} of {n_supported:,} supported replies, at least {LEAST_FOUND:.0%} is "
            "expected: it quotes what is not there, and its verdicts cannot be gated on"
        )
    return ""


def verdict_words(verdict: Mapping[str, Any]) -> str:
    """What the referee said of one claim of the verdicts table; "" where it was not asked."""
    outcome = verdict["referee_outcome"]
    if outcome is None:
        return ""
    said = verdict["referee_said"] or "nothing usable"
    if outcome != "ok":
        return f"the referee said {said}, not used ({outcome})"
    return f"the referee said {said}" + (
        f' by "{verdict["referee_span"]}"' if verdict["referee_span"] else ""
    )
