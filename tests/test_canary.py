"""The canary: what moved between two nights, what is named as the cause, and what is no drift."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import jobs_fixture
import numpy as np
import pyarrow as pa
import pytest
import stub_models
import tiny_deberta
from click.testing import CliRunner, Result

from claimscore.jobs import canary, canary_run, judge
from claimscore.jobs.actors import JudgeProxy
from claimscore.jobs.cli import main
from claimscore.jobs.config import Combiner, Config
from claimscore.jobs.errors import InputError
from claimscore.jobs.thresholds import Thresholds

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "configs" / "canary.jsonl"
ENVIRONMENT = {"judge": "stub", "dtype": "float32", "torch": "2.6.0", "tokenizers": "0.21"}


THRESHOLDS = Thresholds(entailment=0.6, contradiction=0.7)


def record(**changes: object) -> dict:
    """A night of three pairs."""
    pairs = {
        name: {"content": name, "tokens": "t", "n_tokens": 9, "overlap": 0.5, "n_missing_names": 0}
        | {"label": "entailment", "p": p, "error": None}
        for name, p in (("a", [0.9, 0.05, 0.05]), ("b", [0.61, 0.2, 0.19]), ("c", [0.1, 0.1, 0.8]))
    }
    return {
        "date": "2026-11-01",
        "series": "stub-1",
        "environment": dict(ENVIRONMENT),
        "pairs": pairs,
    } | changes


def moved(by: float, key: str = "b", **changes: object) -> dict:
    """The night after, one pair scored otherwise."""
    now = copy.deepcopy(record(**changes))
    now["pairs"][key]["p"][0] -= by
    return now


def test_the_same_scores_are_no_drift():
    """Nothing is different, nothing is said."""
    found = canary.compare(record(), record(), THRESHOLDS)

    assert (found["drifted"], found["changed"], found["moved"], found["max_difference"]) == (
        False,
        [],
        [],
        0.0,
    )


def test_a_pair_that_moved_is_named():
    """By how much, and that it now means something else."""
    found = canary.compare(record(), moved(0.05), THRESHOLDS)

    assert found["drifted"]
    assert [(row["id"], row["difference"]) for row in found["moved"]] == [("b", 0.05)]
    assert [(row["decision_before"], row["decision_now"]) for row in found["flipped"]] == [
        ("entailment", "neutral")
    ]


@pytest.mark.parametrize(("dtype", "drifted"), [("float32", True), ("bfloat16", False)])
def test_rounding_is_what_the_dtype_makes_it(dtype: str, drifted: bool):
    """0.015 is nothing in bfloat16 and much in float32; a decision that it flips is told all the same."""
    environment = ENVIRONMENT | {"dtype": dtype}

    found = canary.compare(record(environment=environment), moved(0.015, environment=environment), THRESHOLDS)

    assert (found["drifted"], len(found["flipped"])) == (drifted, 1)


def test_a_library_that_changed_nothing_is_named_and_no_drift():
    """A new version with the old scores is good news."""
    found = canary.compare(
        record(), record(environment=ENVIRONMENT | {"torch": "2.7.0", "device": "cpu"}), THRESHOLDS
    )

    assert not found["drifted"]
    assert found["changed"] == [
        {"what": "torch", "before": "2.6.0", "now": "2.7.0"},
        {"what": "device", "before": None, "now": "cpu"},
    ]


def test_other_tokens_are_drift_even_with_the_same_scores():
    """A tokenizer that cuts words otherwise may be right on these pairs alone."""
    now = record()
    now["pairs"]["a"]["tokens"] = "other"

    found = canary.compare(record(), now, THRESHOLDS)

    assert (found["drifted"], found["retokenized"]) == (True, ["a"])


def test_a_new_threshold_is_no_drift_of_the_judge():
    """Both nights are read at tonight's thresholds."""
    found = canary.compare(record(), record(), Thresholds(entailment=0.95, contradiction=0.7))

    assert (found["drifted"], found["flipped"]) == (False, [])


def test_a_combiner_decides_as_in_a_run():
    """Its threshold is for what it makes of both probabilities, shared words and missing names, not for P(entailment)."""
    combiner = Combiner(intercept=-4.0, entailment=1.0, overlap=6.0, names=-2.0)
    thresholds = Thresholds(entailment=0.5, contradiction=0.7, combiner=combiner, least=0.3)
    probs = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8], None]
    rows = [
        {"overlap": overlap, "n_missing_names": names}
        for overlap, names in ((1.0, 0), (1.0, 2), (0.0, 0), (1.0, 0), (0.2, 0), (1.0, 0))
    ]

    found = canary.decisions(rows, probs, thresholds)

    assert found == ["entailment", "neutral", "neutral", "neutral", "contradiction", "no score"]


