"""Peers that break the rules, against a study that runs: refused, told of, and no harm done.

Every attack falls into a round that is half done; afterwards the study goes on, and must end with
exactly the model of its holders' records (`half_done` checks it).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import HOLDERS, SERVERS, made_up_records
from federation_services import (
    EVE,
    HELD,
    ROUNDS,
    SHORT,
    Scene,
    half_done,
    lines,
    scene,
    until_closed,
)

from tacit.channels.federation.letters import Holders, Sealed, Share, digest_of
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.seals import Question, marks_of, seal
from tacit.channels.federation.server_service import ServerService
from tacit.channels.roles.letters import read, write
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused, TacitError
from tacit.programs.files import to_bytes
from tacit.programs.states import state_bytes
from tacit.wire.loop import run
from tacit.wire.message import Message

LENGTH = 3 * 2 + 3  # numbers in a round: three sums of two coordinates, and three counts


def attacked(root: Path, attack: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with half_done(root) as running:
            await attack(running)

    run(whole())


def share_of(running: Scene, number: int = HELD, length: int = LENGTH) -> bytes:
    """Garbage in the form of a share for the state of this round."""
    state = read(Share, running.made["h1", number][running.keys["s1"].public_key]).state
    return write(Share(state, "full", bytes(8 * length)))


def says(reply: Message | TacitError, kind: type[TacitError], words: str) -> bool:
    return isinstance(reply, kind) and words in str(reply)


# ── whoever is not a holder of this round ──


@pytest.mark.parametrize(
    ("sender", "number", "words"),
    [
        ("eve", HELD, "not in the study"),
        ("aggregator", HELD, "not in the study"),
        ("s2", HELD, "not in the study"),
        ("h3", HELD + 1, f"round {HELD + 1} is not open"),
        ("h3", HELD - 1, f"round {HELD - 1} is over"),
        ("h3", 0, "round 0 is not open"),
    ],
)
def test_a_share_of_somebody_or_some_round_else(
    tmp_path: Path, sender: str, number: int, words: str
) -> None:
    async def attack(running: Scene) -> None:
        key = running.keys.get(sender, EVE)
        reply = await running.ask("s1", key, "share", number, share_of(running))
        assert says(reply, Refused, words)
        assert running.told["s1"].found("share refused", words, round=number)

    attacked(tmp_path, attack)


def test_a_message_for_another_study(tmp_path: Path) -> None:
    async def attack(running: Scene) -> None:
        for kind, key in (("share", "h3"), ("close", "aggregator"), ("attest", "aggregator")):
            reply = await running.ask("s1", running.keys[key], kind, HELD, b"", study="ab" * 32)
            assert says(reply, Refused, "another study")
            assert running.told["s1"].found("refused", "another study", kind=kind)

    attacked(tmp_path, attack)


def test_a_signature_that_does_not_fit(tmp_path: Path) -> None:
    """Eve sends in h3's name, and changes what h1 has signed."""

    async def attack(running: Scene) -> None:
        recipient = running.keys["s1"].public_key
        body = share_of(running)
        forged = Message(running.study.digest, HELD, "", recipient, "share", body).signed(EVE)
        forged = replace(forged, sender=running.keys["h3"].public_key)
        true = Message(running.study.digest, HELD, "", recipient, "share", body)
        changed = replace(true.signed(running.keys["h3"]), body=body[:-1] + b"\x01")
        moved = replace(true.signed(running.keys["h3"]), round=HELD + 1)
        for count, message in enumerate((forged, changed, moved), start=1):
            assert b" 401 " in await raw(running, message)
            await running.told["s1"].until("refused", "not signed by its sender", count)

    attacked(tmp_path, attack)


async def raw(running: Scene, message: Message) -> bytes:
    """Send a message as it is, signature and all; the whole answer."""
    reader, writer = await running.connect("s1")
    try:
        length = b"content-length: %d" % len(message.body)
        writer.write(lines(message, [length, b"connection: close"]) + message.body)
        return await until_closed(reader)
    finally:
        writer.close()


