"""`claimscore evaluate`: rates of a golden set by kind of item, its warnings, and its file as a gate's baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_fixture as fixture
import jobs_fixture
import pyarrow as pa
import pytest
import report_fixture
from click.testing import CliRunner, Result

from claimscore.jobs import apart, golden, golden_words, sheets
from claimscore.jobs.cli import main
from claimscore.jobs.config import MetricsConfig

CONFIG = MetricsConfig(n_resamples=200)
ROWS = [
    # answerable: one right, one wrong, one refused for nothing; half of the second one's gold was retrieved
    fixture.row("a1", "true", answerable=True, gold_chunk_ids=["c1"], reference_answer=fixture.REFERENCE),
    fixture.row(
        "a2", "false", answerable=True, gold_chunk_ids=["c1", "c9"], reference_answer=fixture.REFERENCE
    ),
    fixture.row(
        "a3", "refused", answerable=True, gold_chunk_ids=["c2"], reference_answer="Guests pay 20 euro."
    ),
    # unanswerable: one refused as it should be, one answered
    fixture.row("u1", "refused", answerable=False),
    fixture.row("u2", "guests", answerable=False),
    # conflicting
    fixture.row(
        "x1", "miscited", answerable=True, conflicting=True, gold_chunk_ids=["c1"], reference_answer="No fee."
    ),
    # not known
    fixture.row("n1", "true", answerable=None),
]


def invoke(*arguments: Any) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A deployment, a golden set beside it, and stubs in place of Ray."""
    fixture.without_ray(monkeypatch)
    return {
        "config": jobs_fixture.write_config(tmp_path, extra=fixture.QUICK),
        "gold": fixture.write(tmp_path / "gold.parquet", ROWS),
        "json": tmp_path / "evaluation.json",
        "folder": tmp_path,
    }


def evaluate(job: dict[str, Path], *more: Any) -> dict[str, Any]:
    """The document that the command writes."""
    result = invoke("evaluate", job["config"], job["gold"], "--to", job["json"], *more)
    assert result.exit_code == 0, result.output
    return json.loads(job["json"].read_text())


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The evaluation of ROWS."""
    folder = tmp_path_factory.mktemp("gold")
    files = {
        "config": jobs_fixture.write_config(folder, extra=fixture.QUICK),
        "json": folder / "evaluation.json",
    }
    with pytest.MonkeyPatch.context() as patch:
        fixture.without_ray(patch)
        return evaluate(files | {"gold": fixture.write(folder / "gold.parquet", ROWS)})


def rate(document: dict[str, Any], metric: str, kind: str, group: int = 0) -> tuple[float, float]:
    """Value and denominator."""
    found = document["groups"][group]["kinds"][kind]["rates"][metric]
    return found["value"], found["n"]


@pytest.mark.parametrize(
    ("metric", "kind", "value", "n"),
    [
        ("groundedness", "answerable", 1 / 2, 2),
        ("hallucination_rate", "answerable", 1 / 2, 2),
        ("citation_precision", "answerable", 1 / 2, 2),
        ("over_refusal_rate", "answerable", 1 / 3, 3),
        ("recall_at_k", "answerable", (1 + 1 / 2 + 1) / 3, 3),
        ("refusal_correctness", "unanswerable", 1 / 2, 2),
        ("groundedness", "unanswerable", 1, 1),
        ("citation_precision", "conflicting", 0, 1),
        ("groundedness", "unknown", 1, 1),
        ("groundedness", "all", 4 / 5, 5),
        ("refusal_correctness", "all", 1 / 2, 2),
    ],
)
def test_rates_of_a_small_table_are_those_by_hand(document, metric: str, kind: str, value: float, n: int):
    """Each rate is counted over its own kind of items, with its denominator."""
    assert rate(document, metric, kind) == (pytest.approx(value), n)


def test_agreement_with_the_reference_is_by_words(document):
    """The answer of a1 shares 6 words with the reference, of 7 and 6; a2 shares 5; a3 none of 9 with 4."""
    overlaps = (2 * 6 / 13, 2 * 5 / 13, 0.0)

    assert rate(document, "reference_overlap", "answerable") == (pytest.approx(sum(overlaps) / 3), 3)


def test_every_item_is_of_one_kind(document):
    """The kinds add up to the items, and every interval holds its value."""
    group = document["groups"][0]

    assert {name: part["n_items"] for name, part in group["kinds"].items()} == {
        "all": 7,
        "answerable": 3,
        "unanswerable": 2,
        "conflicting": 1,
        "unknown": 1,
    }
    rates = [rate for part in group["kinds"].values() for rate in part["rates"].values()]
    assert all(rate["low"] <= rate["value"] <= rate["high"] for rate in rates)


def test_a_quarantined_row_moves_no_flag(job):
    """The gold's `conflicting` stays with its own row where another row cannot be read; the lost row is told of."""
    broken = fixture.row("b", "true", answerable=True, conflicting=True) | {"request_id": None}
    fixture.write(job["gold"], [*ROWS[:4], broken, *ROWS[4:]])  # in the second shard, before x1

    document = evaluate(job)

    kind_of = {item["request_id"]: item["kind"] for item in document["items"]}
    assert [name for name, kind in kind_of.items() if kind == "conflicting"] == ["x1"]
    assert document["warnings"][0] == "1 of 8 rows are not in the rates: quarantined, or their shard failed"


