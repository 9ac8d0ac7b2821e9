"""Methods that do more than send the request of one operation."""

from __future__ import annotations

import datetime
import json
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Literal, Mapping, Optional, TypeVar, Union, cast
from urllib.parse import quote

from ._api import Api, Pages, fields_of
from ._errors import NinefoldError, is_without_response
from ._methods import (
    AccountMethods,
    BucketsMethods,
    CatchMethods,
    EventsMethods,
    FlagsMethods,
    KeysMethods,
    LocksMethods,
    MonitorsMethods,
    NotaryMethods,
    ReceiptsMethods,
)
from ._options import DEFAULT, Default, read_retries
from ._transport import WireRequest, may_repeat, wait_before

if TYPE_CHECKING:
    from . import models

T = TypeVar("T")

#: ``shared`` for a read lock, which several hold together; ``exclusive`` for a write lock.
LockMode = Literal["exclusive", "shared"]

#: Timeout of a request with a fallback, in seconds.
_FALLBACK_AFTER = 2.0
#: The server's default wait for a lock, in milliseconds.
_LOCK_MS_DEFAULT = 10_000
#: Its shortest wait.
LOCK_MS_MIN = 1_000
#: Longest time in which a lock that may have been granted is released in the background, in seconds.
_CLEAN_UP = 5.0


