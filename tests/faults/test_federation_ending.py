"""Over the network: refusals reach every holder, and every party can ask where a study stands."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import HOLDERS, SERVERS
from federation_services import PATIENCE, Scene, scene

from tacit.channels.federation.server import Server
from tacit.channels.federation.server_service import ServerService
from tacit.channels.roles.letters import Letter, read
from tacit.channels.roles.standing import Standing
from tacit.errors import StudyStopped, UsageError
from tacit.wire.client import Client, Peer
from tacit.wire.loop import run

REFUSED = 2


class Unwilling(ServerService):
    """It opens the first round, and no other."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        opened = self.server._begin

        def begin(number: int, state: bytes) -> Any:
            if number >= REFUSED:
                raise UsageError("a sum could reach 2^70.")
            return opened(number, state)

        self.server._begin = begin  # type: ignore[method-assign]


async def status_for(running: Scene, name: str) -> Standing:
    centre = running.study.aggregator
    client = Client(running.keys[name], running.study.digest)
    try:
        reply = await client.ask(Peer(centre.name, centre.address, centre.key), "status", 0)
        return read(Standing, reply.body)
    finally:
        await client.aclose()


def test_a_refusal_reaches_every_holder(tmp_path: Path) -> None:
    async def whole() -> None:
        async with scene(tmp_path, s2=Unwilling) as running:
            await running.start(hold=False)
            async with asyncio.timeout(PATIENCE):
                ends = await asyncio.gather(*running._tasks[:1], return_exceptions=True)
                assert isinstance(ends[0], StudyStopped)
                await running.aggregator.farewell(PATIENCE)
                ends = await asyncio.gather(*running._tasks[1:], return_exceptions=True)
            assert len(ends) == len(HOLDERS)
            for error in ends:
                assert isinstance(error, StudyStopped)
                assert "server s2 refused to open round 2" in str(error)
                assert "has signed why: a sum could reach 2^70." in str(error)
            standing = await status_for(running, "s1")
            assert standing.phase == "stopped"
            async with asyncio.timeout(PATIENCE):  # servers are let go as well
                for server in running.servers.values():
                    await server.until_finished()

    run(whole())


def test_every_party_learns_where_the_study_stands(tmp_path: Path) -> None:
    async def whole() -> None:
        async with scene(tmp_path) as running:
            await running.start_servers()
            await running.aggregator.start()
            for name in ("aggregator", *SERVERS, *HOLDERS):
                standing = await status_for(running, name)
                assert standing.phase == "gathering"
                assert standing.awaited == list(HOLDERS)
                assert standing.seconds is not None
                assert 0 < standing.seconds <= 60

    run(whole())


def test_a_server_signs_its_refusals_to_the_aggregator_alone(tmp_path: Path) -> None:
    async def whole() -> None:
        async with scene(tmp_path) as running:
            core: Server = running.servers["s1"].server
            own, holder = (running.keys[n].public_key for n in ("aggregator", "h1"))
            (said,) = core.answer_all([(own, Letter("present", 99))])
            assert isinstance(said, Letter)
            for sender, signed in ((own, True), (holder, False)):
                (error,) = core.answer_all([(sender, Letter("open", 99, b""))])
                assert not isinstance(error, Letter)
                assert bool(error.statement) is signed

    run(whole())


def test_a_holder_says_at_once_that_the_aggregator_is_away(tmp_path: Path) -> None:
    async def whole() -> None:
        async with scene(tmp_path) as running:
            service = running._holder("h1", hold=False)
            service._tell = running.told["h1"]
            running._holders["h1"] = service
            task = asyncio.create_task(service.run())
            running._tasks.append(task)
            (away,) = await running.told["h1"].until("away")
            assert away["name"] == running.study.aggregator.name
            assert 0 < away["seconds"] <= 180
            await running.aggregator.start()
            await running.told["h1"].until("back")
            await running.told["aggregator"].until("holder joined")

    run(whole())
