"""The sheet that people label in: CSV for any spreadsheet program, and beside it the same claims whole, as Parquet.

Only the labels are read back from the CSV; everything else comes from the Parquet file, because spreadsheets cut long
cells and rewrite what looks like a number. No cell is a formula, the judge's verdict is not shown (it would sway people), and
a label that is not known is an error that names its row. Knows no judge and no log.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.calibration_files import LABELLED, LABELS
from claimscore.jobs.errors import InputError, OutputError, reason_of
from claimscore.jobs.wholefile import parquet_bytes, write_whole

COLUMNS = (
    *("key", "question", "claim", "evidence", "label", "allowed_labels", "note"),
    *("request_id", "topic", "prompt_version"),
)
ALLOWED = ("supported", "unsupported", "contradicted", "unclear")
SHEET = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("claim_index", pa.int32(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("prompt_version", pa.string()),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("p_entailment", pa.float32()),
        pa.field("reason", pa.string(), nullable=False),
        *(field for field in LABELLED if field.name not in ("supported", "label")),
    ]
)
"""One claim of the Parquet file beside a sheet; `weight` is how many claims of the night it stands for."""
MAX_CELL = 30_000
"""Characters of a cell; spreadsheets hold 32,767."""
_FORMULA = "=+-@\t\r\n＝＋－＠"
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet read back."""

    rows: pa.Table
    """SHEET columns with `label` and `supported`: the rows that have a label, those of `unclear` among them."""
    n_rows: int
    n_blank: int


def key_of(request_id: str, claim_index: int, claim: str) -> str:
    """What a row is known by; begins with a letter, or a spreadsheet might take it for a number."""
    text = f"{request_id}\0{claim_index}\0{claim}".encode("utf-8", "surrogatepass")
    return "k" + hashlib.sha256(text).hexdigest()[:11]


def claims_path(sheet: str) -> Path:
    """The Parquet file beside a sheet: `sheet.claims.parquet` for `sheet.csv`.

    Raises:
        InputError: the sheet is a folder.
    """
    if Path(sheet).is_dir():
        raise InputError(f"{sheet}: is a folder, expected a sheet; give a file such as sheet.csv")
    return Path(sheet).with_suffix(".claims.parquet")


def write(rows: pa.Table, to: str, *, force: bool) -> None:
    """Write SHEET rows as CSV (UTF-8 with a byte order mark, every cell quoted) and as Parquet beside it.

    Raises:
        OutputError: a file is there and `force` is off, or cannot be written.
    """
    beside = claims_path(to)
    for path in (Path(to), beside):
        if path.exists() and not force:
            raise OutputError(
                f"{path}: is there already, and labels may stand in it; give --to another, or --force to overwrite it"
            )
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows.to_pylist():
        shown = row | {
            "label": "",
            "allowed_labels": " / ".join(ALLOWED),
            "note": "",
            "evidence": _evidence(row),
        }
        writer.writerow([cell(shown[name]) for name in COLUMNS])
    write_whole(beside, parquet_bytes(rows.cast(SHEET)), option="--to")
    write_whole(Path(to), text.getvalue().encode("utf-8-sig", "replace"), option="--to")


def _evidence(row: dict[str, Any]) -> str:
    """All chunks, each under its id; those that the claim cites are marked."""
    parts = [
        f"[{chunk['id']}]{' (cited)' if chunk['id'] in row['cited_ids'] else ''}\n{chunk['text']}"
        for chunk in row["chunks"]
    ]
    return "\n\n".join(parts)


def cell(value: Any) -> str:
    """A value as a cell that no spreadsheet takes for a formula: without control characters, cut with a mark."""
    text = "" if value is None else str(value)
    text = "".join(c for c in text if c.isprintable() or c in "\n\t")
    if len(text) > MAX_CELL:
        text = f"{text[:MAX_CELL]}\n[cut: {len(text):,} characters; the whole is in the Parquet file beside the sheet]"
    return f"'{text}" if text.startswith(tuple(_FORMULA)) else text


def read(sheet: str, claims: str | None = None) -> Sheet:
    """Read the labels back; case and outer blanks of a label do not matter, blank rows are counted.

    Args:
        sheet: the CSV, with comma, semicolon or tab between cells, UTF-8 or the Windows code page.
        claims: the Parquet file beside it; None: `claims_path`.

    Raises:
        InputError: a file is missing or no sheet of ours, a key is unknown or twice, or a label is none of LABELS; up
            to ten rows are named.
    """
    beside = Path(claims) if claims else claims_path(sheet)
    known = _claims(beside)
    place = {key: k for k, key in enumerate(known.column("key").to_pylist())}
    found: dict[int, str] = {}
    problems: list[str] = []
    n_rows = n_blank = 0
    for number, key, label in _rows_of(sheet):
        n_rows += 1
        where = f"row {number} ({key[:40]!r})"
        if key not in place:
            problems.append(f"{where}: a key that {beside.name} has not")
        elif not label:
            n_blank += 1
        elif label not in LABELS:
            problems.append(f"{where}: label {label[:40]!r}")
        elif place[key] in found:
            problems.append(f"{where}: labelled twice")
        else:
            found[place[key]] = label
    if problems:
        more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(
            f"{sheet}: {'; '.join(problems[:_SHOWN])}{more}; labels are {', '.join(ALLOWED)}; mend the rows and read it again"
        )
    rows = known.take(pa.array(sorted(found), pa.int64()))
    labels = [found[k] for k in sorted(found)]
    rows = rows.append_column("label", pa.array(labels, pa.string()))
    return Sheet(
        rows.append_column("supported", pa.array([LABELS[label] for label in labels], pa.bool_())),
        n_rows,
        n_blank,
    )


def _claims(path: Path) -> pa.Table:
    try:
        return pq.read_table(path).select(SHEET.names).cast(SHEET)
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file, expected the claims beside the sheet; give --claims where the sheet was renamed"
        ) from None
    except (OSError, KeyError, ValueError, pa.ArrowException) as err:
        raise InputError(
            f"{path}: not the claims of a sheet: {reason_of(err)}; give the file that `claimscore label` wrote"
        ) from err


def _rows_of(sheet: str) -> Iterator[tuple[int, str, str]]:
    """(line as a spreadsheet counts, key, folded label) of each row that is not empty."""
    try:
        raw = Path(sheet).read_bytes()
    except OSError as err:
        raise InputError(f"{sheet}: {reason_of(err)}, expected a sheet of `claimscore label`") from err
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")  # only keys and labels are read, and they are ASCII
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        names = [name.strip().casefold() for name in next(rows, [])]
        if not {"key", "label"} <= set(names):
            raise InputError(
                f"{sheet}: columns {names[:12]!r}, expected 'key' and 'label' among them; save the sheet as CSV"
            )
        at = names.index("key"), names.index("label")
        for number, row in enumerate(rows, start=2):
            if any(value.strip() for value in row):
                key, label = (row[k].strip() if k < len(row) else "" for k in at)
                yield number, key, label.casefold()
    except csv.Error as err:
        raise InputError(f"{sheet}: no CSV: {err}; save the sheet as CSV again") from err


def counts(rows: pa.Table) -> dict[str, int]:
    """How often each label occurs."""
    return dict(sorted(Counter(rows.column("label").to_pylist()).items()))
