"""The LLM judge of claims that the NLI judge is unsure of: which are asked about, the prompt, a strict parser, the span check.

One narrow question a claim with one to three windows, evidence before verdict, and no trust: `supported` and `contradicted`
count only with a stretch that stands in the named window word for word, and a reply that is not exactly of the asked form
counts for nothing. Knows no engine, no judge and no verdict of ours. Span before verdict, partial support as unsupported, and
windows in both orders: known biases of LLM judges (Zheng et al. 2023, arXiv:2306.05685) met with what can be checked.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from claimscore.jobs.config import RefereeConfig
from claimscore.jobs.draws import share_of
from claimscore.jobs.prompt_texts import framed
from claimscore.jobs.quotes import n_words, stands_in
from claimscore.jobs.records import RefereeWord

ESCALATED: Final = pa.schema(
    [
        pa.field("request_id", pa.string(), nullable=False),
        pa.field("claim_index", pa.int32(), nullable=False),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
    ]
)
LETTERS: Final = string.ascii_uppercase
MIN_SPAN_WORDS: Final = 4
"""A shorter stretch stands in nearly any window."""
KEYS: Final = ("window", "span", "verdict")
"""Of a reply, in this order: a verdict that is written first is defended afterwards."""

_ROUNDING = 1e-6  # scores are float32
_NEEDS_SPAN: Final = frozenset({RefereeWord.SUPPORTED, RefereeWord.CONTRADICTED})


@dataclass(frozen=True, slots=True)
class Reply:
    """What the referee says of one claim: the place of the window among those shown, None for none, and the rest."""

    window: int | None
    span: str
    said: RefereeWord


def escalate(support: pa.Table, risky: Collection[str], config: RefereeConfig) -> pa.Table:
    """Choose the claims that the referee is asked about.

    Reasons: `near_threshold` (the best support is within `band` of `threshold`), `high_risk` (so is the claim's answer), and
    `sampled` for a share of those without another reason. Of the claims with one of the first two the share `max_share` is
    chosen, by a hash of their ids: a cap on a shard's claims would let a claim lose its referee to a neighbour.

    Args:
        support: request_id, claim_index, support (0 to 1): the best of each claim that was judged, once each.
        risky: request ids of the high-risk answers.
        config: the rule.

    Returns:
        ESCALATED by request_id and claim_index, the same for any order of the rows. Empty for none.
    """
    found = []
    columns = (support.column(name).to_pylist() for name in ("request_id", "claim_index", "support"))
    for request_id, index, best in zip(*columns, strict=True):
        near = abs(best - config.threshold) <= config.band + _ROUNDING
        high_risk = config.high_risk and request_id in risky
        reasons = ["near_threshold"] * near + ["high_risk"] * high_risk
        if reasons and share_of("referee:max_share", index, request_id) < config.max_share:
            found.append((request_id, index, reasons))
        elif not reasons and share_of("referee:sampled", index, request_id) < config.sampled_share:
            found.append((request_id, index, ["sampled"]))
    columns_of = list(zip(*sorted(found), strict=True)) or [()] * len(ESCALATED)
    arrays = [pa.array(column, field.type) for column, field in zip(columns_of, ESCALATED, strict=True)]
    return pa.table(arrays, schema=ESCALATED)


def user_prompt(claims: Sequence[str], windows: Sequence[str]) -> str:
    """The user turn: windows A, B, C and then the claims, each between tags keyed by a hash of all of them.

    Nothing else of the log is in it: no ids, scores, authors, question or citation marks.
    """
    key = hashlib.sha256(json.dumps([list(claims), list(windows)]).encode()).hexdigest()[:8]
    shown = [framed("window", LETTERS[k], key, text) for k, text in enumerate(windows)]
    shown += [framed("claim", str(k), key, text) for k, text in enumerate(claims, start=1)]
    asked = "Is the claim supported by these windows?"
    if len(claims) > 1:
        asked = "Is each claim supported by these windows? One entry a claim, in their order."
    return "\n\n".join([*shown, asked])


def reply_schema(n_claims: int, n_windows: int, max_span_chars: int) -> dict[str, Any]:
    """JSON schema of a reply: window, span and verdict, in this order; for several claims, a list of those."""
    one = {
        "type": "object",
        "properties": {
            "window": {"type": "string", "enum": ["", *LETTERS[:n_windows]]},
            "span": {"type": "string", "maxLength": max_span_chars},
            "verdict": {"type": "string", "enum": [str(word) for word in RefereeWord]},
        },
        "required": list(KEYS),
        "additionalProperties": False,
    }
    if n_claims == 1:
        return one
    many = {"type": "array", "items": one, "minItems": n_claims, "maxItems": n_claims}
    return {
        "type": "object",
        "properties": {"claims": many},
        "required": ["claims"],
        "additionalProperties": False,
    }


def read_json(text: str | None, finish_reason: str) -> tuple[Any, str]:
    """A whole reply as JSON, its objects as tuples of (key, value) in their order, and `ok`; or None and what is wrong."""
    if finish_reason != "stop" or text is None:
        known = finish_reason in {"length", "deadline", "prompt_too_long"}
        return None, finish_reason if known else "error"
    try:
        return json.loads(text, object_pairs_hook=tuple), "ok"
    except (ValueError, RecursionError):
        return None, "not_json"


def parse_reply(
    text: str | None, finish_reason: str, *, n_claims: int, n_windows: int
) -> tuple[list[Reply] | None, str]:
    """One Reply a claim and `ok`, or None and what is wrong with the whole reply.

    Outcomes: ok, not_json, wrong_shape (another key, order, word or count), unknown_window (a letter that was not shown), and
    the finish reasons: length (even where what is there could be read), deadline, prompt_too_long, error. Never raises.
    """
    reply, outcome = read_json(text, finish_reason)
    if outcome != "ok":
        return None, outcome
    items = [reply]
    if n_claims > 1:
        is_list = keys_of(reply) == ("claims",) and isinstance(reply[0][1], list)
        items = reply[0][1] if is_list else []
    if len(items) != n_claims or not all(keys_of(item) == KEYS for item in items):
        return None, "wrong_shape"
    values = [[value for _, value in item] for item in items]
    if not all(is_text(value) for item in values for value in item):
        return None, "wrong_shape"
    if not all(verdict in list(RefereeWord) for _, _, verdict in values):
        return None, "wrong_shape"
    if not all(window in ("", *LETTERS[:n_windows]) for window, _, _ in values):
        return None, "unknown_window"
    return [
        Reply(LETTERS.index(window) if window else None, span, RefereeWord(verdict))
        for window, span, verdict in values
    ], "ok"


def span_fault(reply: Reply, windows: Sequence[str]) -> str:
    """Why the reply's span does not carry its verdict: `span_not_found`, `span_too_short`, or "" where it does.

    `partial` and `unsupported` need none.

    Args:
        reply: of one claim.
        windows: the texts that were shown, in their order.
    """
    if reply.said not in _NEEDS_SPAN:
        return ""
    if reply.window is None or not stands_in(reply.span, windows[reply.window]):
        return "span_not_found"
    return "" if n_words(reply.span) >= MIN_SPAN_WORDS else "span_too_short"


def keys_of(value: Any) -> tuple[Any, ...]:
    """The keys of a parsed object, in order and repeated ones twice; of anything else, none."""
    is_object = isinstance(value, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    return tuple(pair[0] for pair in value) if is_object else ()


def is_text(value: Any) -> bool:
    """False for what is no string, and for half a surrogate pair, which JSON can spell and UTF-8 cannot hold."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)