def test_a_pair_keeps_what_a_combiner_weighs():
    """The share of the claim's tokens that the premise holds, and how many of its names it lacks."""
    pair = canary.Pair("a", "The Aurum card is free", "The Zenith card is free", "neutral")

    row = canary.score([pair], stub_models.StubJudge(), 512, 3)["a"]

    assert (row["overlap"], row["n_missing_names"]) == (0.8, 1)


def test_a_score_that_is_gone_is_the_largest_difference():
    """A pair that gives no number any more is drift."""
    now = record()
    now["pairs"]["c"] |= {"p": None, "error": canary.NOT_FINITE}

    found = canary.compare(record(), now, THRESHOLDS)

    assert (found["max_difference"], found["max_pair"], found["drifted"]) == (1.0, "c", True)


def test_pairs_that_were_rewritten_are_not_compared():
    """Another text under the same id is another pair; if none is left, that is drift and not silence."""
    now = record()
    for row in now["pairs"].values():
        row["content"] += "!"

    found = canary.compare(record(), now, THRESHOLDS)

    assert (found["n_compared"], found["new"], found["gone"], found["drifted"]) == (
        0,
        ["a", "b", "c"],
        ["a", "b", "c"],
        True,
    )


def test_shipped_pairs_are_of_every_label_and_length():
    """Sixty pairs, of a line to several hundred words, in every label."""
    pairs = canary.read_pairs(SHIPPED)
    words = [len(pair.premise.split()) for pair in pairs]

    assert len(pairs) == 60
    assert (min(words) < 10, max(words) > 200) == (True, True)
    assert {pair.label for pair in pairs} == {"entailment", "neutral", "contradiction"}


@pytest.mark.parametrize(
    "line", ["no json", "[1]", '{"id": "a", "premise": "x", "claim": "y", "label": "yes"}', '{"id": 1}']
)
def test_a_line_that_is_no_pair_is_named(line: str, tmp_path: Path):
    """With its number and what it should be."""
    (tmp_path / "pairs.jsonl").write_text(f"\n{line}\n")

    with pytest.raises(
        InputError, match=r"line 2: .* expected one JSON object of texts id, premise, claim, label"
    ):
        canary.read_pairs(tmp_path / "pairs.jsonl")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A deployment with the shipped pairs beside it."""
    config = jobs_fixture.make_config(tmp_path)
    (tmp_path / "canary.jsonl").write_bytes(SHIPPED.read_bytes())
    return config


class Drifting(stub_models.StubJudge):
    """Gives every probability of entailment a little less than the night before."""

    def __init__(self, less: float) -> None:
        super().__init__()
        self.less = less

    def probabilities(self, premise_ids: pa.ListArray, claim_ids: pa.ListArray) -> np.ndarray:
        out = super().probabilities(premise_ids, claim_ids)
        out[:, 0] *= 1 - self.less
        return out


def night(config: Config, date: str, *, less: float = 0.0, **environment: str) -> dict:
    """One night's canary."""
    return canary_run.run(config, date, judge=Drifting(less), environment=ENVIRONMENT | environment)


def test_the_first_night_has_nothing_to_compare(config: Config):
    """Its record is kept for the next."""
    document = night(config, "2026-11-01")

    assert document["against"] is None
    assert json.loads(Path(document["record"]).read_text())["pairs"]["short-01"]["error"] is None
    assert Path(document["record"]).parent.parent == Path(config.store.out) / "state" / "canary"


def test_each_night_stands_against_the_newest_before_it(config: Config):
    """A night that was left out is skipped, a rerun does not stand against itself."""
    night(config, "2026-11-01")
    night(config, "2026-11-03", less=0.1)

    again = night(config, "2026-11-03", less=0.1)
    after = night(config, "2026-11-04", less=0.1)

    assert (again["against"]["before"]["date"], again["against"]["drifted"]) == ("2026-11-01", True)
    assert (after["against"]["before"]["date"], after["against"]["drifted"]) == ("2026-11-03", False)


def test_a_creep_shows_against_the_first_record(config: Config):
    """Ten nights of a little less each are no drift from night to night, and much from the first."""
    for k in range(10):
        document = night(config, f"2026-11-{k + 1:02}", less=0.0009 * k)

    assert not document["against"]["drifted"]
    assert document["since_first"]["drifted"]
    assert document["since_first"]["before"]["date"] == "2026-11-01"


