"""A day's answers as one CSV for a spreadsheet: a row an answer, an empty cell for what was not scored, and why.

Text of logs is hostile: a cell that a spreadsheet would take for a formula gets an apostrophe before it, control
characters become blanks, and what shows nothing or turns a line around goes. UTF-8, RFC 4180 quoting.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from claimscore.jobs.exports import Target, publish
from claimscore.jobs.frames import as_frame
from claimscore.jobs.hidden import strip_hidden

NAME = "csv"
ENDING = "csv"
_ORIGIN = ("system", "project", "trace_id", "span_id")
_COLUMNS = (
    *(
        "prompt_version",
        "model",
        "topic",
        "ts",
        "state",
        "groundedness",
        "citation_precision",
        "hallucinated",
    ),
    *("action", "action_reason", "next_step", "failure_mode", "n_claims", "n_scored", "n_supported"),
    *("n_contradicted", "n_unsupported", "n_unscored", "n_cited_claims", "n_citation_ok"),
    *("n_fabricated_citations", "injection_suspected", "question", "answer", "revised_answer"),
)
# What spreadsheets begin a formula with, in full width too; they skip blanks before it.
_FORMULA = r"^[\s\p{Z}\p{C}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[\t\r\n]"
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9F}\x{2028}\x{2029}]"


def harmless(text: pl.Expr) -> pl.Expr:
    """Text that no spreadsheet runs, and that shows all that it holds."""
    seen = text.map_elements(strip_hidden, return_dtype=pl.String)
    plain = seen.str.replace_all(_CONTROLS, " ")
    return pl.when(~plain.str.contains(_FORMULA)).then(plain).otherwise("'" + plain)


def render(answers: pa.Table, verdicts: pa.Table, target: Target) -> bytes:
    """The file; no answers give its header.

    Args:
        answers: ANSWERS of a day.
        verdicts: VERDICTS of the same.
        target: day and series.
    """
    grounds = publish(answers, verdicts, target).filter(pl.col("metric") == "claimscore.groundedness")
    frame = as_frame(answers).select(
        pl.lit(target.date).alias("date"),
        pl.lit(target.series).alias("series"),
        "request_id",
        *_COLUMNS,
        grounds["unscored"].alias("unscored_reason"),
        grounds["explanation"].alias("claims"),
        *(pl.col("origin").struct.field(name).alias(f"origin_{name}") for name in _ORIGIN),
    )
    frame = frame.with_columns(
        pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        pl.col("hallucinated", "injection_suspected").cast(pl.Int8),
    )
    frame = frame.with_columns(harmless(pl.col(pl.String)))
    return frame.write_csv(line_terminator="\r\n").encode()
