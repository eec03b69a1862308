"""Every form in which tools write the same log."""

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from claimscore.jobs import columns
from claimscore.jobs.config import ReadConfig
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import LOG, Shard

WANTED = [{"id": "7", "text": "Gebühr: 5 €.", "score": 0.5}, {"id": "8", "text": "Zinsen.", "score": None}]
TEXTS, IDS, SCORES = (["Gebühr: 5 €.", "Zinsen."], ["7", "8"], [0.5, None])


def read(path, logged, mapping=None, max_row_bytes=1 << 20, **write):
    """`logged`, with an id and an answer unless they are given, through a file and back."""
    table = pa.table({"request_id": ["r1"], "answer": ["5 €."]} | logged)
    pq.write_table(table, path, **write)
    mapping = {key: tuple(names) for key, names in (mapping or {}).items()}
    config = ReadConfig(logs="", columns=mapping, max_row_bytes=max_row_bytes)
    n_rows = table.num_rows
    return read_shard(pyarrow.fs.LocalFileSystem(), Shard("ab", str(path), (0,), 0, n_rows), config, {})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.parquet"


STRING, DOUBLE = pa.string(), pa.float64()


def structs(kind=pa.list_, text=STRING, number=STRING, score=DOUBLE):
    item = pa.struct([("score", score), ("text", text), ("id", number), ("rank", pa.int32())])
    rows = [{**c, "id": int(c["id"]) if pa.types.is_integer(number) else c["id"], "rank": 1} for c in WANTED]
    return pa.array([rows], kind(item))


TEXT_MAP = pa.map_(pa.string(), pa.string())
KEPT = {
    "struct": {"chunks": structs()},
    "large": {"chunks": structs(pa.large_list, pa.large_string(), score=pa.float32())},
    "fixed size": {"chunks": structs(lambda item: pa.list_(item, 2))},
    "view": {"chunks": structs(text=pa.string_view())},
    "binary": {"chunks": structs(text=pa.binary(), number=pa.binary())},
    "int id": {"chunks": structs(number=pa.int64())},
    "dictionary": {"chunks": structs(text=pa.dictionary(pa.int32(), pa.string()))},
    "json": {"chunks": [json.dumps(WANTED)]},
    "json of int ids": {"chunks": [json.dumps([{**c, "id": int(c["id"])} for c in WANTED])]},
    "python": {"chunks": [repr(WANTED)]},
    "list of map": {
        "chunks": pa.array([[[(k, c[k] and str(c[k])) for k in c] for c in WANTED]], pa.list_(TEXT_MAP))
    },
    "parallel": {"chunks": [TEXTS], "chunk_ids": [IDS], "chunk_scores": [SCORES]},
    "parallel ints": {"chunks": [TEXTS], "chunk_ids": [[7, 8]], "chunk_scores": [[0.5, float("nan")]]},
    "parallel json": {
        "chunks": [json.dumps(TEXTS)],
        "chunk_ids": [json.dumps(IDS)],
        "chunk_scores": [repr(SCORES)],
    },
    "struct and parallel": {
        "chunks": [[{"text": t} for t in TEXTS]],
        "chunk_ids": [IDS],
        "chunk_scores": [SCORES],
    },
}


@pytest.mark.parametrize("form", KEPT)
def test_chunks_in_every_form_are_the_same_chunks(path, form):
    """Encoding, order of fields, width of numbers and serialisation do not show."""
    log, quarantine = read(path, KEPT[form])

    assert quarantine.to_pylist() == []
    assert log["chunks"].to_pylist() == [WANTED]
    assert log["flags"].to_pylist() == [[]]


def test_chunks_as_a_map_of_id_to_text(path):
    """A MAP is a list of keys and values."""
    log, _ = read(path, {"chunks": pa.array([list(zip(IDS, TEXTS, strict=True))], TEXT_MAP)})

    assert log["chunks"].to_pylist() == [[{**c, "score": None} for c in WANTED]]


