"""The numbers, dates, times and amounts that a text mentions, each with every way it can be read.

`parse` looks only at digits and at words of small tables, so it is linear in the text and costs tens of
microseconds a claim. A mention keeps all readings that a careful reader would allow (12/04/2024, 5m, 1.250)
and is met when any of them is. It knows neither claim nor premise, no language but English beyond digits
and symbols, and no sign: a minus is read as a dash, because prose writes both alike. Longer than other files: one reading
of one place of a text, from its sentence to its unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final, NamedTuple

from claimscore.jobs import units
from claimscore.jobs.dates import MONTH_WORDS, Dated, When, century_at, date_at, month_at, stated_order
from claimscore.jobs.digits import number_at
from claimscore.jobs.letters import runs_of
from claimscore.jobs.multiples import dividing
from claimscore.jobs.remembered import Remembered
from claimscore.jobs.spelled import ORDINALS, WORDS, spelled_at
from claimscore.jobs.units import BARE, NOUN, Unit


class Number(NamedTuple):
    """One reading of a mention as a number."""

    raw: float
    """As written, scale words applied."""
    unit: Unit = BARE
    per: str = ""
    step: float = 1.0
    """What the last digit written is worth: 0.1 for 2.3, 1e5 for 2.3 million, 0 for a share in words."""
    approx: bool = False
    """After about, over, nearly and the like."""
    scale: float = 1.0

    @property
    def value(self) -> float:
        """In the base unit of the dimension."""
        return self.raw * self.unit.factor + self.unit.offset


class Mention(NamedTuple):
    """A stretch `text[start:end]` that names a value."""

    start: int
    end: int
    readings: tuple[Number | When, ...]
    demanded: bool = True
    """False where a claim need not prove it: list numbering, part of a name or id, a bare `one` or `first`."""
    shown: tuple[Number, ...] = ()
    """Bare numbers that a date shows (day, year): they can prove a number, never stand in for the date."""
    divides: bool = False
    """Whether its sentence speaks of a division: `45 euros each`."""


_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0x1040,
          0x17E0, 0xFF10)  # fmt: skip
_BLANKS = (0xA0, 0x2007, 0x2009, 0x202F)
_FOLD: Final = (
    {zero + n: 48 + n for zero in _ZEROS for n in range(10)}
    | dict.fromkeys(_BLANKS, 32)
    | {0x2212: 45, 0x2010: 45, 0x2011: 45, 0xFF05: 37, 0xFF0C: 44, 0x3BC: 0xB5}
)
GLYPHS: Final = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_END = r"(?![A-Za-z0-9])"

_LETTERS = re.compile(r"[A-Za-z]+")
_FRACTIONS: Final = "".join(GLYPHS)
_LINK, _ADDRESS = r"(?:https?://|www\.)\S+", r"(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,255}"
_CITED = r"\[\^?\d{1,3}(?:[ ]?[,;–-][ ]?\d{1,3}){0,20}\]|【\d{1,3}[^】\n]{0,40}】"
_MASKS: Final = (  # an address is tried at every word: only where there is a sign of one
    (("@",), re.compile(f"{_LINK}|{_ADDRESS}|{_CITED}")),
    (("http", "www."), re.compile(f"{_LINK}|{_CITED}")),
    (("[", "【"), re.compile(_CITED)),
)
"""Signs, and what is blanked of a text that holds one of them and none of the signs before: links, addresses, citation marks."""
_NUMBERING = re.compile(
    r"(?:^|(?<=\n))[ \t#*>-]{0,8}\d{1,3}\x00{0,40}[.)](?=[ \t*])|(?<=\n)\d{1,3}\x00{0,40}[.)]?$"
)
_AFTER = re.compile(
    r"(?P<gap>[ \n-]?)(?P<w1>%|°[ ]?[CF]?(?![a-z])|[$€£₹]|[万萬億亿]"
    r"|[A-Za-zµ]{1,20}[²³23]?(?:/(?:h|hr|s)(?![A-Za-z]))?)(?:[ -](?P<w2>[A-Za-z]{1,20}))?"
)
_PER = re.compile(r"[ ]?(?:/|per |a |an |each |every |p\.)?[ ]?(?P<unit>[A-Za-z]{1,9})" + _END)
_NOUN = re.compile(r"[ -]([a-z]{3,20})" + _END)
_FUNCTION_WORDS = (
    "and are been but can did does for from had has have her his how into its may more not nor off onto our "
    "out over per she than that the their them then they this those through till until upon was were what "
    "when which while who will with would years year ago old also between during after before each either "
    "respectively less only total under about above below because where whose there these annually yearly "
    "monthly"
)
_NOT_NOUNS: Final = frozenset(_FUNCTION_WORDS.split())
_NOT_ADJECTIVES: Final = _NOT_NOUNS | {"every", "each"}
_APPROX = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|above|exceed(?:s|ed|ing)|more than"
    r"|less than|fewer than|close to|at least|at most|up to|under|below|some|estimated|circa|ca?\.)[ ](?:an? )?"
    r"(?:[$€£₹]|US\$|Rs\.?[ ]?)?|[~≈<>≤≥][ ]?)$",
    re.IGNORECASE,
)
_APPROX_WORDS = (
    "about around approximately approx roughly nearly almost over above exceed exceeds exceeded exceeding than to least "
    "most under below some estimated circa ca c"
)
_APPROX_ENDS: Final = frozenset(_APPROX_WORDS.encode().split())
"""The last word before a number, an article and a currency aside, where _APPROX finds a word."""
_RANGE = re.compile(r"[ ]?(?:-|–|—|to|or|and|,)[ ]?(?:and |or )?[$€£₹]?$")
_NOT_A_NAME: Final = ("mid-", "pre-", "post-", "early-", "late-", "sub-", "non-", "over-", "under-", "plus-")
_LEADING_DOT = re.compile(r"(?:^|[\s(\[$€£₹~≈<>≤≥=+–—-])\.\Z")
_SECTION = re.compile(r"\([a-fk]\)(?:\(\d{1,2}\))?(?!\w)")
"""A letter glued to a number makes it a section of a law, `401(k)`, `501(c)(3)`: texts also write `401k`."""
_LABEL = re.compile(r"(?:\bversions?|\bv\.|\bno\.|\bver\.|\brelease)[ ]?$", re.IGNORECASE)
_LABEL_ENDS: Final = ("version", "versions", "v.", "no.", "ver.", "release")
_MONTH_CUE = re.compile(
    r"\b(?:in|of|by|since|until|till|during|from|to|through|early|late|mid|and|every|last|next|this|before|after)[ -]$",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"[.!?\n](?:(?<=\n)\n|[ \n](?=[A-Z])(?<=[a-z0-9%)\x00]{2}..)(?<!p..)(?<!ca..)(?<!approx..))", re.DOTALL
)
"""Where a sentence ends so plainly that no pattern here sees across it: `p. Night`, `ca. Five` are none. At line ends too,
so that premises of several passages and the chunks of an answer in a row share their sentences with each chunk."""
_REMEMBERED_BYTES: Final = 64 * 1024 * 1024
"""Of the sentences of one order of dates: 2,000 answers, a shard by default, have 50,000, which several stages ask for again."""
_CURRENCY_NAMES: Final = tuple(units.CURRENCIES)
_CURRENCY_ENDS: Final = frozenset(name[-1] for name in _CURRENCY_NAMES)
_KNOWN: Final = WORDS | MONTH_WORDS
_KNOWN_BYTES: Final = frozenset(word.encode() for word in _KNOWN)
_TWO_WAYS: Final = frozenset({"may", "march"})


def parse(text: str, *, cues: bool = True) -> tuple[Mention, ...]:
    """Every mention of a value, in order of place; none for an empty text. Linear in the text.

    Without `cues` no mention has `divides`: of a premise nobody asks, and to look for them is a quarter of the time.
    """
    text = _folded(text)
    found = [_moved(m, at) if at else m for at, of_sentence in _by_sentence(text) for m in of_sentence]
    if numbering := {place for m in _numbered(text) for place in range(m.start(), m.end())}:
        found = [m._replace(demanded=m.demanded and m.start not in numbering) for m in found]
    joined = tuple(_join_ranges(text, found))
    return _cued(text, joined) if cues else joined


def _numbered(text: str) -> Iterator[re.Match[str]]:
    """The matches of _NUMBERING, which begin where a line begins."""
    at = 0
    while True:
        if found := _NUMBERING.match(text, at):
            yield found
        at = text.find("\n", at) + 1
        if not at:
            return


def with_cues(text: str, found: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """`parse(text)`, where `found` is what it gives without `cues`."""
    return _cued(_folded(text), found) if found else found


def _folded(text: str) -> str:
    """`text` with digits and signs of other scripts as ASCII and links and citation marks blanked; of the same length."""
    text = text if text.isascii() else text.translate(_FOLD)
    for signs, mask in _MASKS:
        if [sign for sign in signs if sign in text]:
            return mask.sub(lambda m: "\x00" * len(m[0]), text)
    return text


def _cued(text: str, found: tuple[Mention, ...]) -> tuple[Mention, ...]:
    divides = dividing(text, [mention.start for mention in found])
    return tuple(m._replace(divides=True) if cued else m for m, cued in zip(found, divides, strict=True))


def _tokens(text: str) -> re.Pattern[str]:
    """What finds the digits, fractions and words of a text that may begin a value."""
    if text.isascii():
        return _figures_and(_KNOWN_BYTES.intersection(runs_of(text)))
    words = _KNOWN.intersection([word.lower() for word in _LETTERS.findall(text)])
    return _figures_and(frozenset(word.encode() for word in words))


@lru_cache(maxsize=512)
def _figures_and(known: frozenset[bytes]) -> re.Pattern[str]:
    """Digits, fractions and these words, whole and of any case; one class of characters first, as in multiples.py."""
    words = {word.decode() for word in known}
    firsts = {word[0] for word in words}
    begins = "".join(sorted(firsts | {first.upper() for first in firsts}))
    rests = "|".join(f"(?<=[{word[0]}{word[0].upper()}])(?ai:{word[1:]})" for word in sorted(words))
    word = rf"|(?<![A-Za-z].)(?:{rests})(?![A-Za-z])" if words else ""
    return re.compile(rf"[0-9{_FRACTIONS}{begins}](?:(?<=[0-9])|(?<=[{_FRACTIONS}])[{_FRACTIONS}]*{word})")


@lru_cache(maxsize=4)
def _by_sentence(text: str) -> list[tuple[int, tuple[Mention, ...]]]:
    """Where each sentence with a value begins in a folded text, and its mentions as they stand in it.

    Each distinct sentence is read once: the windows of a chunk share theirs. Asked for twice in a row by rivals.
    """
    read = _of_sentence[stated_order(text)]
    return [(at, found) for at, sentence in _sentences(text) if (found := read[sentence])]


def _moved(mention: Mention, by: int) -> Mention:
    start, end, readings, is_demanded, shown, divides = mention
    return Mention(start + by, end + by, readings, is_demanded, shown, divides)


def by_sentence(text: str) -> list[tuple[Mention, ...]]:
    """What `parse` gives of each sentence that holds a value, but for places, list numbering and the units of ranges."""
    return [found for _, found in _by_sentence(_folded(text))]


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Where each sentence of a folded text begins, and the sentence; no pattern here sees across their ends."""
    at = 0
    for found in _BREAK.finditer(text):
        yield at, text[at : found.start() + (found[0] != "\n\n")]
        at = found.end()
    yield at, text[at:]


