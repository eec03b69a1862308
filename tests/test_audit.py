"""scripts/audit: what packages state is told as it is, and what the committed list does not accept ends with code 1."""

from __future__ import annotations

import json
import subprocess
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import audit_packages
import pytest
from audit_packages import Accepted, Package

LIST = Path(audit_packages.__file__).with_name("audit.toml")


class Installed(Distribution):
    """A distribution that is its metadata."""

    def __init__(self, about: str) -> None:
        self._about = about

    def read_text(self, filename):
        return self._about if filename == "METADATA" else None

    def locate_file(self, path):
        raise NotImplementedError


def installed(name: str, *lines: str) -> Installed:
    return Installed("\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, ""]))


ACCEPTED = Accepted(
    permissive={"MIT": "notice", "Apache-2.0": "notice", "MIT License": "notice"},
    exceptions={"odd": {"licence": "unknown", "why": "read by hand"}},
    absent={"gone": "taken away"},
    also={},
)


@pytest.mark.parametrize(
    ("lines", "licence", "is_spdx"),
    [
        (["License-Expression: mit or apache-2.0"], "MIT OR Apache-2.0", True),
        (["License: Apache-2.0", "Classifier: License :: OSI Approved :: MIT License"], "Apache-2.0", True),
        (["License: MIT License"], "MIT License", False),
        (["Classifier: License :: OSI Approved :: BSD License"], "BSD License", False),
        ([f"License: Permission is hereby granted, {'free of charge, ' * 9}"], "unknown", False),
        ([], "unknown", False),
    ],
)
def test_a_licence_is_what_is_stated_and_never_a_guess(lines, licence, is_spdx):
    """An expression, else the package's own words, else `unknown`; the text of a licence is not read for its name."""
    assert audit_packages.package(installed("A_b", *lines)) == Package("a-b", "1.0", licence, is_spdx)


@pytest.mark.parametrize(
    ("licence", "holds"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND (Apache-2.0 OR GPL-3.0-only)", True),
        ("(MIT OR Apache-2.0) AND (GPL-3.0-only OR (MPL-2.0 AND MIT))", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
    ],
)
def test_all_of_an_and_and_one_of_an_or(licence, holds):
    """What binds must be accepted; where one may choose, one is enough."""
    assert (
        audit_packages.is_permissive(Package("p", "1", licence, is_spdx=True), ACCEPTED.permissive) == holds
    )


def test_requirements_are_followed_through_extras_and_markers():
    """What an extra brings is found, what a marker leaves out is not, and what is missing names who requires it."""
    here = {
        "a": installed("a", "Requires-Dist: b[x]", 'Requires-Dist: never; python_version < "3"'),
        "b": installed(
            "b", 'Requires-Dist: c; extra == "x"', 'Requires-Dist: d; extra == "y"', "Requires-Dist: a"
        ),
        "c": installed("c", "Requires-Dist: gone"),
    }

    def find(name):
        if name not in here:
            raise PackageNotFoundError(name)
        return here[name]

    found, missing = audit_packages.closure(["A>=1"], find)

    assert (sorted(found), missing) == (["a", "b", "c"], {"gone": {"c"}})


def test_what_is_not_accepted_is_named():
    """Another licence than the exception's, an unknown one, and a package that is missing: a line each."""
    lines = audit_packages.outside(
        [
            Package("fine", "1", "MIT", is_spdx=True),
            Package("odd", "1", "unknown", is_spdx=False),
            Package("odd", "2", "GPL-3.0-only", is_spdx=True),
            Package("mute", "3", "unknown", is_spdx=False),
        ],
        {"gone": {"fine"}, "lost": {"odd"}},
        ACCEPTED,
    )

    assert lines == [
        "odd 2: licence is 'GPL-3.0-only', expected 'unknown' by its exception; see scripts/audit.toml",
        "mute 3: licence is 'unknown', expected a permissive licence or an exception; see scripts/audit.toml",
        "lost: not installed, required by odd; install it, so that it can be looked at",
    ]


def answering(monkeypatch, stdout: str, code: int) -> None:
    """pip-audit, as a program that says this."""
    run = subprocess.CompletedProcess([], code, stdout, "no network")
    monkeypatch.setattr(audit_packages.subprocess, "run", lambda *_, **__: run)


def test_advisories_are_told_with_what_mends_them(monkeypatch):
    """A flaw and a package that was skipped: a line each."""
    flawed = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
    answering(
        monkeypatch, json.dumps({"dependencies": [flawed, {"name": "b", "skip_reason": "not on PyPI"}]}), 1
    )

    told = audit_packages.advisories([Package("a", "1", "MIT", is_spdx=True)], has_pip_audit=True)

    assert told == {"asked": True, "found": ["a 1: PYSEC-1, mended in 2"], "skipped": ["b: not on PyPI"]}


def test_an_audit_that_failed_or_was_not_made_is_no_pass(monkeypatch):
    """Without pip-audit it is said that nobody was asked; with one that gives no report the audit fails by name."""
    answering(monkeypatch, "", 1)

    assert audit_packages.advisories([], has_pip_audit=False)["asked"] is False
    with pytest.raises(RuntimeError, match="exit code 1 and no report, expected JSON; it said: no network"):
        audit_packages.advisories([], has_pip_audit=True)


def test_every_entry_of_the_list_has_a_reason():
    """The committed list is read by the code that uses it, and says why of each entry."""
    accepted = Accepted(**tomllib.loads(LIST.read_text(encoding="utf-8")))
    reasons = [*accepted.permissive.values(), *accepted.absent.values()]
    reasons += [entry["why"] for entry in (*accepted.exceptions.values(), *accepted.also.values())]

    assert all(len(reason) >= 5 for reason in reasons)


@pytest.mark.parametrize(("outside", "found", "code"), [([], [], 0), (["x"], [], 1), ([], ["x"], 1)])
def test_the_exit_code_says_whether_all_is_accepted(monkeypatch, capsys, outside, found, code):
    """0, or 1 for a licence outside the list or an advisory; the text says that nobody was asked."""
    result = audit_packages.audit([], ACCEPTED, has_pip_audit=False) | {"outside": outside}
    result["advisories"]["found"] = found
    monkeypatch.setattr(audit_packages, "audit", lambda *_: result)
    monkeypatch.setattr(audit_packages.sys, "argv", ["audit", "--extras"])

    assert audit_packages.main() == code
    assert "advisories: NOT ASKED, pip-audit is not installed" in capsys.readouterr().out
