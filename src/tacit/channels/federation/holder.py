"""A holder: reserves the cost, answers each round with shares of its sum, checks the result.

No input, no output, no clock here. `tick` says what to send now and `told` takes the answers. The
holder speaks first, always: it can sit behind a firewall that lets nothing in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.channels.federation.certify import check_result
from tacit.channels.federation.letters import (
    Asked,
    News,
    Share,
    Witnessed,
    context_of,
    digest_of,
)
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.seals import check_seals
from tacit.channels.roles.budget import Budget
from tacit.channels.roles.events import Tell
from tacit.channels.roles.growing import FileNote
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.roles.member_service import Opened
from tacit.channels.roles.standing import Standing, stopped_by, tell_waiting
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.ring import to_ring
from tacit.crypto.sharing import split
from tacit.errors import CheckFailed, Refused, TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.programs.program import Query

__all__ = ["Contribute", "Contribution", "Holder"]


class Contribution(Protocol):
    """A holder's own sum, and which records of which files it used (for online studies)."""

    @property
    def total(self) -> NDArray[np.int64]: ...

    @property
    def used(self) -> Sequence[FileNote]: ...


Contribute = Callable[[int, Any, Query], Contribution]


class Holder:
    """The state machine of one holder in one study."""

    def __init__(
        self,
        study: Study,
        key: str,
        outbox: Outbox,
        contribute: Contribute,
        budget: Budget,
        randomness: Randomness = SYSTEM,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        if study.holder_named(key) is None:
            raise Refused(
                f"this key is not among the holders of study {study.name}: send its author what "
                "`tacit keys show` prints."
            )
        if study.online is not None and outbox.restored is not None and not outbox.is_over:
            raise Refused(
                f"{outbox.path} was put back from a backup ({outbox.restored}). Which records were "
                f"used in windows of study {study.name} since then is not known, and none may be "
                "used twice: this holder gives the study up."
            )
        self.study, self.key, self._outbox = study, key, outbox
        self._contribute, self._budget, self._randomness = contribute, budget, randomness
        self._tell, self._digest = tell, study.digest
        # The last round that nothing is left to do for; shares that were kept may not be sent yet.
        self._done = max(0, outbox.last() - 1)
        self._number = 0  # the round that `_unsent` belongs to
        self._attempt = 0  # how often its shares were asked for again
        self._unsent: dict[str, bytes] = {}
        self._asked: set[str] = set()
        self._standing: tuple[object, ...] = ()  # what we have told last of what we wait for
        self.result: tuple[bytes, Certificate] | None = None
        # In windows: after how many rounds the newest model is that is here.
        self._newest = outbox.newest()[0]
        budget.belongs_to(outbox.identity)
        kept = outbox.result()
        if kept is None:
            budget.reserve(1)
        else:  # we had it before a crash, and may not have paid
            self._end(*kept, Certificate.from_json(kept[1]))

    @property
    def is_over(self) -> bool:
        return self.result is not None

    # ── what to send ──

    def tick(self) -> list[tuple[str, Letter]]:
        """What to send now, each with whom to."""
        if self.is_over:
            return []
        letters = {server: Letter("share", self._number, b) for server, b in self._unsent.items()}
        if not letters:
            said = self._attempt or self._newest
            more = write(Asked(self._attempt, self._newest)) if said else b""
            letters = {self.study.aggregator.key: Letter("ask", self._done, more)}
        wanted = [(to, letter) for to, letter in letters.items() if to not in self._asked]
        self._asked.update(to for to, _ in wanted)
        return wanted

    def opened(self, reply: Letter) -> Opened | None:
        """The round that a reply tells of, if it tells of one; only the first round of a window
        waits for new records."""
        if reply.kind != "round":
            return None
        news = read(News, reply.body)
        return Opened(news.seconds, self._begins(news.number) and not self._has(news.number))

    def _has(self, number: int) -> bool:
        return self._outbox.has_round(number)

    def _begins(self, number: int) -> bool:
        within = 1 <= number <= self.study.last_round
        return within and self.study.plan().place(number)[1] == 1

    def give_up(self) -> None:
        """The round is lost for us: its deadline has passed. The next one may not be."""
        if self._unsent:
            self._tell("round missed", round=self._number)
            self._sent()

    # ── what came back ──

    def told(self, to: str, asked: Letter, reply: Letter | TacitError) -> None:
        self._asked.discard(to)
        if asked.kind == "share":
            self._share_told(to, asked, reply)
        elif isinstance(reply, Refused):
            raise reply
        elif isinstance(reply, Letter) and reply.kind == "round":
            self._answer(read(News, reply.body))
        elif isinstance(reply, Letter) and reply.kind == "window":
            self._take_window(read(Finished, reply.body))
        elif isinstance(reply, Letter) and reply.kind == "model":
            self._take(read(Finished, reply.body))
        elif isinstance(reply, Letter) and reply.kind in ("wait", "stopped") and reply.body:
            self._stand(read(Standing, reply.body), stopped=reply.kind == "stopped")

    def _stand(self, standing: Standing, stopped: bool) -> None:
        """Say what we wait for, whenever it changes; end if the study has."""
        if stopped:
            raise stopped_by(standing, self.study)
        if standing.subject != self._standing:
            self._standing = standing.subject
            tell_waiting(self._tell, standing)

    def _share_told(self, server: str, asked: Letter, reply: Letter | TacitError) -> None:
        if asked.round != self._number or server not in self._unsent:
            return
        if isinstance(reply, (Unreachable, CheckFailed)):
            return  # not reached, or garbled: the same bytes are sent again
        if isinstance(reply, TacitError):  # too late, or not wanted: the next round may go better
            self._tell("share refused", round=asked.round, reason=str(reply))
            self._sent()
            return
        del self._unsent[server]
        if not self._unsent:
            self._tell("shares sent", round=asked.round)
            self._sent()

    def _sent(self) -> None:
        self._done, self._unsent = self._number, {}

    # ── a round ──

    def _answer(self, news: News) -> None:
        number = news.number
        if self._is_given_up(number):
            self._done = max(self._done, number)
            return
        if number == self._done and news.attempt > self._attempt:
            self._send_again(news)
            return
        if number <= self._done or number == self._number:
            return
        digest = digest_of(news.state)
        bodies = self._outbox.shares(number, digest) or self._made(number, digest, news)
        self._number, self._unsent, self._attempt = number, dict(bodies), news.attempt
        self._asked.clear()

    def _is_given_up(self, number: int) -> bool:
        """Whether we may have answered this round before we were put back from a backup.

        That is the round that is open when we come back; those before it are over, and those after
        it were not open yet.
        """
        if self._outbox.restored is None:
            return False
        first = self._outbox.given_up()
        if first is None:
            self._outbox.give_up(number)
            self._tell("round given up", round=number)
            return True
        return number <= first

    def _send_again(self, news: News) -> None:
        """A server has lost our share: the same bytes once more, to all, who know them again."""
        bodies = self._outbox.shares(news.number, digest_of(news.state))
        self._attempt = news.attempt
        self._number, self._unsent = news.number, dict(bodies)
        self._asked.clear()

    def _made(self, number: int, digest: bytes, news: News) -> dict[str, bytes]:
        """This round's shares, made once and kept before the first one leaves."""
        if self._has(number):
            raise Refused(
                f"round {number} was answered before, for another state: the aggregator has told "
                "two stories. Nothing is sent."
            )
        if number > self.study.last_round:
            raise Refused(f"the study promises {self.study.last_round} rounds, not {number}.")
        self._witness(number - 1, news.before)
        known, query = asked_by(self.study, number, news.state)
        self.study.capacity_check(query)
        window = self.study.window_of(number)
        paid = window or number  # one window is paid for at a time, or all rounds together
        self._budget.reserve(paid)
        contribution = self._contribute(number, known, query)
        bodies = self._shared(number, digest, contribution.total, news.before)
        self._budget.spend(paid)
        self._outbox.keep(number, digest, bodies, contribution.used, window)
        return bodies

    def _witness(self, number: int, before: Witnessed | None) -> None:
        """Remember what all servers have sealed in the round before; a second story is refused."""
        if number == 0:
            return
        if before is None:
            raise Refused(f"nothing shows that round {number} was summed once: nothing is sent.")
        try:
            check_seals(self.study, number, before.digest, before.seals)
        except CheckFailed as error:
            raise Refused(f"{error} Nothing is sent.") from None
        for server, (last, digest) in self._outbox.witnessed().items():
            if last == number and digest != before.digest:
                name = self.study.servers[self.study.server_place(server)].name
                raise Refused(f"server {name} has sealed two sums of round {number}.")
        self._outbox.witness(number, before.digest, [s.key for s in self.study.servers])

    def _shared(
        self, number: int, digest: bytes, total: NDArray[np.int64], before: Witnessed | None
    ) -> dict[str, bytes]:
        """m − 1 seeds and one share in full; who gets the full one differs among holders."""
        servers = [server.key for server in self.study.servers]
        shares = split(
            to_ring(total), len(servers), context_of(self._digest, number), self._randomness
        )
        full = int(self.key[:8], 16) % len(servers)
        seeds = iter(shares.seeds)
        seen = [
            None if before is None else Witnessed(before.digest, [before.seals[place]])
            for place in range(len(servers))
        ]
        parts = [
            Share(digest, "full", shares.full.astype("<u8").tobytes(), seen[place])
            if place == full
            else Share(digest, "seed", next(seeds), seen[place])
            for place in range(len(servers))
        ]
        return {server: write(part) for server, part in zip(servers, parts, strict=True)}

    # ── the end ──

    def _take_window(self, finished: Finished) -> None:
        """A model of all windows so far, with its certificate: checked like the last one."""
        certificate = check_result(self.study, finished.model, finished.certificate)
        part = certificate.participation
        assert part is not None  # it was checked
        if part.rounds > self._newest:
            self._outbox.keep_newest(part.rounds, finished.model, finished.certificate)
            self._newest = part.rounds
            self._tell("window received", window=self.study.window_of(part.rounds))

    @property
    def newest(self) -> tuple[bytes, str] | None:
        """In windows: the newest model that is here and its certificate, before the last one."""
        rounds, model, certificate = self._outbox.newest()
        return (model, certificate) if rounds else None

    def _take(self, finished: Finished) -> None:
        seen = [number for number, _ in self._outbox.witnessed().values()]
        rounds = max(self._outbox.last(), *seen, 0)
        certificate = check_result(self.study, finished.model, finished.certificate, rounds)
        # First the result, then the bill: whoever crashes after paying could not ask for it again.
        self._outbox.keep_result(finished.model, finished.certificate)
        self._end(finished.model, finished.certificate, certificate)

    def _end(self, model: bytes, text: str, certificate: Certificate) -> None:
        self._budget.settle(text)
        self.result = model, certificate
        self._tell("model received")
