"""All hostile cases; as a script, `make_cases.py FOLDER` writes them as Parquet files with what is expected of each.

The files are a log that any configuration with our own column names can be run over.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import byte_cases
import file_cases
import text_cases


def all_cases() -> list[Any]:
    """Every case, in the order of its file's name in the log."""
    cases = [one for kind in (text_cases, file_cases, byte_cases) for one in kind.cases()]
    assert len({case.name for case in cases}) == len(cases), "names are file names"
    return cases


def write_cases(folder: Path) -> dict[str, Any]:
    """Write every case into `folder`; file name -> case. Names sort as the cases stand."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {f"{k:03}.parquet": case for k, case in enumerate(all_cases())}
    for name, case in written.items():
        case.write(folder / name)
    return written


if __name__ == "__main__":
    target = Path(sys.argv[1])
    expected = {file: [case.name, case.rows[:20], case.error] for file, case in write_cases(target).items()}
    (target / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False))
    sys.stdout.write(f"{len(expected)} cases in {target}\n")