def test_another_judge_is_compared_with_the_last_night_of_the_old_one(config: Config, tmp_path: Path):
    """New weights are a new series; what they change is told, and which they are."""
    night(config, "2026-11-01", **{"weights and config": "aaaa"})
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other")

    document = night(config, "2026-11-02", less=0.3, **{"weights and config": "bbbb"})

    assert document["against"]["before"]["series"] != document["series"]
    assert {"what": "weights and config", "before": "aaaa", "now": "bbbb"} in document["against"]["changed"]


def test_a_damaged_record_is_left_out(config: Config):
    """Half a file is no night."""
    record = Path(night(config, "2026-11-01")["record"])
    record.write_text("{")

    assert night(config, "2026-11-02")["against"] is None


def test_a_pair_longer_than_the_judge_takes_is_said(config: Config):
    """It has no score, and is counted."""
    short = jobs_fixture.make_config(Path(config.path).parent, "evidence.max_pair_tokens=80")

    document = night(short, "2026-11-01")

    assert document["agreement"]["no_score"] > 5


def test_a_real_judge_scores_the_same_twice(tmp_path: Path):
    """A tiny checkpoint on the CPU: two processes' worth of loading, bitwise equal records."""
    folder = tiny_deberta.write_tiny(tmp_path / "tiny")
    pairs = canary.read_pairs(SHIPPED)[:8]

    def scored() -> dict:
        tiny = tiny_deberta.make_judge(folder)
        return canary.score(pairs, JudgeProxy(tiny.probabilities, str(folder)), 512, 3)

    assert scored() == scored()


def test_a_real_judge_in_another_dtype_moves(tmp_path: Path):
    """bfloat16 is seen at once, and named; nobody has to guess why a metric moved."""
    folder = tiny_deberta.write_tiny(tmp_path / "tiny")
    pairs = canary.read_pairs(SHIPPED)[:8]
    nights = []
    for dtype in ("float32", "bfloat16"):
        tiny = tiny_deberta.make_judge(folder, dtype=dtype)
        scores = canary.score(pairs, JudgeProxy(tiny.probabilities, str(folder)), 512, 3)
        nights.append(
            record(pairs=scores, environment=ENVIRONMENT | {"dtype": tiny.dtype, "device": tiny.device_name})
        )

    found = canary.compare(*nights, THRESHOLDS)

    assert found["changed"] == [{"what": "dtype", "before": "float32", "now": "bfloat16"}]
    assert found["max_difference"] > 0


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, config: Config):
    """The command in this process, on a stub judge whose scores shrink by `less`."""

    def call(*arguments: str, less: float = 0.0) -> Result:
        monkeypatch.setattr(canary_run, "_loaded", lambda *_: (Drifting(less), ENVIRONMENT))
        return CliRunner().invoke(main, ["canary", config.path, *arguments])

    return call


def test_drift_ends_with_3_and_names_the_pairs(invoke):
    """Also with --quiet: silence is for nights without drift."""
    first = invoke("--date", "2026-11-01", "--quiet")
    assert (first.exit_code, first.output) == (0, "")

    result = invoke("--date", "2026-11-02", "--quiet", less=0.2)

    assert result.exit_code == 3
    assert "DRIFT since 2026-11-01 (stub-" in result.output
    assert "short-01" in result.output


def test_the_document_is_json(invoke):
    """With every pair that moved."""
    invoke("--date", "2026-11-01")

    result = invoke("--date", "2026-11-02", "--json", less=0.2)

    document = json.loads(result.stdout)
    assert (result.exit_code, document["against"]["drifted"]) == (3, True)
    assert len(document["against"]["moved"]) > 30


def test_missing_pairs_name_the_option(invoke, config: Config):
    """The file that is looked for, and how to name another."""
    (Path(config.path).parent / "canary.jsonl").unlink()

    result = invoke()

    assert (result.exit_code, "give --pairs, configs/canary.jsonl is one" in result.stderr) == (1, True)


def test_what_surrounds_a_judge_is_asked_of_it(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Weights, tokenizer, dtype, device, kernels and libraries: everything that may change a score has a name."""
    tiny_deberta.write_tiny(tmp_path / "model")
    monkeypatch.setattr(judge.Judge, "_self_test", lambda _: None)

    _, environment = canary_run._loaded(config, "w")

    named = {
        "judge",
        "weights and config",
        "tokenizer",
        "dtype",
        "device",
        "kernels",
        "python",
        "torch",
        "tokenizers",
    }
    assert named <= environment.keys()
    assert environment["device"].startswith("cpu (")
