"""Reserves credits of a meter while code runs."""

from __future__ import annotations

import threading
import uuid
from types import TracebackType
from typing import TYPE_CHECKING, Any, Mapping, Optional, Type

from ._errors import NinefoldError, is_without_response

if TYPE_CHECKING:
    from . import models
    from ._methods import Meter


class Reservation:
    """A context manager that creates a hold, and captures the amount used at the end of the block.

    An exception releases the hold. If this process dies, the hold expires.
    """

    def __init__(self, meter: Meter, body: Mapping[str, Any]) -> None:
        self._meter = meter
        self._body = body
        self._used: Optional[int] = None
        #: The id of the hold.
        self.hold_id = str(body["hold_id"]) if body.get("hold_id") is not None else str(uuid.uuid4())
        self._hold: Optional[models.MeterHold] = None

    @property
    def hold(self) -> models.MeterHold:
        """The hold, as the server has created it."""
        if self._hold is None:
            raise RuntimeError("the hold is created by the with statement")
        return self._hold

    def use(self, amount: int) -> None:
        """Sets the amount to capture, 0 or more; by default the whole hold. Above it, as much as is available."""
        if isinstance(amount, bool) or not isinstance(amount, int) or amount < 0:
            raise ValueError(f"the amount used must be 0 or a positive integer, not {amount!r}")
        self._used = amount

    def __enter__(self) -> Reservation:
        body: Any = {**self._body, "hold_id": self.hold_id}
        try:
            hold = self._meter.hold(body)
        except NinefoldError as error:
            # The response may have been lost after the hold was created. A hold with a given id may belong to another
            # process.
            if self._body.get("hold_id") is None and is_without_response(error):
                threading.Thread(target=self._release, daemon=True).start()
            raise
        if hold["status"] != "open":
            message = f"The hold {self.hold_id} is {hold['status']}: use another hold_id."
            raise NinefoldError(message, code="conflict", extras={"status": hold["status"]})
        self._hold = hold
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if error is not None:
            # If this fails, the hold expires.
            self._release()
            return
        used = self._used if self._used is not None else self.hold["amount"]
        # Not released if this fails: it may have been captured although the response was lost.
        try:
            self._meter.capture(self.hold_id, {"amount": used, "over": "cap"})
        except NinefoldError as failed:
            # The work outlasted the hold.
            if failed.extras.get("status") != "expired":
                raise
            if used > 0:
                self._meter.deduct(used)

    def _release(self) -> None:
        try:
            self._meter.release(self.hold_id)
        except NinefoldError:
            pass
