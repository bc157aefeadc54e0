"""Accepted is what was recomputed: a certificate that says anything else, and a model that no run
of the study can have made, are refused by parties and by strangers alike."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.letters import Result
from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.consortium.protocols import check_consortium, terms_of
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Consortium, Study
from tacit.crypto.signing import SigningKey, digest
from tacit.data.schema import Column, Schema
from tacit.errors import CheckFailed, TacitError
from tacit.privacy.certificate import Certificate, Participation, Witness
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.model_file import model_bytes

Protocol = Literal["joint", "as-published"]
PROTOCOLS: tuple[Protocol, ...] = ("joint", "as-published")
PROGRAM = AveragedLogistic(penalty=0.1)
SCHEMA = Schema(
    columns=(
        Column(name="age", type="number", bounds=(0.0, 1.0)),
        Column(name="ill", type="boolean", role="label"),
    )
)


def key_of(number: int) -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


KEYS, CURATOR = [key_of(i) for i in (1, 2, 3)], key_of(9)


@cache
def study_of(protocol: Protocol) -> Study:
    promise = Promise(1.0, 1e-6 if protocol == "joint" else 0.0)
    terms = Consortium(protocol=protocol, colluding=0, smallest=50, key_bits=2048)
    return consortium_study(PROGRAM, KEYS, CURATOR, SCHEMA, promise, terms)


def party_of(study: Study, place: int) -> Party:
    journal, local = PartyJournal(MEMORY, study.digest), Local(np.array([0.1, 0.2]), 60 + place)
    return Party(study, KEYS[place], journal, local, NoBudget())


@cache
def honest(protocol: Protocol) -> tuple[bytes, str]:
    study = study_of(protocol)
    curator = Curator(study, CURATOR, CuratorJournal(MEMORY, study.digest), 0.0)
    parties = [party_of(study, place) for place in range(3)]
    while curator.result is None:
        curator.tick(0.0)
        for party in parties:
            for to, letter in party.tick():
                party.told(to, letter, curator.answer(party.key, letter, 0.0))
    return curator.result


def refused(protocol: Protocol, model: bytes, text: str) -> None:
    """By a stranger with the study, and by a party that was not in the run and cannot compare."""
    study = study_of(protocol)
    with pytest.raises(TacitError):
        check_consortium(study, model, text)
    party = party_of(study, 0)
    ((to, letter),) = party.tick()
    with pytest.raises(TacitError):
        party.told(to, letter, Letter("model", 0, write(Result(model, text))))
    assert not party.is_over


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_honest_parties_made_is_accepted(protocol: Protocol) -> None:
    model, text = honest(protocol)
    found = check_consortium(study_of(protocol), model, text)
    assert found.promise_holds == (protocol == "joint")
    assert found.to_json() == text


# ── certificates that the curator has written anew ──

REWRITTEN: dict[str, Callable[[Certificate], dict[str, Any]]] = {
    "promise_holds": lambda c: {"promise_holds": not c.promise_holds},
    "trust": lambda c: {"trust": "Nobody needs to be trusted."},
    "accountant": lambda c: {"accountant": c.accountant + "!"},
    "program": lambda c: {"program": "averaged-logistic 9"},
    "program digest": lambda c: {"program_digest": "00" * 32},
    "schema digest": lambda c: {"schema_digest": "11" * 32},
    "remarks": lambda c: {"remarks": (*c.remarks, "All is well.")},
    "no remarks": lambda c: {"remarks": c.remarks[1:] or ("There was a remark.",)},
    "ledger": lambda c: {"ledger": "22" * 32},
    "conditions": lambda c: {"conditions": ("The sun shines.",)},
    "no study": lambda c: {"study": None},
    "another study": lambda c: {"study": "33" * 32},
    "promise": lambda c: {"promise": Promise(0.5, c.promise.delta)},
    "a smaller bound": lambda c: {"releases": tuple(_halved(r) for r in c.releases)},
    "one release more": lambda c: {"releases": c.releases * 2},
    "no release": lambda c: {"releases": ()},
    "more took part": lambda c: {"participation": Participation(4, 4, 1)},
    "fewer took part": lambda c: {"participation": Participation(2, 2, 1)},
    "more rounds": lambda c: {"participation": Participation(3, 3, 2)},
    "nobody took part": lambda c: {"participation": None},
    "a witness less": lambda c: {"witnesses": c.witnesses[1:]},
    "a witness twice": lambda c: {"witnesses": (*c.witnesses, c.witnesses[0])},
    "one witness for all": lambda c: {"witnesses": (c.witnesses[0],) * 3},
    "witnesses in another order": lambda c: {"witnesses": c.witnesses[::-1]},
    "a stranger": lambda c: {"witnesses": (*c.witnesses, _stranger(c))},
    "insecure": lambda c: {"secure_randomness": False},
    "an old format": lambda c: {"format": "tacit certificate 2"},
    "a library": lambda c: {"library": "the safest there is"},
    "no date": lambda c: {"issued": "yesterday"},
    "a date with words": lambda c: {"issued": c.issued + " (checked)"},
    "another model": lambda c: {"subject": "44" * 32},
}


def _halved(release: Any) -> Any:
    return dataclasses.replace(release, scale=release.scale * Fraction(1, 2))


def _stranger(certificate: Certificate) -> Witness:
    assert certificate.statement is not None
    other = key_of(77)
    return Witness(other.public_key, other.sign(certificate.statement))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("what", REWRITTEN)
def test_a_rewritten_certificate_is_refused(protocol: Protocol, what: str) -> None:
    model, text = honest(protocol)
    genuine = Certificate.from_json(text)
    document = {**json.loads(text)}
    forged = dataclasses.replace(genuine, **REWRITTEN[what](genuine))
    assert forged != genuine
    signed = forged.signed(CURATOR)
    if what in ("no date", "a date with words"):  # `signed` dates anew: sign it by hand
        signed = _signed_as_is(forged)
    assert json.loads(signed.to_json()) != document
    refused(protocol, model, signed.to_json())


def _signed_as_is(certificate: Certificate) -> Certificate:
    from tacit.crypto.signing import canonical

    bare = dataclasses.replace(certificate, signature="")
    return dataclasses.replace(bare, signature=CURATOR.sign(canonical(bare._document())))


def test_what_is_said_names_what_differs() -> None:
    model, text = honest("joint")
    forged = dataclasses.replace(Certificate.from_json(text), trust="Nobody.", program="x 1")
    with pytest.raises(CheckFailed, match="in: trust, program"):
        check_consortium(study_of("joint"), model, forged.signed(CURATOR).to_json())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_anybody_elses_signature_is_refused(protocol: Protocol) -> None:
    model, text = honest(protocol)
    for key in KEYS:
        refused(protocol, model, Certificate.from_json(text).signed(key).to_json())


# ── models ──


def again(model: bytes, **changes: Any) -> bytes:
    """The model file with other fields, written as the program writes it."""
    found = dataclasses.replace(from_bytes(PROGRAM.models, model), **changes)
    return model_bytes(found, PROGRAM, SCHEMA)


def without_about(model: bytes) -> bytes:
    return to_bytes(from_bytes(PROGRAM.models, model))


def reordered(model: bytes) -> bytes:
    """The same content in a header with its parts in another order."""
    size = int.from_bytes(model[:8], "little")
    head = json.loads(model[8 : 8 + size])
    text = json.dumps(dict(reversed(head.items())), separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return len(text).to_bytes(8, "little") + text + model[8 + size :]


def with_metadata(model: bytes) -> bytes:
    size = int.from_bytes(model[:8], "little")
    head = json.loads(model[8 : 8 + size])
    head["__metadata__"]["note"] = "see www.example.org"
    text = json.dumps(head, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return len(text).to_bytes(8, "little") + text + model[8 + size :]


def other_schema(model: bytes) -> bytes:
    columns = (msgspec.structs.replace(SCHEMA.columns[0], name="income"), SCHEMA.columns[1])
    return model_bytes(from_bytes(PROGRAM.models, model), PROGRAM, Schema(columns=columns))


def of(number: float) -> Callable[[bytes], bytes]:
    return lambda model: again(model, coef=np.full((1, 1), number))


MODELS: dict[str, Callable[[bytes], bytes]] = {
    "no model": lambda model: b"not a model",
    "nothing": lambda model: b"",
    "cut short": lambda model: model[:-1],
    "with a byte more": lambda model: model + b"\0",
    "without its program": without_about,
    "with its header in another order": reordered,
    "with metadata": with_metadata,
    "of another program": lambda model: model_bytes(
        from_bytes(PROGRAM.models, model), AveragedLogistic(penalty=0.2), SCHEMA
    ),
    "of another schema": other_schema,
    "of other classes": lambda model: again(model, classes=("true", "false")),
    "of three classes": lambda model: again(model, classes=("false", "true", "perhaps")),
    "with two rows": lambda model: again(model, coef=np.zeros((2, 1))),
    "with a column more": lambda model: again(model, coef=np.zeros((1, 2))),
    "without an intercept": lambda model: again(model, intercept=np.zeros(0)),
    "NaN": of(float("nan")),
    "infinite": of(float("inf")),
    "minus infinite": of(float("-inf")),
    "huge": of(1e300),
    "longer than noise allows": of(1e4),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("what", MODELS)
def test_a_model_that_no_run_has_made_is_refused(protocol: Protocol, what: str) -> None:
    """Properly certified by the curator: its word is not enough."""
    model, text = honest(protocol)
    other = MODELS[what](model)
    assert other != model
    forged = dataclasses.replace(Certificate.from_json(text), subject=digest(other))
    refused(protocol, other, forged.signed(CURATOR).to_json())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_changed_in_either_are_refused(protocol: Protocol, seed: int) -> None:
    """Whatever changes in the model is covered by the certificate, and that by its signature; a
    curator that signs anew has to stay within what can be recomputed."""
    model, text = honest(protocol)
    source = np.random.default_rng(seed)
    for place in source.integers(0, len(model), 20):
        other = bytearray(model)
        other[place] ^= 1 << int(source.integers(8))
        refused_unless_a_model(protocol, bytes(other), text)
    for place in source.integers(0, len(text), 5):
        spoiled = text[:place] + chr(33 + int(source.integers(90))) + text[place + 1 :]
        if spoiled != text:
            refused(protocol, model, spoiled)


def refused_unless_a_model(protocol: Protocol, other: bytes, text: str) -> None:
    """A changed coefficient may be another model of the study; everything else shows."""
    study = study_of(protocol)
    with pytest.raises(TacitError):
        check_consortium(study, other, text)
    forged = dataclasses.replace(Certificate.from_json(text), subject=digest(other))
    try:
        check_consortium(study, other, forged.signed(CURATOR).to_json())
    except TacitError:
        return
    found = from_bytes(PROGRAM.models, other)
    assert model_bytes(found, PROGRAM, SCHEMA) == other
    terms = terms_of(study, tuple(sorted(key.public_key for key in KEYS)))
    assert np.linalg.norm(PROGRAM.vector(found, SCHEMA)) <= terms.validity_bound
