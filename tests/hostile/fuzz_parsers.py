"""Coverage-guided fuzzing of what reads hostile texts; run by hand, it is no test: `pip install atheris`, then

    python tests/hostile/fuzz_parsers.py -max_total_time=300 -max_len=1500 -timeout=10 [CORPUS_FOLDER]

A finding is an exception that no caller expects, a promise of `properties.py` that is broken, or (-timeout) a text that takes
too long. The seeds are written to the folder when it is given; libFuzzer adds what it finds there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["claimscore", "markdown_it", "json", "tomllib"]):
    import properties


def fuzz(data: bytes) -> None:
    """The first byte chooses the target, the rest is its text."""
    text = data[1:].decode("utf-8", "replace")
    properties.TARGETS[(data[0] if data else 0) % len(properties.TARGETS)](text)


if __name__ == "__main__":
    for k, seed in enumerate(properties.SEEDS):
        fuzz(seed.encode())
        for folder in [Path(arg) for arg in sys.argv[1:] if not arg.startswith("-")][:1]:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"seed-{k}").write_bytes(seed.encode())
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()
