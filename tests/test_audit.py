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
        (["License: MIT", "Classifier: License :: OSI Approved :: MIT License"], "MIT", True),
        (["License: Apache-2.0", "Classifier: License :: OSI Approved"], "Apache-2.0", True),
        (
            ["License: Apache 2.0", "Classifier: License :: OSI Approved :: Apache Software License"],
            *("Apache Software License", False),
        ),
        (
            [
                "License: MIT",
                "Classifier: License :: OSI Approved :: MIT License",
                "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)",
            ],
            *("MIT License; GNU General Public License v3 (GPLv3)", False),
        ),
        (
            ["License: MIT OR Apache-2.0", "Classifier: License :: OSI Approved :: MIT License"],
            *("MIT OR Apache-2.0", True),
        ),
        (
            [
                "License-Expression: MIT",
                "License: GPL-3.0-only",
                "Classifier: License :: Other/Proprietary License",
            ],
            *("MIT", True),
        ),
        (["License: MIT License"], "MIT License", False),
        (["Classifier: License :: OSI Approved :: BSD License"], "BSD License", False),
        ([f"License: Permission is hereby granted, {'free of charge, ' * 9}"], "unknown", False),
        ([], "unknown", False),
    ],
)
def test_a_licence_is_what_is_stated_and_never_a_guess(lines, licence, is_spdx):
    """An expression, else the package's own words, else `unknown`; the text of a licence is not read for its name."""
    assert audit_packages.package(installed("A_b", *lines), "a-b") == Package("a-b", "1.0", licence, is_spdx)


@pytest.mark.parametrize(
    ("field", "classifier"),
    [
        ("MIT", "GNU General Public License v3 (GPLv3)"),
        ("Apache-2.0", "MIT License"),
        ("MIT License", "Other/Proprietary License"),
        ("BSD", "Mozilla Public License 2.0 (MPL 2.0)"),
    ],
)
def test_a_field_that_contradicts_the_classifiers_is_accepted_by_no_list(field, classifier):
    """Whichever of the two is right, nobody knows it from here: both are told, and a person decides."""
    lines = (f"License: {field}", f"Classifier: License :: OSI Approved :: {classifier}")

    one = audit_packages.package(installed("a", *lines), "a")

    accepted = dict.fromkeys((field, classifier, "MIT", "Apache-2.0"), "notice")
    told = f"{field!r} by its field License, {classifier!r} by its classifiers"
    assert (one.licence, one.is_spdx) == (told, False)
    assert audit_packages.outside([one], {}, Accepted(accepted, {}, {}, {})) == [
        f"a 1.0: licence is {told!r}, expected a permissive licence or an exception; see scripts/audit.toml"
    ]


@pytest.mark.parametrize("lacking", ["Name", "Version"])
def test_a_broken_dist_info_is_one_clear_line(monkeypatch, capsys, lacking):
    """Named by what it was found by, with exit code 1, and no traceback."""
    about = "".join(f"{k}: {v}\n" for k, v in (("Name", "a"), ("Version", "1")) if k != lacking)
    broken = Installed(f"Metadata-Version: 2.4\n{about}")
    monkeypatch.setattr(audit_packages, "closure", lambda _: ({"a-b": broken}, {}))
    monkeypatch.setattr(audit_packages.sys, "argv", ["audit", "--extras"])

    assert audit_packages.main() == 1
    assert capsys.readouterr().err == (
        f"scripts/audit: a-b: its dist-info has no {lacking}, expected one; install the package again\n"
    )


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

    assert told["found"] == ["a 1: PYSEC-1, mended in 2"]
    assert (told["asked"], told["skipped"]) == (True, ["b: not on PyPI"])


def test_advisories_are_read_from_a_file_without_a_network(tmp_path):
    """Names in any spelling, local builds as the public version; a file of something else is no answer."""
    flaw = {"id": "pyup.io-1", "v": "<2", "specs": ["<2", ">=5,<6"]}
    file = tmp_path / "insecure_full.json"
    file.write_text(json.dumps({"$meta": {"timestamp": 1625119202}, "A_b": [flaw]}))
    packages = [
        Package(name, version, "MIT", is_spdx=True)
        for name, version in (("a-b", "1.0+cpu"), ("a-b", "3"), ("c", "1"))
    ]

    told = audit_packages.offline_advisories(packages, file)

    assert told["found"] == ["a-b 1.0+cpu: pyup.io-1, in <2"]
    assert told["source"] == "insecure_full.json of 2021-07-01"
    file.write_text("[]")
    with pytest.raises(RuntimeError, match=r"insecure_full.json: .*, expected advisories as in"):
        audit_packages.offline_advisories(packages, file)


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
