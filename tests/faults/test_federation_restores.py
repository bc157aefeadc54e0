"""Nobody answers twice: two processes on one folder, and folders that are put back.

Real processes, with the noise that they draw in earnest. What the attacks ask for is what an
aggregator asks for that works together with whoever put the folder back.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import HOLDERS, SERVERS, Roles, federation

from tacit import children
from tacit.channels.federation.letters import Holders, Sealed, Share, digest_of
from tacit.channels.federation.seals import marks_of
from tacit.channels.roles.letters import read, write
from tacit.crypto.signing import SigningKey
from tacit.errors import Refused, TacitError
from tacit.programs.states import state_bytes
from tacit.wire.client import Client, Peer
from tacit.wire.message import Message

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs kill -9 and /proc")


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[Roles]:
    with federation(tmp_path) as found:
        found.seeded = False
        yield found


def key(roles: Roles, name: str) -> SigningKey:
    return SigningKey.load_or_create(roles.root / name / "keys" / "holder.pem")


async def ask(
    roles: Roles, server: str, sender: str, kind: str, body: bytes = b""
) -> Message | TacitError:
    found = roles.study.servers[SERVERS.index(server)]
    client = Client(key(roles, sender), roles.study.digest)
    try:
        return await client.ask(Peer(found.name, found.address, found.key), kind, 1, body)
    except TacitError as error:
        return error
    finally:
        await client.aclose()


def asked(roles: Roles, server: str, sender: str, kind: str, body: bytes = b"") -> Message:
    reply = asyncio.run(ask(roles, server, sender, kind, body))
    assert isinstance(reply, Message), reply
    return reply


def refused(roles: Roles, server: str, sender: str, kind: str, body: bytes = b"") -> str:
    reply = asyncio.run(ask(roles, server, sender, kind, body))
    assert isinstance(reply, Refused), reply
    return str(reply)


def with_shares(roles: Roles) -> None:
    """Both servers run, and have the shares of all holders for the first round."""
    state = state_bytes(roles.study.first_state())
    length = roles.study.plan().stage(1).query.length
    body = write(Share(digest_of(state), "full", np.full(length, 1000, "<u8").tobytes()))
    for server in SERVERS:
        roles.start(server)
        roles.until(server, "listening")
        asked(roles, server, "aggregator", "open", state)
        for holder in HOLDERS:
            asked(roles, server, holder, "share", body)


def question(roles: Roles, *names: str) -> Sealed:
    keys = sorted(key(roles, name).public_key for name in names)
    marks = []
    for server in SERVERS:
        here = read(Holders, asked(roles, server, "aggregator", "present").body)
        known = dict(zip(here.keys, here.marks, strict=True))
        marks.append(marks_of(known[one] for one in keys))
    return Sealed(keys, marks)


def sealed(roles: Roles, wanted: Sealed) -> bytes:
    words = [
        read(Sealed, asked(roles, server, "aggregator", "seal", write(wanted)).body).seals[0]
        for server in SERVERS
    ]
    return write(Sealed(wanted.keys, wanted.marks, words))


def start_again(roles: Roles, name: str, life: int) -> None:
    roles.start(name)
    roles.until(name, "listening", life)


def ends(roles: Roles, name: str) -> tuple[int, str]:
    """A start that must fail: its exit code and what it says."""
    process = roles.start(name)
    code = process.popen.wait(60)
    del roles.running[name]
    return code, process.log.read_text()


# ── two processes ──


def test_one_process_at_a_time_has_a_folder(roles: Roles) -> None:
    first = roles.start("s1")
    roles.until("s1", "listening")
    code, words = ends(roles, "s1")
    assert code == 4
    assert f"in use by process {first.popen.pid} on " in words
    assert ", since 20" in words
    first.kill()  # the lock dies with it
    start_again(roles, "s1", 2)


# ── a folder that is put back ──


def test_the_same_question_has_the_same_bytes_and_another_has_none(roles: Roles) -> None:
    """A machine is put back as a whole, notes and all, and cannot know; the other server does."""
    with_shares(roles)
    all_three, two = question(roles, *HOLDERS), question(roles, "h1", "h2")
    shutil.copytree(roles.root / "s1", roles.root / "copy")  # while it runs
    whole = sealed(roles, all_three)
    answer = asked(roles, "s1", "aggregator", "close", whole).body
    assert "difference of two sums" in refused(roles, "s1", "aggregator", "seal", write(two))

    roles.kill("s1")
    shutil.rmtree(roles.root / "s1")
    shutil.copytree(roles.root / "copy", roles.root / "s1")
    start_again(roles, "s1", 2)
    # It has forgotten, and gives its word for another sum; the other server does not.
    (own,) = read(Sealed, asked(roles, "s1", "aggregator", "seal", write(two)).body).seals
    assert "difference of two sums" in refused(roles, "s2", "aggregator", "seal", write(two))
    for words in ([own], [own, own], [own, "00" * 64]):
        body = write(Sealed(two.keys, two.marks, words))
        assert "all have sealed" in refused(roles, "s1", "aggregator", "close", body)

    roles.kill("s1")  # once more, and asked what it was asked before
    shutil.rmtree(roles.root / "s1")
    shutil.copytree(roles.root / "copy", roles.root / "s1")
    start_again(roles, "s1", 2)
    assert asked(roles, "s1", "aggregator", "close", whole).body == answer


def test_an_older_folder_is_noticed_on_the_same_machine(roles: Roles) -> None:
    with_shares(roles)
    shutil.copytree(roles.folder("s1"), roles.root / "copy")
    sealed(roles, question(roles, *HOLDERS))
    roles.kill("s1")
    shutil.rmtree(roles.folder("s1"))
    code, words = ends(roles, "s1")
    assert code == 6
    assert "is gone, and this machine has seen it before" in words
    shutil.rmtree(roles.folder("s1"))
    shutil.copytree(roles.root / "copy", roles.folder("s1"))
    code, words = ends(roles, "s1")
    assert code == 6
    assert "an older copy was put in its place" in words
    (roles.folder("s1") / "server.db").write_bytes(b"")
    code, words = ends(roles, "s1")
    assert code == 3
    assert "is empty" in words


# ── the drill ──


def tacit(*words: object) -> dict[str, object]:
    command = [sys.executable, "-m", "tacit.cli", *map(str, words), "--json"]
    found = children.run(command, capture_output=True, timeout=120, check=True)
    document: dict[str, object] = json.loads(found.stdout)
    return document


def put_back(roles: Roles, name: str) -> None:
    """Lose a role's folder and put its copy back."""
    roles.kill(name)
    shutil.rmtree(roles.folder(name))
    told = tacit("restore", roles.root / f"{name}.tar", roles.folder(name))
    assert told["stores"]


