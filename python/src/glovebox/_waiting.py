"""
How one source serves callers that block and callers that await.

Everything that can wait is written once, as `async def`. It waits for nothing but signals, and a signal comes from
the mode of its object. A signal of ASYNCIO suspends the task. A signal of BLOCKING blocks the thread inside `wait`, so
that a coroutine with such signals never suspends: `finish` runs it to its end with one `send`, without an event loop.
The classes that block (_blocking.py) are therefore a line for each method, with the types of the one source.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Signal(Protocol):
    """Something that happens once, and may happen in another thread."""

    def set(self) -> None:
        """It has happened. May be called from any thread, and more than once."""

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait for it; false when TIMEOUT seconds were over before."""


class Mode(Protocol):
    """How the callers of an object wait."""

    def signal(self) -> Signal: ...

    async def sleep(self, seconds: float) -> None: ...


class _BlockingSignal:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._lock.release()

    async def wait(self, timeout: float | None = None) -> bool:
        if not self._lock.acquire(timeout=-1 if timeout is None else max(0.0, min(timeout, threading.TIMEOUT_MAX))):
            return False
        self._lock.release()
        return True


class _AsyncioSignal:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()  # it has happened, or the time is over
        self._happened = False

    def set(self) -> None:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._happen)

    def _happen(self) -> None:
        self._happened = True
        self._event.set()

    async def wait(self, timeout: float | None = None) -> bool:
        # Not by asyncio.wait_for: before Python 3.12 it forgets a cancellation that comes together with the event.
        timer = None if timeout is None else self._loop.call_later(max(0.0, timeout), self._event.set)
        try:
            await self._event.wait()
        finally:
            if timer is not None:
                timer.cancel()
        return self._happened


class _Blocking:
    def signal(self) -> Signal:
        return _BlockingSignal()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _Asyncio:
    def signal(self) -> Signal:
        return _AsyncioSignal()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


BLOCKING: Mode = _Blocking()
ASYNCIO: Mode = _Asyncio()


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run COROUTINE, which waits in the mode BLOCKING only, to its end."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise RuntimeError("a coroutine of the mode BLOCKING has suspended")
