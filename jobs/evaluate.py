"""`claimscore evaluate`: a golden set through the product, and its rates.

The golden set is a log with gold columns (answerable, gold_chunk_ids, reference_answer, human_label) and, where there is
one, a boolean column `conflicting`. It is run as a log apart and measured from the answers table; what the rates mean and
when not to trust them is `golden`'s.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from claimscore.jobs import apart, golden, logrows, recipes, settings
from claimscore.jobs.config import Config
from claimscore.jobs.layout import TableFile
from claimscore.jobs.read import list_files
from claimscore.jobs.records import ANSWERS
from claimscore.jobs.shards import plan_shards
from claimscore.jobs.store import Store
from claimscore.jobs.uri import shown


def evaluate(config: Config, gold: str, *, by: str, out: str | None, quiet: bool) -> dict[str, Any]:
    """Run the golden set (what is stale of it) and measure it.

    Args:
        config: the deployment; its `[read] columns` hold for the golden set, and our own names beside them.
        gold: a Parquet file, folder or glob, local or s3://.
        by: one of golden.GROUPS_BY.
        out: the output root of the run; None: `evaluate/<name of the golden set>` below `[store] out`.
        quiet: no progress.

    Returns:
        The document of `golden.evaluate`, with kind, gold, series, out, n_rows, n_quarantined, failures, and made_by: what
        the gate must find equal in another evaluation (recipes.py), with the settings that it tells what changed by.

    Raises:
        ClaimscoreError: the run cannot be made, or nothing of the golden set can be read.
    """
    mine = apart.config_of(
        config, apart.place(gold), out or apart.below(config.store.out, "evaluate", apart.name_of(gold))
    )
    report = apart.run(mine, quiet=quiet)
    store = Store(mine.store.out, mine.store)
    answers, conflicting = _items(mine, store, report["series"])
    document = golden.evaluate(answers, conflicting, by=by, config=config.metrics)
    n_quarantined = report["n_rows"] - answers.num_rows
    if n_quarantined:
        told = f"{n_quarantined} of {report['n_rows']} rows are not in the rates: quarantined, or their shard failed"
        document["warnings"].insert(0, told)
    of_run = {name: report[name] for name in ("series", "out", "n_rows", "failures")}
    made_by, kept = recipes.recipe(store, report["series"], apart.DAY), settings.known(store)
    of_run["made_by"] = made_by
    of_run["settings"] = {key: kept[key] for key in sorted(set(made_by.values())) if key in kept}
    return (
        {"kind": golden.EVALUATION, "gold": shown(gold), "n_quarantined": n_quarantined} | of_run | document
    )


def _items(config: Config, store: Store, series: str) -> tuple[pa.Table, pa.Array]:
    """The answers of the run, and beside them the gold's `conflicting`, null where it has none."""
    fs, files = list_files(config.read.logs, apart.DAY)
    shards, _ = plan_shards(fs, files, config.read.shard_rows)
    tables, flags = [ANSWERS.empty_table()], [pa.array([], pa.bool_())]
    made = {file.shard_id for file in store.files("answers", date=apart.DAY, series=series)}
    for shard in shards:
        if shard.shard_id in made:
            answers = store.read(TableFile("answers", apart.DAY, shard.shard_id, series))
            quarantine = store.read(TableFile("quarantine", apart.DAY, shard.shard_id), ["row"])
            tables.append(answers)
            flags.append(logrows.conflicting(fs, shard, quarantine.column("row"), answers.num_rows))
    return pa.concat_tables(tables), pa.concat_arrays(flags)
