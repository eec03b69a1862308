"""One whole job on stub models: accounting, freshness, resume, and what may touch a model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jobs_fixture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models
from pyarrow.fs import LocalFileSystem

from claimscore.jobs import estimate, operate, progress, shard_run
from claimscore.jobs.config import Config, ReadConfig, fingerprint
from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import InputError, ModelError
from claimscore.jobs.logfile import LogFile
from claimscore.jobs.nightly import DayReport, execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import TABLES, Weights, table_parts
from claimscore.jobs.shard_run import run_shard
from claimscore.jobs.store import Store

DATE = jobs_fixture.DATE


def stubs() -> Models:
    """Fresh stub models of every role."""
    judge = stub_models.StubJudge()
    return Models(decomposer=stub_models.StubLlm(), checker=judge, judge=judge, generator=None)


def run(config: Config, models: Models | None = None) -> DayReport:
    """Run the day of the fixture in this process."""
    store = Store(config.store.out, config.store)
    plan = plan_day(config, store, Weights.of(config), DATE)
    return run_day(config, store, plan, execute_here(config, store, models or stubs()))


def table(config: Config, name: str, series: str | None) -> pa.Table:
    """One table of the day, all shards."""
    store = Store(config.store.out, config.store)
    return pa.concat_tables([store.read(f) for f in store.files(name, date=DATE, series=series)])


@pytest.fixture
def job(tmp_path: Path) -> Config:
    """A log of six answers in two shards, and its config."""
    jobs_fixture.write_log(tmp_path)
    return jobs_fixture.make_config(tmp_path)


def test_every_row_comes_out_once(job: Config):
    """Rows in are answers out plus quarantined, each request once."""
    rows = [*jobs_fixture.log_rows(), {**jobs_fixture.log_rows(1)[0], "request_id": None}]
    jobs_fixture.write_log(Path(job.path).parent, rows)

    report = run(job)

    ids = table(job, "answers", report.series).column("request_id").to_pylist()
    assert sorted(ids) == [f"r{k}" for k in range(6)]
    assert table(job, "quarantine", None).num_rows == 1


def test_the_verdicts_are_those_of_the_words(job: Config):
    """Supported, vetoed, fabricated, miscited and refused answers come out as such."""
    report = run(job)

    verdicts = {
        (v["request_id"], v["claim_index"]): v for v in table(job, "verdicts", report.series).to_pylist()
    }
    assert {key: (v["verdict"], v["decided_by"], v["citation_state"]) for key, v in verdicts.items()} == {
        ("r0", 0): ("supported", "nli_cited", "ok"),
        ("r1", 0): ("unsupported", "number_veto", "unsupported"),
        ("r2", 0): ("supported", "nli_cited", "ok"),
        ("r2", 1): ("unsupported", "nli", "fabricated"),
        ("r5", 0): ("supported", "nli", "miscited"),
    }


def test_a_refusal_in_free_words_is_no_claim(job: Config, tmp_path: Path):
    """Under a refusal status, a denial is the refusal itself; a plain statement or a fee beside it is a claim."""
    answer = "Sorry, the handbook says nothing about this. The hotel has a pool. The fee is 900 euro."
    jobs_fixture.write_log(tmp_path, [{**jobs_fixture.log_rows(1)[0], "answer": answer, "status": "Refusal"}])

    report = run(job)

    claims = [v["claim"] for v in table(job, "verdicts", report.series).to_pylist()]
    assert claims == ["The hotel has a pool.", "The fee is 900 euro."]


def test_answers_carry_state_action_and_reason(job: Config):
    """States and actions follow the policy's order of rules."""
    report = run(job)

    answers = {
        a["request_id"]: (a["state"], a["action"], a["action_reason"])
        for a in table(job, "answers", report.series).to_pylist()
    }
    assert answers == {
        "r0": ("scored", "deliver", "grounded"),
        "r1": ("scored", "refuse", "low_groundedness"),
        "r2": ("scored", "refuse", "fabricated_citation"),
        "r3": ("refusal", "deliver", "refusal"),
        "r4": ("empty_answer", "refuse", "empty_answer"),
        "r5": ("scored", "deliver", "grounded"),
    }


