"""Frauds in the main wave of a simulated crowd, by some members and by the owner of relay 0."""

from __future__ import annotations

from dataclasses import replace

from crowd_cast import Cast, identity
from crowd_world import World

from tacit.channels.crowd.letters import Packets, TokenAsked, Wave
from tacit.channels.crowd.payload import Answer, signed_message
from tacit.channels.crowd.person_journal import Given
from tacit.channels.roles.letters import Letter, write
from tacit.crypto.prg import SeededRandomness
from tacit.errors import TacitError
from tacit.privacy.noise import uniform_below

STRANGERS = GARBAGE = 20
GONE = 1  # the place of a relay that vanishes
VANISHES, ATTACKS = 12.0, 18.0  # seconds after the first wave has opened


class Forgers:
    """The first `cheats` people answer as they should, once; and try everything else besides.

    `replies` are those that must all be refusals. `other` is a study with the same token keys.
    """

    def __init__(self, world: World, cheats: int, other: Cast) -> None:
        self.world, self.cheats, self.other = world, cheats, other
        self.replies: list[Letter | TacitError] = []
        self._randomness = SeededRandomness("forgers")
        self._wave = Wave(0, 0, 0.0)
        self._proposal = world.cast.proposal
        world.on_wave = self._opened

    def _opened(self, wave: Wave) -> None:
        if wave.number == 0:
            self._wave = wave
            self.world.at(wave.opens + VANISHES, lambda: self.world.vanish(GONE))
            self.world.at(wave.opens + ATTACKS, self._attack)

    def _attack(self) -> None:
        for number in range(self.cheats):
            (given,) = self.world.journals[number].answers().values()
            self._ask_for_more(self.world.people[number].key)
            for answer in self._forged(given):
                sent = self.world.inject(self._wave, given.question, answer.to_bytes())
                assert isinstance(sent, Letter) or GONE in self._way(given)
        for number in range(STRANGERS):
            self._stranger(identity("stranger", number).public_key)
        for _ in range(GARBAGE):
            self._garbage()

    @property
    def reached(self) -> int:
        """Of the cheats, those whose questions do not pass the relay that vanishes."""
        given = [self.world.journals[number].answers() for number in range(self.cheats)]
        return sum(GONE not in self._way(one) for answers in given for one in answers.values())

    def _way(self, given: Given) -> tuple[int, ...]:
        return self.world.drawn.ways(0)[given.question]

    def come_late(self) -> None:
        """The same honest answers once more, when all is over."""
        for number in range(self.cheats):
            (given,) = self.world.journals[number].answers().values()
            body = self._honest(given).to_bytes()
            reply = self.world.deliver(self._wave, given.question, body)
            assert isinstance(reply, Letter)

    def _ask_for_more(self, member: str) -> None:
        """A second token for the same question, and one for each question of somebody else."""
        for name, key in self._proposal.token_keys.items():
            blinded = key.blind(b"another answer", self._randomness).blinded
            self._ask("token", member, write(TokenAsked(name, blinded)))

    def _honest(self, given: Given) -> Answer:
        number = self._proposal.drawn_up.names.index(given.question)
        return Answer(self._proposal.digest, number, given.report, given.proof)

    def _forged(self, given: Given) -> list[Answer]:
        honest = self._honest(given)
        frauds = [
            honest,  # ahead of its owner's own packet, or after it
            replace(honest, proof=bytes(len(given.proof))),
            replace(honest, proof=self._of_another_study(given)),
            replace(honest, study=self.other.proposal.digest),
            replace(honest, report=b"\xff" * len(given.report)),
        ]
        changed = bytes([given.report[0] ^ 1]) + given.report[1:]
        if self._proposal.questions[given.question].accepts(changed):
            frauds.append(replace(honest, report=changed))  # her token for another answer
        return frauds

    def _of_another_study(self, given: Given) -> bytes:
        """A good token for the same answer, under the same key, of another study."""
        name, study = given.question, self.other.proposal.digest
        message = signed_message(study, name, given.report)
        blinded = self.other.proposal.token_keys[name].blind(message, self._randomness)
        return blinded.finalize(
            self.other.secrets.tokens[name].sign_blinded(blinded.blinded)
        ).to_bytes()

    def _stranger(self, key: str) -> None:
        """Somebody who never registered."""
        name, token = next(iter(self._proposal.token_keys.items()))
        asked = TokenAsked(name, token.blind(b"mine", self._randomness).blinded)
        self._ask("register", key, b"")
        self._ask("token", key, write(asked))
        for kind in ("packets", "reveal", "batches", "commit"):
            self._ask(kind, key, write(Packets(0, 0, 3, name, [self._noise(3)])))
        way = self.world.drawn.ways(0)[name]
        body = write(Packets(0, 0, 0, name, [self._noise(0)]))
        self.replies.append(self.world.answer(key, way[0], Letter("packets", 0, body)))

    def _garbage(self) -> None:
        """Bytes that nobody has wrapped, through a relay and straight to the collector."""
        ways = self.world.drawn.ways(0)
        name, way = next((name, way) for name, way in ways.items() if GONE not in way)
        for sender, to, hop in ((way[0], way[1], 1), (way[2], None, 3)):
            relay = self.world.carriers[sender].key
            body = write(Packets(0, 0, hop, name, [self._noise(hop)]))
            assert isinstance(self.world.answer(relay, to, Letter("packets", 0, body)), Letter)

    def _ask(self, kind: str, sender: str, body: bytes) -> None:
        self.replies.append(self.world.answer(sender, None, Letter(kind, 0, body)))

    def _noise(self, hop: int) -> bytes:
        size = self._proposal.shape(len(self.world.people)).packet_bytes
        drawn = uniform_below(256, size - 1, self._randomness).astype("u1")
        return bytes([hop]) + drawn.tobytes()
