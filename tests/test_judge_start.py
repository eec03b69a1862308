"""What a judge settles before its first pair: class names, the self-test, lengths; and the cards that ship."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import tiny_deberta as tiny
from safetensors.torch import load_file, save_file

from claimscore.jobs.config_file import load_card
from claimscore.jobs.errors import ModelError
from claimscore.jobs.judge import SELF_TEST, class_columns
from claimscore.jobs.tokenizer import load_tokenizer

ROOT = Path(__file__).parents[1]


make = tiny.make_judge


def self_test_folder(tmp_path, classes):
    """A checkpoint that gives the three pairs of the self-test the classes of these indices."""
    folder = tiny.write_tiny(tmp_path)
    tokenizer = load_tokenizer(str(folder))
    texts = tokenizer.encode(pa.array([text for premise, claim, _ in SELF_TEST for text in (premise, claim)]))
    rows = texts["ids"].to_pylist()
    packed = [[1, *rows[2 * i], 2, *rows[2 * i + 1], 2] for i in range(len(SELF_TEST))]
    return tiny.pass_self_test(folder, list(zip(packed, classes, strict=True)))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["contradiction", "entailment", "neutral"], (1, 2, 0)),
        (["entailment", "neutral", "contradiction"], (0, 1, 2)),
        (["CONTRADICTION", "Neutral", "ENTAILMENT"], (2, 1, 0)),
        (["not_entailment", "entailment"], (1, 0)),
        (["Supported", "not supported"], (0, 1)),
        (["unsupported", "supported"], (1, 0)),
        (["entailment", "not-entailment"], (0, 1)),
    ],
)
def test_classes_are_found_by_name_in_any_order_and_case(names, expected):
    """The index of each label comes from its name."""
    assert expected == class_columns("judge 'x'", names)


@pytest.mark.parametrize(
    "names",
    [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["LABEL_0", "LABEL_1"],
        ["entailment", "neutral", "contradicts"],
        ["entailment", "entailment", "neutral"],
        ["entailment", "contradiction"],
        ["entailment"],
        [],
    ],
)
def test_other_class_names_are_refused_with_what_was_found(names):
    """A name that is not known is never guessed at."""
    with pytest.raises(ModelError) as caught:
        class_columns("judge 'x'", names)

    assert f"judge 'x': classes are {names!r}, expected entailment, neutral, contradiction" in str(
        caught.value
    )


def test_nameless_classes_need_names_on_the_card(tmp_path):
    """LABEL_0 and its kin are refused at start, not at the first pair."""
    folder = tiny.write_tiny(tmp_path, id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})

    with pytest.raises(ModelError, match=r"classes are \['LABEL_0', 'LABEL_1', 'LABEL_2'\]"):
        make(folder)


@pytest.mark.parametrize(
    "labels", [("entailment", "neutral"), ("entailment", "neutral", "contradiction", "x")]
)
def test_a_card_names_as_many_classes_as_there_are(tmp_path, labels):
    """A card with too few or too many labels is refused."""
    with pytest.raises(ModelError, match=rf"{len(labels)} labels, expected 3"):
        make(tiny.write_tiny(tmp_path), labels=labels)


def test_a_judge_that_passes_the_self_test_is_made(tmp_path):
    """Weights that score the known pairs as they should are accepted."""
    assert make(self_test_folder(tmp_path, (1, 2, 0)), self_test=True).dtype == "float32"


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (("entailment", "contradiction", "neutral"), "expected entailment"),
        (("neutral", "entailment", "contradiction"), "expected contradiction"),
    ],
    ids=["entailment-moved", "neutral-and-contradiction-swapped"],
)
def test_wrong_class_names_fail_the_self_test(tmp_path, labels, found):
    """Names in another order than the weights' are caught before any pair is scored."""
    with pytest.raises(ModelError, match=found) as caught:
        make(self_test_folder(tmp_path, (1, 2, 0)), labels=labels, self_test=True)

    assert "judge 'tiny': self-test in float32 on cpu: 'The shop is " in str(caught.value)


def test_a_judge_that_entails_everything_fails_the_self_test(tmp_path):
    """A head that always says entailment is no judge."""
    with pytest.raises(ModelError, match=r"'The volcano erupted last night.' .* expected neutral"):
        make(self_test_folder(tmp_path, (1, 1, 0)), self_test=True)


def test_weights_that_overflow_fail_the_self_test(tmp_path):
    """Scores that are not finite are named with the dtype that made them."""
    folder = self_test_folder(tmp_path, (1, 2, 0))
    weights = load_file(folder / "model.safetensors")
    weights["deberta.encoder.layer.1.intermediate.dense.weight"] *= 1e7
    save_file(weights, folder / "model.safetensors")

    with pytest.raises(ModelError, match=r"self-test in float16 on cpu: scores are not finite"):
        make(folder, self_test=True, dtype="float16")


def test_a_card_may_not_ask_for_more_positions_than_there_are(tmp_path):
    """With absolute positions, the card's longest pair must fit."""
    folder = tiny.write_tiny(tmp_path, position_biased_input=True, max_position_embeddings=64)

    with pytest.raises(ModelError, match=r"max_pair_tokens is 512, expected at most 64"):
        make(folder)


def test_a_tokenizer_of_another_checkpoint_is_refused(tmp_path):
    """More token ids than embeddings means two checkpoints were mixed."""
    folder = tiny.write_tiny(tmp_path, vocab_size=40)

    with pytest.raises(ModelError, match=r"the tokenizer has \d+ ids, expected at most 40"):
        make(folder)


def test_importing_the_judge_loads_no_torch():
    """Tokenising and fingerprinting do not pay for torch."""
    code = "import sys, claimscore.jobs.judge; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


CARDS = sorted((ROOT / "configs" / "judges").glob("*.toml"))


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_every_card_loads_and_is_named_after_its_file(path):
    """A shipped card is valid, says where its weights come from, and whether its thresholds were fitted."""
    found = load_card(path)

    assert path.stem == found.name
    assert found.source
    assert found.licence
    if found.labels:
        class_columns(found.name, found.labels)
