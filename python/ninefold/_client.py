"""The client."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Sequence, TypeVar, Union, overload

from ._api import Api, fields_of
from ._areas import Account, Catch, Flags, Keys, LockMode, Locks, Monitors, Notary
from ._heartbeat import Heartbeat
from ._hold import TTL_MS_DEFAULT, HeldLock
from ._methods import Meter, NinefoldMethods
from ._options import (
    DEFAULT,
    RETRIES_DEFAULT,
    TIMEOUT_DEFAULT,
    Default,
    Settings,
    read_api_key,
    read_retries,
    read_timeout,
    read_urls,
    warn,
)
from ._reserve import Reservation
from ._transport import Response, Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import models

T = TypeVar("T")


class Ninefold(NinefoldMethods):
    """A client of a Ninefold server, with one key. Threads can share it.

    ``url`` is the server's address, such as ``https://ninefold.example.com``; a path before ``/v1`` is part of it. By default
    it is that of the variable NINEFOLD_URL. With several nodes of a cluster it is a list of their addresses: a request goes
    to the one that worked last, and to the next one if that cannot be reached or does not lead.

    ``api_key`` is the key for requests, by default that of NINEFOLD_API_KEY or of the file in NINEFOLD_API_KEY_FILE; None
    sends none, for operations that need none.

    ``timeout`` is that of an attempt in seconds, ``retries`` the number of retries. ``ssl_context`` replaces Python's
    default, for a certificate authority of your own. ``on_warning`` is called with each distinct warning of the server, such
    as an unknown field in a request; by default Python's ``warnings`` report it as a ``NinefoldWarning``.

    Raises ValueError for an invalid option.
    """

    def __init__(
        self,
        url: Union[str, Sequence[str], None] = None,
        api_key: Union[str, None, Default] = DEFAULT,
        *,
        timeout: float = TIMEOUT_DEFAULT,
        retries: int = RETRIES_DEFAULT,
        ssl_context: Optional[ssl.SSLContext] = None,
        on_warning: Optional[Callable[[str], None]] = None,
    ) -> None:
        settings = Settings(
            urls=read_urls(url),
            timeout=read_timeout(timeout),
            retries=read_retries(retries),
            ssl_context=ssl_context,
            on_warning=on_warning if on_warning is not None else warn,
        )
        self._key = read_api_key(api_key)
        super().__init__(Api(Transport(settings, self._key)))
        #: The account of the key: credits, platform key and browser sessions.
        self.account = Account(self._api)
        #: Managed keys, for parts of your system or for your customers.
        self.keys = Keys(self._api)
        #: Feature flags.
        self.flags = Flags(self._api)
        #: Distributed locks. ``with_lock`` holds one for a block or a function.
        self.locks = Locks(self._api)
        #: Scheduled checks of URLs, and heartbeats that expect pings.
        self.monitors = Monitors(self._api)
        #: Buckets that receive webhooks.
        self.catch = Catch(self._api)
        #: A chain of signed receipts.
        self.notary = Notary(self._api)

    def __repr__(self) -> str:
        # Without the key.
        return f"<Ninefold {', '.join(self._api.transport.settings.urls)}>"

    def __enter__(self) -> Ninefold:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._api.transport.close()

    def with_key(self, api_key: Optional[str]) -> Ninefold:
        """The same client with another key, such as one of another project; None for no key."""
        return self._copy(api_key=api_key)

    def with_options(self, *, timeout: Optional[float] = None, retries: Optional[int] = None) -> Ninefold:
        """The same client with another timeout (in seconds) or number of retries."""
        return self._copy(timeout=timeout, retries=retries)

    def _copy(
        self,
        *,
        api_key: Union[str, None, Default] = DEFAULT,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
    ) -> Ninefold:
        settings = self._api.transport.settings
        return Ninefold(
            settings.urls,
            self._key if isinstance(api_key, Default) else api_key,
            timeout=settings.timeout if timeout is None else timeout,
            retries=settings.retries if retries is None else retries,
            ssl_context=settings.ssl_context,
            on_warning=settings.on_warning,
        )

    @overload
    def check(
        self,
        body: None = None,
        /,
        *,
        checks: List[models.CheckItem],
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> models.CheckAnswers: ...

    @overload
    def check(
        self,
        body: Optional[models.CheckItem] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.CheckItem],
    ) -> models.CheckAnswer: ...

    @overload
    def check(
        self,
        body: Optional[models.CheckBody] = None,
        /,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
        **fields: Unpack[models.CheckBody],
    ) -> Union[models.CheckAnswer, models.CheckAnswers]: ...

    def check(self, body: Any = None, /, **options: Any) -> Any:
        """Authorize a customer's request: key, scopes, addresses, rate limits, uses, credits and flags, all or nothing.

        With ``checks``, a list of up to 20, it authorizes them one after another and returns ``{"results": [...]}``. Each costs
        1 credit.
        """
        return super().check(body, **options)

    def meter(self, meter_id: str) -> Meter:
        """The meter of one of your customers. Sends no request."""
        return Meter(self._api, meter_id)

    def reserve(self, meter_id: str, body: Optional[Mapping[str, Any]] = None, **fields: Any) -> Reservation:
        """Hold an amount of a meter for a block, and capture what it used.

        ``with nf.reserve("customer-42", amount=600) as reservation: ...; reservation.use(450)``. The fields are those of a
        hold: ``amount``, ``ttl_seconds``, ``hold_id``. An exception releases the hold; if this process dies, it expires.

        Raises NinefoldError ``insufficient_balance`` before the block starts, ``conflict`` if the hold of that ``hold_id`` is
        no longer open.
        """
        return Reservation(self.meter(meter_id), fields_of(body, fields))

    def with_lock(
        self,
        key: str,
        *,
        ttl_ms: int = TTL_MS_DEFAULT,
        wait_ms: Optional[int] = None,
        mode: Optional[LockMode] = None,
    ) -> HeldLock:
        """Hold a lock for a block: it is renewed meanwhile, and always released.

        ``with nf.with_lock("invoice:42") as lock: ...``. ``ttl_ms`` (1,000 to 900,000) is the time after which the lock
        expires if this process dies, ``wait_ms`` the longest wait for it (10,000 by default; 0 tries once), and ``mode``
        ``shared`` for a read lock, which several hold together. Send ``lock.fencing_token`` with every write, and call ``lock.check()`` before each step that must not run twice.

        Raises NinefoldError ``timeout`` if the lock was not free within ``wait_ms``, ``lock_lost`` if it was lost before the
        end of the block, even if the block was successful.
        """
        return HeldLock(self.locks, key, ttl_ms, wait_ms, mode)

    def heartbeat(self, ping_url: str) -> Heartbeat:
        """A decorator and a context manager that report each run of a job to a heartbeat, by its ``ping_url``.

        ``@nf.heartbeat(url)`` before a function, or ``with nf.heartbeat(url) as run: run.log("...")``. An exception is
        reported as a failure with its traceback. A ping that fails is logged, and does not disturb the job.
        """
        return Heartbeat(self.monitors, ping_url)

    def request(
        self,
        method: str,
        path: str,
        body: Any = DEFAULT,
        *,
        timeout: Optional[float] = None,
        retries: Optional[int] = None,
        idempotency_key: Union[str, None, Default] = DEFAULT,
    ) -> Response:
        """Send any request, such as ``nf.request("GET", "/v1/ping")``, with the key, retries and errors of all others.

        Returns the complete response with status, headers, request id and body.
        """
        if not path.startswith("/"):
            raise ValueError(f"path must begin with a slash, not {path!r}")
        return self._api.raw(method.upper(), path, body, timeout, retries, idempotency_key)


def heartbeat(ping_url: str) -> Heartbeat:
    """A heartbeat by its ``ping_url`` alone, which needs no client and no key: see ``Ninefold.heartbeat``."""
    at = ping_url.find("/ping/")
    if at < 0:
        raise ValueError("ping_url must be the ping_url or ping_slug_url of a heartbeat, with /ping/")
    return Ninefold(ping_url[:at], None).heartbeat(ping_url)
