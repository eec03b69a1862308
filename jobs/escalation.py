"""The referee's table of a shard: claims in doubt, their best windows, the replies, and which of them may be used.

Joins the referee with the rules beside it: a claim or window that speaks to a model is not shown, and a span that supports
must hold the claim's values. A reply is kept with a key of all that it depends on and is never asked for again while the
shard's table has it. Knows no cluster, and no threshold of a verdict: those must not decide what is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from claimscore.jobs import referee, rules, signals
from claimscore.jobs.asking import Complete, Replies, key_of, replies_to
from claimscore.jobs.config import Config, RefereeConfig
from claimscore.jobs.frames import as_frame
from claimscore.jobs.prompt_texts import defused
from claimscore.jobs.records import REFEREE, RefereeWord, conform
from claimscore.jobs.thresholds import Thresholds

KEY = ["request_id", "claim_index"]


class Place(NamedTuple):
    """A window: chunk, first code point, code point after."""

    chunk_index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """One escalated claim; without windows it is not asked about."""

    request_id: str
    claim_index: int
    reasons: list[str]
    text: str
    windows: dict[Place, str]
    """Texts as they are shown, in document order."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One prompt: the claims asked about and the windows shown, in the order of this turn."""

    claims: list[_Asked]
    windows: dict[Place, str]
    turn: int
    key: str
    prompt: str

    @property
    def shape(self) -> tuple[int, int]:
        """Claims and windows: what the schema of a reply depends on."""
        return len(self.claims), len(self.windows)


def make_replies(
    log: pa.Table,
    claims: pa.Table,
    scores: pa.Table,
    risky: pa.Table,
    stored: pa.Table,
    *,
    complete: Complete,
    made_by: str,
    config: Config,
) -> tuple[pa.Table, dict[str, int]]:
    """Ask the referee about the claims in doubt.

    Args:
        log: records.LOG.
        claims: records.CLAIMS.
        scores: records.SCORES of the evidence pairs.
        risky: request_id of the high-risk answers.
        stored: records.REFEREE that were made before: finished replies to equal prompts are taken from it.
        complete: the referee; called only where a reply is lacking.
        made_by: fingerprint of the referee's weights and settings; a part of each prompt's key.
        config: the deployment.

    Returns:
        records.REFEREE, a row a claim and turn; and counts: `n_asked` claims, `n_prompts`, of those `n_reused`, tokens,
        `outcome_*` of the rows (they add up), `said_*` of those with a readable reply, and of those that say `supported`
        `n_spans_found`, those of four words or more that stand in the window. Nothing in doubt: no rows and no call.
    """
    settings = config.referee
    pairs = _with_support(log, claims, scores, config)
    best = pairs.drop_nulls("support").group_by(KEY).agg(pl.col("support").max())
    escalated = referee.escalate(best.to_arrow(), set(risky.column("request_id").to_pylist()), settings)
    asked = _asked(log, claims, escalated, pairs, settings)
    calls = list(_calls([claim for claim in asked if claim.windows], settings, made_by))
    replies = _replies(calls, stored, complete, config)
    spent = {"n_prompts": replies.n_prompts, "n_reused": replies.n_reused, **replies.tokens}
    rows = [_unasked(claim) for claim in asked if not claim.windows]
    rows += [row for call in calls for row in _rows(call, *replies.of[call.key])]
    _refuse_valueless(rows)
    rows.sort(key=lambda row: (row["request_id"], row["claim_index"], row["turn"]))
    table = pa.Table.from_pylist([{name: row[name] for name in REFEREE.names} for row in rows], REFEREE)
    return conform(table, REFEREE, where="referee"), {"n_asked": len(asked)} | spent | _counts(table)


def _with_support(log: pa.Table, claims: pa.Table, scores: pa.Table, config: Config) -> pl.DataFrame:
    """`scores` with their support; names are looked for only where they could bring a pair into the band."""
    settings, combiner = config.referee, config.card.combiner
    thresholds = Thresholds(entailment=settings.threshold, contradiction=1.0, combiner=combiner)
    frame = as_frame(scores).with_columns(support=thresholds.support())
    if combiner is None or not combiner.names:
        return frame
    near = frame.select(
        (pl.col("support") >= settings.threshold - settings.band).fill_null(value=False)
    ).to_series()
    names = signals.lacking(log, claims, scores, names_of=near.to_arrow()).column("missing_names")
    counted = frame.with_columns(n_names=pl.from_arrow(names).list.len())  # type: ignore[union-attr]
    return counted.with_columns(support=thresholds.support(pl.col("n_names"))).drop("n_names")


def _asked(
    log: pa.Table, claims: pa.Table, escalated: pa.Table, pairs: pl.DataFrame, config: RefereeConfig
) -> list[_Asked]:
    """The escalated claims with the windows to show: those of the best pair, then the next best, in document order."""
    texts = {
        (row["request_id"], row["claim_index"]): row["text"]
        for row in claims.select([*KEY, "text"]).to_pylist()
    }
    chunks = dict(zip(log.column("request_id").to_pylist(), log.column("chunks").to_pylist(), strict=True))
    ranked = (
        as_frame(escalated)
        .join(pairs.drop_nulls("support").with_row_index("row"), on=KEY, how="inner", maintain_order="left")
        .sort([*KEY, "support", "row"], descending=[False, False, True, False])
    )
    premises: dict[tuple[str, int], list[list[dict[str, int]]]] = {}
    for request_id, index, premise in ranked.select(*KEY, "premise").iter_rows():
        premises.setdefault((request_id, index), []).append(premise)
    out = []
    for row in escalated.to_pylist():
        key = row["request_id"], row["claim_index"]
        shown = {} if _speaks_to_a_model([texts[key]])[0] else _windows(premises[key], chunks[key[0]], config)
        out.append(_Asked(*key, row["reasons"], texts[key], shown))
    return out


