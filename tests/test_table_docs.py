"""The reference of tables says something of every column, and jobs/TABLES.md carries it as it is."""

from pathlib import Path

import pyarrow as pa
import pytest
import table_docs

from claimscore.jobs import records

ROOT = Path(__file__).parents[1]

# Tables that live between two stages and are never stored.
NOT_STORED = {"SENTENCES", "REPLIES"}


def test_every_stored_table_is_documented():
    """Each schema of records.py is a table of the reference, unless it is never stored."""
    schemas = {name for name, value in vars(records).items() if isinstance(value, pa.Schema)}

    assert {name.lower() for name in schemas - NOT_STORED} == set(table_docs.TABLES)


@pytest.mark.parametrize("table", table_docs.TABLES)
def test_every_column_is_described(table):
    """No column of a table goes without a word on what it means."""
    schema = table_docs.TABLES[table][0]

    undescribed = [
        name
        for name in schema.names
        if name not in table_docs.COLUMNS[table] and name not in table_docs.COMMON
    ]
    assert undescribed == []


@pytest.mark.parametrize("table", table_docs.TABLES)
def test_no_column_is_described_that_is_not_there(table):
    """A description outlives no column."""
    assert set(table_docs.COLUMNS[table]) - set(table_docs.TABLES[table][0].names) == set()


def test_no_common_description_is_unused():
    """A description for several tables is used by one at least."""
    used = {
        name
        for table, (schema, _) in table_docs.TABLES.items()
        for name in schema.names
        if name not in table_docs.COLUMNS[table]
    }

    assert set(table_docs.COMMON) - used == set()


def test_no_description_breaks_its_table():
    """A bar or line break in a description would split its Markdown cell."""
    words = [
        describe
        for columns in (table_docs.COMMON, *table_docs.COLUMNS.values())
        for describe in columns.values()
    ]

    assert [word for word in words if "|" in word or "\n" in word] == []


def test_the_reference_is_the_generated_one():
    """The block of tables is what the script writes; run it after a change of schema."""
    text = (ROOT / "jobs" / "TABLES.md").read_text(encoding="utf-8")

    assert text == table_docs.replace_block(text, table_docs.render()), (
        "run: python scripts/table_docs.py jobs/TABLES.md"
    )


def test_a_nested_type_is_written_out():
    """Lists and structs are spelled with the names of their parts."""
    kind = pa.list_(pa.struct([("id", pa.string()), ("score", pa.float64())]))

    assert table_docs.type_name(kind) == "list<struct<id string, score float64>>"


def test_the_block_between_the_markers_is_replaced_and_nothing_else():
    """What stands around the markers stays; the second time nothing changes."""
    once = table_docs.replace_block("a\n<!-- tables:begin -->\nold\n<!-- tables:end -->\nb\n", "new\n")

    assert once == "a\n<!-- tables:begin -->\nnew\n<!-- tables:end -->\nb\n"
    assert table_docs.replace_block(once, "new\n") == once


@pytest.mark.parametrize(
    "text",
    [
        "no markers",
        "<!-- tables:begin -->",
        "<!-- tables:end --> <!-- tables:begin -->",
        "<!-- tables:begin --> <!-- tables:end --> <!-- tables:end -->",
        "<!-- tables:begin --> <!-- tables:begin --> <!-- tables:end -->",
    ],
)
def test_a_file_without_its_markers_is_left_alone(tmp_path, capsys, text):
    """Markers missing, doubled or out of order: a one-line error, exit code 1, the file unchanged."""
    file = tmp_path / "README.md"
    file.write_text(text)

    with pytest.raises(SystemExit) as stop:
        table_docs.main([str(file)])

    expected = f"Error: {file}: expected <!-- tables:begin --> and then <!-- tables:end -->, once each\n"
    assert (stop.value.code, capsys.readouterr().err, file.read_text()) == (1, expected, text)


@pytest.mark.parametrize("column", table_docs.WORDS)
def test_every_word_of_a_column_is_explained(column):
    """A user who meets `subject_veto` finds what it means."""
    words = table_docs.WORDS[column]

    assert set(table_docs.meanings(words)) == {word.value for word in words}
    assert any(column in schema.names for schema, _ in table_docs.TABLES.values())
