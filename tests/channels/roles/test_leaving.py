"""Leaving: the ledger of one who leaves, and windows without people who are left out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from tacit.channels.federation.follow import Followed
from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.roles.budget import LedgerBudget
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.asked import asked_by
from tacit.channels.studies.study import Online, Study
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import Refused
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.policy import LeftOut
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram

SCHEMA = Schema(
    columns=(
        Column(name="who", type="text", role="person"),
        Column(name="ward", type="category", categories=("a", "b", "c")),
    )
)
KEYS = [SigningKey.generate() for _ in range(3)]


class Vanished(Surroundings):
    """Reservations made here look as if their process were gone."""

    def owner(self) -> Owner:
        return Owner("another boot", 42, 1)


@pytest.fixture
def study() -> Study:
    return local_study(Histogram(), 4, SCHEMA, Promise(1.0, 1e-6), KEYS)


def ledger_at(path: Path, surroundings: Surroundings | None = None) -> Ledger:
    made = Ledger(path / "ledger.db", surroundings)
    made.allow("patients", "record", 10, 1e-3)
    return made


def test_nobody_leaves_while_its_own_process_still_takes_part(study: Study, tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    LedgerBudget.of(study, ledger, "patients").reserve(1)
    leaving = LedgerBudget.of(study, ledger, "patients")
    with pytest.raises(Refused, match=r"still takes part in study local .*: stop it first"):
        leaving.refuse_running()


@pytest.mark.parametrize("drawn", [True, False])
def test_who_leaves_pays_for_what_was_begun_and_only_that(
    study: Study, tmp_path: Path, drawn: bool
) -> None:
    ledger = ledger_at(tmp_path, Vanished())
    begun = LedgerBudget.of(study, ledger, "patients")
    begun.reserve(1)
    if drawn:
        begun.spend(1)
    ledger.decisions.revoke("patients")  # also one who has revoked its use
    leaving = LedgerBudget.of(study, ledger, "patients")
    leaving.refuse_running()
    leaving.leave()
    assert not ledger.open_spends()
    assert ledger.balance("patients", "record").spent.epsilon == (1 if drawn else 0)


def test_a_policy_sees_the_signed_study(study: Study) -> None:
    asked = asked_by(study.signed(KEYS[2]))
    assert (asked.program, asked.columns) == ("histogram", ("who", "ward"))
    assert asked.author == KEYS[2].public_key
    assert asked.servers == tuple(server.key for server in study.servers)
    assert (asked.parts, asked.study) == (1, study.digest)


def test_who_is_left_out_is_counted_as_used_and_not_summed(tmp_path: Path) -> None:
    """So that the same rows are used in the same windows, whoever leaves in between."""
    plain = local_study(Histogram(), 4, SCHEMA, Promise(1.0, 1e-6), KEYS)
    study = msgspec.structs.replace(plain, online=Online(windows=1))
    ledger, file = ledger_at(tmp_path), tmp_path / "new.csv"

    def absent() -> LeftOut:
        return ledger.decisions.left_out("patients")

    rows = ["anna,a", "bea,b", "anna,c", "cleo,c"]
    outbox = Outbox(MEMORY, study.digest)
    query, state = study.plan().stage(1).query, study.first_state()
    file.write_text("who,ward\n" + "\n".join(rows) + "\n")
    followed = Followed(study, file, outbox, left_out=absent)
    whole = followed.contribute(1, state, query)
    ledger.decisions.leave_out("patients", ["anna"])
    rest = followed.contribute(1, state, query)
    for made in (rest, whole):
        assert [(note.name, len(note.links)) for note in made.used] == [("new.csv", 4)]
    file.write_text("who,ward\nbea,b\ncleo,c\n")
    alone = Followed(study, file, Outbox(MEMORY, study.digest)).contribute(1, state, query)
    assert np.array_equal(rest.total, alone.total)
    assert not np.array_equal(rest.total, whole.total)
    ledger.decisions.leave_out("patients", ["bea", "cleo"])
    assert not followed.contribute(1, state, query).total.any()
