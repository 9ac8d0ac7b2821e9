"""A server that responds as it is told: one response after another, and the last one for every further request."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional


@dataclass
class Reply:
    """A response; ``instead`` breaks the connection (``cut``) or lets the request hang."""

    status: int = 200
    body: Any = field(default_factory=lambda: {"pong": True})
    headers: Dict[str, str] = field(default_factory=dict)
    instead: Optional[str] = None
    keeps_open: bool = False


@dataclass
class Received:
    method: str
    path: str
    headers: Dict[str, str]
    body: bytes
    #: How many requests the connection had before.
    before: int


def api_error(status: int, code: str, headers: Optional[Dict[str, str]] = None, **extras: Any) -> Reply:
    error = {"code": code, "message": f"a {code}", "docs": f"/docs/errors/{code}"}
    return Reply(status, {"error": error, "code": code, "request_id": "req-1", **extras}, headers or {})


class Stub:
    """A context manager; ``url`` is its address, ``requests`` what it has received."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.requests: List[Received] = []
        self._lock = threading.Lock()
        self._open: List[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Stub:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        # A thread that waits for a connection would accept another one.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        before = 0
        while True:
            start = stream.readline().decode().split(" ")
            if len(start) < 3:
                return
            headers: Dict[str, str] = {}
            for line in iter(stream.readline, b"\r\n"):
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = stream.read(int(headers.get("content-length", "0")))
            with self._lock:
                self.requests.append(Received(start[0], start[1], headers, body, before))
                reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
            before += 1
            if reply.instead == "hang":
                continue
            if reply.instead == "cut":
                connection.shutdown(socket.SHUT_RDWR)
                connection.close()
                return
            text = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            end = {} if reply.keeps_open else {"Connection": "close"}
            sent = {"Content-Type": "application/json", "X-Request-Id": "req-1", "Content-Length": len(text), **end}
            lines = [f"{name}: {value}" for name, value in {**sent, **reply.headers}.items()]
            connection.sendall("\r\n".join([f"HTTP/1.1 {reply.status} Stub", *lines, "", ""]).encode() + text)
            if not reply.keeps_open:
                connection.shutdown(socket.SHUT_RDWR)
                connection.close()
                return
