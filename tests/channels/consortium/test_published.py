"""The protocol as published gives what the paper says, and refuses what cannot be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from protocol_runs import CURATOR, KEYS, Change, Letters, Talk, fix_keys, study_of, talk

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.letters import Turn
from tacit.channels.consortium.local import averaged
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.pairs import answered_by
from tacit.channels.consortium.party import Party
from tacit.channels.consortium.protocols import certified, terms_of
from tacit.channels.consortium.published_letters import (
    Boxes,
    Dealt,
    Element,
    Indicator,
    Opening,
    Placed,
    Published,
    Question,
    Reply,
    Shared,
    Shares,
)
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.run import Run
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Consortium, Study
from tacit.crypto.boxes import BoxKey
from tacit.crypto.minimum import smallest_place
from tacit.crypto.paillier import PrivateKey
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic

PRIVATE = Promise(1.0)
LENGTH = 12  # two plaintexts of 10 slots under 2048 bits
Drawn = dict[int, list[NDArray[np.int64]]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The noise that every party drew, by its number of records."""
    found: Drawn = {}
    real = PublishedTerms.noise

    def noise(self: PublishedTerms, records: int, randomness: Randomness) -> NDArray[np.int64]:
        noise = real(self, records, randomness)
        found.setdefault(records, []).append(noise)
        return noise

    monkeypatch.setattr(PublishedTerms, "noise", noise)
    return found


@pytest.fixture
def _same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    fix_keys(monkeypatch)


def vectors(count: int, length: int = LENGTH) -> NDArray[np.float64]:
    return np.random.default_rng(count).uniform(-1, 1, (count, length))


def run(
    sizes: Sequence[int], promise: Promise = PRIVATE, records: int = 2**31 - 1, **how: Any
) -> tuple[Talk, NDArray[Any]]:
    """A run, and the exact sum of the parties' vectors on the grid."""
    held = vectors(len(sizes))
    study = study_of("as-published", len(sizes), LENGTH, promise, records)
    done = talk(study, [Local(v, n) for v, n in zip(held, sizes, strict=True)], **how)
    return done, sum(done.terms.grid.encode(v) for v in held)


@pytest.mark.parametrize(
    "sizes",
    [(7, 5000), (5000, 7), (30, 20, 900), (1, 2**31 - 1, 2**30), (800, 700, 90, 1000, 91)],
)
def test_the_noise_is_exactly_the_smallest_partys(sizes: tuple[int, ...], drawn: Drawn) -> None:
    done, total = run(sizes)
    (noise,) = drawn[min(sizes)]
    assert np.abs(noise).max() > 0
    np.testing.assert_array_equal(done.total - total, len(sizes) * noise)


@pytest.mark.usefixtures("_same_keys")
def test_among_equals_it_is_one_partys(drawn: Drawn) -> None:
    done, total = run((40, 9, 9))
    first, second = drawn[9]
    assert first.tolist() != second.tolist()
    added = (done.total - total).tolist()
    assert added in ((3 * first).tolist(), (3 * second).tolist())


@pytest.mark.usefixtures("_same_keys")
def test_without_privacy_the_average_is_exact() -> None:
    done, total = run((40, 9), Promise(np.inf))
    assert done.total.tolist() == total.tolist()
    assert done.terms.releases == ()