def test_a_second_run_makes_nothing(job: Config):
    """A run over fresh tables touches no model and writes no file."""
    run(job)
    untouchable = stub_models.UntouchableModel()

    report = run(job, Models(untouchable, untouchable, untouchable, untouchable))

    assert (report.made, report.n_made) == ({}, 0)


def test_a_threshold_change_touches_no_model(job: Config):
    """A threshold re-makes verdicts, answers and metrics, and no model is loaded for it."""
    run(job)
    changed = jobs_fixture.make_config(Path(job.path).parent, "verdicts.entailment=0.85")
    untouchable = stub_models.UntouchableModel()

    report = run(changed, Models(untouchable, untouchable, untouchable, untouchable))

    assert report.made == {"verdicts": 2, "answers": 2, "metrics": 1}


@pytest.mark.parametrize("of_card", [0.8, 0.7])
def test_a_threshold_is_the_same_whoever_gives_it(job: Config, of_card: float):
    """Moved from the card to `[verdicts]`, or beside another card's, it decides as before: nothing is stale."""
    run(job)
    folder = Path(job.path).parent
    (folder / "judge.toml").write_text(f'name = "stub"\nmodel = "./model"\nentailment = {of_card}\n')
    same = jobs_fixture.make_config(folder, "verdicts.entailment=0.8", "verdicts.contradiction=0.9")
    untouchable = stub_models.UntouchableModel()

    assert run(same, Models(untouchable, untouchable, untouchable, untouchable)).made == {}


def test_verdicts_of_before_stay_fresh_where_the_card_alone_gives_thresholds(job: Config):
    """Their fingerprints were taken of the section as written and of the card: what is equal must be equal still."""
    written = fingerprint(job.verdicts)
    card = fingerprint([job.card.entailment, job.card.contradiction, job.card.combiner])

    parts = table_parts(job, Weights.of(job), "s", {}, "none")["verdicts"]

    assert (parts["[verdicts]"], parts["thresholds of the judge card"]) == (written, card)


def test_a_judge_change_reuses_the_claims(job: Config, tmp_path: Path):
    """Another judge makes a series of its own without the LLM or the checker; the old one stays as it is."""
    first = run(job)
    before = table(job, "verdicts", first.series)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    (tmp_path / "other" / "model.safetensors").write_bytes(b"other")
    card = tmp_path / "other.toml"
    card.write_text('name = "other"\nmodel = "./other"\nentailment = 0.5\n')
    other = jobs_fixture.make_config(tmp_path, judge=str(card))
    untouchable = stub_models.UntouchableModel()

    report = run(other, Models(untouchable, untouchable, stub_models.StubJudge(), untouchable))

    assert report.made == {"scores": 2, "sample_scores": 2, "verdicts": 2, "answers": 2, "metrics": 1}
    assert report.series != first.series
    assert before.equals(table(job, "verdicts", first.series))


def test_without_its_model_a_stale_table_is_an_error(job: Config):
    """A plan that loaded no model for a stale table fails by name instead of defaulting."""
    with pytest.raises(InputError, match="decomposer: a table needs it"):
        run(job, Models())


