"""`claimscore doctor`: each thing that would stop a run is found, with its fix; each check ends in its time."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import jobs_fixture
import pytest
import tiny_deberta
from click.testing import CliRunner, Result

from claimscore.jobs import doctor, doctor_checks
from claimscore.jobs.cli import main
from claimscore.jobs.config import Config
from claimscore.jobs.doctor_checks import FAIL, OK, WARN, Finding
from claimscore.jobs.errors import InputError
from claimscore.jobs.store import Store


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch):
    """No process of torch or Ray."""
    monkeypatch.setattr(doctor_checks, "gpu", lambda *_: Finding("GPU", OK, "none"))
    monkeypatch.setattr(doctor_checks, "ray_starts", lambda *_: Finding("Ray", OK, "started"))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A deployment whose every part is there."""
    jobs_fixture.write_log(tmp_path)
    path = jobs_fixture.write_config(tmp_path)
    tiny_deberta.write_tiny(tmp_path / "model")
    with (tmp_path / "judge.toml").open("a") as card:
        card.write('calibrated_on = "60 claims"\n')
    return jobs_fixture.load_config(path)


def findings(config: Config, *overrides: str, date: str = jobs_fixture.DATE) -> dict[str, Finding]:
    """Check -> what it found."""
    return {f.check: f for f in doctor.examine(Path(config.path), overrides, date)}


def invoke(*arguments: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, ["doctor", *arguments])


def test_a_whole_deployment_is_ready(light: None, config: Config):
    """Every check is ok, or a word about what would not stop a run."""
    found = findings(config)

    assert [f for f in found.values() if f.status == FAIL] == []
    assert (
        found["log"].found
        == "2026-11-28: 1 files, 6 rows, the needed columns are there, without model, topic"
    )
    assert found["judge"].found.startswith("stub: model: safetensors of ")
    assert found["output"].status != FAIL


def test_exit_code_and_json(light: None, config: Config):
    """0 and `ready` where nothing would stop a run, 1 where something would."""
    good = invoke(config.path, "--date", jobs_fixture.DATE, "--json")
    bad = invoke(config.path, "--date", "2020-01-01")

    assert (good.exit_code, json.loads(good.stdout)["ready"]) == (0, True)
    assert bad.exit_code == 1
    assert "fail log: " in bad.output
    assert "     fix: check [read] logs and the date" in bad.output.splitlines()


def test_without_a_config_the_machine_alone_is_looked_at(light: None):
    """A new user's first command."""
    result = invoke()

    assert result.exit_code == 0
    assert [
        line.split(":")[0].split()[-1] for line in result.output.splitlines() if not line.startswith("  ")
    ] == [*("packages", "memory", "GPU", "Ray")]


def test_a_config_that_is_wrong_is_one_finding(light: None, config: Config):
    """Its own error line, cut into what was found and what to do; the machine is looked at all the same."""
    found = findings(config, "judge.budget_token=5")

    assert (found["config"].status, found["config"].fix) == (FAIL, "did you mean 'budget_tokens'?")
    assert "Ray" in found


@pytest.mark.parametrize(
    ("spoil", "check", "line"),
    [
        (lambda folder: (folder / "model" / "model.safetensors").unlink(), "judge", "no model.safetensors"),
        (
            lambda folder: (folder / "model" / "tokenizer.json").unlink(),
            "judge",
            "tokenizer.json: no such file",
        ),
        (lambda folder: (folder / "model" / "config.json").write_text("{}"), "judge", "model_type is None"),
        (lambda folder: (folder / "llm" / "config.json").unlink(), "decomposer", "no config.json"),
        (lambda folder: (folder / "out").write_text("a file"), "output", "is a file"),
        (
            lambda folder: next((folder / "logs").rglob("*.parquet")).write_text("PAR1"),
            "log",
            "not a readable Parquet",
        ),
    ],
)
def test_what_would_stop_a_run_fails_with_a_fix(
    light: None, config: Config, tmp_path: Path, spoil, check: str, line: str
):
    """Weights, tokenizer, config.json, output and log, each spoiled in turn."""
    spoil(tmp_path)

    found = findings(config)[check]

    assert found.status == FAIL
    assert line in found.found
    assert found.fix


