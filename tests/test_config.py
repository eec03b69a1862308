"""A deployment's TOML: who wins, where paths lead, and what a user can read about it."""

import ast
import dataclasses
import inspect
import json
from pathlib import Path

import pytest
from config_fixture import CARD, write

from claimscore.jobs import config as config_module
from claimscore.jobs import config_file
from claimscore.jobs.config import Combiner, Config
from claimscore.jobs.config_file import as_toml_like, load_card, load_config
from claimscore.jobs.errors import ConfigError

ROOT = Path(__file__).parents[1]


def test_the_least_file_has_every_default(tmp_path):
    """Four sections with the keys without default are a deployment."""
    config = load_config(write(tmp_path))

    assert config.metrics == config_module.MetricsConfig()


def test_a_file_goes_before_a_default(tmp_path):
    """What the file says counts."""
    assert load_config(write(tmp_path, metrics="seed = 5")).metrics.seed == 5


def test_an_override_goes_before_the_file(tmp_path):
    """`--set` has the last word."""
    assert load_config(write(tmp_path, metrics="seed = 5"), ["metrics.seed=6"]).metrics.seed == 6


def test_the_last_override_of_a_key_counts(tmp_path):
    """Of two overrides of one key the later one holds."""
    assert load_config(write(tmp_path), ["metrics.seed=6", "metrics.seed=7"]).metrics.seed == 7


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("judge.dtype=bfloat16", "bfloat16"),
        ('judge.dtype="bfloat16"', "bfloat16"),
        (" judge.dtype = bfloat16 ", "bfloat16"),
        ("judge.budget_tokens=32_768", 32_768),
        ("citations.parentheses=true", True),
        ("triage.topics=['fees', 'doses']", ("fees", "doses")),
        ("triage.topics=fees", ("fees",)),
        ("policy.topic_bars={fees = 1}", {"fees": 1.0}),
        ("samples.model=", ""),
        ("store.out=s3://bucket/a=b", "s3://bucket/a=b"),
    ],
)
def test_an_override_is_toml_or_a_bare_word(tmp_path, override, expected):
    """A value is read as TOML; what is not TOML is a string."""
    section, name = override.partition("=")[0].strip().split(".")

    assert getattr(getattr(load_config(write(tmp_path), [override]), section), name) == expected


