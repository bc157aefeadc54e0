"""`tacit peer simulate`: a whole network on virtual time, and what its peers learn."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.channels.consortium.local_model import Local
from tacit.channels.peers.advice import suggested
from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.peer import Peer
from tacit.channels.peers.purse import CountedPurse
from tacit.channels.peers.simulation import Simulation
from tacit.channels.peers.status import accuracy, ensemble_of
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.tables import Chosen, Terms
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.errors import InputError
from tacit.privacy.noise import permutation
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

__all__ = ["Outcome", "draw", "simulated"]

TESTED = 0.2  # of the records are kept to test on
MOST = 500.0  # cycles that a network has to come to rest
CLOSELY = 40  # cycles during which accuracy is looked at in each, for the picture; then in each
SELDOM = 10  # of so many


@dataclass
class Outcome:
    """What happened: figures, and accuracy over virtual time."""

    document: dict[str, Any] = field(default_factory=dict)
    moments: list[float] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    models: list[float] = field(default_factory=list)
    own: float = 0.0
    newcomers: list[tuple[float, float]] = field(default_factory=list)


class _World:
    """Records, a pact, and peers that hold them."""

    def __init__(self, terms: dict[str, Any]) -> None:
        self.terms = terms
        self.sim = Simulation(terms["seed"])
        self.pact, self.train, self.test = self._agreed()
        self.owns: dict[str, tuple[Any, Encoded]] = {}
        self._known: dict[tuple[str, ...], float] = {}

    def _agreed(self) -> tuple[Pact, Encoded, Encoded]:
        from tacit.data.datasets import load_dataset
        from tacit.data.records import TableRecords, whole

        terms = self.terms
        data = load_dataset(terms["dataset"])
        promise = Promise(terms["epsilon"], terms["delta"])
        length = AveragedLogistic().length(data.schema)
        size = terms["group_size"]
        advice = suggested(terms["count"], terms["records"], length, promise, 1, size)
        settings = {"penalty": advice.penalty, "records": "rooted", "radius": advice.radius}
        pact = Pact(
            name="simulated",
            question=f"What do {terms['count']} peers learn from {terms['dataset']}?",
            chosen=Chosen(name="averaged-logistic", version=1, settings=settings),
            terms=Terms(epsilon=terms["epsilon"], delta=terms["delta"]),
            group_size=size,
            smallest=terms["records"],
            publish=terms["publish"],
            view=max(20, size - 1),
            schema=data.schema,
        )
        records = TableRecords(data.train, pact.averaged.encoder(pact.schema))
        everything = whole(records)
        wanted = terms["count"] * terms["records"]
        kept = round(TESTED * len(everything.X))
        if wanted > len(everything.X) - kept:
            raise InputError(
                f"{terms['dataset']} has {len(everything.X)} records: {wanted} for the peers and a "
                "fifth to test on are too many. Take fewer peers, or fewer --records."
            )
        order = permutation(len(everything.X), SeededRandomness(terms["seed"]))
        return pact, _rows(everything, order[kept : kept + wanted]), _rows(everything, order[:kept])

    def peer(self, number: int, records: Encoded | None) -> Peer:
        randomness = SeededRandomness(f"{self.terms['seed']} {number}")
        key = SigningKey.generate(randomness)
        local = purse = None
        if records is not None:
            vector = self.pact.averaged.train(records, self.pact.schema)
            local, purse = Local(vector, len(records.X)), CountedPurse(self.terms["aggregations"])
            model = self.pact.averaged.model(vector, self.pact.schema)
            self.owns[key.public_key] = model, records
        made = Peer(
            self.pact,
            key,
            f"https://10.{number // 250}.{number % 250}.1:8443",
            Library(MEMORY, self.pact.digest),
            purse,
            local,
            self.sim.now,
            randomness=randomness,
        )
        first = next(iter(self.sim.peers.values()), None)
        self.sim.add(made, None if first is None else first.descriptor(self.sim.now))
        return made

    def accuracies(self) -> list[float]:
        """Of every peer with records, on the same test records."""
        return [self.accuracy(peer) for peer in self.sim.peers.values() if peer.key in self.owns]

    def accuracy(self, peer: Peer) -> float:
        """On the test records. It changes with the peer's models only."""
        has = (peer.key, *peer.library.ids())
        if has not in self._known:
            own, records = self.owns.get(peer.key, (None, None))
            judged = records if self.terms["weighed"] else None
            ensemble = ensemble_of(self.pact, peer.library, own, judged)
            self._known[has] = accuracy(ensemble, self.test) or 0.0
        return self._known[has]


