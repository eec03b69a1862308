"""Answers of a day in few words, and one metric of what was measured."""

from __future__ import annotations

import pyarrow as pa

from claimscore.jobs.config import MetricsConfig
from claimscore.jobs.metrics import NEEDED_COLUMNS
from claimscore.jobs.records import ANSWERS

CONFIG = MetricsConfig(n_resamples=200)
PLAIN = {
    "prompt_version": "v1",
    "model": "m",
    "topic": "cards",
    "state": "scored",
    "groundedness": None,
    "hallucinated": None,
    "action": "deliver",
    "injection_suspected": False,
    "answerable": None,
    "recall_at_k": None,
    "reference_overlap": None,
    "human_label": None,
}


def answers_table(rows):
    """An ANSWERS table, needed columns only, of dicts of what is not plain; counts are 0 unless given."""
    full = [
        {name: 0 for name in NEEDED_COLUMNS if name.startswith("n_")}
        | PLAIN
        | {"request_id": f"r{i:05}"}
        | row
        for i, row in enumerate(rows)
    ]
    schema = pa.schema([ANSWERS.field(name) for name in NEEDED_COLUMNS])
    return pa.Table.from_pylist(full, schema=schema)


def scored(n_scored, n_supported, **more):
    """An answer of n_scored claims of which n_supported are supported."""
    return {
        "n_claims": n_scored,
        "n_scored": n_scored,
        "n_supported": n_supported,
        "n_unsupported": n_scored - n_supported,
        "groundedness": n_supported / n_scored,
        "hallucinated": n_supported < n_scored,
    } | more


def metric(table, name, grouping="all", **key):
    """The one row of a metric."""
    rows = [
        row
        for row in table.to_pylist()
        if row["metric"] == name and row["grouping"] == grouping and all(row[k] == v for k, v in key.items())
    ]
    assert len(rows) == 1
    return rows[0]
