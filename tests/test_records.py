"""Every table has one schema, and nothing is written that does not fit it."""

import enum

import pyarrow as pa
import pytest

from claimscore.jobs import records
from claimscore.jobs.errors import OutputError
from claimscore.jobs.records import conform

SCHEMAS = {name: value for name, value in vars(records).items() if isinstance(value, pa.Schema)}
ENUMS = [
    value for value in vars(records).values() if isinstance(value, type) and issubclass(value, enum.StrEnum)
]
SMALL = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("names", pa.list_(pa.string())),
    ]
)


def small(ids=("a",), n=(1,), names=((),)):
    """A table of SMALL as a stage might hand it over, types not yet settled."""
    return pa.table(
        {"id": list(ids), "n": list(n), "names": pa.array([list(x) for x in names], pa.list_(pa.string()))}
    )


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_empty_table_of_every_schema_conforms(name):
    """An empty shard keeps its schema."""
    schema = SCHEMAS[name]

    assert conform(schema.empty_table(), schema, where=name).schema == schema


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_shard_of_nulls_concatenates_with_an_empty_one(name):
    """A column that is null throughout, typed null by Arrow, gets its type from the schema."""
    schema = SCHEMAS[name]
    untyped = pa.table(
        {
            field.name: pa.nulls(2) if field.nullable else pa.array([_zero(field.type)] * 2, field.type)
            for field in schema
        }
    )

    both = pa.concat_tables([conform(untyped, schema, where=name), schema.empty_table()])
    assert (both.schema, both.num_rows) == (schema, 2)


def _zero(kind):
    if pa.types.is_list(kind):
        return []
    return {pa.string(): "", pa.bool_(): False}.get(kind, 0)


def test_columns_are_put_in_order_and_cast():
    """Order and types come from the schema."""
    table = small(n=[7]).select(["names", "n", "id"])

    out = conform(table, SMALL, where="here")

    assert (out.schema, out.to_pylist()) == (SMALL, [{"id": "a", "n": 7, "names": []}])


def test_metadata_of_the_input_is_not_carried_over():
    """What another writer left in the schema's metadata does not reach our files."""
    table = small().replace_schema_metadata({"pandas": "{}"})

    assert conform(table, SMALL, where="here").schema.metadata is None


def test_missing_and_unknown_columns_are_named():
    """Both sides of a mismatch stand in the message, with what was expected."""
    table = small().rename_columns(["id", "m", "names"])

    with pytest.raises(OutputError) as err:
        conform(table, SMALL, where="claims 0123abcd")

    assert str(err.value) == (
        "claims 0123abcd: columns missing ['n'], unknown or repeated ['m']; expected exactly ['id', 'n', 'names']"
    )


def test_a_null_where_none_may_be_is_counted():
    """A column without nulls says how many it has."""
    table = small(ids=[None, "b", None], n=[1, 2, 3], names=[(), (), ()])

    with pytest.raises(OutputError) as err:
        conform(table, SMALL, where="claims 0123abcd")

    assert str(err.value) == "claims 0123abcd: column 'id' has 2 nulls, expected none"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([2**40], id="overflow"),
        pytest.param([1.5], id="lost fraction"),
        pytest.param(["many"], id="text for a number"),
        pytest.param([{"a": 1}], id="struct for a number"),
    ],
)
def test_a_cast_that_loses_something_is_refused(values):
    """A value that does not fit is an error, never another value."""
    with pytest.raises(OutputError, match=r"^here: a column does not fit its schema: "):
        conform(small(n=values), SMALL, where="here")


def test_a_column_twice_is_refused():
    """A doubled column cannot be chosen between."""
    table = small().append_column("n", pa.array([2]))

    with pytest.raises(OutputError) as err:
        conform(table, SMALL, where="here")

    assert str(err.value) == (
        "here: columns missing [], unknown or repeated ['n']; expected exactly ['id', 'n', 'names']"
    )


@pytest.mark.parametrize("words", ENUMS, ids=lambda words: words.__name__)
def test_the_words_of_a_column_are_plain(words):
    """Values are lower case with underscores, so that they can be column and folder names and SQL literals."""
    assert all(word.value == word.name.lower() for word in words)


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_column_name_occurs_twice(name):
    """Columns are known by name."""
    names = SCHEMAS[name].names

    assert len(names) == len(set(names))