def simulated(console: Console, **terms: Any) -> Outcome:
    """Let a network live until it rests; what its peers know then."""
    world, outcome = _World(terms), Outcome()
    size = terms["records"]
    for number in range(terms["count"]):
        world.peer(number, _rows(world.train, np.arange(number * size, (number + 1) * size)))
    outcome.own = float(np.mean(world.accuracies()))
    cycle = world.pact.cycle
    with console.status("peers meet …") as status:
        _note(world, outcome)
        for look in _looks():
            world.sim.run(lambda: _is_still(world), most=look * cycle)
            _note(world, outcome)
            models = outcome.models[-1]
            status.update(
                f"cycle {world.sim.now / cycle:.0f}: {models:.1f} models each, accuracy "
                f"{outcome.mean[-1]:.3f}"
            )
            if _is_still(world):
                break
        _newcomers(world, outcome)
    found = world.accuracies()
    spent = [p._purse.spent for p in world.sim.peers.values() if isinstance(p._purse, CountedPurse)]
    outcome.document = {
        **{name: value for name, value in terms.items() if name != "count"},
        "peers": terms["count"],
        "penalty": world.pact.chosen.settings["penalty"],
        "cycles": world.sim.now / cycle,
        "models": outcome.models[-1],
        "aggregations_paid": float(np.mean(spent)),
        "accuracy_alone": outcome.own,
        "accuracy": float(np.mean(found)),
        "between_peers": float(np.std(found)),
        "newcomers_accuracy": [value for _, value in outcome.newcomers] or None,
    }
    return outcome


def _looks() -> list[float]:
    """The cycles at which to look."""
    return [*np.arange(1.0, CLOSELY), *np.arange(CLOSELY, MOST + 1, SELDOM)]


def _newcomers(world: _World, outcome: Outcome) -> None:
    """Peers without a record join late, and get what was published."""
    for number in range(world.terms["newcomers"]):
        peer = world.peer(world.terms["count"] + number, None)
        joined = world.sim.now
        world.sim.run(partial(_has_models, peer), most=joined + 20 * world.pact.cycle)
        world.sim.run(most=world.sim.now + 3 * world.pact.cycle)
        outcome.newcomers.append((world.sim.now / world.pact.cycle, world.accuracy(peer)))


def _has_models(peer: Peer) -> bool:
    return bool(peer.library.ids())


def _note(world: _World, outcome: Outcome) -> None:
    found = world.accuracies()
    outcome.moments.append(world.sim.now / world.pact.cycle)
    outcome.mean.append(float(np.mean(found)))
    outcome.low.append(float(np.min(found)))
    outcome.high.append(float(np.max(found)))
    sizes = [len(peer.library.ids()) for peer in world.sim.peers.values()]
    outcome.models.append(float(np.mean(sizes)))


def _is_still(world: _World) -> bool:
    peers = world.sim.peers.values()
    if not all((peer.rests or not peer.able) and peer.membership is None for peer in peers):
        return False
    return world.pact.publish == "participants" or len({*map(_size, peers)}) == 1


def _size(peer: Peer) -> int:
    return len(peer.library.ids())


def _rows(records: Encoded, places: Any) -> Encoded:
    return Encoded(*(None if c is None else c[places] for c in records))  # type: ignore[arg-type]


def draw(outcome: Outcome, path: Path) -> None:
    """Accuracy and models against virtual time."""
    from tacit.cli.crowd_view import figure_class

    figure = figure_class()(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    moments = outcome.moments
    left.fill_between(moments, outcome.low, outcome.high, color="#bfdbfe", label="all peers")
    left.plot(outcome.moments, outcome.mean, color="#1d4ed8", label="mean")
    left.axhline(outcome.own, color="#9aa5b1", linestyle="--", label="each alone, mean")
    if outcome.newcomers:
        arrived, values = zip(*outcome.newcomers, strict=True)
        left.plot(arrived, values, "o", color="#c2410c", label="newcomers without a record")
    left.set(xlabel="cycles", ylabel="accuracy", title="What peers know")
    left.legend(frameon=False, fontsize=8, loc="lower right")
    right.plot(outcome.moments, outcome.models, color="#1d4ed8")
    right.set(xlabel="cycles", ylabel="models", title="Models at each peer")
    figure.savefig(path, dpi=110)
