"""The spans of one trace as one answer with its evidence, or the reason why there is none.

The answer is the output of the span whose parent is not there; where several could be, the trace says nothing and
is not guessed at. The evidence is what the model was handed: the documents in its prompt, else what the last
reranker before it left, else the retrievers before it. Chunks that a reranker cut are never brought back. The module
knows no tool and no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from claimscore.jobs.import_citations import settle
from claimscore.jobs.import_evidence import Evidence, find_evidence
from claimscore.jobs.import_spans import Kind, Options, Problem, is_trace_span_id

SpanRow = Mapping[str, Any]
"""One row of the frame of spans."""
_ANSWERING = (Kind.CHAIN, Kind.TRACE, Kind.LLM)
_ANSWERING_KINDS = frozenset(_ANSWERING)
_ANSWERED = "answered"
_NO_TIME = datetime.min.replace(tzinfo=UTC)
_LIST_NAMES = 5


def answer_of_trace(
    spans: Sequence[SpanRow], options: Options, system: str, *, answer_is_llm_span: bool
) -> dict[str, Any] | Problem:
    """The log row of a trace, with `updated`, `file` and `row` of the span that gave the answer.

    Args:
        spans: of one trace, each once, in order of time.
        options: a person's word on what the export leaves open.
        system: as `origin.system` says it.
        answer_is_llm_span: the answer's id in the tool is that of its LLM span.
    """
    tree = Tree(spans)
    root = tree.root(options)
    if isinstance(root, tuple):
        return root
    llm = tree.llm(root)
    if root["answer_problem"] and root["answer"] is None:
        reason, detail = root["answer_problem"]
        return reason, detail
    evidence = find_evidence(spans, llm, tree.topmost)
    if isinstance(evidence, tuple):
        return evidence
    return _row(spans, root, llm, evidence, system, answer_is_llm_span=answer_is_llm_span)


class Tree:
    """Who called whom in one trace; parents may be missing, and may form a circle."""

    def __init__(self, spans: Sequence[SpanRow]) -> None:
        self._spans = spans
        self._above: dict[str, frozenset[str]] = {}
        self._by_id = {span["span_id"]: span for span in spans if span["span_id"] is not None}

    def root(self, options: Options) -> SpanRow | Problem:
        """The span whose output is the answer, or why there is none or more than one."""
        if options.answer_span is not None:
            named = [span for span in self._spans if span["name"] == options.answer_span and _answers(span)]
            return self._only(named, f"no span {options.answer_span!r} with an output")
        top = [span for span in self._spans if self._parent(span) is None]
        if not top:
            return "no_root", "the parents of its spans form a circle"
        candidates = [span for span in top if _answers(span) and span["kind"] in _ANSWERING]
        whole = [span for span in candidates if span["kind"] == Kind.TRACE]
        if candidates:  # what the tool says of the trace itself goes before orphans that were sampled off it
            return self._only(whole or candidates, "")
        if any(span["failed"] and span["kind"] in _ANSWERING for span in top):
            return "trace_failed", "it ended in an error and has no output"
        below = [
            span
            for span in self._spans
            if _answers(span) and span["kind"] in _ANSWERING and self._look_up(span) <= _ANSWERING_KINDS
        ]
        return self._only(below, "no span with an output; were inputs and outputs recorded?")

    def llm(self, root: SpanRow) -> SpanRow | None:
        """The call of the model that made the answer: the last, one with the answer's very words before others."""
        if root["kind"] == Kind.LLM:
            return root
        calls = [
            span
            for span in self._spans
            if span["kind"] == Kind.LLM and self._look_up(span) <= {*_ANSWERING_KINDS, _ANSWERED}
        ]
        same = [span for span in calls if span["answer"] is not None and span["answer"] == root["answer"]]
        return max(same or calls, key=lambda span: span["start"] or span["end"] or _NO_TIME, default=None)

    def topmost(self, kinds: Iterable[Kind]) -> list[SpanRow]:
        """Spans of these kinds with none of them above, and no judge: what a wrapped retriever found was cut by it."""
        wanted = tuple(kinds)
        stops = {*wanted, Kind.JUDGE}
        return [span for span in self._spans if span["kind"] in wanted and not self._look_up(span) & stops]

    def _look_up(self, span: SpanRow) -> frozenset[str]:
        """What stands above a span: the kinds of its parents, and _ANSWERED where one of them has an output.

        A span is walked once, however long the chain of its parents; a circle is cut where it closes.
        """
        path, at = [], self._parent(span)
        walked: set[str] = set()
        while at is not None and at["span_id"] not in self._above and at["span_id"] not in walked:
            walked.add(at["span_id"])
            path.append(at)
            at = self._parent(at)
        for below in reversed(path):
            self._above[below["span_id"]] = self._beside(self._parent(below))
        return self._beside(self._parent(span))

    def _beside(self, parent: SpanRow | None) -> frozenset[str]:
        """A parent's own kind and output with what stands above it."""
        if parent is None:
            return frozenset()
        own = {parent["kind"], *([_ANSWERED] if _answers(parent) else [])}
        return self._above.get(parent["span_id"], frozenset()) | own

    def _parent(self, span: SpanRow) -> SpanRow | None:
        return self._by_id.get(span["parent_id"]) if span["parent_id"] is not None else None

    def _only(self, candidates: list[SpanRow], none_found: str) -> SpanRow | Problem:
        if len(candidates) == 1:
            return candidates[0]
        if not candidates:
            return "no_answer", none_found
        names = ", ".join(
            repr((span["name"] or span["span_id"] or "")[:80]) for span in candidates[:_LIST_NAMES]
        )
        more = " and more" if len(candidates) > _LIST_NAMES else ""
        return "ambiguous_root", f"any of {names}{more} may be the answer; name its span with --answer-span"


