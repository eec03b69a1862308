"""Invented rules, reports and descriptions, and claims that keep or lose what narrows them.

Each family states something with a condition, a hedge, a source, a quantifier, a time or a direction, and asks for it
with that kept, dropped, turned round or broken. The word lists hold no text of the project's probes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from _train_forms import MONTHS, spelled
from _train_rows import CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILED, Example
from _train_statement_words import (
    ADJECTIVES,
    CAUSES,
    COMMON_FACTS,
    CONDITIONS,
    DEEDS,
    DENIALS,
    FILLERS,
    GROUPS,
    INJECTIONS,
    OFFICES,
    PARTS,
    PLACES_WITHIN,
    PLANS,
    REPORTERS,
    TIMES,
    TOLD,
)
from _train_words import PEOPLE, PLACES

Case = tuple[str, int, str]
"""(claim, label, kind)."""


def statements(rng: random.Random) -> list[Example]:
    """One family of any kind."""
    makers, weights = list(FAMILIES), list(FAMILIES.values())
    premise, cases = rng.choices(makers, weights)[0](rng)
    return [Example(padded(premise, rng), claim, label, kind, "invented") for claim, label, kind in cases]


def padded(premise: str, rng: random.Random) -> str:
    """The premise among sentences about other things, in two of five cases."""
    if rng.random() < 0.6:  # noqa: PLR2004
        return premise
    fill = rng.sample(FILLERS, rng.randint(1, 3))
    place = rng.randint(0, len(fill))
    gap = "\n" if "\n" in premise else rng.choice([" ", " ", "\n"])
    return gap.join([*fill[:place], premise, *fill[place:]])


def conditioned(rng: random.Random) -> tuple[str, list[Case]]:
    """A rule with a condition: kept in other words, dropped, and broken."""
    clauses, conditions = rng.choice(CONDITIONS)
    clause, denied = rng.choice(clauses)
    tied, met, unmet = rng.choice(conditions)
    fronted = f"{_up(tied)}, {clause}."
    behind = f"{_up(clause)} {tied}."
    premise, twin = rng.sample([fronted, behind], 2)
    cases = [
        (twin, ENTAILMENT, "condition_kept"),
        (f"{_up(clause)} {met}.", ENTAILMENT, "condition_met"),
        (f"{_up(clause)}.", NEUTRAL, "condition_dropped"),
        (f"{_up(clause)} {unmet}.", CONTRADICTION if tied.startswith(("only", "unless")) else NOT_ENTAILED, "condition_broken"),
    ]
    if tied.startswith("only"):
        cases += [(f"{_up(denied)} {unmet}.", ENTAILMENT, "condition_denied")]
    if rng.random() < 0.35:  # noqa: PLR2004 - the bare clause must not be false as such
        return f"{_up(clause)}.", [
            (f"{_up(clause)}.", ENTAILMENT, "condition_none"), (f"{_up(denied)}.", CONTRADICTION, "rule_denied"),
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
        (f"{_up(limit)}, {clause}.", ENTAILMENT, "time_kept"),
        (f"{_up(clause)} in {inside}.", ENTAILMENT, "time_inside"),
        (f"{_up(clause)} in {outside}.", NOT_ENTAILED, "time_outside"),
        (f"{_up(clause)} all year round.", NOT_ENTAILED, "time_dropped"),
        (f"{_up(clause)}.", NEUTRAL, "time_dropped"),
    ]
    if limit.startswith("until"):
        cases.append((f"{_up(denied)} in {inside}.", CONTRADICTION, "rule_denied"))
    return f"{_up(clause)} {limit}.", rng.sample(cases, 3)


def excepted(rng: random.Random) -> tuple[str, list[Case]]:
    """A rule with an exception: the exception is not covered, what is beside it is."""
    clauses, _ = rng.choice(CONDITIONS)
    clause, denied = rng.choice(clauses)
    times = rng.sample(TIMES, 2)
    premise = f"{_up(clause)} {rng.choice(['except', 'but not', 'save'])} {times[0]}."
    return premise, [
        (f"{_up(clause)} {times[0]}.", CONTRADICTION, "exception_broken"),
        (f"{_up(denied)} {times[0]}.", ENTAILMENT, "exception_kept"),
        (f"{_up(clause)} {times[1]}.", ENTAILMENT, "exception_beside"),
    ][: rng.randint(2, 3)]


def hedged(rng: random.Random) -> tuple[str, list[Case]]:
    """What somebody says, suspects or expects is not what is so; what is established is."""
    effect, cause = rng.choice(CAUSES)
    fact = f"{effect} was caused by {cause}"
    soft = [
        f"{effect} may have been caused by {cause}", f"{effect} was possibly caused by {cause}",
        f"it is suspected that {fact}", f"{effect} is thought to have been caused by {cause}",
        f"{cause} might have caused {effect}", f"experts do not rule out that {fact}", f"it seems likely that {fact}",
    ]  # fmt: skip
    teller = rng.choice(REPORTERS)
    said = [f"{teller} said that {fact}", f"according to {teller}, {fact}", f"{teller} claimed that {fact}"]
    sure = [f"tests have shown that {fact}", fact, f"{cause} caused {effect}", f"it has been established that {fact}"]
    bold = rng.choice([fact, f"{cause} caused {effect}", f"it is certain that {fact}"])
    which = rng.random()
    if which < 0.4:  # noqa: PLR2004
        one, two = rng.sample(soft, 2)
        return f"{_up(one)}.", [(f"{_up(two)}.", ENTAILMENT, "hedge_kept"), (f"{_up(bold)}.", NEUTRAL, "hedge_dropped")]
    if which < 0.7:  # noqa: PLR2004
        one, two = rng.sample(said, 2)
        other = rng.choice([r for r in REPORTERS if r != teller])
        return f"{_up(one)}.", [
            (f"{_up(two)}.", ENTAILMENT, "attribution_kept"), (f"{_up(bold)}.", NEUTRAL, "attribution_dropped"),
            (f"{_up(other)} said that {fact}.", NEUTRAL, "attribution_other"),
        ]  # fmt: skip
    one, two = rng.sample(sure, 2)
    _, stranger = rng.choice([c for c in CAUSES if c[1] != cause])
    return f"{_up(one)}.", [
        (f"{_up(two)}.", ENTAILMENT, "established"), (f"{_up(soft[0])}.", ENTAILMENT, "established_hedged"),
        (f"{_up(effect)} was caused by {stranger}.", CONTRADICTION, "cause_other"),
    ]  # fmt: skip


def planned(rng: random.Random) -> tuple[str, list[Case]]:
    """What is planned has not happened; what has happened has."""
    who, plan, done, undone = rng.choice(PLANS)
    soft = [f"{who} plans to {plan}", f"{who} intends to {plan}", f"{who} has announced that it will {plan}", f"{who} is considering whether to {plan}"]
    one = rng.choice(soft)
    if rng.random() < 0.6:  # noqa: PLR2004
        kept = rng.choice([s for s in soft[:2] if s != one]) if one in soft[:2] else one
        return f"{_up(one)}.", [
            (f"{_up(kept)}.", ENTAILMENT, "plan_kept"), (f"{_up(who)} has {done}.", NEUTRAL, "plan_done"),
        ]  # fmt: skip
    return f"{_up(who)} has {done}.", [
        (f"{_up(who)} has already {done}.", ENTAILMENT, "done"), (f"{_up(who)} has not yet {done}.", CONTRADICTION, "done_denied"),
        (f"{_up(who)} {undone}.", CONTRADICTION, "done_denied"),
    ]  # fmt: skip


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
        f"{k} of the {n} {noun} {trait}": [(f"All {n} {noun} {trait}", CONTRADICTION), (f"Not all of the {noun} {trait}", ENTAILMENT), (f"{_up(spelled(k))} {noun} {trait}", ENTAILMENT), (f"{k + 1} of the {n} {noun} {trait}", CONTRADICTION), (f"{n} of the {noun} {trait}", CONTRADICTION)],
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
    if rng.random() < 0.3:  # noqa: PLR2004 - the other side as the premise
        return f"{against.format(s=thing)}.", [
            (f"{one.format(s=thing)}.", CONTRADICTION, "denial"),
            (f"{rng.choice(opposite).format(s=thing)}.", ENTAILMENT, "denial_kept"),
        ]
    return f"{one.format(s=thing)}.", [
        (f"{two.format(s=thing)}.", ENTAILMENT, "denial_kept"), (f"{against.format(s=thing)}.", CONTRADICTION, "denial"),
    ]  # fmt: skip


def tensed(rng: random.Random) -> tuple[str, list[Case]]:
    """Who held an office from when to when, and who holds it."""
    office, person = rng.choice(OFFICES), rng.choice(PEOPLE)
    begin = rng.randint(1960, 2015)
    end = begin + rng.randint(3, 9)
    middle = rng.randint(begin + 1, end - 1)
    if rng.random() < 0.65:  # noqa: PLR2004
        premise = rng.choice([
            f"{person} was {office} from {begin} to {end}.", f"From {begin} until {end}, {person} served as {office}.",
            f"{person}, {office} between {begin} and {end}, now lives in {rng.choice(PLACES)}.",
        ])  # fmt: skip
        cases = [
            (f"{person} was {office}.", ENTAILMENT, "tense_kept"), (f"{person} is {office}.", NOT_ENTAILED, "tense_now"),
            (f"{person} was {office} in {middle}.", ENTAILMENT, "tense_inside"),
            (f"{person} was {office} in {end + rng.randint(2, 9)}.", NOT_ENTAILED, "tense_outside"),
            (f"{person} is a former {office.removeprefix('the ')}.", ENTAILMENT, "tense_kept"),
            (f"{person} became {office} in {end}.", CONTRADICTION, "tense_outside"),
            (f"{person} stopped being {office} in {end}.", ENTAILMENT, "tense_inside"),
        ]  # fmt: skip
        return premise, rng.sample(cases, 3)
    premise = rng.choice([f"{person} has been {office} since {begin}.", f"{person}, who is {office}, took up the post in {begin}."])
    cases = [
        (f"{person} is {office}.", ENTAILMENT, "tense_now_kept"), (f"{person} was {office} until {end}.", CONTRADICTION, "tense_ended"),
        (f"{person} became {office} in {begin}.", ENTAILMENT, "tense_now_kept"),
        (f"{person} was already {office} in {begin - rng.randint(2, 9)}.", CONTRADICTION, "tense_outside"),
    ]  # fmt: skip
    return premise, rng.sample(cases, 3)


def counted_then(rng: random.Random) -> tuple[str, list[Case]]:
    """A count as of a day says nothing of today."""
    noun = rng.choice(GROUPS)[0]
    n, place, when = rng.randint(3, 400), rng.choice(PLACES), f"{rng.choice(MONTHS)} {rng.randint(2005, 2024)}"
    premise = rng.choice([f"As of {when}, there were {n} {noun} in {place}.", f"A count in {when} found {n} {noun} in {place}."])
    return premise, [
        (f"In {when}, there were {n} {noun} in {place}.", ENTAILMENT, "as_of_kept"),
        (f"There are {n} {noun} in {place} today.", NEUTRAL, "as_of_now"),
        (f"In {when}, there were {n + rng.randint(1, 9)} {noun} in {place}.", CONTRADICTION, "as_of_wrong"),
    ]


def compared(rng: random.Random) -> tuple[str, list[Case]]:
    """A comparison, its converse, its reverse, and what goes beyond it."""
    more, less, most, things = rng.choice(ADJECTIVES)
    a, b, c = rng.sample(things, 3)
    if rng.random() < 0.3:  # noqa: PLR2004
        return f"{_up(a)} is {more} than {b}. {_up(b)} is {more} than {c}.", [
            (f"{_up(a)} is {more} than {c}.", ENTAILMENT, "order"), (f"{_up(c)} is {more} than {a}.", CONTRADICTION, "order_wrong"),
            (f"{_up(c)} is {less} than {a}.", ENTAILMENT, "order"),
        ]  # fmt: skip
    cases = [
        (f"{_up(b)} is {less} than {a}.", ENTAILMENT, "converse"), (f"{_up(b)} is {more} than {a}.", CONTRADICTION, "reverse"),
        (f"{_up(a)} is the {most} of all.", NEUTRAL, "superlative"), (f"{_up(a)} is {more} than {c}.", NEUTRAL, "third"),
        (f"{_up(a)} is {less} than {b}.", CONTRADICTION, "reverse"), (f"{_up(a)} is not as {_plain(more)} as {b}.", CONTRADICTION, "reverse"),
    ]  # fmt: skip
    return f"{_up(a)} is {more} than {b}.", rng.sample(cases[: 6 if more.startswith("more ") else 5], 3)


def dealt(rng: random.Random) -> tuple[str, list[Case]]:
    """Who did what to whom, said from the other side, and the other way round."""
    verb, passive = rng.choice(DEEDS)
    a, b = rng.sample(PEOPLE, 2)
    extra = rng.choice(["", f" in {rng.randint(1950, 2024)}", f" in {rng.choice(PLACES)}", " after long talks"])
    active, turned = f"{a} {verb} {b}", f"{b} was {passive} by {a}"
    one, two = rng.sample([active, turned], 2)
    return f"{one}{extra}.", [
        (f"{two}.", ENTAILMENT, "roles_kept"),
        (rng.choice([f"{b} {verb} {a}.", f"{a} was {passive} by {b}."]), NOT_ENTAILED, "roles_exchanged"),
    ]


def told(rng: random.Random) -> tuple[str, list[Case]]:
    """A pronoun that may mean either of two, and one that can mean only one."""
    a, b = rng.sample(PEOPLE, 2)
    what = rng.choice(TOLD)
    if rng.random() < 0.5:  # noqa: PLR2004
        return f"{a} told {b} that one of them {what}.", [
            (f"{b} {what}.", NEUTRAL, "pronoun_open"), (f"{a} spoke to {b}.", ENTAILMENT, "pronoun_beside"),
        ]  # fmt: skip
    return f"{a} met {b} in {rng.choice(PLACES)}. It was {a.split()[0]} who {what}.", [
        (f"{a} {what}.", ENTAILMENT, "pronoun_bound"), (f"{b} {what}.", NOT_ENTAILED, "pronoun_wrong"),
    ]  # fmt: skip


def hopped(rng: random.Random) -> tuple[str, list[Case]]:
    """Two statements with a link between them; without the link nothing follows."""
    thing, kind, trait, against = rng.choice(PLACES_WITHIN)
    groups = rng.sample(["A", "B", "C", "D", "E"], 2)
    things = rng.sample(thing, 2)
    link = f"{_up(things[0])} belongs to {kind} {groups[0]}."
    rule = f"Everything in {kind} {groups[0]} {trait}."
    other = f"{_up(things[1])} belongs to {kind} {groups[1]}."
    gap = rng.choice([" ", " ", "\n"]) + (rng.choice(FILLERS) + " " if rng.random() < 0.3 else "")  # noqa: PLR2004
    told_in_order = rng.sample([link, rule, other], 3)
    if rng.random() < 0.35:  # noqa: PLR2004
        return gap.join([other, rule]), [
            (f"{_up(things[1])} {trait}.", NEUTRAL, "hop_broken"), (f"{_up(things[0])} {trait}.", NEUTRAL, "hop_broken"),
        ]  # fmt: skip
    return gap.join(told_in_order), [
        (f"{_up(things[0])} {trait}.", ENTAILMENT, "hop"), (f"{_up(things[0])} {against}.", CONTRADICTION, "hop_denied"),
        (f"{_up(things[1])} {trait}.", NEUTRAL, "hop_broken"),
    ]  # fmt: skip


def within(rng: random.Random) -> tuple[str, list[Case]]:
    """Where something is, by way of where that is; limits and what is over them."""
    if rng.random() < 0.5:  # noqa: PLR2004
        a, b, c = rng.sample(PLACES, 3)
        thing = rng.choice(["the tannery", "the observatory", "the glassworks", "the archive", "the planetarium"])
        return f"{_up(thing)} stands in the district of {a}. {a} is a part of {b}.", [
            (f"{_up(thing)} is in {b}.", ENTAILMENT, "hop_place"), (f"{_up(thing)} is in {c}.", NOT_ENTAILED, "hop_place_wrong"),
        ]  # fmt: skip
    limit = rng.randint(20, 400)
    own = limit + rng.choice([-1, 1]) * rng.randint(2, 18)
    is_over = own > limit
    return f"Invoices above {limit} need a second signature. The invoice of {rng.choice(PEOPLE)} comes to {own}.", [
        ("The invoice needs a second signature.", ENTAILMENT if is_over else CONTRADICTION, "hop_limit"),
        ("The invoice needs no second signature.", CONTRADICTION if is_over else ENTAILMENT, "hop_limit"),
    ]


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


def known(rng: random.Random) -> tuple[str, list[Case]]:
    """A truth that everybody knows is not in a text that merely mentions its subject."""
    mention, truth = rng.choice(COMMON_FACTS)
    return mention, [(truth, NEUTRAL, "common_knowledge"), (mention.split(". ")[0].rstrip(".") + ".", ENTAILMENT, "common_beside")]


def injected(rng: random.Random) -> tuple[str, list[Case]]:
    """A text that asks to be believed is no evidence for what it asks; what is beside it still is."""
    clauses, conditions = rng.choice(CONDITIONS)
    clause, no = rng.choice(clauses)
    other, _ = rng.choice([c for c in clauses if c[0] != clause])
    order = rng.choice(INJECTIONS).format(c=clause)
    told_in_order = rng.sample([f"{_up(other)}.", order], 2)
    cases = [
        (f"{_up(other)}.", ENTAILMENT, "injection_beside"),
        (f"{_up(clause)} {rng.choice(conditions)[0]}.", NEUTRAL, "injection"),
    ]
    if clause in order:
        cases.append((f"{_up(clause)}.", NEUTRAL, "injection"))
    if rng.random() < 0.3:  # noqa: PLR2004
        told_in_order.insert(0, f"{_up(no)}.")
        return " ".join(told_in_order), [(f"{_up(clause)}.", CONTRADICTION, "injection"), (f"{_up(no)}.", ENTAILMENT, "injection_beside")]
    return " ".join(told_in_order), cases


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _plain(comparative: str) -> str:
    return comparative.removeprefix("more ")


FAMILIES: dict[Callable[[random.Random], tuple[str, list[Case]]], float] = {
    conditioned: 4, timed: 2, excepted: 1.5, hedged: 3, planned: 1.5, quantified: 3, denied: 3, tensed: 2, counted_then: 1,
    compared: 2, dealt: 1.5, told: 0.7, hopped: 2, within: 1, parted: 1.5, known: 1, injected: 1.5,
}  # fmt: skip
