"""Joined windows: claims whose halves stand in two places, and what does not keep them apart."""

from __future__ import annotations

import evidence_fixture as fixture
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import covers, evidence, pairs
from claimscore.jobs.config import EvidenceConfig

JUDGE, pair_up = fixture.JUDGE, fixture.pair_up
a_log, some_claims = fixture.a_log, fixture.some_claims


def test_joined_windows_cover_a_claim_that_no_single_one_entails():
    """Two chunks that each hold half of the claim are joined in document order."""
    log = a_log(["The lab is on floor four.", "Nothing of interest.", "Floor four is closed."])
    found, _ = pair_up(log, some_claims(("r0", "The lab is on floor four and closed.", [])))
    _, probs = pairs.judge_pairs(found, JUDGE.probabilities)

    joined = evidence.joined_pairs(found, probs, EvidenceConfig(), carries=surely(probs))

    assert [[s["chunk_index"] for s in premise] for premise in joined.column("premise").to_pylist()] == [
        [0, 2]
    ]


def surely(probs: np.ndarray) -> np.ndarray:
    """Windows that entail with 0.9: they carry their claim alone, where nothing speaks against it."""
    return probs[:, 0] >= EvidenceConfig().join_below


def joined_texts(log: pa.Table, claims: pa.Table, lacks: np.ndarray | bool = False) -> list[str]:
    """The premises that are joined for `claims`."""
    found, _ = pair_up(log, claims)
    _, probs = pairs.judge_pairs(found, JUDGE.probabilities)
    joined = evidence.joined_pairs(found, probs, EvidenceConfig(), carries=surely(probs) & ~np.asarray(lacks))
    return evidence.premise_texts(joined, log).to_pylist()


WORDS, _windows = fixture.WORDS, fixture.windows


@settings(max_examples=150, deadline=None)
@given(st.lists(_windows, min_size=2, max_size=5), _windows, st.integers(0, 5))
def test_no_single_chunk_takes_away_the_best_join(chunks: list[str], another: str, at: int):
    """Whatever one more chunk says and wherever it stands, the cover that was best is joined still."""
    claims = some_claims(("r0", " ".join(WORDS), []))
    before = joined_texts(a_log(chunks), claims)
    more = [*chunks[:at], another, *chunks[at:]]

    after = joined_texts(a_log(more), claims)

    assert set(before[:1]) <= set(after)


def test_distractors_that_cover_less_displace_no_join():
    """Chunks that share more of the claim than either half, but complete none, leave the two halves joined."""
    log = a_log([" ".join(WORDS[:6]), " ".join(WORDS[6:]), *[" ".join(WORDS[2:9])] * 5])

    texts = joined_texts(log, some_claims(("r0", " ".join(WORDS), [])))

    assert texts[0] == f"{' '.join(WORDS[:6])} {' '.join(WORDS[6:])}"


def test_a_window_that_lacks_a_value_does_not_stop_the_join():
    """A window that entails the claim but for its number, which a rule will veto, is joined with the number."""
    words = (
        "the refund window for all old members of the club in the north of town that pay their fees is now"
    )
    log = a_log([words, "Exactly 60 days."])
    claims = some_claims(("r0", f"{words} 60", []))

    texts = joined_texts(log, claims, lacks=np.array([True, False]))

    assert (texts, joined_texts(log, claims)) == ([f"{words} Exactly 60 days."], [])


def test_joins_keep_to_the_limit_of_tokens():
    """Windows that would not fit together are not joined."""
    halves = [" ".join(f"{side}{k}" for k in range(40)) for side in "ab"]
    found, _ = pair_up(a_log(halves), some_claims(("r0", "a0 b0", [])), max_pair_tokens=80)
    _, probs = pairs.judge_pairs(found, JUDGE.probabilities)

    counts = [
        evidence.joined_pairs(
            found, probs, EvidenceConfig(max_pair_tokens=limit), carries=surely(probs)
        ).num_rows
        for limit in (84, 85)
    ]

    assert counts == [0, 1]


def test_an_entailed_claim_is_not_joined():
    """A claim that a window entails needs no second hop."""
    found, _ = pair_up(
        a_log(["The gate opens at noon.", "More."]), some_claims(("r0", "The gate opens at noon.", []))
    )
    _, probs = pairs.judge_pairs(found, JUDGE.probabilities)

    assert evidence.joined_pairs(found, probs, EvidenceConfig(), carries=surely(probs)).num_rows == 0


def windows_of(n_good: int) -> covers.Windows:
    """`n_good` windows that each hold all of a claim's tokens but the last, then two that hold half of them each."""
    held = np.ones((n_good + 2, 8), dtype=np.bool_)
    held[:n_good, 7] = False
    held[n_good, :4], held[n_good + 1, 4:] = False, False
    n = len(held)
    return covers.Windows(held, np.zeros(n, np.float32), np.ones(n, np.int32), np.arange(n, dtype=np.int32))


def test_only_the_best_windows_are_tried_against_each_other():
    """All pairs of windows are compared, so that their number has a bound: what lies beyond it is not looked at."""
    n = covers.MAX_CANDIDATES
    assert n <= 256  # 200 MB of a MiB of chunks at 5,000

    within, beyond = (covers.covers(windows_of(n_good), 2, 100) for n_good in (n - 2, n))

    assert within[0] == [0, n - 2]  # the one that brings the token which all before it lack
    assert beyond == []
