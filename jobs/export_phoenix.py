"""Publications as Phoenix annotations: of the span that answered, else of its trace.

Phoenix overwrites by (name, span, identifier), so the identifier is ours and stable, and holds the series only where
series are kept apart. Not scored is a label without a score. Sent with `sync=true`: otherwise spans that Phoenix does
not know are dropped without a word. The shapes are those of its REST API, v1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from claimscore.jobs.published import Item, Outcome
from claimscore.jobs.sending import Sender, error_of, token_of

NAME = "phoenix"
SYSTEMS = frozenset({"phoenix", "otlp"})
TRACE_IDS = r"[0-9a-f]{1,32}"
ENDING = "jsonl"
_SPAN = re.compile(r"[0-9a-f]{1,16}")


def shape(row: dict[str, Any], *, kept_series: str = "") -> dict[str, Any]:
    """The annotation of one publication.

    Args:
        row: of exports.PUBLICATIONS.
        kept_series: the series, where it is part of the identity; else "".
    """
    if row["span_id"] and _SPAN.fullmatch(row["span_id"]):
        target = {"span_id": row["span_id"]}
    else:
        target = {"trace_id": row["trace_id"]}
    result = {"explanation": row["explanation"]}
    if row["unscored"]:
        result |= {"label": "unscored", "explanation": f"unscored: {row['unscored']}\n{row['explanation']}"}
    elif row["label"] is not None:
        result["label"] = row["label"]
    else:
        result["score"] = row["value"]
    return {
        **target,
        "name": row["metric"],
        "annotator_kind": "LLM" if row["by_llm"] else "CODE",
        "identifier": f"claimscore/{kept_series}" if kept_series else "claimscore",
        "result": result,
        "metadata": json.loads(row["metadata"]),
    }


def headers() -> dict[str, str]:
    """The token of the environment, where there is one."""
    token = token_of("PHOENIX_API_KEY")
    return {"authorization": f"Bearer {token}"} if token else {}


class Phoenix:
    """Sends annotations."""

    name = NAME
    asks_for = "PHOENIX_API_KEY"
    batch_size = 100  # as many as its own client sends at once
    can_remove = False

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Send a batch; spans that Phoenix does not have are named, and the others sent without them."""
        outcomes = [Outcome()] * len(batch)
        for kind in ("span", "trace"):
            mine = [k for k, item in enumerate(batch) if f"{kind}_id" in item.body]
            self._push(sender, batch, mine, kind, outcomes)
        return outcomes

    def _push(
        self, sender: Sender, batch: Sequence[Item], mine: list[int], kind: str, outcomes: list[Outcome]
    ) -> None:
        while mine:
            body = {"data": [batch[k].body for k in mine]}
            answer = sender.request("POST", f"/v1/{kind}_annotations", body, {"sync": "true"})
            if answer.is_success:
                return
            # A 404 lists the ids that are missing.
            named = [
                k for k in mine if answer.status_code == 404 and batch[k].body[f"{kind}_id"] in answer.text
            ]
            for k in named or mine:
                error = f"Phoenix has no such {kind} (late, sampled out, or another project's)"
                outcomes[k] = Outcome(error=error if named else error_of(answer))
            mine = [k for k in mine if k not in named] if named else []

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """Phoenix has no call for it."""
        raise NotImplementedError
