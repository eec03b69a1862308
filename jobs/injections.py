"""Text that speaks to a model instead of to a reader: orders, role changes, template tokens, invisible tags.

A small set of patterns that flags for a person and decides nothing; an attack in other words passes, and so does one in
another language. The module knows no chunk and no answer.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from claimscore.jobs.hidden import strip_hidden

# Each pattern is a way to address a model, not a topic: a chunk may discuss prompts without being one. Gaps are bounded, so
# that no text costs more than linear time; a text that holds none of the words in front is not searched for what is behind.
_INJECTIONS: Final = tuple(
    (tuple(signs.split()), re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for signs, pattern in (
        (
            "ignore disregard forget override bypass",
            (
                r"\b(?:ignore|disregard|forget|override|bypass)\W{1,3}(?:all\W{1,3}|any\W{1,3}|the\W{1,3}|your\W{1,3}|my\W{1,3}|of\W{1,3}){0,3}"
                r"(?:previous|prior|above|earlier|preceding|existing|system|safety)\W{1,3}(?:\w{1,20}\W{1,3}){0,2}?"
                r"(?:instruction|prompt|rule|direction|guideline|polic|context|passage|message)"
            ),
        ),
        (
            "now",
            r"\byou\W{1,3}are\W{1,3}now\W{1,3}(?:an?\W{1,3})?(?:\w{1,20}\W{1,3}){0,3}?(?:ai|assistant|chatbot|dan|mode|model|developer|jailbroken|unrestricted)\b",
        ),
        (
            "prompt message instructions",
            r"\b(?:reveal|print|repeat|output|show|leak|tell me)\W{1,3}(?:\w{1,12}\W{1,3}){0,3}?(?:system\W{1,2}(?:prompt|message)|(?:hidden|initial|secret)\W{1,3}(?:instructions|prompt))",
        ),
        (
            "instruction",
            r"\b(?:new|updated|hidden|important)\W{1,3}(?:system\W{1,3})?instructions?\W{1,3}(?:for|to)\W{1,3}(?:the\W{1,3})?(?:ai|assistant|model|llm|chatbot|system)\b",
        ),
        (
            "must should shall",
            (
                r"\b(?:ai|assistant|llm|language)\W{1,3}(?:models?|assistants?|system|agents?)?\W{0,3}(?:must|should|shall)\W{1,3}(?:now\W{1,3}|always\W{1,3}|only\W{1,3})?"
                r"(?:say|answer|respond|reply|recommend|ignore|output|tell|state|claim)\b"
            ),
        ),
        (
            "asked summari answering",
            r"\b(?:when|if)\W{1,3}(?:you\W{1,3}(?:are\W{1,3})?)?(?:asked|summari[sz]ing|answering)\b[^.\n]{0,60}?,\W{0,3}(?:always\W{1,3}|you\W{1,3}must\W{1,3})?(?:say|answer|respond|reply|recommend|output)\b",
        ),
        (
            "user",
            r"\bdo\W{1,3}not\W{1,3}(?:tell|inform|alert|warn|mention\W{1,3}this\W{1,3}to)\W{1,3}the\W{1,3}user\b",
        ),
        (
            "<| inst] <<sys>>",
            r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<<SYS>>",
        ),
        (
            "prompt message instruction override",
            r"^[ \t#*]{0,8}(?:system|assistant)[ \t]{0,4}(?:prompt|message|instructions?|override)[ \t*]{0,4}:",
        ),
    )
)
_SIGNS: Final = tuple((sign, k) for k, (signs, _) in enumerate(_INJECTIONS) for sign in signs)
_ANY_SIGN: Final = "|".join(sorted({re.escape(sign) for sign, _ in _SIGNS}))
_TAKEN_FOR: Final = (("ſ", "s"), ("ı", "i"), ("İ", "i"), ("\N{KELVIN SIGN}", "k"))
"""Letters beyond ASCII that match one of ASCII where case is ignored; all of them."""
_TAG_CHARS = re.compile("[\U000e0020-\U000e007e]{4}")  # ASCII in invisible tag characters: nobody types that


def are_injections(texts: pa.Array) -> list[bool]:
    """`is_injection` of each text, null being empty; one look at the column says which have to be asked."""
    signed = pc.match_substring_regex(texts, _ANY_SIGN, ignore_case=True)
    asked = pc.or_(signed, pc.invert(pc.string_is_ascii(texts))).fill_null(False)
    found = [False] * len(texts)
    for row in np.flatnonzero(np.asarray(asked)).tolist():
        found[row] = is_injection(texts[row].as_py())
    return found


def is_injection(text: str) -> bool:
    """Whether a text, hidden characters aside, addresses a model. Linear in the text; an empty one does not."""
    if not text.isascii():
        if _TAG_CHARS.search(text):
            return True
        text = strip_hidden(text)
    lowered = _lowered(text)
    signed = {k for sign, k in _SIGNS if sign in lowered}
    return any(_INJECTIONS[k][1].search(text) for k in signed)


def _lowered(text: str) -> str:
    """In lower case, with each letter as the ASCII letter for which `re` takes it."""
    if not text.isascii():
        for letter, taken_for in _TAKEN_FOR:
            text = text.replace(letter, taken_for)
    return text.lower()
