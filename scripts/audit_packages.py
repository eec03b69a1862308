"""Every package that claimscore brings along: its version, its licence, and what an advisory database says of it.

    scripts/audit                    # what scripts/test installs: the extras cpu, demo and dev
    scripts/audit --extras gpu hub   # where those are installed

Follows the requirements of pyproject.toml through the metadata of what is installed; needs no network. A licence is an SPDX
expression where the package states one, else the words that it states, else `unknown`: nothing is guessed. What may be
used without a word is in scripts/audit.toml, and so are the exceptions, each with its reason. Advisories are asked for
with pip-audit where that is installed (it asks PyPI, so it needs the network), or read from a file (`--advisories
insecure_full.json`, as the package safety-db holds one); where there is neither, that is said, and the result says `not asked`. Exit code 1: a licence outside the list, a package that is missing, or an advisory.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("cpu", "demo", "dev")
UNKNOWN = "unknown"
_FAMILIES = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "Apache": r"\bapache",
        "Artistic": r"\bartistic",
        "BSD": r"\bbsd",
        "CC0": r"\bcc0|public domain",
        "EPL": r"\bepl|eclipse",
        "GPL": r"\b(?:a|l)?gpl|\bgnu\b",
        "ISC": r"\biscl?\b",
        "MIT": r"\bmit\b",
        "MPL": r"\bmpl|mozilla",
        "PSF": r"\bpsf|python software foundation|\bpython-2",
        "proprietary": r"proprietary|commercial",
        "Unlicense": r"\bunlicen[cs]e",
        "Zlib": r"\bzlib",
        "ZPL": r"\bzpl|zope",
    }.items()
}
"""The same licence by its SPDX identifier, by the words of a classifier and by what people write."""
LONGEST_NAME = 60
"""Characters: what is longer in the field `License` is a licence's text and no name."""


@dataclass(frozen=True, slots=True)
class Package:
    """One installed distribution of the closure."""

    name: str
    version: str
    licence: str
    """An SPDX expression, the words that the package states, or `unknown`."""
    is_spdx: bool


@dataclass(frozen=True, slots=True)
class Accepted:
    """What scripts/audit.toml accepts."""

    permissive: Mapping[str, str]
    """SPDX identifier, or the words of packages without one -> why."""
    exceptions: Mapping[str, Mapping[str, str]]
    """package -> `licence`, as the package states it, and `why`."""
    absent: Mapping[str, str]
    """package that is required and left out on purpose -> why."""
    also: Mapping[str, Mapping[str, str]]
    """package that scripts/setup installs alone, without what it requires -> the `extra` that needs it, and `why`."""


def closure(
    requirements: Iterable[str], find: Callable[[str], Distribution] = importlib.metadata.distribution
) -> tuple[dict[str, Distribution], dict[str, set[str]]]:
    """What `requirements` bring along here: the installed distributions, and the missing ones with who requires them.

    Markers are read for this interpreter and platform, extras are followed. Names are in their canonical form; no
    requirement gives two empty results.
    """
    found: dict[str, Distribution] = {}
    missing: dict[str, set[str]] = {}
    todo = [("claimscore", text, "") for text in requirements]
    seen: set[tuple[str, str]] = set()
    while todo:
        asker, text, extra = todo.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            found[name] = found.get(name) or find(name)
        except PackageNotFoundError:
            missing.setdefault(name, set()).add(asker)
            continue
        for wanted in ("", *sorted(requirement.extras)):
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                todo += [(name, text, wanted) for text in found[name].requires or ()]
    return found, missing


def package(distribution: Distribution, called: str) -> Package:
    """Name, version and licence of a distribution, from its metadata alone.

    Where the field `License` and the classifiers have no licence in common, both are given, so that no list accepts them.

    Args:
        distribution: installed.
        called: the name that it was found by.

    Raises:
        RuntimeError: its metadata has no name or no version.
    """
    about = distribution.metadata
    for key in ("Name", "Version"):
        if not about.get(key):
            raise RuntimeError(
                f"{called}: its dist-info has no {key}, expected one; install the package again"
            )
    name, version = canonicalize_name(about["Name"]), str(about["Version"])
    if (expression := _spdx(about.get("License-Expression"))) is not None:
        return Package(name, version, expression, is_spdx=True)
    words = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    field = (about.get("License") or "").strip()
    is_name = bool(field) and "\n" not in field and len(field) <= LONGEST_NAME
    ours, theirs = _families(field if is_name else ""), _families("; ".join(words))
    if ours and theirs and not ours & theirs:
        both = f"{field!r} by its field License, {'; '.join(words)!r} by its classifiers"
        return Package(name, version, both, is_spdx=False)
    if (
        theirs <= ours and (expression := _spdx(field)) is not None
    ):  # of more than the field names, all must be accepted
        return Package(name, version, expression, is_spdx=True)
    return Package(name, version, "; ".join(words or [field] * is_name) or UNKNOWN, is_spdx=False)


