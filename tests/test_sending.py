"""Sending: what is tried again and for how long, what is told of a failure, and the record that keeps reruns small."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import loopback_fixture as loop
import pytest

from claimscore.jobs.errors import OutputError
from claimscore.jobs.output import OutputRoot
from claimscore.jobs.published import Item, Outcome, Record, Sent, send_changed
from claimscore.jobs.sending import MAX_TRIES, RefusedError, Sender, checked_url, place_of, token_of


@pytest.fixture
def server():
    """A loopback server."""
    with loop.loopback() as state:
        yield state


def statuses(server: loop.Loopback, *codes: int) -> None:
    """Answer with these in turn, the last for ever."""
    left = list(codes)
    server.answer = lambda *_: (left.pop(0) if len(left) > 1 else left[0], {"said": "x"})


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504, 408])
def test_a_passing_failure_is_tried_again(server, code):
    """Too many requests, and what a server or a proxy says when it is down."""
    statuses(server, code, code, 200)

    assert server.sender().request("POST", "/x", {"a": 1}).status_code == 200
    assert [seen[2] for seen in server.seen] == [{"a": 1}] * 3


@pytest.mark.parametrize("code", [400, 404, 409, 422])
def test_a_lasting_failure_is_given_back_at_once(server, code):
    """What asking again cannot mend is the caller's to read."""
    statuses(server, code)

    assert server.sender().request("GET", "/x").status_code == code
    assert len(server.seen) == 1


def test_pauses_grow_and_follow_the_server():
    """Each pause is about twice the one before; `retry-after` is obeyed, up to a minute."""
    pauses: list[float] = []
    with loop.loopback() as server:
        statuses(server, 503)
        with pytest.raises(OutputError, match=f"HTTP 503 after {MAX_TRIES} tries"):
            server.sender(sleep=pauses.append).request("GET", "/x")
        server.extra_headers = {"retry-after": "7"}
        with pytest.raises(OutputError):
            server.sender(sleep=pauses.append).request("GET", "/x")
        server.extra_headers = {"retry-after": "86400"}
        with pytest.raises(OutputError):
            server.sender(sleep=pauses.append).request("GET", "/x")

    own, asked, forever = (pauses[k : k + MAX_TRIES - 1] for k in range(0, len(pauses), MAX_TRIES - 1))
    assert all(2**k * 0.5 <= pause <= 2**k * 1.5 for k, pause in enumerate(own))
    assert all(pause >= 7 for pause in asked)
    assert set(forever) == {60.0}


