"""A model's folder on disk: where it is, what its config.json says, its weights, its fingerprint.

Imports no torch, so that `plan` and shard tasks can ask for a fingerprint in milliseconds. Weights are
safetensors or nothing: a pickle can run code and is never opened. Knows no tensor, tokenizer or label rule.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors

from claimscore.jobs.errors import ModelError, reason_of

if TYPE_CHECKING:
    from torch import Tensor

CONTENT_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "model.safetensors.index.json",
    "special_tokens_map.json",
    "spm.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)
"""Files beside the weights that can change what a model answers; fetched from a hub and fingerprinted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig:
    """The part of a DebertaV2 config.json that changes the forward pass; defaults as in transformers."""

    vocab_size: int = 128_100
    hidden_size: int = 1536
    num_hidden_layers: int = 24
    num_attention_heads: int = 24
    intermediate_size: int = 6144
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-7
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_buckets: int = -1
    pos_att_type: tuple[str, ...] = ()
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    position_biased_input: bool = True
    embedding_size: int = 0
    """Width of the word embeddings; 0: `hidden_size`."""
    conv_kernel_size: int = 0
    conv_groups: int = 1
    conv_act: str = "tanh"
    pooler_hidden_act: str = "gelu"

    @property
    def max_distance(self) -> int:
        """Distance from which on all distances share a bucket (or a row)."""
        return (
            self.max_relative_positions if self.max_relative_positions > 0 else self.max_position_embeddings
        )

    @property
    def position_span(self) -> int:
        """Half the rows of the relative-position table."""
        return self.position_buckets if self.position_buckets > 0 else self.max_distance

    @property
    def score_scale(self) -> float:
        """What attention scores are multiplied by: content, and each kind of position, is one term."""
        head_size = self.hidden_size // self.num_attention_heads
        return 1 / math.sqrt(head_size * (1 + len(self.pos_att_type)))


class Weights:
    """Named tensors of a folder's safetensors files, each read when asked for and its shape checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, Any] = {}
        for file in safetensors_files(folder):
            try:
                handle = safetensors.safe_open(str(file), framework="pt")
            except (OSError, safetensors.SafetensorError) as err:
                raise ModelError(
                    f"{file}: cannot be read: {reason_of(err)}; fetch the checkpoint again"
                ) from err
            self._files |= dict.fromkeys(handle.keys(), handle)

    def read(self, name: str, *shape: int) -> Tensor:
        """The tensor `name` in fp32 on the CPU; -1 in `shape` stands for any size.

        Raises:
            ModelError: it is not there, or has another shape.
        """
        if name not in self._files:
            raise ModelError(
                f"{self.folder}: no weight {name!r}, expected all of a DebertaV2ForSequenceClassification; "
                "take a checkpoint that was trained as a classifier"
            )
        tensor: Tensor = self._files[name].get_tensor(name)
        sizes = tuple(tensor.shape)
        if len(sizes) != len(shape) or any(want not in (-1, n) for n, want in zip(sizes, shape, strict=True)):
            raise ModelError(f"{self.folder}: weight {name!r} is {sizes}, expected {shape} by config.json")
        return tensor.float()


def find_folder(model: str) -> Path:
    """Local folder of `model`: the folder itself, or a hub snapshot fetched through huggingface_hub.

    Raises:
        ModelError: no such folder, the extra `hub` is not installed, or the hub has no such model.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise ModelError(
            f"{model}: no such folder, expected a checkpoint with config.json; "
            "build or fetch it (scripts/build_demo_models.py builds the demo models), or name a hub id (owner/name)"
        )
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - an extra; local folders do not need it
    except ImportError:
        raise ModelError(
            f"{model}: no such folder, and huggingface_hub is not installed; "
            "fetch the folder by hand, or pip install 'claimscore[hub]'"
        ) from None
    try:
        return Path(snapshot_download(model, allow_patterns=[*CONTENT_FILES, "*.safetensors"]))
    except Exception as err:  # the hub's client raises a dozen kinds: network, auth, no such model
        raise ModelError(
            f"{model}: no such folder, and the hub did not give it: {type(err).__name__}: "
            f"{str(err).splitlines()[0] if str(err) else ''}; check the name, or fetch the folder by hand"
        ) from err


