"""What people are shown of a place: never a key."""

from __future__ import annotations

import pytest

from claimscore.jobs.uri import shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "s3://KEY:SECRET@bucket/logs/*.parquet?endpoint_override=host&token=SECRET",
            "s3://bucket/logs/*.parquet",
        ),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("S3://KEY:SECRET@bucket/x?secret=1", "S3://bucket/x"),
        ("cannot list 's3://KEY:SECRET@b/x?secret=1': no answer", "cannot list 's3://b/x': no answer"),
        ("s3:/KEY:SECRET@bucket/x: no such file", "s3:/bucket/x: no such file"),
        ("/data/logs/date=2026-11-28/*.parquet", "/data/logs/date=2026-11-28/*.parquet"),
        ("logs?x", "logs?x"),
        ("", ""),
        ("s3://KEY:SE#C?R@ET@bucket/x.json: gone", "s3://bucket/x.json: gone"),
        ("s3://KEY:SE'CRET@bucket/x", "s3://bucket/x"),
        ("https://host/x?sig='SECRET'&a=1", "https://host/x"),
        ("https://TOKEN@host/x", "https://host/x"),
        (
            "s3://bucket/team@corp/x.parquet: cannot be read",
            "s3://bucket/team@corp/x.parquet: cannot be read",
        ),
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("file:///data/a@b/c.parquet", "file:///data/a@b/c.parquet"),
    ],
)
def test_a_uri_is_cut_down_to_scheme_and_place(text: str, expected: str):
    """User, password and query go; text that is no URI stays."""
    assert shown(text) == expected
