"""The store: what makes a file fresh and why it is stale; series, orphans, samples and runs."""

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_fixture import DATE, PARTS, SERIES, VERDICTS_FILE, open_store, write

from claimscore.jobs.errors import OutputError
from claimscore.jobs.layout import TableFile
from claimscore.jobs.records import SAMPLES
from claimscore.jobs.store import fingerprint_of


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "out")


def samples(*indices, key="k1", text="a sample"):
    return pa.table(
        {
            "request_id": ["r1"] * len(indices),
            "content_key": [key] * len(indices),
            "sample_index": list(indices),
            "text": [f"{text} {i}" for i in indices],
            "source": ["generated"] * len(indices),
            "outcome": ["ok"] * len(indices),
        }
    )


@given(
    st.dictionaries(st.text(), st.text()).flatmap(lambda d: st.tuples(st.just(d), st.permutations(list(d))))
)
def test_a_fingerprint_does_not_know_the_order_of_its_parts(parts_and_order):
    """The same parts in any order are the same fingerprint."""
    parts, order = parts_and_order
    assert fingerprint_of(parts) == fingerprint_of({name: parts[name] for name in order})


def test_a_fingerprint_is_the_same_in_every_process():
    """The value is fixed for good: a change of it would make every store stale."""
    assert fingerprint_of({"claims": "aaaa", "judge weights": "bbbb"}) == "e2d91c46d85ceed3"


def test_parts_cannot_run_into_each_other():
    """Two different sets of parts never look alike when strung together."""
    assert fingerprint_of({"a": "b", "c": "d"}) != fingerprint_of({"a": 'b", "c": "d'})


def test_fresh_is_what_was_made_from_the_same_parts(store):
    """Only equal parts make a file fresh."""
    assert not store.is_fresh(VERDICTS_FILE, PARTS)
    write(store)
    assert store.is_fresh(VERDICTS_FILE, PARTS)
    assert not store.is_fresh(VERDICTS_FILE, {**PARTS, "stage": "2"})


@pytest.mark.parametrize(
    "parts, why",
    [
        (PARTS, ""),
        ({**PARTS, "judge weights": "cccc"}, "judge weights changed"),
        ({"claims": "x", "judge weights": "y"}, "claims and judge weights changed"),
        ({"claims": "aaaa"}, "judge weights changed"),
        ({**PARTS, "verdicts config": "1"}, "verdicts config changed"),
    ],
)
def test_why_names_the_part_that_changed(store, parts, why):
    """The reason is in the caller's own words for its parts."""
    write(store)
    assert store.why_stale(VERDICTS_FILE, parts) == why


def test_why_never_made(store):
    """A file that nobody made says so."""
    assert store.why_stale(VERDICTS_FILE, PARTS) == "never made"


def test_why_file_missing(store):
    """A manifest without its file does not count."""
    write(store)
    Path(store.path(VERDICTS_FILE)).unlink()
    assert store.why_stale(VERDICTS_FILE, PARTS) == "file missing"


def test_why_cut_short(store):
    """A file that lost its end is made again."""
    write(store)
    path = Path(store.path(VERDICTS_FILE))
    size = path.stat().st_size
    os.truncate(path, size - 1)
    assert store.why_stale(VERDICTS_FILE, PARTS) == f"file has {size - 1} bytes, its manifest {size}"


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"fingerprint": 1}',
        b'{"fingerprint":"x","bytes":1}',
        b"[" * 9_999,
    ],
)
def test_a_garbled_manifest_is_not_fresh(store, garbage):
    """No bytes in the place of a manifest end the run or pass for fresh."""
    write(store)
    store.root.put(VERDICTS_FILE.manifest_key, garbage)
    assert store.manifest(VERDICTS_FILE) is None
    assert store.why_stale(VERDICTS_FILE, PARTS) == "made without a whole manifest (a run was interrupted)"


def test_a_folder_in_the_place_of_a_manifest_is_not_fresh(store):
    """Even that is only a reason."""
    (Path(store.root.base) / VERDICTS_FILE.manifest_key).mkdir(parents=True)
    assert store.why_stale(VERDICTS_FILE, PARTS) == "never made"


def test_what_a_manifest_holds(store):
    """Fingerprint, parts, content, rows, bytes and the caller's row accounting; time and run id are its own."""
    write(store)
    manifest = store.manifest(VERDICTS_FILE)
    data = Path(store.path(VERDICTS_FILE)).read_bytes()
    made_at = manifest.pop("made_at")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", made_at)
    assert manifest == {
        "fingerprint": fingerprint_of(PARTS),
        "parts": PARTS,
        "content": hashlib.sha256(data).hexdigest()[:16],
        "read": {},
        "source": "",
        "rows": 3,
        "bytes": len(data),
        "counts": {"answers": 2},
        "run_id": "run-1",
    }


def test_files_that_count(store):
    """Of a table's files only those with a manifest are given, by date and shard."""
    other_day = dataclasses.replace(VERDICTS_FILE, date="2026-11-27")
    unvouched = dataclasses.replace(VERDICTS_FILE, shard_id="cc")
    for file in (VERDICTS_FILE, other_day, unvouched):
        write(store, file)
    store.root.remove(unvouched.manifest_key)
    (Path(store.path(VERDICTS_FILE)).parent / "Notes by hand.parquet").write_bytes(b"")
    assert store.files("verdicts", series=SERIES) == [other_day, VERDICTS_FILE]
    assert store.files("verdicts", date=DATE, series=SERIES) == [VERDICTS_FILE]
    assert store.files("claims") == []


