"""A peer: gossips, forms groups or joins them, keeps its budget, collects what is published.

A state machine without input, output or clock. `tick` says what to carry where, `told` hears what
came of it, `answer` speaks for the peer. Several errands may be under way at a time; each comes
back once, with a reply or an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tacit.channels.consortium.local_model import Local
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.errands import Errand
from tacit.channels.peers.exposure import require_listed
from tacit.channels.peers.fetching import Fetching
from tacit.channels.peers.gossiping import Gossiping
from tacit.channels.peers.handing_out import HandingOut
from tacit.channels.peers.initiation import Initiation, called_off
from tacit.channels.peers.inviters import Inviters
from tacit.channels.peers.letters import Accept, Begin, Decline, Form, Invite, Off
from tacit.channels.peers.library import Library
from tacit.channels.peers.membership import Membership
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication, checked
from tacit.channels.peers.purse import Purse
from tacit.channels.peers.rest import Rest
from tacit.channels.peers.seats import NAME, said_by_its_owner
from tacit.channels.peers.solo import publication_alone
from tacit.channels.peers.view import View
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, Refused, TacitError, Unreachable
from tacit.privacy.noise import uniform_below

__all__ = ["Errand", "Peer"]

OLDEST = 30  # cycles after which a descriptor is given up
LONGEST_WAIT = 8  # cycles before the next attempt at a group, at most; drawn at random


class Peer:
    """One peer of one network.

    local      the model trained on its own records, and of how many; None: too few, or none
    purse      what it may spend on them
    starts     whether it brings groups together itself, besides joining others'
    """

    def __init__(
        self,
        pact: Pact,
        key: SigningKey,
        address: str,
        library: Library,
        purse: Purse | None,
        local: Local | None,
        now: float,
        *,
        tags: tuple[str, ...] = (),
        starts: bool = True,
        per_origin: int | None = None,
        randomness: Randomness = SYSTEM,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        if not pact.admits(key.public_key):
            raise Refused(f"network {pact.name}: this key is not among those that may take part.")
        require_listed(pact)
        self.pact, self.library, self._address = pact, library, address
        self.key, self._key = key.public_key, key
        self._purse, self._local, self._tags = purse, local, tuple(sorted(set(tags)))
        self._starts, self._randomness, self._tell = starts, randomness, tell
        self.view = View(
            key.public_key,
            pact.view,
            self._admitted,
            round(1000 * OLDEST * pact.cycle),
            per_origin or max(1, pact.view // 10),
            randomness,
        )
        self.membership: Membership | None = None
        self._initiation: Initiation | None = None
        self._fetching = Fetching(pact, library, self._tags, tell)
        self._gossips = now + self._soon(1.0)
        self._starts_at = now + self._soon(LONGEST_WAIT)
        self.groups = 0
        self._rest = Rest(tell)
        self._inviters = Inviters(pact.cycle, pact.patience)
        self._gossiping = Gossiping(self.view, self._fetching, self.descriptor, tell)
        self._handing_out = HandingOut()

    # ── what it says of itself ──

    @property
    def able(self) -> bool:
        """Whether it could take part in an aggregation: it has a model and can pay, and a tag where
        groups are formed by tags."""
        if self._local is None or self._purse is None or not self._common_tags:
            return False
        return self._purse.able

    def descriptor(self, now: float) -> Descriptor:
        return Descriptor.signed(
            self._key, self.pact.digest, self._address, round(1000 * now), self._tags, self.able
        )

    def renew(self, local: Local | None, purse: Purse | None) -> None:
        """Another part was begun, by its owner's word: another model, and a budget of its own."""
        self._local, self._purse = local, purse
        self._rest.end()

    @property
    def rests(self) -> bool:
        """Whether nothing more can happen for now."""
        return self._rest.is_on

    @property
    def deadline(self) -> float:
        """When `tick` has something to do at the latest."""
        moments = [self._gossips]
        if self.membership is not None:
            moments.append(self.membership.moment)
        elif self._starts and self.able and not self.rests:
            moments.append(self._starts_at)
        return min(moments)

    # ── time ──

    def tick(self, now: float) -> list[Errand]:
        """What is due."""
        found = self._tend_group(now)
        if now >= self._gossips:
            self._rest_or_wake()
            self._gossips = now + self.pact.cycle * (0.5 + self._chance())
            found += self._gossiping.exchange(now)
        if self.membership is None and now >= self._starts_at:
            found += self._start(now)
        return found

    def _tend_group(self, now: float) -> list[Errand]:
        member = self.membership
        if member is None:
            return []
        if member.curator is not None:
            member.curator.tick(now)
            self._handing_out.keep(member.curator, now)
            if member.curator.failure is not None:
                member.let_go(str(member.curator.failure))
        if member.result is not None and not member.over:
            self._publish(member.result, now)
            member.end()
        elif now >= member.deadline:
            member.let_go("it took too long")
        if self._initiation is not None and self._initiation.failed:
            member.let_go(self._initiation.failed)
        if member.over:
            self._leave(member, now)
            return []
        return self._turns(member, now)

    def _leave(self, member: Membership, now: float) -> None:
        if member.initiator != self.key:
            self._inviters.left(member, now)
        self.membership = self._initiation = None
        self._starts_at = now + self._soon(LONGEST_WAIT)

    def _turns(self, member: Membership, now: float) -> list[Errand]:
        if member.study is None:
            return []
        curator = member.study.aggregator
        to = Descriptor(curator.key, curator.address, 0, (), True)
        return [Errand(to, letter, member) for letter in member.turns(now)]

    def greet(self, to: Descriptor, now: float) -> Errand:
        """An exchange with somebody."""
        return self._gossiping.greet(to, now)

    # ── groups ──

    def _start(self, now: float) -> list[Errand]:
        self._starts_at = now + self._soon(LONGEST_WAIT)
        if not self._starts or not self.able or self.rests:
            return []
        group = fresh_seed(self._randomness).hex()
        tag = self._common_tags[self._below(len(self._common_tags))]
        try:
            if self.pact.group_size == 1:
                self._publish_alone(group, tag, now)
                return []
            member = self._member(group, tag, self.key, now)
        except Refused:  # the ledger has changed meanwhile
            return []
        own = member.seat.descriptor
        self.membership = member
        self._initiation = Initiation(member, own, partial(self._others, tag))
        letters = self._initiation.start()
        if self._initiation.failed:
            self._give_up(now)
        return [Errand(to, letter, group=group) for to, letter in letters]

    def _give_up(self, now: float) -> None:
        """Our group did not come together."""
        assert self._initiation is not None
        assert self.membership is not None
        self.membership.let_go(self._initiation.failed)
        self._rest.failed(self._initiation)
        self._leave(self.membership, now)

    def _rest_or_wake(self) -> None:
        """Once a cycle: rest without budget, go on when there are others to go on with."""
        if self.membership is not None:
            return
        if not self.able:
            self._rest.begin("no records of its own, or no budget for another aggregation")
        elif self.rests and any(self._has_company(tag) for tag in self._common_tags):
            self._rest.end()

    def _has_company(self, tag: str) -> bool:
        fitting = sum(_fits(one, tag) for one in self.view.descriptors)
        return fitting >= self.pact.group_size - 1

    def _others(self, tag: str, count: int, without: set[str]) -> list[Descriptor]:
        return self.view.sample(count, lambda one: _fits(one, tag) and one.key not in without)

    @property
    def _common_tags(self) -> tuple[str, ...]:
        """One of them the members of a group of ours have in common; "" where tags do not count."""
        return self._tags if self.pact.publish == "tags" else ("",)

    def _member(self, group: str, tag: str, initiator: str, now: float) -> Membership:
        assert self._local is not None
        assert self._purse is not None
        budget = self._purse.budget(group)
        return Membership(
            self.pact,
            group,
            tag,
            initiator,
            self._key,
            self.descriptor(now),
            self._local,
            budget,
            now,
            self._tell,
            self._randomness,
        )

    def _publish_alone(self, group: str, tag: str, now: float) -> None:
        assert self._local is not None
        assert self._purse is not None
        budget, own = self._purse.budget(group), self.descriptor(now)
        budget.reserve(1)
        budget.spend(1)
        seat, model, text = publication_alone(
            self.pact, group, tag, self._key, own, self._local, self._randomness
        )
        # First the model, then the bill: a full disk leaves no bill without a model.
        self._publish(Publication(group, tag, [seat], [], model, text), now)
        budget.settle(text)

    def _publish(self, publication: Publication, now: float) -> None:
        """What others would refuse is not kept, whoever made it."""
        body = write(publication)
        checked(self.pact, body)
        self.groups += 1
        if not self.library.add(publication.id, publication.tag, True, body, now):
            self._fetching.compare(publication, body)
        self._tell("model published", group=publication.group[:16])

    # ── what others ask ──

    def answer(self, sender: str, letter: Letter, now: float) -> Letter:
        """The reply to an authentic letter of the network."""
        answers: dict[str, Callable[[str, Letter, float], Letter]] = {
            "gossip": self._gossiping.answer,
            "models": lambda sender, letter, now: self._fetching.answer(letter),
            "invite": self._answer_invite,
            "form": self._answer_form,
            "begin": self._answer_begin,
            "off": self._answer_off,
        }
        if letter.kind not in answers:
            raise InputError(f"a peer does not answer letters of kind {letter.kind}.")
        if not self.pact.admits(sender):
            raise Refused("this key is not among those that may take part.")
        return answers[letter.kind](sender, letter, now)

    def answer_group(self, study: str, sender: str, letter: Letter, now: float) -> Letter:
        """As the curator of the group whose study has this digest."""
        member = self.membership
        curator = None if member is None else member.curator
        if curator is None or curator.study.digest != study:
            return self._handing_out.answer(study, sender, letter)
        curator.tick(now)
        reply = curator.answer(sender, letter, now)
        curator.tick(now)
        return reply

    def _answer_invite(self, sender: str, letter: Letter, now: float) -> Letter:
        invite = read(Invite, letter.body)
        if invite.initiator.key != sender or not self._admitted(invite.initiator):
            raise Refused("an invitation comes from its initiator.")
        if not NAME.fullmatch(invite.group):
            raise InputError("a group is named by 64 hexadecimal digits.")
        member = self.membership
        if member is not None:
            if (member.group, member.initiator) == (invite.group, sender):  # told twice
                return Letter("accept", 0, write(Accept(member.seat)))
            return Letter("decline", 0, write(Decline("busy")))
        willing = self._inviters.welcome(sender, now) and invite.tag in self._common_tags
        if not willing or not self.able:
            return Letter("decline", 0, write(Decline("unable")))
        self.membership = self._member(invite.group, invite.tag, sender, now)
        return Letter("accept", 0, write(Accept(self.membership.seat)))

    def _answer_form(self, sender: str, letter: Letter, now: float) -> Letter:
        form = read(Form, letter.body)
        return Letter("reveal", 0, write(self._in_group(form.group, sender).form(form.seats, now)))

    def _answer_begin(self, sender: str, letter: Letter, now: float) -> Letter:
        begin = read(Begin, letter.body)
        self._in_group(begin.group, sender).begin(begin.seeds, begin.signatures, now)
        return Letter("begun", 0)

    def _answer_off(self, sender: str, letter: Letter, now: float) -> Letter:
        """Before it has begun, whoever invited us may let us go."""
        member = self._in_group(read(Off, letter.body).group, sender)
        if member.study is None:
            member.let_go("it was called off")
            self._leave(member, now)
        return Letter("noted", 0)

    def _in_group(self, group: str, initiator: str) -> Membership:
        member = self.membership
        if member is None or (member.group, member.initiator) != (group, initiator):
            raise Refused("we are not, or no longer, in this group of this initiator.")
        return member

    # ── what others answered ──

    def told(self, errand: Errand, reply: Letter | TacitError, now: float) -> list[Errand]:
        """What came of an errand; what follows from it."""
        if errand.member is not None:
            errand.member.told(errand.letter, reply, now)
            return self._tend_group(now) if errand.member is self.membership else []
        match errand.letter.kind:
            case "gossip":
                return self._gossiping.told(errand.to, reply, now)
            case "models":
                self._fetching.told(errand.letter, reply, now)
                return []
            case _:
                return self._told_group(errand, reply, now)

    def _told_group(self, errand: Errand, reply: Letter | TacitError, now: float) -> list[Errand]:
        if isinstance(reply, Unreachable):
            self.view.forget(errand.to.key)
        initiation = self._initiation
        if errand.letter.kind == "off":
            return []
        if initiation is None or initiation.group != errand.group:
            # An answer to an attempt that is given up: whoever accepts it is told so.
            late = isinstance(reply, Letter) and reply.kind == "accept"
            return [Errand(errand.to, called_off(errand.group))] if late else []
        letters = initiation.told(errand.to, reply, now)
        if initiation.failed and self.membership is not None:
            self._give_up(now)
            return [Errand(to, letter) for to, letter in letters]
        if initiation.is_over:
            self._rest.succeeded()
        onward = [Errand(to, letter, group=errand.group) for to, letter in letters]
        return onward + self._tend_group(now)

    # ── chance ──

    def _admitted(self, descriptor: Descriptor) -> bool:
        return self.pact.admits(descriptor.key) and said_by_its_owner(descriptor, self.pact.digest)

    def _below(self, limit: int) -> int:
        return int(uniform_below(limit, 1, self._randomness)[0])

    def _chance(self) -> float:
        return self._below(2**32) / 2**32

    def _soon(self, cycles: float) -> float:
        return self._chance() * cycles * self.pact.cycle


def _fits(one: Descriptor, tag: str) -> bool:
    """Whether it may be asked into a group with this tag."""
    return one.able and (not tag or tag in one.tags)
