"""Sends requests: connections, timeouts and retries."""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Set
from urllib.parse import urlsplit

from ._errors import NinefoldConnectionError, NinefoldError, error_of
from ._options import Settings, read_retries, read_timeout
from ._version import __version__

#: Longest wait before the first retry, in seconds.
BACKOFF_FIRST = 0.5
#: Longest wait that the client chooses itself.
BACKOFF_MAX = 8.0
#: Longest ``Retry-After`` that the client waits for. With a longer one the request fails instead.
RETRY_AFTER_MAX = 30.0
#: Distinct warnings that a client reports: names in requests can be data, and would fill the memory.
WARNINGS_REPORTED_MAX = 100
#: Idle connections that a client keeps: more threads than that rarely send requests at the same time.
IDLE_CONNECTIONS_MAX = 8
#: Seconds that an idle connection is kept: shorter than servers and proxies keep theirs.
IDLE_SECONDS_MAX = 4.0
#: Bytes of a response that are read at a time.
READ_BYTES = 65_536
#: Python 3.9 has an error of its own for sockets.
_TIMEOUTS = (TimeoutError, socket.timeout)
#: Content types of text responses other than JSON.
TEXT_TYPES = ("application/x-ndjson", "text/")


@dataclass(frozen=True)
class WireRequest:
    """A request that can be sent more than once."""

    method: str
    #: From ``/v1``, with the query.
    path: str
    body: Optional[bytes]
    headers: Mapping[str, str]
    #: Whether the key is sent.
    with_key: bool
    idempotency_key: Optional[str]
    #: Whether it may be retried although it may have been carried out.
    repeatable: bool
    #: Whether the response is returned as raw bytes.
    wants_bytes: bool = False


@dataclass(frozen=True)
class Response:
    """A successful response of the API."""

    status: int
    #: Headers, with names in lower case.
    headers: Mapping[str, str]
    #: The request's id in the server's log.
    request_id: str
    #: The parsed JSON; a text for CSV and NDJSON; None without a body.
    body: Any


@dataclass
class _Idle:
    connection: http.client.HTTPConnection
    url: str
    since: float = field(default_factory=time.monotonic)