@pytest.mark.usefixtures("_same_keys")
def test_noise_at_both_ends_fits_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbouring slots at opposite ends would show a carry, or a borrow."""
    probe = run((40, 9), records=100, until=1)[0].terms
    most = probe.reach // 2
    ends = np.array([most, -most, 0, -1, 1, most] * 2, dtype=np.int64)
    monkeypatch.setattr(PublishedTerms, "noise", lambda self, records, randomness: ends)
    done, total = run((40, 9), records=100)
    np.testing.assert_array_equal(done.total - total, 2 * ends)


@pytest.mark.usefixtures("_same_keys")
@pytest.mark.parametrize("noise", [-(2**63), 2**63 - 1, 0, -1])
@pytest.mark.parametrize("mask", [0, 2**192 - 1])
def test_no_noise_and_no_mask_leave_a_slot(noise: int, mask: int) -> None:
    packing = run((40, 9), until=1)[0].terms.packing
    one = packing.pack(np.full(25, noise, dtype=np.int64))
    other = packing.pack(np.array([mask] * 25, dtype=object))
    both = [a + b for a, b in zip(one, other, strict=True)]
    assert packing.unpack(both, 25, terms_added=2).tolist() == [noise + mask] * 25
    assert all(0 <= plain < 2**2046 for plain in both)  # the exponent is read back as it was


def test_the_noise_has_the_published_scale() -> None:
    """Mean |noise| of 2/(n·ε·λ), here 2/(n·ε): the right scale passes, 3 % more or less fail."""
    terms = PublishedTerms(study_of("as-published", 2, 40_000, Promise(0.5)), ("a", "b"))
    for records in (10, 1000):
        noise = terms.noise(records, SeededRandomness(records)) * float(terms.grid.step)
        # The mean of N |Laplace| has a relative deviation of 1/√N: six of them are 3 %.
        assert np.abs(noise).mean() == pytest.approx(2 / (records * 0.5), rel=0.03)


def test_the_same_seeds_say_the_same() -> None:
    (one, _), (other, _) = (run((40, 9), seed=5) for _ in range(2))
    assert (one.bodies, one.answers, one.model) == (other.bodies, other.answers, other.model)
    assert run((40, 9), seed=6, until=1)[0].bodies != {1: one.bodies[1]}


# ── what is certified ──


@pytest.mark.usefixtures("_same_keys")
def test_the_certificate_says_that_the_promise_does_not_hold() -> None:
    few, many = (run(sizes)[0] for sizes in ((40, 9), (4000, 900)))
    papers = []
    for done in (few, many):
        assert done.model is not None
        paper = certified(done.study, done.terms, done.model, done.bodies[9]).signed(CURATOR)
        verdict = paper.verify(CURATOR.public_key)
        assert verdict.epsilon == np.inf
        papers.append(paper)
    assert not papers[0].promise_holds
    assert any("does NOT hold" in remark for remark in papers[0].remarks)
    assert any("secret" in remark for remark in papers[0].remarks)
    # Nothing of it depends on how many records the parties really have.
    (release,) = papers[0].releases
    assert papers[0].releases == papers[1].releases
    assert release.mechanism == "laplace"
    assert release.bound is not None
    assert release.scale is not None
    assert release.bound.norm is Norm.L1
    assert float(release.scale) == pytest.approx(2.0, rel=1e-3)  # of `smallest` = 1 record


@pytest.mark.usefixtures("_same_keys")
def test_a_party_that_does_not_vouch_is_noticed() -> None:
    done = run((40, 9))[0]
    last = dict(done.bodies[9])
    other, own = KEYS[0].public_key, KEYS[1].public_key
    last[own] = last[other]
    with pytest.raises(CheckFailed, match="vouch"):
        certified(done.study, done.terms, b"", last)


def test_logistic_models_from_records_to_certificate() -> None:
    schema = Schema(
        columns=(
            Column(name="x", type="number", bounds=(0.0, 1.0)),
            Column(name="y", type="category", role="label", categories=("no", "yes")),
        )
    )
    chance = np.random.default_rng(3)

    class Held:
        def __init__(self, count: int) -> None:
            self.X = chance.uniform(0, 1, (count, 1))

        def batches(self) -> list[Encoded]:
            return [Encoded(self.X, (self.X[:, 0] > 0.5).astype(np.int64), None)]

    outcome = averaged(
        AveragedLogistic(penalty=0.05),
        [Held(3000), Held(2000)],  # type: ignore[list-item]
        schema,
        Promise(10.0),
        smallest=1000,
        protocol="as-published",
        key_bits=2048,
    )
    assert not outcome.certificate.promise_holds
    assert outcome.model.coef[0, 0] > 0


# ── crashes ──


@pytest.mark.usefixtures("_same_keys")
def test_who_crashes_goes_on_with_the_same_letters() -> None:
    """Forgetting all that is not in the journals, after every letter, changes nothing."""
    assert _ran(forgetful=True) == _ran(forgetful=False)


def _ran(forgetful: bool) -> bytes:
    study = study_of("as-published", 2, 3, PRIVATE)
    journals = [PartyJournal(MEMORY, study.digest) for _ in range(2)]
    log = CuratorJournal(MEMORY, study.digest)
    held = [Local(v, n) for v, n in zip(vectors(2, 3), (40, 9), strict=True)]

    def roles() -> tuple[Curator, list[Party]]:
        return Curator(study, CURATOR, log, 0.0, seed=lambda: b"c" * 32), [
            Party(study, key, journal, local, NoBudget(), seed=lambda: b"p" * 32)
            for key, journal, local in zip(KEYS[:2], journals, held, strict=True)
        ]

    curator, parties = roles()
    while (result := log.result()) is None:
        for party in parties:
            for to, letter in party.tick():
                party.told(to, letter, curator.answer(party.key, letter, 0.0))
        curator.tick(0.0)
        assert curator.failure is None
        if forgetful and curator.round:
            curator, parties = roles()
    assert journals[0].revealed() == journals[1].revealed() == 1
    return result[0]


# ── refusals ──


def changed(at: int, place: int, kind: type[Any], **new: Callable[[Any], Any]) -> Change:
    """In step `at`, the letter of one party with some fields changed."""

    def change(step: int, letters: Letters) -> Letters:
        if step != at:
            return letters
        party = KEYS[place].public_key
        letter = read(kind, letters[party])
        fields = {name: alter(getattr(letter, name)) for name, alter in new.items()}
        return letters | {party: write(msgspec.structs.replace(letter, **fields))}

    return change


def cut(body: bytes) -> bytes:
    return body[:-1]


def zeros(body: bytes) -> bytes:
    """The right fingerprint, and a number that is no ciphertext."""
    return body[:32] + bytes(len(body) - 32)


def twice(body: bytes) -> bytes:
    return body + body[32:]


def other_key(body: bytes) -> bytes:
    return bytes(32) + body[32:]


def to_nobody(boxes: dict[str, bytes]) -> dict[str, bytes]:
    return boxes | {"nobody": b""}


def flipped(boxes: dict[str, bytes]) -> dict[str, bytes]:
    return {name: box[:-1] + bytes([box[-1] ^ 1]) for name, box in boxes.items()}


def swapped(boxes: dict[str, bytes]) -> dict[str, bytes]:
    """Everybody's box under somebody else's name."""
    names = list(boxes)
    return {name: boxes[names[i - 1]] for i, name in enumerate(names)}


SENT: list[tuple[str, Change, str]] = [
    ("no key", changed(2, 0, Dealt, public=lambda _: b""), "public key"),
    ("a cut key", changed(2, 0, Dealt, public=cut), "bits"),
    ("a box to nobody", changed(3, 1, Boxes, boxes=to_nobody), "addressed"),
    ("a cut share", changed(4, 1, Placed, ours=cut), "cut off"),
    ("a share of another key", changed(4, 1, Placed, ours=other_key), "another key"),
    ("no ciphertext", changed(4, 1, Placed, ours=zeros), "not in"),
    ("two shares", changed(4, 1, Placed, ours=twice), "instead of one"),
    ("the curator's share, cut", changed(4, 2, Placed, curators=cut), "cut off"),
    ("a cut reply", changed(6, 0, Reply, reply=cut), "cut off"),
    ("another reply", changed(6, 0, Reply, reply=other_key), "not the answer"),
    ("masked noise, cut", changed(8, 0, Shared, masked=cut), "cut off"),
    ("too much masked noise", changed(8, 0, Shared, masked=twice), "plaintexts"),
    ("a short share", changed(9, 1, Published, share=cut), "bytes"),
    ("another share", changed(9, 1, Published, share=lambda b: bytes(len(b))), "no model"),
    ("no letter", lambda s, ls: dict.fromkeys(ls, b"?") if s == 5 else ls, "does not hold"),
]


@pytest.mark.usefixtures("_same_keys")
@pytest.mark.parametrize(("change", "words"), [case[1:] for case in SENT], ids=[c[0] for c in SENT])
def test_the_curator_refuses(change: Change, words: str) -> None:
    with pytest.raises((InputError, CheckFailed), match=words):
        run((40, 9, 30), sent=change)


TOLD: list[tuple[str, Change, str]] = [
    (
        "keys that others signed",
        changed(1, 1, Opening, keys=lambda ks: dict(zip(ks, reversed(ks.values()), strict=True))),
        "not signed",
    ),
    ("a missing key", changed(1, 1, Opening, keys=lambda ks: dict([*ks.items()][1:])), "not every"),
    ("no key of the curator", changed(1, 1, Opening, paillier=cut), "bits"),
    ("no comparison key", changed(1, 1, Opening, comparison=cut), "public key"),
    ("no secret", changed(2, 1, Boxes, boxes=lambda _: {}), "did not bring"),
    ("boxes of others", changed(3, 1, Boxes, boxes=swapped), "not sealed"),
    ("two elements", changed(4, 1, Element, element=twice), "instead of one"),
    ("an element of another key", changed(4, 1, Element, element=other_key), "another key"),
    ("boxes changed", changed(5, 0, Question, boxes=flipped), "not sealed"),
    ("another question", changed(5, 0, Question, question=other_key), "not the question"),
    ("a short indicator", changed(6, 2, Indicator, elements=lambda b: b[: 32 + 512]), "places"),
    ("no ciphertext", changed(6, 2, Indicator, elements=zeros), "not in"),
    ("boxes of noise swapped", changed(7, 0, Boxes, boxes=swapped), "not sealed"),
    ("a share less", changed(8, 1, Shares, boxes=lambda _: {}), "did not bring"),
]


@pytest.mark.usefixtures("_same_keys")
@pytest.mark.parametrize(("change", "words"), [case[1:] for case in TOLD], ids=[c[0] for c in TOLD])
def test_a_party_refuses(change: Change, words: str) -> None:
    with pytest.raises((InputError, CheckFailed), match=words) as refused:
        run((40, 9, 30), told=change)
    assert len(str(refused.value)) < 300  # no ciphertext, no key, no share in it


@pytest.mark.usefixtures("_same_keys")
def test_boxes_of_another_attempt_do_not_open() -> None:
    """A curator that plays an old run's letters to a party gets nothing out of it."""
    old = run((40, 9, 30), seed=1, until=4)[0]

    def replayed(step: int, letters: Letters) -> Letters:
        return old.answers[step] if step == 3 else letters

    with pytest.raises(CheckFailed, match="not sealed"):
        run((40, 9, 30), seed=3, told=replayed)