class Account(AccountMethods):
    """The account of the key: credits, platform key and browser sessions."""

    def rotate_key(
        self,
        *,
        grace_hours: Optional[float] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.RotatedPlatformKey:
        """Rotate the platform key.

        Older keys work for the grace period (``grace_hours``, or as the server is configured), but can no longer change
        keys. Raises NinefoldError 429 within the same hour.
        """
        body = {} if grace_hours is None else {"grace_hours": grace_hours}
        options: Any = {"timeout": timeout, "retries": retries, "idempotency_key": idempotency_key}
        return cast("models.RotatedPlatformKey", self._api.call("POST /v1/keys/rotate", body=body, **options))


class Keys(KeysMethods):
    """Managed keys, for parts of your system or for your customers."""

    def verify(
        self,
        secret: str,
        *,
        ip: Optional[str] = None,
        user_agent: Optional[str] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **asked: Any,
    ) -> models.KeyVerdict:
        """Verify a secret and what its key may do.

        Never raises for an invalid secret; check ``valid``. ``asked`` are fields of the body, such as ``require``, ``cost``
        and ``ratelimits``. Pass an ``idempotency_key`` if a lost response must not cost the key a second use. Costs 1
        credit.
        """
        body: Any = {"secret": secret, **asked}
        if ip is not None or user_agent is not None:
            meta = {"ip": ip, "user_agent": user_agent}
            body["meta"] = {name: value for name, value in meta.items() if value is not None}
        options: Any = {"timeout": timeout, "retries": retries, "idempotency_key": idempotency_key}
        return cast("models.KeyVerdict", self._api.call("POST /v1/keys/verify", body=body, **options))


class Flags(FlagsMethods):
    """Feature flags."""

    def is_enabled(
        self,
        flag_key: str,
        *,
        fallback: Optional[bool] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> bool:
        """Whether a flag is switched on, regardless of its rules.

        Raises NinefoldError ``gate.feature_not_found`` and any other error; nothing with a ``fallback``, which is returned
        when the request fails: by default after one attempt of 2 s. Costs 1 credit.
        """
        if fallback is None:
            return bool(self.evaluate(flag_key, timeout=timeout, retries=retries)["enabled"])
        return _or_fallback(
            fallback, timeout, retries, lambda **once: bool(self.evaluate(flag_key, **once)["enabled"])
        )

    def boolean(
        self,
        key: str,
        context: Mapping[str, Any],
        fallback: bool,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> bool:
        """Evaluate a boolean flag.

        Returns the fallback for a flag without a value, of another type, or when the request fails: by default after one
        attempt of 2 s. Costs 1 credit.
        """
        return self._value(key, context, fallback, timeout, retries, lambda value: isinstance(value, bool))

    def string(
        self,
        key: str,
        context: Mapping[str, Any],
        fallback: str,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> str:
        """Evaluate a string flag, like ``boolean``."""
        return self._value(key, context, fallback, timeout, retries, lambda value: isinstance(value, str))

    def number(
        self,
        key: str,
        context: Mapping[str, Any],
        fallback: float,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> float:
        """Evaluate a number flag, like ``boolean``."""
        return self._value(
            key,
            context,
            fallback,
            timeout,
            retries,
            lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
        )

    def object(
        self,
        key: str,
        context: Mapping[str, Any],
        fallback: T,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> T:
        """Evaluate an object flag, like ``boolean``. The members of the object are not checked."""
        kind = list if isinstance(fallback, list) else dict
        return self._value(key, context, fallback, timeout, retries, lambda value: isinstance(value, kind))

    def _value(
        self,
        key: str,
        context: Mapping[str, Any],
        fallback: T,
        timeout: Optional[float],
        retries: Optional[int],
        is_of_type: Callable[[Any], bool],
    ) -> T:
        def evaluate(**once: Any) -> T:
            resolved: Any = self.resolve(key, cast(Any, context), **once)
            value = resolved.get("value")
            return cast(T, value) if is_of_type(value) else fallback

        return _or_fallback(fallback, timeout, retries, evaluate)

    def list(
        self, *, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> Pages[str, models.FlagKeys]:
        """The keys of all flags, newest first."""
        pages = self._api.pages("GET /v1/gate", "flags", timeout=timeout, retries=retries, is_complete=True)
        return cast("Pages[str, models.FlagKeys]", pages)

    def config(
        self,
        *,
        full: Optional[bool] = None,
        tag: Optional[str] = None,
        archived: Optional[bool] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.FlagConfig:
        """All flags, newest first. ``full`` returns complete definitions. Costs 1 credit."""
        query = {"full": full, "tag": tag, "archived": archived}
        response = self._api.call("GET /v1/gate/config", query=query, timeout=timeout, retries=retries)
        return cast("models.FlagConfig", response)


def _or_fallback(fallback: T, timeout: Optional[float], retries: Optional[int], ask: Callable[..., T]) -> T:
    """One attempt, with a fallback for errors."""
    try:
        return ask(
            timeout=_FALLBACK_AFTER if timeout is None else timeout, retries=0 if retries is None else retries
        )
    except NinefoldError:
        return fallback


class Locks(LocksMethods):
    """Distributed locks. ``nf.with_lock`` holds one for a block or a function."""

    def acquire(
        self,
        key: str,
        *,
        ttl_ms: Optional[int] = None,
        wait_ms: Optional[int] = None,
        mode: Optional[LockMode] = None,
        token: Optional[str] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.AcquiredLock:
        """Acquire a lock, waiting in its queue if necessary.

        ``ttl_ms`` is its lifetime, ``wait_ms`` the longest wait for it (both 1,000 to 900,000; 10,000 by default); a
        ``wait_ms`` of 0 tries once. ``mode`` is ``shared`` for a read lock, which several hold together, and ``exclusive`` by
        default. ``token`` is a UUID that becomes the lock's token; the holder's token extends the lock. After a broken connection or
        a restart of the server the request is repeated with the same token: this returns the same lock, or joins the end of
        the queue. ``timeout`` is how long the server may take in addition to the wait.

        Raises NinefoldError ``timeout`` if the lock was not free within ``wait_ms``.
        """
        own = str(uuid.uuid4()) if token is None else token
        try:
            return self._acquire_with(key, own, ttl_ms, wait_ms, mode, timeout, retries)
        except BaseException as error:
            # The response may have been lost after the lock was granted.
            is_unknown = not isinstance(error, Exception) or is_without_response(error)
            if is_unknown and token is None:
                threading.Thread(target=self._give_up, args=(key, own), daemon=True).start()
            raise

    def _acquire_with(
        self,
        key: str,
        token: str,
        ttl_ms: Optional[int],
        wait_ms: Optional[int],
        mode: Optional[LockMode],
        timeout: Optional[float],
        retries: Optional[int],
    ) -> models.AcquiredLock:
        transport = self._api.transport
        retries_max = read_retries(transport.settings.retries if retries is None else retries)
        slack = self._api.timeout("", timeout)
        wait = _LOCK_MS_DEFAULT if wait_ms is None else wait_ms
        until = time.monotonic() + wait / 1000
        retry = 0
        while True:
            is_whole = retry == 0 or wait == 0
            left = wait if is_whole else max(LOCK_MS_MIN, round((until - time.monotonic()) * 1000))
            body: Dict[str, Any] = {"token": token, "timeout": left}
            if ttl_ms is not None:
                body["ttl"] = ttl_ms
            if mode is not None:
                body["mode"] = mode
            request = self._api.request("POST /v1/latch/{key}/acquire", {"key": key}, body=body)
            try:
                return cast("models.AcquiredLock", transport.attempt(request, left / 1000 + slack).body)
            except NinefoldError as error:
                pause = wait_before(retry, error) if may_repeat(error, request) else None
                # Retries through outages that are shorter than the wait.
                if pause is None or retries_max == 0:
                    raise
                if retry >= retries_max and time.monotonic() + pause > until:
                    raise
            time.sleep(pause)
            retry += 1

    def _give_up(self, key: str, token: str) -> None:
        """Releases a lock that may have been granted. If the server cannot be reached, the lock expires."""
        try:
            self.release(key, token, timeout=_CLEAN_UP, retries=0, idempotency_key=None)
        except NinefoldError:
            pass


class Monitors(MonitorsMethods):
    """Scheduled checks of URLs, and heartbeats that expect pings."""

    def check(
        self,
        monitor_id: str,
        *,
        probe: Optional[str] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.MonitorStatus:
        """Check a monitor immediately, on the server or on the probe with the name ``probe``.

        The check counts like a scheduled one, but causes no alerts.
        """
        response = self._api.call(
            "POST /v1/pulse/{monitorId}/check",
            {"monitorId": monitor_id},
            query={} if probe is None else {"probe": probe},
            timeout=timeout,
            retries=retries,
        )
        return cast("models.MonitorStatus", response)

    def ping(
        self,
        ping_url: str,
        *,
        says: Union[str, int, None] = None,
        rid: Optional[str] = None,
        body: Union[str, bytes, None] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> None:
        """Ping the heartbeat of a ``ping_url`` or ``ping_slug_url``.

        ``says`` is ``start``, ``fail``, ``log`` or an exit status; without it the ping reports success. ``rid`` is a UUID
        that pairs the start and the end of a run, ``body`` the output of the run. The ping is stored durably when the
        method returns. ``nf.heartbeat`` sends the pings of a job.
        """
        at = ping_url.find("/ping/")
        if at < 0:
            raise ValueError("ping_url must be the ping_url or ping_slug_url of a heartbeat, with /ping/")
        path = ping_url[at:] + ("" if says is None else f"/{says}")
        if rid is not None:
            path += f"?rid={quote(rid, safe='')}"
        sent = body.encode("utf-8", "replace") if isinstance(body, str) else body
        # A second ping of the same run does not change the status.
        request = WireRequest("POST", path, sent, {}, False, None, repeatable=True, wants_bytes=True)
        self._api.transport.send(request, timeout, retries)


class Catch(CatchMethods):
    """Buckets that receive webhooks."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: The buckets of a project.
        self.buckets = Buckets(api)
        #: The events of buckets.
        self.events = Events(api)

    def send(
        self,
        bucket_id: str,
        body: Union[str, bytes],
        *,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Ingested:
        """Send a webhook to a bucket as a provider does, with the body unchanged.

        ``status`` of the response says whether it was accepted. Retried only when it was certainly not stored.
        """
        return self._send("POST /v1/catch/{bucket_id}", bucket_id, body, headers, "", timeout, retries)

    def send_in(
        self,
        bucket_id: str,
        body: Union[str, bytes],
        *,
        below: str = "",
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> models.Ingested:
        """The same through ``/v1/in``, which accepts a path after the bucket's and a query: ``/orders?shop=1``."""
        return self._send("POST /v1/in/{bucket_id}", bucket_id, body, headers, below, timeout, retries)

    def _send(
        self,
        operation: str,
        bucket_id: str,
        body: Union[str, bytes],
        headers: Optional[Mapping[str, str]],
        below: str,
        timeout: Optional[float],
        retries: Optional[int],
    ) -> models.Ingested:
        sent = body.encode() if isinstance(body, str) else body
        params = {"bucket_id": bucket_id}
        request = self._api.request(operation, params, body=sent, headers=headers, below=below)
        return cast("models.Ingested", self._api.transport.send(request, timeout, retries).body)


class Buckets(BucketsMethods):
    """The buckets of a project."""

    def list(
        self, *, name: Optional[str] = None, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> Pages[models.Bucket, models.BucketList]:
        """Buckets, newest first, or only the one with a ``name``."""
        pages = self._api.pages(
            "GET /v1/catch/buckets",
            "buckets",
            query={"name": name},
            timeout=timeout,
            retries=retries,
            is_complete=True,
        )
        return cast("Pages[models.Bucket, models.BucketList]", pages)


class Events(EventsMethods):
    """The events of buckets."""

    def raw(
        self, bucket_id: str, event_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> bytes:
        """The exact bytes of an event's body."""
        params = {"bucket_id": bucket_id, "event_id": event_id}
        request = self._api.request("GET /v1/catch/{bucket_id}/events/{event_id}/raw", params, wants_bytes=True)
        return cast(bytes, self._api.transport.send(request, timeout, retries).body)

    def export(
        self, bucket_id: str, *, timeout: Optional[float] = None, retries: Optional[int] = None, **query: Any
    ) -> Iterator[models.CaughtEvent]:
        """Iterate over all events of a bucket or of a period, complete and oldest first.

        Pages of up to 8 MiB are requested as needed; each costs 1 credit.
        """
        given = fields_of(None, query)
        while True:
            request = self._api.request(
                "GET /v1/catch/{bucket_id}/events/export", {"bucket_id": bucket_id}, query=given
            )
            response = self._api.transport.send(request, timeout, retries)
            for line in str(response.body).split("\n"):
                if line != "":
                    yield cast("models.CaughtEvent", json.loads(line))
            cursor = response.headers.get("x-next-cursor")
            if cursor is None:
                return
            given = {**given, "cursor": cursor}

    def delete_before(
        self,
        bucket_id: str,
        before: Union[datetime.datetime, str],
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.EventsDeleted:
        """Delete the events received before a time: a ``datetime`` with a time zone, or a text in ISO 8601."""
        if isinstance(before, datetime.datetime) and before.tzinfo is None:
            raise ValueError("before must be a time with a time zone, such as datetime.now(timezone.utc)")
        text = before if isinstance(before, str) else before.astimezone(datetime.timezone.utc).isoformat()
        options: Any = {"timeout": timeout, "retries": retries, "idempotency_key": idempotency_key}
        operation = "DELETE /v1/catch/{bucket_id}/events"
        params, query = {"bucket_id": bucket_id}, {"before": text.replace("+00:00", "Z")}
        return cast("models.EventsDeleted", self._api.call(operation, params, query=query, **options))


class Notary(NotaryMethods):
    """A chain of signed receipts."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        #: The receipts of the chain of the project.
        self.receipts = Receipts(api)

    def checkpoint(
        self, *, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> models.Checkpoint:
        """A signed checkpoint over all receipts.

        Store its ``note``: later it proves that the chain only grew.
        """
        query = {"format": "json"}
        response = self._api.call("GET /v1/witness/checkpoint", query=query, timeout=timeout, retries=retries)
        return cast("models.Checkpoint", response)

    def export(
        self, *, timeout: Optional[float] = None, retries: Optional[int] = None, **query: Any
    ) -> Iterator[models.Receipt]:
        """Iterate over the receipts of the chain, oldest first. Pages of up to 8 MiB are requested as needed."""
        given: Dict[str, Any] = {"from": 1, **fields_of(None, query)}
        while True:
            request = self._api.request("GET /v1/witness/export", query=given)
            response = self._api.transport.send(request, timeout, retries)
            for line in str(response.body).split("\n"):
                if line != "":
                    yield cast("models.Receipt", json.loads(line))
            cursor = response.headers.get("x-next-cursor")
            if cursor is None:
                return
            given = {**given, "from": cursor}


class Receipts(ReceiptsMethods):
    """The receipts of the chain of the project."""

    def bundle(
        self, sequence_id: Union[str, int], *, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> models.ReceiptBundle:
        """A receipt with the proof that it is in the chain."""
        operation = "GET /v1/witness/receipts/{sequence_id}/bundle"
        response = self._api.call(operation, {"sequence_id": sequence_id}, timeout=timeout, retries=retries)
        return cast("models.ReceiptBundle", response)
