"""What the demo judge is trained on: which rows may be used, what each edit does, and the invented families."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import _train_edits as edits
import _train_evidence as evidence
import _train_forms as forms
import pytest
from _train_invent import family, roughened
from _train_mix import Mix
from _train_records import make_world, neighbour, render
from _train_rows import (
    CONTRADICTION,
    ENTAILMENT,
    NEUTRAL,
    NOT_ENTAILED,
    Example,
    Topics,
    is_allowed,
    natural,
    topics_of,
)

PREMISE = (
    "Ada Brook founded the mill in 1871. Its owner may have been Ben Carr. It was sold to Cora Dent in 1902 for 300 pounds. "
    "According to the parish, the wheel was broken."
)
ROW = Example(PREMISE, "The mill was founded in 1871 by Ada Brook.", ENTAILMENT, "plain", "own")
OTHERS = [
    Example(
        "Ada Brook was a miner's daughter from Hull.", "Somebody was a daughter.", ENTAILMENT, "plain", "own"
    ),
    Example("Ada Brook wrote 12 letters to Dora Elm.", "Letters were written.", ENTAILMENT, "plain", "own"),
    Example("Hull has a harbour that Finn Gray built.", "Hull has a harbour.", ENTAILMENT, "plain", "own"),
    Example("The harbour of Hull froze twice.", "The harbour froze.", ENTAILMENT, "plain", "own"),
]


@pytest.fixture
def topics() -> Topics:
    """What is near to what among the rows above."""
    return topics_of([ROW, *OTHERS])


@pytest.fixture
def rng() -> random.Random:
    """A seeded generator."""
    return random.Random(5)


def _families(make, topics: Topics, row: Example = ROW, n: int = 30) -> Iterator[list[Example]]:
    found = [make(row, topics, random.Random(seed)) for seed in range(n)]
    assert any(found)
    return (members for members in found if members)


@pytest.mark.parametrize("make", edits.VALUE_EDITS)
def test_a_value_edit_changes_the_claim_beside_a_true_twin(make, topics: Topics):
    """The changed claim is not entailed, another text, on the premise of a twin that keeps claim and label."""
    row = Example(
        PREMISE, "Ada Brook was the founder in 1871 before Cora Dent bought it.", ENTAILMENT, "plain", "own"
    )
    for changed, twin in _families(make, topics, row):
        assert changed.premise == twin.premise == row.premise
        assert changed.claim != twin.claim == row.claim
        assert changed.label in {CONTRADICTION, NOT_ENTAILED}
        assert twin.label == ENTAILMENT


def test_a_changed_number_is_not_in_the_premise_and_a_swapped_one_is(topics: Topics):
    """`number_changed` brings a new number, `number_elsewhere` the premise's other year."""
    new = [found[0].claim for found in _families(edits.number_changed, topics)]
    swapped = [found[0].claim for found in _families(edits.number_elsewhere, topics)]

    assert all(not set(re.findall(r"\d+", claim)) & {"1871", "1902", "300"} for claim in new)
    assert set(swapped) == {"The mill was founded in 1902 by Ada Brook."}


def test_a_name_in_a_list_is_no_wrong_name(topics: Topics):
    """Of `X and Y` either may be as true, so neither takes the other's place."""
    row = Example("It was run by Ann Lee and Bob Ray.", "It was run by Ann Lee.", ENTAILMENT, "plain", "own")

    assert edits.name_elsewhere(row, topics, random.Random(0)) == []


def test_a_dropped_cue_says_more_than_the_sentence(topics: Topics):
    """Without its hedge or its source a sentence is unknown; as it stands it is entailed."""
    pairs = {(bold.claim, bold.label, kept.label) for bold, kept in _families(edits.cue_dropped, topics)}

    assert pairs == {
        ("Its owner was Ben Carr.", NEUTRAL, ENTAILMENT),
        ("The wheel was broken.", NEUTRAL, ENTAILMENT),
    }


