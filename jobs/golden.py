"""Rates of a golden set by group and by kind of item, what keeps them from being trusted, and its items for a gate.

An item is one answer with gold columns. Its kind: `conflicting` (its evidence contradicts itself, so says the gold),
else `answerable` or `unanswerable`, else `unknown` (the gold does not say). Every kind is one, so the kinds add up. The
rates and intervals are `metrics`'s; agreement with the reference is token F1, which sees words and not meaning. The module
knows no file and no model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs import gate, metrics
from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.errors import InputError, one_line
from claimscore.jobs.frames import as_frame
from claimscore.jobs.records import ANSWERS

EVALUATION = "claimscore evaluation"
"""The `kind` of a document of `evaluate`."""
KINDS = ("answerable", "unanswerable", "conflicting", "unknown")
GROUPS_BY = ("prompt_version", "model", "topic")
MIN_ITEMS = 30
"""A kind with fewer items is told of: one of 20 items that turns moves a rate by 5 points."""
MAX_UNSCORED = 0.1

_MISSING = {
    "answerable": "over-refusal and recall cannot be measured",
    "unanswerable": "nothing shows whether it refuses where it should, and the rates measure fluency",
    "conflicting": "nothing shows what it does where chunks disagree (gold column `conflicting`)",
}
_QUESTION_CHARS = 32


def kinds(answers: pa.Table, conflicting: pa.Array) -> pa.Array:
    """The kind of each item: string, as many rows as `answers`.

    Args:
        answers: ANSWERS, or at least their `answerable`.
        conflicting: bool beside them; null counts as false.
    """
    known = pc.if_else(answers.column("answerable"), "answerable", "unanswerable")
    kind = pc.if_else(pc.fill_null(conflicting, fill_value=False), "conflicting", known)
    return pc.fill_null(kind, "unknown")


def evaluate(answers: pa.Table, conflicting: pa.Array, *, by: str, config: MetricsConfig) -> dict[str, Any]:
    """Rates of a golden set.

    Args:
        answers: ANSWERS of its items.
        conflicting: bool beside them, from the gold.
        by: one of GROUPS_BY.
        config: resamples and seed.

    Returns:
        by, n_items, `all` and `groups` (each: name, n_items, kinds: kind or `all` -> n_items, rates: metric -> value, low,
        high, n, per; what has nothing to be counted over is left out), warnings (a line each), items (see `items`).

    Raises:
        InputError: no items at all.
    """
    if not answers.num_rows:
        raise InputError(
            "evaluate: no item could be read, expected some; see the quarantine table for the reasons"
        )
    kind = kinds(answers, conflicting)
    names = answers.column(by)
    relabelled = _relabelled(answers, {"prompt_version": names, "topic": kind})
    rows = metrics.measure(relabelled, config).to_pylist()
    counted = pl.DataFrame({"name": pl.Series(names.to_pylist(), dtype=pl.String), "kind": kind.to_pylist()})
    found = sorted(counted["name"].unique().to_list(), key=lambda name: (name is None, name or ""))
    groups = [
        _group(name, counted.filter(pl.col("name").eq_missing(pl.lit(name))), rows, of_all=False)
        for name in found
    ]
    return {
        "by": by,
        "n_items": answers.num_rows,
        "all": _group(None, counted, rows, of_all=True),
        "groups": groups,
        "warnings": _warnings(answers, kind, groups, by),
        "items": items(answers, kind),
    }


def _relabelled(answers: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """The answers with the columns that `metrics.measure` groups by as we want them: group and kind."""
    table = answers.select(list(metrics.NEEDED_COLUMNS))
    nothing = pa.nulls(table.num_rows, pa.string())
    for name, values in {"model": nothing, **columns}.items():
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def _group(
    name: str | None, items_of: pl.DataFrame, rows: list[dict[str, Any]], *, of_all: bool
) -> dict[str, Any]:
    """One group's items and rates, whole and by kind."""
    whole, parts = ("all", "topic") if of_all else ("prompt_version", "prompt_version+model+topic")
    mine = [row for row in rows if row["grouping"] in (whole, parts) and row["prompt_version"] == name]
    n_of = dict(items_of.group_by("kind").len().iter_rows())
    out = {"all": {"n_items": len(items_of), "rates": _rates(mine, whole, None)}}
    for kind in KINDS:
        if kind in n_of:
            out[kind] = {"n_items": n_of[kind], "rates": _rates(mine, parts, kind)}
    return {"name": name, "n_items": len(items_of), "kinds": out}


def _rates(rows: list[dict[str, Any]], grouping: str, kind: str | None) -> dict[str, dict[str, Any]]:
    return {
        row["metric"]: {name: row[name] for name in ("value", "low", "high")}
        | {"n": row["denominator"], "per": row["per"]}
        for row in rows
        if row["grouping"] == grouping and row["topic"] == kind and row["denominator"]
    }