def _read(order: str, text: str) -> tuple[Mention, ...]:
    """The mentions of a text whose masks are in place; `order` as of `stated_order`."""
    tokens, at = _tokens(text), 0
    out: list[Mention] = []
    while token := tokens.search(text, at):
        at, word = token.start(), token[0]
        mention: Mention | None
        if word in "0123456789":
            mention = _at_digit(text, at, order)
        elif word in GLYPHS:
            mention = _finish(text, at, at + 1, (GLYPHS[word],), 0.01)
        else:
            mention = _at_word(text, at, word)
        if mention is not None:
            out.append(mention)
        at = token.end() if mention is None else mention.end
    return tuple(out)


def size_of(found: tuple[Mention, ...]) -> int:
    """About how many bytes mentions take."""
    return 400 * len(found)


_of_sentence: Final = {
    order: Remembered(partial(_read, order), size_of, _REMEMBERED_BYTES) for order in ("", "day", "month")
}
"""By the order of its dates."""


def _at_digit(text: str, at: int, order: str) -> Mention:
    before = text[max(0, at - 12) : at]
    is_name = bool(before) and _is_name(before)
    dated = None if is_name else date_at(text, at, order)
    if dated:
        return _of_date(at, dated)
    at -= before.endswith(".") and bool(_LEADING_DOT.search(before))
    found = number_at(text, at)
    section = _SECTION.match(text, found.end)
    if found.is_id or is_name or section:
        end = section.end() if section else found.end
        return Mention(at, end, tuple(Number(run) for run in found.parts), demanded=False)
    return _finish(text, at, found.end, found.readings, found.step)


