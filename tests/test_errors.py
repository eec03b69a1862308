"""A failure is told in one line, whatever it quotes."""

from __future__ import annotations

import pickle

import pytest

from claimscore.jobs.errors import ConfigError, InputError, ModelError, OutputError


def test_a_message_is_one_printable_line():
    """Line breaks, terminal escapes and signs that turn the line around are blanks, also after a trip between processes."""
    err = InputError("a.parquet: found\n'\x1b[31m\x07x\u202ey\x00', expected text")

    assert str(err) == "a.parquet: found ' [31m x y ', expected text"
    assert str(pickle.loads(pickle.dumps(err))) == str(err)


@pytest.mark.parametrize("kind", [ConfigError, InputError, ModelError, OutputError])
def test_no_message_holds_the_keys_of_a_place(kind: type[Exception]):
    """Whoever words an error may quote a place as it was given."""
    err = kind("s3://KEY:SECRET@bucket/x?token=SECRET: no such file, beside 's3://KEY:SECRET@bucket/y'")

    assert str(err) == "s3://bucket/x: no such file, beside 's3://bucket/y'"
