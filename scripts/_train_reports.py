"""Invented reports, and claims that keep or lose who said it, how surely, when, and who did what to whom."""

from __future__ import annotations

import random
from collections.abc import Callable

from _train_forms import MONTHS, capital
from _train_report_words import ADJECTIVES, CAUSES, COMMON_FACTS, DEEDS, OFFICES, PLANS, REPORTERS, TOLD
from _train_rows import CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILED
from _train_rule_words import GROUPS
from _train_words import PEOPLE, PLACES

Case = tuple[str, int, str]
"""(claim, label, kind)."""


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
    sure = [
        f"tests have shown that {fact}",
        fact,
        f"{cause} caused {effect}",
        f"it has been established that {fact}",
    ]
    bold = rng.choice([fact, f"{cause} caused {effect}", f"it is certain that {fact}"])
    which = rng.random()
    if which < 0.4:
        one, two = rng.sample(soft, 2)
        return f"{capital(one)}.", [
            (f"{capital(two)}.", ENTAILMENT, "hedge_kept"),
            (f"{capital(bold)}.", NEUTRAL, "hedge_dropped"),
        ]
    if which < 0.7:
        one, two = rng.sample(said, 2)
        other = rng.choice([r for r in REPORTERS if r != teller])
        return f"{capital(one)}.", [
            (f"{capital(two)}.", ENTAILMENT, "attribution_kept"), (f"{capital(bold)}.", NEUTRAL, "attribution_dropped"),
            (f"{capital(other)} said that {fact}.", NEUTRAL, "attribution_other"),
        ]  # fmt: skip
    one, two = rng.sample(sure, 2)
    _, stranger = rng.choice([c for c in CAUSES if c[1] != cause])
    return f"{capital(one)}.", [
        (f"{capital(two)}.", ENTAILMENT, "established"), (f"{capital(soft[0])}.", ENTAILMENT, "established_hedged"),
        (f"{capital(effect)} was caused by {stranger}.", CONTRADICTION, "cause_other"),
    ]  # fmt: skip


def planned(rng: random.Random) -> tuple[str, list[Case]]:
    """What is planned has not happened; what has happened has."""
    who, plan, done, undone = rng.choice(PLANS)
    soft = [
        f"{who} plans to {plan}",
        f"{who} intends to {plan}",
        f"{who} has announced that it will {plan}",
        f"{who} is considering whether to {plan}",
    ]
    one = rng.choice(soft)
    if rng.random() < 0.6:
        kept = rng.choice([s for s in soft[:2] if s != one]) if one in soft[:2] else one
        return f"{capital(one)}.", [
            (f"{capital(kept)}.", ENTAILMENT, "plan_kept"), (f"{capital(who)} has {done}.", NEUTRAL, "plan_done"),
        ]  # fmt: skip
    return f"{capital(who)} has {done}.", [
        (f"{capital(who)} has already {done}.", ENTAILMENT, "done"), (f"{capital(who)} has not yet {done}.", CONTRADICTION, "done_denied"),
        (f"{capital(who)} {undone}.", CONTRADICTION, "done_denied"),
    ]  # fmt: skip


def tensed(rng: random.Random) -> tuple[str, list[Case]]:
    """Who held an office from when to when, and who holds it."""
    office, person = rng.choice(OFFICES), rng.choice(PEOPLE)
    begin = rng.randint(1960, 2015)
    end = begin + rng.randint(3, 9)
    middle = rng.randint(begin + 1, end - 1)
    if rng.random() < 0.65:
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
    premise = rng.choice(
        [
            f"{person} has been {office} since {begin}.",
            f"{person}, who is {office}, took up the post in {begin}.",
        ]
    )
    cases = [
        (f"{person} is {office}.", ENTAILMENT, "tense_now_kept"), (f"{person} was {office} until {end}.", CONTRADICTION, "tense_ended"),
        (f"{person} became {office} in {begin}.", ENTAILMENT, "tense_now_kept"),
        (f"{person} was already {office} in {begin - rng.randint(2, 9)}.", CONTRADICTION, "tense_outside"),
    ]  # fmt: skip
    return premise, rng.sample(cases, 3)