# ── a holder's share ──


def test_a_share_of_a_wrong_length(tmp_path: Path) -> None:
    async def attack(running: Scene) -> None:
        key = running.keys["h3"]
        for length in (0, LENGTH - 1, LENGTH + 1, LENGTH + 500):
            reply = await running.ask("s1", key, "share", HELD, share_of(running, length=length))
            assert says(reply, InputError, f"has {8 * LENGTH} bytes")
        assert len(running.told["s1"].found("share refused", "bytes", round=HELD)) == 4
        reply = await running.ask("s1", key, "share", HELD, os.urandom(50))
        assert says(reply, InputError, "does not hold a share")

    attacked(tmp_path, attack)


def test_a_share_of_an_earlier_round_is_played_again(tmp_path: Path) -> None:
    async def attack(running: Scene) -> None:
        server = running.keys["s1"].public_key
        old = running.made["h3", HELD - 1][server]
        reply = await running.ask("s1", running.keys["h3"], "share", HELD - 1, old)
        assert says(reply, Refused, "is over")
        reply = await running.ask("s1", running.keys["h3"], "share", HELD, old)
        assert says(reply, Refused, "made for another state")
        assert running.told["s1"].found("share refused", "another state", round=HELD)

    attacked(tmp_path, attack)


def test_a_share_is_sent_again_and_then_another(tmp_path: Path) -> None:
    """The same bytes are the same share, told once; other bytes are refused."""

    async def attack(running: Scene) -> None:
        body = running.made["h1", HELD][running.keys["s1"].public_key]
        reply = await running.ask("s1", running.keys["h1"], "share", HELD, body)
        assert isinstance(reply, Message)
        assert reply.kind == "stored"
        assert len(running.told["s1"].found("share received", round=HELD)) == 2
        reply = await running.ask("s1", running.keys["h1"], "share", HELD, share_of(running))
        assert says(reply, Refused, "another share of this holder")
        assert running.told["s1"].found("share refused", "another share", round=HELD)

    attacked(tmp_path, attack)


# ── whoever wants to exhaust a server ──


@pytest.mark.parametrize(
    ("header", "status", "words"),
    [
        (b"content-length: 2147483648", b" 413 ", "may have"),
        (b"transfer-encoding: chunked", b" 400 ", "a body without Content-Length"),
    ],
)
def test_two_gigabytes(tmp_path: Path, header: bytes, status: bytes, words: str) -> None:
    """Announced, or streaming without end: refused at the head, whatever comes after it."""

    async def attack(running: Scene) -> None:
        sent = Message(running.study.digest, HELD, "", running.keys["s1"].public_key, "share", b"")
        reader, writer = await running.connect("s1")
        piece = bytes(65_536)
        writer.write(lines(sent.signed(running.keys["h3"]), [header]))
        streaming = asyncio.create_task(stream(writer, b"10000\r\n" + piece + b"\r\n"))
        assert status in await until_closed(reader)
        streaming.cancel()
        await asyncio.gather(streaming, return_exceptions=True)
        writer.close()
        await running.told["s1"].until("refused", words)

    attacked(tmp_path, attack)


