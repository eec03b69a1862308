"""`[privacy] store_text = false`: no text of the log or of a model is in the output, and what that costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jobs_fixture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models

from claimscore.jobs.config import Config
from claimscore.jobs.nightly import DayReport, execute_here, plan_day, run_day
from claimscore.jobs.operate import _check_claims_are_fresh, _recorded
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights, table_parts
from claimscore.jobs.privacy import TEXTS, without_texts
from claimscore.jobs.records import ANSWERS, CLAIMS, QUARANTINE, REFEREE, SCORES, VERDICTS
from claimscore.jobs.store import Store

SECRETS = (
    "qquestion",
    "aanswer",
    "cchunk",
    "ssample",
    "rreference",
    "ttoken",
    "47119203",
    "yyesterday",
    "mmark",
    "qquoted",
)
SENTENCE = "The aanswer window is 47119203 days, and qquoted people pay no fee [mmark_9]."
ROW = {
    "request_id": "r0",
    "question": "What is qquestion?",
    "answer": f'{SENTENCE} It says "a long qquoted passage of words" here [1].',
    "chunks": [
        {
            "id": "c1",
            "text": "The aanswer window is 60 days. A cchunk is here. People pay no fee.",
            "score": 0.9,
        },
        {"id": "doc_1", "text": "The aanswer window is 30 days, says the cchunk.", "score": 0.8},
    ],
    "samples": ["The ssample window is 60 days.", "It is ssample."],
    "reference_answer": "A rreference.",
    "token_logprobs": [{"token": "ttoken", "logprob": -5.0}],
    "ts": "2026-11-28T00:00:00",
}
ROWS = [ROW, {**ROW, "request_id": "bad", "ts": "yyesterday"}]


def models(judge: Any = None) -> Models:
    """Stub models; the LLM splits the sentence."""
    halves = ["The aanswer window is 47119203 days.", "qquoted people pay no fee."]
    judge = judge or stub_models.StubJudge()
    return Models(stub_models.StubLlm({SENTENCE: json.dumps({"claims": halves})}), judge, judge)


def run(config: Config, with_models: Models | None = None) -> DayReport:
    """The day, with the record of the run."""
    store = Store(config.store.out, config.store, run_id="r")
    plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    with _recorded(config, store, "r") as record:
        report = run_day(config, store, plan, execute_here(config, store, with_models or models()))
        record["days"] = [repr(report)]
        store.write_run("r", record)
    return report


@pytest.fixture
def job(tmp_path) -> Config:
    """A log whose every text holds a word that is nowhere else, and a config that keeps none of them."""
    jobs_fixture.write_log(tmp_path, ROWS)
    return jobs_fixture.make_config(tmp_path, "privacy.store_text=false")


def found_in(out: str) -> set[str]:
    """The words that some file of the output holds, in its bytes or in its decompressed columns."""
    held = []
    for path in Path(out).rglob("*"):
        if path.is_file():
            held.append(path.read_bytes().decode("latin-1"))
            if path.suffix == ".parquet":
                held += [repr(pq.read_table(path).to_pylist()), str(pq.read_metadata(path).to_dict())]
    return {word for word in SECRETS if any(word in text for text in held)}


def test_no_text_is_in_the_output(job):
    """Not in a column, a statistic, a manifest, the record of the run or a detail; the rows are all there."""
    report = run(job)

    assert found_in(job.store.out) == set()
    assert report.counts["answers"]["state_scored"] == 1
    assert report.counts["quarantine"]["reason_bad_value"] == 1


def test_with_texts_the_output_holds_them(tmp_path):
    """What the search of the other test looks for is there to be found."""
    jobs_fixture.write_log(tmp_path, ROWS)
    config = jobs_fixture.make_config(tmp_path)
    run(config)

    assert found_in(config.store.out) >= {"qquestion", "aanswer", "cchunk", "47119203", "yyesterday"}


def test_numbers_states_and_offsets_are_those_of_a_run_with_texts(job, tmp_path):
    """Only texts differ, and they by their hashes: every other column is equal."""
    plain = jobs_fixture.make_config(tmp_path, f'store.out="{tmp_path}/plain"')
    reports = run(job), run(plain)

    for name in ("claims", "scores", "verdicts", "answers"):
        tables = []
        for config, report in zip((job, plain), reports, strict=True):
            store = Store(config.store.out, config.store)
            series = None if name == "claims" else report.series
            tables.append(pa.concat_tables(store.read(f) for f in store.files(name, series=series)))
        hashed, whole = tables
        assert hashed.equals(without_texts(whole, name)), name
        assert hashed.drop_columns(list(TEXTS[name])).equals(whole.drop_columns(list(TEXTS[name]))), name


def test_every_column_of_a_table_is_known_to_hold_a_text_or_not():
    """A column that is added to a table has to be put on one of the two sides by hand."""
    kept = {
        "quarantine": "file row_group row request_id reason detail",
        "claims": "request_id claim_index sentence_index start end source decompose_outcome unjudgeable cited_ids "
        "duplicate_of",
        "scores": "request_id claim_index premise sample_index is_cited overlap n_tokens p_entailment p_neutral "
        "p_contradiction p_rival error",
        "verdicts": "request_id claim_index sentence_index start end verdict reason decided_by hallucination_type "
        "citation_state cited_ids evidence_chunk_id evidence_start evidence_end support p_entailment p_neutral p_contradiction "
        "conflict contradicting_chunk_id contradicting_start contradicting_end consistency n_samples_usable low_consistency "
        "referee_outcome referee_said n_pairs source decompose_outcome duplicate_of",
        "referee": "request_id claim_index turn reasons prompt_key finish_reason outcome said window grade",
        "answers": "request_id prompt_version model topic ts state groundedness citation_precision hallucinated action "
        "action_reason next_step failure_mode n_claims n_repeats n_scored n_supported n_contradicted n_unsupported n_unscored "
        "n_cited_claims n_citation_ok n_fabricated_citations n_conflicts n_low_consistency retrieval_margin n_hedges "
        "n_low_probability_tokens high_risk_reasons n_samples referee_grade referee_grade_outcome injection_suspected answerable recall_at_k "
        "reference_overlap human_label flags origin",
    }
    schemas = {
        "quarantine": QUARANTINE,
        "claims": CLAIMS,
        "scores": SCORES,
        "referee": REFEREE,
        "verdicts": VERDICTS,
        "answers": ANSWERS,
    }

    for name, schema in schemas.items():
        assert set(schema.names) == {*kept[name].split(), *TEXTS[name]}, name


def test_a_second_run_makes_nothing(job):
    """A day that is whole is fresh, texts or not."""
    run(job)
    untouchable = stub_models.UntouchableModel()

    assert run(job, Models(untouchable, untouchable, untouchable, untouchable)).made == {}


def test_what_is_stale_is_made_from_the_log_again(job, tmp_path):
    """A threshold cannot be changed on hashes: claims, scores and the rest are made anew, and come out equal."""
    first = run(job)
    changed = jobs_fixture.make_config(tmp_path, "privacy.store_text=false", "verdicts.entailment=0.85")
    report = run(changed)

    assert report.made["claims"] == report.made["scores"] == report.made["verdicts"] == 1
    assert report.counts["claims"] == first.counts["claims"]
    assert found_in(job.store.out) == set()


def test_a_backfill_says_that_it_cannot(job, tmp_path):
    """It loads no LLM, and there are no claims to judge: one line says so."""
    run(job)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    (tmp_path / "other" / "model.safetensors").write_bytes(b"other")
    (tmp_path / "other.toml").write_text('name = "other"\nmodel = "./other"\nentailment = 0.5\n')
    other = jobs_fixture.make_config(tmp_path, "privacy.store_text=false", judge=str(tmp_path / "other.toml"))
    plan = plan_day(other, Store(other.store.out, other.store), Weights.of(other), jobs_fixture.DATE)

    with pytest.raises(Exception, match="its texts are not stored"):
        _check_claims_are_fresh(plan)


def test_switching_it_on_replaces_what_holds_texts(tmp_path):
    """The day's files are made again without texts in the place of those with them."""
    jobs_fixture.write_log(tmp_path, [{**row, "samples": None} for row in ROWS])
    run(jobs_fixture.make_config(tmp_path))
    config = jobs_fixture.make_config(tmp_path, "privacy.store_text=false")
    run(config)

    assert found_in(config.store.out) == set()


def test_the_choice_of_keeping_texts_is_in_no_fingerprint(tmp_path):
    """What earlier versions made, without that key, stays fresh."""
    jobs_fixture.write_log(tmp_path)
    config = jobs_fixture.make_config(tmp_path)
    parts = table_parts(config, Weights.of(config), "shard", {}, "none")

    assert set(parts["quarantine"]) == {"log content", "repeated rows", "[read]", "stage version"}
