"""A corrected study has a folder of its own; a folder of an earlier version is gone on with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.person_journal import PersonJournal
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.federation.outbox import Outbox
from tacit.channels.roles.folders import study_folder
from tacit.channels.roles.store import Store
from tacit.channels.studies.agreement import agreed, check_agreed, remember
from tacit.errors import Refused


@dataclass
class Named:
    name: str
    digest: str


FIRST, SECOND = Named("heart", "a" * 64), Named("heart", "b" * 64)


def test_two_studies_of_one_name_are_apart(tmp_path: Path) -> None:
    one, two = (study_folder(tmp_path, s, "holder-a") for s in (FIRST, SECOND))
    assert one != two
    for folder, study in ((one, FIRST), (two, SECOND)):
        Outbox(folder / "outbox.db", study.digest).close()
        assert study_folder(tmp_path, study, "holder-a") == folder


def test_a_folder_of_an_earlier_version_is_gone_on_with(tmp_path: Path) -> None:
    earlier = tmp_path / "studies" / "heart-holder-a"
    Outbox(earlier / "outbox.db", FIRST.digest).close()
    assert study_folder(tmp_path, FIRST, "holder-a") == earlier
    assert study_folder(tmp_path, SECOND, "holder-a") != earlier
    assert study_folder(tmp_path, FIRST, "aggregator") != earlier


@pytest.mark.parametrize("kind", [PersonJournal, CollectorStore, RelayStore])
def test_a_crowds_corrected_proposal_is_apart_too(kind: type[Store], tmp_path: Path) -> None:
    earlier = tmp_path / "studies" / "heart-own-part"
    kind(earlier / "own.db", FIRST.digest).close()
    assert study_folder(tmp_path, FIRST, "own-part") == earlier
    other = study_folder(tmp_path, SECOND, "own-part")
    assert other != earlier
    kind(other / "own.db", SECOND.digest).close()
    assert study_folder(tmp_path, SECOND, "own-part") == other


def test_a_folder_without_a_store_is_nobodys(tmp_path: Path) -> None:
    earlier = tmp_path / "studies" / "heart-holder-a"
    earlier.mkdir(parents=True)
    (earlier / "events.jsonl").write_text("{}\n")
    (earlier / "broken.db").write_bytes(b"no database")
    assert study_folder(tmp_path, FIRST, "holder-a") != earlier


def test_checking_remembers_nothing(tmp_path: Path) -> None:
    check_agreed(FIRST, tmp_path)
    check_agreed(SECOND, tmp_path)
    remember(FIRST, tmp_path)
    check_agreed(FIRST, tmp_path)
    with pytest.raises(Refused, match="--agree"):
        check_agreed(SECOND, tmp_path)
    check_agreed(SECOND, tmp_path, agree=SECOND.digest)
    with pytest.raises(Refused):  # typed, and not begun
        check_agreed(SECOND, tmp_path)
    agreed(SECOND, tmp_path, agree=SECOND.digest)
    check_agreed(SECOND, tmp_path)
