"""What a deployment's TOML is refused for, and in which words."""

import pytest
from config_fixture import CARD, NEEDED, write

from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import ConfigError


def refusal(path, *overrides, judge=None):
    """The words with which a file is refused, its own path as FILE."""
    with pytest.raises(ConfigError) as err:
        load_config(path, overrides, judge=judge)
    return str(err.value).replace(str(path), "FILE").replace(str(path.parent), "FOLDER")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"metrics": "sed = 5"},
            "FILE: [metrics] has no key 'sed'; did you mean 'seed'?",
        ),
        (
            {"metrics": "zzz = 5"},
            "FILE: [metrics] has no key 'zzz'; known: n_resamples, seed",
        ),
        ({"metric": ""}, "FILE: no section [metric]; did you mean 'metrics'?"),
        (
            {"zzz": ""},
            (
                "FILE: no section [zzz]; known: citations, cluster, decompose, evidence, judge, metrics, policy, "
                "privacy, read, referee, samples, segment, store, triage, verdicts"
            ),
        ),
        (
            {"decompose": 'checker_card = "x"'},
            "FILE: [decompose] has no key 'checker_card'; did you mean 'checker'?",
        ),
        ({"metrics": 'seed = "5"'}, "FILE: [metrics] seed = '5', expected int"),
        ({"metrics": "seed = true"}, "FILE: [metrics] seed = True, expected int"),
        ({"metrics": "seed = 5.0"}, "FILE: [metrics] seed = 5.0, expected int"),
        ({"citations": "parentheses = 1"}, "FILE: [citations] parentheses = 1, expected bool"),
        ({"segment": "language = 1"}, "FILE: [segment] language = 1, expected str"),
        ({"decompose": "deadline_s = true"}, "FILE: [decompose] deadline_s = True, expected float"),
        ({"decompose": "deadline_s = nan"}, "FILE: [decompose] deadline_s = nan, expected a finite number"),
        ({"verdicts": "entailment = 'high'"}, "FILE: [verdicts] entailment = 'high', expected float"),
        ({"triage": "topics = 1"}, "FILE: [triage] topics = 1, expected a list"),
        ({"triage": "topics = [1]"}, "FILE: [triage] topics = 1, expected str"),
        ({"policy": "topic_bars = 1"}, "FILE: [policy] topic_bars = 1, expected a table"),
        ({"policy": "topic_bars = {fees = 'x'}"}, "FILE: [policy] topic_bars.fees = 'x', expected float"),
        ({"read": "columns = {answer = 1}"}, "FILE: [read] columns.answer = 1, expected a list"),
    ],
)
def test_a_key_or_type_that_is_wrong_is_named(tmp_path, sections, message):
    """Unknown keys and wrong types are refused with where, what was found and what was expected."""
    assert refusal(write(tmp_path, **sections)) == message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("read.shard_rows=0", "[read] shard_rows = 0, expected at least 1"),
        ("segment.context_chars=-1", "[segment] context_chars = -1, expected at least 0"),
        ("decompose.checker_entails=1.5", "[decompose] checker_entails = 1.5, expected 0 to 1"),
        ("decompose.duplicates_above=2", "[decompose] duplicates_above = 2.0, expected 0 to 1"),
        (
            "decompose.duplicates=yes",
            "[decompose] duplicates = 'yes', expected one of entailed, verbatim, none",
        ),
        ("decompose.deadline_s=0", "[decompose] deadline_s = 0.0, expected at least 0.001"),
        (
            "decompose.max_output_tokens=2048",
            (
                "[decompose] max_output_tokens = 2048 leaves no prompt in max_model_tokens = 2048; "
                "raise the window or lower the limit"
            ),
        ),
        ("evidence.carried_at=-0.5", "[evidence] carried_at = -0.5, expected 0 to 1"),
        (
            "evidence.overlap_sentences=3",
            "[evidence] overlap_sentences = 3 is not below window_sentences = 3; the windows would never move on",
        ),
        (
            "evidence.min_premise_tokens=510",
            (
                "[evidence] min_premise_tokens = 510 leaves no claim in max_pair_tokens = 512; "
                "lower the one or raise the other"
            ),
        ),
        ("judge.budget_tokens=511", "[judge] budget_tokens = 511, expected at least 512"),
        ("judge.dtype=int8", "[judge] dtype = 'int8', expected one of auto, float32, bfloat16, float16"),
        ("judge.device=tpu", "[judge] device = 'tpu', expected one of auto, cpu, cuda"),
        ("triage.max_share=2", "[triage] max_share = 2.0, expected 0 to 1"),
        ("samples.k=0", "[samples] k = 0, expected at least 1"),
        ("samples.temperature=0", "[samples] temperature = 0.0, expected above 0; equal samples say nothing"),
        ("verdicts.entailment=1.1", "[verdicts] entailment = 1.1, expected 0 to 1"),
        (
            "verdicts.conflict=fine",
            "[verdicts] conflict = 'fine', expected one of supported, contradicted, unscored",
        ),
        (
            "policy.topic_bars={fees = 100}",
            "[policy] topic_bars.fees = 100.0, expected 0 to 1; it is a groundedness",
        ),
        ("policy.deliver_at=0.4", "[policy] refuse_below = 0.5 is above deliver_at = 0.4; swap them"),
        ("metrics.n_resamples=99", "[metrics] n_resamples = 99, expected at least 100"),
        ("store.out=''", "[store] out is empty, expected a folder or s3://bucket/prefix"),
        ("verdicts.rival_margin=-1", "[verdicts] rival_margin = -1.0, expected at least 0"),
        (
            "verdicts.entailment=0.95",
            (
                "the entailment threshold 0.95 is above [evidence] carried_at = 0.9: a premise between them would neither "
                "support nor be followed by other covers; raise carried_at"
            ),
        ),
        (
            "verdicts.entailment=0.2",
            (
                "the entailment threshold 0.2 is below [evidence] rivals_above = 0.3: a claim between them would be "
                "supported untested; lower rivals_above"
            ),
        ),
        ("store.max_unscored_fraction=-1", "[store] max_unscored_fraction = -1.0, expected 0 to 1"),
        ("cluster.retries=-1", "[cluster] retries = -1, expected at least 0"),
    ],
)
def test_a_value_out_of_range_is_refused(tmp_path, override, message):
    """A value that a section cannot work with is refused before anything runs."""
    assert refusal(write(tmp_path), override) == f"FILE: {message}"


