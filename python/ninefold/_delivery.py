"""Verifies webhooks that a Ninefold server sends."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import NinefoldError

#: Common tolerance of webhook receivers, in seconds.
TOLERANCE_DEFAULT = 300.0
#: Alerts that a platform key signs contain only the time at which they were queued.
ALERT_TOLERANCE_DEFAULT = 3600.0

Headers = Union[Mapping[str, str], Mapping[str, Sequence[str]], Iterable[Tuple[str, str]]]


@dataclass(frozen=True)
class Delivery:
    """A webhook with a valid signature."""

    #: ``relay``: sent by you. ``alert``: from a monitor. ``event``: forwarded or replayed by a bucket.
    kind: str
    #: ``webhook-id``, which is signed; with a platform key ``X-Svc-Delivery-Id``, or ``X-Svc-Event-Id`` of a bucket's event,
    #: which are not. The same for every retry: store the ids that you have processed.
    id: str
    #: Event of an alert, such as ``monitor.down``.
    event: Optional[str]
    #: Time of the signature, in seconds since the epoch.
    signed_at: float
    #: The body as received.
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The parsed body. Raises ValueError if it is not JSON."""
        return json.loads(self.body)


def verify_webhook(
    headers: Headers,
    body: Union[bytes, bytearray, memoryview, str],
    secret: Union[str, Sequence[str]],
    *,
    tolerance: float = TOLERANCE_DEFAULT,
    alert_tolerance: float = ALERT_TOLERANCE_DEFAULT,
    now: Optional[float] = None,
) -> Delivery:
    """Verifies a webhook of the relay, an alert of a monitor, or a bucket's event.

    Works before parsing, in constant time, over the exact bytes, with any Standard Webhooks sender.

    ``headers`` is a mapping (names in any case) or a list of pairs, ``body`` the body as received, not parsed and
    serialized again. ``secret`` is the project's or the endpoint's secret (``whsec_...``), or the account's platform key;
    during a rotation, a list of the new and the old one. With both kinds, a signature of either is accepted.
    ``tolerance`` is the largest difference between a signature's time and now, in seconds; ``alert_tolerance`` that of
    alerts that a platform key verifies; ``now`` is the time in seconds since the epoch, the system's by default.

    Raises NinefoldError ``delivery_invalid`` for anything that is not one of your webhooks: respond with 401.
    """
    keys = _read_keys(secret)
    given = _Headers(headers)
    data = _bytes_of(body)
    at = time.time() if now is None else now
    secrets = [key for key in keys if key.startswith(_PREFIX)]
    platform_keys = [key for key in keys if not key.startswith(_PREFIX)]
    if not platform_keys:
        return _verify_standard(given, data, secrets, tolerance, at)
    if not secrets or given.one("webhook-signature") is None:
        return _verify_by_platform_key(given, data, platform_keys, tolerance, alert_tolerance, at)
    # A receiver that migrates from one format to the other has both secrets.
    try:
        return _verify_standard(given, data, secrets, tolerance, at)
    except NinefoldError as rejected:
        try:
            return _verify_by_platform_key(given, data, platform_keys, tolerance, alert_tolerance, at)
        except NinefoldError:
            raise rejected from None


_PREFIX = "whsec_"
#: Seconds since the epoch.
_SECONDS = re.compile(r"[0-9]{10,11}")


def _verify_standard(headers: _Headers, body: bytes, secrets: List[str], tolerance: float, now: float) -> Delivery:
    """The format of Standard Webhooks: ``v1,`` and base64 over ``id.timestamp.body``, one signature per valid secret."""
    id, timestamp, given = (headers.required(name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not _SECONDS.fullmatch(timestamp):
        raise _invalid("its webhook-timestamp is malformed")
    signed = f"{id}.{timestamp}.".encode("utf-8", "surrogateescape") + body
    expected = [b"v1," + base64.b64encode(hmac.digest(_unbase64(one), signed, hashlib.sha256)) for one in secrets]
    # The sender chooses the number of signatures, so no HMAC is computed per signature: each is compared with each.
    matches = [
        hmac.compare_digest(signature.encode("utf-8", "replace"), right)
        for signature in given.split(" ")
        for right in expected
    ]
    if True not in matches:
        raise _invalid("its signature is not valid")
    signed_at = float(timestamp)
    _assert_recent(signed_at, tolerance, now)
    is_alert = headers.one("x-svc-event") is not None
    event = _read_alert(headers, body)[0] if is_alert else None
    kind = "alert" if is_alert else "event" if id.startswith("evt_") else "relay"
    return Delivery(kind, id, event, signed_at, body)


_EVENT_SIGNATURE = re.compile(r"t=([0-9]{10,11}),v1=([0-9a-f]{64})")
_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})")
#: A fixed length, so that no digit can move between timestamp and body.
_MILLISECONDS = re.compile(r"[0-9]{13}")