def test_nobody_there_is_a_named_failure():
    """A closed port is tried, and the place is told without path and query."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/secret/path?key=1"
    with pytest.raises(OutputError, match=f"ConnectError after {MAX_TRIES} tries") as caught:
        Sender(url, sleep=lambda _: None).request("GET", "")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("code", [401, 403])
def test_a_refusal_names_the_variable_and_no_value(server, code):
    """What is wrong is the token: its variable is told."""
    statuses(server, code)

    with pytest.raises(RefusedError, match=f"answered {code}, expected to be let in; set MY_TOKEN") as caught:
        server.sender(headers={"authorization": "Bearer hush"}, asks_for="MY_TOKEN").request("GET", "/x")
    assert "hush" not in str(caught.value)


def test_a_redirect_is_not_followed(server):
    """It would carry the token to wherever it says."""
    server.extra_headers = {"location": f"{server.url}/elsewhere"}
    statuses(server, 307)

    assert server.sender(headers={"authorization": "hush"}).request("POST", "/x", {}).status_code == 307
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "url", ["ftp://h/x", "h:80", "http://", "http://user:pw@h/x", "http://h:port/", "http://[/"]
)
def test_what_is_no_place_to_send_to(url):
    """Another scheme, no host, a password in the URL."""
    with pytest.raises(OutputError, match="--send: not a place to send to") as caught:
        checked_url(url, "--send")

    assert "pw" not in str(caught.value).replace("password", "")


def test_a_place_is_told_by_its_host():
    """Scheme, host and port; nothing of the rest."""
    assert place_of("https://hooks.example.com:8443/T0/B0/xyz?token=1") == "https://hooks.example.com:8443"


class Shelf:
    """A tool that keeps what it is sent, and refuses items whose body says so."""

    name = "shelf"
    batch_size = 2
    can_remove = True

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.pushed: list[str] = []
        self.removed: list[str] = []
        self.down = False

    def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
        """Keep them."""
        if self.down:
            raise OutputError("the shelf is down")
        self.pushed += [item.key for item in batch]
        refused = [bool(item.body.get("refused")) for item in batch]
        self.held |= {item.key: item.body for item, no in zip(batch, refused, strict=True) if not no}
        return [
            Outcome(error="refused") if no else Outcome(tool_id=f"id-{item.key}")
            for item, no in zip(batch, refused, strict=True)
        ]

    def remove(self, sender: Sender, item: Item) -> Outcome:
        """Forget one."""
        self.removed.append(item.known_as or "")
        return Outcome()


@pytest.fixture
def root(tmp_path: Path) -> OutputRoot:
    """An output root."""
    return OutputRoot(str(tmp_path / "out"))


def record(root: OutputRoot) -> Record:
    """The record as a new process reads it."""
    return Record(root, "shelf", "http://h", "2026-11-28")


def send(shelf: Shelf, items: list[Item], root: OutputRoot, **options: Any) -> Sent:
    """Send, from what the disk holds."""
    return send_changed(shelf, items, record(root), Sender("http://h"), **options)


def things(n: int, **body: Any) -> list[Item]:
    """Items `0` to n - 1."""
    return [Item(str(k), {"value": k} | body) for k in range(n)]


def counts(sent: Sent) -> tuple[int, ...]:
    """created, updated, unchanged, removed, failed."""
    return sent.created, sent.updated, sent.unchanged, sent.removed, sent.failed


def test_only_what_changed_is_sent_again(root):
    """Nothing the second time; one changed item goes alone, and counts as updated."""
    shelf, items = Shelf(), things(5)
    changed = [*items[:3], Item("3", {"value": 33}), items[4]]

    assert [counts(send(shelf, batch, root)) for batch in (items, items, changed)] == [
        (5, 0, 0, 0, 0),
        (0, 0, 5, 0, 0),
        (0, 1, 4, 0, 0),
    ]
    assert shelf.pushed[5:] == ["3"]
    assert counts(send(shelf, changed, root, again=True)) == (0, 5, 0, 0, 0)


def test_what_failed_is_sent_the_next_time(root):
    """A refused item is counted, told once, and not in the record."""
    shelf = Shelf()
    first = send(shelf, [*things(3), Item("x", {"refused": 1}), Item("y", {"refused": 1})], root)

    assert (counts(first), first.errors) == ((3, 0, 0, 0, 2), ["refused"])
    assert counts(send(shelf, [*things(3), Item("x", {}), Item("y", {})], root)) == (2, 0, 3, 0, 0)


def test_what_is_no_more_is_taken_back(root):
    """By the tool's own id; the rest stays."""
    shelf = Shelf()
    send(shelf, things(4), root)

    assert counts(send(shelf, things(3), root)) == (0, 0, 3, 1, 0)
    assert shelf.removed == ["id-3"]
    assert counts(send(shelf, things(3), root)) == (0, 0, 3, 0, 0)


def test_nothing_is_taken_back_where_items_may_be_missing_for_now(root):
    """A day with unfinished shards, and a failure in the same run, take nothing back."""
    shelf = Shelf()
    send(shelf, things(4), root)

    assert counts(send(shelf, things(3), root, may_remove=False)) == (0, 0, 3, 0, 0)
    assert counts(send(shelf, [*things(3), Item("x", {"refused": 1})], root)) == (0, 0, 3, 0, 1)
    assert shelf.removed == []


