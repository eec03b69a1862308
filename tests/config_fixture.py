"""The least deployment there is, and its judge card."""

from __future__ import annotations

CARD = 'name = "stub"\nmodel = "some/hub-id"\nentailment = 0.7\n'
NEEDED = {
    "read": 'logs = "log.parquet"',
    "decompose": 'model = "some/llm"\nchecker = "card.toml"',
    "judge": 'card = "card.toml"',
    "store": 'out = "out"',
}


def write(folder, *, card=CARD, **sections):
    """A deployment's file with its judge card; `sections` are lines added to a section."""
    (folder / "card.toml").write_text(card)
    lines = [
        f"[{section}]\n{NEEDED.get(section, '')}\n{sections.get(section, '')}\n"
        for section in dict.fromkeys([*NEEDED, *sections])
    ]
    path = folder / "job.toml"
    path.write_text("\n".join(lines))
    return path