def test_a_second_evaluation_runs_nothing(job, monkeypatch):
    """What is fresh of the run is read; the figures are the same."""
    first = evaluate(job)
    executed = fixture.without_ray(monkeypatch)

    assert evaluate(job) == first
    assert executed.n_tasks == 0


def test_the_nights_are_left_alone(job):
    """Its tables lie below the output root and not among those of the nights."""
    out = Path(evaluate(job)["out"])

    assert out == job["folder"] / "out" / "evaluate" / "gold"
    assert not (job["folder"] / "out" / "tables").exists()


def test_our_own_names_are_understood_beside_mapped_ones(job):
    """A golden set made by `promote` is read by a deployment whose log has other names."""
    document = evaluate(job, "--set", 'read.columns={answer=["response_text"]}')

    assert document["n_items"] == 7


def answers(*rows: dict[str, Any]) -> pa.Table:
    """ANSWERS of `report_fixture.answer` rows, recall and overlap known unless told otherwise."""
    known = {"recall_at_k": 1.0, "reference_overlap": 1.0, "prompt_version": "p1"}
    return report_fixture.answers([known | row for row in rows])


def warnings(table: pa.Table, conflicting: list[bool | None] | None = None) -> list[str]:
    """What is told of a golden set."""
    flags = pa.array(conflicting or [None] * table.num_rows, pa.bool_())
    return golden.evaluate(table, flags, by="prompt_version", config=CONFIG)["warnings"]


def items(n: int, answerable: bool | None, name: str, **fields: Any) -> list[dict[str, Any]]:
    """`n` supported answers."""
    return [
        report_fixture.answer(f"{name}{k}", answerable=answerable, question=f"{name}{k}?", **fields)
        for k in range(n)
    ]