def _is_name(before: str) -> bool:
    """Whether the text before a digit makes it part of a name, version or id: Auth0, COVID-19, version 2."""
    last = before[-1]
    if last in "_#@":
        return True
    if last.isascii() and last.isalpha():
        return not _currency(before)
    if last == "-" and before[-2:-1].isalpha():
        return not before.lower().endswith(_NOT_A_NAME)
    return before.rstrip().casefold().endswith(_LABEL_ENDS) and bool(_LABEL.search(before))


def _currency(before: str) -> Unit | None:
    """The currency that ends `before` (`Rs. `, `US$`, `€`), or None."""
    before = before.rstrip(" ")
    if before[-1:] not in _CURRENCY_ENDS or not before.endswith(_CURRENCY_NAMES):
        return None
    for name, unit in units.CURRENCIES.items():
        if before.endswith(name):
            head = before[: -len(name)]
            if not name[0].isalpha() or not head or not head[-1].isalnum():
                return unit
    return None


def _finish(text: str, at: int, end: int, raws: tuple[float, ...], step: float) -> Mention:
    """Read what stands before and after a number: currency, scale, unit, per-unit, the noun counted."""
    before = text[max(0, at - 28) : at]
    unit = (_currency(before[-6:]) if before else None) or BARE
    approx = _is_approximate(before)
    scale, also_metres = 1.0, False
    found = _AFTER.match(text, end)
    for _ in range(2):
        factor = units.SCALES.get(found["w1"].lower()) if found else None
        if found is None or factor is None or not _is_scale(found, unit):
            break
        also_metres = found["w1"] == "m" and unit is BARE
        scale, end = scale * factor, found.end("w1")
        found = _AFTER.match(text, end)
    demanded = True
    if unit is BARE or scale == 1.0:
        end, measured, demanded = _unit(text, end, found)
        unit = measured if unit is BARE else unit
    per = unit.per
    if unit is not BARE and unit is not NOUN and (found := _PER.match(text, end)):
        per = units.PER.get(found["unit"].lower(), "") or per
        end = found.end() if per and not unit.per else end
    readings = [Number(raw * scale, unit, per, step * scale, approx, scale) for raw in raws]
    if also_metres:
        readings += [Number(raw, units.UNITS["m"], per, step, approx) for raw in raws]
    if unit is BARE and scale == 1.0 and step == 1.0 and end - at == 4 and 1000 <= raws[0] <= 2100:
        return Mention(at, end, (*readings, When(int(raws[0]), int(raws[0]))))
    return Mention(at, end, tuple(readings), demanded)


