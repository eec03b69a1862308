"""A server on this machine that answers as a test says and keeps what it was asked; and publications to send to it."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import report_fixture as fixture

from claimscore.jobs.exports import Target, publish
from claimscore.jobs.published import Item
from claimscore.jobs.sending import Sender

Answer = tuple[int, Any]
"""Status and JSON body; None: no body."""

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
UUID = "5b8efff7-9803-8103-d269-b633813fc60c"


@dataclass
class Loopback:
    """The server and what it saw."""

    url: str = ""
    answer: Callable[[str, str, Any], Answer] = lambda *_: (200, {})
    """(method, path with query, JSON body) -> Answer."""
    seen: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    extra_headers: dict[str, str] = field(default_factory=dict)
    """Sent with every answer."""

    def sender(self, **options: Any) -> Sender:
        """A sender to it that waits for nothing."""
        return Sender(self.url, **({"sleep": lambda _: None} | options))


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Serve until the end of the block, several requests at once."""
    state = Loopback()
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            with lock:
                state.seen.append((self.command, self.path, body))
                state.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, told = state.answer(self.command, self.path, body)
            data = b"" if told is None else json.dumps(told).encode()
            self.send_response(status)
            for name, value in state.extra_headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def origin(**fields: Any) -> dict[str, Any]:
    """Where an answer came from: one trace and span unless told otherwise."""
    return {"system": None, "project": "faq", "trace_id": TRACE, "span_id": SPAN} | fields


def rows(tool: str, **fields: Any) -> dict[str, dict[str, Any]]:
    """The publications of one answer with a supported and an unsupported claim, by metric without its prefix."""
    counts = {"n_claims": 2, "n_scored": 2, "n_supported": 1, "n_unsupported": 1, "n_cited_claims": 2}
    answer = fixture.answer(
        "r1", bad=True, **counts, n_citation_ok=1, groundedness=0.5, citation_precision=0.5
    )
    answer |= {"origin": origin()} | fields
    claims = [fixture.claim("r1", 0), fixture.claim("r1", 1, "unsupported", claim="It is free for students.")]
    return published(tool, [answer], claims)


def blind(tool: str, **fields: Any) -> dict[str, dict[str, Any]]:
    """The publications of one answer whose only claim was too long to be judged."""
    answer = fixture.answer("r2", bad=None) | {"origin": origin(), "action": "refuse"} | fields
    return published(tool, [answer], [fixture.claim("r2", 0, "unscored", reason="claim_too_long")])


def published(
    tool: str, answers: list[dict[str, Any]], claims: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Publications of one answer, by metric without its prefix."""
    target = Target(tool, fixture.DAY, "stub-12345678", frozenset({tool}))
    table = publish(fixture.answers(answers), fixture.verdicts(claims), target)
    return {row["metric"].removeprefix("claimscore."): row for row in table.iter_rows(named=True)}


def items(shape: Callable[..., dict[str, Any] | None], publications: dict[str, dict[str, Any]]) -> list[Item]:
    """What is sent of publications."""
    shaped = [(row["key"], shape(row)) for row in publications.values()]
    return [Item(key, body) for key, body in shaped if body is not None]