def counted_then(rng: random.Random) -> tuple[str, list[Case]]:
    """A count as of a day says nothing of today."""
    noun = rng.choice(GROUPS)[0]
    n, place, when = (
        rng.randint(3, 400),
        rng.choice(PLACES),
        f"{rng.choice(MONTHS)} {rng.randint(2005, 2024)}",
    )
    premise = rng.choice(
        [
            f"As of {when}, there were {n} {noun} in {place}.",
            f"A count in {when} found {n} {noun} in {place}.",
        ]
    )
    return premise, [
        (f"In {when}, there were {n} {noun} in {place}.", ENTAILMENT, "as_of_kept"),
        (f"There are {n} {noun} in {place} today.", NEUTRAL, "as_of_now"),
        (f"In {when}, there were {n + rng.randint(1, 9)} {noun} in {place}.", CONTRADICTION, "as_of_wrong"),
    ]


def compared(rng: random.Random) -> tuple[str, list[Case]]:
    """A comparison, its converse, its reverse, and what goes beyond it."""
    more, less, most, things = rng.choice(ADJECTIVES)
    a, b, c = rng.sample(things, 3)
    if rng.random() < 0.3:
        return f"{capital(a)} is {more} than {b}. {capital(b)} is {more} than {c}.", [
            (f"{capital(a)} is {more} than {c}.", ENTAILMENT, "order"), (f"{capital(c)} is {more} than {a}.", CONTRADICTION, "order_wrong"),
            (f"{capital(c)} is {less} than {a}.", ENTAILMENT, "order"),
        ]  # fmt: skip
    cases = [
        (f"{capital(b)} is {less} than {a}.", ENTAILMENT, "converse"), (f"{capital(b)} is {more} than {a}.", CONTRADICTION, "reverse"),
        (f"{capital(a)} is the {most} of all.", NEUTRAL, "superlative"), (f"{capital(a)} is {more} than {c}.", NEUTRAL, "third"),
        (f"{capital(a)} is {less} than {b}.", CONTRADICTION, "reverse"), (f"{capital(a)} is not as {_plain(more)} as {b}.", CONTRADICTION, "reverse"),
    ]  # fmt: skip
    return f"{capital(a)} is {more} than {b}.", rng.sample(cases[: 6 if more.startswith("more ") else 5], 3)


def dealt(rng: random.Random) -> tuple[str, list[Case]]:
    """Who did what to whom, said from the other side, and the other way round."""
    verb, passive = rng.choice(DEEDS)
    a, b = rng.sample(PEOPLE, 2)
    extra = rng.choice(
        ["", f" in {rng.randint(1950, 2024)}", f" in {rng.choice(PLACES)}", " after long talks"]
    )
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
    if rng.random() < 0.5:
        return f"{a} told {b} that one of them {what}.", [
            (f"{b} {what}.", NEUTRAL, "pronoun_open"), (f"{a} spoke to {b}.", ENTAILMENT, "pronoun_beside"),
        ]  # fmt: skip
    return f"{a} met {b} in {rng.choice(PLACES)}. It was {a.split()[0]} who {what}.", [
        (f"{a} {what}.", ENTAILMENT, "pronoun_bound"), (f"{b} {what}.", NOT_ENTAILED, "pronoun_wrong"),
    ]  # fmt: skip


def known(rng: random.Random) -> tuple[str, list[Case]]:
    """A truth that everybody knows is not in a text that merely mentions its subject."""
    mention, truth = rng.choice(COMMON_FACTS)
    return mention, [
        (truth, NEUTRAL, "common_knowledge"),
        (mention.split(". ")[0].rstrip(".") + ".", ENTAILMENT, "common_beside"),
    ]


def _plain(comparative: str) -> str:
    return comparative.removeprefix("more ")


REPORTS: dict[Callable[[random.Random], tuple[str, list[Case]]], float] = {
    hedged: 3, planned: 1.5, tensed: 2, counted_then: 1, compared: 2, dealt: 1.5, told: 0.7, known: 1,
}  # fmt: skip
"""Makers of (premise, claims), and how often each is asked."""
