"""The sheet that people label in: what a spreadsheet does to it, and how labels come back."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import jobs_fixture
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stub_models
from click.testing import CliRunner, Result

from claimscore.jobs import calibration_files, calibration_run, label_run, label_sheet
from claimscore.jobs.cli import main
from claimscore.jobs.config import Config
from claimscore.jobs.errors import InputError
from claimscore.jobs.nightly import execute_here, plan_day, run_day
from claimscore.jobs.pipeline import Models
from claimscore.jobs.plan import Weights
from claimscore.jobs.store import Store


def finish_night(config: Config) -> None:
    """Run the day of the fixture on stub models."""
    store, judge = Store(config.store.out, config.store), stub_models.StubJudge()
    plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    models = Models(decomposer=stub_models.StubLlm(), checker=judge, judge=judge)
    store.set_current(run_day(config, store, plan, execute_here(config, store, models)).series)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a deployment with a finished night of 12 answers, made once."""
    folder = tmp_path_factory.mktemp("finished")
    jobs_fixture.write_log(folder, jobs_fixture.log_rows(12), group=12)
    finish_night(jobs_fixture.make_config(folder))
    return folder


@pytest.fixture
def config(finished: Path, tmp_path: Path) -> Config:
    """A copy of it, to do with as one likes."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return jobs_fixture.make_config(tmp_path)


@pytest.fixture
def sheet(config: Config, tmp_path: Path) -> Path:
    """A sheet of six claims."""
    assert invoke(config.path, "--n", "6", "--to", str(tmp_path / "sheet.csv")).exit_code == 0
    return tmp_path / "sheet.csv"


def invoke(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, ["label", *arguments])


def rows_of(sheet: Path) -> list[dict[str, str]]:
    """The sheet as a person sees it."""
    return list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))


def fill(sheet: Path, labels: list[str], *, delimiter: str = ",", encoding: str = "utf-8-sig") -> Path:
    """The sheet with labels in its first rows, as a spreadsheet would save it."""
    rows = rows_of(sheet)
    for row, label in zip(rows, labels, strict=False):
        row["label"] = label
    with sheet.open("w", encoding=encoding, errors="replace", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return sheet


def test_a_sheet_shows_claim_and_evidence_and_no_verdict(sheet: Path):
    """What a person needs to decide; the judge's word would sway them."""
    rows = rows_of(sheet)

    assert len(rows) == 6
    assert all("[c1]" in row["evidence"] and "The lounge allows 8 visits" in row["evidence"] for row in rows)
    assert {row["allowed_labels"] for row in rows} == {"supported / unsupported / contradicted / unclear"}
    assert "verdict" not in rows[0]
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")


def test_the_cited_chunk_is_marked(sheet: Path):
    """A claim with a citation shows which chunk it means."""
    assert any("[c1] (cited)" in row["evidence"] for row in rows_of(sheet))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "＝"])
def test_no_cell_is_a_formula(start: str):
    """What a spreadsheet would run stands behind an apostrophe."""
    assert label_sheet.cell(f"{start}cmd()").startswith("'")


def test_a_cell_holds_no_control_character_and_says_where_it_was_cut():
    """Terminal escapes go; a text that no spreadsheet holds ends in a word about it."""
    assert label_sheet.cell("a\x1b[31m\x00b\nc") == "a[31mb\nc"
    assert label_sheet.cell("x" * 40_000).endswith(
        "[cut: 40,000 characters; the whole is in the Parquet file beside the sheet]"
    )


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8-sig"), (";", "cp1252"), ("\t", "utf-8")])
def test_labels_come_back_from_what_spreadsheets_save(sheet: Path, delimiter: str, encoding: str):
    """Comma, semicolon or tab; with or without a byte order mark; case and blanks do not matter."""
    fill(
        sheet,
        [" Supported", "unsupported", "UNCLEAR ", "contradicted"],
        delimiter=delimiter,
        encoding=encoding,
    )

    found = label_sheet.read(str(sheet))

    assert label_sheet.counts(found.rows) == {
        "contradicted": 1,
        "supported": 1,
        "unclear": 1,
        "unsupported": 1,
    }
    assert (found.n_rows, found.n_blank) == (6, 2)


def test_evidence_comes_back_whole_whatever_the_sheet_did_to_it(sheet: Path):
    """Texts and weights are those that were drawn, though every cell but key and label was rewritten."""
    drawn = pq.read_table(label_sheet.claims_path(str(sheet)))
    rows = rows_of(sheet)
    text = "key,label\n" + "".join(f"{row['key']},supported\n" for row in rows)
    sheet.write_text(text)

    found = label_sheet.read(str(sheet)).rows

    assert found.select(label_sheet.SHEET.names).equals(drawn)


def test_unknown_labels_are_named_with_their_rows(sheet: Path):
    """Two slips of the pen, both told, and nothing read."""
    fill(sheet, ["supported", "suported", "no"])
    key = rows_of(sheet)[1]["key"]

    with pytest.raises(InputError) as caught:
        label_sheet.read(str(sheet))

    assert f"row 3 ('{key}'): label 'suported'; row 4" in str(caught.value)


def test_a_sheet_without_a_label_is_no_labelled_file(sheet: Path, tmp_path: Path):
    """Nothing is written that `calibrate` could not use."""
    with pytest.raises(InputError, match=r"none of its [\d,]+ rows has a label, expected one of supported"):
        label_run.read_sheet(str(sheet), str(tmp_path / "labelled.parquet"), None, force=False)
    assert not (tmp_path / "labelled.parquet").exists()