def test_a_whole_golden_set_is_told_nothing_about():
    """Thirty items of each kind with all their gold: no warning."""
    rows = [*items(60, answerable=True, name="a"), *items(30, answerable=False, name="u")]

    assert warnings(answers(*rows), [k < 30 for k in range(90)]) == []


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (
            items(40, answerable=True, name="a"),
            "no unanswerable items: nothing shows whether it refuses where it should, and the rates measure fluency",
        ),
        (
            items(40, answerable=False, name="u"),
            "no answerable items: over-refusal and recall cannot be measured",
        ),
        (
            items(40, answerable=True, name="a"),
            "no conflicting items: nothing shows what it does where chunks disagree (gold column `conflicting`)",
        ),
        (
            [*items(12, answerable=True, name="a"), *items(40, answerable=False, name="u")],
            "few answerable items (12 of prompt_version p1), expected at least 30: mind the intervals",
        ),
        (
            [*items(40, answerable=True, name="a"), *items(5, answerable=None, name="n")],
            "answerable is null in 5 of 45 items: they count for neither kind",
        ),
        (
            [*items(40, answerable=True, name="a"), *items(2, answerable=True, name="b", recall_at_k=None)],
            "gold_chunk_ids is null in 2 of 42 answerable items: recall_at_k leaves them out",
        ),
        (
            [*items(40, answerable=True, name="a"), *items(9, answerable=True, name="b", bad=None)],
            "18.4% of the claims are unscored: the rates speak of the others",
        ),
        (
            [
                *items(40, answerable=True, name="a"),
                *({**row, "prompt_version": "p2"} for row in items(30, answerable=True, name="a")),
            ],
            "the 2 groups have 30 of 40 questions in common: they differ by their items too, not by prompt_version alone",
        ),
    ],
)
def test_what_keeps_a_rate_from_being_trusted_is_told(rows, line: str):
    """Each lack of a golden set has its line."""
    unique = [row | {"request_id": str(k)} for k, row in enumerate(rows)]

    assert line in warnings(answers(*unique))


def test_groups_are_measured_apart_and_together():
    """Two prompt versions and a row without one: three groups, and their sum."""
    rows = [
        *items(4, answerable=True, name="a", prompt_version="p1"),
        *items(2, answerable=True, name="b", prompt_version="p2", bad=True),
        *items(1, answerable=True, name="c", prompt_version=None),
    ]
    document = golden.evaluate(answers(*rows), pa.nulls(7, pa.bool_()), by="prompt_version", config=CONFIG)

    assert [
        (g["name"], rate(document, "groundedness", "all", k)[0]) for k, g in enumerate(document["groups"])
    ] == [
        ("p1", 1.0),
        ("p2", 0.0),
        (None, 1.0),
    ]
    assert document["all"]["kinds"]["all"]["rates"]["groundedness"]["value"] == pytest.approx(5 / 7)


def test_by_topic_groups_by_topic(job):
    """--by names another column."""
    assert [group["name"] for group in evaluate(job, "--by", "topic")["groups"]] == ["cards"]


def test_the_file_holds_no_text_of_the_log(job):
    """It can be committed as a baseline: questions are keys, and answers are not in it."""
    evaluate(job)

    text = job["json"].read_text()
    assert "What of a1?" not in text
    assert "refund window" not in text


def version(job, name: str, n_bad: int, *settings: str) -> Path:
    """The evaluation of 40 answers to the same questions under a prompt version, `n_bad` of them false."""
    rows = [
        fixture.row(f"{name}/{k}", "false" if k < n_bad else "true", prompt_version=name, answerable=True)
        for k in range(40)
    ]
    gold = fixture.write(job["folder"] / f"{name}.parquet", rows)
    path = job["folder"] / f"{name}.json"
    assert invoke("evaluate", job["config"], gold, "--to", path, *settings).exit_code == 0
    return path


def test_a_worse_prompt_trips_the_gate_against_a_committed_baseline(job):
    """Same questions, paired: exit code 3 and the drop in points."""
    old, new = version(job, "p1", 2), version(job, "p2", 12)

    result = invoke("gate", "--baseline", old, "--candidate", new, "--max-drop", "2pt")

    assert result.exit_code == 3
    assert "p2.json: 40 answers, against p1.json: 40 answers; 40 questions of both" in result.output
    assert "failed: groundedness is 25.0 points worse (95.0% to 70.0%), 2 are allowed" in result.output


