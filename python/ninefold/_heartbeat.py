"""Reports runs of jobs to a heartbeat monitor."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import traceback
import uuid
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Type, TypeVar, Union, cast

from ._errors import NinefoldError

if TYPE_CHECKING:
    from ._areas import Monitors

Function = TypeVar("Function", bound=Callable[..., Any])

#: Bytes of a ping's body that the server stores.
_BODY_MAX = 10_000
#: Timeout of a ping: a job must not wait longer for its monitoring.
_TIMEOUT = 5.0
_LOGGER = logging.getLogger("ninefold")


class Run:
    """A run of a job. Its pings never raise: a job does not fail because its monitoring does; they log a warning."""

    def __init__(self, monitors: Monitors, ping_url: str) -> None:
        self._monitors = monitors
        self._ping_url = ping_url
        #: Pairs the pings of this run.
        self.id = str(uuid.uuid4())
        self._is_over = False

    def start(self) -> None:
        """Reports that the job has started. Without it, the run has no duration."""
        # A later ping shows that the job runs, so this one does not delay it.
        self._ping("start", None, retries=0)

    def log(self, text: Union[str, bytes]) -> None:
        """Adds an entry to the log of the heartbeat, without changing its status."""
        self._ping("log", text, retries=0)

    def success(self, text: Union[str, bytes, None] = None) -> None:
        """Reports that the job has succeeded, with its output. Only the first report of a run is sent."""
        self._end(None, text)

    def fail(self, text: Union[str, bytes, None] = None) -> None:
        """Reports that the job has failed, with the reason. Only the first report of a run is sent."""
        self._end("fail", text)

    def exit(self, status: int, text: Union[str, bytes, None] = None) -> None:
        """Reports the exit status of the job: 0 is a success."""
        self._end(status, text)

    def _end(self, says: Union[str, int, None], text: Union[str, bytes, None]) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._ping(says, text, retries=None)

    def _ping(self, says: Union[str, int, None], text: Union[str, bytes, None], retries: Optional[int]) -> None:
        body = text.encode("utf-8", "replace") if isinstance(text, str) else text
        if body is not None:
            # The end of a long output says most.
            body = body[-_BODY_MAX:]
        try:
            self._monitors.ping(self._ping_url, says=says, rid=self.id, body=body, timeout=_TIMEOUT, retries=retries)
        except NinefoldError as error:
            # The address of a heartbeat is a secret.
            _LOGGER.warning("the heartbeat could not be pinged (%s, status %s)", error.code, error.status)


class Heartbeat:
    """A decorator and a context manager that report the start, success and failure of each run to a heartbeat.

    An exception is reported as a failure with its traceback, and raised as without the heartbeat.
    """

    def __init__(self, monitors: Monitors, ping_url: str) -> None:
        self._monitors = monitors
        self._ping_url = ping_url
        self._runs = threading.local()

    def run(self) -> Run:
        """A run whose pings you send yourself: ``start``, ``log``, and ``success``, ``fail`` or ``exit``."""
        return Run(self._monitors, self._ping_url)

    def __enter__(self) -> Run:
        run = self.run()
        self._stack().append(run)
        run.start()
        return run

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        _finish(self._stack().pop(), error)

    def __call__(self, function: Function) -> Function:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                # Pings block, so they are sent by other threads.
                import asyncio

                run = self.run()
                await asyncio.to_thread(run.start)
                try:
                    result = await function(*args, **kwargs)
                except BaseException as error:
                    # A cancelled task cannot wait for another thread.
                    if isinstance(error, Exception):
                        await asyncio.to_thread(_finish, run, error)
                    else:
                        _finish(run, error)
                    raise
                await asyncio.to_thread(_finish, run, None)
                return result

            return cast(Function, run_async)

        @functools.wraps(function)
        def run_sync(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(Function, run_sync)

    def _stack(self) -> List[Run]:
        if not hasattr(self._runs, "stack"):
            self._runs.stack = []
        stack: List[Run] = self._runs.stack
        return stack


def _finish(run: Run, error: Optional[BaseException]) -> None:
    if error is None:
        run.success()
    elif isinstance(error, SystemExit):
        # The texts that sys.exit takes mean 1.
        code = error.code
        status = 0 if code is None else code % 256 if isinstance(code, int) else 1
        run.exit(status, code if isinstance(code, str) else None)
    else:
        run.fail("".join(traceback.format_exception(type(error), error, error.__traceback__)))
