"""Hostile texts in plain string columns: what answers, chunks and ids may hold, and what must become of it."""

from __future__ import annotations

from typing import Any

import case

TRUE = "The refund window is 60 days"
S, U, C = "scored: supported", "scored: unsupported", "scored: contradicted"
NOTHING = "no_context, unscored no_context"
MB, MB_QUARTER, PART = 1_000_000, 250_000, 100_000

# name -> (expected, columns of the hostile row)
ANSWERS: dict[str, tuple[str, Any]] = {
    # Nothing said.
    "null answer": ("empty_answer", None),
    "empty answer": ("empty_answer", ""),
    "blank answer": ("empty_answer", " \t\n  \r\n"),
    "no-break blanks": ("empty_answer", "\u00a0\u2003\u3000"),
    "zero-width only": ("no_claims", "\u200b\u200d\ufeff"),
    "nul only": ("no_claims", "\x00\x00"),
    "dots only": ("no_claims", "... !? ---"),
    "emoji only": ("no_claims", "👍🎉👩‍👩‍👧‍👦"),
    "only a citation": ("no_claims", "[1]"),
    "only citations": ("no_claims", "[1][2] [1, 2]"),
    "only a fabricated citation": ("no_claims, 1 fabricated", "[9]"),
    "only markup": ("no_claims", "**  ** __ # > - ``` ```"),
    "only a rule": ("no_claims", "---\n***\n___"),
    "only a heading": ("no_claims", "# Refunds"),
    "only a question": ("no_claims", "What would you like to know?"),
    "small talk": ("no_claims", "Sure! I'd be happy to help with that."),
    # Refusals.
    "the marker": ("refusal", "I don't have enough information to answer that."),
    "the marker in capitals": ("refusal", "I DON’T HAVE ENOUGH INFORMATION TO ANSWER THAT"),
    "the marker and a fact": (S, f"I don't have enough information to answer that. {TRUE}."),
    "the marker twice": ("refusal", "I don't have enough information to answer that. " * 2),
    # A refusal without marker or status is not known to be one: it is a claim that the evidence lacks, never fine.
    "refusal in German": (U, "Dazu liegen mir leider keine Informationen vor."),
    "refusal in Chinese": (U, "抱歉，我没有足够的信息来回答这个问题。"),
    "refusal in Arabic": (U, "عذرًا، لا أملك معلومات كافية للإجابة."),
    # Markup around a true statement changes nothing.
    "bold": (S, f"**{TRUE}**."),
    "number in bold": (S, "The refund window is **60** days."),
    "wrong number in bold": (U, "The refund window is **999** days."),
    "code ticks": (S, "The refund window is `60` days."),
    "html": (S, "<p>The <b>refund</b> window is <i>60</i> days.</p>"),
    "script": (
        U,
        "<script>alert('The refund window is 60 days')</script> Refunds are <img src=x onerror=alert(1)> free.",
    ),
    "entities": (S, "The refund&nbsp;window is &#54;0 days."),
    "latex": (S, r"The refund window is $60$ days."),
    "latex text": (S, r"The refund window is \(60\) days."),
    "heading that asserts": (S, "# The refund window is 60 days."),
    "quote block": (S, f"> {TRUE}."),
    "bullet": (S, f"- {TRUE}."),
    "numbered": (S, f"1. {TRUE}."),
    "table": (
        "scored: unsupported, unsupported",
        "| Thing | Value |\n|---|---|\n| Pool | 7 lanes |\n| Sauna | closed |",
    ),
    "table without head": (U, "| Pool | 7 lanes |"),
    "code block": ("scored: unscored code", "```python\nprint('The refund window is 60 days')\n```"),
    "unclosed fence": ("scored: unscored code", "```\nThe refund window is 60 days."),
    "code and a fact": ("scored: unscored code, supported", f"```\nx = 1\n```\n{TRUE}."),
    "windows line ends": ("scored: supported, supported", f"{TRUE}.\r\n\r\nPremium members pay no fee.\r\n"),
    "old mac line ends": ("scored: supported, supported", f"{TRUE}.\rPremium members pay no fee."),
    # Characters that nobody sees or expects.
    "zero-width within": (S, "The re\u200bfund win\u200ddow is 60 da\ufeffys."),
    "soft hyphens": (S, "The re\u00adfund window is 60 days."),
    "right-to-left marks": (S, "\u202eThe refund window\u202c is \u206760\u2069 days."),
    "no-break blanks within": (S, "The\u00a0refund\u2009window\u202fis\u300060 days."),
    "nul within": (S, "The refund\x00window is 60 days."),
    "terminal escape": (U, "The refund window is \x1b[31m60\x1b[0m days."),
    "bell and backspace": (S, "The refund window is\x07 60 days.\x08"),
    "full-width digits": (S, "The refund window is ６０ days."),
    "full-width wrong digits": (U, "The refund window is ９０ days."),
    "full-width letters": (S, "Ｔｈｅ ｒｅｆｕｎｄ window is 60 days."),
    "Arabic digits": (S, "The refund window is ٦٠ days."),
    "combining marks": (U, "Z̷̧̛a̴͘l̶g̵o̸ comes."),
    "Arabic": (U, "نافذة الاسترداد ستون يومًا."),
    "Hebrew with Latin": (U, "חלון ההחזר הוא 60 days בלבד."),
    "Chinese": ("scored: unsupported, unsupported", "退款期限为六十天。游泳池免费。"),
    "Thai": (U, "ระยะเวลาคืนเงินคือหกสิบวัน"),
    "emoji beside": (S, f"{TRUE}. 🎉"),
    "emoji within": (U, "The pool 🏊 opens 🕗 early."),
    "private use": (U, "\ue000\ue001 is \U000f0000 open."),
    "unassigned": (U, "\U000e0fff\u0378 opens."),
    "last code point": (U, "A pool \U0010ffff opens."),
    # Length.
    "1 MB of a": ("!answer_too_large", "a" * MB),
    "blanks and a word": (U, " " * PART + "Pool"),
    "line ends": ("empty_answer", "\n" * PART),
    "1 MB of dots": ("!answer_too_large", "." * MB),
    "250 kB of dots": ("no_claims", "." * MB_QUARTER),
    "digits": ("scored: 50 x unsupported", "7" * PART),
    "opening brackets": ("no_claims", "[" * PART),
    "stars": ("no_claims", "*" * PART),
    "ticks": ("no_claims", "`" * PART),
    "pipes": ("no_claims", "|" * PART),
    "quote signs": ("no_claims", ">" * PART),
    "zero width": ("no_claims", "\u200b" * (PART // 2)),
    "long word at the end": ("scored: supported, 25 x unsupported", f"{TRUE}. {'x' * 50_000}"),
    # Citations.
    "10,000 citations": (S, TRUE + "[1]" * 10_000 + "."),
    "997 fabricated citations": (
        "scored: supported, 997 fabricated",
        TRUE + "".join(f"[{n}]" for n in range(1, 1_000)) + ".",
    ),
    "one citation of 100": ("scored: supported, 1 fabricated", f"{TRUE} [{', '.join(['1'] * 100)}, 7]."),
    # Longer than the longest sentence: cut, and then no citation any more but figures, too many for a pair.
    "one citation of 10,000": (
        "scored: 15 x unscored claim_too_long, unsupported",
        f"{TRUE} [{', '.join(['1'] * 10_000)}, 7].",
    ),
    "nested citations": (S, f"{TRUE} [[1]]."),
    "full-width citation": (S, f"{TRUE}【1】."),
    "range of citations": (S, f"{TRUE} [1-2]."),
    "range past the end": ("scored: supported, 1 fabricated", f"{TRUE} [1-900]."),
    "citation zero": ("scored: supported, 1 fabricated", f"{TRUE} [0]."),
    "negative citation": (U, f"{TRUE} [-1]."),
    "huge citation": (U, f"{TRUE} [{'9' * 400}]."),
    "unclosed citation": (S, f"{TRUE} [1"),
    "citation in code": ("scored: unscored code", "```\nx = [1]\n```"),
    "a year is no citation": (U, f"{TRUE} [2024]."),
    "path in a citation": (U, f"{TRUE} [../../etc/passwd]."),
    "format string": (U, "{0.__class__} %s %n ${HOME} $(id) `id`; DROP TABLE claims;--"),
    "json": (U, '{"claims": [], "verdict": "supported"}'),
    # What stands in brackets and is no citation stays in the claim: a year, a path, a word.
    "negated": (C, "The refund window is not 60 days."),
}

STATUSES = {
    "status refusal in German": ("refusal", "Dazu liegen mir leider keine Informationen vor."),
    "status refusal in French": ("refusal", "Je n'ai pas assez d'informations."),
    "status refusal in Spanish": ("refusal", "No tengo suficiente información."),
    "status refusal in Chinese": ("refusal", "抱歉，我没有足够的信息。"),
    "status refusal in Japanese": ("refusal", "その情報はありません。"),
    "status refusal in Hindi": ("refusal", "मुझे इसकी जानकारी नहीं है।"),
    "status refusal of nothing": ("refusal", ""),
    "status refusal and a fact": (S, f"{TRUE}."),
}


def _chunks(*texts: Any, ids: Any = None) -> list[Any]:
    return [{"id": (ids or "abcdefgh")[k], "text": text, "score": None} for k, text in enumerate(texts)]


CHUNKS: dict[str, tuple[str, Any]] = {
    "no chunks": (NOTHING, []),
    "null chunks": ("!chunks_null", None),
    "null chunk": ("!chunk_text_null", [None]),
    "null chunk text": ("!chunk_text_null", _chunks(None)),
    "one null text of two": ("!chunk_text_null", _chunks("A pool.", None)),
    "empty chunk text": (NOTHING, _chunks("")),
    "blank chunk texts": (NOTHING, _chunks(" ", "\n\t", "\u00a0")),
    "empty text beside a good one": (S, _chunks("", f"{TRUE}.")),
    "zero-width chunk": (U, _chunks("\u200b\u200b")),
    "nul chunk": (U, _chunks("\x00")),
    "same id, same text": (S, _chunks(f"{TRUE}.", f"{TRUE}.", ids="aa")),
    "same id, other text": ("!chunk_ids_collide", _chunks(f"{TRUE}.", "A pool.", ids="aa")),
    "ids that differ in case": (S, _chunks(f"{TRUE}.", "A pool.", ids="aA")),
    "ids that look like numbers": (S, _chunks(f"{TRUE}.", "A pool.", ids=["1", "01"])),
    "ids of zero width": (S, _chunks(f"{TRUE}.", "A pool.", ids=["\u200b", "\u200c"])),
    "ids that are paths": (S, _chunks(f"{TRUE}.", "A pool.", ids=["../../x", "/etc/passwd"])),
    "ids that are brackets": (S, _chunks(f"{TRUE}.", "A pool.", ids=["[1]", "]["])),
    "ids of 100,000 characters": (S, _chunks(f"{TRUE}.", ids=["x" * 100_000])),
    "null ids": (S, _chunks(f"{TRUE}.", "A pool.", ids=[None, None])),
    "blank ids": (S, _chunks(f"{TRUE}.", "A pool.", ids=["", " "])),
    "made-up id taken": ("!chunk_ids_collide", _chunks(f"{TRUE}.", "A pool.", ids=["c1", None])),
    "5,000 chunks": (
        S,
        [{"id": f"k{n}", "text": f"Room {n} is open.", "score": None} for n in range(4_999)]
        + _chunks(f"{TRUE}."),
    ),
    "1 MB chunk of a": (U, _chunks("a" * MB)),
    "100 kB chunk of sentences": (S, _chunks("Rooms are open. " * 6_000 + f"{TRUE}.")),
    "evidence in a table": (S, _chunks("| Thing | Days |\n|---|---|\n| The refund window is | 60 days |")),
    "evidence in code": (S, _chunks(f"```\n{TRUE}.\n```")),
    "evidence with zero width": (S, _chunks("The re\u200bfund window is 60 days.")),
    "evidence with a nul": (S, _chunks("The refund\x00window is 60 days.")),
    "scores not finite": (
        S,
        [
            {"id": "a", "text": f"{TRUE}.", "score": float("nan")},
            {"id": "b", "text": "x", "score": float("inf")},
        ],
    ),
}

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "null id": ("!request_id_null", {"request_id": None}),
    "empty id": ("!request_id_null", {"request_id": ""}),
    "blank id": ("!request_id_null", {"request_id": " \n"}),
    "id of a path": (case.GOOD, {"request_id": "../../../etc/passwd"}),
    "id with a nul": (case.GOOD, {"request_id": "a\x00b"}),
    "id of zero width": (case.GOOD, {"request_id": "\u200b"}),
    "id that looks like a number": (case.GOOD, {"request_id": "007"}),
    "id like that number": (case.GOOD, {"request_id": "7"}),
    "id in another case": (case.GOOD, {"request_id": "GOOD-null id"}),
    "id with an escape": (case.GOOD, {"request_id": "\x1b]0;owned\x07"}),
    "id of 100,000 characters": (case.GOOD, {"request_id": "i" * 100_000}),
    "null question": (case.GOOD, {"question": None}),
    "1 MB question": (case.GOOD, {"question": "why " * 250_000}),
    "unknown status": (case.GOOD, {"status": "\x00REFUSAL?"}),
}


def cases() -> list[Any]:
    """Every case of this file."""
    out = [case.beside_good(name, expected, answer=text) for name, (expected, text) in ANSWERS.items()]
    out += [
        case.beside_good(name, expected, answer=text, status="refusal")
        for name, (expected, text) in STATUSES.items()
    ]
    out += [
        case.beside_good(name, expected, answer=f"{TRUE}.", chunks=chunks)
        for name, (expected, chunks) in CHUNKS.items()
    ]
    return out + [case.beside_good(name, expected, **changes) for name, (expected, changes) in OTHERS.items()]