def _is_approximate(before: str) -> bool:
    """Whether what stands before a number says that it is none to the digit."""
    is_plain = before.isascii() and "~" not in before and "<" not in before and ">" not in before
    if is_plain and _APPROX_ENDS.isdisjoint(runs_of(before)[-4:]):  # ... about an US$
        return False
    return _APPROX.search(before) is not None


def _is_scale(found: re.Match[str], unit: Unit) -> bool:
    word = found["w1"].lower()
    if word not in units.ATTACHED_ONLY:
        return True
    if found["gap"] == "":  # `$5M in sales`, `2.5M people`
        return True
    return unit is not BARE and not (word == "m" and found["w1"] == "M" and found["w2"])


def _unit(text: str, end: int, found: re.Match[str] | None) -> tuple[int, Unit, bool]:
    """(end, unit, demanded) of what follows a number, `found` by _AFTER; letters of no known unit stuck to it make it a name."""
    if not found:
        return end, BARE, True
    word, gap = found["w1"], found["gap"]
    if found["w2"]:
        unit = units.UNITS.get(f"{word} {found['w2']}".lower())
        if unit:
            return found.end(), unit, True
    stop = end + len(gap) + len(word)
    unit = units.UNITS.get(word) or (units.UNITS.get(word.lower()) if len(word) > 2 else None)
    if unit and not (gap == "-" and len(word) == 1):
        return stop, unit, True
    is_adjective = word.islower() and len(word) > 3 and word not in _NOT_ADJECTIVES
    if is_adjective and len(found["w2"] or "") > 3:  # `two paid days`, `30 calendar days`
        unit = units.UNITS.get(found["w2"].lower())
        if unit:
            return found.end(), unit, True
    if word[0] == "°":
        return stop, BARE, True
    if gap == "" and word[0].isalpha():
        ordinal = word.lower() in ("st", "nd", "rd", "th", "s", "x", "ish")
        return stop, BARE, ordinal
    noun = _NOUN.match(text, end)
    return end, (NOUN if noun and noun[1] not in _NOT_NOUNS else BARE), True


