"""Arrow tables as polars frames, and several tables as one: for the stages that decide over columns."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import pyarrow as pa


def as_frame(table: pa.Table) -> pl.DataFrame:
    """The table as a frame, its columns shared where polars can."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def joined(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of one schema one after the other; a column that an older version did not write is null there.

    No tables give an empty one.
    """
    empty = pa.schema([field.with_nullable(True) for field in schema]).empty_table()
    return pa.concat_tables([empty, *tables], promote_options="default")
