"""Claims that an answer repeats, through one whole job: counted once in every rate, each with its own row and verdict."""

from __future__ import annotations

from pathlib import Path

import jobs_fixture
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models

from claimscore.jobs import label_run, pipeline, report_files, reports, show
from claimscore.jobs import report as night_report
from claimscore.jobs.config import Config
from claimscore.jobs.nightly import DayReport, execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store

DATE = jobs_fixture.DATE
REPEATING = (
    "Premium members pay no fee [1]. Guests pay 25 euro in all lounges [2]. Premium members pay no fee [1]. "
    "Premium members also pay no fee [5]."
)
PLAIN = "Premium members pay no fee [1]. Guests pay 25 euro in all lounges [2]."


def run(config: Config, checker: stub_models.StubJudge | None = None) -> DayReport:
    """Run the day of the fixture in this process."""
    store = Store(config.store.out, config.store)
    plan = plan_day(config, store, Weights.of(config), DATE)
    judge = stub_models.StubJudge()
    models = Models(decomposer=stub_models.StubLlm(), checker=checker or judge, judge=judge)
    return run_day(config, store, plan, execute_here(config, store, models))


def rows(config: Config, name: str, series: str | None) -> dict[str, list[dict]]:
    """request_id -> the rows of a table, in order."""
    store = Store(config.store.out, config.store)
    out: dict[str, list[dict]] = {}
    for file in store.files(name, date=DATE, series=series):
        for row in store.read(file).to_pylist():
            out.setdefault(row["request_id"], []).append(row)
    return out


@pytest.fixture
def job(tmp_path: Path) -> Config:
    """Two answers that say the same, one of them over and over."""
    texts = [REPEATING, PLAIN]
    logged = [
        {**jobs_fixture.log_rows(1)[0], "request_id": f"r{k}", "answer": t} for k, t in enumerate(texts)
    ]
    jobs_fixture.write_log(tmp_path, logged)
    return jobs_fixture.make_config(tmp_path, "decompose.duplicates_above=0.8")


def test_a_repeat_keeps_its_row_and_counts_once(job: Config):
    """The repeating answer has the rates of the plain one, but for the citation that only a repeat makes up."""
    report = run(job)

    verdicts = rows(job, "verdicts", report.series)
    (repeating,), (plain,) = (rows(job, "answers", report.series)[name] for name in ("r0", "r1"))
    assert [v["duplicate_of"] for v in verdicts["r0"]] == [None, None, 0, 0]
    assert [v["verdict"] for v in verdicts["r0"]] == ["supported", "unsupported", "supported", "supported"]
    names = ("n_claims", "n_scored", "n_supported", "n_unsupported", "groundedness")
    assert [repeating[name] for name in names] == [plain[name] for name in names] == [2, 2, 1, 1, 0.5]
    assert (repeating["n_repeats"], plain["n_repeats"]) == (2, 0)
    assert len(verdicts["r0"]) == repeating["n_claims"] + repeating["n_repeats"]
    assert (repeating["n_citation_ok"], plain["n_citation_ok"]) == (0, 1)
    assert report.counts["claims"]["n_duplicates"] == 2


def test_a_run_and_the_screen_of_an_answer_say_it(job: Config, capsys: pytest.CaptureFixture[str]):
    """The run how many, the answer which of which; a day without repeats says nothing."""
    report = run(job)
    document = {
        **{
            name: getattr(report, name)
            for name in ("date", "series", "n_rows", "n_claims", "n_made", "n_shards", "counts")
        },
        "wall_s": 1.0,
        "metrics": [],
        "out": job.store.out,
        "failures": [],
        "warnings": [],
    }

    reports.print_run(document)
    show.print_answer(show.find_answer(job.store.out, "r0", report.series))

    said = capsys.readouterr().out
    assert "2 of the claims repeat what their answer said before" in said
    assert "claims, repeats too" in said
    assert said.count("repeats claim 1 of the answer, counted once") == 2
    reports.print_run(document | {"counts": report.counts | {"claims": {"n_duplicates": 0}}})
    assert "repeat" not in (said := capsys.readouterr().out)
    assert "say again" not in said