def _spdx(text: str | None) -> str | None:
    """The text as a canonical expression; None where it is none."""
    try:
        return str(canonicalize_license_expression(text or ""))
    except InvalidLicenseExpression:
        return None


def _families(words: str) -> frozenset[str]:
    """Which licences a text names, whatever their version and their spelling; none where it names no known one."""
    return frozenset(name for name, pattern in _FAMILIES.items() if pattern.search(words))


def is_permissive(one: Package, accepted: Mapping[str, str]) -> bool:
    """Whether every licence that binds is in `accepted`: all of an AND, one of an OR, all words that are stated."""
    if not one.is_spdx:
        return all(words in accepted for words in one.licence.split("; "))
    names, expression = {*accepted, "yes"}, one.licence
    while bracket := re.search(r"\(([^()]*)\)", expression):
        expression = expression.replace(bracket[0], "yes" if _holds(bracket[1], names) else "no")
    return _holds(expression, names)


def _holds(expression: str, names: AbstractSet[str]) -> bool:
    """A canonical expression without brackets; AND binds before OR."""
    return any(
        all(name in names for name in alternative.split(" AND ")) for alternative in expression.split(" OR ")
    )


def outside(
    packages: Sequence[Package], missing: Mapping[str, AbstractSet[str]], accepted: Accepted
) -> list[str]:
    """One line a package that scripts/audit.toml does not accept: what it states, or who misses it."""
    found = []
    for one in packages:
        exception = accepted.exceptions.get(one.name, {}).get("licence")
        if exception != one.licence and not is_permissive(one, accepted.permissive):
            expected = (
                f"{exception!r} by its exception" if exception else "a permissive licence or an exception"
            )
            found.append(
                f"{one.name} {one.version}: licence is {one.licence!r}, expected {expected}; see scripts/audit.toml"
            )
    return found + [
        f"{name}: not installed, required by {', '.join(sorted(askers))}; install it, so that it can be looked at"
        for name, askers in sorted(missing.items())
        if name not in accepted.absent
    ]


