"""A log of any size, drawn by a seed: what the job's own cost is measured on.

An answer has five sentences and five chunks of about a hundred words, as in the target (`SHORT` has fewer of both); of
five sentences three stand in the chunks, one has a figure changed, one is new. Every sentence names something, two of three
hold a figure, a date or an amount, half of the answers cite. No text is anybody's. Knows no model and no table but the log.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq


class Shape(NamedTuple):
    """What an answer has."""

    n_chunks: int = 5
    sentences_a_chunk: int = 5
    n_claims: int = 5


USUAL, SHORT = Shape(), Shape(n_chunks=2, sentences_a_chunk=2, n_claims=2)
ROWS_A_GROUP = 500
_NOUN_WORDS = (
    "account agent airport amount animal annual answer apple approval archive area arrival artist asset author "
    "autumn award balance bank basket battery beach benefit bicycle bird board boat book border bottle branch "
    "bread bridge budget building cable camera campaign canal capital card cargo castle cattle centre century "
    "ceramic certificate channel charge cheese chemistry church cinema circuit citizen city claim climate "
    "clinic coach coast coffee college colony company concert contract copper corridor cotton council country "
    "courier course court credit crop customer damage data degree delay delivery deposit desert design device "
    "diagram diet discount district doctor document door drought editor election engine entrance estate "
    "evening event evidence exhibit expert export factory farm father fee ferry festival field figure filter "
    "finance fish flight flood flower forest formula fountain freight fruit fuel funding furniture gallery "
    "garden glass goal gold government grain grant ground group growth guarantee guest guide harbour harvest "
    "hearing heat heritage highway hospital hotel house ice import income index industry inspector insurance "
    "interest invoice iron island journal journey judge kitchen label laboratory lake lamp language law lawyer "
    "lease leather ledger letter library licence limit loan lobby lounge luggage machine manager manual map "
    "market meadow meal measure medal medicine member memory merchant metal meter method mill mine minister "
    "mirror mobile model monument morning motor mountain museum music night notice novel nurse office oil "
    "opera orchard order organ owner package painter palace paper parcel park partner passenger patent patient "
    "payment peak pension period permit phone picture pilot pipe planet plant plastic platform player poem "
    "point police policy pool port portrait post powder premium price printer prize product profile program "
    "project protein province pump quality quarter queue radio railway rain rate record refund region release "
    "rent repair report reserve resident resort result review reward rice river road roof room route royal "
    "rule safety sailor salary sample satellite school science screen season seat section sensor series "
    "service shelter ship shop signal silk silver singer skill smoke soil soldier song source speaker spring "
    "square stadium staff stage station statue steam steel stock stone storage store storm stream street "
    "student studio subject sugar summer supplier surface survey symbol system table tariff tax teacher team "
    "temple tenant terminal terrace test theatre ticket timber title tourist tower town trade traffic train "
    "transfer transport treaty tree trial tunnel turbine union valley value vehicle vendor version vessel "
    "village vineyard visa visitor volume voyage wage wall warranty water weather wheat window winter wire "
    "witness wood worker workshop yard zone"
)
_VERB_WORDS = (
    "built carried changed closed collected covered crossed delivered described divided found founded "
    "grown held joined kept known lost made measured moved named offered opened owned paid placed planned printed produced "
    "raised reached received recorded renewed repaired replaced sold sent served shared shown signed sold stopped stored supplied taken tested used visited won"
)
_LINK_WORDS = "of and to in for on with as by at from or near after before under against"
_NAME_WORDS = "Adler Bergen Calder Dunmore Elbrook Fenwick Garrick Halden Inverness Jardine Kelso Larkin Marlow Norwood Orsini"
_NOUNS, _VERBS, _LINKS, _NAMES = (
    words.split() for words in (_NOUN_WORDS, _VERB_WORDS, _LINK_WORDS, _NAME_WORDS)
)
_VALUES = (
    "{n}%",
    "{n} days",
    "EUR {n}",
    "{n},500 euros",
    "the year 19{n}",
    "3 May 20{n}",
    "{n} kg",
    "${n} million",
)
SCHEMA = pa.schema(
    [
        ("request_id", pa.string()),
        ("question", pa.string()),
        ("answer", pa.string()),
        (
            "chunks",
            pa.list_(pa.struct([("id", pa.string()), ("text", pa.string()), ("score", pa.float64())])),
        ),
    ]
)


class Writer:
    """Draws answers, each different from all others of the same seed; ids are those of no other seed."""

    def __init__(self, seed: int = 0, shape: Shape = USUAL) -> None:
        self._random = random.Random(seed)
        self._seed, self._shape, self._n = seed, shape, 0

    def answer(self) -> dict[str, object]:
        """One row of the log."""
        draw, shape = self._random, self._shape
        chunks = [[self._sentence() for _ in range(shape.sentences_a_chunk)] for _ in range(shape.n_chunks)]
        cites = draw.random() < 0.5
        said = []
        for k in range(shape.n_claims):
            chunk = draw.randrange(shape.n_chunks)
            sentence = draw.choice(chunks[chunk]) if k < 4 else self._sentence()
            if k == 3:
                sentence = sentence.translate(str.maketrans("123456789", "234567891"))
            said.append(f"{sentence[:-1]} [{chunk + 1}]." if cites else sentence)
        self._n += 1
        return {
            "request_id": f"synthetic-{self._seed}-{self._n:07d}",
            "question": f"What of {draw.choice(_NOUNS)} and {self._name()}?",
            "answer": " ".join(said),
            "chunks": [
                {"id": f"c{k + 1}", "text": " ".join(sentences), "score": round(1 - k / 10, 2)}
                for k, sentences in enumerate(chunks)
            ],
        }

    def _name(self) -> str:
        """Some of 3,375 names, so that few answers share one."""
        first, second = self._random.choices(_NAMES, k=2)
        return f"{first} {second}{self._random.choice(_NAMES).lower()}"

    def _sentence(self) -> str:
        """About twenty words: The N of Name N was V LINK the N ... VALUE."""
        draw = self._random
        words = [draw.choice(("The", "A", "This", "Every")), draw.choice(_NOUNS), "of", self._name()]
        words += [draw.choice(("was", "is", "has been", "may be")), draw.choice(_VERBS)]
        for _ in range(3):
            words += [draw.choice(_LINKS), "the", draw.choice(_NOUNS), draw.choice(_NOUNS)]
        if draw.random() < 2 / 3:
            words += ["with", draw.choice(_VALUES).format(n=draw.randint(11, 99))]
        return " ".join(words) + "."


def write(path: Path, n_answers: int, *, seed: int = 0, shape: Shape = USUAL) -> None:
    """Write a Parquet log of `n_answers` rows, a row group of 500 at a time: memory does not grow with it."""
    writer = Writer(seed, shape)
    with pq.ParquetWriter(path, SCHEMA) as sink:
        for first in range(0, n_answers, ROWS_A_GROUP):
            n = min(ROWS_A_GROUP, n_answers - first)
            sink.write_table(pa.Table.from_pylist([writer.answer() for _ in range(n)], SCHEMA))
