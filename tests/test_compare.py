"""Two series side by side: who agrees, by how much more than chance, and what flipped."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs.compare import CONFUSION, FLIPS, NEEDED_COLUMNS, SHIFTS, compare
from claimscore.jobs.errors import InputError
from claimscore.jobs.records import METRICS, VERDICTS, Verdict

NO_METRICS = METRICS.empty_table()
S, C, U, N = (verdict.value for verdict in Verdict)


def verdicts_table(verdicts, *, prefix="r", claim="Fee {i}", p=0.5, rule="nli"):
    """VERDICTS (needed columns) of one claim a request."""
    rows = [
        {
            "request_id": f"{prefix}{i:04}",
            "claim_index": 0,
            "claim": claim.format(i=i),
            "verdict": verdict,
            "p_entailment": p,
            "decided_by": rule,
        }
        for i, verdict in enumerate(verdicts)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([VERDICTS.field(name) for name in NEEDED_COLUMNS]))


def compare_verdicts(a, b):
    """The comparison of two tables of verdicts, without metrics."""
    return compare(a, b, NO_METRICS, NO_METRICS)


def metrics_table(*rows):
    """METRICS of (grouping, prompt_version, metric, value, low, high)."""
    keys = ("grouping", "prompt_version", "metric", "value", "low", "high")
    rest = {"numerator": 1.0, "denominator": 2.0, "per": "answers"}
    return pa.Table.from_pylist([dict(zip(keys, row, strict=True)) | rest for row in rows], schema=METRICS)


HAND = {(S, S): 45, (S, U): 15, (C, C): 15, (C, S): 5, (U, U): 5, (U, C): 10}


def test_kappa_is_that_of_a_table_worked_by_hand():
    """45 + 15 + 5 of 95 claims agree; kappa follows from the margins (60, 20, 15, 0) and (50, 25, 20, 0)."""
    pairs = [pair for pair, n in HAND.items() for _ in range(n)]

    found = compare_verdicts(verdicts_table([a for a, _ in pairs]), verdicts_table([b for _, b in pairs]))

    chance = (60 * 50 + 20 * 25 + 15 * 20) / 95**2
    assert found.agreement == pytest.approx(65 / 95)
    assert found.kappa == pytest.approx((65 / 95 - chance) / (1 - chance))


def test_the_confusion_table_has_all_sixteen_pairs():
    """Every pair of verdicts has its row, those that did not occur too, in the order of `Verdict`."""
    found = compare_verdicts(verdicts_table([S, S, U]), verdicts_table([S, C, N])).confusion

    names = [verdict.value for verdict in Verdict]
    assert found.schema == CONFUSION
    assert [(a, b) for a in names for b in names] == [
        (r["verdict_a"], r["verdict_b"]) for r in found.to_pylist()
    ]
    counted = {(r["verdict_a"], r["verdict_b"]): r["n"] for r in found.to_pylist() if r["n"]}
    assert counted == {(S, S): 1, (S, C): 1, (U, N): 1}


def test_a_flip_shows_both_sides():
    """A claim whose verdict changed stands with both verdicts, probabilities and rules."""
    a = verdicts_table([S, S], p=0.875, rule="nli_cited")
    b = verdicts_table([S, C], p=0.125, rule="nli")

    found = compare_verdicts(a, b).flips

    assert found.schema == FLIPS
    assert found.to_pylist() == [
        {
            "request_id": "r0001",
            "claim_index": 0,
            "claim": "Fee 1",
            "verdict_a": S,
            "verdict_b": C,
            "p_entailment_a": 0.875,
            "p_entailment_b": 0.125,
            "decided_by_a": "nli_cited",
            "decided_by_b": "nli",
        }
    ]


def test_flips_are_in_order_of_request_and_claim():
    """Whatever the order of the rows, flips come by request_id and claim_index."""
    a, b = verdicts_table([S, S, S]), verdicts_table([C, U, N])

    found = compare_verdicts(a.take([2, 0, 1]), b.take([1, 2, 0])).flips

    assert found["request_id"].to_pylist() == ["r0000", "r0001", "r0002"]


def test_a_claim_with_another_text_is_not_compared():
    """Equal request and index with another text is counted as such, and on both sides as unmatched."""
    found = compare_verdicts(verdicts_table([S, S]), verdicts_table([S, C], claim="Charge {i}"))

    assert (found.n_common, found.n_only_a, found.n_only_b, found.n_other_text) == (0, 2, 2, 2)
    assert found.flips.num_rows == 0


def test_claims_of_one_series_only_are_counted():
    """A claim that the other series lacks is on neither side of the agreement."""
    found = compare_verdicts(verdicts_table([S, C, U]), verdicts_table([S]))

    assert (
        found.n_common,
        found.n_only_a,
        found.n_only_b,
        found.n_other_text,
        found.agreement,
    ) == (1, 2, 0, 0, 1.0)


def test_nothing_in_common_has_no_agreement():
    """Of empty series agreement and kappa are null, not 1."""
    found = compare_verdicts(verdicts_table([]), verdicts_table([]))

    assert (found.n_common, found.agreement, found.kappa) == (0, None, None)


def test_kappa_of_two_constants_is_null():
    """Where both series say the same of every claim, chance agreement is 1 and kappa is undefined."""
    found = compare_verdicts(verdicts_table([S, S]), verdicts_table([S, S]))

    assert (found.agreement, found.kappa) == (1.0, None)


def test_kappa_of_two_different_constants_is_zero():
    """Series that never agree, by constants, agree exactly as often as chance says."""
    assert compare_verdicts(verdicts_table([S, S]), verdicts_table([C, C])).kappa == 0.0


@given(st.lists(st.tuples(*[st.sampled_from([S, C, U, N])] * 2), max_size=30))
def test_counts_and_bounds_hold_for_any_verdicts(pairs):
    """The confusion table sums to the common claims, flips to what is off its diagonal, kappa is in -1..1."""
    found = compare_verdicts(verdicts_table([a for a, _ in pairs]), verdicts_table([b for _, b in pairs]))

    n_off = sum(a != b for a, b in pairs)
    assert (len(pairs), n_off) == (sum(found.confusion["n"].to_pylist()), found.flips.num_rows)
    assert found.kappa is None or -1 <= found.kappa <= 1


@given(st.lists(st.tuples(*[st.sampled_from([S, C, U, N])] * 2), min_size=1, max_size=30))
def test_kappa_does_not_care_which_series_is_a(pairs):
    """Kappa and agreement are the same with the series exchanged."""
    a, b = verdicts_table([a for a, _ in pairs]), verdicts_table([b for _, b in pairs])

    one, other = compare_verdicts(a, b), compare_verdicts(b, a)

    assert (one.kappa, one.agreement) == (other.kappa, other.agreement)


def test_a_claim_twice_in_one_series_is_refused():
    """A repeated claim would be compared twice; the error names it."""
    twice = pa.concat_tables([verdicts_table([S])] * 2)

    with pytest.raises(InputError) as err:
        compare_verdicts(verdicts_table([S]), twice)

    assert str(err.value) == (
        "compare: series b has request_id 'r0000', claim_index 0 more than once, expected once; "
        "store each claim's verdict once"
    )


def test_a_metric_twice_in_one_series_is_refused():
    """Metrics of two days in one table have no single shift; the error says what to do."""
    twice = metrics_table(*[("all", None, "groundedness", 0.5, 0.4, 0.6)] * 2)

    with pytest.raises(InputError) as err:
        compare(verdicts_table([]), verdicts_table([]), twice, NO_METRICS)

    assert str(err.value) == (
        "compare: series a has grouping 'all', prompt_version None, metric 'groundedness' more than once, "
        "expected once; measure all the days compared at once"
    )


def test_an_unknown_verdict_is_not_left_out():
    """A verdict that is none of the four stops the comparison rather than vanish from its table."""
    with pytest.raises(Exception, match="maybe"):
        compare_verdicts(verdicts_table(["maybe"]), verdicts_table([S]))


def test_a_shift_is_b_minus_a_with_both_intervals():
    """Metrics of `all` and of prompt versions are put side by side, in the order of a; others are left out."""
    a = metrics_table(
        ("all", None, "groundedness", 0.75, 0.7, 0.8),
        ("prompt_version", "v1", "groundedness", 0.5, 0.4, 0.6),
        ("topic", None, "groundedness", 0.1, 0.1, 0.1),
    )
    b = metrics_table(
        ("prompt_version", "v1", "groundedness", 0.25, 0.2, 0.3), ("all", None, "groundedness", 1.0, 0.9, 1.0)
    )

    found = compare(verdicts_table([]), verdicts_table([]), a, b).shifts

    assert found.schema == SHIFTS
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("all", None, "groundedness", 0.75, 0.7, 0.8, 1.0, 0.9, 1.0, 0.25),
        ("prompt_version", "v1", "groundedness", 0.5, 0.4, 0.6, 0.25, 0.2, 0.3, -0.25),
    ]


def test_a_metric_of_one_series_has_no_shift():
    """What only one series could measure is shown, with a null shift."""
    a = metrics_table(
        ("all", None, "recall_at_k", None, None, None), ("all", None, "refusal_rate", 0.1, 0.0, 0.2)
    )
    b = metrics_table(
        ("all", None, "recall_at_k", 0.5, 0.4, 0.6), ("prompt_version", None, "refusal_rate", 0.1, 0.0, 0.2)
    )

    found = compare(verdicts_table([]), verdicts_table([]), a, b).shifts.to_pylist()

    assert [(row["grouping"], row["metric"], row["shift"]) for row in found] == [
        ("all", "recall_at_k", None),
        ("all", "refusal_rate", None),
        ("prompt_version", "refusal_rate", None),
    ]
