"""A reservation belongs to one key and one journal, and a journal keeps no secret longer than it
needs it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from deviating import study_for
from protocol_runs import CURATOR, KEYS

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.letters import Roster
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.roles.budget import LedgerBudget, NoBudget, drawn_by
from tacit.channels.roles.letters import Letter, write
from tacit.channels.roles.store import BEFORE_IDENTITIES, MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.errors import Refused
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.ledger.owner import Fate

SEED = b"the seed that takes masks off ..."[:32]


class Gone(Surroundings):
    """Whoever made a reservation before has been killed."""

    def fate(self, owner: Owner) -> Fate:
        return Fate.GONE


@pytest.fixture
def study() -> Study:
    return study_for(parties=3, colluding=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db", Gone())
    made.allow("clinic", "record", 10.0, 1e-4, composition="adding")
    return made


class Clinic:
    """The first party, on disk, and two others in memory."""

    def __init__(self, study: Study, ledger: Ledger) -> None:
        self.study, self.ledger = study, ledger
        self.others = [self._party(key, MEMORY) for key in KEYS[1:3]]
        self.curator = Curator(study, CURATOR, CuratorJournal(MEMORY, study.digest), 0.0)

    def _party(self, key: SigningKey, path: Path | str, budget: Any = None) -> Party:
        journal, local = PartyJournal(path, self.study.digest), Local(np.full(4, 0.1), 50)
        seed = fresh_seed if path == MEMORY else lambda: SEED
        try:
            return Party(self.study, key, journal, local, budget or NoBudget(), seed=seed)
        except BaseException:
            journal.close()
            raise

    def start(self, path: Path, key: SigningKey = KEYS[0]) -> Party:
        return self._party(key, path, LedgerBudget.of(self.study, self.ledger, "clinic"))

    def go_on(self, party: Party, until: Callable[[Party], bool]) -> None:
        while not until(party):
            self.curator.tick(0.0)
            assert self.curator.failure is None
            for each in (party, *self.others):
                for to, letter in () if until(party) else each.tick():
                    each.told(to, letter, self.curator.answer(each.key, letter, 0.0))

    @property
    def charged(self) -> float:
        balance = self.ledger.balance("clinic", "record")
        return float(balance.spent.epsilon + balance.reserved.epsilon)


def at_step(step: int) -> Callable[[Party], bool]:
    return lambda party: party._step >= step


def over(party: Party) -> bool:
    return party.is_over


# ── one charge, one release ──


def test_a_party_that_lost_its_folder_does_not_release_again(
    study: Study, ledger: Ledger, tmp_path: Path
) -> None:
    """However much budget is left: what was revealed belongs to the journal that noted it."""
    clinic = Clinic(study, ledger)
    party = clinic.start(tmp_path / "one" / "party.db")
    clinic.go_on(party, at_step(3))
    for other in ("two", "three"):
        with pytest.raises(Refused, match="only the folder of that run can go on with it"):
            clinic.start(tmp_path / other / "party.db")
    assert clinic.charged == 1
    party._journal.close()
    again = clinic.start(tmp_path / "one" / "party.db")
    clinic.go_on(again, over)
    assert clinic.charged == 1
    assert not ledger.open_spends()


def test_who_has_left_what_it_lost_pays_a_second_time(
    study: Study, ledger: Ledger, tmp_path: Path
) -> None:
    clinic = Clinic(study, ledger)
    clinic.go_on(clinic.start(tmp_path / "one" / "party.db"), at_step(3))
    LedgerBudget.of(study, ledger, "clinic").leave()
    second = Clinic(study, ledger)  # a curator that runs the study again
    second.go_on(second.start(tmp_path / "two" / "party.db"), over)
    assert clinic.charged == 2


@pytest.mark.parametrize("step", [0, 1, 2])
def test_before_anything_is_revealed_a_lost_folder_costs_nothing(
    study: Study, ledger: Ledger, tmp_path: Path, step: int
) -> None:
    clinic = Clinic(study, ledger)
    clinic.go_on(clinic.start(tmp_path / "one" / "party.db"), at_step(step))
    fresh = Clinic(study, ledger)
    fresh.go_on(fresh.start(tmp_path / "two" / "party.db"), over)
    assert clinic.charged == 1
    assert not ledger.open_spends()


def test_an_older_copy_of_the_journal_does_not_reveal_under_what_was_drawn(
    study: Study, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that has not seen the newer one: the copy bears the same name, and the ledger
    knows that something was drawn which the copy does not."""
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    clinic = Clinic(study, ledger)
    path = tmp_path / "one" / "party.db"
    party = clinic.start(path)
    clinic.go_on(party, at_step(2))
    party._journal.close()
    shutil.copytree(path.parent, tmp_path / "copy")
    party = clinic.start(path)
    clinic.go_on(party, at_step(3))
    party._journal.close()
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "another home"))
    with pytest.raises(Refused, match="it is an older copy"):
        clinic.start(tmp_path / "copy" / "party.db")
    assert clinic.charged == 1


