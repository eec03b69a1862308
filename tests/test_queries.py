"""The queries of jobs/TABLES.md over the tables as they lie: the same answers from polars, DuckDB and the tables themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jobs_fixture
import polars as pl
import pytest
import test_exports

ROOT = Path(__file__).parents[1]
REPEATING = "says it three times"

POLARS = {
    "share": """
import json
from glob import glob

import polars as pl

series = json.load(open("out/state/current.json"))["series"]
files = glob("out/tables/answers/**/*.parquet", recursive=True)
answers = pl.concat([pl.scan_parquet(file, hive_partitioning=True) for file in files], how="diagonal").filter(
    judge=series
)
found = (
    answers.group_by("date", "prompt_version")
    .agg(
        hallucinated=pl.col("hallucinated").mean(),  # of those that could be judged
        judged=pl.col("hallucinated").count(),
        not_judged=pl.col("hallucinated").null_count(),
    )
    .sort("date", "prompt_version")
    .collect()
)
""",
    "first": """
import json
from glob import glob

import polars as pl

series = json.load(open("out/state/current.json"))["series"]
answers, claims = (
    pl.concat(
        [
            pl.scan_parquet(file, hive_partitioning=True)
            for file in glob(f"out/tables/{name}/**/*.parquet", recursive=True)
        ],
        how="diagonal",
    ).filter(judge=series)
    for name in ("answers", "verdicts")
)
failed = pl.col("verdict").is_in(["contradicted", "unsupported"]) | pl.col("hallucination_type").is_not_null()
found = (
    claims.filter(failed)
    .group_by("date", "request_id")
    .agg(
        n_failed=pl.coalesce("duplicate_of", "claim_index").n_unique(),
        claims=pl.concat_str("verdict", pl.lit(": "), "claim"),
    )
    .join(answers.select("date", "request_id", "groundedness", "action_reason"), on=["date", "request_id"])
    .sort(["n_failed", "groundedness", "request_id"], descending=[True, False, False])
    .head(20)
    .collect()
)
""",
    "changed": """
from glob import glob

import polars as pl

a, b = "stub-OLD", "other-NEW"  # folders of out/tables/verdicts, without `judge=`
files = glob("out/tables/verdicts/**/*.parquet", recursive=True)
claims = pl.concat([pl.scan_parquet(file, hive_partitioning=True) for file in files], how="diagonal")
key = ["date", "request_id", "claim_index"]
found = (
    claims.filter(judge=a)
    .join(claims.filter(judge=b), on=key, suffix="_b")
    .filter(pl.col("verdict") != pl.col("verdict_b"))
    .select(*key, "claim", "verdict", "verdict_b", "p_entailment", "p_entailment_b")
    .sort(key)
    .collect()
)
""",
}
DUCKDB = {
    "share": """
SELECT date, prompt_version, avg(hallucinated::int) AS hallucinated,
       count(hallucinated) AS judged, count(*) - count(hallucinated) AS not_judged
FROM read_parquet('out/tables/answers/**/*.parquet', hive_partitioning = true, union_by_name = true)
WHERE judge = (SELECT series FROM 'out/state/current.json')
GROUP BY ALL ORDER BY ALL;
""",
    "first": """
SELECT date, request_id, count(DISTINCT coalesce(duplicate_of, claim_index)) AS n_failed, groundedness, action_reason,
       string_agg(verdict || ': ' || claim, chr(10) ORDER BY claim_index) AS claims
FROM read_parquet('out/tables/verdicts/**/*.parquet', hive_partitioning = true, union_by_name = true) AS claims
JOIN read_parquet('out/tables/answers/**/*.parquet', hive_partitioning = true, union_by_name = true) AS answers USING (date, judge, request_id)
WHERE judge = (SELECT series FROM 'out/state/current.json')
  AND (verdict IN ('contradicted', 'unsupported') OR hallucination_type IS NOT NULL)
GROUP BY ALL ORDER BY n_failed DESC, groundedness, request_id LIMIT 20;
""",
    "changed": """
WITH claims AS (SELECT * FROM read_parquet('out/tables/verdicts/**/*.parquet', hive_partitioning = true, union_by_name = true))
SELECT date, request_id, claim_index, a.claim, a.verdict, b.verdict AS verdict_b, a.p_entailment, b.p_entailment AS p_entailment_b
FROM claims a JOIN claims b USING (date, request_id, claim_index)
WHERE a.judge = 'stub-OLD' AND b.judge = 'other-NEW' AND a.verdict <> b.verdict
ORDER BY ALL;
""",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder with an output root of one day and two series, the first current; and the series by the names above."""
    folder = tmp_path_factory.mktemp("queries")
    rows = jobs_fixture.log_rows(18)
    rows.append(rows[0] | {"request_id": REPEATING, "answer": "The hotel has a pool. " * 3})
    jobs_fixture.write_log(folder, rows)
    (folder / "other.toml").write_text('name = "other"\nmodel = "./model"\nentailment = 0.3\n')
    first = test_exports.run(jobs_fixture.make_config(folder))
    other = test_exports.run(jobs_fixture.make_config(folder, judge=str(folder / "other.toml")))
    store = test_exports.Store(str(folder / "out"), test_exports.StoreConfig(out=str(folder / "out")))
    store.set_current(first)
    return folder, {"stub-OLD": first, "other-NEW": other}


def named(text: str, series: dict[str, str]) -> str:
    """The query with the fixture's own series."""
    for word, name in series.items():
        text = text.replace(word, name)
    return text