def test_orphans_go_and_everything_else_stays(store):
    """Only the named date and series lose the shards that are no more planned."""
    keep, gone = (dataclasses.replace(VERDICTS_FILE, shard_id=s) for s in ("aa", "bb"))
    others = [
        dataclasses.replace(gone, series="other-0123abcd"),
        dataclasses.replace(gone, date="2026-11-27"),
        dataclasses.replace(gone, series=f"{SERIES}0"),
        TableFile("claims", DATE, "bb"),
    ]
    for file in (keep, gone, *others):
        write(store, file)
    assert store.remove_orphans("verdicts", DATE, SERIES, {"aa"}) == ["bb"]
    assert all(store.is_fresh(file, PARTS) for file in (keep, *others))
    assert store.why_stale(gone, PARTS) == "never made"


def test_half_removed_orphans_are_removed_by_the_next_run(store):
    """A kill between manifest and file, or a lost file, leaves something that the next removal still finds."""
    files = [dataclasses.replace(VERDICTS_FILE, shard_id=s) for s in ("aa", "bb")]
    for file in files:
        write(store, file)
    store.root.remove(files[0].manifest_key)
    store.root.remove(files[1].key)
    assert store.remove_orphans("verdicts", DATE, SERIES, set()) == ["aa", "bb"]
    assert store.root.keys("") == []


def test_samples_are_never_orphans(store):
    """Sampled text cannot be drawn again, so a caller that would remove it has a mistake."""
    with pytest.raises(AssertionError, match="cannot be drawn again"):
        store.remove_orphans("samples", DATE, "g1", set())


def test_the_current_series(store):
    """The pointer says what was set last, and nothing before the first run."""
    assert store.current() is None
    store.set_current(SERIES)
    store.set_current("other-0123abcd")
    assert store.current() == "other-0123abcd"


@pytest.mark.parametrize("garbage", [b"", b"{}", b"[]", b'{"series": 3}', b'{"series": null}'])
def test_a_garbled_pointer_is_named(store, garbage):
    """A pointer that somebody broke is a failure, not the first run."""
    store.root.put("state/current.json", garbage)
    with pytest.raises(OutputError, match=r"current\.json: found .+; remove it and run again"):
        store.current()


def test_series_are_listed(store):
    """Every judge that has verdicts, in order."""
    for series in ("b-0123abcd", "a-0123abcd"):
        write(store, dataclasses.replace(VERDICTS_FILE, series=series))
    write(store, TableFile("scores", DATE, "aa", "scores-only"))
    assert store.list_series() == ["a-0123abcd", "b-0123abcd"]


def test_samples_add_up(store):
    """Each call adds a file; a shard's samples are all of them, and no other shard's or generator's."""
    store.add_samples(samples(0, 1), date=DATE, shard_id="aa", generator="g1")
    store.add_samples(samples(2), date=DATE, shard_id="aa", generator="g1")
    store.add_samples(samples(0, key="k2"), date=DATE, shard_id="aab", generator="g1")
    store.add_samples(samples(0, text="other"), date=DATE, shard_id="aa", generator="g2")
    shard = store.read_samples(DATE, "g1", "aa")
    assert shard.schema == SAMPLES
    assert sorted(shard["text"].to_pylist()) == ["a sample 0", "a sample 1", "a sample 2"]
    assert store.read_samples(DATE, "g1").num_rows == 4


def test_no_samples_yet(store):
    """Before the first draw there is an empty table with the schema."""
    assert store.read_samples(DATE, "g1", "aa") == SAMPLES.empty_table()


def test_the_same_samples_again_are_the_same_file(store):
    """A retried task that adds what is there changes nothing."""
    names = [store.add_samples(samples(0), date=DATE, shard_id="aa", generator="g1") for _ in range(2)]
    assert names == [*store.list_samples(DATE, "g1", "aa")] * 2


def test_a_sample_drawn_twice_counts_once(store):
    """Two draws for one index, of a task that ran twice, never make two votes; all readers see the same one."""
    for text in ("one", "two", "three"):
        store.add_samples(samples(0, 1, text=text), date=DATE, shard_id="aa", generator="g1")
    first = store.list_samples(DATE, "g1", "aa")[0]
    kept = store.read_samples(DATE, "g1", "aa")
    assert kept == store.read(TableFile("samples", DATE, first, "g1"))


def test_runs_are_kept_and_the_latest_is_named(store):
    """Each run's report stays, and state/run.json is the latest."""
    for run_id in ("r1", "r2"):
        store.write_run(run_id, {"run_id": run_id, "note": "na\u00efve \ud800"})
    assert json.loads(store.root.get("state/run.json"))["run_id"] == "r2"
    assert json.loads(store.root.get("state/runs/r1/run.json"))["note"] == "na\u00efve \ud800"


def test_a_report_is_strict_json(store):
    """NaN, which other readers refuse, is refused here first."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write_run("r1", {"value": float("nan")})
