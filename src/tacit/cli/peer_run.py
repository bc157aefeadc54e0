"""Running a peer: its folder, its records, its ledger, and the loop."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.terms import joint_cost
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.holdings import Holdings
from tacit.channels.peers.library import Library, UsedPart
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.peer import Peer
from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.peers.service import PeerService
from tacit.channels.peers.status import status_of
from tacit.channels.peers.vetting import set_aside_unsound
from tacit.channels.studies.checks import parallel_problem
from tacit.cli.keys import key_named
from tacit.cli.output import people, print_document
from tacit.cli.peer import agreed_pact, contact
from tacit.cli.peer_predict import OWN
from tacit.cli.peer_words import pact_in_words, private_folder, write_private
from tacit.cli.roles import Role
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, UsageError
from tacit.home import ledger_path, tacit_home
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy import LeftOut
from tacit.programs.model_file import model_bytes
from tacit.wire.loop import run
from tacit.wire.tls import is_loopback

__all__ = ["run_peer"]

EVERYWHERE = ("0.0.0.0", "::")
STATUS = 2.0  # seconds between two looks at how it is going
STILL = 6  # cycles of rest, with nothing new, after which --until-rest ends
UNMET = 10  # times as many for one that cannot take part, and has met nobody yet


def run_peer(as_json: bool, **options: Any) -> None:
    key = key_named(options["key_name"])
    pact = agreed_pact(options, key)
    folder = options["folder"] or tacit_home() / "peers" / pact.name
    private_folder(folder)
    role = Role(pact, "peer", folder, as_json)
    private_folder(folder)  # with what was just made
    write_private(folder / "pact.json", pact.to_bytes())
    running = _Running(pact, key, folder, role, options)
    people(as_json=True).print(pact_in_words(pact), markup=False)
    run(running.run())
    if as_json:
        print_document(running.status)
    else:
        people().print(f"at rest: {running.status['models']} models are here", markup=False)


class _Running:
    """One run of a peer."""

    def __init__(
        self, pact: Pact, key: SigningKey, folder: Path, role: Role, options: dict[str, Any]
    ) -> None:
        self._pact, self._key, self._folder, self._role = pact, key, folder, role
        self._options = options
        self._library = Library(folder / "library.db", pact.digest, at_work=True)
        self._ledger = Ledger(options["ledger_file"] or ledger_path())
        self._holdings = Holdings(pact, options["data_path"], self._left_out)
        self._peer: Peer | None = None
        self._own: Any = None
        self._noted = 0.0
        self._dataset: str | None = None  # of the ledger; None: there is nothing to pay for
        self._met = False
        self._calm: float | None = None
        self._seen = -1
        self.status: dict[str, Any] = {}

    async def run(self) -> None:
        try:
            await self._take_part()
        finally:
            self._library.close()

    async def _take_part(self) -> None:
        host, port = _host_port(self._options["listen"], self._options["address"])
        if self._options["new_part"] and not self._options["follow"]:
            raise UsageError("--new-part begins another part of a file that grows: say --follow.")
        set_aside_unsound(self._pact, self._library, self._role.tell)
        local, purse = self._part()  # what is wrong with it is said before anybody hears of us
        service = PeerService(self._pact, self._key, host, port, self._role.tell)
        await service.start()
        try:
            named = f"[{host}]" if ":" in host else host
            address = self._options["address"] or f"https://{named}:{service.port}"
            self._peer = self._made(address, local, purse)
            self._role.tell("reachable", address=f"{address}={self._key.public_key}")
            await service.run(self._peer, self._bootstrap(), self._each)
        finally:
            await service.stop()
            if self._peer is not None and self._peer.membership is not None:
                self._peer.membership.let_go("this peer was stopped")
            self.note()

    def _made(self, address: str, local: Local | None, purse: LedgerPurse | None) -> Peer:
        near = is_loopback(urlsplit(address).hostname or "")
        made = Peer(
            self._pact,
            self._key,
            address,
            self._library,
            purse,
            local,
            time.time(),
            tags=self._options["tags"],
            per_origin=self._pact.view if near else None,
            tell=self._role.tell,
        )
        made.descriptor(time.time())  # refuses an address or a tag that is none, before it costs
        return made

    def _bootstrap(self) -> Descriptor | None:
        if self._options["bootstrap"] is None:
            return None
        known = contact(self._options["bootstrap"])
        return Descriptor(known.key, known.address, 0, (), True)

    def _part(self) -> tuple[Local | None, LedgerPurse | None]:
        """The model of our records, or of those that are new; and what may be spent on them."""
        if self._options["data_path"] is None:
            return None, None
        if not self._found():
            raise InputError(self._too_few())
        return self._model()

    def _too_few(self) -> str:
        """Whoever takes part with records says to all that there are enough. How many there are
        is private, so it is settled here, before anybody hears of us."""
        new = "new " if self._options["new_part"] else ""
        return (
            f"{self._options['data_path']} has fewer than the {self._pact.smallest} {new}records "
            f"that network {self._pact.name} needs of everybody who takes part with records. Start "
            "without --data to get models and give none, and with it when there are enough."
            f"{' To go on with the part before, leave --new-part out.' if new else ''}"
        )

    @property
    def _payer(self) -> str:
        """The data set of the ledger that pays."""
        return str(self._options["dataset"] or self._options["data_path"].stem)

    def _left_out(self) -> LeftOut:
        return self._ledger.decisions.left_out(self._payer)

    def _model(self) -> tuple[Local, LedgerPurse]:
        pact, dataset = self._pact, self._payer
        self._ledger.balance(dataset, pact.promise.unit)  # refused, if nobody has set a budget
        if pact.publish == "tags" and not self._options["tags"]:
            raise UsageError(
                f"network {pact.name} forms groups of peers that have a tag in common: give yours, "
                "with --tag."
            )
        local = self._holdings.trained()
        self._own = pact.averaged.model(local.vector, pact.schema)
        write_private(self._folder / OWN, model_bytes(self._own, pact.averaged, pact.schema))
        # New records are other records, but the same holder's; and one that is exchanged may be
        # among the old ones or among the new.
        apart = self._options["follow"] and parallel_problem(pact.promise) is None
        part = self._holdings.part if apart else None
        purse = LedgerPurse(
            pact.promise,
            self._ledger,
            dataset,
            pact.digest,
            part,
            self._library.identity,
            joint_cost(pact.averaged, pact.schema, pact.promise, pact.smallest),
            self._holdings.digests,
            pact.asked,
        )
        self._dataset = dataset
        return local, purse

    def _found(self) -> bool:
        """Whether there are records to train on; with --follow, those of the noted part. Another
        part is begun when its owner says so, never because there are enough records: how many
        there are would show in what we say of ourselves."""
        if not self._options["follow"]:
            return self._holdings.read()
        goes_on = self._goes_on()
        if goes_on and not self._options["new_part"]:
            return True
        if not self._holdings.read():
            return False
        if goes_on:
            self._role.tell("new records", part=self._holdings.part)
        if self._library.used() is None:
            self._library.count_anew()
        self._note_used()
        return True

    def _goes_on(self) -> bool:
        """Whether a part was noted, which is ours again then."""
        part = self._library.used() or self._noted_in_file()
        if part is None:
            return False
        self._holdings.restore(part.first, part.used, part.mark)
        if not part.mark:
            name = self._options["data_path"].name
            self._role.tell("file adopted", file=name, records=part.used)
        if self._library.used() is None:
            self._note_used()
        return True

    def _noted_in_file(self) -> UsedPart | None:
        """As version 0.1 has noted it. Once it is taken over, the file is not read any more."""
        file = self._folder / "used.json"
        return UsedPart(*json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None

    def _note_used(self) -> None:
        own = self._holdings
        self._library.use(UsedPart(own.first, own.used, own.mark))

    def _each(self, now: float) -> bool:
        assert self._peer is not None
        if now - self._noted > STATUS:
            self.note()
        return bool(self._options["until_rest"]) and self._is_still(now)

    def _is_still(self, now: float) -> bool:
        """At rest for some cycles, with nothing new. Who could take part waits for the first other:
        a network of one has not come to rest, it has not begun."""
        assert self._peer is not None
        models, others = len(self._library.ids()), self._peer.view.descriptors
        self._met = self._met or bool(others)
        waits = self._peer.able and not (self._peer.rests and self._met)
        if waits or self._peer.membership is not None or models != self._seen:
            self._seen, self._calm = models, None
            return False
        self._calm = self._calm or now
        hopes = 3 if any(one.able for one in others) else 1
        return now - self._calm > STILL * self._pact.cycle * (hopes if self._met else UNMET)

    def note(self) -> None:
        """Write down how it is going."""
        if self._peer is None:
            return
        self._noted = time.time()
        found = status_of(self._peer, self._own, self._holdings.records)
        if self._dataset is not None:
            balance = self._ledger.balance(self._dataset, self._pact.promise.unit)
            found["epsilon_spent"] = float(balance.spent.epsilon)
            found["epsilon_allowed"] = float(balance.allowed.epsilon)
        self.status = found
        write_private(self._folder / "status.json", found)


def _host_port(text: str, address: str | None) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--listen {text!r}: give host:port, such as 0.0.0.0:8443.")
    host = host.strip("[]")
    if host in EVERYWHERE and address is None:
        raise UsageError(
            f"--listen {text}: others cannot call you by this. Say how they reach you: "
            "--address https://host:port"
        )
    return host, int(port)
