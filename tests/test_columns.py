"""Columns and literals by themselves: the laws that hold for any value."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs.columns import fit, fit_rows, leaves, n_bytes
from claimscore.jobs.literals import BadValueError, Shape, parse
from claimscore.jobs.records import CHUNK


@pytest.mark.parametrize("char", "[({'\"\\- 1:.,\x00")
def test_a_megabyte_of_one_character_is_refused_at_once(char):
    """No nesting, quoting or sign makes the parser slow or fall over."""
    with pytest.raises(BadValueError):
        parse(char * (1 << 20))


@settings(deadline=None)  # a busy machine
@given(st.recursive(st.one_of(st.none(), st.text(), st.integers()), st.lists, max_leaves=8))
def test_a_printed_python_list_is_itself(value):
    """`repr` and back, but for text that happens to be JSON of something else."""
    text = repr([value])
    expected = json.loads(text) if text.count('"') and _is_json(text) else [value]
    assert parse(text) == expected


def _is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@settings(deadline=None)  # a busy machine
@given(st.lists(st.one_of(st.text("0123.-ex é", max_size=3), st.integers(0, 9), st.none()), max_size=20))
def test_rows_that_fit_do_not_depend_on_their_neighbours(values):
    """Taken together or one at a time, the same rows fit with the same result."""
    texts = pa.array([v if v is None else str(v) for v in values], pa.string())
    together, bad = fit_rows(texts, pa.float64())
    alone = [fit_rows(texts[n : n + 1], pa.float64()) for n in range(len(texts))]

    assert together.to_pylist() == [one[0].as_py() for one, _ in alone]
    assert set(bad) == {n for n, (_, problems) in enumerate(alone) if problems}


def test_fit_of_nothing_is_nothing():
    """The check of a type: an empty array of it."""
    assert fit(pa.array([], pa.string()), pa.list_(CHUNK), Shape(bare="text")).type == pa.list_(CHUNK)


@settings(deadline=None)  # a busy machine
@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=4)), max_size=8
    )
)
def test_bytes_are_counted_through_every_encoding(rows):
    """The limit on a row does not depend on how its text is held, nor on a slice's neighbours."""
    expected = [sum(len((text or "").encode()) for text in row or []) for row in rows]
    for text in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        array = pa.array([["before"], *rows], pa.list_(text))[1:]
        assert n_bytes(array).tolist() == expected
    wrapped = [None if row is None else [{"a": text, "n": 1} for text in row] for row in rows]
    kind = pa.large_list(pa.struct([("a", pa.string()), ("n", pa.int64())]))
    assert n_bytes(pa.array(wrapped, kind)).tolist() == expected


def test_leaves_are_in_the_order_of_parquet():
    """Depth first, through lists, structs, MAPs and extension types."""
    schema = pa.schema(
        [
            ("a.b", pa.string()),
            ("c", pa.list_(pa.list_(pa.struct([("d", pa.map_(pa.string(), pa.int8())), ("e", pa.uuid())])))),
            ("f", pa.dictionary(pa.int32(), pa.string())),
        ]
    )

    expected = [("a.b",), ("c", "d", "key"), ("c", "d", "value"), ("c", "e"), ("f",)]
    assert list(leaves(schema)) == expected
