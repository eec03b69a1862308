"""Shards: cut by rows, known by content, and bad files reported one by one."""

import shutil

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs.shards import _cut, _Footer, plan_shards

LOCAL = pyarrow.fs.LocalFileSystem()


def log(path, n_rows, *, group=10, text="answer", metadata=None):
    """A small log of `n_rows` rows in row groups of `group`."""
    table = pa.table({"id": pa.array(range(n_rows), pa.int64()), "a": [f"{text} {i}" for i in range(n_rows)]})
    pq.write_table(table.replace_schema_metadata(metadata), path, row_group_size=group)
    return str(path)


def test_row_groups_are_joined_until_there_are_enough_rows(tmp_path):
    """A shard is consecutive whole row groups, closed at `shard_rows` rows."""
    shards, errors = plan_shards(LOCAL, [log(tmp_path / "a.parquet", 45)], 20)
    assert [(s.row_groups, s.first_row, s.n_rows) for s in shards] == [
        ((0, 1), 0, 20),
        ((2, 3), 20, 20),
        ((4,), 40, 5),
    ]
    assert errors == []


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 100))
def test_shards_tile_the_rows_of_a_file(group_rows, shard_rows):
    """Every row is in exactly one shard, in order, no shard is empty, and none could have been closed earlier."""
    shards = list(_cut("f", _Footer(b"x", tuple(group_rows)), 0, shard_rows))
    assert sum(s.n_rows for s in shards) == sum(group_rows)
    assert [g for s in shards for g in s.row_groups] == list(range(sum(len(s.row_groups) for s in shards)))
    row = 0
    for s in shards:
        assert s.first_row == row
        assert s.n_rows == sum(group_rows[g] for g in s.row_groups) > 0
        assert s.n_rows - group_rows[s.row_groups[-1]] < shard_rows
        row += s.n_rows
    assert len({s.shard_id for s in shards}) == len(shards)


def test_identity_is_content_not_path_or_time(tmp_path):
    """A log moved to another name and time keeps its shard ids."""
    before, _ = plan_shards(LOCAL, [log(tmp_path / "a.parquet", 30)], 10)
    (tmp_path / "deep").mkdir()
    moved = tmp_path / "deep" / "zzz.parquet"
    shutil.copyfile(tmp_path / "a.parquet", moved)
    other = log(tmp_path / "b.parquet", 7, text="other")
    after, _ = plan_shards(LOCAL, [other, str(moved)], 10)
    assert [s.shard_id for s in before] == [s.shard_id for s in after[1:]]


def test_other_content_is_another_shard(tmp_path):
    """A log whose values changed gets other ids."""
    one, _ = plan_shards(LOCAL, [log(tmp_path / "a.parquet", 30)], 100)
    two, _ = plan_shards(LOCAL, [log(tmp_path / "a.parquet", 30, text="reply!")], 100)
    assert one[0].shard_id != two[0].shard_id


def test_copies_get_distinct_ids(tmp_path):
    """Two files with equal content are two sets of shards; the first has the id it would have alone."""
    first = log(tmp_path / "a.parquet", 30)
    copy = shutil.copyfile(first, tmp_path / "b.parquet")
    alone, _ = plan_shards(LOCAL, [first], 10)
    both, _ = plan_shards(LOCAL, [first, str(copy)], 10)
    assert [s.shard_id for s in alone] == [s.shard_id for s in both[:3]]
    assert len({s.shard_id for s in both}) == 6


def test_an_id_stands_for_its_row_groups(tmp_path):
    """Under another `shard_rows` a run of row groups keeps its id, and another run never has it."""
    file = log(tmp_path / "a.parquet", 60)
    cuts = [plan_shards(LOCAL, [file], rows)[0] for rows in (10, 20, 30, 60)]
    pairs = {(s.shard_id, s.row_groups) for cut in cuts for s in cut}
    assert len(pairs) == len({i for i, _ in pairs}) == len({g for _, g in pairs}) == 6 + 3 + 2 + 1


def test_no_rows_no_shard(tmp_path):
    """A file without rows is neither a shard nor an error."""
    assert plan_shards(LOCAL, [log(tmp_path / "a.parquet", 0)], 10) == ([], [])


