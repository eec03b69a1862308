"""Shares drawn by a hash of ids: who is drawn hangs on its own ids alone, never on a neighbour, an order or chance."""

from __future__ import annotations

import hashlib


def share_of(draw: str, *ids: object) -> float:
    """A number in [0, 1) that depends on the draw and the ids alone, even over ids, and says nothing of another draw."""
    name = ":".join(map(str, (draw, *ids))).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest()[:6], "big") / 2**48
