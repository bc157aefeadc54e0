"""What each role sees of a run says nothing of what the others have.

Every run is from a seed, so nothing here is up to chance; thresholds are those at which a true
claim would be refused for one seed in a million.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))

from protocol_runs import KEYS, Talk, fix_keys, fixed, party_seed, study_of, talk

from tacit.channels.consortium.joint import Keys, Masked, Revealed, mask_seed
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.published_letters import (
    SHARE_BYTES,
    Boxes,
    Dealt,
    Element,
    Indicator,
    Opening,
    Placed,
    Question,
    Secret,
    Shared,
    Shares,
    box_label,
    shown,
)
from tacit.channels.consortium.run import KeyList, Run
from tacit.channels.roles.letters import read
from tacit.crypto.boxes import BoxKey
from tacit.crypto.prg import DerivedRandomness
from tacit.crypto.ring import from_ring
from tacit.crypto.sharing import expand
from tacit.privacy.promise import Promise

FALSE_ALARM = 1e-6
RUNS = 40
LENGTH = 4
MODULUS = 2**32
SIZES = ((5, 4000, 9000), (9000, 8000, 7))  # the smallest is the first party, or the last


def uniform(values: Sequence[float] | NDArray[Any], bins: int, top: float) -> bool:
    """Whether values in [0, top) are spread evenly, by χ²."""
    scaled = np.array([int(value) * bins // int(top) for value in values])
    counts = np.bincount(scaled, minlength=bins)
    return bool(stats.chisquare(counts).pvalue > FALSE_ALARM)


def context(run: Talk) -> bytes:
    return Run(run.study, run.terms, 1).context


# ── as published ──


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[tuple[int, ...], list[Talk]]]:
    """Many runs, up to the step in which shares are published, for two cases of who has what."""
    with pytest.MonkeyPatch.context() as patch:
        fix_keys(patch)
        study = study_of("as-published", 3, LENGTH, Promise(1.0))
        found: Runs = {}
        for case, sizes in enumerate(SIZES):
            vectors = np.linspace(-1, 1, 3 * LENGTH).reshape(3, LENGTH) * (-1) ** case
            held = [Local(v, n) for v, n in zip(vectors, sizes, strict=True)]
            found[sizes] = [talk(study, held, seed, until=8) for seed in range(RUNS)]
        yield found


class Seat:
    """What a party can do with what it receives: it has its own box key, and the secret."""

    def __init__(self, run: Talk, seed: int, place: int) -> None:
        self.run, self.place = run, place
        self.name = KEYS[place].public_key
        self.box = BoxKey(DerivedRandomness(party_seed(seed, place)))  # its first draw
        opening = self.told(1, Opening)
        self.publics = {party: key.public for party, key in opening.keys.items()}
        self.context = context(run) + shown(opening)
        assert self.publics[self.name] == self.box.public

    def told(self, step: int, kind: Any) -> Any:
        return read(kind, self.run.answers[step][self.name])

    def opened(self, boxes: dict[str, bytes], label: str) -> dict[str, bytes]:
        return {
            party: self.box.open(
                self.publics[party], self.context, box_label(label, party, self.name), box
            )
            for party, box in boxes.items()
        }

    def order(self) -> list[int]:
        """π₁, as every party but the first was told it."""
        (content,) = self.opened(self.told(2, Boxes).boxes, "secret").values()
        return read(Secret, content).order


def seats(runs: list[Talk], place: int) -> list[Seat]:
    return [Seat(run, seed, place) for seed, run in enumerate(runs)]


Runs = dict[tuple[int, ...], list[Talk]]


@pytest.mark.parametrize("sizes", SIZES)
def test_the_curators_shares_of_sizes_are_uniform(runs: Runs, sizes: tuple[int, ...]) -> None:
    """It decrypts one of each place. Unshared sizes would all lie in the lowest bin."""
    key = fixed("curator")
    seen = []
    for run in runs[sizes]:
        for body in run.bodies[4].values():
            letter = read(Placed, body)
            seen += key.decrypt(key.public.ciphertexts_from_bytes(letter.curators))
    assert uniform(seen, 8, MODULUS)
    assert not uniform(list(sizes) * RUNS, 8, MODULUS)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_curator_finds_the_smallest_in_a_uniform_place(
    runs: Runs, sizes: tuple[int, ...]
) -> None:
    """Where it is after π₁ says nothing of whose it is. Without π₁ it were always one place."""
    key, places, owners = fixed("curator"), [], []
    for seat in seats(runs[sizes], 1):
        body = seat.told(6, Indicator).elements
        marked = key.decrypt(key.public.ciphertexts_from_bytes(body))
        assert sorted(marked) == [0, 0, 1]
        places.append(marked.index(1))
        owners.append(seat.order().index(marked.index(1)))
    assert set(owners) == {sizes.index(min(sizes))}
    assert uniform(places, 3, 3)
    assert not uniform(owners, 3, 3)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_curator_decrypts_nothing_but_a_mask(runs: Runs, sizes: tuple[int, ...]) -> None:
    key, packing = fixed("curator"), runs[sizes][0].terms.packing
    seen: list[int] = []
    for run in runs[sizes]:
        body = read(Shared, run.bodies[8][KEYS[0].public_key]).masked
        plain = key.decrypt(key.public.ciphertexts_from_bytes(body))
        seen += [int(v) for v in packing.unpack(plain, LENGTH, terms_added=2)]
    # Noise is at most 2^64, so a value a hair outside the mask's range has a chance of 2^−128.
    assert all(0 <= value < 2**192 for value in seen)
    assert uniform(seen, 8, 2**192)
    assert uniform([value % 2**64 for value in seen], 8, 2**64)


def test_the_curators_letters_have_one_shape(runs: Runs) -> None:
    """Lengths and addresses are the same, whatever the sizes, the vectors, and π₁."""
    shapes = {shape(run) for talks in runs.values() for run in talks}
    assert len(shapes) == 1


def shape(run: Talk) -> tuple[Any, ...]:
    found: list[Any] = []
    for step, bodies in run.bodies.items():
        for party, body in bodies.items():
            boxes = read(Boxes, body).boxes if step in (3, 5, 7) else {}
            found.append((step, party, len(body), tuple((to, len(b)) for to, b in boxes.items())))
    return tuple(found)


def test_the_curator_gets_uniform_shares_of_vectors(runs: Runs) -> None:
    for talks in runs.values():
        words: list[int] = []
        for run in talks:
            for body in run.bodies[8].values():
                seed = read(Shared, body).seed
                words += [int(w) for w in expand(seed, LENGTH, context(run))]
        assert uniform(words, 16, 2**64)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_party_sees_uniform_numbers(runs: Runs, sizes: tuple[int, ...], place: int) -> None:
    """The share that it carries, the blinded ones it compares, and shares of vectors."""
    key = fixed("parties")
    carried, blinded, words = [], [], []
    for seat, other in zip(seats(runs[sizes], place), seats(runs[sizes], 1), strict=True):
        source = KEYS[other.order().index(place)].public_key
        contents = seat.opened(seat.told(3, Boxes).boxes, "share")
        for party, content in contents.items():
            if party == source:
                carried.append(int.from_bytes(content[:SHARE_BYTES], "little"))
            else:
                assert not any(content)  # sent to hide who is meant
        element = key.public.ciphertexts_from_bytes(seat.told(4, Element).element)
        own = key.decrypt(element)[0] % MODULUS
        boxes = seat.opened(seat.told(5, Question).boxes, "blinded")
        others = [int.from_bytes(content, "little") for content in boxes.values()]
        assert own not in carried
        assert not set(others) & set(carried)
        blinded += [own, *others]
        shares = seat.told(8, Shares)
        for share in [shares.seed, *seat.opened(shares.boxes, "vector").values()]:
            words += [int(w) for w in expand(share, LENGTH, context(seat.run))]
    assert uniform(carried, 4, MODULUS)
    assert uniform(blinded, 4, MODULUS)
    assert uniform(words, 16, 2**64)


def test_what_the_parties_decrypt_is_not_what_they_encrypted(runs: Runs) -> None:
    """Blinded and rerandomised: neither numbers nor ciphertexts can be followed through π₂."""
    key = fixed("parties")
    for run in runs[SIZES[0]]:
        inward = [
            key.public.ciphertexts_from_bytes(read(Placed, b).ours) for b in run.bodies[4].values()
        ]
        outward = [
            key.public.ciphertexts_from_bytes(read(Element, b).element)
            for b in run.answers[4].values()
        ]
        before = {key.decrypt(c)[0] for c in inward}
        after = {key.decrypt(c)[0] for c in outward}
        assert not {plain % MODULUS for plain in after} & {plain % MODULUS for plain in before}
        # Taking off the difference of the plaintexts leaves the masks, which must differ as well.
        masks = [{_mask(c) for c in side} for side in (inward, outward)]
        assert not masks[0] & masks[1]


def _mask(ciphertext: Any) -> int:
    """c·(1 + n)^−m: what is left of a ciphertext without its number."""
    key = fixed("parties")
    plain = key.decrypt(ciphertext)[0]
    return int(key.public.add_plain(ciphertext, [-plain]).values[0])


def test_the_first_party_gets_ciphertexts_it_cannot_tell_apart(runs: Runs) -> None:
    """Under the curator's key, all of one length, none of them a power that can be guessed."""
    key = fixed("curator")  # which the first party has not
    for sizes, talks in runs.items():
        for seat, other in zip(seats(talks[:5], 0), seats(talks[:5], 1), strict=True):
            letters = seat.opened(seat.told(7, Boxes).boxes, "noise")
            assert len({len(content) for content in letters.values()}) == 1
            powers = {
                party: key.public.ciphertexts_from_bytes(body) for party, body in letters.items()
            }
            chosen = [party for party, found in powers.items() if any(key.decrypt(found))]
            least = sizes.index(min(sizes))
            assert chosen == ([] if least == 0 else [KEYS[least].public_key])
            elements = key.public.ciphertexts_from_bytes(seat.told(6, Indicator).elements)
            sent = {c for found in powers.values() for c in found.values}
            assert not sent & {1, *elements.values}  # E(v)^0 would be 1
            for party in chosen:  # who guesses the noise cannot check the guess
                mine = elements.values[other.order()[least]]
                noise = key.decrypt(powers[party])
                guess = key.public.multiply(key.public.ciphertexts([mine] * len(noise)), noise)
                assert not sent & set(guess.values)