def _answers(span: SpanRow) -> bool:
    return span["answer"] is not None or span["answer_problem"] is not None


def _row(
    spans: Sequence[SpanRow],
    root: SpanRow,
    llm: SpanRow | None,
    evidence: Evidence,
    system: str,
    *,
    answer_is_llm_span: bool,
) -> dict[str, Any]:
    first = [span for span in (llm, root, *spans) if span is not None]
    flags = {*evidence.flags, *root["flags"]}
    n_dropped = root["n_dropped"]
    question = root["question"]
    if question is None and llm is not None:
        question = llm["question"]
    citations = root["citations"]
    if citations is None and llm is not None and llm["answer"] == root["answer"]:
        citations, n_dropped = llm["citations"], max(n_dropped, llm["n_dropped"])
    if citations:
        citations, more = settle(root["answer"], citations, evidence.documents)
        flags |= more
    if n_dropped:
        flags.add("parts_dropped")
    target = llm if answer_is_llm_span else root
    span_id = target["span_id"] if target is not None else None
    return {
        "request_id": _first(first, "request_id") or root["trace_id"],
        "question": question,
        "answer": root["answer"],
        "chunks": evidence.documents,
        "prompt_version": _first(first, "prompt_version"),
        "model": _first(first, "model"),
        "ts": root["end"] or root["start"] or _first(first, "end") or _first(first, "start"),
        "reference_answer": _first(first, "reference_answer"),
        "citations": citations or None,
        "origin": {
            "system": system,
            "project": _first(first, "project"),
            "trace_id": root["trace_id"],
            "span_id": None if is_trace_span_id(span_id) else span_id,
            "retriever_span_id": evidence.span_id,
            "session_id": _first(first, "session_id"),
            "evidence_rule": evidence.rule,
        },
        "flags": sorted(flags),
        "updated": root["updated"] or root["end"] or root["start"],
        "n_dropped": n_dropped,
        "file": root["file"],
        "row": root["row"],
    }


def _first(spans: Sequence[SpanRow], name: str) -> Any:
    return next((span[name] for span in spans if span[name] is not None), None)
