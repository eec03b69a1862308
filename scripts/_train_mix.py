"""What the demo judge is trained on: rounds of examples, each with its share of every kind, all from one seed.

A round draws rows without repeating one until all are used, gives each one treatment, and adds invented cases. Which
examples a round holds depends on the seed and the round's number alone, never on the time it takes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import _train_edits as edits
import _train_evidence as evidence
from _train_invent import family as invented_family
from _train_rows import CAPTIONS, ENTAILMENT, Example, Topics, by_source, topics_of

ROWS_A_ROUND = 3_000
INVENTED = 0.28
"""Share of invented families beside the families of real rows."""
TREATMENTS = {
    "plain": 0.35, "amid": 0.18, "gone": 0.08, "edit": 0.20, "sentence": 0.06, "cue": 0.05, "joined": 0.04, "fragment": 0.04,
}  # fmt: skip
PREFIXED = 0.03
WEIGHTS = {"snli": 0.35, "cad_nli": 0.35, "fever_dev_rte": 0.9, "feverous_dev": 2.0, "fool_me_twice": 2.0}
"""How often a row of a source is drawn, where not once: captions are unlike what a RAG system retrieves."""
MAX_CHARS = 1_400
"""Longer premises are cut by the trainer anyway; families that are longer still are made of plain rows."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The rows, what is near to what, and a source of invented families."""

    rows: list[Example]
    topics: Topics
    seed: int
    invented: bool = True

    @classmethod
    def of(cls, rows: list[Example], *, seed: int, invented: bool = True) -> Mix:
        """A mix over these rows."""
        return cls(rows, topics_of(rows), seed, invented)

    def rounds(self) -> Iterator[list[Example]]:
        """Rounds without end."""
        number = 0
        left: Iterator[Example] = iter(())
        while True:
            drawn: list[Example] = []
            while len(drawn) < min(ROWS_A_ROUND, len(self.rows)):
                row = next(left, None)
                if row is None:
                    left = iter(self._deal(number))
                else:
                    drawn.append(row)
            yield self.round(drawn, number)
            number += 1

    def round(self, drawn: Sequence[Example], number: int) -> list[Example]:
        """The examples of these rows and their invented company, in the order of the draw."""
        rng = random.Random(f"{self.seed} round {number}")
        out: list[Example] = []
        for row in drawn:
            family = self._family(row, rng) or [row]
            if any(len(e.premise) > MAX_CHARS for e in family):
                family = [row]
            out += family
            if self.invented and rng.random() < INVENTED:
                out += invented_family(rng)
        return [edits.prefixed(e, rng) if rng.random() < PREFIXED else e for e in out]

    def _deal(self, number: int) -> list[Example]:
        """All rows once, less or more by WEIGHTS, shuffled."""
        rng = random.Random(f"{self.seed} deal {number}")
        out: list[Example] = []
        for source, rows in by_source(self.rows).items():
            share = WEIGHTS.get(source, 1.0)
            out += rows * int(share) + rng.sample(rows, int(len(rows) * (share % 1)))
        out = out or list(self.rows)
        rng.shuffle(out)
        return out

    def _family(self, row: Example, rng: random.Random) -> list[Example]:
        treatments = dict(TREATMENTS)
        if row.source in CAPTIONS:
            treatments |= {"sentence": 0.0, "cue": 0.0, "fragment": 0.01}
        what = rng.choices(list(treatments), list(treatments.values()))[0]
        if what == "amid":
            return evidence.amid(row, self.topics, rng)
        if what == "gone":
            return evidence.evidence_gone(row, self.topics, rng)
        if what == "sentence":
            return evidence.sentence_of(row, self.topics, rng)
        if what == "cue":
            return edits.cue_dropped(row, self.topics, rng)
        if what == "fragment":
            return evidence.fragment(row, self.topics, rng)
        if what == "joined":
            return evidence.joined(row, self._entailed(rng), self.topics, rng)
        if what == "edit" and row.label == ENTAILMENT:
            return self._edited(row, rng)
        return [row]

    def _edited(self, row: Example, rng: random.Random) -> list[Example]:
        """An edit of the claim, in one of two cases amid other text."""
        if rng.random() < 0.5:
            row = (evidence.amid(row, self.topics, rng) or [row])[0]
        return edits.value_edit(row, self.topics, rng)

    def _entailed(self, rng: random.Random) -> Example:
        for _ in range(50):
            row = rng.choice(self.rows)
            if row.label == ENTAILMENT:
                return row
        return self.rows[0]


def counts(examples: Sequence[Example]) -> dict[str, int]:
    """Examples by kind, most first."""
    return dict(Counter(e.kind for e in examples).most_common())