def ask_polars(name: str, outputs, monkeypatch) -> list[dict[str, Any]]:
    """Rows of a query, run as a person would: in the folder of the output root."""
    folder, series = outputs
    monkeypatch.chdir(folder)
    space: dict[str, Any] = {}
    exec(compile(named(POLARS[name], series), name, "exec"), space)  # our own text
    return space["found"].to_dicts()


def tables(outputs, table: str, series: str) -> pl.DataFrame:
    """A table of one series as it lies."""
    folder, names = outputs
    return pl.read_parquet(f"{folder}/out/tables/{table}/judge={names[series]}/**/*.parquet")


def test_what_share_hallucinated(outputs, monkeypatch):
    """By prompt version, with those that could not be judged beside and not inside."""
    answers = tables(outputs, "answers", "stub-OLD")

    found = {row["prompt_version"]: row for row in ask_polars("share", outputs, monkeypatch)}

    assert set(found) == {"p1", "p2"}
    for version, row in found.items():
        mine = answers.filter(prompt_version=version)["hallucinated"]
        assert row["judged"] + row["not_judged"] == len(mine)
        assert row["hallucinated"] == pytest.approx(mine.drop_nulls().mean())
    assert str(found["p1"]["date"]) == jobs_fixture.DATE


def test_what_to_read_first(outputs, monkeypatch):
    """The answers with most failed claims, worst first, each claim with its verdict; of the current series only."""
    found = ask_polars("first", outputs, monkeypatch)

    verdicts = tables(outputs, "verdicts", "stub-OLD")
    failed = verdicts.filter(
        pl.col("verdict").is_in(["contradicted", "unsupported"]) | pl.col("hallucination_type").is_not_null()
    )
    n_repeats = failed["duplicate_of"].count()
    assert sum(row["n_failed"] for row in found) == failed.height - n_repeats > 0
    (repeating,) = (row for row in found if row["request_id"] == REPEATING)
    assert (repeating["n_failed"], len(repeating["claims"]), n_repeats) == (1, 3, 2)
    order = [(-row["n_failed"], row["groundedness"], row["request_id"]) for row in found]
    assert order == sorted(order)
    assert any("unsupported: The hotel has a pool." in row["claims"] for row in found)


def test_what_changed_between_two_series(outputs, monkeypatch):
    """Claims with another verdict, and no other."""
    found = ask_polars("changed", outputs, monkeypatch)

    a, b = (
        tables(outputs, "verdicts", name).sort("request_id", "claim_index")
        for name in ("stub-OLD", "other-NEW")
    )
    assert len(found) == (a["verdict"] != b["verdict"]).sum() > 0
    assert all(row["verdict"] != row["verdict_b"] for row in found)


def ask_duckdb(name: str, outputs) -> list[dict[str, Any]]:
    """Rows of a query, in the folder that `ask_polars` went to."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    cursor = duckdb.connect().execute(named(DUCKDB[name], outputs[1]))
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("name", DUCKDB)
def test_duckdb_says_the_same(name, outputs, monkeypatch):
    """Row by row as polars."""
    expected = ask_polars(name, outputs, monkeypatch)

    found = ask_duckdb(name, outputs)

    for row in expected:
        if isinstance(row.get("claims"), list):
            row["claims"] = "\n".join(row["claims"])
    assert [{key: row[key] for key in expected[0]} for row in found] == expected


OLDER_LACKS = {
    "answers": ["n_repeats", "referee_grade", "referee_grade_outcome"],
    "verdicts": ["duplicate_of"],
}


@pytest.fixture(scope="module")
def mixed(outputs, tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """The same output root with the day before and the day after as an older version wrote them, without newer columns."""
    folder = tmp_path_factory.mktemp("mixed")
    shutil.copytree(outputs[0] / "out", folder / "out")
    for name, lacks in OLDER_LACKS.items():
        for file in (folder / "out" / "tables" / name).rglob("*.parquet"):
            for date in ("2026-11-27", "2026-11-29"):
                older = Path(str(file).replace(f"date={jobs_fixture.DATE}", f"date={date}"))
                older.parent.mkdir(exist_ok=True)
                pl.read_parquet(file, hive_partitioning=False).drop(lacks).write_parquet(older)
    return folder, outputs[1]


@pytest.mark.parametrize("name", POLARS)
def test_days_of_an_older_version_are_read_beside_newer_ones(name, outputs, mixed, monkeypatch):
    """They have their rows, and the day that is whole has the same as without them."""
    alone = ask_polars(name, outputs, monkeypatch)

    found = ask_polars(name, mixed, monkeypatch)

    days = {str(row["date"]): [r for r in found if r["date"] == row["date"]] for row in found}
    assert list(days[jobs_fixture.DATE]) == [row for row in alone if row in found]
    assert set(days) == {"2026-11-27", jobs_fixture.DATE, "2026-11-29"}


@pytest.mark.parametrize("name", DUCKDB)
def test_duckdb_reads_them_too(name, mixed, monkeypatch):
    """As many rows of the same days; how equal rows of two days are ordered is left open."""
    expected = ask_polars(name, mixed, monkeypatch)

    found = ask_duckdb(name, mixed)

    assert len(found) == len(expected)
    assert {row["date"] for row in found} == {row["date"] for row in expected}


def test_the_reference_shows_what_is_tested():
    """Copied from there, a query is one of these."""
    shown = (ROOT / "jobs" / "TABLES.md").read_text(encoding="utf-8")

    assert [text for text in (*POLARS.values(), *DUCKDB.values()) if text.strip() not in shown] == []
