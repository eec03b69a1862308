"""Sentences that say whom they speak of only with the one before them: `It has four ports.`

A premise put together from single sentences lost what a pronoun points to: `It has four LAN ports.` of one router beside
`The Nimbus Mini is a small router.` was judged as the Mini's at .97. So such a sentence comes into a premise with the one
before it (covers.with_antecedents has the figures). English only; knows no token and no premise.
"""

from __future__ import annotations

import re

_POINTS_BACK = re.compile(
    r"\W{0,3}(?:(?:also|and|but|so|then|instead|however|moreover|furthermore|additionally|besides|in addition|as a result|therefore"
    r"|thus|finally|similarly|likewise|typically|usually|generally|currently),? )?"
    r"(it|its|it['’]s|he|his|she|hers?|they|their|them|this|these|those|both|such|the (?:former|latter))\b",
    re.IGNORECASE,
)


def leans(sentence: str) -> bool:
    """Whether a sentence begins with a word that points to the one before it."""
    found = _POINTS_BACK.match(sentence)
    return found is not None and not (found[1].isupper() and len(found[1]) > 1)  # `IT staff`, `HE 0107`
