"""The tokenizer of a checkpoint: spans in code points, no special token out of a text, nothing cut or padded."""

import pyarrow as pa
import pytest
import tiny_deberta as tiny
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from claimscore.jobs.errors import ModelError
from claimscore.jobs.tokenizer import load_tokenizer


def test_text_cannot_place_a_separator(tmp_path):
    """[SEP] and [CLS] written in a chunk are unknown tokens, not ends of the premise."""
    tokenizer = load_tokenizer(str(tiny.write_tiny(tmp_path)))
    found = tokenizer.encode(pa.array(["shop [SEP] open [CLS] [PAD] [UNK]"]))["ids"][0].as_py()

    assert not {0, 1, 2} & set(found)
    assert found.count(3) == 4


def test_what_the_tokenizer_does_not_know_has_the_unknown_id(tmp_path):
    """Two words of a foreign script have the same ids, and `unk_id` is among them."""
    tokenizer = load_tokenizer(str(tiny.write_tiny(tmp_path)))
    first, second = tokenizer.encode(pa.array(["ሙዝየም", "ሆቴል"]))["ids"].to_pylist()

    assert (set(first), tokenizer.unk_id in first) == (set(second), True)


def test_words_of_another_case_have_one_form(tmp_path):
    """`A` and `a` are two ids and one form; a form is an id."""
    tokenizer = load_tokenizer(str(tiny.write_tiny(tmp_path)))
    table = tokenizer.encode(pa.array(["A", "a", "b"]))
    ids, forms = (table[name].to_pylist() for name in ("ids", "forms"))

    assert (forms[0] == forms[1], forms[1] == forms[2]) == (True, False)
    assert {i for row in forms for i in row} <= set(range(tokenizer.n_ids))
    assert ids[0] != ids[1]


def test_truncation_and_padding_of_the_file_are_off(tmp_path):
    """A checkpoint that ships its training length does not cut ours."""
    lengths = load_tokenizer(str(tiny.write_tiny(tmp_path))).encode(pa.array(["a b " * 100, "a"]))["ids"]

    assert [len(row) for row in lengths.to_pylist()] == [400, 2]


TOKENIZER = None


@given(st.lists(st.text(max_size=40), max_size=8))
@example(["The shop, ﬁne ①②", "", "  a\tb\n\nc ", "cafe\u0301 Ｆｕｌｌ", "👩‍👩‍👧 x", "\u200bzero", "½ ㎏"])
def test_spans_slice_their_own_text(tmp_path_factory, texts):
    """Spans are code points within the text and never go back; each text has its own row."""
    global TOKENIZER  # noqa: PLW0603 - one file for all examples
    TOKENIZER = TOKENIZER or load_tokenizer(str(tiny.write_tiny(tmp_path_factory.mktemp("tokenizer"))))

    table = TOKENIZER.encode(pa.array(texts, pa.string()))

    assert len(texts) == len(table)
    for text, starts, ends in zip(texts, table["starts"].to_pylist(), table["ends"].to_pylist(), strict=True):
        assert all(0 <= start <= end <= len(text) for start, end in zip(starts, ends, strict=True))
        assert starts == sorted(starts)
        assert ends == sorted(ends)


def test_spans_name_the_words(tmp_path):
    """Beyond the first plane and after a ligature, a span still holds its word."""
    text = "😀 ﬁne shop"
    table = load_tokenizer(str(tiny.write_tiny(tmp_path))).encode(pa.array([text]))

    assert text[table["starts"][0][-1].as_py() : table["ends"][0][-1].as_py()].strip() == "shop"


def test_rows_stay_with_their_texts_across_calls_to_the_library(tmp_path, monkeypatch):
    """Tokenising a few texts at a time gives the rows of all at once."""
    tokenizer = load_tokenizer(str(tiny.write_tiny(tmp_path)))
    texts = pa.array(["shop", "", "open the shop", "a", "b c"])
    whole = tokenizer.encode(texts)
    monkeypatch.setattr("claimscore.jobs.tokenizer.ENCODE_ROWS", 2)

    assert whole.equals(tokenizer.encode(texts))


def test_a_null_text_is_refused(tmp_path):
    """A text that is not there is not an empty text."""
    with pytest.raises(ValueError, match="1 of 2 texts are null"):
        load_tokenizer(str(tiny.write_tiny(tmp_path))).encode(pa.array(["a", None]))


def test_a_checkpoint_without_a_fast_tokenizer_says_how_to_get_one(tmp_path):
    """spm.model alone is refused with the way out."""
    folder = tiny.write_tiny(tmp_path)
    (folder / "tokenizer.json").rename(folder / "spm.model")

    with pytest.raises(ModelError, match=r"AutoTokenizer.from_pretrained\(MODEL\).save_pretrained\(FOLDER\)"):
        load_tokenizer(str(folder))


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_a_tokenizer_that_is_none_is_refused(tmp_path, content):
    """A torn or foreign tokenizer.json is named."""
    (tiny.write_tiny(tmp_path) / "tokenizer.json").write_text(content)

    with pytest.raises(ModelError, match=r"tokenizer.json: cannot be read"):
        load_tokenizer(str(tmp_path))


def test_a_tokenizer_without_separators_is_refused(tmp_path):
    """No [CLS], no pair."""
    model = tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")
    tokenizers.Tokenizer(model).save(str(tiny.write_tiny(tmp_path) / "tokenizer.json"))

    with pytest.raises(ModelError, match=r"no token \[CLS\], \[SEP\] or \[UNK\]"):
        load_tokenizer(str(tmp_path))


def test_hidden_characters_are_not_tokenised(tmp_path):
    """Ids are those of the plain text, and the spans are places in the text as it was logged."""
    plain, odd = "fee fee", "f\u00ade\u200be fe\u202ee\ufeff"
    table = load_tokenizer(str(tiny.write_tiny(tmp_path))).encode(pa.array([plain, odd]))
    ids, starts, ends = (table.column(name).to_pylist() for name in ("ids", "starts", "ends"))

    assert ids[0] == ids[1]
    assert (odd[starts[1][0]], odd[ends[1][-1] - 1]) == ("f", "e")
