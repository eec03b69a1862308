"""What a fingerprint covers: all that can change a result, and nothing else."""

import dataclasses
from collections.abc import Mapping

import pytest
from config_fixture import CARD, write

from claimscore.jobs import config_file
from claimscore.jobs.config import (
    Combiner,
    JudgeCard,
    JudgeConfig,
    ReadConfig,
    RefereeCard,
    SamplesConfig,
    fingerprint,
)
from claimscore.jobs.config_file import load_config

SECTIONS = [*config_file._SECTIONS.values(), JudgeCard, RefereeCard]
TABLES = {
    "judge_card": JudgeCard(name="a", model="m", entailment=0.5),
    "checker_card": JudgeCard(name="b", model="m", entailment=0.5),
    "referee_card": RefereeCard(name="c", model="m"),
    "combiner": Combiner(intercept=0.0, entailment=1.0),
}
# Words that are chosen from a list: another one of the list.
OTHER_WORDS = {
    "dtype": "float32",
    "device": "cpu",
    "conflict": "unscored",
    "form": "score",
    "duplicates": "none",
}
# Numbers whose default is the most that is allowed.
OTHER_WORDS |= {"n_windows": 2, "max_claims_per_call": 4}


def least(kind):
    """An instance with a value for each field without default."""
    given = {"name": "a", "entailment": 0.5} if kind is JudgeCard else {}
    needed = [
        f.name
        for f in dataclasses.fields(kind)
        if f.default is f.default_factory is dataclasses.MISSING and f.name not in given
    ]
    return kind(**given, **dict.fromkeys(needed, "x"))


def changed(section, name):
    """The section with another valid value of one field."""
    value = getattr(section, name)
    if name in TABLES:
        other = TABLES[name]
    elif name in OTHER_WORDS:
        other = OTHER_WORDS[name]
    elif isinstance(value, bool):
        other = not value
    elif isinstance(value, int):
        other = value + 1
    elif isinstance(value, float) or value is None:
        other = (value or 0.5) * 0.999
    elif isinstance(value, str):
        other = value + "x"
    elif isinstance(value, tuple):
        other = (*value, "x")
    else:
        assert isinstance(value, Mapping)
        other = {**value, "x": ("y",) if isinstance(section, ReadConfig) else 0.5}
    return dataclasses.replace(section, **{name: other})


FIELDS = [(kind, f.name) for kind in SECTIONS for f in dataclasses.fields(kind)]


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=lambda part: getattr(part, "__name__", part))
def test_a_fingerprint_covers_each_field_but_the_unhashed(kind, name):
    """Another value is another fingerprint, unless the class says that it changes no result."""
    before = least(kind)

    is_same = fingerprint(before) == fingerprint(changed(before, name))

    assert is_same == (name in getattr(kind, "UNHASHED", ()))


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_what_is_not_hashed_is_a_field(kind):
    """A misspelled name in UNHASHED would leave nothing out."""
    assert set(getattr(kind, "UNHASHED", ())) <= {f.name for f in dataclasses.fields(kind)}


def test_a_fingerprint_does_not_depend_on_the_order_of_a_table():
    """The order of keys in the file is no change."""
    one, other = ({"a": ("x",), "b": ("y",)}, {"b": ("y",), "a": ("x",)})

    assert fingerprint(ReadConfig(logs="x", columns=one)) == fingerprint(ReadConfig(logs="x", columns=other))


def test_a_fingerprint_does_not_tell_a_whole_number_from_a_float(tmp_path):
    """`temperature = 1` and `temperature = 1.0` are the same."""
    one, other = (load_config(write(tmp_path), [f"samples.temperature={x}"]).samples for x in ("1", "1.0"))

    assert fingerprint(one) == fingerprint(other)


def test_a_fingerprint_is_sixteen_hex_digits():
    """It is part of folder names."""
    found = fingerprint(SamplesConfig())

    assert (len(found), set(found) <= set("0123456789abcdef")) == (16, True)


def test_a_presets_content_is_hashed_and_not_its_path(tmp_path):
    """A renamed preset is the same, an edited one another."""
    (tmp_path / "a.toml").write_text('[columns]\nanswer = "x"\n')
    (tmp_path / "b.toml").write_text('[columns]\nanswer = "x"\n')
    (tmp_path / "c.toml").write_text('[columns]\nanswer = "y"\n')

    a, b, c = (fingerprint(load_config(write(tmp_path), [f"read.preset={x}.toml"]).read) for x in "abc")

    assert (a == b, a == c) == (True, False)


def test_a_checkers_card_is_no_part_of_its_section(tmp_path):
    """What of the card decomposition uses (labels, longest pair, weights) is hashed beside it; thresholds are not."""
    before = fingerprint(load_config(write(tmp_path)).decompose)

    after = fingerprint(load_config(write(tmp_path, card=CARD.replace("0.7", "0.8"))).decompose)

    assert after == before


def test_a_judges_card_is_not_hashed_with_the_claims(tmp_path):
    """Another judge leaves the fingerprint of `[decompose]` alone, and so the claims."""
    (tmp_path / "other.toml").write_text(CARD.replace("stub", "other").replace("0.7", "0.8"))
    path = write(tmp_path)

    one, other = load_config(path), load_config(path, judge=tmp_path / "other.toml")

    assert fingerprint(one.decompose) == fingerprint(other.decompose)
    assert fingerprint(one.card) != fingerprint(other.card)


def test_the_judge_section_does_not_hash_its_card():
    """The card is hashed by itself, once, into the name of the series."""
    assert fingerprint(JudgeConfig(card="x")) == fingerprint(
        JudgeConfig(card="x", judge_card=TABLES["judge_card"])
    )
