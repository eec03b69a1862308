"""The promises of `properties.py` on texts that hypothesis makes of each reader's own signs."""

from __future__ import annotations

import properties
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SIGNS = {
    "sentences": ["The fee is 5. ", "[1]", "[2, doc_9]", "【1†a】", "(1)", "[[1]]", "|", "\n", "- ", "# ", "```\n", "> ", "“a b c d e f”", "。", "\u200b", "é", "["],
    "reply": ['{"claims": [', '"a b"', ", ", "]}", '"', "\\u", "d800", "null", "{", "}", "[", "]", '"claims"', ":", " ", "é"],
    "literal": ["[", "]", "{", "}", "'text'", '"text"', ": ", ", ", "'a'", "1", "1e999", "None", "true", "...", "(", ")", "\\", "-", "'"],
    "config": ["[read]\n", "[store]\n", "[judge]\n", "logs", "out", "card", " = ", '"x"', "1", "nan", "true", "[", "]", "{", "}", "\n", ".", "columns", "\x00", "é", "'", "store.out=", "s3://a:b@c"],
    "values": ["5", "1,000", "3 lakh", "12/04/2024", "5:30 pm", "1.250", "½", "Rs ", "€", "%", " each ", "of ", " ", "-", ".", "\x00", "version ", "٣", "kg", "about ", "\u00ad"],
    "quoted": ["“", "”", '"', "a long word ", "The ", "…", "...", "[", "]", "\x00", "'", "«", "」", "\u00a0", "ß"],
    "marked_up": ["**", "_", "`", "``", "[a](b)", "[[1]](u)", "<b>", "</b>", "&amp;", "$", "\\(", "\\)", "\\frac{1}{2}", "~~", "\\*", "word", " ", "\n", "|", "- ", "```\n", "\u200b", "\r"],
    "provider": ["a", "é", "😀", "字", "\x00", " ", "word"],
}  # fmt: skip


@pytest.mark.parametrize("reader", properties.TARGETS, ids=lambda reader: reader.__name__)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_promise_holds_for_every_text(reader, data):
    """No unexpected exception, no place outside of the text, nothing made up, nothing lost."""
    signs = st.one_of(st.sampled_from(SIGNS[reader.__name__]), st.text(max_size=3))
    text = "".join(data.draw(st.lists(signs, max_size=20)))
    reader(text.encode("utf-8", "replace").decode())


@pytest.mark.parametrize("seed", properties.SEEDS, ids=lambda seed: seed[0])
def test_a_seed_of_the_fuzz_target_is_read(seed):
    """Each seed holds for its own reader, and goes deeper than the first refusal."""
    properties.TARGETS[int(seed[0])](seed[1:])
