"""moto's S3 server with faults in front of it: answers that are errors or come late, connections that are reset.

Which requests are hit is drawn with a seed, so that runs without threads of their own meet the same faults again.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow.fs
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from resetting_proxy import RESETS, ResettingProxy
from werkzeug.serving import make_server

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
ERRORS = {"SlowDown": "503 Slow Down", "InternalError": "500 Internal Server Error"}
LATE = "late"
LATE_S = 0.1


class FaultyS3:
    """The server; `faults` gives the share of requests that meet each fault.

    Attributes:
        counts: requests by the fault that they met.
        port: where clients meet the faults.
        query: what a URI of a bucket here needs behind it.
        fs: a way in past the proxy; it meets no faults as long as `faults` is empty.
    """

    def __init__(self) -> None:
        self.faults: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self._rng, self._turn = random.Random(0), threading.Lock()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=MotoRequestHandler
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._proxy = ResettingProxy(self._server.server_port, lambda: self._drawn(RESETS))
        self.port = self._proxy.port
        self.query = f"?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        self.fs = pyarrow.fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self._server.server_port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def meet(self, seed: int, **faults: float) -> None:
        """From now on, requests meet these faults in these shares: SlowDown, InternalError, late, or one of RESETS."""
        self._rng, self.faults, self.counts = random.Random(seed), faults, Counter()

    def stop(self) -> None:
        """No more requests are answered."""
        self._proxy.stop()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _drawn(self, faults: Iterable[str]) -> str:
        """Which of these faults the next request meets; "" for none."""
        with self._turn:
            asked = {name: share for name, share in self.faults.items() if name in faults}
            fault = next((name for name, share in asked.items() if self._rng.random() < share), "")
            self.counts[fault] += 1
            return fault

    def _answer(self, environ: dict[str, Any], begin: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            return begin(
                status, [*headers, ("Connection", "close")], *error
            )  # a request, a connection, a fault

        fault = self._drawn((*ERRORS, LATE))
        if fault in ERRORS:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            body = f"<Error><Code>{fault}</Code><Message>Reduce your request rate.</Message></Error>".encode()
            start(ERRORS[fault], [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        if fault == LATE:
            threading.Event().wait(LATE_S)
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


@contextlib.contextmanager
def serving() -> Iterator[FaultyS3]:
    """A server with an empty bucket `data`, and keys to it in the environment."""
    with pytest.MonkeyPatch.context() as env:
        for name, value in KEYS.items():
            env.setenv(name, value)
        server = FaultyS3()
        server.fs.create_dir("data")
        yield server
        server.stop()