def test_without_the_setting_every_claim_counts(job: Config, tmp_path: Path):
    """And a change of the setting makes the claims again, nothing of a threshold does."""
    first = run(job)
    off = jobs_fixture.make_config(tmp_path, "decompose.duplicates=none")

    report = run(off)

    (answer,) = rows(off, "answers", report.series)["r0"]
    assert (answer["n_claims"], answer["n_repeats"], answer["groundedness"]) == (4, 0, 0.75)
    assert first.made["claims"] == report.made["claims"] == 1


def test_a_threshold_asks_nobody_which_claims_repeat(job: Config, tmp_path: Path):
    """The verdicts are made again without a model, and the classes stay."""
    before = run(job)
    config = jobs_fixture.make_config(tmp_path, "decompose.duplicates_above=0.8", "verdicts.entailment=0.85")
    store = Store(config.store.out, config.store)
    plan = plan_day(config, store, Weights.of(config), DATE)

    report = run_day(config, store, plan, execute_here(config, store, Models()))

    assert report.made.keys() == {"verdicts", "answers", "metrics"}
    assert [v["duplicate_of"] for v in rows(config, "verdicts", before.series)["r0"]] == [None, None, 0, 0]
    assert rows(config, "answers", before.series)["r0"][0]["n_claims"] == 2


def test_the_report_counts_a_repeat_once(job: Config):
    """Volume, verdicts and flagged claims; the answer is shown whole, and says what repeats what."""
    report = run(job)

    store = Store(job.store.out, job.store)
    night = report_files.read_night(store, DATE, report.series, is_current=True)
    document = night_report.collect(night)

    assert night.verdicts.num_rows == 6
    assert (document["volume"]["n_claims"], document["volume"]["n_repeats"]) == (4, 2)
    assert document["volume"]["verdicts"]["supported"] == 2
    worst = {answer["request_id"]: answer for answer in document["worst"]}["r0"]
    assert (worst["n_claims"], worst["n_flagged"]) == (2, 2)
    assert [claim["repeats"] for claim in worst["claims"]] == [None, None, 1, 1]
    assert sorted(row["claim"] for row in document["flagged"] if row["request_id"] == "r0") == [
        "Guests pay 25 euro in all lounges.",
        "Premium members also pay no fee.",
    ]


def test_nobody_labels_a_repeat(job: Config, tmp_path: Path):
    """Each claim is on the sheet once, with the verdict that counts, and stands for what is counted."""
    report = run(job)

    drawn = label_run.make_sheet(
        job, 100, str(tmp_path / "s.csv"), date=None, series=report.series, seed=1, force=False
    )

    assert (drawn["n_claims"], drawn["n_drawn"], drawn["n_unscored"]) == (4, 4, 0)
    sheet = pq.read_table(tmp_path / "s.claims.parquet")
    assert sum(sheet.column("weight").to_pylist()) == 4
    assert sorted(
        zip(sheet.column("request_id").to_pylist(), sheet.column("claim_index").to_pylist(), strict=True)
    ) == [("r0", 1), ("r0", 3), ("r1", 0), ("r1", 1)]


class Unknowing(stub_models.StubJudge):
    """Knows no word `fee`: its tokenizer gives the unknown token for it."""

    unk_id = 7

    def encode(self, texts: pa.Array) -> pa.Table:
        """As the stub, but for that word."""
        fee = super().encode(pa.array(["fee"])).column("ids")[0].as_py()[0]
        table = super().encode(texts)
        ids = [[7 if token == fee else token for token in row] for row in table.column("ids").to_pylist()]
        return table.set_column(0, "ids", pa.array(ids, pa.list_(pa.int32())))


def test_a_word_that_the_checker_does_not_know_repeats_nothing():
    """One unknown word entails any other: such a pair has no probability, wherever the token stands."""
    texts = [pa.array(column) for column in (["A fee.", "A b.", ""], ["A b.", "A b.", "The fee"])]

    known = pipeline.entailment(Unknowing(), *texts, 512)
    strict = pipeline.entailment(Unknowing(), *texts, 512, unk_id=7)

    assert not np.isnan(known).any()
    assert np.isnan(strict).tolist() == [True, False, True]


def test_the_job_asks_for_no_unknown_word(job: Config):
    """Repeats in the same words need no model; the one with `also` cannot be told."""
    report = run(job, Unknowing())

    assert [v["duplicate_of"] for v in rows(job, "verdicts", report.series)["r0"]] == [None, None, 0, None]
