"""A process that takes uploads over TLS: a federation's server, or a route that does nothing.

    python -m federation_parts.receive ours|nothing HOLDERS LENGTH

Prints its port, waits for a line on standard input, and prints the processor time it took.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from federation_parts.vectors import key_of, study_of
from tacit.channels.federation.server_service import ServerService
from tacit.channels.roles.events import Events
from tacit.channels.roles.letters import Letter
from tacit.programs.states import state_bytes
from tacit.wire.loop import run
from tacit.wire.service import Service

HOST = "127.0.0.1"
CORE = 0  # the load has the others: who waits for whom is not the question


class Receiver(Protocol):
    @property
    def port(self) -> int: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def ours(holders: int, length: int, folder: Path) -> ServerService:
    """The first of two servers, as `tacit serve server` runs it, with its first round open."""
    study = study_of(holders, length)
    tell = Events(folder, "server", study.name)
    service = ServerService(study, key_of("server-0"), folder, HOST, 0, tell)
    state = state_bytes(study.first_state())
    service.server.answer_all([(study.aggregator.key, Letter("open", 1, state))])
    return service


def nothing() -> Service:
    """The same transport under a route that reads the body and says a constant."""

    async def answer(request: Request) -> PlainTextResponse:
        await request.body()
        return PlainTextResponse("stored")

    app = Starlette(routes=[Route("/v1/{kind}", answer, methods=["POST"])])
    app.state.log = lambda event, **fields: None
    return Service(app, HOST, 0, key_of("server-0"))


async def serve(receiver: Receiver) -> None:
    await receiver.start()
    _say(port=receiver.port)
    start = time.process_time()
    await asyncio.to_thread(sys.stdin.readline)
    _say(processor=time.process_time() - start)
    await receiver.stop()


def _say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


async def main(kind: str, holders: int, length: int) -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {CORE})
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        await serve(ours(holders, length, Path(folder)) if kind == "ours" else nothing())


if __name__ == "__main__":
    run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
