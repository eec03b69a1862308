"""`claimscore export`: a day's answers and verdicts into the shape of another tool, to a file or to the tool itself.

Picks the tables, hands them to the shape, writes or sends, and says what was left out. It knows no shape and decides
nothing about answers.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from claimscore.jobs import (
    export_csv,
    export_langfuse,
    export_langsmith,
    export_mlflow,
    export_otlp,
    export_phoenix,
)
from claimscore.jobs.config import Config, StoreConfig
from claimscore.jobs.errors import InputError, OutputError
from claimscore.jobs.export_day import Day, day_of
from claimscore.jobs.exports import LEFT_OUT, Target, addressable, publish
from claimscore.jobs.published import Item, Record, Sent, Tool, send_changed
from claimscore.jobs.sending import Sender, checked_url
from claimscore.jobs.store import Store
from claimscore.jobs.wholefile import write_whole

MAX_ERRORS = 10
LEFT_WORDS = {
    "no_trace_id": "have no origin.trace_id",
    "other_system": "come from another tool (origin.system)",
    "foreign_id": "have a trace id of another form",
    "same_target": "share trace and span with an earlier answer of the day",
}


class _Sendable(Tool, Protocol):
    asks_for: str


_SHAPES = {
    module.NAME: module
    for module in (export_phoenix, export_langfuse, export_langsmith, export_mlflow, export_otlp)
}
_SENDERS: dict[str, type[_Sendable]] = {
    "phoenix": export_phoenix.Phoenix,
    "langfuse": export_langfuse.Langfuse,
    "langsmith": export_langsmith.LangSmith,
    "mlflow": export_mlflow.MlFlow,
    "otlp": export_otlp.Otlp,
}
TOOLS = (*_SHAPES, "events", "csv")


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """What is to be exported, and where to."""

    out: str
    to: str
    """One of TOOLS."""
    date: str | None = None
    """YYYY-MM-DD; None: the newest day of the series."""
    series: str | None = None
    """A series or its beginning; None: the one that dashboards read."""
    dest: str | None = None
    """A file, or `-` for stdout; None: a name by tool and day, and no file where it is sent."""
    send: str | None = None
    """The tool's base URL; None: nothing is sent."""
    keep_series: bool = False
    again: bool = False


def run(order: Order, config: Config | None = None) -> dict[str, Any]:
    """Export a day.

    Args:
        order: what and where to.
        config: the deployment, whose log events take their chunks from; None: events say nothing of chunks.

    Returns:
        What was written, sent and left out; `text` is what is for stdout, or None.

    Raises:
        InputError: no such series or day, or no answer that the tool could be told about.
        OutputError: a URL that is none, a tool that nothing is sent to, a file that cannot be written.
    """
    if order.send and order.to not in _SENDERS:
        raise OutputError(f"--send: {order.to} is a file, expected one of {', '.join(_SENDERS)}; give --dest")
    url = checked_url(order.send, "--send") if order.send else None
    store = Store(order.out, StoreConfig(out=order.out))
    date, series = day_of(store, order.out, order.date, order.series)
    day = Day(store, date, series)
    document: dict[str, Any] = {
        "to": order.to,
        "date": date,
        "series": series,
        "n_answers": day.n_answers,
        "n_unfinished_shards": day.n_unfinished,
    }
    if order.to == "events":
        text = b"".join(day.events(config))
        document["chunks"] = "from the log" if config else None
    elif order.to == "csv":
        text = export_csv.render(*day.tables(), Target("csv", date, series, frozenset()))
    else:
        text = _tool(order, day, url, document)
    return document | _write(order, date, text)


