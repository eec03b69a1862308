"""A failure is told in one line, whatever it quotes."""

from __future__ import annotations

import pickle

from claimscore.jobs.errors import InputError


def test_a_message_is_one_printable_line():
    """Line breaks, terminal escapes and signs that turn the line around are blanks, also after a trip between processes."""
    err = InputError("a.parquet: found\n'\x1b[31m\x07x\u202ey\x00', expected text")

    assert str(err) == "a.parquet: found ' [31m x y ', expected text"
    assert str(pickle.loads(pickle.dumps(err))) == str(err)