def _windows(
    premises: list[list[dict[str, int]]], chunks: list[dict[str, str]], config: RefereeConfig
) -> dict[Place, str]:
    """The first windows with texts of their own that do not speak to a model."""
    places = dict.fromkeys(
        Place(span["chunk_index"], span["start"], span["end"]) for spans in premises for span in spans
    )
    texts = [chunks[place.chunk_index]["text"][place.start : place.end] for place in places]
    fit: dict[str, Place] = {}
    for place, text, is_order in zip(places, texts, _speaks_to_a_model(texts), strict=True):
        if not is_order and len(fit) < config.n_windows:
            fit.setdefault(defused(text), place)
    return dict(sorted((place, text) for text, place in fit.items()))


def _speaks_to_a_model(texts: list[str]) -> list[bool]:
    flags: list[bool] = rules.injection_suspected(pa.array(texts, pa.string())).to_pylist()
    return flags


def _calls(asked: list[_Asked], config: RefereeConfig, made_by: str) -> Iterator[_Call]:
    """One prompt a claim, or one an answer, in each order of the windows."""
    groups: list[list[_Asked]] = []
    for claim in asked:
        joins = config.per_answer and groups and groups[-1][0].request_id == claim.request_id
        if joins and len(groups[-1]) < config.max_claims_per_call:
            groups[-1].append(claim)
        else:
            groups.append([claim])
    for group in groups:
        windows = sorted({place: text for claim in group for place, text in claim.windows.items()}.items())
        for turn in range(2 if config.both_orders and len(windows) > 1 else 1):
            shown = dict(windows[::-1] if turn else windows)
            prompt = referee.user_prompt([claim.text for claim in group], list(shown.values()))
            made_from = [made_by, prompt, len(group), config.max_span_chars, config.max_output_tokens]
            yield _Call(group, shown, turn, key_of(made_from), prompt)


def _replies(calls: list[_Call], stored: pa.Table, complete: Complete, config: Config) -> Replies:
    """The reply to each call, from `stored` where it has it."""
    card, settings = config.referee_card, config.referee
    assert card is not None, "without a referee there is no table of it"

    def ask(shape: tuple[int, int], users: pa.Array) -> pa.Table:
        n_claims, n_windows = shape
        return complete(
            card.system_prompt,
            users,
            schema=referee.reply_schema(n_claims, n_windows, settings.max_span_chars),
            max_tokens=settings.max_output_tokens * n_claims,
            temperature=0.0,
            deadline_s=settings.deadline_s,
        )

    return replies_to({call.key: (call.shape, call.prompt) for call in calls}, stored, ask)


def _rows(call: _Call, text: str | None, finish_reason: str) -> Iterator[dict[str, Any]]:
    """A row of REFEREE for each claim of a call; with what is checked against its values beside it."""
    n_claims, n_windows = call.shape
    parsed, outcome = referee.parse_reply(text, finish_reason, n_claims=n_claims, n_windows=n_windows)
    places, texts = list(call.windows), list(call.windows.values())
    for k, claim in enumerate(call.claims):
        row: dict[str, Any] = {
            "request_id": claim.request_id,
            "claim_index": claim.claim_index,
            "turn": call.turn,
            "reasons": claim.reasons,
            "prompt_key": call.key,
            "reply": text,
            "finish_reason": finish_reason,
            "outcome": outcome,
            "said": None,
            "window": None,
            "span": None,
            "grade": None,
        }
        if parsed is not None:
            reply = parsed[k]
            row |= {"said": str(reply.said), "span": reply.span}
            row["outcome"] = referee.span_fault(reply, texts) or "ok"
            row |= {"claim_text": claim.text, "window_text": ""}
            if reply.window is not None:
                row |= {"window": places[reply.window]._asdict(), "window_text": texts[reply.window]}
        yield row


def _unasked(claim: _Asked) -> dict[str, Any]:
    empty = dict.fromkeys(REFEREE.names)
    known = {"request_id": claim.request_id, "claim_index": claim.claim_index, "reasons": claim.reasons}
    return empty | known | {"turn": 0, "prompt_key": "", "finish_reason": "not_asked", "outcome": "injection"}


def _refuse_valueless(rows: list[dict[str, Any]]) -> None:
    """A span that supports must hold every value of its claim, and so must its window as it was shown.

    What the question gives counts for nothing here. Both are read: folding could join digits that the window parts.
    """
    saying = [row for row in rows if row["outcome"] == "ok" and row["said"] == RefereeWord.SUPPORTED]
    claims = pa.array([row["claim_text"] for row in saying], pa.string())
    nothing = pa.nulls(len(saying), pa.string())
    for column in ("span", "window_text"):
        texts = pa.array([row[column] for row in saying], pa.string())
        for row, missing in zip(
            saying, rules.missing_values(claims, texts, nothing).to_pylist(), strict=True
        ):
            if missing:
                row["outcome"] = "span_lacks_value"


def _counts(table: pa.Table) -> dict[str, int]:
    """A span of one word stands nearly anywhere and counts as not found: the demo LLM quoted "A" in 12 of 28 replies."""
    outcomes, said = table.column("outcome").to_pylist(), table.column("said").to_pylist()
    counts = {f"outcome_{name}": n for name, n in sorted(Counter(outcomes).items())}
    counts |= {f"said_{name}": n for name, n in sorted(Counter(filter(None, said)).items())}
    counts["n_spans_found"] = sum(
        word == RefereeWord.SUPPORTED and outcome not in {"span_not_found", "span_too_short"}
        for word, outcome in zip(said, outcomes, strict=True)
    )
    return counts
