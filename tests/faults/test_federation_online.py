"""A study over records that keep arriving: each is used in one window, whatever is killed between.

Windows are so long here that a holder that waited for records without need would never be done.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import (
    HOLDERS,
    PROMISE,
    Reals,
    Roles,
    as_csv,
    expected_model,
    federation,
    made_up_records,
)

from tacit.channels.federation.outbox import Outbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs kill -9")

WINDOWS, EACH = 3, 2  # rounds of each window
COUNT = 30  # records of one holder in one window


def new_records(holder: str, window: int) -> Reals:
    return made_up_records(holder, "window", window, count=COUNT)


def put(roles: Roles, holder: str, name: str, text: str) -> None:
    """As whoever fills a folder should: whole files only, under their names at once."""
    draft = roles.data(holder) / f"{name}.part"
    draft.write_text(text, encoding="utf-8")
    draft.rename(roles.data(holder) / name)


def put_window(roles: Roles, window: int) -> None:
    for holder in HOLDERS:
        put(roles, holder, f"{window}.csv", as_csv(new_records(holder, window)))


def test_three_windows_with_kills_between(tmp_path: Path) -> None:
    rounds = WINDOWS * EACH
    with federation(tmp_path, rounds=rounds, round_seconds=3600.0, windows=WINDOWS) as roles:
        put_window(roles, 1)
        roles.start_all()
        roles.until("aggregator", "window published", window=1)
        roles.until("h1", "window received", window=1)

        roles.kill("h2")  # between two windows
        roles.start("h2", "kept", 3)
        put_window(roles, 2)
        roles.until_dead("h2")  # its first shares of window 2 are made, and none has left
        roles.start("h2", "kept", 4)
        roles.until_dead("h2")  # in the midst of window 2, which goes on with the same records
        roles.kill("aggregator")
        put(roles, "h2", "3.csv", as_csv(new_records("h2", 3)))  # too late for window 2
        roles.start("aggregator")
        roles.start("h2")
        roles.until("aggregator", "window published", window=2)

        for holder in ("h3",):
            put(roles, holder, "3.csv", as_csv(new_records(holder, 3)))
        # One file of h1 has grown, and ends with a line that is not complete: not a record yet.
        grown = np.concatenate([new_records("h1", 2), new_records("h1", 3)])
        put(roles, "h1", "2.csv", as_csv(grown) + "0.5,0.")
        roles.finish()

        check_records(roles)
        check_certificate(roles)
        for holder in HOLDERS:
            check_ledger(roles, holder)


def check_records(roles: Roles) -> None:
    """Each record in its window, in all of its rounds, and in no other."""
    windows = [
        np.concatenate([new_records(holder, window) for holder in HOLDERS])
        for window in range(1, WINDOWS + 1)
        for _ in range(EACH)
    ]
    for name in ("aggregator", *HOLDERS):
        assert roles.model(name) == expected_model(roles.study, windows)
    for holder in HOLDERS:
        outbox = Outbox(roles.folder(holder) / "outbox.db", roles.study.digest)
        used = {file.name: len(file.links) for file in outbox.noted().files}
        outbox.close()
        three = {"1.csv": COUNT, "2.csv": COUNT, "3.csv": COUNT}
        assert used == ({"1.csv": COUNT, "2.csv": 2 * COUNT} if holder == "h1" else three)


def check_certificate(roles: Roles) -> None:
    certificate = roles.certificate()
    assert certificate.verify(roles.study.aggregator.key).epsilon <= PROMISE.epsilon * 1.001
    parts = [release.part for release in certificate.releases]
    assert sorted(set(parts), key=str) == [f"window {n}" for n in range(1, WINDOWS + 1)]
    part = certificate.participation
    assert part is not None
    assert (part.holders, part.fewest, part.rounds) == (3, 3, WINDOWS * EACH)


def check_ledger(roles: Roles, holder: str) -> None:
    """Windows hold different records: the worst counts, and that is the promise."""
    ledger = roles.ledger(holder)
    ledger.verify()
    balance = ledger.balance("data", "record")
    assert (balance.spent.epsilon, balance.left.epsilon) == (PROMISE.epsilon, 0)
    assert not ledger.open_spends()
    kinds = [entry.kind for entry in ledger.entries()]
    assert (kinds.count("reserve"), kinds.count("commit")) == (WINDOWS, WINDOWS)
