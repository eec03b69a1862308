"""Telling another program over HTTP: requests with time limits and retries.

A request is tried again on 429, on 5xx and where no answer came, with growing pauses or as long as the server asks.
Tokens come from environment variables, go into headers, and stand in no message; a redirect is never followed, for it
could carry them elsewhere. The module knows no tool and no table.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from claimscore.jobs.errors import OutputError, one_line

MAX_TRIES = 6
MAX_PAUSE_S = 60.0
TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403})


def token_of(variable: str) -> str:
    """What an environment variable holds, without the line break that secret stores leave behind; "" for none."""
    return os.environ.get(variable, "").strip()


class RefusedError(OutputError):
    """The other side does not take our token: no further request can do better."""


def place_of(url: str) -> str:
    """Scheme, host and port of a URL: what may be told of it. Paths and queries of webhooks are secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def checked_url(url: str, option: str) -> str:
    """The URL without its last slash.

    Raises:
        OutputError: no http(s) URL, or one with a password in it.
    """
    try:
        parts = urlsplit(url)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
        _ = parts.port
    except ValueError:
        is_fine = False
    if not is_fine:
        raise OutputError(
            f"{option}: not a place to send to, expected http(s)://host[:port][/path] without user and password; "
            "tokens come from the environment"
        )
    return url.rstrip("/")


class Sender:
    """Requests to one place.

    Args:
        url: as `checked_url` gives it.
        headers: sent with each request; tokens among them.
        asks_for: environment variables that a refusal should name.
        sleep: waits so many seconds; a test hands in its own.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        asks_for: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.place = place_of(url)
        self._url = url
        self._asks_for = asks_for
        self._sleep = sleep
        sent = {"user-agent": "claimscore", **(headers or {})}
        self._client = httpx.Client(
            headers={name.encode(): value.encode() for name, value in sent.items()},
            timeout=TIMEOUT,
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def request(
        self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """The other side's answer, whatever it says but 429 and 5xx to the last, 401 and 403.

        Raises:
            RefusedError: 401 or 403.
            OutputError: no answer, or none but 429 and 5xx, in MAX_TRIES tries.
        """
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {} if body is None else {"content-type": "application/json"}
        for n_tries in range(1, MAX_TRIES + 1):
            pause = min(MAX_PAUSE_S, 2.0 ** (n_tries - 1) * (0.5 + random.random()))
            try:
                answer = self._client.request(
                    method, self._url + path, content=data, headers=headers, params=params
                )
            except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL) as err:
                name = type(err).__name__
                raise OutputError(f"{self.place}: {name}, expected a plain URL and header values") from None
            except httpx.HTTPError as err:
                said = type(err).__name__  # its text may hold the URL
            else:
                if answer.status_code in _REFUSED:
                    names = f"; set {self._asks_for}" if self._asks_for else ""
                    raise RefusedError(
                        f"{self.place}: answered {answer.status_code}, expected to be let in{names}"
                    )
                if answer.status_code not in _AGAIN:
                    return answer
                said, pause = f"HTTP {answer.status_code}", max(pause, _asked_pause(answer))
            if n_tries < MAX_TRIES:
                self._sleep(pause)
        raise OutputError(
            f"{self.place}: {said} after {MAX_TRIES} tries, expected an answer; try again later"
        )


def _asked_pause(answer: httpx.Response) -> float:
    """Seconds that the server asks to wait, within bounds; a date or nonsense is 0."""
    text = answer.headers.get("retry-after", "")
    return min(MAX_PAUSE_S, float(text)) if text.isascii() and text.isdigit() else 0.0


def error_of(answer: httpx.Response) -> str:
    """What a refusal says, in one short line."""
    return f"HTTP {answer.status_code}: {one_line(answer.text[:2_000])[:200]}"