def cached_folder(model: str) -> Path | None:
    """The snapshot of a hub id that lies on this machine, whole or not; None: there is none. Asks no network."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - an extra; local folders do not need it

    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (OSError, ValueError):  # its LocalEntryNotFoundError is either, by version
        return None


def hub_bytes(model: str, timeout_s: float) -> int:
    """Bytes of the safetensors that the hub has of a model; fetches none of them.

    Raises:
        ModelError: the hub does not answer, has no such model, or none in safetensors.
    """
    from huggingface_hub import HfApi  # noqa: PLC0415 - an extra; local folders do not need it

    try:
        files = HfApi().model_info(model, timeout=timeout_s, files_metadata=True).siblings or []
    except Exception as err:  # the hub's client raises a dozen kinds: network, auth, no such model
        first, *_ = str(err).splitlines() or [""]
        raise ModelError(f"{model}: {type(err).__name__}: {first[:200]}") from err
    sizes = [file.size or 0 for file in files if file.rfilename.endswith(".safetensors")]
    if not sizes:
        raise ModelError(f"{model}: the hub has it without safetensors; take another checkpoint")
    return sum(sizes)


def model_fingerprint(model: str) -> str:
    """16 hex digits over the content of a model's weights, config.json and tokenizer files.

    Raises:
        ModelError: as `find_folder` and `safetensors_files`.
    """
    folder = find_folder(model)
    files = [folder / name for name in CONTENT_FILES if (folder / name).is_file()]
    digest = hashlib.sha256()
    for path in sorted([*files, *safetensors_files(folder)]):
        stat = path.stat()
        digest.update(f"{path.name}\0{_digest(str(path), stat.st_size, stat.st_mtime_ns)}\n".encode())
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=256)
def _digest(path: str, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - a file that changed is another key
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def safetensors_files(folder: Path) -> list[Path]:
    """The weight files of a checkpoint, in name order.

    Raises:
        ModelError: there are none, or one that the index names is missing.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if index.is_file():
        try:
            # Only the last part of a name: an index cannot point out of its folder.
            names = {Path(name).name for name in read_json(index)["weight_map"].values()}
        except (KeyError, TypeError, AttributeError) as err:
            raise ModelError(
                f"{index}: no 'weight_map' of weights to files; fetch the checkpoint again"
            ) from err
        files = [folder / name for name in sorted(names)]
        for file in files:
            if not file.is_file():
                raise ModelError(
                    f"{file}: no such file, but {index.name} names it; fetch the checkpoint again"
                )
        return files
    if (folder / "pytorch_model.bin").is_file():
        raise ModelError(
            f"{folder}: its weights are a pickle, 'pytorch_model.bin', expected model.safetensors; a pickle can "
            "run code and is never opened: where you trust it, load it with transformers and save_pretrained it"
        )
    raise ModelError(f"{folder}: no model.safetensors, expected a checkpoint's weights; fetch or build it")


def read_json(path: Path) -> Any:
    """The content of a JSON file of a checkpoint.

    Raises:
        ModelError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file, expected it in a checkpoint; fetch or build it") from None
    except (OSError, ValueError, RecursionError) as err:
        raise ModelError(f"{path}: cannot be read: {reason_of(err)}; fetch the checkpoint again") from err


def read_encoder_config(folder: Path) -> EncoderConfig:
    """Read a judge's config.json; what the encoder cannot do is refused.

    Raises:
        ModelError: no or unreadable config.json, another architecture, or a setting that is not supported.
    """
    path = folder / "config.json"
    raw = read_json(path)
    kind = raw.get("model_type") if isinstance(raw, dict) else None
    if kind != "deberta-v2":
        raise ModelError(
            f"{path}: model_type is {kind!r}, expected 'deberta-v2'; judges are DeBERTa v2 or v3"
        )
    fields = EncoderConfig.__dataclass_fields__
    values = {name: value for name, value in raw.items() if name in fields and value is not None}
    kinds = values.get("pos_att_type", ())
    if isinstance(kinds, str):
        kinds = kinds.split("|")
    values["pos_att_type"] = tuple(
        kind for kind in ("c2p", "p2c") if kind in [str(k).strip().lower() for k in kinds]
    )
    for name, value in values.items():
        default = fields[name].default
        if type(value) is not type(default) and not (isinstance(default, float) and isinstance(value, int)):
            raise ModelError(f"{path}: {name} is {value!r}, expected {type(default).__name__}")
    config = EncoderConfig(**values)
    if config.hidden_size % config.num_attention_heads:
        raise ModelError(
            f"{path}: hidden_size is {config.hidden_size}, expected a multiple of "
            f"num_attention_heads = {config.num_attention_heads}"
        )
    if config.conv_kernel_size > 0 and config.conv_kernel_size % 2 == 0:
        raise ModelError(f"{path}: conv_kernel_size is {config.conv_kernel_size}, expected an odd number")
    return config