def _tool(order: Order, day: Day, url: str | None, document: dict[str, Any]) -> bytes:
    """Shape the day for a tool and send it where that is asked; the document is added to."""
    shape = _SHAPES[order.to]
    target = Target(
        order.to, day.date, day.series, shape.SYSTEMS, shape.TRACE_IDS, keep_series=order.keep_series
    )
    answers, verdicts = day.tables()
    addressed, document["left_out"] = addressable(answers, target)
    if answers.num_rows and not addressed.num_rows:
        why = ", ".join(f"{n:,} {LEFT_WORDS[name]}" for name, n in document["left_out"].items() if n)
        raise InputError(
            f"{order.out}: no answer of {day.date} can be written back to {order.to} ({why}), expected "
            f"origin.trace_id in the log; make the log with claimscore import --from {order.to}"
        )
    rows = publish(addressed, verdicts, target)
    scope = day.series if order.keep_series else ""
    shaped = [(row["key"], shape.shape(row, kept_series=scope)) for row in rows.iter_rows(named=True)]
    items = [Item(key, body) for key, body in shaped if body is not None]
    document |= {"n_publications": len(items), "n_unscored": int(rows["unscored"].is_not_null().sum())}
    if url:
        document |= _send(order, url, items, Record(day.store.root, order.to, url, day.date), scope, day)
    bodies = [item.body for item in items]
    if order.to == "otlp":
        size = export_otlp.Otlp.batch_size
        bodies = [export_otlp.request_of(bodies[k : k + size]) for k in range(0, len(bodies), size)]
    return b"".join(json.dumps(body, allow_nan=False).encode() + b"\n" for body in bodies)


def _send(order: Order, url: str, items: list[Item], record: Record, scope: str, day: Day) -> dict[str, Any]:
    tool = _SENDERS[order.to]()
    sender = Sender(url, headers=_SHAPES[order.to].headers(), asks_for=tool.asks_for)
    try:
        sent: Sent = send_changed(
            tool, items, record, sender, scope=scope, may_remove=not day.n_unfinished, again=order.again
        )
    finally:
        sender.close()
    return {
        "place": sender.place,
        "record": day.store.root.shown(record.file),
        "sent": dataclasses.asdict(sent),
    }


def _write(order: Order, date: str, text: bytes) -> dict[str, Any]:
    if order.dest == "-":
        return {"file": None, "text": text.decode()}
    if order.dest is None and order.send:
        return {"file": None, "text": None}
    ending = {"csv": "csv"}.get(order.to, "jsonl")
    path = Path(order.dest or f"claimscore-{order.to}-{date}.{ending}")
    write_whole(path, text)
    return {"file": str(path), "text": None}


def notes(document: dict[str, Any]) -> list[str]:
    """What somebody should know of an export beside its success, a line each."""
    left = document.get("left_out", {})
    out = [
        f"{left[name]:,} answers {LEFT_WORDS[name]}: not written back" for name in LEFT_OUT if left.get(name)
    ]
    if document["n_unfinished_shards"]:
        out.append(f"{document['n_unfinished_shards']:,} shards of the day have no answers yet: run it again")
    if document["to"] == "events" and not document["chunks"]:
        out.append("chunks stand in the log alone: give --config for their ids, scores and hashes")
    sent = document.get("sent")
    if sent:
        out += sent["errors"][:MAX_ERRORS]
        if sent["left"]:
            out.append(
                f"{sent['left']:,} sent before are no longer in the tables and stay there: it has no way to remove"
            )
    return out


def print_export(document: dict[str, Any]) -> None:
    """What was exported."""
    console = Console()
    of = f"{document['n_answers']:,} answers of {document['date']}, series {document['series']}"
    if "n_publications" in document:
        of += f": {document['n_publications']:,} scores for {document['to']}, {document['n_unscored']:,} unscored"
    console.print(of, highlight=False, markup=False, soft_wrap=True)
    if document["file"]:
        console.print(f"wrote {document['file']}", highlight=False, markup=False, soft_wrap=True)
    if "sent" in document:
        told = ", ".join(
            f"{document['sent'][name]:,} {name}"
            for name in ("created", "updated", "unchanged", "removed", "failed")
        )
        console.print(f"sent to {document['place']}: {told}", highlight=False, markup=False, soft_wrap=True)