def test_a_pickle_is_refused_by_name(light: None, config: Config, tmp_path: Path):
    """The weights are there and may not be opened."""
    (tmp_path / "llm" / "model.safetensors").rename(tmp_path / "llm" / "pytorch_model.bin")

    found = findings(config)["decomposer"]

    assert (found.status, "a pickle" in found.found) == (FAIL, True)


def test_a_missing_column_is_named(light: None, config: Config, tmp_path: Path):
    """A log of yesterday with the answers under another name."""
    rows = [{"request_id": "r", "response": "x", "chunks": ["y"]}]
    jobs_fixture.write_log(tmp_path, rows)

    found = findings(config)["log"]

    assert found.status == FAIL
    assert found.fix.endswith(
        'presets/chat.toml" (of configs/presets/), or map the column under [read.columns]'
    )
    assert "no column 'answer'" in found.found


def test_a_log_without_rows_is_no_log(light: None, config: Config, tmp_path: Path):
    """An empty file is what a broken logger writes."""
    table = jobs_fixture.pa.Table.from_pylist(jobs_fixture.log_rows(1)).slice(0, 0)
    jobs_fixture.pq.write_table(table, next((tmp_path / "logs").rglob("*.parquet")))

    assert findings(config)["log"].status == FAIL


def test_a_hub_id_needs_its_client(light: None, config: Config, monkeypatch: pytest.MonkeyPatch):
    """Without it the run would stop at the first model."""
    monkeypatch.setattr(doctor_checks.importlib.util, "find_spec", lambda _: None)

    found = findings(config, "decompose.model=owner/name")["decomposer"]

    assert (found.status, found.fix) == (FAIL, "pip install 'claimscore[hub]'")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch):
    """A hub without a network: id -> what its cache holds, and what the hub has; nothing is ever fetched."""
    cache: dict[str, Path] = {}
    there: dict[str, dict[str, int]] = {}

    def snapshot(model: str, *, local_files_only: bool = False, **_: object) -> str:
        assert local_files_only, "doctor downloads nothing"
        if model not in cache:
            raise huggingface_hub.errors.LocalEntryNotFoundError("not there")
        return str(cache[model])

    def info(_: object, model: str, **__: object) -> SimpleNamespace:
        if model not in there:
            raise ConnectionError("no route to the hub\nand more lines")
        return SimpleNamespace(
            siblings=[SimpleNamespace(rfilename=name, size=n) for name, n in there[model].items()]
        )

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", info)
    return SimpleNamespace(cache=cache, there=there)


def test_a_hub_model_in_the_cache_is_looked_at_there(light: None, config: Config, hub, tmp_path: Path):
    """As a folder is: weights, fingerprint, tokenizer."""
    hub.cache |= {"owner/judge": tmp_path / "model", "owner/llm": tmp_path / "llm"}
    card = tmp_path / "judge.toml"
    card.write_text(card.read_text().replace("./model", "owner/judge"))

    found = findings(config, "decompose.model=owner/llm")

    assert (found["judge"].status, found["decomposer"].status) == (OK, OK)
    assert found["judge"].found.startswith("stub: owner/judge: in the hub's cache, safetensors of ")
    assert found["judge"].found.endswith("tokenizer and config are readable")


def test_a_hub_model_that_a_run_would_fetch_is_said(light: None, config: Config, hub, tmp_path: Path):
    """With its size; half of it in the cache is none of it."""
    hub.cache["owner/half"] = tmp_path / "half"
    (tmp_path / "half").mkdir()
    hub.there |= {
        "owner/half": {"model.safetensors": 3 << 20, "pytorch_model.bin": 1},
        "owner/bin": {"pytorch_model.bin": 1},
    }

    half = findings(config, "decompose.model=owner/half")["decomposer"]
    pickled = findings(config, "decompose.model=owner/bin")["decomposer"]

    assert (half.status, half.found) == (WARN, "owner/half: not in the hub's cache; the hub has it, 3 MiB")
    assert half.fix.endswith("hf download owner/half")
    assert (pickled.status, "without safetensors" in pickled.found) == (FAIL, True)


