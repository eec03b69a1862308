"""Credentials: never in a config, and so never in a fingerprint, a manifest, the record of a run, or an error."""

from __future__ import annotations

from pathlib import Path

import jobs_fixture
import pytest
import stub_models as stub
from click.testing import CliRunner

from claimscore.jobs.cli import main
from claimscore.jobs.config import ReadConfig, StoreConfig
from claimscore.jobs.config_file import load_config
from claimscore.jobs.errors import ConfigError

SECRET = "hunter2/+Qz"
URIS = [
    f"s3://AKIAKEY:{SECRET}@bucket/logs",
    "s3://AKIAKEY:hunter2%2F%2BQz@bucket/logs",
    f"s3%3A//key%3A{SECRET}@bucket/logs",
    f"s3://bucket/logs?access_key=AKIAKEY&secret_key={SECRET}",
    f"s3://bucket/logs?session_token={SECRET}",
    f"s3://bucket/logs?endpoint_override=http://me:{SECRET}@host:9000",
    f"abfs://:{SECRET}@account.blob.core.windows.net/logs",
    f"https://host/logs?sv=1&sig={SECRET}",
]


@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize("kind, name", [(ReadConfig, "logs"), (StoreConfig, "out")])
def test_a_uri_with_credentials_is_refused_without_showing_them(kind, name, uri):
    """The line says which key of the config it is and where credentials belong, and holds nothing of the URI."""
    with pytest.raises(ConfigError) as caught:
        kind(**{name: uri})

    assert f"{name}: a URI with credentials" in str(caught.value)
    assert "AWS_SECRET_ACCESS_KEY" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/keys/date={date}/*.parquet?region=eu-west-1&endpoint_override=localhost:9000",
        "s3://host:9000/a@b",
        "gs://anonymous@bucket/logs",
        "abfs://container@account.dfs.core.windows.net/logs",
        "/data/a:b@c/tokens=1/x",
        "logs/{date}",
    ],
)
def test_a_uri_without_credentials_is_taken(uri):
    """Words such as key and token in a path, a port and a user without a password are no secret."""
    assert (ReadConfig(logs=uri).logs, StoreConfig(out=uri).out) == (uri, uri)


@pytest.mark.parametrize("key", ["read.logs", "store.out"])
def test_no_way_into_a_config_takes_credentials(tmp_path, key):
    """Neither the file nor the command line; the error names the file and not the secret."""
    with pytest.raises(ConfigError) as caught:
        load_config(jobs_fixture.write_config(tmp_path), [f'{key}="{URIS[0]}"'])

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("command", [["show", "r1"], ["compare", "a", "b"]])
def test_the_readers_refuse_them_too(command):
    """`--out` of a command that only reads is told in one line, without the secret."""
    done = CliRunner().invoke(main, [*command, "--out", URIS[0]])

    assert done.exit_code == 1
    assert "credentials" in done.output
    assert "hunter2" not in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "{uri}", "--date", "2026-11-28"],
        ["run", "{config}", "--date", "{uri}"],
        ["plan", "{config}", "--date", "2026-11-28", "--set", "judge.card={uri}"],
        ["plan", "{config}", "--date", "2026-11-28", "--set", "decompose.model={uri}"],
        ["plan", "{config}", "--date", "2026-11-28", "--judge", "{uri}"],
        ["calibrate", "{config}", "{uri}"],
        ["canary", "{config}", "--pairs", "{uri}"],
        ["label", "--read", "{uri}", "--to", "labels.parquet"],
        ["evaluate", "{config}", "{uri}"],
        ["gate", "--baseline", "{uri}", "--candidate", "{uri}"],
        ["export", "{uri}", "--to", "csv", "--date", "2026-11-28"],
        ["alert", "{uri}"],
        ["report", "--out", "{uri}"],
        ["import", "--from", "phoenix", "{uri}", "log"],
    ],
)
def test_no_command_shows_the_credentials_of_a_place(arguments: list[str], tmp_path: Path):
    """Whichever argument a place is given as, the line says what is wrong with it, without its keys."""
    config = str(jobs_fixture.write_config(tmp_path))
    uri = "s3://AKIAKEY:hunter2@bucket/x.json?region=nowhere&secret_key=hunter2"
    given = [argument.replace("{uri}", uri).replace("{config}", config) for argument in arguments]

    done = CliRunner().invoke(main, given)

    assert done.exit_code in (1, 2)
    assert "hunter2" not in done.output
    assert "AKIAKEY" not in done.output


def test_credentials_of_the_environment_are_written_nowhere(tmp_path, monkeypatch):
    """A whole run with keys in the environment: no byte of the output holds them, and no fingerprint changes."""
    from claimscore.jobs.nightly import execute_here, plan_day, run_day
    from claimscore.jobs.operate import _recorded
    from claimscore.jobs.pipeline import Models
    from claimscore.jobs.plan import Weights
    from claimscore.jobs.store import Store

    jobs_fixture.write_log(tmp_path)
    config = jobs_fixture.make_config(tmp_path)
    store = Store(config.store.out, config.store, run_id="r")
    plain = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    plan = plan_day(config, store, Weights.of(config), jobs_fixture.DATE)
    judge = stub.StubJudge()
    with _recorded(config, store, "r"):
        run_day(config, store, plan, execute_here(config, store, Models(stub.StubLlm(), judge, judge)))

    files = [path for path in Path(config.store.out).rglob("*") if path.is_file()]
    assert [task.parts for task in plain.tasks] == [task.parts for task in plan.tasks]
    assert len(files) > 10
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
