"""One monstrous row costs only itself, and a log of ten times as many shards no more memory."""

from __future__ import annotations

import math
import random
import signal
from pathlib import Path

import chaos_job
import jobs_fixture
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kill_server import KillServer

WORDS = [
    "the",
    "refund",
    "window",
    "is",
    "days",
    "fee",
    "euro",
    "lounge",
    "visits",
    "guests",
    "premium",
    "members",
    "pay",
    "pool",
    "hotel",
    "terms",
    "apply",
]
N_ROWS = 6
MOST_MIB = 3_000
"""More memory than a run has at its start, address space of threads and allocators included: the test's own guard."""


def text(n_bytes: int, seed: int = 0) -> str:
    """Plain sentences with numbers in them."""
    rng, out, size = random.Random(seed), [], 0
    while size < n_bytes:
        out.append(f"{' '.join(rng.choices(WORDS, k=14)).capitalize()} {rng.randrange(100)} days.")
        size += len(out[-1]) + 1
    return " ".join(out)


def monster(kind: str) -> dict[str, object]:
    """A row like others but for one part of it."""
    row = chaos_job.log_rows(96, 1)[0] | {"request_id": "monster"}
    return row | {
        "an answer of 20 MB": lambda: {"answer": text(20_000_000)},
        "an answer of 300 kB": lambda: {"answer": text(300_000)},
        "a chunk of 10 MB": lambda: {"chunks": [{"id": "c1", "text": text(10_000_000), "score": 1.0}]},
        "a chunk of 1 MB": lambda: {"chunks": [{"id": "c1", "text": text(1_000_000), "score": 1.0}]},
        "20,000 citations": lambda: {
            "answer": f"The refund window is 60 days {''.join(f'[{k}]' for k in range(1, 20_001))}.",
            "chunks": [{"id": f"c{k}", "text": text(60, k), "score": 1.0} for k in range(20_000)],
        },
        "5,000 chunks": lambda: {"chunks": [{"id": f"c{k}", "text": text(300, k), "score": 1.0} for k in range(5_000)]},
    }[kind]()  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A deployment, a server for its runs, and what a run of a few plain rows costs and gives."""
    folder = tmp_path_factory.mktemp("monsters")
    jobs_fixture.write_config(folder, extra=chaos_job.EXTRA)
    with KillServer(folder) as server:
        yield folder, server, run(folder, server, "plain", chaos_job.log_rows(0, N_ROWS))


def run(
    folder: Path,
    server: KillServer,
    name: str,
    rows: list[dict[str, object]],
    group: int = 100,
    cpu_s: int = 60,
):
    """The cost of a day with these rows, and its tables; it is ended where it takes more CPU or memory than any may."""
    jobs_fixture.write_log(folder / name, rows, group=group)
    out = folder / name / "out"
    settings = [f'read.logs="{folder}/{name}/logs/{{date}}/*.parquet"', f"read.shard_rows={group}"]
    cost = server.run(out, settings, cpu_s=cpu_s, more_mib=MOST_MIB, after_s=10 * cpu_s)
    assert cost["code"] != -signal.SIGXCPU, f"{name}: ended at {cpu_s} s of CPU"
    assert cost["code"] == 0, f"{name}: {cost}"
    assert chaos_job.problems(out, finished=True) == []
    tables: dict[str, list[pa.Table]] = {}
    for key, table in chaos_job.tables(out).items():
        tables.setdefault(key.partition("/")[0], []).append(table)
    return cost, {table: pa.concat_tables(parts) for table, parts in tables.items()}


@pytest.mark.parametrize(
    ("kind", "reason", "seconds", "mib"),
    [
        ("an answer of 20 MB", "row_too_large", 3, 300),
        ("a chunk of 10 MB", "row_too_large", 3, 200),
        ("an answer of 300 kB", "answer_too_large", 3, 100),
        ("a chunk of 1 MB", None, 15, 200),
        ("5,000 chunks", None, 15, 200),
        ("20,000 citations", None, 15, 200),
    ],
)
def test_a_monstrous_row_costs_only_itself(base, kind, reason, seconds, mib):
    """Quarantined with a reason or judged like others, in bounded CPU and memory; its neighbours are as without it."""
    folder, server, (plain_cost, plain) = base
    rows = [*chaos_job.log_rows(0, N_ROWS), monster(kind)]

    cost, tables = run(folder, server, kind, rows, cpu_s=math.ceil(plain_cost["cpu_s"]) + seconds)

    assert cost["cpu_s"] - plain_cost["cpu_s"] < seconds
    assert cost["peak_mib"] - plain_cost["peak_mib"] < mib
    assert tables["quarantine"]["reason"].to_pylist() == ([reason] if reason else [])
    for name in ("claims", "verdicts", "answers"):
        others = tables[name].filter(pc.not_equal(tables[name]["request_id"], "monster"))
        assert others.equals(plain[name]), name
    if reason is None:
        scored = tables["answers"].filter(pc.equal(tables["answers"]["request_id"], "monster"))
        assert scored["state"].to_pylist() == ["scored"]


def test_memory_does_not_grow_with_the_log(base):
    """Sixty shards take the memory of six."""
    folder, server, _ = base
    peaks = [
        run(folder, server, f"of {n}", chaos_job.log_rows(0, n), group=4)[0]["peak_mib"] for n in (24, 240)
    ]

    assert peaks[1] - peaks[0] < 40