class Transport:
    """Sends requests with the key, a timeout and retries. Many threads can use one."""

    def __init__(self, settings: Settings, api_key: Optional[str]) -> None:
        self.settings = settings
        self._api_key = api_key
        self._lock = threading.Lock()
        self._idle: List[_Idle] = []
        self._process = os.getpid()
        #: Index of the address that worked last.
        self._current = 0
        self._reported: Set[str] = set()

    def __repr__(self) -> str:
        # Without the key.
        return f"Transport({', '.join(self.settings.urls)})"

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.connection.close()

    def __del__(self) -> None:
        # A client that is not closed must not cause warnings about open sockets.
        for one in getattr(self, "_idle", []):
            one.connection.close()

    def send(self, request: WireRequest, timeout: Optional[float] = None, retries: Optional[int] = None) -> Response:
        """Sends a request until there is a response or no retries are left."""
        retries_max = read_retries(self.settings.retries if retries is None else retries)
        # While the first attempt is in progress on the server, the client waits up to one timeout for its response
        # without using a retry.
        patience = read_timeout(self.settings.timeout if timeout is None else timeout)
        patient_until = 0.0
        retry = 0
        while True:
            try:
                return self.attempt(request, patience)
            except NinefoldError as error:
                is_running = retry > 0 and is_still_running(error, request)
                if is_running and patient_until == 0.0:
                    patient_until = time.monotonic() + patience
                is_free = is_running and time.monotonic() < patient_until
                is_left = retry < retries_max or is_free
                wait = wait_before(0 if is_free else retry, error) if is_left and may_repeat(error, request) else None
                if wait is None:
                    raise
            time.sleep(wait)
            if not is_free:
                retry += 1

    def attempt(self, request: WireRequest, timeout: float) -> Response:
        """Sends a request once: with several addresses to the first one that can be reached and that leads."""
        urls = self.settings.urls
        moves = 0
        while True:
            at = self._current
            try:
                return self._attempt_at(urls[at], request, timeout)
            except NinefoldError as error:
                self._move_from(at, error)
                moves += 1
                if moves >= len(urls) or not _was_not_received(error):
                    raise

    def _move_from(self, at: int, error: NinefoldError) -> None:
        """Lets the next attempt go elsewhere, unless another request's failure has done so."""
        if not isinstance(error, NinefoldConnectionError) and error.status not in (502, 503, 504):
            return
        urls = self.settings.urls
        # The key goes only to addresses that were given to this client.
        leader = None if error.leader is None else error.leader.rstrip("/")
        with self._lock:
            if at == self._current:
                self._current = urls.index(leader) if leader in urls else (at + 1) % len(urls)

    def _attempt_at(self, url: str, request: WireRequest, timeout: float) -> Response:
        target = f"{request.method} {url}{request.path.split('?')[0]}"
        until = time.monotonic() + timeout
        # A connection that was idle can break just when it is used. Only requests that may be repeated use one.
        connection = self._take(url) if request.repeatable else None
        if connection is not None:
            try:
                return self._exchange(connection, url, request, target, until)
            except NinefoldError:
                raise
            except _TIMEOUTS:
                raise _timed_out(target, timeout) from None
            except (OSError, http.client.HTTPException):
                pass
        try:
            connection = _connect(url, self.settings.ssl_context, until)
            return self._exchange(connection, url, request, target, until)
        except NinefoldError:
            raise
        except _TIMEOUTS:
            raise _timed_out(target, timeout) from None
        except (OSError, http.client.HTTPException) as cause:
            if time.monotonic() >= until:
                raise _timed_out(target, timeout) from cause
            reason = str(cause) or type(cause).__name__
            raise NinefoldConnectionError(f"{target} could not be reached: {reason}", code="connection_failed") from cause

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        url: str,
        request: WireRequest,
        target: str,
        until: float,
    ) -> Response:
        """Sends a request over a connection, which is kept for later if it stays open."""
        kept = False
        try:
            sock = connection.sock
            sock.settimeout(_left(until))
            path = urlsplit(url).path + request.path
            connection.request(request.method, path, body=request.body, headers=self._headers(request))
            sock.settimeout(_left(until))
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            chunks: List[bytes] = []
            while not response.isclosed():
                sock.settimeout(_left(until))
                chunk = response.read1(READ_BYTES)
                if chunk == b"":
                    break
                chunks.append(chunk)
            # With a length, read1 does not report a connection that broke in between.
            if response.length is not None and response.length > 0:
                raise http.client.IncompleteRead(b"".join(chunks), response.length)
            response.close()
            kept = not response.will_close
            answer = self._read(response.status, headers, b"".join(chunks), target, request)
        finally:
            if kept:
                self._give(url, connection)
            else:
                connection.close()
        self._report_warnings(answer.body)
        return answer

    def _headers(self, request: WireRequest) -> Dict[str, str]:
        headers = {"User-Agent": f"ninefold-python/{__version__}", "Accept-Encoding": "identity", **request.headers}
        if request.body is None and request.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = "0"
        if request.with_key and self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        if request.idempotency_key is not None:
            headers["Idempotency-Key"] = request.idempotency_key
        return headers

    def _read(
        self, status: int, headers: Dict[str, str], body: bytes, target: str, request: WireRequest
    ) -> Response:
        if status < 200 or status >= 300:
            raise error_of(status, headers, body, target)
        request_id = headers.get("x-request-id", "")
        if request.wants_bytes:
            return Response(status, headers, request_id, body)
        if status == 204 or request.method == "HEAD":
            return Response(status, headers, request_id, None)
        if headers.get("content-type", "").startswith(TEXT_TYPES):
            return Response(status, headers, request_id, body.decode("utf-8", "replace"))
        try:
            return Response(status, headers, request_id, json.loads(body))
        except ValueError as cause:
            message = f"{target} returned {status} with a body that is not JSON"
            raise NinefoldError(message, code="unexpected_answer", status=status, request_id=request_id) from cause

    def _take(self, url: str) -> Optional[http.client.HTTPConnection]:
        """An idle connection to an address, if there is one that is still open."""
        oldest = time.monotonic() - IDLE_SECONDS_MAX
        with self._lock:
            if self._process != os.getpid():
                # After a fork the parent uses them.
                self._process, self._idle = os.getpid(), []
            old = [one for one in self._idle if one.since < oldest]
            self._idle = [one for one in self._idle if one.since >= oldest]
            found = next((one for one in reversed(self._idle) if one.url == url), None)
            if found is not None:
                self._idle.remove(found)
        for one in old:
            one.connection.close()
        if found is None:
            return None
        if _is_closed(found.connection.sock):
            found.connection.close()
            return None
        return found.connection

    def _give(self, url: str, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append(_Idle(connection, url))
            extra = self._idle[:-IDLE_CONNECTIONS_MAX]
            self._idle = self._idle[-IDLE_CONNECTIONS_MAX:]
        for one in extra:
            one.connection.close()

    def _report_warnings(self, body: Any) -> None:
        warnings = body.get("warnings") if isinstance(body, dict) else None
        if not isinstance(warnings, list):
            return
        for warning in map(str, warnings):
            with self._lock:
                if warning in self._reported or len(self._reported) >= WARNINGS_REPORTED_MAX:
                    continue
                self._reported.add(warning)
            self.settings.on_warning(warning)


def _connect(url: str, context: Optional[ssl.SSLContext], until: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        chosen = context if context is not None else ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, parts.port, timeout=_left(until), context=chosen)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=_left(until))
    try:
        connection.connect()
    except (OSError, http.client.HTTPException) as cause:
        connection.close()
        setattr(cause, "ninefold_not_connected", not isinstance(cause, _TIMEOUTS))
        raise
    # NAT devices drop connections without traffic, such as those of a long wait for a lock.
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def _is_closed(sock: Any) -> bool:
    """Whether the server has closed an idle connection, or has sent what nobody has asked for."""
    if sock is None:
        return True
    try:
        sock.settimeout(0)
        # TLS sockets cannot peek.
        if isinstance(sock, ssl.SSLSocket):
            sock.recv(1)
        else:
            sock.recv(1, socket.MSG_PEEK)
        return True
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except (OSError, ValueError):
        return True


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _timed_out(target: str, timeout: float) -> NinefoldConnectionError:
    return NinefoldConnectionError(f"{target} did not respond within {timeout:g} s", code="timed_out")


