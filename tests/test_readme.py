"""The README's figures are those of the committed results, and its promises name what exists."""

from __future__ import annotations

import re
from pathlib import Path

import readme_figures

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_no_figure_is_typed_by_hand():
    """Every block of figures equals what the newest committed results give."""
    assert readme_figures.fill(README) == README


def test_every_linked_file_exists():
    """A relative link that leads nowhere is a broken promise."""
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_file_of_the_job_has_a_place_in_its_map():
    """Whoever opens jobs/ finds each file in the table, and no file that is gone."""
    table = (ROOT / "jobs" / "README.md").read_text(encoding="utf-8").split("| files |")[1]
    named = set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    files = {path.stem for path in (ROOT / "jobs").glob("*.py")}

    assert (files - named, named - files) == (set(), set())


def test_the_query_of_the_readme_is_one_that_is_tried():
    """TABLES.md's queries are run by test_table_docs.py; the README shows the first of them."""
    (query,) = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)

    assert query in (ROOT / "jobs" / "TABLES.md").read_text(encoding="utf-8")
