"""Citations in a provider's response object, as the log's `citations`, placed in the answer or left without a place.

Anthropic cites documents by their number and their words; Cohere and Google give offsets into the answer (code
points, and UTF-8 bytes within a part), OpenAI ids of files or URLs, Bedrock the cited words. The cited text decides
where a citation stands (`provider.place_citations`); one that stands nowhere keeps its ids and is flagged. A number
becomes the id of the chunk that holds the cited words, never of one that merely stands at that place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claimscore.jobs.import_spans import Documents
from claimscore.jobs.import_values import dig, id_of
from claimscore.jobs.provider import place_citations

Citation = dict[str, Any]
"""`records.PROVIDER_CITATION` with `index` and `quote`: the number of the cited document and the words cited of it."""
_MAX_OFFSET = 2**31 - 1


def citations_of(output: Any, answer: str | None) -> list[Citation] | None:
    """The citations of a response object whose text is `answer`; null where it has none or is of no known form."""
    if not isinstance(output, dict) or answer is None:
        return None
    found = list(_google(output) or _bedrock(output) or _cohere(output) or _blocks(output))
    return found or None


def settle(
    answer: str, citations: Sequence[Mapping[str, Any]], chunks: Documents
) -> tuple[list[dict[str, Any]] | None, set[str]]:
    """The citations as the log holds them, and flags; null where no chunk has an id to be cited by.

    `citation_span_unverified`: a place could not be verified. `citation_unresolved`: a citation whose document is
    not among the chunks, or the chunks have no ids.
    """
    flags: set[str] = set()
    settled = []
    for citation, place in zip(citations, place_citations(answer, citations), strict=True):
        ids = list(citation.get("chunk_ids") or ())
        if not ids:
            ids = _by_quote(citation, chunks)
            if not ids:
                flags.add("citation_unresolved")
        if place is None:
            flags.add("citation_span_unverified")
        start, end = place or (None, None)
        settled.append({"start": start, "end": end, "text": citation.get("text"), "chunk_ids": ids})
    if not any(chunk["id"] for chunk in chunks):
        return None, flags | {"citation_unresolved"}
    return settled, flags


def _by_quote(citation: Mapping[str, Any], chunks: Documents) -> list[str]:
    """The id of the chunk that holds the cited words: the one at the cited number first, else the only one."""
    quote, index = (citation.get("quote") or "").strip(), citation.get("index")
    if not quote:
        return []
    holding = [k for k, chunk in enumerate(chunks) if quote in (chunk["text"] or "")]
    if index in holding:
        holding = [index]
    return [chunks[holding[0]]["id"]] if len(holding) == 1 and chunks[holding[0]]["id"] else []


def _citation(
    start: Any, end: Any, text: Any, ids: Sequence[Any] = (), *, index: Any = None, quote: Any = None
) -> Citation:
    return {
        "start": _offset(start),
        "end": _offset(end),
        "text": text if isinstance(text, str) else None,
        "chunk_ids": [known for value in ids if (known := id_of(value))],
        "index": _offset(index),
        "quote": quote if isinstance(quote, str) else None,
    }


def _offset(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value <= _MAX_OFFSET else None


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _google(output: Mapping[str, Any]) -> list[Citation]:
    """Offsets are UTF-8 bytes within a part; of several parts none is known to be the answer's, so the text decides."""
    found = []
    for candidate in _dicts(output.get("candidates")):
        grounding = candidate.get("groundingMetadata") or candidate.get("grounding_metadata") or {}
        chunks = _dicts(dig(grounding, "groundingChunks") or dig(grounding, "grounding_chunks"))
        for support in _dicts(dig(grounding, "groundingSupports") or dig(grounding, "grounding_supports")):
            segment = support.get("segment") or {}
            numbers = support.get("groundingChunkIndices") or support.get("grounding_chunk_indices") or []
            ids = [
                dig(chunks[k], "retrievedContext.ragChunk.chunkId")
                or dig(chunks[k], "retrievedContext.documentName")
                or dig(chunks[k], "retrievedContext.uri")
                or dig(chunks[k], "web.uri")
                for k in (numbers if isinstance(numbers, list) else [])
                if _offset(k) is not None and k < len(chunks)
            ]
            start = dig(segment, "startIndex") or 0  # protobuf leaves a zero out
            found.append(_citation(start, dig(segment, "endIndex"), dig(segment, "text"), ids))
    return found


def _bedrock(output: Mapping[str, Any]) -> list[Citation]:
    found = []
    for citation in _dicts(output.get("citations")):
        part = dig(citation, "generatedResponsePart.textResponsePart")
        for reference in _dicts(citation.get("retrievedReferences")) if isinstance(part, dict) else []:
            ids = [dig(reference, "metadata") or {}]
            ids = [ids[0].get("x-amz-bedrock-kb-chunk-id")] if isinstance(ids[0], dict) else []
            found.append(
                _citation(
                    dig(part, "span.start"),
                    dig(part, "span.end"),
                    dig(part, "text"),
                    ids,
                    quote=dig(reference, "content.text"),
                )
            )
    return found


def _cohere(output: Mapping[str, Any]) -> list[Citation]:
    found = []
    for citation in _dicts(dig(output, "message.citations") or output.get("citations")):
        if citation.get("type") in ("THINKING_CONTENT", "PLAN") or "start" not in citation:
            continue
        ids = citation.get("document_ids") or [source.get("id") for source in _dicts(citation.get("sources"))]
        ids = ids if isinstance(ids, list) else []
        found.append(_citation(citation.get("start"), citation.get("end"), citation.get("text"), ids))
    return found


def _blocks(output: Mapping[str, Any]) -> Iterator[Citation]:
    """Anthropic's blocks and OpenAI's output parts: texts one after another, each with citations of its own."""
    at = 0
    for block in _text_blocks(output):
        text = block["text"]
        for citation in _dicts(block.get("citations")):
            numbers = (citation.get("document_index"), citation.get("search_result_index"))
            number = next((n for n in numbers if n is not None), None)
            yield _citation(at, at + len(text), text, index=number, quote=citation.get("cited_text"))
        for note in _dicts(block.get("annotations")):
            inner = note.get("url_citation") if isinstance(note.get("url_citation"), dict) else note
            start, end = _offset(dig(inner, "start_index")), _offset(dig(inner, "end_index"))
            ids = [dig(inner, "file_id") or dig(inner, "file_citation.file_id") or dig(inner, "url")]
            has_place = start is not None and end is not None
            yield _citation(at + start if has_place else None, at + end if has_place else None, None, ids)  # type: ignore[operator]
        at += len(text)


def _text_blocks(output: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    message = dig(output, "choices.0.message")
    message = message if isinstance(message, dict) else output
    content = message.get("content")
    if isinstance(content, str):
        yield {"text": content, "annotations": message.get("annotations")}
    for item in [{"content": content}] if isinstance(content, list) else _dicts(output.get("output")):
        for block in _dicts(item.get("content")):
            if isinstance(block.get("text"), str):
                yield block
