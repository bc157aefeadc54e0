"""Ctrl-C always ends what runs in the loop, also on a machine that is busy with other things."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time

import pytest

from tacit.wire.loop import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def waiting(turns: list[str], busy: float) -> None:
    """As services wait: for something, but no longer than so. The machine is `busy` meanwhile."""
    try:
        for _ in range(20):
            turns.append("turn")
            if len(turns) == 1:
                interrupt()  # in the middle of a step
            try:
                async with asyncio.timeout(0.001):
                    time.sleep(busy)  # not asleep: others have the processor
                    await asyncio.Event().wait()
            except TimeoutError:
                turns.append("time is up")
    finally:
        await asyncio.sleep(0)
        turns.append("tidied up")


@pytest.mark.parametrize("busy", [0.0, 0.01])
def test_an_interrupt_is_not_taken_for_a_timeout(busy: float) -> None:
    turns: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(waiting(turns, busy))
    assert turns[-1] == "tidied up"
    assert turns.count("turn") <= 3


def test_handlers_are_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)

    async def main() -> str:
        return "done"

    assert run(main()) == "done"
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_one_ends_tidying_up() -> None:
    async def main() -> None:
        try:
            interrupt()
            await asyncio.Event().wait()
        finally:
            interrupt()
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        run(main())


def test_a_cancellation_of_its_own_is_no_interrupt() -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        run(main())


def test_what_ends_well_after_an_interrupt_has_ended_well() -> None:
    async def main() -> str:
        try:
            interrupt()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "stopped"
        return "not stopped"

    assert run(main()) == "stopped"


def test_in_another_thread() -> None:
    async def main() -> str:
        return "done"

    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(run(main())))
    thread.start()
    thread.join()
    assert said == ["done"]
