"""Arrow tables as polars frames: for the stages that decide over columns."""

from __future__ import annotations

import polars as pl
import pyarrow as pa


def as_frame(table: pa.Table) -> pl.DataFrame:
    """The table as a frame, its columns shared where polars can."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
