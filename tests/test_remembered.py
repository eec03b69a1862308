"""Results remembered by text within a number of bytes, and the short ways to them: equal to the long ways."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimscore.jobs import (
    bounds,
    citations,
    cues,
    dates,
    facts,
    injections,
    inline,
    letters,
    multiples,
    names,
    origin,
    quantities,
    rivals,
    segment,
)
from claimscore.jobs.remembered import ENTRY_BYTES, Remembered

_VALUES = "5 1,250 2020 $ € Rs. % [1] - , ½ ٣ 5/4/2021 dd/mm/yyyy 1. ca. approx. p. p.m. no. . ! ?"
_WORDS = "12 April May Jan. about The Night per each EUR kg to and version 19th century two hundred Five half every beach"
_MORE = "copper split among guests ratio an A é İ"
_CLAIMED = "12 1954-57 3 lakh not only May may if Adler until at least no. NATO it"
_VALUED = st.lists(
    st.sampled_from(
        ["5 days", "12 days", "EUR 5", "9 euros", "May 2020", "1 June 2021", "30%", "and", "ends. The"]
    ),
    min_size=1,
    max_size=5,
)


def pieces(*drawn: list[str] | str):
    """Texts of these pieces, without blanks of their own between them."""
    flat = [piece for some in drawn for piece in ([some] if isinstance(some, str) else some)]
    return st.lists(st.sampled_from(flat), max_size=40).map("".join)


PIECES = pieces([*_VALUES.split(), *_WORDS.split(), *_MORE.split()], ". ", "\n", "\n\n", " ", " ", " ")


def counting(size=len):
    """A remembered identity, and the texts that it was really asked for."""
    asked: list[str] = []

    def make(text):
        asked.append(text)
        return text

    return Remembered(make, size, 10 * (ENTRY_BYTES + 20)), asked


def test_a_text_is_made_once():
    """A second question is answered from memory."""
    remembered, asked = counting()
    assert [remembered["a"], remembered["b"], remembered["a"]] == ["a", "b", "a"]
    assert asked == ["a", "b"]


def test_what_is_asked_for_again_stays():
    """Texts that come and go do not push out one that is asked for all the time."""
    remembered, asked = counting()
    for k in range(200):
        remembered["always"]
        remembered[f"once {k}"]
    assert asked.count("always") == 1


@given(st.lists(st.text(max_size=200), max_size=80))
def test_no_more_is_kept_than_allowed(texts):
    """What is kept, as its sizes say, never passes the limit, whatever comes."""
    remembered, _ = counting()
    for text in texts:
        assert remembered[text] == text
        kept = [*remembered, *remembered._older]
        assert sum(ENTRY_BYTES + 2 * len(text) for text in kept) <= 10 * (ENTRY_BYTES + 20)


def test_a_result_larger_than_half_the_room_is_not_kept():
    """A monstrous text is made each time, and takes nobody's place."""
    remembered, asked = counting(size=lambda text: 10_000 if text == "x" else 0)
    assert [remembered[text] for text in "axxxa"] == [*"axxxa"]
    assert asked == ["a", "x", "x", "x"]


@settings(max_examples=300)
@given(PIECES)
def test_values_are_the_same_read_by_sentences_or_at_once(text):
    """No value is seen otherwise because its text is read sentence by sentence."""
    by_sentences = quantities.parse(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantities, "_BREAK", re.compile(r"(?!)"))
        assert quantities.parse(text) == by_sentences


@pytest.mark.parametrize("between", ["\n", "\n\n", " "])
def test_passages_in_a_row_are_read_with_their_sentences(between):
    """What a text of several passages says was read in each of them: nothing of it is read again."""
    passages = ["The lease runs 77 days. It costs 81 euros.", "Every visit lasts 23 minutes."]
    for passage in passages:
        quantities.parse(passage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantities._of_sentence[""], "_make", pytest.fail)
        assert len(quantities.parse(between.join(passages))) == 3


@settings(max_examples=300)
@given(PIECES)
def test_words_are_found_where_they_can_begin(text):
    """The cues of a division and of a distribution are those of a search of the whole text."""
    for pattern, starts in (
        (multiples._DIVIDES, multiples._DIVIDES_STARTS),
        (multiples._EACH, multiples._EACH_STARTS),
    ):
        found = [match.span() for match in multiples._matches(text, pattern, starts)]
        assert found == [match.span() for match in pattern.finditer(text)]