def _verify_by_platform_key(
    headers: _Headers, body: bytes, keys: List[str], tolerance: float, alert_tolerance: float, now: float
) -> Delivery:
    given = headers.required("x-svc-signature")
    kind, before, signed_at = "alert", b"", 0.0
    event_match, match = _EVENT_SIGNATURE.fullmatch(given), _SIGNATURE.fullmatch(given)
    if event_match is not None:
        seconds, signature = event_match.groups()
        kind, before, signed_at = "event", f"{seconds}.".encode(), float(seconds)
    elif match is not None:
        signature = match.group(1)
        timestamp = headers.one("x-svc-timestamp")
        if timestamp is not None:
            if not _MILLISECONDS.fullmatch(timestamp):
                raise _invalid("its X-Svc-Timestamp is malformed")
            kind, before, signed_at = "relay", timestamp.encode(), int(timestamp) / 1000
    else:
        raise _invalid("its X-Svc-Signature is malformed")
    digests = [hmac.new(key.encode(), before + body, hashlib.sha256).hexdigest() for key in keys]
    if True not in [hmac.compare_digest(digest, signature) for digest in digests]:
        raise _invalid("its signature is not valid")
    event = None
    if kind == "alert":
        event, signed_at = _read_alert(headers, body)
    _assert_recent(signed_at, alert_tolerance if kind == "alert" else tolerance, now)
    id = headers.required("x-svc-event-id" if kind == "event" else "x-svc-delivery-id")
    return Delivery(kind, id, event, signed_at, body)


def _read_alert(headers: _Headers, body: bytes) -> Tuple[str, float]:
    """Event and time of an alert are part of its body."""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    event = parsed.get("event") if isinstance(parsed, dict) else None
    timestamp = parsed.get("timestamp") if isinstance(parsed, dict) else None
    if not isinstance(event, str) or not isinstance(timestamp, (int, float)):
        raise _invalid("it is not an alert of a monitor")
    if headers.one("x-svc-event") != event:
        raise _invalid("its X-Svc-Event differs from the body")
    return event, float(timestamp)


def _assert_recent(signed_at: float, tolerance: float, now: float) -> None:
    ago = now - signed_at
    # Written so that NaN is rejected.
    if not abs(ago) <= tolerance:
        raise _invalid(f"it was signed {abs(ago):.0f} s {'in the future' if ago < 0 else 'ago'}")


def _unbase64(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret[len(_PREFIX) :], validate=True)
    except binascii.Error:
        key = b""
    if key == b"":
        raise ValueError("a secret must be whsec_ followed by base64, as shown by the server")
    return key


def _read_keys(secret: Union[str, Sequence[str]]) -> List[str]:
    """A missing secret must not become a constant that anyone can guess."""
    keys = [secret] if isinstance(secret, str) else list(secret) if isinstance(secret, (list, tuple)) else []
    if keys and all(isinstance(key, str) and key != "" for key in keys):
        return keys
    raise TypeError("secret must be a secret (whsec_...) or the platform key, or a list of them, none of them empty")


class _Headers:
    """The headers of a request, with names in any case."""

    def __init__(self, given: Headers) -> None:
        if isinstance(given, (str, bytes)):
            raise TypeError("headers must be a mapping or a list of pairs: verify_webhook(headers, body, secret)")
        items: Any = getattr(given, "items", None)
        pairs: Any = given if items is None else items()
        self._values: List[Tuple[str, str]] = []
        for name, value in pairs:
            for one in [value] if isinstance(value, (str, bytes)) else value:
                self._values.append((_text(name).lower(), _text(one)))

    def one(self, name: str) -> Optional[str]:
        """The value of a header that occurs once; None otherwise."""
        values = [value for other, value in self._values if other == name]
        return values[0] if len(values) == 1 else None

    def required(self, name: str) -> str:
        value = self.one(name)
        if value is None or value == "":
            raise _invalid(f"the header {name} is missing")
        return value


def _text(value: Union[str, bytes]) -> str:
    # Servers of ASGI applications pass bytes.
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes_of(body: Union[bytes, bytearray, memoryview, str]) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    raise TypeError("body must be the bytes or the text as received: read it before it is parsed")


def _invalid(why: str) -> NinefoldError:
    return NinefoldError(f"The webhook is not valid: {why}.", code="delivery_invalid")