def _warnings(answers: pa.Table, kind: pa.Array, groups: list[dict[str, Any]], by: str) -> list[str]:
    """Why the rates, or some of them, are to be read with care."""
    out = []
    n_of = {entry["values"]: entry["counts"] for entry in pc.value_counts(kind).to_pylist()}
    out += [f"no {name} items: {why}" for name, why in _MISSING.items() if not n_of.get(name)]
    for name in KINDS[:3]:
        few = [(g["kinds"][name]["n_items"], g["name"]) for g in groups if name in g["kinds"]]
        few = [(n, group) for n, group in few if n < MIN_ITEMS]
        if few:
            told = ", ".join(f"{n} of {by} {group or '(none)'}" for n, group in few[:5]) + (
                "…" if len(few) > 5 else ""
            )
            out.append(f"few {name} items ({told}), expected at least {MIN_ITEMS}: mind the intervals")
    out += _null_warnings(answers)
    out += _unequal(answers, by, groups)
    n_claims, n_unscored = (pc.sum(answers.column(name)).as_py() for name in ("n_claims", "n_unscored"))
    if n_claims and n_unscored / n_claims > MAX_UNSCORED:
        out.append(f"{n_unscored / n_claims:.1%} of the claims are unscored: the rates speak of the others")
    return out


def _null_warnings(answers: pa.Table) -> list[str]:
    """Gold that is missing, by what cannot be measured without it."""
    out = []
    unknown = answers.column("answerable").null_count
    if unknown:
        out.append(
            f"answerable is null in {unknown} of {answers.num_rows} items: they count for neither kind"
        )
    asked = answers.filter(pc.fill_null(answers.column("answerable"), fill_value=False))
    for column, what in (("recall_at_k", "gold_chunk_ids"), ("reference_overlap", "reference_answer")):
        missing = asked.column(column).null_count
        if missing:
            reason = "is null" if column == "recall_at_k" else "or the answer is empty"
            out.append(
                f"{what} {reason} in {missing} of {asked.num_rows} answerable items: {column} leaves them out"
            )
    return out


def _unequal(answers: pa.Table, by: str, groups: list[dict[str, Any]]) -> list[str]:
    """Groups that answer different questions are no comparison."""
    if len(groups) < 2:
        return []
    asked = as_frame(answers.select(list({by, "question"}))).with_columns(pl.col(by).fill_null("\0"))
    n_groups = asked.drop_nulls().unique().group_by("question").len()
    common = n_groups.filter(pl.col("len") == len(groups)).height
    if common == len(n_groups):
        return []
    told = f"the {len(groups)} groups have {common} of {len(n_groups)} questions in common"
    return [f"{told}: they differ by their items too, not by {by} alone"]


def question_keys(questions: pa.Array | pa.ChunkedArray) -> pa.Array:
    """32 hex digits a question (case and outer blanks folded), so that a baseline can be committed without texts.

    Null stays null.
    """
    keys = [
        None
        if text is None
        else hashlib.sha256(text.strip().lower().encode("utf-8", "surrogatepass")).hexdigest()
        for text in questions.to_pylist()
    ]
    return pa.array([key and key[:_QUESTION_CHARS] for key in keys], pa.string())


def items(answers: pa.Table, kind: pa.Array) -> list[dict[str, Any]]:
    """What a gate needs of each item, and its kind; questions as keys, no other text of the log."""
    columns = [name for name in gate.NEEDED_COLUMNS if name != "question"]
    table = answers.select(["request_id", *columns]).append_column(
        "question", question_keys(answers.column("question"))
    )
    rows: list[dict[str, Any]] = table.append_column("kind", kind).sort_by("request_id").to_pylist()
    return rows


def answers_of(document: Any, where: str) -> pa.Table:
    """The items of an evaluation as answers, gate.NEEDED_COLUMNS.

    Raises:
        InputError: the document is no evaluation of ours.
    """
    if not isinstance(document, dict) or document.get("kind") != EVALUATION:
        raise InputError(
            f"{where}: no {EVALUATION}, expected the JSON file that `claimscore evaluate --to FILE.json` writes"
        )
    if failures := document.get("failures"):
        raise InputError(
            f"{where}: {len(failures)} parts of this evaluation failed, expected a whole one; the first: "
            f"{one_line(str(failures[0]))}; evaluate again"
        )
    schema = pa.schema([ANSWERS.field(name) for name in gate.NEEDED_COLUMNS])
    try:
        answers = pa.Table.from_pylist(document["items"], schema=schema).cast(schema)
    except (KeyError, TypeError, AttributeError, ValueError, pa.ArrowException) as err:
        raise InputError(f"{where}: its items cannot be read: {err}; evaluate again") from err
    _check_counts(answers, where)
    return answers


def _check_counts(answers: pa.Table, where: str) -> None:
    """Raise InputError where a part is larger than its whole: somebody wrote in the file."""
    for part, whole in (
        ("n_supported", "n_scored"),
        ("n_citation_ok", "n_cited_claims"),
        ("n_scored", "n_claims"),
    ):
        few, many = answers.column(part), answers.column(whole)
        wrong = pc.indices_nonzero(pc.or_(pc.less(few, 0), pc.greater(few, many))).to_pylist()
        if wrong:
            k = wrong[0]
            raise InputError(
                f"{where}: item {k + 1}: {part} is {few[k]} of {whole} = {many[k]}, expected 0 to {many[k]}; evaluate again"
            )