@pytest.mark.parametrize(
    "chunks", [[["x", "y"]], ['["x", "y"]'], ["['x', 'y']"], [[{"text": "x"}, {"text": "y"}]]]
)
def test_chunks_without_ids_are_numbered(path, chunks):
    """By position, from c0, with the flag that says an id check proves nothing."""
    log, _ = read(path, {"chunks": chunks})

    assert [(c["id"], c["text"], c["score"]) for c in log["chunks"][0].as_py()] == [
        ("c0", "x", None),
        ("c1", "y", None),
    ]
    assert log["flags"].to_pylist() == [["ids_synthetic"]]


def test_chunk_fields_under_other_names(path):
    """Nested fields and several candidates; the first that is not null counts."""
    items = [
        {"node": {"id_": "n1", "text": "a"}, "old": None, "score": 0.1},
        {"node": {"id_": None, "text": "b"}, "old": "n2", "score": None},
    ]
    mapping = {"chunks": ["source_nodes"], "chunk.id": ["node.id_", "old"], "chunk.text": ["node.text"]}
    expected = [{"id": "n1", "text": "a", "score": 0.1}, {"id": "n2", "text": "b", "score": None}]

    for column in ([items], [json.dumps(items)]):
        log, _ = read(path, {"source_nodes": column}, mapping)
        assert log["chunks"].to_pylist() == [expected]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("['a' 'b']", "unrecoverable_list"),
        ("['a', ..., 'b']", "unrecoverable_list"),
        ("[1 2 3]", "unrecoverable_list"),
        ('["a", "b"', "unparsable_json"),
        ("", "unparsable_json"),
        ("The fee, 5 EUR", "unparsable_json"),
        ("__import__('os').getcwd()", "unparsable_json"),
        ('{"text": "a"}', "bad_value"),
        ('[["a"]]', "bad_value"),
        ("[true]", "bad_value"),
        ('[{"text": "a", "score": "high"}]', "bad_value"),
        (r'["\ud800"]', "invalid_utf8"),
        ("null", "chunks_null"),
        ("[null]", "chunk_text_null"),
        ('[{"content_": "a"}]', "chunk_text_null"),
    ],
)
def test_text_that_is_no_list_of_chunks_is_quarantined(path, text, reason):
    """Never split, never half taken; the good row beside it is read."""
    log, quarantine = read(
        path, {"request_id": ["r1", "r2"], "answer": ["a", "b"], "chunks": [text, '["x"]']}
    )

    assert [(q["request_id"], q["reason"]) for q in quarantine.to_pylist()] == [("r1", reason)]
    assert log["request_id"].to_pylist() == ["r2"]


def test_text_over_the_limit_is_never_parsed(path, monkeypatch):
    """The limit holds before a value is built from the text, not after."""
    parsed = []
    monkeypatch.setattr(columns, "parse", lambda text: parsed.append(text) or json.loads(text))
    chunks = [json.dumps(["x" * 2_000]), '["x"]']
    _, quarantine = read(
        path, {"request_id": ["r1", "r2"], "answer": ["a", "b"], "chunks": chunks}, max_row_bytes=1_000
    )

    assert quarantine["reason"].to_pylist() == ["row_too_large"]
    assert parsed == chunks[1:]


@pytest.mark.parametrize("ids", [["7"], [], ["7", "8", "9"]])
def test_parallel_lists_of_other_lengths_are_quarantined(path, ids):
    """Which id belongs to which text cannot be known; a list that was not logged is no such list."""
    logged = {"request_id": ["r1", "r2"], "answer": ["a", "b"], "chunks": [["x", "y"]] * 2}
    log, quarantine = read(path, logged | {"chunk_ids": pa.array([ids, None], pa.list_(pa.string()))})

    assert quarantine["reason"].to_pylist() == ["parallel_lists_differ"]
    assert [c["id"] for c in log["chunks"][0].as_py()] == ["c0", "c1"]


MOMENT = datetime(2026, 11, 28, 1, 0, 0, 120_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "ts",
    [
        pa.array([MOMENT], pa.timestamp("us", "UTC")),
        pa.array([MOMENT], pa.timestamp("ns", "Asia/Tokyo")),
        pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("ms")),
        pa.array(np.array(["2026-11-28T01:00:00.120000999"], "datetime64[ns]")),
        pa.array(["2026-11-28T01:00:00.120Z"]),
        pa.array(["2026-11-28 01:00:00.12"]),
        pa.array(["2026-11-28T10:00:00.120+09:00"]),
        pa.array(["2026-11-28T01:00:00.120000999+00:00"]),
    ],
)
def test_times_are_utc_microseconds(path, ts):
    """Any unit, any zone, none for UTC, and ISO strings."""
    log, _ = read(path, {"chunks": [["x"]], "ts": ts})

    assert log["ts"].to_pylist() == [MOMENT]


