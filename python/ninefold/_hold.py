"""Holds a lock while code runs."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Type

from ._areas import LockMode
from ._errors import NinefoldError

if TYPE_CHECKING:
    from ._areas import Locks

#: Long enough for unattended work, short enough that a crash does not block others for long.
TTL_MS_DEFAULT = 30_000
#: Renewals per period: two may fail.
_RENEWALS_PER_TTL = 3
#: Longest wait after a renewal without a response, in seconds.
_RENEWAL_PAUSE = 1.0
#: Shortest timeout of a renewal.
_RENEWAL_RESPONSE_MIN = 0.5
#: Shortest timeout of a release.
_RELEASE_MIN = 1.0
#: How long the release waits for a renewal in flight, which it must not overtake.
_LAST_RENEWAL = 2.0
_NOT_RENEWED = "it could not be renewed in time"


class HeldLock:
    """A context manager that acquires a lock, renews it meanwhile in a thread, and always releases it."""

    def __init__(self, locks: Locks, key: str, ttl_ms: int, wait_ms: Optional[int], mode: Optional[LockMode] = None) -> None:
        self.key = key
        #: The lock's token; empty before the lock is acquired.
        self.token = ""
        #: Send it with every write; the storage must reject a lower token than it has seen.
        self.fencing_token = 0
        self._locks = locks
        self._ttl_ms = ttl_ms
        self._wait_ms = wait_ms
        self._mode = mode
        self._lost: Optional[NinefoldError] = None
        self._state = threading.Lock()
        self._stopping = threading.Event()
        self._renewals: Optional[threading.Thread] = None
        #: On this machine's clock: before this time no other client can hold the lock.
        self._held_until = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether the lock is lost or may be lost."""
        if self._lost is None and time.monotonic() >= self._held_until:
            self._lose(_NOT_RENEWED)
        return self._lost is not None

    def check(self) -> None:
        """Raises NinefoldError ``lock_lost`` if the lock is lost. Call it before each step that must not run twice."""
        if self.is_lost and self._lost is not None:
            raise self._lost

    def __enter__(self) -> HeldLock:
        sent_at = time.monotonic()
        lock = self._locks.acquire(self.key, ttl_ms=self._ttl_ms, wait_ms=self._wait_ms, mode=self._mode)
        self.token, self.fencing_token = lock["token"], lock["fencing_token"]
        self._extend(sent_at)
        try:
            # The time of the grant within the wait is not known; a renewal returns the exact expiry.
            if self._held_until - time.monotonic() < self._ttl_ms / 1000 * (1 - 1 / _RENEWALS_PER_TTL):
                self._extend(time.monotonic())
                self._renew(self._held_until)
            self.check()
        except BaseException:
            self._release()
            raise
        self._renewals = threading.Thread(target=self._keep_renewing, name=f"ninefold-lock-{self.key}", daemon=True)
        self._renewals.start()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._release()
        if error is None and self._lost is not None:
            raise self._lost

    def _release(self) -> None:
        """Ends the hold in any state. If the release fails, the lock expires."""
        self._stopping.set()
        if self._renewals is not None:
            self._renewals.join(_LAST_RENEWAL)
        # The lock expires at this time, so there is no reason to wait longer for the server.
        until = max(time.monotonic() + _RELEASE_MIN, self._held_until)
        was_lost = self.is_lost
        while True:
            left = until - time.monotonic()
            try:
                self._locks.release(self.key, self.token, timeout=max(_RELEASE_MIN, left), retries=0)
                return
            except NinefoldError as error:
                if error.status in (403, 404):
                    if not was_lost:
                        self._lose("it was no longer held when it was released", error)
                    return
            if time.monotonic() + _RENEWAL_PAUSE > until:
                return
            time.sleep(_RENEWAL_PAUSE / 2)

    def _keep_renewing(self) -> None:
        while not self._stopping.wait(self._ttl_ms / 1000 / _RENEWALS_PER_TTL):
            if self.is_lost:
                return
            self._renew(self._held_until)

    def _renew(self, until: float) -> None:
        """Renews the lock, with retries while there is time, unless it is lost or released."""
        while self._lost is None and time.monotonic() < until:
            sent_at = time.monotonic()
            # Half of the remaining time, so that a hanging connection leaves time for another attempt.
            timeout = max(_RENEWAL_RESPONSE_MIN, (until - sent_at) / 2)
            try:
                self._locks.extend(
                    self.key, self.token, self._ttl_ms, timeout=timeout, retries=0, idempotency_key=None
                )
            except NinefoldError as error:
                if error.status == 403:
                    self._lose("another client holds it now", error)
                    return
                if error.status == 404:
                    self._lose("it had expired, and another client may have held it since", error)
                    return
            else:
                self._extend(sent_at)
                return
            if self._stopping.wait(min(_RENEWAL_PAUSE, self._ttl_ms / 10_000)):
                return

    def _extend(self, sent_at: float) -> None:
        """A renewal is valid at least from the time at which it was sent."""
        self._held_until = sent_at + self._ttl_ms / 1000

    def _lose(self, why: str, cause: Optional[BaseException] = None) -> None:
        with self._state:
            if self._lost is None:
                self._lost = NinefoldError(f"The lock {self.key} was lost: {why}.", code="lock_lost")
                self._lost.__cause__ = cause
