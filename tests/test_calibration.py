"""`claimscore calibrate` on stub models: what it reads, what it leaves out, what it writes, and that it is the job's verdict."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jobs_fixture
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models
import trust_fixture as fixture
from click.testing import CliRunner, Result

from claimscore.jobs import calibration, calibration_files, calibration_run, calibration_scores
from claimscore.jobs.cli import main
from claimscore.jobs.config import Config
from claimscore.jobs.config_file import load_card
from claimscore.jobs.errors import InputError, OutputError

CARD = """# The card of a test.
name = "stub"
model = "./model"

# Guessed.
entailment = 0.8  # and this too
contradiction = 0.9
languages = ["en", "de"]
note = '''
two
lines'''
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A deployment whose judge is a stub."""
    return jobs_fixture.make_config(tmp_path)


@pytest.fixture
def labelled(tmp_path: Path) -> str:
    """Sixty-four labelled claims."""
    return fixture.write(tmp_path / "labelled.parquet")


def run(config: Config, path: str, **options: object) -> dict:
    """A calibration with the stub judge."""
    return calibration_run.run(config, path, **({"goals": {}} | options), judge=stub_models.StubJudge())


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, config: Config):
    """The command in this process, with the stub judge."""
    monkeypatch.setattr(calibration_run, "load_judge", lambda _: stub_models.StubJudge())

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["calibrate", config.path, *arguments])

    return call


def test_the_threshold_parts_what_the_judge_can_part(config: Config, labelled: str):
    """The stub gives 0.98 to what is all there and less than 0.6 to what is not: every flag is right."""
    found = run(config, labelled)

    assert 0.5 < found["entailment"]["threshold"] < 0.98
    assert found["figures"]["fitted"]["balanced_accuracy"]["value"] == 1.0
    assert found["n_fitted_on"] + found["n_reported_on"] == found["n_used"] == 64


def test_scores_above_the_threshold_are_the_verdicts_of_the_job(config: Config):
    """At any threshold a claim is supported in a run just where its score says so."""
    rng = np.random.default_rng(0)
    rows = [
        row
        | {
            "evidence": [t for t in row["evidence"] if rng.random() < 0.7] or row["evidence"][:1],
            "claim": claim,
        }
        for row in fixture.rows(40)
        for claim in [row["claim"].replace("stand", "stand 30 metres" if rng.random() < 0.4 else "stand")]
    ]
    path = Path(config.path).parent / "some.parquet"
    scored = calibration_scores.score(
        calibration_files.read_labelled(fixture.write(path, rows)).rows, stub_models.StubJudge(), config
    )

    for threshold in (0.35, 0.5, 0.65, 0.8):
        assert (calibration._supported(scored, config, threshold) == (scored.scores >= threshold)).all()
    assert (scored.scores < 0.1).any()  # vetoed: no threshold supports it


def test_no_threshold_is_fitted_where_the_evidence_stage_does_not_look(config: Config, labelled: str):
    """Between the scores of the stub lies 0.45; with rivals asked from 0.7 on, no threshold below is tested enough."""
    narrow = jobs_fixture.make_config(
        Path(config.path).parent, "evidence.rivals_above=0.7", "evidence.carried_at=0.95"
    )

    found = run(narrow, labelled, goals={"precision": 0.9})

    assert 0.7 <= found["entailment"]["threshold"] <= 0.95


def test_figures_are_of_the_half_that_was_not_fitted_on(config: Config, labelled: str, monkeypatch):
    """Labels of the reporting half turned round leave the threshold and ruin the figures."""
    honest = run(config, labelled)
    rows = calibration_files.read_labelled(labelled).rows
    scored = calibration_scores.score(rows, stub_models.StubJudge(), config)
    keys = rows.column("group").to_pylist()
    strata = [
        f"{ok}\0{s}" for s, ok in zip(rows["source"].to_pylist(), rows["supported"].to_pylist(), strict=True)
    ]
    half = calibration.calibrate.fitting_half(np.unique(keys, return_inverse=True)[1], strata, keys)
    turned = np.where(half, rows["supported"].to_numpy(), ~rows["supported"].to_numpy())
    monkeypatch.setattr(calibration.calibrate, "fitting_half", lambda *_: half)
    at = rows.column_names.index("supported")
    lying = calibration_scores.Scored(
        rows.set_column(at, rows.schema.field(at), pa.array(turned)), scored.log, scored.claims, scored.pairs,
        scored.lacking, scored.scores, scored.reasons,
    )  # fmt: skip

    found = calibration.calibrate_claims(lying, config, calibration.Goal())

    assert found["entailment"]["threshold"] == honest["entailment"]["threshold"]
    assert found["figures"]["fitted"]["balanced_accuracy"]["value"] == 0.0


def test_what_cannot_be_used_is_counted_apart(config: Config, tmp_path: Path):
    """No chunks, no claim, no label, too long a claim: four reasons, and no figure moves."""
    rows = fixture.rows()
    odd = [
        rows[0] | {"evidence": []},
        rows[0] | {"claim": " "},
        rows[0] | {"supported": None},
        rows[0] | {"claim": "word " * 600},
    ]

    found = run(config, fixture.write(tmp_path / "odd.parquet", rows + odd))

    assert found["left_out"] == {"claim_empty": 1, "claim_too_long": 1, "no_context": 1, "unlabelled": 1}
    assert found["figures"] == run(config, fixture.write(tmp_path / "plain.parquet"))["figures"]


def test_labels_may_be_words(tmp_path: Path):
    """`not_supported` and `partial` are no support, `unclear` is no label."""
    rows = [
        row | {"label": label}
        for row, label in zip(fixture.rows(4), ["Supported", "partial", "unclear", None], strict=True)
    ]
    for row in rows:
        del row["supported"]

    found = calibration_files.read_labelled(fixture.write(tmp_path / "words.parquet", rows))

    assert found.rows["supported"].to_pylist() == [True, False, None, None]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"label": "supportd"},
            "row 0: label 'supportd', expected one of supported, unsupported, not_supported",
        ),
        ({"supported": 2}, "row 0: supported is 2, expected 0, 1 or null; mend it"),
        ({"supported": 1, "weight": -1.0}, "row 0: weight is -1.0, expected a number above 0"),
        ({}, "no column 'supported' or 'label'"),
    ],
)
def test_a_label_that_means_nothing_is_named(changes: dict, line: str, tmp_path: Path):
    """With its row; nothing is taken for a default."""
    row = {key: value for key, value in fixture.rows(1)[0].items() if key != "supported"} | changes

    with pytest.raises(InputError, match=line):
        calibration_files.read_labelled(fixture.write(tmp_path / "bad.parquet", [row]))


def test_claims_with_the_same_evidence_are_one_group(tmp_path: Path):
    """Blanks and case of the evidence do not matter; a group of the file's own goes before."""
    rows = [
        row | {"evidence": ["Same  words."] if k % 2 else ["same words."]}
        for k, row in enumerate(fixture.rows(4))
    ]

    by_words = calibration_files.read_labelled(fixture.write(tmp_path / "a.parquet", rows)).rows
    named = calibration_files.read_labelled(
        fixture.write(tmp_path / "b.parquet", [row | {"article": k} for k, row in enumerate(rows)])
    ).rows

    assert len(set(by_words["group"].to_pylist())) == 1
    assert named["group"].to_pylist() == ["0", "1", "2", "3"]