def test_a_journal_is_one_keys(study: Study, ledger: Ledger, tmp_path: Path) -> None:
    clinic = Clinic(study, ledger)
    path = tmp_path / "one" / "party.db"
    party = clinic.start(path)
    clinic.go_on(party, at_step(3))
    party._journal.close()
    with pytest.raises(Refused, match="journal of another key"):
        clinic.start(path, KEYS[1])
    clinic.go_on(clinic.start(path), over)
    assert clinic.charged == 1


def test_another_key_with_the_same_records_pays_for_itself(
    study: Study, ledger: Ledger, tmp_path: Path
) -> None:
    """What one key has drawn does not lock another one out, and is not its to go on with."""
    clinic = Clinic(study, ledger)
    clinic.go_on(clinic.start(tmp_path / "one" / "party.db"), at_step(3))
    clinic.start(tmp_path / "two" / "party.db", KEYS[1])
    assert clinic.charged == 2
    assert len({spend.identity for spend in ledger.open_spends()}) == 2


def test_an_identity_is_of_one_journal_and_one_key() -> None:
    names = {drawn_by(journal, key) for journal in ("a", "b") for key in ("1", "2")}
    assert len(names) == 4
    assert drawn_by(BEFORE_IDENTITIES, "1") == BEFORE_IDENTITIES


# ── seeds ──


def found(folder: Path, secret: bytes) -> list[str]:
    """Files that hold it: databases and their logs."""
    files = [file for file in folder.iterdir() if file.is_file()]
    return [file.name for file in files if secret in file.read_bytes()]


def test_a_seed_is_erased_with_the_reveal(study: Study, ledger: Ledger, tmp_path: Path) -> None:
    clinic, folder = Clinic(study, ledger), tmp_path / "one"
    party = clinic.start(folder / "party.db")
    clinic.go_on(party, at_step(2))
    assert found(folder, SEED)  # a restart needs it
    clinic.go_on(party, at_step(3))
    assert found(folder, SEED) == []
    clinic.go_on(party, over)
    assert found(folder, SEED) == []
    assert party._journal.attempt() is None
    assert party._journal.said() is None


def test_a_seed_is_erased_when_its_attempt_is_given_up(study: Study, tmp_path: Path) -> None:
    journal = PartyJournal(tmp_path / "party.db", study.digest)
    numbers = iter((SEED, bytes(32)))
    party = Party(
        study, KEYS[0], journal, Local(np.zeros(4), 50), NoBudget(), seed=lambda: next(numbers)
    )
    for number in (1, 2):
        ((to, letter),) = party.tick()
        roster = Roster(number, [key.public_key for key in KEYS[:3]])
        party.told(to, letter, Letter("roster", 0, write(roster)))
        assert bool(found(tmp_path, SEED)) == (number == 1)


def test_who_leaves_keeps_no_seed(study: Study, ledger: Ledger, tmp_path: Path) -> None:
    clinic, folder = Clinic(study, ledger), tmp_path / "one"
    party = clinic.start(folder / "party.db")
    clinic.go_on(party, at_step(2))
    party._journal.leave()
    assert found(folder, SEED) == []


def test_the_curators_own_seed_is_erased_with_the_result(study: Study, tmp_path: Path) -> None:
    journal = CuratorJournal(tmp_path / "curator.db", study.digest)
    clinic = Clinic(study, Ledger(tmp_path / "l.db"))
    clinic.curator = Curator(study, CURATOR, journal, 0.0, seed=lambda: SEED)
    party = clinic._party(KEYS[0], MEMORY)
    clinic.go_on(party, at_step(3))
    assert found(tmp_path, SEED)
    clinic.go_on(party, over)
    assert found(tmp_path, SEED) == []
    journal.close()
    again = Curator(study, CURATOR, CuratorJournal(tmp_path / "curator.db", study.digest), 0.0)
    assert again.is_over
    assert again.waiting_for == {key.public_key for key in KEYS[:3]}