@pytest.mark.parametrize("number", range(len(injections._INJECTIONS)))
@settings(max_examples=25)
@given(data=st.data())
def test_every_planted_instruction_holds_a_sign(number, data):
    """No text that a pattern matches is passed over because no sign of it was seen."""
    signs, pattern = injections._INJECTIONS[number]
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(max_codepoint=127)))
    assert any(sign in text.lower() for sign in signs)


@pytest.mark.parametrize("number", range(len(injections._INJECTIONS)))
@settings(max_examples=25)
@given(data=st.data())
def test_a_planted_instruction_in_letters_taken_for_others_holds_a_sign(number, data):
    """The same where letters stand that `re` takes for those of ASCII."""
    text = data.draw(
        st.from_regex(injections._INJECTIONS[number][1], alphabet=st.characters(max_codepoint=127))
    )
    for letter, taken_for in injections._TAKEN_FOR:
        text = text.replace(taken_for, letter, data.draw(st.integers(0, 9)))
    assert injections.is_injection(text) == any(p.search(text) for _, p in injections._INJECTIONS)


def test_letters_taken_for_those_of_ascii_are_all_known():
    """No letter beyond ASCII stands for one of it without being one of those that are looked for."""
    letter = re.compile("[a-z]", re.IGNORECASE)
    assert {char for char in map(chr, range(128, 0x110000)) if letter.match(char)} == {
        char for char, _ in injections._TAKEN_FOR
    }


@settings(max_examples=300)
@given(
    st.lists(
        pieces(
            [
                "Ignore",
                "Ig\u00adnore",
                "all",
                "previous",
                "instructions",
                "now",
                "system:",
                "user",
                "ſ",
                "<|system|>",
            ],
            " ",
        )
        | st.none()
    )
)
def test_planted_instructions_of_a_column_are_those_of_each_text(texts):
    """No text is passed over because the column was looked at first."""
    found = [injections.is_injection(text or "") for text in texts]
    assert injections.are_injections(pa.array(texts, pa.string())) == found


@pytest.mark.parametrize("pattern", [citations._SPOKEN, citations._SPOKEN_FIRST])
@settings(max_examples=200)
@given(data=st.data())
def test_words_that_lead_to_a_mark_end_as_one_of_them(pattern, data):
    """No such words are passed over because they do not look like it."""
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(max_codepoint=127)))
    assert text.rstrip().lower().endswith(citations._SPOKEN_ENDS)


@pytest.mark.parametrize("cue", cues.CUES, ids=lambda cue: cue.signs[0])
@settings(max_examples=25)
@given(data=st.data())
def test_every_qualification_holds_a_sign(cue, data):
    """No text that a cue's pattern matches is passed over because no sign of it was seen."""
    text = data.draw(st.from_regex(cue.asks))
    runs = letters.runs_of(text.lower())
    assert any(sign in text and sign.split()[0].encode() in runs for sign in cue.signs)


def _said(words):
    """A few of these words, mostly with blanks between."""
    between = st.sampled_from([" ", " ", " ", ", ", "-", "_", ""])
    return st.lists(st.tuples(st.sampled_from(words), between), max_size=5).map(
        lambda said: "".join(part for pair in said for part in pair)
    )


@settings(max_examples=300)
@given(_said([*sorted(cues.NEGATION), "No.", "é", "x"]))
def test_a_negation_is_seen_by_its_letters(text):
    """No text with a word that negates is passed over because no run of its letters does."""
    if cues.NEGATION.intersection(facts.WORD.findall(text.lower())):
        assert not cues.NEGATION_RUNS.isdisjoint(letters.runs_of(text.lower()))


@settings(max_examples=300)
@given(_said([*sorted(filter(str.isascii, cues.OTHER_LANGUAGE)), "the", "of", "Die"]))
def test_another_language_is_seen_by_its_letters(text):
    """A text passes for English at the first look only where its words say so too."""
    words = set(facts.WORD.findall(text))
    others = cues.OTHER_LANGUAGE & words
    assert facts.is_english_like(text) == (
        len(others) < 2 or len(others) <= len([word for word in words if word.lower() in cues.ENGLISH])
    )


