"""Members and curators that do not follow the protocol, against parties that do: no mask is shared
with anybody else, nothing is revealed unless all were shown the same, and one model is accepted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

sys.path.insert(0, str(Path(__file__).parent))

from deviating import PRIME, Desk, copied, same_secret

from tacit.channels.consortium.joint import Evidence, Keys, Masked, Posted, mask_seed
from tacit.channels.consortium.letters import Result, Roster
from tacit.channels.consortium.run import Key, KeyList
from tacit.channels.roles.letters import read, write
from tacit.crypto.boxes import SMALL_ORDER, BoxKey, is_public_key
from tacit.crypto.ring import from_ring
from tacit.crypto.sharing import expand
from tacit.errors import CheckFailed, Refused, TacitError
from tacit.privacy.certificate import Certificate

# ── keys ──


def flipped(key: str) -> str:
    """The same point under another name: X25519 does not look at the top bit (RFC 7748, 5)."""
    raw = bytearray.fromhex(key)
    raw[-1] |= 0x80
    return bytes(raw).hex()


def beyond(key: str) -> str:
    """The same number modulo the prime, if it is small enough for two names."""
    return (PRIME + 2).to_bytes(32, "little").hex()


WRONG: dict[str, Callable[[str], str]] = {
    "a copy": copied,
    "in capitals": str.upper,
    "with blanks": lambda key: key[:2] + " " + key[2:],
    "with its top bit": flipped,
    "beyond the prime": beyond,
    "too short": lambda key: key[:-2],
    "no hex": lambda key: "x" * 64,
    "nothing": lambda key: "",
} | {
    f"of small order {place}": lambda key, u=number: u.to_bytes(32, "little").hex()  # type: ignore[misc]
    for place, number in enumerate(sorted(SMALL_ORDER))
}


@pytest.mark.parametrize("whose", ["another's", "the victim's"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_member_cannot_sign_such_a_key(wrong: str, whose: str) -> None:
    desk = Desk(parties=3, colluding=1)
    victim, other = desk.honest
    keys = desk.keys(desk.gather())
    public = WRONG[wrong](keys[other.key if whose == "another's" else victim.key].public)
    keys[desk.corrupt[0].public_key] = desk.run.signed_key(desk.corrupt[0], public)
    with pytest.raises(CheckFailed):
        desk.answer(victim, 1, Keys(keys))
    assert desk.turn(victim).step == 1
    desk.check_nothing_revealed()


@pytest.mark.parametrize("attempt", [-1, 0, 2**31 + 1, 2**63, 2**64 - 1])
def test_attempts_are_counted_from_one(attempt: int) -> None:
    """What a journal has no room for, or what would not be the first, is refused and not noted."""
    desk = Desk(parties=3, colluding=1)
    victim = desk.honest[0]
    with pytest.raises(Refused, match="numbered"):
        desk.tell(victim, "roster", Roster(attempt, list(desk.roster)))
    assert victim._journal.attempt() is None


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, -(2**62), 2**62])
def test_a_sum_at_the_end_of_the_ring_is_no_model(number: int) -> None:
    total = np.zeros(4, dtype=np.int64)
    total[2] = number
    terms = Desk(parties=3, colluding=1).run.terms
    with pytest.raises(CheckFailed, match="outside what its parties could have sent"):
        terms.model_file(total)


def test_only_a_number_below_the_prime_is_a_key() -> None:
    assert is_public_key(BoxKey().public)
    assert is_public_key((PRIME - 2).to_bytes(32, "little").hex())
    for number in (PRIME - 1, PRIME, PRIME + 1, PRIME + 9, 2**255 - 1, 2**255 + 9, 2**256 - 1):
        assert not is_public_key(number.to_bytes(32, "little").hex())


def test_the_list_of_small_orders_is_what_the_library_refuses() -> None:
    secret = X25519PrivateKey.generate()
    for number in SMALL_ORDER:
        with pytest.raises(ValueError, match="shared key"):
            secret.exchange(X25519PublicKey.from_public_bytes(number.to_bytes(32, "little")))


def test_keys_with_one_secret_have_other_masks_for_each_identity() -> None:
    """A key that differs from another's by a point of small order is another key, and has the same
    Diffie-Hellman secret with everybody: identities keep the masks apart."""
    box, other = BoxKey(), BoxKey()
    twin = same_secret(other.public)
    assert is_public_key(twin)
    desk = Desk(parties=3, colluding=1)
    victim, honest = desk.honest
    member = desk.corrupt[0]
    keys = KeyList(
        {
            victim.key: Key(box.public, ""),
            honest.key: Key(other.public, ""),
            member.public_key: Key(twin, ""),
        }
    )
    seeds = {name: mask_seed(desk.run, box, keys, victim.key, name) for name in keys.by_party}
    assert len(set(seeds.values())) == 3
    assert mask_seed(desk.run, other, keys, honest.key, victim.key) == seeds[honest.key]
    secret = X25519PrivateKey.generate()
    raw = [bytes.fromhex(key) for key in (other.public, twin)]
    one, two = (secret.exchange(X25519PublicKey.from_public_bytes(key)) for key in raw)
    assert one == two  # the attack is real


def test_a_key_with_anothers_secret_uncovers_no_vector() -> None:
    """The masks that would have cancelled are both there: what is left of the victim's vector when
    its own mask is off is as long as a uniform one."""
    desk = Desk(parties=3, colluding=1)
    victim, other = desk.honest
    keys = desk.keys(desk.gather())
    twin = same_secret(keys[other.key].public)
    keys[desk.corrupt[0].public_key] = desk.run.signed_key(desk.corrupt[0], twin)
    desk.post(keys)
    seed = desk.reveal(victim).seed
    vector = np.frombuffer(desk.masked[victim.key].vector, dtype="<u8")
    left = from_ring(vector - expand(seed, len(vector), desk.run.context))
    assert np.abs(left).max() > desk.run.terms.largest * 1000


@pytest.mark.parametrize("attempt", [1, 2])
def test_identities_attempt_and_keys_are_all_part_of_a_mask(attempt: int) -> None:
    """Nothing of one attempt, roster or list of keys is of any use in another."""
    box, other = BoxKey(), BoxKey()
    found = set()
    for count in (3, 4):
        desk = Desk(parties=count, colluding=1, attempt=attempt)
        names = list(desk.run.terms.roster)
        base = {name: Key(BoxKey().public, "") for name in names}
        base |= {names[0]: Key(box.public, ""), names[1]: Key(other.public, "")}
        for changed in (base, base | {names[2]: Key(BoxKey().public, "")}):
            keys = KeyList(changed)
            seed = mask_seed(desk.run, box, keys, names[0], names[1])
            assert seed == mask_seed(desk.run, other, keys, names[1], names[0])
            found.add(seed)
    assert len(found) == 4


# ── what the curator shows differently ──


def test_parties_who_were_shown_different_keys_reveal_nothing() -> None:
    """A member signs two keys, and the curator shows one of them to each."""
    desk = Desk(parties=3, colluding=1)
    first, second = desk.honest
    keys, member = desk.keys(desk.gather()), desk.corrupt[0]
    for party in (first, second):
        shown = {**keys, member.public_key: desk.run.signed_key(member, BoxKey().public)}
        desk.answer(party, 1, Keys(shown))
    desk.masked = {p.key: read(Masked, desk.turn(p).body) for p in desk.honest}
    words = {name: masked.posted for name, masked in desk.masked.items()}
    for party, shown in zip(desk.honest, desk.shown, strict=True):
        words[member.public_key] = desk.word(member, KeyList(shown))
        with pytest.raises(CheckFailed, match="shown different parties different things"):
            desk.answer(party, 2, desk.all_posted(words))
    desk.check_nothing_revealed()


@pytest.mark.parametrize("secure", [True, False])
def test_whether_draws_are_secure_is_fixed_with_the_keys(secure: bool) -> None:
    """Two parties who were told otherwise by a third do not get as far as signing a statement."""
    desk = Desk(parties=3, colluding=1)
    keys, member = desk.keys(desk.gather()), desk.corrupt[0]
    keys[member.public_key] = desk.run.signed_key(member, BoxKey().public, secure)
    lie = msgspec.structs.replace(keys[member.public_key], secure=not secure)
    with pytest.raises(CheckFailed, match="not signed"):
        desk.answer(desk.honest[0], 1, Keys({**keys, member.public_key: lie}))
    desk.post(keys)
    assert [desk.reveal(party).secure for party in desk.honest] == [secure, secure]


def test_a_key_of_an_earlier_life_is_not_shown_to_others_as_ours() -> None:
    """A party that lost its journal before it revealed: its old key is signed for this attempt."""
    desk = Desk(parties=3, colluding=1)
    old = desk.keys(desk.gather())
    victim = desk.restart(desk.honest[0])
    keys = {**desk.keys(desk.gather()), desk.corrupt[0].public_key: old[desk.corrupt[0].public_key]}
    assert keys[victim.key] != old[victim.key]
    with pytest.raises(CheckFailed, match="a key of ours that is not this attempt's"):
        desk.answer(victim, 1, Keys({**keys, victim.key: old[victim.key]}))
    desk.check_nothing_revealed()


def changed_word(part: str) -> Callable[[Posted], Posted]:
    return lambda word: msgspec.structs.replace(word, **{part: "00" * 32})


@pytest.mark.parametrize("part", ["vector", "commitment", "signature"])
def test_an_honest_partys_word_is_shown_as_it_is_or_not_at_all(part: str) -> None:
    desk = Desk(parties=3, colluding=1)
    first, second = desk.honest
    keys = desk.keys(desk.gather())
    words = desk.mask(keys)
    words[second.key] = changed_word(part)(words[second.key])
    with pytest.raises(CheckFailed):
        desk.answer(first, 2, desk.all_posted(words))
    desk.check_nothing_revealed()


# ── the result ──


def test_every_party_recomputes_the_model() -> None:
    desk = Desk(parties=4, colluding=2)
    model, text, evidence = desk.finish()
    for party in desk.honest:
        desk.give(party, Result(model, text, evidence))
        assert party.is_over
    assert Certificate.from_json(text).promise_holds


def mixed_up(evidence: Evidence) -> Evidence:
    first, second, *_ = evidence.vectors
    swapped = {first: evidence.vectors[second], second: evidence.vectors[first]}
    return msgspec.structs.replace(evidence, vectors={**evidence.vectors, **swapped})


def without_one(evidence: Evidence) -> Evidence:
    name = next(iter(evidence.seeds))
    seeds = {key: seed for key, seed in evidence.seeds.items() if key != name}
    return msgspec.structs.replace(evidence, seeds=seeds)


def another_seed(evidence: Evidence) -> Evidence:
    name = next(iter(evidence.seeds))
    return msgspec.structs.replace(evidence, seeds={**evidence.seeds, name: bytes(32)})


def nobodys_word(evidence: Evidence) -> Evidence:
    return msgspec.structs.replace(evidence, received=dict.fromkeys(evidence.received, "00" * 64))


@pytest.mark.parametrize("change", [mixed_up, without_one, another_seed, nobodys_word])
def test_evidence_of_something_else_is_refused(change: Callable[[Any], Any]) -> None:
    desk = Desk(parties=3, colluding=1)
    model, text, body = desk.finish()
    evidence = write(change(read(Evidence, body)))
    for wrong in (evidence, b"", b"\xff"):
        with pytest.raises(TacitError):
            desk.give(desk.honest[0], Result(model, text, wrong))
    assert not desk.honest[0].is_over
    desk.give(desk.honest[0], Result(model, text, body))
    assert desk.honest[0].is_over


def test_a_model_of_the_curators_own_is_refused_by_who_was_in_the_run() -> None:
    """It is within all bounds and its certificate holds: to a stranger it is as good as another."""
    desk = Desk(parties=3, colluding=1)
    model, text, evidence = desk.finish()
    other, certificate = desk.other_model(text)
    assert other != model
    desk.check(other, certificate)
    with pytest.raises(CheckFailed, match="not the average of what the parties have sent"):
        desk.give(desk.honest[0], Result(other, certificate, evidence))


def test_a_member_that_signs_two_vectors_gets_at_most_one_model_accepted() -> None:
    """Each party is shown another one of its words, and reveals; then nobody's signature of what it
    was shown is good for the other's."""
    desk = Desk(parties=3, colluding=1)
    first, second = desk.honest
    keys, member = desk.keys(desk.gather()), desk.corrupt[0]
    words = desk.mask(keys)
    length = 8 * desk.run.terms.length
    vectors = [bytes(length), b"\x01".ljust(length, b"\x00")]
    results = []
    for party, vector in zip((first, second), vectors, strict=True):
        shown = {**words, member.public_key: desk.word(member, KeyList(keys), vector)}
        desk.answer(party, 2, desk.all_posted(shown))
        results.append((party, vector, shown))
    for party, vector, shown in results:
        with pytest.raises(CheckFailed, match=r"reveal of .* is not signed by it"):
            desk.give(party, desk.assembled({member.public_key: vector}, shown))
        assert not party.is_over


def test_who_was_in_a_run_does_not_take_the_result_of_another() -> None:
    desk, other = Desk(parties=3, colluding=1), Desk(parties=3, colluding=1, attempt=2)
    desk.finish()
    model, text, evidence = other.finish()
    with pytest.raises(CheckFailed):
        desk.give(desk.honest[0], Result(model, text, evidence))
