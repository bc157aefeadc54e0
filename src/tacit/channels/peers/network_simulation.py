"""The views of ten thousand peers at once, on virtual time, from a seed: gossip and nothing else.

Peers are numbers, and a view is a row of them with the time each was signed at; signatures are left
out. What is kept after an exchange is decided by the function that real views ask (freshest.py).

Exchanges go in waves in which no peer takes part twice: the result is that of exchanging one after
another, in the order of the wave. A wave is computed at once, which is what makes it fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tacit.channels.peers.acquaintances import PATIENCE, PLACES
from tacit.channels.peers.freshest import ABSENT, TIE_BITS, Integers, freshest, thinned
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.errors import UsageError
from tacit.privacy.noise import uniform_below

__all__ = ["CYCLE", "OLDEST", "RECALLED", "Flood", "Network"]

CYCLE = 1_024  # virtual milliseconds
OLDEST = 30 * CYCLE
RECALLED = 8  # one call in so many goes to an acquaintance
WAVES = 16  # in a cycle; a few more, if many want the same peer

_NOBODY = -1

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Flood:
    """The last `liars` peers to come offer nothing but one another, always signed just now.

    They sit in `origins` blocks of addresses, everyone else has a block of its own; a view takes at
    most `per_origin` of each.
    """

    liars: int
    origins: int
    per_origin: int


@dataclass
class Network:
    """`peers` views of `size` places, of whom two are there at first: `grow` brings the others."""

    peers: int
    size: int
    seed: int
    flood: Flood | None = None
    apart: bool = False  # while the line is broken, even and odd peers do not reach one another
    now: int = 0
    exchanges: int = 0
    alive: Flags = field(init=False)
    picked: Integers = field(init=False)  # how often each has been somebody's choice
    owners: Integers = field(init=False)  # whom each knows, freshest first, then nobody
    born: Integers = field(init=False)  # when those were signed

    def __post_init__(self) -> None:
        if self.peers < 2 or not 1 <= self.size < 1 << 15:
            raise UsageError(
                f"a network of {self.peers} peers with views of {self.size}: "
                "simulate at least 2 peers, with views of 1 or more."
            )
        self._chance: Randomness = SeededRandomness(f"peers {self.seed}")
        self.alive = np.arange(self.peers) < 2
        self.picked = np.zeros(self.peers, dtype=np.int64)
        self.owners = np.full((self.peers, self.size), _NOBODY, dtype=np.int64)
        self.born = np.zeros((self.peers, self.size), dtype=np.int64)
        self.owners[:2, 0] = [1, 0]
        self._honest = self.peers - (self.flood.liars if self.flood else 0)
        self._origins = self._blocks()
        self._salts = self._words(self.peers * PLACES).reshape(self.peers, PLACES)
        self._met = np.full((self.peers, PLACES), _NOBODY, dtype=np.int64)
        self._missed = np.zeros((self.peers, PLACES), dtype=np.int64)

    # ── what happens ──

    def grow(self) -> None:
        """Each cycle as many come as are there, until all are: each knows one random other."""
        there = 2
        while there < self.peers:
            coming = np.arange(there, min(2 * there, self.peers))
            self.owners[coming, 0] = self._met[coming, 0] = self._below(np.full(len(coming), there))
            self.born[coming, 0] = self.now
            self.alive[coming] = True
            there += len(coming)
            self.cycle()

    def cycle(self) -> None:
        """Everyone alive begins one exchange, in random order."""
        (waiting,) = np.nonzero(self.alive)
        waiting = waiting[np.argsort(self._words(len(waiting)))]
        end, step = self.now + CYCLE, -(-len(waiting) // WAVES)
        while len(waiting):
            callers, rest = waiting[:step], waiting[step:]
            again = self._wave(callers)
            waiting = np.concatenate([again, rest])
            self.now = min(self.now + CYCLE // WAVES, end)
        self.now = end

    def exchange(self, callers: Integers, called: Integers) -> None:
        """Each caller and whom it calls merge their views. Nobody may stand here twice."""
        both, others = np.concatenate([callers, called]), np.concatenate([called, callers])
        self.owners[both], self.born[both] = self._merged(both, others)
        self._meet(both)
        self.exchanges += len(callers)

    def vanish(self, share: float) -> None:
        """A random share of all peers is gone at once, and nobody is told."""
        gone = np.argsort(self._words(self.peers))[: round(share * self.peers)]
        self.alive[gone] = False

    def chosen(self, callers: Integers) -> Integers:
        """A random neighbour of each, or −1."""
        known = np.count_nonzero(self.owners[callers] != _NOBODY, axis=1)
        return np.where(known > 0, self.owners[callers, self._below(known)], _NOBODY)

    def spread(self, source: int, goal: float, limit: int = 100) -> list[float]:
        """After each cycle, the share of the living that a new model has reached.

        Whoever has it pushes it to one random neighbour a cycle, while views go on changing.
        """
        has = np.zeros(self.peers, dtype=np.bool_)
        has[source] = True
        shares = [float(has[self.alive].mean())]
        while shares[-1] < goal and len(shares) <= limit:
            (senders,) = np.nonzero(has & self.alive)
            reached = self.chosen(senders)
            has[reached[reached != _NOBODY]] = True
            self.cycle()
            shares.append(float(has[self.alive].mean()))
        return shares

    # ── what is seen ──

    def in_degrees(self) -> Integers:
        """How many of the living know each of the living."""
        known = self.owners[self.alive]
        return np.bincount(known[known != _NOBODY], minlength=self.peers)[self.alive]

    def components(self) -> int:
        """Into how many parts the living fall, if whoever knows another is joined to it."""
        row, place = np.nonzero((self.owners != _NOBODY) & self.alive[:, None])
        other = self.owners[row, place]
        joined = self.alive[other]
        ends = (row[joined], other[joined])
        graph = coo_array((np.ones(len(ends[0])), ends), shape=(self.peers, self.peers))
        count, _ = connected_components(graph, directed=True, connection="weak")
        return int(count) - int(np.count_nonzero(~self.alive))

    def dead_share(self) -> float:
        """The share of the living's places that the vanished still take."""
        known = self.owners[self.alive]
        known = known[known != _NOBODY]
        return float(np.mean(~self.alive[known])) if known.size else 0.0

    def liars_share(self) -> float:
        """The share of the honest peers' places that a flood has taken."""
        honest = self._honest
        known = self.owners[:honest]
        return float(np.mean(known[known != _NOBODY] >= honest))

    # ── how ──

    def _wave(self, callers: Integers) -> Integers:
        """The exchanges of these callers, as far as no two share a peer; who must wait."""
        called, place = self._calls(callers)
        reached = called != _NOBODY
        callers, called, place = callers[reached], called[reached], place[reached]
        turn = np.arange(len(callers))
        first = np.full(self.peers, len(callers))
        np.minimum.at(first, callers, turn)
        np.minimum.at(first, called, turn)
        free = (first[callers] == turn) & (first[called] == turn)
        np.add.at(self.picked, called[free & (place == _NOBODY)], 1)
        answers = free & self.alive[called]
        if self.apart:
            answers &= (callers - called) % 2 == 0
        if answers.any():
            self.exchange(callers[answers], called[answers])
        recalled = place != _NOBODY
        self._missed[callers[recalled & answers], place[recalled & answers]] = 0
        silent = recalled & free & ~answers
        self._miss(callers[silent], place[silent])
        waiting: Integers = callers[~free]
        return waiting

    def _miss(self, callers: Integers, place: Integers) -> None:
        """An acquaintance that has not answered too often makes room for another."""
        self._missed[callers, place] += 1
        lost = self._missed[callers, place] >= PATIENCE
        callers, place = callers[lost], place[lost]
        self._missed[callers, place] = 0
        self._met[callers, place] = _NOBODY
        self._salts[callers, place] = self._words(len(callers))

    def _calls(self, callers: Integers) -> tuple[Integers, Integers]:
        """Whom each calls: a neighbour, or an acquaintance, and then from which place."""
        lots = self._below(np.full(len(callers), RECALLED * PLACES))
        place = np.where(lots < PLACES, lots, _NOBODY)
        met = np.where(place == _NOBODY, _NOBODY, self._met[callers, place])
        return np.where(met == _NOBODY, self.chosen(callers), met), np.where(
            met == _NOBODY, _NOBODY, place
        )

    def _meet(self, peers: Integers) -> None:
        """Each place keeps whoever in the view has the smallest hash, or whom it had; the first
        place whom it had."""
        rows = np.arange(len(peers))
        for place in range(PLACES):
            seen = np.concatenate([self._met[peers, place][:, None], self.owners[peers]], axis=1)
            names = seen if self._origins is None else self._origins[seen]
            hashes = _mixed(names, self._salts[peers, place][:, None])
            hashes[seen == _NOBODY] = np.iinfo(np.uint64).max
            best = np.argmin(hashes, axis=1)
            if place == 0:
                best[seen[:, 0] != _NOBODY] = 0
            self._met[peers, place] = seen[rows, best]

    def _merged(self, own: Integers, others: Integers) -> tuple[Integers, Integers]:
        """The views of `own` after hearing from `others`: whom they know, and since when."""
        offered, fresh = self._offers(others)
        owners = np.concatenate([self.owners[own], offered], axis=1)
        ages = self.now - np.concatenate([self.born[own], fresh], axis=1)
        owners, ages, new = _one_of_each(owners, ages, self.size)
        ages[(owners == _NOBODY) | (owners == own[:, None]) | (ages > OLDEST)] = ABSENT
        ties = uniform_below(1 << TIE_BITS, ages.size, self._chance).reshape(ages.shape)
        if self._origins is not None and self.flood is not None:
            origins = np.where(owners == _NOBODY, _NOBODY, self._origins[owners])
            ages = thinned(ages, ties, origins, self.flood.per_origin)
        kept = freshest(ages, ties, new, self.size)
        nobody = kept == -1
        whom = np.take_along_axis(owners, kept, axis=1)
        since = self.now - np.take_along_axis(ages, kept, axis=1)
        return np.where(nobody, _NOBODY, whom), np.where(nobody, 0, since)

    def _offers(self, others: Integers) -> tuple[Integers, Integers]:
        """What each of them sends: itself, signed now, and whom it knows."""
        owners = np.concatenate([others[:, None], self.owners[others]], axis=1)
        born = np.concatenate([np.full((len(others), 1), self.now), self.born[others]], axis=1)
        lying = others >= self._honest
        if lying.any():
            owners[lying] = self._liars(others[lying])
            born[lying] = self.now
        return owners, born

    def _liars(self, senders: Integers) -> Integers:
        """Each sender, and random others of its kind, nobody twice."""
        honest, count = self._honest, self.peers - self._honest
        keys = self._words(len(senders) * count).reshape(len(senders), count)
        keys[np.arange(len(senders)), senders - honest] = -1  # the sender stands first
        some = honest + np.argsort(keys, axis=1)[:, : self.size + 1]
        filled = np.full((len(senders), self.size + 1), _NOBODY, dtype=np.int64)
        filled[:, : some.shape[1]] = some
        return filled

    def _blocks(self) -> Integers | None:
        if self.flood is None:
            return None
        blocks = np.arange(self.peers)
        blocks[self._honest :] = self._honest + np.arange(self.flood.liars) % self.flood.origins
        return blocks

    def _words(self, count: int) -> Integers:
        return uniform_below(1 << 62, count, self._chance)

    def _below(self, limits: Integers) -> Integers:
        """A random number below each limit, or 0 below 0; uneven by less than 2⁻¹⁶."""
        return uniform_below(1 << 32, len(limits), self._chance) * limits >> 32


def _one_of_each(owners: Integers, ages: Integers, held: int) -> tuple[Integers, Integers, Flags]:
    """Each row sorted by owner, with the freshest of each, and whether it was unknown.

    The first `held` columns are a peer's own view, in which nobody stands twice, nor in the rest.
    """
    received = np.arange(owners.shape[1]) >= held
    packed = np.sort((owners + 1) << 40 | ages << 1 | received, axis=1)
    owners, ages = (packed >> 40) - 1, packed >> 1 & (1 << 39) - 1
    twice = owners[:, 1:] == owners[:, :-1]
    new = (packed & 1).astype(np.bool_)
    new[:, :-1] &= ~twice
    ages[:, 1:][twice] = ABSENT
    return owners, ages, new


def _mixed(numbers: Integers, salts: Integers) -> NDArray[np.uint64]:
    """Hashes good enough to simulate with (Steele, Lea & Flood 2014, splitmix64's last steps)."""
    words = (numbers ^ salts).view(np.uint64)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