@pytest.mark.parametrize("section", NEEDED)
def test_a_key_without_default_is_asked_for(tmp_path, section):
    """A section that must say something says what is missing."""
    path = write(tmp_path)
    key = NEEDED[section].partition(" ")[0]
    path.write_text(path.read_text().replace(NEEDED[section], ""))

    assert refusal(path) == f"FILE: [{section}] needs the key {key!r}; add it"


@pytest.mark.parametrize(
    "override",
    [
        "",
        "judge",
        "judge.dtype",
        "dtype=int8",
        ".dtype=int8",
        "judge.=int8",
        "=int8",
        "judge.dtype='a'\njudge.x=1",
    ],
)
def test_an_override_of_another_form_is_refused(tmp_path, override):
    """The form of an override is said with an example."""
    assert refusal(write(tmp_path), override) == (
        f"--set {override!r}: expected section.key=value, as in judge.budget_tokens=32768"
    )


def test_an_override_of_an_unknown_key_is_refused(tmp_path):
    """A typo on the command line is refused as one in the file."""
    assert refusal(write(tmp_path), "judge.dtyp=float16") == (
        "FILE: [judge] has no key 'dtyp'; did you mean 'dtype'?"
    )


@pytest.mark.parametrize(
    ("overrides", "judge"), [((), None), (["judge.dtype=auto"], None), ((), "card.toml")]
)
def test_a_section_that_is_no_table_is_refused(tmp_path, overrides, judge):
    """`judge = 3` is named, whether or not something is to be put into it."""
    path = write(tmp_path)
    path.write_text("judge = 3\n" + path.read_text().replace("[judge]\n" + NEEDED["judge"], ""))

    assert refusal(path, *overrides, judge=judge) == "FILE: [judge] is 3, expected a table of keys"


