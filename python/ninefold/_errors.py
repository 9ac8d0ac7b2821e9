"""Errors of the client."""

from __future__ import annotations

import email.utils
import json
import re
import time
from typing import Any, Dict, List, Mapping, Optional


class NinefoldError(Exception):
    """Every error of the API and of the client, except ``TypeError`` and ``ValueError`` for invalid arguments."""

    #: What is wrong, and what to do.
    message: str
    #: Machine-readable reason: a code of the API, or one of the client: ``connection_failed``, ``timed_out``,
    #: ``unexpected_answer``, ``lock_lost``, ``delivery_invalid``.
    code: str
    #: The HTTP status; 0 without a response.
    status: int
    #: The request's id in the server's log, if there was a response.
    request_id: Optional[str]
    #: Path of a page about the error on the server, such as ``/docs/errors/unauthorized``.
    docs: Optional[str]
    #: Errors by field, as with ``validation_error``.
    fields: Dict[str, List[str]]
    #: Other fields of the error, such as ``balance``.
    extras: Dict[str, Any]
    #: Wait before a retry that the server asks for, in seconds.
    retry_after: Optional[float]
    #: Address of the node that leads, if a node that does not lead responded, without doing anything.
    leader: Optional[str]

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int = 0,
        request_id: Optional[str] = None,
        docs: Optional[str] = None,
        fields: Optional[Dict[str, List[str]]] = None,
        extras: Optional[Dict[str, Any]] = None,
        retry_after: Optional[float] = None,
        leader: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.docs = docs
        self.fields = fields if fields is not None else {}
        self.extras = extras if extras is not None else {}
        self.retry_after = retry_after
        self.leader = leader

    def __reduce__(self) -> Any:
        # Exceptions travel between processes, for example those of a pool.
        return (_rebuilt, (type(self), self.message, {key: value for key, value in vars(self).items() if key != "message"}))


class NinefoldConnectionError(NinefoldError):
    """No response (``connection_failed``, ``timed_out``): the request may or may not have been carried out."""


class NinefoldWarning(UserWarning):
    """A warning of the server, such as an unknown field in a request."""


def _rebuilt(kind: Any, message: str, details: Dict[str, Any]) -> NinefoldError:
    error: NinefoldError = kind(message, **details)
    return error


def is_without_response(error: BaseException) -> bool:
    """Whether the server has not reported the outcome of the request."""
    if isinstance(error, NinefoldConnectionError):
        return True
    return isinstance(error, NinefoldError) and error.code == "unexpected_answer"


def error_of(status: int, headers: Mapping[str, str], body: bytes, target: str) -> NinefoldError:
    """The error for a response. Names of headers are in lower case."""
    request_id = headers.get("x-request-id")
    retry_after = read_retry_after(headers.get("retry-after"), time.time())
    parsed = _parse(body)
    if parsed is None:
        location = headers.get("location")
        hint = "" if location is None else f", to {location}: use that address as url"
        message = f"{target} returned {status} without an error of the API{hint}"
        return NinefoldError(
            message, code="unexpected_answer", status=status, request_id=request_id, retry_after=retry_after
        )
    error = parsed.pop("error")
    docs = error.get("docs")
    return NinefoldError(
        error["message"],
        code=parsed.pop("code"),
        status=status,
        request_id=parsed.pop("request_id", None) or request_id,
        docs=docs if isinstance(docs, str) else None,
        fields=parsed.pop("fields", None),
        extras=parsed,
        retry_after=retry_after,
        leader=headers.get("ninefold-leader") if status == 503 else None,
    )


def _parse(body: bytes) -> Optional[Dict[str, Any]]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("code"), str):
        return None
    error = parsed.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return None
    return parsed


def read_retry_after(value: Optional[str], now: float) -> Optional[float]:
    """``Retry-After`` in seconds: whole seconds, or a date. None if it is missing or malformed."""
    if value is None:
        return None
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