async def stream(writer: asyncio.StreamWriter, piece: bytes) -> None:
    try:
        for _ in range(2**31 // len(piece)):
            writer.write(piece)
            await writer.drain()
    except OSError:
        return


def test_headers_that_drip(tmp_path: Path) -> None:
    """A byte whenever something happens in the study, which goes on meanwhile."""

    async def attack(running: Scene) -> None:
        reader, writer = await running.connect("s1")
        writer.write(b"POST /v1/share HTTP/1.1\r\ntacit-study: ")
        dripping = asyncio.create_task(drip(running, writer))
        running.release.set()
        assert await until_closed(reader) == b""
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        writer.close()
        await running.told["s1"].until("refused", f"not complete within {SHORT:g} s")

    attacked(tmp_path, attack)


async def drip(running: Scene, writer: asyncio.StreamWriter) -> None:
    while True:
        await running.told["s1"].next()
        writer.write(b"a")


# ── an aggregator that wants to know more ──


def holders(running: Scene, *names: str) -> bytes:
    """A question of the right form about these holders."""
    keys = sorted(running.keys[name].public_key for name in names)
    return write(Sealed(keys, [bytes(32)] * len(SERVERS)))


@pytest.mark.parametrize(
    ("kind", "number", "names", "words"),
    [
        ("close", HELD - 1, ("h1", "h2"), "the difference of two sums"),
        ("seal", HELD - 1, ("h1", "h2"), "the difference of two sums"),
        ("seal", HELD, ("h1",), "allows 2 to 3"),
        ("seal", HELD, (), "allows 2 to 3"),
        ("seal", HELD, HOLDERS, "shares of 1 of these holders are not here"),
        ("seal", HELD, ("h1", "s2"), "shares of 1 of these holders are not here"),
        ("seal", HELD, ("h1", "h2"), "are others"),
        ("seal", HELD + 1, ("h1", "h2"), "is not open"),
        ("close", HELD + 1, ("h1", "h2"), "is not open"),
        ("close", HELD, ("h1", "h2"), "not with those of all 2 servers"),
    ],
)
def test_another_sum_than_the_study_allows(
    tmp_path: Path, kind: str, number: int, names: tuple[str, ...], words: str
) -> None:
    async def attack(running: Scene) -> None:
        key = running.keys["aggregator"]
        reply = await running.ask("s1", key, kind, number, holders(running, *names))
        assert says(reply, Refused, words)
        assert running.told["s1"].found(f"{kind} refused", words, round=number)

    attacked(tmp_path, attack)


def test_a_sum_that_another_server_has_not_sealed(tmp_path: Path) -> None:
    """The aggregator has the word of one server, and makes up that of the other."""

    async def attack(running: Scene) -> None:
        state = read(Share, running.made["h1", HELD][running.keys["s1"].public_key]).state
        keys = sorted(running.keys[name].public_key for name in ("h1", "h2"))
        marks = [await mark(running, server, keys) for server in SERVERS]
        asked = Sealed(keys, marks)
        digest = Question.of(HELD, state, asked, running.study).digest(running.study.digest)
        made_up = seal(EVE, running.study.digest, HELD, digest)
        of_another = seal(running.keys["s2"], running.study.digest, HELD - 1, digest)
        for words in ([], ["00" * 64] * 2, [made_up] * 2, [of_another] * 2):
            body = write(Sealed(keys, marks, words))
            reply = await running.ask("s1", running.keys["aggregator"], "close", HELD, body)
            assert says(reply, Refused, "once all have sealed it")

    attacked(tmp_path, attack)


async def mark(running: Scene, server: str, keys: list[str]) -> bytes:
    reply = await running.ask(server, running.keys["aggregator"], "present", HELD)
    assert isinstance(reply, Message)
    here = read(Holders, reply.body)
    known = dict(zip(here.keys, here.marks, strict=True))
    return marks_of(known[key] for key in keys)


def test_the_same_holder_twice_in_a_sum(tmp_path: Path) -> None:
    async def attack(running: Scene) -> None:
        twice = write(Sealed([running.keys["h1"].public_key] * 2, [bytes(32)] * 2))
        reply = await running.ask("s1", running.keys["aggregator"], "seal", HELD, twice)
        assert says(reply, InputError, "listed once each")
        assert running.told["s1"].found("seal refused", "listed once each")

    attacked(tmp_path, attack)


@pytest.mark.parametrize("sender", ["eve", "h1", "s2"])
def test_somebody_else_plays_the_aggregator(tmp_path: Path, sender: str) -> None:
    async def attack(running: Scene) -> None:
        key = running.keys.get(sender, EVE)
        for kind in ("open", "present", "seal", "close", "recall", "attest", "finish"):
            reply = await running.ask("s1", key, kind, HELD, holders(running, "h1", "h2"))
            assert says(reply, Refused, "only the study's aggregator")
            assert running.told["s1"].found(f"{kind} refused", "only the study's aggregator")

    attacked(tmp_path, attack)


def first_state(running: Scene) -> bytes:
    return state_bytes(running.study.first_state())


def loud_state(running: Scene, **changed: object) -> bytes:
    """The first state with fields that an aggregator has no say in: they follow from the study."""
    return to_bytes(replace(running.study.first_state(), **changed))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (HELD, "is open with another state"),
        (HELD + 1, f"round {HELD} is not closed yet"),
        (HELD + 2, f"round {HELD + 1} comes next"),
        (10**6, f"promises {ROUNDS} rounds"),
    ],
)
def test_a_round_out_of_turn(tmp_path: Path, number: int, words: str) -> None:
    async def attack(running: Scene) -> None:
        key = running.keys["aggregator"]
        reply = await running.ask("s1", key, "open", number, first_state(running))
        assert says(reply, Refused, words)
        assert running.told["s1"].found("open refused", words, round=number)

    attacked(tmp_path, attack)