def advisories(packages: Sequence[Package], has_pip_audit: bool) -> dict[str, Any]:
    """What pip-audit says of these very versions: `asked`, `found` (a line an advisory), `skipped` (a line a package).

    Without pip-audit nothing was asked, and `asked` is false. An answer that cannot be read is no answer: RuntimeError.
    """
    if not has_pip_audit:
        return {"asked": False, "source": "", "found": [], "skipped": []}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pins:
        # A local build (2.13.0+cpu) is the public version to an advisory.
        pins.writelines(f"{one.name}=={Version(one.version).public}\n" for one in packages)
        pins.flush()
        command = ["--requirement", pins.name, "--no-deps", "--disable-pip", "--format", "json"]
        run = subprocess.run(
            [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", *command],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        answers = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError) as err:
        last = (run.stderr.strip().splitlines() or ["nothing"])[-1]
        raise RuntimeError(
            f"pip-audit: exit code {run.returncode} and no report, expected JSON; it said: {last}"
        ) from err
    return {
        "asked": True,
        "source": "pip-audit",
        "found": [
            f"{one['name']} {one['version']}: {flaw['id']}, mended in {', '.join(flaw['fix_versions']) or 'no version yet'}"
            for one in answers
            for flaw in one.get("vulns", ())
        ],
        "skipped": [f"{one['name']}: {one['skip_reason']}" for one in answers if "skip_reason" in one],
    }


def offline_advisories(packages: Sequence[Package], file: Path) -> dict[str, Any]:
    """As `advisories`, of a file in the form of safety-db's insecure_full.json: for a machine without a network.

    A file that is something else is no answer: RuntimeError.
    """
    try:
        known = json.loads(file.read_bytes())
        made = datetime.fromtimestamp(known["$meta"]["timestamp"], UTC)
        flaws = {canonicalize_name(name): entries for name, entries in known.items() if name != "$meta"}
        found = [
            f"{one.name} {one.version}: {flaw['id']}, in {flaw['v']}"
            for one in packages
            for flaw in flaws.get(canonicalize_name(one.name), ())
            if any(Version(Version(one.version).public) in SpecifierSet(spec) for spec in flaw["specs"])
        ]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise RuntimeError(
            f"{file}: {err!r}, expected advisories as in insecure_full.json of safety-db"
        ) from err
    return {"asked": True, "source": f"{file.name} of {made:%Y-%m-%d}", "found": found, "skipped": []}


def audit(
    extras: Sequence[str], accepted: Accepted, has_pip_audit: bool, offline: Path | None = None
) -> dict[str, Any]:
    """The whole of it; `outside` and `advisories` say what does not pass."""
    project = _project()
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found, missing = closure(wanted)
    for name, how in accepted.also.items():
        if how["extra"] in extras:
            try:
                found[name] = importlib.metadata.distribution(name)
            except PackageNotFoundError:
                missing[name] = {"scripts/setup"}
    packages = [package(found[name], name) for name in sorted(found)]
    return {
        "extras": list(extras),
        "n_packages": len(packages),
        "licences": dict(Counter(one.licence for one in packages).most_common()),
        "not_permissive": {
            f"{one.name} {one.version}": f"{one.licence}: {accepted.exceptions.get(one.name, {}).get('why', 'no exception')}"
            for one in packages
            if not is_permissive(one, accepted.permissive)
        },
        "absent": {name: why for name, why in accepted.absent.items() if name in missing},
        "outside": outside(packages, missing, accepted),
        "advisories": offline_advisories(packages, offline)
        if offline
        else advisories(packages, has_pip_audit),
        "packages": {one.name: f"{one.version}, {one.licence}" for one in packages},
    }


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def text(result: Mapping[str, Any]) -> str:
    """The result as lines."""
    told = result["advisories"]
    asked = (
        f"advisories: {told['source']} was asked, {len(told['found'])} found"
        if told["asked"]
        else "advisories: NOT ASKED, pip-audit is not installed; pip install pip-audit and call this again with a network"
    )
    lines = [
        *(f"{name} {about}" for name, about in result["packages"].items()),
        f"{result['n_packages']} packages (extras {', '.join(result['extras']) or 'none'})",
        *(f"not permissive: {name}: {why}" for name, why in result["not_permissive"].items()),
        *(f"left out on purpose: {name}: {why}" for name, why in result["absent"].items()),
        *(f"OUTSIDE: {line}" for line in result["outside"]),
        asked,
        *(f"not looked at: {line}" for line in told["skipped"]),
        *(f"ADVISORY: {line}" for line in told["found"]),
    ]
    return "\n".join(lines)


def main() -> int:
    """Command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/audit", description="Licences and advisories of every package."
    )
    parser.add_argument(
        "--extras",
        nargs="*",
        choices=list(_project()["optional-dependencies"]),
        default=list(EXTRAS),
        help="cpu demo dev if not given",
    )
    parser.add_argument(
        "--advisories",
        type=Path,
        metavar="FILE",
        help="a file of advisories to read instead of asking pip-audit",
    )
    parser.add_argument("--record", action="store_true", help="write the result under benchmarks/results/")
    options = parser.parse_args()
    accepted = Accepted(**tomllib.loads((ROOT / "scripts" / "audit.toml").read_text(encoding="utf-8")))
    try:
        has_pip_audit = importlib.util.find_spec("pip_audit") is not None
        result = audit(options.extras, accepted, has_pip_audit, options.advisories)
    except RuntimeError as err:
        print(f"scripts/audit: {err}", file=sys.stderr)
        return 1
    print(text(result))
    if options.record:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        import _harness as harness

        command = " ".join(["scripts/audit", *sys.argv[1:]])
        harness.finish(harness.card("audit") | {"command": command} | result, record=True)
    return int(bool(result["outside"] or result["advisories"]["found"]))


if __name__ == "__main__":
    sys.exit(main())
