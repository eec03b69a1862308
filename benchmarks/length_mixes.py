"""Pairs of (premise ids, claim ids) in known mixes of lengths, with no text of anybody's.

`rag` follows a histogram measured on 2,613 real answers of ten public RAG data sets: our own windows x claims (each
sentence its own claim, default `[evidence]`), the demo judge's tokenizer, 123,429 distinct pairs, mean 105.8 tokens,
percentiles 5 / 50 / 95 / 99: 48 / 95 / 198 / 271. Ids are drawn: speed does not depend on them. Decisions on such
pairs are as good as any to compare two ways of computing them.
"""

from __future__ import annotations

import numpy as np

RAG_STEP = 8
RAG_PER_10_000 = (
    0, 4, 18, 64, 124, 248, 414, 632, 794, 920, 960, 909, 805, 675, 555, 442, 354, 302, 267, 236, 202, 183, 161, 132, 113,
    87, 72, 56, 46, 37, 28, 24, 22, 15, 17, 13, 11, 8, 8, 6, 4, 3, 3, 2, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0,
    0, 1,
)  # fmt: skip
"""Of 10,000 pairs, those of 8 k to 8 k + 7 tokens with the three special ones."""
CLAIM_PER_10_000 = (374, 1513, 3094, 2829, 1385, 506, 177, 81, 22, 8, 5, 2, 2)
"""The same of the claims' own tokens."""
MIXES = ("rag", "short", "long", "uniform-512")


def lengths(mix: str, n_pairs: int, seed: int = 0) -> np.ndarray:
    """Tokens of each pair, (n_pairs,): rag; short, 16 to 64; long, 256 to 512; uniform-512, 512 each."""
    draw = np.random.default_rng(seed)
    if mix == "rag":
        return np.clip(_histogram(draw, RAG_PER_10_000, n_pairs), 8, 512)
    low, high = {"short": (16, 64), "long": (256, 512), "uniform-512": (512, 512)}[mix]
    return draw.integers(low, high + 1, n_pairs)


def pairs(mix: str, n_pairs: int, n_ids: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """(premise ids, claim ids) of each pair, int32, without special tokens; ids from 10 (no special one) to n_ids."""
    draw = np.random.default_rng(seed + 1)
    totals = lengths(mix, n_pairs, seed)
    claims = np.minimum(_histogram(draw, CLAIM_PER_10_000, n_pairs), (totals - 3) // 2)
    return [
        (
            draw.integers(10, n_ids, total - 3 - claim, dtype=np.int32),
            draw.integers(10, n_ids, claim, dtype=np.int32),
        )
        for total, claim in zip(totals.tolist(), claims.tolist(), strict=True)
    ]


def _histogram(draw: np.random.Generator, per_10_000: tuple[int, ...], n: int) -> np.ndarray:
    weights = np.array(per_10_000) / sum(per_10_000)
    drawn: np.ndarray = RAG_STEP * draw.choice(len(weights), n, p=weights) + draw.integers(0, RAG_STEP, n)
    return drawn
