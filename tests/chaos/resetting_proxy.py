"""A TCP proxy that resets connections: what a load balancer that dies, or a store that is restarted, does to a client.

A reset that is asked of the server itself does not reach the wire: its reader and writer hold the socket open, and it is
closed in good order after the answer. Here the socket is our own. What becomes of a connection is asked once: a server that
closes it after every answer has one fault a request.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

RESETS = ("reset", "torn", "cut")
"""Before the request is passed on, with half of it passed on, or with half of the answer passed back."""
_PIECE = 65_536


class ResettingProxy:
    """In front of a server on a port of this machine, one thread a connection and direction.

    Attributes:
        port: where it listens.

    Args:
        server_port: of the server behind it.
        fault_of_next: asked once a connection: "" or one of `RESETS`.
    """

    def __init__(self, server_port: int, fault_of_next: Callable[[], str]) -> None:
        self._server, self._fault_of_next = ("127.0.0.1", server_port), fault_of_next
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, self._fault_of_next()), daemon=True).start()

    def _serve(self, client: socket.socket, fault: str) -> None:
        with client, contextlib.suppress(OSError):  # an end that is gone is what this is about
            request = client.recv(_PIECE)
            if fault == "reset" or not request:
                return reset(client)
            with socket.create_connection(self._server) as server:
                if fault == "torn":
                    server.sendall(request[: len(request) // 2])
                    reset(server)
                    return reset(client)
                server.sendall(request)
                upwards = threading.Thread(target=_pass_on, args=(client, server), daemon=True)
                upwards.start()
                if fault == "cut":
                    while (answer := server.recv(_PIECE)).startswith(b"HTTP/1.1 100"):  # "send the rest"
                        client.sendall(answer)
                    client.sendall(answer[: len(answer) // 2])
                    return reset(client)
                _pass_on(server, client)
                upwards.join()
        return None


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Bytes from one end to the other until the first says that it is done."""
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def reset(connection: socket.socket) -> None:
    """Close a connection so that the other end is told of a reset, and not of an end."""
    with contextlib.suppress(OSError):  # a thread that waits for bytes would keep it open
        connection.shutdown(socket.SHUT_RD)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