def contradicting(n: int) -> list[dict]:
    """`n` claims that the evidence turns round with a `not`, labelled so; every fifth of them only unsupported by people."""
    return [
        {
            "evidence": [f"The {word} {k} is not open on Sundays for visitors."],
            "claim": f"The {word} {k} is open on Sundays for visitors.",
            "label": "unsupported" if k % 5 == 4 and k < 10 else "contradicted",
            "source": "turned",
        }
        for k in range(n)
        for word in ["museum"]
    ]


def test_a_contradiction_threshold_is_fitted_where_labels_tell(config: Config, tmp_path: Path):
    """Forty claims that people call contradicted: the stub gives 0.95, and the card's 0.9 may come down to there."""
    known = [row | {"label": "supported" if row["supported"] else "unsupported"} for row in fixture.rows()]
    for row in known:
        del row["supported"]

    found = run(config, fixture.write(tmp_path / "words.parquet", known + contradicting(40)))["contradiction"]

    assert (found["reached"], found["n_contradicted"]) == (True, 38)
    assert 0.5 <= found["threshold"] <= 0.95
    assert found["recall"]["value"] == 1.0


def test_without_such_labels_the_contradiction_threshold_stays(config: Config, labelled: str, tmp_path: Path):
    """Supported or not says nothing of contradicted; the card keeps its own, and it is said why."""
    found = run(config, labelled, to=str(tmp_path / "fitted.toml"), force=False)

    assert found["contradiction"]["why"].startswith(
        "0 claims are labelled contradicted, expected at least 10"
    )
    assert (
        load_card(tmp_path / "fitted.toml").contradiction == load_card(tmp_path / "judge.toml").contradiction
    )


def test_too_few_claims_of_a_class_are_refused(config: Config, tmp_path: Path):
    """Eight claims cannot be fitted and reported on."""
    with pytest.raises(InputError, match="expected at least 5 of each; label more"):
        run(config, fixture.write(tmp_path / "few.parquet", fixture.rows(8)))


def test_few_claims_are_said_to_be_few(config: Config, labelled: str):
    """Thirty-two claims to report on: a warning, and what twice and four times as many would buy."""
    found = run(config, labelled)

    assert found["warnings"][0].startswith("few labels: the figures rest on 32 claims, 16 of them supported")
    assert [step["n"] for step in found["more_labels"]] == [32, 64, 128]


