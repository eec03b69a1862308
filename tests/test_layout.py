"""Names of partitions and files: what may become one, and what never may."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimscore.jobs.errors import OutputError
from claimscore.jobs.layout import TableFile, series_name

DATE = "2026-11-28"


@pytest.mark.parametrize("date", ["2026-13-01", "20261128", "2026-11-28T00:00", "../../etc", ""])
def test_a_date_that_is_none_is_refused(date):
    """Only a real day in the one spelling becomes a folder."""
    with pytest.raises(OutputError, match=re.escape(f"date {date!r}: not a day, expected YYYY-MM-DD")):
        TableFile("claims", date, "aa")


@pytest.mark.parametrize("name", ["..", "a/b", "a=b", "Upper", "", ".hidden", "a\n"])
def test_names_that_break_partitions_are_refused(name):
    """A series from the command line cannot leave its folder or confuse a reader."""
    with pytest.raises(OutputError, match="not a partition value"):
        TableFile("verdicts", DATE, "aa", name)


@given(st.text(max_size=30))
def test_any_judge_name_makes_a_series(name):
    """Whatever a judge card calls its judge, the series is a valid partition value."""
    assert TableFile("verdicts", DATE, "aa", series_name(name, "0123456789abcdef")).series.endswith(
        "-01234567"
    )
