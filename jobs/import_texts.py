"""The question and the answer in what an application logged as its input and output.

It may be a text, a dict under keys of the application's own, a list of messages in the form of any provider or
framework, or their response object. The question is the last message of the user, the answer the last one of the
assistant that has text; text parts are joined with nothing between, and thinking, tool calls and pictures are
left out and counted. A JSON text is taken apart by the caller, who knows whether it is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from claimscore.jobs.import_values import MAX_DEPTH

QUESTION_KEYS = (
    *("question", "query", "input", "user_input", "user_message", "prompt", "message", "messages", "text"),
    *("content", "inputs", "query_str", "request", "contents", "kwargs"),
)
ANSWER_KEYS = (
    *("answer", "output", "result", "response", "text", "completion", "message", "messages", "content"),
    *("output_text", "outputs", "generations", "choices", "candidates", "generated_text"),
)
_USER = frozenset({"user", "human", "humanmessage", "humanmessagechunk"})
_ASSISTANT = frozenset({"assistant", "ai", "model", "aimessage", "aimessagechunk", "chatbot"})
_TEXT_PARTS = frozenset({"text", "output_text", "input_text", "refusal"})


@dataclass(frozen=True, slots=True)
class Found:
    """A text, and what it was taken from."""

    text: str | None
    """Null: there is none under any known key."""
    n_dropped: int = 0
    """Parts of its message that are no text."""
    keys: tuple[str, ...] = ()
    """Where there is none: the keys that were there."""


def question_of(value: Any, own_keys: tuple[str, ...] = ()) -> Found:
    """The question in a logged input; `own_keys` go before the usual ones."""
    return _find(value, (*own_keys, *QUESTION_KEYS), _USER, 0)


def answer_of(value: Any, own_keys: tuple[str, ...] = ()) -> Found:
    """The answer in a logged output; `own_keys` go before the usual ones."""
    return _find(value, (*own_keys, *ANSWER_KEYS), _ASSISTANT, 0)


def unwrap(value: Any) -> Any:
    """What LangChain's `dumps` wraps as a constructor, with its class as `type`; anything else as it is."""
    if isinstance(value, dict) and value.get("lc") and isinstance(value.get("kwargs"), dict):
        path = value.get("id")
        name = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else None
        return {"type": name, **value["kwargs"]}
    if isinstance(value, dict) and isinstance(value.get("data"), dict) and "type" in value:
        return {"type": value["type"], **value["data"]}
    return value


def role_of(message: Any) -> str | None:
    """The role of a message in lower case; null for what is no message."""
    if not isinstance(message, dict) or not ({"content", "parts", "contents"} & message.keys()):
        return None
    role = message.get("role")
    kind = message.get("type")
    if (
        not isinstance(role, str)
        and isinstance(kind, str)
        and kind.lower() in (*_USER, *_ASSISTANT, "system")
    ):
        role = kind
    return role.lower() if isinstance(role, str) else None


def parts_text(content: Any) -> Found:
    """The text of a message's content: a string, a list of parts, or null (a call of a tool alone)."""
    if isinstance(content, str):
        return Found(content)
    if isinstance(content, dict):
        content = content.get("parts", [content])
    if not isinstance(content, list):
        return Found(None)
    texts, n_dropped = [], 0
    for item in content:
        is_wrapped = isinstance(item, dict) and isinstance(item.get("message_content"), dict)
        part = item["message_content"] if is_wrapped else item
        text = part if isinstance(part, str) else None
        if isinstance(part, dict) and _is_text(part.get("type") or "text") and not part.get("thought"):
            text = next(
                (part[k] for k in ("text", "content", "refusal") if isinstance(part.get(k), str)), None
            )
        if text is None:
            n_dropped += 1
        else:
            texts.append(text)
    return Found("".join(texts) if texts else None, n_dropped)


def _is_text(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _TEXT_PARTS


def _find(value: Any, keys: tuple[str, ...], roles: frozenset[str], depth: int) -> Found:
    value = unwrap(value)
    if isinstance(value, str):
        return Found(value)
    if depth > MAX_DEPTH:
        return Found(None)
    if isinstance(value, list):
        return _find_in_list(value, keys, roles, depth)
    if not isinstance(value, dict):
        return Found(None)
    role = role_of(value)
    if role is not None:
        return _message_text(value) if role in roles else Found(None)
    for key in keys:
        if value.get(key) is not None:
            found = _find(value[key], keys, roles, depth + 1)
            if found.text is not None:
                return found
    if "type" in value or "parts" in value:  # a part of a message, or the content of one
        return parts_text(value)
    return Found(None, keys=tuple(str(key)[:80] for key in list(value)[:20]))


def _find_in_list(items: list[Any], keys: tuple[str, ...], roles: frozenset[str], depth: int) -> Found:
    items = [_message(item) for item in items]
    if any(role_of(item) is not None for item in items):
        n_dropped = 0
        for item in reversed(items):
            if role_of(item) in roles:
                found = _message_text(item)
                n_dropped += found.n_dropped
                if found.text:
                    return Found(found.text, n_dropped)
        return Found(None, n_dropped)
    if len(items) == 1:
        return _find(items[0], keys, roles, depth + 1)
    if any(isinstance(item, dict) and isinstance(item.get("type"), str) for item in items):
        return parts_text(items)
    return Found(None)


def _message(item: Any) -> Any:
    item = unwrap(item)
    if isinstance(item, dict) and isinstance(item.get("message"), dict):
        return unwrap(item["message"])
    return item


def _message_text(message: Mapping[str, Any]) -> Found:
    for key in ("content", "parts", "contents"):
        found = parts_text(message.get(key))
        if found.text is not None or found.n_dropped:
            return found
    return Found(None)