def _at_word(text: str, at: int, word: str) -> Mention | None:
    if word.lower() in MONTH_WORDS:
        return _at_month(text, at, word.lower())
    found = spelled_at(text, at, word)
    if found is None:
        return None
    ordinal = ORDINALS.get(word.lower())
    century = century_at(text, at, ordinal) if ordinal else None
    if century:
        return _of_date(at, century)
    if not found.takes_unit:
        share = (Number(100 * found.value, units.PERCENT, step=0.0),) if found.is_share else ()
        bare = Number(found.value, step=0.0 if found.is_share else 1.0)
        return Mention(at, found.end, (bare, *share), found.demanded)
    mention = _finish(text, at, found.end, (found.value,), 1.0)
    number = mention.readings[0]
    vague = isinstance(number, Number) and number.raw <= 1  # `one day later` is `a day later`
    return mention._replace(demanded=found.demanded and mention.demanded and not vague)


def _at_month(text: str, at: int, word: str) -> Mention | None:
    dated = month_at(text, at)
    if dated is None:
        return None
    bare = dated.readings[0].day is None and dated.readings[0].first_year is None
    return _of_date(at, dated, demanded=not bare or _is_sure(text, at, word))


def _is_sure(text: str, at: int, word: str) -> bool:
    """Whether the name of a month that stands alone is meant as one: `in May`, and no `may`."""
    if not text[at].isupper():
        return False
    return _MONTH_CUE.search(text[max(0, at - 10) : at]) is not None if word in _TWO_WAYS else len(word) > 3


def _of_date(at: int, dated: Dated, *, demanded: bool = True) -> Mention:
    shown = tuple([Number(float(n)) for n in dated.shown])
    return Mention(at, dated.end, dated.readings, demanded, shown)


def _join_ranges(text: str, mentions: list[Mention]) -> list[Mention]:
    """Give the first number of `60 to 70 litres` the unit and scale of the second, as a further reading."""
    for i in range(len(mentions) - 2, -1, -1):
        left, right = mentions[i], mentions[i + 1]
        if right.start - left.end > 8 or not _RANGE.match(text, left.end, right.start):
            continue
        a, b = left.readings[0], right.readings[0]
        if not isinstance(a, Number) or not isinstance(b, Number) or a.unit is not BARE or a.scale != 1.0:
            continue
        if b.unit.dimension or b.scale != 1.0:
            extra = b._replace(raw=a.raw * b.scale, step=a.step * b.scale, approx=a.approx)
            mentions[i] = left._replace(readings=(*left.readings, extra))
    return mentions