#: Codes of responses that confirm that nothing was done.
_NOTHING_DONE = ("rate_limit_exceeded", "service_unavailable", "not_leader", "read_only")


def may_repeat(error: NinefoldError, request: WireRequest) -> bool:
    """Whether a retry may help and is safe."""
    # Only the response could not be stored: the request was carried out and charged.
    if error.extras.get("carried_out") is True:
        return False
    # A leader that lost its commit log does not know whether the change stays.
    if error.extras.get("outcome") == "unknown":
        return request.repeatable
    if error.code in _NOTHING_DONE:
        return True
    if not request.repeatable:
        return False
    if isinstance(error, NinefoldConnectionError):
        return True
    if error.code == "unexpected_answer":
        return error.status in (429, 502, 503, 504)
    return is_still_running(error, request)


def is_still_running(error: NinefoldError, request: WireRequest) -> bool:
    """Whether the first attempt is still in progress: this conflict alone has a ``Retry-After``."""
    return request.idempotency_key is not None and error.code == "conflict" and error.retry_after is not None


def _was_not_received(error: NinefoldError) -> bool:
    """Whether a request certainly had no effect: there was no connection, or the node that responded does not lead."""
    if error.leader is not None:
        return True
    return error.code == "connection_failed" and getattr(error.__cause__, "ninefold_not_connected", False) is True


def wait_before(retry: int, error: NinefoldError) -> Optional[float]:
    """Seconds before a retry (0 is the first); None if the server asks for a longer wait than the client accepts.

    The wait doubles each time and half of it is random, so that clients that failed together do not retry together. A
    longer ``Retry-After`` replaces it.
    """
    after = error.retry_after
    if after is not None and after > RETRY_AFTER_MAX:
        return None
    most: float = min(BACKOFF_MAX, BACKOFF_FIRST * 2.0 ** min(retry, 10))
    jitter = most * random.random()
    own = (most + jitter) / 2
    return own if after is None else max(after + jitter / 2, own)


def timeout_of(given: Optional[float], settings: Settings, least: Optional[float]) -> float:
    """The timeout of a call: as given, else the client's, else that of a slow operation if it is longer."""
    if given is not None:
        return read_timeout(given)
    return settings.timeout if least is None else max(settings.timeout, least)


