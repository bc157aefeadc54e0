"""The simulation follows the rule of real views, and shows what is claimed of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.network_simulation import CYCLE, OLDEST, Flood, Network
from tacit.channels.peers.view import View, _Held
from tacit.crypto.prg import SeededRandomness
from tacit.errors import UsageError

SIZE = 8
POOL = 20  # others that the two may know; they themselves are 20 and 21
ONE, OTHER = POOL, POOL + 1
NOW = 50 * CYCLE

# Whom each of the two knows, and how many milliseconds ago it was signed: different for everyone.
KNOWN = st.dictionaries(st.integers(0, POOL + 1), st.integers(1, 40), max_size=SIZE)


def grown(peers: int, size: int, seed: int, cycles: int, flood: Flood | None = None) -> Network:
    network = Network(peers, size, seed, flood)
    network.grow()
    for _ in range(cycles):
        network.cycle()
    return network


def about(number: int, born: int) -> Descriptor:
    return Descriptor(f"{number:064x}", f"https://p{number}.example:1", born, (), True)


def born(number: int, cycles: int) -> int:
    """No two ages are equal, so that chance decides nothing."""
    return NOW - cycles * CYCLE - number - 1


class TestTheSameRule:
    @settings(max_examples=300)
    @given(one=KNOWN, other=KNOWN)
    def test_a_real_exchange_ends_as_a_simulated_one(
        self, one: dict[int, int], other: dict[int, int]
    ) -> None:
        known = {
            ONE: {number: age for number, age in one.items() if number != ONE},
            OTHER: {number: age for number, age in other.items() if number != OTHER},
        }
        assert _really(known) == _simulated(known)


def _really(known: dict[int, dict[int, int]]) -> dict[int, set[tuple[int, int]]]:
    views = {}
    for number, others in known.items():
        own = about(number, NOW).key
        views[number] = View(own, SIZE, lambda _: True, OLDEST, SIZE, SeededRandomness(number))
        views[number]._held = {  # any state there may be, however it came about
            about(n, 0).key: _Held(about(n, born(n, cycles)), born(n, cycles))
            for n, cycles in others.items()
        }
    offers = {number: view.offer(NOW, about(number, NOW)) for number, view in views.items()}
    for own, sender in ((ONE, OTHER), (OTHER, ONE)):
        views[own].merge(offers[sender], about(sender, NOW).key, NOW)
    return {
        number: {(int(d.key, 16), d.time) for d in view.descriptors}
        for number, view in views.items()
    }


def _simulated(known: dict[int, dict[int, int]]) -> dict[int, set[tuple[int, int]]]:
    network = Network(POOL + 2, SIZE, 1)
    network.now = NOW
    for number, others in known.items():
        network.owners[number] = -1
        for place, (n, cycles) in enumerate(others.items()):
            network.owners[number, place], network.born[number, place] = n, born(n, cycles)
    network.exchange(np.array([ONE]), np.array([OTHER]))
    found = {}
    for number in known:
        row = network.owners[number] != -1
        pairs = zip(network.owners[number][row], network.born[number][row], strict=True)
        found[number] = {(int(n), int(time)) for n, time in pairs}
    return found


class TestWaves:
    def test_a_seed_repeats_its_run(self) -> None:
        one, same, other = (grown(300, SIZE, seed, 5) for seed in (1, 1, 2))
        assert np.array_equal(one.owners, same.owners)
        assert not np.array_equal(one.owners, other.owners)

    def test_everyone_calls_once_a_cycle(self) -> None:
        network = grown(300, SIZE, 1, 3)
        before = network.exchanges
        network.cycle()
        assert network.exchanges - before == 300

    def test_views_hold_nobody_twice_and_never_their_owner(self) -> None:
        network = grown(300, SIZE, 1, 10)
        for owner, row in enumerate(network.owners):
            assert len(set(row) - {-1, owner}) == SIZE

    def test_too_small(self) -> None:
        with pytest.raises(UsageError, match="at least 2 peers"):
            Network(1, SIZE, 1)


class TestWhatIsClaimed:
    """At a tenth of the size at which `tacit bench peers-gossip` shows the same."""

    def test_half_may_vanish(self) -> None:
        network = grown(1000, 20, 1, 20)
        assert network.components() == 1
        network.vanish(0.5)
        assert network.dead_share() == pytest.approx(0.5, abs=0.03)
        parts = [network.components()]
        for _ in range(OLDEST // CYCLE + 1):
            network.cycle()
            parts.append(network.components())
        assert set(parts) == {1}
        assert network.dead_share() == 0.0

    def test_components_are_counted(self) -> None:
        network = Network(6, 2, 1)
        network.alive[:] = True
        network.owners[:] = -1
        network.owners[[0, 1, 3], 0] = [1, 2, 4]  # 0→1→2, 3→4, 5
        assert network.components() == 3
        network.alive[1] = False
        assert network.components() == 4  # 0, 2, 3→4, 5

    def test_nobody_is_known_to_many_more_than_others(self) -> None:
        """A random graph's spread would be √20 = 4.5; Newscast's is known to be wider."""
        degrees = grown(1000, 20, 1, 30).in_degrees()
        assert degrees.mean() == 20.0
        assert degrees.min() >= 1
        assert degrees.std() < 2.2 * math.sqrt(20)

    def test_picks_fall_on_all_alike(self) -> None:
        """False alarms once in 10,000 seeds."""
        assert chisquare(_picks(None)).pvalue > 1e-4

    def test_they_would_not_if_some_were_always_freshest(self) -> None:
        assert chisquare(_picks(Flood(liars=5, origins=5, per_origin=1))).pvalue < 1e-12

    def test_news_travels_in_logarithmic_time(self) -> None:
        cycles = [len(grown(n, 20, 1, 15).spread(0, 0.99)) - 1 for n in (100, 1000)]
        assert cycles[0] <= 2 * math.log2(100)
        assert cycles[1] - cycles[0] <= 2 * math.log2(10)

    def test_two_halves_find_together_again(self) -> None:
        network = grown(300, 12, 1, 10)
        network.apart = True
        for _ in range(2 * OLDEST // CYCLE):
            network.cycle()
        assert network.components() == 2
        network.apart = False
        for _ in range(5):
            network.cycle()
        assert network.components() == 1


def _picks(flood: Flood | None) -> np.ndarray:
    """How often each is picked, by every eighth peer in every fourth cycle: seldom enough for picks
    to be nearly independent, although in-degrees change slowly."""
    network = grown(200, 12, 1, 20, flood)
    counts = np.zeros(200, dtype=np.int64)
    for cycle in range(400):
        network.cycle()
        if cycle % 4 == 0:
            np.add.at(counts, network.chosen(np.arange(cycle % 8, 200, 8)), 1)
    return counts


class TestFloods:
    def test_one_block_of_addresses_gets_its_share_and_no_more(self) -> None:
        """A tenth of the places, two of twenty, although the liars are a tenth of all peers and
        always freshest."""
        flooded = grown(500, 20, 1, 30, Flood(liars=50, origins=1, per_origin=2))
        assert flooded.liars_share() <= 2 / 20
        unbounded = grown(500, 20, 1, 30, Flood(liars=50, origins=1, per_origin=20))
        assert unbounded.liars_share() > 0.8

    def test_many_blocks_are_not_resisted(self) -> None:
        """What remains, and is said in view.md."""
        flooded = grown(500, 20, 1, 30, Flood(liars=50, origins=50, per_origin=2))
        assert flooded.liars_share() > 0.8
