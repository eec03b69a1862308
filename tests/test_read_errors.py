"""What stops a whole log file, and the line that says so."""

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import ConfigError, InputError
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import ORIGIN, Shard

LOCAL = pyarrow.fs.LocalFileSystem()
GOOD = pa.table(
    {"request_id": ["r1"], "answer": ["5 EUR."], "chunks": [[{"id": "a", "text": "The fee is 5 EUR."}]]}
)


def read(table, path, columns=None, n_rows=1, groups=(0,)):
    pq.write_table(table, path)
    shard = Shard("ab", str(path), groups, 0, n_rows)
    return read_shard(LOCAL, shard, ReadConfig(logs="", columns=columns or {}), {})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "part-0007.parquet"


WRONG = {
    "chunks": (
        pa.array([1]),
        "column 'chunks' is int64, expected list<struct>, list<string> or a JSON string",
    ),
    "answer": (pa.array([1]), "column 'answer' is int64, expected a string"),
    "request_id": (pa.array([1.5]), "column 'request_id' is double, expected a string or an integer"),
    "samples": (pa.array([1]), "column 'samples' is int64, expected list<string> or a JSON string"),
    "topic": (pa.array([["a"]]), "column 'topic' is list<element: string>, expected a string"),
    "ts": (pa.array([1]), "column 'ts' is int64, expected a timestamp, a date or an ISO 8601 string"),
    "answerable": (pa.array([1]), "column 'answerable' is int64, expected a boolean"),
    "token_logprobs": (
        pa.array([[-0.5]]),
        "column 'token_logprobs' is list<element: double>, expected list<struct<token, logprob>> or a JSON string",
    ),
    "origin": (
        pa.array([{"a": 1}]),
        f"column 'origin' is struct<a: int64> without any of the fields {', '.join(f.name for f in ORIGIN)}, expected a struct, a MAP or a JSON string",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_column_of_the_wrong_type_stops_the_file(path, name):
    """The message names file, column, type and what would do; an optional column is not dropped in silence."""
    values, message = WRONG[name]
    table = GOOD
    table = table.drop_columns([name]) if name in table.column_names else table

    with pytest.raises(InputError) as caught:
        read(table.append_column(name, values), path)
    assert f"{path}: {message}; map the column under [read.columns]" == str(caught.value)


def test_a_chunk_without_a_text_field_stops_the_file(path):
    """No text, no evidence: the names that were tried are in the message."""
    table = pa.table({"request_id": ["r"], "answer": ["a"], "chunks": [[{"id": "a", "blob": "x"}]]})

    with pytest.raises(InputError, match="without a field 'body', expected list<struct>"):
        read(table, path, columns={"chunk.text": ("body",)})
    with pytest.raises(InputError) as caught:
        read(table, path)
    assert str(caught.value).endswith('; name the field under [read.columns], e.g. "chunk.text" = "body"')
    assert read(table, path, columns={"chunk.text": ("blob",)})


@pytest.mark.parametrize("name", ["request_id", "answer", "chunks"])
def test_a_missing_column_names_what_is_there(path, name):
    """The three that nothing can do without."""
    names = [n for n in GOOD.column_names if n != name]

    with pytest.raises(InputError) as caught:
        read(GOOD.select(names), path)
    found = ", ".join(map(repr, names))
    line = f"{path}: no column {name!r} for {name!r}, found {found}; "
    assert str(caught.value).startswith(line)
    assert str(caught.value).endswith("map the column under [read.columns]")


def test_all_missing_columns_are_named_at_once_with_the_preset_that_has_them(path):
    """A RAGAS set read without a preset: not one column a try, and the way out in the same line."""
    table = pa.table({"user_input": ["q"], "response": ["a"], "retrieved_contexts": [["c"]]})

    with pytest.raises(InputError) as caught:
        read(table, path)

    assert str(caught.value) == (
        f"{path}: no column 'request_id' for 'request_id', none 'answer' for 'answer', none 'chunks' for 'chunks', found "
        "'user_input', 'response', 'retrieved_contexts'; its columns are those of ragas: set [read] preset = "
        '"presets/ragas.toml" (of configs/presets/), or map the columns under [read.columns]'
    )


def test_an_unknown_mapping_is_a_config_error(path):
    """A typo under [read.columns] is not a column that happens to be missing."""
    with pytest.raises(ConfigError, match=r"\[read.columns\] has no column 'anwser'; known: answer"):
        read(GOOD, path, columns={"anwser": ("x",)})


def test_no_parquet_is_an_input_error(path):
    """A file of another kind is named, not a traceback."""
    path.write_text("request_id,answer\n1,2\n")

    with pytest.raises(InputError, match=r"part-0007.parquet: cannot be read: .*expected a Parquet file"):
        read_shard(LOCAL, Shard("ab", str(path), (0,), 0, 1), ReadConfig(logs=""), {})


def test_a_file_that_changed_since_the_plan_stops(path):
    """Rows are counted against the plan, so a log rewritten in mid-run never passes for the planned one."""
    with pytest.raises(
        InputError, match="has 1 rows in the row groups of shard ab, expected 3; the file changed"
    ):
        read(GOOD, path, n_rows=3)
    with pytest.raises(InputError, match="has 1 row groups, expected number 1; the file changed"):
        read(GOOD, path, n_rows=4, groups=(0, 1))


def test_a_column_that_occurs_twice_stops_the_file(path):
    """Which of the two was meant is not for us to guess."""
    table = pa.Table.from_arrays([*GOOD.columns, GOOD["answer"]], names=[*GOOD.column_names, "answer"])

    with pytest.raises(InputError, match="column 'answer' occurs twice, expected once"):
        read(table, path)
