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
