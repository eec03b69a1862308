"""The chunks in what a retriever, a reranker or a prompt's variables were logged as.

Lists of texts, of dicts under the usual names, of LangChain's or LlamaIndex' objects, of (document, number) pairs,
or any of them in a string of JSON or Python. What numpy or pandas printed in part is refused by name, as the log's
reader does. A number beside a document is not a score, for it may be a distance. A retriever that returned one plain
text has lost the borders of its chunks: it is one chunk, and flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from claimscore.jobs.columns import fit
from claimscore.jobs.errors import InputError
from claimscore.jobs.import_spans import Documents, Kind, Options, Span
from claimscore.jobs.import_texts import unwrap
from claimscore.jobs.import_values import MAX_DEPTH, mapping_of, number_of
from claimscore.jobs.literals import BadValueError, Shape, from_python, parse
from claimscore.jobs.logfile import CHUNK_NAMES
from claimscore.jobs.records import CHUNK

CONTEXT_KEYS = (
    *("context", "contexts", "documents", "context_str", "docs", "chunks", "retrieved_contexts"),
    *("retrieved_documents", "source_documents"),
)
"""Names that prompts give the variable with the documents."""
_LIST_KEYS = (
    *("documents", "output", "results", "result", "context", "contexts", "source_nodes", "source_documents"),
    *("nodes", "chunks", "matches", "hits", "data", "retrieved_documents", "retrieved_contexts", "docs"),
)
_NAMES = {
    "id": (
        *CHUNK_NAMES["chunk.id"][:-1],
        *("node_id", "id_", "metadata.id", "metadata.chunk_id", "metadata.x-amz-bedrock-kb-chunk-id"),
    ),
    "text": (*CHUNK_NAMES["chunk.text"], "pageContent", "document"),
    "score": (*CHUNK_NAMES["chunk.score"], "metadata.score", "metadata.relevance_score"),
}
_SHAPE = Shape(_NAMES, needs=("text",), bare="text")
_LISTLIKE = ("[", "{", "(", "array(")


@dataclass(frozen=True, slots=True)
class Taken:
    """The documents of a span."""

    documents: Documents
    flags: tuple[str, ...] = ()


def documents_of(value: Any, options: Options, depth: int = 0) -> Taken:
    """The documents in a logged value; an empty list has none.

    Raises:
        BadValueError: `unrecoverable_list`, `unparsable_json`, `bad_value`, `invalid_utf8`, or
            `chunks_without_text` where an id stands for a text that no chunk table has.
    """
    value = unwrap(value)
    if depth > MAX_DEPTH:
        raise BadValueError("bad_value", f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        if value.lstrip().startswith(_LISTLIKE):
            return documents_of(parse(value), options, depth + 1)
        return Taken([{"id": None, "text": value, "score": None}], ("chunks_joined",))
    if isinstance(value, list | tuple):
        return Taken([_document(item, options) for item in value])
    if isinstance(value, dict):
        for key in _LIST_KEYS:
            inner = value.get(key)
            if isinstance(inner, list | tuple) or (
                isinstance(inner, str) and inner.lstrip().startswith(_LISTLIKE)
            ):
                return documents_of(inner, options, depth + 1)
        if any(value.get(name) is not None for name in _NAMES["text"]):
            return Taken([_document(value, options)])
        for key in _LIST_KEYS:
            if value.get(key) is not None:
                return documents_of(value[key], options, depth + 1)
    found = (
        f"a dict of {', '.join(map(str, list(value)[:20]))}" if isinstance(value, dict) else repr(type(value))
    )
    raise BadValueError("documents_unknown_shape", f"found {found[:300]}, expected a list of documents")


def chunk_texts(file: str) -> dict[str, str]:
    """Text of a chunk by its id, from a Parquet table with columns of the usual names.

    Raises:
        InputError: it cannot be read, or has no such columns.
    """
    try:
        names = pq.read_schema(file).names
        found = [
            next((n for n in CHUNK_NAMES[key] if n in names), None) for key in ("chunk.id", "chunk.text")
        ]
        if None in found:
            raise InputError(f"{file}: has columns {', '.join(names)[:300]}, expected id and text")
        table = pq.read_table(file, columns=found)
        ids, texts = (fit(table[name].combine_chunks(), pa.string()).to_pylist() for name in found)
    except (OSError, pa.ArrowException, BadValueError) as err:
        raise InputError(f"{file}: cannot be read: {err}; expected Parquet of id and text") from err
    return {key: text for key, text in zip(ids, texts, strict=True) if key is not None and text is not None}


def fill_documents(span: Span, value: Any, options: Options) -> None:
    """Set the documents of a retriever or reranker from what it returned, or the problem with them.

    Most tools have no kind for a reranker: a span that calls itself one and returns documents is one.
    """
    is_stated = span.kind in (Kind.RETRIEVER, Kind.RERANKER)
    is_named = "rerank" in (span.name or "").lower() and span.kind in (Kind.RETRIEVER, Kind.CHAIN, Kind.TOOL)
    if value is None or not (is_stated or is_named):
        return
    try:
        taken = documents_of(value, options)
    except BadValueError as err:
        if not is_stated and err.reason == "documents_unknown_shape":
            return
        span.documents_problem = err.reason, str(err)
    else:
        if not is_stated and "chunks_joined" in taken.flags:
            return
        span.documents, span.flags = taken.documents, [*span.flags, *taken.flags]
    if is_named:
        span.kind = Kind.RERANKER


def handed_of(variables: Any, options: Options) -> tuple[Documents | None, str | None]:
    """The documents in a prompt's variables, or the one text that they were joined to; (None, None) without."""
    variables = mapping_of(variables)
    for key in CONTEXT_KEYS:
        value = variables.get(key)
        if isinstance(value, str) and not value.lstrip().startswith(("[{", "['", '["')):
            if value.strip():
                return None, value
        elif value:
            try:
                documents = documents_of(value, options).documents
            except BadValueError:
                continue
            if any(d["id"] or len(d["text"].split()) > 1 for d in documents):  # else a list of ids
                return documents, None
    return None, None