def test_a_baseline_that_was_judged_by_other_rules_opens_no_gate(job):
    """As after an upgrade: the evaluation names how it was made, and the gate what differs; one from before that has no say."""
    old = version(job, "p1", 2, "--set", "verdicts.rival_margin=2.5")
    new = version(job, "p2", 2)

    stopped = invoke("gate", "--baseline", old, "--candidate", new)
    document = json.loads(old.read_text())
    old.write_text(json.dumps(document | {"made_by": ["x"]}))
    refused = invoke("gate", "--baseline", old, "--candidate", new)
    old.write_text(json.dumps({name: value for name, value in document.items() if name != "made_by"}))
    passed = invoke("gate", "--baseline", old, "--candidate", new)

    line = "failed: p1.json was made otherwise than p2.json ([verdicts] rival_margin 2.5 -> 1.5), what moved may be the measure: evaluate it again"
    assert (stopped.exit_code, line in stopped.output) == (3, True)
    told = f"Error: {old}: made_by is \"['x']\", expected names and fingerprints; evaluate again\n"
    assert (refused.exit_code, refused.stderr) == (1, told)
    assert passed.exit_code == 0


def test_the_same_quality_passes_the_gate_out_of_an_output_root(job):
    """A candidate in an output root is paired with a baseline file by the keys of its questions."""
    old = version(job, "p1", 2)
    version(job, "p2", 2)

    result = invoke("gate", "--baseline", old, "--out", job["folder"] / "out" / "evaluate" / "p2", "--json")

    assert (result.exit_code, json.loads(result.stdout)["n_paired"]) == (0, 40)


def test_a_night_is_held_against_a_baseline_whatever_its_columns_are_called(job):
    """The golden set is read by our own names too: that says nothing of how the night was made."""
    mapped = ("--set", 'read.columns={ topic = "subject" }')
    old = version(job, "p1", 2, *mapped)
    jobs_fixture.write_log(job["folder"], [fixture.row(f"n/{k}", "true") for k in range(40)])
    ran = invoke("run", job["config"], "--date", jobs_fixture.DATE, *mapped)

    result = invoke("gate", "--baseline", old, "--out", job["folder"] / "out", "--json")

    assert (ran.exit_code, json.loads(result.stdout)["made_otherwise"]) == (0, None)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[]",
            "no claimscore evaluation, expected the JSON file that `claimscore evaluate --to FILE.json` writes",
        ),
        ('{"kind": "claimscore evaluation"}', "its items cannot be read: 'items'; evaluate again"),
        (
            '{"kind": "claimscore evaluation", "items": [{"question": "q"}]}',
            "its items cannot be read: Casting field 'state' with null values to non-nullable; evaluate again",
        ),
    ],
)
def test_a_baseline_that_is_no_evaluation_opens_no_gate(job, text: str, line: str):
    """Named, with exit code 1."""
    path = job["folder"] / "other.json"
    path.write_text(text)

    result = invoke("gate", "--baseline", path, "--candidate", path.with_name("x.json"), "--out", "nowhere")
    again = invoke("gate", "--candidate", path, "--baseline", version(job, "p1", 2))

    assert result.exit_code == 1
    assert (1, f"Error: {path}: {line}\n") == (again.exit_code, again.stderr)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--candidate", "x.json", "--date", "2026-11-28"),
            "--candidate FILE excludes the candidate's date and series",
        ),
        (
            ("--baseline", "x.json", "--baseline-series", "s"),
            "--baseline FILE excludes the baseline's date and series",
        ),
    ],
)
def test_a_side_is_a_file_or_a_day(arguments: tuple[str, ...], line: str):
    """Not both: one would be ignored in silence."""
    result = invoke("gate", *arguments)

    assert result.exit_code == 2
    assert line in " ".join(result.stderr.split())


def test_a_column_that_is_no_flag_is_named(job):
    """`conflicting` of words that are neither true nor false is an error and not a guess."""
    fixture.write(job["gold"], [{**row, "conflicting": "maybe"} for row in ROWS])

    result = invoke("evaluate", job["config"], job["gold"])

    assert result.exit_code == 1
    assert "column 'conflicting'" in result.stderr