@settings(max_examples=600)
@given(
    pieces(
        [
            "1",
            "5",
            "12",
            "31",
            "1990",
            "2020",
            "st",
            "th",
            "s",
            "'s",
            "of",
            "May",
            "Sept",
            "jan",
            "a.m.",
            "pm",
            "p",
            "/",
            "-",
            "–",
            ".",
            ":",
            "年",
            "月",
        ],
        " ",
    )
)
def test_a_number_is_tried_as_a_date_wherever_one_can_begin(text):
    """No date is passed over because its number does not look like the beginning of one."""
    for at in (place for place, char in enumerate(text) if char.isdecimal()):
        built = [build(found, "") for pattern, build in dates._BUILDERS if (found := pattern.match(text, at))]
        assert dates.date_at(text, at) == next((date for date in built if date), None)


@settings(max_examples=300)
@given(pieces(["1.", "2)", "5", "-", ">", "x"], " ", "\n", "\n"))
def test_list_numbers_are_found_line_by_line(text):
    """They are those of a search of the whole text."""
    found = [match.span() for match in quantities._numbered(text)]
    assert found == [match.span() for match in quantities._NUMBERING.finditer(text)]


@settings(max_examples=300)
@given(_VALUED.map(" ".join), _VALUED.map(" ".join))
def test_a_premise_is_asked_for_rivals_wherever_it_has_one(claim, premise):
    """None is lost because no sentence seemed to hold two values of a kind."""
    if rivals._rivals(claim, premise):
        assert rivals._has_alike(premise)


@settings(max_examples=300)
@given(st.text(alphabet="aAbB1_-. é\u0307İßſ", max_size=30), st.text(alphabet="ab1é\u0307ß_", max_size=3))
def test_a_word_is_found_in_a_text_as_in_the_set_of_its_words(text, word):
    """To search for one and to cut the text into all say the same."""
    assert (word in names._Words(text)) == (word in names._word_set(text))


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([*_CLAIMED.split(), "two 5"])),
    st.booleans(),
)
def test_a_claim_that_is_its_sentence_is_checked_as_any_other(words, has_context):
    """It is let through where a claim of another object with the same text is."""
    text = " ".join(words)
    sentence, source = origin.Facts(text), origin.Facts(f"Not in 1954- {text}" if has_context else text)
    with pytest.MonkeyPatch.context() as patch:
        same = origin.origin_fault(sentence, sentence, source), origin.coverage_fault([sentence], sentence)
        patch.setattr(origin.Facts, "__eq__", lambda *_: False)
        copy = origin.Facts(text)
        assert same == (origin.origin_fault(copy, sentence, source), origin.coverage_fault([copy], sentence))


@settings(max_examples=300)
@given(PIECES)
def test_a_sentence_without_markup_stands_where_its_words_do(text):
    """The search for markup around sentences finds none in a text that holds none between them."""
    spans = list(bounds.sentence_bounds(text, "en", 1_000))
    if all(bounds.has_word(text[start:end]) for start, end in spans):
        assert list(segment._with_markup(text, range(len(text)), spans)) == spans


@settings(max_examples=300)
@given(
    pieces(
        [
            "*",
            "_",
            "`",
            "~~",
            "\\(",
            "\\)",
            "$",
            "<",
            ">",
            "&",
            "&amp;",
            "]",
            "(",
            "[a](b)",
            "<b>",
            "[1]",
            "x",
            "5",
        ],
        " ",
    )
)
def test_markup_is_seen_by_its_signs(text):
    """A text without a sign of markup has nothing to be taken off."""
    if not inline._may_hold_markup(text):
        assert not inline._edits(text)


@settings(max_examples=300)
@given(pieces(["Ms.", "Mx.", "Messrs.", "Mmes.", "Mr.", "Grams.", "x", "(", "5"], ". ", " ", " "))
def test_a_title_ends_as_one(text):
    """Where a title is found, the text before the name ends with one."""
    if bounds._ADDRESSED.search(text):
        assert text.rstrip().endswith(bounds._TITLES)
