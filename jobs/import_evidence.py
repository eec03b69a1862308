"""Which chunks the answering model was handed, in a trace that holds several lists of them.

In this order: the documents in the variables of its prompt; what the last reranker before it left; its one
retriever; the union of its retrievers, in order of time, the first copy kept. Where the prompt holds the documents
as one text, those of the trace that stand in it word for word were handed over, if together they are most of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from claimscore.jobs.import_spans import Documents, Kind, Problem

SpanRow = Mapping[str, Any]
_COVERED = 0.8
"""Share of a joined text, blanks left out, that the documents found in it must make up: the rest is for headings."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence set of an answer, and how it was found."""

    documents: Documents
    rule: str
    """`prompt_variables`, `last_reranker`, `last_retriever`, `union_of_retrievers`, `none_found`."""
    span_id: str | None = None
    flags: tuple[str, ...] = ()


def find_evidence(
    spans: Sequence[SpanRow], llm: SpanRow | None, topmost: Callable[[Iterable[Kind]], list[SpanRow]]
) -> Evidence | Problem:
    """The evidence of the answer that `llm` gave.

    Args:
        spans: of one trace, in order of time.
        llm: the call of the model; null: none was recorded, and everything of the trace came before it.
        topmost: spans of some kinds that have none of these above them.

    A trace without any retrieval has no evidence (`none_found`, an empty list); a retriever that recorded no
    documents is a problem, since nobody knows what it gave.
    """
    until = llm["start"] if llm is not None else None
    retrievers, rerankers = _until(topmost([Kind.RETRIEVER]), until), _until(topmost([Kind.RERANKER]), until)
    prompts = [span for span in _until(spans, until) if span["kind"] == Kind.PROMPT]
    handing = [span for span in (llm, *reversed(prompts)) if span is not None]
    found = _in_prompt(handing, [*rerankers, *retrievers])
    if found is not None:
        return found
    if rerankers:
        flags = ("several_rerankers",) if len(rerankers) > 1 else ()
        return _of(rerankers[-1:], "last_reranker", flags)
    if retrievers:
        return _of(retrievers, "last_retriever" if len(retrievers) == 1 else "union_of_retrievers")
    joined = next((span for span in handing if span["joined"] is not None), None)
    if joined is not None:
        whole = [{"id": None, "text": joined["joined"], "score": None}]
        return Evidence(whole, "prompt_variables", None, ("chunks_joined",))
    return Evidence([], "none_found")


def _until(spans: Sequence[SpanRow], moment: Any) -> list[SpanRow]:
    """The spans that began by then; one without a time counts as before."""
    return [s for s in spans if moment is None or s["start"] is None or s["start"] <= moment]


def _in_prompt(handing: Sequence[SpanRow], sources: Sequence[SpanRow]) -> Evidence | None:
    for span in handing:
        if span["handed"] is not None:
            return Evidence(span["handed"], "prompt_variables")
    for span in handing:
        if span["joined"] is not None:
            handed = _standing_in(span["joined"], sources)
            if handed is not None:
                return handed
    return None


def _standing_in(joined: str, sources: Sequence[SpanRow]) -> Evidence | None:
    """The documents of the sources that stand in the text, in its order, if they are most of it."""
    found = [(joined.find(d["text"].strip()), d) for d in _union(sources) if (d["text"] or "").strip()]
    standing = [document for at, document in sorted(found, key=lambda pair: pair[0]) if at >= 0]
    if sum(_solid(document["text"]) for document in standing) < _COVERED * _solid(joined) or not standing:
        return None
    return Evidence(standing, "prompt_variables", sources[-1]["span_id"])


def _of(sources: Sequence[SpanRow], rule: str, flags: tuple[str, ...] = ()) -> Evidence | Problem:
    for span in sources:
        if span["documents_problem"]:
            reason, detail = span["documents_problem"]
            return reason, f"span {str(span['span_id'])[:80]!r}: {detail}"
        if span["documents"] is None and not span["failed"]:
            return (
                "documents_not_recorded",
                f"{span['kind']} {str(span['name'] or span['span_id'])[:80]!r} has no output; was its content recorded?",
            )
    flags = tuple(sorted({*flags, *(flag for span in sources for flag in span["flags"])}))
    documents = sources[0]["documents"] or [] if len(sources) == 1 else _union(sources)
    return Evidence(documents, rule, sources[-1]["span_id"], flags)


def _union(sources: Sequence[SpanRow]) -> Documents:
    """Every document of the spans in order, the first copy of each."""
    kept: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for span in sources:
        for document in span["documents"] or []:
            kept.setdefault((document["id"], document["text"]), document)
    return list(kept.values())


def _solid(text: str) -> int:
    return len("".join(text.split()))