def test_a_missing_file_is_named(tmp_path):
    """A path that is not there is a one-line error."""
    assert refusal(tmp_path / "job.toml") == "FILE: no such file; give the path of a deployment's TOML"


def test_a_file_that_is_not_toml_says_where(tmp_path):
    """The parser's line and column are in the message."""
    path = tmp_path / "job.toml"
    path.write_text("[read\n")

    assert (
        refusal(path)
        == "FILE: not TOML: Expected ']' at the end of a table declaration (at line 1, column 6)"
    )


def test_a_file_that_is_not_text_is_refused(tmp_path):
    """Bytes that are no UTF-8 are a named error."""
    path = tmp_path / "job.toml"
    path.write_bytes(b"\xff\xfe")

    assert refusal(path) == (
        "FILE: cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte; "
        "expected a UTF-8 TOML file"
    )


def test_a_folder_is_no_file(tmp_path):
    """A folder in the place of a file is a named error."""
    (tmp_path / "job.toml").mkdir()

    assert refusal(tmp_path / "job.toml") == (
        "FILE: cannot be read: Is a directory; expected a UTF-8 TOML file"
    )


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (CARD.replace('name = "stub"', ""), "CARD: needs the key 'name'; add it"),
        (CARD + "entailmen = 0.5", "CARD: has no key 'entailmen'; did you mean 'entailment'?"),
        (CARD.replace("0.7", "'0.7'"), "CARD: entailment = '0.7', expected float"),
        (CARD.replace("0.7", "7"), "CARD: [judge card 'stub'] entailment = 7.0, expected 0 to 1"),
        (
            CARD.replace("stub", "../Stub"),
            "CARD: judge card: name is '../Stub', expected lower-case letters, digits, - and _; it names a folder",
        ),
        (
            CARD.replace("stub", ""),
            "CARD: judge card: name is '', expected lower-case letters, digits, - and _; it names a folder",
        ),
    ],
)
def test_a_wrong_card_is_refused(tmp_path, card, message):
    """The card's own path stands in the message."""
    path = write(tmp_path, card=card)

    assert refusal(path).replace("FOLDER/card.toml", "CARD") == message


def test_a_missing_card_is_named(tmp_path):
    """The path that was looked for stands in the message."""
    assert refusal(write(tmp_path), "judge.card=none.toml") == (
        "FOLDER/none.toml: no such file; give the path of a judge card"
    )


def test_a_slip_in_the_ending_is_told_the_file_beside_it(tmp_path):
    """`job.tml`: the deployment of that name in the same folder, before a card of that name in another."""
    (tmp_path / "judges").mkdir()
    for path in (write(tmp_path), tmp_path / "judges" / "job.toml"):
        path.touch()

    assert refusal(tmp_path / "job.tml").endswith(
        "give the path of a deployment's TOML; did you mean job.toml?"
    )


def test_a_preset_by_its_bare_name_is_told_its_path(tmp_path):
    """`ragas` for `presets/ragas.toml`: the file that was meant lies in a folder beside the config."""
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "ragas.toml").write_text("columns = {}")

    assert refusal(write(tmp_path), 'read.preset="ragas"') == (
        "FOLDER/ragas: no such file; give the path of a preset, relative to this config; did you mean presets/ragas.toml?"
    )


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("", "PRESET: needs the key 'columns'; add it"),
        ("columns = 3", "PRESET: columns = 3, expected a table"),
        ("[columns]\nanswer = 3", "PRESET: columns.answer = 3, expected a list"),
        ("[column]\n[columns]", "PRESET: has no key 'column'; did you mean 'columns'?"),
    ],
)
def test_a_wrong_preset_is_refused(tmp_path, preset, message):
    """The preset's own path stands in the message."""
    (tmp_path / "tool.toml").write_text(preset)

    found = refusal(write(tmp_path), "read.preset=tool.toml")

    assert found.replace("FOLDER/tool.toml", "PRESET") == message
