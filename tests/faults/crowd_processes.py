"""A crowd's study: relays and collector as real processes, people in a thread of the test's own.

One person may be a process too, as `tacit crowd join` runs it. Processes are started, armed, killed
and followed as those of a federation are (federation_processes.py).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from federation_processes import NAME, PATIENCE, Roles, reserved

from tacit.channels.crowd.cards import onion_key
from tacit.channels.crowd.carrier import Carrier
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.person import Person
from tacit.channels.crowd.person_journal import Given, PersonJournal
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.propose import Draft
from tacit.channels.crowd.terms import CrowdTerms, Group, RelayCard, Route, Windows
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.folders import study_folder
from tacit.channels.roles.store import MEMORY
from tacit.crypto.blind_signatures import Blinded
from tacit.crypto.onion import OnionKey
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.data.schema import Column, Schema
from tacit.wire.client import Client
from tacit.wire.loop import run

CHILD = Path(__file__).with_name("crowd_child.py")
PEOPLE, RELAYS, EPSILON = 30, 5, 2.0
PERSON = "person"  # the one that is a process
# Long enough for a busy machine: who misses the issuing of tokens, or the first wave, has no answer
# that arrives.
WINDOWS = Windows(register=600.0, send=8.0, release=2.0)
SCHEMA = Schema(
    columns=(
        Column(name="age", type="integer", bounds=(0.0, 100.0), edges=(30.0, 60.0)),
        Column(name="smokes", type="boolean"),
        Column(name="ill", type="boolean", role="label"),
    )
)
HARMLESS = {"cover", "again", "after the window"}  # what may be told of reports that do not count


def relay(place: int) -> str:
    return f"relay-{place}"


class Crowd(Roles):
    """Keys, homes and processes; `proposal` is what everybody has agreed to."""

    proposal: Proposal
    people: list[SigningKey]
    onions: list[OnionKey]

    def start_all(self) -> None:
        for name in ("collector", *map(relay, range(RELAYS))):
            if name not in self.running:
                self.start(name)

    def _words(self, name: str) -> list[str]:
        file = str(self.root / "study.toml")
        if name == "collector":
            return ["serve", "collector", file]
        if name == PERSON:
            return ["crowd", "join", file, "--data", str(self.root / PERSON / "row.csv"), "--yes"]
        return ["serve", "relay", file]

    def folder(self, name: str) -> Path:
        kinds = {"collector": "collector", PERSON: "person-holder"}
        role = kinds.get(name, f"relay-{name}")
        return study_folder(self.root / name, self.proposal, role)

    # ── what is there at the end ──

    def answer(self) -> Given:
        """Of the one that is a process, while it does not run."""
        journal = PersonJournal(self.folder(PERSON) / "person.db", self.proposal.digest)
        (given,) = journal.answers().values()
        journal.close()
        return given

    def check_collected(self, given: list[Given], told: Set[str] = HARMLESS) -> None:
        """Everybody's one answer that she knows to have arrived is there once, with the one token
        that was signed for it, and no other is."""
        store = CollectorStore(self.folder("collector") / "collector.db", self.proposal.digest)
        found = [(stored.question, stored.mark, stored.report) for stored in store.reports()]
        signed = store.database.execute("SELECT question, blinded FROM issued").fetchall()
        refused = store.refused()
        store.close()
        assert len(given) == PEOPLE
        arrived = [(g.question, g.mark, g.report) for g in given if g.arrived]
        assert sorted(found) == sorted(arrived)
        assert sorted(signed) == sorted((g.question, self._blinded(g)) for g in given)
        assert set(refused) <= told, refused

    def _blinded(self, given: Given) -> bytes:
        key = self.proposal.token_keys[given.question]
        return Blinded.from_bytes(key, given.blinded).blinded


class People:
    """Those of a study who are not processes, each with a journal of her own."""

    def __init__(self, proposal: Proposal, keys: list[SigningKey]) -> None:
        self._proposal, self._keys = proposal, keys
        self._persons = [
            Person(proposal, key, PersonJournal(MEMORY, proposal.digest), _row(n), NoBudget())
            for n, key in enumerate(keys)
        ]
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self, arrives: bool = True) -> list[Given]:
        """What they answered, which they know to have arrived, or not."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure
        given = [answer for person in self._persons for answer in person.answers]
        assert all(answer.arrived == arrives for answer in given)
        return given

    def _run(self) -> None:
        try:
            run(self._take_part())
        except BaseException as error:
            self._failure = error

    async def _take_part(self) -> None:
        client = Client(self._keys[0], self._proposal.digest)
        try:
            async with asyncio.TaskGroup() as group:
                for key, person in zip(self._keys, self._persons, strict=True):
                    carrier = Carrier(self._proposal, client.speaking_as(key))
                    group.create_task(carrier.run(person.take_part()))
        finally:
            await client.aclose()


def _row(number: int) -> Batch:
    codes = np.array([number % 2], np.int32)
    age = np.array([float(3 * number)])
    return Batch(SCHEMA, {"age": age, "smokes": codes, "ill": codes}, 1)


@contextmanager
def crowd(root: Path, windows: Windows = WINDOWS) -> Iterator[Crowd]:
    """A study that is proposed, with nobody at work yet."""
    ports = [reserved() for _ in range(RELAYS + 1)]
    addresses = [f"https://127.0.0.1:{port.getsockname()[1]}" for port in ports]
    cards, onions = [], []
    for place, address in enumerate(addresses[1:]):
        keys = root / relay(place) / "keys"
        key = SigningKey.load_or_create(keys / "holder.pem").public_key
        onions.append(onion_key(keys / "holder.onion", "x25519"))
        cards.append(
            RelayCard(name=relay(place), address=address, key=key, onion=onions[-1].public)
        )
    own = SigningKey.load_or_create(root / PERSON / "keys" / "holder.pem")
    (root / PERSON / "row.csv").write_text("age,smokes,ill\n41,true,true\n", encoding="utf-8")
    people = [own, *(SigningKey.generate() for _ in range(PEOPLE - 1))]
    draft = Draft(
        name=NAME,
        question="Who falls ill?",
        schema=SCHEMA,
        promise=CrowdTerms(epsilon=EPSILON),
        group=Group(
            minimum=PEOPLE, maximum=PEOPLE, members=tuple(key.public_key for key in people)
        ),
        windows=windows,
        relays=tuple(cards),
        address=addresses[0],
        route=Route(hops=3, batch=2),
        plan=PlanTerms(),
    )
    home = root / "collector"
    proposal, secrets = draft.proposed(SigningKey.load_or_create(home / "keys" / "holder.pem"))
    secrets.save(home / "crowds" / f"{NAME}.secrets")
    (root / "study.toml").write_text(proposal.to_toml(), encoding="utf-8")
    made = Crowd(root, proposal, ports, child=CHILD)  # type: ignore[arg-type]
    made.proposal, made.people, made.onions = proposal, people, onions
    made.ledger(PERSON).allow("row", "person", EPSILON)
    try:
        yield made
    finally:
        for process in made.running.values():
            process.kill()
        for port in ports:
            port.close()