@pytest.mark.parametrize(("pattern", "new"), edits.CUES)
def test_no_cue_edit_leaves_a_sentence_unchanged(pattern: re.Pattern[str], new: str):
    """Whatever a cue's pattern finds, the sentence reads otherwise without it."""
    samples = (
        "It may have been late.", "It might be so.", "It could rain today.", "He was probably there.", "It is widely believed to be old.",
        "According to the ministry, it is closed.", "Ann Lee said that it is closed.", "Some of the roads are wet.", "Most roads are wet.",
        "It is one of the oldest towns.", "It is often wet.", "It opens if it rains all day.", "It holds up to 30 people.", "They planned to leave.",
    )  # fmt: skip
    found = [s for s in samples if pattern.search(s)]

    assert found
    assert all(pattern.sub(new, s, count=1) != s for s in found)


def test_evidence_amid_other_text_is_still_there(topics: Topics):
    """The premise stands whole among others, and claim and label are kept."""
    for (row,) in _families(evidence.amid, topics):
        assert PREMISE in row.premise
        assert len(row.premise) > len(PREMISE)
        assert (row.claim, row.label) == (ROW.claim, ROW.label)


def test_evidence_gone_is_gone_and_its_twin_has_it(topics: Topics):
    """Without what tells it a claim is neutral; the twin holds the premise and keeps the label."""
    for gone, kept in _families(evidence.evidence_gone, topics):
        assert "1871" not in gone.premise
        assert PREMISE in kept.premise
        assert (gone.label, kept.label) == (NEUTRAL, ENTAILMENT)


def test_a_joined_claim_needs_both_premises(topics: Topics, rng: random.Random):
    """Two true claims in one: entailed by both premises, neutral by one."""
    other = OTHERS[2]
    both, half = evidence.joined(ROW, other, topics, rng)

    assert ROW.premise in both.premise
    assert other.premise in both.premise
    assert (ROW.premise in half.premise) + (other.premise in half.premise) == 1
    assert (both.label, half.label) == (ENTAILMENT, NEUTRAL)
    assert both.claim == half.claim


def test_a_sentence_of_the_premise_is_entailed_only_beside_itself(topics: Topics):
    """The sentence amid other text is entailed; the same claim without it is neutral."""
    for members in _families(evidence.sentence_of, topics):
        for row in members:
            if row.kind in {"sentence_amid", "sentence_gone"}:
                assert (row.claim in row.premise) == (row.label == ENTAILMENT)


def test_a_bare_answer_is_backed_only_where_it_stands(topics: Topics):
    """A fragment of the premise is entailed, in digits or words; one of another premise is not."""
    row = Example("Ada Brook sent 12 crates to Cora Dent by the old canal.", "x", ENTAILMENT, "plain", "own")
    for own, other in _families(evidence.fragment, topics, row):
        assert own.claim in {"Cora Dent.", "12 crates.", "Twelve crates.", "By the old canal."}
        assert other.claim.rstrip(".").casefold() not in row.premise.casefold()
        assert (own.label, other.label) == (ENTAILMENT, NOT_ENTAILED)


def test_a_prefix_keeps_the_claim_and_its_label(rng: random.Random):
    """What a chat model says first is put before the claim; nothing else changes."""
    said = edits.prefixed(ROW, rng)

    assert said.claim != ROW.claim
    assert said.claim.lower().endswith(ROW.claim.lower())
    assert (said.premise, said.label) == (ROW.premise, ROW.label)


def test_what_may_not_be_trained_on_is_left_out():
    """Barred licences, barred sources and rows without a licence; others may be used."""
    assert not is_allowed("any", "unstated")
    assert not is_allowed("any", "research-terms")
    assert not is_allowed("any", "CC-BY-NC-SA")
    assert not is_allowed("any", None)
    assert not is_allowed("sick", "CC0")
    assert is_allowed("snli", "CC-BY-SA")


