"""Views: what is kept, what is refused, and that nobody is chosen more often than others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.channels.peers.descriptors import Descriptor, origin
from tacit.channels.peers.view import LARGEST_VIEW, SKEW, Sighting, View
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.noise import uniform_below

NETWORK = "ab" * 32
NOW = 10**12
OLDEST = 300_000
SIZE = 6


def key_of(number: int) -> str:
    return f"{number:064x}"


def about(number: int, time: int = NOW, host: str | None = None, able: bool = True) -> Descriptor:
    """Unsigned: most views here believe everybody."""
    return Descriptor(key_of(number), f"https://{host or f'p{number}.example'}:1", time, (), able)


def seen(number: int, age: int = 0, host: str | None = None) -> Sighting:
    return Sighting(about(number, NOW - age, host), age)


def make(
    size: int = SIZE,
    per_origin: int = 2,
    check: Callable[[Descriptor], bool] = lambda descriptor: True,
    seed: int = 1,
    own: int = 0,
) -> View:
    return View(key_of(own), size, check, OLDEST, per_origin, SeededRandomness(seed))


def known(view: View) -> set[int]:
    return {int(descriptor.key, 16) for descriptor in view.descriptors}


def told(view: View, *sightings: Sighting, now: int = NOW) -> View:
    view.merge(sightings, sightings[0].descriptor.key, now)
    return view


class TestWhatIsKept:
    def test_a_newcomer_takes_all(self) -> None:
        view = told(make(), seen(1), *(seen(number, 10 * number) for number in range(2, 7)))
        assert known(view) == {1, 2, 3, 4, 5, 6}

    def test_the_freshest_stay(self) -> None:
        view = told(make(), seen(1), *(seen(number, 1000 * number) for number in range(2, 7)))
        told(view, seen(7), seen(8, 500))
        assert known(view) == {1, 2, 3, 4, 7, 8}

    def test_one_source_replaces_at_most_half(self) -> None:
        view = told(make(), seen(1), *(seen(number, 1000) for number in range(2, 7)))
        told(view, *(Sighting(about(number), 0) for number in range(11, 18)))
        assert len(known(view) & set(range(11, 18))) == SIZE // 2
        assert len(known(view)) == SIZE

    def test_never_oneself(self) -> None:
        assert known(told(make(), seen(1), seen(0, 5))) == {1}

    def test_the_later_of_one_owner_stays(self) -> None:
        view = told(make(), seen(1), Sighting(about(2, NOW - 50), 50))
        told(view, seen(3), Sighting(about(2, NOW - 70), 0))  # signed earlier, said to be younger
        assert about(2, NOW - 50) in view.descriptors
        told(view, seen(3), Sighting(about(2, NOW - 20), 90))  # signed later, said to be older
        assert about(2, NOW - 20) in view.descriptors

    def test_nobody_makes_a_known_one_younger(self) -> None:
        view = told(make(), seen(1), seen(2, 4000))
        told(view, seen(3), Sighting(about(2, NOW - 4000), 0))
        ages = {s.descriptor.key: s.age for s in view.offer(NOW + 10, about(0))}
        assert ages[key_of(2)] == 4010

    def test_ages_grow_by_ones_own_clock(self) -> None:
        view = told(make(), seen(1), seen(2, 40))
        offer = view.offer(NOW + 60, about(0, NOW + 60))
        assert offer[0] == Sighting(about(0, NOW + 60), 0)
        assert {s.descriptor.key: s.age for s in offer[1:]} == {key_of(1): 60, key_of(2): 100}

    def test_a_clock_that_is_set_back_makes_no_negative_ages(self) -> None:
        view = told(make(), seen(1))
        assert [s.age for s in view.offer(NOW - 5000, about(0))] == [0, 0]

    def test_the_old_are_given_up(self) -> None:
        view = told(make(), seen(1), seen(2, OLDEST), seen(3, OLDEST + 1))
        assert known(view) == {1, 2}
        assert len(view.offer(NOW + 1, about(0))) == 2
        told(view, Sighting(about(4, NOW + 1), 0), now=NOW + 1)
        assert known(view) == {1, 4}

    def test_few_of_one_origin(self) -> None:
        crowd = [seen(number, number, "10.0.0.9") for number in range(2, 7)]
        view = told(make(), seen(1), *crowd)
        assert known(view) == {1, 2, 3}
        told(view, *(seen(number, 0, "10.0.0.7") for number in range(11, 16)))
        places = [origin(descriptor.address) for descriptor in view.descriptors]
        assert places.count("10.0.0.0/24") == 2


class TestClocks:
    @pytest.mark.parametrize("skew", [-SKEW, SKEW])
    def test_minutes_do_not_matter(self, skew: int) -> None:
        view = told(make(), Sighting(about(1, NOW + skew), 0))
        assert known(view) == {1}
        assert view.offer(NOW, about(0))[1].age == 0

    @pytest.mark.parametrize("skew", [-SKEW - 1, SKEW + 1])
    def test_more_is_said(self, skew: int) -> None:
        with pytest.raises(Refused, match="clocks differ by more than 5 minutes"):
            told(make(), Sighting(about(1, NOW + skew), 0))

    @pytest.mark.parametrize("skew", [-SKEW - 1, SKEW + 1])
    def test_a_third_ones_clock_is_not_the_senders_fault(self, skew: int) -> None:
        view = told(make(), seen(1), Sighting(about(2, NOW + skew - 30), 30))
        assert known(view) == {1}

    def test_a_dead_one_cannot_be_kept_alive_by_lies(self) -> None:
        """However young it is said to be, its signature is older than clocks may differ."""
        view = told(make(), seen(1), Sighting(about(2, NOW - SKEW - 1), 0))
        assert known(view) == {1}


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("sightings", "reason"),
        [
            ([], "begin with the sender's own"),
            ([seen(2), seen(1)], "begin with the sender's own"),
            ([seen(1, 5)], "begin with the sender's own"),
            ([seen(1), seen(2), seen(2, 5)], "one for each key"),
            ([seen(number) for number in range(1, SIZE + 3)], "at most 7 descriptors"),
            ([seen(1), Sighting(about(2), -1)], "negative"),
        ],
    )
    def test_what_no_honest_peer_sends(self, sightings: list[Sighting], reason: str) -> None:
        view = make()
        with pytest.raises(InputError, match=reason):
            view.merge(sightings, key_of(1), NOW)
        assert not view.descriptors

    def test_one_false_signature_spoils_the_offer(self) -> None:
        keys = [SigningKey.generate() for _ in range(3)]
        signed = [
            Descriptor.signed(key, NETWORK, f"https://p{place}.example:1", NOW)
            for place, key in enumerate(keys)
        ]
        view = make(check=lambda descriptor: descriptor.holds(NETWORK))
        view.merge([Sighting(signed[0], 0), Sighting(signed[1], 5)], signed[0].key, NOW)
        forged = Descriptor(
            signed[2].key, "https://evil.example:1", NOW, (), True, signed[2].signature
        )
        with pytest.raises(CheckFailed, match="not signed by its owner"):
            view.merge([Sighting(signed[0], 0), Sighting(forged, 0)], signed[0].key, NOW)
        assert set(view.descriptors) == set(signed[:2])

    def test_each_signature_is_checked_once(self) -> None:
        checked: list[str] = []

        def check(descriptor: Descriptor) -> bool:
            checked.append(descriptor.key)
            return True

        view = make(check=check)
        for source in (1, 2, 1):
            told(view, seen(source), *(seen(n, 9) for n in (3, 4)))
        view.forget(key_of(3))
        told(view, seen(1), Sighting(about(3, NOW - 8), 8))
        assert sorted(checked) == [key_of(n) for n in (1, 2, 3, 3, 4)]

    @pytest.mark.parametrize(
        ("size", "per_origin"), [(0, 1), (LARGEST_VIEW + 1, 1), (5, 0), (5, 6)]
    )
    def test_sizes(self, size: int, per_origin: int) -> None:
        with pytest.raises(UsageError, match="choose from"):
            make(size, per_origin)


class TestChoosing:
    def test_nobody_is_known(self) -> None:
        view = make()
        assert view.pick() is None
        assert view.recall() is None
        assert view.sample(3) == []

    def test_samples_are_wanted_and_distinct(self) -> None:
        view = make()
        view.merge(
            [seen(1), *(Sighting(about(n, able=n % 2 == 0), 0) for n in range(2, 7))],
            key_of(1),
            NOW,
        )
        able = view.sample(9, lambda descriptor: descriptor.able)
        assert sorted(int(descriptor.key, 16) for descriptor in able) == [1, 2, 4, 6]
        assert len({descriptor.key for descriptor in view.sample(4)}) == 4

    def test_all_pairs_are_as_likely(self) -> None:
        """χ² over the ordered pairs of four; false alarms once in 10,000 seeds."""
        view = told(make(), *(seen(number) for number in range(1, 5)))
        counts: dict[tuple[str, ...], int] = {}
        for _ in range(1200):
            pair = tuple(descriptor.key for descriptor in view.sample(2))
            counts[pair] = counts.get(pair, 0) + 1
        assert len(counts) == 12
        assert chisquare(list(counts.values())).pvalue > 1e-4

    def test_the_forgotten_come_back_with_news_only(self) -> None:
        view = told(make(), seen(1), seen(2, 50))
        view.forget(key_of(2))
        told(view, seen(1), seen(2, 50))
        assert known(view) == {1}
        told(view, seen(1), seen(2, 49))
        assert known(view) == {1, 2}

    def test_an_acquaintance_outlasts_the_view(self) -> None:
        view = told(make(), seen(1))
        later = NOW + 10 * OLDEST
        view.merge([Sighting(about(2, later), 0)], key_of(2), later)
        assert known(view) == {2}
        assert {view.recall() for _ in range(40)} >= {about(1)}


class TestUniformity:
    """Twenty-four real views whose clocks are up to two minutes wrong: twelve cycles."""

    PEERS, CYCLES, CYCLE = 24, 260, 10_000

    def counts(self, by_signed_time: bool) -> list[int]:
        """How often each was picked, three times a cycle: so seldom that picks are independent.

        By signed time, ages are not carried along but read off the signature.
        """
        views = [make(seed=number, own=number) for number in range(self.PEERS)]
        chance = SeededRandomness("uniformity")
        skews = (uniform_below(240_000, self.PEERS, chance) - 120_000).tolist()
        for number, view in enumerate(views):  # a ring
            other = (number + 1) % self.PEERS
            now = NOW + skews[number]
            told(view, Sighting(about(other, NOW + skews[other]), 0), now=now)
        counts = [0] * self.PEERS
        for cycle in range(self.CYCLES):
            time = NOW + cycle * self.CYCLE
            for number in range(self.PEERS):
                time += self.CYCLE // (2 * self.PEERS)
                self.exchange(views, skews, number, time, by_signed_time)
            if cycle >= 20:
                for picker in uniform_below(self.PEERS, 3, chance).tolist():
                    chosen = views[picker].pick()
                    assert chosen is not None
                    counts[int(chosen.key, 16)] += 1
        return counts

    def exchange(
        self, views: list[View], skews: list[int], caller: int, time: int, by_signed_time: bool
    ) -> None:
        neighbour = views[caller].pick()
        assert neighbour is not None
        called = int(neighbour.key, 16)
        pair = (caller, called)
        nows = {number: time + skews[number] for number in pair}
        offers = {n: views[n].offer(nows[n], about(n, nows[n])) for n in pair}
        for own, other in (pair, pair[::-1]):
            offer = offers[other]
            if by_signed_time:
                read = [max(0, nows[own] - s.descriptor.time) for s in offer[1:]]
                offer = offer[:1] + [
                    Sighting(s.descriptor, age) for s, age in zip(offer[1:], read, strict=True)
                ]
            views[own].merge(offer, key_of(other), nows[own])

    def test_skewed_clocks_do_not_show(self) -> None:
        """False alarms once in 10,000 seeds."""
        assert chisquare(self.counts(by_signed_time=False)).pvalue > 1e-4

    def test_they_would_if_ages_were_read_off_signatures(self) -> None:
        counts = np.array(self.counts(by_signed_time=True))
        assert chisquare(counts).pvalue < 1e-12