def test_one_more_round_than_promised(tmp_path: Path) -> None:
    """Whatever number of rounds a state speaks of: the plan has ended, and the promise is used."""

    async def whole() -> None:
        async with scene(tmp_path) as running:
            await running.start(hold=False)
            await running.finish()
            key = running.keys["aggregator"]
            for state in (first_state(running), loud_state(running, rounds=10**6)):
                reply = await running.ask("s1", key, "open", ROUNDS + 1, state)
                assert says(reply, Refused, f"there is no round {ROUNDS + 1}")
            assert len(running.told["s1"].found("open refused", "there is no round")) == 2

    run(whole())


def test_a_state_with_a_tiny_bound_changes_no_noise_and_gets_no_share(tmp_path: Path) -> None:
    """Were it heard, servers would add noise for the tiny bound, and holders clip to the large one.

    It is not: what a round asks follows from the study. And shares are made for one state's bytes.
    """

    async def whole() -> None:
        async with scene(tmp_path) as running:
            await running.start_servers()
            tiny, true = loud_state(running, size=Fraction(1, 10**6)), first_state(running)
            heard, query = asked_by(running.study, 1, tiny)
            assert heard.size == running.study.first_state().size
            assert query == asked_by(running.study, 1, true)[1]
            key = running.keys["aggregator"]
            for server in SERVERS:
                reply = await running.ask(server, key, "open", 1, tiny)
                assert isinstance(reply, Message)
                for name in HOLDERS:
                    made_for_true = write(Share(digest_of(true), "seed", bytes(32)))
                    answer = await running.ask(
                        server, running.keys[name], "share", 1, made_for_true
                    )
                    assert says(answer, Refused, "made for another state")
                assert len(running.told[server].found("share refused", "another state")) == 3
                reply = await running.ask(server, key, "seal", 1, holders(running, "h1", "h2"))
                assert says(reply, Refused, "not here")

    run(whole())


def test_a_state_that_is_none(tmp_path: Path) -> None:
    async def whole() -> None:
        async with scene(tmp_path) as running:
            await running.start_servers()
            over = state_bytes(replace(running.study.first_state(), done=ROUNDS))
            for state in (b"", b"\x00" * 100, os.urandom(1000), over):
                reply = await running.ask("s1", running.keys["aggregator"], "open", 1, state)
                assert isinstance(reply, Refused)
            assert len(running.told["s1"].found("open refused", "the state of round 1")) == 4

    run(whole())


