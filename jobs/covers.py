"""Which sentences together cover a claim: one premise of what stands in several places (multi-hop).

Sentences are taken one by one, each time the one that adds most of the claim's tokens that none taken before it holds
(greedy maximum coverage, Nemhauser, Wolsey and Fisher 1978), until none adds any or no room is left. Works on token
sets for all claims of an answer at once; knows no text, table or threshold.

On 1,140 labelled claims of 21 sources one such premise of up to 160 tokens orders claims as well as six windows and
joins of them did (AUROC .81 and .79) at a quarter of their tokens (benchmarks/results/notes-quality.md).
"""

from __future__ import annotations

import numpy as np

from claimscore.jobs.windows import MAX_CELLS, Bools, Ints

MAX_SENTENCES = 32
"""Of one cover: more are a heap of words."""


def covers(asks: Bools, holds: np.ndarray, sizes: Ints, may: Bools, room: int) -> Bools:
    """The sentences of each claim's cover, shape (claims, sentences); none of a claim that no sentence shares a token with.

    What a sentence adds does not depend on those that are not taken: a sentence that is not in a cover can be left
    away, or added, without changing it. Of equal ones the earlier is taken. The first is taken however long it is.

    Args:
        asks: which of W tokens each claim holds, shape (claims, W).
        holds: which of them each sentence holds, true or 1, shape (sentences, W).
        sizes: tokens of each sentence.
        may: which sentences each claim's cover may hold, shape (claims, sentences).
        room: tokens that a cover may have.
    """
    taken = np.zeros(may.shape, dtype=np.bool_)
    step = max(1, MAX_CELLS // max(1, *may.shape[1:], asks.shape[1]))
    held = np.ascontiguousarray(holds.T, dtype=np.float32)
    for first in range(0, len(asks), step):
        some = slice(first, first + step)
        _cover(asks[some].astype(np.float32), held, sizes, ~may[some], room, taken[some])
    return taken


def _cover(
    open_tokens: np.ndarray, held: np.ndarray, sizes: Ints, barred: Bools, room: int, taken: Bools
) -> None:
    """Fills `taken`; `open_tokens` is 1 where a token is not covered yet, `held` is (W, sentences)."""
    rows, left = np.arange(len(taken)), np.full(len(taken), np.iinfo(np.int64).max)
    for _ in range(MAX_SENTENCES):
        gains = open_tokens @ held
        if not gains.size:
            return
        gains[barred | (sizes > left[:, None])] = 0
        best = gains.argmax(axis=1)
        adds = gains[np.arange(len(rows)), best] > 0
        if not adds.all():
            rows, best, left = rows[adds], best[adds], left[adds]
            open_tokens, barred = open_tokens[adds], barred[adds]
        taken[rows, best] = True
        left = np.minimum(left, room) - sizes[best]
        open_tokens *= 1 - held[:, best].T
        wanted: Bools = np.any(open_tokens, axis=0)
        # Beside a 10 MB chunk most of the time went to tokens that were covered already.
        if 2 * np.count_nonzero(wanted) < len(wanted):
            open_tokens, held = open_tokens[:, wanted], held[wanted]