def test_a_judge_on_the_command_line_goes_before_the_card_of_the_file(tmp_path, monkeypatch):
    """`judge` names a card from the working folder, not from the file's."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.toml").write_text(CARD.replace("stub", "other"))
    monkeypatch.chdir(elsewhere)

    assert load_config(write(tmp_path), judge="other.toml").card.name == "other"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path, monkeypatch):
    """The working folder does not matter to a deployment."""
    path = write(tmp_path)
    monkeypatch.chdir("/")

    config = load_config(path)

    assert (config.read.logs, config.store.out) == (str(tmp_path / "log.parquet"), str(tmp_path / "out"))


@pytest.mark.parametrize("out", ["s3://bucket/prefix", "/somewhere/else"])
def test_a_url_or_absolute_path_stays(tmp_path, out):
    """Only a relative path is looked for beside the file."""
    assert load_config(write(tmp_path), [f"store.out={out}"]).store.out == out


def test_a_model_is_a_hub_id_unless_its_folder_exists(tmp_path):
    """The same word is a folder beside the file where there is one."""
    path = write(tmp_path)
    before = load_config(path).decompose.model
    (tmp_path / "some" / "llm").mkdir(parents=True)

    assert (before, load_config(path).decompose.model) == ("some/llm", str(tmp_path / "some" / "llm"))


def test_a_model_that_looks_like_a_path_is_one(tmp_path):
    """`./model` is never taken for a hub id, so that a missing folder is named as such."""
    config = load_config(write(tmp_path), ["samples.model=./model"])

    assert config.samples.model == str(tmp_path / "model")


def test_a_preset_gives_way_to_the_file(tmp_path):
    """Columns come from the preset, and those that the file names itself from the file."""
    (tmp_path / "tool.toml").write_text('[columns]\nanswer = ["response"]\nquestion = "user_input"\n')
    path = write(tmp_path, read='preset = "tool.toml"\ncolumns = {answer = "reply"}')

    assert load_config(path).read.columns == {"answer": ("reply",), "question": ("user_input",)}


def test_an_environment_variable_changes_nothing(tmp_path, monkeypatch):
    """A path with a variable in it stays as it is written."""
    monkeypatch.setenv("PLACE", "elsewhere")

    assert load_config(write(tmp_path), ["store.out=$PLACE"]).store.out == str(tmp_path / "$PLACE")


def test_a_card_finds_its_model_beside_itself(tmp_path):
    """A relative model is a folder beside the card, not beside the deployment."""
    cards = tmp_path / "cards"
    (cards / "weights").mkdir(parents=True)
    (cards / "card.toml").write_text(CARD.replace("some/hub-id", "weights"))

    assert load_card(cards / "card.toml").model == str(cards / "weights")


def test_the_effective_config_is_plain_and_whole(tmp_path):
    """`run.json` can hold every section and key, but the cards that are read from files."""
    shown = as_toml_like(load_config(write(tmp_path)))

    kinds = config_file._SECTIONS
    assert json.loads(json.dumps(shown)) == shown
    assert shown.keys() == kinds.keys()
    assert all(
        set(shown[name]) == {f.name for f in dataclasses.fields(kind)} - config_file._NOT_IN_FILE
        for name, kind in kinds.items()
    )


def test_every_key_is_explained():
    """Under each field of a section stands what it means: the reference that users read."""
    tree = ast.parse(inspect.getsource(config_module))
    unexplained = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name != "Config":
            for this, after in zip(node.body, [*node.body[1:], None], strict=True):
                is_key = isinstance(this, ast.AnnAssign) and this.target.id != "UNHASHED"
                explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                if is_key and not explained:
                    unexplained.append(f"{node.name}.{this.target.id}")
    assert unexplained == []


def test_a_config_cannot_be_changed(tmp_path):
    """What was fingerprinted is what is used."""
    config = load_config(write(tmp_path))

    with pytest.raises(dataclasses.FrozenInstanceError):
        config.judge.dtype = "float16"


def test_config_and_sections_name_the_same_sections():
    """Every field of Config but the path is a section of the file."""
    assert {f.name for f in dataclasses.fields(Config)} - {"path"} == set(config_file._SECTIONS)


def test_a_card_may_carry_a_combiner(tmp_path):
    """The fitted weights of a card are read, and a misspelt one is an error that names the nearest."""
    (tmp_path / "card.toml").write_text(CARD + "[combiner]\nintercept = -2\nentailment = 1\noverlap = 3.5\n")
    assert load_card(tmp_path / "card.toml").combiner == Combiner(intercept=-2.0, entailment=1.0, overlap=3.5)

    (tmp_path / "card.toml").write_text(CARD + "[combiner]\nintercept = -2\nentailmnt = 1\n")
    with pytest.raises(ConfigError, match="combiner: has no key 'entailmnt'; did you mean 'entailment'"):
        load_card(tmp_path / "card.toml")


def test_a_policy_file_gives_way_to_the_file(tmp_path):
    """Keys come from the policy's file, and those that the deployment gives itself from there."""
    (tmp_path / "strict.toml").write_text("refuse_below = 0.9\ncontradicted_refuses = true\n")
    path = write(tmp_path)

    config = load_config(path, ["policy.preset=strict.toml", "policy.refuse_below=0.8"])

    assert (config.policy.refuse_below, config.policy.contradicted_refuses) == (0.8, True)


def test_a_mistake_in_a_policy_file_is_told_with_its_name(tmp_path):
    """The policy's own path stands in the message, not the deployment's."""
    (tmp_path / "strict.toml").write_text("refuse_belw = 0.9\n")

    with pytest.raises(
        ConfigError, match=r"strict\.toml: has no key 'refuse_belw'; did you mean 'refuse_below'"
    ):
        load_config(write(tmp_path), ["policy.preset=strict.toml"])


@pytest.mark.parametrize(
    "policy", sorted((ROOT / "configs" / "policies").glob("*.toml")), ids=lambda f: f.stem
)
def test_a_shipped_policy_is_read(tmp_path, policy):
    """Each policy of configs/ is valid and says what a refused answer would have said."""
    assert load_config(write(tmp_path), [f"policy.preset={policy}"]).policy.fallback_text