@pytest.mark.parametrize("table_name", TABLES)
def test_a_run_killed_before_a_table_ends_equal(job: Config, tmp_path: Path, table_name: str, monkeypatch):
    """Killed before any table is written, the rerun makes only what is left, and the output is equal."""
    whole = jobs_fixture.make_config(tmp_path, f'store.out="{tmp_path}/whole"')
    expected = run(whole)
    write = Store.write

    def killed(self, file, *args, **kwargs):
        name = "sample_scores" if file.shard_id.endswith("-samples") else file.table
        if name == table_name:
            raise KeyboardInterrupt
        return write(self, file, *args, **kwargs)

    monkeypatch.setattr(Store, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        run(job)
    monkeypatch.setattr(Store, "write", write)

    report = run(job)

    n_first_shard = TABLES.index(table_name)
    assert sum(report.made.get(name, 0) for name in TABLES) == 2 * len(TABLES) - n_first_shard
    for name in ("quarantine", "claims", "scores", "verdicts", "answers", "metrics"):
        series = None if name in {"quarantine", "claims"} else report.series
        assert table(job, name, series).equals(table(whole, name, expected.series if series else None)), name


@pytest.mark.parametrize("first", ["a", "z"])
def test_samples_of_the_log_serve_their_own_answer(job: Config, tmp_path: Path, first: str):
    """An answer without samples gets none from an equal one in another file, in whatever order they come."""
    with_samples, without = (
        jobs_fixture.log_rows(2)[1],
        {**jobs_fixture.log_rows(2)[1], "samples": None, "request_id": "bare"},
    )
    jobs_fixture.write_log(tmp_path, [with_samples])
    jobs_fixture.write_log(tmp_path, [without], name=f"{first}.parquet")

    report = run(job)

    counts = {row["request_id"]: row["n_samples"] for row in table(job, "answers", report.series).to_pylist()}
    assert counts == {"r1": 2, "bare": 0}


def test_scores_of_other_claims_never_pass_for_fresh(job: Config, tmp_path: Path):
    """Claims lost and made again otherwise, and a kill before their scores: the rerun judges the new claims."""
    sentence = "The refund window is 60 days, and dogs may swim in the big pool."
    true, false = "The refund window is 60 days.", "Dogs may swim in the big pool."
    jobs_fixture.write_log(tmp_path, [{**jobs_fixture.log_rows(1)[0], "answer": sentence}])
    judge = stub_models.StubJudge()

    def models(*claims: str, judge=judge) -> Models:
        return Models(
            stub_models.StubLlm({sentence: json.dumps({"claims": claims})}), stub_models.StubJudge(), judge
        )

    class Killed(stub_models.StubJudge):
        def encode(self, texts):
            raise KeyboardInterrupt

    run(job, models(true, false))
    store = Store(job.store.out, job.store)
    Path(store.path(store.files("claims", date=DATE)[0])).unlink()
    with pytest.raises(KeyboardInterrupt):
        run(job, models(false, true, judge=Killed()))

    report = run(job, models(false, true))

    verdicts = {row["claim"]: row["verdict"] for row in table(job, "verdicts", report.series).to_pylist()}
    assert verdicts == {true: "supported", false: "unsupported"}


def test_an_emptied_day_leaves_nothing(job: Config, tmp_path: Path):
    """A day whose log has no rows any more has no answers and no metrics."""
    series = run(job).series
    path = tmp_path / "logs" / DATE / "part-0.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)

    report = run(job)

    store = Store(job.store.out, job.store)
    assert [store.files(name, date=DATE, series=series) for name in ("answers", "verdicts", "metrics")] == [
        [],
        [],
        [],
    ]
    assert len(report.warnings) == 2


def test_a_moved_log_is_fresh(job: Config, tmp_path: Path):
    """Another folder with the same files, a repeat among them, makes nothing stale."""
    jobs_fixture.write_log(tmp_path, jobs_fixture.log_rows(1), name="part-1.parquet")
    run(job)
    (tmp_path / "logs").rename(tmp_path / "moved")

    report = run(jobs_fixture.make_config(tmp_path, f'read.logs="{tmp_path}/moved/{{date}}/*.parquet"'))

    assert report.made == {}


def test_lost_claims_make_what_follows_stale(job: Config):
    """Claims that must be made again are other claims, perhaps: their scores do not pass for fresh."""
    series = run(job).series
    store = Store(job.store.out, job.store)
    lost = store.files("claims", date=DATE)[0]
    Path(store.path(lost)).unlink()

    report = run(job)

    assert report.made == {"claims": 1, "scores": 1, "sample_scores": 1, "verdicts": 1, "answers": 1}
    assert table(job, "answers", series).num_rows == 6


def test_equal_questions_share_their_samples(job: Config, tmp_path: Path):
    """Two requests of equal content are drawn for once, and each is compared with k samples, not 2k."""
    rows = [{**row, "samples": None} for row in jobs_fixture.log_rows(2)]
    jobs_fixture.write_log(tmp_path, rows)
    config = jobs_fixture.make_config(tmp_path, 'samples.model="./llm"', "triage.random_share=1.0")
    judge, generator = stub_models.StubJudge(), stub_models.StubLlm()

    report = run(config, Models(stub_models.StubLlm(), judge, judge, generator))

    assert generator.n_prompts == 1
    assert {row["n_samples"] for row in table(config, "answers", report.series).to_pylist()} == {3}


def test_a_replaced_log_leaves_no_ghosts(job: Config, tmp_path: Path):
    """A corrected log takes the place of the old one: its shards' tables are removed and said so."""
    run(job)
    jobs_fixture.write_log(tmp_path, jobs_fixture.log_rows(2))

    report = run(job)

    assert table(job, "answers", report.series).num_rows == 2
    assert len(report.warnings) == 2


def test_a_bad_file_leaves_the_rest_unharmed(job: Config, tmp_path: Path):
    """A file that is no Parquet, and one without a needed column, are reported; the good one is scored."""
    (tmp_path / "logs" / DATE / "junk.parquet").write_bytes(b"not parquet at all")
    jobs_fixture.write_log(tmp_path, [{"request_id": "x", "answer": "a"}], name="lacks.parquet")

    report = run(job)

    assert table(job, "answers", report.series).num_rows == 6
    assert len(report.failures) == 2


def test_a_corrected_file_beside_a_bad_one_is_not_counted_twice(job: Config, tmp_path: Path):
    """Its old shards go although something failed; those of the file that cannot be read stay."""
    jobs_fixture.write_log(
        tmp_path,
        [row | {"request_id": f"b{k}"} for k, row in enumerate(jobs_fixture.log_rows(2))],
        name="b.parquet",
    )
    run(job)
    jobs_fixture.write_log(tmp_path, jobs_fixture.log_rows(3))
    (tmp_path / "logs" / DATE / "b.parquet").write_bytes(b"not parquet at all")

    report = run(job)

    ids = table(job, "answers", report.series).column("request_id").to_pylist()
    assert sorted(ids) == ["b0", "b1", "r0", "r1", "r2"]
    assert (len(report.failures), len(report.warnings)) == (1, 2)  # two shards of the old file


def test_a_log_without_rows_is_no_quiet_night(job: Config, tmp_path: Path):
    """What writes the log may have broken: the day is a failure by name, which ends the run with code 3."""
    jobs_fixture.write_log(tmp_path, [])

    report = run(job)

    assert report.failures == [f"{DATE}: the log has no rows, expected one at least; check what writes it"]
    assert report.n_rows == 0


@pytest.mark.parametrize("gone", ["quarantine", "claims"])
def test_a_corrected_file_is_not_counted_twice_once_others_removed_what_is_shared(
    job: Config, tmp_path: Path, gone: str
):
    """Another series, or a run that was killed at it, has dropped the old shards' files of a table without series."""
    jobs_fixture.write_log(tmp_path, jobs_fixture.log_rows(2), name="b.parquet")
    report = run(job)
    jobs_fixture.write_log(
        tmp_path, [row | {"request_id": f"x{row['request_id']}"} for row in jobs_fixture.log_rows(3)]
    )
    (tmp_path / "logs" / DATE / "b.parquet").write_bytes(b"not parquet at all")
    store = Store(job.store.out, job.store, run_id="other")
    store.remove_orphans(gone, DATE, None, ())

    report = run(job)

    ids = table(job, "answers", report.series).column("request_id").to_pylist()
    assert len(ids) == len(set(ids))
    assert {"xr0", "xr1", "xr2"} <= set(ids)
    assert "r2" not in ids


def mapping(folder: Path, columns: str) -> Config:
    """The deployment with columns of its own."""
    path = jobs_fixture.write_config(folder)
    path.write_text(
        path.read_text().replace("shard_rows = 3\n", f"shard_rows = 3\ncolumns = {{ {columns} }}\n")
    )
    return load_config(path)


def test_pairs_of_variants_have_a_count_of_their_own(job: Config, tmp_path: Path):
    """What the judge is asked beside the rows of the scores: claims with another value, and in the premise's writing."""
    chunk = {"id": "c1", "text": "The refund window is 60 days and the trial 14 days.", "score": 1.0}
    jobs_fixture.write_log(tmp_path, [row | {"chunks": [chunk]} for row in jobs_fixture.log_rows(3)])
    models = Models(stub_models.StubLlm(), stub_models.StubJudge(), judge := stub_models.StubJudge())

    report = run(job, models)

    scores, samples = (report.counts[name] for name in ("scores", "sample_scores"))
    assert scores["n_variant_pairs"] == report.n_made_of["n_variant_pairs"] > 0
    assert judge.n_pairs == scores["n_pairs"] + scores["n_variant_pairs"] + samples["n_pairs"]
    assert scores["n_variant_tokens"] > 5 * scores["n_variant_pairs"]


def test_the_time_that_models_load_is_in_no_rate(job: Config, monkeypatch: pytest.MonkeyPatch):
    """A run of ten rows would else tell the next plan that a pair takes seconds; it is told beside the work."""
    clock = {"now": 0.0, "loading": 0.0}

    class Slow(stub_models.StubJudge):
        def probabilities(self, premise_ids, claim_ids):
            if not self.n_calls:
                clock["now"], clock["loading"] = clock["now"] + 90.0, 90.0
            clock["now"] += 1.0
            return super().probabilities(premise_ids, claim_ids)

    monkeypatch.setattr(shard_run.time, "perf_counter", lambda: clock["now"])
    store = Store(job.store.out, job.store)
    plan = plan_day(job, store, Weights.of(job), DATE)
    models = Models(stub_models.StubLlm(), stub_models.StubJudge(), judge := Slow())

    def execute(tasks, fs):
        for task in tasks:
            yield task, run_shard(task, job, store, models, fs, loading=lambda: clock["loading"])

    report = run_day(job, store, plan, execute)
    estimate.remember(store, dataclasses.asdict(report), 1)
    (Path(job.store.out) / "state" / "manifests").rename(Path(job.store.out) / "gone")
    known = dataclasses.replace(
        job.cluster, assumed_claims_per_s=1e9
    )  # no second of the stub LLM was measured
    cost = estimate.plan_days(dataclasses.replace(job, cluster=known), [DATE])["days"][0]["estimate"]

    assert report.seconds["scores"] + report.seconds["sample_scores"] == judge.n_calls
    assert (report.loading_s, cost["loading_s"]) == (90.0, 90.0)
    assert cost["n_variant_pairs"] == report.n_made_of["n_variant_pairs"]
    assert cost["model_s"] == pytest.approx(report.seconds["scores"], abs=0.2)


def test_a_run_shows_that_models_load(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Before anything is made there is a line every quarter of a minute, also where no terminal is."""
    now = {"s": 0.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: now["s"])
    with progress.RunProgress(DATE, 3) as shown:
        for second in range(0, 80, 2):
            now["s"] = float(second)
            shown.show({"shards": 0, "loading judge_open": 1})
        now["s"] += 1
        shown.show({"shards": 1, "claims": 12})

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{DATE}: 0/3 shards, models load: judge, 0 s"
    assert [line.split(", ")[-1] for line in lines] == ["0 s", "16 s", "32 s", "48 s", "64 s", "79 s"]
    assert lines[-1] == f"{DATE}: 1/3 shards, tables are made, 79 s"


@pytest.mark.parametrize(
    ("override", "sees_gpu", "rate", "source"),
    [
        ("judge.dtype=auto", False, 30, "as the demo's models on a CPU of 2 cores; larger ones are slower"),
        (
            "judge.dtype=bfloat16",
            False,
            75,
            "as the demo's models on a CPU of 2 cores; larger ones are slower",
        ),
        ("judge.dtype=auto", True, 1_000, "a guess for a GPU"),
        ("judge.device=cpu", True, 30, "as the demo's models on a CPU of 2 cores; larger ones are slower"),
        ("judge.device=cuda", False, 1_000, "a guess for a GPU"),
        ("cluster.judge_gpus=0.5", False, 1_000, "a guess for a GPU"),
        (
            "cluster.address=ray:1",
            True,
            30,
            "as the demo's models on a CPU of 2 cores; larger ones are slower",
        ),
        ("cluster.assumed_pairs_per_s=7", False, 7, "[cluster] assumed_pairs_per_s"),
    ],
)
def test_a_plan_reckons_with_the_device_of_the_models(
    job: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override, sees_gpu, rate, source
):
    """Minutes on a CPU are not told as the seconds of a GPU; and the plan says which rate it took."""
    monkeypatch.setattr(estimate, "_sees_gpu", lambda: sees_gpu)
    claims_per_s = "cluster.assumed_claims_per_s=1e9"

    config = jobs_fixture.make_config(tmp_path, override, claims_per_s)
    cost = estimate.plan_days(config, [DATE])["days"][0]["estimate"]

    assert cost["model_s"] == pytest.approx(cost["n_pairs"] / rate, abs=0.06)
    assert cost["rates_from"].startswith(f"{rate:,.{rate < 10:d}f} pairs/s ({source}), ")


def test_a_plan_reckons_with_what_earlier_runs_measured(job: Config, monkeypatch: pytest.MonkeyPatch):
    """Of this output; what was not measured yet is said to be assumed."""
    monkeypatch.setattr(estimate, "_sees_gpu", lambda: False)
    Store(job.store.out, job.store).root.put("state/rates.json", b'{"pairs_per_s": 5.0}')

    cost = estimate.plan_days(job, [DATE])["days"][0]["estimate"]

    assert cost["rates_from"].startswith(
        "5.0 pairs/s (measured by earlier runs), 3.0 claims/s (as the demo's model"
    )
    assert cost["model_s"] > cost["n_pairs"] / 5


def test_a_mapped_column_that_is_not_there_is_told(job: Config, tmp_path: Path):
    """It is null in the rows of the file that lacks it: counted and said, by the plan and by the run; nobody's own names are."""
    rows = [row | {"team": "cards"} for row in jobs_fixture.log_rows(9)[6:]]
    jobs_fixture.write_log(tmp_path, rows, name="part-1.parquet")
    config = mapping(tmp_path, 'topic = ["dept", "team"], question = "question", ts = "when", model = []')

    planned = estimate.plan_days(config, [DATE])["days"][0]
    report = run(config)

    said = [
        f"{DATE}: column {name!r}, which [read.columns] maps, is in no column of {n} of 9 rows: read as null; mend the mapping "
        "or take it out"
        for name, n in (("topic", 6), ("ts", 9))
    ]
    assert planned["absent_columns"] == report.absent_columns == {"topic": 6, "ts": 9}
    assert planned["warnings"] == report.warnings == said
    assert run(config).warnings == said  # a second run, which makes nothing


def test_a_mapped_field_of_chunks_that_is_not_there_is_told(job: Config, tmp_path: Path):
    """By the plan and by the run, as any other column; what stands in JSON is not known before it is read."""
    chunks = [{"id": "c1", "text": "The refund window is 60 days."}]
    rows = [row | {"chunks": chunks} for row in jobs_fixture.log_rows(6)]
    for k, kind in enumerate((list, json.dumps)):
        mine = [
            row | {"request_id": f"{k}{row['request_id']}", "chunks": kind(row["chunks"])}
            for row in rows[3 * k :][:3]
        ]
        jobs_fixture.write_log(tmp_path, mine, name=f"part-{k}.parquet")
    config = mapping(
        tmp_path, '"chunk.id" = "docid", "chunk.score" = ["rank", "weight"], "chunk.text" = "text"'
    )

    planned = estimate.plan_days(config, [DATE])["days"][0]
    report = run(config)

    said = [
        f"{DATE}: field {name!r}, which [read.columns] maps, is in no chunk of 3 of 6 rows: {read_as}; mend the mapping or take "
        "it out"
        for name, read_as in (
            ("chunk.id", "chunks are called by their place (c0, c1, ..)"),
            ("chunk.score", "read as null"),
        )
    ]
    assert planned["absent_columns"] == report.absent_columns == {"chunk.id": 3, "chunk.score": 3}
    assert planned["warnings"] == report.warnings == said


@pytest.mark.parametrize(
    ("chunks", "more", "absent"),
    [
        ([["The fee is 5 EUR."]], {}, ("chunk.id", "chunk.score")),
        ([["The fee is 5 EUR."]], {"chunk_ids": [["a"]]}, ("chunk.score",)),
        (pa.array([[("a", "The fee is 5 EUR.")]], pa.map_(pa.string(), pa.string())), {}, ("chunk.score",)),
        ([[{"meta": {"key": "a"}, "text": "The fee is 5 EUR."}]], {}, ("chunk.id", "chunk.score")),
        ([[{"meta": {"id": "a"}, "score": 1.0, "text": "The fee is 5 EUR."}]], {}, ()),
        (["[]"], {}, ()),
    ],
)
def test_what_chunks_can_hold_is_told_by_their_type(tmp_path: Path, chunks, more, absent):
    """Lists of texts, lists beside them, MAPs, structs in structs, JSON."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"request_id": ["r"], "answer": ["a"], "chunks": chunks, **more}), path)
    columns = {"chunk.id": ("key", "meta.id"), "chunk.score": ("score",)}

    log = LogFile(LocalFileSystem(), str(path), ReadConfig(logs="", columns=columns, mapped=tuple(columns)))

    assert log.absent == absent


def test_a_plan_sees_a_missing_column_as_a_run_does(job: Config, tmp_path: Path):
    """Of one file it is a line of the plan; where no file can be used there is nothing to plan."""
    path = jobs_fixture.write_log(tmp_path, [{"request_id": "x", "answer": "a"}], name="lacks.parquet")
    line = f"{path}: no column 'chunks' for 'chunks', found 'request_id', 'answer'; map the column under [read.columns]"

    planned = estimate.plan_days(job, [DATE])["days"][0]
    (tmp_path / "logs" / DATE / "part-0.parquet").unlink()
    with pytest.raises(InputError) as caught:
        estimate.plan_days(job, [DATE])

    assert planned["unreadable"] == [line]
    assert str(caught.value) == line


def test_repeats_across_files_are_accounted_for(job: Config, tmp_path: Path):
    """An identical row in another file is kept once; a differing one condemns both."""
    rows = jobs_fixture.log_rows(2)
    rows[1]["answer"] = "The refund window is 90 days [1]."
    jobs_fixture.write_log(tmp_path, rows, name="part-1.parquet")

    report = run(job)

    reasons = sorted(q["reason"] for q in table(job, "quarantine", None).to_pylist())
    assert reasons == ["repeat_of_identical_row", "repeated_request_id", "repeated_request_id"]
    assert report.n_rows == 8


def test_a_model_that_fails_is_reported(job: Config):
    """A judge that dies fails the shard by name; nothing is defaulted."""

    class Dead(stub_models.StubJudge):
        def probabilities(self, premise_ids, claim_ids):
            raise ModelError("judge: gone")

    judge = stub_models.StubJudge()
    with pytest.raises(InputError, match="judge: gone"):
        run(job, Models(stub_models.StubLlm(), judge, Dead(), None))


def test_a_run_that_goes_on_has_no_end_yet(job: Config):
    """run.json between two days: neither exit code nor end; both once the last day is done."""
    run(job)
    record = Path(job.store.out) / "state" / "run.json"
    seen = []
    for _ in operate.run_days(job, [DATE, "2026-11-29"], quiet=True):
        told = json.loads(record.read_text())
        seen.append((told["exit_code"], told["ended_at"] is not None, len(told["days"])))

    assert seen == [(None, False, 1), (3, True, 2)]


def test_a_backfill_never_changes_what_dashboards_read(job: Config, tmp_path: Path):
    """A card of the current series with another threshold is refused for days that have verdicts, and named."""
    Store(job.store.out, job.store).set_current(run(job).series)
    (tmp_path / "lenient.toml").write_text('name = "stub"\nmodel = "./model"\nentailment = 0.5\n')
    lenient = jobs_fixture.make_config(tmp_path, judge=str(tmp_path / "lenient.toml"))

    with pytest.raises(
        InputError, match=r"series stub-\w+ is the one that dashboards read, and thresholds \(judge card or"
    ):
        list(operate.run_days(lenient, [DATE], quiet=True, backfill=True))
