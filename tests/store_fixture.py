"""A store in a folder of its own, and a small table to write into it."""

from __future__ import annotations

import pyarrow as pa

from claimscore.jobs.config import StoreConfig
from claimscore.jobs.layout import TableFile
from claimscore.jobs.store import Store

DATE = "2026-11-28"
SERIES = "demo-0123abcd"
CLAIMS_FILE = TableFile("claims", DATE, "00000000000000aa")
VERDICTS_FILE = TableFile("verdicts", DATE, "00000000000000aa", SERIES)
SCHEMA = pa.schema([pa.field("request_id", pa.string(), nullable=False), ("p", pa.float32())])
PARTS = {"claims": "aaaa", "judge weights": "bbbb"}


def open_store(path, **config):
    return Store(str(path), StoreConfig(out=str(path), **config), run_id="run-1")


def rows(n=3, prefix="r"):
    return pa.table({"request_id": [f"{prefix}{i}" for i in range(n)], "p": [i / 7 for i in range(n)]})


def write(store, file=VERDICTS_FILE, table=None, parts=PARTS):
    store.write(file, rows() if table is None else table, SCHEMA, parts=parts, counts={"answers": 2})
