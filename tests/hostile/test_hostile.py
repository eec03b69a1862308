"""The whole corpus of hostile logs through the real job on stub models: every row accounted for, as written by hand."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import case
import jobs_fixture
import make_cases
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
import stub_models
import text_cases
import type_cases

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.errors import InputError
from claimscore.jobs.nightly import DayPlan, DayReport, execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.read import read_shard
from claimscore.jobs.records import Shard
from claimscore.jobs.store import Store

HERE = Path(__file__).parent


CASES = {one.name: one for one in make_cases.all_cases()}


class Run:
    """One day run over a folder of files, and what became of each row of each file."""

    def __init__(self, folder: Path, files: dict[str, Any]) -> None:
        config = jobs_fixture.make_config(folder, "read.shard_rows=100000", "store.max_unscored_fraction=1.0")
        store = Store(config.store.out, config.store)
        self.out = Path(config.store.out)
        judge = stub_models.StubJudge()
        models = Models(decomposer=stub_models.StubLlm(), checker=judge, judge=judge)
        self.plan: DayPlan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
        self.report: DayReport = run_day(config, store, self.plan, execute_here(config, store, models))
        self.by_name = {one.name: f"/{file}" for file, one in files.items()}
        self._read = {
            Path(task.shard.file).name: {
                name: store.read(task.file(name)) for name in ("answers", "verdicts", "quarantine")
            }
            for task in self.plan.tasks
            if store.manifest(task.file("answers"))
        }

    def tables(self, name: str) -> dict[str, pa.Table]:
        """The tables of a case's file; none of a file without rows, or that failed."""
        return self._read.get(self.by_name[name][1:], {})

    def outcomes(self, name: str) -> tuple[str, ...]:
        """What became of each row of a case, in the order of the file."""
        tables = self.tables(name)
        if not tables:
            return ()
        verdicts: dict[str, list[dict[str, Any]]] = {}
        for verdict in tables["verdicts"].to_pylist():
            verdicts.setdefault(verdict["request_id"], []).append(verdict)
        at = {q["row"]: f"!{q['reason']}" for q in tables["quarantine"].to_pylist()}
        told = (_told(a, verdicts.get(a["request_id"], [])) for a in tables["answers"].to_pylist())
        n_rows = len(at) + tables["answers"].num_rows
        out = tuple(at.get(row) or next(told) for row in range(n_rows))
        assert next(told, None) is None
        return out

    def failures(self, name: str) -> list[str]:
        """The lines that name a case's file."""
        return [line for line in self.report.failures if f"{self.by_name[name]}:" in line]


def _told(answer: dict[str, Any], verdicts: list[dict[str, Any]]) -> str:
    """One answer in the words of the case tables."""
    told = (" ".join(filter(None, (v["verdict"], v["reason"]))) for v in verdicts)
    runs = [(word, len(list(run))) for word, run in itertools.groupby(told)]
    words = [f"{n} x {word}" if n > 3 else ", ".join([word] * n) for word, n in runs]
    if answer["n_fabricated_citations"]:
        words.append(f"{answer['n_fabricated_citations']} fabricated")
    if answer["state"] == "scored":
        return f"scored: {', '.join(words)}"
    return ", ".join([answer["state"], *words])


def _folder(tmp: Path) -> Path:
    return tmp / "logs" / jobs_fixture.DATE


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Run:
    """Every case as one file of one day."""
    tmp = tmp_path_factory.mktemp("hostile")
    return Run(tmp, make_cases.write_cases(_folder(tmp)))


@pytest.mark.parametrize("name", CASES)
def test_every_row_has_the_outcome_written_for_it(corpus, name):
    """Answer state, verdicts with reasons, or quarantine with its reason; a file that is refused says why in one line."""
    one = CASES[name]

    assert one.rows == corpus.outcomes(name)
    failures = corpus.failures(name)
    assert len(failures) == bool(one.error), failures
    assert not one.error or re.search(re.escape(one.error), failures[0])
    assert all(line.isprintable() for line in failures)


def test_rows_in_are_answers_and_quarantined(corpus):
    """Over the whole corpus and file by file; every request id comes out once."""
    n_in = {Path(task.shard.file).name: task.shard.n_rows for task in corpus.plan.tasks}
    out = {file: t["answers"].num_rows + t["quarantine"].num_rows for file, t in corpus._read.items()}
    ids = [i for t in corpus._read.values() for i in t["answers"].column("request_id").to_pylist()]

    assert {file: n_in[file] for file in out} == out
    assert (
        len(ids)
        == len(set(ids))
        == sum(v for k, v in corpus.report.counts["answers"].items() if k.startswith("state_"))
    )


