"""A server: keeps one share of each holder, adds them up, adds its noise, answers once.

No input, no output, no clock here: `answer_all` takes letters and returns replies, and what must
outlive a crash is in the store before a reply exists. What the server relies on is the study alone.
The aggregator sends the state of a round, and with it how long the vectors are; what they are
clipped to, on which grid, and how much noise is due, the server computes for itself (`Study.plan`,
`Levels`), so an invented state changes what is asked, never how well it is hidden (server.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tacit.channels.federation.certify import Attestation
from tacit.channels.federation.letters import Holders, Share, context_of, digest_of
from tacit.channels.federation.noise_plan import NoisePlan, asked_by, took_part
from tacit.channels.federation.server_store import Round, ServerStore
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.ring import RingSum
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, Refused, TacitError, UsageError
from tacit.privacy.certificate import statement
from tacit.programs.levels import check_asked
from tacit.programs.program import Query

__all__ = ["Server"]


class Server:
    """The state machine of one server in one study."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        store: ServerStore,
        randomness: Callable[[int], Randomness] = lambda number: SYSTEM,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        """`randomness` is asked once for each round: tests name seeds by round."""
        self.study, self._key, self._store = study, key, store
        self._randomness, self._tell = randomness, tell
        self._names = {holder.key: holder.name for holder in study.holders}
        self._recall()

    def _recall(self) -> None:
        """All that is in memory, from the store: after a start, a crash or a failed write."""
        self._rounds = {r.number: r for r in self._store.rounds()}
        for known in self._rounds.values():
            self._check_version(known)
        self._arrived = self._store.arrived(self._last)
        self._plan = NoisePlan(self.study)
        for done in self._rounds.values():
            if done.holders is not None:
                self._plan.charge(done.number, done.query)

    def _check_version(self, known: Round) -> None:
        """A round whose noise was planned otherwise cannot be counted as one of this study's."""
        planned = self.study.plan().stage(known.number).query
        try:
            check_asked(known.query, planned)
        except UsageError:
            raise Refused(
                f"round {known.number} of study {self.study.name} was opened by another version of "
                "tacit, with other bounds: the study cannot go on. Agree on a new one, and run it "
                "in a new folder."
            ) from None

    @property
    def is_finished(self) -> bool:
        return self._store.is_finished

    @property
    def length(self) -> int:
        """Of the vector of the round that is open, or was last; 0 before the first."""
        return self._rounds[self._last].query.length if self._rounds else 0

    def answer_all(self, asked: Sequence[tuple[str, Letter]]) -> list[Letter | TacitError]:
        """Answer letters by their senders; durable together, in one transaction."""
        try:
            with self._store.transaction():
                return [self._answer(sender, letter) for sender, letter in asked]
        except BaseException:
            self._recall()  # memory must not run ahead of the disk
            raise

    def _answer(self, sender: str, letter: Letter) -> Letter | TacitError:
        try:
            return self._dispatch(sender, letter)
        except TacitError as error:
            self._tell(f"{letter.kind} refused", round=letter.round, reason=str(error))
            return error

    def _dispatch(self, sender: str, letter: Letter) -> Letter:
        number = letter.round
        if letter.kind == "share":
            return self._take(number, sender, letter.body)
        if sender != self.study.aggregator.key:
            raise Refused(f"only the study's aggregator may ask a server to {letter.kind}.")
        match letter.kind:
            case "open":
                self._open(number, letter.body)
                return Letter("opened", number)
            case "present":
                here = sorted(self._arrived) if number == self._last else []
                return Letter("holders", number, write(Holders(here)))
            case "close":
                keys = tuple(read(Holders, letter.body).keys)
                return Letter("partial", number, self._close(number, keys))
            case "attest":
                return Letter("attestation", number, write(self._attestation()))
            case "finish":
                if not self.is_finished:
                    self._store.finish()
                return Letter("finished", number)
        raise InputError(f"a server does not know how to {letter.kind}.")

    @property
    def _last(self) -> int:
        return max(self._rounds, default=0)

    # ── a round opens ──

    def _open(self, number: int, state: bytes) -> None:
        known = self._rounds.get(number)
        if known is not None:
            if known.state != digest_of(state):
                raise Refused(f"round {number} is open with another state.")
            return
        self._may_open(number)
        _, query = asked_by(self.study, number, state)
        self.study.capacity_check(query)
        self._store.open_round(number, digest_of(state), query)
        self._store.drop_shares(number)
        self._rounds[number] = Round(number, digest_of(state), query)
        self._arrived = set()
        self._tell("round opened", round=number, length=query.length)

    def _may_open(self, number: int) -> None:
        last = self.study.last_round
        if number > last:
            raise Refused(f"the study promises {last} rounds; there is no round {number}.")
        if number != self._last + 1:
            raise Refused(f"round {self._last + 1} comes next, not {number}.")
        if self._last and self._rounds[self._last].holders is None:
            raise Refused(f"round {self._last} is not closed yet.")

    # ── a share arrives ──

    def _take(self, number: int, holder: str, body: bytes) -> Letter:
        if holder not in self._names:
            raise Refused("this holder is not in the study.")
        known = self._rounds.get(number)
        if known is None:
            raise Refused(f"round {number} is not open.")
        share = read(Share, body)
        if number == self._last and holder in self._arrived:
            if self._store.share(number, holder) != (share.form, share.body):
                raise Refused(f"another share of this holder is here for round {number}.")
            return Letter("stored", number)  # sent again: the answer may have been lost
        if known.holders is not None:
            raise Refused(f"round {number} is closed: take part in the next.")
        if share.state != known.state:
            raise Refused(f"this share was made for another state of round {number}.")
        share.check(known.query.length)
        self._store.put_share(number, holder, share.form, share.body)
        self._arrived.add(holder)
        self._tell("share received", round=number, holder=self._names[holder])
        return Letter("stored", number)

    # ── a round closes ──

    def _close(self, number: int, holders: tuple[str, ...]) -> bytes:
        known = self._rounds.get(number)
        if known is None:
            raise Refused(f"round {number} is not open.")
        if known.holders is not None:
            if known.holders != holders or known.answer is None:
                raise Refused(
                    f"round {number} was closed with other holders: the difference of two sums "
                    "would show a single one of them."
                )
            return known.answer
        self._may_sum(holders)
        answer = self._noisy_sum(number, known.query, holders)
        self._store.close_round(number, holders, answer)
        self._rounds[number] = Round(number, known.state, known.query, holders, answer)
        self._tell("round closed", round=number, holders=len(holders))
        return answer

    def _may_sum(self, holders: tuple[str, ...]) -> None:
        least, most = self.study.take_part.minimum, self.study.take_part.maximum
        if list(holders) != sorted(set(holders)):
            raise InputError("the holders of a sum are listed once each, in order.")
        if not least <= len(holders) <= most:
            raise Refused(
                f"a sum of {len(holders)} holders was asked for; the study allows {least} to "
                f"{most}."
            )
        missing = sum(holder not in self._arrived for holder in holders)
        if missing:
            raise Refused(f"the shares of {missing} of these holders are not here.")

    def _noisy_sum(self, number: int, query: Query, holders: tuple[str, ...]) -> bytes:
        total = RingSum(query.length)
        chosen, context = set(holders), context_of(self.study.digest, number)
        for bodies in self._store.bodies(number, "full", chosen):
            total.add(bodies)
        for seeds in self._store.bodies(number, "seed", chosen):
            total.add_seeds(seeds, context)
        integers = total.total.view(np.int64)
        source = self._randomness(number)
        mechanisms = self._plan.charge(number, query)
        # Without privacy there are no mechanisms, and no noise.
        for (_, place), mechanism in zip(query.slices(), mechanisms, strict=False):
            integers[place] = mechanism.perturb(integers[place], source)
        return integers.astype("<i8").tobytes()

    # ── what it did in all ──

    def _attestation(self) -> Attestation:
        closed = [r for r in self._rounds.values() if r.holders is not None]
        if not closed:
            raise Refused("no round is closed yet: there is nothing to attest.")
        secure = all(self._randomness(r.number).secure for r in closed)
        sets = [r.holders or () for r in closed]
        said = statement(
            self.study.digest,
            self.study.promise,
            self._plan.releases,
            took_part(sets),
            secure,
            self.study.contributions,
        )
        return Attestation(self._key.sign(said), secure)