def test_an_ending_of_another_form_is_refused_before_the_run(job):
    """A .pdf would hold HTML."""
    result = invoke("evaluate", job["config"], job["gold"], "--to", "x.pdf")

    assert result.exit_code == 1
    assert fixture.InThisProcess.n_tasks == 0


@pytest.fixture(scope="module")
def hostile() -> sheets.Sheet:
    """The sheet of an evaluation of a prompt version that is a script, an escape and markup."""
    name = "[red]" + report_fixture.HOSTILE
    rows = items(3, answerable=True, name="a", prompt_version=name)
    found = golden.evaluate(answers(*rows), pa.nulls(3, pa.bool_()), by="prompt_version", config=CONFIG)
    return golden_words.sheet_of_evaluation(
        found | {"gold": name, "series": "s", "out": "o", "failures": [name]}
    )


@pytest.mark.parametrize(("render", "forbidden"), [(sheets.html, "<script"), (sheets.markdown, "</script>")])
def test_hostile_names_stay_text(hostile: sheets.Sheet, render, forbidden: str):
    """In a page and in a chat post."""
    text = render(hostile)

    assert forbidden not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_hostile_names_do_nothing_on_a_terminal(hostile: sheets.Sheet, capsys):
    """Markup is shown, escapes and marks of direction are named."""
    sheets.print_sheet(hostile)

    text = capsys.readouterr().out
    assert text.count("[red]") >= 3
    assert "\x1b[31m" not in text
    assert "\u202e" not in text


def test_the_page_needs_nothing_and_says_its_tables(document):
    """One style sheet by its hash, no script, each table with its heads."""
    page = sheets.html(golden_words.sheet_of_evaluation(document))

    assert "<script" not in page
    assert "src=" not in page
    assert "default-src 'none'; style-src 'sha256-" in page
    assert page.count('<th scope="col">p1: ') == 5


def test_a_rate_is_shown_with_its_interval_and_what_it_was_counted_over(document):
    """On answerable items, as a row."""
    sheet = golden_words.sheet_of_evaluation(document)
    table = next(table for table in sheet.tables if table.title == "answerable items")

    (row,) = [row for row in table.rows if row[0] == "over-refusal rate, of answerable questions"]
    assert table.columns == ["rate", "p1: 3 items"]
    assert row[1].startswith("33.3% (")
    assert row[1].endswith(") of 3")


def test_a_place_below_a_bucket_keeps_the_options_of_its_uri():
    """The query stays behind the path."""
    assert apart.below("s3://b/a?region=x", "evaluate", "g") == "s3://b/a/evaluate/g?region=x"
    assert apart.below("/a/what?", "evaluate") == "/a/what?/evaluate"


@pytest.mark.parametrize(
    ("log", "name"),
    [
        ("a/Gold Set.v2.parquet", "gold-set.v2"),
        ("s3://b/gold/*.parquet?region=x", "gold"),
        ("../..", "unnamed"),
        ("/x/\x1b[31m.parquet", "x"),
    ],
)
def test_a_golden_set_is_called_by_its_file(log: str, name: str):
    """The folder of its run: never a wildcard, a way up or a control character."""
    assert apart.name_of(log) == name


def test_an_evaluation_of_which_parts_failed_opens_no_gate(job):
    """The answers that are there may be the good ones: half an evaluation is named, and never compared."""
    old, new = version(job, "p1", 2), version(job, "p2", 1)
    document = json.loads(Path(new).read_text())
    document["failures"] = ["part-0.parquet: row groups 0-0: the model ended"]
    Path(new).write_text(json.dumps(document))

    result = invoke("gate", "--baseline", old, "--candidate", new, "--max-drop", "2pt")

    assert result.exit_code == 1
    assert "1 parts of this evaluation failed" in result.stderr