def test_the_secret_of_the_parties_stays_closed_to_the_curator(runs: Runs) -> None:
    """The primes, or half of one, stand nowhere in what it carries."""
    run = runs[SIZES[0]][0]
    dealt = read(Dealt, run.bodies[2][KEYS[0].public_key])
    p, q = (prime.to_bytes(128, "big") for prime in fixed("parties").primes)
    everything = b"".join(dealt.boxes.values()) + b"".join(
        body for bodies in run.bodies.values() for body in bodies.values()
    )
    for prime in (p, q):
        assert prime[:64] not in everything
        assert prime[64:] not in everything


# ── joint ──

DIMENSION = 2000
PARTIES = 5


def joint(vectors: NDArray[np.float64], seed: int = 0) -> Talk:
    study = study_of("joint", PARTIES, DIMENSION, Promise(math.inf))
    return talk(study, [Local(vector, 10) for vector in vectors], seed)


def inputs(case: int) -> NDArray[np.float64]:
    """Two inputs with one sum: all zero, or far apart."""
    if case == 0:
        return np.zeros((PARTIES, DIMENSION))
    far = np.ones((PARTIES, DIMENSION))
    far[1::2] = -1.0
    far[-1] = 0.0
    return far


def masked(run: Talk) -> dict[str, NDArray[np.uint64]]:
    letters = {party: read(Masked, body) for party, body in run.bodies[2].items()}
    return {party: np.frombuffer(it.vector, dtype="<u8") for party, it in letters.items()}


