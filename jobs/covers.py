"""Which sentences together cover a claim: one premise of what stands in several places (multi-hop).

Sentences are taken one by one, each time the one that adds most of the claim's tokens that none taken before it holds
(greedy maximum coverage, Nemhauser, Wolsey and Fisher 1978), until none adds any or no room is left; one that begins with a
pronoun comes with the sentence before it, or not at all. Works on token sets for all claims at once; knows no text, table
or threshold.

On 1,140 labelled claims of 21 sources one such premise of up to 160 tokens orders claims as well as six windows and
joins of them did (AUROC .81 and .79) at a quarter of their tokens (benchmarks/results/notes-quality.md).
"""

from __future__ import annotations

import numpy as np

from claimscore.jobs.overlaps import Bits, n_bits
from claimscore.jobs.windows import Bools, Ints

MAX_SENTENCES = 32
"""Of one cover: more are a heap of words."""


def covers(bits: Bits, owner: Ints, sizes: Ints, room: Ints) -> Bools:
    """Which of N offered sentences are taken, each for its owner's cover; none that shares no token with the claim.

    What a sentence adds does not depend on those that are not taken: a sentence that is not in a cover can be left
    away, or added, without changing it. Of equal ones the earlier is taken. The first is taken however long it is.

    Args:
        bits: which tokens of the claim each sentence holds, (N, words).
        owner: whose cover each sentence is offered for, ascending.
        sizes: tokens of each sentence.
        room: tokens that each owner's cover may have.
    """
    taken = np.zeros(len(owner), np.bool_)
    left = np.full(len(room), np.iinfo(np.int64).max)
    at = np.arange(len(owner))
    for _ in range(MAX_SENTENCES):
        gains = n_bits(bits)
        # What adds nothing, or does not fit, never will: most are gone after the first ones that were taken.
        may = (gains > 0) & (sizes <= left[owner])
        at, bits, owner, sizes, gains = at[may], bits[may], owner[may], sizes[may], gains[may]
        if not len(at):
            break
        begins = np.flatnonzero(np.diff(owner, prepend=-1))
        n = len(at)
        best = n - 1 - np.maximum.reduceat(gains * n + np.arange(n)[::-1], begins) % n
        taken[at[best]] = True
        left[owner[best]] = np.minimum(left, room)[owner[best]] - sizes[best]
        bits = bits & ~np.repeat(bits[best], np.diff(begins, append=n), axis=0)
    return taken


def with_antecedents(taken: Bools, leans: Bools, owner: Ints, sizes: Ints, room: Ints) -> Bools:
    """`taken`, each sentence that leans with those before it that say whom it speaks of, or without it where they do not fit.

    `It has four LAN ports.` of one router beside `The Nimbus Mini is a small router.` was judged as the Mini's at .97: of 43
    claims about the wrong one of two things the demo's judge believed 41, and 18 of them so.
    On 2,234 labelled claims it costs a token a claim and moves AUROC by nothing (.798; -.005 to .005).

    Args:
        taken: of N sentences in the order of their texts.
        leans: which of them lean on the one before, never the first of a text.
        owner: as for `covers`, like the next two.
        sizes: tokens of each sentence.
        room: tokens that each owner's cover may have.
    """
    out = taken.copy()
    used = np.bincount(owner, weights=taken * sizes, minlength=len(room))
    for k in np.flatnonzero(taken & leans).tolist():  # in order: those before it are settled
        first = k - 1
        while leans[first] and not out[first]:
            first -= 1
        missing = slice(first + int(out[first]), k)
        added = sizes[missing].sum()
        out[missing] = used[owner[k]] + added <= room[owner[k]]
        out[k] = out[k - 1]
        used[owner[k]] += added if out[k] else -sizes[k]
    return out