def test_a_key_of_another_length_is_refused() -> None:
    longer = PrivateKey.generate(3072, SeededRandomness(1)).public.to_bytes()
    ways: list[dict[str, Any]] = [
        {"sent": changed(2, 0, Dealt, public=lambda _: longer)},
        {"told": changed(1, 1, Opening, paillier=lambda _: longer)},
    ]
    for how in ways:
        with pytest.raises(InputError, match="2048 bits, not 3072"):
            run((40, 9), until=2, **how)


@pytest.mark.usefixtures("_same_keys")
def test_impossible_numbers_of_records_are_refused() -> None:
    with pytest.raises(UsageError, match="records"):
        run((40, 2**31), until=3)
    with pytest.raises(InputError, match="vector"):
        talk(study_of("as-published", 2, 4, PRIVATE), [Local(np.zeros(3), 5)] * 2)


def test_a_failed_step_ends_the_attempt() -> None:
    """Through the state machine: an impossible letter is refused; of those that are carried as they
    are, one stops the study, and nothing is published."""
    study = study_of("as-published", 2, 3, PRIVATE)
    curator = Curator(study, CURATOR, CuratorJournal(MEMORY, study.digest), 0.0)
    first, second = (key.public_key for key in KEYS[:2])
    for party in (first, second):
        curator.answer(party, Letter("turn", 0, write(Turn(0))), 0.0)
    curator.tick(0.0)
    run = Run(study, terms_of(study, (first, second)), 1)
    for key in KEYS[:2]:
        with pytest.raises(Refused, match="does not hold a key"):
            curator.answer(key.public_key, Letter("turn", 1, write(Turn(1, b"?"))), 0.0)
        body = write(run.signed_key(key, BoxKey().public))
        curator.answer(key.public_key, Letter("turn", 1, write(Turn(1, body))), 0.0)
    for party in (first, second):
        curator.answer(party, Letter("turn", 1, write(Turn(2, b"?"))), 0.0)
    assert isinstance(curator.failure, InputError)
    assert curator.result is None