def test_another_series_is_left_alone(root):
    """What was sent with its series in the key is not taken back by an export of another series."""
    shelf = Shelf()
    send(shelf, [Item("a-1", {})], root, scope="a")

    assert counts(send(shelf, [Item("b-1", {})], root, scope="b")) == (1, 0, 0, 0, 0)
    assert shelf.removed == []


def test_what_cannot_be_taken_back_is_counted(root):
    """A tool without a call for it keeps the old one, and that is said."""
    shelf = Shelf()
    send(shelf, things(4), root)
    shelf.can_remove = False

    sent = send(shelf, things(3), root)
    assert (sent.left, sent.failed) == (1, 0)


def test_a_place_that_is_down_is_given_up(root):
    """After three requests without an answer the rest is not tried, and all of it counts as failed."""
    shelf = Shelf()
    shelf.down = True

    sent = send(shelf, things(200), root)
    assert sent.failed == 200
    assert sent.errors[0] == "the shelf is down"
    assert sent.errors[-1] == "http://h: down or refuses us, the rest was not tried"
    shelf.down = False
    assert counts(send(shelf, things(200), root)) == (200, 0, 0, 0, 0)


def test_what_was_sent_before_a_crash_is_on_disk(root):
    """A bug or an interrupt in the middle leaves a record of what had arrived."""

    class Dying(Shelf):
        def push(self, sender: Sender, batch: Sequence[Item]) -> list[Outcome]:
            if batch[0].key == "6":
                raise KeyboardInterrupt
            return super().push(sender, batch)

    with pytest.raises(KeyboardInterrupt):
        send(Dying(), things(8), root)

    assert set(record(root).sent) == {"0", "1", "2", "3", "4", "5"}


def test_a_place_and_a_day_have_a_record_of_their_own(root):
    """Two servers of one tool are two places."""
    files = {
        Record(root, tool, url, day).file
        for tool in ("a", "b")
        for url in ("http://h", "http://i")
        for day in ("2026-11-28", "2026-11-29")
    }

    assert len(files) == 8
    assert all(file.startswith("state/published/") for file in files)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"sent": 3}', '{"sent": {"k": ["a"]}}', '{"sent": {"k": 3}}']
)
def test_a_damaged_record_is_a_named_failure(root, text):
    """It is not taken for an empty one: everything would be sent again without a word."""
    file = record(root).file
    root.put(file, text.encode())

    with pytest.raises(OutputError, match="not a record of what was sent"):
        record(root)


def test_the_record_is_strict_json(root):
    """It can be read by people and programs, and says which place it is of."""
    send(Shelf(), things(1), root)

    document = json.loads(root.get(record(root).file) or b"")
    assert {name: document[name] for name in ("tool", "place", "date")} == {
        "tool": "shelf",
        "place": "http://h",
        "date": "2026-11-28",
    }
    assert document["sent"]["0"][1:] == ["id-0", ""]


def test_a_token_is_read_without_its_line_break(monkeypatch):
    """Secret stores leave one at the end, and a header cannot hold it."""
    monkeypatch.setenv("MY_TOKEN", "hush\n")

    assert token_of("MY_TOKEN") == "hush"
    assert token_of("NO_SUCH_TOKEN") == ""


def test_a_header_that_cannot_be_sent_is_told_without_its_value(server):
    """At once, and not after a minute of tries."""
    with pytest.raises(
        OutputError, match="LocalProtocolError, expected a plain URL and header values"
    ) as caught:
        server.sender(headers={"authorization": "hu\nsh"}).request("GET", "/x")

    assert "hu" not in str(caught.value)
    assert server.seen == []


def test_other_alphabets_go_as_utf8(server):
    """A password may be in any."""
    assert server.sender(headers={"authorization": "päss 日本"}).request("GET", "/x").status_code == 200
