"""What another tool was sent, and sending it only what changed since.

The record holds what each key was last sent as, and the tool's own id of it. It is written while things are sent, so that
a killed run repeats little, and what it repeats overwrites by its key. What the tables no longer hold is taken back where
the tool can. The module knows no tool's shape, and no table but by the keys it is given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from claimscore.jobs.errors import OutputError
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.sending import RefusedError, Sender, place_of

WORKERS = 4
_SAVE_EVERY = 500  # things sent between two writes of the record
_GIVE_UP_AFTER = 3  # requests in a row without an answer, each tried several times: the place is down


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to send."""

    key: str
    """Ours, stable: what a repeat overwrites by."""
    body: dict[str, Any]
    """The tool's shape."""
    known_as: str | None = None
    """None: never sent there; else the tool's own id of what was sent, "" where it gives none."""

    @property
    def content(self) -> str:
        """16 hex digits over the body."""
        text = json.dumps(self.body, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item: the tool's id for it, or why it was not taken."""

    tool_id: str = ""
    error: str = ""
    is_final: bool = False
    """With an error: it must not be sent again all the same, for some of it may have arrived."""


class Tool(Protocol):
    """What can be sent to."""

    name: str
    batch_size: int
    can_remove: bool

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Send a batch; an outcome an item, in order."""

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """Take back what was sent before and is no longer so; called only where `can_remove`."""


@dataclass(frozen=True, slots=True)
class Known:
    """How one key was last sent."""

    content: str
    tool_id: str
    scope: str
    """The series that the key is bound to, or "" for the one current opinion."""


class Record:
    """What one place was last sent of a day: key -> Known, in one JSON file of the output root.

    Raises:
        OutputError: the file is there and is no record.
    """

    def __init__(self, root: OutputRoot, tool: str, url: str, date: str) -> None:
        place = hashlib.sha256(url.encode()).hexdigest()[:12]
        self.file = f"state/published/{tool}/{place}/{date}.json"
        self._root = root
        self._about = {"tool": tool, "place": place_of(url), "date": date}
        data = root.get(self.file)
        try:
            held = {} if data is None else json.loads(data)["sent"]
            self.sent = {str(key): Known(*map(str, value)) for key, value in held.items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise OutputError(
                f"{root.shown(self.file)}: not a record of what was sent, expected one; remove it, "
                "and everything of the day is sent again"
            ) from None

    def save(self) -> None:
        """Write the file whole."""
        held = {key: [known.content, known.tool_id, known.scope] for key, known in sorted(self.sent.items())}
        self._root.put(self.file, (json.dumps({**self._about, "sent": held}, indent=0) + "\n").encode())


@dataclass(slots=True)
class Sent:
    """What sending came to."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    left: int = 0
    """What should be gone and stays there: the tool has no way to take it back."""
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    """What was said, each once, in order."""

    def fail(self, error: str) -> None:
        """Count one failure."""
        self.failed += 1
        if error not in self.errors:
            self.errors.append(error)


def send_changed(
    tool: Tool,
    items: Sequence[Item],
    record: Record,
    sender: Sender,
    *,
    scope: str = "",
    may_remove: bool = True,
    again: bool = False,
) -> Sent:
    """Send what the record does not hold as it is now, and take back what it holds and is no more.

    Args:
        tool: whom to.
        items: everything of the day that should stand there.
        record: of the place and day; kept up to date, on disk too, also where this ends in an error.
        sender: of the place.
        scope: see `Known`; what was sent under another scope is left alone.
        may_remove: False where items may be missing only for now.
        again: send everything, changed or not.
    """
    out = Sent()
    todo = []
    for item in items:
        known = record.sent.get(item.key)
        if known and known.content == item.content and not again:
            out.unchanged += 1
        else:
            todo.append(Item(item.key, item.body, known.tool_id if known else None))
    wanted = {item.key for item in items}
    gone = [key for key, known in record.sent.items() if known.scope == scope and key not in wanted]
    try:
        _push_all(tool, todo, record, sender, out, scope)
        out.left = 0 if tool.can_remove else len(gone)
        for key in gone if may_remove and tool.can_remove and not out.failed else ():
            outcome = tool.remove(sender, Item(key, {}, record.sent[key].tool_id))
            if outcome.error:
                out.fail(outcome.error)
            else:
                del record.sent[key]
                out.removed += 1
    finally:
        record.save()
    return out


def _push_all(tool: Tool, todo: list[Item], record: Record, sender: Sender, out: Sent, scope: str) -> None:
    stop = Event()

    def push(batch: list[Item]) -> tuple[list[Outcome], bool]:
        """Outcomes, and whether the place itself failed us."""
        if stop.is_set():
            return [Outcome(error=f"{sender.place}: down or refuses us, the rest was not tried")] * len(
                batch
            ), True
        try:
            return tool.push(sender, batch), False
        except OutputError as err:
            if isinstance(err, RefusedError):
                stop.set()
            return [Outcome(error=str(err))] * len(batch), True

    n_down, n_unsaved = 0, 0
    batches = [todo[k : k + tool.batch_size] for k in range(0, len(todo), tool.batch_size)]
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            for batch, (outcomes, is_down) in zip(batches, pool.map(push, batches), strict=True):
                n_unsaved += _note(record, out, batch, outcomes, scope)
                n_down = n_down + 1 if is_down else 0
                if n_down >= _GIVE_UP_AFTER:
                    stop.set()
                if n_unsaved >= _SAVE_EVERY:
                    record.save()
                    n_unsaved = 0
        finally:
            stop.set()  # an interrupt ends it here: what waits in the pool must not go out unrecorded


def _note(record: Record, out: Sent, batch: Sequence[Item], outcomes: Sequence[Outcome], scope: str) -> int:
    """Put what became of a batch into record and counts; how many entries of the record changed."""
    n_noted = 0
    for item, outcome in zip(batch, outcomes, strict=True):
        if outcome.error:
            out.fail(outcome.error)
            if not outcome.is_final:
                continue
        record.sent[item.key] = Known(item.content, outcome.tool_id, scope)
        out.created += not outcome.error and item.known_as is None
        out.updated += not outcome.error and item.known_as is not None
        n_noted += 1
    return n_noted