def test_tokenised_text_reads_as_people_write():
    """Brackets, quotes and spaces of a tokenised corpus are undone."""
    assert (
        natural("`` Up '' is a film -LRB- 2009 -RRB- , it is n't new .")
        == '" Up " is a film (2009), it isn\'t new.'
    )


@pytest.mark.parametrize(
    "make", [forms.large, forms.measure, forms.percent, forms.money, forms.clock, forms.date]
)
def test_near_values_are_other_values(make):
    """No near miss is written as the value or as one of its notations."""
    for seed in range(300):
        value = make(random.Random(seed))
        assert not set(value.near) & {value.text, *value.same}, (seed, value)


def test_notations_of_a_number_are_equal():
    """Every notation without words of units gives back the number: groups, lakh, crore, million."""
    scales = {"thousand": 1_000, "lakh": 100_000, "million": 1_000_000, "crore": 10_000_000}
    for n in (250_000, 4_500_000, 30_000_000, 1_200_000, 75_000):
        for text in forms.notations(n):
            number, *scale = text.replace(",", "").split()
            if number[0].isdigit():
                assert Fraction(number) * (scales[scale[0]] if scale else 1) == n, text


def test_numbers_are_spelled_and_grouped():
    """Words, and groups as in India."""
    assert [forms.spelled(n) for n in (0, 14, 40, 97, 305, 2_000, 31_060)] == [
        "zero", "fourteen", "forty", "ninety-seven", "three hundred and five", "two thousand", "thirty-one thousand and sixty",
    ]  # fmt: skip
    assert [forms.indian(n) for n in (100_000, 2_500_000, 30_000_000)] == [
        "1,00,000",
        "25,00,000",
        "3,00,00,000",
    ]


def test_a_neighbours_value_is_in_the_premise_and_not_true():
    """The swapped claim holds a value that the world has for another thing, the twin its own."""
    for seed in range(40):
        rng = random.Random(seed)
        world = make_world(rng)
        shown = render(world, rng)
        found = neighbour(world, rng)
        assert [label for _, label, _ in found] in ([], [CONTRADICTION, ENTAILMENT])
        for claim, _, _ in found:
            assert any(
                value.text.lower() in claim.lower() and value.text in shown for value in world.values.values()
            )


def test_invented_families_hold_true_claims_and_others():
    """Over many families: every class, no family's claim with two labels, no unfilled template, no claim without words."""
    labels: Counter[int] = Counter()
    for seed in range(400):
        members = family(random.Random(seed))
        seen: dict[tuple[str, str], int] = {}
        for row in members:
            labels[row.label] += 1
            assert seen.setdefault((row.premise, row.claim), row.label) == row.label, row
            assert not re.search(r"[{}]", row.premise + row.claim), row
            assert re.search(r"\w", row.claim)

    assert set(labels) == {CONTRADICTION, ENTAILMENT, NEUTRAL, NOT_ENTAILED}
    assert 0.35 < labels[ENTAILMENT] / labels.total() < 0.65


def test_markup_changes_no_words():
    """Roughened text has the words of the text, but for case."""
    for seed in range(200):
        rough = roughened(ROW, random.Random(seed))
        for side in ("premise", "claim"):
            plain = getattr(rough, side).replace("**", "").replace("\n", " ").casefold()
            assert plain == getattr(ROW, side).casefold()


def test_rounds_depend_on_the_seed_alone():
    """Two mixes of one seed give the same rounds, another seed gives others; a third of the rows stay plain."""
    rows = [ROW, *OTHERS] * 20
    first, again, other = (next(Mix.of(rows, seed=seed).rounds()) for seed in (1, 1, 2))

    assert first == again != other
    assert (
        sum(e.kind == "plain" for e in Mix(rows, topics_of(rows), 1, invented=False).round(rows, 0))
        > len(rows) / 4
    )
