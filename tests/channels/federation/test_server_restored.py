"""A server whose folder was put back by `tacit restore`: it seals nothing against what it has
sealed, although everybody else wants it to, and keeps only shares of the last round."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.channels.federation.letters import Holders, Past, Sealed, Share, Subject, digest_of
from tacit.channels.federation.local import local_study
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.seals import Question, marks_of, seal
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.backup import back_up, put_back
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.studies.study import TakePart
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import Refused
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans
from tacit.programs.states import state_bytes

KEYS = [SigningKey.generate() for _ in range(3)]  # the server, another one, the aggregator
AGGREGATOR = KEYS[2].public_key
PROGRAM = KMeans(clusters=2, rounds=3)
PLAIN = local_study(
    PROGRAM, 4, Schema(columns=(Column(name="x", type="number", bounds=(0, 1)),)), Promise(1), KEYS
)
STUDY = msgspec.structs.replace(
    PLAIN, take_part=TakePart(minimum=2, maximum=4, records=10)
).running(PROGRAM)
STATE = state_bytes(STUDY.first_state())
HOLDERS = [holder.key for holder in STUDY.holders]


def quiet(name: str) -> None:
    pass


class Restored:
    """A server, and an aggregator, another server and holders who work together against it."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "role"
        self.start()

    def start(self) -> None:
        self.store = ServerStore(self.folder / "server.db", STUDY.digest)
        self.core = Server(STUDY, KEYS[0], self.store)

    def back_up(self) -> None:
        back_up(self.folder, self.root / "copy.tar", quiet)

    def put_back(self, folder: Path) -> None:
        self.store.close()
        shutil.rmtree(self.folder)
        self.folder = folder
        put_back(self.root / "copy.tar", folder, quiet)
        self.start()

    def ask(
        self, kind: str, number: int, body: bytes = b"", sender: str = KEYS[2].public_key
    ) -> Any:
        return self.core.answer_all([(sender, Letter(kind, number, body))])[0]

    def share(self, number: int, holder: str) -> Any:
        return self.ask("share", number, body_of(number), holder)

    def question(self, number: int, holders: list[str]) -> Sealed:
        self.ask("open", number, STATE)
        for holder in holders:
            self.share(number, holder)
        here = read(Holders, self.ask("present", number).body)
        marks = dict(zip(here.keys, here.marks, strict=True))
        keys = sorted(holders)
        return Sealed(keys, [marks_of(marks[key] for key in keys), bytes(32)])

    def answer(self, number: int, asked: Sealed) -> Any:
        """The reply to seal, if it is a refusal, else to close with both seals."""
        reply = self.ask("seal", number, write(asked))
        if not isinstance(reply, Letter) or reply.kind != "sealed":
            return reply
        return self.ask("close", number, write(both(number, asked)))

    def recall(self, number: int, asked: Sealed) -> Any:
        return self.ask("recall", number, write(Past(STATE, both(number, asked))))


def body_of(number: int) -> bytes:
    _, query = asked_by(STUDY, number, STATE)
    return write(Share(digest_of(STATE), "full", bytes([number]) * 8 * query.length))


def both(number: int, asked: Sealed) -> Sealed:
    """With the seals that the two servers gave, or would give."""
    question = Question(number, digest_of(STATE), tuple(asked.keys), tuple(asked.marks))
    words = [seal(k, STUDY.digest, number, question.digest(STUDY.digest)) for k in KEYS[:2]]
    return Sealed(asked.keys, asked.marks, words)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Restored]:
    made = Restored(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("place", ["role", "elsewhere"])
@pytest.mark.parametrize("times", [1, 2])
def test_the_newest_round_is_answered_as_it_was_or_not_at_all(
    server: Restored, tmp_path: Path, place: str, times: int
) -> None:
    server.ask("open", 1, STATE)
    server.back_up()
    asked = server.question(1, HOLDERS[:3])
    answer = server.answer(1, asked).body
    for _ in range(times):  # what was noted outlives the first restore
        server.put_back(tmp_path / place)
        refused = server.answer(1, server.question(1, HOLDERS[:2]))
        assert isinstance(refused, Refused)
        assert "difference of two sums" in str(refused)
    assert server.question(1, HOLDERS[:3]) == asked
    assert server.answer(1, asked).body == answer


def test_nothing_is_sealed_in_rounds_before_the_newest_one(server: Restored) -> None:
    server.back_up()
    asked = {}
    for number in (1, 2):
        asked[number] = server.question(number, HOLDERS[:3])
        assert server.answer(number, asked[number]).kind == "partial"
    server.put_back(server.folder)
    refused = server.answer(1, server.question(1, HOLDERS[:2]))
    assert "was over before this server's store was put back" in str(refused)
    assert server.recall(1, asked[1]).kind == "recalled"  # its own seal is shown
    assert "difference" in str(server.answer(2, server.question(2, HOLDERS[:2])))
    assert server.recall(2, asked[2]).kind == "recalled"
    assert server.answer(3, server.question(3, HOLDERS[:2])).kind == "partial"


def test_shares_of_any_round_but_the_last_are_refused(server: Restored) -> None:
    """Also where a round was recalled, and sent again and again, in a batch with others'."""
    server.back_up()
    asked, answers = {}, {}
    for number in (1, 2):
        asked[number] = server.question(number, HOLDERS[:2])
        answers[number] = server.answer(number, asked[number]).body
    server.put_back(server.folder)
    assert server.recall(1, asked[1]).kind == "recalled"
    assert server.share(1, HOLDERS[0]).kind == "stored"
    assert server.recall(2, asked[2]).kind == "recalled"
    assert read(Holders, server.ask("present", 2).body).keys == []
    letters = [(holder, Letter("share", n, body_of(n))) for n in (1, 2) for holder in HOLDERS[:2]]
    for _ in range(2):
        replies = server.core.answer_all(letters)
        assert all("round 1 is over" in str(reply) for reply in replies[:2])
        assert [getattr(reply, "kind", reply) for reply in replies[2:]] == ["stored"] * 2
    assert server.ask("close", 2, write(both(2, asked[2]))).body == answers[2]


@pytest.mark.parametrize("place", ["role", "elsewhere"])
def test_a_result_is_signed_once_also_after_a_restore(
    server: Restored, tmp_path: Path, place: str
) -> None:
    """The machine has noted it outside the folder. Without the note, the other servers' words are
    missing for a second result (docs/explain/equivocation.md)."""
    server.back_up()
    asked = server.question(1, HOLDERS[:3])
    server.answer(1, asked)
    one, two = (write(Subject(name * 32)) for name in ("ab", "cd"))
    signed = server.ask("attest", 2, one)
    assert signed.kind == "attestation"
    server.put_back(tmp_path / place)
    assert server.ask("attest", 2, two).kind == "behind"
    assert server.recall(1, asked).kind == "recalled"
    assert "signed another result" in str(server.ask("attest", 2, two))
    assert "has signed a result" in str(server.ask("open", 2, STATE))
    assert server.ask("attest", 2, one) == signed
