"""What every test shares: repeatable properties, own ports, no trace in the user's home."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

# Tests run side by side, many with processes of their own: threads of BLAS would only wait for one
# another. Inherited by everything that is started here; too late only for a numpy loaded before.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every run: a property that fails must fail for everyone. No deadline: this
# would time the machine.
settings.register_profile("tacit", derandomize=True, deadline=None)
settings.load_profile("tacit")


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """Ctrl-C means here what it means at a terminal, also for every process that is started.

    A background job of a shell begins with SIGINT ignored; Python leaves it so, and children have
    it from us. Once for each process of pytest: no test changes it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and ledgers of tests stay out of the user's home; the cache of data sets is shared."""
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "tacit-home"))
    monkeypatch.delenv("TACIT_LEDGER", raising=False)


@pytest.fixture
def ports() -> Iterator[Callable[[int], list[int]]]:
    """So many ports of 127.0.0.1 that stay ours until the end of the test, for services which are
    started later.

    A port that is found free and let go again may be somebody else's when the service comes up:
    another service's, or the own end of any connection that is made meanwhile. These stay bound,
    without listening. The system gives a bound port to nobody who asks for any, in this or another
    process; a service that asks for this very port gets it, since both sides allow the address to
    be used again (SO_REUSEADDR, as asyncio's servers do).
    """
    with ExitStack() as held:

        def reserve(count: int) -> list[int]:
            sockets = [held.enter_context(socket.socket()) for _ in range(count)]
            for one in sockets:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(("127.0.0.1", 0))
            return [int(one.getsockname()[1]) for one in sockets]

        yield reserve