def _document(item: Any, options: Options) -> dict[str, Any]:
    if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], dict):
        item = item[0]
    item = unwrap(item)
    if isinstance(item, dict):
        item = _flat(item)
    elif not isinstance(item, str):
        raise BadValueError("bad_value", f"a document is {type(item).__name__}, expected a text or a dict")
    try:
        (document,) = from_python([item], pa.list_(CHUNK), _SHAPE)
    except (ValueError, OverflowError) as err:
        # The error would quote the value, and a log's texts have no place in a reason.
        raise BadValueError("bad_value", "a document's score is no number") from err
    if document.get("text") is None:
        text = (options.chunk_texts or {}).get(document.get("id") or "")
        if text is None:
            raise BadValueError(
                "chunks_without_text",
                f"document {str(document.get('id'))[:80]!r} has no text; give --chunk-table a table of id and text",
            )
        document["text"] = text
    return {"id": document.get("id"), "text": document["text"], "score": number_of(document.get("score"))}


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """A document without its wrapping: OpenInference' `document`, LlamaIndex' `node`, Bedrock's `content.text`."""
    flat = {key: value for key, value in item.items() if value is not None}
    for key in ("document", "node"):
        inner = unwrap(flat.get(key))
        if isinstance(inner, dict):
            flat = {**{k: v for k, v in flat.items() if k != key}, **inner}
    content = flat.get("content")
    if isinstance(content, dict):
        flat["content"] = content.get("text")
    resource = flat.get("text_resource")
    if isinstance(resource, dict):
        flat.setdefault("text", resource.get("text"))
    flat["metadata"] = mapping_of(flat.get("metadata"))
    for name, value in list(flat.items()):  # an id that a data frame made a float
        if name in _NAMES["id"] and isinstance(value, float) and value.is_integer():
            flat[name] = int(value)
    if isinstance(flat.get("id"), str) and not flat["id"].strip():
        del flat["id"]
    score = flat.get("score")
    if isinstance(score, str) and not score.strip():
        del flat["score"]
    return flat
