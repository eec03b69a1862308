"""What a hostile case is: one Parquet file, and what must become of each of its rows, written by hand.

Beside the hostile row stands a plain one whose verdicts are known; a case that changes them has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CHUNKS = [
    {"id": "c1", "text": "The refund window is 60 days. Premium members pay no fee.", "score": 0.9},
    {"id": "c2", "text": "The lounge allows 8 visits a year. Guests pay 20 euro.", "score": 0.8},
]
GOOD_ANSWER = "The refund window is 60 days [1]. Guests pay 900 euro [2]."
GOOD = "scored: supported, unsupported"
"""What becomes of the plain row, in every case: its first sentence holds, its second gives another sum."""
SCHEMA = pa.schema(
    [
        ("request_id", pa.string()),
        ("question", pa.string()),
        ("answer", pa.string()),
        (
            "chunks",
            pa.list_(pa.struct([("id", pa.string()), ("text", pa.string()), ("score", pa.float64())])),
        ),
        ("status", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Case:
    """One file and its expected outcome.

    `rows` holds, for each row of the file: a state of the answer, `scored: ` and the verdicts in order (an unscored one with
    its reason), or `!` and the reason of its quarantine. `error` is what the failure of the whole file must say.
    """

    name: str
    write: Callable[[Path], None]
    rows: tuple[str, ...] = ()
    error: str = ""


def row(request_id: str, **changes: Any) -> dict[str, Any]:
    """A plain row with these columns in place of its own."""
    plain = {"question": "What applies?", "answer": GOOD_ANSWER, "chunks": CHUNKS, "status": None}
    return {"request_id": request_id, **plain, **changes}


def beside_good(name: str, expected: str, **changes: Any) -> Case:
    """A case of one hostile row between two plain ones, all as plain string columns."""
    rows = [row(f"good-{name}"), row(**{"request_id": f"bad-{name}"} | changes), row(f"after-{name}")]
    return Case(name, writer(pa.Table.from_pylist(rows, SCHEMA)), (GOOD, expected, GOOD))


def writer(table: pa.Table, **options: Any) -> Callable[[Path], None]:
    """Writes `table` when asked."""
    return lambda path: pq.write_table(table, path, **options)


def with_column(name: str, column: str, values: Any, expected: Sequence[str], **options: Any) -> Case:
    """A case of plain rows with one column replaced by an array (or taken away: None)."""
    table = pa.Table.from_pylist([row(f"{name}-{k}") for k in range(len(expected))], SCHEMA)
    at = table.column_names.index(column) if column in table.column_names else None
    values = pa.array(values) if isinstance(values, list) else values
    if values is None:
        table = table.drop_columns([column])
    elif at is None:
        table = table.append_column(column, values)
    else:
        table = table.set_column(at, column, values)
    return Case(name, writer(table, **options), tuple(expected))
