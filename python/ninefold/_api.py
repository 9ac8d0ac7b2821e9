"""Calls operations of the API."""

from __future__ import annotations

import json
import keyword
import math
import uuid
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union
from urllib.parse import quote, urlencode

from ._operations import SLOW, UNUSUAL
from ._options import DEFAULT, Default, read_idempotency_key
from ._transport import Response, Transport, WireRequest, timeout_of


Item = TypeVar("Item")
Page = TypeVar("Page")

#: Default page size while iterating: the maximum, since each request costs credits.
_ITEMS_PER_REQUEST = 100


class Pages(Generic[Item, Page]):
    """A list that is read lazily: iterating reads its items, ``page()`` one page. No request is sent before."""

    def __init__(self, read: Callable[[Optional[str], Optional[int]], Any], items: str) -> None:
        self._read = read
        self._items = items

    def page(self) -> Page:
        """The first page (after ``cursor``, if given) as the API returns it, with the cursor of the next."""
        page: Page = self._read(None, None)
        return page

    def pages(self) -> Iterator[Page]:
        """Iterates over pages as the API returns them."""
        return self._walk(None)

    def __iter__(self) -> Iterator[Item]:
        for page in self._walk(_ITEMS_PER_REQUEST):
            yield from page[self._items]

    def _walk(self, limit: Optional[int]) -> Iterator[Any]:
        cursor: Optional[str] = None
        while True:
            page = self._read(cursor, limit)
            yield page
            cursor = page.get("cursor") or page.get("next_cursor")
            if cursor is None:
                return


class Methods:
    """The methods of a part of the API."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self._api.transport.settings.urls)}>"


class Api:
    """Calls operations by their method and path."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def call(
        self,
        operation: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Any = DEFAULT,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> Any:
        """Calls an operation, such as ``GET /v1/keys/{id}``. Returns the body of its response."""
        request = self.request(operation, params, query=query, body=body, idempotency_key=idempotency_key)
        return self.transport.send(request, self.timeout(operation, timeout), retries).body

    def pages(
        self,
        operation: str,
        items: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        query: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        is_complete: bool = False,
    ) -> Any:
        """The list of an operation, read page by page; ``items`` is the member of a page that holds its items."""
        given = dict(query or {})

        def read(cursor: Optional[str], limit: Optional[int]) -> Any:
            page = dict(given)
            if not is_complete:
                page["cursor"] = cursor if cursor is not None else given.get("cursor")
                page["limit"] = given["limit"] if given.get("limit") is not None else limit
            return self.call(operation, params, query=page, timeout=timeout, retries=retries)

        return Pages(read, items)

    def request(
        self,
        operation: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        query: Optional[Mapping[str, Any]] = None,
        body: Any = DEFAULT,
        headers: Optional[Mapping[str, str]] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        wants_bytes: bool = False,
        below: str = "",
    ) -> WireRequest:
        """The request of an operation, ready to be sent. ``below`` follows its path."""
        method, template = operation.split(" ")
        given = params or {}
        parts = [
            _segment(part[1:-1], given.get(part[1:-1])) if part.startswith("{") else part
            for part in template.split("/")
        ]
        path = "/".join(parts) + below + _query_text(query)
        return build(method, path, operation, body, headers, idempotency_key, wants_bytes)

    def raw(self, method: str, path: str, body: Any, timeout: Optional[float], retries: Optional[int], idempotency_key: Union[str, None, Default]) -> Response:
        """Sends any request, also to operations without a method."""
        operation = _operation_at(method, path)
        request = build(method, path, operation, body, None, idempotency_key, False)
        return self.transport.send(request, self.timeout(operation, timeout), retries)

    def timeout(self, operation: str, given: Optional[float]) -> float:
        """The timeout of a call of an operation, in seconds."""
        return timeout_of(given, self.transport.settings, SLOW.get(operation))


def build(
    method: str,
    path: str,
    operation: str,
    body: Any,
    headers: Optional[Mapping[str, str]],
    idempotency_key: Union[str, None, Default],
    wants_bytes: bool,
) -> WireRequest:
    """A request that is repeated only as it is safe for its operation."""
    is_read = method in ("GET", "HEAD")
    repeat, with_key = UNUSUAL.get(operation, ("free" if is_read else "keyed", True))
    chosen = (str(uuid.uuid4()) if repeat == "keyed" else None) if isinstance(idempotency_key, Default) else idempotency_key
    key = None if chosen is None else read_idempotency_key(chosen)
    sent: Dict[str, str] = dict(headers or {})
    data: Optional[bytes]
    if isinstance(body, Default):
        data = None
    elif isinstance(body, (bytes, bytearray, memoryview)):
        data = bytes(body)
    else:
        data = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        sent.setdefault("Content-Type", "application/json")
    is_repeatable = repeat == "free" or (repeat == "keyed" and key is not None)
    return WireRequest(method, path, data, sent, with_key, key, is_repeatable, wants_bytes)


def fields_of(positional: Optional[Mapping[str, Any]], fields: Mapping[str, Any]) -> Dict[str, Any]:
    """A body or query, given as a mapping, by keywords, or both. Python's keywords have an underscore: ``from_``."""
    if positional is not None and not isinstance(positional, Mapping):
        raise TypeError(f"a body or query must be a dict or keyword arguments, not {type(positional).__name__}")
    return {_name(name): value for name, value in {**(positional or {}), **fields}.items()}


def _name(name: str) -> str:
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def _segment(parameter: str, value: Any) -> str:
    """A path segment. An empty one would change the path."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or text in ("", ".", ".."):
        raise TypeError(f"{parameter} must be a text that is not empty, not {value!r}")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise TypeError(f"{parameter} must be a text of whole characters, not {value!r}") from None


def _query_text(query: Optional[Mapping[str, Any]]) -> str:
    given: List[Tuple[str, str]] = [(name, _query_value(value)) for name, value in (query or {}).items() if value is not None]
    return f"?{urlencode(given)}" if given else ""


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)


def _operation_at(method: str, path: str) -> str:
    """The operation of a method and path, as far as it is in a table; else one that no table has."""
    segments = path.split("?")[0].split("/")

    def fits(operation: str) -> bool:
        other, template = operation.split(" ")
        parts = template.split("/")
        return (
            other == method
            and len(parts) == len(segments)
            and all(part.startswith("{") or part == segment for part, segment in zip(parts, segments))
        )

    found = [operation for operation in [*UNUSUAL, *SLOW] if fits(operation)]
    # A literal path takes precedence over one with parameters.
    return min(found, key=lambda one: one.count("{"), default=f"{method} {path}")
