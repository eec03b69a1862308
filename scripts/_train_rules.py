"""Invented rules and descriptions, and claims that keep, drop, break or turn round what narrows them.

Conditions, times, exceptions, quantifiers, denials, links of two statements, lists, and texts that give orders.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from _train_forms import MONTHS, capital, spelled
from _train_report_words import FILLERS, INJECTIONS
from _train_rows import CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILED
from _train_rule_words import CONDITIONS, DENIALS, GROUPS, PARTS, PLACES_WITHIN, TIMES
from _train_words import PEOPLE, PLACES

Case = tuple[str, int, str]
"""(claim, label, kind)."""


def conditioned(rng: random.Random) -> tuple[str, list[Case]]:
    """A rule with a condition: kept in other words, dropped, and broken."""
    clauses, conditions = rng.choice(CONDITIONS)
    clause, denied = rng.choice(clauses)
    tied, met, unmet = rng.choice(conditions)
    fronted = f"{capital(tied)}, {clause}."
    behind = f"{capital(clause)} {tied}."
    premise, twin = rng.sample([fronted, behind], 2)
    cases = [
        (twin, ENTAILMENT, "condition_kept"),
        (f"{capital(clause)} {met}.", ENTAILMENT, "condition_met"),
        (f"{capital(clause)}.", NEUTRAL, "condition_dropped"),
        (
            f"{capital(clause)} {unmet}.",
            CONTRADICTION if tied.startswith(("only", "unless")) else NOT_ENTAILED,
            "condition_broken",
        ),
    ]
    if tied.startswith("only"):
        cases += [(f"{capital(denied)} {unmet}.", ENTAILMENT, "condition_denied")]
    if rng.random() < 0.35:
        return f"{capital(clause)}.", [
            (f"{capital(clause)}.", ENTAILMENT, "condition_none"), (f"{capital(denied)}.", CONTRADICTION, "rule_denied"),
        ]  # fmt: skip
    return premise, rng.sample(cases, 3)


def timed(rng: random.Random) -> tuple[str, list[Case]]:
    """A rule that holds for some time only."""
    clauses, _ = rng.choice(CONDITIONS)
    clause, denied = rng.choice(clauses)
    a, b, c = sorted(rng.sample(range(12), 3))
    limits = {
        f"until the end of {MONTHS[b]}": (MONTHS[a], MONTHS[c]),
        f"from {MONTHS[b]} on": (MONTHS[c], MONTHS[a]),
        f"between the start of {MONTHS[a]} and the end of {MONTHS[b]}": (MONTHS[a], MONTHS[c]),
    }
    limit, (inside, outside) = rng.choice(list(limits.items()))
    cases = [
        (f"{capital(limit)}, {clause}.", ENTAILMENT, "time_kept"),
        (f"{capital(clause)} in {inside}.", ENTAILMENT, "time_inside"),
        (f"{capital(clause)} in {outside}.", NOT_ENTAILED, "time_outside"),
        (f"{capital(clause)} all year round.", NOT_ENTAILED, "time_dropped"),
        (f"{capital(clause)}.", NEUTRAL, "time_dropped"),
    ]
    if limit.startswith("until"):
        cases.append((f"{capital(denied)} in {inside}.", CONTRADICTION, "rule_denied"))
    return f"{capital(clause)} {limit}.", rng.sample(cases, 3)


def excepted(rng: random.Random) -> tuple[str, list[Case]]:
    """A rule with an exception: the exception is not covered, what is beside it is."""
    clauses, _ = rng.choice(CONDITIONS)
    clause, denied = rng.choice(clauses)
    times = rng.sample(TIMES, 2)
    premise = f"{capital(clause)} {rng.choice(['except', 'but not', 'save'])} {times[0]}."
    return premise, [
        (f"{capital(clause)} {times[0]}.", CONTRADICTION, "exception_broken"),
        (f"{capital(denied)} {times[0]}.", ENTAILMENT, "exception_kept"),
        (f"{capital(clause)} {times[1]}.", ENTAILMENT, "exception_beside"),
    ][: rng.randint(2, 3)]


def quantified(rng: random.Random) -> tuple[str, list[Case]]:
    """How many of a group: what follows, what does not, what is excluded."""
    noun, one, trait, other = rng.choice(GROUPS)
    n = rng.randint(4, 30)
    k = rng.randint(2, n - 2)
    cases: dict[str, list[tuple[str, int]]] = {
        f"Some of the {noun} {trait}": [(f"All of the {noun} {trait}", NEUTRAL), (f"None of the {noun} {trait}", CONTRADICTION), (f"At least one {one} is among those that {trait}", ENTAILMENT)],
        f"All {noun} {trait}": [(f"Some {noun} {trait}", ENTAILMENT), (f"Every {one} is among those that {trait}", ENTAILMENT), (f"Some {noun} {other}", CONTRADICTION), (f"There is no {one} that does not {trait}", ENTAILMENT)],
        f"Most {noun} {trait}": [(f"All {noun} {trait}", NEUTRAL), (f"The majority of the {noun} {trait}", ENTAILMENT), (f"Few {noun} {trait}", CONTRADICTION), (f"Only a minority of the {noun} {trait}", CONTRADICTION)],
        f"No {noun} {trait}": [(f"Some {noun} {trait}", CONTRADICTION), (f"None of the {noun} {trait}", ENTAILMENT), (f"All {noun} {trait}", CONTRADICTION)],
        f"Hardly any {noun} {trait}": [(f"Many {noun} {trait}", CONTRADICTION), (f"Very few {noun} {trait}", ENTAILMENT), (f"Nearly all {noun} {trait}", CONTRADICTION)],
        f"{k} of the {n} {noun} {trait}": [(f"All {n} {noun} {trait}", CONTRADICTION), (f"Not all of the {noun} {trait}", ENTAILMENT), (f"{capital(spelled(k))} {noun} {trait}", ENTAILMENT), (f"{k + 1} of the {n} {noun} {trait}", CONTRADICTION), (f"{n} of the {noun} {trait}", CONTRADICTION)],
        f"At least {n} {noun} {trait}": [(f"Fewer than {k} {noun} {trait}", CONTRADICTION), (f"More than {k - 1} {noun} {trait}", ENTAILMENT), (f"Exactly {n} {noun} {trait}", NEUTRAL), (f"No fewer than {n} {noun} {trait}", ENTAILMENT)],
        f"At most {n} {noun} may take part": [(f"{n + 3} {noun} may take part", CONTRADICTION), (f"No more than {n} {noun} may take part", ENTAILMENT), (f"{n} is the largest number of {noun} that may take part", ENTAILMENT)],
        f"Only one {one} is among those that {trait}": [(f"Several {noun} {trait}", CONTRADICTION), (f"A single {one} is among those that {trait}", ENTAILMENT), (f"All {noun} {trait}", CONTRADICTION)],
    }  # fmt: skip
    premise, claims = rng.choice(list(cases.items()))
    picked = rng.sample(claims, min(3, len(claims)))
    return f"{premise}.", [(f"{claim}.", label, "quantifier") for claim, label in picked]


def denied(rng: random.Random) -> tuple[str, list[Case]]:
    """Things said by denying their opposite, and their opposites."""
    thing, ways, opposite = rng.choice(DENIALS)
    one, two = rng.sample(ways, 2)
    against = rng.choice(opposite)
    if rng.random() < 0.3:
        return f"{against.format(s=thing)}.", [
            (f"{one.format(s=thing)}.", CONTRADICTION, "denial"),
            (f"{rng.choice(opposite).format(s=thing)}.", ENTAILMENT, "denial_kept"),
        ]
    return f"{one.format(s=thing)}.", [
        (f"{two.format(s=thing)}.", ENTAILMENT, "denial_kept"), (f"{against.format(s=thing)}.", CONTRADICTION, "denial"),
    ]  # fmt: skip


def hopped(rng: random.Random) -> tuple[str, list[Case]]:
    """Two statements with a link between them; without the link nothing follows."""
    thing, kind, trait, against = rng.choice(PLACES_WITHIN)
    groups = rng.sample(["A", "B", "C", "D", "E"], 2)
    things = rng.sample(thing, 2)
    link = f"{capital(things[0])} belongs to {kind} {groups[0]}."
    rule = f"Everything in {kind} {groups[0]} {trait}."
    other = f"{capital(things[1])} belongs to {kind} {groups[1]}."
    gap = rng.choice([" ", " ", "\n"]) + (rng.choice(FILLERS) + " " if rng.random() < 0.3 else "")
    told_in_order = rng.sample([link, rule, other], 3)
    if rng.random() < 0.35:
        return gap.join([other, rule]), [
            (f"{capital(things[1])} {trait}.", NEUTRAL, "hop_broken"), (f"{capital(things[0])} {trait}.", NEUTRAL, "hop_broken"),
        ]  # fmt: skip
    return gap.join(told_in_order), [
        (f"{capital(things[0])} {trait}.", ENTAILMENT, "hop"), (f"{capital(things[0])} {against}.", CONTRADICTION, "hop_denied"),
        (f"{capital(things[1])} {trait}.", NEUTRAL, "hop_broken"),
    ]  # fmt: skip


def within(rng: random.Random) -> tuple[str, list[Case]]:
    """Where something is, by way of where that is; limits and what is over them."""
    if rng.random() < 0.5:
        a, b, c = rng.sample(PLACES, 3)
        thing = rng.choice(
            ["the tannery", "the observatory", "the glassworks", "the archive", "the planetarium"]
        )
        return f"{capital(thing)} stands in the district of {a}. {a} is a part of {b}.", [
            (f"{capital(thing)} is in {b}.", ENTAILMENT, "hop_place"), (f"{capital(thing)} is in {c}.", NOT_ENTAILED, "hop_place_wrong"),
        ]  # fmt: skip
    limit = rng.randint(20, 400)
    own = limit + rng.choice([-1, 1]) * rng.randint(2, 18)
    is_over = own > limit
    return (
        f"Invoices above {limit} need a second signature. The invoice of {rng.choice(PEOPLE)} comes to {own}.",
        [
            ("The invoice needs a second signature.", ENTAILMENT if is_over else CONTRADICTION, "hop_limit"),
            ("The invoice needs no second signature.", CONTRADICTION if is_over else ENTAILMENT, "hop_limit"),
        ],
    )


def parted(rng: random.Random) -> tuple[str, list[Case]]:
    """Lists: some of what is named, and some of what is not."""
    opening, items = rng.choice(PARTS)
    named = rng.sample(items, 4)
    held, absent = named[:3], named[3]
    premise = rng.choice([
        f"{opening} {held[0]}, {held[1]} and {held[2]}.", f"{opening}:\n- {held[0]}\n- {held[1]}\n- {held[2]}", f"{opening} {held[0]}; {held[1]}; {held[2]}.",
    ])  # fmt: skip
    cases = [
        (f"{opening} {held[2]} and {held[0]}.", ENTAILMENT, "part"), (f"{opening} {held[1]}.", ENTAILMENT, "part"),
        (f"{opening} {held[0]}, {held[1]} and {absent}.", NEUTRAL, "part_more"), (f"{opening} {absent}.", NEUTRAL, "part_other"),
        (f"{opening} neither {held[0]} nor {held[1]}.", CONTRADICTION, "part_denied"),
    ]  # fmt: skip
    return premise, rng.sample(cases, 3)


def injected(rng: random.Random) -> tuple[str, list[Case]]:
    """A text that asks to be believed is no evidence for what it asks; what is beside it still is."""
    clauses, conditions = rng.choice(CONDITIONS)
    clause, no = rng.choice(clauses)
    other, _ = rng.choice([c for c in clauses if c[0] != clause])
    order = rng.choice(INJECTIONS).format(c=clause)
    told_in_order = rng.sample([f"{capital(other)}.", order], 2)
    cases = [
        (f"{capital(other)}.", ENTAILMENT, "injection_beside"),
        (f"{capital(clause)} {rng.choice(conditions)[0]}.", NEUTRAL, "injection"),
    ]
    if clause in order:
        cases.append((f"{capital(clause)}.", NEUTRAL, "injection"))
    if rng.random() < 0.3:
        told_in_order.insert(0, f"{capital(no)}.")
        return " ".join(told_in_order), [
            (f"{capital(clause)}.", CONTRADICTION, "injection"),
            (f"{capital(no)}.", ENTAILMENT, "injection_beside"),
        ]
    return " ".join(told_in_order), cases


RULES: dict[Callable[[random.Random], tuple[str, list[Case]]], float] = {
    conditioned: 4, timed: 2, excepted: 1.5, quantified: 3, denied: 3, hopped: 2, within: 1, parted: 1.5, injected: 1.5,
}  # fmt: skip
"""Makers of (premise, claims), and how often each is asked."""