def test_a_card_keeps_its_other_keys(tmp_path: Path):
    """Thresholds are new, the comment on the old one is gone, everything else is as it was."""
    (tmp_path / "model").mkdir()
    (tmp_path / "card.toml").write_text(CARD)
    target = tmp_path / "new.toml"

    calibration_files.write_card(
        str(tmp_path / "card.toml"),
        str(target),
        {"entailment": 0.7, "temperature": 2.5},
        "Fitted.",
        force=False,
    )

    values = tomllib.loads(target.read_text())
    assert values == tomllib.loads(CARD) | {"entailment": 0.7, "temperature": 2.5}
    assert "Guessed" not in target.read_text()
    assert "# The card of a test." in target.read_text()


def test_a_card_in_another_folder_finds_its_model(tmp_path: Path):
    """A model named relative to the card is named anew from where the card goes."""
    (tmp_path / "model").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "card.toml").write_text(CARD)
    target = tmp_path / "other" / "card.toml"

    calibration_files.write_card(
        str(tmp_path / "card.toml"), str(target), {"entailment": 0.7}, "Fitted.", force=False
    )

    assert Path(load_card(target).model).resolve() == (tmp_path / "model").resolve()


def test_a_value_over_several_lines_is_written_anew(tmp_path: Path):
    """No edit by lines is trusted where it does not read back as it should."""
    (tmp_path / "model").mkdir()
    (tmp_path / "card.toml").write_text(CARD)

    calibration_files.write_card(
        str(tmp_path / "card.toml"), None, {"note": 'one "line" \\'}, "Fitted.", force=True
    )

    assert tomllib.loads((tmp_path / "card.toml").read_text()) == tomllib.loads(CARD) | {
        "note": 'one "line" \\'
    }


def test_a_card_that_is_there_is_not_overwritten(config: Config, labelled: str):
    """Said before anything is judged."""
    judge = stub_models.StubJudge()

    with pytest.raises(OutputError, match="is there already, expected a new file"):
        calibration_run.run(
            config, labelled, goals={}, to=str(Path(config.path).parent / "judge.toml"), judge=judge
        )
    assert judge.n_calls == 0


def test_the_card_written_is_in_force(config: Config, labelled: str, tmp_path: Path):
    """A deployment with the new card has the new threshold, and the card says what it rests on."""
    found = run(config, labelled, to=str(tmp_path / "fitted.toml"), goals={"recall": 0.9})

    card = load_card(tmp_path / "fitted.toml")
    assert (card.entailment, card.temperature) == (found["entailment"]["threshold"], found["temperature"])
    assert card.calibrated_on.startswith("entailment: 32 of 64 labelled claims of labelled.parquet")
    assert "goal recall 0.9" in card.calibrated_on


def test_the_command_prints_the_figures(invoke, labelled: str):
    """Exit code 0, and what to do next where nothing was written."""
    result = invoke(labelled)

    assert result.exit_code == 0
    assert "balanced accuracy" in result.output
    assert "no card was written; --to CARD.toml writes one" in " ".join(result.output.split())


def test_the_command_gives_one_json_document(invoke, labelled: str):
    """Every figure with its interval, strictly JSON."""
    document = json.loads(invoke(labelled, "--json", "--cost", "5").stdout)

    assert document["goal"] == {"kind": "cost", "value": 5.0}
    assert set(document["figures"]["fitted"]["kappa"]) == {"value", "low", "high"}


def test_a_goal_out_of_reach_writes_nothing_and_ends_with_3(invoke, tmp_path: Path):
    """Labels that contradict the judge: no flags are 99% right."""
    rows = [row | {"supported": (k // 2) % 2} for k, row in enumerate(fixture.rows())]
    target = tmp_path / "never.toml"

    result = invoke(fixture.write(tmp_path / "odd.parquet", rows), "--precision", "0.99", "--to", str(target))

    assert (result.exit_code, target.exists()) == (3, False)
    assert "beware: no threshold reaches precision 0.99" in result.output


def test_two_goals_are_a_usage_error(invoke, labelled: str):
    """One goal at a time."""
    result = invoke(labelled, "--precision", "0.9", "--recall", "0.9")

    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "Error: --precision excludes --recall: give one goal",
    )


def test_a_log_is_hostile_on_the_terminal_too(invoke, tmp_path: Path):
    """A source with a terminal escape is printed without it."""
    rows = [row | {"source": "a\x1b[31mb[bold]"} for row in fixture.rows()]

    output = invoke(fixture.write(tmp_path / "hostile.parquet", rows)).output

    assert "\x1b" not in output
    assert "a[31mb[bold]" in output


def test_the_file_may_be_a_folder_of_parquet(config: Config, tmp_path: Path):
    """Parts of a labelled set are read as one."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in range(2):
        pq.write_table(pa.Table.from_pylist(fixture.rows()[k::2]), folder / f"{k}.parquet")

    assert run(config, str(folder))["n_used"] == 64