# ── a server that answers garbage ──


class Garbling(ServerService):
    """Answers the first questions for a sum with garbage, signed like any answer."""

    garbage: list[bytes]

    async def _answer(self, message: Message) -> Message:
        reply = await super()._answer(message)
        if message.kind == "close" and message.round == HELD and self.garbage:
            return message.reply(reply.kind, self.garbage.pop(0))
        return reply


# Far outside what three holders could send, in every coordinate: as random bytes are, but surely.
LARGE = (2**62 - 1).to_bytes(8, "little") * LENGTH


@pytest.mark.parametrize(
    ("garbage", "event", "words"),
    [
        ([b"", bytes(8 * LENGTH + 1), os.urandom(5000)], "server failed", "a partial sum has"),
        ([LARGE, LARGE], "sum refused", "outside what its holders could send"),
    ],
)
def test_a_server_answers_garbage_and_then_properly(
    tmp_path: Path, garbage: list[bytes], event: str, words: str
) -> None:
    class Once(Garbling):
        pass

    Once.garbage = list(garbage)

    async def whole() -> None:
        async with half_done(tmp_path, s2=Once) as running:
            running.release.set()
            await running.told["aggregator"].until(event, words, count=len(garbage))
        assert not Once.garbage

    run(whole())


def test_a_server_that_answers_nothing_but_garbage_stops_the_study(tmp_path: Path) -> None:
    class Always(Garbling):
        garbage = [LARGE] * 100

    async def whole() -> None:
        async with scene(tmp_path, s1=Always) as running:
            await running.start(hold=False)
            await running.told["aggregator"].until("study stopped", "outside what its holders")
            with pytest.raises(CheckFailed, match="the model was not touched"):
                await running.outcome()

    run(whole())


# ── what is left on disks ──


def test_no_server_has_what_would_open_a_share_and_no_log_has_a_secret(tmp_path: Path) -> None:
    async def whole() -> Scene:
        async with scene(tmp_path) as running:
            await running.start(hold=True)
            check_disks(running)
            for server in SERVERS:  # this is how one would be found
                share = running.made["h1", HELD][running.keys[server].public_key]
                assert body_of(share) in on_disk(tmp_path / server)
            await running.finish()
            check_disks(running)
        check_disks(running)
        return running

    running = run(whole())
    for server in SERVERS:  # its own shares are gone as well
        own = running.keys[server].public_key
        kept = on_disk(tmp_path / server)
        assert not [key for key, made in running.made.items() if body_of(made[own]) in kept]


def check_disks(running: Scene) -> None:
    """Of every share ever made: one for s1 is in no file of s2, and none is in any log."""
    assert len(running.made) >= 2 * HELD
    keys = {server: running.keys[server].public_key for server in SERVERS}
    for server, other in zip(SERVERS, reversed(SERVERS), strict=True):
        kept = on_disk(running.root / server)
        assert len(kept) > 10_000
        for made in running.made.values():
            assert body_of(made[keys[other]]) not in kept
    for name, told in running.told.items():
        log = told.file.read_bytes()
        assert log
        for made in running.made.values():
            for body in made.values():
                assert not [s for s in spelt(body_of(body)) if s in log], name
        for key in running.keys.values():
            assert not [s for s in spelt(secret_of(key)) if s in log], name
        for holder in HOLDERS:
            for value in made_up_records(holder).ravel():
                assert f"{value:.6f}".encode() not in log, name


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def body_of(share: bytes) -> bytes:
    return read(Share, share).body


def secret_of(key: SigningKey) -> bytes:
    return key._secret.private_bytes_raw()


def spelt(secret: bytes) -> list[bytes]:
    """A secret as it might slip into a line of text."""
    import base64

    return [
        secret,
        secret.hex().encode(),
        base64.b64encode(secret)[:40],
        repr(secret)[2:-1].encode(),
        repr(list(secret)).encode(),
    ]
