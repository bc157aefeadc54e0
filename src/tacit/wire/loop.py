"""The event loop that services run in."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

__all__ = ["run"]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop where there is one (it has no build for Windows)."""
    if sys.platform == "win32":
        return asyncio.run(main)
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        interruptible = _Interruptible(main)
        try:
            return runner.run(interruptible.run())
        except asyncio.CancelledError:
            if interruptible.is_interrupted:
                raise KeyboardInterrupt from None
            raise


class _Interruptible(Generic[T]):
    """Ctrl-C cancels a coroutine between two steps of it.

    Runner's own handler may do so in the middle of a step. If the step then waits in an
    `asyncio.timeout` whose time is up at once, as on a busy machine, uvloop has it expire before
    the cancellation arrives, and it takes that for its own: the program would go on for ever.
    """

    def __init__(self, main: Coroutine[Any, Any, T]) -> None:
        self._main, self.is_interrupted = main, False

    async def run(self) -> T:
        ours = threading.current_thread() is threading.main_thread()
        if not ours or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return await self._main
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # we are in it
        loop.add_signal_handler(signal.SIGINT, self._interrupt, loop, task.cancel)
        try:
            return await self._main
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], bool]) -> None:
        self.is_interrupted = True
        loop.remove_signal_handler(signal.SIGINT)  # the second time it is a KeyboardInterrupt
        cancel()