def test_no_id_of_a_log_names_a_file(corpus):
    """Paths in request and chunk ids lead nowhere: every file of the output has a name of ours, under the output."""
    ours = re.compile(r"(?:tables|state)/[\w./=-]+\.(?:parquet|json)")
    names = [str(path.relative_to(corpus.out)) for path in corpus.out.rglob("*") if path.is_file()]

    assert len(names) > 1_000
    assert [name for name in names if not ours.fullmatch(name) or ".." in name or "etc" in name] == []


def test_the_corpus_is_as_large_as_is_promised():
    """At least 150 cases beside the grid of types."""
    assert len(CASES) >= 150


def test_no_neighbour_is_changed(corpus, tmp_path):
    """The plain row beside each hostile one has every column of its verdicts as it has alone."""
    _folder(tmp_path).mkdir(parents=True)
    alone = case.Case("alone", case.writer(pa.Table.from_pylist([case.row("alone")], case.SCHEMA)))
    alone.write(_folder(tmp_path) / "alone.parquet")
    expected = _verdicts(Run(tmp_path, {"alone.parquet": alone}).tables("alone"), "alone")
    assert len(expected) == 2

    for one in text_cases.cases():
        for request_id in (f"good-{one.name}", f"after-{one.name}"):
            assert expected == _verdicts(corpus.tables(one.name), request_id), request_id
    for name, one in CASES.items():
        if name.startswith("json ") and len(one.rows) == 3:
            for request_id in (f"{name}-0", f"{name}-2"):
                assert expected == _verdicts(corpus.tables(name), request_id), request_id


def _verdicts(tables: dict[str, pa.Table], request_id: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in verdict.items() if key != "request_id"}
        for verdict in tables["verdicts"].to_pylist()
        if verdict["request_id"] == request_id
    ]


def test_all_hostile_texts_in_one_shard_change_nothing(corpus, tmp_path):
    """Every text case in one row group: each row's answer and verdicts are those it has in a file of its own."""
    names, tables = [], []
    for one in text_cases.cases():
        one.write(tmp_path / "one.parquet")
        table = pq.read_table(tmp_path / "one.parquet")
        if table.nbytes < 60_000:  # the large ones take seconds, and are tried above
            names.append(one.name)
            tables.append(table)
    assert len(names) > 100
    _folder(tmp_path).mkdir(parents=True)
    together = case.Case("together", case.writer(pa.concat_tables(tables[::-1])))
    together.write(_folder(tmp_path) / "all.parquet")
    run = Run(tmp_path, {"all.parquet": together})

    apart = [row for name in names[::-1] for row in _answers(corpus.tables(name))]
    assert apart == _answers(run.tables("together"))
    assert [v for name in names[::-1] for v in corpus.tables(name)["verdicts"].to_pylist()] == run.tables(
        "together"
    )["verdicts"].to_pylist()


def _answers(tables: dict[str, pa.Table]) -> list[dict[str, Any]]:
    # Which answers are sampled is a matter of the shard: the share of its riskiest.
    return tables["answers"].drop_columns(["high_risk_reasons", "n_samples"]).to_pylist()


@pytest.mark.parametrize("column", type_cases.FITS)
def test_every_type_in_every_column(tmp_path, column):
    """What a type does in a column is a line of a table: it is read, its rows are quarantined for a reason, or it is refused."""
    found, expected = {}, {}
    for one, letter in type_cases.grid():
        if not one.name.startswith(f"{column} "):
            continue
        expected[one.name] = letter
        one.write(tmp_path / "one.parquet")
        shard = Shard("ab", str(tmp_path / "one.parquet"), (0,), 0, 2)
        try:
            log, quarantine = read_shard(pyarrow.fs.LocalFileSystem(), shard, ReadConfig(logs=""), {})
        except InputError as err:
            found[one.name] = "F" if f"column '{column}' is" in str(err) else str(err)
            continue
        reasons = set(quarantine["reason"].to_pylist())
        assert (log.num_rows, quarantine.num_rows) in ((2, 0), (0, 2))
        letters = [k for k, known in type_cases.REASONS.items() if reasons and reasons <= known]
        found[one.name] = "".join(letters) if reasons else "."

    assert expected == found