def test_a_row_twice_or_of_another_sheet_is_named(sheet: Path):
    """Keys join; one that does not is no row of this sheet."""
    key = rows_of(sheet)[0]["key"]
    sheet.write_text(f"key;label\n{key};supported\n{key};unsupported\nk0;supported\n")

    with pytest.raises(
        InputError,
        match=rf"row 3 \('{key}'\): labelled twice; row 4 \('k0'\): a key that sheet.claims.parquet has not",
    ):
        label_sheet.read(str(sheet))


def test_a_renamed_sheet_says_what_is_missing(sheet: Path):
    """The claims beside it are needed, and may be named."""
    moved = sheet.rename(sheet.with_name("sheet (1).csv"))

    with pytest.raises(InputError, match="give --claims where the sheet was renamed"):
        label_sheet.read(str(moved))
    assert label_sheet.read(str(moved), str(sheet.with_suffix(".claims.parquet"))).n_blank == 6


def test_something_else_is_no_sheet(tmp_path: Path, sheet: Path):
    """A workbook, or a CSV without our columns."""
    (tmp_path / "sheet.csv").write_bytes(b"PK\x03\x04" + b"\x00" * 50)

    with pytest.raises(InputError, match="expected 'key' and 'label' among them; save the sheet as CSV"):
        label_sheet.read(str(sheet))


def test_labels_are_what_calibrate_takes(config: Config, sheet: Path, tmp_path: Path):
    """Through the Parquet file or straight from the sheet, the same claims with the same weights."""
    fill(sheet, ["supported", "unsupported"] * 3)
    assert invoke("--read", str(sheet), "--to", str(tmp_path / "labelled.parquet")).exit_code == 0

    through = calibration_files.read_labelled(str(tmp_path / "labelled.parquet"))
    straight = calibration_run._read(str(sheet))

    assert through.rows.to_pylist() == straight.rows.to_pylist()
    assert sum(through.rows["weight"].to_pylist()) > 6


def test_rates_are_weighted_back_to_the_night(config: Config, tmp_path: Path):
    """With every claim of the night labelled as the job decided, people and job agree on the night's own rates."""
    sheet = tmp_path / "all.csv"
    invoke(config.path, "--n", "500", "--to", str(sheet))
    verdicts = pq.read_table(label_sheet.claims_path(str(sheet)))["verdict"].to_pylist()

    night = label_run.read_sheet(str(fill(sheet, verdicts)), None, None, force=False)["night"]

    flagged = sum(verdict != "supported" for verdict in verdicts) / len(verdicts)
    assert (
        night["unsupported_by_people"]["value"]
        == night["flagged_by_the_job"]["value"]
        == pytest.approx(flagged)
    )
    assert night["kappa"]["value"] == pytest.approx(1.0)


def test_unscored_claims_are_counted_and_not_drawn(config: Config, tmp_path: Path):
    """Nobody can check a judge where it said nothing."""
    document = label_run.make_sheet(
        config, 500, str(tmp_path / "s.csv"), date=None, series=None, seed=0, force=False
    )

    assert document["n_drawn"] == document["n_claims"]
    assert set(document["verdicts"]) <= {"supported", "unsupported", "contradicted"}


def test_a_sheet_with_labels_is_not_overwritten(config: Config, sheet: Path):
    """An hour of somebody's work."""
    before = sheet.read_bytes()

    result = invoke(config.path, "--to", str(sheet))

    assert (result.exit_code, sheet.read_bytes()) == (1, before)
    assert "labels may stand in it" in result.stderr


def test_a_log_that_is_gone_is_said(config: Config, tmp_path: Path):
    """The chunks are nowhere else."""
    for file in (tmp_path / "logs").rglob("*.parquet"):
        file.unlink()

    result = invoke(config.path, "--to", str(tmp_path / "s.csv"))

    assert (result.exit_code, "no log file" in result.stderr) == (1, True)


def test_a_night_without_texts_cannot_be_labelled(tmp_path: Path):
    """Hashes are no claims."""
    jobs_fixture.write_log(tmp_path)
    jobs_fixture.write_config(tmp_path, extra="[privacy]\nstore_text = false\n")
    config = jobs_fixture.make_config(tmp_path)
    finish_night(config)

    with pytest.raises(InputError, match="stored as hashes"):
        label_run.make_sheet(config, 10, str(tmp_path / "s.csv"), date=None, series=None, seed=0, force=False)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "Error: give CONFIG and --to SHEET.csv, or --read SHEET.csv"),
        (
            ["x.toml", "--read", "s.csv"],
            "Error: --read excludes CONFIG and --set: the sheet holds all it needs",
        ),
    ],
)
def test_usage_errors(arguments: list[str], line: str):
    """One mode at a time."""
    result = invoke(*arguments)

    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, line)


def test_a_day_that_was_not_run_is_named(config: Config, tmp_path: Path):
    """With the days that are there."""
    result = invoke(config.path, "--date", "2020-01-01", "--to", str(tmp_path / "s.csv"))

    assert "nothing of 2020-01-01, expected 2026-11-28; run that day first" in result.stderr


def test_a_key_is_no_number():
    """Twelve hex digits may read as 1e5; a spreadsheet would rewrite them."""
    assert all(label_sheet.key_of(f"r{k}", 0, "x")[0] == "k" for k in range(50))
    assert pa.array([label_sheet.key_of(f"r{k}", 0, "x") for k in range(500)]).unique().__len__() == 500


def test_shares_are_percent_and_kappa_is_none():
    """As in the report; what has no interval says so."""
    share = {"value": 0.7271, "low": 0.5, "high": 0.9}

    assert label_run._figure("flagged_by_the_job", share) == ("72.7%", "50.0% to 90.0%")
    assert label_run._figure("kappa", share) == ("0.727", "0.500 to 0.900")
    assert label_run._figure("recall", dict.fromkeys(share)) == ("-", "-")
