"""A client of a Ninefold server: ``Ninefold(url=..., api_key=...)``, and ``verify_webhook`` for receivers."""

from ._api import Pages
from ._client import Ninefold, heartbeat
from ._delivery import Delivery, verify_webhook
from ._errors import NinefoldConnectionError, NinefoldError, NinefoldWarning
from ._heartbeat import Heartbeat, Run
from ._hold import HeldLock
from ._reserve import Reservation
from ._transport import Response
from ._version import __version__

__all__ = [
    "Delivery",
    "Heartbeat",
    "HeldLock",
    "Ninefold",
    "NinefoldConnectionError",
    "NinefoldError",
    "NinefoldWarning",
    "Pages",
    "Reservation",
    "Response",
    "Run",
    "__version__",
    "heartbeat",
    "verify_webhook",
]