def test_every_role_is_put_back_in_the_midst_of_a_study(roles: Roles) -> None:
    """Copies are made while all run; each role is lost, put back, and goes on."""
    roles.start("aggregator", "event:round opened", 3, "STOP")
    roles.start_all()
    roles.until_stopped("aggregator")
    for name in ("s1", "h2"):
        tacit("backup", roles.folder(name), roles.root / f"{name}.tar")
    roles.kill("aggregator")
    roles.start("aggregator", "event:round opened", 5, "STOP")
    roles.until_stopped("aggregator")
    for name in ("s1", "h2"):
        put_back(roles, name)
        roles.start(name)
    tacit("backup", roles.folder("aggregator"), roles.root / "aggregator.tar")
    roles.kill("aggregator")
    roles.start("aggregator", "event:round opened", 7, "STOP")
    roles.until_stopped("aggregator")
    put_back(roles, "aggregator")
    roles.start("aggregator")
    roles.finish()
    assert [e["round"] for e in roles.events("s1") if e["event"] == "round recalled"] == [3, 4]
    (given_up,) = [e["round"] for e in roles.events("h2") if e["event"] == "round given up"]
    done = {e["round"]: e["holders"] for e in roles.events("aggregator") if "done" in e["event"]}
    assert max(done) == 10
    assert {number for number, holders in done.items() if holders < 3} <= {given_up}
    certificate = roles.certificate("h2")
    certificate.verify(roles.study.aggregator.key)
    assert certificate.participation is not None
    assert certificate.participation.rounds == 10
    for holder in HOLDERS:
        assert roles.model(holder) == roles.model()
        assert roles.ledger(holder).balance("data", "record").left.epsilon == 0