# ── pairs ──


@pytest.mark.parametrize("count", range(2, 12))
def test_every_pair_is_answered_once_and_work_is_even(count: int) -> None:
    found = [pair for place in range(count) for pair in answered_by(place, count)]
    assert sorted(found) == [(i, j) for i in range(count) for j in range(i + 1, count)]
    work = [len(answered_by(place, count)) for place in range(count)]
    assert max(work) - min(work) <= 1
    assert all(place in pair for place in range(count) for pair in answered_by(place, count))


def test_answers_that_are_no_order_are_refused() -> None:
    assert smallest_place(3, {(0, 1): True, (1, 2): True, (0, 2): True}) == 0
    assert smallest_place(3, {(0, 1): False, (1, 2): False, (0, 2): False}) == 2
    with pytest.raises(InputError, match="contradict"):
        smallest_place(3, {(0, 1): True, (1, 2): True, (0, 2): False})


# ── the study ──


def test_key_bits_and_protocol_stand_in_the_study(tmp_path: Path) -> None:
    study = study_of("as-published", 2, 3, PRIVATE)
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml())
    again = Study.load(path)
    assert again.consortium == study.consortium
    assert again.digest == study.digest
    longer = msgspec.structs.replace(
        study, consortium=msgspec.structs.replace(study.agreed_consortium, key_bits=3072)
    )
    assert longer.digest != study.digest
    path.write_text(study.to_toml().replace("key_bits = 2048", "key_bits = 1024"))
    with pytest.raises(InputError, match="key_bits"):
        Study.load(path)
    path.write_text(study.to_toml().replace("key_bits", "keybits"))
    with pytest.raises(InputError, match="keybits"):
        Study.load(path)


def test_nobody_may_collude_in_it() -> None:
    study = study_of("as-published", 3, 3, PRIVATE)
    terms = Consortium(protocol="as-published", colluding=1, smallest=1)
    with pytest.raises(InputError, match="colluding"):
        msgspec.structs.replace(study, consortium=terms)
    with pytest.raises(InputError, match=r"2\^31"):
        study_of("as-published", 3, 3, PRIVATE, records=2**31)