def test_no_files():
    """Nothing in, nothing out."""
    assert plan_shards(LOCAL, [], 10) == ([], [])


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[:-4],
        lambda _: b"not parquet at all\n" * 9,
        lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
        lambda data: data[:-8] + b"\0\0\0\0PAR1",
        lambda data: data[:-60] + b"\xee" * 52 + data[-8:],
        lambda data: data[:-4] + b"PARE",
        lambda data: data[:-200] + data[-40:],
    ],
)
def test_a_bad_file_is_named_in_one_line_and_the_others_are_planned(tmp_path, damage):
    """Each kind of damage to a file's end gives its own error and spares its neighbours."""
    good = log(tmp_path / "good.parquet", 5)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(damage((tmp_path / "good.parquet").read_bytes()))
    shards, [(file, error)] = plan_shards(LOCAL, [str(bad), good], 10)
    assert ([s.file for s in shards], file) == ([good], str(bad))
    assert error.startswith(f"{bad}: not a readable Parquet file: ")
    assert "\n" not in error


def test_json_lines_are_told_the_way_to_parquet(tmp_path):
    """The commonest log that is no Parquet; an empty file is only named."""
    lines, empty = tmp_path / "log.jsonl", tmp_path / "empty.parquet"
    lines.write_text('{"request_id": "r", "answer": "The fee is 5 euros."}\n')
    empty.touch()

    _, [(_, of_lines), (_, of_empty)] = plan_shards(LOCAL, [str(lines), str(empty)], 10)

    assert "polars.read_ndjson(FILE).write_parquet(FILE)" in of_lines
    assert "polars" not in of_empty


def test_a_missing_file_is_an_error_line(tmp_path):
    """A file that vanished between listing and planning does not end the plan."""
    shards, [(_, error)] = plan_shards(LOCAL, [str(tmp_path / "gone.parquet")], 10)
    assert shards == []
    assert "gone.parquet" in error


@pytest.mark.parametrize("total, groups", [(5, [4]), (5, [10, -5])])
def test_row_counts_that_do_not_add_up_are_refused(tmp_path, monkeypatch, total, groups):
    """A footer whose row groups disagree with its total, or go below zero, would break the row accounting."""
    file = log(tmp_path / "a.parquet", 5)

    class Lying:
        num_rows, num_row_groups = total, len(groups)

        def row_group(self, index):
            return type("Group", (), {"num_rows": groups[index]})

    monkeypatch.setattr(pq, "read_metadata", lambda _: Lying())
    shards, [(_, error)] = plan_shards(LOCAL, [file], 10)
    assert (shards, f"hold {tuple(groups)} rows, the file {total}" in error) == ([], True)


def test_a_footer_longer_than_the_first_read_is_read_whole(tmp_path):
    """A wide log, whose footer does not fit the first 64 KiB, has the same rows and a stable id."""
    file = log(tmp_path / "a.parquet", 20, metadata={"note": "x" * 200_000})
    [one, _] = plan_shards(LOCAL, [file], 10)[0]
    assert (one.n_rows, one.shard_id) == (10, plan_shards(LOCAL, [file], 10)[0][0].shard_id)


def test_only_the_end_of_a_file_is_read(tmp_path):
    """Planning a log of 3 MB reads its last 64 KiB, whatever stands before."""
    table = pa.table({"a": [f"{i * 7919 % 10007:x}" * 40 for i in range(30_000)]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression="none", use_dictionary=False)
    expected = plan_shards(LOCAL, [str(path)], 10)
    data = path.read_bytes()
    path.write_bytes(b"\xaa" * (len(data) - 65_536) + data[-65_536:])
    assert plan_shards(LOCAL, [str(path)], 10) == expected


@settings(max_examples=200)
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_can_break_the_plan(tmp_path_factory, data, with_magic):
    """Any bytes at all give a shard list or an error line, never an exception."""
    path = tmp_path_factory.getbasetemp() / "fuzz.parquet"
    end = len(data).to_bytes(4, "little") + b"PAR1" if with_magic else b""
    path.write_bytes(data + end)
    shards, errors = plan_shards(LOCAL, [str(path)], 10)
    assert len(errors) + bool(shards) <= 1
