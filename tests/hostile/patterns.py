"""Every compiled pattern of `jobs/`, how it is called there, and texts that would make a bad one slow.

Found by looking, not by a list: module globals for the patterns, the source for the methods that are called on each.
"""

from __future__ import annotations

import ast
import importlib
import re
import re._constants as sre
import re._parser as sre_parser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JOBS = Path(__file__).parents[2] / "jobs"
_HEAVY = {"actors", "cluster", "encoder", "judge", "llm"}
"""Modules that load ray or torch; none of them compiles a pattern, which `test_regex_time.py` checks."""
_PLAIN = [*"a1A \n.,-_:'\"", "é", "字", "\u200b", "😀"]


@dataclass(slots=True)
class Used:
    """A compiled pattern and the methods that some module calls on it."""

    pattern: re.Pattern[str]
    methods: set[str] = field(default_factory=set)


def patterns() -> dict[str, Used]:
    """`module.NAME` -> pattern, tables of patterns included (`bounds._SCRIPTS[3]`)."""
    found: dict[str, Used] = {}
    owned: dict[tuple[str, str], list[Used]] = {}
    for file in sorted(JOBS.glob("*.py")):
        if file.stem in _HEAVY:
            continue
        module = importlib.import_module(f"claimscore.jobs.{file.stem}")
        for name, value in vars(module).items():
            for place, pattern in _inside(value):
                used = next((u for u in found.values() if u.pattern is pattern), None) or Used(pattern)
                found.setdefault(f"{file.stem}.{name}{place}", used)
                owned.setdefault((file.stem, name), []).append(used)
    for file in sorted(JOBS.glob("*.py")):
        for name, method in _calls(file):
            for used in owned.get((file.stem, name), ()):
                used.methods.add(method)
    # One that is only handed on (`pattern.finditer(text)`) is searched for.
    return {name: Used(u.pattern, u.methods or {"finditer"}) for name, u in _firsts(found).items()}


def compiles(file: Path) -> bool:
    """Whether a source file compiles a pattern."""
    return "re.compile(" in file.read_text(encoding="utf-8")


def _firsts(found: dict[str, Used]) -> dict[str, Used]:
    seen: dict[int, str] = {}
    for name, used in found.items():
        seen.setdefault(id(used), name)
    return {name: found[name] for name in seen.values()}


def _inside(value: Any, place: str = "") -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield place, value
    elif isinstance(value, tuple | list) and len(value) < 99:
        for i, item in enumerate(value):
            yield from _inside(item, f"{place}[{i}]")


def _calls(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name):
                yield owner.id, node.func.attr
            elif isinstance(owner, ast.Attribute):
                yield owner.attr, node.func.attr


def alphabet(pattern: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """The characters and the literal words that a pattern names, with some plain ones."""
    chars, words = set[str](), set[str]()
    _collect(sre_parser.parse(pattern.pattern, pattern.flags), chars, words)
    return [*_PLAIN, *sorted(chars)[:24]], sorted(words, key=lambda w: (-len(w), w))[:24]


def _collect(parsed: Any, chars: set[str], words: set[str]) -> None:
    run = ""
    for op, value in [*parsed, (None, None)]:
        if op is sre.LITERAL:
            chars.add(chr(value))
            run += chr(value)
            continue
        if len(run) > 1:
            words.add(run)
        run = ""
        for inner in _parts(op, value, chars):
            _collect(inner, chars, words)


def _parts(op: Any, value: Any, chars: set[str]) -> list[Any]:
    if op is sre.IN:
        for kind, item in value:
            if kind in (sre.LITERAL, sre.RANGE):
                chars.add(chr(item if kind is sre.LITERAL else item[0]))
    if op is sre.NOT_LITERAL:
        chars.add(chr(value))
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]
    if op is sre.SUBPATTERN:
        return [value[3]]
    if op is sre.ATOMIC_GROUP:
        return [value]
    if op is sre.BRANCH:
        return list(value[1])
    return [value[1]] if op in (sre.ASSERT, sre.ASSERT_NOT) else []


def run(used: Used, text: str) -> None:
    """Call every method that the code calls, to its end."""
    for method in sorted(used.methods):
        call = getattr(used.pattern, method, None)
        if call is None:
            continue
        if method in ("sub", "subn"):
            call("", text)
        elif method == "finditer":
            for _ in call(text):
                pass
        else:
            call(text)