@pytest.mark.parametrize("case", [0, 1])
def test_masked_vectors_are_uniform(case: int) -> None:
    """All that the curator has before the last step."""
    for vector in masked(joint(inputs(case))).values():
        assert uniform(vector.view(np.uint8), 256, 256)
        assert uniform(vector, 16, 2**64)


def test_the_sum_is_the_same_for_both_inputs() -> None:
    assert joint(inputs(0)).total.tolist() == joint(inputs(1)).total.tolist()


@pytest.mark.parametrize("case", [0, 1])
def test_all_but_two_and_the_curator_learn_only_the_sum_of_two(case: int) -> None:
    """They take off every mask they know, in the end also the two parties' own: each of the two
    vectors stays uniform, and their sum is what the release says anyway."""
    seed = 3
    run = joint(inputs(case), seed)
    honest, colluding = KEYS[:2], range(2, PARTIES)
    keys = KeyList(read(Keys, run.answers[1][honest[0].public_key]).by_party)
    attempt = Run(run.study, run.terms, 1)
    left = []
    for key in honest:
        own = key.public_key
        vector = masked(run)[own].copy()
        for place in colluding:
            box = BoxKey(DerivedRandomness(party_seed(seed, place)))
            seed_of_mask = mask_seed(attempt, box, keys, KEYS[place].public_key, own)
            mask = expand(seed_of_mask, DIMENSION, context(run))
            vector = vector - mask if KEYS[place].public_key > own else vector + mask
        assert uniform(vector.view(np.uint8), 256, 256)  # before the last step
        vector -= expand(read(Revealed, run.bodies[3][own]).seed, DIMENSION, context(run))
        assert uniform(vector.view(np.uint8), 256, 256)  # and after it
        left.append(vector)
    both = from_ring(left[0] + left[1])
    wanted = run.terms.grid.encode(inputs(case)[:2]).sum(axis=0)
    assert both.tolist() == wanted.tolist()