def test_a_hub_model_that_cannot_be_had_would_stop_the_run(light: None, config: Config, hub):
    """Neither on this machine nor given: why, in a line, and what to do."""
    found = findings(config, "decompose.model=owner/gone")["decomposer"]

    assert found.status == FAIL
    assert found.found == (
        "not in the hub's cache, and the hub did not give it: owner/gone: ConnectionError: no route to the hub"
    )
    assert "fetch the folder elsewhere" in found.fix


def test_a_guessed_threshold_is_said(light: None, config: Config, tmp_path: Path):
    """It stops no run, and nobody should trust its rates."""
    card = tmp_path / "judge.toml"
    card.write_text(card.read_text().replace('calibrated_on = "60 claims"\n', ""))

    found = findings(config)["thresholds"]

    assert (found.status, "is a guess" in found.found) == (WARN, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_output_that_cannot_be_written_fails(light: None, config: Config, tmp_path: Path):
    """Permissions, in words."""
    (tmp_path / "out").mkdir(mode=0o500)

    assert findings(config)["output"].status == FAIL


def test_little_room_is_said_and_less_stops(light: None, config: Config, monkeypatch: pytest.MonkeyPatch):
    """Under 10 GiB a word, under 1 GiB a stop."""
    statuses = []
    for free in (1 << 40, 5 << 30, 1 << 20):
        usage = type("Usage", (), {"free": free})
        monkeypatch.setattr(doctor_checks.shutil, "disk_usage", lambda _, usage=usage: usage)
        statuses.append(findings(config)["output"].status)

    assert statuses == [OK, WARN, FAIL]


def test_looking_leaves_nothing_behind(light: None, config: Config, tmp_path: Path):
    """No file, no folder, no lock."""
    before = sorted(tmp_path.rglob("*"))

    findings(config)

    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_under_way_is_mentioned(light: None, config: Config):
    """Its lock is seen, and stops nothing here."""
    store = Store(config.store.out, config.store)
    with store.lock("run-1"):
        found = findings(config)["output"]

    assert found.found.endswith("a run holds its lock now")


def test_a_check_that_hangs_ends_in_its_time():
    """The others go on."""
    let_go, ended = threading.Event(), threading.Event()

    def hangs() -> Finding:
        let_go.wait(120)
        ended.set()
        return Finding("slow", OK, "")

    found = doctor._bounded("slow", 0.05, hangs)
    was_waited_for = ended.is_set()
    let_go.set()

    assert (found.status, found.found, was_waited_for) == (WARN, "no answer within 0.05 s", False)


def test_a_check_that_breaks_is_a_finding():
    """Whatever it raises, in one printable line."""

    def breaks() -> Finding:
        raise RuntimeError("a\x1b[31m\nb")

    assert doctor._bounded("odd", 5, breaks) == Finding("odd", FAIL, "RuntimeError: a [31m b", "report this")


def test_a_process_that_fails_or_hangs_says_so():
    """Its last line, or that there was none in time."""
    with pytest.raises(InputError, match="ZeroDivisionError"):
        doctor_checks._child("1 / 0", limit_s=30)
    with pytest.raises(InputError, match="no answer within 1 s; ask again with a longer --limit"):
        doctor_checks._child("import time; time.sleep(60)", limit_s=1.05)


@pytest.mark.parametrize(
    ("gpus", "overrides", "status"),
    [
        ([], [], OK),
        ([], ["judge.device=cuda"], FAIL),
        ([], ["cluster.judge_gpus=0.4"], FAIL),
        ([], ["cluster.judge_gpus=0.4", "cluster.address=10.0.0.1:6379"], WARN),
        ([["NVIDIA H200", 150 << 30]], ["judge.device=cuda"], OK),
    ],
)
def test_a_gpu_is_missed_where_one_is_asked_for(
    config: Config, monkeypatch: pytest.MonkeyPatch, gpus: list, overrides: list[str], status: str
):
    """On a cluster the driver needs none."""
    told = json.dumps({"version": "2.6", "built": "12.4", "gpus": gpus})
    monkeypatch.setattr(doctor_checks, "_child", lambda *_, **__: told)

    assert doctor_checks.gpu(jobs_fixture.load_config(config.path, overrides), 5).status == status


@pytest.mark.slow
def test_torch_and_ray_answer_for_real():
    """The two processes of their own, on this machine."""
    assert doctor_checks.gpu(None, 120).status == OK
    assert doctor_checks.ray_starts("", 120).status == OK