def test_int96_times(path):
    """What old Spark and Impala write."""
    ts = pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us"))
    log, _ = read(path, {"chunks": [["x"]], "ts": ts}, use_deprecated_int96_timestamps=True)

    assert log["ts"].to_pylist() == [MOMENT]


def test_a_string_that_is_no_time_is_quarantined(path):
    """It is not read as no time."""
    _, quarantine = read(path, {"chunks": [["x"]], "ts": ["yesterday"]})

    assert quarantine["reason"].to_pylist() == ["bad_value"]
    assert quarantine["detail"].to_pylist() == ["column 'ts': 'yesterday' is no ISO 8601 time"]


FULL = {
    "question": "Fee?",
    "samples": ["5 EUR", "Five euros"],
    "token_logprobs": [{"token": "5", "logprob": -0.5}],
    "prompt_version": "p14",
    "model": "m",
    "topic": "fees",
    "status": "ok",
    "answerable": True,
    "gold_chunk_ids": ["7"],
    "reference_answer": "5 EUR",
    "human_label": "supported",
    "citations": [{"start": 0, "end": 1, "text": "5", "chunk_ids": ["7"]}],
    "origin": {f.name: f.name for f in LOG.field("origin").type},
}


@pytest.mark.parametrize("as_json", [False, True])
def test_optional_columns_are_carried(path, as_json):
    """All of them, nested ones as Arrow types or as JSON."""
    logged = {k: [json.dumps(v) if as_json and isinstance(v, list | dict) else v] for k, v in FULL.items()}
    log, quarantine = read(path, {"chunks": [["x"]], **logged})

    assert quarantine.num_rows == 0
    assert {name: log[name][0].as_py() for name in FULL} == FULL


def test_citations_as_ids_alone(path):
    """A list of strings is the ids that the answer as a whole cites: no span is made up for them."""
    log, _ = read(path, {"chunks": [["x"]], "citations": [["7", "8"]]})

    nothing = {"start": None, "end": None, "text": None}
    assert log["citations"].to_pylist() == [
        [{**nothing, "chunk_ids": ["7"]}, {**nothing, "chunk_ids": ["8"]}]
    ]


def test_dotted_columns_reach_structs_maps_and_flat_names(path):
    """A dot in a mapping is a step or a dot, whichever the file has."""
    logged = {
        "chunks": [["x"]],
        "attributes.model": ["m"],
        "meta": [{"prompt": {"version": 14}}],
        "tags": pa.array([[("topic", "fees"), ("other", "x")]], TEXT_MAP),
    }
    mapping = {
        "model": ["attributes.model"],
        "prompt_version": ["meta.prompt.version"],
        "topic": ["nope", "tags.topic"],
    }
    log, _ = read(path, logged, mapping)

    assert [log[name][0].as_py() for name in mapping] == ["m", "14", "fees"]


@pytest.mark.parametrize("text", ["cut off...", "cut off… ", "cut [truncated]", "x" * 1_000])
def test_text_that_a_logger_cut_is_flagged(path, text):
    """A cut chunk makes true claims look unsupported, so the row says that it may be one."""
    log, _ = read(
        path, {"request_id": ["r1", "r2"], "answer": ["a", "b"], "chunks": [["whole.", text], ["whole."]]}
    )

    assert ["maybe_truncated" in flags for flags in log["flags"].to_pylist()] == [True, False]


def test_a_mapping_to_nothing_reads_nothing(path):
    """The way out for a column of ours that means another thing in this log."""
    log, _ = read(path, {"chunks": [["x"]], "status": [["a", "list"]]}, {"status": []})

    assert log["status"].to_pylist() == [None]


def test_a_label_that_pandas_left_out_is_null(path):
    """NaN in a column of labels is no label called nan."""
    log, _ = read(path, {"chunks": [["x"]], "topic": pa.array([float("nan")])})

    assert log["topic"].to_pylist() == [None]
