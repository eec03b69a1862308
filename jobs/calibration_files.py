"""Labelled claims in, a judge card out: the files of `claimscore calibrate`.

A labelled file is read by the same rules as a log (the claim stands where an answer would), so its chunks may have every form
that a log's may, and a row that cannot be used is counted with its reason. A card is written with every key that it had;
comments that speak of the old thresholds go. Knows no judge and computes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.config import ReadConfig
from claimscore.jobs.config_file import load_card
from claimscore.jobs.errors import InputError, OutputError, one_line
from claimscore.jobs.read import list_files, read_shard
from claimscore.jobs.records import LOG
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.wholefile import write_whole

LABELS: dict[str, bool | None] = {
    "supported": True,
    "unsupported": False,
    "not_supported": False,
    "contradicted": False,
    "partial": False,
    "unclear": None,
    "disputed": None,
}
"""`label` (case and outer blanks folded) -> supported or not; None: people could not say. Partial support is none."""
EVIDENCE_COLUMNS = ("chunks", "evidence", "contexts")
GROUP_COLUMNS = ("group", "article", "article_id")
LABELLED = pa.schema(
    [
        pa.field("question", pa.string()),
        pa.field("chunks", LOG.field("chunks").type, nullable=False),
        pa.field("claim", pa.string(), nullable=False),
        pa.field("cited_ids", pa.list_(pa.string()), nullable=False),
        pa.field("supported", pa.bool_()),
        pa.field("label", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
    ]
)
"""One labelled claim. `supported` is null where people could not say; `group` names what claims share (an article)."""


@dataclass(frozen=True, slots=True)
class LabelledFile:
    """What a labelled file holds."""

    rows: pa.Table
    """LABELLED: the rows that can be used."""
    n_rows: int
    unusable: dict[str, int]
    """Reason -> rows that could not be read."""


def read_labelled(path: str) -> LabelledFile:
    """Read labelled claims.

    Needed: `claim`, chunks under one of EVIDENCE_COLUMNS in any form of a log's, and `supported` (0 or 1) or `label`
    (one of LABELS). Optional: question, source, one of GROUP_COLUMNS (else claims with the same evidence are a group),
    weight, cited_ids.

    Args:
        path: a Parquet file, folder or glob, as `[read] logs`.

    Raises:
        InputError: no such file, a column is missing or of another kind, or a label is none of LABELS.
    """
    blank: dict[str, tuple[str, ...]] = {name: () for name in LOG.names if name != "flags"}
    own = {"answer": ("claim",), "question": ("question",), "chunks": EVIDENCE_COLUMNS}
    config = ReadConfig(logs=path, columns=blank | own)
    fs, files = list_files(path, "")
    shards, unreadable = plan_shards(fs, files, 2**31)
    if unreadable:
        raise InputError(unreadable[0][1])
    tables, n_rows = [LABELLED.empty_table()], 0
    unusable: Counter[str] = Counter()
    for shard in shards:
        log, quarantine = read_shard(fs, shard, config, {})
        with fs.open_input_file(shard.file) as source:
            names = pq.ParquetFile(source).schema_arrow.names
            wanted = [
                n
                for n in ("supported", "label", "source", "weight", "cited_ids", *GROUP_COLUMNS)
                if n in names
            ]
            beside = pq.ParquetFile(source).read(wanted)
        bad = set(quarantine.column("row").to_pylist())
        good = [k for k in range(shard.n_rows) if k not in bad]
        unusable.update(quarantine.column("reason").to_pylist())
        claimed = [bool((claim or "").strip()) for claim in log.column("answer").to_pylist()]
        unusable.update({"claim_empty": n} if (n := claimed.count(False)) else {})
        log = log.filter(pa.array(claimed, pa.bool_()))
        good = [row for row, is_claim in zip(good, claimed, strict=True) if is_claim]
        n_rows += shard.n_rows
        tables.append(_labelled(log, beside.take(pa.array(good, pa.int64())), shard.file, good))
    return LabelledFile(pa.concat_tables(tables), n_rows, dict(sorted(unusable.items())))


def _labelled(log: pa.Table, beside: pa.Table, file: str, places: list[int]) -> pa.Table:
    n = log.num_rows
    columns = {name: beside.column(name).to_pylist() for name in beside.column_names}
    if not {"supported", "label"} & set(columns):
        raise InputError(
            f"{file}: no column 'supported' or 'label', expected what people say of each claim; add it"
        )
    chunks, claims = log.column("chunks").to_pylist(), log.column("answer").to_pylist()
    groups: list[Any] = next((columns[name] for name in GROUP_COLUMNS if name in columns), [None] * n)
    rows = [
        {
            "question": question,
            "chunks": chunks[k],
            "claim": claims[k],
            "cited_ids": list(columns["cited_ids"][k] or []) if "cited_ids" in columns else [],
            "label": _text(columns["label"][k]) if "label" in columns else None,
            "supported": _supported(columns, k, f"{file}: row {places[k]}"),
            "source": (_text(columns["source"][k]) if "source" in columns else None) or "all",
            "group": _text(groups[k]) or evidence_group(chunks[k]),
            "weight": _weight(columns["weight"][k], f"{file}: row {places[k]}")
            if "weight" in columns
            else 1.0,
        }
        for k, question in enumerate(log.column("question").to_pylist())
    ]
    try:
        return pa.Table.from_pylist(rows, schema=LABELLED)
    except (pa.ArrowException, TypeError) as err:
        raise InputError(
            f"{file}: a column is of another kind: {err}; write it as the guide says (jobs/GUIDE.md)"
        ) from err


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _supported(columns: Mapping[str, list[Any]], k: int, where: str) -> bool | None:
    if "supported" in columns:
        value = columns["supported"][k]
        if value is None or value in (0, 1):
            return None if value is None else bool(value)
        raise InputError(f"{where}: supported is {value!r}, expected 0, 1 or null; mend it")
    return label_of(columns["label"][k], where)


def label_of(value: Any, where: str) -> bool | None:
    """What a label says; None for null, blank and what people could not tell.

    Raises:
        InputError: none of LABELS.
    """
    name = "" if value is None else str(value).strip().casefold()
    if name and name not in LABELS:
        raise InputError(f"{where}: label {str(value)[:60]!r}, expected one of {', '.join(LABELS)}; mend it")
    return LABELS[name] if name else None


def _weight(value: Any, where: str) -> float:
    if isinstance(value, int | float) and 0 < value < 1e12:
        return float(value)
    raise InputError(
        f"{where}: weight is {value!r}, expected a number above 0; mend it or leave the column out"
    )


def evidence_group(chunks: list[dict[str, Any]]) -> str:
    """A name for the evidence by its words: claims with the same chunks stand or fall together."""
    words = " ".join(chunk["text"] for chunk in chunks).casefold().split()
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


def write_card(card: str, to: str | None, changes: Mapping[str, Any], why: str, *, force: bool) -> str:
    """Write a judge card with some keys changed; every other key, and every comment not above one of those, stays.

    Args:
        card: the card to start from.
        to: where to; None: `card` itself.
        changes: key -> float, string or a table of floats.
        why: a comment above the first changed key.
        force: overwrite a file that is there.

    Returns:
        The path written.

    Raises:
        OutputError: it is there and `force` is off, or cannot be written.
        ConfigError: `card` cannot be read.
    """
    target = Path(to or card)
    if target.is_dir():
        raise OutputError(f"{target}: is a folder, expected the file of a card; give --to CARD.toml")
    why = one_line(why)
    if target.exists() and not force:
        raise OutputError(
            f"{target}: is there already, expected a new file; give --to another, or --force to overwrite it"
        )
    load_card(card)  # a card that cannot be read has its own error
    text = Path(card).read_text(encoding="utf-8")
    values = tomllib.loads(text)
    changed = dict(changes) | _moved_model(Path(card), target, values["model"])
    wanted = values | changed
    lines = _edited(text, changed, why)
    try:
        is_right = tomllib.loads(lines) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:  # a value over several lines: written anew, without comments
        lines = f"# {why}\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in wanted.items())
    assert tomllib.loads(lines) == wanted, "a card keeps its keys"
    write_whole(target, lines.encode(), option="--to")
    load_card(target)
    return str(target)


def _moved_model(card: Path, target: Path, model: str) -> dict[str, str]:
    """A relative model folder as seen from where the card goes."""
    folder = card.parent / model
    if target.parent.resolve() == card.parent.resolve() or Path(model).is_absolute() or not folder.exists():
        return {}
    return {"model": os.path.relpath(folder.resolve(), target.parent.resolve())}


def _edited(text: str, changes: Mapping[str, Any], why: str) -> str:
    out: list[str] = []
    left, told = dict(changes), False
    for line in text.splitlines():
        key = line.partition("=")[0].strip()
        if key not in left:
            out.append(line)
            continue
        while key != "model" and out and out[-1].lstrip().startswith("#"):
            out.pop()  # it spoke of the value that goes
        if not told and key != "model":
            out.append(f"# {why}")
            told = True
        out.append(f"{key} = {_toml(left.pop(key))}")
    return "\n".join([*out, *(f"{key} = {_toml(value)}" for key, value in left.items())]) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML: JSON's strings, numbers and lists are TOML's; a table stands in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
